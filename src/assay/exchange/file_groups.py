"""Group the files of an import: an output with its requests, the run's log and the error file.

Requests and answers are matched by `custom_id`: an input belongs to an output if it contains all of
the output's ids. If several inputs contain them (copies, or two datasets that both count from 1),
the input's content decides, then its folder. Equal line counts or file names are not enough to join
two files.
"""

from __future__ import annotations

import hashlib
from array import array
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from assay.domain.import_records import Skipped
from assay.exchange.importers import Importer, ReadOptions, TakesCompanions, role_of
from assay.exchange.parsing.input_files import InputFile, UnreadableFile
from assay.exchange.parsing.json_values import JsonObject, as_text
from assay.exchange.readers import batch_input, batch_output, batch_server_log
from assay.exchange.readers.batch_lines import body_of, failure_of, request_of
from assay.formats.json_lines import lines_of, row_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray


_KEY: Final = b'"custom_id"'
# This many matching ids cannot be a coincidence, but `request-1` and `request-2` occur in many
# files.
_NO_ACCIDENT: Final = 20
_MASK: Final = (1 << 128) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGroup:
    """Files that are read together: the results, their importer, and supplementary files.

    `dataset`: digest of the answered requests, independent of their order and model; None if
    unknown. `input_stem`: name of the input file, which becomes the dataset's name.
    """

    source: InputFile
    importer: Importer
    options: ReadOptions
    dataset: str | None = None
    input_stem: str | None = None
    errors: tuple[InputFile, ...] = ()


@dataclass(slots=True, eq=False)
class _Requests:
    """Ids of one input file, eight bytes each, and a digest of the file's requests."""

    source: InputFile
    ids: NDArray[np.uint64]
    digest: str
    users: int = field(default=0)


def group_files(
    files: Sequence[tuple[InputFile, Importer]], options: ReadOptions
) -> tuple[list[FileGroup], list[FileGroup]]:
    """Return the groups of files that are read together, and the remaining files.

    `options.beside` files join every group.
    """
    companions = _companions(files)
    taken = {other for others in companions.values() for other in others}
    by_role: dict[str, list[tuple[InputFile, Importer]]] = {}
    for source, importer in files:
        if source not in taken:
            by_role.setdefault(role_of(importer), []).append((source, importer))
    inputs = _readable(source for source, _ in by_role.get("input", ()))
    named = [_requests(source) for source in options.beside.get("input", ())]
    logs = [source for source, _ in by_role.get("log", ())]
    about = [source for source, _ in by_role.get("about", ())]
    used: set[InputFile] = set()
    groups: list[FileGroup] = []
    for source, importer in by_role.get("results", ()):
        if importer.NAME != batch_output.NAME:
            mine = companions.get(source, ())
            own = (
                replace(options, beside={**options.beside, "companions": mine}) if mine else options
            )
            groups.append(FileGroup(source=source, importer=importer, options=own))
            continue
        requests = named[0] if len(named) == 1 else _input_of(source, named or inputs)
        beside = dict(options.beside)
        dataset = stem = None
        if requests is not None:
            beside["input"] = (requests.source,)
            requests.users += 1
            dataset, stem = requests.digest, requests.source.stem
            used.add(requests.source)
        for role, matching in (
            ("log", _logs_of(source, logs)),
            ("about", _about_of(source, about)),
        ):
            if role not in options.beside and matching:
                beside[role] = tuple(matching)
                used.update(matching)
        own = replace(options, beside=beside)
        groups.append(
            FileGroup(
                source=source, importer=importer, options=own, dataset=dataset, input_stem=stem
            )
        )
    groups = _with_error_files(groups)
    groups = _with_id_datasets(groups)
    shared = {requests.source for requests in (*inputs, *named) if requests.users > 1}
    groups = [_with_shared_input(group, shared) for group in groups]
    rest = [
        FileGroup(source=source, importer=importer, options=options)
        for role in ("input", "log", "about")
        for source, importer in by_role.get(role, ())
        if source not in used
    ]
    return groups, rest


def dataset_digest(source: InputFile) -> str:
    """Return a digest of an input file's requests, regardless of their order and of the model that
    they call.
    """
    return _requests(source).digest


