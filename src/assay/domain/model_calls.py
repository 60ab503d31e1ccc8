"""Calls to models, summed over the whole store, for the page about models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.domain.identifiers import RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class CallGroup:
    """Sums over the calls with one outcome that a run made to one model in one role.

    Attributes:
        run_key: the run's number in the store; a number that now belongs to another run shows that a run was removed.
        role: `candidate` or `judge`.
        kind, fault: how they failed; None if they returned a usable answer.
        calls: number of calls; each retry counts as one.
        input_tokens, output_tokens: sums over calls whose tokens were counted.
        cost_usd: cost of the calls whose price is known; `unpriced` counts the others.
        first_call, last_call: numbers of the first and the last of these calls, in the order in which they were stored.
    """

    run_key: int
    run_id: RunId
    role: str
    model: str
    kind: str | None
    fault: str | None
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    unpriced: int
    first_call: int
    last_call: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFact:
    """One stored call. `started`: when it was made; `detail`: the error message of a failed one."""

    call: int
    run_key: int
    started: str
    latency_s: float | None
    kind: str | None
    fault: str | None
    detail: str | None
