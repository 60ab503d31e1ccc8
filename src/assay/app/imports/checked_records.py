"""Check imported records, and leave out those with invalid names or very large texts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from assay.domain.import_records import (
    Found,
    FoundAssessment,
    FoundResponse,
    FoundRun,
    FoundScores,
    FoundTask,
    Skipped,
)
from assay.domain.names import LONGEST_NAME, name_problem

MAX_TEXT_BYTES: Final = 32 << 20
"""Maximum bytes of memory for the texts of one record.

One emoji makes Python use four bytes for each character of a text.
"""

_SHORT: Final = 100_000  # a text of fewer characters cannot reach the limit


def checked(records: Iterable[Found], *, source: str, suite: str | None = None) -> Iterator[Found]:
    """Yield the valid records, and a `Skipped` for each invalid record.

    Args:
        source: file name for messages about records without a position.
        suite: suite that replaces the suite named in the file.
    """
    refused = False  # the run to which the next records belong
    for record in records:
        if isinstance(record, FoundResponse):
            if refused:
                continue
            # The usual case, kept short: an import reads a million of these.
            if (
                len(record.task) + len(record.candidate) <= LONGEST_NAME
                and record.task.isprintable()
                and record.candidate.isprintable()
                and len(record.content or "") < _SHORT
            ):
                yield record
                continue
        elif isinstance(record, FoundRun):
            names_of_run = (("suite", suite or record.suite), ("batch", record.batch_id or ""))
            problem = _first_problem(names_of_run)
            refused = problem is not None
            if problem is not None:
                yield Skipped(
                    where=source,
                    why=f"{problem} Assay did not import the run; use --dataset to name another suite.",
                )
            else:
                yield from _with_usable_parts(record, source)
            continue
        elif refused and isinstance(record, FoundTask | FoundAssessment | FoundScores):
            continue
        elif isinstance(record, FoundScores):
            yield from _with_usable_rows(record, source)
            continue
        problem = _first_problem(_names_of(record)) or _size_problem(_texts_of(record))
        yield (
            record
            if problem is None
            else Skipped(where=getattr(record, "where", source), why=problem)
        )


def _first_problem(names: Iterable[tuple[str, str]]) -> str | None:
    """Return the problem of the first invalid name, as a sentence about the record; None if all
    names are valid.
    """
    for what, name in names:
        problem = name_problem(name)
        if problem is not None:
            shown = name if len(name) <= 60 else f"{name[:57]}..."
            return f"has the {what} {shown!r}, {problem}"
    return None


def _names_of(record: Found) -> Iterator[tuple[str, str]]:
    match record:
        case FoundTask():
            yield "task", record.id
            yield "family", record.family
            yield "language", record.language
            yield from (("tag", tag) for tag in record.tags)
        case FoundResponse():
            yield "task", record.task
            yield "candidate", record.candidate
        case FoundAssessment():
            yield "task", record.task
            yield "judge", record.judge
            for grade in record.grades:
                yield "candidate", grade.candidate
                yield "criterion", grade.criterion


def _texts_of(record: Found) -> Iterator[str]:
    match record:
        case FoundTask():
            yield from (record.thing or "", record.context, *record.expected)
            yield from (record.ideal or "", record.final_answer or "")
            yield from (message.content for message in record.prompt)
        case FoundResponse():
            yield record.content or ""
        case FoundAssessment():
            yield record.reply or ""
            yield from (grade.reason for grade in record.grades)


def _size_problem(texts: Iterable[str]) -> str | None:
    size = sum(sys.getsizeof(text) for text in texts)
    if size <= MAX_TEXT_BYTES:
        return None
    return f"has texts of {size / 2**20:,.0f} MB in memory; a record may have at most {MAX_TEXT_BYTES >> 20} MB."


def _with_usable_parts(run: FoundRun, source: str) -> Iterator[Found]:
    """Yield the run without candidates and criteria that have invalid names, and a `Skipped` for
    each of these.
    """
    problems = {
        part.name: problem
        for what, parts in (("candidate", run.candidates), ("criterion", run.rubric))
        for part in parts
        if (problem := _first_problem([(what, part.name)])) is not None
    }
    yield from (Skipped(where=source, why=problem) for problem in problems.values())
    if problems:
        run = replace(
            run,
            candidates=tuple(part for part in run.candidates if part.name not in problems),
            rubric=tuple(part for part in run.rubric if part.name not in problems),
        )
    yield run


def _with_usable_rows(scores: FoundScores, source: str) -> Iterator[Found]:
    tasks, candidates = {row[0] for row in scores.rows}, {row[1] for row in scores.rows}
    if (problem := _first_problem([("judge", scores.judge)])) is not None:
        yield Skipped(where=source, why=f"{problem} {len(scores.rows):,} scores are left out.")
        return
    if any(map(name_problem, tasks)) or any(map(name_problem, candidates)):
        kept = []
        for row in scores.rows:
            problem = _first_problem([("task", row[0]), ("candidate", row[1])])
            if problem is None:
                kept.append(row)
            else:
                yield Skipped(where=source, why=problem)
        scores = replace(scores, rows=kept)
    yield scores
