"""LLMBar: pairs of outputs with one human label, and the verdicts of automatic judges in both
orders.

Based on princeton-nlp/LLMBar at 900616bf. `dataset.json` is a list of `input`, `output_1`,
`output_2`, `label` (1 or 2); a judge's `result.json` repeats these and adds `results`, a list of
objects keyed by setting (`swap = False`), each with the `completion` (text and stop reason) and the
parsed `winner` (`"1"`, `"2"` or `"None"`). `winner` always refers to the data's order, even if the
judge saw the outputs swapped.

The candidates are `output_1` and `output_2`; each row is a task. The label is a person's. A judge
counts as two judges, one per order of the outputs, so that statistics can show the agreement
between both orders. Only folder names identify the judge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from assay.plugins import (
    PREFERENCE,
    PREFERENCE_KIND,
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
    ReadOptions,
    Shape,
    Skipped,
    as_list,
    as_messages,
    as_object,
    as_text,
    explained_share,
    folder_path,
    lies_beneath,
    preference_assessment,
    read_document,
    shorten,
    storable,
    to_text,
)

NAME: Final = "llmbar"

_PAIR: Final = ("output_1", "output_2")
_ROW: Final[Shape] = dict.fromkeys(("input", *_PAIR, "label", "results"))
_POINTS: Final = {"1": 1.0, "2": 0.0}


def recognise(sample: FileSample) -> float | None:
    """Recognise pairs of outputs with a label but without model names, or a file with a judge's
    summary figures.
    """
    if _is_figures(sample):
        return 1.0
    if b'"output_1"' not in sample.head or b'"label"' not in sample.head:
        return None
    rows = as_list(sample.document)[:20]
    return (
        explained_share(rows, _ROW)
        if rows and all(_is_pair(as_object(row)) for row in rows)
        else None
    )


def companions(source: InputFile, others: Sequence[InputFile]) -> Collection[InputFile]:
    """Return judges' results for these pairs and files of summary figures, in the pairs' folder and
    its subfolders.
    """
    rows = as_list(source.sample.document)
    if not rows or "results" in as_object(rows[0]):
        return ()
    return [
        other
        for other in others
        if lies_beneath(folder_path(other), folder_path(source))
        and (_is_figures(other.sample) or _judges(other.sample, rows))
    ]


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield the pairs with their labels, and the verdicts in this file and its companions."""
    if _is_figures(source.sample):
        yield Skipped(
            where=source.name,
            why="contains only summary figures; import the `result.json` beside it.",
        )
        return
    companions = options.beside.get("companions", ())
    figures: dict[str, JsonValue] = {
        _judge(file): storable(file.sample.document)
        for file in companions
        if _is_figures(file.sample)
    }
    rows = [as_object(row) for row in as_list(read_document(source))]
    yield FoundRun(
        suite=options.dataset or _suite(source),
        format=NAME,
        candidates=tuple(FoundCandidate(name=name) for name in _PAIR),
        rubric=(PREFERENCE,),
        provenance={
            "kind": PREFERENCE_KIND,
            "judges_from": "folder names",
            **({"published": figures} if figures else {}),
        },
    )
    for number, row in enumerate(rows, 1):
        yield from _pair(row, str(number), f"{source.name}#{number}")
    if any("results" in row for row in rows):
        yield from _verdicts(source, rows)
    for file in companions:
        if _is_figures(file.sample):
            continue
        yield from _verdicts(file, [as_object(row) for row in as_list(file.sample.document)])


def _is_figures(sample: FileSample) -> bool:
    return b'"kappa_agreement"' in sample.head and "correct_both" in as_object(sample.document)


def _judges(sample: FileSample, pairs: Sequence[object]) -> bool:
    """True if a file contains verdicts on exactly these pairs."""
    if b'"output_1"' not in sample.head:
        return False
    rows = as_list(sample.document)
    return (
        bool(rows)
        and "results" in as_object(rows[0])
        and [_key(row) for row in rows] == [_key(row) for row in pairs]
    )


def _is_pair(row: JsonObject) -> bool:
    return all(key in row for key in ("input", *_PAIR, "label")) and "generator_1" not in row


def _key(row: object) -> tuple[object, ...]:
    return tuple(as_object(row).get(key) for key in ("input", *_PAIR))


def _suite(source: InputFile) -> str:
    parts = PurePosixPath(folder_path(source)).parts
    if "evaluators" in parts:
        parts = parts[: parts.index("evaluators")]
    return (parts[-1] if parts else "") or "llmbar"


def _judge(source: InputFile) -> str:
    parts = PurePosixPath(folder_path(source)).parts
    if "evaluators" in parts:
        parts = parts[parts.index("evaluators") + 1 :]
    return "/".join(parts[-2:]) or source.stem


def _pair(row: JsonObject, task: str, where: str) -> Iterator[Found]:
    if not _is_pair(row):
        yield Skipped(
            where=where, why="is not a pair: it lacks `input`, `output_1`, `output_2` and `label`."
        )
        return
    yield FoundTask(id=task, prompt=as_messages(row["input"]))
    for name in _PAIR:
        answer = row[name]
        if isinstance(answer, str):
            yield FoundResponse(task=task, candidate=name, trial=1, where=where, content=answer)
        else:
            yield Skipped(where=where, why=f"has a `{name}` that is not text.")
    points = _POINTS.get(to_text(row["label"]))
    if points is None:
        yield Skipped(
            where=where, why=f"has the `label` {shorten(row['label'], 40)!r}, not 1 or 2."
        )
        return
    yield preference_assessment(
        *_PAIR, points, task=task, judge="label", by=GradedBy.PERSON, where=where
    )


def _verdicts(source: InputFile, rows: Sequence[JsonObject]) -> Iterator[Found]:
    judge = _judge(source)
    for number, row in enumerate(rows, 1):
        where = f"{source.name}#{number}"
        if not _is_pair(row):
            yield Skipped(where=where, why="is not a pair with verdicts.")
            continue
        for settings in as_list(row.get("results")):
            ratings = {
                key: as_list(value)[:1]
                for key, value in as_object(settings).items()
                if key.startswith("score_")
            }
            for setting, result in as_object(settings).items():
                verdict = as_object(result)
                if "winner" not in verdict:
                    continue
                words = as_list(verdict.get("completion"))[:1] or [verdict.get("completion")]
                rated = ", ".join(
                    f"{key}: {to_text(rating)}"
                    for key, value in ratings.items()
                    for rating in value
                )
                yield preference_assessment(
                    *_PAIR,
                    _POINTS.get(to_text(verdict.get("winner"))),
                    task=str(number),
                    judge=f"{judge}, {setting}",
                    by=GradedBy.MODEL,
                    where=where,
                    reply=as_text(words[0]) or rated,
                )
