"""Double review: which items need two opinions, and which of them a reviewer can still decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.app.review.protocol import RunProtocols
from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.lifecycle import AssessmentState
from assay.domain.observations import ObservationKind
from assay.domain.opinions import (
    LeftToOthers,
    OpinionsShown,
    StandingOpinion,
    differ,
    disputed,
    opinion_of_person,
    requests_second,
    shown_to,
    standing_by_item,
    standing_opinions,
    takes_two,
)
from assay.report import wording as wording

if TYPE_CHECKING:
    from collections.abc import Collection

    from assay.app.workspace import Workspace
    from assay.domain.protocol import Protocol
    from assay.domain.selection import AssessmentDetail, Selection
    from assay.store.opening import Store


def what_waits(store: Store, reviewer: str, selection: Selection) -> str:
    """State what the signed-in person can do about a selection's pending items, and which of them
    wait for somebody else.
    """
    left = SecondOpinions(store, RunProtocols(store)).left_to_others(selection, reviewer=reviewer)
    pending = store.archive.assessments.matching(
        selection, states=frozenset({AssessmentState.PENDING}), limit=left.total + 1
    )
    is_part_done = sum(1 for _ in pending) <= left.total
    return wording.what_waits(left, reviewer=reviewer, is_part_done=is_part_done)


def opinions_shown(
    workspace: Workspace, detail: AssessmentDetail, *, reviewer: str | None = None
) -> OpinionsShown:
    """Return the opinions on an assessment that the signed-in person may see, also under another
    reviewer's name.
    """
    read = workspace.observations.read
    opinions = read(
        kinds=(ObservationKind.OPINION,), purpose=detail.row.purpose, assessments=(detail.row.key,)
    )
    readers = {workspace.reviewer, reviewer or workspace.reviewer}
    pending = detail.row.state is AssessmentState.PENDING
    return shown_to(readers, pending=pending, standing=standing_opinions(opinions))


class SecondOpinions:
    """Opinions on items that need two reviewers."""

    def __init__(self, store: Store, plans: RunProtocols) -> None:
        self._store = store
        self._plans = plans

    def of(self, key: AssessmentKey) -> dict[str, StandingOpinion]:
        """Return the reviewers' latest opinions by name, oldest first, without withdrawn
        opinions.
        """
        opinions = self._store.observations.read(
            kinds=(ObservationKind.OPINION,), assessments=(key,)
        )
        return standing_opinions(opinions)

    def refuse_disputed(self, detail: AssessmentDetail) -> None:
        """Raise `Refused` if two reviewers disagree on a pending item."""
        if detail.row.state is AssessmentState.PENDING and differ(self.of(detail.row.key)):
            raise disputed(detail.row.key)

    def not_decidable_by(
        self, keys: Collection[AssessmentKey], *, reviewer: str
    ) -> frozenset[AssessmentKey]:
        """Return the items that this reviewer cannot decide: own work, or with an opinion of this
        reviewer or of two others.
        """
        opinions = self._store.observations.read(kinds=(ObservationKind.OPINION,), assessments=keys)
        standing = standing_by_item(opinions)
        closed = frozenset(
            key
            for key, given in standing.items()
            if opinion_of_person(reviewer, given) or len(given) > 1
        )
        return closed | self._store.archive.assessments.own_work(keys, reviewer)

    def waits_for_others(self, selection: Selection, *, reviewer: str) -> int:
        """Count the pending items that this reviewer cannot decide; runs with control items are
        left out to hide these.
        """
        return self.left_to_others(selection, reviewer=reviewer).total

    def left_to_others(self, selection: Selection, *, reviewer: str) -> LeftToOthers:
        """Count the same items by what they wait for."""
        opinions = self._store.observations.opinions_that_wait(selection)
        protocols = {
            run: self._plans.protocol(run) for run in {opinion.run_id for opinion in opinions}
        }
        plain = [opinion for opinion in opinions if not protocols[opinion.run_id].control_share]
        standing = standing_by_item(plain).items()
        disputes = {key for key, given in standing if len(given) > 1}
        second = {key for key, given in standing if opinion_of_person(reviewer, given)} - disputes
        own_work = self._store.archive.assessments.own_work_waiting(selection, reviewer)
        shown = {run: not self._plans.protocol(run).control_share for run in set(own_work.values())}
        own = {key for key, run in own_work.items() if shown[run]} - disputes - second
        return LeftToOthers(second=len(second), disputed=len(disputes), own_work=len(own))

    def requested(self, keys: Collection[AssessmentKey]) -> frozenset[AssessmentKey]:
        read = self._store.observations.read(kinds=(ObservationKind.SECOND,), assessments=keys)
        return requests_second(read)

    def drawn(self, key: AssessmentKey, protocol: Protocol, run: RunId) -> bool:
        """True if the protocol's random draw selects the item for double review."""
        return bool(protocol.second) and takes_two(
            key, protocol=protocol, seed=self._plans.plan(run).seed, requested=False
        )
