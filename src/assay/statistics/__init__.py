"""Estimates, comparisons, ranks, agreement and planning on plain arrays."""

from assay.statistics.cells import Cells
from assay.statistics.comparisons import Comparison, compare, equivalence
from assay.statistics.effects import effect_size
from assay.statistics.estimates import Estimate, estimate, estimates
from assay.statistics.intervals import proportion
from assay.statistics.multiplicity import multiplicity
from assay.statistics.planning import plan, power
from assay.statistics.ranking import Ranking, friedman, rank
from assay.statistics.table import ScoreTable
from assay.statistics.variances import variance_components

__all__ = [
    "Cells",
    "Comparison",
    "Estimate",
    "Ranking",
    "ScoreTable",
    "compare",
    "effect_size",
    "equivalence",
    "estimate",
    "estimates",
    "friedman",
    "multiplicity",
    "plan",
    "power",
    "proportion",
    "rank",
    "variance_components",
]
