"""Mint from a batch on the server in the settings; its scores count only after their review
there.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from yarl import URL

from assay.app.imports.importer import import_paths
from assay.app.imports.options import ImportOptions
from assay.app.registry.removal import REMOVALS
from assay.app.specialists.evidence import OVERRIDE
from assay.app.specialists.mint import (
    WAITING,
    BatchSource,
    MintDocument,
    mint,
    minted_before,
    template_of,
)
from assay.app.specialists.removed_runs import counted
from assay.app.statistics.results import GOING_ON
from assay.app.workspace import Workspace
from assay.domain.errors import InputError
from assay.domain.failure import CallFailed
from assay.domain.lifecycle import AssessmentState
from assay.exchange.parsing import json_values as js
from assay.exchange.readers.agent_runs import NAME
from assay.providers.session import Address, HttpSession

if TYPE_CHECKING:
    from assay.app.settings import Settings
    from assay.domain.observations import MintRequested
    from assay.specialists.comparison import Section

_MOST: Final = 1000
"""Maximum number of runs per batch, and of grades per run, that a server returns at once."""

_SENT: Final = (
    *(
        "runId",
        "suite",
        "scenario",
        "tier",
        "agent",
        "model",
        "startedAt",
        "completedAt",
        "isSuccessful",
    ),
    *("specialistEnabled", "specialistName", "specialistVersion"),
)
"""Fields in a server's response about a run that it has received."""

_REMOVED: Final = {
    "run_id": "runId",
    "removal": "removal",
    "at": "removedAt",
    "replaced_by": "replacedBy",
}
"""Field of a removed run in a server's response for each field in a snapshot."""

_GRADED_BY: Final = {
    AssessmentState.APPROVED: "person",
    AssessmentState.CORRECTED: "person",
    AssessmentState.NOT_REQUIRED: "rule",
    AssessmentState.EXEMPT: "rule",
}


def mint_from_server(settings: Settings, request: MintRequested, server: str) -> MintDocument:
    """Mint a batch that only the server in the settings has; raises the errors of `mint`, and
    `InputError` for the server.

    The runs are imported into a temporary store, so that exactly the rules of local runs apply to
    them.
    """
    if (done := minted_before(settings.working_folder, request)) is not None:
        return done
    rows, waiting, removed = asyncio.run(_read(settings, server, request.batch_id))
    if waiting:
        own = template_of(settings.working_folder, request)
        batch_id, name, version = request.batch_id, own.name, own.version
        return MintDocument(
            state=WAITING,
            batch_id=batch_id,
            specialist=name,
            version=version,
            waiting=waiting,
            server=server,
        )
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        file = Path(folder) / "batch.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)), "utf-8")
        options: Section = {
            "store": f"sqlite:///{folder}/assay.db",
            "results": "off",
            "server": None,
        }
        environment = {
            k: v
            for k, v in settings.environment.items()
            if k not in {"ASSAY_SERVER", "ASSAY_STORE"}
        }
        with Workspace.open(
            settings.working_folder, options=options, environment=environment
        ) as copy:
            if skipped := import_paths(copy, [file], ImportOptions(format=NAME)).skipped:
                raise InputError(server, f"sent a run that cannot be read: {skipped[0].why}")
            return mint(copy, request, source=BatchSource(server=server, removed=removed))


async def _read(
    settings: Settings, server: str, batch_id: str
) -> tuple[list[Section], int, Section | None]:
    """Return the graded runs of a batch as `POST /api/runs` receives them, and the number of
    pending grades and open runs.

    The third part is the section `removed_runs`, or None if the server does not send it.
    """
    session = HttpSession(timeout_s=30)
    token = settings.values["server_token"]
    headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def get(path: str) -> Section:
        url = URL(f"{server}/api/{path}?limit={_MOST}", encoded=True)
        address = Address(url, headers, None, url.authority, bool(settings.values["local_only"]))
        try:
            answer = await session.send("GET", address, b"")
            document = js.parse_json(answer.body) if answer.status == 200 else None
        except (CallFailed, js.NotJson) as error:
            raise InputError(server, f"did not return /api/{path}: {error}") from error
        if not isinstance(document, dict):
            raise InputError(
                server,
                f"answered /api/{path} with status {answer.status}, expected 200 and a JSON object.",
            )
        return document

    try:
        batch = await get(f"batches/{quote(batch_id, safe='')}")
        listed = batch.get("runs")
        if not isinstance(listed, list) or not listed or len(listed) >= _MOST:
            raise InputError(server, f"has no batch {batch_id!r} with fewer than {_MOST:,} runs.")
        documents = [
            await get(f"runs/{quote(str(each.get('runId')), safe='')}")
            for each in listed
            if isinstance(each, dict)
        ]
    finally:
        await session.close()
    rows: list[Section] = []
    waiting = 0
    for document in documents:
        entries = [entry for entry in document.get("evaluations") or () if isinstance(entry, dict)]
        waiting += sum(
            entry.get("state", entry.get("score")) in (None, AssessmentState.PENDING)
            for entry in entries
        )
        run = js.as_object(document.get("run"))
        waiting += run.get("status") in GOING_ON
        kept = [
            {**entry, "gradedBy": _GRADED_BY[entry["state"]]}
            for entry in entries
            if entry.get("state") in _GRADED_BY
        ]
        # of another program: its models' grades await review here
        kept += [entry for entry in entries if "state" not in entry]
        sent = {key: run[key] for key in _SENT if run.get(key) is not None}
        sent |= {"status": "completed", "telemetry": document.get("telemetry")}
        sent["evaluations"] = [
            {key: value for key, value in entry.items() if value is not None} for entry in kept
        ]
        own = document.get("agentRuns") or [{**sent, "weightedScore": run.get("weightedScore")}]
        rows += [
            {**_with_override(row), "batchId": batch_id} for row in own if row.get("evaluations")
        ]
    return rows, waiting, _removed(batch.get("removedRuns"))


def _removed(sent: object) -> Section | None:
    """Return the section `removed_runs` for the removed runs that a server sends, without names,
    reasons and results.
    """
    if not isinstance(sent, list):
        return None
    runs = [js.as_object(each) for each in sent]
    parts = [
        {
            name: run[key] if isinstance(run.get(key), str) else None
            for name, key in _REMOVED.items()
        }
        for run in runs
    ]
    known = [
        part
        for part in parts
        if part["run_id"] is not None and part["removal"] in REMOVALS.values()
    ]
    if len(known) < len(sent):
        return None
    return counted([{**part, "by": None, "reason": None, "results": None} for part in known])


def _with_override(row: Section) -> Section:
    """Return a run with one grade in place of its evaluators' grades if a person gave it another
    overall score.
    """
    score, parts = (
        js.as_number(row.get("weightedScore")),
        [js.as_object(part) for part in row["evaluations"]],
    )
    weights = [js.as_number(part.get("weight", 1.0)) or 0.0 for part in parts]
    graded = sum(
        weight * (js.as_number(part.get("score")) or 0.0)
        for weight, part in zip(weights, parts, strict=True)
    )
    if (
        score is None
        or not 0 <= score <= 1
        or abs(graded - score * sum(weights)) < 1e-6 * sum(weights)
    ):
        return row
    return {
        **row,
        "evaluations": [{"evaluatorName": OVERRIDE, "score": score, "gradedBy": "person"}],
    }
