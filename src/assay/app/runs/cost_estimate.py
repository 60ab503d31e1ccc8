"""Estimate the cost of model calls, and check the estimate against the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.domain.amounts import money
from assay.domain.errors import InputError
from assay.domain.remaining_cost import CallsAhead
from assay.engine.estimate import CostEstimate, likely_tokens, worst_case_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.domain.calls import ModelRequest
    from assay.domain.model import ModelSpec
    from assay.providers.directory import Directory


def check_cap(estimate: CostEstimate, budget_usd: float | None) -> None:
    """Raise `InputError` for a budget that is not positive, or that cannot be enforced because a
    price is unknown.
    """
    if budget_usd is None:
        return
    # Written with `not`, so that NaN is refused too.
    if not budget_usd > 0:
        raise InputError("--budget", f"is {budget_usd}, but must be more than 0 US dollars.")
    if estimate.unpriced:
        raise InputError(
            "--budget",
            f"the price of {', '.join(estimate.unpriced)} is unknown, so the budget cannot be enforced.",
            remedy="Set it in the suite (`price: {input: 0.15, output: 0.6}`, dollars per million tokens) or in assay.yaml.",
        )


def over_budget(estimate: CostEstimate, budget_usd: float | None) -> tuple[str, ...]:
    """Return a warning if the calls will probably cost more than the budget, otherwise an empty
    result.
    """
    if budget_usd is None or estimate.likely_usd is None or estimate.likely_usd <= budget_usd:
        return ()

    likely, budget = money(estimate.likely_usd), money(budget_usd)
    return (
        f"The estimate, about {likely}, is over the budget of {budget}; the run pauses when the budget is reached.",
    )


class Tally:
    """Running total of the number and cost of calls.

    `paid`: what a call to a model really cost so far, by role and model. Such calls are counted
    with that cost, not with an estimate.
    """

    def __init__(
        self, directory: Directory, *, paid: Mapping[tuple[str, str], float] | None = None
    ) -> None:
        self._directory = directory
        self._paid = paid or {}
        self._calls = 0
        self._likely = 0.0
        self._most = 0.0
        self._unpriced: dict[str, None] = {}
        self._by_role: dict[tuple[str, str], tuple[int, float]] = {}

    def add(self, request: ModelRequest, *, times: int) -> None:
        self._calls += times
        key = (request.purpose.role.value, request.model.ref)
        likely = self._paid.get(key)
        likely = self._cost(request.model, *likely_tokens(request)) if likely is None else likely
        most = self.worst_usd(request)
        calls, usd = self._by_role.get(key, (0, 0.0))
        self._by_role[key] = (calls + times, usd + times * (likely or 0.0))
        if likely is None or most is None:
            self._unpriced[request.model.ref] = None
        else:
            self._likely += times * likely
            self._most += times * most

    def worst_usd(self, request: ModelRequest) -> float | None:
        """Return the worst-case cost of one call; None if its price is unknown."""
        return self._cost(request.model, *worst_case_tokens(request))

    def estimate(self) -> CostEstimate:
        known = not self._unpriced
        return CostEstimate(
            calls=self._calls,
            likely_usd=self._likely if known else None,
            most_usd=self._most if known else None,
            unpriced=tuple(self._unpriced),
            ahead=tuple(
                CallsAhead(
                    role=role,
                    model=model,
                    calls=calls,
                    usd_per_call=None if model in self._unpriced else usd / calls,
                )
                for (role, model), (calls, usd) in self._by_role.items()
                if calls
            ),
        )

    def _cost(self, model: ModelSpec, input_tokens: int, output_tokens: int) -> float | None:
        return self._directory.cost_usd(
            model, input_tokens=input_tokens, output_tokens=output_tokens
        )
