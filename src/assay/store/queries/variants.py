"""Keep apart candidates that share a name but have different models or prompts, because pooling
them would be wrong.

If selected runs use one name for several identities, each identity becomes a separate candidate,
labelled with its model: `bot (openai/small)`. Candidates without an identity are always pooled.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Connection, func, select

from assay.domain.candidate_identity import identity_in_words
from assay.store.database import schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Variant:
    """One of several candidates with the same name.

    `key` is negative; `candidate` and `runs` are keys of the store.
    """

    key: int
    candidate: int
    name: str
    label: str
    runs: tuple[int, ...]


def variants_of(
    connection: Connection, of_runs: Sequence[ColumnElement[bool]]
) -> tuple[Variant, ...]:
    """Return candidates that share a name, under conditions on `run_candidate`; empty in nearly
    every store.
    """
    own, candidate = schema.run_candidate, schema.candidate
    several = (
        select(own.c.candidate_key)
        .where(*of_runs, own.c.identity != "")
        .group_by(own.c.candidate_key, own.c.name)
        .having(func.min(own.c.identity) != func.max(own.c.identity))
    )
    wanted = sorted(set(connection.execute(several).scalars()))
    if not wanted:
        return ()
    rows = connection.execute(
        select(own.c.candidate_key, own.c.identity, own.c.run_key, candidate.c.name)
        .join(candidate, candidate.c.key == own.c.candidate_key)
        .where(*of_runs, own.c.candidate_key.in_(wanted))
        .order_by(own.c.run_key)
    ).all()
    runs: defaultdict[tuple[int, str, str], list[int]] = defaultdict(list)
    for row in rows:
        runs[row.candidate_key, row.name, row.identity].append(row.run_key)
    return tuple(
        Variant(
            key=-1 - number,
            candidate=key,
            name=name,
            label=f"{name} ({identity_in_words(identity, frozenset(other for same, _, other in runs if same == key))})",
            runs=tuple(of_identity),
        )
        for number, ((key, name, identity), of_identity) in enumerate(runs.items())
    )


def split_keys(
    variants: tuple[Variant, ...], candidates: NDArray[np.float64], runs: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Replace candidates' keys by those of their variants; `candidates` and `runs` have shape
    (rows,).
    """
    import numpy as np

    keys = candidates.copy()
    for variant in variants:
        keys[(candidates == variant.candidate) & np.isin(runs, variant.runs)] = variant.key
    return keys
