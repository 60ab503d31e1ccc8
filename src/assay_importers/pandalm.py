"""PandaLM's test set: pairs of answers with labels by three people, and files with verdicts by
automatic judges.

Based on WeOpenML/PandaLM at 3871806e (`data/testset-v1.json` and the two verdict files). A row of
the test set holds `idx`, `instruction`, `input`, two responses, their candidates in `cmp_key`
(`A_B`), and `annotator1` and so on with 1, 2 or 0 for a tie. A verdict file holds `idx` and
`NAME_result` (1, 2, `Tie` or 0, or other words) with `NAME_reason`; it has neither texts nor
candidates, so it is read together with the test set that has the same `idx`.

Each row is a task. People's labels need no review; judges' verdicts await review. All are
preferences (`preferences`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
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
    Noted,
    NotJson,
    ReadOptions,
    Shape,
    Skipped,
    as_id,
    as_list,
    as_messages,
    as_object,
    as_text,
    explained_share,
    parse_json,
    preference_assessment,
    read_document,
    shorten,
    to_text,
)

NAME: Final = "pandalm"

_POINTS: Final = {"1": 1.0, "2": 0.0, "0": 0.5, "tie": 0.5}


def recognise(sample: FileSample) -> float | None:
    """Recognise rows with `cmp_key` and two responses, or with `idx` and a verdict."""
    if b'"idx"' not in sample.head:
        return None
    rows = [as_object(row) for row in as_list(sample.document)[:20]]
    if not rows:
        return None
    if all("cmp_key" in row and "response1" in row for row in rows):
        return explained_share(rows, _row_shape(rows))
    return (
        explained_share(rows, _row_shape(rows)) if all(_is_verdict(row) for row in rows) else None
    )


def companions(source: InputFile, others: Sequence[InputFile]) -> Collection[InputFile]:
    """Return the verdict files in the folder of a test set."""
    if not any("cmp_key" in as_object(row) for row in as_list(source.sample.document)[:1]):
        return ()
    return [
        other
        for other in others
        if other.folder == source.folder
        # `[0]` replaces the rows of an empty file, for which `all` would be true.
        and all(_is_verdict(as_object(row)) for row in as_list(other.sample.document)[:20] or [0])
    ]


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield the pairs with their labels, and the verdicts of the companions."""
    rows = as_list(read_document(source))
    if not any("cmp_key" in as_object(row) for row in rows):
        why = "holds verdicts on pairs whose texts and models are in another file; import it together with its test set."
        yield Skipped(where=source.name, why=why)
        return
    pairs: dict[str, tuple[str, str]] = {}
    records: list[
        Found
    ] = []  # kept until all candidates are known, because the run must be yielded first
    for number, row in enumerate(rows, 1):
        records.extend(_row(as_object(row), f"{source.name}#{number}", pairs))
    names = sorted({name for pair in pairs.values() for name in pair})
    yield FoundRun(
        suite=options.dataset or "pandalm",
        format=NAME,
        candidates=tuple(FoundCandidate(name=name) for name in names),
        rubric=(PREFERENCE,),
        provenance={"kind": PREFERENCE_KIND},
    )
    yield from records
    for file in options.beside.get("companions", ()):
        yield from _verdicts(file, pairs, _judge(file.stem, source.stem))


def _row_shape(rows: Sequence[JsonObject]) -> Shape:
    """Return the keys of pairs and verdicts; some keys contain the name of an annotator or
    judge.
    """
    named = (
        key
        for row in rows
        for key in row
        if key.startswith("annotator") or key.endswith(("_result", "_reason", "_reference"))
    )
    return dict.fromkeys(
        (
            "idx",
            "instruction",
            "input",
            "motivation_app",
            "response1",
            "response2",
            "cmp_key",
            *named,
        )
    )


def _is_verdict(row: JsonObject) -> bool:
    return "idx" in row and "cmp_key" not in row and any(key.endswith("_result") for key in row)


def _judge(stem: str, pairs_stem: str) -> str:
    """Return the judge's name: its file name without the part that it shares with the test set's
    file name.
    """
    return stem.removesuffix(pairs_stem).rstrip("-_. ") or stem


def _row(row: JsonObject, where: str, pairs: dict[str, tuple[str, str]]) -> Iterator[Found]:
    task = as_id(row.get("idx"))
    names = str(row.get("cmp_key", "")).split("_")
    if task is None or len(names) != 2 or not all(names) or names[0] == names[1]:
        yield Skipped(
            where=where, why="does not have two candidates in `cmp_key` (`A_B`), or has no `idx`."
        )
        return
    if task in pairs:
        yield Skipped(where=where, why=f"repeats `idx` {task}; the first is kept.")
        return
    pairs[task] = (names[0], names[1])
    prompt = "\n\n".join(
        part for part in (as_text(row.get("instruction")), as_text(row.get("input"))) if part
    )
    app = as_text(row.get("motivation_app"))
    yield FoundTask(
        id=task,
        prompt=as_messages(prompt),
        tags=() if app is None else (app,),
        metadata={"pair": [*names]},
    )
    for name, key in zip(names, ("response1", "response2"), strict=True):
        answer = row.get(key)
        if answer is None:
            yield Skipped(where=where, why=f"has no `{key}`.")
            continue
        yield FoundResponse(
            task=task, candidate=name, trial=1, where=where, content=to_text(answer)
        )
        if not isinstance(answer, str):
            what = f"has {to_text(answer)[:40]} under `{key}`, which is not text; Assay keeps it as text."
            yield Noted(where=where, what=what)
    for key, value in row.items():
        if not key.startswith("annotator"):
            continue
        points = _POINTS.get(to_text(value).lower())
        if points is None:
            yield Skipped(
                where=where, why=f"has {shorten(value, 40)!r} under `{key}`, not 0, 1 or 2."
            )
            continue
        yield preference_assessment(
            *pairs[task], points, task=task, judge=key, by=GradedBy.PERSON, where=where
        )


def _verdicts(source: InputFile, pairs: dict[str, tuple[str, str]], judge: str) -> Iterator[Found]:
    try:
        rows = as_list(parse_json(source.read()))
    except NotJson as error:
        yield Skipped(where=source.name, why=str(error))
        return
    seen: set[str] = set()
    for number, item in enumerate(rows, 1):
        row, where = as_object(item), f"{source.name}#{number}"
        task = as_id(row.get("idx"))
        key = next((name for name in row if name.endswith("_result")), None)
        if task is None or key is None or task not in pairs or task in seen:
            why = (
                "repeats a verdict; the first is kept."
                if task in seen
                else "is not a verdict on a pair of the test set."
            )
            yield Skipped(where=where, why=why)
            continue
        seen.add(task)
        verdict = to_text(row[key])
        yield preference_assessment(
            *pairs[task],
            _POINTS.get(verdict.lower()),
            task=task,
            judge=judge,
            by=GradedBy.MODEL,
            where=where,
            reason=to_text(row.get(f"{key.removesuffix('_result')}_reason")),
            reply=verdict,
        )
