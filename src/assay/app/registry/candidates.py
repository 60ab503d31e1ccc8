"""Candidates: their means by suite, and corrections of their names."""

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
"""Above this number of assessments, a suite is not read here; the statistics page caches its figures."""

MOST_SUITES: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateInSuite:
    """A candidate in one suite; `estimate` is None if nothing counts yet, or if the suite is `too_large` to read here.

    `label` names its model or prompt if runs of the suite use its name for several.
    """

    suite: str
    estimate: Estimate | None
    too_large: bool = False
    label: str | None = None


def standings(workspace: Workspace, candidate: str, suites: Sequence[str]) -> tuple[CandidateInSuite, ...]:
    """Return the candidate's score over all runs of a suite, for each of the first `MOST_SUITES` suites."""
    return tuple(each for suite in suites[:MOST_SUITES] for each in _standing(workspace, candidate, suite))


def _standing(workspace: Workspace, candidate: str, suite: str) -> list[CandidateInSuite]:
    """Return one row, or one row per model and prompt if runs of the suite use this name for several."""
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
    """Return the candidates of all runs."""
    return workspace.store.renaming.candidates()


def events(workspace: Workspace) -> tuple[NameEvent, ...]:
    """Return all corrections of names, oldest first."""
    return workspace.store.renaming.events()


def rename(workspace: Workspace, source: str, target: str, *, reason: str = "", reviewer: str | None = None) -> NameEvent:
    """Change a candidate's name in statistics and exports; its runs' records keep the old name."""
    if not target.strip():
        raise InputError("", "a candidate needs a name.")
    if problem := name_problem(target.strip()):
        raise InputError("", f"the new name is {target.strip()!r}, {problem}")
    renamed = workspace.store.renaming.rename(source, target.strip(), reviewer=reviewer or workspace.reviewer, reason=reason)
    return _projected(workspace, renamed)


def merge(workspace: Workspace, source: str, target: str, *, reason: str = "", reviewer: str | None = None) -> NameEvent:
    """Merge two names into one candidate with the second name; refused if both took part in the same run."""
    merged = workspace.store.renaming.merge(source, target, reviewer=reviewer or workspace.reviewer, reason=reason)
    return _projected(workspace, merged)


def undo(workspace: Workspace, event: str, *, reason: str = "", reviewer: str | None = None) -> NameEvent:
    """Undo a name correction, given as `n3` or 3."""
    digits = event.strip().lower().removeprefix("n")
    # At most 17 digits, which always fit the integers of the store.
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 18):
        raise InputError("", f"{event!r} is not an event.", remedy="`assay candidates list` shows them: n1, n2, …")
    undone = workspace.store.renaming.undo(int(digits), reviewer=reviewer or workspace.reviewer, reason=reason)
    return _projected(workspace, undone)


def _projected(workspace: Workspace, event: NameEvent) -> NameEvent:
    """Update the records in the results folder, which contain the current names."""
    for run in event.runs:
        workspace.results.end(run)
    return event


@document
class NamedCandidateDocument:
    """A candidate by its current name; `written` lists the other spellings in its runs' records."""

    candidate: str = source("name")
    written: tuple[str, ...]
    runs: int
    first: str
    last: str


@document
class NameEventDocument:
    """A rename, a merge, or the undo of one."""

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
    """The document of `candidates list`."""

    candidates: tuple[NamedCandidateDocument, ...]
    events: tuple[NameEventDocument, ...]


def list_document(candidates: tuple[CandidateRow, ...], mended: tuple[NameEvent, ...]) -> CandidateListDocument:
    """Return the document of `candidates list`."""
    return CandidateListDocument(
        candidates=tuple(fill(NamedCandidateDocument, candidate) for candidate in candidates),
        events=tuple(event_document(event) for event in mended),
    )


def event_document(name_event: NameEvent) -> NameEventDocument:
    """Return the document of `candidates rename`, `merge` and `undo`."""
    return fill(
        NameEventDocument,
        name_event,
        event=f"n{name_event.id}",
        undoes=None if name_event.undoes is None else f"n{name_event.undoes}",
        undone_by=None if name_event.undone_by is None else f"n{name_event.undone_by}",
    )
