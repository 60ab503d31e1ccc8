"""Rebuild a store from a results folder, for example after losing the database."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from assay.app.wire import document
from assay.domain.errors import InputError
from assay.domain.identifiers import RunId
from assay.domain.import_records import Skipped
from assay.exchange.results_folder import folder as results_folder

if TYPE_CHECKING:
    from pathlib import Path

    from assay.app.results_folder import Projector
    from assay.store.opening import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """Result of rebuilding a store.

    Attributes:
        runs: restored runs; `there` lists runs that the store already had.
        renumbered: True if trials and assessments got new numbers, because the store was not empty.
        aside: deleted or replaced runs, which are not restored.
        altered, altered_votes: number of decisions and votes that were edited in the folder after
            Assay wrote them.
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


def rebuild(store: Store, results: Projector, folder: Path) -> Rebuilt:
    """Restore all runs of a results folder that the store does not have; raises `InputError` for
    any other folder.
    """
    heads: list[tuple[int, str, Path]] = []
    skipped: list[Skipped] = []
    paths = results_folder.records(folder)
    if not paths and not results_folder.runs_aside(folder):
        problem = f"contains no run records (no {results_folder.RECORDS} folder with records)."
        remedy = "Give the results folder of a project, as `assay config` shows it."
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
    restored = store.restoring.restore(
        (run, partial(results_folder.record_lines, path)) for _, run, path in order
    )
    home = results.folder
    if home is not None and (restored.renumbered or home.resolve() != folder.resolve()):
        for run in restored.runs:  # the records get the numbers that they have in the store
            results.end(RunId(run))
    removed = {run for run in restored.there if store.run_removal.is_aside(run)}
    return Rebuilt(
        runs=restored.runs,
        there=tuple(run for run in restored.there if run not in removed),
        aside=tuple(sorted({*results_folder.runs_aside(folder), *removed})),
        tasks=restored.tasks,
        trials=restored.trials,
        responses=restored.responses,
        assessments=restored.assessments,
        events=restored.events,
        votes=restored.votes,
        renumbered=restored.renumbered,
        altered=restored.altered,
        altered_votes=restored.altered_votes,
        skipped=tuple(skipped),
    )


@document
class RebuiltCountsDocument:
    """JSON of the number of rows restored from a results folder."""

    runs: int
    tasks: int
    trials: int
    responses: int
    assessments: int
    events: int
    votes: int


@document
class RebuiltDocument:
    """JSON of `assay import results --rebuild`; `there` lists runs already stored, `aside` deleted
    or replaced runs.
    """

    format: str
    imported: RebuiltCountsDocument
    run_ids: tuple[str, ...]
    there: tuple[str, ...]
    aside: tuple[str, ...]
    renumbered: bool
    altered_events: tuple[int, ...]
    altered_votes: tuple[int, ...]
    skipped: tuple[Skipped, ...]


def rebuilt_document(rebuilt: Rebuilt) -> RebuiltDocument:
    return RebuiltDocument(
        format="results",
        imported=RebuiltCountsDocument(
            runs=len(rebuilt.runs),
            tasks=rebuilt.tasks,
            trials=rebuilt.trials,
            responses=rebuilt.responses,
            assessments=rebuilt.assessments,
            events=rebuilt.events,
            votes=rebuilt.votes,
        ),
        run_ids=rebuilt.runs,
        there=rebuilt.there,
        aside=rebuilt.aside,
        renumbered=rebuilt.renumbered,
        altered_events=rebuilt.altered,
        altered_votes=rebuilt.altered_votes,
        skipped=rebuilt.skipped,
    )
