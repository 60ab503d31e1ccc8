"""Metrics of each reviewer: decisions, agreement with themselves and others, and responses to
planted checks.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from assay.analysis.reviewers import (
    Pairs,
    Reviewer,
    ReviewerDecision,
    ReviewerEvidence,
    quickest,
    reviewer_of,
)
from assay.app.review.protocol import OF_THE_RUN
from assay.domain.control_items import ControlItem, RepeatOrigin
from assay.domain.errors import UnknownName
from assay.domain.lifecycle import AssessmentPurpose, AssessmentState, Verb
from assay.domain.observations import (
    Arm,
    BlindVerdict,
    CheckAnswered,
    DecisionTaken,
    Observation,
    ObservationKind,
    SessionEnded,
    with_body,
)
from assay.domain.opinions import StandingOpinion, agree, standing_by_item
from assay.domain.selection import AssessmentDetail, Selection
from assay.scoring.planted_errors import GOOD

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from assay.domain.assessment import Grade
    from assay.domain.identifiers import AssessmentKey, RunId
    from assay.ports import Clock
    from assay.store.opening import Store

_DRAWS_SEED = 20240607

SESSION_S: Final = 1800.0
"""Seconds without activity after which a reviewer's session ends."""


def reviewers(
    store: Store,
    *,
    run: RunId | None = None,
    covered: Collection[RunId] = (),
    also: Collection[str] = (),
) -> dict[str, Reviewer]:
    """Return metrics by name for each reviewer who decided an item in the web app, and of `also`,
    who may have decided none.

    A session with control items of `covered` runs is included only after it ends, because a figure
    that changes, or does not change, after one decision would reveal whether the item was real. An
    opinion is included only after the second reviewer's opinion, because the figures would
    otherwise show the first opinion.
    """
    observations = _without_open_opinions(store.observations.read(run=run))
    decided = (ObservationKind.DECISION, ObservationKind.VERDICT, ObservationKind.OPINION)
    names = sorted(
        {observation.reviewer for observation in observations if observation.kind in decided}.union(
            also
        )
    )
    if covered:
        observations = _of_sessions_over(store.clock, observations, names, covered)
    rng = np.random.default_rng(_DRAWS_SEED)
    pairs = _opinion_pairs(observations)
    real = [taken for _, taken in _real_decisions(observations) if taken.verb is not Verb.UNDO]
    limit = quickest(
        [pace for taken in real if (pace := _reviewer_decision(taken, None).pace) is not None]
    )
    return {
        name: reviewer_of(
            replace(_evidence(store, name, observations, pairs), quickest=limit), rng=rng
        )
        for name in names
    }


def reviewer(
    store: Store,
    name: str,
    *,
    run: RunId | None = None,
    covered: Collection[RunId] = (),
    also: Collection[str] = (),
) -> Reviewer:
    """Return the metrics of one reviewer, as `reviewers` does; raises `UnknownName`."""
    known = reviewers(store, run=run, covered=covered, also=also)
    if name not in known:
        raise UnknownName(
            "reviewer",
            name,
            known,
            remedy="/reviewers lists the people who reviewed in the browser.",
        )
    return known[name]


def _without_open_opinions(observations: Sequence[Observation]) -> list[Observation]:
    opinions = [
        observation for observation in observations if observation.kind is ObservationKind.OPINION
    ]
    alone = {key for key, standing in standing_by_item(opinions).items() if len(standing) == 1}
    return [observation for observation in observations if observation.assessment not in alone]


def _of_sessions_over(
    clock: Clock,
    observations: Sequence[Observation],
    names: Sequence[str],
    covered: Collection[RunId],
) -> list[Observation]:
    now = clock.now()
    by_name = {name: [each for each in observations if each.reviewer == name] for name in names}
    until = {name: _over_until(own, now=now) for name, own in by_name.items()}
    return [
        observation
        for observation in observations
        if observation.run_id not in covered
        or observation.id <= until.get(observation.reviewer, observation.id)
    ]


def document(name: str, figures: Reviewer, stated_by: Mapping[str, int]) -> dict[str, Any]:
    """Return a reviewer's figures as JSON; `stated_by` counts the decisions by the other person who
    gave the name.
    """
    return {"reviewer": name, "stated_by": dict(stated_by), **asdict(figures)}


def stated_reviewers(store: Store, *, run: RunId | None = None) -> dict[str, dict[str, int]]:
    """Count the decisions under each reviewer's name that another signed-in person gave, by that
    person's name.
    """
    counts: dict[str, dict[str, int]] = {}
    for (name, stater), n in store.archive.assessments.stated_reviewers(run).items():
        counts.setdefault(name, {})[stater] = n
    return counts


