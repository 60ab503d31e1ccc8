"""Export counted results for other programs: Inspect logs, and JSON Lines for Hugging Face
datasets.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from assay import __version__
from assay.app.exports.exporters import Exported, ExportRequest, only_counted, output_folder
from assay.domain.conversation import ASSISTANT, TOOL_CALL, TOOL_ERROR, TOOL_RESULT, messages_of
from assay.domain.errors import InputError
from assay.domain.identifiers import RunId, shown_assessment
from assay.domain.lifecycle import AssessmentState
from assay.domain.prompts import sent_to
from assay.exchange.results_folder.safe_names import safe_name
from assay.exchange.writers.inspect_log import InspectLog, LogSample, LogScore
from assay.exchange.writers.typed_lines import TypedLines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.app.exports.pseudonyms import Anonymiser
    from assay.domain.assessment import Response
    from assay.domain.digest import JsonValue
    from assay.domain.selection import AssessmentDetail, RunSummary
    from assay.domain.suite import CandidateSpec, Message, Task

COLUMNS: Final = (
    *(
        "run",
        "suite",
        "task",
        "thing",
        "family",
        "language",
        "context",
        "prompt",
        "expected",
        "ideal",
        "final_answer",
    ),
    *("candidate", "model"),
    *(
        "trial",
        "attempt",
        "response",
        "truncated",
        "judge",
        "by_model",
        "state",
        "criterion",
        "score",
        "raw_score",
    ),
    *("min_score", "max_score", "weight", "reason", "assessment"),
)
"""Columns of a Hugging Face row; `criterion` is null in the row for the score over all criteria."""


@dataclass(slots=True)
class _Runs:
    """The selected runs and their candidates, by (run, candidate name in the run's records)."""

    summaries: dict[RunId, RunSummary]
    names: dict[tuple[RunId, str], str]
    candidates: dict[tuple[RunId, str], CandidateSpec]
    system_prompts: dict[RunId, str]
    anonymous: bool

    @classmethod
    def of(cls, request: ExportRequest) -> _Runs:
        summaries = {
            run.id: run for run in request.workspace.archive.runs.matching(request.selection)
        }
        shown = request.workspace.archive.exports.candidate_names(request.selection)
        runs = cls(summaries, shown, {}, {}, request.anonymise)
        for run in summaries:
            plan = request.workspace.journal.plan_of(run)
            runs.candidates |= {(run, candidate.name): candidate for candidate in plan.candidates}
            runs.system_prompts[run] = plan.system_prompt
        return runs

    def model(self, run: RunId, name: str) -> str | None:
        """Return a candidate's model; None if it is unknown or the export is anonymous."""
        candidate = None if self.anonymous else self.candidates.get((run, name))
        if candidate is None:
            return None
        model = candidate.metadata.get("model") if candidate.model is None else candidate.model.ref
        return model if isinstance(model, str) and model else None

    def prompt(self, run: RunId, name: str, task: Task) -> tuple[Message, ...]:
        """Return the messages that a candidate received, or the task's prompt if Assay sent none
        (in an imported run).
        """
        candidate = self.candidates.get((run, name))
        sent = () if candidate is None else sent_to(self.system_prompts[run], candidate, task)
        return sent or task.prompt


# --- Hugging Face ---------------------------------------------------------------------------------


def export_hf_lines(request: ExportRequest) -> Exported:
    """Write a row for each candidate's score and for each of its criterion scores."""
    only_counted(request)
    names, runs = request.names(), _Runs.of(request)
    rows = unseen = 0
    with closing(TypedLines(COLUMNS)) as lines:
        for detail, _ in request.workspace.archive.exports.assessments(request.selection):
            for values in _rows(detail, names, runs):
                lines.row(values)
                rows += 1
                unseen += detail.row.state is AssessmentState.EXEMPT
        with request.open_output() as output:
            lines.write(output.write)
    return Exported(format=request.format, output=request.output, rows=rows, unseen=unseen)


def _rows(
    detail: AssessmentDetail, names: Anonymiser, runs: _Runs
) -> Iterator[dict[str, JsonValue]]:
    row, task = detail.row, detail.task
    responses = {response.candidate: response for response in detail.responses}
    common: dict[str, JsonValue] = {
        "run": str(row.run_id),
        "suite": row.suite,
        "task": row.task,
        "thing": names.text(row.thing),
        "family": task.family or None,
        "language": task.language or None,
        "context": names.text(task.context) or None,
        "expected": names.texts(task.expected),
        "ideal": names.texts(task.ideal),
        "final_answer": names.texts(task.final_answer),
        "trial": row.k,
        "attempt": row.attempt,
        "judge": row.grader,
        "by_model": row.by_model,
        "state": str(row.state),
        "weight": float(task.weight),
        "assessment": shown_assessment(row.key),
    }
    for candidate, score in row.assessment.scores.items():
        if score is None:
            continue
        response = responses.get(candidate)
        sent = runs.prompt(row.run_id, candidate, task)
        grades = [grade for grade in row.assessment.grades if grade.candidate == candidate]
        of_candidate: dict[str, JsonValue] = {
            **common,
            "candidate": names.candidate(runs.names[row.run_id, candidate]),
            "model": runs.model(row.run_id, candidate),
            "prompt": names.text("\n\n".join(message.content for message in sent)) or None,
            "response": None if response is None else names.text(response.text),
            "truncated": None if response is None else response.truncated,
        }
        reason = "\n".join(grade.reason for grade in grades if grade.reason and not grade.criterion)
        yield {**of_candidate, "score": float(score), "reason": names.text(reason) or None}
        for grade in grades:
            if grade.criterion and grade.score is not None:
                yield {
                    **of_candidate,
                    "criterion": grade.criterion,
                    "score": float(grade.score),
                    "raw_score": None if grade.raw_score is None else float(grade.raw_score),
                    "min_score": float(grade.min_score),
                    "max_score": float(grade.max_score),
                    "reason": names.text(grade.reason) or None,
                }


# --- Inspect --------------------------------------------------------------------------------------


@dataclass(slots=True)
class _OneLog:
    log: InspectLog = field(default_factory=InspectLog)
    runs: dict[RunId, None] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    epochs: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))


