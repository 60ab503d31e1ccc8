"""The settings, ports and limits that all trials of a run use."""

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
class RunContext:
    """The settings, ports and limits that all trials of a run use.

    `slots`: limit on simultaneous calls. `work`: limit on requests that this machine carries out.
    `inherited`: for a regrade, maps (task, k) to the reason why that trial of the original run
    failed. `rerun`: the reviewer's decision to rerun, stored with the new assessments. `lottery`:
    draws the trials that a person reviews under the policy `sample`. `structuring`: a lock for each
    text that is being structured. `only_structure`: True to skip judging. `workspaces`: required
    for tasks with a scenario.
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