def _evidence(
    store: Store,
    name: str,
    observations: Sequence[Observation],
    opinions: Sequence[tuple[StandingOpinion, StandingOpinion]],
) -> ReviewerEvidence:
    own = [observation for observation in observations if observation.reviewer == name]
    verdicts = with_body(own, BlindVerdict)
    real = {
        verdict.assessment: body.overall
        for verdict, body in verdicts
        if verdict.purpose is AssessmentPurpose.WORK
    }
    judged = {
        detail.row.key: detail.judged.scores
        for detail in store.archive.assessments.details(list(real))
    }
    # For each item, the reviewer's own score and the judge's score for each candidate.
    beside = {
        key: [
            (score, judge_score)
            for candidate, score in overall.items()
            if score is not None and (judge_score := judged.get(key, {}).get(candidate)) is not None
        ]
        for key, overall in real.items()
    }
    before = {
        key: sum(abs(a - b) for a, b in pairs) / len(pairs)
        for key, pairs in beside.items()
        if pairs
    }
    taken: dict[AssessmentKey, list[ReviewerDecision]] = defaultdict(list)
    reruns = 0
    for observation, decision in _real_decisions(own):
        of_item = taken[observation.assessment]
        if decision.verb is Verb.UNDO:
            del of_item[-1:]
        elif decision.verb is Verb.RERUN:
            reruns += 1
        else:
            of_item.append(_reviewer_decision(decision, before.get(observation.assessment)))
    control = {item.key: item for item in store.control_items.read(reviewer=name)}
    checks = [result for _, result in shown_answers(store, own, control)]
    both = [pair for pair in opinions if name in (pair[0].reviewer, pair[1].reviewer)]
    others: list[tuple[float, float]] = []
    for first, second in both:
        mine, other = (first, second) if name == first.reviewer else (second, first)
        scores, other_scores = mine.given.result, other.given.result
        others += [
            (scores[candidate], other_scores[candidate])
            for candidate in scores
            if candidate in other_scores
        ]
    return ReviewerEvidence(
        taken=[decision for of_item in taken.values() for decision in of_item],
        plants=[(result.how, result.caught) for result in checks if result.how != GOOD],
        good=[result.caught for result in checks if result.how == GOOD],
        shifts=[sum(a - b for a, b in pairs) / len(pairs) for pairs in beside.values() if pairs],
        reruns=reruns,
        again=_pairs(_repeated(own, control)),
        against_judge=_pairs([pair for pairs in beside.values() for pair in pairs]),
        others=_pairs(others),
        same=[agree(first.given, second.given) for first, second in both],
    )


def _real_decisions(observations: Iterable[Observation]) -> list[tuple[Observation, DecisionTaken]]:
    decisions = with_body(observations, DecisionTaken)
    return [
        (observation, taken)
        for observation, taken in decisions
        if observation.purpose is AssessmentPurpose.WORK
    ]


def _repeated(
    own: Sequence[Observation], control: Mapping[AssessmentKey, ControlItem]
) -> list[tuple[float, float]]:
    results: dict[AssessmentKey, Mapping[str, float | None]] = {
        observation.assessment: taken.result for observation, taken in with_body(own, DecisionTaken)
    }
    # A verdict given before the judge's grades were shown is better evidence than the decision that
    # followed.
    results |= {
        observation.assessment: verdict.overall
        for observation, verdict in with_body(own, BlindVerdict)
    }
    pairs: list[tuple[float, float]] = []
    for key, result in results.items():
        origin = control[key].origin if key in control else None
        if isinstance(origin, RepeatOrigin):
            for candidate, score in result.items():
                first = origin.scores.get(candidate)
                if first is not None and score is not None:
                    pairs.append((first, score))
    return pairs


def _reviewer_decision(taken: DecisionTaken, before: float | None) -> ReviewerDecision:
    return ReviewerDecision(
        verb=taken.verb,
        arm=taken.arm,
        active_s=None if taken.active_ms is None else taken.active_ms / 1000,
        size=taken.size,
        apart=taken.distance,
        before=before if taken.arm is Arm.BLIND else None,
        left=taken.left_won,
    )


def _pairs(scores: Sequence[tuple[float, float]]) -> Pairs:
    return Pairs(first=[first for first, _ in scores], second=[second for _, second in scores])


def _opinion_pairs(
    observations: Sequence[Observation],
) -> list[tuple[StandingOpinion, StandingOpinion]]:
    opinions = [
        observation
        for observation in observations
        if observation.kind is ObservationKind.OPINION
        and observation.purpose is AssessmentPurpose.WORK
    ]
    standing = [[*given.values()] for given in standing_by_item(opinions).values()]
    pairs = [(given[0], given[1]) for given in standing if len(given) > 1]
    # A script that approves without a look at the item would pass for perfect agreement.
    return [pair for pair in pairs if not any(opinion.given.scripted for opinion in pair)]


# --- results of planted checks


