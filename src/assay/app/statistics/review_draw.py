"""Determine how the reviewed trials were selected, because estimates from a partial review depend
on the selection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.analysis.partial_review import ReviewDraw
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import Policy
from assay.domain.review_sample import sample_of, stratum_of
from assay.domain.suite import ReviewOrder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.store.opening import Store


def draw_of(store: Store, runs: Iterable[str]) -> ReviewDraw:
    """Return how these runs' reviewed trials were drawn: at random only if each run has a review
    sample or random order.
    """
    plans = [store.journal.plan_of(RunId(run)) for run in runs]
    if any(plan.policy is Policy.FLAGGED for plan in plans):
        return ReviewDraw(refused="flagged_review")
    by_chance = all(
        plan.protocol.get("order") == ReviewOrder.RANDOM and plan.policy is not Policy.NONE
        for plan in plans
    )
    if not plans or not by_chance:
        return ReviewDraw(refused="not_random_review")
    strata: dict[tuple[str, str], str] = {}
    for plan in plans:
        sample = sample_of(plan.protocol)
        for planned, _ in (
            store.journal.tasks_of(plan.id) if sample is not None and sample.by == "tag" else ()
        ):
            strata[plan.suite, planned.task.id] = (
                stratum_of(sample, planned.task.tags) if sample is not None else ""
            )
    return ReviewDraw(strata=strata)
