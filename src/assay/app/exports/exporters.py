"""Exporters and the table of export formats.

An exporter takes an `ExportRequest`, returns `Exported`, and raises `InputError` for options that
its format does not use. It writes with `open_output`, so that a file is either complete or absent.
It receives rows one by one, because a store may contain millions. To add an exporter to Assay,
write one function (such as `export.export_report`) and add a line to the table below. A package
registers its exporter in the entry-point group `assay.exporters`. `assay.testing.ExporterContract`
tests both.
"""

from __future__ import annotations

import tomllib
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from assay.app.exports.pseudonyms import Anonymiser, names_for
from assay.app.statistics.run_choice import choose
from assay.domain.errors import InputError
from assay.domain.run_choice import runs_read
from assay.exchange.results_folder.atomic_files import AtomicFile
from assay.plugin_registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from assay.app.workspace import Workspace
    from assay.domain.review import Approvals
    from assay.domain.run_choice import ChosenRuns, RunsRead
    from assay.domain.selection import ScoreRow, Selection

    Write = Callable[[str], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """Options of one export.

    Attributes:
        format: name of the export format.
        output: file to write; None to send the text to `write`.
        everything: True to write results that do not count to a second file.
        anonymise: True to replace the names of candidates and reviewers with pseudonyms.
        force: True to replace existing files.
        threshold, against, margin: settings of the `junit` rule.
        chosen: the choice of runs that `selection` names; None until `with_runs` has made it.
        vetted: True to refuse grades that no person read on a screen.
    """

    workspace: Workspace
    format: str
    selection: Selection
    output: Path | None = None
    everything: bool = False
    anonymise: bool = False
    force: bool = False
    write: Write | None = None
    threshold: float | None = None
    against: str | None = None
    margin: float | None = None
    chosen: ChosenRuns | None = None
    vetted: bool = False

    def names(self) -> Anonymiser:
        """Return the pseudonyms of the selected runs. Without `anonymise`, names stay unchanged."""
        if not self.anonymise:
            return Anonymiser()
        runs = self.workspace.archive.runs.matching(self.selection)
        return names_for([self.workspace.journal.plan_of(run.id) for run in runs], runs)

    def score_rows(self) -> Iterator[ScoreRow]:
        """Yield every counted score. With `anonymise`, names are pseudonyms."""
        names = self.names()
        for row in self.workspace.archive.exports.score_rows(self.selection, everything=False):
            yield replace(row, candidate=names.candidate(row.candidate)) if names.active else row

    def need_file(self, why: str) -> None:
        """Raise `InputError` if the user gave no output file."""
        if self.output is None:
            raise InputError(
                "--output",
                f"{why}, so a file name is needed.",
                remedy=f"Use --output FILE.{self.format}.",
            )

    @contextmanager
    def open_output(self, path: Path | None = None) -> Iterator[OpenOutput]:
        """Open the output file.

        It appears only when it is complete, so an exception leaves no file.
        """
        target = path or self.output
        if target is None:
            yield OpenOutput(None, self.write or _discard)
            return
        with AtomicFile(target, force=self.force) as file:
            yield OpenOutput(file, file.write)


@dataclass(frozen=True, slots=True)
class OpenOutput:
    """An open text stream and its file name; standard output has no file name."""

    file: AtomicFile | None
    write: Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Result of an export.

    Attributes:
        output: the file; None for standard output.
        rows: number of counted rows: scores (csv, parquet), assessments (json, jsonl) or runs
            (results). None without rows.
        unseen: number of counted rows that no person has seen.
        apart: file with results that do not count; None if the user did not request it.
        read: the exported runs, with their counted trials.
        approvals: number of counted grades that people approved, by how each decision came about;
            None if no runs were chosen.
    """

    format: str
    output: Path | None
    rows: int | None
    unseen: int | None
    apart: Path | None = None
    rows_apart: int = 0
    read: RunsRead | None = None
    approvals: Approvals | None = None


class Exporter(Protocol):
    """Function that writes one export format."""

    def __call__(self, request: ExportRequest, /) -> Exported:
        """Write the export; raises `InputError` for options that the format does not use."""
        ...


EXPORTERS: Final[Registry[Exporter]] = Registry(
    kind="export format",
    group="assay.exporters",
    own={
        name: f"{__package__}.{function}"
        for name, function in tomllib.loads(
            (files(__package__) / "formats.toml").read_text("utf-8")
        ).items()
    },
    members=("__call__",),
)


def with_runs(request: ExportRequest) -> ExportRequest:
    """Choose the runs of an export: the newest run, unless the user asked for more
    (`app.statistics.run_choice`).

    `results` is a copy of the store, which pools nothing, and so contains every run that the
    filters match.
    """
    selection = request.selection
    if request.format == "results" and not selection.runs:
        selection = replace(selection, all_runs=True)
    chosen = choose(request.workspace.store, selection)
    return replace(request, selection=chosen.selection, chosen=chosen)


def runs_written(request: ExportRequest) -> RunsRead | None:
    """Return the runs of an export whose runs were chosen; None for `results`, which lists its
    own.
    """
    if request.chosen is None or request.format == "results":
        return None
    by_run = request.workspace.archive.scores.counted_by_run(request.selection)
    runs = [run.id for run in reversed(request.chosen.runs)]
    return runs_read(request.chosen, runs, sum(by_run.values()), by_run=by_run)


def only_counted(request: ExportRequest) -> None:
    """Raise `InputError` if the user requested results that do not count."""
    if request.everything:
        problem = f"{request.format} holds only counted results."
        raise InputError("--all", problem, remedy="Use --all with csv, parquet, json or jsonl.")


def output_folder(request: ExportRequest, *, one_file: bool = True) -> Path | None:
    """Return the output folder, created if needed; None for a single file or standard output.

    With several files to write (`one_file` is False), a name without a suffix is a folder.
    """
    output = request.output
    if output is None or (not output.is_dir() and (one_file or output.suffix)):
        return None
    try:
        output.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            str(output), f"cannot be created: {error.strerror}.", remedy="Choose another folder."
        ) from error
    return output


def exported_file(workspace: Workspace, form: str, selection: Selection) -> BinaryIO:
    """Return an open file without a name that holds what an export would write; raises the
    exporter's `InputError`.
    """
    with TemporaryDirectory(prefix="assay-") as folder:
        file = Path(folder) / "export"
        request = ExportRequest(workspace=workspace, format=form, selection=selection, output=file)
        EXPORTERS.load(form)(with_runs(request))
        # The folder is deleted, and the content stays until the file is closed.
        return file.open("rb")


def text_file(text: str) -> BinaryIO:
    """Return an open file without a name that holds the text as an export would write it."""
    with TemporaryDirectory(prefix="assay-") as folder:
        path = Path(folder) / "export"
        with AtomicFile(path, lasting=False) as file:
            file.write(text)
        return path.open("rb")


def _discard(_: str) -> None:
    """Ignore the text."""
