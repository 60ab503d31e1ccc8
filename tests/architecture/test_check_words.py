"""The check of names and docstrings, on a small project of its own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "check_words.py"


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("check_words", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "check_words", module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def written(root: Path, **files: str) -> Path:
    """Write source and test files; the names say where."""
    for name, text in files.items():
        path = root / ("tests" if name.startswith("test_") else "src/assay") / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def test_check_words_reports_each_rule_with_its_place(check: ModuleType, tmp_path: Path) -> None:
    root = written(
        tmp_path,
        first='"""Whether it holds."""\n\nclass Query:\n    pass\n',
        second='"""Query of a page."""\n\nclass Query:\n    pass\n\ndef look():\n    found = 1\n    return found\n',
        test_third=f"def test_{'x' * 65}():\n    pass\n",
    )
    places = [(place.rule, place.file, place.line) for place in check.breaches(root)]
    assert places == [
        ("first-line", "src/assay/first.py", 1),
        ("class-name", "src/assay/second.py", 3),
        ("local-name", "src/assay/second.py", 7),
        ("test-name", "tests/test_third.py", 1),
    ]


def test_check_words_fails_only_above_the_allowance(
    check: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = written(
        tmp_path, first='"""One place."""\n\ndef look():\n    found = 1\n    return found\n'
    )
    monkeypatch.setattr(check, "ROOT", root)
    monkeypatch.setattr(check, "ALLOWED", root / "allowed.json")
    assert check.main([]) == 1
    assert "src/assay/first.py:4: a local is named 'found'" in capsys.readouterr().out
    assert check.main(["--lower"]) == 0
    assert check.main([]) == 0, "the first allowance is the present number"
    written(
        root, first='"""One place."""\n\ndef look():\n    found = its = 1\n    return found, its\n'
    )
    assert check.main(["--lower"]) == 0
    assert check.main([]) == 1, "an allowance only falls"
