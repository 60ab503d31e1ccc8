"""`assay stats`, `compare`, `rank` and `gate` over counted trials."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, overload

import numpy as np

from assay.analysis import diagnostics
from assay.analysis.agreement import judges_on_verdicts
from assay.analysis.anytime import Anytime, Looks, anytime_difference, anytime_mean
from assay.analysis.diagnostics import VerdictDiagnostics
from assay.analysis.partial_review import CalibratedRanking, calibrated_ranking, sampled_trials
from assay.analysis.references import judges_against_references
from assay.app.spellings import in_python
from assay.app.statistics import notebooks
from assay.app.statistics.basis import Basis, StillOpen, basis_of, looks_now
from assay.app.statistics.review_draw import draw_of
from assay.app.statistics.run_choice import choose
from assay.app.statistics.verdicts import comparison_of, rates_of
from assay.app.statistics.vetting import require_vetted
from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import RunId, folded
from assay.domain.lifecycle import RunState
from assay.domain.run_choice import ChosenRuns
from assay.domain.selection import Selection
from assay.domain.suite import JudgeMode
from assay.domain.verdict_scales import VERDICT
from assay.report import wording as wording  # re-exported, because surfaces may not import `report`
from assay.statistics.comparisons import Comparison, compare as compared
from assay.statistics.equivalence import loss_despite_ties, ties_needed
from assay.statistics.estimates import Estimate, estimates
from assay.statistics.ranking import Ranking, rank as ranked
from assay.statistics.rankings_as_preferences import strengths
from assay.statistics.scopes import TASKS_LIKE_THESE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas
    import polars

    from assay.analysis.columns import ReviewColumns
    from assay.analysis.verdict_rates import VerdictComparison, VerdictRates
    from assay.app.settings import Settings
    from assay.app.statistics.notebooks import Frame, FrameLibrary
    from assay.app.workspace import Workspace
    from assay.domain.run_choice import RunsRead
    from assay.statistics.preferences import BradleyTerry
    from assay.store.opening import Store

SCOPES = {"auto": None, "tasks-like-these": "tasks_like_these", "these-tasks": "these_tasks"}


GOING_ON: Final = frozenset(
    {RunState.PLANNED, RunState.RUNNING, RunState.SUBMITTED, RunState.PAUSED, RunState.INTERRUPTED}
)
_MAX_SHOWN: Final = 8
"""Maximum number of candidates listed in the text of a result."""
DRAWS_SEED: Final = 20240607
"""Seed for tests with too many arrangements to enumerate, so that repeated calls return the same
diagnostics.
"""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CandidateScores:
    """Scores of every candidate.

    With the criterion `verdict`, `diagnostics` is None and `on_verdicts` compares judges with
    people; otherwise it is None. `anytime` contains a range per candidate that stays valid while
    more trials may come. `looks` is the planned look reached so far; None without planned looks or
    if no more trials can come.
    """

    estimates: tuple[Estimate, ...]
    basis: Basis
    diagnostics: diagnostics.ScoreDiagnostics | None
    anytime: tuple[Anytime, ...] | None
    looks: Looks | None = None
    verdicts: VerdictRates | None = None
    on_verdicts: VerdictDiagnostics | None = None

    def __repr__(self) -> str:
        return f"CandidateScores({_short(self.estimates)}; {counted(self.basis)})"

    def _repr_html_(self) -> str:
        sentences = [f"{e.candidate}: {wording.estimate_sentence(e)}" for e in self.estimates]
        return notebooks.html_of(
            [
                *_rates(self.verdicts),
                counted(self.basis),
                *(sentences if len(sentences) == 1 else ()),
            ],
            picture=notebooks.drawing(notebooks.estimate_marks(self.estimates)),
            notes=_cautions(self.basis),
        )

    @overload
    def to_frame(self, library: Literal["pandas"]) -> pandas.DataFrame: ...
    @overload
    def to_frame(self, library: Literal["polars"]) -> polars.DataFrame: ...
    @overload
    def to_frame(self, library: FrameLibrary | None = None) -> Frame: ...
    def to_frame(self, library: FrameLibrary | None = None) -> Frame:
        """Return a data frame (pandas or polars) with a row for each candidate."""
        return notebooks.frame_of(notebooks.estimate_rows(self.estimates), library)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ComparisonResult:
    """Comparison of two candidates, with the verdict as a sentence.

    `still_open` counts both candidates' open runs and reviews. `anytime` stays valid while more
    trials may come.
    """

    comparison: Comparison
    verdict: str
    basis: Basis
    diagnostics: diagnostics.ComparisonDiagnostics | None
    still_open: StillOpen
    anytime: Anytime | None
    looks: Looks | None
    verdicts: VerdictComparison | None = None
    on_verdicts: VerdictDiagnostics | None = None

    def __repr__(self) -> str:
        return f"ComparisonResult({self.verdict} {counted(self.basis)})"

    def _repr_html_(self) -> str:
        notes = [counted(self.basis), *_cautions(self.basis)]
        verdicts = () if self.verdicts is None else wording.verdict_difference_lines(self.verdicts)
        return notebooks.html_of(
            [*verdicts, self.verdict],
            picture=notebooks.difference_drawing(self.comparison),
            notes=notes,
        )

    @overload
    def to_frame(self, library: Literal["pandas"]) -> pandas.DataFrame: ...
    @overload
    def to_frame(self, library: Literal["polars"]) -> polars.DataFrame: ...
    @overload
    def to_frame(self, library: FrameLibrary | None = None) -> Frame: ...
    def to_frame(self, library: FrameLibrary | None = None) -> Frame:
        """Return a data frame (pandas or polars) with a row for each task of both candidates."""
        return notebooks.frame_of(notebooks.comparison_rows(self.comparison), library)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RankingResult:
    """Ranking of all candidates and comparisons of all pairs; `preferences` contains strengths from
    pairwise judging.

    `calibrated` contains ranks and pairs estimated from the review sample while trials are
    unreviewed; never the result.
    """

    ranking: Ranking
    basis: Basis
    preferences: BradleyTerry | None = None
    calibrated: CalibratedRanking | None = None
    verdicts: VerdictRates | None = None

    def __repr__(self) -> str:
        return f"RankingResult({_short([place.estimate for place in self.ranking.candidates])}; {counted(self.basis)})"

    def _repr_html_(self) -> str:
        places = self.ranking.candidates
        return notebooks.html_of(
            [
                *_rates(self.verdicts),
                *(
                    f"{place.candidate}: {wording.rank_line(place)}"
                    for place in places[:_MAX_SHOWN]
                ),
            ],
            picture=notebooks.drawing(
                notebooks.estimate_marks([place.estimate for place in places])
            ),
            notes=[counted(self.basis), *_cautions(self.basis)],
        )

    @overload
    def to_frame(self, library: Literal["pandas"]) -> pandas.DataFrame: ...
    @overload
    def to_frame(self, library: Literal["polars"]) -> polars.DataFrame: ...
    @overload
    def to_frame(self, library: FrameLibrary | None = None) -> Frame: ...
    def to_frame(self, library: FrameLibrary | None = None) -> Frame:
        """Return a data frame (pandas or polars) with a row for each candidate."""
        return notebooks.frame_of(notebooks.ranking_rows(self.ranking), library)


GateOutcome: TypeAlias = Literal["fine", "worse", "undecided"]
OnUndecided: TypeAlias = Literal["pass", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GateResult:
    """Result of a non-inferiority test of A against B; if `baseline` lists earlier runs, B is A in
    these runs.

    Attributes:
        passed: True if A is shown not to be worse than B by more than the margin, so that `outcome`
            is `fine`.
        outcome: `fine`; `worse` if A is shown to be worse than B; `undecided` if the data show
            neither.
    """

    passed: bool
    outcome: GateOutcome
    contrast: ComparisonResult
    margin: float
    baseline: tuple[str, ...] | None = None

    @property
    def smallest_margin(self) -> float | None:
        """Return the smallest margin that this data could pass, 0 if any would; None without an
        interval.
        """
        return smallest_margin(self.contrast.comparison)

    @property
    def tasks_needed(self) -> int | None:
        """Return the number of tasks that would decide an undecided comparison, or if all tasks are
        ties, the number of ties that would pass; None if unknown or not needed.
        """
        comparison = self.contrast.comparison
        if self.outcome != "undecided":
            return None
        if comparison.reason == "all_ties":
            return ties_needed(self.margin) if comparison.scope == TASKS_LIKE_THESE else None
        return comparison.to_decide.tasks_needed if comparison.to_decide is not None else None

    def blocks(self, on_undecided: OnUndecided) -> bool:
        """True if a pipeline should stop: A is shown to be worse, or the outcome is undecided and
        `on_undecided` is `fail`.
        """
        return self.outcome == "worse" or (self.outcome == "undecided" and on_undecided == "fail")

    @property
    def verdict(self) -> str:
        comparison = self.contrast.comparison
        verdict = wording.gate_verdict(
            str(comparison.a),
            str(comparison.b),
            self.margin,
            outcome=self.outcome,
            smallest_margin=self.smallest_margin,
            tasks_needed=self.tasks_needed,
            tied=comparison.reason == "all_ties",
        )
        return wording.labelled(verdict, self.contrast.basis.read)

    def __repr__(self) -> str:
        return f"GateResult({self.verdict} {counted(self.contrast.basis)})"

    def _repr_html_(self) -> str:
        picture = notebooks.difference_drawing(self.contrast.comparison)
        notes = [counted(self.contrast.basis), *_cautions(self.contrast.basis)]
        return notebooks.html_of(
            [self.verdict, self.contrast.verdict], picture=picture, notes=notes
        )

    @overload
    def to_frame(self, library: Literal["pandas"]) -> pandas.DataFrame: ...
    @overload
    def to_frame(self, library: Literal["polars"]) -> polars.DataFrame: ...
    @overload
    def to_frame(self, library: FrameLibrary | None = None) -> Frame: ...
    def to_frame(self, library: FrameLibrary | None = None) -> Frame:
        """Return a data frame (pandas or polars) with a row for each task of both candidates."""
        return self.contrast.to_frame(library)


def stats(
    store: Store,
    settings: Settings,
    selection: Selection | ChosenRuns,
    *,
    diagnose: bool = True,
    basis: Basis | None = None,
    reviews: ReviewColumns | None = None,
) -> CandidateScores:
    """Compute each candidate's mean over counted tasks and trials, with its confidence interval.

    Args:
        diagnose: also read the trials that do not count, which diagnostics need; this doubles the
            cost.
        basis, reviews: data that the caller has already read.
    """
    basis = basis or basis_of(store, settings, selection)
    selection = basis.chosen.selection
    candidates = estimates(basis.table)
    beside = on_verdicts = None
    if diagnose and by_verdict(selection):
        reviews = store.archive.scores.review_columns(selection) if reviews is None else reviews
        on_verdicts = VerdictDiagnostics(
            against_people=judges_on_verdicts(reviews),
            against_references=judges_against_references(
                store.archive.scores.reference_pairs(selection)
            ),
        )
    elif diagnose:
        beside = diagnostics.diagnose_scores(
            basis.table,
            candidates,
            store.archive.scores.review_columns(selection) if reviews is None else reviews,
            store.archive.scores.criterion_moments(selection),
            draw=draw_of(store, basis.runs),
            rng=np.random.default_rng(DRAWS_SEED),
            references=store.archive.scores.reference_pairs(selection),
        )
    return CandidateScores(
        estimates=candidates,
        basis=basis,
        diagnostics=beside,
        anytime=tuple(anytime_mean(basis.table, estimate) for estimate in candidates)
        if basis.unfinished
        else None,
        looks=_looks(basis) if basis.unfinished else None,
        verdicts=rates_of(store, selection),
        on_verdicts=on_verdicts,
    )


def compare(
    store: Store,
    settings: Settings,
    selection: Selection | ChosenRuns,
    a: str,
    b: str,
    *,
    scope: str | None = None,
    margin: float | None = None,
    diagnose: bool = True,
    basis: Basis | None = None,
    reviews: ReviewColumns | None = None,
) -> ComparisonResult:
    """Compare A with B over tasks on which both have counted trials.

    Without `margin`, the runs' margin applies.

    Only runs of A or B in suites that both have run are read. `basis` and `reviews` are data of
    these runs that the caller has already read.

    Raises UnknownName if no selected run has A or B, and InputError if A is B or the margin is
    outside (0, 1).
    """
    chosen = choose(store, selection, a, b) if basis is None else basis.chosen
    a, b = (_candidate_in(store, name, chosen, selection) for name in (a, b))
    if a == b:
        raise InputError("", f"{a!r} is compared with itself.", remedy="Name two candidates.")
    chosen = replace(chosen, selection=replace(chosen.selection, compared=(a, b)))
    basis = basis or basis_of(store, settings, chosen)
    selection = chosen.selection
    margin = _margin(basis, margin)
    rng = np.random.default_rng(DRAWS_SEED)
    comparison = compared(basis.table, a, b, scope, margin, rng=rng)
    if not basis.runs:
        # both have results, but in different suites
        comparison = replace(comparison, reason="no_shared_tasks")
    beside = on_verdicts = None
    if diagnose:
        reviews = store.archive.scores.review_columns(selection) if reviews is None else reviews
    if diagnose and reviews is not None and by_verdict(selection):
        on_verdicts = VerdictDiagnostics(
            against_people=judges_on_verdicts(reviews, candidates=(a, b))
        )
    elif diagnose and reviews is not None:
        beside = diagnostics.diagnose_comparison(
            basis.table,
            comparison,
            reviews,
            margin=margin,
            draw=draw_of(store, basis.runs),
            rng=rng,
        )
    return ComparisonResult(
        comparison=comparison,
        verdict=verdict_of(store, comparison, basis.read),
        basis=basis,
        diagnostics=beside,
        still_open=basis.still_open,
        anytime=anytime_difference(basis.table, comparison) if basis.unfinished else None,
        looks=_looks(basis) if basis.unfinished else None,
        verdicts=comparison_of(store, selection, a, b, scope=scope),
        on_verdicts=on_verdicts,
    )


def verdict_of(store: Store, comparison: Comparison, read: RunsRead) -> str:
    """Return the verdict on a comparison as a sentence, with advice if no task has a second trial.

    A verdict on runs that differ in what they measure begins with that label.
    """
    sentence = wording.labelled(wording.verdict(comparison), read)
    if comparison.reason != "need_at_least_2_trials" or comparison.n_tasks < 2:
        return sentence
    plans = [store.journal.plan_of(run.run_id) for run in read.runs]
    # Only these runs can get more trials. Without this check, the verdict advised approving a trial
    # although 1,319 trials counted by rule.
    ours = [plan.id for plan in plans if not plan.imported and plan.regrade_of is None]
    return (
        f"{sentence} {wording.more_trials(ours[0] if len(ours) == 1 else None)}"
        if ours
        else sentence
    )


def rank(
    store: Store,
    settings: Settings,
    selection: Selection | ChosenRuns,
    *,
    scope: str | None = None,
    margin: float | None = None,
    basis: Basis | None = None,
    reviews: ReviewColumns | None = None,
) -> RankingResult:
    """Rank all candidates, with the range of ranks that the data support, and compare all pairs."""
    basis = basis or basis_of(store, settings, selection)
    selection = basis.chosen.selection
    ranking = ranked(basis.table, scope, _margin(basis, margin))
    calibrated = None
    if basis.excluded.pending + basis.excluded.left_out and not by_verdict(selection):
        draw = draw_of(store, basis.runs)
        if draw.refused is not None:
            calibrated = CalibratedRanking(candidates=(), pairs=(), reason=draw.refused)
        else:
            reviews = store.archive.scores.review_columns(selection) if reviews is None else reviews
            names = [str(ranked.candidate) for ranked in ranking.candidates]
            calibrated = calibrated_ranking(
                sampled_trials(reviews, draw), names if ranking.pairs else []
            )
    return RankingResult(
        ranking=ranking,
        basis=basis,
        calibrated=calibrated,
        preferences=strengths(basis.table) if _judged_in_pairs(store, basis.runs) else None,
        verdicts=rates_of(store, selection),
    )


def leading_verdict(store: Store, ranking_result: RankingResult) -> str:
    """Return a sentence that compares the top two candidates (corrected for all pairs) or describes
    the only one.
    """
    basis, ranking = ranking_result.basis, ranking_result.ranking
    ranked_ones = [candidate for candidate in ranking.candidates if candidate.rank is not None]
    if len(ranked_ones) < 2:
        return "".join(wording.estimate_sentence(only.estimate) for only in ranked_ones)
    a, b = (candidate.candidate for candidate in ranked_ones[:2])
    comparison = compared(
        basis.table, a, b, None, basis.margin, rng=np.random.default_rng(DRAWS_SEED)
    )
    pair = next(pair for pair in ranking.pairs if {pair.a, pair.b} == {a, b})
    n = len(ranking.candidates)
    undecided = wording.undecided_among(comparison, pair, n_candidates=n, n_pairs=ranking.n_tested)
    if undecided is not None:
        return wording.labelled(" ".join(undecided), basis.read)
    return verdict_of(store, comparison, basis.read)


def _judged_in_pairs(store: Store, runs: tuple[str, ...]) -> bool:
    """True if every judge of the runs compared pairs, so that scores only show which candidate was
    better.
    """
    plans = [store.journal.plan_of(RunId(run)) for run in runs]
    return bool(plans) and all(
        all(judge.mode is JudgeMode.PAIRWISE for judge in plan.judges)
        if plan.judges
        else plan.environment.get("kind") == "preferences"  # imported: the importer records it
        for plan in plans
    )


def gate(
    workspace: Workspace,
    selection: Selection | ChosenRuns,
    a: str,
    b: str,
    *,
    margin: float | None = None,
    vetted: bool = False,
) -> GateResult:
    """Test that A is not worse than B by more than the margin. Default: the margin of the runs.

    The test is one-sided against -margin (`non_inferiority`). It is impossible if scores do not
    vary; the gate then passes if there are enough ties (`loss_despite_ties`), or if the exact test
    is significant and the difference is within the margin. With `vetted`, grades that no person
    read are refused.
    """
    contrast = compare(workspace.store, workspace.settings, selection, a, b, margin=margin)
    if vetted:
        filters = selection if isinstance(selection, Selection) else selection.selection
        # no run is in the basis if no grade counts
        runs = contrast.basis.runs or contrast.basis.chosen.selection.runs
        require_vetted(workspace, replace(filters, runs=runs))
    margin = _margin(contrast.basis, margin)
    if margin is None:
        raise InputError(
            "--margin", "is missing, and the runs set no margin.", remedy="Use --margin 3pts."
        )
    return gate_result(contrast, margin)


def gate_result(
    contrast: ComparisonResult, margin: float, baseline: tuple[str, ...] | None = None
) -> GateResult:
    """Return the gate's result for a comparison that was made with this margin."""
    outcome = gate_outcome(contrast.comparison, margin)
    return GateResult(
        passed=outcome == "fine",
        outcome=outcome,
        contrast=contrast,
        margin=margin,
        baseline=baseline,
    )


