"""Failures of trials and calls, and the party at fault for each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from assay.domain.calls import Usage

NO_TOOLS: Final = "no_tools"
"""Kind of failure if a model or its provider cannot be offered tools."""
BUDGET: Final = "budget"
"""Kind of failure if the next call may cost more than is left of the budget."""

UNREACHABLE: Final = "connection"
"""Kind of failure if a server refuses the connection, does not accept it in time, or closes it
without an answer.
"""

_FATAL: Final = frozenset(
    {
        "http_401",
        "http_402",
        "http_403",
        "http_404",
        UNREACHABLE,
        "not_local",
        "cannot_start",
        "exit_126",
        "exit_127",
    }
)


def is_fatal(kind: str) -> bool:
    """True if every further call to the same model or program probably fails for the same reason.

    Such a reason is a wrong key, an account without credit, an unknown model or address, a server
    that refuses connections although the call was repeated, or a command that does not exist.
    """
    return kind in _FATAL


class Fault(StrEnum):
    """Party at fault for a failure; only `CANDIDATE` and `REFUSAL` count against the candidate."""

    CANDIDATE = "candidate"
    JUDGE = "judge"
    PROVIDER = "provider"
    HARNESS = "harness"
    BUDGET = "budget"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failure that ended a trial: a short kind (`timeout`, `http_500`, `empty`, ...), the party
    at fault and a detail.
    """

    kind: str
    fault: Fault
    detail: str
    tries: int = 1


class CallFailed(Exception):
    """A model call returned no usable answer.

    Args:
        kind: short code, for example `timeout`, `http_429`, `empty`, `unparsable`, `refused`,
            `context_length`.
        detail: one sentence for a person; never contains an API key.
        transient: True if a retry may succeed.
        retry_after_s: how long the provider asked Assay to wait, in seconds.
        fault: the party at fault; None if it depends on the model's role: a judge's empty reply is
            the judge's fault.
        usage: tokens that were billed despite the failure. `cost_usd`: their cost, None if unknown.
        charged: False only if the provider refused the call or never received it, so it cannot have
            cost anything.
        log: the output of a program, and its traceback.
        unread: the text of the reply, if it could not be parsed.

    `recorded` is True once the failed call is stored in the journal.
    """

    def __init__(
        self,
        kind: str,
        detail: str,
        *,
        transient: bool,
        retry_after_s: float | None = None,
        fault: Fault | None = None,
        usage: Usage | None = None,
        cost_usd: float | None = None,
        charged: bool = True,
        log: str = "",
        unread: str = "",
    ) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail
        self.transient = transient
        self.retry_after_s = retry_after_s
        self.fault = fault
        self.usage = usage
        self.cost_usd = cost_usd
        self.charged = charged
        self.log = log
        self.unread = unread
        self.recorded = False

    @property
    def fatal(self) -> bool:
        """True if further calls probably fail for the same reason; also for a used-up quota, which
        shares its kind with haste.
        """
        return is_fatal(self.kind) or (self.kind == "http_429" and not self.transient)
