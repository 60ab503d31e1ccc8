"""Starting a run without a command line: which files there are, what may be chosen, and the same checks as in a terminal.

Theory. A form says only what differs from the file. What options can say (N, who takes part, who judges, the budget) is said as
options, so that the file runs as it stands; what only a suite can say (rubric, parameters, policy) is laid over the file's own
document, and the text that results is read in its place: the same reader, the same complaints, and the run keeps the text that ran.
Files are named relative to the working folder and never leave it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from assay.app import running
from assay.app.suites import problems, read_suite
from assay.domain.errors import AssayError, InputError, Refused, SuiteError, UnknownName
from assay.domain.identifiers import folded
from assay.domain.run import RunOptions
from assay.engine.planning import planned_tasks
from assay.exchange.recognising import recognised
from assay.exchange.sources import file_source
from assay.suites.complaints import SuiteErrors
from assay.suites.files import whole_text
from assay.suites.located import Unreadable, plain, read_json, read_yaml
from assay.suites.sets import is_set
from assay.suites.tasks import slug

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assay.app.running import LookAhead
    from assay.app.wiring import Workspace
    from assay.domain.run import PlannedTask, RunPlan
    from assay.domain.suite import Suite

SUFFIXES: Final = (".yaml", ".yml", ".json", ".jsonl")
MOST_FILES: Final = 200
"""Suites and sets that are listed; a folder with more is told from a terminal."""

LARGEST_TEXT: Final = 8 * 2**20
"""Bytes of a set that a browser may send."""

_MOST_LOOKED_AT: Final = 5_000
_DEEPEST: Final = 4
_HEAD: Final = 64 * 1024
_RUNS_LOOKED_AT: Final = 20
_SUITE_LIKE: Final = re.compile(rb"""^tasks\s*:|"tasks"\s*:|"thingName"\s*:|"custom_id"\s*:""", re.M)
_LEFT_OUT: Final = {"node_modules", "__pycache__", "venv", "dist", "build"}
SAVED_IN: Final = "suites"

_FIELDS: Final = {"candidate": "candidates"}
"""Fields of the form that a command line calls otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be run; None and empty mean: as the file says.

    Attributes:
        path: the suite or set file, relative to the working folder.
        candidates: those who take part: names of the suite's, or models as provider/name.
        judges: models that judge; with `rotate` they take turns, a trial each.
        mode: how they judge (`joint`, `each`, `pairwise`).
        changes: keys of a suite file with values that replace the file's own: `review`, `protocol`, `parameters`, `rubric`.
    """

    path: str
    trials: int | None = None
    candidates: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    rotate: bool = False
    mode: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    benchmark: bool = False
    batch_id: str | None = None
    budget_usd: float | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model that may be chosen, and where it is known from."""

    ref: str
    origin: str


def suite_files(workspace: Workspace) -> tuple[str, ...]:
    """Files below the working folder that look like suites or sets, shallow ones first."""
    root = workspace.folder.resolve()
    kept = root / str(workspace.settings.values["results"] or "results")  # what we wrote ourselves is no suite
    found = [path for path in _walked(root) if not path.is_relative_to(kept) and _looks_like_a_suite(path)]
    found.sort(key=lambda path: (len(path.relative_to(root).parts), path.relative_to(root).as_posix()))
    return tuple(path.relative_to(root).as_posix() for path in found[:MOST_FILES])


def known_models(workspace: Workspace) -> tuple[Model, ...]:
    """Models that may be named by a click: of the settings, of the newest runs, recordings, and `echo`."""
    found: dict[str, str] = {}
    judge: Any = workspace.settings.values["judge"]
    for one in judge if isinstance(judge, list) else [judge]:
        ref = one.get("model") if isinstance(one, Mapping) else one
        if isinstance(ref, str):
            found.setdefault(ref, "assay.yaml")
    for ref in workspace.settings.values["prices"]:
        found.setdefault(str(ref), "assay.yaml")
    for summary in workspace.archive.newest(limit=_RUNS_LOOKED_AT):
        plan = workspace.journal.plan_of(summary.id)
        for model in (*(c.model for c in plan.candidates), *(j.model for j in plan.judges)):
            if model is not None:
                found.setdefault(model.ref, summary.suite)
    found.setdefault("echo", "")
    return tuple(Model(ref=ref, origin=origin) for ref, origin in found.items())


def read(workspace: Workspace, path: str) -> tuple[Suite | None, tuple[SuiteError, ...]]:
    """A suite as it stands, or what is wrong with it; one that only lacks its judge is read with `echo` in its place."""
    where = _placed(workspace, path)
    wrong = problems(workspace, where)
    if wrong:
        return None, wrong
    try:
        return read_suite(workspace, where), ()
    except SuiteErrors:
        return replace(read_suite(workspace, where, judge="echo"), judges=()), ()


