"""Reports through the command line: one file that fetches nothing, says what the statistics say,
and hides what was asked.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.journey.conftest import Command
from tests.support.browser import browser
from tests.support.model_server import ModelServer
from tests.support.sets import NAMES, write_set

JUDGE = "openai/judge-1"
HOSTILE = '<script>alert(1)</script>"|&\x1b[2J\\input{x}'


@pytest.fixture
def reviewed(assay: Command, server: ModelServer, project: Path) -> dict[str, Any]:
    """A judged set of 15 trials of which 12 are approved, one is rejected for a hostile reason, 2
    wait; the comparison.
    """
    assay("run", write_set(project), "--judge", JUDGE)
    ids = [row["id"] for row in assay("review", "list", "--json").document["assessments"]]
    assay("review", "approve", *ids[:12], "--reviewer", "rita")
    assay("review", "reject", ids[12], "--reason", f"{HOSTILE} by nora", "--reviewer", "sam")
    document: dict[str, Any] = assay("rank", "--json").document
    return document


def written(assay: Command, kind: str, *more: str) -> str:
    output = assay("export", kind, *more)
    assert output.code == 0, output.err
    return output.out


def test_the_html_report_is_one_file_that_fetches_and_runs_nothing(
    assay: Command, reviewed: dict[str, Any], project: Path
) -> None:
    assert assay("export", "html", "--output", "report.html").code == 0
    text = (project / "report.html").read_text("utf-8")
    assert (
        re.findall(r"(?:src|href|srcset|action|xlink:href)\s*=\s*[\"']?(?!#|data:)[^\s>]+", text)
        == []
    )
    assert re.findall(r"url\((?!#|[\"']?data:)", text) == []
    assert re.findall(r"<script|<iframe|<object|\son\w+=|@import", text) == []
    asked: list[str] = []
    items: list[str] = []
    with browser() as running:
        page = running.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: items.append(message.text))
        page.goto((project / "report.html").as_uri())
        wide = page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )
        page.set_viewport_size({"width": 390, "height": 800})
        narrow = page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )
        body = page.inner_text("body")
        printed = page.pdf(prefer_css_page_size=True)
    assert asked == [(project / "report.html").as_uri()]
    assert items == []
    assert (wide, narrow) == (True, True)
    assert "<script>alert(1)</script>" in body
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page[^s]", printed)) >= 2


def test_every_report_format_shows_the_statistics(assay: Command, reviewed: dict[str, Any]) -> None:
    best, second = reviewed["candidates"][0], reviewed["candidates"][1]
    score = f"{100 * best['mean']:.1f}"
    verdict = assay("compare", best["candidate"], second["candidate"], "--json").document["verdict"]
    html, markdown, latex = (written(assay, kind) for kind in ("html", "markdown", "latex"))
    for text in (html, markdown, latex):
        assert score in text
        assert re.search(
            r"12 trials count \((\d+) approved: \1 by script\); 2 await review, 1 rejected", text
        )
    assert verdict.replace("'", "&#39;") in html
    assert verdict.split(".")[0] in markdown.replace("\\", "")
    assert "uncalibrated" in str(assay("stats", "--json").document["warnings"])
    assert "no calibration matches" in html
    for name in NAMES:
        assert name in html
        assert name in markdown
        assert name in latex


def test_hostile_text_is_shown_and_never_markup(assay: Command, reviewed: dict[str, Any]) -> None:
    html, markdown = written(assay, "html"), written(assay, "markdown")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<script>" not in html
    assert r"\<script\>alert(1)\</script\>" in markdown
    assert "rejected | sam" in markdown
    row = next(line for line in markdown.splitlines() if "alert" in line)
    assert len(re.findall(r"(?<!\\)\|", row)) == 7


def test_report_names_suite_run_and_models(assay: Command, reviewed: dict[str, Any]) -> None:
    html = written(assay, "html")
    shown = assay("show", reviewed["runs"][0], "--json").document
    for fact in (
        shown["suite_digest"][:16],
        shown["environment"]["python"],
        shown["environment"]["assay"],
        str(shown["seed"]),
    ):
        assert fact in html
    assert re.search(r"<td>openai/judge-1</td>", html)


def test_an_anonymised_report_names_nobody(assay: Command, reviewed: dict[str, Any]) -> None:
    for kind in ("html", "markdown", "latex"):
        text = written(assay, kind, "--anonymise")
        assert [name for name in (*NAMES, "rita", "sam") if re.search(rf"\b{name}\b", text)] == []
        assert "candidate 1" in text
    assert "reviewer 2" in written(assay, "markdown", "--anonymise")


def cases(text: str) -> dict[tuple[str, str], str]:
    by_name = {}
    for case in ElementTree.fromstring(text).iter("testcase"):
        kinds = [child.tag for child in case]
        by_name[case.attrib["classname"], case.attrib["name"]] = kinds[0] if kinds else "passed"
    return by_name


def test_junit_passes_a_task_from_the_threshold_on(
    assay: Command, reviewed: dict[str, Any]
) -> None:
    stats = assay("stats", "--json").document["candidates"]
    means = sorted(task["mean"] for one in stats for task in one["by_task"])
    threshold = means[len(means) // 2]
    text = written(assay, "junit", "--threshold", str(threshold))
    result = cases(text)
    for one in stats:
        for task in one["by_task"]:
            wanted = "passed" if task["mean"] >= threshold else "failure"
            assert result[one["candidate"], task["task"]] == wanted
        assert result[one["candidate"], "as a whole"] == (
            "passed" if one["mean"] >= threshold else "failure"
        )
    assert {"passed", "failure"} <= set(result.values())
    root = ElementTree.fromstring(text)
    assert int(root.attrib["tests"]) == len(result)
    assert int(root.attrib["failures"]) == sum(kind == "failure" for kind in result.values())
    assert "at least" in text


def test_junit_against_a_candidate_ends_with_the_gate(
    assay: Command, reviewed: dict[str, Any]
) -> None:
    base, others = NAMES[0], NAMES[1:]
    result = cases(written(assay, "junit", "--against", base, "--margin", "5pts"))
    assert {name for name, _ in result} == set(others)
    for name in others:
        outcome = assay("gate", name, "--against", base, "--margin", "5pts", "--json").document[
            "outcome"
        ]
        assert (
            result[name, "as a whole"]
            == {"fine": "passed", "worse": "failure", "undecided": "skipped"}[outcome]
        )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("junit",), "--threshold"),
        (("junit", "--threshold", "0.5", "--against", "nora"), "needs a rule"),
        (("junit", "--against", "nora"), "--margin"),
        (("junit", "--against", "norah", "--margin", "3pts"), "'nora'"),
        (("junit", "--threshold", "3"), "--threshold"),
        (("csv", "--threshold", "0.5"), "for junit"),
        (("html", "--all"), "csv, parquet, json or jsonl"),
    ],
)
def test_impossible_report_gives_a_clear_error(
    assay: Command, reviewed: dict[str, Any], arguments: tuple[str, ...], said: str
) -> None:
    answer = assay("export", *arguments)
    assert answer.code == 2
    assert said in answer.err


def test_an_empty_store_gives_reports_that_say_so(assay: Command, project: Path) -> None:
    assert "<h1>No run</h1>" in written(assay, "html")
    assert "No trials count yet." in written(assay, "markdown")
    assert cases(written(assay, "junit", "--threshold", "0.5")) == {}
