"""Suites written in Python with `assay.Suite`, `Task`, `Candidate` and `scorer`; checked like suite
files.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, fields, replace
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from assay.app.python_api.functions_as_text import scorer_file
from assay.app.suites import model_candidate, read_suite
from assay.domain.digest import digest
from assay.domain.errors import InputError
from assay.domain.model import of_program
from assay.domain.prompts import columns_named
from assay.formats.dotted_paths import value_at
from assay.providers.programs.callables import callable_program
from assay.suites.loading import GivenSuite
from assay.suites.tasks import TaskKeys, slug

if TYPE_CHECKING:
    from assay.app.settings import Settings
    from assay.domain.programs import Function
    from assay.domain.suite import CandidateSpec, Suite

CandidateLike: TypeAlias = "CandidateDraft | Mapping[str, object] | str | Callable[..., object]"
"""A candidate: an object, a dictionary with the keys of a suite file, a model such as
`openai/gpt-5-mini`, or a function.
"""

Score: TypeAlias = "str | Mapping[str, object] | ScorerDraft | Callable[..., object]"
"""A scoring method as a name, as a mapping with options, or as a function of (response, reference,
options).
"""


class ScorerDraft:
    """A scorer that `assay.scorer` created from a function. Calling it calls the function."""

    def __init__(
        self,
        function: Callable[..., object],
        *,
        name: str = "",
        options: Mapping[str, object] | None = None,
    ):
        self.function = function
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.options = dict(options or {})
        update_wrapper(self, function, updated=())

    def __call__(self, *arguments: Any, **named: Any) -> object:
        return self.function(*arguments, **named)

    def __repr__(self) -> str:
        return f"<scorer {self.name}>"


@overload
def scorer(function: Callable[..., object], /) -> ScorerDraft: ...
@overload
def scorer(
    *, name: str = "", **options: object
) -> Callable[[Callable[..., object]], ScorerDraft]: ...
def scorer(
    function: Callable[..., object] | None = None, /, *, name: str = "", **options: object
) -> Any:
    """Turn a function into a scorer for the key `score` of a suite or task: `@assay.scorer` or
    `@assay.scorer(name=…)`.

    The function takes `(response)`, `(response, reference)` or `(response, reference, options)`. It
    returns a number from 0 to 1, True or False, a mapping with `score`, `note` and `confidence`, or
    None if it cannot decide. It runs in a child process with a time limit of 10 s.
    """
    if function is None:
        return lambda decorated: ScorerDraft(decorated, name=name, options=options)
    return ScorerDraft(function)


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateDraft:
    """A candidate: a model with prompts and parameters, a program, or a name whose answers come
    with the tasks.

    The fields are the keys of a candidate in a suite file. `python` accepts a function, or a class
    that each worker process creates once.
    """

    name: str | None = None
    model: str | None = None
    system_prompt: str | Mapping[str, object] | None = None
    prompt: str | Mapping[str, object] | None = None
    messages: Sequence[Mapping[str, object]] | None = None
    parameters: Mapping[str, object] | None = None
    python: str | Callable[..., object] | None = None
    command: str | Sequence[str] | None = None
    http: Mapping[str, object] | None = None
    agent: str | Mapping[str, object] | None = None
    timeout: float | None = None
    offline: bool | None = None
    base_url: str | None = None
    price: Mapping[str, float] | None = None
    context_tokens: int | None = None
    metadata: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDraft:
    """A task.

    The fields are the keys of a task in a suite file; a missing `id` is derived from the content.

    `snippets` contains ready answers by candidate. `columns` contains further values that prompts
    of candidates can use.
    """

    id: str | None = None
    prompt: str | Sequence[Mapping[str, object]] | None = None
    expected: object = None
    ideal: str | None = None
    final_answer: object = None
    score: Score | None = None
    snippets: Mapping[str, object] | None = None
    columns: Mapping[str, object] | None = None
    thing: str | None = None
    context: str | None = None
    system_prompt: str | None = None
    parameters: Mapping[str, object] | None = None
    weight: float | None = None
    trials: int | None = None
    tags: Sequence[str] | None = None
    family: str | None = None
    language: str | None = None
    turns: Sequence[object] | None = None
    persona: str | None = None
    grade_by: str | None = None
    tools: Sequence[object] | None = None
    tool_turns: int | None = None
    category: object = None
    difficulty: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteDraft:
    """A suite. The fields are the keys of a suite file.

    Attributes:
        tasks: `Task` objects, dictionaries, a data frame (pandas or polars), or the path of a file
            with rows.
        candidates: `Candidate` objects, dictionaries, model references such as `openai/gpt-5-mini`,
            or functions.
        score: default scoring method or function for the tasks.
        map: column of `tasks` for each key of a task, such as `{"prompt": "question", "expected":
            "answer"}`. Prompts of candidates can use any column.
    """

    name: str
    tasks: Iterable[TaskDraft | Mapping[str, object]] | Any
    candidates: CandidateLike | Iterable[CandidateLike] = ()
    score: Score | None = None
    judge: str | Mapping[str, object] | Sequence[object] | None = None
    rubric: str | Sequence[str | Mapping[str, object]] | None = None
    trials: int | None = None
    review: object = None
    tools: Sequence[object] | None = None
    tool_turns: int | None = None
    map: Mapping[str, str] = field(default_factory=dict)
    description: str | None = None
    system_prompt: str | None = None
    prompt_version: str | None = None
    parameters: Mapping[str, object] | None = None
    margin: float | str | None = None
    user: Mapping[str, object] | str | None = None
    grade_by: str | None = None
    protocol: Mapping[str, object] | None = None
    order: str | None = None
    looks: int | None = None

    def __repr__(self) -> str:
        tasks = f"{len(self.tasks)} tasks" if isinstance(self.tasks, Sized) else "tasks"
        return f"Suite({self.name!r}, {tasks}, {len(candidates_of(self.candidates))} candidates)"


SuiteLike: TypeAlias = "Suite | SuiteDraft | Mapping[str, object] | str | Path"
"""A suite: a file, an object, a dictionary with the keys of a suite file, or a suite that was
already checked.
"""


def checked_suite(
    settings: Settings, suite: SuiteDraft | Mapping[str, object], *, judge: str | None = None
) -> Suite:
    """Check a suite written in Python; raises `InputError` with all problems."""
    draft: dict[str, Any] = dict(suite) if isinstance(suite, Mapping) else _present(suite)
    name, columns = draft.get("name"), draft.pop("map", None) or {}
    reading = _Reading(columns)
    candidates = [
        reading.candidate(candidate) for candidate in candidates_of(draft.get("candidates"))
    ]
    persona = str(_mapping(draft.get("user")).get("persona") or "")
    reading.templates = (
        *_named_columns(candidates, settings.working_folder),
        *columns_named(persona),
    )
    document = {
        **draft,
        "tasks": _file_of_tasks(draft.get("tasks"), columns)
        or [reading.task(task) for task in _rows(draft.get("tasks"))],
        "candidates": candidates,
        "score": reading.score(draft.get("score")),
    }
    document = {
        key: value
        for key, value in document.items()
        if value is not None and (key != "candidates" or value)
    }
    given = GivenSuite(document=_plain(document), label=f"suite {name!r}", files=reading.files)
    # The copy of the suite in the results folder is a suite file of this name.
    path = settings.working_folder / f"{slug(str(name)) or 'suite'}.json"
    return reading.with_callables(read_suite(settings, path, judge=judge, given=given))


def candidates_of(given: object) -> tuple[Any, ...]:
    """Return one candidate, or each of an iterable, in a tuple; a model's name is one candidate and
    not a list of letters.
    """
    if given is None:
        return ()
    if (
        isinstance(given, str | Mapping | CandidateDraft)
        or callable(given)
        or not isinstance(given, Iterable)
    ):
        return (given,)
    return tuple(given)


def checked_candidate(settings: Settings, candidate: CandidateLike) -> CandidateSpec:
    """Check a candidate that is added to a run; raises `InputError` with all problems."""
    if isinstance(candidate, str):
        return model_candidate(settings, candidate)
    row = _Reading({}).candidate(candidate)
    named = {
        *columns_named(str(_plain(row))),
        *_named_columns([row], settings.working_folder),
    } - set(TaskKeys.table.keys)
    # The run's own tasks are checked when the candidate joins; this placeholder only lets the
    # reader check the candidate.
    task = {
        "id": "task",
        "prompt": "?",
        "expected": "?",
        "columns": dict.fromkeys(sorted(named), "?"),
    }
    suite = {"name": "extend", "tasks": [task], "score": "exact", "candidates": [candidate]}
    return checked_suite(settings, suite).candidates[0]


class _Reading:
    """Converts drafts to suite documents, and keeps the functions because a document cannot contain
    them.
    """

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.files: dict[str, str] = {}
        self.templates: tuple[str, ...] = ()
        self._columns = columns
        self._programs: dict[str, Function] = {}
        self._scorers: dict[int, Mapping[str, object]] = {}

    def task(self, task: object) -> object:
        values = _present(task) if isinstance(task, TaskDraft) else task
        if not isinstance(values, Mapping):
            return values
        row = {str(key): value for key, value in values.items() if not _missing(value)}
        columns = self._columns_of(row)
        row = (
            self._mapped(row)
            if self._columns
            else {key: row[key] for key in row if key not in columns}
        )
        if columns:
            row["columns"] = {**columns, **_mapping(row.get("columns"))}
        if callable(row.get("score")):
            row["score"] = self.score(row["score"])
        if "id" not in row:
            row = {"id": _id_of(row), **row}
        return row

    def _columns_of(self, row: Mapping[str, object]) -> dict[str, object]:
        """Return the columns of a row that candidates' prompts refer to; without a map, keys of the
        task are left out.
        """
        named = [
            name for name in self.templates if self._columns or name not in TaskKeys.table.keys
        ]
        return {name: value for name in named if (value := value_at(row, name)) is not None}

    def _mapped(self, row: Mapping[str, object]) -> dict[str, object]:
        """Return the columns of a row as keys of a task; columns that are not in the map are left
        out.
        """
        picked = {key: value_at(row, column) for key, column in self._columns.items()}
        return {key: value for key, value in picked.items() if not _missing(value)}

    def candidate(self, candidate: object) -> object:
        if isinstance(candidate, str):
            return candidate
        if callable(candidate):
            candidate = {"python": candidate}
        values = _present(candidate) if isinstance(candidate, CandidateDraft) else candidate
        if not isinstance(values, Mapping):
            return values
        row = {str(key): value for key, value in values.items() if value is not None}
        function, options = _function_of(row.get("python"))
        if function is None:
            return row
        name = row.setdefault("name", getattr(function, "__name__", type(function).__name__))
        settings: dict[str, Any] = {"options": options} if options else {}
        for key, setting in (("timeout", "timeout_s"), ("offline", "offline")):
            if key in row:
                settings[setting] = row[key]
        program = callable_program(function, **settings)
        self._programs[str(name)] = program
        # The document cannot hold a function, so a name stands in for it while the reader checks
        # the other keys.
        return {**row, "python": {"function": _place_of(function), "options": options}}

    def score(self, score: object) -> object:
        if not callable(score):
            return score
        if id(score) not in self._scorers:
            draft = score if isinstance(score, ScorerDraft) else ScorerDraft(score)
            if not draft.name.isidentifier():
                raise InputError(
                    f"scorer {draft.name}",
                    "has no name.",
                    remedy='Say @assay.scorer(name="close").',
                )
            file, text = scorer_file(draft.function, draft.name)
            while self.files.get(file, text) != text:
                file = f"{file.removesuffix('.py')}_.py"
            self.files[file] = text
            self._scorers[id(score)] = {f"{file}:{draft.name}": _plain(draft.options)}
        return self._scorers[id(score)]

    def with_callables(self, suite: Suite) -> Suite:
        return replace(suite, candidates=tuple(map(self._with_callable, suite.candidates)))

    def _with_callable(self, candidate: CandidateSpec) -> CandidateSpec:
        program, model = self._programs.get(candidate.name), candidate.model
        if program is None or model is None:
            return candidate
        return replace(
            candidate,
            model=replace(of_program(program), parameters=model.parameters, price=model.price),
        )


def _named_columns(candidates: Sequence[object], folder: Path) -> tuple[str, ...]:
    texts: list[str] = []
    for candidate in candidates:
        row = _mapping(candidate)
        messages = row.get("messages")
        told = [
            _mapping(message).get("content")
            for message in (messages if isinstance(messages, list | tuple) else ())
        ]
        for text in (row.get("prompt"), row.get("system_prompt"), *told):
            text = _mapping(text).get("file", text)
            if isinstance(text, str | Path):
                texts.append(_text_or_file(str(text), folder))
    return columns_named("\n".join(texts))


def _text_or_file(text: str, folder: Path) -> str:
    """Return a template, or the text of the file that it points to.

    The suite reader reports unreadable files.
    """
    if "{{" in text or "\n" in text:
        return text
    try:
        return (folder / text).read_text("utf-8-sig")
    except (OSError, ValueError):
        return text


def _function_of(value: object) -> tuple[Callable[..., object] | None, dict[str, Any]]:
    """Return the function and options in `python`, which is a function or `{function: ..., options:
    ...}`.
    """
    options = dict(_mapping(value).get("options") or {})
    function = _mapping(value).get("function", value)
    return (function, options) if callable(function) else (None, {})


def _place_of(function: Callable[..., object]) -> str:
    """Return a function's location in the format of a suite file, `module:name`."""
    name = getattr(function, "__name__", type(function).__name__)
    module = re.sub(r"[^\w.]", "_", str(getattr(function, "__module__", None) or "python"))
    return f"{module}:{name if name.isidentifier() else 'function'}"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _file_of_tasks(tasks: object, columns: Mapping[str, str]) -> dict[str, object] | None:
    """Return a task file in the format of a suite file; None if the tasks are values."""
    if isinstance(tasks, Mapping) and "file" in tasks:
        columns = _mapping(tasks).get("map") or columns
        tasks = tasks["file"]
    if not isinstance(tasks, str | Path):
        return None
    return {"file": str(tasks), **({"map": columns} if columns else {})}


