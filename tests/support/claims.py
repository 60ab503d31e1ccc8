"""The sentences by which reports, pages and commands claim something about a result, each with the
records that make it true.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from assay.domain.lifecycle import COUNTS, AssessmentState

BY_PERSON = (AssessmentState.APPROVED, AssessmentState.CORRECTED)
EPSILON = 1e-9


@dataclass(frozen=True)
class GradedTrial:
    """One joint grade: its task and state, and the score of each candidate."""

    task: str
    state: AssessmentState
    scores: Mapping[str, float]


Records = Sequence[GradedTrial]


def counted(records: Records) -> list[GradedTrial]:
    return [record for record in records if record.state in COUNTS]


def n_in(records: Records, *states: AssessmentState) -> int:
    return sum(record.state in states for record in records)


def by_task(records: Records, value: Callable[[Mapping[str, float]], float]) -> list[list[float]]:
    """Return a value of each counted trial, by task."""
    tasks: defaultdict[str, list[float]] = defaultdict(list)
    for record in counted(records):
        tasks[record.task].append(value(record.scores))
    return list(tasks.values())


def steady(tasks: Sequence[Sequence[float]]) -> bool:
    """True if no task's value varies between its trials."""
    return all(max(values) - min(values) < EPSILON for values in tasks)


def of(name: str) -> Callable[[Mapping[str, float]], float]:
    return lambda scores: scores[name]


def lead(scores: Mapping[str, float]) -> float:
    return scores["ann"] - scores["bob"]


def mean_lead(records: Records) -> float:
    tasks = by_task(records, lead)
    return sum(sum(values) / len(values) for values in tasks) / len(tasks)


def _single(records: Records) -> bool:
    return any(len(values) == 1 for values in by_task(records, lead))


def _better(records: Records, claim: re.Match[str]) -> bool:
    sign = 1 if claim["a"] == "ann" else -1
    return sign * mean_lead(records) * (1 if claim["way"] == "better" else -1) > 0


def _ahead(records: Records, claim: re.Match[str]) -> bool:
    size = mean_lead(records) if claim["a"] == "ann" else -mean_lead(records)
    return abs(100 * size - float(claim["points"])) < 0.051


def _same_scores(records: Records, claim: re.Match[str]) -> bool:
    scores = [score for values in by_task(records, of(claim["a"])) for score in values]
    return len(scores) == int(claim["n"]) and all(
        abs(100 * score - float(claim["mean"])) < 0.051 for score in scores
    )


@dataclass(frozen=True)
class Claim:
    """A sentence as a pattern, when it is true of the records, and when every surface must make
    it.
    """

    words: str
    true: Callable[[Records, re.Match[str]], bool]
    required: Callable[[Records], bool] = lambda _: False


CLAIMS: Sequence[Claim] = (
    Claim(
        r"\((?P<n>\d+) approved: ",
        lambda records, claim: int(claim["n"]) == n_in(records, *BY_PERSON),
        lambda records: n_in(records, *BY_PERSON) > 0,
    ),
    Claim(
        r"(?P<n>\d+) trials? counts?\b",
        lambda records, claim: int(claim["n"]) == len(counted(records)),
        lambda records: bool(counted(records)),
    ),
    Claim(
        r"No trials count yet",
        lambda records, _: not counted(records),
        lambda records: not counted(records),
    ),
    Claim(
        r"(?P<n>\d+) (awaits? review|awaiting review)",
        lambda records, claim: int(claim["n"]) == n_in(records, AssessmentState.PENDING),
        lambda records: n_in(records, AssessmentState.PENDING) > 0,
    ),
    Claim(
        r"(?P<n>\d+) rejected\b",
        lambda records, claim: int(claim["n"]) == n_in(records, AssessmentState.REJECTED),
    ),
    Claim(
        r"(?P<n>\d+) of (?P<of>\d+) counted grades were not seen by a person",
        lambda records, claim: (
            int(claim["n"]) == 2 * n_in(records, AssessmentState.EXEMPT)
            and int(claim["of"]) == 2 * len(counted(records))
        ),
        lambda records: n_in(records, AssessmentState.EXEMPT) > 0,
    ),
    Claim(r"[Aa]pprove at least", lambda *_: False),
    Claim(r"A single trial gives no range", lambda records, _: len(counted(records)) == 1),
    Claim(r"needs a second trial of each", lambda records, _: _single(records)),
    Claim(r"no range over all tasks", lambda records, _: len(by_task(records, lead)) > 1),
    Claim(
        r"No task's score varies between its trials",
        lambda records, _: any(steady(by_task(records, of(name))) for name in ("ann", "bob")),
    ),
    Claim(r"The scores do not vary|All scores are identical", lambda *_: False),
    Claim(
        r"every repetition gave the same difference",
        lambda records, _: steady(by_task(records, lead)),
    ),
    Claim(
        r"All (?P<n>\d+) (approved )?trials of (?P<a>ann|bob) gave (?P<mean>[\d.]+)\.", _same_scores
    ),
    Claim(r"\b(?P<a>ann|bob) is (?P<way>better|worse) than", _better),
    Claim(r"\b(?P<a>ann|bob) is (?P<points>[\d.]+) points ahead", _ahead),
    Claim(
        r"At least one of the two has no trials that count", lambda records, _: not counted(records)
    ),
)
"""Every sentence that was once untrue is here, so that a change of words meets the records again.
"""


def untrue(text: str, records: Records) -> list[str]:
    """Return the claims in a text that the records do not bear out."""
    return [
        match.group()
        for claim in CLAIMS
        for match in re.finditer(claim.words, text)
        if not claim.true(records, match)
    ]


def missing(text: str, records: Records) -> list[str]:
    """Return the claims that the records require and that a text does not make."""
    return [
        claim.words
        for claim in CLAIMS
        if claim.required(records) and not re.search(claim.words, text)
    ]
