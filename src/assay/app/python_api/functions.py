"""The commands of Assay as Python functions: the methods of `Project`, of the current folder unless
`folder` is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.app.python_api.project import Folder, Project

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from assay.app.calibration.setup import Calibrated
    from assay.app.exports.exporters import Exported
    from assay.app.imports.options import ImportOptions, ImportResult
    from assay.app.python_api.completed_run import CompletedRun, Requirement
    from assay.app.python_api.drafts import CandidateLike, SuiteLike
    from assay.app.runs.regrade import Regraded
    from assay.app.statistics import results
    from assay.app.statistics.power import PowerPlan
    from assay.domain.events import Listener
    from assay.domain.margins import Margin
    from assay.domain.run import RunOptions
    from assay.domain.selection import Selection
    from assay.domain.suite import Suite


def load_suite(path: str | Path, *, judge: str | None = None, folder: Folder = None) -> Suite:
    """Load and check a suite or set file; raises `InputError` with all problems."""
    return Project(folder).load_suite(path, judge=judge)


def run(
    suite: SuiteLike,
    *,
    options: RunOptions | None = None,
    judge: str | None = None,
    listener: Listener | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> CompletedRun:
    """Run a suite.

    Failures are part of the result and not raised. Works inside a running event loop.

    `judge` replaces the judge of the suite, unless the suite was already checked. Without
    `options`, concurrency and budget come from the settings. Without a `listener`, a notebook shows
    the progress.
    """
    return Project(folder, store).run(suite, options=options, judge=judge, listener=listener)


async def arun(
    suite: SuiteLike,
    *,
    options: RunOptions | None = None,
    judge: str | None = None,
    listener: Listener | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> CompletedRun:
    """Run a suite without blocking the event loop.

    If the task is cancelled, finished trials are kept.
    """
    return await Project(folder, store).arun(suite, options=options, judge=judge, listener=listener)


def submit_batch(
    suite: SuiteLike,
    *,
    options: RunOptions | None = None,
    judge: str | None = None,
    only_structure: bool = False,
    store: str | None = None,
    folder: Folder = None,
) -> CompletedRun:
    """Store a run and send its first requests as a batch; arguments as in `run`.

    `only_structure` stops before judging.
    """
    return Project(folder, store).submit_batch(
        suite, options=options, judge=judge, only_structure=only_structure
    )


def collect_batch(
    run_id: str, *, watch: bool = False, store: str | None = None, folder: Folder = None
) -> CompletedRun:
    """Store the answers of a run's finished batches and send the next requests; with `watch`,
    repeat until the run is done.

    `.summary.state` is `submitted` while the run has open batches.
    """
    return Project(folder, store).collect_batch(run_id, watch=watch)


def resume(
    run_id: str,
    *,
    budget_usd: float | None = None,
    listener: Listener | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> CompletedRun:
    """Finish an incomplete run.

    `budget_usd` replaces the run's budget and includes its cost so far.
    """
    return Project(folder, store).resume(run_id, budget_usd=budget_usd, listener=listener)


def extend(
    run_id: str,
    *,
    trials: int = 0,
    until_approved: int | None = None,
    candidates: CandidateLike | Iterable[CandidateLike] = (),
    budget_usd: float | None = None,
    review: str | None = None,
    discard_reviews: bool = False,
    listener: Listener | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> CompletedRun:
    """Add trials to every task of a run, or candidates: models such as `openai/gpt-5-mini`, or
    `Candidate` objects.

    `budget_usd` is as in `resume`, and `review` is a larger review sample such as `sample:0.4`.
    Raises `Refused` if a joint judge must grade reviewed trials again because of a new candidate,
    unless `discard_reviews` is True.
    """
    return Project(folder, store).extend(
        run_id,
        trials=trials,
        until_approved=until_approved,
        candidates=candidates,
        budget_usd=budget_usd,
        review=review,
        discard_reviews=discard_reviews,
        listener=listener,
    )


def regrade(
    run_id: str,
    *,
    judge: str | None = None,
    suite: str | Path | None = None,
    score: str | None = None,
    budget_usd: float | None = None,
    listener: Listener | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> Regraded:
    """Grade a run's stored responses again in a new run and compare both.

    The default budget comes from the settings.

    `score`: method, such as `contains`, that replaces the rules of the run's tasks; tasks that a
    judge grades keep their judge.
    """
    return Project(folder, store).regrade(
        run_id, judge=judge, suite=suite, score=score, budget_usd=budget_usd, listener=listener
    )


def import_results(
    paths: str | Path | Iterable[str | Path],
    *,
    options: ImportOptions | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> ImportResult:
    """Import results of other programs. The result lists skipped entries, which raise no error."""
    return Project(folder, store).import_results(paths, options=options)


def calibrate(
    model: str,
    *,
    samples: str | Path | None = None,
    with_built_in: bool = False,
    suite: str | Path | None = None,
    repeat: int = 1,
    budget_usd: float | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> Calibrated:
    """Measure a judge against references and human corrections; `.trust` has the figures, `.record`
    the stored record.
    """
    return Project(folder, store).calibrate(
        model,
        samples=samples,
        with_built_in=with_built_in,
        suite=suite,
        repeat=repeat,
        budget_usd=budget_usd,
    )


def stats(
    selection: Selection | None = None, *, store: str | None = None, folder: Folder = None
) -> results.CandidateScores:
    """Compute each candidate's score over the counted trials."""
    return Project(folder, store).stats(selection)


