"""Pairwise judging: compares each pair of a task's candidates in both orders.

Judges favour the response that they read first, or last; only verdicts in both orders show by how
much. A candidate wins a pair if it wins in both orders; if the verdicts disagree, the pair is a tie
with a flag. A candidate's score is the share of pairs that it won, where a tie counts half: 1, 0.5
or 0 against a single opponent.

Calls are made one at a time: each reply is read before the next call, so that only the call with an
unreadable reply is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from assay.domain.assessment import Assessment, Flag, FlagKind, Response
from assay.domain.calls import AnswerSchema, ModelRequest, Reply
from assay.domain.suite import Criterion, Rubric
from assay.scoring.evaluator import Answer, GradingAttempt, MoreRequests, UnreadableReply
from assay.scoring.function_evaluator import plain_grade
from assay.scoring.judge import closed_object, cut_flags, judge_request, labels_of, messages_of
from assay.scoring.prompts import PAIR
from assay.scoring.reply_parser import prose_of, read_grading
from assay.scoring.rubric_evaluator import RubricEvaluator
from assay.scoring.score_parsing import ReadGrade
from assay.scoring.spoken_verdicts import TIE, spoken_verdict

PREFERENCE: Final = "preference"
"""The only criterion of a pairwise judge: the share of pairs that a candidate won."""

_NOUNS: Final = ("Candidate", "Answer", "Response", "Option", "Output", "Assistant", "Model")
_TIE: Final = ("tie", "draw", "equal", "no difference")


@dataclass(frozen=True, slots=True)
class _Heard:
    """A verdict: the name of the better candidate (None for a tie), the reason and the
    confidence.
    """

    better: str | None
    reason: str
    confidence: float | None


@dataclass(frozen=True, slots=True)
class PairwiseJudge(RubricEvaluator):
    """Makes two calls for every pair of candidates, one in each order.

    A candidate's score depends on its opponents.
    """

    def ask(self, grading: GradingAttempt, /) -> tuple[ModelRequest, ...]:
        """Return the first request; `read` returns the next ones.

        Raises ValueError for fewer than two candidates.
        """
        if len(grading.responses) < 2:
            raise ValueError("A pairwise judge compares at least two candidates.")
        return (self._request(grading, meetings(grading.responses)[0]),)

    def foreseen(self, grading: GradingAttempt, /) -> tuple[ModelRequest, ...]:
        return tuple(self._request(grading, meeting) for meeting in meetings(grading.responses))

    def read(
        self, grading: GradingAttempt, answers: tuple[Answer, ...], /
    ) -> Assessment | MoreRequests:
        """Return the next request, or finally the assessment; raises UnreadableReply if a reply has
        no clear verdict or tie.
        """
        order = meetings(grading.responses)
        if not answers:
            raise UnreadableReply("There is no reply to read.")
        labels = labels_of(grading)
        heard = [
            heard_in(answer, meeting, labels)
            for answer, meeting in zip(answers, order, strict=False)
        ]
        if len(heard) < len(order):
            return MoreRequests(requests=(self._request(grading, order[len(heard)]),))
        return self._assessment(grading, labels, heard, answers)

    def _request(self, grading: GradingAttempt, meeting: tuple[Response, Response]) -> ModelRequest:
        labels = labels_of(grading)
        two = replace(grading, responses=meeting)
        first, second = (labels[response.candidate] for response in meeting)
        example = (
            f'```json\n{{"reason": "...", "verdict": <"{first}" or "{second}" or "tie">}}\n```'
        )
        schema = closed_object(
            {
                "reason": {"type": "string"},
                "verdict": {"type": "string", "enum": [first, second, "tie"]},
            }
        )
        messages = messages_of(self.spec, self.rubric, two, labels, template=PAIR, example=example)
        return judge_request(
            self.spec, grading, messages, AnswerSchema(name="verdict", schema=schema)
        )

    def _assessment(
        self,
        grading: GradingAttempt,
        labels: dict[str, str],
        heard: list[_Heard],
        answers: tuple[Answer, ...],
    ) -> Assessment:
        names = [response.candidate for response in grading.responses]
        points: dict[str, list[float]] = {name: [] for name in names}
        remarks: dict[str, list[str]] = {name: [] for name in names}
        report: list[str] = []
        flags = list(cut_flags(self.spec, grading, labels))
        for place, (left, right) in enumerate(combinations(names, 2)):
            forth, back = heard[2 * place], heard[2 * place + 1]
            winner = forth.better if forth.better == back.better else None
            split = forth.better != back.better
            for name, rival in ((left, right), (right, left)):
                points[name].append(0.5 if winner is None else float(winner == name))
                verb = "ties with" if winner is None else "beats" if winner == name else "loses to"
                verb = "the order decides against" if split else verb
                remarks[name].append(f"{verb} {labels[rival]}")
            if split:
                flags.append(
                    Flag(
                        kind=FlagKind.ORDER_DECIDES,
                        detail=(
                            f"{labels[left]} against {labels[right]}: {_said(forth, labels)} with {labels[left]} shown first, "
                            f"{_said(back, labels)} with {labels[right]} first; counted as a tie."
                        ),
                    )
                )
            for told, (first, second) in ((forth, (left, right)), (back, (right, left))):
                report.append(
                    f"- **{labels[first]}, then {labels[second]}**: {_said(told, labels)}. {told.reason}".rstrip()
                )
        shares = {name: sum(won) / len(won) for name, won in points.items()}
        cut = [answer for answer in answers if isinstance(answer, Reply) and answer.truncated]
        if cut:
            flags.append(
                Flag(
                    kind=FlagKind.TRUNCATED,
                    detail=f"The token limit cut {len(cut)} of the judge's replies off.",
                )
            )
        sure = [told.confidence for told in heard if told.confidence is not None]
        confidence = min(sure) if len(sure) == len(heard) else None
        return Assessment(
            grades=tuple(
                plain_grade(name, PREFERENCE, share, _sentence(remarks[name]), confidence)
                for name, share in shares.items()
            ),
            scores=dict(shares),
            weights={PREFERENCE: 1.0},
            report="\n".join(report),
            ranking=tuple(sorted(names, key=lambda name: -shares[name]))
            if len(set(shares.values())) > 1
            else (),
            labels={name: label for name, label in labels.items() if name in grading.labels},
            shown=grading.shown,
            flags=tuple(flags),
            raw="\n\n".join(answer.text for answer in answers if isinstance(answer, Reply)),
        )


def meetings(responses: tuple[Response, ...]) -> list[tuple[Response, Response]]:
    """Return every pair of responses in both orders; the two orders of a pair are adjacent."""
    return [
        meeting
        for first, second in combinations(responses, 2)
        for meeting in ((first, second), (second, first))
    ]


def heard_in(answer: Answer, meeting: tuple[Response, Response], labels: dict[str, str]) -> _Heard:
    """Return the verdict in a reply; raises `UnreadableReply` if it has none."""
    if not isinstance(answer, Reply):
        raise UnreadableReply("There is no reply to read.")
    if answer.finish_reason == "refusal":
        raise UnreadableReply("The judge refused to answer.")
    first, second = (response.candidate for response in meeting)
    unread = UnreadableReply(
        f"The judge neither picks {labels[first]} or {labels[second]} as better nor declares a tie."
    )
    reason, confidence = "", None
    try:
        grade = _written_verdict(answer, labels[first], labels[second])
    except UnreadableReply:
        reason = prose_of(answer.text, cut=answer.truncated)
        verdict = spoken_verdict(reason, labels[first], labels[second])
    else:
        if (
            grade is None
            or grade.score is None
            or grade.score.raw is None
            or not grade.score.by_word
        ):
            raise unread
        reason, confidence = grade.reason, grade.confidence
        verdict = {1.0: labels[first], 0.0: labels[second]}.get(grade.score.raw, TIE)
    if verdict is None:
        raise unread
    return _Heard(
        better={labels[first]: first, labels[second]: second}.get(verdict),
        reason=" ".join(reason.split())[:2000],
        confidence=confidence,
    )


def _written_verdict(answer: Reply, first: str, second: str) -> ReadGrade | None:
    """Return the verdict in a JSON document as a score: 1 for the first label, 0 for the second,
    0.5 for a tie.
    """
    words = [
        (word, raw)
        for label, raw in ((first, 1.0), (second, 0.0))
        for word in (
            label,
            *(f"{noun} {written}" for noun in _NOUNS for written in (label, f"({label}")),
        )
    ]
    for better, worse, raw in ((first, second, 1.0), (second, first, 0.0)):
        words += [(f"{better}{sign}{worse}", raw) for sign in (">", ">>")]
        words += [(f"{worse}{sign}{better}", raw) for sign in ("<", "<<")]
        words.append((f"{better}={worse}", 0.5))
    ties = ((word, 0.5) for word in _TIE if word not in (first, second))
    verdict = Criterion(name=PREFERENCE, low=0.0, high=1.0, labels=(*words, *ties))
    reading = read_grading(
        answer.text,
        labels={"": "the pair"},
        rubric=Rubric(criteria=(verdict,)),
        cut=answer.truncated,
        spoken=False,
    )
    return reading.grades.get(("", PREFERENCE))


def _said(told: _Heard, labels: dict[str, str]) -> str:
    return "tie" if told.better is None else f"{labels[told.better]} is better"


def _sentence(remarks: list[str]) -> str:
    text = "; ".join(remarks)
    return f"{text[:1].upper()}{text[1:]}."
