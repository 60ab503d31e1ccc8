"""Calibration pages: show what `app.calibration` has stored, and measure a judge from the
browser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict

from fastapi import APIRouter, Query, Request, Response
from markupsafe import Markup
from pydantic import Field

from assay.app.calibration import records as verbs
from assay.app.calibration.calibration_documents import record_document
from assay.app.runs import start, suite_files
from assay.app.runs.run_documents import cost_estimate
from assay.app.statistics import charts
from assay.domain.amounts import money
from assay.domain.errors import InputError, Refused, SettingsError
from assay.web.context import services_of
from assay.web.errors import problem_of
from assay.web.formatting import plural, time_element
from assay.web.jobs.judge_services import judging_of
from assay.web.pages.models import address as model_address
from assay.web.responses import Answer, Body, chart_file
from assay.web.templating import count, page_of
from assay.web.texts import WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.app.calibration.records import Listed, Wanted
    from assay.web.jobs.calibrations import Job

router = APIRouter()

_FIGURE_NAMES: Final = WORDS["calibration_figures"]

_STATES: Final = {
    "current": "current",
    "unused": "current; no recent run uses it",
    "replaced": "replaced by a newer measurement",
}

_REASONS: Final = WORDS["calibration_reasons"]

_TEXTS: Final = {"prompt": "Prompt", "response": "Answer", "reference_answer": "Reference answer"}

SHOWN: Final = 50
SAMPLES_SHOWN: Final = 300
_SHARES: Final = frozenset({"pass_rate", "position_flips"})
_RATIOS: Final = frozenset({"pearson", "spearman"})
_UNSIGNED: Final = frozenset({"mae", "repeat_sd"})
_NEVER_JUDGES: Final = frozenset({"echo", "human"})


class MeasureBody(Body):
    """Judges to measure.

    `pasted` is JSON, and `samples` is a file; if both are missing, the built-in samples are used.
    """

    models: list[str] = Field(min_length=1, max_length=10)
    samples: str | None = Field(default=None, max_length=1_000)
    pasted: str | None = Field(default=None, max_length=verbs.LARGEST_TEXT)
    built_in: bool = False
    suite: str | None = Field(default=None, max_length=1_000)
    repeat: int = Field(default=1, ge=1, le=50)
    budget: float | None = Field(default=None, gt=0)
    # Jobs are named KEY/NUMBER, so a key contains no slash.
    key: str | None = Field(default=None, min_length=8, max_length=80, pattern=r"^[\w-]+$")

    def wanted(self) -> list[Wanted]:
        return [
            verbs.Wanted(
                model=model.strip(),
                samples=self.samples or None,
                pasted=self.pasted or None,
                with_built_in=self.built_in,
                suite=self.suite or None,
                repeat=self.repeat,
                budget_usd=self.budget,
            )
            for model in dict.fromkeys(self.models)
        ]


class StopBody(Body):
    """A calibration in progress, to be stopped."""

    job: str = Field(max_length=120)


@router.get("/calibration.json", include_in_schema=False)
def calibrations_twin(
    request: Request, before: Annotated[int | None, Query(ge=1, lt=2**62)] = None
) -> Response:
    records = judging_of(request).calibrations.some(before=before, limit=SHOWN + 1)
    older = (
        f"/calibration.json?before={records[SHOWN - 1].record.number}"
        if len(records) > SHOWN
        else None
    )
    return Answer(
        {
            "calibrations": [{**_standing(record), **_brief(record)} for record in records[:SHOWN]],
            "under_way": _jobs(request),
            "next": older,
        }
    )


class CalibrationsContext(TypedDict):
    """Values of `judges/calibrations.html`."""

    rows: Sequence[object]
    older: str | None
    newer: str | None
    models: Sequence[object]
    files: Sequence[object]
    suites: Sequence[object]
    built_in: int


@router.get("/calibration", include_in_schema=False)
def calibrations_page(
    request: Request, before: Annotated[int | None, Query(ge=1, lt=2**62)] = None
) -> Response:
    """Show all calibrations, newest first, and the form for a new one."""
    services = services_of(request)
    records = judging_of(request).calibrations.some(before=before, limit=SHOWN + 1)
    older = (
        f"/calibration?before={records[SHOWN - 1].record.number}" if len(records) > SHOWN else None
    )
    query = f"?before={before}" if before else ""
    models = [
        model
        for model in start.known_models(services.workspace.store, services.workspace.settings)
        if model.ref not in _NEVER_JUDGES
    ]
    return page_of(
        request,
        "judges/calibrations.html",
        twin=f"/calibration.json{query}",
        boot={"jobs": _jobs(request)},
        **CalibrationsContext(
            rows=[_row(record) for record in records[:SHOWN]],
            older=older,
            newer="/calibration" if before else None,
            models=[{"ref": model.ref, "from": model.origin} for model in models],
            files=list(verbs.sample_files(services.workspace.folder)),
            suites=list(suite_files.suite_files(services.workspace.settings)),
            built_in=verbs.references(),
        ),
    )


@router.get("/calibration/{number}.json", include_in_schema=False)
def calibration_twin(request: Request, number: int) -> Response:
    record = judging_of(request).calibrations.one(number)
    return Answer({**_standing(record), **record_document(record.record)})


@router.get("/calibration/{number}/chart.{ending}", include_in_schema=False)
def calibration_chart(request: Request, number: int, ending: str, dark: bool = False) -> Response:
    """Return the chart of the judge's scores against the correct scores, or its table."""
    chart = judging_of(request).calibrations.chart(number)
    return chart_file(chart, f"assay-calibration-{number}", ending, dark=dark)


