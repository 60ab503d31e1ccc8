"""Samples and verdicts of code benchmarks: HumanEval, EvalPlus, BigCodeBench and Reflexion.

Based on `human_eval/evaluation.py`, `evalplus/codegen.py` and `evaluate.py` (0.1 to 0.3), and
`bigcodebench/evaluate.py`: samples are lines with a `task_id` and a `completion` or `solution`;
HumanEval adds `passed` and `result` to each, Reflexion `is_solved`; EvalPlus and BigCodeBench write
one document whose `eval` lists the samples of each task with `base_status` and `plus_status`, or
`status`. A file of problems (`HumanEval.jsonl.gz`) provides the prompts.

The nth sample of a task is trial n. Verdicts are rule-based, because they come from tests.
EvalPlus's two test suites are the criteria `base` and `plus`; as in EvalPlus's pass@1, `plus`
counts as passed only if `base` passed too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from assay.plugins import (
    Failure,
    Fault,
    FileSample,
    Found,
    FoundCandidate,
    FoundResponse,
    FoundRun,
    FoundTask,
    GradedBy,
    InputFile,
    JsonObject,
    JsonValue,
    MetricGrades,
    MetricValue,
    Noted,
    ReadOptions,
    Shape,
    Skipped,
    as_list,
    as_messages,
    as_object,
    as_text,
    explained_share,
    folder_path,
    foreign_names,
    named_after_file,
    objects_in,
    pick,
    read_document,
    read_rows,
    shorten,
)

NAME: Final = "code_samples"

_NAMES: Final = foreign_names(__name__)
_PROBLEM: Final = _NAMES["problem"]
_SAMPLE: Final[Shape] = dict.fromkeys((*_NAMES["sample"], *_PROBLEM))
_SET_UP_KEYS: Final = ("date", "hash", "pass_at_k")
_RESULTS: Final[Shape] = {
    "eval": {"*": dict.fromkeys(_NAMES["verdict"])},
    **dict.fromkeys(_SET_UP_KEYS),
}
# Tuples, because a damaged status may be a list, which no set can hold.
_STATUS: Final = ("pass", "success", "fail", "failed", "timeout", "timed out")
_PASSED: Final = ("pass", "success")
_ENDING: Final = re.compile(r"(\.jsonl)?[._-](eval_)?results$")
_VARIANT: Final = re.compile(r"(\.raw|-sanitized(-calibrated)?)$")
_SET_UP: Final = re.compile(
    r"^(?P<model>.+)_(?P<backend>vllm|hf|openai|anthropic|google|ollama|bedrock|mistral)_temp_(?P<t>[\d.]+)$"
)


def recognise(sample: FileSample) -> float | None:
    match _kind(sample):
        case "results":
            return explained_share(sample.document, _RESULTS)
        case "samples" | "verdicts":
            return explained_share(sample.rows, _SAMPLE)
        case "problems":
            return explained_share(sample.rows, {**dict.fromkeys(_PROBLEM), "task_id": None})
        case _:
            return None


def companions(source: InputFile, others: Sequence[InputFile]) -> Collection[InputFile]:
    """Return files of problems and, for a file of verdicts, the file of the same samples."""
    kind = _kind(source.sample)
    if kind in (None, "problems"):
        return ()
    mine = []
    for other in others:
        other_kind = _kind(other.sample)
        same = folder_path(other) == folder_path(source) and _base_name(other) == _base_name(source)
        if same and kind == "samples" and other_kind in ("verdicts", "results"):
            return ()  # the verdicts take these samples as their companion
        if other_kind == "problems" or (other_kind == "samples" and kind != "samples" and same):
            mine.append(other)
    return mine


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run, with a response for every sample and a verdict for every tested one."""
    kind = _kind(source.sample)
    if kind == "problems":
        yield Skipped(
            where=source.name,
            why="holds problems without samples; import it together with the samples.",
        )
        return
    head: JsonObject = {}
    rows: Iterable[tuple[JsonObject | str, str]]
    if kind == "results":
        head = as_object(read_document(source))
        rows = _rows_of_results(head, source.name)
    else:
        rows = read_rows(source)
    problems = _problems(options.beside.get("companions", ()))
    reading = _SampleReader(source, options, problems)
    yield reading.run(head)
    for row, where in rows:
        if isinstance(row, str):
            yield Skipped(where=where, why=row)
        else:
            yield from reading.sample(row, where)
    yield from reading.notes()


def _kind(sample: FileSample) -> str | None:
    rows = sample.rows[:20]
    if rows and "eval" not in rows[0]:  # a document on one line is one row
        if not all(isinstance(row.get("task_id"), str) for row in rows):
            return None
        if all("passed" in row and ("completion" in row or "solution" in row) for row in rows):
            return "verdicts"
        if all("is_solved" in row and "solution" in row for row in rows):
            return "verdicts"
        if all(isinstance(row.get("completion", row.get("solution")), str) for row in rows):
            return "samples"
        return (
            "problems"
            if all("entry_point" in row and "canonical_solution" in row for row in rows)
            else None
        )
    if b'"eval"' not in sample.head:
        return None
    tasks = as_object(as_object(sample.document).get("eval"))
    return (
        "results"
        if tasks and all(_is_verdicts(value) for value in list(tasks.values())[:20])
        else None
    )


def _is_verdicts(value: object) -> bool:
    old = as_object(value)
    if old:
        return "base" in old and ("nfiles" in old or "files" in old)
    rows = objects_in(value)
    return bool(rows) and all(row.keys() & {"base_status", "status"} for row in rows)


def _base_name(source: InputFile) -> str:
    stem = _ENDING.sub("", source.stem)
    return _VARIANT.sub("", stem)


