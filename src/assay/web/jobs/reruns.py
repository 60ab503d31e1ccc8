"""Reruns that reviewers request on a page, executed in the background.

The page repeats its request until it gets the outcome, so a restarted server starts the rerun
again. The attempt number in the request prevents two reruns for one request.

The rerun of a control item (planted check) calls no model, but looks like a real one: it takes as
long as judging usually takes, returns another attempt, and is refused if a real item would be
refused. If this process may not call the run's judges, or their last real rerun in it failed, it
fails with the same error; before their first real rerun, it succeeds.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict, deque
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict

from assay.app.review import rerun
from assay.domain import decisions as rules
from assay.domain.errors import AssayError, Refused, UnknownName
from assay.domain.failure import Failure, Fault
from assay.domain.identifiers import AssessmentKey, shown_assessment
from assay.domain.lifecycle import AssessmentPurpose, Verb
from assay.domain.review import Decision, Via, stated_by
from assay.web.errors import problem_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.app.review.concealment import Concealment
    from assay.app.review.queue import ReviewQueue
    from assay.app.review.service import ReviewService
    from assay.app.workspace import Workspace
    from assay.domain.selection import AssessmentDetail

_AT_ONCE: Final = 4  # a person waits for each, and they share the judge's rate limits with runs
_REMEMBERED: Final = 1000
_LASTED: Final = 20  # durations of real reruns to remember
_LONGEST_S: Final = 60.0
_AROUND_S: Final = 0.2  # time a rerun takes besides the judge's answer


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunRequest:
    """A requested rerun of the item `name` that replaces `attempt`; with `sealed`, the new
    attempt's id is opaque too.

    `via`, `displayed`: as in the decision that the request becomes. `signed_in`: the person whose
    sign-in sent the request. `of_owner`: True if the owner sent it, who may read the cause.
    """

    key: str
    name: str
    sealed: bool
    assessment: AssessmentKey
    attempt: int
    reviewer: str
    signed_in: str
    of_owner: bool
    via: Via
    displayed: bool
    reason: str
    note: str

    @property
    def stated_by(self) -> str:
        """The person who stated the reviewer's name; empty if the name speaks for itself."""
        return stated_by(
            self.reviewer, signed_in=self.signed_in, via=self.via, displayed=self.displayed
        )


class RerunOutcome(TypedDict):
    """The state of a rerun: `running`, `done` with the new attempt, or `failed` with the reason."""

    status: str
    id: str
    new_id: NotRequired[str]
    attempt: NotRequired[int]
    error: NotRequired[dict[str, str]]


