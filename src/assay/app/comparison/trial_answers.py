"""Input and answers of one trial; nothing is returned while any item of the run awaits review."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.app.comparison.answers import input_of
from assay.app.review import decisions
from assay.app.review.review_documents import (
    FailureReasonDocument,
    MessageDocument,
    failure_reason,
    message_documents,
)
from assay.app.wire import Json, document
from assay.domain.answer_rows import AnswerColumn, CandidateAnswer
from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import shown_trial
from assay.domain.prompts import sent_to
from assay.domain.selection import RunSummary, Selection, TrialRow

if TYPE_CHECKING:
    from assay.domain.suite import Message
    from assay.store.opening import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialAnswers:
    """Input and answers of a trial; `answers` contains (candidate, answer) pairs.

    `sent` contains the messages that each candidate received; candidates with snippets received
    none. `logs` contains the output of candidates that are programs, including tracebacks.
    """

    summary: RunSummary
    trial: TrialRow
    asked: str
    answers: tuple[tuple[str, CandidateAnswer], ...]
    sent: tuple[tuple[Message, ...], ...]
    logs: Mapping[str, str] = field(default_factory=dict)


def trial_answers(store: Store, run_id: str, trial_id: str) -> TrialAnswers:
    """Return a trial's answers; raises `UnknownName`. A unique prefix of the run's id is enough."""
    (summary,) = store.archive.runs.matching(Selection(runs=(run_id,)))
    key = decisions.trial_key(trial_id)
    trial = None if key is None else store.archive.trials.detail(key)
    if trial is None or trial.run_id != summary.id:
        raise UnknownName("trial", trial_id, remedy="The run's page lists its trials.")
    columns = tuple(
        AnswerColumn(run=summary.id, candidate=name, k=trial.k) for name in summary.candidates
    )
    rows = store.archive.trials.answer_rows(columns, task=trial.task) if columns else ()
    plan = store.journal.plan_of(summary.id)
    return TrialAnswers(
        summary=summary,
        trial=trial,
        asked=input_of(rows[0]) if rows else "",
        answers=() if not rows else tuple(zip(summary.candidates, rows[0].answers, strict=True)),
        sent=()
        if not rows
        else tuple(sent_to(plan.system_prompt, spec, rows[0].task) for spec in plan.candidates),
        logs=store.archive.calls.program_logs(trial.key),
    )


def answer_text(store: Store, run_id: str, trial_id: str, place: int) -> str:
    """Return one answer in full, by candidate number from 1; raises `UnknownName`, or `InputError`
    if there is no answer.
    """
    answers = trial_answers(store, run_id, trial_id)
    text = answers.answers[place - 1][1].text if 1 <= place <= len(answers.answers) else None
    if text is None:
        raise InputError(
            trial_id, f"has no answer number {place}.", remedy="The trial's page lists its answers."
        )
    return text


@document
class AnswerDocument:
    """JSON of a candidate's answer, or of the reason why there is no answer."""

    candidate: str
    text: str | None
    truncated: bool
    failure: FailureReasonDocument | None
    sent: tuple[MessageDocument, ...]
    log: str | None
    input_tokens: int | None
    output_tokens: int | None
    latency_s: float | None
    cost_usd: float | None


@document
class TrialAnswersDocument:
    """JSON of all complete answers in one trial."""

    run_id: str
    trial_id: str
    task: str
    thing: str
    trial: int
    trials: int
    state: str
    asked: Json
    answers: tuple[AnswerDocument, ...]


def trial_answers_document(answers: TrialAnswers) -> TrialAnswersDocument:
    trial = answers.trial
    return TrialAnswersDocument(
        run_id=answers.summary.id,
        trial_id=shown_trial(trial.key),
        task=trial.task,
        thing=trial.thing,
        trial=trial.k,
        trials=trial.of,
        state=str(trial.state),
        asked=answers.asked,
        answers=tuple(
            AnswerDocument(
                candidate=name,
                text=answer.text,
                truncated=answer.truncated,
                failure=failure_reason(answer.failure),
                sent=message_documents(sent),
                log=answers.logs.get(name),
                input_tokens=answer.input_tokens,
                output_tokens=answer.output_tokens,
                latency_s=answer.latency_s,
                cost_usd=answer.cost_usd,
            )
            for (name, answer), sent in zip(answers.answers, answers.sent, strict=True)
        ),
    )
