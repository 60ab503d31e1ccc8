"""The verb `import`: files found, recognised, grouped, and streamed into the store; nothing half-written is ever seen."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from assay.app.originals import Keeping, Original
from assay.app.own_results import Holds, without_own_files
from assay.domain.digest import text_digest
from assay.domain.errors import AssayError, InputError
from assay.domain.found import (
    FoundAssessment,
    FoundAtEnd,
    FoundResponse,
    FoundRun,
    FoundTask,
    Held,
    Noted,
    Skipped,
)
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import Policy
from assay.domain.model import Parameters
from assay.domain.run import RunPlan
from assay.domain.selection import Selection
from assay.domain.suite import CandidateSpec, Rubric, SuiteCopy
from assay.engine.planning import run_id
from assay.exchange import described
from assay.exchange.belonging import Group, belonging
from assay.exchange.lines import file_trouble, mojibake, row_of
from assay.exchange.own_files import is_exported
from assay.exchange.recognising import Reader, ReadOptions, leavings_of, reader_named, recognised, role_of
from assay.exchange.sources import Source, Unpackable, file_source, files_in, is_archive, members
from assay.scoring.fields import read_field, reading_as_json, reading_of

if TYPE_CHECKING:
    from assay.app.wiring import Workspace
    from assay.domain.digest import JsonValue
    from assay.domain.fields import Reading
    from assay.store.importing import StoreImport

PORTION: Final = 10_000
_PORTION_CHARS: Final = 12 << 20
"""A portion is what one transaction writes: so many rows, or fewer when they are long."""

_NO_FORMAT: Final = "is not recognised as any format; `--format` names one, `--map FILE` describes one."

_EXPORT: Final = (
    "is an export for other programs, which is not read back. `assay export csv` writes a table that is, and "
    "`assay import FOLDER --rebuild` brings whole runs from a results folder."
)

Progress = Callable[[str, int], None]
"""Hears the name of what is being imported and how many rows of it there are so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What the user says beside the paths."""

    format: str = "auto"
    mapping: Path | None = None
    run_name: str | None = None
    candidate: str | None = None
    dataset: str | None = None
    inputs: tuple[Path, ...] = ()
    logs: tuple[Path, ...] = ()
    criteria: Path | None = None
    model_info: Path | None = None
    fields: Path | None = None
    copy: bool = True
    move: bool = False


@dataclass(slots=True, kw_only=True)
class ImportResult:
    """What came of an import.

    Attributes:
        unchanged: files whose content was imported before, with the runs that made.
        held: rows whose grades the store has already, under whatever file they came before.
    """

    formats: dict[str, int] = field(default_factory=dict)
    runs: int = 0
    tasks: int = 0
    responses: int = 0
    assessments: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[Noted] = field(default_factory=list)
    run_ids: list[str] = field(default_factory=list)
    unchanged: dict[str, tuple[str, ...]] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    copies: list[Original] = field(default_factory=list)


def _nobody(name: str, rows: int) -> None:
    """Progress nobody listens to."""


def import_paths(
    workspace: Workspace,
    paths: Sequence[Path],
    options: ImportOptions | None = None,
    *,
    progress: Progress = _nobody,
    called: str | None = None,
) -> ImportResult:
    """Import files and folders; what could not be imported is in the result, not raised.

    `called` is what messages and provenance call a single file that the user does not know by its path.

    Each results file becomes visible as a whole, once all of it is stored; a process that is killed leaves nothing of the
    file it was at.

    Raises:
        InputError: a path, format or option is wrong; nothing was changed.
    """
    options = options or ImportOptions()
    result = ImportResult()
    named = _read_options(options)
    reading = None if options.fields is None else _reading(options.fields)
    reader = None if options.format == "auto" else reader_named(options.format)
    if options.mapping is not None:
        reader = reader_named("map")
    sources = without_own_files(list(_sources(paths, result, reader, called)), paths, reader, result.notes)
    found = list(_recognise(sources, reader, result, named))
    workspace.store.imports.sweep()
    groups, rest = belonging(found, named)
    _sum_up_leavings(groups, result)
    names: dict[str, str] = {}
    with _without_collecting():
        for group in groups:
            _import_group(workspace, group, options, result, names, progress, reading)
    for group in rest:
        if role_of(group.reader) == "input":
            _import_tasks(workspace, group, options, result, names, progress)
        else:
            _only_said(group, result)
    for run in result.run_ids:
        workspace.results.adopt(RunId(run))
    return result


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Rows come and go by the million and hold no cycles; looking for some would cost a tenth of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


# --- what there is ----------------------------------------------------------------------------------------------------


def _sources(
    paths: Sequence[Path], result: ImportResult, reader: Reader | None, called: str | None
) -> Iterator[Source]:
    seen: set[Path] = set()
    for given in paths:
        if "\0" in str(given) or not given.exists():
            raise InputError(str(given), "there is no such file or folder.")
        files = [(path, str(path)) for path in files_in(given)] if given.is_dir() else [(given, called or str(given))]
        if not files:
            result.skipped.append(Skipped(where=str(given), why="is an empty folder."))
        for path, name in files:
            real = path.resolve()
            if real in seen:
                continue
            seen.add(real)
            try:
                source = file_source(path, name)
                if (
                    is_archive(source)
                    and recognised(source.sample) is None
                    and (reader is None or source.sample.members == ())
                ):
                    yield from members(path, name)
                else:
                    yield source
            except Unpackable as error:
                result.skipped.append(Skipped(where=name, why=error.problem))
            except OSError as error:
                result.skipped.append(Skipped(where=name, why=f"cannot be read: {error.strerror or error}."))


def _recognise(
    sources: Sequence[Source], forced: Reader | None, result: ImportResult, options: ReadOptions
) -> Iterator[tuple[Source, Reader]]:
    named = {source.path for some in options.beside.values() for source in some}
    for source in sources:
        if source.path in named:
            continue
        try:
            reader = forced or recognised(source.sample)
            if reader is not None:
                yield source, reader
                continue
            why = file_trouble(source.sample.head) or _unknown(source)
        except Unpackable as error:
            why = error.problem
        result.skipped.append(Skipped(where=source.name, why=why))


def _unknown(source: Source) -> str:
    """Why a file is no results: what is wrong with its JSON, else only that no format is like it."""
    sample = source.sample
    why = _NO_FORMAT
    if is_exported(source):
        return _EXPORT
    first = sample.head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if first not in (b"{", b"["):
        return why
    if sample.rows or sample.document is not None:
        odd = mojibake(sample.head)
        return why if odd is None else f"{why} Its text was read with the wrong encoding somewhere ({odd!r})."
    if sample.whole:
        said = row_of(sample.head)
        return said if isinstance(said, str) else why
    line = sample.head.split(b"\n", 1)[0]
    if len(line) == len(sample.head):
        return "is one line of more than a megabyte, and no format is like it."
    said = row_of(line)
    return said if isinstance(said, str) else why


def _sum_up_leavings(groups: Sequence[Group], result: ImportResult) -> None:
    """One note in place of a line for every log and artifact that a harness leaves in folders of its own."""
    for group in groups:
        left: set[str] = set()
        for folder in leavings_of(group.reader, group.source, group.options.beside.get("taken", ())):
            left |= {one.where for one in result.skipped if one.why == _NO_FORMAT and _lies_in(one.where, folder)}
        if left:
            result.skipped = [one for one in result.skipped if one.where not in left]
            what = (
                f"{len(left):,} other files beside these results are logs and artifacts; they were left where they are."
            )
            result.notes.append(Noted(where=group.source.name, what=what))


def _lies_in(name: str, folder: str) -> bool:
    """Whether a file, called as messages call it, lies in a folder; the empty one is the working folder."""
    return name.replace("#", "/", 1).startswith(f"{folder}/") if folder else not name.startswith(("/", "../"))


def _read_options(options: ImportOptions) -> ReadOptions:
    beside: dict[str, tuple[Source, ...]] = {}
    for role, paths in (("input", options.inputs), ("log", options.logs)):
        for path in paths:
            if not path.is_file():
                raise InputError(str(path), "there is no such file.")
        if paths:
            beside[role] = tuple(file_source(path) for path in paths)
    criteria = None
    if options.criteria is not None:
        criteria = _text_of(options.criteria)
    info: dict[str, JsonValue] = {}
    if options.model_info is not None:
        info = _mapping_of(options.model_info)
    mapping = None
    if options.mapping is not None:
        mapping = _mapping_of(options.mapping)
        problem = described.problems(mapping)
        if problem is not None:
            raise InputError(str(options.mapping), problem, remedy="See docs/imports.md for examples.")
    return ReadOptions(
        candidate=options.candidate,
        dataset=options.dataset,
        criteria=criteria,
        model_info=info,
        mapping=mapping,
        beside=beside,
    )


def _reading(path: Path) -> Reading:
    """What to read from answers and inputs; raises `InputError` with the first complaint."""
    try:
        return reading_of(_mapping_of(path))
    except ValueError as error:
        raise InputError(str(path), str(error).split("\n")[0], remedy="See docs/imports.md for an example.") from error


def _titled(task: FoundTask, reading: Reading | None) -> FoundTask:
    """The task called as its input says, where the user described how; its id where the input does not say."""
    if reading is None or reading.title is None or task.thing is not None:
        return task
    text = "\n".join(message.content for message in reversed(task.prompt)) or task.context
    return replace(task, thing=read_field(text, reading.title))


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(str(path), "is not UTF-8 text.", remedy="Save the file as UTF-8.") from error


def _mapping_of(path: Path) -> dict[str, Any]:
    import yaml

    try:
        found = yaml.safe_load(_text_of(path))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        raise InputError(where, f"is not valid YAML: {getattr(error, 'problem', error)}.") from error
    if not isinstance(found, dict):
        raise InputError(str(path), "must hold a mapping of names to values.")
    return {str(key): value for key, value in found.items()}


# --- one group --------------------------------------------------------------------------------------------------------


def _import_group(
    workspace: Workspace,
    group: Group,
    options: ImportOptions,
    result: ImportResult,
    names: dict[str, str],
    progress: Progress,
    reading: Reading | None,
) -> None:
    source, reader = group.source, group.reader
    imports = workspace.store.imports
    keeping = Keeping(_files_of(group), _folder(workspace), copy=options.copy or options.move)
    originals = keeping.originals
    content = originals[0].sha256
    if taken := group.options.beside.get("taken"):  # a file more in the folder is another content
        content = "\x1f".join(sorted(f"{one.sha256}" for one in originals) + sorted(one.member for one in taken))
    digest = _digest(group, content, options)
    known = imports.known(digest)
    if known is not None:
        keeping.give_up()
        result.unchanged[source.name] = known
        return
    if (odd := mojibake(source.sample.head)) is not None:
        what = f"its text was read with the wrong encoding somewhere ({odd!r}); it is kept as it is."
        result.notes.append(Noted(where=source.name, what=what))
    held = len(result.held)
    suite = _suite(workspace, group, options, names)
    writing = _Writing(workspace, group, options, originals, suite, result, progress, reading)
    target = imports.begin(digest=digest, name=source.name, form=reader.NAME, dataset=group.dataset)
    try:
        ids = writing.stream(target, reader.read(source, replace(group.options, holds=Holds(workspace))))
        if not ids:
            target.abandon()
            if len(result.held) > held:
                keeping.give_up()
                return
            result.skipped.append(
                Skipped(where=source.name, why=f"holds nothing that could be imported as {reader.NAME}.")
            )
            return
        keeping.finish()
        done = target.finish()
    except _Taken as error:
        target.abandon()
        keeping.give_up()
        result.skipped.append(Skipped(where=error.where, why=error.problem))
        return
    except AssayError:
        target.abandon()
        keeping.give_up()
        raise
    except BaseException as error:
        target.abandon()
        if isinstance(error, OSError):
            result.skipped.append(Skipped(where=source.name, why=f"cannot be copied: {error.strerror or error}."))
            return
        if isinstance(error, Exception) and not os.environ.get("ASSAY_DEBUG"):
            why = f"could not be read as {reader.NAME}: {type(error).__name__}: {error}. Nothing of it was imported."
            result.skipped.append(Skipped(where=source.name, why=why))
            return
        raise
    result.formats[reader.NAME] = result.formats.get(reader.NAME, 0) + 1
    result.runs += done.runs
    result.tasks += done.tasks
    result.responses += done.responses
    result.assessments += done.assessments
    result.run_ids += ids
    result.copies += [one for one in originals if one.copy is not None]
    if options.move:
        for one in originals:
            one.remove_original()


def _import_tasks(
    workspace: Workspace,
    group: Group,
    options: ImportOptions,
    result: ImportResult,
    names: dict[str, str],
    progress: Progress,
) -> None:
    """Requests nobody answered yet: their tasks wait for answers of the same dataset."""
    from assay.exchange.belonging import dataset_digest

    imports = workspace.store.imports
    source = group.source
    keeping = Keeping([source.path], _folder(workspace), copy=options.copy or options.move)
    originals = keeping.originals
    digest = _digest(group, originals[0].sha256, options)
    if imports.known(digest) is not None:
        result.unchanged[source.name] = ()
        return
    try:
        dataset = dataset_digest(source)
    except Unpackable as error:
        keeping.give_up()
        result.skipped.append(Skipped(where=error.where, why=error.problem))
        return
    suite = options.dataset or imports.suite_of_dataset(dataset) or names.get(dataset) or source.stem
    names.setdefault(dataset, suite)
    target = imports.begin(digest=digest, name=source.name, form=group.reader.NAME, dataset=dataset)
    waiting: list[FoundTask] = []
    kept = rows = 0
    for found in group.reader.read(source, group.options):
        if isinstance(found, FoundTask):
            waiting.append(found)
            rows += 1
            if len(waiting) == PORTION:
                kept += target.keep_tasks(suite, waiting)
                waiting.clear()
                progress(source.name, rows)
        elif isinstance(found, Skipped):
            result.skipped.append(found)
    kept += target.keep_tasks(suite, waiting) if waiting else 0
    if not rows:
        result.skipped.append(Skipped(where=source.name, why="holds no requests."))
        return
    keeping.finish()
    target.finish(suite=suite)
    result.tasks += kept
    result.formats[group.reader.NAME] = result.formats.get(group.reader.NAME, 0) + 1
    if options.move:
        originals[0].remove_original()


def _only_said(group: Group, result: ImportResult) -> None:
    for found in group.reader.read(group.source, group.options):
        if isinstance(found, Noted):
            result.skipped.append(Skipped(where=found.where, why=found.what))
        elif isinstance(found, Skipped):
            result.skipped.append(found)


def _files_of(group: Group) -> list[Path]:
    """The files a group is read from; the results first."""
    beside = chain.from_iterable(some for role, some in group.options.beside.items() if role != "shared_input")
    return list(dict.fromkeys([group.source.path, *(one.path for one in beside)]))


def _digest(group: Group, content: str, options: ImportOptions) -> str:
    """What was imported and how: the same content read the same way is imported once."""
    mapping = (
        ""
        if group.options.mapping is None
        else orjson.dumps(group.options.mapping, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    )
    how = [group.reader.NAME, content, group.source.member, mapping, options.candidate or "", options.dataset or ""]
    return text_digest("\x1f".join(how))


def _suite(workspace: Workspace, group: Group, options: ImportOptions, names: dict[str, str]) -> str | None:
    """The suite's name where it is not the reader's to say: the same dataset has the same name in every import."""
    if options.dataset is not None or group.dataset is None:
        return options.dataset
    found = workspace.store.imports.suite_of_dataset(group.dataset) or names.get(group.dataset)
    name = found or group.input_stem or group.source.stem
    names.setdefault(group.dataset, name)
    return name


def _folder(workspace: Workspace) -> Path:
    """Where originals are kept: beside a store that is a file, else in the working folder's `.assay`."""
    url = workspace.settings.store_url
    if url.startswith("sqlite:///"):
        return Path(url.removeprefix("sqlite:///")).parent / "imports"
    return workspace.folder / ".assay" / "imports"


