"""Tables that promptfoo writes: `promptfoo eval -o results.csv`, and the web page's export.

Based on promptfoo's `src/util/eval/evalTableUtils.ts` (2026): a column per variable, and for each
prompt a column `[provider] label` with the answer, then `Status`, `Score`, `Named Scores`, `Metric:
NAME`, `Grader Reason`, `Comment`. Before 2025 a prompt had one column, whose cells read `[PASS]
(0.50) answer` (`src/util/output.ts`).

The table does not state which assertions were made or whether a model decided them, so every grade
awaits review. It also lacks ids, tokens, costs and times; import the JSON output to get these.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

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
    Message,
    MetricGrades,
    MetricValue,
    Noted,
    ReadOptions,
    Skipped,
    cell_number,
    outside_their_scale,
    separated_rows,
    shorten,
    unguarded,
)
from assay_importers.promptfoo import candidate_names

NAME: Final = "promptfoo_csv"

_FIELDS: Final = ("Status", "Score", "Named Scores")
_REST: Final = ("Grader Reason", "Comment")
_PROVIDER: Final = re.compile(r"\[(?P<provider>[^\]\n]+)\] (?P<label>.*)", re.DOTALL)
_CELL: Final = re.compile(
    r"\[(?P<status>PASS|FAIL|ERROR)\] \((?P<score>-?\d+(?:\.\d+)?)[^)\n]*\)\n*"
    r"(?P<text>.*?)(?:\n+(?:Pass|Fail) Reason: (?P<reason>.*))?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompt:
    """Numbers of one prompt's columns; `reason` and `status` are None in tables with only one
    column per prompt.
    """

    name: str
    model: str | None
    text: int
    status: int | None = None
    score: int | None = None
    reason: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    variables: tuple[tuple[int, str], ...]
    description: int | None
    prompts: tuple[_Prompt, ...]
    width: int


def recognise(sample: FileSample) -> float | None:
    """Recognise a prompt's columns, or cells that begin with a verdict."""
    return None if _header(sample) is None else 0.95


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run: every prompt is a candidate, every row a task or another trial of a task."""
    header = _header(source.sample)
    if header is None:
        yield Skipped(
            where=source.name,
            why="is not a table of promptfoo: it has no columns of a provider's answers.",
        )
        return
    alone = len(header.prompts) == 1 and options.candidate
    yield FoundRun(
        suite=options.dataset or source.stem,
        format=NAME,
        candidates=tuple(
            FoundCandidate(
                name=options.candidate if alone and options.candidate else prompt.name,
                model=prompt.model,
            )
            for prompt in header.prompts
        ),
    )
    trials: dict[str, int] = {}
    # A first pass: any score above 1 shows that the table's scores have a different scale.
    cells_of_rows = (
        cells for cells, _ in _rows(source, header.width) if not isinstance(cells, str)
    )
    outputs = (_output(prompt, cells) for cells in cells_of_rows for prompt in header.prompts)
    grades = MetricGrades(
        outside_their_scale(_value(output) for output in outputs if output is not None)
    )
    for cells, where in _rows(source, header.width):
        if isinstance(cells, str):
            yield Skipped(where=where, why=cells)
            continue
        task = _task(header, cells)
        trials[task.id] = trials.get(task.id, 0) + 1
        if trials[task.id] == 1:
            yield task
        for prompt in header.prompts:
            candidate = options.candidate if alone and options.candidate else prompt.name
            yield from _records(
                _output(prompt, cells), task.id, candidate, trials[task.id], where, grades
            )
    yield from grades.notes(source.name)
    what = "promptfoo's CSV table has no tokens, cost, times or assertions; import its JSON output to get them."
    yield Noted(where=source.name, what=what)


def _rows(source: InputFile, width: int) -> Iterator[tuple[list[str] | str, str]]:
    """Yield every row's cells with its location; an unreadable row is replaced by an error
    message.
    """
    names = [str(number) for number in range(width)]
    with source.open() as stream:
        for line, row in separated_rows(stream, delimiter=",", columns=names, skip=1):
            cells = (
                row if isinstance(row, str) else [unguarded(row.get(name, "")) for name in names]
            )
            yield cells, f"{source.name}:{line}"


def _header(sample: FileSample) -> _Header | None:
    if sample.head[:1] in (b"{", b"[") and sample.document is not None:
        return None
    # Labels of prompts are whole prompts, so the header may span many lines.
    try:
        rows = csv.reader(io.StringIO(sample.text, newline=""))
        names, first = next(rows, []), next(rows, [])
    except csv.Error:
        return None
    prompts = _wide_prompts(names) or _verdict_prompts(names, first)
    if not prompts:
        return None
    start = min(prompt.text for prompt in prompts)
    described = bool(names) and names[0] == "Description" and start > 1
    return _Header(
        variables=tuple(enumerate(names))[int(described) : start],
        description=0 if described else None,
        prompts=prompts,
        width=len(names),
    )


def _wide_prompts(names: Sequence[str]) -> tuple[_Prompt, ...]:
    places = [at for at in range(1, len(names) - 2) if tuple(names[at : at + 3]) == _FIELDS]
    prompts: list[_Prompt] = []
    for at, (name, model) in zip(places, _named([names[at - 1] for at in places]), strict=True):
        reason = next(
            (number for number in range(at + 3, len(names)) if names[number] == _REST[0]), None
        )
        prompts.append(
            _Prompt(name=name, model=model, text=at - 1, status=at, score=at + 1, reason=reason)
        )
    return tuple(prompts)


def _verdict_prompts(names: Sequence[str], first: Sequence[str]) -> tuple[_Prompt, ...]:
    places = [at for at, cell in enumerate(first[: len(names)]) if _CELL.fullmatch(cell)]
    named = zip(places, _named([names[at] for at in places]), strict=True)
    return tuple(_Prompt(name=name, model=model, text=at) for at, (name, model) in named)


def _named(columns: Sequence[str]) -> list[tuple[str, str | None]]:
    """Return (candidate's name, model) for each prompt, with the same names as for promptfoo's
    JSON.
    """
    models: list[str | None] = []
    keys: list[tuple[str, str]] = []
    for column in columns:
        match = _PROVIDER.fullmatch(unguarded(column))
        model, label = (None, column) if match is None else (match["provider"], match["label"])
        line = label.strip().split("\n")[0]
        models.append(model)
        keys.append((shorten(line or "prompt", 60), "") if model is None else (model, line))
    return list(zip(candidate_names(keys), models, strict=True))


def _task(header: _Header, cells: Sequence[str]) -> FoundTask:
    given = {name: cells[at] for at, name in header.variables}
    description = cells[header.description] if header.description is not None else ""
    text = "\n".join(f"{name}: {value}" for name, value in given.items())
    digest = hashlib.sha256(f"{description}\x1f{text}".encode()).hexdigest()[:10]
    first = next((value for value in given.values() if value), "test")
    return FoundTask(
        id=f"{shorten(description, 60)} {digest}" if description else digest,
        thing=description or shorten(first, 60).replace("\n", " "),
        prompt=(Message(role="user", content=text),) if text else (),
        metadata={"vars": dict(given)},
    )


class _Output(NamedTuple):
    status: str
    score: str
    text: str
    reason: str


def _output(prompt: _Prompt, cells: Sequence[str]) -> _Output | None:
    """Return a prompt's cells; None if the test was not run with the prompt."""
    if prompt.status is None or prompt.score is None:
        match = _CELL.fullmatch(cells[prompt.text])
        return (
            None
            if match is None
            else _Output(match["status"], match["score"], match["text"], match["reason"] or "")
        )
    reason = cells[prompt.reason] if prompt.reason is not None else ""
    output = _Output(cells[prompt.status], cells[prompt.score], cells[prompt.text], reason)
    return output if output.status else None


def _value(output: _Output) -> MetricValue:
    score = cell_number(output.score) if output.status != "ERROR" else None
    return MetricValue(
        criterion="",
        value=score,
        judge="promptfoo",
        by=GradedBy.MODEL,
        reason=output.reason,
        assumed=True,
    )


def _records(
    output: _Output | None, task: str, candidate: str, trial: int, where: str, grades: MetricGrades
) -> Iterator[Found]:
    if output is None:
        yield Skipped(where=where, why=f"has no verdict of {candidate!r}.")
    elif output.status == "ERROR":
        failure = Failure(
            kind="error",
            fault=Fault.PROVIDER,
            detail=shorten(output.reason or output.text or "no message"),
        )
        yield FoundResponse(
            task=task, candidate=candidate, trial=trial, where=where, failure=failure
        )
    else:
        yield FoundResponse(
            task=task, candidate=candidate, trial=trial, where=where, content=output.text
        )
        yield from grades.assessments(
            [_value(output)], task=task, candidate=candidate, trial=trial, where=where
        )
