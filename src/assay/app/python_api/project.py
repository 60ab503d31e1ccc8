"""A project: the folder and the store that the verbs of `import assay` work on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from assay.app.python_api import notebook
from assay.app.python_api.completed_run import CompletedRun, Requirement, gate_of
from assay.app.python_api.drafts import (
    CandidateLike,
    SuiteDraft,
    SuiteLike,
    candidates_of,
    checked_candidate,
    checked_suite,
)
from assay.app.python_api.event_loop import in_thread, outside_loop
from assay.app.python_api.opened import opened
from assay.app.python_api.review_desk import ReviewDesk
from assay.app.runs import execution, extension, preflight
from assay.app.runs.run_request import ExtendRequest, RegradeRequest
from assay.app.statistics import results
from assay.app.workspace import existing_folder
from assay.domain.margins import Margin, margin_of, parsed_margin, required_margin
from assay.domain.one_or_many import identifier
from assay.domain.run import RunOptions
from assay.domain.selection import Selection

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from assay.app.calibration.setup import Calibrated
    from assay.app.exports.exporters import Exported
    from assay.app.imports.options import ImportOptions, ImportResult
    from assay.app.runs.regrade import Regraded
    from assay.app.runs.stopper import Stopper
    from assay.app.settings import Settings
    from assay.app.statistics import power as planning
    from assay.app.workspace import Workspace
    from assay.domain.events import Listener
    from assay.domain.suite import Suite

Folder: TypeAlias = str | Path | None
"""The folder of `assay.yaml` and the store; None for the working folder at the time of each call.
"""


@dataclass(frozen=True, slots=True)
class Project:
    """A folder and a store. Its methods are the functions of `assay`, which work on `Project()`.

    Attributes:
        folder: folder of `assay.yaml` and the store. Paths in suites are relative to it.
        store: address of the store, such as `sqlite:///path` or `postgresql://…`; None for the
            address in the settings.
    """

    folder: Folder = None
    store: str | None = None

    @property
    def review(self) -> ReviewDesk:
        """The review verbs of this project, such as `project.review.approve("a17")`."""
        return ReviewDesk(folder=self.folder, store=self.store)

    def load_suite(self, path: str | Path, *, judge: str | None = None) -> Suite:
        """Load and check a suite or set file; raises `InputError` with all problems."""
        with self._open() as workspace:
            return preflight.load(workspace.settings, Path(path), judge=judge)

    def run(
        self,
        suite: SuiteLike,
        *,
        options: RunOptions | None = None,
        judge: str | None = None,
        listener: Listener | None = None,
    ) -> CompletedRun:
        """Run a suite.

        Failures are part of the result and not raised. Works inside a running event loop.

        `judge` replaces the judge of the suite, unless the suite was already checked. Without
        `options`, concurrency and budget come from the settings. Without a `listener`, a notebook
        shows the progress.
        """
        return outside_loop(lambda stopper: self._run(suite, options, judge, listener, stopper))

    async def arun(
        self,
        suite: SuiteLike,
        *,
        options: RunOptions | None = None,
        judge: str | None = None,
        listener: Listener | None = None,
    ) -> CompletedRun:
        """Run a suite without blocking the event loop.

        If the task is cancelled, finished trials are kept.
        """
        return await in_thread(lambda stopper: self._run(suite, options, judge, listener, stopper))

    def submit_batch(
        self,
        suite: SuiteLike,
        *,
        options: RunOptions | None = None,
        judge: str | None = None,
        only_structure: bool = False,
    ) -> CompletedRun:
        """Store a run and send its first requests as a batch; arguments as in `run`.

        `only_structure` stops before judging.
        """
        from assay.app.runs import batch
        from assay.app.runs.start import tasks_of

        def work(_: Stopper | None) -> CompletedRun:
            with self._open() as workspace:
                checked, chosen = _checked(workspace.settings, suite, options, judge)
                plan = preflight.look_ahead(workspace, checked, chosen).plan
                done = batch.submit(
                    workspace, plan, tasks_of(checked, chosen, plan), only_structure=only_structure
                )
            return self._completed(done.result)

        return outside_loop(work)

    def collect_batch(self, run_id: str, *, watch: bool = False) -> CompletedRun:
        """Store the answers of a run's finished batches and send the next requests; with `watch`,
        repeat until the run is done.

        `.summary.state` is `submitted` while the run has open batches.
        """
        from assay.app.runs import batch

        def work(_: Stopper | None) -> CompletedRun:
            with self._open() as workspace:
                (done,) = batch.collect_all(workspace, [_run_id(run_id)], watch=watch)
            return self._completed(done.result)

        return outside_loop(work)

    def resume(
        self, run_id: str, *, budget_usd: float | None = None, listener: Listener | None = None
    ) -> CompletedRun:
        """Finish an incomplete run.

        `budget_usd` replaces the run's budget and includes its cost so far.
        """

        def work(stopper: Stopper | None) -> CompletedRun:
            with self._open() as workspace, notebook.progress(listener) as progress_listener:
                result = execution.resume(
                    workspace,
                    _run_id(run_id),
                    budget_usd=budget_usd,
                    listener=progress_listener,
                    stopper=stopper,
                )
            return self._completed(result)

        return outside_loop(work)

    def extend(
        self,
        run_id: str,
        *,
        trials: int = 0,
        until_approved: int | None = None,
        candidates: CandidateLike | Iterable[CandidateLike] = (),
        budget_usd: float | None = None,
        review: str | None = None,
        discard_reviews: bool = False,
        listener: Listener | None = None,
    ) -> CompletedRun:
        """Add trials to every task of a run, or candidates: models such as `openai/gpt-5-mini`, or
        `Candidate` objects.

        `budget_usd` is as in `resume`, and `review` is a larger review sample such as `sample:0.4`.
        Raises `Refused` if a joint judge must grade reviewed trials again because of a new
        candidate, unless `discard_reviews` is True.
        """

        def work(_: Stopper | None) -> CompletedRun:
            with self._open() as workspace, notebook.progress(listener) as progress_listener:
                request = ExtendRequest(
                    more_trials=trials,
                    until_approved=until_approved,
                    candidates=tuple(
                        checked_candidate(workspace.settings, candidate)
                        for candidate in candidates_of(candidates)
                    ),
                    budget_usd=budget_usd,
                    review=review,
                )
                result = extension.extend(
                    workspace,
                    _run_id(run_id),
                    request,
                    discard_reviews=discard_reviews,
                    listener=progress_listener,
                )
            return self._completed(result)

        return outside_loop(work)

    def regrade(
        self,
        run_id: str,
        *,
        judge: str | None = None,
        suite: str | Path | None = None,
        score: str | None = None,
        budget_usd: float | None = None,
        listener: Listener | None = None,
    ) -> Regraded:
        """Grade a run's stored responses again in a new run and compare both.

        The default budget comes from the settings.

        `score`: method, such as `contains`, that replaces the rules of the run's tasks; tasks that
        a judge grades keep their judge.
        """
        from assay.app.runs import regrade as regrading

        def work(_: Stopper | None) -> Regraded:
            with self._open() as workspace, notebook.progress(listener) as progress_listener:
                path = None if suite is None else Path(suite)
                request = RegradeRequest(judge=judge, suite=path, score=score)
                ahead = regrading.planned(
                    workspace, _run_id(run_id), request, budget_usd=budget_usd
                )
                return regrading.regrade(workspace, ahead, listener=progress_listener)

        return outside_loop(work)

    def import_results(
        self, paths: str | Path | Iterable[str | Path], *, options: ImportOptions | None = None
    ) -> ImportResult:
        """Import results of other programs.

        The result lists skipped entries, which raise no error.
        """
        from assay.app.imports.importer import import_paths
        from assay.app.imports.options import paths_of

        with self._open() as workspace:
            return import_paths(workspace, paths_of(paths), options)

    def calibrate(
        self,
        model: str,
        *,
        samples: str | Path | None = None,
        with_built_in: bool = False,
        suite: str | Path | None = None,
        repeat: int = 1,
        budget_usd: float | None = None,
    ) -> Calibrated:
        """Measure a judge against references and human corrections; `.trust` has the figures,
        `.record` the stored record.
        """
        from assay.app.calibration import measure
        from assay.app.calibration.calibration_request import CalibrationRequest

        request = CalibrationRequest(
            samples=None if samples is None else Path(samples),
            with_built_in=with_built_in,
            suite=None if suite is None else Path(suite),
            repeat=repeat,
            budget_usd=budget_usd,
        )

        def work(stopper: Stopper | None) -> Calibrated:
            with self._open() as workspace:
                return measure.calibrate(workspace, model, request, stopper=stopper)

        return outside_loop(work)

    def stats(self, selection: Selection | None = None) -> results.CandidateScores:
        """Compute each candidate's score over the counted trials."""
        with self._open() as workspace:
            return results.stats(workspace.store, workspace.settings, selection or Selection())

    def compare(
        self,
        a: str,
        b: str,
        selection: Selection | None = None,
        *,
        scope: str | None = None,
        margin: Margin | None = None,
    ) -> results.ComparisonResult:
        """Compare A with B; `.verdict` is a sentence, and `.comparison` contains the numbers.

        `margin` is 0.03 or `3pts`.
        """
        smallest = margin_of(margin, argument="margin")
        with self._open() as workspace:
            return results.compare(
                workspace.store,
                workspace.settings,
                selection or Selection(),
                a,
                b,
                scope=scope,
                margin=smallest,
            )

    def rank(
        self,
        selection: Selection | None = None,
        *,
        scope: str | None = None,
        margin: Margin | None = None,
    ) -> results.RankingResult:
        """Rank all candidates and compare all pairs; `.ranking` contains both."""
        smallest = margin_of(margin, argument="margin")
        with self._open() as workspace:
            return results.rank(
                workspace.store,
                workspace.settings,
                selection or Selection(),
                scope=scope,
                margin=smallest,
            )

    def plan(
        self,
        detect: Margin,
        selection: Selection | None = None,
        *,
        power: float = 0.8,
        scope: str | None = None,
    ) -> planning.PowerPlan:
        """Plan how many tasks or trials show a difference of `detect`; `.words` is a summary,
        `.pairs` has the numbers.
        """
        from assay.app.statistics import power as planning

        difference = required_margin(detect, argument="detect")
        with self._open() as workspace:
            return planning.plan(
                workspace.store,
                workspace.settings,
                selection or Selection(),
                detect=difference,
                power=power,
                scope=scope,
            )

    def gate(
        self,
        a: str,
        b: str | None = None,
        *,
        margin: Margin | None = None,
        baseline: str | None = None,
        require: Requirement | None = None,
        selection: Selection | None = None,
    ) -> results.GateResult:
        """Test that A is not worse than B, or than A in earlier runs, by more than the margin;
        `.passed` is True if this is shown.

        `baseline` is a run, a batch, or `latest:BATCH`. Without `margin`, the margin of the runs
        applies. With `require="vetted"`, grades that a script approved or that no person has seen
        raise `InputError`.
        """
        with self._open() as workspace:
            return gate_of(
                workspace,
                selection or Selection(),
                a,
                b,
                baseline=baseline,
                require=require,
                margin=margin,
            )

    def export(
        self,
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
    ) -> Exported:
        """Write counted results to a file; with `everything`, write results that do not count to a
        second file.

        `threshold`, `against` and `margin` set the rule of the junit format.
        """
        from assay.app.exports import export as exporting
        from assay.app.exports.exporters import ExportRequest

        with self._open() as workspace:
            request = ExportRequest(
                workspace=workspace,
                format=format,
                selection=selection or Selection(),
                output=Path(output),
                everything=everything,
                anonymise=anonymise,
                force=force,
                threshold=_threshold_of(threshold),
                against=against,
                margin=margin_of(margin, argument="margin"),
                vetted=require is not None,
            )
            return exporting.export(request)

    def _run(
        self,
        suite: SuiteLike,
        options: RunOptions | None,
        judge: str | None,
        listener: Listener | None,
        stopper: Stopper | None,
    ) -> CompletedRun:
        with self._open() as workspace, notebook.progress(listener) as progress_listener:
            checked, options = _checked(workspace.settings, suite, options, judge)
            result = execution.run(
                workspace, checked, options, listener=progress_listener, stopper=stopper
            )
        return self._completed(result)

    def _completed(self, result: execution.RunResult) -> CompletedRun:
        return CompletedRun.of(result, folder=existing_folder(self.folder), store=self.store)

    def _open(self) -> AbstractContextManager[Workspace]:
        return opened(self.folder, self.store)


def _threshold_of(threshold: Margin | None) -> float | None:
    """Return the mean that a task must reach; unlike a difference, 1 and 0 are allowed as
    numbers.
    """
    return parsed_margin(threshold, option="threshold") if isinstance(threshold, str) else threshold


def _run_id(run_id: object) -> str:
    return identifier(run_id, argument="run_id")


def _checked(
    settings: Settings, suite: SuiteLike, options: RunOptions | None, judge: str | None
) -> tuple[Suite, RunOptions]:
    values = settings.values
    options = options or RunOptions(concurrency=values["concurrency"], budget_usd=values["budget"])
    match suite:
        case str() | Path():
            return preflight.load(settings, Path(suite), judge=judge), options
        case SuiteDraft() | Mapping():
            return checked_suite(settings, suite, judge=judge), options
        case _:
            return suite, options
