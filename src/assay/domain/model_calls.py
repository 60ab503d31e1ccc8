"""Call totals by model over the whole store, for the models page."""

from __future__ import annotations

from dataclasses import dataclass

from assay.domain.identifiers import RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class CallGroup:
    """Totals of a run's calls to one model, for one role and one outcome.

    Attributes:
        run_key: the run's number in the store; if another run now has this number, the original run
            was removed.
        role: `candidate` or `judge`.
        kind, fault: kind of failure and party at fault; None if the calls returned a usable answer.
        calls: number of calls; each retry counts as one.
        input_tokens, output_tokens: sums over the calls with known token counts.
        cost_usd: cost of the calls with a known price. `unpriced`: number of all other calls.
        first_call, last_call: storage numbers of the first and the last of these calls.
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
    """One stored call.

    `started` is the time of the call, and `detail` the error message if it failed.
    """

    call: int
    run_key: int
    started: str
    latency_s: float | None
    kind: str | None
    fault: str | None
    detail: str | None
