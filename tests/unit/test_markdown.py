"""Markdown from models is shown, never run, and fetches nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from assay.report.markdown import TAGS, safe_tree


def tags_in(nodes: list[Any]) -> set[str]:
    names = set()
    for node in nodes:
        if isinstance(node, list):
            names |= {node[0], *tags_in(node[2:])}
    return names


def words_in(nodes: list[Any]) -> str:
    return "".join(node if isinstance(node, str) else words_in(node[2:]) for node in nodes)


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "<img src=x onerror=y>", "a <b>c</b>", "<!-- x -->"]
)
def test_html_is_shown_as_it_was_written(text: str) -> None:
    assert words_in(safe_tree(text)).strip() == text


def attributes_in(nodes: list[Any]) -> dict[str, str]:
    by_name: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, list):
            by_name |= {**node[1], **attributes_in(node[2:])}
    return by_name


def test_images_are_named_and_not_fetched() -> None:
    assert safe_tree("![a cat](http://evil.example/cat.png)") == [["p", {}, "[image: a cat]"]]


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "//evil.example",
        "/runs",
    ],
)
def test_links_lead_to_the_web_only(address: str) -> None:
    assert "href" not in attributes_in(safe_tree(f"[x]({address})"))


def test_links_give_nothing_away() -> None:
    attributes = attributes_in(safe_tree("[x](https://example.org/)"))
    assert attributes == {"href": "https://example.org/", "rel": "noopener noreferrer nofollow"}


def test_tables_lists_and_code_stay() -> None:
    tree = safe_tree("| a | b |\n|---|---|\n| 1 | 2 |\n\n1. x\n2. `y`\n\n```py\nz\n```\n")
    assert {"table", "ol", "code", "pre"} <= tags_in(tree)


@given(st.text())
def test_only_known_elements_ever_come_out(text: str) -> None:
    assert tags_in(safe_tree(text)) <= TAGS


@given(st.text(alphabet="<>&\"'`/=!-[]()*_~#|:x \n"))
def test_no_attribute_but_ours_survives(text: str) -> None:
    tree = safe_tree(text)
    assert set(attributes_in(tree)) <= {"href", "rel", "start"}
    assert tags_in(tree) <= TAGS


def test_struck_text_is_marked_as_deleted() -> None:
    assert safe_tree("~~x~~") == [["p", {}, ["del", {}, "x"]]]
