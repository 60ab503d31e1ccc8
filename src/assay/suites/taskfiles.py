"""Reads tasks from a JSONL, JSON, CSV, TSV or Parquet file, again for each iteration, without
keeping them all in memory.

A mapping assigns a dotted path in the row to each task key; without a mapping, the row's keys are
the task's. Problems state the file, the line, and the field's name in the row. Only JSON arrays are
read as a whole, because JSON has no lines.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path as FilePath
from typing import Any, Final, TypeAlias

from assay.domain.errors import InputError, did_you_mean
from assay.domain.suite import Task
from assay.formats.dotted_paths import value_at
from assay.formats.json_lines import file_trouble, lines_of, row_of
from assay.formats.parquet import parquet_rows
from assay.formats.separated import encoding_of, layout_of, separated_rows
from assay.suites.checks import ExternalChecks
from assay.suites.expected import EXPECTED_OR_CALLS
from assay.suites.files import BINARY, LARGEST_FILE, SIGNATURES, NamedFiles, unreadable, whole_text
from assay.suites.grammar import (
    PATH_NAME,
    DeclaredKey,
    Keys,
    Kind,
    ReadContext,
    key,
    mapping_of,
    read_text,
)
from assay.suites.located_yaml import UnreadableText, Value, deeper_than, read_json, resolved, shown
from assay.suites.problems import Locate, Location, Path, Problems, SuiteErrors, dotted
from assay.suites.scoring import SCORE
from assay.suites.tasks import TaskKeys, TaskRules, column_text, read_task

Row: TypeAlias = "tuple[int, dict[str, Value] | UnreadableText]"
"""1-based line (for JSON and Parquet, the row number), and the row or the problem with it."""

DEEPEST_ROW: Final = 50
"""Maximum levels of nesting in a row; a task needs six."""

TABLES: Final = (".csv", ".tsv", ".tab", ".parquet", ".jsonl", ".json")
"""File extensions for files with one row per task."""

LOOKED_AT: Final = 100
"""Number of rows to read in order to distinguish a misspelt path in a mapping from a rare field."""

_SEPARATED: Final = {".csv": ",", ".tsv": "\t", ".tab": "\t"}


@dataclass(frozen=True, slots=True)
class RowMapping:
    """Maps task keys, and candidates for their snippets, to dotted paths in a row.

    If both mappings are empty, rows are tasks.

    Without a path for `id`, a task is named after its line: `row-17`. `batch`: True if rows are
    lines of an OpenAI batch input file; other keys of the request body than the messages are then
    kept.
    """

    keys: Mapping[str, str]
    snippets: Mapping[str, str]
    batch: bool = False


BATCH: Final = RowMapping(
    {"id": "custom_id", "prompt": "body.messages", "expected": "expected"}, {}, batch=True
)


LAST_MESSAGE: Final = ".-1.content"
"""Ends the path of a reference that is the last message of the prompt's conversation, such as
`messages.-1.content`.
"""

_REFERENCES: Final = ("expected", "ideal", "final_answer")


def last_answer(conversation: Value) -> str | None:
    """Return the text of the assistant's answer that ends a conversation; None if none does, or if
    nothing precedes it.
    """
    if not isinstance(conversation, list) or len(conversation) < 2:
        return None
    message = conversation[-1]
    text = (
        message.get("content")
        if isinstance(message, dict) and message.get("role") == "assistant"
        else None
    )
    return text if isinstance(text, str) and text else None


def _read_row_paths(value: Value, path: Path, context: ReadContext) -> str | dict[str, str] | None:
    if not isinstance(value, dict):
        return read_text(value, path, context)
    named = {
        name.strip(): read_text(inner, (*path, name), context) for name, inner in value.items()
    }
    return {name: row_path for name, row_path in named.items() if row_path is not None}


_ROW_PATH: Final[Kind[str]] = Kind(read_text, {"type": "string", "minLength": 1})
_BY_CANDIDATE: Final = Kind(
    _read_row_paths,
    {"anyOf": [_ROW_PATH.schema, {"type": "object", "additionalProperties": _ROW_PATH.schema}]},
)
_ROW_KEYS: Final = mapping_of(
    {
        name: DeclaredKey(_BY_CANDIDATE if name == "snippets" else _ROW_PATH)
        for name in TaskKeys.table.keys
    },
    dict[str, Any],
)


def _read_row_mapping(value: Value, path: Path, context: ReadContext) -> RowMapping | None:
    before = len(context)
    keys = _ROW_KEYS.read(value, path, context)
    if keys is None:
        return None
    if not value:
        context.report(
            path, "is empty, expected a mapping of task keys to fields, such as {prompt: question}."
        )
    snippets = keys.pop("snippets") if isinstance(keys.get("snippets"), dict) else {}
    return RowMapping(keys, snippets) if len(context) == before else None


class TaskFileKeys(Keys):
    """A file of tasks."""

    file = key(
        PATH_NAME,
        "JSONL, JSON, CSV, TSV or Parquet, relative to the suite.",
        required="Give the file of tasks, or write the tasks as a list.",
    )
    map = key(
        Kind(_read_row_mapping, _ROW_KEYS.schema),
        "The field of a row for each key of a task, as a dotted path.",
    )
    score = key(SCORE, "Scoring for tasks whose rows do not set `score`.")


def first_rows(file: FilePath) -> list[dict[str, Value]]:
    """Return the first rows of a file of tasks; raises `InputError` if a row cannot be read, or if
    there are no rows.
    """
    if problem := unreadable(file):
        raise InputError(str(file), f"{problem}.")
    rows: list[dict[str, Value]] = []
    for number, row in islice(_reader(file)(file), LOOKED_AT):
        if isinstance(row, UnreadableText):
            where = f"{file}:{row.line or number}" if row.line or number else str(file)
            raise InputError(where, row.problem, remedy=row.remedy)
        rows.append(row)
    if not rows:
        raise InputError(str(file), "holds no rows.")
    return rows


def references_in(file: FilePath, field: str, *, most: int) -> list[str]:
    """Return a field of the first `most` rows as the text of a task's `expected`; rows without a
    readable value are left out.
    """
    references: list[str] = []
    files = NamedFiles(file.parent)
    for number, row in islice(_reader(file)(file), most):
        value = None if isinstance(row, UnreadableText) else _picked(row, field)
        # Problems with a value are reported when the suite is checked, so this context is thrown
        # away.
        unheard = ReadContext(
            partial(_in_row_number, file, number), checks=ExternalChecks(), files=files
        )
        text = None if value is None else EXPECTED_OR_CALLS.read(value, (), unheard)
        if text is not None and text.strip():
            references.append(text)
    return references


def _in_row_number(file: FilePath, number: int, path: Path, _at_key: bool) -> Location:
    return Location(str(file), number, dotted(path))


KEPT_BYTES: Final = 4 * 2**20
"""Files up to this size (50,000 short tasks, about 60 MB of objects) are parsed once, and larger
files at every iteration, so that memory does not grow with them.
"""


class TaskFile:
    """The tasks of a file, read again at every iteration unless the file is small.

    `exact_by_default`: True if neither the rows nor the suite set a scoring method. Iterating
    raises `SuiteErrors` if the file has changed since the suite was loaded.
    """

    def __init__(
        self,
        file: FilePath,
        named: str,
        mapping: RowMapping,
        rules: TaskRules,
        context: ReadContext,
    ) -> None:
        self.file = file
        self.named = named
        self._mapping = mapping
        self._rules = rules
        self._context = context
        self._rows = _reader(file)
        self._separated = file.suffix.lower() in _SEPARATED
        self._numbered = file.suffix.lower() in (".json", ".parquet")
        self.exact_by_default = False
        self._state: tuple[int, int] | None = None
        self._count = 0
        self._kept: list[Task] | None = None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Task]:
        # Size and modification time are compared instead of content, because reading a large file
        # again would double the time that a run takes to start.
        if self._state != self._now() or unreadable(self.file) is not None:
            problems = Problems(self.locate(0))
            problems.report((), "was changed while Assay used it.", "Load the suite again.")
            raise SuiteErrors(problems.errors())
        if self._kept is not None:
            yield from self._kept
            return
        for number, row in self._rows(self.file):
            context = self._fresh_context(number)
            task = self._task(number, row, context)
            if context or task is None:
                raise SuiteErrors(context.errors())
            yield task

    def check(self) -> bool:
        """Read the file once and report its problems; return True if any task has a weight above 0.

        This keeps eight bytes per task to find repeated ids; for a small file it also keeps the
        tasks.
        """
        self._state = self._now()
        self._rules.same_columns = self._separated or self.file.suffix.lower() == ".parquet"
        # Keeping a small file in memory is cheaper than parsing it again, because the engine
        # iterates several times.
        kept: list[Task] | None = [] if self.file.stat().st_size <= KEPT_BYTES else None
        ids = _Hashes()
        weighs = False
        for number, row in self._rows(self.file):
            task = self._task(number, row, self._context.at(self.locate(number)))
            self._count += 1
            if task is None:
                continue
            ids.add(task.id)
            weighs = weighs or task.weight > 0
            if kept is not None:
                kept.append(task)
        if not self._count:
            self._context.at(self.locate(0)).report((), "holds no tasks.")
        if repeated := ids.repeated():
            self._report_repeated(repeated)
        self._kept = None if self._context else kept
        return weighs

    def is_batch(self) -> bool:
        """True if the first line belongs to a batch input file; otherwise reports it."""
        number, row = next(self._rows(self.file), (0, UnreadableText(None, "holds no tasks.")))
        if isinstance(row, dict) and not ("custom_id" in row and "body" in row):
            row = UnreadableText(
                None,
                "is not a line of an OpenAI batch input file: it has no `custom_id` or no `body`.",
                f"Propose a suite for it: assay init --from {self.named}",
            )
        if isinstance(row, dict):
            return True
        self._context.at(self.locate(number)).report((), row.problem, row.remedy)
        return False

    def report_misspelt(self, path: Path) -> bool:
        """Report at `path` each path in the mapping that no row has.

        Returns True if any was reported.
        """
        # A field that is missing in the first 100 rows may still occur later, so only near misses
        # and required keys are reported.
        rows = [row for _, row in islice(self._rows(self.file), LOOKED_AT) if isinstance(row, dict)]
        before = len(self._context)
        for name, named in [*self._mapping.keys.items(), *self._mapping.snippets.items()]:
            # A batch file may have no `expected` at all, which is not a misspelling.
            if (
                not rows
                or self._mapping.batch
                or any(_picked(row, named) is not None for row in rows)
            ):
                continue
            known = list(dict.fromkeys(row_path for row in rows for row_path in _paths(row)))
            hint = did_you_mean(named, known)
            if hint or name in ("id", "prompt", "expected", "snippets"):
                inner = (*path, name) if name in self._mapping.keys else (*path, "snippets", name)
                remedy = "" if hint else f"They have: {', '.join(known[:12])}."
                problem = f"is {named!r}, which none of the first {len(rows)} rows of {self.named} has.{hint}"
                self._context.report(inner, problem, remedy)
        return len(self._context) > before

    def digest(self) -> str:
        """Return the first 32 hexadecimal digits of SHA-256 over the file's bytes."""
        with self.file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()[:32]

    def locate(self, number: int) -> Locate:
        """Return a function that locates a field in one row, by the field's name in that row."""

        def location(path: Path, _at_key: bool) -> Location:
            first, rest = (path[0], path[1:]) if path else ("", ())
            name = self._mapping.keys.get(str(first), str(first))
            if first == "snippets" and rest and rest[0] in self._mapping.snippets:
                name, rest = self._mapping.snippets[str(rest[0])], rest[1:]
            if self._numbered and number:
                return Location(
                    self.named, 0, dotted((number - 1, *((name,) if name else ()), *rest))
                )
            return Location(self.named, number, dotted((name, *rest)) if name else "")

        return location

    def _fresh_context(self, number: int) -> ReadContext:
        return ReadContext(
            self.locate(number), checks=self._context.checks, files=self._context.files
        )

    def _now(self) -> tuple[int, int]:
        try:
            state = self.file.stat()
        except OSError:
            return (-1, -1)
        return state.st_size, state.st_mtime_ns

    def _task(
        self, number: int, row: dict[str, Value] | UnreadableText, context: ReadContext
    ) -> Task | None:
        if isinstance(row, UnreadableText):
            line = row.line
            here = (
                context
                if line is None
                else context.at(lambda _path, _at_key: Location(self.named, line, ""))
            )
            here.report((), row.problem, row.remedy)
            return None
        mapping = self._mapping
        if mapping.batch:
            _check_batch_row(row, context)
        wanted = self._named(row)
        if mapping.keys or mapping.snippets:
            values = self._mapped(number, row)
        else:
            # If rows are tasks, their only keys are those of a task and the columns that a prompt
            # names.
            wanted = [name for name in wanted if name not in TaskKeys.table.keys]
            values = {name: value for name, value in row.items() if name not in wanted}
        columns = {
            name: column_text(value)
            for name in wanted
            if (value := _in_row(row, name)) is not _ABSENT
        }
        if self._separated:
            values = {name: _typed(name, cell) for name, cell in values.items() if cell != ""}
        if "id" in mapping.keys and "id" not in values:
            context.report((), f"has no `{mapping.keys['id']}`, from which the task's id is taken.")
            return None
        if "prompt" in mapping.keys and "prompt" not in values and not mapping.batch:
            problem = "is empty, so the candidates would get no prompt."
            context.report(("prompt",), problem, "Write the prompt, or leave the row out.")
            return None
        task = read_task(values, (), context, self._rules, columns=columns, of_row=row)
        if task is not None and mapping.batch:
            body = row.get("body")
            rest = (
                {name: value for name, value in body.items() if name != "messages"}
                if isinstance(body, dict)
                else {}
            )
            return replace(task, extra={**task.extra, "body": rest})
        return task

    def _named(self, row: dict[str, Value]) -> list[str]:
        """Return the columns that prompts use, in the row's order; the order of a set would differ
        between processes.
        """
        named = self._rules.columns
        return (
            [*(name for name in row if name in named), *sorted(named.difference(row))]
            if named
            else []
        )

    def _mapped(self, number: int, row: dict[str, Value]) -> dict[str, Value]:
        mapping = self._mapping
        values: dict[str, Value] = {
            name: value
            for name, path in mapping.keys.items()
            if (value := _picked(row, path)) is not None
        }
        prompt = mapping.keys.get("prompt")
        last = [
            name
            for name in _REFERENCES
            if prompt is not None and mapping.keys.get(name) == f"{prompt}{LAST_MESSAGE}"
        ]
        if last:
            conversation = values.get("prompt")
            answer = last_answer(conversation)
            values.update(dict.fromkeys(last, answer))
            # A candidate must not be sent the right answer.
            if answer is not None and isinstance(conversation, list):
                values["prompt"] = conversation[:-1]
            else:
                for name in last:
                    del values[name]
        if mapping.snippets:
            values["snippets"] = {
                name: value
                for name, path in mapping.snippets.items()
                if (value := _picked(row, path)) is not None
            }
        if "id" not in mapping.keys:
            values["id"] = f"row-{number}"
        return values

    def _report_repeated(self, hashes: frozenset[int]) -> None:
        first: dict[str, int] = {}
        for number, row in self._rows(self.file):
            task = self._task(number, row, self._fresh_context(number))
            if task is None or _hashed(task.id) not in hashes:
                continue
            if task.id in first:
                problem = f"is {shown(task.id)}, as on line {first[task.id]}."
                here = self._context.at(self.locate(number))
                here.report(("id",), problem, "Give every task its own id.")
            first.setdefault(task.id, number)