def export_inspect(request: ExportRequest) -> Exported:
    """Write one log per suite and candidate; raises `InputError` if several logs would go to a
    single file.
    """
    only_counted(request)
    names, runs = request.names(), _Runs.of(request)
    logs: dict[tuple[str, str], _OneLog] = {}
    unseen = 0
    try:
        for trials, n_unseen in _trials_by_run(request):
            unseen += n_unseen
            for details in trials:
                for suite, candidate, sample in _samples(details, names, runs, logs):
                    logs[suite, candidate].log.add(sample)
                    logs[suite, candidate].runs[details[0].row.run_id] = None
        _write_logs(request, logs, runs)
    finally:
        for one_log in logs.values():
            one_log.log.close()
    rows = sum(one_log.log.n_samples for one_log in logs.values())
    return Exported(format=request.format, output=request.output, rows=rows, unseen=unseen)


def _trials_by_run(request: ExportRequest) -> Iterator[tuple[list[list[AssessmentDetail]], int]]:
    trials: defaultdict[tuple[str, int], list[AssessmentDetail]] = defaultdict(list)
    run: RunId | None = None
    unseen = 0
    for detail, _ in request.workspace.archive.exports.assessments(request.selection):
        if run is not None and detail.row.run_id != run:
            yield list(trials.values()), unseen
            trials.clear()
            unseen = 0
        run = detail.row.run_id
        unseen += detail.row.state is AssessmentState.EXEMPT
        trials[detail.row.task, detail.row.k].append(detail)
    if run is not None:
        yield list(trials.values()), unseen


def _samples(
    details: list[AssessmentDetail],
    names: Anonymiser,
    runs: _Runs,
    logs: dict[tuple[str, str], _OneLog],
) -> Iterator[tuple[str, str, LogSample]]:
    row, task = details[0].row, details[0].task
    for candidate in dict.fromkeys(
        name for detail in details for name in detail.row.assessment.scores
    ):
        scores = {
            detail.row.grader: _score(detail, candidate, score, names)
            for detail in details
            if (score := detail.row.assessment.scores.get(candidate)) is not None
        }
        if not scores:
            continue
        shown = names.candidate(runs.names[row.run_id, candidate])
        one_log = logs.setdefault((row.suite, shown), _OneLog())
        # A task whose text changed between runs is a different task, as in the score table.
        same = one_log.digests.setdefault(row.task, task.digest) == task.digest
        sample = row.task if same else f"{row.task}@{task.digest[:6]}"
        one_log.epochs[sample] += 1
        # An assessment of one candidate holds the response of that candidate only.
        responses = [
            response
            for detail in details
            for response in detail.responses
            if response.candidate == candidate
        ]
        sent = runs.prompt(row.run_id, candidate, task)
        identity = "\x1f".join((str(row.run_id), row.task, str(row.k), shown))
        yield (
            row.suite,
            shown,
            LogSample(
                id=sample,
                epoch=one_log.epochs[sample],
                uuid=hashlib.sha256(identity.encode()).hexdigest()[:22],
                prompt=[replace(turn, content=names.text(turn.content)) for turn in sent],
                context=names.text(task.context),
                expected=names.texts(task.reference),
                replies=[(role, names.text(text)) for role, text in _replies(task, responses)],
                truncated=bool(responses) and responses[-1].truncated,
                model=runs.model(row.run_id, candidate) or shown,
                scores=scores,
                metadata={
                    "thing": names.text(row.thing),
                    "run": str(row.run_id),
                    "trial": row.k,
                    "weight": task.weight,
                    "family": task.family or None,
                    "tags": list(task.tags),
                },
            ),
        )


