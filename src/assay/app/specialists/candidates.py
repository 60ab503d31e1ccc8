"""Give agents a specialist: find its template, choose its preferred agent and model, and add its
prompts to candidates.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay.app.runs.model_list import vendor_of, with_model
from assay.domain.errors import InputError
from assay.domain.names import name_problem
from assay.domain.specialists import Specialist
from assay.providers.model_refs import provider_names
from assay.specialists.prompts import specialist_prompt
from assay.specialists.templates import TEMPLATES, find_template, most_enriched, read_template

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.domain.specialists import SpecialistTemplate
    from assay.domain.suite import CandidateSpec, Suite

_VENDORS = {"claude": "anthropic", "gpt": "openai"}
"""Vendor of each model family, for templates that give a model without its provider."""


def specialist_template(
    folder: Path, wanted: str, *, enriched: bool = True
) -> tuple[SpecialistTemplate, Path]:
    """Return a template and its file, by its path or by `@org/name[@version]` in the project's
    folder `templates`.

    `enriched`: True to use its newest enriched version. Raises `InputError` if it is missing or
    invalid.
    """
    is_file = wanted.endswith(".json5") or Path(wanted).is_file()
    path = Path(wanted) if is_file else find_template(wanted, folder / TEMPLATES)
    path = most_enriched(path) if enriched else path
    return read_template(path), path


def preferred_agents(
    template: SpecialistTemplate, agents: Sequence[str], model: str | None
) -> tuple[str, ...]:
    """Add the template's preferred model to agents that need a model, unless `model` is given;
    default agent: its vendor.

    Raises `InputError` without an agent if the template prefers no model whose provider is known.
    """
    preferred = [_with_vendor(name) for name in template.preferred_models]
    if not agents:
        known = [(vendor, name) for vendor, name in preferred if vendor]
        if not known:
            names = ", ".join(template.preferred_models) or "no model"
            remedy = "Add --agent, or write preferred_models: ['provider/name'] in the template."
            raise InputError(
                template.name, f"prefers {names}, whose provider is unknown.", remedy=remedy
            )
        agents = (known[0][0] if model else "/".join(known[0]),)
    return tuple(agents) if model else tuple(_preferring(agent, preferred) for agent in agents)


def add_specialist(suite: Suite, template: SpecialistTemplate, *, baseline: bool = False) -> Suite:
    """Return a suite of scenarios whose candidates use a specialist; with `baseline`, each also
    takes part without it.
    """
    specialist = Specialist(name=template.name, version=template.version, digest=template.digest)
    special: list[CandidateSpec] = []
    for candidate in suite.candidates:
        if problem := name_problem(specialist.label(candidate.name)):
            raise InputError(
                "--agent",
                f"is {candidate.name!r}, {problem}",
                remedy="Give it a name: --agent 'NAME=cmd: …'",
            )
        prompts = {
            task.id: specialist_prompt(template, task, _model_of(candidate)) for task in suite.tasks
        }
        special.append(
            replace(
                candidate,
                name=specialist.label(candidate.name),
                metadata=specialist.as_metadata(prompts),
            )
        )
    return replace(suite, candidates=(*(suite.candidates if baseline else ()), *special))


def _preferring(agent: str, preferred: Sequence[tuple[str | None, str]]) -> str:
    wanted = "anthropic" if agent.rpartition("=")[2].strip() == "claude-code" else vendor_of(agent)
    name = next(
        (name for of_vendor, name in preferred if wanted and of_vendor in (wanted, None)), None
    )
    return agent if name is None else with_model(agent, name)


def _with_vendor(model: str) -> tuple[str | None, str]:
    """Return a preferred model's vendor (None if unknown) and its name."""
    vendor, slash, name = model.partition("/")
    if slash and vendor in provider_names():
        return vendor, name
    return next(
        (vendor for start, vendor in _VENDORS.items() if model.startswith(start)), None
    ), model


def _model_of(candidate: CandidateSpec) -> str:
    if candidate.model is None or candidate.model.program is None:
        return "" if candidate.model is None else candidate.model.name
    match = re.search(r"--model[ =](\S+)", candidate.model.program.label)
    return match[1] if match else ""