class _Hashes:
    """Finds texts that occur more than once, using eight bytes per text; a set would take twenty
    times as much.
    """

    _PARTS = 64

    def __init__(self) -> None:
        self._parts = [array("Q") for _ in range(self._PARTS)]

    def add(self, text: str) -> None:
        number = _hashed(text)
        self._parts[number % self._PARTS].append(number)

    def repeated(self) -> frozenset[int]:
        return frozenset(
            number
            for part in self._parts
            if len(set(part)) < len(part)
            for number, count in Counter(part).items()
            if count > 1
        )


def _hashed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _check_batch_row(row: dict[str, Value], context: ReadContext) -> None:
    url = row.get("url")
    if isinstance(url, str) and not url.endswith("/chat/completions"):
        context.report(
            ("url",), f"is {shown(url)}, expected a chat completion: /v1/chat/completions."
        )


def _picked(row: Mapping[str, Value], named: str) -> Value:
    """Return the value at a dotted path, or None; empty text counts as absent."""
    value: Value = value_at(row, named)
    return None if value == "" else value


_ABSENT: Final = object()


def _in_row(row: Mapping[str, Value], named: str) -> Any:
    """Return the value at a dotted path, or `_ABSENT`, because null and empty text are valid values
    of a column.
    """
    value = value_at(row, named)
    return _ABSENT if value is None and named not in row else value