def _companions(
    files: Sequence[tuple[InputFile, Importer]],
) -> dict[InputFile, tuple[InputFile, ...]]:
    """Return each file's companions, the other files that are read together with it.

    Companions have no companions. Several files may share one, for example a file that describes
    all of them.
    """
    companions: dict[InputFile, tuple[InputFile, ...]] = {}
    gone: set[InputFile] = set()
    for source, importer in files:
        if source in gone or not isinstance(importer, TakesCompanions):
            continue
        others = [other for other, _ in files if other is not source and other not in companions]
        mine = tuple(importer.companions(source, others))
        if mine:
            companions[source] = mine
            gone.update(mine)
    return companions


def _readable(sources: Iterable[InputFile]) -> list[_Requests]:
    """Return the inputs that can be unpacked; the import reports the others when it reads them."""
    inputs = []
    for source in sources:
        with suppress(UnreadableFile):
            inputs.append(_requests(source))
    return inputs


def _requests(source: InputFile) -> _Requests:
    import numpy as np

    total = count = 0
    ids = array("Q")
    for task in batch_input.tasks(source):
        if isinstance(task, Skipped):
            continue
        # Separated, so that the same letters divided differently give a different digest.
        text = "\x1f".join([task.id, *(f"{turn.role}\x1e{turn.content}" for turn in task.prompt)])
        raw = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        total = (
            total + int.from_bytes(raw, "big")
        ) & _MASK  # a sum, so that the order of lines does not matter
        count += 1
        ids.append(_hashed(task.id))
    return _Requests(source=source, ids=np.unique(np.array(ids)), digest=f"{count:x}-{total:032x}")


def _input_of(source: InputFile, inputs: Sequence[_Requests]) -> _Requests | None:
    """Return the input that an output answers; None if no input fits, or if several fit equally
    well.
    """
    import numpy as np

    ids = {_hashed(task) for row in source.sample.rows if (task := _task_of(row)) is not None}
    if not ids:
        return None
    wanted = np.array(sorted(ids), dtype=np.uint64)
    asked = _base(batch_output.model_of(source.sample))
    fitting = []
    for requests in inputs:
        if not np.isin(wanted, requests.ids, assume_unique=True).all():
            continue
        models = {_base(name) for name in batch_input.models_of(requests.source.sample)}
        same = asked is None or not models or any(_related(asked, name) for name in models)
        if same or len(ids) >= _NO_ACCIDENT:
            fitting.append((same, requests))
    if not fitting:
        return None
    same_model = [requests for same, requests in fitting if same] or [
        requests for _, requests in fitting
    ]
    near = [
        requests for requests in same_model if requests.source.folder == source.folder
    ] or same_model
    return min(
        near, key=lambda requests: (len(requests.ids), -_common(requests.source.stem, source.stem))
    )


def _logs_of(source: InputFile, logs: Sequence[InputFile]) -> list[InputFile]:
    """Return the log of the output's model or, if there is none, the log in the output's folder
    with the most similar name.
    """
    model = _base(batch_output.model_of(source.sample))
    by_model = [log for log in logs if _related(model, _base(_model_in(log)))]
    if len(by_model) == 1:
        return by_model
    near = _beside(source, by_model or logs)
    if model is not None:
        near = [
            log
            for log in near
            if (logged := _model_in(log)) is None or _related(model, _base(logged))
        ]
    return [max(near, key=lambda log: _common(log.stem, source.stem))] if near else []


def _about_of(source: InputFile, about: Sequence[InputFile]) -> list[InputFile]:
    """Return the batch object in the output's folder with the same name prefix as the output."""
    near = _beside(source, about)
    return [max(near, key=lambda file: _common(file.stem, source.stem))] if near else []


def _beside(source: InputFile, files: Sequence[InputFile]) -> list[InputFile]:
    return [
        file for file in files if file.folder == source.folder and _alike(file.stem, source.stem)
    ]


def _model_in(log: InputFile) -> str | None:
    return as_text(batch_server_log.facts([log]).get("model"))


