"""AlpacaEval: `model_outputs.json` (a model's outputs) and `annotations.json` (a judge's
preferences).

Based on tatsu-lab/alpaca_eval's `example/`, `results/` and `src/alpaca_eval/` from 2023 to 2025. An
output holds `instruction`, sometimes `input`, `output` and `generator`; an annotation holds both
outputs with their generators, the `annotator` and the `preference`: 1 or 2 for the preferred
output, 1.5 (formerly 0) for a tie, and values between 1 and 2 from the weighted evaluators, which
derive a probability from the judge's token likelihoods. The files contain no ids, so a digest of
the instruction identifies a task; this matches outputs and annotations across files.

Annotations are preferences (`preferences`). Those of a named annotator await review; those of
numbered people count.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from assay.plugins import (
    PREFERENCE,
    PREFERENCE_KIND,
    Found,
    FoundCandidate,
    FoundResponse,
    FoundRun,
    FoundTask,
    GradedBy,
    JsonObject,
    Noted,
    Shape,
    Skipped,
    as_messages,
    as_number,
    as_object,
    as_text,
    explained_share,
    first_rows,
    foreign_names,
    objects_of,
    preference_assessment,
    read_rows,
    to_text,
)

if TYPE_CHECKING:
    from assay.plugins import FileSample, InputFile, ReadOptions


if TYPE_CHECKING:
    from collections.abc import Iterator


NAME: Final = "alpaca_eval"

_SIDES: Final = ("1", "2")

_NAMES: Final = foreign_names(__name__)
_OUTPUT: Final[Shape] = dict.fromkeys(_NAMES["output"])
_ANNOTATION: Final[Shape] = {**_OUTPUT, **dict.fromkeys(_NAMES["annotation"])}


def recognise(sample: FileSample) -> float | None:
    """Recognise rows with an instruction and one or two outputs, each with its generator."""
    if b'"instruction"' not in sample.head:
        return None
    rows = first_rows(sample, 20)
    if not rows:
        return None
    if all(_is_annotation(row) for row in rows):
        return explained_share(rows, _ANNOTATION)
    return explained_share(rows, _OUTPUT) if all(_is_output(row) for row in rows) else None


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run with a model's outputs or the pairs that a judge compared."""
    names: dict[str, None] = {}
    compared = False
    for row, _ in objects_of(source):
        compared = compared or _is_annotation(row)
        for key in ("generator", "generator_1", "generator_2"):
            name = as_text(row.get(key))
            if name is not None:
                names.setdefault(name)
    if options.candidate is not None and len(names) == 1:
        names = {options.candidate: None}
    yield FoundRun(
        suite=options.dataset or NAME,
        format=NAME,
        candidates=tuple(
            FoundCandidate(name=name, metadata=options.model_info if len(names) == 1 else {})
            for name in names
        ),
        rubric=(PREFERENCE,) if compared else (),
        provenance={"kind": PREFERENCE_KIND} if compared else {},
    )
    yield from _rows(
        source,
        next(iter(names), None) if options.candidate is not None and len(names) == 1 else None,
    )


def _is_output(row: JsonObject) -> bool:
    return "instruction" in row and "output" in row and "generator" in row


def _is_annotation(row: JsonObject) -> bool:
    return all(key in row for key in ("instruction", "output_1", "output_2", "preference"))


def _rows(source: InputFile, named: str | None) -> Iterator[Found]:
    asked: dict[str, int] = {}
    tasks: set[str] = set()
    probabilities, probability_at = 0, ""
    for row, where in read_rows(source):
        if isinstance(row, str):
            yield Skipped(where=where, why=row)
            continue
        if not _is_output(row) and not _is_annotation(row):
            yield Skipped(
                where=where,
                why="is neither an output (`instruction`, `output`, `generator`) nor an annotation.",
            )
            continue
        prompt = "\n\n".join(
            part for part in (as_text(row.get("instruction")), as_text(row.get("input"))) if part
        )
        task = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        judge = to_text(row.get("annotator")) or "annotator"
        key = f"{task} {judge if _is_annotation(row) else row['generator']} {row.get('generator_1')} {row.get('generator_2')}"
        asked[key] = asked.get(key, 0) + 1
        if asked[key] > 1:  # the data set itself contains one instruction twice
            task = f"{task}-{asked[key]}"
        if task not in tasks:
            tasks.add(task)
            data = as_text(row.get("dataset"))
            yield FoundTask(
                id=task,
                thing=prompt[:60],
                prompt=as_messages(prompt),
                tags=() if data is None else (data,),
            )
        if _is_output(row):
            generator = named or as_text(row["generator"])
            if generator is None or row["output"] is None:
                yield Skipped(where=where, why="lacks `generator` or `output`.")
                continue
            yield FoundResponse(
                task=task, candidate=generator, trial=1, where=where, content=to_text(row["output"])
            )
            continue
        first, second = (
            as_text(row.get(f"generator_{side}")) or f"output_{side}" for side in _SIDES
        )
        if first == second:
            yield Skipped(where=where, why=f"compares {first!r} with itself.")
            continue
        for name, side in zip((first, second), _SIDES, strict=True):
            if row[f"output_{side}"] is not None:
                yield FoundResponse(
                    task=task,
                    candidate=name,
                    trial=1,
                    where=where,
                    content=to_text(row[f"output_{side}"]),
                )
        raw = as_number(row["preference"])
        points = _points(raw)
        if points is not None and points not in (0.0, 0.5, 1.0):
            probabilities += 1
            probability_at = probability_at or where
        person = isinstance(row.get("annotator"), int)
        yield preference_assessment(
            first,
            second,
            points,
            task=task,
            judge=f"annotator {judge}" if person else judge,
            by=GradedBy.PERSON if person else GradedBy.MODEL,
            where=where,
            reply=None if person else _reply(row),
        )
    if probabilities:
        what = f"{probabilities:,} preferences are probabilities, not choices; Assay keeps them as scores between 0 and 1."
        yield Noted(where=probability_at, what=what)


def _points(raw: float | None) -> float | None:
    """Return the points of the first output: a preference runs from 1 (the first) to 2 (the
    second); 0 was once a tie.
    """
    if raw is None or not (raw == 0 or 1 <= raw <= 2):
        return None
    return 0.5 if raw == 0 else 2.0 - raw


def _reply(row: JsonObject) -> str:
    """Return the judge's reply (if the file has it) and the preference, because many replies are a
    single letter.
    """
    completion = row.get("raw_completion")
    answer = as_object(completion)
    words = (
        as_text(completion)
        or as_text(answer.get("text"))
        or as_text(as_object(answer.get("message")).get("content"))
    )
    verdict = f"preference: {to_text(row['preference'])}"
    return verdict if words is None else f"{words}\n\n{verdict}"