def shown_answers(
    store: Store, own: Sequence[Observation], control: Mapping[AssessmentKey, ControlItem]
) -> list[tuple[Observation, CheckAnswered]]:
    """Return the last response to each planted check, if the reviewer's session or the whole run
    has ended.

    A session ends at its reviewer's request or after half an hour without activity. Before that, a
    changing figure would reveal which item was a planted check.
    """
    opinions = standing_by_item(
        observation for observation in own if observation.kind is ObservationKind.OPINION
    )
    pending = {
        key
        for key, item in control.items()
        if item.state is AssessmentState.PENDING and not opinions.get(key)
    }
    last = {
        observation.assessment: (observation, result)
        for observation, result in with_body(own, CheckAnswered)
        if observation.assessment in control.keys() - pending
    }
    if not last:
        return []
    runs = tuple({observation.run_id for observation, _ in last.values()})
    over = {
        summary.id
        for summary in store.archive.runs.matching(Selection(runs=runs))
        if not summary.assessments.get(AssessmentState.PENDING)
    }
    until = _over_until(own, now=store.clock.now())
    return [
        (observation, result)
        for observation, result in last.values()
        if observation.id <= until or observation.run_id in over
    ]


def _over_until(own: Sequence[Observation], *, now: str) -> int:
    """Return the id of the last observation in the newest ended session; 0 if no session has
    ended.
    """
    until, before = 0, None
    for observation in own:
        if observation.kind is ObservationKind.PROTOCOL:
            continue
        if before is not None and _seconds_between(before.at, observation.at) >= SESSION_S:
            until = before.id
        if observation.kind is ObservationKind.ENDED:
            until = observation.id
        before = observation
    return (
        before.id if before is not None and _seconds_between(before.at, now) >= SESSION_S else until
    )


def _seconds_between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()


def end_session(store: Store, name: str, *, idempotency_key: str) -> None:
    """Record that a reviewer's session has ended, so that results of its planted checks may be
    shown.
    """
    decisions = store.observations.read(kinds=(ObservationKind.DECISION,), reviewer=name)
    at = store.clock.now()
    store.observations.note(
        [
            Observation(
                run_id=run,
                assessment=OF_THE_RUN,
                reviewer=name,
                at=at,
                idempotency_key=f"ended:{idempotency_key}:{run}",
                body=SessionEnded(),
            )
            for run in sorted({decision.run_id for decision in decisions})
        ]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One planted check and the reviewer's response.

    Attributes:
        how: the alteration; `known_good` for an unaltered check.
        right: True if the reviewer found the alteration, or accepted an unaltered check.
        changed: (candidate, criterion, score by the judge, score shown) of each altered score, on
            the judge's scale.
        words: (candidate, criterion, text by the judge, text shown) of each altered reason or
            quotation.
    """

    detail: AssessmentDetail
    how: str
    verb: str
    right: bool
    at: str
    changed: tuple[tuple[str, str, float | None, float | None], ...]
    words: tuple[tuple[str, str, str, str], ...]


def answered(
    store: Store, name: str, *, run: RunId | None = None, limit: int = 200
) -> tuple[Answered, ...]:
    """Return a reviewer's responses to planted checks in ended sessions, newest first; raises
    `UnknownName`.
    """
    own = store.observations.read(run=run, reviewer=name)
    control = {item.key: item for item in store.control_items.read(reviewer=name)}
    if not own and not control:
        raise UnknownName(
            "reviewer", name, remedy="/reviewers lists the people who reviewed in the browser."
        )
    shown = sorted(shown_answers(store, own, control), key=lambda answer: -answer[0].id)[:limit]
    sources = store.archive.assessments.details(
        [control[observation.assessment].source for observation, _ in shown]
    )
    details = {detail.row.key: detail for detail in sources}
    answers = []
    for observation, result in shown:
        item = control[observation.assessment]
        detail = details.get(item.source)
        if detail is None:
            continue
        wrote = {(grade.candidate, grade.criterion): grade for grade in detail.judged.grades}
        pairs = [
            (wrote[place], grade)
            for grade in (item.judged.grades if result.how != "other_task" else ())
            if (place := (grade.candidate, grade.criterion)) in wrote
        ]
        answers.append(
            Answered(
                detail=detail,
                how=result.how,
                verb=str(result.verb),
                at=observation.at,
                right=result.caught == (result.how != GOOD),
                changed=tuple(
                    (a.candidate, a.criterion, a.raw_score, b.raw_score)
                    for a, b in pairs
                    if a.raw_score != b.raw_score
                ),
                words=tuple(
                    (a.candidate, a.criterion, *texts)
                    for a, b in pairs
                    if (texts := _words(a, b)) is not None
                ),
            )
        )
    return tuple(answers)


def _words(wrote: Grade, shown: Grade) -> tuple[str, str] | None:
    """Return the judge's reason, or otherwise its quotations, before and after the alteration; None
    if unaltered.
    """
    if wrote.reason != shown.reason:
        return wrote.reason, shown.reason
    return (
        None
        if wrote.evidence == shown.evidence
        else ("\n".join(wrote.evidence), "\n".join(shown.evidence))
    )