class CalibrationContext(TypedDict):
    """Values of `judges/calibration.html`."""

    model: str | None
    rubric: str | None
    asked: str
    figures: Sequence[object]
    criteria: Sequence[Mapping[str, object]]
    no_criteria: str
    samples: Sequence[object]
    more: int
    lost: object
    chart: Mapping[str, object]


@router.get("/calibration/{number}", include_in_schema=False)
def calibration_page(request: Request, number: int) -> Response:
    """Show one calibration: every figure, the chart, and each reference sample."""
    record = judging_of(request).calibrations.one(number)
    document: Any = record.record.document
    chart = judging_of(request).calibrations.chart(number)
    samples = document.get("samples", [])
    cost = money(document.get("cost_usd"))
    criteria = [
        {"name": name, **_figure("bias", biases)}
        for name, biases in document.get("by_criterion", {}).items()
    ]
    return page_of(
        request,
        "judges/calibration.html",
        title=record.record.identity.model,
        twin=f"/calibration/{number}.json",
        one=_row(record),
        **CalibrationContext(
            model=_model_of(request, record),
            rubric=_rubric(request, record.record.identity.rubric),
            asked=plural(
                document.get("calls", 0),
                f"1 answer, {cost}",
                f"{count(document.get('calls', 0))} answers, {cost}",
            ),
            figures=[
                {"name": title, **_figure(name, document[name])}
                for name, title in _FIGURE_NAMES.items()
                if name in document
            ],
            criteria=criteria,
            no_criteria="The judge gave no usable grade for any reference in this record."
            if "by_criterion" in document
            else "This record was measured before criteria were recorded separately.",
            samples=[_sample(sample) for sample in samples[:SAMPLES_SHOWN]],
            more=max(0, len(samples) - SAMPLES_SHOWN),
            lost=document.get("failed_tries", []),
            chart={
                "kind": chart.kind,
                "title": chart.title,
                "about": chart.about,
                "rows": len(chart.rows),
                "drawing": Markup(charts.drawn(chart)),
                "files": [
                    (ending.upper(), f"/calibration/{number}/chart.{ending}")
                    for ending in charts.endings()
                ],
            },
        ),
    )


@router.post("/api/calibrations/look", tags=["calibration"])
def look(request: Request, body: MeasureBody) -> Response:
    """Estimate a calibration's calls and cost without calling a model; raises any error that
    prevents the calibration.
    """
    workspace = services_of(request).workspace
    try:
        plans = [verbs.look(workspace, wanted) for wanted in body.wanted()]
    except (
        SettingsError
    ) as error:  # 422 instead of 500, because the user of this page can choose another model
        return Answer(problem_of(error), status_code=422)
    waiting = verbs.runs_under_review(workspace.store)
    return Answer(
        {
            "judges": [
                {
                    "model": plan.setting.judge.model.ref,
                    "settings_of": verbs.shown_source(plan.setting.source, waiting),
                    "references": len(plan.references),
                    "taken_over": plan.taken_over,
                    "estimate": cost_estimate(plan.estimate),
                }
                for plan in plans
            ],
            "estimate": cost_estimate(verbs.together(plans)),
        }
    )


@router.post("/api/calibrations", tags=["calibration"], status_code=201)
def measure(request: Request, body: MeasureBody) -> Response:
    """Measure judges in this server, one after the other. `key` is the idempotency key."""
    workspace = services_of(request).workspace
    wanted = body.wanted()
    try:
        for request_ in wanted:
            verbs.look(workspace, request_)
        judging_of(request).measuring.begin(
            body.key or workspace.nonce() + workspace.nonce(), wanted
        )
    except InputError as error:
        return Answer(problem_of(error), status_code=409 if isinstance(error, Refused) else 422)
    return Answer({"jobs": _jobs(request)}, status_code=201)


@router.get("/api/calibrations/jobs", tags=["calibration"])
def jobs(request: Request) -> Response:
    """Return this server's calibrations, newest first: in progress, waiting and ended."""
    return Answer({"jobs": _jobs(request)})


