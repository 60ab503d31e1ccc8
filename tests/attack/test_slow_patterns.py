"""Texts that keep regular expressions busy for longer than their length explains."""

from __future__ import annotations

import time

import pytest
from tests.attack import figures

from assay.app.review import item_view
from assay.exchange.readers import batch_server_log
from assay.scoring import evidence, final_answer

TEXTS = {
    "digits": (batch_server_log._PROGRESS, "1" * 1_000_000),
    "digits and commas": (batch_server_log._PROGRESS, "1," * 500_000),
    "a version": (batch_server_log._VERSION, "(v1." + "1" * 1_000_000),
    "blank lines": (final_answer._CONCLUDED, "\n " * 500_000),
    "backticks": (item_view._CODE_SPAN, "`" * 1_000_000),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_million_characters_are_searched_in_linear_time(name: str) -> None:
    pattern, text = TEXTS[name]
    began = time.process_time()
    assert pattern.search(text) is None
    through = int(time.process_time() - began > 2)  # 0.05 s is usual; the old patterns took minutes
    figures.publish(
        "text that keeps a recogniser of logs, quotes or answers busy",
        tried=len(TEXTS) + 1,
        through=through,
    )


def test_a_quotation_of_blank_lines_is_searched_in_linear_time() -> None:
    began = time.process_time()
    assert evidence.Page("code").where("x" + "\n " * 500_000 + "x") is None
    assert time.process_time() - began < 30  # 2 s is usual; the old patterns took hours
