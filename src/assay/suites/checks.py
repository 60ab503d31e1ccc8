"""What suites need to ask of rooms they do not know: which models and scorers exist, and what these think of their input."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.domain.errors import InputError
from assay.domain.model import ModelSpec
from assay.domain.suite import PERSON

if TYPE_CHECKING:
    from assay.domain.digest import JsonValue

METHODS: Final = ("exact", "regex", "numeric", "boolean", "math", "judge", "code_arena", "tests")
"""The contract's ways of scoring."""

COMPARING: Final = frozenset({"exact", "regex", "numeric", "boolean", "math"})
"""Methods that hold a response against `expected` and therefore need one."""

JUDGED: Final = frozenset({"judge", "code_arena"})
"""Methods in which an LLM grades, so that a suite using them needs a judge."""


def parsed_ref(ref: str) -> ModelSpec:
    """The model a reference names: `provider/name`, or `echo`; raises InputError for anything else."""
    provider, slash, name = ref.partition("/")
    if ref in ("echo", PERSON):
        return ModelSpec(provider=ref, name="")
    if not slash or not name or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", provider):
        raise InputError(
            "",
            f"is {ref!r}, expected a model as provider/name, for example openai/gpt-4o-mini.",
        )
    return ModelSpec(provider=provider, name=name)


def no_option_problems(method: str, options: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Every option is let pass; the scoring room knows better and is asked when wired in."""
    return ()


def no_template_problems(template: str) -> tuple[str, ...]:
    """Every template of a judge's prompt is let pass; the scoring room knows its placeholders."""
    return ()


def reference_problems(method: str, expected: str | None) -> tuple[str, ...]:
    """An empty reference of a method that compares; each problem reads on from the field `expected`."""
    if method in COMPARING and not (expected or "").strip():
        return (f"is empty, but `score: {method}` compares with it. Write the expected answer.",)
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """The judgement of other rooms, handed in.

    Attributes:
        parse_ref: a model from its reference; raises InputError whose `problem` reads on from the field.
        methods: names of all ways of scoring.
        plugins: those of them that installed packages offer.
        option_problems: what is wrong with a method's options; sentences that read on from the field `score`.
        template_problems: what is wrong with a judge's own prompt; whole sentences.
        reference_problems: what is wrong with `expected` for a method; sentences that read on from that field.
    """

    parse_ref: Callable[[str], ModelSpec] = parsed_ref
    methods: tuple[str, ...] = METHODS
    plugins: frozenset[str] = frozenset()
    option_problems: Callable[[str, Mapping[str, JsonValue]], tuple[str, ...]] = no_option_problems
    template_problems: Callable[[str], tuple[str, ...]] = no_template_problems
    reference_problems: Callable[[str, str | None], tuple[str, ...]] = reference_problems
