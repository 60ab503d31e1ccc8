"""The page of a batch: its runs, their totals, and the matrix of its tasks by trials or
candidates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Final, TypedDict
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request, Response

from assay.app.registry import batch_matrix
from assay.app.registry.batch_matrix import Across, Line, Matrix, MatrixCell
from assay.app.review.review_documents import approvals_document
from assay.app.statistics.results import wording
from assay.domain.errors import UnknownName
from assay.domain.identifiers import RunId, shown_trial
from assay.domain.review import Approvals
from assay.domain.selection import RunSummary, Selection
from assay.web.context import services_of
from assay.web.query_params import PageQuery, place_of, whole
from assay.web.responses import Answer
from assay.web.run_rows import approvals_of_runs, run_row
from assay.web.safe_text import visible
from assay.web.templating import page_of
from assay.web.texts import t

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


OPENED: Final = frozenset({"needs_review", "approved", "rejected"})
_KIND: Final = {"pending": "planned", "needs_review": "pending"}

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunColumn:
    """One run's columns in the matrix; `width` is the number of its trials."""

    id: RunId
    open: str
    started: str
    width: int


class BatchQuery(PageQuery):
    """The page's state: the suite, the columns of the matrix, and the part of it that is shown."""

    suite: str = ""
    across: Across = Across.TRIALS
    candidate: str = ""
    runs: str = ""
    after: str = ""

    @property
    def first_run(self) -> int:
        return whole("runs", self.runs or "0", high=100_000)


# Declared before the page's route, which accepts any path and would treat `.json` as part of the
# batch id.
@router.get("/batches/{batch_id:path}.json")
def batch_twin(request: Request, batch_id: str, wanted: Annotated[BatchQuery, Query()]) -> Response:
    summaries = _batch(request, batch_id)
    matrix = _matrix(request, summaries, wanted)
    by_run = approvals_of_runs(services_of(request).workspace, summaries)
    return Answer(
        {
            "batch_id": batch_id,
            "runs": [run_row(summary, by_run[summary.id]) for summary in summaries],
            "together": _together(summaries, by_run),
            "matrix": {
                "suite": matrix.suite,
                "runs": [{"run_id": each.id} for each, _ in matrix.runs],
                "differences": matrix.differences,
                "tasks": [_document(line) for line in matrix.lines],
                "next": None
                if matrix.after is None
                else wanted.address(
                    f"{_path(batch_id)}.json", BatchQuery(after=_shown(matrix.after))
                ),
            },
        }
    )


class BatchContext(TypedDict):
    """Values of `registry/batch.html`."""

    batch: str
    rows: Sequence[object]
    approvals: Mapping[RunId, str]
    together: Mapping[str, object]
    all_approvals: str
    matrix: Mapping[str, object]
    statistics: str
    compare: str
    registry: str


@router.get("/batches/{batch_id:path}")
def batch_page(request: Request, batch_id: str, wanted: Annotated[BatchQuery, Query()]) -> Response:
    """Show the runs of a batch, their totals, and the matrix of its tasks."""
    summaries, path = _batch(request, batch_id), _path(batch_id)
    matrix = _matrix(request, summaries, wanted)
    query = urlencode({"batch_id": batch_id})
    by_run = approvals_of_runs(services_of(request).workspace, summaries)
    return page_of(
        request,
        "registry/batch.html",
        title=f"Batch {visible(batch_id)}",
        twin=wanted.address(f"{path}.json"),
        **BatchContext(
            batch=visible(batch_id),
            rows=[
                replace(run_row(summary, by_run[summary.id]), suite=visible(summary.suite))
                for summary in summaries
            ],
            approvals={run: wording.approvals_cell(given) for run, given in by_run.items()},
            together=_together(summaries, by_run),
            all_approvals=wording.approvals_cell(Approvals.sum(by_run.values())),
            matrix=_parts(matrix, wanted, batch_id),
            statistics=f"/results?{query}",
            compare=f"/compare?{urlencode({'find': batch_id})}",
            registry=f"/runs?{urlencode({'batch': batch_id})}",
        ),
    )


def _batch(request: Request, batch_id: str) -> tuple[RunSummary, ...]:
    summaries = services_of(request).workspace.archive.runs.matching(
        Selection(batch_ids=(batch_id,))
    )
    if not summaries:
        raise UnknownName("batch", batch_id)
    return summaries


def _matrix(request: Request, summaries: tuple[RunSummary, ...], wanted: BatchQuery) -> Matrix:
    return batch_matrix.matrix(
        services_of(request).workspace.store,
        summaries,
        suite=wanted.suite,
        candidate=wanted.candidate,
        first_run=wanted.first_run,
        after=place_of("after", wanted.after),
    )


def _path(batch_id: str) -> str:
    return f"/batches/{quote(batch_id, safe='')}"


