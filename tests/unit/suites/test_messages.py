"""Whole messages, as an author sees them; `ASSAY_WRITE_GOLDEN=1` writes them anew for reading
through.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from assay.suites.loading import problems_in

GOLDEN = Path(__file__).parents[2] / "golden" / "suites"
WRONG = sorted(path.name for path in GOLDEN.iterdir() if path.suffix in (".yaml", ".json"))


@pytest.mark.parametrize("name", WRONG)
def test_every_mistake_is_named_with_its_place_and_mend(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(GOLDEN)
    messages = "".join(f"{problem}\n" for problem in problems_in(Path(name)))
    expected = GOLDEN / f"{name}.txt"
    if os.environ.get("ASSAY_WRITE_GOLDEN"):
        expected.write_text(messages, "utf-8")
    assert messages == expected.read_text("utf-8")
