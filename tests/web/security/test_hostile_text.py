"""A corpus of hostile text in every field that files, models or people can fill runs nothing, and
is shown, not swallowed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect
from tests.support import forked
from tests.web.conftest import Served, Watch, eventually, pressed, ready, serving, unsent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import BrowserContext, Page

CORPUS = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    '"><img src=x onerror=alert(3)>',
    "'-alert(4)-'",
    "<svg onload=alert(5)>",
    "[click](javascript:alert(6))",
    "<iframe srcdoc='<script>parent.alert(7)</script>'>",
    "{{7*7}}{% for x in y %}",
    "![x](http://evil.example/pixel.png)",
    "<style>@import url(http://evil.example/a.css)</style>",
    "<a href='http://evil.example/' ping='http://evil.example/p'>x</a>",
    "<base href=http://evil.example/>",
    "\u202egnp.exe\u2066 \u200bhidden",
    "${alert(8)}`",
    "<!--",
    "]]>",
    "<math><mi//xlink:href='data:x,<script>alert(9)</script>'>",
    "data:text/html,<script>alert(10)</script>",
    "\\u003cscript\\u003ealert(11)\\u003c/script\\u003e",
)
EVERYTHING = " ".join(CORPUS)
NAME = f"Thing {' '.join(CORPUS[:5])}"
"""Names have at most 200 characters and no control characters: the loader refuses others."""


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[Served]:
    """A run whose suite, task, code, names, grades, report and failure are hostile."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    names = [f"mallory {CORPUS[0]}", f"eve {CORPUS[4]}"]
    things = [
        {
            "thingName": NAME,
            "context": EVERYTHING,
            "language": 'python"><script>alert(12)</script>',
            "trialsNeeded": 2,
            "snippets": [
                {"name": name, "content": f"# {name}\n" + "\n".join(CORPUS)} for name in names
            ],
        },
        {
            "thingName": "Broken",
            "context": "",
            "language": "",
            "trialsNeeded": 1,
            "snippets": [{"name": name, "content": name} for name in names],
        },
    ]
    (folder / "hostile.json").write_text(json.dumps(things), "utf-8")
    graded = {
        f"{{{{label:{name}}}}}": {
            criterion: {
                "score": 5,
                "reason": f"`{CORPUS[0]}` {EVERYTHING} {place} {criterion}",
                "evidence": list(CORPUS),
            }
            for criterion in ("integrity", "data_flow", "maintainability", "fitness")
        }
        for place, name in enumerate(names)
    }
    by_name = {
        "candidates": graded,
        "report": f"# {EVERYTHING}\n\n" + "\n\n".join(f"- {one}\n\n`{one}`" for one in CORPUS),
    }
    lines = [
        {"match": {"role": "judge"}, "reply": {"text": json.dumps(by_name)}},
        {
            "match": {"role": "judge", "task": "broken"},
            "error": {"kind": "refused", "detail": EVERYTHING, "transient": False},
        },
    ]
    (folder / "judge.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    done = forked.run(
        "run", "hostile.json", "--judge", f"replay/{folder / 'judge.jsonl'}", folder=folder
    )
    assert done.returncode in (0, 1), done.stderr
    with serving(folder) as server:
        yield server


@pytest.mark.slow
def test_nothing_of_the_corpus_runs_or_reaches_out(
    hostile: Served, context: BrowserContext, watch: Watch
) -> None:
    page = context.new_page()
    watch.on(page, hostile)
    run = hostile.run_id
    page.goto(f"{hostile.url}/review?run={run}")
    ready(page)
    pressed(page, "o")
    for key in ("ArrowRight", "ArrowDown", "v", "i", "i"):
        pressed(page, key)
    expect(
        page.locator("article.reading"), "its language is none, so that it is rendered"
    ).to_have_count(2)
    pressed(page, "d")
    expect(page.locator("article.reading")).to_have_count(3)
    pressed(page, "d")
    shown = page.locator("main").inner_text()
    assert "<script>alert(1)</script>" in shown, "hostile text is shown as it is"
    assert "U+202E" in shown, "what turns text around is marked"
    expect(page.locator("main script, main iframe, main img, main base, main style")).to_have_count(
        0
    )
    page.keyboard.press("x")
    page.keyboard.press("6")
    page.keyboard.insert_text(EVERYTHING)
    page.keyboard.press("Control+Enter")
    eventually(lambda: unsent(page) == 0)
    page.get_by_role("button", name="Reviewer").click()
    page.get_by_label("Name").fill(EVERYTHING.replace("/", "")[:100])
    page.get_by_role("button", name="Save").click()
    decided = next(
        a for a in ("a1", "a2") if hostile.get(f"/api/assessments/{a}")["state"] == "rejected"
    )
    for path in ("/", f"/runs/{run}", f"/assessments/{decided}", "/signin"):
        page.goto(hostile.url + path)
        page.wait_for_load_state("load")
        page.wait_for_timeout(150)
    waiting = [a for a in ("a1", "a2") if a != decided]
    forked.run(
        "review",
        "reject",
        *waiting,
        "--reason",
        "nobody is named while one waits",
        folder=hostile.folder,
    )
    columns = [one["column"] for one in hostile.get("/compare.json")["runs"][0]["candidates"]][:2]
    sides = urlencode(
        [("col", one) for one in columns] + [("q", ""), ("title", "(.*)"), ("read", "(?s)(.*)")]
    )
    for path in ("/compare", f"/compare?{sides}", f"/compare/agreement?{sides}"):
        page.goto(hostile.url + path)
        page.wait_for_load_state("load")
        page.wait_for_timeout(150)
        expect(
            page.locator("main script, main iframe, main img, main base, main style")
        ).to_have_count(0)
    watch.expected = ("Failed to load resource",)
    page.goto(f"{hostile.url}/?before={CORPUS[1]}")
    page.wait_for_load_state("load")
    expect(page.locator("main script, main iframe, main img, main base, main style")).to_have_count(
        0
    )
    page.goto(f"{hostile.url}/assessments/{CORPUS[0].replace('/', '')}")
    page.goto(f"{hostile.url}/runs/{CORPUS[4]}")
    expect(page.locator("main")).to_contain_text("<svg onload=alert(5)>", use_inner_text=True)


def test_trial_failure_names_the_responsible_side(
    hostile: Served, page_at: Callable[[Served], Page]
) -> None:
    page = page_at(hostile)
    page.goto(f"{hostile.url}/runs/{hostile.run_id}")
    row = page.locator(".failure-kinds details")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("refused", use_inner_text=True)
    expect(row).to_contain_text("<script>alert(1)</script>", use_inner_text=True)
