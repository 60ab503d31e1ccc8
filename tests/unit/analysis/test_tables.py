"""Families of tasks: those that are declared, and copies."""

from assay.analysis.columns import TaskLabel
from assay.analysis.tables import family_codes


def test_copies_join_the_families_to_which_they_belong() -> None:
    rows = [("p", "x"), ("q", "x"), ("q", ""), ("", "y"), ("r", "y"), ("p", ""), ("", "")]
    labels = [
        TaskLabel(
            suite="s",
            task=str(place),
            digest="",
            thing="",
            weight=1.0,
            family=family,
            content=content,
        )
        for place, (family, content) in enumerate(rows)
    ]
    assert family_codes(labels).tolist() == [0, 0, 0, 2, 2, 0, 4]