def _rows_of_results(document: JsonObject, name: str) -> Iterator[tuple[JsonObject | str, str]]:
    """Yield the samples in a results document; EvalPlus 0.1 wrote them in another layout, without
    solutions.
    """
    for task, value in as_object(document.get("eval")).items():
        old = as_object(value)
        if old:
            plus = as_list(old.get("plus"))
            for number, base in enumerate(as_list(old.get("base"))):
                row: JsonObject = {
                    "task_id": task,
                    "base_status": next(iter(as_list(base)), None),
                    "plus_status": next(iter(as_list(plus[number])), None)
                    if number < len(plus)
                    else None,
                }
                yield row, f"{name}#eval/{task}/{number + 1}"
        for number, sample in enumerate(as_list(value), 1):
            where = f"{name}#eval/{task}/{number}"
            yield (
                (
                    {"task_id": task, **sample}
                    if isinstance(sample, dict)
                    else "is not a JSON object."
                ),
                where,
            )


def _problems(files: Iterable[InputFile]) -> dict[str, JsonObject]:
    return {
        task: row
        for file in files
        if _kind(file.sample) == "problems"
        for row, _ in read_rows(file)
        if not isinstance(row, str) and (task := as_text(row.get("task_id"))) is not None
    }


class _SampleReader:
    def __init__(
        self, source: InputFile, options: ReadOptions, problems: dict[str, JsonObject]
    ) -> None:
        self._source = source
        self._options = options
        self._problems = problems
        self._candidate = options.candidate or _base_name(source)
        self._trials: Counter[str] = Counter()
        self._ungraded: Counter[str] = Counter()
        self._grades = MetricGrades()

    def run(self, head: JsonObject) -> FoundRun:
        """Return the run; the candidate is named after the file, whose name in EvalPlus has model,
        backend and temperature.
        """
        set_up = _SET_UP.match(_base_name(self._source))
        model = None if set_up is None else set_up["model"].replace("--", "/")
        parameters: dict[str, JsonValue] = {}
        if set_up is not None:
            parameters = {
                "backend": set_up["backend"],
                "parameters": {"temperature": float(set_up["t"])},
            }
        first = next(iter(as_object(head.get("eval"))), None)
        if first is None:
            first = as_text(next(iter(self._source.sample.rows), {}).get("task_id"))
        suite = PurePosixPath(first or self._source.stem).parts[0]
        return FoundRun(
            suite=self._options.dataset or suite,
            format=NAME,
            candidates=(
                FoundCandidate(
                    name=self._candidate, model=model, metadata=self._options.model_info
                ),
            ),
            provenance={**pick(head, _SET_UP_KEYS), **parameters},
        )

    def sample(self, row: JsonObject, where: str) -> Iterator[Found]:
        task = as_text(row.get("task_id"))
        if task is None:
            yield Skipped(where=where, why="has no `task_id`.")
            return
        if not self._trials[task]:
            yield self._task(task, row)
        self._trials[task] += 1
        trial = self._trials[task]
        code = row.get("solution", row.get("completion"))
        if isinstance(code, str):
            yield FoundResponse(
                task=task, candidate=self._candidate, trial=trial, where=where, content=code
            )
        elif "solution" in row or "completion" in row:
            failure = Failure(kind="no_output", fault=Fault.PROVIDER, detail="there is no code.")
            yield FoundResponse(
                task=task, candidate=self._candidate, trial=trial, where=where, failure=failure
            )
            return
        values = [value for value in self._values(row) if value is not None]
        yield from self._grades.assessments(
            values, task=task, candidate=self._candidate, trial=trial, where=where
        )

    def _task(self, task: str, row: JsonObject) -> FoundTask:
        problem = {**row, **self._problems.get(task, {})}
        reference = as_text(problem.get("canonical_solution"))
        return FoundTask(
            id=task,
            prompt=as_messages(as_text(problem.get("prompt"))),
            expected=() if reference is None else (reference,),
            language="python",
            metadata=pick(problem, ("entry_point", "test")),
        )

    def _values(self, row: JsonObject) -> Iterator[MetricValue | None]:
        for key in ("passed", "is_solved"):
            if isinstance(row.get(key), bool):
                yield _verdict("", row[key], reason=as_text(row.get("result")) or "")
                return
        if "status" in row:
            yield self._by_status("", row.get("status"), reason=_failed(row.get("details")))
        base, plus = row.get("base_status"), row.get("plus_status")
        if base is not None:
            yield self._by_status("base", base, reason=_failed(row.get("base_fail_tests")))
        if plus is not None:
            both = plus if plus not in _PASSED else base
            yield self._by_status("plus", both, reason=_failed(row.get("plus_fail_tests")))

    def _by_status(self, criterion: str, status: object, *, reason: str) -> MetricValue | None:
        """Return a verdict, or None for an unknown status, which is counted."""
        if status not in _STATUS:
            self._ungraded[shorten(status, 40)] += 1
            return None
        return _verdict(
            criterion, status in _PASSED, reason=f"{status}: {reason}" if reason else str(status)
        )

    def notes(self) -> Iterator[Noted]:
        if self._ungraded:
            what = ", ".join(
                f"{status} ({count:,})" for status, count in self._ungraded.most_common(10)
            )
            yield Noted(
                where=self._source.name,
                what=f"samples whose status is not a verdict have no grade: {what}.",
            )
        if not self._options.candidate:
            yield named_after_file(self._source.name, self._candidate)


def _verdict(criterion: str, passed: object, *, reason: str) -> MetricValue:
    return MetricValue(
        criterion=criterion, value=passed, judge="tests", by=GradedBy.RULE, reason=reason
    )


def _failed(tests: object) -> str:
    return f"failed tests: {shorten(tests, 500)}" if tests else ""
