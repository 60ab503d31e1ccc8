"""Settings, ports and limits that the trials of a run share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from assay.domain.failure import Failure
    from assay.domain.review import Decision
    from assay.domain.review_sample import ReviewLottery
    from assay.domain.run import RunPlan
    from assay.engine.asking import Asker
    from assay.ports import CommandRunner, Journal, Pages, Workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Settings, ports and limits that the trials of a run share.

    `slots` limits the calls in flight. `inherited`, in a regrade: why a trial (task, k) of the original run failed.
    `rerun`: the decision of a reviewer who asked for this grading; it is stored with the assessments that replace others.
    `lottery` decides which trials a person reviews, if the policy is `sample`.
    `structuring` holds a lock for each text that is being structured; with `only_structure`, nothing is judged.
    """

    plan: RunPlan
    journal: Journal
    asker: Asker
    workers: Workers
    pages: Pages
    commands: CommandRunner
    slots: asyncio.Semaphore
    inherited: Mapping[tuple[str, int], Failure] = field(default_factory=dict)
    rerun: Decision | None = None
    lottery: ReviewLottery | None = None
    structuring: MutableMapping[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    only_structure: bool = False
