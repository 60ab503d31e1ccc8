"""Pages about a run's record, the differences between two runs, and a suite's trend over time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request, Response
from markupsafe import Markup
from starlette.responses import RedirectResponse

from assay.app.recorded_settings import graded_rubric
from assay.app.registry import run_diff, run_record, trend
from assay.app.registry.record_documents import dossier_document
from assay.app.statistics import charts
from assay.app.statistics.results import wording
from assay.domain.answer_rows import AnswerColumn
from assay.domain.errors import InputError
from assay.domain.identifiers import RunId
from assay.domain.selection import Selection
from assay.domain.specialists import SPECIALIST, specialist_prompts
from assay.domain.suite import CandidateSpec, scale_in_words
from assay.domain.unescaped_json import unescaped_json
from assay.web.context import services_of
from assay.web.links import shown_column
from assay.web.pages.candidates import address_of, task_address
from assay.web.responses import Answer, chart_file, download
from assay.web.safe_text import visible
from assay.web.templating import page_of
from assay.web.texts import WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from assay.app.registry.run_diff import RunDiff, SetUp, TaskChange
    from assay.app.registry.run_record import Dossier
    from assay.app.registry.trend import Trend

SET_UP_SHOWN: Final = 300
TASKS_SHOWN: Final = 200
LINES_SHOWN: Final = 200
RUNS_OF_TREND: Final = 40
_PARTS: Final = WORDS["record_parts"]
"""Sections of the record page by kind of difference."""

_SETTING: Final = re.compile(r", (thing|weight|tags|language|family|scoring|trials)$")

router = APIRouter(include_in_schema=False)

_ELSEWHERE: Final = frozenset({"regrades", "batch", "Assay", "Python", "machine", "libraries"})
_KIND_WORDS: Final = WORDS["record_kinds"]


# --- the record of a run


@router.get("/runs/{run_id}/record.json")
def record_twin(request: Request, run_id: str) -> Response:
    workspace = services_of(request).workspace
    dossier = run_record.dossier(workspace.store, workspace.results, run_id)
    return Answer(dossier_document(dossier))


@router.get("/runs/{run_id}/record")
def record_page(request: Request, run_id: str) -> Response:
    """Show the record of a run: its set-up, environment, models and files."""
    workspace = services_of(request).workspace
    dossier = run_record.dossier(workspace.store, workspace.results, run_id)
    run = dossier.provenance.summary.id
    return page_of(
        request,
        "registry/record.html",
        title=f"Record of {visible(dossier.provenance.summary.suite)}",
        twin=f"/runs/{quote(run, safe='')}/record.json",
        run=run,
        **_record_parts(dossier),
    )


@router.get("/runs/{run_id}/suite")
def suite_file(request: Request, run_id: str) -> Response:
    """Return the run's copy of its suite file."""
    name, text = run_record.suite_copy(services_of(request).workspace.store, run_id)
    return download(text, name or "suite", "text/plain; charset=utf-8")