def gate_outcome(comparison: Comparison, margin: float) -> GateOutcome:
    """Return `fine` if A is shown to be within the margin, else `worse` if the two-sided test at 5%
    shows A to be worse.

    An unchanged candidate is therefore called worse in at most 2.5% of reruns. A candidate that is
    shown to be a little worse, but also to be within the margin, is fine.
    """
    if shown_not_worse(comparison, margin):
        return "fine"
    return "worse" if comparison.decision == "worse" else "undecided"


def smallest_margin(comparison: Comparison) -> float | None:
    if comparison.reason == "all_ties":
        return loss_despite_ties(_independent_ties(comparison))
    test = comparison.non_inferiority
    if test is None or test.lower95 <= -1.0:
        return None
    return max(-test.lower95, 0.0)


def shown_not_worse(comparison: Comparison, margin: float) -> bool:
    """True if a comparison made with this margin passes the gate."""
    if comparison.non_inferiority is not None:
        return comparison.non_inferiority.holds
    if comparison.reason == "all_ties":
        # Two tied tasks passed any margin before, and 12 ties on yes-or-no scores are no rare
        # result (28%) for a bot that lost 10 points.
        return loss_despite_ties(_independent_ties(comparison)) <= margin
    significant = comparison.p_value is not None and comparison.p_value <= 0.05
    return (
        comparison.reason == "zero_variance"
        and significant
        and comparison.difference is not None
        and comparison.difference > -margin
    )


