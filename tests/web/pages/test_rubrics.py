"""The pages about criteria: rubrics, their versions, how criteria fare, and that nothing of what
waits is told.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.support import forked
from tests.web.accessibility import WIDTHS, serious
from tests.web.conftest import CRITERIA, NAMES, Served
from tests.web.pages.test_statistics import decide

if TYPE_CHECKING:
    from playwright.sync_api import Page


NASTY = "</script><img src=x onerror=alert(1)>"


def run_again(served: Served, rubric: list[dict[str, Any]]) -> None:
    """The same suite by another rubric, graded by a person, so that nobody is asked."""
    task = {
        "id": "one",
        "prompt": "Write a gate.",
        "score": "judge",
        "snippets": dict.fromkeys(NAMES, "pass"),
    }
    suite = {"name": "gates", "tasks": [task], "judge": "human", "rubric": rubric}
    path = Path(served.folder) / "second.json"
    path.write_text(json.dumps(suite), "utf-8")
    done = forked.run("run", path.name, "--trials", "1", folder=served.folder)
    assert done.returncode in (0, 1), done.stderr


@pytest.fixture
def two_versions(served: Served) -> Served:
    ours = served.get("/criteria.json")["rubrics"][0]["criteria"]
    kept = [
        {"name": one["name"], "weight": one["weight"], "guidance": one["guidance"]} for one in ours
    ]
    kept[0] |= {"weight": 5, "guidance": kept[0]["guidance"].replace("Look", "Glance")}
    run_again(
        served,
        [*kept[:3], {"name": NASTY, "guidance": f"{NASTY}\u202eevil", "scale": ["poor", "good"]}],
    )
    return served


def test_a_rubric_stands_with_its_runs_and_criteria(page: Page, served: Served) -> None:
    page.goto(served.url + "/criteria")
    expect(page.locator("h1")).to_have_text("Rubrics", use_inner_text=True)
    expect(page.locator("tbody th")).to_have_text(list(CRITERIA), use_inner_text=True)
    page.get_by_role("link", name="Statistics by criterion").click()
    expect(page.locator("h1")).to_have_text("gates, version 1", use_inner_text=True)
    expect(page.get_by_text("No grade on this criterion counts yet.")).to_have_count(len(CRITERIA))


def test_waiting_grades_never_leave_the_server(served: Served) -> None:
    digest = served.get("/criteria.json")["rubrics"][0]["digest"]
    text = json.dumps(served.get(f"/criteria/{digest}.json"))
    assert "guards the" not in text, "no reason of the judge"
    assert '"n": 0' in text
    assert not any(one["highest"] or one["decided"] for one in json.loads(text)["criteria"])


def test_decided_grades_show_how_a_criterion_fares(page: Page, served: Served) -> None:
    assert any([decide(served, "approve", f"a{n}") for n in (2, 3, 4, 7)])  # noqa: C419 # all of them
    page.goto(served.url + "/criteria/gates@1")
    assert "/criteria/gates" not in page.url, "one address a rubric"
    card = page.locator(".criterion-card").first
    expect(card).to_contain_text("Grades that count", use_inner_text=True)
    assert card.locator(".spread rect").count() > 1
    card.get_by_text("As a table").click()
    expect(card.locator("table td").first).to_be_visible()
    expect(card).to_contain_text("no blind verdicts yet", use_inner_text=True)
    expect(card.locator("blockquote").first).to_contain_text("guards the", use_inner_text=True)
    card.locator("figure a").first.click()
    page.wait_for_url("**/assessments/a*")


def test_two_versions_are_compared_word_by_word(page: Page, two_versions: Served) -> None:
    page.goto(two_versions.url + "/criteria/gates@2")
    expect(page.locator("h1")).to_have_text("gates, version 2", use_inner_text=True)
    page.get_by_role("link", name="Compare with this version").click()
    page.wait_for_url("**against=**")
    changed = page.locator(".difference.changed")
    expect(changed.locator("del")).to_have_text(["2", "Look"], use_inner_text=True)
    expect(changed.locator("ins")).to_have_text(["5", "Glance"], use_inner_text=True)
    assert page.locator(".difference.removed h3").inner_text().startswith(CRITERIA[-1])
    assert page.locator(".difference.added h3").inner_text().startswith("</script><img")
    expect(page.locator("img")).to_have_count(0)
    page.get_by_role("link", name="Stop comparing").click()
    page.wait_for_url(lambda url: "against" not in url)


def test_the_order_of_a_comparison_is_that_of_time(two_versions: Served) -> None:
    old, new = (
        two_versions.get(f"/criteria/gates@{one}.json?against=gates@{other}")["against"]["changes"]
        for one, other in ((1, 2), (2, 1))
    )
    assert old == new
    assert {one["how"] for one in new} == {"changed", "same", "added", "removed"}


def test_an_unknown_rubric_is_told(page: Page, served: Served, watch: Any) -> None:
    watch.expected = ("404",)
    page.goto(served.url + "/criteria/gates@9")
    expect(page.locator("main")).to_contain_text("No rubric named", use_inner_text=True)


def test_grades_can_be_taken_along(served: Served) -> None:
    import urllib.request

    assert decide(served, "approve", "a2")
    digest = served.get("/criteria.json")["rubrics"][0]["digest"]
    with urllib.request.urlopen(f"{served.url}/criteria/{digest}/grades.csv", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    assert lines[0] == "criterion,from,to,counted"
    assert (
        sum(int(line.rsplit(",", 1)[1]) for line in lines[1:] if line.startswith("integrity,")) == 3
    )


@pytest.mark.slow
def test_axe_finds_nothing_serious_and_nothing_is_clipped(page: Page, two_versions: Served) -> None:
    for one in ("a2", "a3"):
        decide(two_versions, "approve", one)
    for path in ("/criteria", "/criteria/gates@1", "/criteria/gates@2?against=gates@1"):
        page.goto(two_versions.url + path)
        assert "against" not in path or serious(page) == [], path
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            over = page.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert over <= 0, f"{path} is {over} px too wide at {width}"
