"""The verbs of statistics: stats, compare, rank, gate; over what counts, and nothing else (`plan` stands in `planning`).

What would be the case if the reviewing had gone otherwise stands under `diagnostics` and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from assay.analysis import diagnostics
from assay.analysis.anytime import Anytime, Looks, anytime_difference, anytime_mean, looks_reached
from assay.analysis.tables import cautions, score_table
from assay.app import protocols
from assay.app.diagnosing import anytime_document, contrast_diagnostics, looks_document, standing_diagnostics
from assay.app.stamps import uncalibrated
from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import RunState
from assay.domain.protocol import protocol_of
from assay.domain.suite import JudgeMode
from assay.report import wording as wording  # surfaces reach the words through here
from assay.statistics.cautions import Caution
from assay.statistics.comparisons import Comparison
from assay.statistics.comparisons import compare as compared
from assay.statistics.estimates import Estimate, estimates
from assay.statistics.ranking import Ranking
from assay.statistics.ranking import rank as ranked
from assay.statistics.rankings_as_preferences import strengths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.analysis.columns import ReviewColumns, ScoreColumns
    from assay.app.wiring import Workspace
    from assay.domain.run import RunPlan
    from assay.domain.selection import Excluded, Selection
    from assay.statistics.preferences import BradleyTerry
    from assay.statistics.table import ScoreTable

SCOPES = {"auto": None, "tasks-like-these": "tasks_like_these", "these-tasks": "these_tasks"}


GOING_ON: Final = frozenset({RunState.PLANNED, RunState.RUNNING, RunState.PAUSED, RunState.INTERRUPTED})
_DRAWS_SEED: Final = 20240607
"""Of the tests with too many arrangements to list, so that the same store gives the same diagnostics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What a finding rests on: the table, the runs, what does not count, and what must be said beside it.

    Attributes:
        margin: the smallest difference that matters, only where all selected runs set the same one; where they differ
            none holds, and the caution `margins_differ` says so.
        running: whether a selected run has not come to its end.
        random_order: whether the protocol of every selected run says that chance chose the order of reviewing.
        looks: how many looks were planned, only where all selected runs planned as many.
        protocols: how the runs are reviewed, as JSON with the `runs` of each, each protocol once.
        approved: whether a person passed every score that counts.
    """

    table: ScoreTable
    runs: tuple[str, ...]
    excluded: Excluded
    cautions: tuple[Caution, ...]
    margin: float | None
    running: bool
    random_order: bool
    looks: int | None
    protocols: tuple[dict[str, Any], ...] = ()
    approved: bool = True

    @property
    def n_trials(self) -> int:
        """Trials that count."""
        return len(np.unique(self.table.trial_codes))

    @property
    def unfinished(self) -> bool:
        """Whether more may still come: then numbers for the planned end are not for now."""
        return self.still_open.any

    @property
    def still_open(self) -> StillOpen:
        return StillOpen(running=self.running, waiting=self.excluded.pending + self.excluded.partly)


@dataclass(frozen=True, slots=True, kw_only=True)
class StillOpen:
    """What may still change a number: whether a run is `running`, and how many trials are `waiting` for review."""

    running: bool
    waiting: int

    @property
    def any(self) -> bool:
        return self.running or self.waiting > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Every candidate's score. `anytime`: while more may come, ranges that hold at any look, one a candidate.

    `looks`: where planned looks stand, while more may come and the protocol plans them.
    """

    estimates: tuple[Estimate, ...]
    basis: Basis
    diagnostics: diagnostics.StandingDiagnostics | None
    anytime: tuple[Anytime, ...] | None
    looks: Looks | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Two candidates, and the sentence that says which is better.

    `still_open`: what may still come of their own runs. `anytime`: evidence for now, while more may.
    """

    comparison: Comparison
    verdict: str
    basis: Basis
    diagnostics: diagnostics.ContrastDiagnostics | None
    still_open: StillOpen
    anytime: Anytime | None
    looks: Looks | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """All candidates and all pairs; `preferences`: strengths from who did better in each trial, for pairwise judging."""

    ranking: Ranking
    basis: Basis
    preferences: BradleyTerry | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Whether A was shown not to be worse than B by more than the margin."""

    passed: bool
    contrast: Contrast
    margin: float