def _with_error_files(groups: list[FileGroup]) -> list[FileGroup]:
    """Join an error file to the output that it completes: both have the same input and folder, and
    share no id.
    """
    joined: dict[InputFile, list[InputFile]] = {}
    gone: set[InputFile] = set()
    for group in groups:
        if group.dataset is None or not _only_errors(group.source):
            continue
        # this takes a quarter of a second, which an import without error files can save
        import numpy as np

        partners = [
            other
            for other in groups
            if other.dataset == group.dataset
            and other.source.folder == group.source.folder
            and other.source is not group.source
            and not _only_errors(other.source)
        ]
        try:
            error_ids = _ids(group.source)
            apart = [
                other for other in partners if not np.isin(error_ids, _ids(other.source)).any()
            ]
        except UnreadableFile:  # its importer reports the damage, with the rows that could be read
            continue
        # If it completes several outputs equally well, the choice would be a guess, so it stays
        # separate.
        if len(apart) == 1:
            joined.setdefault(apart[0].source, []).append(group.source)
            gone.add(group.source)
    kept = []
    for group in groups:
        if group.source in gone:
            continue
        errors = tuple(joined.get(group.source, ()))
        if errors:
            beside = {**group.options.beside, "errors": errors}
            group = replace(group, options=replace(group.options, beside=beside), errors=errors)
        kept.append(group)
    return kept


def _with_id_datasets(groups: list[FileGroup]) -> list[FileGroup]:
    """Give outputs without requests a common dataset if they have equal ids and, with few ids, are
    in the same folder.
    """
    named = []
    for group in groups:
        if (
            group.importer.NAME == batch_output.NAME
            and group.dataset is None
            and group.options.dataset is None
        ):
            try:
                ids = _ids(group.source)
            except (
                UnreadableFile
            ):  # its importer reports the damage, with the rows that could be read
                named.append(group)
                continue
            if not len(ids):  # a Gemini batch without a file
                named.append(group)
                continue
            place = "" if len(ids) >= _NO_ACCIDENT else group.source.folder
            digest = hashlib.blake2b(ids.tobytes() + place.encode(), digest_size=16).hexdigest()
            group = replace(group, dataset=f"ids-{len(ids):x}-{digest}")
        named.append(group)
    return named


def _with_shared_input(group: FileGroup, shared: set[InputFile]) -> FileGroup:
    inputs = group.options.beside.get("input", ())
    if not any(source in shared for source in inputs):
        return group
    beside = {**group.options.beside, "shared_input": inputs}
    return replace(group, options=replace(group.options, beside=beside))


def _only_errors(source: InputFile) -> bool:
    rows = source.sample.rows
    return bool(rows) and all(failure_of(row, body_of(row)) is not None for row in rows)


def _ids(source: InputFile) -> NDArray[np.uint64]:
    """Return hashes of every id in an output, sorted.

    Lines are searched for ids instead of parsed, because parsing every line, most of which is the
    answer, would be slow.
    """
    import numpy as np

    ids = array("Q")
    with source.open() as stream:
        for line in lines_of(stream):
            at = line.find(_KEY)
            if at < 0:  # another provider's format: its lines are few enough to be parsed
                row = row_of(line) if line.strip() else ""
                task = None if isinstance(row, str) else _task_of(row)
                if task is not None:
                    ids.append(_hashed(task))
                continue
            start = line.find(b'"', line.find(b":", at + len(_KEY))) + 1
            end = line.find(b'"', start)
            if start and end > start:
                ids.append(
                    int.from_bytes(hashlib.blake2b(line[start:end], digest_size=8).digest(), "big")
                )
    return np.unique(np.array(ids))


def _task_of(row: JsonObject) -> str | None:
    request = request_of(row)
    return batch_input.task_of(row, None if request is None else batch_input.prompt_of(request))


def _hashed(text: str) -> int:
    return int.from_bytes(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big"
    )


def _base(model: str | None) -> str | None:
    return None if model is None else model.rsplit("/", 1)[-1].lower()


def _related(name: str | None, other: str | None) -> bool:
    """True if two names refer to the same model; a server may resolve an alias to a version
    (`gpt-4o-mini-2024-07-18`).
    """
    return (
        name is not None
        and other is not None
        and (name.startswith(other) or other.startswith(name))
    )


def _alike(name: str, other: str) -> bool:
    common = _common(name, other)
    return common >= 4 and common * 2 >= min(len(name), len(other))


def _common(name: str, other: str) -> int:
    pairs = enumerate(zip(name, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(name), len(other)))
