"""Requirements that a test sets for a run: minimum means, a gate, and the number of trials that may
fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay.app.python_api.functions import run
from assay.app.python_api.opened import opened
from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import folded
from assay.domain.run import RunOptions
from assay.report import wording

if TYPE_CHECKING:
    from assay.app.python_api.completed_run import CompletedRun, Requirement
    from assay.app.python_api.drafts import SuiteLike
    from assay.app.statistics.results import CandidateScores, OnUndecided
    from assay.domain.margins import Margin
    from assay.statistics.estimates import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """Requirements for a run.

    Attributes:
        at_least: minimum mean over tasks (0 to 1), for all candidates or by candidate.
        candidate: candidate that the gate tests; optional if the run has one candidate, or two with
            `against`.
        against, baseline, margin, on_undecided: settings of the gate, as in `assay gate`.
        most_failed: maximum number of failed trials.
        require: with `vetted`, grades that a script approved or that no person has seen raise
            `Refused`.
    """

    at_least: float | Mapping[str, float] | None = None
    candidate: str | None = None
    against: str | None = None
    baseline: str | None = None
    margin: Margin | None = None
    on_undecided: OnUndecided = "pass"
    most_failed: int = 0
    require: Requirement | None = None


@dataclass(frozen=True, slots=True)
class DemandVerdict:
    """Verdict on a run's requirements.

    The first line of `text` is the verdict; further lines give details.

    `approvals` states how many counted grades of the run people approved, and how.
    """

    passed: bool
    text: str
    approvals: str


def run_and_check(
    suite: SuiteLike,
    demands: Demands,
    *,
    root: Path,
    beside: Path,
    store: str | None = None,
    batch_id: str | None = None,
    trials: int | None = None,
) -> tuple[CompletedRun, DemandVerdict]:
    """Run a suite in the folder `root` and check the requirements; paths are relative to
    `beside`.
    """
    if isinstance(suite, str | Path):
        suite = beside / suite
    with opened(root, store) as workspace:
        values = workspace.settings.values
    options = RunOptions(
        trials=trials,
        batch_id=batch_id,
        concurrency=values["concurrency"],
        budget_usd=values["budget"],
    )
    completed = run(suite, options=options, folder=root, store=store)
    return completed, verdict_on(completed, demands)


def verdict_on(completed: CompletedRun, demands: Demands) -> DemandVerdict:
    """Check the requirements for a run.

    A run with too little data fails, because grades that await review do not count.
    """
    if demands.require is not None:
        completed.require_vetted()
    scores = completed.stats()
    limits = _limits(scores.estimates, demands)
    sentences = [f"{e.candidate}: {wording.estimate_line(e)}" for e in scores.estimates]
    given = wording.approvals(scores.basis.approvals) or wording.NONE_APPROVED
    problems = [*_failed(completed, demands.most_failed), *_below(scores, limits)]
    if demands.against is not None or demands.baseline is not None:
        candidate = demands.candidate or _only_candidate(scores.estimates, demands.against)
        gate = completed.gate(
            candidate,
            against=demands.against,
            baseline=demands.baseline,
            margin=demands.margin,
            require=demands.require,
        )
        (problems if gate.blocks(demands.on_undecided) else sentences).insert(
            0, f"{gate.verdict} {gate.contrast.verdict}"
        )
    if not problems:
        return DemandVerdict(True, "\n".join(sentences), given)
    review = (
        f"assay review --run {completed.id}"
        if completed.pending()
        else f"assay show {completed.id}"
    )
    return DemandVerdict(False, "\n".join([*problems, *sentences, f"See: {review}"]), given)


def _limits(estimates: Sequence[Estimate], demands: Demands) -> dict[str, float]:
    """Return the minimum mean by candidate; raises `InputError` for a limit outside 0 to 1 or an
    unknown candidate.
    """
    if demands.at_least is None:
        return {}
    names = {folded(str(estimate.candidate)): str(estimate.candidate) for estimate in estimates}
    given = demands.at_least
    limits = {} if isinstance(given, Mapping) else dict.fromkeys(names.values(), float(given))
    for name, limit in given.items() if isinstance(given, Mapping) else ():
        if folded(name) not in names:
            raise UnknownName("candidate", name, names.values())
        limits[names[folded(name)]] = float(limit)
    for limit in limits.values():
        if not 0 <= limit <= 1:
            raise InputError(
                "at_least",
                f"is {limit:g}, expected a score from 0 to 1.",
                remedy="Write 0.8 for 80.",
            )
    return limits


def _below(scores: CandidateScores, limits: Mapping[str, float]) -> Iterator[str]:
    for estimate in scores.estimates:
        limit = limits.get(str(estimate.candidate))
        if limit is None:
            continue
        if estimate.mean is None:
            counted = wording.what_counts(
                scores.basis.n_trials, scores.basis.excluded, scores.basis.approvals
            )
            yield f"{estimate.candidate} has no score, but {wording.number(limit)} is required: {counted}."
        elif estimate.mean < limit - 1e-12:  # a mean may be too low by its last binary digit
            yield f"{estimate.candidate} scores {wording.number(estimate.mean)}, below {wording.number(limit)}."
            low = [task for task in estimate.by_task if task.mean < limit]
            yield from (f"  {wording.task_line(task)}" for task in low[:10])
            if len(low) > 10:
                yield f"  and {len(low) - 10} more tasks"


def _failed(completed: CompletedRun, most: int) -> Iterator[str]:
    if len(completed.failures) <= most:
        return
    yield f"{wording.count(len(completed.failures), 'trial')} failed; allowed: {most}."
    for row in completed.failures[:10]:
        if row.failure is not None:
            yield f"  {row.task} trial {row.k}: {row.failure.kind} ({row.failure.fault}): {row.failure.detail}"


def _only_candidate(estimates: Sequence[Estimate], against: str | None) -> str:
    names = [
        str(e.candidate)
        for e in estimates
        if against is None or folded(str(e.candidate)) != folded(against)
    ]
    if len(names) != 1:
        raise InputError(
            "candidate",
            "is not named.",
            remedy=f"Choose the candidate to test: {', '.join(names)}.",
        )
    return names[0]
