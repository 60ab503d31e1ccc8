"""The verbs of statistics: stats, compare, rank, plan, gate; over what counts, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.analysis.tables import cautions, score_table
from assay.app.stamps import uncalibrated
from assay.domain.errors import InputError, UnknownName
from assay.report import wording as wording  # surfaces reach the words through here
from assay.statistics.comparisons import Comparison
from assay.statistics.comparisons import compare as compared
from assay.statistics.estimates import Estimate, estimates
from assay.statistics.ranking import Ranking
from assay.statistics.ranking import rank as ranked

if TYPE_CHECKING:
    from assay.app.wiring import Workspace
    from assay.domain.selection import Excluded, Selection
    from assay.statistics.cautions import Caution
    from assay.statistics.table import ScoreTable

SCOPES = {"auto": None, "tasks-like-these": "tasks_like_these", "these-tasks": "these_tasks"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What a finding rests on: the table, the runs, what does not count, and what must be said beside it."""

    table: ScoreTable
    runs: tuple[str, ...]
    excluded: Excluded
    cautions: tuple[Caution, ...]
    margin: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Every candidate's score."""

    estimates: tuple[Estimate, ...]
    basis: Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Two candidates, and the sentence that says which is better."""

    comparison: Comparison
    verdict: str
    basis: Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """All candidates and all pairs."""

    ranking: Ranking
    basis: Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Whether A was shown not to be worse than B by more than the margin."""

    passed: bool
    contrast: Contrast
    margin: float


def stats(workspace: Workspace, selection: Selection) -> Standing:
    """Each candidate's mean over tasks and trials that count, with its range."""
    basis = _basis(workspace, selection)
    return Standing(estimates=estimates(basis.table), basis=basis)


def compare(
    workspace: Workspace, selection: Selection, a: str, b: str, *, scope: str | None = None, margin: float | None = None
) -> Contrast:
    """A against B over the tasks both have counted trials on; the run's margin holds where none is given.

    Raises:
        UnknownName: a candidate no selected run has.
        InputError: the two are the same, or the margin lies outside (0, 1).
    """
    basis = _basis(workspace, selection)
    known = _known_candidates(workspace, selection)
    a, b = _candidate(a, known), _candidate(b, known)
    if a == b:
        raise InputError("", f"{a!r} is compared with itself.", remedy="Name two candidates.")
    found = compared(basis.table, a, b, scope, _margin(basis, margin))
    return Contrast(comparison=found, verdict=wording.verdict(found), basis=basis)


def rank(workspace: Workspace, selection: Selection, *, scope: str | None = None, margin: float | None = None) -> Ranks:
    """All candidates with the ranks the data allow, and all pairs."""
    basis = _basis(workspace, selection)
    return Ranks(ranking=ranked(basis.table, scope, _margin(basis, margin)), basis=basis)


def gate(workspace: Workspace, selection: Selection, a: str, b: str, *, margin: float) -> Gate:
    """Non-inferiority of A against B: passed only when it is shown, not when nothing is known."""
    contrast = compare(workspace, selection, a, b, margin=margin)
    shown = contrast.comparison.non_inferiority
    identical = contrast.comparison.reason in {"all_ties", "zero_variance"}
    difference = contrast.comparison.difference
    passed = (
        shown.holds
        if shown is not None
        else identical and difference is not None and difference > -margin and _sure(contrast)
    )
    return Gate(passed=passed, contrast=contrast, margin=margin)


def parsed_margin(text: str) -> float:
    """`0.03` or `3pts`; raises InputError outside (0, 1)."""
    stripped = text.strip().lower()
    points = stripped.removesuffix("pts").strip() if stripped.endswith("pts") else None
    try:
        value = float(points) / 100 if points is not None else float(stripped)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise InputError("--margin", f"{text!r} is not a difference between 0 and 1.", remedy="Write 0.03, or 3pts.")
    return value


def _sure(contrast: Contrast) -> bool:
    """With nothing that varies there is no test but the exact one, so that it must have spoken."""
    p_value = contrast.comparison.p_value
    return contrast.comparison.reason == "all_ties" or (p_value is not None and p_value <= 0.05)


def _basis(workspace: Workspace, selection: Selection) -> Basis:
    columns = workspace.archive.score_columns(selection)
    margins = {workspace.journal.plan_of(run).margin for run in columns.runs[:50]}  # type: ignore[arg-type] # ids of runs
    return Basis(
        table=score_table(columns),
        runs=columns.runs,
        excluded=workspace.archive.excluded(selection),
        cautions=(*cautions(columns), *uncalibrated(workspace, columns)),
        margin=margins.pop() if len(margins) == 1 else None,
    )


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
        "candidates": [_estimate(one) for one in found.estimates],
        "excluded": _excluded(found.basis.excluded),
        "warnings": _warnings(found.basis, *((one.candidate, one.warnings) for one in found.estimates)),
        "diagnostics": {},
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
        "warnings": _warnings(found.basis, ("", one.warnings)),
        "diagnostics": {},
        "verdict": found.verdict,
        "runs": list(found.basis.runs),
        "excluded": _excluded(found.basis.excluded),
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
        "groups": [list(group) for group in found.ranking.groups],
        "excluded": _excluded(found.basis.excluded),
        "warnings": _warnings(found.basis, ("", found.ranking.warnings)),
    }  # fmt: skip


def gate_document(found: Gate) -> dict[str, Any]:
    """The document of `gate`."""
    return {"passed": found.passed, "margin": found.margin, **contrast_document(found.contrast)}


def _estimate(one: Estimate) -> dict[str, Any]:
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


def _excluded(excluded: Excluded) -> dict[str, int]:
    return {
        "pending": excluded.pending,
        "rejected": excluded.rejected,
        "failed": excluded.failed,
        "superseded": excluded.superseded,
    }


def _pair(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else [interval[0], interval[1]]


def _warnings(basis: Basis, *groups: tuple[object, tuple[Caution, ...]]) -> list[dict[str, str]]:
    """Each warning once; where only some candidates have it, the first of them is named."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for one in basis.cautions:
        found[one.code, one.text] = {"code": one.code, "text": one.text}
    for _, cautions_of in groups:
        for one in cautions_of:
            found.setdefault((one.code, one.text), {"code": one.code, "text": one.text})
    return list(found.values())
