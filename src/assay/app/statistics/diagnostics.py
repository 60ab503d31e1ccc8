"""Diagnostics as lines of text, which accompany a result but do not change it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from assay.report import wording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.analysis.diagnostics import (
        ComparisonDiagnostics,
        ScoreDiagnostics,
        VerdictDiagnostics,
    )
    from assay.statistics.comparisons import Comparison
    from assay.statistics.estimates import Estimate


_MAX_PAIRS: Final = 10
"""Maximum number of pairs from a review sample in a text; the JSON contains all pairs."""


def standing_lines(diagnostics: ScoreDiagnostics) -> list[str]:
    """Return the diagnostics of `assay stats` as a few lines of text; empty lines are left out."""
    lines = [wording.coverage_line(coverage) for coverage in diagnostics.coverage]
    if len(diagnostics.by_criterion) > 1:
        lines += [f"{split.name}: {_means(split.estimates)}" for split in diagnostics.by_criterion]
    if len(diagnostics.by_judge) > 1:
        lines += [
            f"judged by {split.name}: {_means(split.estimates)}" for split in diagnostics.by_judge
        ]
    lines += [wording.position_line(judge) for judge in diagnostics.positions]
    if diagnostics.n_put_back:
        means = _means(diagnostics.with_rejected)
        lines.append(
            f"with {wording.count(diagnostics.n_put_back, 'rejected assessment')} counted again: {means}"
        )
    if diagnostics.n_rerun:
        rerun = f"{wording.count(diagnostics.n_rerun, 'counted assessment')} {'was' if diagnostics.n_rerun == 1 else 'were'}"
        lines.append(
            f"on first attempts, before {rerun} rerun: {_means(diagnostics.first_attempts)}"
        )
    lines += [wording.judge_bias(judge) for judge in diagnostics.against_people]
    lines += [wording.judge_agreement(judge) for judge in diagnostics.against_references]
    if diagnostics.among_judges is not None:
        lines.append(wording.agreement(diagnostics.among_judges))
    for partial in diagnostics.partly:
        lines += wording.partly(partial)
    return [*lines, *calibrated_lines(diagnostics)]


def calibrated_lines(diagnostics: ScoreDiagnostics) -> list[str]:
    """Return the ranks and up to `_MAX_PAIRS` pairs from the review sample; empty until a
    candidate has a rank.
    """
    ranking = diagnostics.calibrated
    if ranking is None or not ranking.candidates or len(ranking.candidates) < 2:
        return []
    return [
        wording.calibrated_ranks(ranking),
        *(wording.calibrated_pair(pair) for pair in ranking.pairs[:_MAX_PAIRS]),
    ]


def contrast_lines(diagnostics: ComparisonDiagnostics, now: Comparison) -> list[str]:
    lines = []
    if diagnostics.n_put_back:
        n, then = diagnostics.n_put_back, diagnostics.with_rejected.difference
        lines.append(
            wording.put_back_sentence(n, now.difference, then, changes=diagnostics.changes)
        )
    first, final = diagnostics.first_attempts.difference, diagnostics.final_attempts.difference
    if diagnostics.n_rerun and first is not None and final is not None:
        lines.append(
            f"On first attempts the difference is {wording.signed(first)} points; with the attempts that count now it is "
            f"{wording.signed(final)}."
        )
    lines += [wording.judge_bias(judge) for judge in diagnostics.against_people]
    return (
        lines
        if diagnostics.calibrated is None
        else [*lines, wording.calibrated_pair(diagnostics.calibrated)]
    )


def verdict_lines(diagnostics: VerdictDiagnostics) -> list[str]:
    """Return the agreement of judges with people on verdicts as lines of text."""
    lines = [wording.judge_bias(judge) for judge in diagnostics.against_people]
    return [*lines, *(wording.judge_agreement(judge) for judge in diagnostics.against_references)]


def _means(estimates: Sequence[Estimate]) -> str:
    return ", ".join(
        f"{e.candidate} {'–' if e.mean is None else wording.number(e.mean)}" for e in estimates
    )
