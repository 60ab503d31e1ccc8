"""Scoring by the tools that a candidate called: their names, arguments and order.

The score is 1 or 0, and the note names the first difference. A call with malformed arguments
matches no expected call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Final

from assay.domain.conversation import call_text, calls_of
from assay.domain.digest import JsonValue
from assay.domain.tools import ExpectedCall, ToolCall, contains, expected_calls, same_json
from assay.scoring.scorer_result import Outcome, Score, Unscored

OPTIONS: Final = ("arguments", "ordered", "extra", "forbidden")
_LONGEST: Final = 300


def tool_calls(response: str, reference: str, options: Mapping[str, JsonValue]) -> Outcome:
    """Compare the calls in a transcript with the expected calls, which `expected_calls` parses."""
    try:
        calls, wanted = calls_of(response), expected_calls(reference)
    except ValueError as error:  # the reference of an imported task, which no suite file checked
        return Unscored("bad_reference", f"`expected` {error}")
    exact, ordered = options.get("arguments") != "subset", options.get("ordered") is True
    forbidden = options.get("forbidden")
    difference = next(
        (
            f"{_named(calls, place)} is forbidden."
            for place, call in enumerate(calls)
            if call.name in _names(forbidden)
        ),
        "",
    )
    compare = _first_out_of_order if ordered else _first_unmatched
    difference = difference or compare(
        calls, wanted, exact=exact, extra=options.get("extra") is True
    )
    return Score(
        0.0 if difference else 1.0,
        difference or f"All {len(wanted)} expected calls were made.",
        1.0,
    )


def option_problems(options: Mapping[str, JsonValue]) -> tuple[str, ...]:
    problems = []
    if options.get("arguments", "exact") not in ("exact", "subset"):
        problems.append(f"`arguments` is {options['arguments']!r}; it must be exact or subset.")
    problems += [
        f"`{name}` is {options[name]!r}; it must be true or false."
        for name in ("ordered", "extra")
        if not isinstance(options.get(name, False), bool)
    ]
    forbidden = options.get("forbidden", [])
    if not isinstance(forbidden, list) or not all(isinstance(name, str) for name in forbidden):
        problems.append(f"`forbidden` is {forbidden!r}; it must be a list of names of tools.")
    return tuple(problems)


def _names(forbidden: JsonValue) -> Sequence[JsonValue]:
    return forbidden if isinstance(forbidden, list) else ()


def _fits(call: ToolCall, wanted: ExpectedCall, *, exact: bool) -> bool:
    if call.name != wanted.name or call.arguments is None:
        return False
    if wanted.arguments is None:
        return True
    return (
        same_json(call.arguments, wanted.arguments)
        if exact
        else contains(call.arguments, wanted.arguments)
    )


def _first_out_of_order(
    calls: Sequence[ToolCall], wanted: Sequence[ExpectedCall], *, exact: bool, extra: bool
) -> str:
    if extra:
        rest = iter(calls)
        missing = (
            each for each in wanted if not any(_fits(call, each, exact=exact) for call in rest)
        )
        return next((f"{each} was not called in the expected order." for each in missing), "")
    for place, (call, each) in enumerate(zip_longest(calls, wanted)):
        if call is None or each is None or not _fits(call, each, exact=exact):
            return _difference(calls, None if call is None else place, each)
    return ""


def _first_unmatched(
    calls: Sequence[ToolCall], wanted: Sequence[ExpectedCall], *, exact: bool, extra: bool
) -> str:
    fitting = [
        [place for place, call in enumerate(calls) if _fits(call, each, exact=exact)]
        for each in wanted
    ]
    taken: dict[int, int] = {}

    def assign(expected: int, tried: set[int]) -> bool:
        """Match an expected call with an actual one; a call that is already matched may be
        reassigned (augmenting paths).
        """
        for place in fitting[expected]:
            if place not in tried:
                tried.add(place)
                if place not in taken or assign(taken[place], tried):
                    taken[place] = expected
                    return True
        return False

    for number, each in enumerate(wanted):
        if not assign(number, set()):
            others = (
                place
                for place, call in enumerate(calls)
                if call.name == each.name and place not in taken
            )
            return _difference(calls, next(others, None), each)
    left = [] if extra else [place for place in range(len(calls)) if place not in taken]
    return _difference(calls, left[0], None) if left else ""


def _difference(calls: Sequence[ToolCall], place: int | None, wanted: ExpectedCall | None) -> str:
    if place is None:
        return f"{wanted} was not called."
    return f"{_named(calls, place)}" + (
        " was not expected." if wanted is None else f" is not the expected {wanted}."
    )


def _named(calls: Sequence[ToolCall], place: int) -> str:
    call = calls[place]
    malformed = "" if call.arguments is not None else " (malformed arguments)"
    text = call_text(call)
    return (
        f"Call {place + 1}, {text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}{malformed},"
    )