def _independent_ties(comparison: Comparison) -> float:
    """Return the number of ties in the units of the result's scope: tasks or families if it applies
    to similar tasks, otherwise pairs of trials.
    """
    if comparison.scope == TASKS_LIKE_THESE and comparison.n_eff is not None:
        return comparison.n_eff
    return min(comparison.n_trials_a, comparison.n_trials_b)


def _short(estimates: Sequence[Estimate]) -> str:
    means = [
        f"{e.candidate} {'–' if e.mean is None else wording.number(e.mean)}"
        for e in estimates[:_MAX_SHOWN]
    ]
    rest = len(estimates) - len(means)
    return ", ".join(means) + (f" and {rest} more" if rest else "")


def by_verdict(selection: Selection) -> bool:
    """True if the verdict may be the selected criterion; diagnostics, which read scores, are then
    left out.
    """
    return VERDICT in {folded(name) for name in selection.criteria}


def _rates(rates: VerdictRates | None) -> tuple[str, ...]:
    return () if rates is None else wording.verdict_lines(rates)[:_MAX_SHOWN]


def counted(basis: Basis) -> str:
    """Return the runs, the counted trials and their approvals as a sentence for Python."""
    runs = in_python(wording.runs_line(basis.read))
    return f"{runs}. {wording.what_counts(basis.n_trials, basis.excluded, basis.approvals)}"


