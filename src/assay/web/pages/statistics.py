"""The page Results, the quality of the review, and single trials.

All numbers come from `app.statistics`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from markupsafe import Markup
from starlette.responses import RedirectResponse

from assay.app.registry import runs as registry
from assay.app.review import decisions
from assay.app.statistics import charts, csv_tables, statistics_documents
from assay.app.statistics.live_report import StatisticsDetails, StatisticsOverview, trials_behind
from assay.app.statistics.results import by_verdict
from assay.app.statistics.run_choice import choose
from assay.domain.errors import UnknownName
from assay.domain.run_choice import RunChoice
from assay.domain.selection import RunSummary, Selection
from assay.web.context import services_of
from assay.web.formatting import plural
from assay.web.pages.statistics_parts import behind_parts, first_parts, matrix_part, trial_parts
from assay.web.pages.statistics_query import FILTERS, SWITCHES, StatisticsQuery
from assay.web.query_params import known, reads, whole, within
from assay.web.responses import CSV, Answer, chart_file, download
from assay.web.templating import page_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.app.statistics.charts import Chart

TRIALS_SHOWN: Final = 100
_PICKED: Final = 30  # maximum number of suites and runs in the picker; the list of runs shows all
_NARROWING: Final = (
    "task",
    "tag",
    "language",
    "criterion",
    "judge",
    "a",
    "b",
    "scope",
    "margin",
    "family_by",
)
# maximum number of runs, judges and so on in the form; others can be typed into the address
_CHOICES: Final = 200

_REPORTS: Final = {
    "html": ("html", "text/html; charset=utf-8"),
    "md": ("markdown", "text/markdown; charset=utf-8"),
    "csv": ("csv", CSV),
    "parquet": ("parquet", "application/vnd.apache.parquet"),
}
"""Export format and media type of each file under Download."""
_COMPARED: Final = ("a", "b", "scope", "margin", "family_by")

router = APIRouter(include_in_schema=False)


@router.get("/statistics")
@reads(*FILTERS, *SWITCHES, *_COMPARED, "from")
def statistics_address(request: Request) -> Response:
    """Redirect to Results, whose address this was before."""
    query = request.url.query
    return RedirectResponse("/results" + (f"?{query}" if query else ""), status_code=303)


@router.get("/results")
@reads(*FILTERS, *SWITCHES, *_COMPARED)
def results_page(
    request: Request, start: Annotated[int, Query(ge=0, le=10**9, alias="from")] = 0
) -> Response:
    """Show the verdict, all candidates, pairs and the matrix of tasks of the newest run, or of the
    runs that the address names.
    """
    asked = StatisticsQuery(request)
    if asked.names_no_runs:
        # The links of the page stay in this suite if a run of another one starts meanwhile.
        newest = services_of(request).workspace.archive.runs.matching(asked.selection, limit=1)
        asked.filters["suite"] = tuple(run.suite for run in newest)
    overview = services_of(request).overviews.of(asked.selection, asked.pair)
    within("from", start, len(overview.tasks))
    summaries = registry.runs(services_of(request).workspace.store, limit=_CHOICES)
    return page_of(
        request,
        "statistics/results.html",
        twin=asked.address("/statistics.json"),
        **first_parts(overview, asked),
        matrix=matrix_part(overview, asked, start),
        form=_form(summaries, asked, overview),
        picker=_picker(summaries, asked, overview),
        files=_files(asked),
        tables=_tables(asked),
    )


@router.get("/results/report.{ending}")
@reads(*FILTERS, *SWITCHES)
def report_file(request: Request, ending: str) -> Response:
    """Return the report of the selected runs as HTML or Markdown, or their scores as CSV or
    Parquet, like `assay export`.
    """
    name = known("format", ending, _REPORTS)
    form, kind = _REPORTS[name]
    file = services_of(request).exports.file(form, StatisticsQuery(request).selection)
    return download(file.chunks(), f"assay-results.{name}", kind)


@router.get("/statistics/behind.json")
@router.get("/results.json")
@router.get("/statistics.json")
@reads(*FILTERS, *SWITCHES, *_COMPARED)
def statistics_twin(request: Request) -> Response:
    """Return both pages as JSON: the documents of `assay stats`, `assay rank` and `assay compare`,
    with their filters.
    """
    asked = StatisticsQuery(request)
    overviews = services_of(request).overviews
    first, behind = (
        overviews.of(asked.selection, asked.pair),
        overviews.behind(asked.selection, asked.pair),
    )
    return Answer(_document(asked, first, behind))


class StatisticsDetailsContext(TypedDict):
    """Values of `statistics/statistics_details.html`."""

    figures: Sequence[object]
    filters: Sequence[tuple[str, str]]
    results: str
    behind: str
    matrix_trials: str
    grades: str
    tables: dict[str, str]


@router.get("/statistics/behind")
@reads(*FILTERS, *SWITCHES, *_COMPARED)
def behind_page(request: Request) -> Response:
    """Show the details behind the numbers: fair play, agreement, calibration, coverage, partial
    review, single trials.
    """
    asked = StatisticsQuery(request)
    if by_verdict(asked.selection):
        # The details are about scores, in which verdicts are no criterion.
        return RedirectResponse(
            asked.address("/statistics/behind", criterion=None), status_code=303
        )
    overviews = services_of(request).overviews
    first, details = (
        overviews.of(asked.selection, asked.pair),
        overviews.behind(asked.selection, asked.pair),
    )
    return page_of(
        request,
        "statistics/statistics_details.html",
        twin=asked.address("/statistics/behind.json"),
        **behind_parts(first, details, asked),
        boot={"page": "behind"},
        **StatisticsDetailsContext(
            figures=[_figure(asked, details.scores)],
            filters=asked.pairs(),
            results=asked.address("/results"),
            behind=asked.address("/statistics/behind"),
            matrix_trials=asked.address("/statistics/trials"),
            grades=_grades(asked),
            tables=_tables(asked),
        ),
    )


def _tables(asked: StatisticsQuery) -> dict[str, str]:
    return {name: asked.address(f"/statistics/tables/{name}.csv") for name in csv_tables.TABLES}


def _grades(asked: StatisticsQuery) -> str:
    filters = {name: asked.filters[name] for name in ("run", "judge", "task", "criterion")}
    narrowed = {name: values[0] for name, values in filters.items() if len(values) == 1}
    return "/compare/grades?" + urlencode(
        {"by": "people", **(narrowed if "run" in narrowed else {})}
    )


def _number(request: Request) -> int | None:
    trial = request.query_params.get("trial")
    return whole("trial", trial, low=1, high=1_000_000) if trial else None


def _candidate(request: Request, asked: StatisticsQuery) -> str | None:
    asked_name = request.query_params.get("candidate")
    if not asked_name:
        return None
    archive, selection = services_of(request).workspace.archive, _chosen(request, asked)
    names = [name for run in archive.runs.matching(selection) for name in run.candidates]
    if asked_name in names or asked_name in archive.scores.candidates(selection):
        return asked_name
    return known("candidate", asked_name, names)


def _chosen(request: Request, asked: StatisticsQuery) -> Selection:
    """Return the selection with the same runs as the page Results."""
    return choose(services_of(request).workspace.store, asked.selection, asked.a, asked.b).selection


class _Trials:
    def __init__(self, request: Request, start: int) -> None:
        self.asked, archive = StatisticsQuery(request), services_of(request).workspace.archive
        self.candidate, self.number = _candidate(request, self.asked), _number(request)
        which: dict[str, Any] = {"candidate": self.candidate, "number": self.number}
        selection = _chosen(request, self.asked)
        rows, self.more = trials_behind(
            services_of(request).workspace.store,
            selection,
            **which,
            start=start,
            limit=TRIALS_SHOWN,
        )
        if start and not rows:
            # Counted only for a page beyond the last one, because counting reads every trial.
            within("from", start, sum(1 for _ in archive.trials.matching(selection, **which)))
        self.parts = trial_parts(rows, self.asked, self.candidate)

    def address(self, start: int, path: str = "/statistics/trials") -> str:
        state = {"candidate": self.candidate, "trial": self.number, "from": start or None}
        return self.asked.address(path, **state)


@router.get("/statistics/trials.json")
@reads(*FILTERS, *SWITCHES, *_COMPARED, "candidate", "trial")
def trials_twin(
    request: Request, start: Annotated[int, Query(ge=0, le=10**9, alias="from")] = 0
) -> Response:
    trials = _Trials(request, start)
    after = trials.address(start + TRIALS_SHOWN, "/statistics/trials.json") if trials.more else None
    return Answer(
        {"candidates": trials.parts["candidates"], "trials": trials.parts["rows"], "next": after}
    )


@router.get("/statistics/trials")
@reads(*FILTERS, *SWITCHES, *_COMPARED, "candidate", "trial")
def trials_page(
    request: Request, start: Annotated[int, Query(ge=0, le=10**9, alias="from")] = 0
) -> Response:
    """Show the trials behind a number, each with its scores and a link to its assessment."""
    trials = _Trials(request, start)
    asked = trials.asked
    return page_of(
        request,
        "statistics/trials.html",
        twin=trials.address(start, "/statistics/trials.json"),
        **trials.parts,
        number=trials.number,
        earlier=trials.address(max(start - TRIALS_SHOWN, 0)) if start else None,
        later=trials.address(start + TRIALS_SHOWN) if trials.more else None,
        results=asked.address("/results"),
        behind=asked.address("/statistics/behind"),
        matrix_trials=asked.address("/statistics/trials"),
        boot={"page": "trials"},
    )


@router.get("/statistics/trials/{trial_id}")
def one_trial(
    request: Request, trial_id: str, candidate: str | None = None, judge: str | None = None
) -> Response:
    """Redirect to a trial's assessment."""
    key, archive = decisions.trial_key(trial_id), services_of(request).workspace.archive
    row = (
        None
        if key is None
        else next(archive.assessments.matching(Selection(), trial=key, limit=1), None)
    )
    if row is None:
        raise UnknownName("trial", trial_id)
    query = urlencode(
        {name: value for name, value in (("candidate", candidate), ("judge", judge)) if value}
    )
    return RedirectResponse(
        f"/runs/{row.run_id}/trials/{trial_id}" + (f"?{query}" if query else ""), status_code=303
    )


