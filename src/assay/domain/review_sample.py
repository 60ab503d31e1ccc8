"""Review sample: a run's trials that are randomly selected for review under the policy `sample`.

Theory. Tasks are shuffled with the run's seed, and then, if the sample is drawn by tag, sorted by
first tag. Trial k of the task at position r is in the sample if the fractional part of start + (r +
k) · share is below the share. Each trial's probability of being in the sample is exactly the share.
In any group of neighbouring trials (of one task, round or tag), the sampled fraction equals the
share to within one trial. Systematic sampling from a shuffled list is sampling without replacement
(Cochran, 1977, 8.1).

A sample can grow from share p to q: the trials that were left out are numbered in order, and each
is drawn with probability (q
- p) / (1 - p). The new sample includes the earlier one, and each trial is in it with probability q.

House rules. The draw depends on the seed, the tasks and the number of the trial, but never on a
score. Adding trials later does not change the draw for the others, a rerun trial stays in or out of
the sample, and rejected trials are not replaced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import floor
from typing import Final

from assay.domain.digest import JsonValue
from assay.domain.errors import InputError
from assay.domain.lifecycle import Policy
from assay.domain.protocol import chance

LEAST_SHARE: Final = 0.001
"""Smallest share of a review sample: one trial in a thousand."""


class SampledBy(StrEnum):
    """Grouping over which a review sample is spread evenly; `TAG` also spreads it over tasks."""

    TASK = "task"
    TAG = "tag"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewSample:
    """Share of trials that a person reviews (above 0, below 1), and the grouping.

    `grown_from`: earlier, smaller shares.
    """

    share: float
    by: SampledBy = SampledBy.TASK
    grown_from: tuple[float, ...] = ()

    def as_json(self) -> dict[str, JsonValue]:
        grown: dict[str, JsonValue] = (
            {"grown_from": list(self.grown_from)} if self.grown_from else {}
        )
        return {"share": self.share, "by": str(self.by), **grown}

    def grown(self, share: float, *, where: str) -> ReviewSample:
        """Return a sample with a larger share that includes this one; raises `InputError` for a
        smaller share.
        """
        if share == self.share:
            return self
        if share < self.share:
            raise InputError(
                where,
                f"is {share:g}, but the review sample already has a share of {self.share:g} and cannot shrink.",
                remedy="Give a larger share.",
            )
        return ReviewSample(share=share, by=self.by, grown_from=(*self.grown_from, self.share))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRule:
    """Rule for which LLM grades need review; `sample` is set only if the policy is `sample`."""

    policy: Policy = Policy.EVERY
    sample: ReviewSample | None = None

    def as_json(self) -> dict[str, JsonValue]:
        """Return the rule as JSON, as part of a run's protocol."""
        sample = {} if self.sample is None else {"sample": self.sample.as_json()}
        return {"policy": str(self.policy), **sample}

    def __str__(self) -> str:
        """Return the rule in the form that `--review` accepts: `every`, `sample:0.2` or
        `sample:0.2:tag`.
        """
        if self.sample is None:
            return str(self.policy)
        by = "" if self.sample.by is SampledBy.TASK else f":{self.sample.by}"
        return f"{self.policy}:{self.sample.share:g}{by}"


EVERY_GRADE: Final = ReviewRule()
"""The default: a person must review every grade that a judge gives."""


def parsed_rule(text: str, *, where: str) -> ReviewRule:
    """Parse `every`, `flagged`, `none`, `sample:0.2` or `sample:0.2:tag` (0 < share < 1); raises
    InputError for other text.
    """
    word, _, rest = text.strip().partition(":")
    share, _, by = rest.partition(":")
    if word in {"every", "flagged", "none"} and not rest:
        return ReviewRule(policy=Policy(word))
    try:
        value = float(share) if word == "sample" else 0.0
    except ValueError:
        value = 0.0
    if LEAST_SHARE <= value < 1 and (by or "task") in set(SampledBy):
        return ReviewRule(
            policy=Policy.SAMPLE, sample=ReviewSample(share=value, by=SampledBy(by or "task"))
        )
    raise InputError(
        where,
        f"{text!r} is not a review policy.",
        remedy="Write every, flagged, none, sample:0.2 or sample:0.2:tag; a share lies above 0 and below 1.",
    )


def sample_of(protocol: Mapping[str, JsonValue]) -> ReviewSample | None:
    """Return the review sample in a run's protocol; None if its policy is not `sample`."""
    match protocol.get("sample"):
        case {"share": int() | float() as share, "by": str() as by, **rest}:
            shares = rest.get("grown_from")
            grown_from = tuple(map(float, shares)) if isinstance(shares, list) else ()
            return ReviewSample(share=float(share), by=SampledBy(by), grown_from=grown_from)
        case _:
            return None


def stratum_of(sample: ReviewSample, tags: tuple[str, ...]) -> str:
    """Return a task's stratum: the first tag if the sample is drawn by tag, otherwise an empty
    string.
    """
    return tags[0] if sample.by is SampledBy.TAG and tags else ""


class ReviewLottery:
    """Deterministic selection of a run's trials for its review sample."""

    def __init__(
        self, sample: ReviewSample, *, seed: int, tasks: Iterable[tuple[str, tuple[str, ...]]]
    ) -> None:
        ordered = sorted(
            (stratum_of(sample, tags), _shuffled(seed, task), task) for task, tags in tasks
        )
        self._place = {task: place for place, (_, _, task) in enumerate(ordered)}
        self._stages: list[tuple[float, float]] = []
        before = 0.0
        for number, share in enumerate((*sample.grown_from, sample.share)):
            self._stages.append(
                (chance(seed, "review sample", number), (share - before) / (1 - before))
            )
            before = share

    def holds(self, task: str, k: int) -> bool:
        place = self._place[task] + k
        for start, share in self._stages:
            if (start + place * share) % 1.0 < share:
                return True
            # the trial's number among those that this stage leaves out
            place -= floor(start + (place - 1) * share) - floor(start - share)
        return False

    def count(self, task: str, trials: Iterable[int]) -> int:
        return sum(self.holds(task, k) for k in trials)


def _shuffled(seed: int, task: str) -> bytes:
    return hashlib.sha256(f"{seed}\x1freview sample\x1f{task}".encode()).digest()
