"""Generations of the BigCode evaluation harness: `generations_TASK.json`, `references_TASK.json`,
`evaluation_results.json`.

Based on `bigcode_eval/evaluator.py` and `main.py` (2024). The generations are one list per task, in
the data set's order, with the texts of the task's samples; the references are the tests. The
harness stores only the overall pass@k and no verdict on single samples, so the imported answers
have no grades; the pass@k is kept with the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
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
    InputFile,
    JsonValue,
    Noted,
    ReadOptions,
    Skipped,
    as_list,
    as_object,
    as_text,
    folder_path,
    pick,
    read_document,
    read_object,
    storable,
)

NAME: Final = "bigcode"

_PREFIXES: Final = ("generations", "references")


def recognise(sample: FileSample) -> float | None:
    """Recognise generations (a list of texts per task), references (tests), and results with the
    harness's settings.
    """
    return None if _kind(sample) is None else 0.9


def companions(source: InputFile, others: Sequence[InputFile]) -> Collection[InputFile]:
    """Return the results and the task's references, if they are in the same folder as the
    generations.
    """
    if _kind(source.sample) != "generations":
        return ()
    mine = [other for other in others if folder_path(other) == folder_path(source)]
    kinds = {other: _kind(other.sample) for other in mine}
    return [
        other
        for other in mine
        if kinds[other] == "results"
        or (kinds[other] == "references" and _task_name(other) == _task_name(source))
    ]


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run, with a task for every list of generations and a trial for every text in the
    list.
    """
    if _kind(source.sample) != "generations":
        yield Skipped(
            where=source.name,
            why="belongs to generations of the BigCode harness, which are missing. Import both together.",
        )
        return
    files = options.beside.get("companions", ())
    results = next((read_object(file) for file in files if _kind(file.sample) == "results"), {})
    references = next((_list_in(file) for file in files if _kind(file.sample) == "references"), [])
    generations = as_list(read_document(source))
    config = as_object(results.get("config"))
    suite, model = _task_name(source), as_text(config.get("model"))
    candidate = options.candidate or model or source.stem
    yield FoundRun(
        suite=options.dataset or suite,
        format=NAME,
        candidates=(FoundCandidate(name=candidate, model=model, metadata=options.model_info),),
        provenance={
            "parameters": pick(config, ("temperature", "top_p", "seed")),
            "results": storable({key: value for key, value in results.items() if key != "config"}),
            **pick(
                config,
                (
                    "n_samples",
                    "limit",
                    "limit_start",
                    "max_length_generation",
                    "revision",
                    "prompt",
                ),
            ),
        },
    )
    for number, texts in enumerate(generations):
        task = str(number)
        expected = references[number] if number < len(references) else None
        yield FoundTask(id=task, expected=(expected,) if isinstance(expected, str) else ())
        for trial, text in enumerate(as_list(texts), 1):
            failure = None
            if not isinstance(text, str):
                failure = Failure(
                    kind="no_output", fault=Fault.HARNESS, detail="the sample was not generated."
                )
            yield FoundResponse(
                task=task,
                candidate=candidate,
                trial=trial,
                where=f"{source.name}#{number}/{trial}",
                content=text if isinstance(text, str) else None,
                failure=failure,
            )
    what = "BigCode stores no verdicts on single samples, so the answers have no grades; the run keeps its pass@k."
    yield Noted(where=source.name, what=what)


def _kind(sample: FileSample) -> str | None:
    head = sample.head.lstrip()
    if head.startswith(b"["):
        items = as_list(sample.document)[:50]
        # Lists of texts also occur elsewhere; only code and tests contain these words.
        if items and all(
            isinstance(item, list) and item and all(_is_text(text) for text in item)
            for item in items
        ):
            return "generations" if b"def " in head or b"return" in head else None
        if items and all(isinstance(item, str) for item in items):
            return "references" if b"assert" in head or b"check(" in head else None
        return None
    if b'"config"' in head and b'"n_samples"' in head and b'"save_generations_path"' in head:
        return "results"
    return None


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _list_in(source: InputFile) -> list[JsonValue]:
    return as_list(source.sample.document)


def _task_name(source: InputFile) -> str:
    for prefix in _PREFIXES:
        if source.stem.startswith(f"{prefix}_"):
            return source.stem.removeprefix(f"{prefix}_")
    return source.stem
