"""Observations about reviewing (timing, blind verdicts, opinions); shown to people but never used
in a statistic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from assay.domain.lifecycle import AssessmentPurpose, Verb
from assay.domain.protocol import Protocol
from assay.domain.review import Road

if TYPE_CHECKING:
    from assay.domain.decisions import Place
    from assay.domain.identifiers import AssessmentKey, RunId


SCRIPTED_MARK: Final = "scripted:"
"""Start of the idempotency key of a `GradesShown` that a scripted decision implies, although no
screen showed the item.
"""


class ObservationKind(StrEnum):
    """Kinds of observations, as named in the store."""

    SHOWN = "shown"
    VERDICT = "verdict"
    DECISION = "decision"
    SECOND = "second"
    OPINION = "opinion"
    CHECK = "check"
    PROTOCOL = "protocol"
    ENDED = "ended"
    SETTLED = "settled"
    DISCLOSED = "disclosed"
    MINT = "mint"


class Arm(StrEnum):
    """Condition of a decision: `BLIND` if the reviewer scored before they saw the judge's grades,
    otherwise `ASSISTED`.
    """

    BLIND = "blind"
    ASSISTED = "assisted"


@dataclass(frozen=True, slots=True, kw_only=True)
class GradesShown:
    """Observation that the reviewer saw the judge's grades before deciding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindVerdict:
    """A reviewer's own scores, given before the judge's were shown.

    Attributes:
        scores: keyed by (candidate, criterion), between 0 and 1; criterion None means the
            candidate's overall score.
        overall: each candidate's overall score, or the score computed from the criteria; None if
            neither was given.
    """

    scores: Mapping[Place, float]
    overall: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTaken:
    """Timing and circumstances of a decision on the review page.

    Attributes:
        active_ms: how long the reviewer looked at the item; None if unknown.
        corrections: number of corrected scores.
        protocol: version of the review protocol; 0 for a rerun.
        disclosed: True if the arena had already shown the reviewer who wrote the responses.
        size: length of the responses in characters.
        distance, shift: mean absolute and mean signed difference between the candidates' scores and
            the judge's.
        left_won: True if the candidate in the first pane outscored the one in the last pane; None
            for a tie or a single candidate.
        result: the candidates' scores after the decision; stored only for control items, whose
            scores never count.
    """

    verb: Verb
    arm: Arm
    active_ms: int | None = None
    corrections: int = 0
    protocol: int = 0
    disclosed: bool = False
    size: int = 0
    distance: float | None = None
    shift: float | None = None
    left_won: bool | None = None
    result: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondRequested:
    """Request for a second, independent opinion, or withdrawal of such a request."""

    withdrawn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpinionGiven:
    """One of two independent opinions.

    `result`: the scores if this opinion were final; empty for a rejection. `scripted`: True if no
    item was on a screen, so that the opinion measures no agreement between reviewers. `stated_by`:
    the signed-in person who gave the reviewer's name; empty if the name speaks for itself
    (`review.stated_by`). `login`: the person whose login, invitation or token sent it; empty in
    stores of earlier versions.
    """

    verb: Verb
    reason: str = ""
    note: str = ""
    result: Mapping[str, float] = field(default_factory=dict)
    corrections: Mapping[Place, float] = field(default_factory=dict)
    scripted: bool = False
    stated_by: str = ""
    login: str = ""

    @property
    def road(self) -> Road:
        """How this opinion came about. An imported decision is no opinion."""
        return Road.SCRIPTED if self.scripted else Road.SHOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class OpinionWithdrawn:
    """Withdrawal of the reviewer's opinion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAnswered:
    """A reviewer's answer to a planted check.

    `caught`: True if they rejected the item or corrected the altered grade.
    """

    caught: bool
    verb: Verb
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolSwitched:
    """Change of a run's review protocol; `decided_before` is the number of assessments decided by
    then.
    """

    protocol: Protocol
    decided_before: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded:
    """End of a review session, after which the reviewer may see the results of their planted
    checks.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DisputeSettled:
    """Resolution of a dispute between two opinions.

    Attributes:
        choice: `first`, `second` or `reject`.
        disagreement, confidence: the subject of the disagreement, and how sure the adjudicator was.
        together: True if the two reviewers settled the dispute between themselves.
    """

    choice: str
    disagreement: str
    confidence: str
    together: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorsDisclosed:
    """Disclosure of a trial's authors after an arena vote; `k` is None for all trials of the
    task.
    """

    task: str
    # The record names a trial rather than an assessment, because assessments may be made after the
    # vote.
    k: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MintRequested:
    """Request to mint a snapshot of a batch at its last decision, recorded for each run with
    pending grades.

    `template`, `output` and `key`: paths, relative to the project's folder if inside of it; `key`
    is None without a signature. `token`: identifies the request; empty until it is recorded.
    """

    batch_id: str
    template: str
    output: str
    key: str | None = None
    enriched: bool = True
    require_decided: bool = False
    require_vetted: bool = False
    token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MintEnded:
    """End of a requested mint.

    `path`: the snapshot; empty if the request required a decision and the evidence gave none.
    """

    token: str
    path: str


ObservationBody: TypeAlias = (
    GradesShown
    | BlindVerdict
    | DecisionTaken
    | SecondRequested
    | OpinionGiven
    | OpinionWithdrawn
    | CheckAnswered
    | ProtocolSwitched
    | SessionEnded
    | DisputeSettled
    | AuthorsDisclosed
    | MintRequested
    | MintEnded
)

KIND_OF: Final[Mapping[type[ObservationBody], ObservationKind]] = {
    GradesShown: ObservationKind.SHOWN,
    BlindVerdict: ObservationKind.VERDICT,
    DecisionTaken: ObservationKind.DECISION,
    SecondRequested: ObservationKind.SECOND,
    OpinionGiven: ObservationKind.OPINION,
    # This has the same kind as the opinion, so that one query returns both in the order they were
    # made.
    OpinionWithdrawn: ObservationKind.OPINION,
    CheckAnswered: ObservationKind.CHECK,
    ProtocolSwitched: ObservationKind.PROTOCOL,
    SessionEnded: ObservationKind.ENDED,
    DisputeSettled: ObservationKind.SETTLED,
    AuthorsDisclosed: ObservationKind.DISCLOSED,
    MintRequested: ObservationKind.MINT,
    MintEnded: ObservationKind.MINT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One stored observation.

    Attributes:
        assessment: a real assessment or a control item, depending on `purpose`; 0 if the
            observation concerns the whole run.
        idempotency_key: a second observation with the same key changes nothing.
        id: 0 until it is stored.
    """

    run_id: RunId
    assessment: AssessmentKey
    reviewer: str
    at: str
    idempotency_key: str
    body: ObservationBody
    purpose: AssessmentPurpose = AssessmentPurpose.WORK
    id: int = 0

    @property
    def kind(self) -> ObservationKind:
        """Return the kind of this observation, which follows from its body."""
        return KIND_OF[type(self.body)]


Body = TypeVar("Body")


def with_body(
    observations: Iterable[Observation], body: type[Body]
) -> list[tuple[Observation, Body]]:
    """Return (observation, body) for each observation whose body has the given class."""
    return [
        (observation, observation.body)
        for observation in observations
        if isinstance(observation.body, body)
    ]
