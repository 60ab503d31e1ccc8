"""Specialists: a template that changes an agent's prompts, and the record of it in a candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from assay.domain.digest import JsonValue, digest
from assay.domain.suite import CandidateSpec

SPECIALIST: Final = "specialist"
"""Key of a candidate's metadata with its specialist, which imports of finished runs set too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialistTemplate:
    """A template, merged with its parents.

    Attributes:
        preferred_models: models with which the specialist is meant to be used, the most preferred first.
        documentation: each document with `source`, `url` or `path` as in the file, and its `enrichment` if it has one.
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
    """The specialist of a candidate; in finished runs of other harnesses, each part may be unknown (None)."""

    name: str | None
    version: str | None = None
    digest: str | None = None

    def as_metadata(self) -> dict[str, JsonValue]:
        """Return the metadata with which a candidate records its specialist."""
        return {SPECIALIST: asdict(self)}


def specialist_of(candidate: CandidateSpec) -> Specialist | None:
    """Return the specialist that a candidate uses; None for a baseline.

    This rule holds for local, received and imported runs alike, because all of them record the specialist in the metadata.
    """
    stored = candidate.metadata.get(SPECIALIST)
    if not isinstance(stored, dict):
        return None
    parts = {part: value if isinstance(value := stored.get(part), str) else None for part in ("name", "version", "digest")}
    return Specialist(**parts)


def short_name(name: str) -> str:
    """Return a specialist's name without its scope: `react-expert` for `@org/react-expert`."""
    return name.rpartition("/")[2]