# Logs know no other roles of messages.
_ROLES: Final = {TOOL_CALL: ASSISTANT, TOOL_RESULT: "tool", TOOL_ERROR: "tool"}


def _replies(task: Task, responses: list[Response]) -> tuple[tuple[str, str], ...]:
    """Return the messages after the prompt as (role, text) pairs: the response, or the rest of the
    conversation.
    """
    if not responses:
        return ()
    # The first message of a transcript is the user's, which the prompt ends with.
    spoken = messages_of(responses[-1].text)[1:] if task.turns else ()
    spoken = tuple((_ROLES.get(role, role), text) for role, text in spoken)
    return spoken or ((ASSISTANT, responses[-1].text),)


def _score(detail: AssessmentDetail, candidate: str, score: float, names: Anonymiser) -> LogScore:
    row = detail.row
    grades = [grade for grade in row.assessment.grades if grade.candidate == candidate]
    reasons = [
        f"{grade.criterion}: {grade.reason}" if grade.criterion else grade.reason
        for grade in grades
        if grade.reason
    ]
    criteria: dict[str, JsonValue] = {
        grade.criterion: grade.score for grade in grades if grade.criterion
    }
    reply = detail.judged.raw or detail.judged.report
    return LogScore(
        value=score,
        explanation=names.text("\n".join(reasons)) or None,
        reply=names.text(reply) if row.by_model else None,
        metadata={
            "state": str(row.state),
            "judge_score": detail.judged.scores.get(candidate),
            "criteria": criteria,
            "assessment": shown_assessment(row.key),
        },
    )


def _write_logs(request: ExportRequest, logs: dict[tuple[str, str], _OneLog], runs: _Runs) -> None:
    if not logs:
        raise InputError(
            "",
            "no result counts yet, but an Inspect log needs at least one sample.",
            remedy="Approve a grade first.",
        )
    folder = output_folder(request, one_file=len(logs) == 1)
    if folder is None and len(logs) > 1:
        pairs = ", ".join(f"{candidate} on {suite}" for suite, candidate in list(logs)[:6])
        problem = f"an Inspect log contains one candidate of one suite, but the selection has {len(logs)}: {pairs}."
        raise InputError("--output", problem, remedy="Give a folder, such as --output logs.")
    for (suite, candidate), one_log in logs.items():
        summaries = [runs.summaries[run] for run in one_log.runs]
        # Inspect lists only files whose names begin with a time.
        started = min(run.started for run in summaries)[:19].replace(":", "-")
        path = (
            None
            if folder is None
            else folder / f"{started}_{safe_name(f'{suite} {candidate}')}.json"
        )
        finished = [run.finished for run in summaries if run.finished is not None]
        with request.open_output(path) as output:
            one_log.log.write(
                output.write,
                _spec(suite, candidate, summaries),
                finished=max(finished, default=None),
            )


def _spec(suite: str, candidate: str, runs: list[RunSummary]) -> dict[str, JsonValue]:
    identity = hashlib.sha256(
        "\x1f".join((suite, candidate, *(str(run.id) for run in runs))).encode()
    ).hexdigest()
    return {
        "eval_id": identity[:22],
        "run_id": str(runs[0].id),
        "task_id": identity[22:44],
        "created": min(run.started for run in runs),
        "task": suite,
        "model": candidate,
        "packages": {"assay-bench": __version__},
        "metadata": {
            "exported_by": "assay",
            "runs": [str(run.id) for run in runs],
            "counted_only": True,
        },
    }