def _cautions(basis: Basis) -> list[str]:
    return [in_python(caution.text) for caution in basis.cautions]


def _looks(basis: Basis) -> Looks | None:
    return looks_now(basis.looks, basis.n_trials, basis.excluded)


def _candidate_in(
    store: Store, name: str, chosen: ChosenRuns, asked: Selection | ChosenRuns
) -> str:
    """Return a candidate's name in the chosen runs.

    A label that only the pooled runs need, such as `bot (openai/small)`, is `bot` in the run that
    was chosen for it.
    """
    known = store.archive.scores.candidates(chosen.selection)
    try:
        return candidate_named(name, known)
    except UnknownName:
        every = known if isinstance(asked, ChosenRuns) else store.archive.scores.candidates(asked)
        shared = every.get(candidate_named(name, every))
        return candidate_named(shared or name, known)


def candidate_named(name: str, known: Mapping[str, str]) -> str:
    """Return a candidate's name as used in results; `known` maps these names to names in runs.

    Raises UnknownName for an unknown candidate, and InputError if runs use the name for different
    models or prompts.
    """
    by_label = {folded(label): label for label in known}
    if folded(name) in by_label:
        return by_label[folded(name)]
    if labels := [label for label, shared in known.items() if folded(shared) == folded(name)]:
        problem = f"{name!r} refers to different models or system prompts in the selected runs: {', '.join(labels)}."
        raise InputError(
            "", problem, remedy="Use one of these names, or select a single run with --run."
        )
    raise UnknownName(
        "candidate",
        name,
        tuple(known),
        remedy=f"The selected runs have: {', '.join(known) or 'none'}.",
    )


def _margin(basis: Basis, margin: float | None) -> float | None:
    return basis.margin if margin is None else margin
