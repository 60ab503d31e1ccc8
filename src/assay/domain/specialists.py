"""Specialists: a template that changes an agent's prompts, and the record of it in a candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from assay.domain.digest import JsonValue, digest
from assay.domain.suite import CandidateSpec

SPECIALIST: Final = "specialist"
"""Key of the specialist in a candidate's metadata; imports of finished runs also set it."""

PROMPTS: Final = "prompts"
"""Key in the stored specialist for its system prompts by task id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialistTemplate:
    """A template, merged with its parents.

    Attributes:
        preferred_models: models with which the specialist is meant to be used, the most preferred
            first.
        documentation: each document with `source`, `url` or `path` as in the file, and its
            `enrichment` if it has one.
        document: the whole merged document, without `from`.
    """

    name: str
    version: str
    persona: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    preferred_models: tuple[str, ...]
    documentation: tuple[Mapping[str, Any], ...]
    prompts: Mapping[str, Any]
    document: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Digest of the merged document; templates with equal digests give equal prompts."""
        return digest(dict(self.document))


@dataclass(frozen=True, slots=True, kw_only=True)
class Specialist:
    """The specialist of a candidate; in finished runs from other harnesses, each field may be
    unknown (None).
    """

    name: str | None
    version: str | None = None
    digest: str | None = None

    def label(self, candidate: str) -> str:
        """Return the name of a candidate that uses this specialist."""
        return f"{candidate} with {self.name or SPECIALIST}" + (
            f" {self.version}" if self.version else ""
        )

    def as_metadata(self, prompts: Mapping[str, str] | None = None) -> dict[str, JsonValue]:
        """Return the metadata with which a candidate records its specialist, and the prompts by
        task id.
        """
        return {SPECIALIST: {**asdict(self), **({PROMPTS: dict(prompts)} if prompts else {})}}


def specialist_of(candidate: CandidateSpec) -> Specialist | None:
    """Return the specialist that a candidate uses; None for a baseline.

    This rule holds for local, received and imported runs alike, because all of them record the
    specialist in the metadata.
    """
    stored = candidate.metadata.get(SPECIALIST)
    if not isinstance(stored, dict):
        return None
    parts = {
        part: value if isinstance(value := stored.get(part), str) else None
        for part in ("name", "version", "digest")
    }
    return Specialist(**parts)


def specialist_prompts(candidate: CandidateSpec) -> dict[str, str]:
    """Return the system prompts of a candidate's specialist by task id; empty for a baseline."""
    stored = candidate.metadata.get(SPECIALIST)
    prompts = stored.get(PROMPTS) if isinstance(stored, dict) else None
    return (
        {task: text for task, text in prompts.items() if isinstance(text, str)}
        if isinstance(prompts, dict)
        else {}
    )


def short_name(name: str) -> str:
    """Return a specialist's name without its scope: `react-expert` for `@org/react-expert`."""
    return name.rpartition("/")[2]