def look(workspace: Workspace, wish: Wish) -> tuple[Suite, RunOptions, LookAhead]:
    """Everything that can be known of a run before it is started; raises `InputError` as `assay run --dry-run` does."""
    where = _placed(workspace, wish.path)
    text = _changed(where, wish.changes) if wish.changes else None
    suite = read_suite(workspace, where, judge=_judges(wish), text=text)
    values = workspace.settings.values
    names = wish.candidates if _narrows(suite, wish.candidates) else ()
    options = RunOptions(
        trials=wish.trials,
        concurrency=values["concurrency"],
        benchmark=wish.benchmark,
        batch_id=wish.batch_id or None,
        budget_usd=values["budget"] if wish.budget_usd is None else wish.budget_usd,
        limit=wish.limit,
    )
    try:
        options = running.options_for(workspace, suite, options, candidates=names)
    except InputError as error:
        error.where = error.where or "--candidate"
        raise
    return suite, options, running.look_ahead(workspace, suite, options)


def tasks_of(suite: Suite, options: RunOptions) -> Iterator[PlannedTask]:
    """The tasks of a run that was looked at, each with its trials."""
    return planned_tasks(suite, options)


def write_down(workspace: Workspace, wish: Wish) -> RunPlan:
    """Store the run that was wished for, every trial of it waiting to be carried out."""
    suite, options, ahead = look(workspace, wish)
    return running.write_down(workspace, suite, options, ahead)


def check(workspace: Workspace, name: str, text: str) -> tuple[Path, tuple[SuiteError, ...]]:
    """Where a text of this name would be saved, and what is wrong with it as a suite or set."""
    if len(text.encode("utf-8", "replace")) > LARGEST_TEXT:
        raise InputError("text", f"has more than {LARGEST_TEXT // 2**20} MB.", remedy="Put the file into the folder.")
    stem, dot, suffix = name.strip().rpartition(".")
    if not dot or f".{suffix.lower()}" not in SUFFIXES:
        stem, suffix = name.strip(), "json" if text.lstrip()[:1] in {"[", "{"} else "yaml"
    plain_name = slug(stem)
    if not plain_name:
        raise InputError("name", f"is {name!r}, expected a name with at least one letter or digit.")
    where = Path(SAVED_IN) / f"{plain_name[:80]}.{suffix.lower()}"
    wrong = problems(workspace, _relative_to_here(workspace, where), text=text)
    if wrong and (form := _export_of(name, text)) is not None:
        command = f"assay import {shlex.quote(Path(name).name)}"
        problem = f"is no set or suite: it holds results of another harness ({form})."
        wrong = (SuiteError(where.as_posix(), problem, remedy=f"Import it in a terminal, in this folder: {command}"),)
    return where, wrong


def _export_of(name: str, text: str) -> str | None:
    """The format of results that a text is in, where it is results and nothing that could be run."""
    with TemporaryDirectory(prefix="assay-") as folder:
        path = Path(folder) / f"brought{Path(name).suffix.lower()[:8]}"
        try:
            path.write_text(text, "utf-8", errors="replace")
            reader = recognised(file_source(path).sample)
        except (OSError, ValueError, AssayError):
            return None
    return None if reader is None or reader.NAME in ("set", "openai_batch_input") else str(reader.NAME)


def save(workspace: Workspace, name: str, text: str, *, title: str | None = None) -> str:
    """Save a set or suite in the working folder and give its path there.

    A set whose `title` is not what the file is called has it written into the file.

    Raises:
        SuiteErrors: what is wrong with it; nothing was saved.
        Refused: another file of that name is there.
    """
    where, wrong = check(workspace, name, text)
    if not wrong and title is not None and title != where.stem:
        text = _titled(text, title)
        wrong = problems(workspace, _relative_to_here(workspace, where), text=text)
    if wrong:
        raise SuiteErrors(wrong)
    root = workspace.folder.resolve()
    target = root / where
    try:
        target.parent.mkdir(exist_ok=True)
        if not target.parent.resolve().is_relative_to(root):
            raise Refused(str(where.parent), "leads out of the working folder.")
        with target.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError:
        if target.is_file() and not target.is_symlink() and target.read_text("utf-8", "replace") == text:
            return where.as_posix()
        raise Refused(str(where), "is there already.", remedy="Choose another name.") from None
    except OSError as error:
        raise InputError(str(where), f"cannot be written: {error.strerror or error}.") from error
    return where.as_posix()


def field_of(error: InputError, path: str) -> str:
    """Which field of a file a complaint is about: `rubric[0].weight`; empty where it is about the whole."""
    for named in (path, str(Path(path))):
        if error.where.startswith(named):
            found = re.fullmatch(r"(?::\d+)?(?: (.*))?", error.where.removeprefix(named))
            if found:
                return found[1] or ""
    if not error.where.startswith("--"):
        return error.where
    named, _, inner = error.where[2:].partition(" ")
    return _FIELDS.get(named, named) + (inner if not inner or inner[0] == "[" else f".{inner}")