def stats(
    workspace: Workspace,
    selection: Selection,
    *,
    diagnose: bool = True,
    basis: Basis | None = None,
    reviews: ReviewColumns | None = None,
) -> Standing:
    """Each candidate's mean over tasks and trials that count, with its range.

    Args:
        diagnose: whether to read what does not count as well, for diagnostics; it costs as much as the rest.
        basis, reviews: where they were read already; in the other verbs as well.
    """
    basis = basis or basis_of(workspace, selection)
    found = estimates(basis.table)
    beside = None
    if diagnose:
        beside = diagnostics.of_standing(
            basis.table,
            found,
            workspace.archive.review_columns(selection) if reviews is None else reviews,
            workspace.archive.criterion_moments(selection),
            random=basis.random_order,
            rng=np.random.default_rng(_DRAWS_SEED),
        )
    return Standing(
        estimates=found,
        basis=basis,
        diagnostics=beside,
        anytime=tuple(anytime_mean(basis.table, one) for one in found) if basis.unfinished else None,
        looks=_looks(basis) if basis.unfinished else None,
    )


def compare(
    workspace: Workspace,
    selection: Selection,
    a: str,
    b: str,
    *,
    scope: str | None = None,
    margin: float | None = None,
    diagnose: bool = True,
    basis: Basis | None = None,
    reviews: ReviewColumns | None = None,
) -> Contrast:
    """A against B over the tasks both have counted trials on; the runs' margin holds where none is given (`Basis.margin`).

    Raises:
        UnknownName: a candidate no selected run has.
        InputError: the two are the same, or the margin lies outside (0, 1).
    """
    basis = basis or basis_of(workspace, selection)
    known = _known_candidates(workspace, selection)
    a, b = _candidate(a, known), _candidate(b, known)
    if a == b:
        raise InputError("", f"{a!r} is compared with itself.", remedy="Name two candidates.")
    margin = _margin(basis, margin)
    rng = np.random.default_rng(_DRAWS_SEED)
    found = compared(basis.table, a, b, scope, margin, rng=rng)
    beside = None
    if diagnose:
        reviews = workspace.archive.review_columns(selection) if reviews is None else reviews
        beside = diagnostics.of_contrast(basis.table, found, reviews, margin=margin, rng=rng)
    still_open = still_open_between(workspace, selection, basis.still_open, a, b)
    return Contrast(
        comparison=found,
        verdict=verdict_of(workspace, found, basis.runs),
        basis=basis,
        diagnostics=beside,
        still_open=still_open,
        anytime=anytime_difference(basis.table, found) if still_open.any else None,
        looks=_looks(basis) if still_open.any else None,
    )


def verdict_of(workspace: Workspace, found: Comparison, runs: Sequence[str]) -> str:
    """The sentence on two; where a second trial of each task is lacking, with the command that adds it to what can be added to."""
    said = wording.verdict(found)
    if found.reason != "need_at_least_2_trials" or found.n_tasks < 2:
        return said
    plans = [workspace.journal.plan_of(RunId(run)) for run in runs]
    ours = [plan.id for plan in plans if not plan.imported and plan.regrade_of is None]
    return f"{said} {wording.more_trials(ours[0] if len(ours) == 1 else None)}" if ours else said


def still_open_between(
    workspace: Workspace, selection: Selection, whole: StillOpen, a: str | None, b: str | None
) -> StillOpen:
    """What of the whole concerns these two: of their own runs, in suites that both have run; all of it without two."""
    if a is None or b is None or not whole.any:
        return whole
    theirs = replace(selection, compared=(a, b))
    excluded = workspace.archive.excluded(theirs)
    running = workspace.archive.run_totals(theirs).going_on
    return StillOpen(running=running, waiting=excluded.pending + excluded.partly)


def rank(
    workspace: Workspace,
    selection: Selection,
    *,
    scope: str | None = None,
    margin: float | None = None,
    basis: Basis | None = None,
) -> Ranks:
    """All candidates with the ranks the data allow, and all pairs."""
    basis = basis or basis_of(workspace, selection)
    return Ranks(
        ranking=ranked(basis.table, scope, _margin(basis, margin)),
        basis=basis,
        preferences=strengths(basis.table) if _judged_in_pairs(workspace, basis.runs) else None,
    )


def _judged_in_pairs(workspace: Workspace, runs: tuple[str, ...]) -> bool:
    """Whether every judge of the runs compared pairs; other scores say more than who was better."""
    plans = [workspace.journal.plan_of(RunId(run)) for run in runs]
    return bool(plans) and all(
        all(judge.mode is JudgeMode.PAIRWISE for judge in plan.judges)
        if plan.judges
        else plan.environment.get("kind") == "preferences"  # imported: its reader says so
        for plan in plans
    )


