"""The table of faults in the documentation: each attack asserts its own row.

A row counts the cases that ran. Cases that were skipped where the figures were measured stand in
brackets and are not counted. `ASSAY_FIGURES=write` renews the rows of the tests that run; read the
diff.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "faults.md"

_OUTCOMES: Final[dict[str, Counter[str]]] = {}
"""For each test function that ran in this process, its number of cases by outcome."""


def note(item: pytest.Item, report: pytest.TestReport) -> None:
    """Count a case once: when it is skipped at its setup or at its call, or when its call ends."""
    if report.when == "call" or (report.when == "setup" and report.skipped):
        function = getattr(item, "function", None)
        _OUTCOMES.setdefault(_name(function), Counter())[report.outcome] += 1


def publish(kind: str, *, tried: int, through: int, skipped: int = 0) -> None:
    """Assert that no attempt got through, and that the documentation states this kind of attack
    with these figures.
    """
    assert through == 0, f"{through} of {tried} attempts got through: {kind}"
    assert tried > 0, f"an attack that never ran is no row of the table: {kind}"
    text = PAGE.read_text("utf-8")
    row = f"| {kind} | {_stated(tried, skipped)} | {through} |"
    if os.environ.get("ASSAY_FIGURES") == "write":
        text, renewed = re.subn(
            rf"^\| {re.escape(kind)} \| [\d,]+(?: \([\d,]+ skipped\))? \| \d+ \|$",
            row,
            text,
            flags=re.M,
        )
        assert renewed == 1, f"{PAGE.name} has no row for {kind!r}"
        PAGE.write_text(text, "utf-8")
    assert row in text.splitlines(), f"{PAGE.name} does not state: {row}"


def publish_cases(kind: str, *tests: Callable[..., None]) -> None:
    """Assert that the documentation states this kind of attack with the number of cases of these
    tests that ran.

    Each case asserts by itself that it does not get through. The caller is the last test of its
    file. If cases were skipped, or ran in another process or not at all, the figures cannot be
    measured, and the caller is skipped once the row states them all.
    """
    cases = sum(_cases(test) for test in tests)
    outcomes = sum((_OUTCOMES.get(_name(test), Counter()) for test in tests), Counter[str]())
    ran = outcomes["passed"] + outcomes["failed"]
    if ran == cases or (outcomes.total() == cases and os.environ.get("ASSAY_FIGURES") == "write"):
        publish(kind, tried=ran, through=outcomes["failed"], skipped=outcomes["skipped"])
        return
    tried, skipped = _published(kind)
    assert tried + skipped == cases, (
        f"{PAGE.name} states {tried} tried and {skipped} skipped of {cases} cases: {kind}"
    )
    assert tried > 0, f"a case that is skipped everywhere is none: {kind}"
    assert outcomes["failed"] == 0, f"{outcomes['failed']} cases got through: {kind}"
    if outcomes.total() == cases and outcomes["skipped"] != skipped:
        pytest.skip(
            f"{outcomes['skipped']} of {cases} cases were skipped here, {skipped} where the table was measured: {kind}"
        )


def _stated(tried: int, skipped: int) -> str:
    return f"{tried:,} ({skipped:,} skipped)" if skipped else f"{tried:,}"


def _published(kind: str) -> tuple[int, int]:
    """Return the numbers of tried and skipped cases in the documentation."""
    row = re.search(
        rf"^\| {re.escape(kind)} \| ([\d,]+)(?: \(([\d,]+) skipped\))? \| 0 \|$",
        PAGE.read_text("utf-8"),
        re.M,
    )
    assert row is not None, f"{PAGE.name} has no row for {kind!r} with nothing through"
    return int(row[1].replace(",", "")), int((row[2] or "0").replace(",", ""))


def _name(function: object) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"


def _cases(test: Callable[..., None]) -> int:
    marks = getattr(test, "pytestmark", [])
    return math.prod(len(tuple(mark.args[1])) for mark in marks if mark.name == "parametrize")
