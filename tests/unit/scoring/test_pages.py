"""Pages out of responses: fenced, bare, a part, several files."""

from __future__ import annotations

import time

import pytest

from assay.scoring.pages import page_of

WHOLE = "<!DOCTYPE html>\n<html><body><h1>Hi</h1></body></html>"


def test_a_fenced_document_stays_as_it_is() -> None:
    assert page_of(f"Here you are:\n```html\n{WHOLE}\n```\nEnjoy.") == f"{WHOLE}\n"
    assert page_of(f"```\n{WHOLE}\n```") == f"{WHOLE}\n"


def test_a_fence_that_never_closes_is_enough() -> None:
    assert page_of(f"```html\n{WHOLE}") == WHOLE


def test_bare_text_and_text_among_prose_are_found() -> None:
    assert page_of(WHOLE) == WHOLE
    assert page_of(f"Sure! {WHOLE} I hope it helps.") == WHOLE


@pytest.mark.parametrize(
    "part",
    ["<main>X</main>", "<body><p>X</p></body>", "<head><title>x</title></head><body>X</body>"],
)
def test_a_part_gets_a_document_around_it(part: str) -> None:
    page = page_of(f"```html\n{part}\n```")
    assert page is not None
    assert page.startswith("<!doctype html><html>")
    assert page.count("<body") == 1
    assert "X" in page


def test_styles_and_scripts_stand_where_the_page_names_them() -> None:
    page = page_of(
        "=== index.html ===\n<!doctype html><html><head><link rel='stylesheet' href='./css/a.css'></head>"
        '<body><p>x</p><script src="b.js"></script></body></html>\n'
        "=== css/a.css ===\np { color: red }\n=== b.js ===\nrun()\n=== c.js ===\nlast()\n"
    )
    assert page is not None
    assert "<style>p { color: red }\n</style></head>" in page
    assert "<p>x</p><script>run()\n</script>" in page
    assert "<script>last()\n</script></body>" in page


def test_fences_of_several_languages_make_one_page() -> None:
    page = page_of(
        "```html\n<div id=a>x</div>\n```\n```css\n#a{top:0}\n```\n```javascript\na.id\n```"
    )
    assert page is not None
    assert all(
        part in page
        for part in ("<div id=a>x</div>", "<style>#a{top:0}\n</style>", "<script>a.id\n</script>")
    )


@pytest.mark.parametrize(
    "text", ["", "I cannot do that.", "```python\nprint(1)\n```", "2 < 3 and 4 > 1"]
)
def test_response_without_a_page_gives_none(text: str) -> None:
    assert page_of(text) is None


@pytest.mark.parametrize(
    "text",
    ["<link " * 100_000, "```html\n" * 100_000, "=== a ===\n" * 50_000, "<script src=x" * 80_000],
)
def test_hostile_text_takes_no_time(text: str) -> None:
    began = time.process_time()
    page_of(text)
    assert time.process_time() - began < 2
