"""Arena pages: two responses side by side without names, a vote, and then the authors' names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request, Response
from markupsafe import Markup
from pydantic import Field
from starlette.responses import RedirectResponse

from assay.app.arena.ranking import (
    ArenaRanking,
    chart_of,
    pairs_csv,
    standing,
    standing_document,
    votes_csv,
)
from assay.app.registry import runs
from assay.app.runs import start
from assay.app.statistics import charts
from assay.domain.arena import Choice
from assay.domain.errors import Refused
from assay.domain.lifecycle import RunState
from assay.domain.selection import RunSummary, Selection
from assay.scoring.pages import MAX_LOOKED_AT
from assay.web import keyboard
from assay.web.context import reviewer_of, services_of
from assay.web.query_params import together
from assay.web.responses import CSV, Answer, Body, chart_file, download
from assay.web.security.sandboxed_frames import LARGEST, SANDBOX, Previews, check_framed
from assay.web.templating import page_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.app.arena.voting import ArenaVoting, Bout, Reveal, VotableRun

RUNS_SHOWN: Final = 20
MAX_SHOWN: Final = 200_000
"""Maximum characters of a response; a longer one is cut, with a note."""

CHOICES: Final = {
    "a": Choice.LEFT,
    "b": Choice.RIGHT,
    "equal": Choice.EQUAL,
    "both_bad": Choice.BOTH_BAD,
}
SAID: Final = {choice: word for word, choice in CHOICES.items()}

router = APIRouter()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaServices:
    """Services of the arena's routes, kept in `app.state.arena`."""

    voting: ArenaVoting
    previews: Previews


class PairBody(Body):
    """A pair as shown on the page, and its reviewer; the sides may be swapped for each reviewer."""

    task: str = Field(max_length=1_000)
    trial: int = Field(ge=1, le=1_000_000)
    pair: str = Field(max_length=40)
    reviewer: str = Field(min_length=1, max_length=120)


class VoteBody(PairBody):
    """A vote; `key` is the idempotency key."""

    key: str = Field(min_length=8, max_length=80)
    choice: Literal["a", "b", "equal", "both_bad"]
    active_ms: int | None = Field(default=None, ge=0, le=86_400_000)


class PreviewBody(PairBody):
    """A pair, and the side whose page to show: 0 for A, 1 for B."""

    side: int = Field(ge=0, le=1)


class UndoBody(Body):
    """A request to undo a vote; without `vote`, the reviewer's newest one."""

    key: str = Field(min_length=8, max_length=80)
    reviewer: str = Field(min_length=1, max_length=120)
    vote: int | None = Field(default=None, ge=1, lt=2**62)


def arena_of(request: Request) -> ArenaServices:
    services: ArenaServices = request.app.state.arena
    return services


@router.get("/arena", include_in_schema=False)
def arena_page(request: Request, before: str | None = None) -> Response:
    """Show the runs that people can vote on, and a form that starts a new one."""
    data = _list(request, before)
    workspace = services_of(request).workspace
    models = [
        {"ref": model.ref, "from": model.origin}
        for model in start.known_models(workspace.store, workspace.settings)
    ]
    twin = "/arena.json" + (f"?{urlencode({'before': before})}" if before else "")
    return page_of(request, "arena/arena.html", twin=twin, **data, models=models, before=before)


@router.get("/arena.json", include_in_schema=False)
def arena_twin(request: Request, before: str | None = None) -> Response:
    return Answer(_list(request, before))


# Declared before the page's route, which would treat `.json` as part of the run id.
@router.get("/arena/{run_id}.json", include_in_schema=False)
def bout_twin(
    request: Request,
    run_id: str,
    task: str | None = None,
    trial: int | None = None,
    pair: str | None = None,
) -> Response:
    """Return a pair as JSON; if the address names no pair, return the next one."""
    voting, reviewer = arena_of(request).voting, reviewer_of(request)
    summary = voting.summary(run_id)
    together({"task": task, "trial": trial, "pair": pair})
    if task is not None and trial is not None and pair is not None:
        bout: Bout | None = voting.bout(summary.id, task, trial, pair, reviewer)
    else:
        bout = voting.next(summary, reviewer)
    return Answer({"run": summary.id, "pair": None if bout is None else bout_document(bout)})


@router.get("/arena/{run_id}", include_in_schema=False)
def bout_page(
    request: Request,
    run_id: str,
    task: str | None = None,
    trial: int | None = None,
    pair: str | None = None,
) -> Response:
    """Show a pair; if the address names no pair, redirect to the next one."""
    voting, reviewer = arena_of(request).voting, reviewer_of(request)
    summary = voting.summary(run_id)
    together({"task": task, "trial": trial, "pair": pair})
    if task is None or trial is None or pair is None:
        bout = voting.next(summary, reviewer)
        if bout is not None:
            # The address names the pair, so that a reload shows the same one.
            return RedirectResponse(_address(bout), status_code=303)
        return _bout_page(request, summary, None)
    return _bout_page(request, summary, voting.bout(summary.id, task, trial, pair, reviewer))


