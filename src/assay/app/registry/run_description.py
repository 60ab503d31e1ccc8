"""Describe a run as (name, value) pairs, and each model that it called as a row of texts."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from assay.app.recorded_settings import graded_rubric, run_parameters
from assay.domain.amounts import duration, money
from assay.domain.selection import StartedFrom
from assay.report import wording

if TYPE_CHECKING:
    from assay.app.provenance import Provenance
    from assay.domain.digest import JsonValue
    from assay.domain.selection import RunSummary


def facts(provenance: Provenance) -> tuple[tuple[str, str], ...]:
    """Describe a run as (name, value) pairs of text; unknown values are left out."""
    summary, plan = provenance.summary, provenance.plan
    environment = dict(plan.environment)
    pairs: list[tuple[str, Any]] = [
        (
            "suite",
            f"{summary.suite}, digest {plan.copy.digest[:16]}, from {PurePath(plan.copy.path).name}",
        ),
        ("state", summary.state.value),
        ("started", summary.started),
        ("start", wording.FILE_DATE if summary.started_from is StartedFrom.FILE_DATE else None),
        ("finished", summary.finished),
        ("took", None if provenance.seconds is None else duration(provenance.seconds)),
        ("calls", _calls(provenance)),
        (
            "tokens",
            f"{summary.input_tokens:,} in, {summary.output_tokens:,} out"
            if provenance.calls
            else None,
        ),
        (
            "cost",
            None if summary.cost_usd is None else money(summary.cost_usd) + _unpriced(summary),
        ),
        ("batch", summary.batch_id),
        ("regrades", plan.regrade_of),
        ("review policy", plan.policy.value),
        ("approvals", wording.approvals(provenance.approvals)),
        ("seed", plan.seed),
        ("parameters", _listed(run_parameters(plan).as_json())),
        ("prompt version", plan.prompt_version or None),
        ("system prompt", plan.system_prompt or None),
        ("rubric digest", plan.rubric.digest if graded_rubric(plan, summary).criteria else None),
        ("margin", None if plan.margin is None else f"{wording.number(plan.margin)} points"),
        ("command", environment.get("command")),
        ("Assay", environment.get("assay")),
        ("commit", _commit(environment.get("git"))),
        ("Python", environment.get("python")),
        (
            "machine",
            " ".join(str(environment[key]) for key in ("system", "machine") if key in environment)
            or None,
        ),
        ("libraries", _listed(environment.get("libraries"))),
    ]
    return tuple((name, str(value)) for name, value in pairs if value is not None and value != "")


def models(provenance: Provenance) -> tuple[dict[str, str], ...]:
    return tuple(
        {
            "role": total.role,
            "name": total.name,
            "model": total.model,
            "answered": total.model_version or "unknown",
            "calls": f"{total.calls:,}" + (f" ({total.failed:,} failed)" if total.failed else ""),
            "tokens in": f"{total.input_tokens:,}",
            "tokens out": f"{total.output_tokens:,}",
            "cost": money(total.cost_usd),
            "s per call": "" if not total.latency_s else f"{total.latency_s / total.calls:.2f}",
        }
        for total in provenance.totals
    )


def _calls(provenance: Provenance) -> str:
    if not provenance.calls:
        return "none"
    return f"{provenance.calls:,}" + (
        "" if provenance.calls_per_s is None else f", {provenance.calls_per_s:.2f} per second"
    )


def _unpriced(summary: RunSummary) -> str:
    return (
        f" and {wording.count(summary.unpriced_calls, 'call')} without a known price"
        if summary.unpriced_calls
        else ""
    )


def _commit(git: JsonValue) -> str | None:
    if not isinstance(git, dict):
        return None
    changed = {True: ", with uncommitted changes", False: ""}.get(bool(git.get("changed")), "")
    return f"{git.get('commit')}{changed}"


def _listed(values: Any) -> str | None:
    return (
        ", ".join(f"{key} {value}" for key, value in values.items())
        if isinstance(values, dict) and values
        else None
    )
