"""The page that compares grades, in a browser: judge against person, attempts, filters in the
address, keys, hostile words.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect
from tests.support import forked
from tests.support.documented_keys import as_table
from tests.web.conftest import CRITERIA, NAMES, Served, judged_store

from assay.app.workspace import Workspace
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.observations import (
    BlindVerdict,
    GradesShown,
    Observation,
    ObservationBody,
    OpinionGiven,
)
from assay.domain.selection import Selection
from assay.web import keyboard

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from assay.domain.identifiers import AssessmentKey

pytestmark = pytest.mark.slow


def review(folder: Path, *arguments: str) -> Any:
    done = forked.run("review", *arguments, "--json", "--reviewer", "Ines", folder=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine of ten assessments are decided: one corrected, one judged anew, one rejected; the last
    waits.
    """
    folder = judged_store(tmp_path_factory.mktemp("decided") / "store")
    keys = [
        row["id"]
        for row in review(folder, "list")["assessments"]
        if None not in row["scores"].values()
    ]
    corrected, rerun, rejected, _waits, *rest = keys
    review(
        folder,
        "correct",
        corrected,
        "--score",
        f"{NAMES[0]}=0.95",
        "--reason",
        "<img src=x onerror=alert(1)>",
    )
    again = review(folder, "rerun", rerun, "--note", "look again")["id"]
    review(folder, "reject", rejected, "--reason", "made up")
    review(folder, "approve", again, *rest)
    return folder


@pytest.fixture
def decided(served: Served) -> Served:
    return served


def test_judge_and_person_stand_beside_each_other_widest_gap_first(
    page: Page, decided: Served
) -> None:
    page.goto(f"{decided.url}/compare/grades?run={decided.run_id}&by=people")
    first = page.locator("article.answer").first
    expect(first.locator("h2")).to_contain_text(NAMES[0], use_inner_text=True)
    expect(first.locator(".says")).to_contain_text("differ by", use_inner_text=True)
    assert first.locator("tbody th").all_inner_texts()[:-1] == list(CRITERIA)
    expect(first, "shown as it stands").to_contain_text("<img src=x", use_inner_text=True)
    expect(first).to_contain_text("by Ines", use_inner_text=True)
    summary = page.locator("section[aria-labelledby=summary-title]").inner_text()
    assert "acceptance, not agreement" in summary
    assert "a review protocol with a blind-first share" in summary
    response = decided.get(f"/compare/grades.json?run={decided.run_id}&by=people&only=differ")
    assert [(row["candidate"], row["panes"][1]["score"]) for row in response["rows"]] == [
        (NAMES[0], 0.95)
    ]
    assert response["waiting"] == 2 * len(NAMES), "what waits is left out, and said"
    assert decided.get(f"/compare/grades.json?run={decided.run_id}&by=people&only=error")[
        "of"
    ] == len(NAMES)


def test_scores_by_people_have_panes_and_only_blind_ones_agreement(
    page: Page, decided: Served
) -> None:
    with Workspace.open(decided.folder, environment={}) as workspace:
        approved = [
            one.key
            for one in workspace.archive.assessments.matching(
                Selection(), states=frozenset({AssessmentState.APPROVED})
            )
        ]
        run, first, second = RunId(decided.run_id), approved[0], approved[1]

        def note(key: AssessmentKey, who: str, body: ObservationBody) -> None:
            named = f"{type(body).__name__}:{key}:{who}"
            workspace.observations.note(
                [
                    Observation(
                        run_id=run,
                        assessment=key,
                        reviewer=who,
                        at=workspace.clock.now(),
                        idempotency_key=named,
                        body=body,
                    )
                ]
            )

        overall = dict.fromkeys(NAMES, 0.25)
        scores: dict[tuple[str, str | None], float] = {
            (name, criterion): 0.25 for name in NAMES for criterion in CRITERIA
        }
        verdict = BlindVerdict(scores=scores, overall=overall)
        for key in (first, second):
            note(key, "<b>Ada</b>", verdict)
        note(first, "Bo", GradesShown())
        note(first, "Bo", verdict)
        note(
            first,
            "Cy",
            OpinionGiven(verb=Verb.CORRECT, reason="too kind", result=overall, corrections=scores),
        )
    page.goto(f"{decided.url}/compare/grades?run={decided.run_id}&by=people")
    response = decided.get(f"/compare/grades.json?run={decided.run_id}&by=people")
    row = next(one for one in response["rows"] if len([pane for pane in one["panes"] if pane]) == 4)
    assert row["panes"][2]["score"] == row["panes"][3]["score"] == 0.25
    main = page.locator("main").text_content() or ""
    assert "<b>Ada</b>, blind first" in main
    assert "Cy, one of two" in main
    assert "too kind" in main
    assert "Bo" not in main, "who saw the judge's scores first has no verdict of their own"
    assert response["summary"]["n_blind"] == 2 * len(NAMES), (
        "an opinion and what was no blind verdict are no agreement"
    )


