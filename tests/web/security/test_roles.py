"""Roles: the addresses that an invited reviewer or viewer may open, their sign-in, and the end of
an invitation.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from assay.app import people
from assay.app.workspace import Workspace
from assay.domain.errors import InputError, UnknownName
from assay.domain.people import SESSION_DAYS, VisitorRole
from assay.web import api, pages
from assay.web.security.access import COOKIE
from assay.web.security.roles import LISTED, Visitor
from assay.web.security.sessions import LOOK_S
from assay.web.server import create_app, routers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOME = "http://127.0.0.1:8000"
SECRET = "a-s3cret-of-any-length"
OPEN_TO_ALL = {
    "GET /health",
    "GET /signin",
    "POST /api/signin",
    "POST /api/signout",
    "GET /preview/{token}",
}
READS: Final = frozenset({"GET"})


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(tmp_path, environment={}) as opened:
        yield opened


@contextmanager
def client_of(
    workspace: Workspace, *, token: str | None = SECRET, signed_in: str | None = None
) -> Iterator[TestClient]:
    with TestClient(
        create_app(workspace, token=token), base_url=HOME, follow_redirects=False
    ) as client:
        if signed_in:
            assert client.post("/api/signin", json={"token": signed_in}).status_code == 200
        yield client


def routes() -> set[str]:
    return {
        f"{method} {route.path}"
        for router in routers(api, pages)
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }


def test_each_listed_address_is_a_route() -> None:
    known = {route.replace("/reviewers/{name}", "/reviewers/{own_name}") for route in routes()}
    assert set(LISTED[VisitorRole.REVIEWER]) | set(LISTED[VisitorRole.VIEWER]) <= known


@pytest.mark.parametrize("role", [VisitorRole.REVIEWER, VisitorRole.VIEWER])
def test_every_route_that_is_not_listed_answers_403(
    workspace: Workspace, role: VisitorRole
) -> None:
    invitation = people.invite(workspace.store, "ann", role=role, base=HOME)
    listed = {address.replace("{own_name}", "{name}") for address in LISTED[role]}
    closed = sorted(routes() - listed - OPEN_TO_ALL)
    assert len(closed) > 40
    with client_of(workspace, signed_in=invitation.token) as client:
        for address in (
            *closed,
            "GET /openapi.json",
            "GET /nowhere",
            "HEAD /review",
            "GET /",
            "PUT /api/runs",
        ):
            if address == "GET /" and role is VisitorRole.VIEWER:
                continue
            method, _, path = address.partition(" ")
            # A name that could be mistaken for another route would open it; no route's parameter
            # looks like this.
            path = re.sub(r"\{[^}]+\}", "x", path)
            answer = client.request(
                method, path, json={} if method not in {"GET", "HEAD"} else None
            )
            assert answer.status_code == 403, address


def test_viewer_may_change_nothing() -> None:
    assert {address.partition(" ")[0] for address in LISTED[VisitorRole.VIEWER]} == READS


def test_owner_opens_everything_with_and_without_a_token(workspace: Workspace) -> None:
    with client_of(workspace, token=None) as client:
        assert client.get("/audit").status_code == 200
    with client_of(workspace, signed_in=SECRET) as client:
        assert client.get("/audit").status_code == 200


def test_link_signs_in_once_and_leaves_the_address(workspace: Workspace) -> None:
    for token in (SECRET, None):
        invitation = people.invite(workspace.store, "ann", role="reviewer", base=f"{HOME}/")
        assert invitation.link == f"{HOME}/review?token={invitation.token}"
        with client_of(workspace, token=token) as client:
            answer = client.get(invitation.link)
            assert (answer.status_code, answer.headers["location"]) == (303, "/review")
            assert invitation.token not in answer.headers["set-cookie"]
            page = client.get("/review")
            assert page.status_code == 200
            assert "My figures" in page.text
            assert "My decisions" in page.text
            assert 'href="/candidates"' not in page.text
            assert client.get("/runs").status_code == 403
            assert client.get(invitation.link).headers["location"] == "/review", (
                "the own link again changes nothing"
            )
            client.cookies.clear()
            again = client.get(
                invitation.link, headers={"accept": "text/html", "sec-fetch-site": "none"}
            )
            assert "set-cookie" not in again.headers
            refused = client.post("/api/signin", json={"token": invitation.token})
            assert refused.status_code == 401
            assert "works once" in refused.json()["error"]["problem"]


def test_token_of_an_invitation_is_no_token_for_programs(workspace: Workspace) -> None:
    invitation = people.invite(workspace.store, "vera", role="viewer", base=HOME)
    assert invitation.link.startswith(f"{HOME}/?token=")
    with client_of(workspace) as client:
        headers = {"authorization": f"Bearer {invitation.token}"}
        assert client.get("/api/runs", headers=headers).status_code == 401


@pytest.mark.parametrize("site", ["cross-site", "same-site", None])
def test_link_on_another_site_leads_to_a_question(workspace: Workspace, site: str | None) -> None:
    invitation = people.invite(workspace.store, "ann", role="reviewer", base=HOME)
    headers = {"accept": "text/html", **({"sec-fetch-site": site} if site else {})}
    for token in (SECRET, None):
        with client_of(workspace, token=token) as client:
            answer = client.get(invitation.link, headers=headers)
            assert answer.headers["location"] == f"/signin?next=%2Freview#token={invitation.token}"
            assert "set-cookie" not in answer.headers
    with client_of(workspace) as client:
        assert client.get(invitation.link).status_code == 303, (
            "a preview of the link has not used it up"
        )
        assert COOKIE in client.cookies


def test_link_replaces_no_session_without_a_question(workspace: Workspace) -> None:
    ann = people.invite(workspace.store, "ann", role="reviewer", base=HOME)
    bob = people.invite(workspace.store, "bob", role="reviewer", base=HOME)
    typed = {"accept": "text/html", "sec-fetch-site": "none"}
    with client_of(workspace, signed_in=ann.token) as client:
        cookie = client.cookies[COOKIE]
        assert (
            client.get(bob.link, headers=typed).headers["location"]
            == f"/signin?next=%2Freview#token={bob.token}"
        )
        assert client.cookies[COOKIE] == cookie
        assert client.post("/api/signin", json={"token": bob.token}).status_code == 200
        assert '"reviewer":"bob"' in client.get("/review").text
        client.cookies.clear()
        replaced = {"cookie": f"{COOKIE}={cookie}"}
        assert client.get("/review.json", headers=replaced).status_code == 401, (
            "the replaced session has ended"
        )


def test_each_sign_in_gets_a_random_session(workspace: Workspace) -> None:
    cookies = set()
    for _ in range(3):
        with client_of(workspace, signed_in=SECRET) as client:
            cookies.add(client.cookies[COOKIE])
    assert len(cookies) == 3


def test_sessions_outlive_the_server_but_not_the_owner_s_token(workspace: Workspace) -> None:
    with client_of(workspace, signed_in=SECRET) as client:
        cookie = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
    with client_of(workspace) as client:
        assert client.get("/audit", headers=cookie).status_code == 200
    with client_of(workspace, token="another-s3cret-token") as client:
        assert client.get("/audit", headers=cookie).status_code == 401


def test_session_ends_after_its_days(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    with client_of(workspace, signed_in=SECRET) as client:
        assert client.get("/audit").status_code == 200
        later = datetime.now(UTC) + timedelta(days=SESSION_DAYS, seconds=1)
        monkeypatch.setattr(
            workspace, "clock", Later(workspace, now=later.isoformat(timespec="milliseconds"))
        )
        assert client.get("/audit").status_code == 401


def test_refusal_is_a_page_for_browsers_and_names_where_to_go(workspace: Workspace) -> None:
    invitation = people.invite(workspace.store, "ann", role="reviewer", base=HOME)
    with client_of(workspace, signed_in=invitation.token) as client:
        page = client.get("/runs", headers={"accept": "text/html"})
        assert page.status_code == 403
        assert "not open to a reviewer" in page.text
        assert (
            client.get("/api/runs").json()["error"]["remedy"]
            == "Open /review, or ask the owner for access."
        )


def test_own_figures_open_before_the_first_decision(workspace: Workspace) -> None:
    link = people.invite(workspace.store, "fresh", role="reviewer", base=HOME).link
    with client_of(workspace) as client:
        client.get(link)
        page = client.get("/reviewers/fresh")
        assert page.status_code == 200
        assert "Reviewer fresh" in page.text
        assert client.get("/reviewers/fresh/checks").status_code == 200
        assert client.get("/reviewers/fresh/decisions").status_code == 200


def test_own_figures_are_open_and_those_of_others_are_not(workspace: Workspace) -> None:
    visitor = Visitor(VisitorRole.REVIEWER, "Ann Lee")
    assert visitor.may_open("GET", "/reviewers/Ann Lee")
    assert visitor.may_open("GET", "/reviewers/Ann Lee/checks.json")
    for path in (
        "/reviewers/bob",
        "/reviewers/bob.json",
        "/reviewers/bob/checks",
        "/reviewers/Ann Lee/../bob",
    ):
        assert not visitor.may_open("GET", path)


@pytest.mark.parametrize(
    ("role", "own", "others"),
    [(None, 200, 404), (VisitorRole.REVIEWER, 200, 403), (VisitorRole.VIEWER, 403, 403)],
    ids=["owner", "reviewer", "viewer"],
)
def test_decisions_of_a_reviewer_by_role(
    workspace: Workspace, role: VisitorRole | None, own: int, others: int
) -> None:
    token = people.invite(workspace.store, "ann", role=role, base=HOME).token if role else SECRET
    with client_of(workspace, signed_in=token) as client:
        if role is None:
            client.cookies.set("assay_reviewer", "ann")
        for ending in ("", ".json"):
            assert client.get(f"/reviewers/ann/decisions{ending}").status_code == own
            assert client.get(f"/reviewers/bob/decisions{ending}").status_code == others


def test_reviewer_may_not_filter_by_judge() -> None:
    visitor = Visitor(VisitorRole.REVIEWER, "ann")
    assert visitor.may_open("GET", "/review", "run=x")
    for query in ("run=x&judge=opus", "%6audge=opus", "run=x&judg%65=opus", "judge=", "judge"):
        assert not visitor.may_open("GET", "/review", query)
    assert visitor.may_open("GET", "/review", "task=judge%3dopus")


def test_reviewer_may_not_filter_progress_by_judge(workspace: Workspace) -> None:
    decision = {"key": "key-0001", "id": "x", "verb": "approve"}
    invitation = people.invite(workspace.store, "ann", role="reviewer", base=HOME)
    with client_of(workspace, signed_in=invitation.token) as client:
        refused = client.post("/api/decisions", json={"decisions": [decision], "judge": "opus"})
        assert (refused.status_code, refused.json()["error"]["where"]) == (422, "judge")
        assert client.post("/api/decisions", json={"decisions": [decision]}).status_code == 200


def test_revoked_invitation_opens_nothing_on_any_server(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    invitation = people.invite(workspace.store, "ann", role="reviewer", base=HOME)
    for token in (SECRET, None):
        with client_of(workspace, token=token) as client:
            client.get(invitation.link)
            cookie = client.cookies[COOKIE]
            people.revoke(workspace.store, "ann")
            monkeypatch.setattr(workspace, "clock", Later(workspace))
            assert (
                client.get("/review.json", headers={"cookie": f"{COOKIE}={cookie}"}).status_code
                == 401
            )
            assert (
                client.get(invitation.link, headers={"accept": "text/html"})
                .headers["location"]
                .startswith("/signin")
            )
            assert client.post("/api/signin", json={"token": invitation.token}).status_code == 401
        invitation = people.invite(workspace.store, "ann", role="reviewer", base=HOME)


class Later:
    """The workspace's clock, ahead of it by the time for which invitations are remembered."""

    def __init__(self, workspace: Workspace, *, now: str | None = None) -> None:
        self._clock = workspace.clock
        self._now = now

    def now(self) -> str:
        return self._now or self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic() + LOOK_S