class Reruns:
    """The reruns of this process. Runs in the server's event loop."""

    def __init__(
        self,
        workspace: Workspace,
        queue: ReviewQueue,
        review: ReviewService,
        concealment: Concealment,
    ) -> None:
        self._workspace = workspace
        self._queue = queue
        self._review = review
        self._concealment = concealment
        self._took: deque[float] = deque(maxlen=_LASTED)
        # how the last real rerun by these judges failed
        self._broken: dict[tuple[str, ...], Failure | AssayError] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._outcomes: OrderedDict[str, RerunOutcome] = OrderedDict()
        self._under_way: dict[asyncio.Task[None], RerunRequest] = {}

    async def ask(self, request_: RerunRequest) -> RerunOutcome:
        """Start a rerun if it is new, and return its state.

        Raises UnknownName if the assessment does not exist.

        Raises Refused if the assessment is in dispute, lacks this attempt or is being judged again,
        or if the key was used for another assessment.
        """
        known = self._outcomes.get(request_.key)
        if known is not None:
            rules.check_key(
                request_.assessment,
                of=await asyncio.to_thread(self._concealment.key_of, known["id"]),
            )
            return known
        # Without this check, a key that was sent again for another item returned the outcome of the
        # first.
        await asyncio.to_thread(
            self._review.check_key, request_.assessment, idempotency_key=request_.key
        )
        detail = await asyncio.to_thread(self._review.control_items.detail, request_.assessment)
        if len(detail.attempts) > request_.attempt:
            return await self._done(
                request_, detail, detail.attempts[-1], attempt=len(detail.attempts)
            )
        if len(detail.attempts) < request_.attempt:
            raise Refused(
                request_.name,
                f"has no attempt {request_.attempt}; its last attempt is {len(detail.attempts)}.",
                remedy="Reload the item and try again.",
            )
        await asyncio.to_thread(self._review.opinions.refuse_disputed, detail)
        if request_.key in self._outcomes:  # a concurrent request with the same key was faster
            return await self.ask(request_)
        self._refuse(
            self._asked_by(request_.assessment), reviewer=request_.reviewer, called=request_.name
        )
        # Marked before the work begins, because requests of two people for one item once shared a
        # rerun.
        self._outcomes[request_.key] = {"status": "running", "id": request_.name}
        while len(self._outcomes) > _REMEMBERED:
            self._outcomes.popitem(last=False)
        task = asyncio.create_task(self._carry_out(request_, detail))
        self._under_way[task] = request_
        task.add_done_callback(self._under_way.pop)
        return self._outcomes[request_.key]

    def refuse_meanwhile(
        self, assessment: AssessmentKey, *, reviewer: str, idempotency_key: str
    ) -> None:
        """Raise `Refused` while this item is being judged again, because the new attempt would
        replace the decision.

        A decision that is already stored and only sent again is accepted.
        """
        asked_by = self._asked_by(assessment)
        if asked_by and not self._review.is_taken(assessment, idempotency_key=idempotency_key):
            self._refuse(asked_by, reviewer=reviewer, called=shown_assessment(assessment))

    def _asked_by(self, assessment: AssessmentKey) -> list[str]:
        # copied, because requests are handled in several threads
        requests = list(self._under_way.values())
        return [request_.reviewer for request_ in requests if request_.assessment == assessment]

    @staticmethod
    def _refuse(asked_by: Sequence[str], *, reviewer: str, called: str) -> None:
        if asked_by:
            who = "you" if reviewer in asked_by else asked_by[0]
            problem = f"is being judged again, because {who} requested it."
            raise Refused(called, problem, remedy="Wait for the new attempt, and decide that one.")

    async def stop(self) -> None:
        """Cancel the reruns in progress; the pages will request them again."""
        tasks = list(self._under_way)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _carry_out(self, request_: RerunRequest, detail: AssessmentDetail) -> None:
        try:
            async with self._slots:
                new, failure = await (
                    self._control(request_, detail)
                    if _is_control(detail)
                    else self._judged(request_, detail)
                )
        except (Refused, UnknownName, _NoGrades) as error:
            if error.where == shown_assessment(request_.assessment):
                error.where = request_.name
            self._outcomes[request_.key] = _failed(request_, error)
        except AssayError as error:
            self._outcomes[request_.key] = _failed(request_, self._why(request_, detail, error))
        except asyncio.CancelledError:
            self._outcomes.pop(request_.key, None)
            raise
        except Exception as error:  # the waiting page must learn of any failure
            refusal = Refused(
                "rerun",
                f"failed unexpectedly ({type(error).__name__}).",
                remedy="See the server's log.",
            )
            self._outcomes[request_.key] = _failed(request_, refusal)
            raise
        else:
            if new is None:
                self._outcomes[request_.key] = _failed(
                    request_, self._why(request_, detail, failure)
                )
            else:
                self._outcomes[request_.key] = await self._done(
                    request_, detail, new, attempt=request_.attempt + 1
                )

    async def _judged(
        self, request_: RerunRequest, detail: AssessmentDetail
    ) -> tuple[AssessmentKey | None, Failure | None]:
        began = monotonic()
        judges = await asyncio.to_thread(self._review.judges_of, detail.row.run_id)
        try:
            outcome = await rerun.rerun(
                self._workspace,
                request_.assessment,
                reason=request_.reason,
                note=request_.note,
                reviewer=request_.reviewer,
                stated_by=request_.stated_by,
                via=request_.via,
                displayed=request_.displayed,
                idempotency_key=request_.key,
            )
        except AssayError as error:
            if not isinstance(error, Refused | UnknownName):  # these errors are about the item
                self._took.append(monotonic() - began)
                self._broken[judges] = error
            raise
        self._took.append(monotonic() - began)
        new, failure = outcome
        self._broken.pop(judges, None)
        if new is None and failure is not None:
            self._broken[judges] = failure
        return outcome

    async def _control(
        self, request_: RerunRequest, detail: AssessmentDetail
    ) -> tuple[AssessmentKey | None, Failure | None]:
        """Wait for as long as judging takes, then return another attempt of a control item."""
        rerun.check_rerun(detail.row)
        judges = await asyncio.to_thread(self._review.judges_of, detail.row.run_id)
        problem = await asyncio.to_thread(self._review.judge_problem, detail.row.run_id)
        broken = problem or self._broken.get(judges)
        if problem is None:
            await asyncio.sleep(self._took[-1] if broken and self._took else self._takes_s(detail))
        if broken is not None:
            raise self._why(request_, detail, broken)
        decision = Decision(
            verb=Verb.RERUN,
            assessment=request_.assessment,
            reviewer=request_.reviewer,
            stated_by=request_.stated_by,
            via=request_.via,
            displayed=request_.displayed,
            note=request_.note,
            key=request_.key,
            reason=request_.reason or request_.note,
            purpose=AssessmentPurpose.CONTROL,
        )
        return await asyncio.to_thread(self._review.rerun_control, decision), None

    def _why(
        self, request_: RerunRequest, detail: AssessmentDetail, cause: Failure | AssayError | None
    ) -> _NoGrades:
        """Return the error for a judge that gave no new grades.

        The owner reads the cause, without the judge's name, which the item may hide. Reviewers read
        only that the judge failed. A reply that could not be read is described to nobody, because
        the description may name candidates.
        """
        kept = "the judge failed; the earlier grades remain."
        general = _NoGrades("rerun", kept, remedy="Ask the owner, or try again later.")
        if not request_.of_owner or cause is None:
            return general
        if isinstance(cause, AssayError):
            problem, remedy = f"{cause.where}: {cause.problem}", cause.remedy
        elif cause.fault is Fault.JUDGE:
            problem, remedy = f"Its reply was of no use ({cause.kind}).", "Try again later."
        else:
            problem, remedy = cause.detail or cause.kind, "Try again later."
        try:
            hidden = partial(self._review.without_judges, detail.row.run_id)
            return _NoGrades("rerun", f"{kept} {hidden(problem)}", remedy=hidden(remedy))
        except AssayError:  # the store cannot be read
            return general

    def _takes_s(self, detail: AssessmentDetail) -> float:
        """Return the seconds for a control item's rerun, taken from a recent real rerun or from the
        original judge call.
        """
        if self._took:
            return secrets.choice(self._took)
        latency_s = detail.call.get("latency_s")
        asked = float(latency_s) if isinstance(latency_s, int | float) else 0.0
        # 0.8 to 1.2 times as long, because a rerun that always takes the same time would reveal a
        # control item.
        return min(asked * (0.8 + secrets.randbelow(400) / 1000), _LONGEST_S) + _AROUND_S

    async def _done(
        self, request_: RerunRequest, detail: AssessmentDetail, new: AssessmentKey, *, attempt: int
    ) -> RerunOutcome:
        self._queue.done_with(request_.assessment)
        if not _is_control(detail):
            self._queue.soon(new)
            await asyncio.to_thread(
                self._review.note_rerun,
                request_.assessment,
                reviewer=request_.reviewer,
                idempotency_key=request_.key,
            )
        name = (
            await asyncio.to_thread(self._concealment.sealed, new)
            if request_.sealed
            else shown_assessment(new)
        )
        return {"status": "done", "id": request_.name, "new_id": name, "attempt": attempt}


def _failed(request_: RerunRequest, error: AssayError) -> RerunOutcome:
    return {"status": "failed", "id": request_.name, "error": problem_of(error)["error"]}


def _is_control(detail: AssessmentDetail) -> bool:
    return detail.row.purpose is AssessmentPurpose.CONTROL


class _NoGrades(AssayError):
    """Raised if the judge gave no new grades."""