def _judges(wish: Wish) -> Any:
    """The judges as a suite file would name them; None for the file's own."""
    if not wish.judges:
        return None
    named: list[Any] = [{"model": ref, "mode": wish.mode} if wish.mode else ref for ref in wish.judges]
    if len(named) == 1:
        return named[0]
    return [{"rotate": named}] if wish.rotate else named


def _narrows(suite: Suite, names: Sequence[str]) -> bool:
    """Whether these are others than the suite's own."""
    return bool(names) and {folded(name) for name in names} != {folded(c.name) for c in suite.candidates}


def _changed(path: Path, changes: Mapping[str, Any]) -> str:
    """The file's document with some keys replaced; a set becomes the suite that it stands for."""
    try:
        content = whole_text(path)
        document = read_json(content) if path.suffix.lower() == ".json" else read_yaml(content)
    except Unreadable as error:
        raise SuiteError(str(path), error.problem, remedy=error.remedy) from error
    value: Any = plain(document.value)
    if path.suffix.lower() == ".jsonl":
        raise InputError(
            str(path), "is a batch file, whose rubric, parameters, policy and protocol are those of the defaults."
        )
    if is_set(document.value):
        value = _as_suite(path.stem, value)
    if not isinstance(value, dict):
        raise InputError(str(path), "is no suite.")
    return json.dumps({**value, **changes}, ensure_ascii=False, indent=1)


def _titled(text: str, title: str) -> str:
    """A set written in JSON, with a name of its own; any other text as it is."""
    try:
        document = read_json(text)
    except Unreadable:
        return text
    if not isinstance(document.value, list):
        return text
    return json.dumps({"name": title, "things": plain(document.value)}, ensure_ascii=False, indent=2) + "\n"


def _as_suite(stem: str, value: Any) -> dict[str, Any]:
    """The suite that a set stands for."""
    name, some = None, value
    if isinstance(value, dict) and "things" in value:
        name, some = value.get("name"), value["things"]
    return {"name": name or stem, "tasks": [_as_task(one) for one in (some if isinstance(some, list) else [some])]}


def _as_task(thing: Any) -> Any:
    """A Thing of a set as a task of a suite."""
    if not isinstance(thing, dict):
        return thing
    found = {"id": slug(str(thing.get("thingName", ""))), "thing": thing.get("thingName")}
    for theirs, ours in (("context", "context"), ("language", "language"), ("trialsNeeded", "trials")):
        if thing.get(theirs) is not None:
            found[ours] = thing[theirs]
    snippets = thing.get("snippets")
    if isinstance(snippets, list) and all(isinstance(one, dict) for one in snippets):
        found["snippets"] = {str(one.get("name")): one.get("content") for one in snippets}
    return found


def _placed(workspace: Workspace, path: str) -> Path:
    """A path that a browser named, as the checks read it; raises `UnknownName` for what lies outside the folder."""
    root = workspace.folder.resolve()
    try:
        whole = (root / path).resolve()
        inside = whole.is_relative_to(root) and not Path(path).is_absolute() and whole.is_file()
    except (OSError, ValueError):
        inside = False
    if not inside or whole.suffix.lower() not in SUFFIXES or _hidden(whole.relative_to(root)):
        raise UnknownName(
            "suite", path, suite_files(workspace), remedy="Suites lie in the folder in which `assay serve` was started."
        )
    return _relative_to_here(workspace, whole.relative_to(root))


def suite_place(workspace: Workspace, path: str) -> Path:
    """The suite or set file that a browser named; raises `UnknownName` for what lies outside the folder."""
    return _placed(workspace, path)


def _relative_to_here(workspace: Workspace, path: Path) -> Path:
    """The path from where this process works, so that the folder of the server may be another."""
    root = workspace.folder.resolve()
    return path if root == Path.cwd() else root / path


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _walked(root: Path) -> Iterator[Path]:
    """Files with a suite's suffix, not too deep, without following links to folders."""
    looked_at = 0
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        depth = len(here.relative_to(root).parts)
        folders[:] = sorted(name for name in folders if name[0] != "." and name not in _LEFT_OUT and depth < _DEEPEST)
        for name in sorted(files):
            looked_at += 1
            if looked_at > _MOST_LOOKED_AT:
                return
            path = here / name
            if not name.startswith(".") and path.suffix.lower() in SUFFIXES and path.resolve().is_relative_to(root):
                yield path


def _looks_like_a_suite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _SUITE_LIKE.search(file.read(_HEAD)) is not None
    except OSError:
        return False
