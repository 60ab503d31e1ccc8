"""Check and import a finished run that another program sends."""

from __future__ import annotations

import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from assay.app.imports.checked_records import checked
from assay.app.imports.importer import import_paths
from assay.app.imports.options import ImportOptions
from assay.app.webhooks import WAITS
from assay.domain.errors import InputError, Refused
from assay.domain.identifiers import RunId
from assay.domain.import_records import Skipped
from assay.domain.lifecycle import AssessmentState
from assay.domain.selection import Selection
from assay.exchange.parsing.json_values import NotJson, parse_json
from assay.exchange.readers.agent_runs import NAME, AgentRun, BadField, agent_run

if TYPE_CHECKING:
    from assay.app.workspace import Workspace
    from assay.store.opening import Store

CALLED: Final = "a run sent over HTTP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """The imported run; `again` is True if it was already stored."""

    run_id: RunId
    again: bool


def receive(workspace: Workspace, content: bytes) -> Received:
    """Import one run from its JSON; sending the same content again changes nothing.

    Raises InputError for an invalid field, and Refused if a run with this id but different content
    exists.
    """
    agent_run = _checked(content)
    with _ONE_BY_ONE:
        if (existing := _there(workspace.store, agent_run)) is not None:
            return Received(run_id=existing, again=True)
        # A run sent over HTTP is imported like a file, so that there is one importer and the
        # original bytes are kept.
        with tempfile.TemporaryDirectory(prefix="assay-") as folder:
            file = Path(folder) / f"{_file_name(agent_run)}.json"
            file.write_bytes(content)
            try:
                result = import_paths(
                    workspace, [file], ImportOptions(format=NAME), called={file: CALLED}
                )
            except InputError:
                if agent_run.run.id is None:
                    raise
                return Received(
                    run_id=_from_another_process(workspace.store, agent_run), again=True
                )
    for runs in result.unchanged.values():
        return Received(run_id=RunId(runs[0]), again=True)
    if not result.run_ids:
        if result.skipped:
            raise InputError("body", result.skipped[0].why)
        return Received(run_id=_from_another_process(workspace.store, agent_run), again=True)
    known = RunId(result.run_ids[0])
    (summary,) = workspace.archive.runs.matching(Selection(runs=(known,)))
    if summary.assessments.get(AssessmentState.PENDING):
        workspace.notices.tell(WAITS, summary)
    return Received(run_id=known, again=False)


_ONE_BY_ONE: Final = Lock()
"""Lock for one import at a time, so that a run sent several times at once is imported only once."""

_PATIENCE_S: Final = 5.0


def _from_another_process(store: Store, agent_run: AgentRun) -> RunId:
    """Wait until another process has imported the same run; raises `Refused` after a timeout."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        if (existing := _there(store, agent_run)) is not None:
            return existing
        time.sleep(0.05)
    raise Refused(
        agent_run.run.id or "body",
        "is being imported by another process.",
        remedy="Send it again in a moment.",
    )


def _checked(content: bytes) -> AgentRun:
    try:
        document: Any = parse_json(content)
    except NotJson as error:
        raise InputError("body", str(error)) from error
    if not isinstance(document, dict):
        raise InputError(
            "body",
            "is not an object, expected one run as {suite, scenario, agent, evaluations, …}.",
        )
    remedy = "Nothing was imported. Fix it and send it again."
    try:
        received = agent_run(document)
    except BadField as error:
        raise InputError(error.where, str(error), remedy=remedy) from error
    for record in checked(
        (received.run, received.task, received.response, *received.assessments), source="body"
    ):
        if isinstance(record, Skipped):
            raise InputError("body", record.why, remedy=remedy)
    return received


def _there(store: Store, agent_run: AgentRun) -> RunId | None:
    """Return the stored run with this id and content; raises `Refused` if the content differs."""
    if agent_run.run.id is None:
        return None
    try:
        summaries = store.archive.runs.matching(Selection(runs=(agent_run.run.id,)))
    except InputError:  # no run has this id, or several begin with it
        return None
    for summary in summaries:
        if summary.id == agent_run.run.id:
            if store.journal.plan_of(summary.id).environment.get("content") == agent_run.content:
                return summary.id
            problem = "is already stored with different content."
            raise Refused(
                summary.id, problem, remedy="Finished runs cannot change. Use another id."
            )
    return None


def _file_name(agent_run: AgentRun) -> str:
    return (
        agent_run.run.id
        or re.sub(r"[^A-Za-z0-9]+", "-", agent_run.run.suite).strip("-")[:60]
        or "run"
    )
