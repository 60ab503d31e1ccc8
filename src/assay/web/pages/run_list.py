"""The list of runs.

The page's address contains search, filters, order and position, so that any view can be bookmarked.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, ClassVar, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import RedirectResponse

from assay.app.registry import runs
from assay.app.runs import suite_files
from assay.app.runs.rubric_choices import rubric_choices
from assay.domain.errors import InputError
from assay.domain.lifecycle import AssessmentState
from assay.domain.run_list import FAILS, WAITS, Facet, RunFilter, RunOrder
from assay.domain.selection import Selection
from assay.web.context import reviewer_of, services_of
from assay.web.query_params import PageQuery, reads
from assay.web.responses import Answer
from assay.web.run_rows import LiveRunDocument, approvals_of_runs, looked_at
from assay.web.safe_text import visible
from assay.web.templating import page_of
from assay.web.texts import t

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FILTERS: Final = ("q", "suite", "batch", "candidate", "state")
SHOWN: Final = 50
NEW_VERDICTS: Final = 6
"""Maximum number of verdicts computed before the page is sent; its script requests the rest."""

NAMED: Final = (
    (WAITS, "Waiting for me"),
    (FAILS, "With failures"),
    ("running", "Running"),
    ("archived", "Archived"),
)
"""Named filters: the state as in the address, and the label."""

router = APIRouter(include_in_schema=False)


class RunListQuery(PageQuery):
    """Search, filters and order of the page, and the run before which its list begins."""

    PASSING: ClassVar[tuple[str, ...]] = ("before",)

    q: str = ""
    suite: str = ""
    batch: str = ""
    candidate: str = ""
    state: str = ""
    sort: RunOrder = RunOrder.NEWEST
    before: str = ""

    @property
    def filters(self) -> dict[str, str]:
        """The filters that are set."""
        return self.model_dump(include={*FILTERS}, exclude_defaults=True)

    @property
    def filter(self) -> RunFilter:
        return RunFilter(
            suite=self.suite or None,
            batch_id=self.batch or None,
            candidate=self.candidate or None,
            state=self.state or None,
            text=self.q,
        )


@router.get("/")
@router.get("/runs")
def run_list_page(request: Request, wanted: Annotated[RunListQuery, Query()]) -> Response:
    """Show runs with their review, verdict and cost; if the store is empty, show the steps to a
    first run.
    """
    services = services_of(request)
    rows, older = _rows(request, wanted, new_verdicts=NEW_VERDICTS)
    narrowed = bool(wanted.filters or wanted.before)
    empty = not rows and not narrowed
    facets = {} if empty else services.workspace.register.facets(RunFilter())
    waiting = _waiting(request)
    twin = wanted.address("/runs.json", RunListQuery(before=wanted.before))
    boot = {
        "live": not wanted.before,
        "whole": not narrowed and wanted.sort is RunOrder.NEWEST,
        "twin": twin,
        "rubrics": rubric_choices() if empty else [],
    }
    return page_of(
        request,
        "start/onboarding.html" if empty else "runs/runs.html",
        twin=twin,
        rows=rows,
        older=None if older is None else wanted.address("/runs", RunListQuery(before=older)),
        newest=wanted.address("/runs") if wanted.before else None,
        waiting=waiting,
        others=_others(request) if waiting else 0,
        named=_named_filters(wanted, facets),
        suites=[facet.value for facet in facets.get("suite", ())],
        orders=[order.value for order in RunOrder],
        order=wanted.sort.value,
        filters={name: visible(value) for name, value in wanted.filters.items()},
        chosen=[
            (
                name,
                visible(wanted.filters[name]),
                wanted.address("/runs", RunListQuery.model_validate({name: ""})),
            )
            for name in ("batch", "candidate")
            if name in wanted.filters
        ],
        # The demo run gets a guide to its result.
        first=rows[0] if len(rows) == 1 and not narrowed and older is None else None,
        # Only the page of an empty store needs the suites, and searching for them reads the whole
        # folder.
        files=len(suite_files.suite_files(services.workspace.settings)) if empty else 0,
        boot=boot,
    )


@router.get("/runs.json")
def run_list_twin(request: Request, wanted: Annotated[RunListQuery, Query()]) -> Response:
    rows, older = _rows(request, wanted, new_verdicts=None)
    return Answer(
        {
            "filters": wanted.filters,
            "sort": wanted.sort,
            "runs": rows,
            "waiting": _waiting(request),
            "others": _others(request),
            "facets": {
                name: [asdict(facet) for facet in of]
                for name, of in services_of(request)
                .workspace.register.facets(wanted.filter)
                .items()
            },
            "next": None
            if older is None
            else wanted.address("/runs.json", RunListQuery(before=older)),
        }
    )


@router.get("/index.json")
@router.get("/queue.json")
@router.get("/registry")
@router.get("/registry.json")
@reads(*RunListQuery.model_fields)
def moved(request: Request) -> Response:
    """Redirect the former addresses of the queue and the registry to this list, which replaced
    them.
    """
    path = "/runs.json" if request.url.path.endswith(".json") else "/runs"
    return RedirectResponse(
        path + (f"?{request.url.query}" if request.url.query else ""), status_code=308
    )


@router.get("/registry/trend")
@router.get("/registry/trend.json")
@router.get("/registry/task")
@router.get("/registry/task.json")
@reads("suite", "candidate", "last", "task")
def moved_to_results(request: Request) -> Response:
    """Redirect former pages of the registry about suites and tasks."""
    path = request.url.path.replace("/registry/", "/results/")
    return RedirectResponse(f"{path}?{request.url.query}", status_code=308)


@router.get("/runs/compare")
def compare_ticked(request: Request, run: tuple[str, ...] = Query(())) -> Response:
    """Redirect to the comparison of the two ticked runs, the older one first."""
    if len(set(run)) != 2:
        problem = f"is given {len(run)} times, but a comparison needs exactly two runs."
        raise InputError("run", problem, remedy="Select two runs in /runs.")
    after, before = runs.runs(services_of(request).workspace.store, Selection(runs=run))
    return RedirectResponse(
        f"/registry/diff?{urlencode({'a': before.id, 'b': after.id})}", status_code=303
    )


def _waiting(request: Request) -> int:
    return (
        services_of(request)
        .workspace.archive.assessments.tally(Selection())
        .get(AssessmentState.PENDING, 0)
    )


def _others(request: Request) -> int:
    return services_of(request).review.opinions.waits_for_others(
        Selection(), reviewer=reviewer_of(request)
    )


def _rows(
    request: Request, wanted: RunListQuery, *, new_verdicts: int | None
) -> tuple[list[LiveRunDocument], str | None]:
    """Return one page of the list, and the run after which the next page begins; raises
    `UnknownName`.
    """
    services = services_of(request)
    before = (
        runs.runs(services.workspace.store, Selection(runs=(wanted.before,)))[0].id
        if wanted.before
        else None
    )
    summaries, more = services.workspace.register.page(
        wanted.filter, before=before, limit=SHOWN, order=wanted.sort
    )
    if not summaries and wanted.filters:
        suites = (wanted.suite,) if wanted.suite else ()
        batches = (wanted.batch,) if wanted.batch else ()
        services.workspace.archive.assessments.tally(Selection(suites=suites, batch_ids=batches))
        if wanted.candidate:
            services.workspace.register.runs_of_candidate(wanted.candidate, limit=1)
    verdicts = services.verdicts.of(summaries, most=new_verdicts)
    by_run = approvals_of_runs(services.workspace, summaries)
    rows = [
        looked_at(
            services.workspace,
            summary,
            by_run[summary.id],
            services.runner,
            verdict=verdicts[summary.id],
        )
        for summary in summaries
    ]
    return rows, summaries[-1].id if more else None


def _named_filters(
    wanted: RunListQuery, facets: Mapping[str, Sequence[Facet]]
) -> list[Mapping[str, object]]:
    counts = {facet.value: facet.runs for facet in facets.get("state", ())}
    state = wanted.state
    named = (
        dict(NAMED)
        if not state or state in dict(NAMED)
        else {**dict(NAMED), state: t(f"run.{state}")}
    )
    return [
        {
            "state": value,
            "label": label,
            "n": counts.get(value),
            "on": value == state,
            "open": wanted.address("/runs", RunListQuery(state="" if value == state else value)),
        }
        for value, label in named.items()
        if counts.get(value) or value in {state, "archived"}
    ]
