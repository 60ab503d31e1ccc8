"""Services shared by all routes."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from fastapi import Request

from assay.app.comparison.grades import GradeComparison
from assay.app.exports.shared_exports import SharedExports
from assay.app.registry.run_verdicts import RunVerdicts
from assay.app.review.concealment import Concealment
from assay.app.review.control_item_placement import ControlItemPlacement
from assay.app.review.item_view import Showcase
from assay.app.review.queue import ReviewQueue
from assay.app.review.service import ReviewService
from assay.app.statistics.live_report import LiveReports
from assay.app.workspace import Workspace
from assay.domain.errors import Refused
from assay.domain.review import Via
from assay.web.jobs.reruns import Reruns
from assay.web.jobs.runs import Runner, Starts
from assay.web.live import Live
from assay.web.security.access import Entrance, from_browser, visitor_of

REVIEWER_COOKIE = "assay_reviewer"


STORE_HEADER = "assay-store"
"""Header with the id of the store that the page belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Services that all routes share, stored in `app.state.services`."""

    workspace: Workspace
    queue: ReviewQueue
    showcase: Showcase
    concealment: Concealment
    review: ReviewService
    placement: ControlItemPlacement
    verdicts: RunVerdicts
    live: Live
    runner: Runner
    starts: Starts
    reruns: Reruns
    overviews: LiveReports
    exports: SharedExports
    grades: GradeComparison
    entrance: Entrance


def services_of(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def reviewer_of(request: Request, named: str | None = None) -> str:
    """Return the reviewer's name for a request.

    An invited person has a fixed name. The owner's name is the one in the request, otherwise the
    one chosen in this browser, otherwise the workspace's.

    Raises Refused if an invited person sends another person's decision, such as one left in this
    browser by an earlier visitor.
    """
    invited = visitor_of(request).name
    if invited is not None:
        if named not in {None, invited}:
            raise Refused(
                "reviewer",
                f"is {named}, and you are signed in as {invited}.",
                remedy=f"Sign in as {named}.",
            )
        return invited
    chosen = named or unquote(request.cookies.get(REVIEWER_COOKIE, "")).strip()
    # A cookie can be edited by hand; every other input of a name accepts at most 120 characters.
    return chosen[:120] or services_of(request).workspace.reviewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The reviewer of a request, the person whose sign-in sent it, and the interface.

    `signed_in` is the invited person, or else the login of the server's process.
    """

    reviewer: str
    signed_in: str
    via: Via


def sender_of(request: Request, named: str | None = None) -> Sender:
    """Return who decides in a request, and how; raises the error of `reviewer_of`.

    A program acts for the person whose token it uses.
    """
    return Sender(
        reviewer=reviewer_of(request, named),
        signed_in=visitor_of(request).name or services_of(request).workspace.login,
        via=Via.PAGE if from_browser(request) else Via.SCRIPT,
    )


async def same_store(request: Request) -> None:
    """Refuse requests from a page of another store, because an address may serve one store after
    another with the same ids.
    """
    came_from = request.headers.get(STORE_HEADER)
    if came_from not in {None, services_of(request).workspace.store_id}:
        raise Refused(
            "store",
            "another store is served at this address now.",
            remedy="Reload the page. Unsent decisions for the other store are kept in this browser.",
        )