class _Writing:
    """From a reader's stream to portions of the store."""

    def __init__(
        self,
        workspace: Workspace,
        group: Group,
        options: ImportOptions,
        originals: Sequence[Original],
        suite: str | None,
        result: ImportResult,
        progress: Progress,
        reading: Reading | None,
    ) -> None:
        self._reading = reading
        self._workspace = workspace
        self._group = group
        self._options = options
        self._originals = originals
        self._suite = suite
        self._result = result
        self._progress = progress

    def stream(self, target: StoreImport, found: Iterator[Any]) -> list[str]:
        """Write everything a reader yields; the ids of the runs it became."""
        result, name = self._result, self._group.source.name
        tasks: list[FoundTask] = []
        responses: list[FoundResponse] = []
        assessments: list[FoundAssessment] = []
        ids: list[str] = []
        at_end = FoundAtEnd()
        plan: RunPlan | None = None
        rows = chars = 0

        def flush() -> None:
            nonlocal chars
            if tasks or responses or assessments:
                result.skipped.extend(target.add(tuple(tasks), tuple(responses), tuple(assessments)))
                tasks.clear()
                responses.clear()
                assessments.clear()
                chars = 0
                self._progress(name, rows)

        def close() -> None:
            if plan is None:
                return
            flush()
            environment = _laid_over(plan.environment, at_end)
            result.skipped.extend(
                target.close_run(started=at_end.started, finished=at_end.finished, environment=environment)
            )

        try:
            for one in found:
                kind = type(one)
                if kind is FoundResponse:
                    if plan is None:
                        continue
                    responses.append(one)
                    rows += 1
                    if one.content is not None:
                        chars += len(one.content)
                    if len(responses) >= PORTION or chars > _PORTION_CHARS:
                        flush()
                elif kind is FoundTask:
                    tasks.append(_titled(one, self._reading))
                    rows += 1
                    chars += sum(len(message.content) for message in one.prompt)
                    if len(tasks) >= PORTION or chars > _PORTION_CHARS:
                        flush()
                elif kind is FoundAssessment:
                    assessments.append(one)
                    rows += 1
                    if len(assessments) >= PORTION:
                        flush()
                elif kind is Skipped:
                    result.skipped.append(one)
                elif kind is Noted:
                    result.notes.append(one)
                elif kind is Held:
                    result.held.append(one)
                elif kind is FoundAtEnd:
                    at_end = one
                elif kind is FoundRun:
                    close()
                    at_end = FoundAtEnd()
                    plan = self._plan(one)
                    target.open_run(plan)
                    ids.append(plan.id)
        except Unpackable as error:  # what was read before the damage is kept
            result.skipped.append(Skipped(where=error.where, why=error.problem))
        close()
        return ids if rows else []

    def _plan(self, found: FoundRun) -> RunPlan:
        """The run as if it had been planned: what its file says of set-up is its environment."""
        options, group = self._options, self._group
        suite = self._suite or found.suite
        started, source = found.started, "file"
        if started is None:
            modified = group.source.path.stat().st_mtime
            started, source = _iso(modified), "file_mtime"
        parameters = _parameters(found.provenance.get("parameters"))
        imported: dict[str, JsonValue] = {
            "format": found.format,
            "from": group.source.name,
            "sha256": self._originals[0].sha256,
            "originals": [one.as_json() for one in self._originals],
            "started_from": source,
            "finished_known": found.finished is not None,
            "complete": found.complete,
        }
        if group.dataset is not None:
            imported["dataset"] = group.dataset
        if options.run_name is not None:
            imported["run_name"] = options.run_name
        if self._reading is not None:
            imported["reading"] = reading_as_json(self._reading)
        if group.options.criteria is not None:
            imported["criteria"] = group.options.criteria
        text = orjson.dumps({"imported": {"format": found.format, "from": group.source.name, "suite": suite}}).decode()
        return RunPlan(
            id=self._id(found) or run_id(options.run_name or suite, started, self._workspace.nonce()),
            batch_id=found.batch_id,
            suite=suite,
            copy=SuiteCopy(path=group.source.name, text=text, digest=text_digest(text)),
            candidates=tuple(
                CandidateSpec(name=one.name, metadata={**({"model": one.model} if one.model else {}), **one.metadata})
                for one in found.candidates
            ),
            judges=(),
            rubric=Rubric(criteria=found.rubric),
            policy=Policy.EVERY,
            parameters=parameters,
            system_prompt="",
            seed=0,
            started=started,
            environment={**found.provenance, "imported": imported},
            protocol={"version": 1, "policy": "every", "mode": "imported"},
        )

    def _id(self, found: FoundRun) -> RunId | None:
        """The id that the file gives the run; raises `_Taken` where another run has it."""
        if found.id is None:
            return None
        try:
            there = self._workspace.archive.runs(Selection(runs=(found.id,)))
        except InputError:  # none has it, or several begin with it
            return RunId(found.id)
        if any(one.id == found.id for one in there):
            raise _Taken(
                self._group.source.name, f"is run {found.id}, and there is a run of this id with other content."
            )
        return RunId(found.id)


class _Taken(InputError):
    """A file's run whose id another run has."""


def _laid_over(environment: Mapping[str, JsonValue], at_end: FoundAtEnd) -> dict[str, JsonValue]:
    laid = {**environment, **at_end.provenance}
    imported = environment.get("imported")
    if isinstance(imported, dict):
        imported = dict(imported)
        if at_end.started is not None:
            imported["started_from"] = "file"
        if at_end.finished is not None:
            imported["finished_known"] = True
        if at_end.complete is not None:
            imported["complete"] = at_end.complete
        laid["imported"] = imported
    return laid


def _parameters(said: JsonValue) -> Parameters:
    """Sampling parameters a file names, those of them that are ours and of the right kind."""
    if not isinstance(said, dict):
        return Parameters()
    kinds: dict[str, tuple[type, ...]] = {
        "temperature": (int, float), "top_p": (int, float), "max_tokens": (int,), "frequency_penalty": (int, float),
        "presence_penalty": (int, float), "seed": (int,),
    }  # fmt: skip
    good: dict[str, Any] = {}
    for name, types in kinds.items():
        value = said.get(name)
        if isinstance(value, types) and not isinstance(value, bool):
            good[name] = value
    return Parameters(**good)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