@router.get("/statistics/charts/{name}")
@reads(*FILTERS, *SWITCHES, *_COMPARED)
def statistics_chart(request: Request, name: str, dark: bool = False) -> Response:
    """Return a chart as `.svg`, `.png`, `.csv` (its table) or `.json` (title and rows)."""
    kind, _, ending = name.rpartition(".")
    if kind not in charts.KINDS:
        raise UnknownName("chart", name, remedy=f"Kinds: {', '.join(charts.KINDS)}.")
    asked = StatisticsQuery(request)
    overviews, selection = services_of(request).overviews, asked.selection
    if kind == "scores":
        chart = overviews.behind(selection, asked.pair).scores
    else:
        overview = overviews.of(selection, asked.pair)
        chart = charts.chart_of_report(overview.report, kind, overview.read)
    return chart_file(chart, f"assay-{kind}", ending, dark=dark)


@router.get("/statistics/tables/{name}.csv")
@reads(*FILTERS, *SWITCHES, *_COMPARED)
def table_file(request: Request, name: str) -> Response:
    """Return one table of the page as CSV."""
    name = known("table", name, csv_tables.TABLES)
    asked, overviews = StatisticsQuery(request), services_of(request).overviews
    if csv_tables.needs_every_row(name):
        body = csv_tables.details_csv(name, overviews.behind(asked.selection, asked.pair))
    else:
        body = csv_tables.tasks_csv(overviews.of(asked.selection, asked.pair))
    return download(body, f"assay-{name}.csv", CSV)


