"""Detect metrics with an unknown scale: if one value is outside 0 to 1, none of the metric's values
can count.

Pass all values to `learn` first, then call `score` for each. Otherwise only values that happen to
lie between 0 and 1 would count, which would distort the mean.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from assay.domain.errors import InputError
from assay.domain.import_records import Noted
from assay.exchange.parsing.json_values import in_unit_range


class OffScale:
    """Detects a file's metrics with values outside 0 to 1, and counts the scores excluded for that
    reason.
    """

    def __init__(self) -> None:
        self._metrics: set[Hashable] = set()
        self._kept_raw = 0

    def learn(self, metric: Hashable, raw: float | None) -> None:
        if raw is not None and in_unit_range(raw) is None:
            self._metrics.add(metric)

    def score(self, metric: Hashable, raw: float | None) -> float | None:
        """Return a value as a score; None for every value of a metric with values outside 0 to
        1.
        """
        if raw is None or metric not in self._metrics:
            return raw
        self._kept_raw += 1
        return None

    def remarks(self, where: str) -> Iterator[Noted]:
        """Yield a note if some scores do not count."""
        if self._kept_raw:
            what = (
                f"{self._kept_raw:,} scores belong to metrics with values outside 0 to 1, and the file does not state their "
                "scale. Assay keeps them as raw scores, which no statistic counts."
            )
            yield Noted(where=where, what=what)


class WrongScale(InputError):
    """Raised if most scores in a file are outside the assumed scale, because the assumption must
    then be wrong.
    """


class ScaleCheck:
    """Counts scores inside and outside their scale, and rejects a file if most are outside."""

    def __init__(self) -> None:
        self.inside = self.outside = 0

    def refuse_wrong(self, where: str, named: str, remedy: str) -> None:
        """Raise `WrongScale` if more scores lie outside the scale than inside."""
        # With percentages, only 0 and 1 would count: the mean of 40 answers was once 50.0 instead
        # of 63.0.
        if self.outside > self.inside:
            total = self.inside + self.outside
            problem = f"{self.outside:,} of {total:,} {named}, so the file has a different scale. Nothing in it was imported."
            raise WrongScale(where, problem, remedy=remedy)