@router.post("/api/calibrations/stop", tags=["calibration"])
def stop(request: Request, body: StopBody) -> Response:
    """Stop a calibration; its answers are kept, and the same calibration continues from there."""
    judging_of(request).measuring.stop(body.job)
    return Answer({"jobs": _jobs(request)})


def _rubric(request: Request, digest: str) -> str | None:
    known = any(rubric.digest == digest for rubric in judging_of(request).criteria.all())
    return f"/criteria/{digest}" if known else None


def _jobs(request: Request) -> list[Mapping[str, object]]:
    return [_job(job) for job in judging_of(request).measuring.jobs()]


def _job(job: Job) -> Mapping[str, object]:
    return {
        "job": job.id,
        "model": job.wanted.model,
        "state": job.state,
        "done": job.done,
        "of": job.of,
        "number": job.number,
        "tier": job.tier,
        "taken_over": job.taken_over,
        "lost": job.lost,
        "problem": job.problem,
    }


def _standing(listed: Listed) -> Mapping[str, object]:
    return {
        "number": listed.record.number,
        "state": listed.state,
        "replaced_by": listed.by,
        "changed": list(listed.changed),
        "used": listed.used,
    }


def _brief(listed: Listed) -> Mapping[str, object]:
    document: Any = record_document(listed.record)
    return {
        name: value
        for name, value in document.items()
        if name not in ("samples", "pairs", "failed_tries")
    }


def _model_of(request: Request, listed: Listed) -> str | None:
    """Return the address of the judge's model; None for a judge that no run has used."""
    ref = listed.record.identity.model
    return model_address(ref) if judging_of(request).models.knows(ref) else None


def _row(listed: Listed) -> Mapping[str, object]:
    record = listed.record
    document: Any = record.document
    face = document.get("tier_at_face_value")
    corrected = document.get("corrections", {}).get("n", 0)
    return {
        "number": record.number,
        "href": f"/calibration/{record.number}",
        "model": record.identity.model,
        "tier": record.tier.words,
        "good": record.tier.value in ("good", "excellent"),
        "face": f"{str(face).replace('_', ' ')} ignoring uncertainty"
        if face and face != record.tier.value
        else None,
        "state": listed.state,
        "said": _said(listed),
        "by": f"/calibration/{listed.by}" if listed.by else None,
        "n": count(int(document.get("n", 0))),
        "corrected": plural(
            corrected, "including 1 corrected grade", f"including {corrected} corrected grades"
        )
        if corrected
        else None,
        "mae": _figure("mae", document["mae"]) if "mae" in document else None,
        "pass_rate": _figure("pass_rate", document["pass_rate"])
        if "pass_rate" in document
        else None,
        "as_in": f"graded as in {document.get('settings_of', '')}",
        "at": time_element(record.at),
        "version": f"version {record.version}",
    }


def _said(listed: Listed) -> str:
    if listed.state == "out_of_date":
        return f"out of date: the newest run uses a different {' and '.join(listed.changed)}"
    return _STATES["unused" if listed.state == "current" and not listed.used else listed.state]


def _figure(name: str, figure: Any) -> Mapping[str, object]:
    if figure["value"] is None:
        return {
            "value": None,
            "reason": _REASONS.get(figure["reason"], "not measured"),
            "range": "",
            "n": "",
        }
    ranged = figure["ci95"]
    bare = _number(name, figure["value"])
    return {
        "value": bare if name in _SHARES or name in _RATIOS else f"{bare} points",
        "range": "no range"
        if ranged is None
        else f"95% range {_number(name, ranged[0])} to {_number(name, ranged[1])}",
        "n": f"of {figure['n']}",
        "reason": "",
    }


def _number(name: str, value: float) -> str:
    if name in _SHARES:
        return f"{100 * value:.0f}%"
    if name in _RATIOS:
        return f"{value:.2f}".replace("-", "−")
    points = round(100 * value, 1)
    return (
        f"{points:.1f}" if name in _UNSIGNED or not points else f"{points:+.1f}".replace("-", "−")
    )


def _sample(sample: Any) -> Mapping[str, object]:
    given = "not asked" if sample["bypassed"] else "not readable"
    if sample["judged"] is not None:
        given = f"{100 * sample['judged']:.0f}"
    error = sample["error"]
    return {
        "id": sample["id"],
        "href": f"/assessments/{sample['id']}" if sample["source"] == "correction" else None,
        "kind": "A person corrected it"
        if sample["source"] == "correction"
        else str(sample["kind"]).replace("_", " "),
        "deserves": f"{100 * sample['expected']:.0f}",
        "given": given,
        "error": ""
        if error is None
        else f"{round(100 * error):+d}".replace("-", "−")
        if round(100 * error)
        else "0",
        "passed": None if sample["bypassed"] else sample["passed"],
        "texts": [(title, sample[name]) for name, title in _TEXTS.items() if sample.get(name)],
    }
