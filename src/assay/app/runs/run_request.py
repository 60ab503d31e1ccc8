"""Requests to start, extend and regrade a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from assay.domain.review_sample import ReviewRule
    from assay.domain.suite import CandidateSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A request to run a suite. None and empty values keep the settings of its file.

    Attributes:
        trials: number of trials of every task.
        candidates: names of candidates in the suite, or models as provider/name.
        judge: model that grades.
        benchmark: True to call candidates with temperature and penalties set to 0.
        review: rule for which grades a person must review.
        batch_id: label that groups runs.
        budget_usd: maximum cost of the run; None for the budget in the settings.
        limit: number of tasks to run, from the start of the suite.
    """

    trials: int | None = None
    candidates: tuple[str, ...] = ()
    judge: str | None = None
    benchmark: bool = False
    review: ReviewRule | None = None
    batch_id: str | None = None
    budget_usd: float | None = None
    limit: int | None = None

    def of_answers(self, default_judge: str | None) -> RegradeRequest:
        """Return the request that grades imported answers with the settings of this one."""
        return RegradeRequest(
            judge=self.judge or default_judge,
            review=self.review,
            gradings=1 if self.trials is None else self.trials,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendRequest:
    """A request to add to a run.

    Attributes:
        more_trials: number of new trials per task.
        until_approved: add trials until each task has this number of trials that are approved or
            await review.
        candidates: models to add.
        budget_usd: new budget for the whole run, including its cost so far.
        review: larger review sample, such as `sample:0.4`; it includes the current sample.
    """

    more_trials: int = 0
    until_approved: int | None = None
    candidates: tuple[CandidateSpec, ...] = ()
    budget_usd: float | None = None
    review: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegradeRequest:
    """A request to grade the stored responses of a run again.

    Attributes:
        judge: model that replaces the judges of the run.
        suite: suite file whose scoring, rubric and judges replace those of the run; tasks are
            matched by id.
        score: method that replaces the rules of the run's tasks; tasks that a judge grades keep
            their judge.
        review: rule for which of the new grades a person must review; None takes that of the
            rubric, and otherwise keeps the run's rule.
        gradings: number of times that each judge grades every answer. They are a panel of equal
            judges: the mean of their grades is the score, and no trial is added.
    """

    judge: str | None = None
    suite: Path | None = None
    score: str | None = None
    review: ReviewRule | None = None
    gradings: int = 1