def _record_parts(dossier: Dossier) -> Mapping[str, Any]:
    plan, summary = dossier.provenance.plan, dossier.provenance.summary
    called = dict(zip((c.name for c in plan.candidates), summary.candidates, strict=False))
    asked = dossier.record["asked_with"]
    imported = plan.environment.get("imported")
    originals = imported.get("originals") if isinstance(imported, dict) else None
    return {
        "facts": [
            ("configuration digest", dossier.config),
            *((name, visible(value)) for name, value in dossier.facts if name not in _ELSEWHERE),
        ],
        "batch": None
        if summary.batch_id is None
        else (visible(summary.batch_id), f"/batches/{quote(summary.batch_id, safe='')}"),
        "source": {
            "kind": dossier.source.kind,
            "from": visible(dossier.source.detail),
            "format": visible(dossier.source.format),
            "run": f"/runs/{quote(dossier.source.detail, safe='')}/record",
            "originals": [
                {
                    "name": visible(str(file.get("name"))),
                    "sha256": str(file.get("sha256")),
                    "copy": visible(str(file.get("copy") or "")),
                }
                for file in (originals if isinstance(originals, list) else ())
                if isinstance(file, dict)
            ],
        },
        "candidates": [
            {
                "name": visible(called.get(c.name, c.name)),
                "open": address_of(called.get(c.name, c.name)),
                "written": visible(c.name) if called.get(c.name, c.name) != c.name else None,
                "model": visible(asked[c.name]["model"]) if c.name in asked else None,
                "base_url": visible(asked[c.name]["base_url"] or "") if c.name in asked else "",
                "parameters": visible(_pairs(asked[c.name]["parameters"]))
                if c.name in asked
                else "",
                "metadata": visible(
                    _pairs(
                        {name: value for name, value in c.metadata.items() if name != SPECIALIST}
                    )
                ),
                "prompts": [(role, visible(text)) for role, text in _templates(c)],
            }
            for c in plan.candidates
        ],
        "judges": [
            {
                "name": visible(judge.name),
                "model": visible(judged["model"]),
                "mode": judged["mode"],
                "base_url": visible(judged["base_url"] or ""),
                "parameters": visible(_pairs(judged["parameters"])),
                "digest": judged["prompt_digest"],
                "prompt": None if judge.prompt is None else visible(judge.prompt),
            }
            for judge in plan.judges
            for judged in (dossier.record["judged_with"][judge.name],)
        ],
        "rubric": [
            {
                "name": visible(c.name),
                "weight": c.weight,
                "scale": scale_in_words(c.low, c.high),
                "guidance": visible(c.guidance),
            }
            for c in graded_rubric(plan, summary).criteria
        ],
        "models": [{name: visible(value) for name, value in row.items()} for row in dossier.models],
        "environment": [(visible(name), visible(value)) for name, value in dossier.environment],
        "protocols": [
            {
                "said": wording.protocol(
                    {"policy": str(plan.policy), **version.protocol.as_json()}
                    # What the review achieved, it achieved under all versions; only the newest one
                    # is compared with it.
                    | (
                        {"achieved": dossier.achieved.as_json()}
                        if version is dossier.protocols[-1]
                        else {}
                    )
                ),
                "at": version.at,
                "reviewer": visible(version.reviewer),
            }
            for version in dossier.protocols
        ],
        "attention": wording.attention(dossier.attention),
        "files": [{"path": visible(file.path), "size": file.size} for file in dossier.files],
        "copy": {
            "name": visible(plan.copy.path.rpartition("/")[2]),
            "digest": plan.copy.digest,
            "size": len(plan.copy.text),
        },
    }


def _templates(candidate: CandidateSpec) -> Iterator[tuple[str, str]]:
    if candidate.system_prompt is not None:
        yield "system", candidate.system_prompt
    if candidate.prompt is not None:
        yield "user", candidate.prompt
    yield from ((message.role, message.content) for message in candidate.messages)
    yield from (
        (f"{SPECIALIST}, {task}", text) for task, text in specialist_prompts(candidate).items()
    )


def _pairs(values: Any) -> str:
    return ", ".join(
        f"{name} {value if isinstance(value, str) else unescaped_json(value)}"
        for name, value in values.items()
    )


# --- two runs


@router.get("/registry/diff.json")
def diff_twin(request: Request, a: str = "", b: str = "") -> Response:
    """Return the differences of two runs as JSON, like `assay diff`."""
    return Answer(run_diff.diff_document(_diff(request, a, b)))


class DiffContext(TypedDict):
    """Values of `registry/diff.html`."""

    a: str
    b: str
    turned: str
    set_up: Sequence[object]
    more: int
    same: Sequence[object]
    shared: int
    candidates: Sequence[Mapping[str, object]]
    more_tasks: int
    statistics: str


