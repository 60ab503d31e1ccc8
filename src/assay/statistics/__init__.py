"""Estimates, comparisons, ranks, agreement and planning, computed from plain arrays.

Nothing here reads files, prints, waits or seeds random numbers; the caller passes a generator to
functions that need one. This package can be imported on its own and needs only NumPy and
`scipy.special`. Scores are between 0 and 1. A result that cannot be computed is None and has a
`reason`. No result contains NaN or Infinity, and only wrong arguments raise an error (ValueError).

Functions by subject:

=====================  ============================================================================
mean, mean_binary      `estimate` (all candidates: `estimates`); a share of successes: `proportion`
diff, diff_one_task    `compare`
effect_size            `effect_size`
equivalence            `equivalence`, or `compare` with a margin (non-inferiority too)
ranking                `rank`; omnibus: `friedman`; everything at once, from kept cells: `report`
multiplicity           `multiplicity` (Holm, Benjamini-Hochberg, Bonferroni)
bradley_terry          `bradley_terry`; from the scores of trials: `strengths`
variance               `variance_components`; for a pair of candidates: `design_variances`
icc                    `icc`
krippendorff_alpha     `krippendorff_alpha`
cohen_kappa            `cohen_kappa`
fleiss_kappa           `fleiss_kappa`
calibration            `calibration`
ppi                    `ppi`; with tasks: `partial_review`
power                  `power`; from data, with cost: `plan`
sequential             `sequential`: `e_value`, `planned_looks`
second opinions        `sign_flip`, `label_permutation`
fair play              `approval_rates`, `selective_rejection`, `sensitivity`
coverage               `coverage`
=====================  ============================================================================
"""

from assay.statistics.agreement import Alpha, Pairable, krippendorff_alpha
from assay.statistics.bounds import Coverage, coverage
from assay.statistics.cells import Cells
from assay.statistics.comparisons import (
    Comparison,
    SecondOpinion,
    SharedColumns,
    TaskDifference,
    compare,
    equivalence,
)
from assay.statistics.contrasts import ScopedDifference
from assay.statistics.designs import design_variances
from assay.statistics.effects import EffectSizes, effect_label, effect_size
from assay.statistics.equivalence import Equivalence, NonInferiority
from assay.statistics.estimates import (
    Estimate,
    ScopedMean,
    TaskColumns,
    TaskEstimate,
    estimate,
    estimates,
)
from assay.statistics.exact import label_permutation, sign_flip
from assay.statistics.fair_play import (
    RateTest,
    SelectiveRejection,
    approval_rates,
    selective_rejection,
)
from assay.statistics.icc import IntraclassCorrelations, icc
from assay.statistics.intervals import Proportion, proportion
from assay.statistics.judge_accuracy import Calibration, calibration
from assay.statistics.kappa import Kappa, cohen_kappa, fleiss_kappa
from assay.statistics.multiplicity import Adjusted, multiplicity
from assay.statistics.paired_trials import kept_cells
from assay.statistics.partly_reviewed import (
    PartialMean,
    PartialReview,
    PredictionPowered,
    partial_review,
    ppi,
)
from assay.statistics.planning import DesignVariances, Plan, Power, plan, power
from assay.statistics.positions import PositionEffect
from assay.statistics.preferences import BradleyTerry, StrengthDifference, bradley_terry
from assay.statistics.ranking import Friedman, Ranked, RankedPair, Ranking, friedman, rank
from assay.statistics.rankings_as_preferences import strengths
from assay.statistics.reports import Report, report
from assay.statistics.sampled_pairs import SampledDifference
from assay.statistics.sensitivity import Sensitivity, sensitivity
from assay.statistics.sequential import EValue, PlannedLooks, e_value, planned_looks, sequential
from assay.statistics.superiority import WinProbability
from assay.statistics.table import JudgeCalls, ScoreTable
from assay.statistics.variances import VarianceComponents, variance_components
from assay.statistics.warnings import Caution

__all__ = [
    "Adjusted",
    "Alpha",
    "BradleyTerry",
    "Calibration",
    "Caution",
    "Cells",
    "Comparison",
    "Coverage",
    "DesignVariances",
    "EValue",
    "EffectSizes",
    "Equivalence",
    "Estimate",
    "Friedman",
    "IntraclassCorrelations",
    "JudgeCalls",
    "Kappa",
    "NonInferiority",
    "Pairable",
    "PartialMean",
    "PartialReview",
    "Plan",
    "PlannedLooks",
    "PositionEffect",
    "Power",
    "PredictionPowered",
    "Proportion",
    "Ranked",
    "RankedPair",
    "Ranking",
    "RateTest",
    "Report",
    "SampledDifference",
    "ScopedDifference",
    "ScopedMean",
    "ScoreTable",
    "SecondOpinion",
    "SelectiveRejection",
    "Sensitivity",
    "SharedColumns",
    "StrengthDifference",
    "TaskColumns",
    "TaskDifference",
    "TaskEstimate",
    "VarianceComponents",
    "WinProbability",
    "approval_rates",
    "bradley_terry",
    "calibration",
    "cohen_kappa",
    "compare",
    "coverage",
    "design_variances",
    "e_value",
    "effect_label",
    "effect_size",
    "equivalence",
    "estimate",
    "estimates",
    "fleiss_kappa",
    "friedman",
    "icc",
    "kept_cells",
    "krippendorff_alpha",
    "label_permutation",
    "multiplicity",
    "partial_review",
    "plan",
    "planned_looks",
    "power",
    "ppi",
    "proportion",
    "rank",
    "report",
    "selective_rejection",
    "sensitivity",
    "sequential",
    "sign_flip",
    "strengths",
    "variance_components",
]
