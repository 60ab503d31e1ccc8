"""Read the provenance of a run: its plan, its model calls, and their speed and cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from assay.domain.review import Approvals
    from assay.domain.run import RunPlan
    from assay.domain.selection import CallTotals, RunSummary
    from assay.store.execution.journal import StoreJournal
    from assay.store.queries.archive import Archive


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """A run with its plan, its call totals per model, and the number of its grades that people
    approved or corrected.
    """

    summary: RunSummary
    plan: RunPlan
    totals: tuple[CallTotals, ...]
    approvals: Approvals

    @property
    def seconds(self) -> float | None:
        """Seconds from the start to the end of the run; None for a run that has not ended."""
        return (
            None
            if self.summary.finished is None
            else between(self.summary.started, self.summary.finished)
        )

    @property
    def calls(self) -> int:
        return sum(total.calls for total in self.totals)

    @property
    def calls_per_s(self) -> float | None:
        """Calls per second over the run's duration; None without calls or before the run ends."""
        return self.calls / self.seconds if self.calls and self.seconds else None


class ProvenanceSource(Protocol):
    """Stores that provenance is read from, such as those of a `Workspace`."""

    @property
    def archive(self) -> Archive: ...

    @property
    def journal(self) -> StoreJournal: ...


def provenance(source: ProvenanceSource, summary: RunSummary) -> Provenance:
    return Provenance(
        summary=summary,
        plan=source.journal.plan_of(summary.id),
        totals=source.archive.calls.totals(summary.id),
        approvals=source.archive.scores.approvals_by_run([summary.id])[summary.id],
    )


@dataclass(frozen=True, slots=True)
class RunCalls:
    """Model calls of a run.

    `totals` sums the calls per model, `seconds` is the run's duration (None before it ends), and
    `stated_per_s` is the request rate that an imported log states.
    """

    totals: tuple[CallTotals, ...]
    seconds: float | None
    stated_per_s: float | None

    def per_s(self, calls: int) -> float | None:
        """Return the requests per second of a candidate that made `calls` calls; None if
        unknown.
        """
        return self.stated_per_s or (calls / self.seconds if self.seconds and calls else None)


def calls_of(source: ProvenanceSource, summary: RunSummary) -> RunCalls:
    """Return a run's calls.

    An imported run's duration comes from the imported files if they state one.
    """
    seconds = None if summary.finished is None else between(summary.started, summary.finished)
    environment = source.journal.plan_of(summary.id).environment if summary.imported else {}
    took, per_s = environment.get("duration_s"), environment.get("requests_per_s")
    return RunCalls(
        source.archive.calls.totals(summary.id),
        float(took) if isinstance(took, int | float) else seconds,
        float(per_s) if isinstance(per_s, int | float) else None,
    )


def between(start: str, end: str) -> float:
    """Return the seconds between two ISO 8601 timestamps."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
