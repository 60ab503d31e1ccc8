"""Checks that other packages supply: which models and scorers exist, and which input they
accept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from assay.domain.digest import JsonValue
from assay.domain.errors import InputError
from assay.domain.model import ModelSpec
from assay.domain.suite import PERSON

METHODS: Final = (
    "exact",
    "contains",
    "choice",
    "numeric",
    "json",
    "math",
    "regex",
    "similarity",
    "closeness",
    "boolean",
    "judge",
    "code_arena",
    "tests",
    "tool_calls",
)
"""Built-in scoring methods."""

TOOL_CALLS: Final = "tool_calls"
JSON: Final = "json"

COMPARING: Final = frozenset(
    {
        "exact",
        "contains",
        "choice",
        "numeric",
        "json",
        "math",
        "regex",
        "similarity",
        "closeness",
        "boolean",
    }
)
"""Methods that compare a response with `expected` and therefore need one."""

JUDGED: Final = frozenset({"judge", "code_arena"})
"""Methods in which an LLM grades, so that a suite using them needs a judge."""


def parsed_ref(ref: str) -> ModelSpec:
    """Parse a model reference (`provider/name`, or `echo`); raises InputError for anything else."""
    provider, slash, name = ref.partition("/")
    if ref in ("echo", PERSON):
        return ModelSpec(provider=ref, name="")
    if not slash or not name or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", provider):
        raise InputError(
            "", f"is {ref!r}, expected a model as provider/name, for example openai/gpt-4o-mini."
        )
    return ModelSpec(provider=provider, name=name)


def no_option_problems(method: str, options: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Accept every option; `app.suites` passes a stricter check."""
    return ()


def no_template_problems(template: str) -> tuple[str, ...]:
    """Accept every template; `app.suites` passes a stricter check."""
    return ()


def reference_problems(method: str, expected: str | None) -> tuple[str, ...]:
    """Return the problem with an empty reference if the method needs one; the text completes a
    sentence about `expected`.
    """
    if method in COMPARING and not (expected or "").strip():
        return (f"is empty, but `score: {method}` compares with it. Write the expected answer.",)
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalChecks:
    """Checks of values that only other packages can make.

    Attributes:
        parse_ref: parses a model reference; raises InputError with a `problem` that completes a
            sentence about the field.
        methods: names of all scoring methods.
        plugins: names of the scoring methods that installed packages offer.
        agents: names of the agents that installed packages offer.
        option_problems: returns the problems with a method's options; each completes a sentence
            about `score`.
        template_problems: returns the problems with a judge's own prompt, as whole sentences.
        reference_problems: returns the problems with `expected` for a method; each completes a
            sentence about `expected`.
    """

    parse_ref: Callable[[str], ModelSpec] = parsed_ref
    methods: tuple[str, ...] = METHODS
    plugins: frozenset[str] = frozenset()
    agents: tuple[str, ...] = ()
    option_problems: Callable[[str, Mapping[str, JsonValue]], tuple[str, ...]] = no_option_problems
    template_problems: Callable[[str], tuple[str, ...]] = no_template_problems
    reference_problems: Callable[[str, str | None], tuple[str, ...]] = reference_problems