def test_attempts_stand_beside_each_other_with_their_words(page: Page, decided: Served) -> None:
    page.goto(f"{decided.url}/compare/grades?run={decided.run_id}&by=attempts")
    expect(page.locator("article.answer")).to_have_count(len(NAMES))
    row = page.locator("article.answer").first
    expect(row.locator(".pane")).to_have_count(2)
    assert row.locator("mark").count() > 0
    page.keyboard.press("j")
    expect(page.locator("article.answer:target")).to_be_focused()
    expect(row, "one row at a time").not_to_be_visible()
    expect(page.locator(".task-list [aria-current=true]")).to_have_attribute("href", "#row-2")
    page.keyboard.press("]")
    assert page.evaluate("document.activeElement.matches('.words')")
    page.keyboard.press("?")
    expect(page.locator("dialog#keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    page.wait_for_url("**diff=line**")
    page.keyboard.press("d")
    page.wait_for_url("**diff=off**")
    expect(page.locator("article.answer mark")).to_have_count(0)


def test_a_criterion_is_chosen_in_the_address_on_the_page_and_in_its_twin(
    page: Page, decided: Served
) -> None:
    address = f"/compare/grades?run={decided.run_id}&by=people"
    page.goto(decided.url + address)
    page.locator("select[name=criterion]").select_option(CRITERIA[1])
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(f"**criterion={CRITERIA[1]}**")
    row = page.locator("article.answer").first
    expect(row.locator("tbody th"), "neither others nor the weighted score").to_have_text(
        [CRITERIA[1]], use_inner_text=True
    )
    response = decided.get(f"{address.replace('grades?', 'grades.json?')}&criterion={CRITERIA[1]}")
    assert (response["criterion"], tuple(response["criteria"])) == (CRITERIA[1], CRITERIA)
    first = response["rows"][0]["panes"][0]
    assert [one["criterion"] for one in first["grades"]] == [CRITERIA[1]]
    assert first["score"] == first["grades"][0]["score"]


def test_grades_are_reached_from_where_one_looks_for_them(page: Page, decided: Served) -> None:
    link = page.get_by_role("link", name="Compare grades")
    page.goto(f"{decided.url}/compare")
    expect(link).to_have_attribute("href", "/compare/grades")
    page.goto(f"{decided.url}/runs/{decided.run_id}")
    asides = page.locator("aside.facts a[href^='/compare/grades']")
    expect(asides).to_have_text(["judge and person", "attempts"], use_inner_text=True)
    rows = review(decided.folder, "list")["assessments"]
    done = next(row["id"] for row in rows if row["state"] == "approved")
    waits = next(row["id"] for row in rows if row["state"] == "pending")
    page.goto(f"{decided.url}/assessments/{done}")
    link.click()
    page.wait_for_url("**/compare/grades?**")
    assert page.locator("article.answer").count()
    page.goto(f"{decided.url}/assessments/{waits}")
    expect(link, "nothing is to be seen of what waits").to_have_count(0)
    page.goto(f"{decided.url}/statistics/behind?run={decided.run_id}&criterion={CRITERIA[0]}")
    narrowed = page.locator("section[aria-labelledby=agreement-title] a[href^='/compare/grades']")
    assert f"criterion={CRITERIA[0]}" in (narrowed.get_attribute("href") or "")


def test_one_judge_alone_is_said_and_leads_on(page: Page, decided: Served) -> None:
    page.goto(f"{decided.url}/compare/grades?run={decided.run_id}")
    expect(page.get_by_text("Only one judge graded this run.")).to_be_visible()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("by=nobody", "Use one of judges, attempts, people"),
        ("apart=-3", "expected points from 0 to 100"),
        ("from=x", "expected a whole number"),
        ("by=atempts", "Did you mean 'attempts'?"),
        ("after=x", "not a valid page position"),
        ("by=people&judge=nobody", "nobody"),
        ("criterion=zz", "This run has:"),
        ("by=people&candidate=wilhelmin", "wilhelmina"),
    ],
)
def test_wrong_address_names_the_valid_values(
    page: Page, watch: Any, decided: Served, asked: str, said: str
) -> None:
    watch.expected = ("422", "404")
    page.goto(f"{decided.url}/compare/grades?run={decided.run_id}&{asked}")
    expect(page.locator("main")).to_contain_text(said, use_inner_text=True)


def test_its_keys_are_documented_as_they_are_bound() -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "compare-answers.md"
    assert as_table(keyboard.BESIDE) in page.read_text("utf-8")


def test_scrolling_apart_is_kept_in_the_address_by_keys_as_well(
    page: Page, decided: Served
) -> None:
    page.goto(f"{decided.url}/compare/grades?run={decided.run_id}&by=attempts")
    page.get_by_text("Advanced").click()
    page.get_by_label("Scroll together").uncheck()
    page.wait_for_url("**together=no**")
    page.locator("article.answer").first.focus()
    page.keyboard.press("d")
    page.wait_for_url("**diff=line**")
    assert "together=no" in page.url
    expect(page.get_by_label("Scroll together")).not_to_be_checked()


def test_criteria_are_terms_and_only_rows_and_panes_are_headings(
    page: Page, decided: Served
) -> None:
    page.goto(f"{decided.url}/compare/grades?run={decided.run_id}&by=attempts")
    row = page.locator("article.answer").first
    expect(row.locator("h2")).to_have_count(1)
    expect(row.locator("h3")).to_have_text(["Attempt 1", "Attempt 2"], use_inner_text=True)
    expect(row.locator("h4, h5")).to_have_count(0)
    assert row.locator(".words").first.locator("dt").all_inner_texts()[: len(CRITERIA)] == list(
        CRITERIA
    )
