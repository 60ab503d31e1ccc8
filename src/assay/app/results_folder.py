"""Update the results folder when a run starts, when it ends, and after decisions.

The store is authoritative, but other programs read the folder, and a store can be rebuilt from it.
Writing the folder never delays other work. The start of a run writes a few small files. Decisions
are queued and written when the process ends or a server is idle. If the folder cannot be written,
Assay logs a warning and continues.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from assay.app.provenance import ProvenanceSource, provenance
from assay.app.results_files import (
    all_described,
    forget_aside,
    project,
    recount,
    register,
    set_aside,
)
from assay.domain.errors import AssayError, SettingsError
from assay.domain.identifiers import AssessmentKey, RunId, TrialKey
from assay.domain.lifecycle import AssessmentPurpose, RunState
from assay.domain.selection import Selection
from assay.exchange.results_folder import folder as results_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from assay.domain.review import Decision, ReviewEvent
    from assay.domain.run_removal import RunEvent
    from assay.store.review.decisions import StoreDecisions

_LOG: Final = logging.getLogger("assay.results")

ADOPTED_WHOLE: Final = 20_000
"""Maximum number of trials for which an imported run is written automatically; a few thousand take
a second.
"""

BEGIN_PATIENCE_S: Final = 1.0


def folder_of(setting: object, project: Path) -> Path | None:
    if setting is None:
        return project / "results"
    if setting is False or setting in ("", "off", "no", "false"):
        return None
    if not isinstance(setting, str):
        raise SettingsError(
            "results", f"is {setting!r}.", remedy="Give a folder, or set `results: off`."
        )
    return project / setting


class Projector:
    """Updates the results folder from the store.

    Args:
        source: stores that the runs are read from.
        folder: the results folder; None writes no files.
        idle_s: seconds that an idle server waits before it writes decisions; with None, only
            `flush` writes them.
    """

    def __init__(
        self, source: ProvenanceSource, folder: Path | None, *, idle_s: float | None = None
    ) -> None:
        self.folder = folder
        self.idle_s = idle_s
        self._source = source
        self._lock = threading.Lock()  # protects the pending changes and the timer
        self._after: int | None = None
        self._trials: dict[RunId, set[TrialKey]] = {}
        self._timer: threading.Timer | None = None

    def begin(self, run: RunId) -> None:
        """Register a run at its start, without results."""
        self._quietly(lambda folder: self._describe(folder, run))

    def end(self, run: RunId) -> None:
        self._quietly(lambda folder: project(self._source, folder, run))

    def adopt(self, run: RunId) -> None:
        """Write the files of an imported run.

        A very large run is only registered, and `assay export results` writes its files.
        """
        if self.folder is None:
            return
        (summary,) = self._source.archive.runs.matching(Selection(runs=(run,)))
        if sum(summary.trials.values()) <= ADOPTED_WHOLE:
            self.end(run)
        else:
            self.begin(run)

    def set_aside(self, event: RunEvent) -> None:
        """Move the files of a deleted or replaced run to the folder of deleted runs; `event` is the
        recorded reason.
        """
        self.flush()  # otherwise its record would lack the queued decisions
        self._quietly(lambda folder: set_aside(folder, event))

    def bring_back(self, run: RunId) -> None:
        self._quietly(lambda folder: forget_aside(folder, run))
        self.adopt(run)

    def note(self, events: Iterable[ReviewEvent]) -> None:
        """Queue decisions for the next write, without waiting.

        Decisions on control items are skipped.
        """
        numbers = [event.id for event in events if event.decision.purpose is AssessmentPurpose.WORK]
        if numbers:
            before = min(numbers) - 1
            with self._lock:
                self._after = before if self._after is None else min(before, self._after)
            self._soon()

    def touch(self, run: RunId, trial: TrialKey) -> None:
        """Queue a run for the next write, without waiting, because one of its trials changed."""
        with self._lock:
            self._trials.setdefault(run, set()).add(trial)
        self._soon()

    def note_opinions(self, assessments: Sequence[AssessmentKey]) -> None:
        """Queue the runs of these assessments, because a person gave or withdrew one of two
        opinions.
        """
        if self.folder is None:
            return
        # control items are not among them
        for detail in self._source.archive.assessments.details(assessments):
            self.touch(detail.row.run_id, detail.row.trial)

    def flush(self) -> None:
        with self._lock:
            after, trials = self._after, self._trials
            self._after, self._trials = None, {}
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        if after is not None or trials:
            self._quietly(lambda folder: self._changes(folder, after, trials))

    def _soon(self) -> None:
        if self.idle_s is None or self.folder is None:
            return
        with self._lock:
            if self._timer is None:
                # A daemon thread, because an ending process need not wait: closing the workspace
                # writes the rest.
                self._timer = threading.Timer(self.idle_s, self.flush)
                self._timer.daemon = True
                self._timer.start()

    def _changes(self, folder: Path, after: int | None, trials: dict[RunId, set[TrialKey]]) -> None:
        archive = self._source.archive
        runs = {*trials, *(() if after is None else archive.runs.decided_after(after))}
        for run in sorted(runs):
            (summary,) = archive.runs.matching(Selection(runs=(run,)))
            if summary.state is RunState.RUNNING:
                continue  # the process that executes the run writes it at the end
            path = results_folder.record_of(folder, run)
            last = results_folder.last_event(path)
            if last is None and not path.exists() and sum(summary.trials.values()) > ADOPTED_WHOLE:
                continue  # an imported run that is too large to write without a request
            if last is None:
                project(self._source, folder, run)
                continue
            lines = archive.records.changes(
                run, since_event=last, trials=tuple(trials.get(run, ()))
            )
            with results_folder.locked(folder, run):
                added = results_folder.add_to_record(path, lines)
            if added:
                with results_folder.locked(folder):
                    recount(folder, summary, self._source.journal.plan_of(run))

    def _describe(self, folder: Path, run: RunId) -> None:
        """Register a run quickly, because the start of the run waits for this call."""
        (summary,) = self._source.archive.runs.matching(Selection(runs=(run,)))
        origin = provenance(self._source, summary)
        with results_folder.locked(folder, patience_s=BEGIN_PATIENCE_S):
            register(folder, all_described(folder, origin))

    def _quietly(self, write: Callable[[Path], None]) -> None:
        if self.folder is None:
            return
        try:
            write(self.folder)
        except results_folder.FolderBusy:
            _LOG.warning(
                "results folder %s: another process is writing it; the next update includes this change",
                self.folder,
            )
        except (
            OSError,
            AssayError,
            ValueError,
            KeyError,
            TypeError,
        ) as error:  # others may have changed the files
            why = str(error).rstrip(".")
            _LOG.warning(
                "results folder %s is not up to date: %s; `assay export results` repairs it",
                self.folder,
                why,
            )


class ProjectingDecisions:
    """Decisions of the store.

    Each new decision is queued for the results folder, and `after` is called once it is stored.
    """

    def __init__(
        self,
        decisions: StoreDecisions,
        projector: Projector,
        after: Callable[[Sequence[ReviewEvent]], None],
    ) -> None:
        self._decisions = decisions
        self._projector = projector
        self._after = after
        self.decided_by_key = decisions.decided_by_key
        self.achieved = decisions.achieved
        self.timed = decisions.timed

    def decide(self, decisions: Sequence[Decision], /) -> tuple[ReviewEvent, ...]:
        events = self._decisions.decide(decisions)
        self._announce(events)
        return events

    def settle(self, decision: Decision, /, *, together: bool) -> ReviewEvent:
        event = self._decisions.settle(decision, together=together)
        self._announce((event,))
        return event

    def _announce(self, events: Sequence[ReviewEvent]) -> None:
        opinions = [event.decision.assessment for event in events if not event.id]
        if opinions:
            self._projector.note_opinions(opinions)
        # An opinion that awaits a second one changes no result.
        decided = [event for event in events if event.id]
        if decided:
            self._projector.note(decided)
            self._after(decided)
