"""Fast conversion of label columns to integer codes."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.statistics.arrays import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Coded:
    """A column stored as integer `codes` into distinct `labels`, which are sorted if their type
    allows it.
    """

    codes: Ints
    labels: tuple[Hashable, ...]


class _FirstSeen(dict[Hashable, int]):
    """A dictionary that numbers labels in the order of their first lookup."""

    def __missing__(self, label: Hashable) -> int:
        code = self[label] = len(self)
        return code


def coded(column: Sequence[Hashable] | NDArray[np.generic]) -> Coded:
    """Return the codes and labels of a column.

    Labels may be of any hashable kind; whole-number arrays are handled without creating Python
    objects. Labels that are equal under `==` count as one label.
    """
    if isinstance(column, np.ndarray):
        if column.dtype.kind in "iu":
            return _coded_whole_numbers(column)
        column = column.tolist()
    seen = _FirstSeen()
    # `map` and `fromiter` run the loop over a million labels outside of Python code.
    codes = np.fromiter(map(seen.__getitem__, column), np.int64, len(column))
    return _in_order(codes, tuple(seen))


def places(column: Sequence[Hashable] | NDArray[np.generic]) -> tuple[Ints, int]:
    """Return codes that may have gaps, and a number above all codes.

    This is faster than `coded`, which also returns labels.
    """
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu" and column.size:
        low, high = int(column.min()), int(column.max())
        if low > -(2**62) and high - low <= 4 * column.size + 1024 and high < 2**62:
            codes = column.astype(np.int64, copy=False)
            return (codes - low if low else codes), high - low + 1
    coding = coded(column)
    return coding.codes, len(coding.labels)


def coded_together(
    first: Sequence[Hashable] | NDArray[np.generic],
    second: Sequence[Hashable] | NDArray[np.generic],
) -> tuple[tuple[Hashable, ...], Ints, Ints]:
    """Return the combined labels of two columns, and the codes of each column."""
    a, b = coded(first), coded(second)
    if a.labels == b.labels:
        return a.labels, a.codes, b.codes
    every = coded([*a.labels, *b.labels])
    place_a, place_b = every.codes[: len(a.labels)], every.codes[len(a.labels) :]
    return every.labels, place_a[a.codes], place_b[b.codes]


def _coded_whole_numbers(column: NDArray[np.generic]) -> Coded:
    if column.size == 0:
        return Coded(codes=np.zeros(0, np.int64), labels=())
    low, high = int(column.min()), int(column.max())
    if high - low > 4 * column.size + 1024 or high > 2**62 or low < -(2**62):
        values, codes = np.unique(column, return_inverse=True)
        return Coded(codes=codes.reshape(-1).astype(np.int64), labels=tuple(values.tolist()))
    offset = column.astype(np.int64, copy=False)
    if low != 0:
        offset = offset - low
    # Whole numbers that are close together are coded with a table of flags, without sorting.
    present = np.zeros(high - low + 1, np.bool_)
    present[offset] = True
    if present.all():
        return Coded(codes=offset, labels=tuple(range(low, high + 1)))
    place = np.cumsum(present) - 1
    return Coded(codes=place[offset], labels=tuple((np.flatnonzero(present) + low).tolist()))


def _in_order(codes: Ints, labels: tuple[Hashable, ...]) -> Coded:
    # With sorted labels, later sums do not depend on the order of the rows, as far as rounding
    # allows.
    order = _sorted_places(labels)
    if order == list(range(len(labels))):
        return Coded(codes=codes, labels=labels)
    place = np.empty(len(labels), np.int64)
    place[order] = np.arange(len(labels))
    return Coded(codes=place[codes], labels=tuple(labels[i] for i in order))


def _sorted_places(names: tuple[Hashable, ...]) -> list[int]:
    try:
        return sorted(range(len(names)), key=names.__getitem__)  # type: ignore[arg-type]  # unsortable kinds raise below
    except TypeError:
        return sorted(range(len(names)), key=lambda i: (type(names[i]).__name__, str(names[i])))
