"""The audit in a browser: the log lists what was decided; a changed event is found."""

from __future__ import annotations

import csv
import json
import sqlite3
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.support.control_items import put_check
from tests.web.accessibility import WIDTHS, serious
from tests.web.conftest import NAMES, Served
from tests.web.review.test_blind_verdict import switch

from assay.app.review import audit_log
from assay.app.workspace import Workspace
from assay.domain.identifiers import AssessmentKey

if TYPE_CHECKING:
    from playwright.sync_api import Page


FORMULA = '=HYPERLINK("http://elsewhere")'
HOSTILE = "<img src=x onerror=alert(1)>\u202etxt.</script>"


def decide(served: Served, verb: str, item: str, *, by: str = "ann", **more: Any) -> bool:
    """A decision as a browser sends it; whether it was taken."""
    key = f"{by}-{verb}-{item}-key"
    body = {
        "decisions": [
            {"key": key, "id": item, "verb": verb, "reviewer": by, "active_ms": 4200, **more}
        ]
    }
    request = urllib.request.Request(
        f"{served.url}/api/decisions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return bool(json.load(answer)["results"][0]["ok"])


@pytest.fixture
def decided(served: Served) -> Served:
    """Six decisions: two rejected with texts that bite, one corrected, one undone, one by somebody
    else.
    """
    assert decide(served, "reject", "a1", reason=FORMULA, note=HOSTILE)
    assert decide(served, "reject", "a2", reason=HOSTILE)
    assert decide(
        served,
        "correct",
        "a3",
        reason="too low",
        corrections=[{"pane": 0, "criterion": None, "score": 0.9}],
    )
    assert decide(served, "undo", "a2")
    assert decide(served, "reject", "a4", by="=bob", reason="it quotes nothing")
    assert decide(served, "approve", "a7")
    return served


def text_of(served: Served, path: str) -> str:
    with urllib.request.urlopen(served.url + path, timeout=30) as answer:
        return str(answer.read().decode())


def status_of(served: Served, path: str) -> int:
    try:
        with urllib.request.urlopen(served.url + path, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def numbers(served: Served, query: str = "") -> list[int]:
    row: list[dict[str, Any]] = served.get(f"/audit.json{query}")["events"]
    return [one["event"] for one in row]


def database(served: Served) -> sqlite3.Connection:
    return sqlite3.connect(served.folder / ".assay" / "assay.db")


def test_audit_shows_reviewer_verb_reason_and_way_of_each_decision(decided: Served) -> None:
    first, *_, last = served_events(decided)
    assert last | {"at": "", "note": ""} == {
        "event": 1,
        "id": "a1",
        "decision": "reject",
        "before": "pending",
        "after": "rejected",
        "outcome": "decided",
        "reviewer": "ann",
        "at": "",
        "via": "script",
        "displayed": False,
        "road": "scripted",
        "stated_by": "root",
        "reason": FORMULA,
        "note": "",
        "corrections": {},
        "n_corrections": 0,
        "active_s": 4.2,
        "run_id": decided.run_id,
        "suite": "gates",
        "task": "gate-1",
        "thing": "Gate 1",
        "trial": 1,
        "trials": 5,
    }
    assert (first["decision"], first["after"]) == ("approve", "approved")
    assert numbers(decided) == [6, 5, 4, 3, 2, 1]


def served_events(served: Served, query: str = "") -> list[dict[str, Any]]:
    row: list[dict[str, Any]] = served.get(f"/audit.json{query}")["events"]
    return row


def test_filters_keep_the_matching_rows(decided: Served) -> None:
    day = served_events(decided)[0]["at"][:10]
    assert numbers(decided, "?verb=reject") == [5, 2, 1]
    assert numbers(decided, "?reviewer=%3Dbob") == [5]
    assert numbers(decided, "?item=a2") == [4, 2]
    assert numbers(decided, "?via=script&verb=undo") == [4]
    assert numbers(decided, "?via=page") == []
    assert numbers(decided, f"?day={day}") == [6, 5, 4, 3, 2, 1]
    assert numbers(decided, "?day=2001-01-01") == []
    assert numbers(decided, f"?run={decided.run_id}&before=3") == [2, 1]
    for query, status in (
        ("verb=like", 422),
        ("via=mail", 422),
        ("day=today", 422),
        ("item=b", 404),
        ("run=none", 404),
    ):
        assert status_of(decided, f"/audit?{query}") == status, query
        assert status_of(decided, f"/audit/events.csv?{query}") == status, query


def test_pages_follow_each_other_without_gap_or_double(decided: Served) -> None:
    with Workspace.open(decided.folder, environment={}) as workspace:
        seen: list[int] = []
        before: int | None = None
        while True:
            result = audit_log.page(workspace.store, audit_log.log_filter(), before=before, limit=2)
            seen += [one.event.id for one in result.events]
            before = result.next_before
            if before is None:
                break
    assert seen == [6, 5, 4, 3, 2, 1]


def test_looking_stops_in_time_and_says_where_it_goes_on(decided: Served) -> None:
    with database(
        decided
    ) as connection:  # numbers far apart, as if a hundred thousand events lay between
        connection.execute("UPDATE review_event SET id = id + 100000 WHERE id > 3")
    times = iter([0.0, 1.0])
    with Workspace.open(decided.folder, environment={}) as workspace:
        wanted = audit_log.log_filter(verb="correct")
        result = audit_log.page(workspace.store, wanted, clock=lambda: next(times))
        assert (result.events, result.stopped) == ((), True)
        assert result.next_before is not None
        rest = audit_log.page(workspace.store, wanted, before=result.next_before, clock=lambda: 0.0)
        assert [row.event.id for row in rest.events] == [3]


def test_an_export_holds_all_that_match_and_no_formula(decided: Served) -> None:
    rows = list(csv.DictReader(text_of(decided, "/audit/events.csv").splitlines()))
    assert [row["event"] for row in rows] == ["6", "5", "4", "3", "2", "1"]
    assert rows[-1]["reason"] == f"'{FORMULA}"
    assert rows[1]["reviewer"] == "'=bob"
    assert all(not cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())
    lines = [
        json.loads(line)
        for line in text_of(decided, "/audit/events.jsonl?verb=reject").splitlines()
    ]
    assert [line["event"] for line in lines] == [5, 2, 1]
    assert lines[-1]["reason"] == FORMULA


def test_owner_sees_scores_of_corrections_while_items_wait(decided: Served) -> None:
    corrected = next(one for one in served_events(decided) if one["decision"] == "correct")
    assert (list(corrected["corrections"].values()), corrected["n_corrections"]) == ([0.9], 1)
    assert any(name in text_of(decided, "/audit") for name in NAMES)


def test_log_lists_real_items_of_a_run_with_planted_checks(decided: Served) -> None:
    switch(decided.folder, plants=0.5)
    with Workspace.open(decided.folder, environment={}) as workspace:
        plant = put_check(workspace, AssessmentKey(5))
    assert decide(decided, "reject", f"a{plant.key}", by="dora", reason="a planted one")
    assert numbers(decided) == [6, 5, 4, 3, 2, 1]
    assert json.loads(text_of(decided, f"/audit.json?item=a{plant.key}"))["events"] == []
    check = json.loads(text_of(decided, "/audit/check.json"))
    assert (check["checked"], check["newest_event"], check["ended"]) == (6, 6, True)


def test_the_check_names_the_first_broken_event(page: Page, decided: Served) -> None:
    page.goto(f"{decided.url}/audit")
    page.get_by_role("button", name="Check the chain").click()
    page.locator(
        "#checked", has_text="Checked 6 events. The chain is intact up to event 6"
    ).wait_for()
    with database(decided) as connection:
        connection.execute("UPDATE review_event SET reason = 'another' WHERE id = 4")
    page.get_by_role("button", name="Check again").click()
    page.locator("#checked.bad", has_text="chain breaks at event 4").wait_for()
    assert decided.get("/audit/check.json?after=4")["first_broken_event"] is None
    page.goto(f"{decided.url}/audit?check=0")
    expect(page.locator("#checked")).to_contain_text("chain breaks at event 4", use_inner_text=True)


def test_without_a_script_the_check_goes_on_from_page_to_page(decided: Served) -> None:
    times = iter([0.0, 9.0])
    with Workspace.open(decided.folder, environment={}) as workspace:
        result = audit_log.check(workspace.store, after=2, clock=lambda: next(times))
    assert (result.after, result.checked, result.up_to, result.ended) == (2, 4, 6, True)
    assert "Checked 6 events. The chain is intact up to event 6" in text_of(
        decided, "/audit?check=2&n=2"
    )


def test_an_empty_log_says_how_it_fills(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/audit")
    expect(page.locator("main")).to_contain_text("No decisions yet", use_inner_text=True)
    assert served.get("/audit/check.json")["ended"] is True


@pytest.mark.slow
def test_axe_finds_nothing_serious_and_nothing_is_clipped(page: Page, decided: Served) -> None:
    for path in ("/audit", "/audit?check=0&verb=reject", "/audit?day=2001-01-01"):
        page.goto(decided.url + path)
        assert path == "/audit" or serious(page) == [], path
        expect(page.locator("body")).not_to_contain_text("\u202e", use_inner_text=True)
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            over = page.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert over <= 0, f"{path} is {over} px too wide at {width}"