def compare(
    a: str,
    b: str,
    selection: Selection | None = None,
    *,
    scope: str | None = None,
    margin: Margin | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> results.ComparisonResult:
    """Compare A with B; `.verdict` is a sentence, and `.comparison` contains the numbers.

    `margin` is 0.03 or `3pts`.
    """
    return Project(folder, store).compare(a, b, selection, scope=scope, margin=margin)


def rank(
    selection: Selection | None = None,
    *,
    scope: str | None = None,
    margin: Margin | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> results.RankingResult:
    """Rank all candidates and compare all pairs; `.ranking` contains both."""
    return Project(folder, store).rank(selection, scope=scope, margin=margin)


def plan(
    detect: Margin,
    selection: Selection | None = None,
    *,
    power: float = 0.8,
    scope: str | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> PowerPlan:
    """Plan how many tasks or trials show a difference of `detect`; `.words` is a summary, `.pairs`
    has the numbers.
    """
    return Project(folder, store).plan(detect, selection, power=power, scope=scope)


def gate(
    a: str,
    b: str | None = None,
    *,
    margin: Margin | None = None,
    baseline: str | None = None,
    require: Requirement | None = None,
    selection: Selection | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> results.GateResult:
    """Test that A is not worse than B, or than A in earlier runs, by more than the margin;
    `.passed` is True if this is shown.

    `baseline` is a run, a batch, or `latest:BATCH`. Without `margin`, the margin of the runs
    applies. With `require="vetted"`, grades that a script approved or that no person has seen raise
    `InputError`.
    """
    return Project(folder, store).gate(
        a, b, margin=margin, baseline=baseline, require=require, selection=selection
    )


def export(
    format: str,  # noqa: A002 # the command's word for it
    selection: Selection | None = None,
    *,
    output: str | Path,
    everything: bool = False,
    anonymise: bool = False,
    force: bool = False,
    threshold: Margin | None = None,
    against: str | None = None,
    margin: Margin | None = None,
    require: Requirement | None = None,
    store: str | None = None,
    folder: Folder = None,
) -> Exported:
    """Write counted results to a file; with `everything`, write results that do not count to a
    second file.

    `threshold`, `against` and `margin` set the rule of the junit format.
    """
    return Project(folder, store).export(
        format,
        selection,
        output=output,
        everything=everything,
        anonymise=anonymise,
        force=force,
        threshold=threshold,
        against=against,
        margin=margin,
        require=require,
    )