def _address_of(kind: str, row: Any, asked: StatisticsQuery) -> str:
    match kind:
        case "pairs":
            return asked.address("/results", a=row["row"], b=row["column"])
        case "scores":
            judges = asked.filters["judge"]
            query = {
                "candidate": row["candidate"],
                **({"judge": judges[0]} if len(judges) == 1 else {}),
            }
            return f"/statistics/trials/{row['trial']}?{urlencode(query)}"
        case _:
            return asked.address("/statistics/trials", candidate=row["candidate"])


def _files(asked: StatisticsQuery) -> list[tuple[str, str]]:
    named = {"forest": "Scores", "pairs": "Pairs", "ranks": "Ranks", "scores": "Single trials"}
    reports = {
        "html": "Report (HTML)",
        "md": "Report (Markdown)",
        "csv": "Scores (CSV)",
        "parquet": "Scores (Parquet)",
    }
    all_pairs = dict.fromkeys(("a", "b", "scope", "margin", "family_by"))
    return [
        (name, asked.address(f"/results/report.{ending}", **all_pairs))
        for ending, name in reports.items()
    ] + [
        (
            f"Chart of {name.lower()} ({ending.upper()})",
            asked.address(f"/statistics/charts/{kind}.{ending}"),
        )
        for kind, name in named.items()
        for ending in charts.endings()
    ]