def _parts(matrix: Matrix, wanted: BatchQuery, batch_id: str) -> Mapping[str, object]:
    names, path = matrix.candidates, _path(batch_id)
    first_run, runs = wanted.first_run, batch_matrix.RUNS
    trials = [
        RunColumn(
            id=summary.id,
            open=f"/runs/{quote(summary.id, safe='')}",
            started=summary.started,
            width=width,
        )
        for summary, width in matrix.runs
        if width
    ]
    by_trial = wanted.across is Across.TRIALS
    return {
        "across": wanted.across.value,
        "ways": [
            (across.value, wanted.address(path, BatchQuery(across=across))) for across in Across
        ],
        "suite": matrix.suite,
        "suites": [(visible(name), name) for name in matrix.suites],
        "candidate": wanted.candidate,
        "candidates": [(visible(name), name) for name in names],
        "runs": trials if by_trial else [],
        "names": [] if by_trial else [visible(name) for name in names],
        "rows": [
            {
                "thing": visible(line.thing),
                "task": visible(line.task),
                "open": "/statistics/trials?"
                + urlencode({"batch_id": batch_id, "task": line.task}),
                "cells": _trial_cells(line, trials)
                if by_trial
                else _candidate_cells(line, names, batch_id),
            }
            for line in matrix.lines
        ],
        "differences": "" if by_trial else visible(matrix.differences),
        "more_trials": by_trial and matrix.more_trials,
        "first": wanted.address(path, BatchQuery(after="")) if wanted.after else None,
        "later": None
        if matrix.after is None
        else wanted.address(path, BatchQuery(after=_shown(matrix.after))),
        "newer": wanted.address(
            path, BatchQuery(runs=str(max(0, first_run - runs) or ""), after="")
        )
        if first_run
        else None,
        "older": wanted.address(path, BatchQuery(runs=str(first_run + runs), after=""))
        if matrix.earlier_runs
        else None,
    }


def _trial_cells(line: Line, runs: list[RunColumn]) -> list[Mapping[str, object] | None]:
    cells: list[Mapping[str, object] | None] = []
    for run in runs:
        by_trial = {cell.trial.k: cell for cell in line.cells.get(run.id, ())}
        cells += [
            _trial_cell(line, run, by_trial[k]) if k in by_trial else None
            for k in range(1, run.width + 1)
        ]
    return cells


def _trial_cell(line: Line, run: RunColumn, cell: MatrixCell) -> Mapping[str, object]:
    state, trial = str(cell.trial.state), shown_trial(cell.trial.key)
    score = None if cell.score is None else f"{100 * cell.score:.0f}"
    word = t(f"trial.{state}")
    label = f"{visible(line.thing)}, run {run.id}, trial {cell.trial.k}: {word}"
    failure = f"{run.open}#{trial}" if state == "failed" else None
    return {
        "kind": _KIND.get(state, state),
        "word": word,
        "score": score,
        "label": label if score is None else f"{label}, {score}",
        "open": f"{run.open}/trials/{trial}" if state in OPENED else failure,
        "first": cell.trial.k == 1,
    }


def _candidate_cells(
    line: Line, names: tuple[str, ...], batch_id: str
) -> list[Mapping[str, object] | None]:
    cells: list[Mapping[str, object] | None] = []
    for name in names:
        if name not in line.means:
            cells.append(None)
            continue
        mean, n = line.means[name]
        query = urlencode({"batch_id": batch_id, "task": line.task, "candidate": name})
        cells.append(
            {
                "score": f"{100 * mean:.0f}",
                "n": n,
                # One of ten classes, because the content policy forbids inline styles.
                "shade": min(9, int(10 * mean)),
                "open": f"/statistics/trials?{query}",
                "label": f"{visible(line.thing)}, {visible(name)}: {100 * mean:.0f} over {n}",
            }
        )
    return cells


def _document(line: Line) -> Mapping[str, object]:
    return {
        "task": line.task,
        "thing": line.thing,
        "trials": [
            {
                "run_id": run,
                "id": shown_trial(cell.trial.key),
                "trial": cell.trial.k,
                "state": str(cell.trial.state),
                "score": cell.score,
            }
            for run, run_cells in line.cells.items()
            for cell in run_cells
        ],
        "candidates": {
            name: {"mean": mean, "n_trials": n} for name, (mean, n) in line.means.items()
        },
    }


def _together(
    summaries: tuple[RunSummary, ...], by_run: Mapping[RunId, Approvals]
) -> Mapping[str, object]:
    rows = [run_row(summary, by_run[summary.id]) for summary in summaries]
    costs = [summary.cost_usd for summary in summaries if summary.cost_usd is not None]
    return {
        "runs": len(rows),
        "trials": sum(row.trials["total"] for row in rows),
        "done": sum(row.judged for row in rows),
        "approved": sum(row.trials["approved"] for row in rows),
        "approvals": approvals_document(Approvals.sum(by_run.values())),
        "waiting": sum(row.waiting for row in rows),
        "failed": sum(row.failed for row in rows),
        "tokens": {
            "input": sum(summary.input_tokens for summary in summaries),
            "output": sum(summary.output_tokens for summary in summaries),
        },
        "cost_usd": sum(costs) if costs else None,
    }


def _shown(place: tuple[int, int] | None) -> str:
    return "" if place is None else f"{place[0]}.{place[1]}"
