"""The table of faults counts the cases that ran, and no others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.attack import figures


@pytest.mark.parametrize("case", [1, 2, 3])
def an_attack(case: int) -> None:
    """Three cases, which the tests below say were run or skipped."""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "faults.md"
    monkeypatch.setattr(figures, "PAGE", path)
    monkeypatch.delenv("ASSAY_FIGURES", raising=False)
    return path


def outcomes(monkeypatch: pytest.MonkeyPatch, **counts: int) -> None:
    monkeypatch.setitem(figures._OUTCOMES, figures._name(an_attack), Counter(counts))


def test_a_skipped_case_is_not_counted_as_tried(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes(monkeypatch, passed=2, skipped=1)
    page.write_text("| forging | 2 (1 skipped) | 0 |\n", "utf-8")
    figures.publish_cases("forging", an_attack)
    page.write_text("| forging | 3 | 0 |\n", "utf-8")
    with pytest.raises(
        pytest.skip.Exception,
        match="1 of 3 cases were skipped here, 0 where the table was measured",
    ):
        figures.publish_cases("forging", an_attack)
    monkeypatch.setenv("ASSAY_FIGURES", "write")
    figures.publish_cases("forging", an_attack)
    assert page.read_text("utf-8") == "| forging | 2 (1 skipped) | 0 |\n"


def test_a_row_that_states_skipped_cases_fails_where_all_ran(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes(monkeypatch, passed=3)
    page.write_text("| forging | 2 (1 skipped) | 0 |\n", "utf-8")
    with pytest.raises(AssertionError, match=r"does not state: \| forging \| 3 \| 0 \|"):
        figures.publish_cases("forging", an_attack)


def test_a_case_that_is_skipped_everywhere_is_none(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes(monkeypatch, skipped=3)
    page.write_text("| forging | 0 (3 skipped) | 0 |\n", "utf-8")
    with pytest.raises(AssertionError, match="skipped everywhere"):
        figures.publish_cases("forging", an_attack)


def test_a_failed_case_got_through(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes(monkeypatch, passed=2, failed=1)
    page.write_text("| forging | 3 | 0 |\n", "utf-8")
    with pytest.raises(AssertionError, match="1 of 3 attempts got through"):
        figures.publish_cases("forging", an_attack)


def test_cases_that_were_not_selected_leave_the_row_as_it_is(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes(monkeypatch, passed=1)
    page.write_text("| forging | 3 | 0 |\n", "utf-8")
    figures.publish_cases("forging", an_attack)
    page.write_text("| forging | 4 | 0 |\n", "utf-8")
    with pytest.raises(AssertionError, match="states 4 tried and 0 skipped of 3 cases"):
        figures.publish_cases("forging", an_attack)
