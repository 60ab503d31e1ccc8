"""Notes about settings of a suite that are valid but may surprise its author."""

from __future__ import annotations

from typing import Final

from assay.domain.suite import PERSON, Suite
from assay.suites.checks import JUDGED
from assay.suites.taskfiles import TaskFile

FEWEST_JUDGED: Final = 3
"""Minimum number of trials to show how much an LLM's grades vary between trials."""

NAMED: Final = 3
"""Maximum number of tasks that a note lists; if there are more, it gives only their number."""


def notes_on(suite: Suite, *, trials: int | None = None) -> tuple[str, ...]:
    """Return notes for the author: gaps in coverage, tasks left out, too few trials for a judge, no
    candidates.

    `trials` from the command line takes precedence over the trials of the suite and its tasks. The
    tasks are read once.
    """
    brought = [candidate.name for candidate in suite.candidates if candidate.model is None]
    asked = {candidate.name for candidate in suite.candidates if candidate.model is not None}
    lacking = {name: _Named() for name in brought}
    answered: dict[str, _Named] = {}
    left_out = _Named()
    short = _Named()
    unused: dict[str, None] = {}
    count = 0
    for task in suite.tasks:
        count += 1
        if task.weight == 0:
            left_out.add(task.id)
            continue
        names = {snippet.candidate for snippet in task.snippets}
        for name in brought:
            if name not in names:
                lacking[name].add(task.id)
        for name in sorted(names & asked):
            answered.setdefault(name, _Named()).add(task.id)
        if (
            task.scoring.method in JUDGED
            and (trials or task.trials or suite.trials or 1) < FEWEST_JUDGED
        ):
            short.add(task.id)
        body = task.extra.get("body")
        if isinstance(body, dict):
            unused.update(dict.fromkeys(body))
    notes = [
        f"{name} has no snippet for {tasks.among(count)}."
        for name, tasks in lacking.items()
        if tasks
    ]
    notes += [
        f"{name} is a model, but its snippet is used for {tasks.among(count)}."
        for name, tasks in answered.items()
    ]
    if left_out:
        notes.append(f"Weight 0 leaves out {left_out.among(count)}.")
    if short and not all(judge.model.provider == PERSON for judge in suite.judges):
        notes.append(
            f"With fewer than {FEWEST_JUDGED} trials, nothing shows how much the judge's grades vary: {short.among(count)}."
        )
    if isinstance(suite.tasks, TaskFile) and suite.tasks.exact_by_default:
        notes.append(
            f"The suite sets neither a score nor a judge: tasks of {suite.tasks.named} are scored by `exact`, by which a sentence "
            "with the right answer scores 0. If candidates answer in sentences, set `score: contains`."
        )
    if unused:
        notes.append(
            f"The batch's own settings are not used: {', '.join(sorted(unused))}. Give candidates and parameters."
        )
    if not suite.candidates:
        notes.append("The suite has no candidates; add them with `--candidate provider/name`.")
    return tuple(notes)


class _Named:
    """Counts tasks and remembers the names of the first few."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._count = 0

    def add(self, task: str) -> None:
        self._count += 1
        if self._count <= NAMED:
            self._first.append(task)

    def __bool__(self) -> bool:
        return self._count > 0

    def among(self, total: int) -> str:
        """Describe the tasks: by name if there are few, by number if there are many."""
        if self._count == total and total > 1:
            return f"all {total} tasks"
        first = ", ".join(self._first)
        return first if self._count <= NAMED else f"{self._count} of {total} tasks ({first}, ...)"
