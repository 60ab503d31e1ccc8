"""Export rubric evaluations as one line each, or as one document with tasks and totals.

Only counted grades of judges and scorers are exported; human grades that came with imported data are listed separately.
`aggregated_score` includes a person's corrections, and `parsed_rubric_scores` contains the judge's own scores. A call is
counted only once, in the first evaluation that used its reply.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Final, cast
from uuid import UUID, uuid5

from assay.app.exports.exporters import Exported, only_counted, output_folder
from assay.app.review.structured_answers import structured_answer
from assay.domain.assessment import FlagKind
from assay.domain.calls import Role
from assay.domain.lifecycle import AssessmentState
from assay.domain.selection import Selection
from assay.exchange.results_folder.safe_names import safe_name
from assay.suites.tasks import slug

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from assay.app.exports.exporters import ExportRequest
    from assay.app.exports.pseudonyms import Anonymiser
    from assay.domain.assessment import Grade
    from assay.domain.digest import JsonValue
    from assay.domain.identifiers import TrialKey
    from assay.domain.run import RunPlan
    from assay.domain.selection import AssessmentDetail, CallsOfTrial, RunSummary

Line = dict[str, "JsonValue"]
"""One evaluation or one task in the export."""

_IDS: Final = UUID("6f6e6365-0000-4000-8000-6576616c7300")
_STAGES: Final = {Role.CANDIDATE: "answering", Role.STRUCTURER: "structuring", Role.JUDGE: "judging"}
_BY_PEOPLE: Final = (AssessmentState.APPROVED, AssessmentState.CORRECTED)
_STEM_ENDING: Final = re.compile(r"(_ingested.*|_tasks)$")


def export_evaluations(request: ExportRequest) -> Exported:
    """Write one JSON line per evaluation of a candidate. To a folder, write all files of `export_final_results`."""
    if (folder := output_folder(request, one_file=False)) is not None:
        return _export_folder(request, folder)
    only_counted(request)
    rows = unseen = 0
    with request.open_output() as output:
        for _, detail, _, line in _evaluations(request):
            output.write(_json(line) + "\n")
            rows += 1
            unseen += detail.row.state is AssessmentState.EXEMPT
    return Exported(format=request.format, output=request.output, rows=rows, unseen=unseen)


def export_final_results(request: ExportRequest) -> Exported:
    """Write a document with a summary and the evaluations of each task. To a folder, also write its input files."""
    if (folder := output_folder(request, one_file=False)) is not None:
        return _export_folder(request, folder)
    only_counted(request)
    results = _FinalResults.read(request)
    with request.open_output() as output:
        output.write(_json(results.document(), indent=2) + "\n")
    return Exported(format=request.format, output=request.output, rows=len(results.lines), unseen=results.unseen)


def _export_folder(request: ExportRequest, folder: Path) -> Exported:
    """Write a folder `<name>_<time>` with imported tasks, evaluations (as lines and as a list) and final results."""
    only_counted(request)
    results = _FinalResults.read(request)
    stem = safe_name(results.batch_id)
    # The time of the newest run instead of the export, so that a second export of the same results has the same name.
    time = re.sub(r"[-:]", "", max(results.started, default=""))[:13].replace("T", "_")
    home = folder / f"{stem}_{time}"
    home.mkdir(parents=True, exist_ok=True)
    texts = {
        f"{stem}_ingested_{time}.json": _json(results.ingested(), indent=2) + "\n",
        f"{stem}_evaluations.jsonl": "".join(_json(line) + "\n" for line in results.lines),
        f"{stem}_evaluations_formatted.json": _json(cast("JsonValue", results.lines), indent=2) + "\n",
        f"{stem}_final_results.json": _json(results.document(), indent=2) + "\n",
    }
    for name, text in texts.items():
        with request.open_output(home / name) as output:
            output.write(text)
    return Exported(format=request.format, output=home, rows=len(results.lines), unseen=results.unseen)


def _json(value: JsonValue, *, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)


@dataclass(slots=True)
class _GradedRun:
    """A run to export, with the calls that no evaluation has counted yet and the human grades imported with the run."""

    summary: RunSummary
    plan: RunPlan
    source: str
    calls: dict[tuple[TrialKey, Role, str | None, str | None], CallsOfTrial]
    people: frozenset[str]
    references: dict[tuple[str, int, str], Line]

    def take_calls(self, detail: AssessmentDetail, candidate: str) -> Line:
        """Return the number and duration of an evaluation's calls by stage, and remove these calls from `calls`."""
        calls: dict[str, int] = dict.fromkeys(_STAGES.values(), 0)
        seconds: dict[str, float] = dict.fromkeys(_STAGES.values(), 0.0)
        for role, stage in _STAGES.items():
            grader = detail.row.grader if role is Role.JUDGE else None
            for name in (candidate, None):
                counted = self.calls.pop((detail.row.trial, role, name, grader), None)
                if counted is not None:
                    calls[stage] += counted.calls
                    seconds[stage] += counted.seconds
        grading = seconds["structuring"] + seconds["judging"]
        return {
            **{f"{stage}_api_calls": n for stage, n in calls.items()},
            **{f"{stage}_time_seconds": round(s, 3) for stage, s in seconds.items()},
            "total_time_seconds": round(grading, 3),
        }


