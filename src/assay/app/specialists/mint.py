"""Mint snapshots: a specialist's template with the results that a batch measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import assay
from assay.app.review.attention import attention_document, attention_of
from assay.app.review.protocol import in_use
from assay.app.specialists.candidates import specialist_template
from assay.app.specialists.evidence import (
    benchmarks_of,
    differences_in,
    evidence_of,
    runs_that_count,
    validity_of,
    waiting_in,
)
from assay.app.specialists.numbered_files import write_numbered
from assay.app.specialists.removed_runs import gaps_of, removed_runs
from assay.app.statistics.basis import approvals_of, wording
from assay.app.statistics.vetting import require_vetted
from assay.app.wire import Json, document, plain
from assay.domain.errors import InputError, Refused
from assay.domain.run_choice import in_words
from assay.domain.selection import Selection
from assay.domain.specialists import short_name

# re-exported for surfaces
from assay.specialists.signatures import SigningKey, make_key as make_key
from assay.specialists.snapshots import LARGEST_SNAPSHOT, laid_out, numbered, read_snapshot, seal
from assay.specialists.templates import read_limited

if TYPE_CHECKING:
    from pathlib import Path

    from assay.app.workspace import Workspace
    from assay.domain.observations import MintRequested
    from assay.domain.specialists import SpecialistTemplate
    from assay.specialists.comparison import Section

MINTED, WAITING, NOT_DECIDED = "minted", "waiting", "not_decided"


@document
class MintDocument:
    """JSON of a mint.

    `state`: `minted`, `waiting` for grades or runs, or `not_decided` if a decision was required.

    `waiting` counts pending grades and unfinished runs. `path`, `comparison`, `evidence` and
    `public_key` are null while the mint waits; `path` is null if nothing was written. `problem`:
    why a recorded mint failed. `server`: where the batch waits, if it is on another server.
    """

    state: str
    batch_id: str
    specialist: str | None = None
    version: str | None = None
    path: str | None = None
    waiting: int = 0
    comparison: Json = None
    evidence: Json = None
    public_key: str | None = None
    problem: str | None = None
    server: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSource:
    """The server from which a batch was read, and its removed runs; None if the server does not
    state them.
    """

    server: str
    removed: Section | None


def mint(
    workspace: Workspace, request: MintRequested, *, source: BatchSource | None = None
) -> MintDocument:
    """Write a snapshot of a batch, unless some of its grades are pending; the file states if its
    evidence is thin.

    A recorded request is minted once: if a snapshot of it exists, because a process ended before it
    noted that, its path is returned. `source`: the server from which the batch was read; its suites
    and judges are unknown here. Raises `InputError` for a wrong template, key, output folder or
    batch, and `Refused` if no run of the batch counts or its runs measure different things.
    """
    batch = Selection(batch_ids=(request.batch_id,))
    summaries = workspace.archive.runs.matching(batch)
    waiting = waiting_in(summaries)
    if not waiting and (done := minted_before(workspace.folder, request)) is not None:
        return done
    template, key = _parts(workspace.folder, request)
    known: Section = {
        "batch_id": request.batch_id,
        "specialist": template.name,
        "version": template.version,
    }
    if waiting:
        return MintDocument(state=WAITING, waiting=waiting, **known)
    # before the runs are read, so that a later removal is no contradiction
    now = workspace.clock.now()
    runs = runs_that_count(workspace.store, batch)
    if not runs:
        remedy = (
            "`assay show` lists its trials; a snapshot needs graded trials of agents on scenarios."
        )
        raise Refused(
            f"batch {request.batch_id}",
            "has no trial of an agent with a grade that counts.",
            remedy=remedy,
        )
    if differing := differences_in(workspace.store, request.batch_id):
        problem = (
            f"has runs that differ in {in_words(differing)}. "
            "Their scores do not measure the same thing, so a snapshot cannot compare them."
        )
        remedy = "Bench the specialist and the baseline again with the same settings, and with a new --batch-id."
        raise Refused(f"batch {request.batch_id}", problem, remedy=remedy)
    if request.require_vetted:
        require_vetted(workspace, batch)
    benchmarks, verdict = benchmarks_of(runs, template.name, template.version)
    validity = validity_of(workspace.store, runs, template, summaries, now=now)
    evidence = evidence_of(
        benchmarks, verdict, template, summaries, validity["valid_for"]["judges"]
    )
    given = approvals_of(workspace.store, workspace.settings, batch)
    evidence["approvals"] = {
        "shown": given.shown,
        "scripted": given.scripted,
        "imported": given.imported,
    }
    if given.total:
        evidence["shows"].append(f"{wording.approvals(given)}.")
    protocols = in_use(
        workspace.store, [workspace.journal.plan_of(summary.id) for summary in summaries]
    )
    signs = attention_of(workspace.store, [summary.id for summary in summaries])
    evidence["review"] = [dict(protocol) for protocol in protocols]
    evidence["attention"] = plain(attention_document(signs))
    evidence["shows"] += [
        f"{wording.capitalise(line)}." for line in wording.how_reviewed(protocols, signs)
    ]
    removed = removed_runs(workspace.store, request.batch_id) if source is None else source.removed
    evidence["removed_runs"] = removed
    evidence["does_not_show"] += [] if removed is None else gaps_of(removed)
    if source is not None:
        validity["valid_for"]["suites"] = [
            {"name": suite} for suite in dict.fromkeys(run["suite"] for run in runs)
        ]
        gap = f"Which versions of suites and judges graded the runs: {source.server} does not send them."
        evidence["does_not_show"].append(gap)
        if removed is None:
            gap = f"Whether runs of the batch were deleted or archived: {source.server} does not send this."
            evidence["does_not_show"].append(gap)
    content = {
        **template.document,
        "benchmarks": benchmarks,
        "evidence": evidence,
        "validity": validity,
        "snapshot_metadata": {
            "created_at": now,
            "minted_by": f"Assay {assay.__version__}",
            "template_version": template.version,
            "template_digest": template.digest,
            "batch_id": request.batch_id,
            **({} if source is None else {"source": source.server}),
            **({"mint_request": request.token} if request.token else {}),
        },
    }
    known |= {
        "comparison": benchmarks["comparison"],
        "evidence": evidence,
        "public_key": key and key.public,
    }
    if request.require_decided and not evidence["decided"]:
        return MintDocument(state=NOT_DECIDED, **known)
    folder = workspace.folder / request.output / short_name(template.name) / template.version
    path = write_numbered(
        folder,
        "snapshot",
        lambda number, before: laid_out(seal(numbered(content, number, before), key)),
    )
    return MintDocument(state=MINTED, path=str(path), **known)


def minted_before(folder: Path, request: MintRequested) -> MintDocument | None:
    """Return the outcome of a recorded request if an intact snapshot in its output folder was
    written for it, otherwise None.
    """
    for path in (
        sorted((folder / request.output).glob("*/*/snapshot-*.json5")) if request.token else ()
    ):
        try:
            if request.token.encode() not in read_limited(path, LARGEST_SNAPSHOT):
                continue  # before the schema of every other snapshot is checked
            snapshot, problems = read_snapshot(path)
        except InputError:
            continue
        if problems or snapshot["snapshot_metadata"].get("mint_request") != request.token:
            continue
        return MintDocument(
            state=MINTED,
            batch_id=request.batch_id,
            specialist=snapshot["name"],
            version=snapshot["version"],
            path=str(path),
            comparison=snapshot["benchmarks"]["comparison"],
            evidence=snapshot["evidence"],
            public_key=snapshot["snapshot_metadata"]["public_key"],
        )
    return None


def template_of(folder: Path, request: MintRequested) -> SpecialistTemplate:
    """Return the template of a request; raises `InputError` if it is missing or invalid."""
    return _parts(folder, request)[0]


def prepared(folder: Path, request: MintRequested) -> MintRequested:
    """Return a request with paths that stay valid if the project is moved; raises `InputError` for
    a wrong template or key.
    """
    root = folder.resolve()

    def stored(path: str) -> str:
        whole = (root / path).resolve()
        return str(whole.relative_to(root) if whole.is_relative_to(root) else whole)

    template = stored(str(specialist_template(folder, request.template, enriched=False)[1]))
    request = replace(
        request,
        template=template,
        output=stored(request.output),
        key=request.key and stored(request.key),
    )
    _parts(folder, request)
    return request


def _parts(folder: Path, request: MintRequested) -> tuple[SpecialistTemplate, SigningKey | None]:
    template, _ = specialist_template(
        folder, str(folder / request.template), enriched=request.enriched
    )
    return template, None if request.key is None else SigningKey(folder / request.key)
