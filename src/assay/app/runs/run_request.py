"""The request of a new run, as the command line and programs write it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from assay.domain.review_sample import ReviewRule, parsed_rule


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A request to run a suite. None and empty values keep the settings of the suite.

    Attributes:
        trials: trials per task; for a file of answers, gradings of each answer.
        candidates: names of candidates in the suite, or models as provider/name.
        judge: model that grades in place of the suite's judges.
        benchmark: True to call candidates with temperature and penalties set to 0.
        review: grades that a person must review, such as `every` or `sample:0.2`.
        budget: maximum cost in US dollars.
        limit: number of tasks to run, from the first.
        rubric: file with the rubric to grade with.
    """

    trials: int | None = None
    candidates: tuple[str, ...] = ()
    judge: str | None = None
    benchmark: bool = False
    review: str | None = None
    batch_id: str | None = None
    budget: float | None = None
    limit: int | None = None
    rubric: Path | None = None

    @property
    def review_rule(self) -> ReviewRule | None:
        """Return the parsed `review`; raises `InputError`."""
        return None if self.review is None else parsed_rule(self.review, where="--review")