def _graded_runs(request: ExportRequest) -> Iterator[_GradedRun]:
    archive, journal = request.workspace.archive, request.workspace.journal
    for summary in reversed(archive.runs.matching(request.selection)):
        plan = journal.plan_of(summary.id)
        origin = plan.regrade_of or summary.id
        imported = (plan if origin == summary.id else journal.plan_of(origin)).environment.get("imported")
        source = str(imported.get("from", "")) if isinstance(imported, dict) else ""
        people = archive.scores.reference_graders(origin)
        references: defaultdict[tuple[str, int, str], Line] = defaultdict(dict)
        for detail, _ in archive.exports.assessments(Selection(runs=(origin,))) if people else ():
            if detail.row.grader in people:
                for grade in detail.row.assessment.grades:
                    references[detail.row.task, detail.row.k, grade.candidate] |= _human_grade(grade)
        yield _GradedRun(
            summary=summary,
            plan=plan,
            source=source,
            calls={
                (calls.trial, calls.role, calls.candidate, calls.grader): calls for calls in archive.calls.by_trial(summary.id)
            },
            people=people if origin == summary.id else frozenset(),
            references=dict(references),
        )


def _human_grade(grade: Grade) -> Line:
    """Return a person's grade by criterion name. On a 0 to 1 scale, 0 and 1 become booleans."""
    yes_or_no = (grade.min_score, grade.max_score) == (0.0, 1.0) and grade.raw_score in (0.0, 1.0)
    value = bool(grade.raw_score) if yes_or_no else grade.raw_score
    return {_key(grade.criterion or "score"): value, **({"failure_comments": grade.reason} if grade.reason else {})}


def _key(criterion: str) -> str:
    return slug(criterion).replace("-", "_")


def _evaluations(request: ExportRequest) -> Iterator[tuple[_GradedRun, AssessmentDetail, str, Line]]:
    names = request.names()
    shown = request.workspace.archive.exports.candidate_names(request.selection)
    for run in _graded_runs(request):
        only_run = replace(request.selection, runs=(run.summary.id,))
        for detail, _ in request.workspace.archive.exports.assessments(only_run):
            if detail.row.grader in run.people:
                continue
            for candidate, score in detail.row.assessment.scores.items():
                if score is not None:
                    model = names.candidate(shown[run.summary.id, candidate])
                    yield run, detail, candidate, _line(request, run, detail, candidate, model, names)


def _line(
    request: ExportRequest, run: _GradedRun, detail: AssessmentDetail, candidate: str, model: str, names: Anonymiser
) -> Line:
    row, judged, final = detail.row, detail.judged, detail.row.assessment
    submission = run.plan.environment.get("submission")
    ids = submission if isinstance(submission, dict) else {}
    judge = next((judge for judge in run.plan.judges if judge.name == row.grader), None)
    verification = next((check for check in final.verifications if check.candidate == candidate), None)
    verdict = final.verdicts.get(candidate)
    flags = [flag for flag in judged.flags if flag.candidate in (None, candidate)]
    event = next((event for event in reversed(detail.events) if event.after in _BY_PEOPLE), None)
    response = next((response for response in detail.responses if response.candidate == candidate), None)
    structured = None if response is None else _structured(request, run, detail, response.text, candidate, names)
    return {
        "evaluation_id": f"eval_{uuid5(_IDS, f'{row.run_id} {row.key} {candidate}')}",
        "task_id": _task_id(row.task),
        "model_id": model,
        "trial": row.k,
        "response_id": ids.get("model_response_id"),
        "ideal_response_id": ids.get("ideal_response_id"),
        "judge_llm_model": row.grader if judge is None else judge.model.ref,
        "judge_prompt_template_path": None if judge is None else judge.prompt_path,
        "raw_judge_output": {"raw_content": names.text(judged.raw)} if judged.raw else None,
        "parsed_rubric_scores": _scores(run.plan, judged.grades, candidate, names),
        "aggregated_score": final.scores[candidate] if verdict is None else str(verdict),
        "aggregated_number": final.scores[candidate],
        "final_answer_verified": None if verification is None else verification.verified,
        "verification_message": None if verification is None else names.text(verification.message),
        "needs_human_review": bool(flags),
        "review_reasons": [names.text(_named(flag.detail, judged.labels.get(candidate), model)) for flag in flags],
        "parsing_error": next((names.text(flag.detail) for flag in flags if flag.kind is FlagKind.PARSE_ERROR), None),
        "human_review_status": "Not Required" if event is None else "Completed",
        "human_reviewer_id": None if event is None else names.reviewer(event.decision.reviewer),
        "human_review_timestamp": None if event is None else event.at,
        "human_corrected_scores": (
            _scores(run.plan, final.grades, candidate, names) if row.state is AssessmentState.CORRECTED else None
        ),
        "human_review_comments": None if event is None else names.text(event.decision.reason) or None,
        "structured_model_response": structured,
        "structured_ideal_response": (
            _structured(request, run, detail, detail.task.ideal, None, names) if detail.task.ideal else None
        ),
        **run.take_calls(detail, candidate),
        "created_at": detail.call.get("started") or run.summary.started,
    }


