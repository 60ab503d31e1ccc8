"""Compare two reviewers' opinions on an item, and refuse decisions on disputed items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.domain.errors import Refused
from assay.domain.identifiers import AssessmentKey, folded, shown_assessment
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.observations import Observation, ObservationKind, OpinionGiven

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from assay.app.workspace import Workspace

TOLERANCE: Final = 0.05
"""Two reviewers with the same decision agree if their scores of each candidate differ by at most this."""

_AT_ONCE: Final = 500  # maximum number of keys in one query of the store
_FAR: Final = 9.0  # replaces the missing score if only one opinion scores a candidate; never within TOLERANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingOpinion:
    """A reviewer's latest opinion on an item, unless it was withdrawn."""

    reviewer: str
    idempotency_key: str
    given: OpinionGiven


def standing_opinions(observations: Iterable[Observation]) -> dict[str, StandingOpinion]:
    """Return each reviewer's latest opinion that was not withdrawn, oldest first; the case of names is ignored."""
    standing: dict[str, StandingOpinion] = {}
    names: dict[str, str] = {}
    for observation in observations:
        name = names.setdefault(folded(observation.reviewer), observation.reviewer)
        standing.pop(name, None)
        if isinstance(observation.body, OpinionGiven):
            standing[name] = StandingOpinion(
                reviewer=observation.reviewer, idempotency_key=observation.idempotency_key, given=observation.body
            )
    return standing


def agree(first: OpinionGiven, second: OpinionGiven) -> bool:
    """True if both opinions reject, or if neither rejects and no score differs by more than `TOLERANCE`."""
    if Verb.REJECT in (first.verb, second.verb):
        return first.verb is second.verb
    names = first.result.keys() | second.result.keys()
    return all(abs(first.result.get(name, _FAR) - second.result.get(name, -_FAR)) <= TOLERANCE for name in names)


def differ(opinions: Mapping[str, StandingOpinion]) -> bool:
    """True if the opinions of the first two reviewers differ."""
    pair = list(opinions.values())[:2]
    return len(pair) == 2 and not agree(pair[0].given, pair[1].given)


def refuse_disputed(workspace: Workspace, keys: Sequence[AssessmentKey]) -> None:
    """Raise `Refused` if an assessment is pending because two reviewers disagree on it."""
    for start in range(0, len(keys), _AT_ONCE):
        portion = keys[start : start + _AT_ONCE]
        opinions = workspace.observations.read(kinds=(ObservationKind.OPINION,), assessments=portion)
        standing = standing_by_item(opinions)
        for key in portion:
            if not differ(standing.get(key, {})):
                continue
            if workspace.archive.assessments.detail(key).row.state is AssessmentState.PENDING:
                raise disputed(key)


def disputed(key: AssessmentKey) -> Refused:
    return Refused(
        shown_assessment(key),
        "is disputed: two reviewers gave different verdicts, and only adjudication can settle it.",
        remedy="Settle it at /adjudication (`assay serve`).",
    )


def standing_by_item(observations: Iterable[Observation]) -> dict[AssessmentKey, dict[str, StandingOpinion]]:
    by_item: dict[AssessmentKey, list[Observation]] = {}
    for observation in observations:
        by_item.setdefault(observation.assessment, []).append(observation)
    return {key: standing_opinions(given) for key, given in by_item.items()}