def test_new_invitation_ends_the_earlier_one(workspace: Workspace) -> None:
    first = people.invite(workspace.store, "ann", role="viewer", base=HOME)
    second = people.invite(workspace.store, "ann", role="reviewer", base=HOME)
    with client_of(workspace) as client:
        assert client.post("/api/signin", json={"token": first.token}).status_code == 401
        assert client.post("/api/signin", json={"token": second.token}).json() == {
            "ok": True,
            "home": "/review",
        }


def test_store_holds_no_token(workspace: Workspace, tmp_path: Path) -> None:
    invitation = people.invite(workspace.store, "ann", role="reviewer", base=HOME)
    with client_of(workspace, signed_in=invitation.token) as client:
        cookie = client.cookies[COOKIE]
    workspace.store.close()
    stored = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"reviewer" in stored
    assert invitation.token.encode() not in stored
    assert cookie.encode() not in stored


def test_sign_out_ends_the_session_on_every_server(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    invitation = people.invite(workspace.store, "ann", role="reviewer", base=HOME)
    with client_of(workspace) as other, client_of(workspace, signed_in=invitation.token) as client:
        cookie = {"cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
        assert other.get("/review.json", headers=cookie).status_code == 200
        assert client.post("/api/signout", json={}).status_code == 200
        assert COOKIE not in client.cookies
        assert client.get("/review.json", headers=cookie).status_code == 401, (
            "a copy of the cookie opens nothing"
        )
        monkeypatch.setattr(workspace, "clock", Later(workspace))
        assert other.get("/review.json", headers=cookie).status_code == 401


def test_reviewer_decides_under_their_own_name_only(workspace: Workspace) -> None:
    invitation = people.invite(workspace.store, "ann", role="reviewer", base=HOME)
    with client_of(workspace, signed_in=invitation.token) as client:
        body = {"key": "k-12345678", "reviewer": "bob"}
        assert client.post("/api/review/end", json=body).status_code == 409
        client.cookies.set("assay_reviewer", "bob")
        assert '"reviewer":"ann"' in client.get("/review").text


def test_impossible_invitations_are_refused(workspace: Workspace) -> None:
    for name in ("", " ", "a\u200bb", "a/b", "x" * 121):
        with pytest.raises(InputError):
            people.invite(workspace.store, name, role="reviewer", base=HOME)
    with pytest.raises(UnknownName, match="owner"):
        people.invite(workspace.store, "ann", role="owner", base=HOME)
    people.invite(workspace.store, "ann", role="viewer", base=HOME)
    with pytest.raises(UnknownName, match="Did you mean 'ann'"):
        people.revoke(workspace.store, "anne")