def _paths(row: Mapping[str, Value]) -> Iterator[str]:
    """Yield the dotted paths of a row, two levels deep."""
    for name, value in row.items():
        yield name
        if isinstance(value, dict):
            yield from (f"{name}.{inner}" for inner in value)


# --- rows of each format --------------------------------------------------------------------------


def _reader(file: FilePath) -> Callable[[FilePath], Iterator[Row]]:
    match file.suffix.lower():
        case ".csv" | ".tsv" | ".tab":
            return _separated_rows
        case ".parquet":
            return _parquet_rows
        case ".json":
            return _json_rows
        case _:
            return _jsonl_rows


def _as_row(value: Value) -> dict[str, Value] | UnreadableText:
    return (
        value
        if isinstance(value, dict)
        else UnreadableText(None, f"is {shown(value)}, expected an object.")
    )


def _jsonl_rows(file: FilePath) -> Iterator[Row]:
    with file.open("rb") as stream:
        head = stream.read(1 << 16)
        if encoding_of(head) != "utf-8-sig":
            yield from _wide_jsonl_rows(file)
            return
        problem = (
            BINARY if head.startswith(SIGNATURES) else file_trouble(head) if head.strip() else None
        )
        if problem is not None:
            yield 0, UnreadableText(None, problem)
            return
        stream.seek(0)
        for number, line in enumerate(lines_of(stream, most=LARGEST_FILE), 1):
            if line and not line.isspace():
                yield number, _json_line(line)


