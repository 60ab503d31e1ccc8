"""Show the progress of a run on stderr, as a live display on a terminal and as plain lines
elsewhere.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, TYPE_CHECKING

from assay.app.runs.causes import Cause, cause_key
from assay.cli.output import CAUSES_SHOWN, counted, dollars, visible
from assay.domain.events import CallEnded, Event, Listener, RunEnded, RunStarted, TrialEnded
from assay.domain.remaining_cost import (
    CallsAhead,
    CallsPaid,
    RoleAndModel,
    TrialProgress,
    remaining_usd,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.domain.failure import Failure


PLAIN_EVERY_S = 2.0


@contextmanager
def progress_on(stream: IO[str]) -> Iterator[Listener]:
    if stream.isatty():
        with _live(stream) as listener:
            yield listener
    else:
        yield _Plain(stream).hear


class _Tally:
    """Running totals of trials, calls, tokens and cost."""

    def __init__(self) -> None:
        self.total = self.left = self.ended = self.failed = self.tokens = self.failed_calls = 0
        self.concurrency = 1
        self.ahead: tuple[CallsAhead, ...] = ()
        self.budget_left_usd: float | None = None
        self.paid: dict[RoleAndModel, CallsPaid] = {}
        self.causes: dict[tuple[str, str, str], Cause] = {}
        self.cost: float | None = 0.0
        self.began = time.monotonic()
        self.last: TrialEnded | None = None
        self.is_new_cause = False

    def hear(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.total, self.left, self.began = event.total, event.left, time.monotonic()
                self.concurrency, self.ahead, self.budget_left_usd = (
                    event.concurrency,
                    event.ahead,
                    event.budget_left_usd,
                )
            case CallEnded():
                self.tokens += event.input_tokens + event.output_tokens
                self.failed_calls += event.failure is not None
                # A failed call has no cost; any other call without a price makes the total
                # permanently unknown.
                known = event.cost_usd is not None or event.failure is not None
                self.cost = (
                    None if self.cost is None or not known else self.cost + (event.cost_usd or 0.0)
                )
                if event.failure is None:
                    self._pay(event)
            case TrialEnded():
                self.ended += 1
                self.failed += event.failure is not None
                self.last = event
                self.is_new_cause = event.failure is not None and self._note(event.failure)
            case RunEnded():
                pass

    def _pay(self, event: CallEnded) -> None:
        key = (str(event.role), event.model)
        paid = self.paid.get(key, CallsPaid(calls=0, usd=0.0))
        usd = None if paid.usd is None or event.cost_usd is None else paid.usd + event.cost_usd
        self.paid[key] = CallsPaid(calls=paid.calls + 1, usd=usd)

    def _note(self, failure: Failure) -> bool:
        """Count a failed trial under its cause; True for the first trial of a cause."""
        key = cause_key(failure)
        cause = self.causes.get(key)
        if cause is None:
            self.causes[key] = Cause(
                kind=failure.kind, fault=failure.fault, detail=failure.detail, trials=1
            )
            return True
        self.causes[key] = replace(cause, trials=cause.trials + 1)
        return False

    @property
    def remaining_usd(self) -> float | None:
        """The probable cost of the remaining calls; None if it is unknown, or before there are
        enough calls to tell.
        """
        begun = min(self.left, self.ended + self.concurrency)
        progress = TrialProgress(total=self.left, begun=begun, failed=self.failed)
        return remaining_usd(self.ahead, self.paid, progress) if self.ahead else None

    @property
    def latest(self) -> str:
        """The trial that ended last; empty before the first one."""
        if self.last is None:
            return ""
        failure = self.last.failure
        failed = "" if failure is None else f" · failed: {failure.kind} ({failure.fault})"
        return f"Trial {self.last.k} of {self.last.of} · {visible(self.last.thing)}{failed}"

    @property
    def per_s(self) -> float:
        return self.ended / max(time.monotonic() - self.began, 1e-6)

    @property
    def remaining_s(self) -> float | None:
        return (self.left - self.ended) / self.per_s if self.ended else None

    def facts(self) -> str:
        """Return a line such as `12 of 35 trials · 3.1/s · 1 failed · 4 failed calls · 12,345
        tokens · $0.42 · 0:08 left`.
        """
        done = self.total - self.left + self.ended
        # Another process may add trials to the run while this one executes it.
        parts = [f"{done} of {max(done, self.total)} trials", f"{self.per_s:,.1f}/s"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.failed_calls:
            parts.append(f"{self.failed_calls} failed calls")
        parts += [f"{self.tokens:,} tokens", dollars(self.cost)]
        remaining = self.remaining_usd if self.ended < self.left else None
        if remaining:
            over = (
                self.budget_left_usd is not None
                and (self.cost or 0.0) + remaining > self.budget_left_usd
            )
            parts.append(f"about {dollars(remaining)} more{', over the budget' if over else ''}")
        if self.remaining_s is not None and self.ended < self.left:
            parts.append(f"{_clock(self.remaining_s)} left")
        return " · ".join(parts)

    def cause_lines(self) -> list[str]:
        """Return one line per cause of failure with the number of its trials, the most frequent
        first.
        """
        causes = sorted(self.causes.values(), key=lambda cause: -cause.trials)
        shown = [
            f"failed: {counted(cause.trials, 'trial')}: {cause.kind} ({cause.fault}): {visible(cause.detail)}"
            for cause in causes[:CAUSES_SHOWN]
        ]
        return (
            [*shown, f"… and {counted(len(causes) - CAUSES_SHOWN, 'other cause')}"]
            if len(causes) > CAUSES_SHOWN
            else shown
        )


class _Plain:
    """Shows progress as plain lines: one every two seconds, one per cause of failure, and the
    counts of causes at the end.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._tally = _Tally()
        self._printed_at = time.monotonic()

    def hear(self, event: Event) -> None:
        self._tally.hear(event)
        now = time.monotonic()
        # The log of an overnight run must stay readable, so only the first failure of each cause
        # has a line of its own.
        failed = isinstance(event, TrialEnded) and self._tally.is_new_cause
        ended, due = isinstance(event, RunEnded), now - self._printed_at > PLAIN_EVERY_S
        if failed or ended or (isinstance(event, TrialEnded) and due):
            self._printed_at = now
            latest = "" if ended else f"{self._tally.latest} · "
            self._stream.write(f"{latest}{self._tally.facts()}\n")
            if ended:
                self._stream.writelines(f"{line}\n" for line in self._tally.cause_lines())
            self._stream.flush()


@contextmanager
def _live(stream: IO[str]) -> Iterator[Listener]:
    from tqdm import tqdm  # only on a terminal

    tally = _Tally()
    with tqdm(
        file=stream, bar_format="{bar:24} {desc}", dynamic_ncols=True, mininterval=0.1
    ) as display:

        def hear(event: Event) -> None:
            tally.hear(event)
            display.total = tally.total
            # Set to the total instead of advanced, because a resumed run starts with the trials of
            # earlier processes.
            display.n = tally.total - tally.left + tally.ended
            display.set_description_str(f"{tally.facts()} · {tally.latest}", refresh=False)
            display.update(0)
            if isinstance(event, TrialEnded) and tally.is_new_cause:
                display.write(tally.latest, file=stream)
            if isinstance(event, RunEnded):
                display.refresh()
                for line in tally.cause_lines():
                    display.write(line, file=stream)

        yield hear


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
