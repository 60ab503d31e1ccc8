"""The pages about calibration: records and where they stand, the chart, and measuring a judge from
the browser.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from playwright.sync_api import expect
from tests.journey.test_calibrate import deserved, grading
from tests.support.model_server import ModelServer
from tests.web.accessibility import WIDTHS, serious
from tests.web.conftest import Served, eventually, serving

from assay.web.templating import static_content

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow


JUDGE = "openai/judge-1"
NASTY = "</script><img src=x onerror=alert(1)>\u202e"
ROWS = [
    {
        "id": f"s{n}",
        "prompt": f"Say {n}. {NASTY}",
        "response": f"It is number {n}! {NASTY}",
        "score": n / 10,
        "kind": NASTY[9:40],
    }
    for n in range(10)
]
KNOWN = {f"It is number {n}!": n / 10 for n in range(10)}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running_server:
        running_server.answer = grading(deserved(KNOWN, off=0.02))
        yield running_server


@pytest.fixture
def served(
    tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    """A server in a folder with a samples file and a judge in its settings; nothing was measured
    yet.
    """
    (tmp_path / "assay.yaml").write_text(
        yaml.safe_dump(
            {"judge": JUDGE, "prices": {JUDGE: {"input": 1, "output": 1}}, "concurrency": 1}
        ),
        "utf-8",
    )
    (tmp_path / "mine.json").write_text(json.dumps(ROWS), "utf-8")
    (tmp_path / ".hidden.json").write_text(json.dumps(ROWS), "utf-8")
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    with serving(tmp_path) as opened:
        yield opened


def post(served: Served, path: str, body: Any) -> Any:
    asked = urllib.request.Request(
        served.url + path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return json.load(answer)


def jobs(served: Served) -> list[dict[str, Any]]:
    row: list[dict[str, Any]] = served.get("/api/calibrations/jobs")["jobs"]
    return row


def measured(served: Served, **more: Any) -> int:
    """Measure the judge over our file; the number of the record."""
    before = {job["job"] for job in jobs(served)}
    post(served, "/api/calibrations", {"models": [JUDGE], "samples": "mine.json", **more})
    eventually(lambda: all(job["state"] not in ("waiting", "measuring") for job in jobs(served)))
    (mine,) = (job for job in jobs(served) if job["job"] not in before)
    assert mine["state"] == "done", mine
    return int(mine["number"])


def test_a_judge_is_measured_from_the_page(page: Page, served: Served, server: ModelServer) -> None:
    page.goto(served.url + "/calibration")
    expect(page.get_by_text("No judge is calibrated yet.")).to_be_visible()
    page.get_by_role("button", name="Calibrate", exact=True).click()
    expect(page.locator("#problem")).to_have_text("Choose a judge.", use_inner_text=True)
    page.get_by_label(JUDGE).check()
    page.get_by_label("a file in the folder").check()
    page.get_by_label("Samples file").fill("mine.json")
    page.get_by_role("button", name="Estimate cost").click()
    page.get_by_text("10 calls, about $").wait_for()
    assert (
        page.locator("#estimate").inner_text().splitlines()[-1]
        == f"{JUDGE}, graded as in the defaults: 10 references"
    )
    assert not server.calls, "the cost is said before anything is asked"
    server.delay_s = 0.1
    page.get_by_role("button", name="Calibrate", exact=True).click()
    page.locator("#jobs progress").wait_for()
    page.get_by_role("link", name=f"Open {JUDGE}").click(timeout=30_000)
    page.wait_for_url("**/calibration/1")
    assert len(server.calls) == 10
    expect(page.locator(".chart svg:visible")).to_have_count(1)
    expect(page.locator("tbody tr")).to_have_count(10)
    page.get_by_text("s3", exact=True).click()
    shown = page.locator("tbody tr").nth(3).inner_text()
    assert "It is number 3! </script><img" in shown
    assert "⟨U+202E⟩" in shown
    expect(page.locator("img")).to_have_count(0)
    expect(page.get_by_text("Bias by criterion").locator("..")).to_contain_text(
        "quality", use_inner_text=True
    )
    page.goto(served.url + "/calibration")
    expect(page.locator("tbody th a")).to_have_text(JUDGE, use_inner_text=True)
    expect(page.locator("tbody")).to_contain_text("current", use_inner_text=True)


def test_stopped_calibration_continues_from_its_answers(
    page: Page, served: Served, server: ModelServer
) -> None:
    server.delay_s = 0.4
    post(served, "/api/calibrations", {"models": [JUDGE], "samples": "mine.json"})
    page.goto(served.url + "/calibration")
    eventually(lambda: jobs(served)[0]["done"] >= 2)
    page.get_by_role("button", name=f"Stop {JUDGE}").click()
    page.locator("#jobs").get_by_text("paid answers are kept").wait_for()
    assert served.get("/calibration.json")["calibrations"] == []
    server.delay_s = 0.0
    before = len(server.calls)
    ahead = post(served, "/api/calibrations/look", {"models": [JUDGE], "samples": "mine.json"})
    kept = ahead["judges"][0]["taken_over"]
    assert kept >= 2
    measured(served)
    assert len(server.calls) - before == 10 - kept


def test_paid_calibration_answers_survive_the_server(served: Served, server: ModelServer) -> None:
    served.kill()
    served = Served(served.folder)  # a process, so that it is killed while it works
    served.start()
    server.delay_s = 0.2
    post(served, "/api/calibrations", {"models": [JUDGE], "samples": "mine.json"})
    eventually(lambda: jobs(served)[0]["done"] >= 3)
    served.kill()
    served.start()
    server.delay_s = 0.0
    assert jobs(served) == []
    ahead = post(served, "/api/calibrations/look", {"models": [JUDGE], "samples": "mine.json"})
    assert ahead["judges"][0]["taken_over"] >= 3
    served.kill()


def test_pasted_samples_are_read_line_by_line_and_told_by_their_place(
    served: Served, server: ModelServer
) -> None:
    pasted = "\n".join(json.dumps(row) for row in ROWS[:9])
    number = measured(served, samples=None, pasted=pasted)
    assert served.get(f"/calibration/{number}.json")["n"] == 9
    assert not list((Path(served.folder) / ".assay" / "calibrating").iterdir()), (
        "nothing is left behind"
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(
            served,
            "/api/calibrations",
            {"models": [JUDGE], "pasted": '[{"prompt": "p", "response": "r"}]'},
        )
    result = json.load(refused.value)["error"]
    assert result["where"] == "the pasted samples"
    assert "has no `score`" in result["problem"]
    assert "calibrating" not in json.dumps(result)


@pytest.mark.parametrize(
    "path", ["../mine.json", "/etc/passwd", ".hidden.json", "assay.yaml/..", "none.json"]
)
def test_no_file_outside_the_folder_is_read(served: Served, server: ModelServer, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(served, "/api/calibrations/look", {"models": [JUDGE], "samples": path})
    assert refused.value.code == 404
    assert not server.calls


def test_a_judge_that_answers_nothing_gets_no_record(
    page: Page, served: Served, server: ModelServer
) -> None:
    server.answer = lambda call: "no idea"
    page.goto(served.url + "/calibration")
    post(served, "/api/calibrations", {"models": [JUDGE], "samples": "mine.json"})
    page.reload()
    page.locator("#jobs").get_by_text(
        "scored none of 10 references, so no calibration was stored"
    ).wait_for(timeout=30_000)
    assert served.get("/calibration.json")["calibrations"] == []


@pytest.mark.parametrize("model", ["echo", "replay/nope", "anthropic/no-key", "human"])
def test_a_model_that_cannot_be_measured_is_the_user_s_to_mend(
    served: Served, server: ModelServer, model: str
) -> None:
    for path in ("/api/calibrations/look", "/api/calibrations"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            post(served, path, {"models": [model]})
        assert refused.value.code == 422, path
        assert json.load(refused.value)["error"]["problem"]


def test_unknown_bias_of_a_criterion_is_shown_as_unknown(page: Page, served: Served) -> None:
    from assay.app.workspace import Workspace

    number = measured(served)
    with Workspace.open(Path(served.folder)) as workspace:
        record = workspace.calibrations.record(number)
        assert record is not None
        none = workspace.calibrations.keep(
            replace(record, document={**record.document, "by_criterion": {}})
        )
        document = {
            name: value for name, value in record.document.items() if name != "by_criterion"
        }
        old = workspace.calibrations.keep(replace(record, document=document))
    page.goto(f"{served.url}/calibration/{none.number}")
    page.get_by_text("The judge gave no usable grade for any reference in this record.").wait_for()
    page.goto(f"{served.url}/calibration/{old.number}")
    page.get_by_text(
        "This record was measured before criteria were recorded separately."
    ).wait_for()


def test_the_statistics_hear_of_a_new_calibration(served: Served, server: ModelServer) -> None:
    server.answer = grading(lambda shown: 0.5)
    task = {
        "id": "one",
        "prompt": "Say it.",
        "score": "judge",
        "snippets": {"nora": "it", "omar": "that"},
    }
    suite = {"name": "kind", "review": "none", "judge": JUDGE, "tasks": [task]}
    (Path(served.folder) / "kind.json").write_text(json.dumps(suite), "utf-8")
    post(served, "/api/start", {"suite": "kind.json", "trials": 3})

    def warned() -> list[bool]:
        items = served.get("/statistics.json"), served.get("/statistics/behind.json")
        return ["uncalibrated_judge" in json.dumps(one) for one in items]

    eventually(lambda: warned() == [True, True])
    measured(served, suite="kind.json")
    eventually(lambda: warned() == [False, False])


def test_the_same_key_is_the_same_start(served: Served, server: ModelServer) -> None:
    body = {"models": [JUDGE], "samples": "mine.json", "key": "pressed-twice"}
    first, second = (post(served, "/api/calibrations", body)["jobs"] for _ in range(2))
    assert [job["job"] for job in first] == [job["job"] for job in second]
    eventually(lambda: jobs(served)[0]["state"] == "done")
    assert len(server.calls) == 10


def test_a_newer_record_takes_the_place_of_an_older_one(page: Page, served: Served) -> None:
    old, new = measured(served), measured(served)
    states = {
        one["number"]: (one["state"], one["replaced_by"])
        for one in served.get("/calibration.json")["calibrations"]
    }
    assert states == {new: ("current", None), old: ("replaced", new)}
    page.goto(f"{served.url}/calibration/{old}")
    page.get_by_role("link", name="replaced by a newer measurement").click()
    page.wait_for_url(f"**/calibration/{new}")


def test_calibration_record_shows_later_changes(tmp_path: Path, served: Served) -> None:
    measured(served)
    task = {
        "id": "one",
        "prompt": "Say it.",
        "score": "judge",
        "snippets": {"nora": "it", "omar": "that"},
    }
    rubric = [{"name": "tone", "guidance": "Is it kind?"}]
    suite = {
        "name": "kind",
        "judge": {"model": JUDGE, "temperature": 0.9},
        "rubric": rubric,
        "tasks": [task],
    }
    (Path(served.folder) / "kind.json").write_text(json.dumps(suite), "utf-8")
    post(served, "/api/start", {"suite": "kind.json", "trials": 1})
    eventually(lambda: served.get("/calibration.json")["calibrations"][0]["used"])
    (one,) = served.get("/calibration.json")["calibrations"]
    assert (one["state"], one["changed"]) == ("out_of_date", ["rubric", "parameters"])
    newer = measured(served)
    row = served.get("/calibration.json")["calibrations"]
    assert {one["number"]: one["state"] for one in row}[newer] == "current"
    eventually(lambda: served.get("/runs.json")["runs"][0]["waiting"] == 1)
    row = served.get("/calibration.json")["calibrations"]
    assert row[0]["settings_of"] == "a run under review", (
        "which judge grades what waits is not told"
    )


def test_the_chart_comes_as_files(served: Served) -> None:
    number = measured(served)
    for ending, begins in (
        ("svg", b"<svg"),
        ("png", b"\x89PNG"),
        ("csv", b"deserved,given"),
        ("json", b"{"),
    ):
        with urllib.request.urlopen(
            f"{served.url}/calibration/{number}/chart.{ending}", timeout=30
        ) as answer:
            content = answer.read()
        assert content.startswith(begins)
        assert b"onerror" not in content or ending == "csv"
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"{served.url}/calibration/{number}/chart.exe", timeout=10)


def test_axe_finds_nothing_serious_and_nothing_is_clipped(page: Page, served: Served) -> None:
    number = measured(served)
    for path in ("/calibration", f"/calibration/{number}"):
        page.goto(served.url + path)
        if path.endswith(str(number)):
            expect(page.locator(".chart svg:visible")).to_have_count(1)
            page.get_by_text("s3", exact=True).click()
        else:
            page.get_by_label("pasted samples").check()
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
        "judges/calibrations.js",
        "start/start.css",
        "statistics/statistics.css",
        "judges/judges.css",
    )
    assert sum(len(static_content(name)) for name in names) < 36_000
