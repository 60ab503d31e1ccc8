"""Build the prompt of a specialist for a task: the variant for the task's type and model, and the
documents that fit best.

Templates are filled in with a single pass and never evaluated, so text from tasks and documents is
not searched for variables.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from assay.domain.errors import InputError
from assay.domain.prompts import columns_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from assay.domain.specialists import SpecialistTemplate
    from assay.domain.suite import Task

MAX_DOCUMENTS: Final = 5
LONGEST_PROMPT: Final = 500_000
"""Maximum characters, because a template could insert a long value thousands of times."""
DEFAULT: Final = "default"

_VARIABLE: Final = re.compile(r"\{\{\{?\s*([\w.$-]{1,200})\s*\}?\}\}")
_VERSION: Final = re.compile(r"[-@:](v?[0-9][0-9-]*|latest)")
_RESERVED: Final = frozenset({DEFAULT, "model_specific", "prompt_strategy"})


def specialist_prompt(template: SpecialistTemplate, task: Task, model: str) -> str:
    """Return the system prompt of a specialist for a task; `model`: the agent's model, or an empty
    text if it is unknown.

    The general prompt comes first, then the one for the task's type, then up to five documents. A
    template without a general prompt gets one from its persona. Raises `InputError` if the template
    demands a prompt for the model and has none.
    """
    asked = columns_of(task)
    text = asked.get("prompt", "")
    own = [tag for tag in task.tags if tag in template.prompts and tag not in _RESERVED]
    kind = own[0] if own else task_type(text)
    values = {**asked, "model": model, "task_type": kind, **template.persona, **template.document}
    general, special = _chosen(template, kind, model)
    parts = [filled(general, values), filled(special, values)]
    if not general:
        lines = filled(
            (files(__package__) / "default_prompt.md").read_text("utf-8"), values
        ).splitlines()
        parts[0] = "\n".join(line for line in lines if not line.rstrip().endswith(":"))
    if documents := best_documents(template, text, kind):
        parts.append("Documentation that may help:\n\n" + "\n".join(map(_described, documents)))
    return "\n\n".join(part.strip() for part in parts if part.strip())


def task_type(text: str) -> str:
    """Return a task's type, such as `migration`, from the first word that indicates a type;
    otherwise `default`.
    """
    patterns = _table("types").items()
    matches = [
        (match.start(), kind)
        for kind, pattern in patterns
        if (match := re.search(pattern, text, re.IGNORECASE))
    ]
    return min(matches)[1] if matches else DEFAULT


def matching_model(keys: Collection[str], model: str) -> str | None:
    """Return the key that matches a model, ignoring the provider and a version suffix; None if no
    key matches.

    A suffix consists of numbers or is `latest`, so `gpt-4o` matches `gpt-4o-2024-08-06`, not
    `gpt-4o-mini`. An exact match comes first, then the longest key.
    """
    wanted = _plain(model)
    fitting = [
        (_plain(key) == wanted, len(key), key)
        for key in keys
        if wanted and _same(_plain(key), wanted)
    ]
    return max(fitting)[2] if fitting else None


def filled(prompt: str, values: Mapping[str, Any]) -> str:
    """Return a prompt with its `{{variables}}` replaced: lists are joined with commas, unknown
    variables are left empty.

    Raises `InputError` for a prompt of more than `LONGEST_PROMPT` characters.
    """
    left = LONGEST_PROMPT - len(prompt)

    def value_of(match: re.Match[str]) -> str:
        nonlocal left
        left -= len(text := text_of(match))
        if left < 0:
            problem = f"has more than {LONGEST_PROMPT:,} characters with its variables filled in."
            raise InputError("the specialist's prompt", problem, remedy="Shorten the template.")
        return text

    def text_of(match: re.Match[str]) -> str:
        value: Any = values
        for part in match[1].split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, list | tuple):
            return ", ".join(str(each) for each in value if isinstance(each, str | int | float))
        return "" if value is None or isinstance(value, dict) else str(value)

    return _VARIABLE.sub(value_of, prompt)


def best_documents(template: SpecialistTemplate, text: str, kind: str) -> list[Mapping[str, Any]]:
    """Return the enriched documents that fit a task best, the best first; documents with a score of
    0 or less are left out.
    """
    scored = [
        (_fit(template, each, text, kind), -place)
        for place, each in enumerate(template.documentation)
    ]
    enriched = [
        (score, place)
        for score, place in scored
        if score > 0 and template.documentation[-place].get("enrichment")
    ]
    return [
        template.documentation[-place]
        for _, place in sorted(enriched, reverse=True)[:MAX_DOCUMENTS]
    ]


def _fit(template: SpecialistTemplate, document: Mapping[str, Any], text: str, kind: str) -> float:
    notes: Mapping[str, Any] = document.get("enrichment") or {}
    about = " ".join(
        [
            str(document.get("description", "")),
            *(str(value) for value in notes.values()),
            _address(document),
        ]
    )
    asked, told = _words(text), _words(about)
    tables = _table("words")
    frameworks = set(tables["frameworks"])
    shared = asked & told
    counts = {
        "type": kind != DEFAULT and _named([kind], told),
        "tech_stack": _named(template.persona.get("tech_stack", ()), shared),
        "capability": _named(template.capabilities["tags"], shared),
        "framework": len(shared & frameworks),
        "other_framework": bool(asked & frameworks)
        and not shared & frameworks
        and bool(told & frameworks),
        "component": len(shared & set(tables["components"])),
        "technology": len(shared & set(tables["technologies"])),
        "tag": _named(notes.get("relevant_tags") or notes.get("key_concepts", ()), asked),
    }
    weights = _table("weights")
    return float(
        _table("kinds").get(document.get("type", ""), 0)
        + sum(weights[name] * n for name, n in counts.items())
    )


def _chosen(template: SpecialistTemplate, kind: str, model: str) -> tuple[str, str]:
    """Return the general prompt and the one for a type of task, each in its variant for the model
    if there is one.
    """
    prompts = template.prompts
    strategy = prompts.get("prompt_strategy", {})
    own = prompts.get(kind, {}) if kind not in _RESERVED else {}
    own = own if isinstance(own, dict) else {DEFAULT: own}
    variants = [each.get("model_specific", {}) for each in (prompts, own)]
    manual = strategy.get("model_detection") == "manual"
    keys = [None if manual else matching_model(each, model) for each in variants]
    if strategy.get("fallback") == "error" and any(variants) and not any(keys):
        named = ", ".join(sorted({key for each in variants for key in each}))
        raise InputError(
            template.name,
            f"has no prompt for the model {model or 'of this agent'!r}, only for {named}.",
        )
    of_model, of_task = (each[key] if key else {} for each, key in zip(variants, keys, strict=True))
    general = prompts.get(DEFAULT, {})
    by_name = [
        each if isinstance(each, dict) else {"spawnerPrompt": each} for each in (of_model, general)
    ]
    spawner = next(
        (
            text
            for each in by_name
            if (text := each.get("spawnerPrompt") or each.get("systemPrompt"))
        ),
        "",
    )
    listed = next((each[kind] for each in by_name if kind != DEFAULT and each.get(kind)), "")
    return spawner, _text(of_task) or _text(own.get(DEFAULT, "")) or listed


def _text(prompt: str | Mapping[str, str]) -> str:
    return prompt if isinstance(prompt, str) else "\n\n".join(prompt.values())


def _described(document: Mapping[str, Any]) -> str:
    notes = document["enrichment"]
    concepts = ", ".join(notes.get("key_concepts", ()))
    parts = (
        notes.get("summary"),
        concepts and f"Key concepts: {concepts}.",
        notes.get("relevance_to_specialist"),
    )
    return f"* {_address(document)}: {' '.join(part for part in parts if part)}"


def _address(document: Mapping[str, Any]) -> str:
    return str(document.get("source") or document.get("url") or document.get("path"))


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", text.lower()))


def _named(terms: Iterable[str], words: frozenset[str]) -> int:
    """Count the terms whose words are all in `words`."""
    return sum(1 for term in terms if (own := _words(term)) and own <= words)


def _plain(model: str) -> str:
    return model.rpartition("/")[2].strip().lower().replace(".", "-").replace("_", "-")


def _same(a: str, b: str) -> bool:
    short, long = sorted((a, b), key=len)
    return (
        long.startswith(short)
        and bool(short)
        and (a == b or _VERSION.fullmatch(long[len(short) :]) is not None)
    )


@cache
def _table(name: str) -> Any:
    return tomllib.loads((files(__package__) / "task_words.toml").read_text("utf-8"))[name]
