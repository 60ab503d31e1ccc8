"""List candidates with their mean score per suite, and correct candidates' names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.analysis.tables import score_table
from assay.app.wire import document, fill, source
from assay.domain.errors import InputError
from assay.domain.identifiers import folded
from assay.domain.names import name_problem
from assay.domain.selection import Selection
from assay.statistics.estimates import Estimate, estimates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.app.workspace import Workspace
    from assay.domain.renaming import CandidateRow, NameEvent

MOST_ASSESSMENTS: Final = 20_000
"""A suite with more assessments is not read on the candidate's page; its scores are on the statistics page."""

MOST_SUITES: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateInSuite:
    """A candidate's score in one suite; `estimate` is None if no score counts or the suite is `too_large` to read here.

    `label` adds the model or prompt if runs of the suite use the same name for several models or prompts.
    """

    suite: str
    estimate: Estimate | None
    too_large: bool = False
    label: str | None = None


def standings(workspace: Workspace, candidate: str, suites: Sequence[str]) -> tuple[CandidateInSuite, ...]:
    """Return a candidate's score over all runs of a suite, for each of its first `MOST_SUITES` suites."""
    return tuple(each for suite in suites[:MOST_SUITES] for each in _standing(workspace, candidate, suite))


def _standing(workspace: Workspace, candidate: str, suite: str) -> list[CandidateInSuite]:
    """Return one row; if runs of the suite use the name for several models and prompts, one row for each."""
    selection = Selection(suites=(suite,))
    if sum(workspace.archive.runs.totals(selection).assessments.values()) > MOST_ASSESSMENTS:
        return [CandidateInSuite(suite=suite, estimate=None, too_large=True)]
    columns = workspace.archive.scores.columns(selection)
    called = {label: name for name, label in columns.kept_apart}
    own = [
        CandidateInSuite(
            suite=suite, estimate=estimate, label=str(estimate.candidate) if str(estimate.candidate) in called else None
        )
        for estimate in (estimates(score_table(columns)) if len(columns.score) else ())
        if folded(called.get(str(estimate.candidate), str(estimate.candidate))) == folded(candidate)
        and estimate.mean is not None
    ]
    return own or [CandidateInSuite(suite=suite, estimate=None)]


def candidates(workspace: Workspace) -> tuple[CandidateRow, ...]:
    return workspace.store.renaming.candidates()


def events(workspace: Workspace) -> tuple[NameEvent, ...]:
    """Return all renames, merges and their undos, oldest first."""
    return workspace.store.renaming.events()


def rename(workspace: Workspace, source: str, target: str, *, reason: str = "", reviewer: str | None = None) -> NameEvent:
    """Rename a candidate in statistics and exports; records of runs keep the old name."""
    if not target.strip():
        raise InputError("", "a candidate needs a name.")
    if problem := name_problem(target.strip()):
        raise InputError("", f"the new name is {target.strip()!r}, {problem}")
    renamed = workspace.store.renaming.rename(source, target.strip(), reviewer=reviewer or workspace.reviewer, reason=reason)
    return _projected(workspace, renamed)


def merge(workspace: Workspace, source: str, target: str, *, reason: str = "", reviewer: str | None = None) -> NameEvent:
    """Merge two names into one candidate with the second name; raises `Refused` if a run contains both names."""
    merged = workspace.store.renaming.merge(source, target, reviewer=reviewer or workspace.reviewer, reason=reason)
    return _projected(workspace, merged)


def undo(workspace: Workspace, event: str, *, reason: str = "", reviewer: str | None = None) -> NameEvent:
    """Undo a rename or merge, given by its number `n3` or 3."""
    digits = event.strip().lower().removeprefix("n")
    # At most 17 digits, which always fit the integers of the store.
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 18):
        raise InputError("", f"{event!r} is not an event.", remedy="`assay candidates list` shows the events: n1, n2, …")
    undone = workspace.store.renaming.undo(int(digits), reviewer=reviewer or workspace.reviewer, reason=reason)
    return _projected(workspace, undone)


def _projected(workspace: Workspace, event: NameEvent) -> NameEvent:
    for run in event.runs:
        workspace.results.end(run)
    return event


@document
class NamedCandidateDocument:
    """JSON of a candidate; `written` lists other spellings of its name in records of runs."""

    candidate: str = source("name")
    written: tuple[str, ...]
    runs: int
    first: str
    last: str


@document
class NameEventDocument:
    """JSON of a rename, a merge or an undo."""

    event: str
    did: str = source("verb")
    from_: str = source("source")
    to: str = source("target")
    run_ids: tuple[str, ...] | None = source("runs")
    reviewer: str
    reason: str
    at: str
    undoes: str | None
    undone_by: str | None


@document
class CandidateListDocument:
    """JSON of `assay candidates list`."""

    candidates: tuple[NamedCandidateDocument, ...]
    events: tuple[NameEventDocument, ...]


def list_document(candidates: tuple[CandidateRow, ...], mended: tuple[NameEvent, ...]) -> CandidateListDocument:
    return CandidateListDocument(
        candidates=tuple(fill(NamedCandidateDocument, candidate) for candidate in candidates),
        events=tuple(event_document(event) for event in mended),
    )


def event_document(name_event: NameEvent) -> NameEventDocument:
    """Return the JSON of `assay candidates rename`, `merge` and `undo`."""
    return fill(
        NameEventDocument,
        name_event,
        event=f"n{name_event.id}",
        undoes=None if name_event.undoes is None else f"n{name_event.undoes}",
        undone_by=None if name_event.undone_by is None else f"n{name_event.undone_by}",
    )
