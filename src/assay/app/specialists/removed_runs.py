"""State in a snapshot which runs of its batch were deleted, archived or replaced, and compare this
with the store.

Without it, a batch could be made better by deleting its bad runs before the mint.
"""

from __future__ import annotations

from collections import Counter
from statistics import fmean
from typing import TYPE_CHECKING, Final

from assay.app.registry.removal import REMOVALS, of_batch
from assay.app.specialists.evidence import runs_that_count
from assay.domain.selection import Selection
from assay.report.wording.numbers import count, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.domain.run_removal import RunEvent
    from assay.specialists.comparison import Section
    from assay.store.opening import Store

_NAMED: Final = 3
"""Maximum number of runs that a sentence names."""


def removed_runs(store: Store, batch_id: str) -> Section:
    """Return the section `removed_runs`: the deleted, archived and replaced runs of a batch."""
    return counted([_removed(store, event) for event in of_batch(store, batch_id)])


def counted(runs: Sequence[Section]) -> Section:
    """Return the section `removed_runs` for these runs."""
    kinds = Counter(run["removal"] for run in runs)
    return {**{kind: kinds[kind] for kind in REMOVALS.values()}, "runs": list(runs)}


def gaps_of(removed: Section) -> list[str]:
    """Return the sentences about removed runs for the list of what a snapshot does not show."""
    gaps = []
    for kind in REMOVALS.values():
        if runs := [run for run in removed["runs"] if run["removal"] == kind]:
            were = "was" if len(runs) == 1 else "were"
            gaps.append(
                f"Anything about {count(len(runs), 'run')} of the batch that {were} {kind}: {_named(runs)}."
            )
    return gaps


def removal_of(events: Sequence[RunEvent], listed_run: str) -> RunEvent | None:
    """Return the event that removed a run which a snapshot lists by its id, or by its id and trial;
    None if it is in use.
    """
    return next(
        (
            each
            for each in events
            if listed_run == each.run_id or listed_run.startswith(f"{each.run_id}-t")
        ),
        None,
    )


def told(event: RunEvent) -> str:
    """Describe a removal: `was deleted by ann on 2026-11-24`."""
    by = f" by {event.reviewer}" if event.reviewer else ""
    replaced = f" by run {event.replaced_by}" if event.replaced_by else by
    return f"was {REMOVALS[event.verb]}{replaced} on {event.at[:10]}"


def unstated(stated: Section, events: Sequence[RunEvent], minted: str, *, names: bool) -> list[str]:
    """Return how the removed runs in a snapshot differ from those that the store knows to be
    removed before the mint.

    `names`: False for a snapshot of a server's batch, which states neither names nor reasons.
    """
    runs = {run["run_id"]: run for run in stated["runs"]}
    problems = []
    for event in events:
        if event.at > minted:
            continue
        run = runs.get(event.run_id)
        if run is None:
            problems.append(f"{event.run_id} {told(event)} and is not stated")
        elif (run["removal"], run["at"] or event.at) != (REMOVALS[event.verb], event.at):
            problems.append(
                f"{event.run_id} {told(event)}, stated as {run['removal']} on {str(run['at'])[:10]}"
            )
        elif names and (run["by"], run["reason"]) != (event.reviewer or None, event.reason or None):
            problems.append(f"{event.run_id} {told(event)}, stated with another name or reason")
    return problems


def _removed(store: Store, event: RunEvent) -> Section:
    archived = event.verb == "archive"
    return {
        "run_id": event.run_id,
        "removal": REMOVALS[event.verb],
        "at": event.at,
        "by": event.reviewer or None,
        "reason": event.reason or None,
        "replaced_by": event.replaced_by,
        "results": runs_that_count(store, Selection(runs=(event.run_id,))) if archived else None,
    }


def _named(runs: Sequence[Section]) -> str:
    named = [f"{run['run_id']}{_details(run)}" for run in runs[:_NAMED]]
    return ", ".join(named) + (f" and {len(runs) - _NAMED:,} more" if len(runs) > _NAMED else "")


def _details(run: Section) -> str:
    parts = []
    if run["by"] or run["at"]:
        by = f"by {run['by']}" if run["by"] else ""
        parts.append(
            " ".join(part for part in (by, f"on {run['at'][:10]}" if run["at"] else "") if part)
        )
    if run["replaced_by"]:
        parts.append(f"its later version is {run['replaced_by']}")
    if run["results"]:
        mean = fmean(each["overall_score"] for each in run["results"])
        parts.append(f"{count(len(run['results']), 'graded trial')}, mean score {number(mean)}")
    elif run["results"] is not None:
        parts.append("no graded trial")
    return f" ({'; '.join(parts)})" if parts else ""
