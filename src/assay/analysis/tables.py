"""Score tables from columns of counted scores, and warnings about the whole selection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from assay.statistics.table import ScoreTable
from assay.statistics.warnings import Caution, few_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from assay.analysis.columns import GradingSetting, ScoreColumns, TaskLabel


def score_table(columns: ScoreColumns) -> ScoreTable:
    """Build a score table with unique task names, averaged judge calls and all candidates."""
    names = np.array(names_of_tasks(columns.tasks), dtype=object)
    weights = np.array([label.weight for label in columns.tasks], dtype=np.float64)
    candidates = np.array(columns.candidates, dtype=object)
    # A candidate without any counted trials stays in the table, so that it is listed with the
    # reason.
    return ScoreTable.from_columns(
        task=names[columns.task] if len(names) else [],
        candidate=candidates[columns.candidate] if len(candidates) else [],
        trial=columns.trial,
        score=columns.score,
        weight=weights[columns.task] if len(weights) else None,
        joint=columns.joint,
        planned_tasks=planned_tasks(columns),
        family=family_rows(columns.tasks, columns.task),
        planned_families=planned_families(columns.tasks),
    ).including(columns.candidates)


def family_codes(tasks: Sequence[TaskLabel]) -> NDArray[np.int64]:
    """Return each task's family code, which is the same for a family in every suite.

    A task without a family gets its own code.

    Copies of a task are one family; if they belong to families already, these become one.
    """
    codes: dict[str | int, int] = {}
    declared = [
        codes.setdefault(label.family or place, len(codes)) for place, label in enumerate(tasks)
    ]
    joined: dict[int, int] = {}

    def code_of(code: int) -> int:
        while code in joined:
            code = joined[code]
        return code

    of_content: dict[str, int] = {}
    for label, code in zip(tasks, declared, strict=True):
        if label.content:
            low, high = sorted((code_of(code), code_of(of_content.setdefault(label.content, code))))
            if low < high:
                joined[high] = low
    return np.array([code_of(code) for code in declared], np.int64)


def family_rows(tasks: Sequence[TaskLabel], task: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return each row's family code; None if no two tasks share a family."""
    codes = family_codes(tasks)
    return codes[task] if len(np.unique(codes)) < len(tasks) else None


def planned_families(tasks: Sequence[TaskLabel]) -> int:
    """Count the families of the planned tasks that have a weight above 0."""
    return len(
        {
            code
            for label, code in zip(tasks, family_codes(tasks).tolist(), strict=True)
            if label.weight > 0
        }
    )


def planned_tasks(columns: ScoreColumns) -> int:
    """Count the planned tasks of the selected runs that have a weight above 0, even if they have no
    counted trials.
    """
    return sum(label.weight > 0 for label in columns.tasks)


def _in_families(tasks: Sequence[TaskLabel]) -> Iterator[Caution]:
    """Yield a note with the number of families and the effective sample size, if tasks share
    families.
    """
    weight = np.array([label.weight for label in tasks], dtype=np.float64)
    n_tasks, n_families = int((weight > 0).sum()), planned_families(tasks)
    n_declared = len(
        {label.family or place for place, label in enumerate(tasks) if label.weight > 0}
    )
    if n_declared == n_tasks:
        return
    of_family = np.bincount(family_codes(tasks), weights=weight)
    effective = float(of_family.sum() ** 2 / (of_family**2).sum())
    n_alone = sum(not label.family and label.weight > 0 for label in tasks)
    alone = f" ({n_alone} without a family each count as their own)" if n_alone else ""
    yield Caution(
        code="families",
        text=f"{n_tasks:,} tasks in {n_families:,} {'family' if n_families == 1 else 'families'}{alone}, an effective sample of "
        f"{effective:.1f}: tasks of a family are not independent, so conclusions about similar tasks count each family once.",
    )


