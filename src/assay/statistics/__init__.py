"""Estimates, comparisons, ranks, agreement and planning, computed from plain arrays.

Nothing here reads files, prints, waits or seeds random numbers; the caller passes a generator to functions that need one. This
package can be imported on its own and needs only NumPy and `scipy.special`. Scores are between 0 and 1. A result that cannot be
computed is None and has a `reason`. No result contains NaN or Infinity, and only wrong arguments raise an error (ValueError).

Functions by subject:

=====================  ==============================================================================================
mean, mean_binary      `estimate` (all candidates: `estimates`); a bare share of successes: `proportion`
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
=====================  ==============================================================================================
"""

from assay.statistics.agreement import Alpha as Alpha, Pairable as Pairable, krippendorff_alpha as krippendorff_alpha
from assay.statistics.bounds import Coverage as Coverage, coverage as coverage
from assay.statistics.cells import Cells as Cells
from assay.statistics.comparisons import (
    Comparison as Comparison,
    SecondOpinion as SecondOpinion,
    SharedColumns as SharedColumns,
    TaskDifference as TaskDifference,
    compare as compare,
    equivalence as equivalence,
)
from assay.statistics.contrasts import ScopedDifference as ScopedDifference
from assay.statistics.designs import design_variances as design_variances
from assay.statistics.effects import EffectSizes as EffectSizes, effect_label as effect_label, effect_size as effect_size
from assay.statistics.equivalence import Equivalence as Equivalence, NonInferiority as NonInferiority
from assay.statistics.estimates import (
    Estimate as Estimate,
    ScopedMean as ScopedMean,
    TaskColumns as TaskColumns,
    TaskEstimate as TaskEstimate,
    estimate as estimate,
    estimates as estimates,
)
from assay.statistics.exact import label_permutation as label_permutation, sign_flip as sign_flip
from assay.statistics.fair_play import (
    RateTest as RateTest,
    SelectiveRejection as SelectiveRejection,
    approval_rates as approval_rates,
    selective_rejection as selective_rejection,
)
from assay.statistics.icc import IntraclassCorrelations as IntraclassCorrelations, icc as icc
from assay.statistics.intervals import Proportion as Proportion, proportion as proportion
from assay.statistics.judge_accuracy import Calibration as Calibration, calibration as calibration
from assay.statistics.kappa import Kappa as Kappa, cohen_kappa as cohen_kappa, fleiss_kappa as fleiss_kappa
from assay.statistics.multiplicity import Adjusted as Adjusted, multiplicity as multiplicity
from assay.statistics.paired_trials import kept_cells as kept_cells
from assay.statistics.partly_reviewed import (
    PartialMean as PartialMean,
    PartialReview as PartialReview,
    PredictionPowered as PredictionPowered,
    partial_review as partial_review,
    ppi as ppi,
)
from assay.statistics.planning import (
    DesignVariances as DesignVariances,
    Plan as Plan,
    Power as Power,
    plan as plan,
    power as power,
)
from assay.statistics.positions import PositionEffect as PositionEffect
from assay.statistics.preferences import (
    BradleyTerry as BradleyTerry,
    StrengthDifference as StrengthDifference,
    bradley_terry as bradley_terry,
)
from assay.statistics.ranking import (
    Friedman as Friedman,
    Ranked as Ranked,
    RankedPair as RankedPair,
    Ranking as Ranking,
    friedman as friedman,
    rank as rank,
)
from assay.statistics.rankings_as_preferences import strengths as strengths
from assay.statistics.reports import Report as Report, report as report
from assay.statistics.sampled_pairs import SampledDifference as SampledDifference
from assay.statistics.sensitivity import Sensitivity as Sensitivity, sensitivity as sensitivity
from assay.statistics.sequential import (
    EValue as EValue,
    PlannedLooks as PlannedLooks,
    e_value as e_value,
    planned_looks as planned_looks,
    sequential as sequential,
)
from assay.statistics.table import JudgeCalls as JudgeCalls, ScoreTable as ScoreTable
from assay.statistics.variances import VarianceComponents as VarianceComponents, variance_components as variance_components
from assay.statistics.warnings import Caution as Caution
