"""The statistics page in a browser: it follows decisions by itself, its marks answer, and it keeps
the policy.
"""

from __future__ import annotations

import html
import json
import re
import sqlite3
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect
from tests.support import forked
from tests.web.accessibility import WIDTHS, serious
from tests.web.conftest import Served, eventually, eventually_in, serving

from assay.app.workspace import Workspace
from assay.web.server import create_app
from assay.web.templating import static_content

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page


MAX_BYTES = 30_000


def decide(served: Served, verb: str, assessment: str, *, reason: str = "") -> bool:
    """A decision as another browser would send it; whether it was taken."""
    decision = {"key": f"{verb}-{assessment}-key", "id": assessment, "verb": verb, "reason": reason}
    request = urllib.request.Request(
        f"{served.url}/api/decisions",
        data=json.dumps({"decisions": [decision]}).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return bool(json.load(answer)["results"][0]["ok"])


@pytest.fixture
def counted(served: Served) -> list[str]:
    """Assessments of both Things that wait, where six were approved; some lack a score and cannot
    be.
    """
    ids = [f"a{n}" for n in (1, 6, 2, 7, 3, 8, 4, 9, 5, 10)]
    approved: list[str] = []
    for one in ids:
        if len(approved) < 6 and decide(served, "approve", one):
            approved.append(one)
    return [one for one in ids if one not in approved]


def open_page(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/results?run={served.run_id}")
    expect(page.locator("#behind [data-chart] svg:visible")).to_have_count(1)


def test_the_page_follows_a_decision_without_being_loaded_anew(
    page: Page, served: Served, counted: list[str]
) -> None:
    heard: list[str] = []
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.eventSourceMessageReceived", lambda event: heard.append(event["eventName"]))
    open_page(page, served)
    expect(page.locator("#stats-candidates")).to_contain_text(
        "6 trials count (6 approved: ", use_inner_text=True
    )
    page.evaluate("window.same = true")
    eventually_in(page, lambda: "decided" in heard)
    network.detach()
    forest = page.locator("#stats-candidates tbody")
    before = forest.inner_html()
    assert decide(served, "reject", counted[0], reason="It quotes text that does not exist")
    eventually(lambda: "1 rejected" in page.locator("#stats-candidates").inner_text())
    assert any(decide(served, "approve", one) for one in counted[1:])
    eventually(
        lambda: "7 trials count (7 approved: " in page.locator("#stats-candidates").inner_text()
    )
    eventually(lambda: forest.inner_html() != before)
    assert page.evaluate("window.same") is True


def test_dot_of_a_single_trial_leads_to_its_assessment(served: Served, counted: list[str]) -> None:
    page = (
        urllib.request.urlopen(f"{served.url}/statistics/behind?run={served.run_id}", timeout=20)
        .read()
        .decode()
    )
    link = re.findall(r'href="(/statistics/trials/t[^"]*)" aria-label', page)[0]
    with urllib.request.urlopen(f"{served.url}{html.unescape(link)}", timeout=20) as answer:
        assert "/assessments/a" in answer.url


def test_filters_are_put_into_the_address_and_taken_out_again(
    page: Page, served: Served, counted: list[str]
) -> None:
    open_page(page, served)
    task = served.get("/statistics.json")["stats"]["candidates"][0]["by_task"][0]["task"]
    page.get_by_text("+ Filter").click()
    page.locator("#filter-kind").select_option("task")
    page.locator("#filter-value").fill(task)
    page.locator("#filters button").click()
    page.wait_for_url("**task=**")
    assert "scope=" not in page.url
    expect(page.locator("#stats-tasks tbody tr")).to_have_count(1)
    page.locator(".chip.chosen", has_text=task).click()
    page.wait_for_url(lambda url: "task=" not in url)
    assert "run=" in page.url


def test_a_filter_of_a_long_name_keeps_its_cross_in_sight(
    page: Page, served: Served, counted: list[str]
) -> None:
    with sqlite3.connect(served.folder / ".assay" / "assay.db") as store:
        store.execute("UPDATE run SET batch_id = ?", (batch := "a-batch-of-many-words-" * 4,))
    page.goto(f"{served.url}/results?batch_id={batch}")
    chip = page.locator(".chip.chosen")
    assert chip.evaluate("one => one.scrollWidth <= one.clientWidth"), (
        "nothing of the chip itself is cut off"
    )
    assert batch in str(chip.get_attribute("title"))
    chip.click()
    page.wait_for_url(lambda url: "batch_id=" not in url)


def test_sensitivity_figures_link_to_their_trials(
    page: Page, served: Served, counted: list[str]
) -> None:
    assert decide(served, "reject", counted[0], reason="It quotes text that does not exist")
    page.goto(f"{served.url}/statistics/behind?run={served.run_id}")
    moved = page.locator("section[aria-labelledby=pressure-title]")
    assert moved.locator("thead th").all_inner_texts()[1:] == [
        "Rejected trials count as 0",
        "Rejected trials count at the judge's score",
        "Rejected trials count as 100",
    ]
    for row in moved.locator("tbody tr").all():
        low, judged, high = (float(cell) for cell in row.locator("td").all_inner_texts())
        assert low < judged < high
    for part in ("criterion", "judge", "pressure", "fair", "variance"):
        section = page.locator(f"section[aria-labelledby={part}-title]")
        for row in section.locator("tbody tr").all():
            assert row.locator("a[href]").count() >= 1, part
    number = page.locator("section[aria-labelledby=criterion-title] tbody td a").first
    assert number.get_attribute("aria-label")
    number.click()
    page.wait_for_url("**/statistics/trials?*criterion=*")
    page.locator("tbody a").first.click()
    page.wait_for_url("**/assessments/*")


@pytest.mark.slow
def test_axe_finds_nothing_serious_and_nothing_is_clipped(
    page: Page, served: Served, counted: list[str]
) -> None:
    for path in (
        "/results",
        "/statistics/behind",
        "/statistics/trials",
        f"/results?run={served.run_id}",
    ):
        page.goto(served.url + path)
        if "trials" not in path:
            assert serious(page) == [], path
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            over = page.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert over <= 0, f"{path} is {over} px too wide at {width}"


def test_the_page_s_scripts_and_styles_are_small() -> None:
    names = (
        "frame/dom.js",
        "frame/keys.js",
        "frame/page.js",
        "statistics/statistics.js",
        "statistics/statistics.css",
    )
    assert sum(len(static_content(name)) for name in names) < MAX_BYTES


def test_a_number_leads_to_the_assessment_it_came_from(tmp_path: Path) -> None:
    rows = [
        f"{task},{name},{k},{score + k / 100 + place / 1000},{judge}"
        for place, task in enumerate(("one", "two"))
        for k in (1, 2)
        for name, score in (("ann", 0.2), ("bob", 0.4), ("cas", 0.6))
        for judge in ("strict", "mild")
    ]
    (tmp_path / "scores.csv").write_text(
        "task,candidate,trial,score,judge\n" + "\n".join(rows), "utf-8"
    )
    done = forked.run("import", "scores.csv", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    listed = json.loads(forked.run("review", "list", "--json", folder=tmp_path).stdout)[
        "assessments"
    ]
    ids = [one["id"] for one in listed if one["state"] == "pending"]
    done = forked.run("review", "approve", *ids, "--reviewer", "Ines", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with serving(tmp_path) as server:
        whole = server.get("/statistics/trials.json")
        assert whole["candidates"]
        for row in whole["trials"]:
            for name, link in zip(whole["candidates"], row["opens"], strict=True):
                with urllib.request.urlopen(f"{server.url}{link}&judge=mild", timeout=30) as answer:
                    response = server.get(answer.url.removeprefix(server.url) + ".json")
                (pane,) = response["panes"]
                assert (pane["name"], response["judge"], response["task"], response["k"]) == (
                    name,
                    "mild",
                    row["task"],
                    row["k"],
                )
                assert abs(100 * pane["score"] - 100 * row["scores"][name]) < 0.01
        chart = (
            urllib.request.urlopen(f"{server.url}/statistics/behind", timeout=20).read().decode()
        )
        links = set(re.findall(r'href="(/statistics/trials/t[^"]*)" aria-label', chart))
        assert {
            parse_qs(urlsplit(html.unescape(link)).query)["candidate"][0] for link in links
        } == {"ann", "bob", "cas"}
        page = (
            urllib.request.urlopen(f"{server.url}/assessments/{ids[0]}", timeout=10).read().decode()
        )
        assert "bob · mild" in page, "the other assessments of the trial are named"


def test_two_of_several_that_nobody_named_are_held_to_all_comparisons(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    base = random.normal(0.5, 0.1, 20)
    rows = [
        f"t{task},{name},{k},{np.clip(base[task] + random.normal(0, 0.1) + 0.03 * (name == 'a'), 0, 1):.3f}"
        for task in range(20)
        for k in (1, 2)
        for name in "abcde"
    ]
    (tmp_path / "scores.csv").write_text("task,candidate,trial,score\n" + "\n".join(rows), "utf-8")
    done = forked.run("import", "scores.csv", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with Workspace.open(tmp_path, environment={}) as workspace:
        client = TestClient(
            create_app(workspace), base_url="http://127.0.0.1:8000", headers={"accept": "text/html"}
        )
        pair = client.get("/statistics.json").json()["compare"]
        assert (pair["decision"], pair["p_value"] < 0.05) == ("better", True), "alone it is decided"
        picked = client.get("/results").text
        assert "Not decided among 5 candidates" in picked
        assert "among all 10 comparisons" in picked
        assert "is better than" not in picked.partition("</h1>")[0].partition("<h1")[2]
        named = client.get(f"/results?a={pair['a']}&b={pair['b']}").text
        assert f"{pair['a']} is better than {pair['b']}" in named.partition('id="stats-compare"')[2]


def test_answers_that_nobody_graded_do_not_wait_for_review(tmp_path: Path) -> None:
    line = {
        "custom_id": "one",
        "response": {
            "status_code": 200,
            "body": {
                "model": "m",
                "choices": [
                    {
                        "message": {"role": "assistant", "content": "An answer."},
                        "finish_reason": "stop",
                    }
                ],
            },
        },
        "error": None,
    }
    (tmp_path / "out.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    done = forked.run("import", "out.jsonl", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with Workspace.open(tmp_path, environment={}) as workspace:
        client = TestClient(
            create_app(workspace), base_url="http://127.0.0.1:8000", headers={"accept": "text/html"}
        )
        text = client.get("/results").text
        assert "1 answer not graded" in text
        assert "awaiting review" not in text.partition("<main")[2].partition("</main")[0]


def test_a_warning_names_the_page_s_way(tmp_path: Path) -> None:
    task = {"id": "one", "prompt": "Say a.", "expected": "a", "snippets": {"x": "a", "y": "b"}}
    for name, protocol in (("plain", {}), ("careful", {"protocol": {"blind": 0.2}})):
        suite = {"name": name, "score": "exact", "tasks": [task], **protocol}
        (tmp_path / f"{name}.json").write_text(json.dumps(suite), "utf-8")
        done = forked.run("run", f"{name}.json", folder=tmp_path)
        assert done.returncode == 0, done.stderr
    with Workspace.open(tmp_path, environment={}) as workspace:
        client = TestClient(
            create_app(workspace), base_url="http://127.0.0.1:8000", headers={"accept": "text/html"}
        )
        text = client.get("/results?suite=plain&suite=careful").text
    assert "Use the filter “run” to look at one run at a time." in text
    assert "--run" not in text


@pytest.mark.slow
def test_a_candidates_trials_are_its_own_and_each_link_leads_somewhere(tmp_path: Path) -> None:
    header = "task,candidate,trial,score\n"
    (tmp_path / "one.csv").write_text(
        header + "t1,ann,1,0.5\nt1,bob,1,0.4\nt2,bob,1,0.1\nt2,cas,1,0.9\n", "utf-8"
    )
    (tmp_path / "two.csv").write_text(
        header + "".join(f"x{n},dan,1,0.5\n" for n in range(3)), "utf-8"
    )
    for name in ("two.csv", "one.csv"):
        done = forked.run("import", name, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    with Workspace.open(tmp_path, environment={}) as workspace:
        client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
        for name, tasks in (("ann", ["t1"]), ("bob", ["t1", "t2"]), ("dan", ["x0", "x1", "x2"])):
            rows = client.get(f"/statistics/trials.json?candidate={name}&all_runs=1").json()[
                "trials"
            ]
            assert [row["task"] for row in rows] == tasks
            for row in rows:
                assert row["words"] != ["–"]
                assert client.get(row["open"]).status_code == 200
            page = client.get(
                f"/statistics/trials?candidate={name}&all_runs=1", headers={"accept": "text/html"}
            ).text
            assert page.count("/trials/t") == 2 * len(tasks)
