"""Random draw of a run's review sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.domain.review_sample import ReviewLottery, sample_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.domain.run import PlannedTask, RunPlan
    from assay.store.opening import Store


def lottery_of(plan: RunPlan, tasks: Iterable[PlannedTask]) -> ReviewLottery | None:
    """Return the draw of a run with these tasks; None if its review policy is not `sample`."""
    sample = sample_of(plan.protocol)
    if sample is None:
        return None
    return ReviewLottery(
        sample, seed=plan.seed, tasks=((planned.task.id, planned.task.tags) for planned in tasks)
    )


def stored_lottery(store: Store, plan: RunPlan) -> ReviewLottery | None:
    """Return the draw of a stored run; None if its review policy is not `sample`."""
    return lottery_of(plan, (planned for planned, _ in store.journal.tasks_of(plan.id)))
