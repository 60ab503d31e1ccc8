"""Sentences about two candidates: which one is better, how certain that is, and how many
comparisons were made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from assay.report.wording.numbers import (
    capitalise,
    count,
    difference_range,
    number,
    p_value,
    points,
    probability,
    range_words,
    tasks_in_families,
)
from assay.report.wording.plans import TOO_MANY, what_would_decide
from assay.report.wording.reasons import (
    MISSING,
    SENTENCES_BY_CODE,
    WITHHELD,
    why_no_difference,
    why_no_range,
)
from assay.statistics.scopes import TASKS_LIKE_THESE, THIS_TASK_ONLY

if TYPE_CHECKING:
    from assay.analysis.anytime import Anytime, Looks
    from assay.statistics.comparisons import Comparison
    from assay.statistics.ranking import RankedPair, Ranking

TAKEN_BACK: Final = (
    "After correcting for all pairs that were compared, this difference is not decided."
)
"""Sentence after a verdict on one pair that is no longer decided after the correction for all
pairs.
"""

_METHODS: Final = SENTENCES_BY_CODE["methods"]


def verdict(comparison: Comparison) -> str:
    """Answer whether A is better than B, in one to four sentences."""
    if comparison.difference is None:
        return f"{comparison.a} and {comparison.b}: {why_no_difference(comparison.reason)}"
    match comparison.decision:
        case "better" | "worse":
            return f"{headline(comparison)} {beneath_headline(comparison)}"
        case "equivalent" if comparison.equivalence is not None:
            return (
                f"{comparison.a} and {comparison.b} are practically equal{_where(comparison)}: the difference lies within "
                f"the margin of ±{points(comparison.equivalence.margin)}."
            )
        case _:
            return _undecided(comparison)


def headline(comparison: Comparison) -> str:
    """State the first sentence of `verdict`, which a page shows in large letters."""
    if comparison.difference is None:
        return verdict(comparison)
    match comparison.decision:
        case "better" | "worse":
            text = f"{comparison.a} is {comparison.decision} than {comparison.b} by {number(abs(comparison.difference))} points"
            return f"{text}{_where(comparison)}{_size_range(comparison)}."
        case "equivalent" if comparison.equivalence is not None:
            return verdict(comparison)
        case _:
            return f"Not decided: {_ahead(comparison)}{_where(comparison)}."


def beneath_headline(comparison: Comparison) -> str:
    """State the rest of `verdict`, which a page shows below the headline."""
    if comparison.difference is None or comparison.decision == "equivalent":
        return ""
    if comparison.decision in {"better", "worse"}:
        return _support(comparison)
    if comparison.ci95 is None and comparison.reason == "zero_variance":
        same, why = _same_difference(comparison)
        return f"{capitalise(same)}. {why}"
    if comparison.ci95 is None:
        return why_no_range(comparison.reason, comparison.n_tasks)
    text = f"Anything from {difference_range(comparison.ci95)} for {comparison.a} fits the data."
    return (
        text
        if comparison.to_decide is None
        else f"{text} {what_would_decide(comparison.to_decide)}"
    )


def undecided_among(
    comparison: Comparison, pair: RankedPair, *, n_candidates: int, n_pairs: int
) -> tuple[str, str] | None:
    """Return headline and text for the two best of several candidates, if only the unadjusted test
    separates them.

    These two were not selected in advance, so the correction for all comparisons (Holm) applies.
    None if both tests agree.
    """
    if comparison.difference is None or comparison.decision not in {"better", "worse"}:
        return None
    if pair.decision == pair.decision_alone:
        return None
    beneath = (
        f"On its own, this pair would be decided. But it was picked from {n_candidates} candidates because of its scores: among "
        f"all {n_pairs} comparisons, such a difference also arises by chance. To compare only these two, select them."
    )
    return (
        f"Not decided among {n_candidates} candidates: {_ahead(comparison)}{_where(comparison)}.",
        beneath,
    )


def other_scope(comparison: Comparison) -> str:
    """State the result for the other scope, or why it is withheld; empty if neither applies."""
    other = comparison.other_scope
    if other is None or (other.ci95 is None and other.reason not in WITHHELD):
        return ""
    about = f"about {other.scope.replace('_', ' ')}"
    if other.ci95 is None:
        return f"{about}: {MISSING[other.reason or '']}"
    return f"{about}: 95% range {difference_range(other.ci95)}, {p_value(other.p_value)}"


def method_words(method: str) -> str:
    """Return the name of the test that gave a p-value, in words."""
    return _METHODS.get(method, method.replace("_", " "))


def not_worse(a: str, b: str, margin: float, *, shown: bool) -> str:
    """State the result of a gate: is A shown to be not worse than B by more than the margin?"""
    if shown:
        return f"{a} is not worse than {b} by more than {points(margin)}."
    return f"{a} may be more than {points(margin)} worse than {b}."


def gate_verdict(
    a: str,
    b: str,
    margin: float,
    *,
    outcome: str,
    smallest_margin: float | None,
    tasks_needed: int | None,
    tied: bool,
) -> str:
    """State a gate's outcome (`fine`, `worse` or `undecided`), and for undecided ones the data that
    would decide. `tied`: every difference is 0.
    """
    match outcome:
        case "fine":
            return f"Gate passed: {not_worse(a, b, margin, shown=True)}"
        case "worse":
            return f"Gate failed: {a} is shown to be worse than {b}, and may be more than {points(margin)} worse."
    text = f"Gate undecided: too little data. {not_worse(a, b, margin, shown=False)}"
    if smallest_margin is not None:
        text += f" The smallest margin that this data could pass is {points(smallest_margin)}."
    if tasks_needed is None or tasks_needed > TOO_MANY:
        return text
    if tied:
        text += f" {count(tasks_needed, 'task')} in all would pass if all are ties, as these are."
    else:
        text += f" About {count(tasks_needed, 'task')} in all would show a difference as large as the one found."
    return text


def superiority(comparison: Comparison) -> str:
    """State how often a trial of A beats a trial of B on the same task."""
    assert comparison.prob_superiority is not None
    return (
        f"On the same task, a random run of {comparison.a} beats a random run of {comparison.b} "
        f"{100 * comparison.prob_superiority:.0f} times out of 100 (ties count half)."
    )


def many_comparisons(n: int) -> str:
    """Explain why the p-values in a list of pairs are adjusted."""
    return f"{n} comparisons were made; p-values are adjusted so that the chance of even one false 'better' stays below 5%."


def comparisons_made(ranking: Ranking) -> str:
    """State how many pairs were compared and how many share no task; empty if there is one pair,
    which was compared.
    """
    sentences = [many_comparisons(ranking.n_tested)] if ranking.n_tested > 1 else []
    # Without this, they were counted as comparisons, although Holm's correction leaves them out.
    apart = len(ranking.pairs) - len(ranking.compared)
    if apart:
        has, are = ("has", "is") if apart == 1 else ("have", "are")
        sentences.append(
            f"{count(apart, 'pair')} {has} no counted tasks in common and {are} not compared."
        )
    return " ".join(sentences)


def anytime_difference(anytime: Anytime) -> str:
    """State the evidence that remains valid if checked repeatedly."""
    if anytime.e_value is None:
        return f"At any time: {why_no_difference(anytime.reason)}"
    evidence = f"e-value {_evidence(anytime.e_value)}, {p_value(anytime.p)}"
    # An e-value of 20 is 1 / 0.05: by Ville's inequality it is reached by chance at most once in 20
    # sequences.
    claim = (
        "enough to decide now"
        if anytime.e_value >= 20
        else "not enough to decide before the planned end (20 is needed)"
    )
    if anytime.ci95 is None:
        return f"At any time: {evidence}, {claim}; {MISSING.get(anytime.reason or '', 'no range yet.')}"
    return (
        f"At any time: {evidence}, {claim}; range {difference_range(anytime.ci95)} over {count(anytime.n, anytime.unit)}. "
        "This range stays valid however often you look, and is wider for that reason."
    )


def anytime_beside(anytime: Anytime, comparison: Comparison) -> str:
    """State this evidence beside a comparison's verdict; empty if it is missing for the reason that
    the verdict states.
    """
    if anytime.e_value is None and anytime.reason == comparison.reason:
        return ""
    return anytime_difference(anytime)


def looks(looks: Looks, p_value: float | None) -> str:
    """State which planned look (interim test) was reached and the p-value that a claim needs
    there.
    """
    if looks.p_to_beat is None:
        return f"{count(looks.planned, 'look')} planned; the first has not been reached."
    bar = f"Look {looks.reached} of {looks.planned}: a claim needs p below {probability(looks.p_to_beat)}"
    if p_value is None:
        return f"{bar}."
    return f"{bar}; it is {probability(p_value)}, which is {'enough' if p_value <= looks.p_to_beat else 'not enough'}."


def _support(comparison: Comparison) -> str:
    """State how unlikely a decided difference would be by chance, and on how many tasks each
    candidate was ahead.
    """
    text = _chance(comparison.p_value)
    if comparison.n_tasks > 1:
        tally = f"{comparison.a} won {comparison.tasks_won}, lost {comparison.tasks_lost}, tied {comparison.tasks_tied}"
        text += f" {tally} of {tasks_in_families(comparison.n_tasks, comparison.n_families)}."
    if comparison.scope != TASKS_LIKE_THESE:
        few = "One task is" if comparison.n_tasks == 1 else f"{comparison.n_tasks} tasks are"
        if comparison.n_families is not None and comparison.n_tasks > 1:
            few = f"{count(comparison.n_families, 'family')} of tasks {'is' if comparison.n_families == 1 else 'are'}"
        text += f" {few} too few to say this about other tasks."
    return text.strip()


def _undecided(comparison: Comparison) -> str:
    ahead = _ahead(comparison)
    if comparison.ci95 is None and comparison.reason == "zero_variance":
        same, why = _same_difference(comparison)
        place = "" if comparison.scope == TASKS_LIKE_THESE else f"{_where(comparison)}, and"
        return f"Not decided: {ahead}{place} {same}. {why}"
    if comparison.ci95 is None:
        return f"Not decided: {ahead}. {why_no_range(comparison.reason, comparison.n_tasks)}"
    text = (
        f"Not decided: {ahead}, but anything from {difference_range(comparison.ci95)} for {comparison.a} fits the "
        f"data{_where(comparison)}."
    )
    return (
        text
        if comparison.to_decide is None
        else f"{text} {what_would_decide(comparison.to_decide)}"
    )


def _same_difference(comparison: Comparison) -> tuple[str, str]:
    """Describe a difference without variation, and explain why it does not yet decide the
    comparison.
    """
    if comparison.scope == TASKS_LIKE_THESE:
        grouped = comparison.n_families is not None
        n = comparison.n_families if comparison.n_families is not None else comparison.n_tasks
        units = "families" if grouped else "tasks"
        decide = f"six or more {units} with the same difference would decide it."
        same = f"with the same difference on each of {count(n, 'family' if grouped else 'task')}"
        if comparison.p_value is None:
            return same, capitalise(decide)
        return (
            same,
            f"The exact test gives {p_value(comparison.p_value)}, since so few {units} also agree by chance; {decide}",
        )
    why = (
        "Without variation there is nothing to test, and so few repetitions could also agree by chance. To learn "
        "whether the lead holds on other tasks, use six tasks or more."
    )
    return "every repetition gave the same difference", why


def _size_range(comparison: Comparison) -> str:
    """Return the range of a decided difference, without signs unless the range reaches 0."""
    if comparison.ci95 is None:
        return ""
    low, high = (min(max(bound, -1.0), 1.0) for bound in comparison.ci95)
    if low * high > 0:
        low, high = sorted((abs(low), abs(high)))
    return f" (95% range {range_words((low, high))})"


def _ahead(comparison: Comparison) -> str:
    a, b, size = comparison.a, comparison.b, comparison.difference or 0.0
    # A smaller difference would be printed as 0.0 points.
    if abs(size) < 5e-4:
        return f"{a} and {b} score the same to a tenth of a point"
    return f"{a if size > 0 else b} is {number(abs(size))} points ahead"


def _where(comparison: Comparison) -> str:
    if comparison.scope == TASKS_LIKE_THESE:
        return " on tasks of this kind"
    single = comparison.scope == THIS_TASK_ONLY or comparison.n_tasks == 1
    return " on this task" if single else f" on exactly these {comparison.n_tasks} tasks"


def _chance(p_value: float | None) -> str:
    if p_value is None:
        return ""
    if p_value < 0.0005:
        how_often = "in fewer than 1 of 2,000"
    else:
        how_often = f"in about {max(1, round(1000 * p_value))} of 1,000"
    return (
        f"If the two were equally good, a gap this large would appear {how_often} such benchmarks."
    )


def _evidence(e_value: float) -> str:
    if e_value >= 1e6:
        return "over a million"
    return (
        f"{e_value:,.0f}"
        if e_value >= 100
        else f"{e_value:.2g}"
        if e_value < 0.1
        else f"{e_value:.1f}"
    )
