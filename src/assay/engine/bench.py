"""Settings, ports and limits that the trials of a run share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from assay.domain.failure import Failure
from assay.domain.review import Decision
from assay.domain.review_sample import ReviewLottery
from assay.domain.run import RunPlan
from assay.engine.asking import Asks
from assay.ports import CommandRunner, Pages, TrialJournal, Workers, WorkspaceSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Settings, ports and limits that the trials of a run share.

    `slots` limits the calls in flight, and `work` the requests that this machine carries out itself. `inherited` is used in a
    regrade: it maps (task, k) to the reason why that trial of the original run failed. `rerun` is the decision of the reviewer
    who requested this grading; it is stored with the new assessments that replace old ones. `lottery` decides which trials a
    person reviews, if the policy is `sample`. `structuring` holds a lock for each text that is being structured; if
    `only_structure` is True, nothing is judged. `workspaces` is needed for tasks with a scenario.
    """

    plan: RunPlan
    journal: TrialJournal
    asker: Asks
    workers: Workers
    pages: Pages
    commands: CommandRunner
    slots: asyncio.Semaphore
    work: asyncio.Semaphore
    inherited: Mapping[tuple[str, int], Failure] = field(default_factory=dict)
    rerun: Decision | None = None
    lottery: ReviewLottery | None = None
    structuring: MutableMapping[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    only_structure: bool = False
    workspaces: WorkspaceSource | None = None