def _named(text: str, label: str | None, model: str) -> str:
    return text if label is None else re.sub(rf"(?<!\w){re.escape(label)}(?!\w)", lambda _: model, text)


def _task_id(task: str) -> str | int:
    return int(task) if task.isdecimal() and str(int(task)) == task else task


def _scores(plan: RunPlan, grades: Iterable[Grade], candidate: str, names: Anonymiser) -> Line:
    """Return score and justification by criterion; the rubric's label replaces a score that has one."""
    words = {c.name: {value: word for word, value in c.labels} for c in plan.rubric.criteria}
    return {
        grade.criterion: {
            "score": words.get(grade.criterion, {}).get(cast("float", grade.raw_score), grade.raw_score),
            "justification": names.text(grade.reason),
        }
        for grade in grades
        if grade.candidate == candidate and grade.criterion
    }


def _structured(
    request: ExportRequest, run: _GradedRun, detail: AssessmentDetail, text: str, candidate: str | None, names: Anonymiser
) -> Line | None:
    """Return the structured form of a response, or of the model solution if `candidate` is None; None if it is not stored."""
    structuring = run.plan.rubric.structuring
    if structuring is None:
        return None
    answer = structured_answer(request.workspace.journal, structuring, detail.task, text, candidate=candidate)
    if answer is None:
        return None
    return {"model": structuring.model.ref, "response": names.texts(asdict(answer))}