def _copies(tasks: Sequence[TaskLabel]) -> Iterator[Caution]:
    """Yield a note if tasks have the same content, so that they count as one family."""
    copies: dict[str, list[str]] = {}
    for label, name in zip(tasks, names_of_tasks(tasks), strict=True):
        if label.content and label.weight > 0:
            copies.setdefault(label.content, []).append(name)
    groups = [names for names in copies.values() if len(names) > 1]
    if not groups:
        return
    n_tasks, n_alike = sum(label.weight > 0 for label in tasks), sum(map(len, groups))
    contents = "one task" if len(groups) == 1 else f"{len(groups):,} tasks"
    yield Caution(
        code="copies",
        text=f"{n_alike:,} of {n_tasks:,} tasks are copies of {contents}, with the same text and reference: "
        f"{few_names(list(groups[0]), shown=3)}{'; …' if len(groups) > 1 else ''}. Copies count as one family, so conclusions "
        f"about similar tasks count {planned_families(tasks):,} instead of {n_tasks:,}. Remove the copies, or ask one task "
        "for several trials.",
    )


def names_of_tasks(tasks: Sequence[TaskLabel]) -> list[str]:
    """Name each task by its id, preceded by its suite if two suites share the id, and followed by
    its digest if it changed.
    """
    suites: dict[str, set[str]] = {}
    for label in tasks:
        suites.setdefault(label.task, set()).add(label.suite)
    return [
        (f"{label.suite}/" if len(suites[label.task]) > 1 else "")
        + label.task
        + (f"@{label.digest[:6]}" if label.changed else "")
        for label in tasks
    ]


def cautions(columns: ScoreColumns) -> tuple[Caution, ...]:
    """Return the warnings for a selection: families, copies, changed tasks, mixed settings,
    unreviewed grades.
    """
    return (*_in_families(columns.tasks), *_copies(columns.tasks), *_about_pooling(columns))


def _about_pooling(columns: ScoreColumns) -> Iterator[Caution]:
    changed = sorted({label.task for label in columns.tasks if label.changed})
    if changed:
        yield Caution(
            code="task_changed",
            text=f"{', '.join(changed)}: the text of the task changed between runs; each version counts as a task of its own.",
        )
    if len(columns.settings) > 1:
        yield Caution(
            code="mixed_settings",
            text=f"{len(columns.settings)} different judges, rubrics, prompts or parameters are pooled: "
            f"{'; '.join(map(_setting_in_words, columns.settings))}. Select one judge or one run.",
        )
    for mixed in columns.mixed_rules:
        rules = "; ".join(
            f"{rule} in {few_names(list(runs), shown=3)}" for rule, runs in mixed.rules
        )
        yield Caution(
            code="mixed_rules",
            text=f"Different rules scored {few_names(list(mixed.tasks), shown=3)}, and the scores are pooled: {rules}. "
            "Select one run with --run, or grade them all by the same rules with `assay regrade`.",
        )
    for name in dict.fromkeys(name for name, _ in columns.kept_apart):
        labels = [label for shared, label in columns.kept_apart if shared == name]
        yield Caution(
            code="same_name",
            text=f"Runs use the name {name} for different models or system prompts. They are kept apart, and not pooled: "
            f"{', '.join(labels)}. Give each its own name in the suite, or select runs with --run.",
        )
    undrawn, joint = _undrawn_trials(columns)
    if undrawn:
        yield Caution(
            code="position_not_drawn",
            text=f"Positions were not random: in {undrawn} of {joint} trials that were graded jointly, the judge saw the "
            "candidates in an order that was not random or not recorded. If the judge favours a position, "
            "these scores are biased. Grade them again with `assay regrade`.",
        )
    unseen = int(columns.unseen.sum())
    if unseen:
        yield Caution(
            code="unreviewed_grades",
            text=f"{unseen} of {len(columns.unseen)} counted grades were not seen by a person; the review policy allows this.",
        )


def _setting_in_words(setting: GradingSetting) -> str:
    """Describe a setting by its judge and its runs; its digest would mean nothing to a reader."""
    who = "no judge" if setting.judge is None else f"judge {setting.judge}"
    return f"{who} in {few_names(list(setting.runs), shown=3)}"


def _undrawn_trials(columns: ScoreColumns) -> tuple[int, int]:
    """Return the number of joint trials without a random candidate order, and of all joint
    trials.
    """
    if columns.unplaced is None or columns.by_rule is None or not columns.unplaced.any():
        return 0, 0
    graded, rows = np.unique(columns.trial[columns.joint & ~columns.by_rule], return_counts=True)
    several = graded[rows > 1]
    return len(np.intersect1d(several, columns.trial[columns.unplaced])), len(several)
