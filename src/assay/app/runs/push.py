"""Send the graded trials of agents to another Assay server, in the form that `POST /api/runs`
receives.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from assay.app.runs.scenario_runs import outcomes
from assay.app.webhooks import posted
from assay.app.wire import document
from assay.domain.digest import digest
from assay.domain.errors import SettingsError
from assay.domain.selection import Selection
from assay.domain.specialists import Specialist
from assay.domain.unescaped_json import unescaped_json
from assay.providers.origin import is_local

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.app.runs.scenario_runs import AgentTrialDocument
    from assay.app.settings import Settings
    from assay.domain.identifiers import RunId
    from assay.domain.selection import RunSummary
    from assay.store.opening import Store


@document
class PushDocument:
    """Trials that another server has received; `waiting` ones are not sent before their review.

    `problem` ended the push.
    """

    server: str
    sent: int
    waiting: int
    problem: str | None


def server_of(settings: Settings) -> str | None:
    """Return the address of the server that receives results, without a trailing slash; None if the
    setting is empty.

    Raises SettingsError if the address is invalid, forbidden by `local_only`, or would get the
    token unencrypted.
    """
    if not settings.values["server"]:
        return None
    address = str(settings.values["server"]).rstrip("/")
    where = f"server ({settings.origins['server']})"
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if (
        host is None
        or parts.scheme not in {"http", "https"}
        or parts.query
        or not address.isprintable()
        or " " in address
    ):
        raise SettingsError(
            where,
            f"is {address!r}, which is not a web address.",
            remedy="Write https://host or http://127.0.0.1:8000",
        )
    if is_local(host):
        return address
    if settings.values["local_only"]:
        raise SettingsError(
            where,
            f"is {host}, but local_only allows only this machine and network.",
            remedy="Unset `server` or `local_only`.",
        )
    if (
        parts.scheme == "http"
        and settings.values["server_token"]
        and not settings.values["allow_http_keys"]
    ):
        raise SettingsError(
            where,
            f"would send the token to {host} unencrypted.",
            remedy="Use https, or set allow_http_keys.",
        )
    return address


def push(store: Store, settings: Settings, run: RunId) -> PushDocument | None:
    """Send each graded trial of a run to the server in the settings; return None without a server
    or without agents.

    Trials that the server already has are not stored again. Trials that await review are not sent.
    """
    server = server_of(settings)
    trials = outcomes(store, run) if server is not None else ()
    if server is None or not trials:
        return None
    (summary,) = store.archive.runs.matching(Selection(runs=(run,)))
    token = settings.values["server_token"]
    headers = {"Content-Type": "application/json", "User-Agent": "assay"}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    graded = finished_runs(summary, trials)
    sent, problem = 0, ""
    for row in graded:
        body = unescaped_json(row).encode("utf-8", "replace")
        pinned = bool(settings.values["local_only"])
        again, problem = asyncio.run(
            posted(f"{server}/api/runs", body, headers, pinned=pinned, timeout_s=30)
        )
        if again:
            _, problem = asyncio.run(
                posted(f"{server}/api/runs", body, headers, pinned=pinned, timeout_s=30)
            )
        if problem:
            break
        sent += 1
    return PushDocument(
        server=server, sent=sent, waiting=len(trials) - len(graded), problem=problem or None
    )


def finished_runs(
    summary: RunSummary, trials: Sequence[AgentTrialDocument]
) -> list[dict[str, Any]]:
    """Return each graded trial as `POST /api/runs` receives it."""
    return [_finished_run(summary, trial) for trial in trials if trial.score is not None]


def _finished_run(summary: RunSummary, trial: AgentTrialDocument) -> dict[str, Any]:
    specialist = None if trial.specialist is None else Specialist(**trial.specialist)
    return {
        "runId": f"{summary.id}-{trial.id}-{digest(trial.agent)[:8]}",
        "batchId": summary.batch_id or summary.id,
        "suite": summary.suite,
        "scenario": trial.scenario,
        "tier": trial.tier,
        "agent": trial.agent
        if specialist is None
        else trial.agent.removesuffix(specialist.label("")),
        "specialistEnabled": specialist is not None,
        **(
            {}
            if specialist is None
            else {f"specialist{part.title()}": value for part, value in asdict(specialist).items()}
        ),
        "status": "completed",
        "trial": trial.trial,
        "startedAt": summary.started,
        "totalScore": round(
            sum(
                trial.weights.get(name, 1.0) * (score or 0.0)
                for name, score in trial.evaluators.items()
            ),
            9,
        ),
        "weightedScore": trial.score,
        "isSuccessful": trial.success,
        "evaluations": [
            {
                "evaluatorName": name,
                "score": score,
                "maxScore": 1.0,
                "weight": trial.weights.get(name, 1.0),
                "gradedBy": "person" if trial.reviewed else "rule",
            }
            for name, score in trial.evaluators.items()
        ],
        "telemetry": {
            "durationMs": None if trial.seconds is None else round(1000 * trial.seconds),
            "toolCalls": trial.tool_calls,
            "tokensIn": trial.input_tokens,
            "tokensOut": trial.output_tokens,
            "costUsd": trial.cost_usd,
        },
    }
