"""Importers: the interface of a module that reads one file format, and their registry.

An importer is a module (or any object) with

* `NAME`, the format's name for `--format` and in JSON; if a harness has formats with and without
  ids, the name of the format without ids begins with the other's (`promptfoo_csv`, `promptfoo`), so
  that Assay recognises equal answers in both;
* `recognise(sample)`, the share of the file that the importer would explain, between 0 and 1; None
  if the file has another format. Assay chooses the importer that explains most of a file, and
  refuses a file that two importers explain about equally well. Measure the share with
  `parsing.explained.explained_share`; an invented share could displace a better importer.
* `read(source, options)`, a generator of records as `assay.domain.import_records` describes them.

It may also have

* `ROLE`: `results` (the default), or `input`, `log`, `about` for files that add to results in other
  files. An importer of results receives these files in `options.beside`, by role.
* `companions(source, others)`: other recognised files that are read together with this one and not
  imported separately, for formats that are spread over several files. `read` receives them in
  `options.beside["companions"]`.
* `artifact_folders(source, companions)`: folders with the evaluation's logs and artifacts;
  unrecognised files in them are reported in a single note.

Assay passes arguments by position and ignores any other attribute, so that later versions can ask
for more without breaking an importer that lacks it.

To add an importer of another harness's format, copy `assay_importers/terminal_bench.py` to a new
module next to it and add a line to the entry-point group `assay.importers` in `pyproject.toml`, as
any other package does. Assay's own formats are in `readers/` and `formats.toml`.
`assay.testing.ImporterContract` tests all of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Final, Protocol, runtime_checkable

from assay.domain.digest import JsonValue
from assay.domain.errors import UnknownName
from assay.domain.import_records import Found
from assay.exchange.parsing.input_files import FileSample, InputFile
from assay.plugin_registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options of the user, and supplementary files to read together with a file.

    Attributes:
        candidate: name of the candidate; replaces a name in the file.
        dataset: name of the suite for the rows.
        criteria: name or text of the criteria by which answers are judged.
        model_info: facts about the model (size, vram_gb, hf_id).
        mapping: parsed content of the `--map` file.
        beside: supplementary files by role.
        holds: function of (run id, assessment number) that returns True if the store contains the
            assessment, None if it lacks the run.
    """

    candidate: str | None = None
    dataset: str | None = None
    criteria: str | None = None
    model_info: Mapping[str, JsonValue] = field(default_factory=dict)
    mapping: Mapping[str, JsonValue] | None = None
    beside: Mapping[str, tuple[InputFile, ...]] = field(default_factory=dict)
    holds: Callable[[str, int], bool | None] | None = None


class Importer(Protocol):
    """Interface of an importer, which reads one file format."""

    NAME: str

    def recognise(self, sample: FileSample, /) -> float | None:
        """Return the share of the file that this importer would explain, between 0 and 1; None if
        the file has another format.
        """
        ...

    def read(self, source: InputFile, options: ReadOptions, /) -> Iterator[Found]:
        """Yield the records of a file of this format."""
        ...


@runtime_checkable
class TakesCompanions(Protocol):
    """An importer for a format that is spread over several files."""

    def companions(
        self, source: InputFile, others: Sequence[InputFile], /
    ) -> Collection[InputFile]:
        """Return the other recognised files that supplement this file."""
        ...


@runtime_checkable
class LeavesArtifacts(Protocol):
    """An importer whose harness leaves logs and artifacts next to its results."""

    def artifact_folders(
        self, source: InputFile, companions: Sequence[InputFile], /
    ) -> Collection[str]:
        """Return the folders whose unrecognised files Assay reports in one note."""
        ...


IMPORTERS: Final[Registry[Importer]] = Registry(
    kind="format",
    group="assay.importers",
    own={
        name: f"assay.exchange.readers.{module}"
        for name, module in tomllib.loads(
            (files(__package__) / "formats.toml").read_text("utf-8")
        ).items()
    },
    members=("NAME", "recognise", "read"),
)
"""Importers by format: those of `formats.toml`, then those of the entry points."""


def importer_named(name: str) -> Importer:
    """Return the importer of a format; raises `UnknownName`."""
    try:
        return IMPORTERS.load(name)
    except UnknownName as error:
        names = IMPORTERS.names()
        raise UnknownName(
            "format", name, names, remedy=f"Known: auto, {', '.join(names)}."
        ) from error


def role_of(importer: Importer) -> str:
    """Return the role of files of this format: `results`, `input`, `log` or `about`."""
    return str(getattr(importer, "ROLE", "results"))
