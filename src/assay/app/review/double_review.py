"""Double review: which items need two opinions, and which of them a reviewer can still decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.lifecycle import AssessmentState
from assay.domain.observations import ObservationKind
from assay.domain.opinions import (
    StandingOpinion,
    differ,
    disputed,
    opinion_of,
    requests_second,
    standing_by_item,
    standing_opinions,
    takes_two,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from assay.app.review.protocol import RunProtocols
    from assay.app.workspace import Workspace
    from assay.domain.protocol import Protocol
    from assay.domain.selection import AssessmentDetail, Selection


class SecondOpinions:
    """Opinions on items that need two reviewers."""

    def __init__(self, workspace: Workspace, plans: RunProtocols) -> None:
        self._workspace = workspace
        self._plans = plans

    def of(self, key: AssessmentKey) -> dict[str, StandingOpinion]:
        """Return the reviewers' latest opinions by name, oldest first, without withdrawn opinions."""
        opinions = self._workspace.observations.read(kinds=(ObservationKind.OPINION,), assessments=(key,))
        return standing_opinions(opinions)

    def refuse_disputed(self, detail: AssessmentDetail) -> None:
        """Raise `Refused` if two reviewers disagree on a pending item."""
        if detail.row.state is AssessmentState.PENDING and differ(self.of(detail.row.key)):
            raise disputed(detail.row.key)

    def not_decidable_by(self, keys: Collection[AssessmentKey], *, reviewer: str) -> frozenset[AssessmentKey]:
        """Return the items that this reviewer cannot decide: own work, or with an opinion of this reviewer or of two others."""
        opinions = self._workspace.observations.read(kinds=(ObservationKind.OPINION,), assessments=keys)
        standing = standing_by_item(opinions)
        closed = frozenset(key for key, given in standing.items() if opinion_of(reviewer, given) or len(given) > 1)
        return closed | self._workspace.archive.assessments.own_work(keys, reviewer)

    def waits_for_others(self, selection: Selection, *, reviewer: str) -> int:
        """Count the pending items that this reviewer cannot decide; runs with control items are left out to hide these."""
        opinions = self._workspace.observations.opinions_that_wait(selection)
        protocols = {run: self._plans.protocol(run) for run in {opinion.run_id for opinion in opinions}}
        plain = [opinion for opinion in opinions if not protocols[opinion.run_id].control_share]
        standing = standing_by_item(plain).items()
        closed = {key for key, given in standing if opinion_of(reviewer, given) or len(given) > 1}
        own_work = self._workspace.archive.assessments.own_work_waiting(selection, reviewer)
        shown = {run: not self._plans.protocol(run).control_share for run in set(own_work.values())}
        return len(closed | {key for key, run in own_work.items() if shown[run]})

    def requested(self, keys: Collection[AssessmentKey]) -> frozenset[AssessmentKey]:
        read = self._workspace.observations.read(kinds=(ObservationKind.SECOND,), assessments=keys)
        return requests_second(read)

    def drawn(self, key: AssessmentKey, protocol: Protocol, run: RunId) -> bool:
        """True if the protocol's random draw selects the item for double review."""
        return bool(protocol.second) and takes_two(key, protocol=protocol, seed=self._plans.plan(run).seed, requested=False)
