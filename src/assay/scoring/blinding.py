"""Order and labels of candidates while a judge grades them.

Judges favour some positions, so the order is random and balanced over the trials of a task. A
candidate's label depends only on its position and hides its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

from assay.domain.digest import derived_seed, shuffled
from assay.scoring.label_matching import letter_of_label


def shown_order(names: Iterable[str], *, seed: int, turn: int) -> tuple[str, ...]:
    """Return the names in the order in which a judge sees them; the result does not depend on the
    order of `names`.

    Trials are grouped into blocks of as many trials as there are names. Within a block, each name
    takes every position once (a cyclic Latin square). The next block reverses the first, so that of
    any two names each comes first equally often. Then a new square is drawn.

    Args:
        seed: must differ for each task, judge and attempt.
        turn: number of earlier trials of the task that this judge grades.
    """
    distinct = set(names)
    block, shift = divmod(turn, max(len(distinct), 1))
    pair, backwards = divmod(block, 2)
    drawn = shuffled(distinct, derived_seed(seed, "", pair, 1, "order"))
    rotated = drawn[shift:] + drawn[:shift]
    return rotated[::-1] if backwards else rotated


def labels_in(order: Sequence[str], *, others: Iterable[str] = ()) -> dict[str, str]:
    """Label the names by position: A, B, … Z, AA, …

    A letter that is itself used as a name (`Candidate A`, `b`) is skipped, because it would be
    unclear whether it is a label or a name. `others` are names in the run that get no label here.
    """
    taken = {letter_of_label(name) for name in (*order, *others)}
    free = (label for place in count() if (label := letters(place)) not in taken)
    return dict(zip(order, free, strict=False))


def letters(place: int) -> str:
    """Return the label of a 0-based position: A for 0, Z for 25, AA for 26."""
    label = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        label = chr(ord("A") + rest) + label
    return label
