"""Double review: collect two independent opinions on a pending item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from assay.app.review.agreement import StandingOpinion, agree, differ, disputed, standing_by_item, standing_opinions
from assay.app.review.observations import note, observation_on
from assay.app.wire import attributes
from assay.domain.errors import Refused
from assay.domain.identifiers import AssessmentKey, RunId, shown_assessment
from assay.domain.lifecycle import AssessmentState
from assay.domain.observations import ObservationKind, OpinionGiven, OpinionWithdrawn, SecondRequested, with_body

if TYPE_CHECKING:
    from collections.abc import Collection

    from assay.app.review.protocol import RunProtocols
    from assay.app.review.submitted_decision import ResolvedDecision, SubmittedDecision
    from assay.app.workspace import Workspace
    from assay.domain.protocol import Protocol
    from assay.domain.selection import AssessmentDetail, Selection

_GIVEN: Final = "already has your verdict; another reviewer must give the second verdict."
_UNDO_YOURS: Final = "Undo yours to change it."


class SecondOpinions:
    """Opinions on items that need two reviewers."""

    def __init__(self, workspace: Workspace, plans: RunProtocols) -> None:
        self._workspace = workspace
        self._plans = plans

    def of(self, key: AssessmentKey) -> dict[str, StandingOpinion]:
        """Return the reviewers' latest opinions by name, oldest first, without withdrawn opinions."""
        opinions = self._workspace.observations.read(kinds=(ObservationKind.OPINION,), assessments=(key,))
        return standing_opinions(opinions)

    def give(self, detail: AssessmentDetail, submitted: SubmittedDecision, resolved: ResolvedDecision) -> bool:
        """Store an opinion; True if it agrees with an earlier one. Raises `Refused` if the item cannot take this opinion."""
        key = detail.row.key
        opinion_key = f"opinion:{submitted.idempotency_key}"
        standing = self.of(key)
        own = standing.get(submitted.reviewer)
        if own is not None and own.idempotency_key != opinion_key:
            raise Refused(shown_assessment(key), _GIVEN, remedy=_UNDO_YOURS)
        if own is None and differ(standing):
            raise disputed(key)
        given = OpinionGiven(
            **attributes(submitted, "verb", "reason", "note"), result=resolved.result, corrections=resolved.corrections
        )
        opinion = observation_on(self._workspace, detail, submitted.reviewer, opinion_key, given)
        # Read in the transaction that writes: if two opinions arrive at once, the later one sees the earlier.
        standing = standing_opinions(self._workspace.observations.note_and_read(opinion))
        others = [other for name, other in standing.items() if name != submitted.reviewer]
        return len(others) == 1 and agree(others[0].given, given)

    def withdraw(self, detail: AssessmentDetail, submitted: SubmittedDecision) -> None:
        opinion_key = f"opinion:{submitted.idempotency_key}"
        note(self._workspace, detail, submitted.reviewer, opinion_key, OpinionWithdrawn())

    def refuse_disputed(self, detail: AssessmentDetail) -> None:
        """Raise `Refused` if two reviewers disagree on a pending item."""
        if detail.row.state is AssessmentState.PENDING and differ(self.of(detail.row.key)):
            raise disputed(detail.row.key)

    def not_decidable_by(self, keys: Collection[AssessmentKey], *, reviewer: str) -> frozenset[AssessmentKey]:
        """Return the items that this reviewer cannot decide, because this reviewer or two others have given an opinion."""
        opinions = self._workspace.observations.read(kinds=(ObservationKind.OPINION,), assessments=keys)
        standing = standing_by_item(opinions)
        return frozenset(key for key, given in standing.items() if reviewer in given or len(given) > 1)

    def waits_for_others(self, selection: Selection, *, reviewer: str) -> int:
        """Count the pending items that this reviewer cannot decide; runs with control items are left out to hide these."""
        opinions = self._workspace.observations.opinions_that_wait(selection)
        protocols = {run: self._plans.protocol(run) for run in {opinion.run_id for opinion in opinions}}
        plain = [opinion for opinion in opinions if not protocols[opinion.run_id].control_share]
        standing = standing_by_item(plain).values()
        return sum(1 for given in standing if reviewer in given or len(given) > 1)

    def takes_two(self, detail: AssessmentDetail, protocol: Protocol) -> bool:
        """True if a pending item needs two reviewers, by random draw or because a reviewer requested it."""
        row = detail.row
        if row.state is not AssessmentState.PENDING:
            return False
        if self.drawn(row.key, protocol, row.run_id):
            return True
        return row.key in self.requested((row.key,))

    def requested(self, keys: Collection[AssessmentKey]) -> frozenset[AssessmentKey]:
        read = self._workspace.observations.read(kinds=(ObservationKind.SECOND,), assessments=keys)
        last = {(each.assessment, each.reviewer): body for each, body in with_body(read, SecondRequested)}
        return frozenset(key for (key, _), body in last.items() if not body.withdrawn)

    def drawn(self, key: AssessmentKey, protocol: Protocol, run: RunId) -> bool:
        """True if the protocol's random draw selects the item for double review."""
        return bool(protocol.second) and protocol.draws("second", seed=self._plans.plan(run).seed, key=int(key))
