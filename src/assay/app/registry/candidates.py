"""List candidates with their mean score per suite, and correct candidates' names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from assay.analysis.tables import score_table
from assay.app.statistics.run_choice import choose
from assay.app.wire import document
from assay.domain.errors import InputError
from assay.domain.identifiers import folded
from assay.domain.names import name_problem
from assay.domain.selection import Selection
from assay.statistics.estimates import Estimate, estimates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.app.results_folder import Projector
    from assay.app.workspace import Workspace
    from assay.domain.identifiers import RunId
    from assay.domain.renaming import CandidateRow, NameEvent
    from assay.store.opening import Store

MAX_ASSESSMENTS: Final = 20_000
"""A run with more assessments is not read on the candidate's page; its scores are on the page
Results.
"""

MAX_SUITES: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateInSuite:
    """A candidate's score in its newest run of a suite; `estimate` is None if no score counts or
    the run is `too_large`.

    Attributes:
        runs: the newest run of the suite with the candidate; with it, the imported run whose
            responses it grades, if people graded these.
        of: number of runs of the suite with the candidate.
    """

    suite: str
    estimate: Estimate | None
    runs: tuple[RunId, ...] = ()
    of: int = 0
    too_large: bool = False


def standings(store: Store, candidate: str, suites: Sequence[str]) -> tuple[CandidateInSuite, ...]:
    """Return a candidate's score in its newest run, for each of its first `MAX_SUITES` suites.

    Runs are not pooled.
    """
    return tuple(_standing(store, candidate, suite) for suite in suites[:MAX_SUITES])


def _standing(store: Store, candidate: str, suite: str) -> CandidateInSuite:
    of_candidate = Selection(suites=(suite,), compared=(candidate,))
    chosen = choose(store, Selection(suites=(suite,)), candidate)
    selection = chosen.selection
    row = CandidateInSuite(
        suite=suite,
        estimate=None,
        runs=tuple(run.id for run in chosen.runs),
        of=store.archive.runs.totals(of_candidate).runs,
    )
    if sum(store.archive.runs.totals(selection).assessments.values()) > MAX_ASSESSMENTS:
        return replace(row, too_large=True)
    columns = store.archive.scores.columns(selection)
    if not len(columns.score):
        return row
    shared = {label: name for name, label in columns.kept_apart}
    own = (
        estimate
        for estimate in estimates(score_table(columns))
        if folded(shared.get(str(estimate.candidate), str(estimate.candidate))) == folded(candidate)
        and estimate.mean is not None
    )
    return replace(row, estimate=next(own, None))


def candidates(store: Store) -> tuple[CandidateRow, ...]:
    return store.renaming.candidates()


def events(store: Store) -> tuple[NameEvent, ...]:
    """Return all renames, merges and their undos, oldest first."""
    return store.renaming.events()


def rename(
    workspace: Workspace, source: str, target: str, *, reason: str = "", reviewer: str | None = None
) -> NameEvent:
    """Rename a candidate in statistics and exports; records of runs keep the old name."""
    if not target.strip():
        raise InputError("", "a candidate needs a name.")
    if problem := name_problem(target.strip()):
        raise InputError("", f"the new name is {target.strip()!r}, {problem}")
    renamed = workspace.store.renaming.rename(
        source, target.strip(), reviewer=reviewer or workspace.reviewer, reason=reason
    )
    return _projected(workspace.results, renamed)


def merge(
    workspace: Workspace, source: str, target: str, *, reason: str = "", reviewer: str | None = None
) -> NameEvent:
    """Merge two names into one candidate with the second name; raises `Refused` if a run contains
    both names.
    """
    merged = workspace.store.renaming.merge(
        source, target, reviewer=reviewer or workspace.reviewer, reason=reason
    )
    return _projected(workspace.results, merged)


def undo(
    workspace: Workspace, event: str, *, reason: str = "", reviewer: str | None = None
) -> NameEvent:
    """Undo a rename or merge, given by its number `n3` or 3."""
    digits = event.strip().lower().removeprefix("n")
    # At most 17 digits, which always fit the integers of the store.
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 18):
        raise InputError(
            "",
            f"{event!r} is not an event.",
            remedy="`assay candidates list` shows the events: n1, n2, …",
        )
    undone = workspace.store.renaming.undo(
        int(digits), reviewer=reviewer or workspace.reviewer, reason=reason
    )
    return _projected(workspace.results, undone)


def _projected(results: Projector, event: NameEvent) -> NameEvent:
    for run in event.runs:
        results.end(run)
    return event


@document
class NamedCandidateDocument:
    """JSON of a candidate; `written` lists other spellings of its name in records of runs."""

    candidate: str
    written: tuple[str, ...]
    runs: int
    first: str
    last: str


@document
class NameEventDocument:
    """JSON of a rename, a merge or an undo."""

    event: str
    did: str
    from_: str
    to: str
    run_ids: tuple[str, ...] | None
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


def list_document(
    candidates: tuple[CandidateRow, ...], mended: tuple[NameEvent, ...]
) -> CandidateListDocument:
    return CandidateListDocument(
        candidates=tuple(
            NamedCandidateDocument(
                candidate=candidate.name,
                written=candidate.written,
                runs=candidate.runs,
                first=candidate.first,
                last=candidate.last,
            )
            for candidate in candidates
        ),
        events=tuple(event_document(event) for event in mended),
    )


def event_document(name_event: NameEvent) -> NameEventDocument:
    """Return the JSON of `assay candidates rename`, `merge` and `undo`."""
    return NameEventDocument(
        event=f"n{name_event.id}",
        did=name_event.verb,
        from_=name_event.source,
        to=name_event.target,
        run_ids=name_event.runs,
        reviewer=name_event.reviewer,
        reason=name_event.reason,
        at=name_event.at,
        undoes=None if name_event.undoes is None else f"n{name_event.undoes}",
        undone_by=None if name_event.undone_by is None else f"n{name_event.undone_by}",
    )