def gate(workspace: Workspace, selection: Selection, a: str, b: str, *, margin: float) -> Gate:
    """Non-inferiority of A against B: passed only when it is shown, not when nothing is known.

    Shown means the one-sided test against -margin (`non_inferiority`). Where scores do not vary there is no such test;
    then passed means that every task ended in a tie, or that the exact test finds A better.
    """
    contrast = compare(workspace, selection, a, b, margin=margin)
    return Gate(passed=shown_not_worse(contrast.comparison, margin), contrast=contrast, margin=margin)


def shown_not_worse(found: Comparison, margin: float) -> bool:
    """The rule of `gate`, for a comparison that was made with this margin."""
    if found.non_inferiority is not None:
        return found.non_inferiority.holds
    identical = found.reason in {"all_ties", "zero_variance"}
    return identical and found.difference is not None and found.difference > -margin and _sure(found)


def parsed_margin(text: str, *, option: str = "--margin") -> float:
    """`0.03` or `3pts`; raises InputError outside (0, 1)."""
    stripped = text.strip().lower()
    points = stripped.removesuffix("pts").strip() if stripped.endswith("pts") else None
    try:
        value = float(points) / 100 if points is not None else float(stripped)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise InputError(option, f"{text!r} is not a difference between 0 and 1.", remedy="Write 0.03, or 3pts.")
    return value


def _sure(found: Comparison) -> bool:
    """With nothing that varies there is no test but the exact one, so that it must have spoken."""
    return found.reason == "all_ties" or (found.p_value is not None and found.p_value <= 0.05)


def basis_of(workspace: Workspace, selection: Selection) -> Basis:
    """What any finding over the selection rests on."""
    return basis_from(workspace, selection, workspace.archive.score_columns(selection))