@router.get("/registry/diff")
def diff_page(request: Request, a: str = "", b: str = "") -> Response:
    """Show the differences of two runs in set-up and results; without runs, redirect to the list of
    runs.
    """
    if not (a or b):
        return RedirectResponse("/runs", status_code=303)
    difference = _diff(request, a, b)
    before, after = difference.before, difference.after
    shown = difference.set_up[:SET_UP_SHOWN]
    workspace = services_of(request).workspace
    suites = [
        workspace.archive.runs.matching(Selection(runs=(run,)))[0].suite for run in (before, after)
    ]
    tasks = sum(len(change.by_task) for change in difference.changes)
    return page_of(
        request,
        "registry/diff.html",
        twin=f"/registry/diff.json?{urlencode({'a': before, 'b': after})}",
        **DiffContext(
            a=before,
            b=after,
            turned=f"/registry/diff?{urlencode({'a': after, 'b': before})}",
            set_up=[_difference(line, difference, suites) for line in shown],
            more=len(difference.set_up) - len(shown),
            same=[_KIND_WORDS[kind] for kind in difference.same],
            shared=difference.shared_tasks,
            candidates=_changes(difference),
            more_tasks=max(0, tasks - TASKS_SHOWN * len(difference.changes)),
            statistics=f"/results?{urlencode([('run', before), ('run', after)])}",
        ),
    )


def _diff(request: Request, a: str, b: str) -> RunDiff:
    if not a or not b:
        raise InputError("a" if not a else "b", "is not a run.", remedy="Select two runs in /runs.")
    return run_diff.diff(services_of(request).workspace.store, a, b)


def _difference(set_up: SetUp, run_diff: RunDiff, suites: list[str]) -> Mapping[str, object]:
    return {
        "kind": _KIND_WORDS[set_up.kind],
        "name": visible(set_up.name),
        "before": None if set_up.lines else _shown(set_up.before),
        "after": None if set_up.lines else _shown(set_up.after),
        "lines": [
            {"text": visible(line), "class": {"+": "added", "-": "gone"}.get(line[:1], "")}
            # The first two lines of a unified diff name the files.
            for line in set_up.lines[2 : LINES_SHOWN + 2]
        ],
        "cut": len(set_up.lines) > LINES_SHOWN + 2,
        "open": [
            _about(run, suite, set_up)
            for run, suite in zip((run_diff.before, run_diff.after), suites, strict=True)
        ],
    }


def _about(run: str, suite: str, set_up: SetUp) -> str:
    if set_up.kind == "task":
        return task_address(suite, _SETTING.sub("", set_up.name))
    return f"/runs/{quote(run, safe='')}/record#{_PARTS.get(set_up.kind, 'plan')}"


def _shown(value: Any) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else unescaped_json(value)
    return visible(text if len(text) <= 400 else f"{text[:400]}…")


def _changes(run_diff: RunDiff) -> list[Mapping[str, object]]:
    return [
        {
            "name": visible(change.candidate),
            "open": address_of(change.candidate),
            "sentence": visible(change.sentence.removeprefix(f"{change.candidate}: ")),
            "decision": (
                "not_decided" if change.measured_differently else change.comparison.decision
            ),
            "beside": _beside(run_diff, change.candidate),
            "tasks": [
                _task(task, change.candidate, run_diff) for task in change.by_task[:TASKS_SHOWN]
            ],
        }
        for change in run_diff.changes
    ]


def _beside(run_diff: RunDiff, candidate: str) -> str:
    columns = [
        AnswerColumn(run=RunId(run), candidate=candidate)
        for run in (run_diff.before, run_diff.after)
    ]
    return f"/compare?{urlencode([('col', shown_column(column)) for column in columns])}"


def _task(task_change: TaskChange, candidate: str, run_diff: RunDiff) -> Mapping[str, object]:
    return {
        "task": visible(task_change.task),
        "open": [
            f"/statistics/trials?{urlencode({'run': run, 'task': task_change.task, 'candidate': candidate})}"
            for run in (run_diff.before, run_diff.after)
        ],
        "before": wording.number(task_change.before),
        "after": wording.number(task_change.after),
        "points": wording.signed(task_change.difference),
        "range": "not enough trials"
        if task_change.ci95 is None
        else wording.difference_range(task_change.ci95),
    }


# --- one suite over time


Newest = Annotated[int, Query(ge=2, le=500)]
Names = Annotated[tuple[str, ...], Query()]


