"""The rule that decides what happens to results that the store knows in part, and the digest by
which it knows them.
"""

from __future__ import annotations

import random

import pytest

from assay.domain.import_identity import ContentDigest, Overlap, Relation, relation
from assay.domain.import_records import (
    FoundAssessment,
    FoundGrade,
    FoundResponse,
    FoundScores,
    GradedBy,
)

OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def overlap(
    *, same: int = 9, changed: int = 0, added: int = 0, lacking: int = 0, **more: object
) -> Overlap:
    facts = {"same_evaluation": True, **more}
    return Overlap(same=same, changed=changed, added=added, lacking=lacking, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("compared", "expected"),
    [
        (overlap(), Relation.SAME),
        (overlap(changed=1, new_version=NEW, stored_version=OLD), Relation.LATER),
        (overlap(changed=1, new_version=OLD, stored_version=NEW), Relation.EARLIER),
        (overlap(lacking=1, new_version=NEW, stored_version=OLD), Relation.LATER),
        (
            overlap(lacking=1, new_version=NEW, stored_version=OLD, new_complete=False),
            Relation.EARLIER,
        ),
        (
            overlap(added=1, new_version=OLD, stored_version=NEW, stored_complete=False),
            Relation.LATER,
        ),
        (overlap(changed=1, new_version=NEW, stored_version=NEW), Relation.CONFLICT),
        (overlap(changed=1, new_version=NEW), Relation.CONFLICT),
        (overlap(added=3), Relation.LATER),
        (overlap(lacking=3), Relation.EARLIER),
        (overlap(added=3, lacking=3), Relation.CONFLICT),
        (overlap(added=3, lacking=3, same_evaluation=False), Relation.PARTLY),
        (
            overlap(changed=1, new_version=NEW, stored_version=OLD, same_evaluation=False),
            Relation.CONFLICT,
        ),
    ],
)
def test_the_later_version_counts_and_doubt_is_a_conflict(
    compared: Overlap, expected: Relation
) -> None:
    assert relation(compared) is expected


OPPOSITE = {
    Relation.LATER: Relation.EARLIER,
    Relation.EARLIER: Relation.LATER,
    Relation.SAME: Relation.SAME,
    Relation.CONFLICT: Relation.CONFLICT,
    Relation.PARTLY: Relation.PARTLY,
}


def test_the_order_of_two_imports_does_not_decide_which_counts() -> None:
    draw = random.Random(5)
    for _ in range(2000):
        versions = draw.choice([None, OLD, NEW]), draw.choice([None, OLD, NEW])
        complete = draw.random() < 0.5, draw.random() < 0.5
        counts = {name: draw.choice([0, 0, 2]) for name in ("changed", "added", "lacking")}
        same = draw.random() < 0.5
        one = Overlap(
            same_evaluation=same,
            same=5,
            **counts,
            new_version=versions[0],
            stored_version=versions[1],
            new_complete=complete[0],
            stored_complete=complete[1],
        )
        other = Overlap(
            same_evaluation=same,
            same=5,
            changed=counts["changed"],
            added=counts["lacking"],
            lacking=counts["added"],
            new_version=versions[1],
            stored_version=versions[0],
            new_complete=complete[1],
            stored_complete=complete[0],
        )
        assert relation(other) is OPPOSITE[relation(one)], (one, other)


def records(*, score: float = 1.0, answer: str = "yes") -> list[FoundResponse | FoundAssessment]:
    made: list[FoundResponse | FoundAssessment] = []
    for number in range(5):
        made.append(
            FoundResponse(task=f"t{number}", candidate="a", trial=1, where="x", content=answer)
        )
        grades = (FoundGrade(candidate="a", score=score if number == 3 else 0.5),)
        made.append(
            FoundAssessment(
                task=f"t{number}", trial=1, judge="j", by=GradedBy.RULE, where="x", grades=grades
            )
        )
    return made


def digest(made: list[FoundResponse | FoundAssessment]) -> str:
    content = ContentDigest()
    for record in made:
        if isinstance(record, FoundResponse):
            content.add_response(record)
        else:
            content.add_assessment(record)
    return content.hex()


def test_the_digest_depends_on_results_and_not_on_their_order() -> None:
    shuffled = records()
    random.Random(1).shuffle(shuffled)
    assert digest(shuffled) == digest(records())
    assert digest(records(score=0.9)) != digest(records())
    assert digest(records(answer="no")) != digest(records())
    assert digest([*records(), *records()]) != digest(records()), "twice the rows are other results"


def scored(*rows: tuple[str, str, float | None]) -> str:
    content = ContentDigest()
    given = [(task, candidate, 1, score) for task, candidate, score in rows]
    content.add_scores(FoundScores(judge="j", by=GradedBy.RULE, rows=given))
    return content.hex()


def test_a_batch_of_scores_has_the_digest_of_its_assessments() -> None:
    graded = [record for record in records() if isinstance(record, FoundAssessment)]
    rows = [(record.task, "a", record.grades[0].score) for record in graded]
    assert (
        scored(*rows)
        == digest([*graded])
        == scored(*((*row[:2], int(row[2]) if row[2] == 1 else row[2]) for row in rows))
    )


def test_moved_scores_give_another_digest() -> None:
    rows = [("t1", "a", 0.5), ("t1", "b", 1.0), ("t2", "a", 1.0), ("t2", "b", None)]
    for at in range(1, 4):
        swapped = [
            (*row[:2], rows[at][2] if n == 0 else rows[0][2] if n == at else row[2])
            for n, row in enumerate(rows)
        ]
        assert scored(*swapped) != scored(*rows)
    assert scored(("a", "t1", 0.5)) != scored(("t1", "a", 0.5))
