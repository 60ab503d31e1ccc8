"""`score: code_arena` end to end: pages rendered in Chromium, judges that see and judges that do
not.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.journey.conftest import Command
from tests.support.browser import chromium
from tests.support.model_server import Call, ModelServer
from tests.support.pictures import pixel, size

BROWSER = chromium()
PAGES = {
    "red": "Here it is:\n```html\n<body style='margin:0;background:#ff0000'><h1>Red</h1></body>\n```",
    "words": "I would rather talk about it.",
}


def suite(folder: Path, **changed: Any) -> Path:
    document = {
        "name": "pages",
        "trials": 1,
        "candidates": [{"name": who, "model": f"openai/{who}"} for who in PAGES],
        "judge": "openai/judge-1",
        "score": "code_arena",
        "tasks": [{"id": "landing", "prompt": "Build a red page."}],
        **changed,
    }
    path = folder / "pages.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


def answer(call: Call) -> str:
    if call.schema is None:
        return PAGES[call.body["model"]]
    grades = {
        label: {
            name: {"score": 8, "reason": f"It shows in {name}.", "evidence": []}
            for name in one["properties"]
        }
        for label, one in call.schema["properties"]["candidates"]["properties"].items()
    }
    return json.dumps({"candidates": grades, "report": "Red."})


def rows(assay: Command) -> dict[str, Any]:
    result = assay("review", "list", "--json").document["assessments"]
    return {row["candidates"][0]: row for row in result}


@pytest.mark.slow
@pytest.mark.skipif(isinstance(BROWSER, str), reason=f"no browser: {BROWSER}")
def test_judge_is_sent_a_picture_of_the_page(
    assay: Command, server: ModelServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_CHROMIUM", str(BROWSER))
    server.answer = answer
    ran = assay("run", suite(project), "--json")
    assert ran.code == 0, ran.err
    (judged,) = [call for call in server.calls if call.schema is not None]
    assert judged.body["temperature"] == 0.3
    wide, narrow = (
        base64.b64decode(image["image_url"]["url"].removeprefix("data:image/png;base64,"))
        for image in judged.images
    )
    assert (size(wide), size(narrow)) == ((1280, 800), (390, 844))
    assert pixel(wide, 640, 700) == (255, 0, 0)
    result = rows(assay)
    assert result["red"]["scores"] == {"red": 0.8}
    assert result["red"]["flags"] == []
    assert {grade["criterion"] for grade in result["red"]["grades"]} == {
        "visual_accuracy",
        "code_quality",
        "functionality",
        "responsiveness",
    }
    assert result["words"]["scores"] == {"words": 0.0}
    assert result["words"]["state"] == "pending"


@pytest.mark.slow
@pytest.mark.skipif(isinstance(BROWSER, str), reason=f"no browser: {BROWSER}")
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_judge_reads_code_and_is_flagged_when_images_are_refused(
    assay: Command,
    server: ModelServer,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    provider: str,
) -> None:
    monkeypatch.setenv("ASSAY_CHROMIUM", str(BROWSER))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.address)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-none")
    server.answer = answer
    server.no_images = "this model does not support image input"
    ran = assay("run", suite(project, judge=f"{provider}/judge-1"), "--json")
    assert ran.code == 0, ran.err
    first, second = (call for call in server.calls if call.schema is not None)
    assert first.images
    assert not second.images
    assert "<h1>Red</h1>" in second.prompt
    (flag,) = rows(assay)["red"]["flags"]
    assert flag["kind"] == "no_screenshot"


def test_pages_are_judged_by_code_when_no_browser_is_installed(
    assay: Command, server: ModelServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_CHROMIUM", "/nowhere/chromium")
    server.answer = answer
    ran = assay("run", suite(project), "--json")
    assert ran.code == 0, ran.err
    row = rows(assay)["red"]
    assert row["scores"] == {"red": 0.8}
    (flag,) = row["flags"]
    assert flag["kind"] == "no_screenshot"
    assert "/nowhere/chromium" in flag["detail"]
    assert "/nowhere/chromium is not a program" in assay("doctor").out


def test_one_candidate_of_several_files_makes_one_page(
    assay: Command, server: ModelServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_CHROMIUM", "/nowhere/chromium")
    (project / "index.html").write_text("<!doctype html><link rel=stylesheet href=a.css><p>x</p>")
    (project / "a.css").write_text("p{color:red}")
    server.answer = answer
    tasks = [{"id": "landing", "snippets": {"nora": {"files": ["index.html", "a.css"]}}}]
    path = suite(project, candidates=None, tasks=tasks)
    document = yaml.safe_load(path.read_text())
    del document["candidates"]
    path.write_text(yaml.safe_dump(document))
    ran = assay("run", path, "--json")
    assert ran.code == 0, ran.err
    assert rows(assay)["nora"]["scores"] == {"nora": 0.8}
    again = assay("regrade", ran.document["run_id"], "--judge", "openai/judge-2", "--json")
    assert again.code == 0, again.err


def test_the_rubric_recorded_is_the_one_that_graded(
    assay: Command, server: ModelServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_CHROMIUM", "/nowhere/chromium")
    server.answer = answer
    own = [{"name": "charm"}, {"name": "speed"}]
    for changed, criteria in (
        ({}, ["visual_accuracy", "code_quality", "functionality", "responsiveness"]),
        ({"rubric": own}, ["charm", "speed"]),
    ):
        server.forget()
        run = assay("run", suite(project, **changed), "--json").document["run_id"]
        graded = {grade["criterion"] for grade in rows(assay)["red"]["grades"]}
        recorded = assay("show", run, "--json").document["rubric"]
        assert [criterion["name"] for criterion in recorded] == criteria
        assert graded == set(criteria)
        (judged,) = [call for call in server.calls if call.schema is not None]
        assert all(f"`{name}`" in judged.prompt for name in criteria)


def test_a_calibration_measures_the_rubric_that_grades_pages(
    assay: Command, server: ModelServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_CHROMIUM", "/nowhere/chromium")
    server.answer = answer
    path = suite(project)
    assert assay("run", path, "--json").code == 0
    asked = next(call.prompt for call in server.calls if call.schema is not None)
    server.forget()
    assert assay("calibrate", "openai/judge-1", "--suite", path, "--repeat", 1, "--json").code == 0
    shown = [
        (call, (call.schema or {})["properties"]["candidates"]["properties"])
        for call in server.calls
    ]
    alone = [(call, candidates["A"]) for call, candidates in shown if len(candidates) == 1]
    assert alone
    for call, candidate in alone:
        assert [*candidate["properties"]] == [
            "visual_accuracy",
            "code_quality",
            "functionality",
            "responsiveness",
        ]
        assert "## The page to grade" in call.prompt
        assert call.body["temperature"] == 0.3
    assert "## The page to grade" in asked
    assert rows(assay)["red"]["calibration"] is not None


def test_pages_and_text_are_judged_in_suites_of_their_own(assay: Command, project: Path) -> None:
    tasks = [
        {"id": "landing", "prompt": "Build."},
        {"id": "essay", "prompt": "Write.", "score": "judge"},
    ]
    refused = assay("validate", suite(project, tasks=tasks), "--json")
    assert refused.code == 2
    assert "is judge, but tasks above have code_arena" in refused.out
    assert "Put the tasks with judge into a separate suite" in refused.out
