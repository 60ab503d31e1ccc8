"""Read set files: lists of Things (tasks with each candidate's code).

Snippets become ungraded responses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from assay.domain.import_records import Found, FoundResponse, FoundRun, FoundTask, Skipped
from assay.exchange.importers import ReadOptions
from assay.exchange.parsing.explained import Shape, explained_share
from assay.exchange.parsing.input_files import FileSample, InputFile
from assay.exchange.parsing.json_rows import first_rows, read_rows
from assay.exchange.parsing.json_values import as_list, as_object

NAME: Final = "set"

_THING: Final[Shape] = dict.fromkeys(
    ("thingName", "context", "language", "snippets", "weight", "tags", "reference")
)


def recognise(sample: FileSample) -> float | None:
    rows = first_rows(sample)
    fits = all("thingName" in row and isinstance(row.get("snippets"), list) for row in rows)
    return explained_share(rows, _THING) if fits else None


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield a run in which every snippet is a response in trial 1."""
    yield FoundRun(suite=options.dataset or source.stem, format=NAME)
    for row, where in read_rows(source):
        if isinstance(row, str):
            yield Skipped(where=where, why=row)
            continue
        name = row.get("thingName")
        if not isinstance(name, str) or not name:
            yield Skipped(where=where, why="has no `thingName`.")
            continue
        context, language, family = (
            _text(row.get(key)) for key in ("context", "language", "family")
        )
        yield FoundTask(id=name, thing=name, context=context, language=language, family=family)
        snippets = row.get("snippets")
        if snippets and not isinstance(snippets, list):
            yield Skipped(where=where, why="has `snippets` that are not a list.")
        for snippet in as_list(snippets):
            fields = as_object(snippet)
            content, candidate = fields.get("content"), fields.get("name")
            if isinstance(content, str) and candidate:
                yield FoundResponse(
                    task=name, candidate=str(candidate), trial=1, where=where, content=content
                )
            else:
                yield Skipped(where=where, why="holds a snippet without a name or a content.")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