@dataclass(slots=True)
class _FinalResults:
    """Collects evaluations by task, in the order of tasks, and computes totals."""

    lines: list[Line] = field(default_factory=list)
    tasks: dict[str, Line] = field(default_factory=dict)
    responses: dict[str, list[JsonValue]] = field(default_factory=dict)
    sources: dict[str, None] = field(default_factory=dict)
    structurers: dict[str, None] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    unseen: int = 0

    @classmethod
    def read(cls, request: ExportRequest) -> _FinalResults:
        results, names = cls(), request.names()
        for run, detail, candidate, line in sorted(_evaluations(request), key=_in_plan_order):
            results.lines.append(line)
            results.unseen += detail.row.state is AssessmentState.EXEMPT
            results._add_run(run)
            results._add_task(run, detail, candidate, line, names)
        return results

    def _add_run(self, run: _GradedRun) -> None:
        for path in run.source.split(", ") if run.source else ():
            stem = re.split(r"[/\\]", path)[-1].partition(".")[0]
            self.sources[_STEM_ENDING.sub("", stem) or stem] = None
        if not run.source:
            self.sources[run.summary.batch_id or run.summary.suite] = None
        if run.plan.rubric.structuring is not None:
            self.structurers[run.plan.rubric.structuring.model.ref] = None
        self.started.append(run.summary.started)

    def _add_task(self, run: _GradedRun, detail: AssessmentDetail, candidate: str, line: Line, names: Anonymiser) -> None:
        row, task = detail.row, detail.task
        key = f"{row.suite}\x1f{row.task}\x1f{task.digest}"
        system = "\n\n".join(message.content for message in task.prompt if message.role == "system")
        about: Line = {**names.texts(dict(task.extra)), **({"system_prompt": names.text(system)} if system else {})}
        result = self.tasks.setdefault(
            key,
            {
                "task_id": line["task_id"],
                "prompt": names.text("\n\n".join(m.content for m in task.prompt if m.role != "system")),
                "ideal_response": None if task.ideal is None else names.text(task.ideal),
                "final_answer": None if task.final_answer is None else names.text(task.final_answer),
                "metadata": about,
                "structured_ideal_response": None,
                "evaluations": [],
            },
        )
        result["structured_ideal_response"] = result["structured_ideal_response"] or line["structured_ideal_response"]
        response = next((names.text(r.text) for r in detail.responses if r.candidate == candidate), None)
        human = run.references.get((row.task, row.k, candidate))
        judge = {name: value for name, value in line.items() if name not in _OF_EVALUATION}
        for scores in ("parsed_rubric_scores", "human_corrected_scores"):
            given = judge[scores]
            if isinstance(given, dict):
                judge[scores] = {_key(criterion): score for criterion, score in given.items()}
        cast("list[JsonValue]", result["evaluations"]).append(
            {
                "model_id": line["model_id"],
                "trial": line["trial"],
                "model_response": response,
                "structured_model_response": line["structured_model_response"],
                "human_evaluation": None if human is None else names.texts(human),
                "judge_evaluation": judge,
            }
        )

    @property
    def batch_id(self) -> str:
        return "_".join(self.sources) or "evaluations"

    def document(self) -> Line:
        tasks, lines = len(self.tasks), self.lines
        total = _sums(lines)
        by_model = _grouped(lines, "model_id")
        return {
            "summary": {
                "batch_id": self.batch_id,
                "total_tasks_processed": tasks,
                "total_evaluations_processed": len(lines),
                "total_structuring_api_calls": total["structuring"]["calls"],
                "total_judging_api_calls": total["judging"]["calls"],
                "total_evaluation_time_seconds": total["grading"]["seconds"],
                "average_time_per_task_seconds": _mean(total["grading"]["seconds"], tasks),
                "average_time_per_evaluation_seconds": _mean(total["grading"]["seconds"], len(lines)),
                "average_time_per_model_seconds": {
                    model: _mean(_sums(of_model)["grading"]["seconds"], len(of_model)) for model, of_model in by_model.items()
                },
                "models_evaluated": [*by_model],
                "structuring_model": ", ".join(self.structurers) or None,
                "judging_model": ", ".join(dict.fromkeys(str(line["judge_llm_model"]) for line in lines)) or None,
                "by_stage": cast("JsonValue", {stage: total[stage] for stage in _STAGES.values()}),
                "by_model": cast("JsonValue", {name: _sums(of_model) for name, of_model in by_model.items()}),
                "by_task": cast("JsonValue", {name: _sums(of_task) for name, of_task in _grouped(lines, "task_id").items()}),
            },
            "results": [*self.tasks.values()],
        }

    def ingested(self) -> list[JsonValue]:
        """Return the tasks with their responses and human grades, in the format that `assay import` reads."""
        tasks: list[JsonValue] = []
        for task in self.tasks.values():
            evaluations = cast("list[Line]", task["evaluations"])
            responses = {str(each["model_id"]): each for each in evaluations}
            tasks.append(
                {
                    **{name: task[name] for name in ("task_id", "prompt", "ideal_response", "final_answer")},
                    "model_responses": [
                        {"model_id": name, "response_text": each["model_response"]} for name, each in responses.items()
                    ],
                    "human_evaluations": [
                        {"model_id": name, **each["human_evaluation"]}
                        for name, each in responses.items()
                        if isinstance(each["human_evaluation"], dict)
                    ],
                    "metadata": task["metadata"],
                }
            )
        return tasks


def _in_plan_order(evaluation: tuple[_GradedRun, AssessmentDetail, str, Line]) -> tuple[str, int, int]:
    run, detail, candidate, _ = evaluation
    place = next((n for n, spec in enumerate(run.plan.candidates) if spec.name == candidate), 0)
    return run.summary.started, int(detail.row.trial), place


_OF_EVALUATION: Final = frozenset({"task_id", "model_id", "trial", "structured_model_response", "structured_ideal_response"})
"""Keys that final results do not repeat in `judge_evaluation`."""


def _grouped(lines: Iterable[Line], key: str) -> dict[str, list[Line]]:
    groups: defaultdict[str, list[Line]] = defaultdict(list)
    for line in lines:
        groups[str(line[key])].append(line)
    return dict(groups)


def _sums(lines: Iterable[Line]) -> dict[str, dict[str, float]]:
    sums = {stage: {"calls": 0, "seconds": 0.0} for stage in (*_STAGES.values(), "grading")}
    for line in lines:
        for stage in _STAGES.values():
            for group in (stage, "grading") if stage != "answering" else (stage,):
                sums[group]["calls"] += cast("int", line[f"{stage}_api_calls"])
                sums[group]["seconds"] += cast("float", line[f"{stage}_time_seconds"])
    return {stage: {"calls": both["calls"], "seconds": round(both["seconds"], 2)} for stage, both in sums.items()}


def _mean(seconds: float, count: int) -> float | None:
    return round(seconds / count, 2) if count else None