def _wide_jsonl_rows(file: FilePath) -> Iterator[Row]:
    """Yield the rows of JSON Lines in UTF-16, which are decoded at once."""
    try:
        text = whole_text(file)
    except UnreadableText as error:
        yield error.line or 0, error
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, _json_line(line.encode())


def _json_line(line: bytes) -> dict[str, Value] | UnreadableText:
    row = row_of(line)
    if isinstance(row, str):
        return UnreadableText(None, row)
    # orjson stops at about 1,000 levels; the code that reads the values below is recursive.
    if line.count(b"[") + line.count(b"{") > DEEPEST_ROW and deeper_than(row, levels=DEEPEST_ROW):
        return UnreadableText(None, f"is nested deeper than {DEEPEST_ROW} levels.")
    return row


def _json_rows(file: FilePath) -> Iterator[Row]:
    try:
        document = read_json(whole_text(file))
    except UnreadableText as error:
        yield error.line or 0, error
        return
    rows = listed_rows(document.value)
    if rows is None:
        problem = f"is {shown(document.value)}, expected a list of objects, or an object with one such list."
        yield 0, UnreadableText(None, problem)
        return
    for position, value in enumerate(rows):
        yield position + 1, _as_row(value)


def listed_rows(document: Value) -> list[Value] | None:
    """Return a JSON list, or the only list of objects among the values of an object; None for any
    other document.
    """
    if isinstance(document, dict):
        lists = [
            rows
            for rows in document.values()
            if isinstance(rows, list) and rows and isinstance(rows[0], dict)
        ]
        return lists[0] if len(lists) == 1 else None
    return document if isinstance(document, list) else None


