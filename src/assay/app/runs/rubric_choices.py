"""Offer ready-made rubrics in forms, and propose a rubric for given texts."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, TypedDict

from assay.scoring.rubrics import READY_MADE, default_rubric, proposed_rubric

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.domain.suite import Rubric, Suite

TITLES: Final = {
    "code": "Code",
    "helpfulness": "Written answer",
    "quality": "Overall",
    "correctness": "Same as the reference answer",
    "faithfulness": "Faithful to the sources",
    "style": "Style",
}
"""Names of ready-made rubrics in the order of the form; the first three fit any text."""

_TASKS_READ: Final = 20


class CriterionRow(TypedDict):
    """A criterion, as forms show it."""

    name: str
    weight: float
    scale: list[float]
    guidance: str
    labels: list[str]


class RubricChoice(TypedDict):
    """A ready-made rubric that can be chosen."""

    name: str
    title: str
    criteria: list[CriterionRow]


def criterion_rows(rubric: Rubric | None) -> list[CriterionRow]:
    """Return the criteria of a rubric for forms; empty without a rubric."""
    return [
        CriterionRow(
            name=c.name,
            weight=c.weight,
            scale=[c.low, c.high],
            guidance=c.guidance,
            labels=[word for word, _ in c.labels],
        )
        for c in (rubric.criteria if rubric else ())
    ]


def rubric_choices() -> list[RubricChoice]:
    return [
        RubricChoice(name=name, title=TITLES[name], criteria=criterion_rows(READY_MADE[name]))
        for name in TITLES
    ]


def rubric_for_texts(texts: Iterable[str]) -> str:
    return proposed_rubric(texts)


def rubrics_for_suite(suite: Suite) -> tuple[str, str]:
    """Return the default rubric and the ready-made rubric that fits a suite without a rubric; empty
    if the suite needs none.

    Tasks with code in a known language keep the rubric for code, whatever their texts are.
    """
    tasks = tuple(
        islice((task for task in suite.tasks if task.scoring.method == "judge"), _TASKS_READ)
    )
    defaults = {default_rubric(task) is READY_MADE["code"] for task in tasks}
    if suite.rubric is not None or len(defaults) != 1:
        return "", ""
    texts = [snippet.text for task in tasks for snippet in task.snippets]
    if defaults == {True} or not texts:
        return ("code", "code") if defaults == {True} else ("quality", "quality")
    return "quality", proposed_rubric(texts)