def _picker(
    summaries: Sequence[RunSummary], asked: StatisticsQuery, overview: StatisticsOverview
) -> Mapping[str, object]:
    """Return the suites and runs to choose from, newest first, and labels for the current
    choice.
    """
    suites = tuple(dict.fromkeys(summary.suite for summary in summaries))
    here = {summary.suite for summary in summaries if summary.id in overview.runs}
    runs = [summary for summary in summaries if summary.suite in here]
    no_pair = dict.fromkeys(("a", "b", *SWITCHES))
    return {
        "suite": ", ".join(sorted(here)) or "No suite",
        "suites": [(name, f"/results?{urlencode({'suite': name})}") for name in suites[:_PICKED]],
        "run": _runs_label(overview),
        "runs": [
            (summary.id, summary.started, asked.address("/results", **no_pair, run=summary.id))
            for summary in runs[:_PICKED]
        ],
        "all_runs": asked.address("/results", run=None, suite=next(iter(here)), all_runs=1)
        if len(here) == 1
        else None,
    }


def _runs_label(overview: StatisticsOverview) -> str:
    n = len(overview.runs)
    if n == 1:
        return f"run {overview.runs[0][-4:]}"
    return (
        f"all {n} runs"
        if overview.read.choice is RunChoice.ALL
        else plural(n, "1 run", f"{n} runs")
    )


def _figure(asked: StatisticsQuery, chart: Chart) -> Mapping[str, object]:
    linked = charts.with_links(chart, lambda row: _address_of(chart.kind, row, asked))
    return {
        "kind": chart.kind,
        "title": chart.title,
        "about": chart.about
        if chart.every is None
        else f"{chart.about} The CSV lists every trial.",
        "drawing": Markup(charts.drawn(linked)),
        "files": [
            (end.upper(), asked.address(f"/statistics/charts/{chart.kind}.{end}"))
            for end in charts.endings()
        ],
        "rows": len(chart.rows),
    }


def _form(
    summaries: Sequence[RunSummary], asked: StatisticsQuery, overview: StatisticsOverview
) -> Mapping[str, object]:
    """Return the current filters, each with the address that removes it, and the filters that may
    be added.
    """
    kept = [(name, value) for name in FILTERS for value in asked.filters[name]]
    return {
        "active": [
            {"name": name, "value": value, "remove": asked.without(name, value)}
            for name, value in kept
        ],
        "choices": {
            "run": [summary.id for summary in summaries],
            "suite": sorted({summary.suite for summary in summaries}),
            "batch_id": sorted({summary.batch_id for summary in summaries if summary.batch_id}),
            "judge": sorted({judge for summary in summaries for judge in summary.judges}),
            "task": sorted({label.task for label in overview.tasks.values()})[:_CHOICES],
            **{name: [] for name in ("criterion", "tag", "language")},
        },
        "scope": asked.scope,
        "margin": asked.margin,
        "family_by": asked.family_by,
        "names": [str(candidate.candidate) for candidate in overview.report.ranking.candidates],
        "a": str(overview.contrast.a) if overview.contrast else "",
        "b": str(overview.contrast.b) if overview.contrast else "",
        "kept": [*kept, *((name, "1") for name, on in asked.switches.items() if on)],
        "chosen": bool(asked.a or asked.b),
        "narrowed": any(asked.filters[name] for name in _NARROWING if name in asked.filters),
        "clear": asked.address("/results", **dict.fromkeys(_NARROWING)),
    }


def _document(
    asked: StatisticsQuery, first: StatisticsOverview, behind: StatisticsDetails
) -> Mapping[str, object]:
    return {
        "filters": {name: list(values) for name, values in asked.filters.items() if values},
        "stats": statistics_documents.scores_document(behind.standing),
        "rank": statistics_documents.ranking_document(behind.ranks),
        "compare": None
        if behind.contrast is None
        else statistics_documents.comparison_document(behind.contrast),
        "protocols": [dict(protocol) for protocol in first.protocols],
        "incomplete": dict(first.incomplete),
        "read": {"at": behind.read_at, "event": behind.newest, "decisions_since": behind.since},
    }