def _separated_rows(file: FilePath) -> Iterator[Row]:
    with file.open("rb") as stream:
        layout = layout_of(stream.read(1 << 16), usual=_SEPARATED[file.suffix.lower()])
        stream.seek(0)
        # Not kept in a variable: the rows must be closed before the stream that they read.
        for line, row in separated_rows(
            stream,
            delimiter=layout.delimiter,
            strict=True,
            skip=layout.skip,
            encoding=layout.encoding,
        ):
            if isinstance(row, str):
                yield line, UnreadableText(None, row)
            else:
                yield line, {**row}


def _typed(name: str, cell: Value) -> Value:
    """Convert a cell to the type that its task key expects: numbers, and tags separated by `;` or
    `,`.
    """
    if not isinstance(cell, str):
        return cell
    if name in ("weight", "trials"):
        return resolved(cell.strip())
    return list(cell.replace(",", ";").split(";")) if name == "tags" else cell


def _parquet_rows(file: FilePath) -> Iterator[Row]:
    with file.open("rb") as stream:
        for number, row in parquet_rows(stream):
            yield (
                number,
                UnreadableText(None, row) if isinstance(row, str) else _as_row(_json_like(row)),
            )


def _json_like(value: object) -> Value:
    """Convert a Parquet value to JSON's types; dates, decimals and the like become text."""
    if isinstance(value, dict):
        return {str(key): _json_like(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_json_like(below) for below in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
