"""Export rubric evaluations as one line each, or as one document with tasks and totals.

`graded_answers` makes each evaluation's document; this module puts the documents into files and
adds tasks and totals.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

from assay.app.exports.exporters import Exported, only_counted, output_folder
from assay.app.exports.graded_answers import STAGES, criterion_key, graded_answers
from assay.app.review.review_documents import approvals_document
from assay.app.statistics.basis import approvals_of
from assay.app.wire import plain
from assay.domain.lifecycle import AssessmentState
from assay.domain.review import Approvals
from assay.domain.unescaped_json import unescaped_json
from assay.exchange.results_folder.safe_names import safe_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from assay.app.exports.exporters import ExportRequest
    from assay.app.exports.graded_answers import GradedAnswer, RunOfAnswers
    from assay.app.exports.pseudonyms import Anonymiser
    from assay.domain.digest import JsonValue

Line = dict[str, "JsonValue"]
"""One evaluation or one task in the export."""

_STEM_ENDING: Final = re.compile(r"(_ingested.*|_tasks)$")


def export_evaluations(request: ExportRequest) -> Exported:
    """Write one JSON line per evaluation of a candidate.

    To a folder, write all files of `export_final_results`.
    """
    if (folder := output_folder(request, one_file=False)) is not None:
        return _export_folder(request, folder)
    only_counted(request)
    rows = unseen = 0
    with request.open_output() as output:
        for answer in graded_answers(request.workspace.store, request.selection, request.names()):
            output.write(_json(plain(answer.document)) + "\n")
            rows += 1
            unseen += answer.detail.row.state is AssessmentState.EXEMPT
    return Exported(format=request.format, output=request.output, rows=rows, unseen=unseen)


def export_final_results(request: ExportRequest) -> Exported:
    """Write a document with a summary and the evaluations of each task.

    To a folder, also write its input files.
    """
    if (folder := output_folder(request, one_file=False)) is not None:
        return _export_folder(request, folder)
    only_counted(request)
    results = _FinalResults.read(request)
    with request.open_output() as output:
        output.write(_json(results.document(), indent=2) + "\n")
    return Exported(
        format=request.format, output=request.output, rows=len(results.lines), unseen=results.unseen
    )


def _export_folder(request: ExportRequest, folder: Path) -> Exported:
    """Write a folder `<name>_<time>` with imported tasks, evaluations (as lines and as a list) and
    final results.
    """
    only_counted(request)
    results = _FinalResults.read(request)
    stem = safe_name(results.batch_id)
    # The time of the newest run instead of the export, so that a second export of the same results
    # has the same name.
    time = re.sub(r"[-:]", "", max(results.started, default=""))[:13].replace("T", "_")
    home = folder / f"{stem}_{time}"
    home.mkdir(parents=True, exist_ok=True)
    texts = {
        f"{stem}_ingested_{time}.json": _json(results.ingested(), indent=2) + "\n",
        f"{stem}_evaluations.jsonl": "".join(_json(line) + "\n" for line in results.lines),
        f"{stem}_evaluations_formatted.json": _json(cast("JsonValue", results.lines), indent=2)
        + "\n",
        f"{stem}_final_results.json": _json(results.document(), indent=2) + "\n",
    }
    for name, text in texts.items():
        with request.open_output(home / name) as output:
            output.write(text)
    return Exported(
        format=request.format, output=home, rows=len(results.lines), unseen=results.unseen
    )


def _json(value: JsonValue, *, indent: int | None = None) -> str:
    return unescaped_json(value, allow_nan=False, indent=indent)


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
    approvals: Approvals = field(default_factory=Approvals)

    @classmethod
    def read(cls, request: ExportRequest) -> _FinalResults:
        results, names = (
            cls(
                approvals=approvals_of(
                    request.workspace.store, request.workspace.settings, request.selection
                )
            ),
            request.names(),
        )
        for answer in sorted(
            graded_answers(request.workspace.store, request.selection, names), key=_in_plan_order
        ):
            line: Line = plain(answer.document)
            results.lines.append(line)
            results.unseen += answer.detail.row.state is AssessmentState.EXEMPT
            results._add_run(answer.run)
            results._add_task(answer, line, names)
        return results

    def _add_run(self, run: RunOfAnswers) -> None:
        for path in run.source.split(", ") if run.source else ():
            stem = re.split(r"[/\\]", path)[-1].partition(".")[0]
            self.sources[_STEM_ENDING.sub("", stem) or stem] = None
        if not run.source:
            self.sources[run.summary.batch_id or run.summary.suite] = None
        if run.plan.rubric.structuring is not None:
            self.structurers[run.plan.rubric.structuring.model.ref] = None
        self.started.append(run.summary.started)

    def _add_task(self, answer: GradedAnswer, line: Line, names: Anonymiser) -> None:
        row, task = answer.detail.row, answer.detail.task
        key = f"{row.suite}\x1f{row.task}\x1f{task.digest}"
        system = "\n\n".join(message.content for message in task.prompt if message.role == "system")
        about: Line = {
            **names.texts(dict(task.extra)),
            **({"system_prompt": names.text(system)} if system else {}),
        }
        result = self.tasks.setdefault(
            key,
            {
                "task_id": line["task_id"],
                "prompt": names.text(
                    "\n\n".join(m.content for m in task.prompt if m.role != "system")
                ),
                "ideal_response": None if task.ideal is None else names.text(task.ideal),
                "final_answer": None
                if task.final_answer is None
                else names.text(task.final_answer),
                "metadata": about,
                "structured_ideal_response": None,
                "evaluations": [],
            },
        )
        result["structured_ideal_response"] = (
            result["structured_ideal_response"] or line["structured_ideal_response"]
        )
        response = next(
            (
                names.text(r.text)
                for r in answer.detail.responses
                if r.candidate == answer.candidate
            ),
            None,
        )
        human = answer.run.references.get((row.task, row.k, answer.candidate))
        judge = {name: value for name, value in line.items() if name not in _OF_EVALUATION}
        for scores in ("parsed_rubric_scores", "human_corrected_scores"):
            given = judge[scores]
            if isinstance(given, dict):
                judge[scores] = {
                    criterion_key(criterion): score for criterion, score in given.items()
                }
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
                "average_time_per_evaluation_seconds": _mean(
                    total["grading"]["seconds"], len(lines)
                ),
                "average_time_per_model_seconds": {
                    model: _mean(_sums(of_model)["grading"]["seconds"], len(of_model))
                    for model, of_model in by_model.items()
                },
                "approvals": plain(approvals_document(self.approvals)),
                "models_evaluated": [*by_model],
                "structuring_model": ", ".join(self.structurers) or None,
                "judging_model": ", ".join(
                    dict.fromkeys(str(line["judge_llm_model"]) for line in lines)
                )
                or None,
                "by_stage": cast("JsonValue", {stage: total[stage] for stage in STAGES.values()}),
                "by_model": cast(
                    "JsonValue", {name: _sums(of_model) for name, of_model in by_model.items()}
                ),
                "by_task": cast(
                    "JsonValue",
                    {name: _sums(of_task) for name, of_task in _grouped(lines, "task_id").items()},
                ),
            },
            "results": [*self.tasks.values()],
        }

    def ingested(self) -> list[JsonValue]:
        """Return the tasks with their responses and human grades, in the format that `assay import`
        reads.
        """
        tasks: list[JsonValue] = []
        for task in self.tasks.values():
            evaluations = cast("list[Line]", task["evaluations"])
            responses = {str(each["model_id"]): each for each in evaluations}
            tasks.append(
                {
                    **{
                        name: task[name]
                        for name in ("task_id", "prompt", "ideal_response", "final_answer")
                    },
                    "model_responses": [
                        {"model_id": name, "response_text": each["model_response"]}
                        for name, each in responses.items()
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


def _in_plan_order(answer: GradedAnswer) -> tuple[str, int, int]:
    place = next(
        (n for n, spec in enumerate(answer.run.plan.candidates) if spec.name == answer.candidate), 0
    )
    return answer.run.summary.started, int(answer.detail.row.trial), place


_OF_EVALUATION: Final = frozenset(
    {"task_id", "model_id", "trial", "structured_model_response", "structured_ideal_response"}
)
"""Keys that final results do not repeat in `judge_evaluation`."""


def _grouped(lines: Iterable[Line], key: str) -> dict[str, list[Line]]:
    groups: defaultdict[str, list[Line]] = defaultdict(list)
    for line in lines:
        groups[str(line[key])].append(line)
    return dict(groups)


def _sums(lines: Iterable[Line]) -> dict[str, dict[str, float]]:
    sums = {stage: {"calls": 0, "seconds": 0.0} for stage in (*STAGES.values(), "grading")}
    for line in lines:
        for stage in STAGES.values():
            for group in (stage, "grading") if stage != "answering" else (stage,):
                sums[group]["calls"] += cast("int", line[f"{stage}_api_calls"])
                sums[group]["seconds"] += cast("float", line[f"{stage}_time_seconds"])
    return {
        stage: {"calls": both["calls"], "seconds": round(both["seconds"], 2)}
        for stage, both in sums.items()
    }


def _mean(seconds: float, count: int) -> float | None:
    return round(seconds / count, 2) if count else None
