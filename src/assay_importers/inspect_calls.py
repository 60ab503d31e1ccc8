"""Model calls that the scorers of an Inspect sample made, read from the sample's events.

Since 2025, events are in spans (`span_begin` with `id`, `parent_id`, `type`, `name`); before, in
steps (`step` with `action` `begin` or `end`). A scorer's events are in a span or step of type
`scorer` with the scorer's name, or in nested spans. A model call is an event `model` with the reply
and the usage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from assay.plugins import (
    JsonObject,
    as_count,
    as_duration,
    as_list,
    as_object,
    as_text,
    content_text,
    objects_in,
)


class ScorerCall(NamedTuple):
    """A scorer's model call with reply and usage; values that the event lacks are None."""

    reply: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    seconds: float | None


class CallUsage(TypedDict):
    """Total tokens, cost and time of several calls; the keys are fields of `FoundAssessment`."""

    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    latency_s: float | None


class ScorerCalls:
    """Model calls that a sample's scorers made, by scorer.

    `may_be_unseen`: True if scorers may have called a model without an event in the log: the sample
    used models other than the candidate's, and it has no events or has scorer calls without a
    scorer.
    """

    def __init__(self, sample: JsonObject, candidate_model: str) -> None:
        self._calls: dict[str, list[ScorerCall]] = {}
        events = objects_in(sample.get("events"))
        stray = self._from_steps(events) or self._from_spans(events)
        used = as_object(sample.get("model_usage")).keys() - {candidate_model}
        seen = any(event.get("event") == "model" for event in events)
        self.may_be_unseen = stray or bool(used and not seen)

    def of(self, scorer: str) -> Sequence[ScorerCall]:
        return self._calls.get(scorer, ())

    def _from_spans(self, events: Sequence[JsonObject]) -> bool:
        """Collect the calls inside spans; return True if a call was made while scoring but outside
        every scorer's span.
        """
        parents: dict[str, str | None] = {}
        scorers: dict[str, str] = {}
        scoring: set[str] = set()
        for event in events:
            span = as_text(event.get("id"))
            if event.get("event") == "span_begin" and span is not None:
                parents[span] = as_text(event.get("parent_id"))
                if event.get("type") == "scorer":
                    scorers[span] = as_text(event.get("name")) or ""
                elif event.get("type") == "scorers":
                    scoring.add(span)
            elif (
                event.get("event") == "score"
                and (inside := as_text(event.get("span_id"))) in scorers
            ):
                # The event names the score; if two scorers have the same name, a number is added.
                scorers[str(inside)] = as_text(event.get("scorer")) or scorers[str(inside)]
        stray = False
        for event in events:
            if event.get("event") != "model":
                continue
            span = as_text(event.get("span_id"))
            for _ in range(len(parents) + 1):  # a damaged log may hold a cycle
                if span is None or span in scorers:
                    break
                stray = stray or span in scoring
                span = parents.get(span)
            if span is not None and span in scorers:
                self._calls.setdefault(scorers[span], []).append(_call(event))
        return stray

    def _from_steps(self, events: Sequence[JsonObject]) -> bool:
        open_steps: list[str | None] = []
        for event in events:
            if event.get("event") == "step" and event.get("action") == "begin":
                open_steps.append(
                    as_text(event.get("name")) if event.get("type") == "scorer" else None
                )
            elif event.get("event") == "step" and open_steps:
                open_steps.pop()
            elif event.get("event") == "model":
                scorer = next((name for name in open_steps if name is not None), None)
                if scorer is not None:
                    self._calls.setdefault(scorer, []).append(_call(event))
        return False


def usage_of(calls: Sequence[ScorerCall]) -> CallUsage:
    """Return the total usage of some calls; an amount that no call states is None."""

    def total(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    tokens_in, tokens_out = (
        total([call.input_tokens for call in calls]),
        total([call.output_tokens for call in calls]),
    )
    return CallUsage(
        input_tokens=None if tokens_in is None else int(tokens_in),
        output_tokens=None if tokens_out is None else int(tokens_out),
        cost_usd=total([call.cost_usd for call in calls]),
        latency_s=total([call.seconds for call in calls]),
    )


def _call(event: JsonObject) -> ScorerCall:
    output = as_object(event.get("output"))
    usage = as_object(output.get("usage"))
    choice = as_object(next(iter(as_list(output.get("choices"))), None))
    return ScorerCall(
        reply=content_text(as_object(choice.get("message")).get("content"))
        or as_text(output.get("completion")),
        input_tokens=as_count(usage.get("input_tokens")),
        output_tokens=as_count(usage.get("output_tokens")),
        cost_usd=as_duration(usage.get("total_cost")),
        seconds=as_duration(event.get("working_time")) or as_duration(output.get("time")),
    )
