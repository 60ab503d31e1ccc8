"""Record mints whose grades are pending, and carry them out at the last decision."""

from __future__ import annotations

import logging
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from assay.app.review.protocol import OF_THE_RUN
from assay.app.runs.push import server_of
from assay.app.specialists.mint import WAITING, MintDocument, mint, prepared
from assay.app.specialists.remote import mint_from_server
from assay.app.specialists.remote_mints import RemoteMint, forget, record, remote_mints
from assay.domain.errors import AssayError, Refused, UnknownName
from assay.domain.observations import (
    MintEnded,
    MintRequested,
    Observation,
    ObservationKind,
    with_body,
)
from assay.domain.selection import Selection
from assay.exchange.results_folder.folder import FolderBusy, locked

if TYPE_CHECKING:
    from collections.abc import Collection

    from assay.app.settings import Settings
    from assay.app.workspace import Workspace
    from assay.domain.identifiers import RunId
    from assay.store.opening import Store

_LOG: Final = logging.getLogger("assay")


def mint_or_wait(workspace: Workspace, request: MintRequested) -> MintDocument:
    """Mint a snapshot; if grades or runs are pending, record the request until the last decision.

    Raises the errors of `mint`.

    A batch that the store lacks is read from the server in the settings. Such a request is recorded
    in a file, and `assay mint --pending` carries it out, because its decisions are made on that
    server.
    """
    request = prepared(workspace.folder, request)
    try:
        result = mint(workspace, request)
    except UnknownName:
        server = server_of(workspace.settings)
        if server is None:
            raise
        return _from_server_or_wait(workspace.settings, request, server)
    if result.state == WAITING and request not in [
        replace(each, token="") for each in open_mints(workspace.store)
    ]:
        request = replace(request, token=secrets.token_hex(8))
        _note(workspace.store, workspace.reviewer, request.batch_id, "mint", request)
    return result


def _from_server_or_wait(settings: Settings, request: MintRequested, server: str) -> MintDocument:
    result = mint_from_server(settings, request, server)
    if result.state == WAITING:
        same = (
            each
            for each in remote_mints(settings)
            if each.server == server and replace(each.request, token="") == request
        )
        known = next(same, None)
        recorded = replace(request, token=secrets.token_hex(8)) if known is None else known.request
        record(settings, RemoteMint(request=recorded, server=server, waiting=result.waiting))
    return result


def open_mints(store: Store, runs: Collection[RunId] | None = None) -> tuple[MintRequested, ...]:
    """Return the recorded mints that have not been carried out, for all runs or only for these,
    oldest first.
    """
    read = store.observations.read
    kinds = (ObservationKind.MINT,)
    notes = (
        read(kinds=kinds)
        if runs is None
        else [note for run in runs for note in read(kinds=kinds, run=run)]
    )
    ended = {end.token for _, end in with_body(notes, MintEnded)}
    return tuple(
        {
            mint.token: mint
            for _, mint in with_body(notes, MintRequested)
            if mint.token not in ended
        }.values()
    )


def mint_recorded(
    workspace: Workspace, runs: Collection[RunId] | None = None
) -> tuple[MintDocument, ...]:
    """Carry out the recorded mints whose grades are complete, and return the state of each; a
    failed mint stays recorded.

    `runs`: only the mints of these runs; by default, all mints, also those of batches on the server
    in the settings.

    One process at a time does this, so that each request gives one snapshot. If it is killed after
    it wrote the snapshot, the next one recognises that file by the request's token.
    """
    results = []
    try:
        with locked(workspace.settings.folder / ".assay"):
            for request in open_mints(workspace.store, runs):
                try:
                    result = mint(workspace, request)
                except AssayError as error:
                    result = MintDocument(
                        state=WAITING, batch_id=request.batch_id, problem=str(error)
                    )
                results.append(result)
                if result.state != WAITING:
                    end = MintEnded(token=request.token, path=result.path or "")
                    _note(workspace.store, workspace.reviewer, request.batch_id, "minted", end)
            results += [
                _remote(workspace.settings, recorded)
                for recorded in (remote_mints(workspace.settings) if runs is None else ())
            ]
    except FolderBusy as error:
        raise Refused(
            str(error), "is locked by another process that mints.", remedy="Try again in a moment."
        ) from error
    return tuple(results)


def _remote(settings: Settings, recorded: RemoteMint) -> MintDocument:
    """Carry out the mint of a server's batch if its grades are complete; a failed mint stays
    recorded.
    """
    request, server = recorded.request, server_of(settings)
    if server != recorded.server:  # the token in the settings belongs to the server in the settings
        problem = f"was recorded for the server {recorded.server}, but the settings name {server or 'no server'}"
        problem = f"it {problem}. Set ASSAY_SERVER={recorded.server}, and try again."
        return MintDocument(
            state=WAITING, batch_id=request.batch_id, problem=problem, server=recorded.server
        )
    try:
        result = mint_from_server(settings, request, server)
    except AssayError as error:
        return MintDocument(
            state=WAITING, batch_id=request.batch_id, problem=str(error), server=server
        )
    if result.state == WAITING:
        record(settings, replace(recorded, waiting=result.waiting))
    else:
        forget(settings, request.token)
    return result


def mint_due(workspace: Workspace, runs: Collection[RunId]) -> None:
    """Carry out the mints that awaited decisions on these runs.

    A failure is only logged; the decisions are already stored.
    """
    try:
        for result in mint_recorded(workspace, runs):
            if result.problem:
                _LOG.warning(
                    "batch %s was not minted: %s; `assay mint --pending` tries again",
                    result.batch_id,
                    result.problem,
                )
            elif result.state != WAITING:
                _LOG.warning(
                    "batch %s: %s %s",
                    result.batch_id,
                    result.state.replace("_", " "),
                    result.path or "",
                )
    except Exception as error:  # any error, because it must not fail a decision that is stored
        _LOG.warning("a snapshot was not minted: %s; `assay mint --pending` tries again", error)


def _note(
    store: Store, reviewer: str, batch_id: str, key: str, body: MintRequested | MintEnded
) -> None:
    """Record a request or its end for each run of the batch."""
    now, who = store.clock.now(), reviewer
    for run in store.archive.runs.matching(Selection(batch_ids=(batch_id,))):
        own = f"{key}:{body.token}:{run.id}"
        note = Observation(
            run_id=run.id,
            assessment=OF_THE_RUN,
            reviewer=who,
            at=now,
            idempotency_key=own,
            body=body,
        )
        store.observations.note([note])
