"""Sentences about results, all in one package, so that the strength of every claim is decided in
one place.

Scores are fractions in data and points out of 100 in words. Every range and standard deviation is
labelled as such, and an undecided comparison is never called equal. The command line and the pages
import from this package, so it re-exports names.
"""

from __future__ import annotations

from assay.report.wording.approvals import (
    NONE_APPROVED as NONE_APPROVED,
    SESSION_APPROVALS as SESSION_APPROVALS,
    approval_roads as approval_roads,
    approvals as approvals,
    approvals_cell as approvals_cell,
    approved_or_corrected as approved_or_corrected,
    decision_road as decision_road,
    none_counts as none_counts,
    opinions_hidden as opinions_hidden,
    reviewer_decisions as reviewer_decisions,
    road as road,
    runs_approved as runs_approved,
    scripted_refused as scripted_refused,
    unseen_refused as unseen_refused,
)
from assay.report.wording.attention import attention as attention
from assay.report.wording.estimates import (
    anytime_mean as anytime_mean,
    estimate_line as estimate_line,
    estimate_sentence as estimate_sentence,
    range_or_none as range_or_none,
    range_scope as range_scope,
    rank_line as rank_line,
    rank_range as rank_range,
    task_line as task_line,
)
from assay.report.wording.numbers import (
    capitalise as capitalise,
    count as count,
    difference_range as difference_range,
    number as number,
    p_value as p_value,
    points as points,
    probability as probability,
    range_words as range_words,
    signed as signed,
    tasks_in_families as tasks_in_families,
)
from assay.report.wording.plans import (
    TOO_MANY as TOO_MANY,
    no_plan as no_plan,
    plan_sentence as plan_sentence,
    plan_summary as plan_summary,
    what_would_decide as what_would_decide,
)
from assay.report.wording.reasons import (
    MISSING as MISSING,
    WITHHELD as WITHHELD,
    more_trials as more_trials,
    why_no_difference as why_no_difference,
)
from assay.report.wording.reviews import (
    MIXED_PROTOCOLS as MIXED_PROTOCOLS,
    agreement as agreement,
    calibrated_pair as calibrated_pair,
    calibrated_ranks as calibrated_ranks,
    changed_since_baseline as changed_since_baseline,
    checks as checks,
    coverage_line as coverage_line,
    how_reviewed as how_reviewed,
    judge_agreement as judge_agreement,
    judge_bias as judge_bias,
    lower_is_better as lower_is_better,
    mixed_metrics as mixed_metrics,
    not_reviewed as not_reviewed,
    partly as partly,
    partly_rows as partly_rows,
    position_line as position_line,
    protocol as protocol,
    put_back_sentence as put_back_sentence,
    regraded as regraded,
    reviews_planned as reviews_planned,
    switched_protocol as switched_protocol,
    trials_that_count as trials_that_count,
    unfinished as unfinished,
    what_counts as what_counts,
    what_waits as what_waits,
)
from assay.report.wording.runs import (
    FILE_DATE as FILE_DATE,
    labelled as labelled,
    mixed_runs as mixed_runs,
    newer_run as newer_run,
    newest_not_counted as newest_not_counted,
    not_in_runs as not_in_runs,
    pooled_anyway as pooled_anyway,
    runs_line as runs_line,
)
from assay.report.wording.standings import standings as standings, standings_line as standings_line
from assay.report.wording.verdict_rates import (
    verdict_difference_lines as verdict_difference_lines,
    verdict_level as verdict_level,
    verdict_lines as verdict_lines,
    verdict_rate as verdict_rate,
)
from assay.report.wording.verdicts import (
    TAKEN_BACK as TAKEN_BACK,
    anytime_beside as anytime_beside,
    anytime_difference as anytime_difference,
    beneath_headline as beneath_headline,
    comparisons_made as comparisons_made,
    gate_verdict as gate_verdict,
    headline as headline,
    looks as looks,
    many_comparisons as many_comparisons,
    method_words as method_words,
    not_worse as not_worse,
    other_scope as other_scope,
    superiority as superiority,
    undecided_among as undecided_among,
    verdict as verdict,
)
