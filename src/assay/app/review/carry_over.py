"""Repeat earlier review decisions on the unchanged assessments of a regrade."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from assay.app.review.protocol import holding
from assay.domain.errors import Refused
from assay.domain.identifiers import folded
from assay.domain.lifecycle import DECIDED, AssessmentState, Verb
from assay.domain.observations import ObservationKind
from assay.domain.opinions import StandingOpinion, differ, opinion_of, standing_opinions, takes_two
from assay.domain.review import Decision, Via
from assay.domain.selection import AssessmentDetail, AssessmentRow, Selection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from assay.app.results_folder import ProjectingDecisions
    from assay.domain.assessment import Assessment
    from assay.domain.identifiers import AssessmentKey, RunId
    from assay.domain.run import RunPlan
    from assay.store.opening import Store


def keep_reviews(store: Store, decisions: ProjectingDecisions, plan: RunPlan) -> int:
    """Repeat earlier decisions on unchanged assessments of a regrade as new events; return the
    number of repeated decisions.

    An assessment is unchanged if candidate, grader, scores and grades are the same and it has no
    new flag. A second call has no effect.
    """
    if plan.regrade_of is None:
        return 0
    origin, states = Selection(runs=(plan.regrade_of,)), frozenset(DECIDED.values())
    decided = {
        (row.task, row.k, row.candidate, row.grader): row
        for row in store.archive.assessments.matching(origin, states=states)
    }
    if not decided:
        return 0
    current = [row for row, _ in gradings(store, plan.regrade_of)]
    pairs = Graders({place: row for row in current for place in places(row)})
    protocol = holding(store, plan)
    repeats = []
    waiting = frozenset({AssessmentState.PENDING})
    for row in store.archive.assessments.matching(Selection(runs=(plan.id,)), states=waiting):
        grader = pairs.grader_before(row.task, row.k, row.grader)
        was = decided.get((row.task, row.k, row.candidate, grader))
        if was is None:
            continue
        detail = store.archive.assessments.detail(was.key)
        if (
            _came_out_alike(detail.judged, row.assessment)
            and (decision := _as_before(detail, row, plan)) is not None
        ):
            two = takes_two(row.key, protocol=protocol, seed=plan.seed, requested=False)
            opinions = _opinions_before(store, was.key) if two else {}
            repeats.append(_Repeat(decision=decision, opinions=opinions))
    kept = 0
    for repeat in repeats:
        try:
            kept += _is_repeated(decisions, repeat)
        except Refused:  # somebody has decided the item in the meantime
            continue
    return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class _Repeat:
    """An earlier decision, and the opinions by reviewer that it rested on if the new item needs two
    as well.
    """

    decision: Decision
    opinions: Mapping[str, StandingOpinion]


def _opinions_before(store: Store, key: AssessmentKey) -> dict[str, StandingOpinion]:
    observations = store.observations.read(kinds=(ObservationKind.OPINION,), assessments=(key,))
    return standing_opinions(observations)


def _is_repeated(decisions: ProjectingDecisions, repeat: _Repeat) -> bool:
    """Repeat a decision with the opinions before it; True if the item is decided now."""
    decision = repeat.decision
    settled = differ(repeat.opinions)
    for number, opinion in enumerate(repeat.opinions.values(), 1):
        if settled or folded(opinion.reviewer) != folded(decision.reviewer):
            given = opinion.given
            as_given = replace(
                decision,
                verb=given.verb,
                reviewer=opinion.reviewer,
                stated_by=given.stated_by,
                # The opinions were checked when they were given. Only the first keeps its login: a
                # repeat is sent by a script, which completes no opinion of the same login.
                login=given.login if number == 1 else "",
                corrections=given.corrections,
            )
            decisions.decide((replace(as_given, key=f"{decision.key}:{number}"),))
    if settled:
        together = opinion_of(decision.reviewer, repeat.opinions) is not None
        event = decisions.settle(decision, together=together)
    else:
        (event,) = decisions.decide((decision,))
    return event.after is not AssessmentState.PENDING


def _came_out_alike(before: Assessment, after: Assessment) -> bool:
    flagged = {(flag.kind, flag.candidate, flag.criterion) for flag in before.flags}
    return (
        dict(before.scores) == dict(after.scores)
        and _numbers(before) == _numbers(after)
        and all((flag.kind, flag.candidate, flag.criterion) in flagged for flag in after.flags)
    )


def _numbers(assessment: Assessment) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    return {
        (grade.candidate, grade.criterion): (grade.score, grade.raw_score)
        for grade in assessment.grades
    }


def _as_before(detail: AssessmentDetail, row: AssessmentRow, plan: RunPlan) -> Decision | None:
    verbs = {state: verb for verb, state in DECIDED.items()}
    verb = verbs[detail.row.state]
    event = next((e for e in reversed(detail.events) if e.decision.verb is verb), None)
    if event is None:
        return None
    past = event.decision
    reason = f": {past.reason}" if past.reason else ""
    return Decision(
        assessment=row.key,
        verb=verb,
        reviewer=past.reviewer,
        via=Via.SCRIPT,
        displayed=False,
        reason=f"unchanged by regrade of {plan.regrade_of}",
        note=f"decided {event.at} on a{detail.row.key}{reason}",
        corrections=past.corrections if verb is Verb.CORRECT else {},
        stated_by=past.stated_by,
        key=f"kept:{plan.id}:{row.key}",
    )


def gradings(store: Store, run: RunId) -> Iterator[tuple[AssessmentRow, Assessment]]:
    for row in store.archive.assessments.matching(Selection(runs=(run,))):
        if row.current:
            corrected = row.state is AssessmentState.CORRECTED
            yield (
                row,
                store.archive.assessments.detail(row.key).judged if corrected else row.assessment,
            )


def places(row: AssessmentRow) -> list[tuple[str, int, str, str]]:
    """Return (task, k, candidate, grader) for each graded candidate of an assessment."""
    return [(row.task, row.k, candidate, row.grader) for candidate in row.candidates]


class Graders:
    """Matches graders of a regrade with those of the old run: by name, otherwise with the trial's
    only old grader.
    """

    def __init__(self, before: Mapping[tuple[str, int, str, str], object]) -> None:
        self._before: defaultdict[tuple[str, int], dict[str, None]] = defaultdict(dict)
        for task, k, _, grader in before:
            self._before[task, k][grader] = None

    def grader_before(self, task: str, k: int, grader: str) -> str:
        graders = self._before[task, k]
        return grader if grader in graders or len(graders) != 1 else next(iter(graders))

    def place_before(self, place: tuple[str, int, str, str]) -> tuple[str, int, str, str]:
        task, k, candidate, grader = place
        return task, k, candidate, self.grader_before(task, k, grader)