@router.get("/arena/{run_id}/ranking.json", include_in_schema=False)
def ranking_twin(request: Request, run_id: str) -> Response:
    return Answer(standing_document(_standing(request, run_id)))


@router.get("/arena/{run_id}/ranking", include_in_schema=False)
def ranking_page(request: Request, run_id: str) -> Response:
    """Show the ranking by votes: strengths, pairs, side bias, and agreement of judges with
    people.
    """
    ranking = _standing(request, run_id)
    path = f"/arena/{quote(ranking.summary.id)}"
    chart = chart_of(ranking)
    return page_of(
        request,
        "arena/arena_ranking.html",
        title=f"{ranking.summary.suite}: ranking by votes",
        twin=f"{path}/ranking.json",
        run=ranking.summary,
        found=standing_document(ranking),
        path=path,
        chart=chart,
        endings=charts.endings(),
        drawing=Markup(charts.drawn(chart)) if chart.rows else None,  # an escaped SVG
    )


@router.get("/arena/{run_id}/charts/strengths.{ending}", include_in_schema=False)
def ranking_chart(request: Request, run_id: str, ending: str, dark: bool = False) -> Response:
    """Return the chart of strengths, or its table."""
    return chart_file(chart_of(_standing(request, run_id)), "assay-strengths", ending, dark=dark)


@router.get("/arena/{run_id}/pairs.csv", include_in_schema=False)
def pairs_table(request: Request, run_id: str) -> Response:
    """Return the votes per pair as CSV."""
    return download(pairs_csv(_standing(request, run_id)), "assay-pairs.csv", CSV)


@router.get("/arena/{run_id}/votes.csv", include_in_schema=False)
def votes_table(request: Request, run_id: str) -> Response:
    """Return every current vote as CSV."""
    return download(votes_csv(_standing(request, run_id)), "assay-votes.csv", CSV)


@router.get("/api/arena/{run_id}/next", tags=["arena"])
def next_pair(
    request: Request,
    run_id: str,
    task: Annotated[str | None, Query(max_length=1_000)] = None,
    trial: int | None = None,
    pair: str | None = None,
) -> Response:
    """Return the next pair for this person, excluding the pair on the page."""
    voting, reviewer = arena_of(request).voting, reviewer_of(request)
    summary = voting.summary(run_id)
    together({"task": task, "trial": trial, "pair": pair})
    beside = None
    if task is not None and trial is not None and pair is not None:
        beside = voting.bout(summary.id, task, trial, pair, reviewer).pairing.item
    return Answer(_next(voting, summary, reviewer, beside))


@router.post("/api/arena/{run_id}/votes", tags=["arena"], status_code=201)
def vote(request: Request, run_id: str, body: VoteBody) -> Response:
    """Record a vote, and return the authors' names and, if names in the responses were hidden, the
    full responses.

    `key` is the idempotency key: a vote sent again is not counted twice.
    """
    voting = arena_of(request).voting
    bout = voting.bout(run_id, body.task, body.trial, body.pair, body.reviewer)
    reveal = voting.cast(
        bout, CHOICES[body.choice], idempotency_key=body.key, active_ms=body.active_ms
    )
    hid = any(map(bout.names_somebody, (0, 1)))
    panes = {"panes": _panes(replace(bout, hides=None))} if hid else {}
    return Answer({"reveal": reveal_document(reveal), **panes}, status_code=201)


@router.post("/api/arena/{run_id}/undo", tags=["arena"])
def undo(request: Request, run_id: str, body: UndoBody) -> Response:
    """Undo a vote by adding an event, and return its pair, which can be voted on again."""
    bout = arena_of(request).voting.take_back(
        run_id, body.reviewer, idempotency_key=body.key, vote=body.vote
    )
    return Answer({"pair": bout_document(bout)})


@router.post("/api/arena/{run_id}/skip", tags=["arena"])
def skip(request: Request, run_id: str, body: PairBody) -> Response:
    """Move a pair to the end of this reviewer's list, and return the next one."""
    voting = arena_of(request).voting
    bout = voting.bout(run_id, body.task, body.trial, body.pair, body.reviewer)
    voting.skip(bout)
    return Answer(_next(voting, bout.summary, body.reviewer, bout.pairing.item))


@router.post("/api/arena/{run_id}/previews", tags=["arena"], status_code=201)
def preview(request: Request, run_id: str, body: PreviewBody) -> Response:
    """Return an address that shows one side's page in a frame; it is valid for a few minutes."""
    services = arena_of(request)
    bout = services.voting.bout(run_id, body.task, body.trial, body.pair, body.reviewer)
    page = bout.page(body.side)
    if page is None or len(page) > LARGEST:
        raise Refused("preview", "this response contains no web page.", remedy="Read its source.")
    return Answer({"address": services.previews.put(page)}, status_code=201)