@router.get("/results/trend.json")
def trend_twin(
    request: Request, suite: str = "", candidate: Names = (), last: Newest = RUNS_OF_TREND
) -> Response:
    """Return a suite's trend as JSON, like `assay trend`."""
    return Answer(trend.trend_document(_trend(request, suite, candidate, last)))


class TrendContext(TypedDict):
    """Values of `registry/trend.html`."""

    suite: str
    figure_: dict[str, object]
    rows: Sequence[Mapping[str, object]]
    changes: Sequence[object]
    runs: int
    full: bool
    last: int
    asked: Sequence[object]
    only: Sequence[object]
    every: str
    registry: str


@router.get("/results/trend")
def trend_page(
    request: Request, suite: str = "", candidate: Names = (), last: Newest = RUNS_OF_TREND
) -> Response:
    """Show one suite over time: each candidate's score in each of its newest runs."""
    history = _trend(request, suite, candidate, last)
    chart = trend.trend_chart(history)
    linked = charts.with_links(chart, lambda row: f"/runs/{quote(str(row['run']), safe='')}")
    pairs = {"suite": suite, "candidate": candidate, "last": () if last == RUNS_OF_TREND else last}
    address = urlencode(pairs, doseq=True)
    changes = trend.changes_in_words(history)
    figure = {
        "kind": "trend",
        "title": visible(chart.title),
        "about": chart.about,
        "rows": len(chart.rows),
        "drawing": Markup(charts.drawn(linked)),
        "files": [
            (ending.upper(), f"/results/trend/chart.{ending}?{address}")
            for ending in charts.endings()
        ],
    }
    names = sorted({point.candidate for point in history.points}, key=str.casefold)
    every = f"/results/trend?{urlencode({'suite': suite})}"
    return page_of(
        request,
        "registry/trend.html",
        title=f"{visible(history.suite)} over time",
        twin=f"/results/trend.json?{address}",
        **TrendContext(
            suite=visible(history.suite),
            figure_=figure,
            rows=_points(history),
            changes=[visible(sentence) for sentence in changes],
            runs=history.runs,
            full=history.runs == last,
            last=last,
            asked=[visible(name) for name in candidate],
            only=[
                {"name": visible(name), "open": f"{every}&{urlencode({'candidate': name})}"}
                for name in names
            ],
            every=every,
            registry=f"/runs?{urlencode({'suite': history.suite})}",
        ),
    )


@router.get("/results/trend/chart.{ending}")
def trend_file(
    request: Request,
    ending: str,
    suite: str,
    candidate: Names = (),
    last: Newest = RUNS_OF_TREND,
    dark: bool = False,
) -> Response:
    """Return the trend's chart, or its table."""
    chart = trend.trend_chart(_trend(request, suite, candidate, last))
    return chart_file(chart, "assay-trend", ending, dark=dark)


def _trend(request: Request, suite: str, candidates: tuple[str, ...], last: int) -> Trend:
    if not suite:
        raise InputError(
            "suite", "is missing.", remedy="Write ?suite=NAME; /runs lists the suites."
        )
    return trend.trend(
        services_of(request).workspace.store, suite, candidates=candidates, newest=last
    )


def _points(history: Trend) -> list[Mapping[str, object]]:
    """Return the trend as table rows, newest first, with the change since the candidate's previous
    run.
    """
    rows: list[Mapping[str, object]] = []
    before: dict[str, float] = {}
    for point in history.points:
        mean, ci95 = point.estimate.mean or 0.0, point.estimate.ci95
        known = before.get(point.candidate)
        before[point.candidate] = mean
        rows.append(
            {
                "candidate": visible(point.candidate),
                "open": address_of(point.candidate),
                "run": point.run,
                "run_page": f"/runs/{quote(point.run, safe='')}",
                "started": point.started,
                "mean": wording.number(mean),
                "range": "not enough trials" if ci95 is None else wording.range_words(ci95),
                "change": "" if known is None else wording.signed(mean - known),
                "trials": point.estimate.n_trials,
                "measured": None
                if known is None
                else ", ".join(f"different {part}" for part in point.changed),
                "differences": visible(point.difference_words),
            }
        )
    return rows[::-1]
