"""The protocol of evaluators, which grade responses.

They perform no I/O: they return requests and read the replies.

A plain scorer makes no requests. An isolated scorer requests a function call in a child process. A
judge requests a reply from one model; a panel is several judges, each with its own slot. An
evaluator that needs a second round of requests returns it from `read` as `MoreRequests`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from assay.domain.calls import ModelRequest, Reply
from assay.domain.failure import Fault
from assay.domain.isolation import IsolatedAnswer, IsolatedRequest
from assay.domain.pages import PageAnswer, PageRequest
from assay.domain.sandbox import CommandRequest, CommandResult

if TYPE_CHECKING:
    from assay.domain.assessment import Assessment, Response
    from assay.domain.run import Slot
    from assay.domain.suite import Task

Request: TypeAlias = ModelRequest | IsolatedRequest | PageRequest | CommandRequest
"""The kinds of requests that an evaluator may make."""

Answer: TypeAlias = Reply | IsolatedAnswer | PageAnswer | CommandResult
"""The answer to a request: a model's reply, a function's value, pictures, a command's result, or
why it is missing.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradingAttempt:
    """One attempt at grading one trial.

    Attributes:
        responses: responses to grade, in the order in which the grader sees them.
        labels: for each candidate's name, the label that the grader sees; set even if there is only
            one response.
        k: number of the trial, from 1.
        attempt: number of the attempt at judging the trial, from 1.
        seed: sent with the judge's call if its endpoint accepts a seed.
        note: instruction to the judge from the reviewer who requested a rerun.
    """

    task: Task
    responses: tuple[Response, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    k: int = 1
    attempt: int = 1
    seed: int | None = None
    note: str = ""

    @property
    def shown(self) -> tuple[str, ...]:
        """Return the candidates in the order shown, as stored with the assessment; empty if there
        is only one response.
        """
        return (
            tuple(response.candidate for response in self.responses)
            if len(self.responses) > 1
            else ()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreRequests:
    """An evaluator's requests for another round; `read` is called again with all answers so far."""

    requests: tuple[Request, ...]


class UnreadableReply(Exception):
    """Raised if the grader's reply has no grades but asking again may help.

    The message describes the reply.
    """


class Unscorable(Exception):
    """Raised if a scorer cannot decide that a response is right or wrong, and a retry would not
    help.

    `kind`: a short code (`pattern_timeout`, `too_long`, `no_reference`). `detail`: a sentence for a
    person. `fault`: the candidate if its text cannot be evaluated within the limits, else the
    harness.
    """

    def __init__(self, kind: str, detail: str, *, fault: Fault = Fault.HARNESS) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail
        self.fault = fault


class Evaluator(Protocol):
    """Grades the responses of a trial."""

    @property
    def grader(self) -> str:
        """Return the grader's name in assessments: the judge's name, or the scorer's method."""
        ...

    @property
    def by_model(self) -> bool:
        """True if an LLM grades, so that a person must review the grades."""
        ...

    def slots(self, candidates: tuple[str, ...], /) -> tuple[Slot, ...]:
        """Return one slot per assessment that a trial needs: one for all candidates together, or
        one for each.
        """
        ...

    def ask(self, grading: GradingAttempt, /) -> tuple[Request, ...]:
        """Return the first round of requests; empty for a plain scorer."""
        ...

    def foreseen(self, grading: GradingAttempt, /) -> tuple[Request, ...]:
        """Return, for estimates, all requests that are known before any answer; equal to `ask` if
        there is only one round.
        """
        ...

    def read(
        self, grading: GradingAttempt, answers: tuple[Answer, ...], /
    ) -> Assessment | MoreRequests:
        """Return the assessment, or the requests of another round.

        The assessment's records use names instead of labels, but the judge's own text stays
        unchanged. Raises `UnreadableReply` if the last reply has no grades, and `Unscorable` if a
        scorer cannot decide.
        """
        ...