@router.get("/preview/{token}", include_in_schema=False)
def previewed(request: Request, token: str) -> Response:
    """Return a model's page for its frame."""
    check_framed(request)
    return arena_of(request).previews.answer(token)


def _standing(request: Request, run_id: str) -> ArenaRanking:
    return standing(services_of(request).workspace.store, arena_of(request).voting, run_id)


def bout_document(bout: Bout) -> Mapping[str, object]:
    """Return a pair for its page. Before the vote, it contains no author and no judge's result."""
    contest = bout.contest
    return {
        "run": bout.summary.id,
        "task": contest.task.id,
        "thing": contest.task.thing,
        "trial": contest.k,
        "trials": contest.of,
        "pair": bout.pair,
        "address": _address(bout),
        "context": contest.task.context,
        "prompt": [
            {"role": str(message.role), "content": message.content}
            for message in contest.task.prompt
        ],
        "panes": _panes(bout),
        "reviewer": bout.reviewer,
        "reveal": None if bout.reveal is None else reveal_document(bout.reveal),
    }


def reveal_document(reveal: Reveal) -> Mapping[str, object]:
    """Return the names and grades shown after the vote; `a` is the left side of the page."""
    return {
        "vote": reveal.vote.id,
        "choice": SAID[reveal.vote.choice],
        "at": reveal.vote.at,
        "names": list(reveal.names),
        "judges": [
            {
                "judge": judge.judge,
                "a": judge.left,
                "b": judge.right,
                "says": SAID[judge.says],
                "agrees": judge.agrees,
                "waits": judge.waits,
            }
            for judge in reveal.judges
        ],
        "telling": [list(words) for words in reveal.telling],
    }


def _panes(bout: Bout) -> list[Mapping[str, object]]:
    return [_pane(bout, side) for side in (0, 1)]


def _pane(bout: Bout, side: int) -> Mapping[str, object]:
    given, page = bout.sides[side], bout.page(side)
    return {
        "text": bout.text(side, MAX_SHOWN),
        "cut": len(given.text) > MAX_SHOWN,
        "truncated": given.truncated,
        "page": page is not None and len(page) <= LARGEST,
        "page_cut": page is not None and len(given.text) > MAX_LOOKED_AT,
        "names_hidden": bout.names_somebody(side),
    }


def _next(
    voting: ArenaVoting,
    summary: RunSummary,
    reviewer: str,
    beside: tuple[int, int, int, int] | None,
) -> Mapping[str, object]:
    bout = voting.next(summary, reviewer, beside=beside)
    return {"pair": None if bout is None else bout_document(bout)}


def _address(bout: Bout) -> str:
    state = {"task": bout.contest.task.id, "trial": bout.contest.k, "pair": bout.pair}
    return f"/arena/{quote(bout.summary.id)}?{urlencode(state)}"


def _bout_page(request: Request, summary: RunSummary, bout: Bout | None) -> Response:
    path = f"/arena/{quote(summary.id)}"
    document = None if bout is None else bout_document(bout)
    twin = f"{path}.json" + ("" if bout is None else "?" + _address(bout).partition("?")[2])
    title = "Arena" if bout is None else f"{bout.contest.task.thing} · Arena"
    return page_of(
        request,
        "arena/arena_pair.html",
        title=title,
        twin=twin,
        run=summary,
        bout=bout,
        path=path,
        under_way=summary.state in (RunState.RUNNING, RunState.PLANNED),
        key_groups_here=keyboard.groups(keyboard.COMPARISON),
        badge_here=lambda action: keyboard.badge(action, keyboard.COMPARISON),
        boot={
            "run": summary.id,
            "suite": summary.suite,
            "item": document,
            "sandbox": SANDBOX,
            "keys": keyboard.for_script(keyboard.COMPARISON),
        },
    )


def _list(request: Request, before: str | None) -> Mapping[str, Any]:
    if before is not None:
        before = runs.runs(services_of(request).workspace.store, Selection(runs=(before,)))[
            0
        ].id  # 404 if unknown
    offers, more = arena_of(request).voting.offers(before=before, limit=RUNS_SHOWN)
    return {"runs": [_offer(offer) for offer in offers], "next": more}


def _offer(offer: VotableRun) -> Mapping[str, object]:
    summary = offer.summary
    return {
        "run": summary.id,
        "suite": summary.suite,
        "state": str(summary.state),
        "started": summary.started,
        "candidates": len(summary.candidates),
        "votes": offer.votes,
        "pairs": offer.pairs,
        "items": offer.items,
        "has_pages": offer.has_pages,
    }
