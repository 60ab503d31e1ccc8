"""A run's provenance: its plan, its model calls, their speed and their cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from assay.domain.run import RunPlan
    from assay.domain.selection import CallTotals, RunSummary
    from assay.store.execution.journal import StoreJournal
    from assay.store.queries.archive import Archive


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """A run with its plan and its calls, summed by model."""

    summary: RunSummary
    plan: RunPlan
    totals: tuple[CallTotals, ...]

    @property
    def seconds(self) -> float | None:
        """Seconds from the run's start to its end; None while it has not ended."""
        return None if self.summary.finished is None else between(self.summary.started, self.summary.finished)

    @property
    def calls(self) -> int:
        return sum(total.calls for total in self.totals)

    @property
    def calls_per_s(self) -> float | None:
        """Calls per second over the run's duration; None without calls or before the run's end."""
        return self.calls / self.seconds if self.calls and self.seconds else None


class ProvenanceSource(Protocol):
    """The stores from which provenance is read; a workspace is one."""

    @property
    def archive(self) -> Archive: ...

    @property
    def journal(self) -> StoreJournal: ...


def provenance(rooms: ProvenanceSource, summary: RunSummary) -> Provenance:
    """Return the provenance of a stored run."""
    return Provenance(summary=summary, plan=rooms.journal.plan_of(summary.id), totals=rooms.archive.calls.totals(summary.id))


@dataclass(frozen=True, slots=True)
class RunCalls:
    """A run's calls summed by model, its seconds (None while it has not ended), and the request rate that its log states."""

    totals: tuple[CallTotals, ...]
    seconds: float | None
    stated_per_s: float | None

    def per_s(self, calls: int) -> float | None:
        """Return the requests per second of a candidate that made this number of calls; None if unknown."""
        return self.stated_per_s or (calls / self.seconds if self.seconds and calls else None)


def calls_of(rooms: ProvenanceSource, summary: RunSummary) -> RunCalls:
    """Return a run's calls; an imported run's duration comes from its files if they state it."""
    seconds = None if summary.finished is None else between(summary.started, summary.finished)
    environment = rooms.journal.plan_of(summary.id).environment if summary.imported else {}
    took, per_s = environment.get("duration_s"), environment.get("requests_per_s")
    return RunCalls(
        rooms.archive.calls.totals(summary.id),
        float(took) if isinstance(took, int | float) else seconds,
        float(per_s) if isinstance(per_s, int | float) else None,
    )


def between(start: str, end: str) -> float:
    """Return the seconds between two stored times."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
