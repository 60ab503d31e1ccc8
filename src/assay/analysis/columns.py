"""Scores and reviews as parallel arrays, passed from the store to statistics.

Creating a record for each row would take 2.3 µs, which is 2.3 s for a million rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from assay.domain.lifecycle import AssessmentState

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from assay.domain.identifiers import RunId
    from assay.domain.verdicts import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLabel:
    """Label of a task code.

    `weight`: from the newest selected run. `changed`: True if the task's content differs between
    runs. `family`: the source that the task shares with other tasks; empty if it shares none.
    `content`: the same for copies, which are tasks of equal text, reference and files under several
    ids; empty for a task without a copy.
    """

    suite: str
    task: str
    digest: str
    thing: str
    weight: float
    changed: bool = False
    family: str = ""
    content: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingSetting:
    """One grading setting (judge, rubric, prompt, parameters), with its digest and runs; `judge` is
    None if no model grades.
    """

    judge: str | None
    digest: str
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedRules:
    """Tasks with pooled scores from different scoring rules; `rules` lists each rule with its
    runs.
    """

    tasks: tuple[str, ...]
    rules: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledRuns:
    """Facts that decide if runs may be pooled. Runs without a counted score are left out.

    Attributes:
        suites: runs of each suite with at least two runs, oldest first.
        mixed_rules: tasks that these runs scored by different rules.
        changed: tasks by suite whose content differs between its runs.
        missing: tasks by suite that only some of its runs have, if a candidate is pooled over
            several runs.
        apart: suites whose shared candidates are all kept apart, because their model or prompt
            differs.
        graders: names of the scorers and judges of each imported run.
    """

    suites: Mapping[str, tuple[RunId, ...]] = field(default_factory=dict)
    mixed_rules: tuple[MixedRules, ...] = ()
    changed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    apart: frozenset[str] = frozenset()
    graders: Mapping[RunId, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencePair:
    """A judge's score and people's reference score for the same response.

    `task`: the task's code. `trial`: equal for all responses of one trial. `verdict`: the judge's
    verdict, if its rubric has rules for verdicts.
    """

    judge: str
    candidate: str
    task: int
    trial: tuple[int, ...]
    reference: float
    judged: float
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreColumns:
    """Counted scores as parallel arrays, with one row per assessment and candidate.

    Attributes:
        tasks: label by task code; includes planned tasks that have no rows.
        candidates: name by candidate code.
        judges: grader by judge code.
        task, candidate, judge: codes, int64.
        trial: the trial's store key, int64; equal for all rows of one (run, task, k).
        score: between 0 and 1, float64.
        joint: True if one call graded all candidates of the trial.
        unseen: True if no person has seen the grade (state `exempt`).
        mixed_rules: tasks that runs scored by different rules.
        by_rule: True if a scorer graded, so no review was needed (state `not_required`); None if no
            row was graded by a scorer.
        unplaced: True if one call graded several candidates in an order that was not random; None
            if no call did.
        runs: ids of the selected runs.
        kept_apart: (name, label) of candidates that share a name but differ in model or prompt;
            `candidates` contains the labels.
        settings: distinct settings of these runs; more than one causes the warning
            `mixed_settings`.
    """

    tasks: tuple[TaskLabel, ...]
    candidates: tuple[str, ...]
    judges: tuple[str, ...]
    task: NDArray[np.int64]
    candidate: NDArray[np.int64]
    judge: NDArray[np.int64]
    trial: NDArray[np.int64]
    score: NDArray[np.float64]
    joint: NDArray[np.bool_]
    unseen: NDArray[np.bool_]
    runs: tuple[str, ...] = ()
    kept_apart: tuple[tuple[str, str], ...] = ()
    settings: tuple[GradingSetting, ...] = field(default=())
    mixed_rules: tuple[MixedRules, ...] = ()
    by_rule: NDArray[np.bool_] | None = None
    unplaced: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VerdictColumns:
    """Counted verdicts: `labels` and their `values` between 0 and 1, best first; the score of each
    row is its verdict's value.
    """

    labels: tuple[str, ...]
    values: tuple[float, ...]
    scores: ScoreColumns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReviewedVerdicts:
    """Verdicts of models' grades that people approved or corrected, as parallel arrays, one row per
    assessment and candidate.

    Attributes:
        labels, values: the verdicts and their values between 0 and 1, best first.
        task, candidate, judge: codes as in the `ReviewColumns` of the same selection, int64.
        trial: store key, int64.
        judged, final: value of the judge's verdict, and of the verdict after review, float64.
    """

    labels: tuple[str, ...]
    values: tuple[float, ...]
    task: NDArray[np.int64]
    candidate: NDArray[np.int64]
    judge: NDArray[np.int64]
    trial: NDArray[np.int64]
    judged: NDArray[np.float64]
    final: NDArray[np.float64]


STATES: Final = tuple(AssessmentState)
"""Assessment states, in the order of their codes in `ReviewColumns.state`."""


def state_codes(*states: AssessmentState) -> list[int]:
    return [STATES.index(state) for state in states]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReviewColumns:
    """Assessments in all states as parallel arrays, one row per assessment and candidate; for
    diagnostics only.

    Attributes:
        tasks, candidates, judges: labels by code, with the same codes as in `ScoreColumns` of the
            same selection.
        task, candidate, judge: codes, int64.
        trial, assessment: store keys, int64.
        attempt: number of the attempt at judging the trial, from 1, int64.
        state: index in `STATES`, int64.
        judged: score from the grader, NaN if missing, float64.
        final: score after corrections that counts or would count, NaN if missing, float64.
        joint: True if one call graded all candidates.
        by_model: True if an LLM graded.
        planned: number of trials planned per candidate and task, shape (candidates, tasks), int64.
        number: number of the trial within its task, from 1, int64; None if it was not requested.
        run: index of the trial's run, from 0, int64; None if it was not requested.
        place: the candidate's position in the random order shown to the judge, from 1, int64; 0 for
            rows without a random order; None if no row has one.
        verdicts: verdicts before and after review; None if the rubrics give none, or if they were
            not requested.
    """

    tasks: tuple[TaskLabel, ...]
    candidates: tuple[str, ...]
    judges: tuple[str, ...]
    task: NDArray[np.int64]
    candidate: NDArray[np.int64]
    judge: NDArray[np.int64]
    trial: NDArray[np.int64]
    assessment: NDArray[np.int64]
    attempt: NDArray[np.int64]
    state: NDArray[np.int64]
    judged: NDArray[np.float64]
    final: NDArray[np.float64]
    joint: NDArray[np.bool_]
    by_model: NDArray[np.bool_]
    planned: NDArray[np.int64]
    number: NDArray[np.int64] | None = None
    place: NDArray[np.int64] | None = None
    run: NDArray[np.int64] | None = None
    verdicts: ReviewedVerdicts | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CriterionMoments:
    """Moments of one criterion's counted scores, as arrays of shape (candidates, tasks); n is 0
    without trials.

    The codes of tasks and candidates are the same as in `ScoreColumns` of the same selection.
    """

    criterion: str
    n: NDArray[np.float64]
    mean: NDArray[np.float64]
    m2: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialScores:
    """Counted scores of one trial: each candidate's mean over judge calls; empty if nothing
    counts.
    """

    trial: int
    suite: str
    task: str
    digest: str
    joint: bool
    scores: Mapping[str, float]
