"""Pages of models with their access, price, usage and failures, and the endpoint that checks a
model by one small call.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from pydantic import Field

from assay.domain.amounts import money
from assay.domain.errors import UnknownName
from assay.web.formatting import plural, seconds, time_element
from assay.web.jobs.judge_services import judging_of
from assay.web.responses import Answer, Body
from assay.web.templating import count, page_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.app.registry.models import Checked, Failing, Model, ModelInFull, Used

router = APIRouter()

_PRICE_SOURCES: Final = {
    "assay.yaml": "from assay.yaml",
    "suite": "from the suite",
    "list": "from the price list",
    "free": "costs nothing",
}

_SCHEMA_WORDS: Final = {
    "response_format": "structured output",
    "forced_tool": "forced tool",
    "in_words": "instructions in the prompt only, because the endpoint refused the other methods",
    "not_known": "unknown",
}

ROLES: Final = ("judge", "candidate")
_LATENCIES: Final = ("p50", "p90", "p99", "most")


class CheckBody(Body):
    """A model to check with one small question."""

    model: str = Field(min_length=1, max_length=300)


@router.get("/models.json", include_in_schema=False)
def models_twin(request: Request) -> Response:
    return Answer({"models": list(map(asdict, judging_of(request).models.all()))})


@router.get("/models", include_in_schema=False)
def models_page(request: Request) -> Response:
    """Show judges and candidates with their access, price and usage."""
    models = judging_of(request).models.all()
    groups = [(role, [row(model) for model in models if model.role == role]) for role in ROLES]
    return page_of(
        request,
        "judges/models.html",
        twin="/models.json",
        groups=[(role, rows) for role, rows in groups if rows],
    )


# Declared before the page's route, which accepts any path because names of models contain slashes.
@router.get("/models/{ref:path}.json", include_in_schema=False)
def model_twin(request: Request, ref: str) -> Response:
    """Return one model's page as JSON, or the page of a model whose name ends in `.json`."""
    try:
        model = judging_of(request).models.one(ref)
    except UnknownName:
        return model_page(request, f"{ref}.json")
    return Answer(_whole(model))


@router.get("/models/{ref:path}", include_in_schema=False)
def model_page(request: Request, ref: str) -> Response:
    """Show one model: its runs, failures, times and calibrations."""
    model = judging_of(request).models.one(ref)
    return page_of(
        request,
        "judges/model.html",
        title=model.ref,
        twin=f"{address(model.ref)}.json",
        found=model,
        rows=[row(role) for role in model.roles],
        runs=[
            {
                "id": run.run.id,
                "suite": run.run.suite,
                "started": time_element(run.run.started),
                "role": run.role,
                **used(run.used),
            }
            for run in model.runs
        ],
        failures=[
            {
                "kind": failure.kind,
                "fault": failure.fault,
                "role": failure.role,
                "calls": failure.calls,
                "at": time_element(failure.last.started) if failure.last else "",
                "said": _said(failure),
            }
            for failure in model.failures
        ],
        latencies=[
            {
                "role": latency.role,
                "n": latency.n,
                "figures": [(name, seconds(getattr(latency, name))) for name in _LATENCIES],
            }
            for latency in model.latencies
        ],
        calibrations=[
            {
                "tier": calibration.tier.words,
                "at": time_element(calibration.at),
                "n": calibration.document.get("n"),
                "settings": calibration.document.get("settings_of"),
                "href": f"/calibration/{calibration.number}" if calibration.number else None,
            }
            for calibration in model.calibrations
        ],
    )


@router.post("/api/models/check", tags=["models"])
def check(request: Request, body: CheckBody) -> Response:
    """Ask a model one small question, and return its latency and cost, or the error."""
    outcome = judging_of(request).models.check(body.model)
    return Answer({"model": body.model, **asdict(outcome), "said": said_of(outcome)})