def _rows(tasks: object) -> list[object]:
    if hasattr(tasks, "to_dicts"):
        return list(tasks.to_dicts())
    if hasattr(tasks, "to_dict") and hasattr(tasks, "columns"):
        return list(tasks.to_dict("records"))
    if isinstance(tasks, Mapping) or not isinstance(tasks, Iterable):
        raise InputError(
            "tasks", f"is a {type(tasks).__name__}, expected a list of tasks or a data frame."
        )
    return list(tasks)


def _id_of(task: Mapping[str, object]) -> str:
    """Return an id for a task, derived from its content, so that it does not depend on the order of
    tasks.
    """
    plain = _plain({key: value for key, value in task.items() if key not in ("snippets", "score")})
    words = task.get("thing") or task.get("prompt")
    return f"{slug(str(words))[:40].strip('-') or 'task'}-{digest(plain)[:6]}"


def _present(draft: Any) -> dict[str, object]:
    values = {each.name: getattr(draft, each.name) for each in fields(draft)}
    return {name: value for name, value in values.items() if value is not None}


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _plain(value: Any) -> Any:
    """Return a value that JSON can represent; NumPy numbers become Python numbers."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if hasattr(value, "item") and not inspect.isclass(value):
        return value.item()
    return getattr(value, "value", str(value))