def basis_from(workspace: Workspace, selection: Selection, columns: ScoreColumns) -> Basis:
    """As `basis_of`, where the columns were read already."""
    rules = rules_of(workspace, columns.runs)
    return Basis(
        table=score_table(columns),
        runs=columns.runs,
        excluded=workspace.archive.excluded(selection),
        cautions=(*cautions(columns), *rules.cautions, *uncalibrated(workspace, columns)),
        margin=rules.margin,
        running=workspace.archive.run_totals(selection).going_on,
        random_order=rules.random_order,
        looks=rules.looks,
        approved=columns.approved,
        protocols=rules.protocols,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the runs of a selection were fixed to before there was anything to see; fields as in `Basis`.

    `protocols` are the distinct review protocols that hold now, each with its `runs`. `same_candidates`: in each of the runs.
    `all_asked`: whether every candidate of a run was asked in each of its trials, as it is here; files may hold less.
    """

    margin: float | None
    looks: int | None
    random_order: bool
    cautions: tuple[Caution, ...]
    protocols: tuple[dict[str, Any], ...]
    same_candidates: bool
    all_asked: bool


def rules_of(workspace: Workspace, runs: Sequence[str]) -> Rules:
    """What holds for these runs together."""
    plans = [workspace.journal.plan_of(RunId(run)) for run in runs]
    margins = {plan.margin for plan in plans}
    looks = {_planned_looks(plan) for plan in plans}
    in_use = protocols.in_use(workspace, plans)
    said = (_margins_differ(margins),) if len(margins) > 1 else ()
    if len({protocol_of(one) for one in in_use}) > 1:
        said = (*said, Caution(code="mixed_protocols", text=wording.MIXED_PROTOCOLS))
    late = [one for one in in_use if one.get("switched")]
    if late:
        n = sum(one["switched"][-1]["decided_before"] for one in late)
        runs_said = ", ".join(run for one in late for run in one["runs"])
        said = (*said, Caution(code="switched_protocol", text=wording.SWITCHED_PROTOCOL.format(runs=runs_said, n=n)))
    return Rules(
        cautions=said,
        margin=margins.pop() if len(margins) == 1 else None,
        looks=looks.pop() if len(looks) == 1 else None,
        random_order=bool(plans) and all(plan.protocol.get("order") == "random" for plan in plans),
        protocols=in_use,
        same_candidates=len({frozenset(one.name for one in plan.candidates) for plan in plans}) <= 1,
        all_asked=not any(plan.imported or plan.regrade_of is not None for plan in plans),
    )


def _planned_looks(plan: RunPlan) -> int | None:
    planned = plan.protocol.get("looks")
    return planned if isinstance(planned, int) and 1 <= planned <= 20 else None


def _margins_differ(margins: set[float | None]) -> Caution:
    known = ", ".join(f"{wording.number(one)} points" for one in sorted(one for one in margins if one is not None))
    without = " or none" if None in margins else ""
    return Caution(
        code="margins_differ",
        text=f"The selected runs set different margins ({known}{without}), so none is used. Say --margin D.",
    )


def _looks(basis: Basis) -> Looks | None:
    return looks_now(basis.looks, basis.n_trials, basis.excluded)


def looks_now(planned: int | None, n_trials: int, excluded: Excluded) -> Looks | None:
    """Where planned looks stand, by the share of the planned trials that is decided; None where none were planned."""
    if planned is None:
        return None
    decided = n_trials + excluded.rejected + excluded.failed
    return looks_reached(planned, decided=decided, total=decided + excluded.pending)


def _known_candidates(workspace: Workspace, selection: Selection) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for run in workspace.archive.runs(selection) for name in run.candidates))


def _candidate(name: str, known: tuple[str, ...]) -> str:
    by_name = {candidate.lower(): candidate for candidate in known}
    if name.lower() not in by_name:
        raise UnknownName("candidate", name, known, remedy=f"Known here: {', '.join(known) or 'none'}.")
    return by_name[name.lower()]


def _margin(basis: Basis, margin: float | None) -> float | None:
    return basis.margin if margin is None else margin


def standing_document(found: Standing) -> dict[str, Any]:
    """The document of `stats`."""
    return {
        "runs": list(found.basis.runs),
        "protocol": list(found.basis.protocols),
        "candidates": [estimate_document(one) for one in found.estimates],
        "excluded": excluded_document(found.basis.excluded),
        "warnings": warnings_document(
            found.basis,
            *(one.warnings for one in found.estimates),
            () if found.diagnostics is None else found.diagnostics.cautions,
        ),
        "diagnostics": {} if found.diagnostics is None else standing_diagnostics(found.diagnostics),
        "anytime": None
        if found.anytime is None
        else [
            {"candidate": one.candidate, **anytime_document(now)}
            for one, now in zip(found.estimates, found.anytime, strict=True)
        ],
        "looks": looks_document(found.looks),
    }


def contrast_document(found: Contrast) -> dict[str, Any]:
    """The document of `compare`."""
    one = found.comparison
    return {
        "a": one.a,
        "b": one.b,
        "mean_a": one.mean_a,
        "mean_b": one.mean_b,
        "difference": one.difference,
        "points": one.points,
        "ci95": _pair(one.ci95),
        "std_err": one.std_err,
        "t": one.t,
        "df": one.df,
        "p_value": one.p_value,
        "significant": one.significant,
        "decision": one.decision,
        "equivalence": None
        if one.equivalence is None
        else {"margin": one.equivalence.margin, "p_value": one.equivalence.p_value, "holds": one.equivalence.holds},
        "non_inferiority": None
        if one.non_inferiority is None
        else {
            "margin": one.non_inferiority.margin,
            "p_value": one.non_inferiority.p_value,
            "holds": one.non_inferiority.holds,
            "lower95": one.non_inferiority.lower95,
        },
        "prob_superiority": one.prob_superiority,
        "d_total": one.d_total,
        "effect_label": one.effect_label,
        "tasks_won": one.tasks_won,
        "tasks_lost": one.tasks_lost,
        "tasks_tied": one.tasks_tied,
        "n_tasks": one.n_tasks,
        "n_trials_a": one.n_trials_a,
        "n_trials_b": one.n_trials_b,
        "scope": one.scope,
        "method": one.method,
        "reason": one.reason,
        "warnings": warnings_document(
            found.basis, one.warnings, () if found.diagnostics is None else found.diagnostics.cautions
        ),
        "diagnostics": {} if found.diagnostics is None else contrast_diagnostics(found.diagnostics),
        "anytime": None
        if found.anytime is None
        else {**anytime_document(found.anytime), "looks": looks_document(found.looks)},
        "verdict": found.verdict,
        "runs": list(found.basis.runs),
        "protocol": list(found.basis.protocols),
        "excluded": excluded_document(found.basis.excluded),
        "other_scope": None
        if one.other_scope is None
        else {
            "scope": one.other_scope.scope,
            "ci95": _pair(one.other_scope.ci95),
            "p_value": one.other_scope.p_value,
            "reason": one.other_scope.reason,
        },
        "second_opinion": None
        if one.second_opinion is None
        else {
            "method": one.second_opinion.method,
            "p_value": one.second_opinion.p_value,
            "reason": one.second_opinion.reason,
        },
        "by_task": [
            {"task": t.task, "mean_a": t.mean_a, "mean_b": t.mean_b, "difference": t.difference,
             "n_trials_a": t.n_trials_a, "n_trials_b": t.n_trials_b, "weight": t.weight}
            for t in one.by_task
        ],
    }  # fmt: skip


def ranks_document(found: Ranks) -> dict[str, Any]:
    """The document of `rank`."""
    return {
        "protocol": list(found.basis.protocols),
        "runs": list(found.basis.runs),
        "scope": found.ranking.scope,
        "candidates": [
            {"candidate": one.candidate, "mean": one.mean, "ci95": _pair(one.estimate.ci95), "rank": one.rank,
             "rank_low": one.rank_low, "rank_high": one.rank_high}
            for one in found.ranking.candidates
        ],
        "pairs": [
            {"a": one.a, "b": one.b, "difference": one.difference, "ci95": _pair(one.ci95), "p_value": one.p_value,
             "p_holm": one.p_holm, "p_bh": one.p_bh, "decision": one.decision, "decision_alone": one.decision_alone,
             "n_tasks": one.n_tasks, "reason": one.reason}
            for one in found.ranking.pairs
        ],
        "comparisons": found.ranking.n_tested,
        "groups": [list(group) for group in found.ranking.groups],
        "preferences": None if found.preferences is None else _strengths_document(found.preferences),
        "excluded": excluded_document(found.basis.excluded),
        "warnings": warnings_document(found.basis, found.ranking.warnings),
    }  # fmt: skip


def _strengths_document(found: BradleyTerry) -> dict[str, Any]:
    """Strengths in log-odds, strongest first; null where a candidate never lost or never won."""
    rows = zip(found.items, found.log_strength, found.elo, found.borda, strict=True)
    candidates = [
        {"candidate": item, "strength": strength, "elo": elo, "share_won": share} for item, strength, elo, share in rows
    ]
    return {
        "method": found.method,
        "comparisons": found.n_comparisons,
        "n_tasks": found.n_tasks,
        "reason": found.reason,
        "candidates": sorted(candidates, key=lambda row: -(row["share_won"] or 0.0)),
    }


def gate_document(found: Gate) -> dict[str, Any]:
    """The document of `gate`."""
    return {"passed": found.passed, "margin": found.margin, **contrast_document(found.contrast)}


def estimate_document(one: Estimate) -> dict[str, Any]:
    """One candidate's row of `stats`."""
    return {
        "candidate": one.candidate,
        "mean": one.mean,
        "sd": one.sd,
        "min": one.min,
        "max": one.max,
        "ci95": _pair(one.ci95),
        "n_trials": one.n_trials,
        "n_tasks": one.n_tasks,
        "scope": one.scope,
        "method": one.method,
        "reason": one.reason,
        "by_task": [
            {"task": t.task, "mean": t.mean, "ci95": _pair(t.ci95), "n_trials": t.n_trials, "weight": t.weight,
             "reason": t.reason}
            for t in one.by_task
        ],
        "other_scope": None
        if one.other_scope is None
        else {"scope": one.other_scope.scope, "ci95": _pair(one.other_scope.ci95), "reason": one.other_scope.reason},
    }  # fmt: skip


def excluded_document(excluded: Excluded) -> dict[str, int]:
    """How many trials do not count and why; `superseded` counts attempts, `partly` trials that count while more of them waits."""
    return {
        "pending": excluded.pending,
        "rejected": excluded.rejected,
        "failed": excluded.failed,
        "superseded": excluded.superseded,
        "not_graded": excluded.not_graded,
        "partly": excluded.partly,
    }


def _pair(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else [interval[0], interval[1]]


def warnings_document(basis: Basis, *groups: tuple[Caution, ...]) -> list[dict[str, str]]:
    """Each warning once: those of the basis first."""
    found = {(one.code, one.text): one for group in (basis.cautions, *groups) for one in group}
    return [{"code": one.code, "text": one.text} for one in found.values()]