def row(model: Model) -> Mapping[str, object]:
    access = model.access
    return {
        "ref": model.ref,
        "href": address(model.ref),
        "role": model.role,
        "place": _place(model),
        "context": f"context {count(model.context_tokens)}"
        if model.context_tokens
        else "context unknown",
        "reach": "blocked" if access.blocked else "no" if access.problem else "yes",
        "problem": access.problem,
        "remedy": access.remedy,
        "key": _key(model),
        "takes": _takes(model),
        "price": f"{money(model.price.input_usd)} in, {money(model.price.output_usd)} out"
        if model.price.source and model.price.source != "free" and model.price.input_usd is not None
        else None,
        "price_from": _PRICE_SOURCES[model.price.source] if model.price.source else None,
        **used(model.used),
        "last": time_element(model.last.started) if model.last else None,
        "error": model.last_error,
        "can_check": model.can_check,
        "check_cost": "of unknown price"
        if model.check_costs is None
        else f"at most {money(model.check_costs)}",
        "check_of": f"Check {model.ref}: one small call, at most {money(model.check_costs)}",
        "checked": None if model.checked is None else said_of(model.checked),
        "checked_at": None if model.checked is None else time_element(model.checked.at),
        "check_ok": model.checked is not None and model.checked.ok,
        "stamps": model.stamps,
        "parameters": ", ".join(f"{name} {value}" for name, value in model.parameters.items()),
    }


def used(usage: Used) -> Mapping[str, object]:
    """Return calls, tokens and cost as texts; calls without a known price are mentioned
    separately.
    """
    spent, apart = money(usage.cost_usd), None
    if usage.unpriced and not usage.cost_usd:
        spent, apart = "unknown", "no call has a price"
    elif usage.unpriced:
        apart = f"and {usage.unpriced} {plural(usage.unpriced, 'call', 'calls')} of unknown price"
    requests = plural(usage.unanswered, "request", "requests")
    return {
        "calls": count(usage.calls),
        "failed": usage.failed,
        "unanswered": f"{usage.unanswered} {requests} without an answer"
        if usage.unanswered
        else None,
        "tokens": f"{count(usage.input_tokens)}, {count(usage.output_tokens)}",
        "spent": spent,
        "unpriced": apart,
        "runs": usage.runs,
    }


def _said(failing: Failing) -> str:
    if failing.kind == "missing":
        return "the file has no answer to this request."
    return (failing.last.detail or "") if failing.last else ""


def said_of(checked: Checked) -> str:
    if not checked.ok:
        return f"{checked.kind}: {checked.detail}"
    return f"answered in {seconds(checked.latency_s or 0.0)} s, {money(checked.cost_usd)}"


def address(ref: str) -> str:
    return f"/models/{quote(ref, safe='/:@')}"


def _place(model: Model) -> str:
    if model.access.place is None:
        return "no network"
    return (
        f"{model.access.place}, on this machine or network"
        if model.access.local
        else model.access.place
    )


def _key(model: Model) -> str | None:
    access = model.access
    if access.key_variable is None:
        return None
    if access.key_set:
        return "key set"
    needed = access.problem and not access.blocked
    return (
        f"{access.key_variable} not set" if needed else f"{access.key_variable} not set (optional)"
    )


def _takes(model: Model) -> list[tuple[str, str]]:
    if model.access.key_variable is None:
        return []
    takes = model.takes
    known = {None: "unknown", True: "yes", False: "no"}
    features = [
        ("JSON schema", _SCHEMA_WORDS[takes.schema or "not_known"]),
        ("images", known[takes.images]),
        ("seed", known[takes.seed]),
    ]
    return [*features, ("", f"refused: {', '.join(takes.unsent)}")] if takes.unsent else features


def _whole(model_in_full: ModelInFull) -> Mapping[str, object]:
    return {
        "model": model_in_full.ref,
        "roles": list(map(asdict, model_in_full.roles)),
        "runs": [
            {
                "run_id": run.run.id,
                "suite": run.run.suite,
                "started": run.run.started,
                "role": run.role,
                **asdict(run.used),
            }
            for run in model_in_full.runs
        ],
        "runs_left_out": {"older": model_in_full.more_runs},
        "failures": list(map(asdict, model_in_full.failures)),
        "latency_s": list(map(asdict, model_in_full.latencies)),
        "calibrations": [
            {
                "tier": calibration.tier.value,
                "at": calibration.at,
                "version": calibration.version,
                "n": calibration.document.get("n"),
            }
            for calibration in model_in_full.calibrations
        ],
    }
