"""Registry record of a run: settings, environment, origin and files.

Names are left out while items are pending.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assay.app.provenance import Provenance, provenance
from assay.app.recorded_settings import record_document
from assay.app.registry import run_description
from assay.app.registry.run_origin import Source, code_version, config_digest, source_of
from assay.app.review.attention import attention_of
from assay.app.review.protocol import achieved_by, switches_by_run
from assay.domain.protocol import Protocol, protocol_of
from assay.domain.selection import Selection
from assay.domain.unescaped_json import unescaped_json
from assay.exchange.results_folder import folder as results_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from assay.app.results_folder import Projector
    from assay.domain.achieved_review import AchievedReview
    from assay.domain.attention import Attention
    from assay.store.opening import Store

MAX_SHOWN: Final = 2_000
"""Maximum characters shown of an environment value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolVersion:
    """One version of a run's review protocol: its start, and who switched to it (empty for the
    first version).
    """

    protocol: Protocol
    at: str
    reviewer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFile:
    """A file of a run in the results folder; `path` starts with the folder's name."""

    path: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dossier:
    """The registry record of a run.

    Attributes:
        record: settings that determine questions and grading, as in `assay show`.
        environment: versions, addresses and notes of the run, by dotted name.
        protocols: versions of the review protocol, oldest first.
        achieved: what the review has achieved by now.
        attention: signs of careless reviewing.
    """

    provenance: Provenance
    config: str
    code: str | None
    source: Source
    record: Mapping[str, Any]
    facts: tuple[tuple[str, str], ...]
    models: tuple[Mapping[str, str], ...]
    environment: tuple[tuple[str, str], ...]
    protocols: tuple[ProtocolVersion, ...]
    achieved: AchievedReview
    attention: Attention
    files: tuple[KeptFile, ...]


def dossier(store: Store, results: Projector, run_id: str) -> Dossier:
    """Return a run's registry record; raises `UnknownName`.

    A unique prefix of the run's id is enough.
    """
    (summary,) = store.archive.runs.matching(Selection(runs=(run_id,)))
    origin = provenance(store, summary)
    return Dossier(
        provenance=origin,
        config=config_digest(origin.plan),
        code=code_version(origin.plan),
        source=source_of(origin.plan),
        record=record_document(origin.plan),
        facts=tuple(run_description.facts(origin)),
        models=run_description.models(origin),
        environment=tuple(_flat(origin.plan.environment)),
        protocols=tuple(_versions(store, origin)),
        achieved=achieved_by(store.decisions, origin.plan),
        attention=attention_of(store, (origin.plan.id,)),
        files=tuple(_files(results, origin)),
    )


def suite_copy(store: Store, run_id: str) -> tuple[str, str]:
    """Return the file name and text of the suite as stored with the run; raises `UnknownName`."""
    (summary,) = store.archive.runs.matching(Selection(runs=(run_id,)))
    copy = store.journal.plan_of(summary.id).copy
    return Path(copy.path).name, copy.text


def _versions(store: Store, origin: Provenance) -> Iterator[ProtocolVersion]:
    yield ProtocolVersion(protocol=protocol_of(origin.plan.protocol), at="", reviewer="")
    for observation, switch in switches_by_run(store).get(origin.summary.id, ()):
        yield ProtocolVersion(
            protocol=switch.protocol, at=observation.at, reviewer=observation.reviewer
        )


def _files(results: Projector, origin: Provenance) -> Iterator[KeptFile]:
    folder, summary = results.folder, origin.summary
    if folder is None:
        return
    paths = [results_folder.record_of(folder, summary.id)]
    for candidate in origin.plan.candidates:
        stem = results_folder.stem_of(
            folder,
            model=candidate.name,
            dataset=origin.plan.suite,
            at=summary.started,
            run=summary.id,
        )
        paths += [Path(f"{stem}{ending}") for ending in (".meta.json", ".jsonl")]
    for path in paths:
        if path.is_file():
            yield KeptFile(
                path=(Path(folder.name) / path.relative_to(folder)).as_posix(),
                size=path.stat().st_size,
            )


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        name = f"{before}{key}"
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{name}.")
        elif value not in (None, "", [], {}):
            text = value if isinstance(value, str) else unescaped_json(value)
            yield name, text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
