"""Candidate identity: results under one name are pooled only if the model and the prompts are the
same.

An identity is a text with one line per component: the model, then everything else that affects the
answers, such as `prompt 3f2a81bc` or `temperature 0.2`. The suite's parameters are not included:
runs with different parameters are pooled, with a warning.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from assay.domain.digest import digest, text_digest
from assay.domain.run import RunPlan
from assay.domain.specialists import specialist_of
from assay.domain.suite import CandidateSpec, message_identity

_SYSTEM: Final = "system prompt"
_PROMPT: Final = "prompt"
_SET_BY_BENCHMARK: Final = ("temperature", "frequency_penalty", "presence_penalty")


def identity_of(plan: RunPlan, candidate: CandidateSpec) -> str:
    """Return the identity of a candidate in a run; empty for snippets and for unknown models."""
    model = candidate.metadata.get("model") if candidate.model is None else candidate.model.ref
    if not isinstance(model, str) or not model:
        return ""
    return "\n".join(
        [model, *_program(candidate), *_prompts(plan, candidate), *_parameters(plan, candidate)]
    )


def _program(candidate: CandidateSpec) -> Iterator[str]:
    if candidate.model is not None and candidate.model.program is not None:
        yield f"program {candidate.model.program.digest[:8]}"


def _prompts(plan: RunPlan, candidate: CandidateSpec) -> Iterator[str]:
    system = plan.system_prompt if candidate.system_prompt is None else candidate.system_prompt
    if (specialist := specialist_of(candidate)) is not None:
        parts = (specialist.name, specialist.version, (specialist.digest or "")[:8])
        yield " ".join(["specialist", *(part for part in parts if part)])
    if system:
        yield f"{_SYSTEM} {text_digest(system)[:8]}"
    if candidate.prompt is not None:
        yield f"{_PROMPT} {text_digest(candidate.prompt)[:8]}"
    elif candidate.messages:
        yield f"{_PROMPT} {digest([message_identity(message) for message in candidate.messages])[:8]}"


def _parameters(plan: RunPlan, candidate: CandidateSpec) -> Iterator[str]:
    own = {} if candidate.model is None else candidate.model.parameters.as_json()
    for name, value in own.items():
        # Benchmark mode is a setting of the run, although it is stored with each candidate.
        if name != "seed" and not (plan.benchmark and name in _SET_BY_BENCHMARK):
            yield f"{name} {json.dumps(value)}"


def identity_in_words(identity: str, among: frozenset[str]) -> str:
    """Describe an identity by its model and the parts that differ from other identities of the same
    model.
    """
    model, *own = identity.split("\n")
    if not model:
        return "unknown model"
    others = [
        other.split("\n")[1:]
        for other in among
        if other != identity and other.partition("\n")[0] == model
    ]
    differs = [part for part in own if any(part not in other for other in others)]
    labels = {_label(part) for part in own}
    lacks = sorted({_label(part) for other in others for part in other} - labels)
    return ", ".join([model, *differs, *(f"no {label}" for label in lacks)])


def _label(part: str) -> str:
    return next(
        (label for label in (_SYSTEM, _PROMPT) if part.startswith(f"{label} ")),
        part.partition(" ")[0],
    )
