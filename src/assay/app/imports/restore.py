"""Rebuild a store from a results folder, for example after losing the database."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from assay.app.wire import document, fill, source
from assay.domain.errors import InputError
from assay.domain.identifiers import RunId
from assay.domain.import_records import Skipped
from assay.exchange.results_folder import folder as results_folder

if TYPE_CHECKING:
    from pathlib import Path

    from assay.app.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """Result of a rebuild.

    Attributes:
        runs: restored runs; `there` lists runs that were already in the store.
        renumbered: True if trials and assessments have new numbers, because the store was not empty.
        aside: deleted or replaced runs, which a rebuild leaves as they are.
        altered, altered_votes: numbers of decisions and votes in the folder that were edited afterwards.
        skipped: unusable records.
    """

    runs: tuple[str, ...]
    there: tuple[str, ...]
    aside: tuple[str, ...]
    tasks: int
    trials: int
    responses: int
    assessments: int
    events: int
    votes: int
    renumbered: bool
    altered: tuple[int, ...]
    altered_votes: tuple[int, ...]
    skipped: tuple[Skipped, ...]


def rebuild(workspace: Workspace, folder: Path) -> Rebuilt:
    """Restore the results folder's runs that the store lacks; a second call changes nothing.

    Raises:
        InputError: not a results folder of Assay.
    """
    heads: list[tuple[int, str, Path]] = []
    skipped: list[Skipped] = []
    paths = results_folder.records(folder)
    if not paths and not results_folder.runs_aside(folder):
        problem = f"holds no records of runs (no {results_folder.RECORDS} folder with records)."
        remedy = "Name the results folder of a project, as `assay config` shows it."
        raise InputError(str(folder), problem, remedy=remedy)
    for path in paths:
        try:
            (head,) = islice(results_folder.record_lines(path), 1)
            if head.get("kind") != "run":
                raise InputError(str(path), "does not begin with the record of its run.")
            heads.append((int(head["run"]["key"]), head["run"]["id"], path))
        except (InputError, KeyError, TypeError, ValueError, OSError) as error:
            skipped.append(Skipped(where=str(path), why=str(error)))
    # Sorted by their numbers in the store: sorted by time, a regrade could come before its origin.
    order = sorted(heads)
    restored = workspace.store.restoring.restore((run, partial(results_folder.record_lines, path)) for _, run, path in order)
    home = workspace.results.folder
    if home is not None and (restored.renumbered or home.resolve() != folder.resolve()):
        for run in restored.runs:  # the records get the numbers that they have in the store
            workspace.results.end(RunId(run))
    removed = {run for run in restored.there if workspace.store.run_removal.is_aside(run)}
    return fill(
        Rebuilt,
        restored,
        there=tuple(run for run in restored.there if run not in removed),
        aside=tuple(sorted({*results_folder.runs_aside(folder), *removed})),
        skipped=tuple(skipped),
    )


@document
class SkippedDocument:
    """Something that was not imported, and why."""

    where: str
    why: str


@document
class RebuiltCountsDocument:
    """Counts of the rows restored from a results folder."""

    runs: int
    tasks: int
    trials: int
    responses: int
    assessments: int
    events: int
    votes: int


@document
class RebuiltDocument:
    """The document of `import results --rebuild`; `there` lists runs already in the store, `aside` deleted or replaced ones."""

    format: str
    imported: RebuiltCountsDocument
    run_ids: tuple[str, ...] = source("runs")
    there: tuple[str, ...]
    aside: tuple[str, ...]
    renumbered: bool
    altered_events: tuple[int, ...] = source("altered")
    altered_votes: tuple[int, ...]
    skipped: tuple[SkippedDocument, ...]


def rebuilt_document(rebuilt: Rebuilt) -> RebuiltDocument:
    """Return the document of a rebuild."""
    counts = fill(RebuiltCountsDocument, rebuilt, runs=len(rebuilt.runs))
    return fill(RebuiltDocument, rebuilt, format="results", imported=counts)
