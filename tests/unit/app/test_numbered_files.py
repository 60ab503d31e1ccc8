"""Consecutive numbers of files that several processes write at once."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from assay.app.specialists.numbered_files import write_numbered


def _write(arguments: tuple[Path, int]) -> str:
    folder, text = arguments
    return write_numbered(folder, "snapshot", str(text)).name


def test_twenty_writers_get_twenty_numbers_without_gaps(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("fork")) as pool:
        names = list(pool.map(_write, [(tmp_path / "new", text) for text in range(20)]))
    assert sorted(names) == [f"snapshot-{number:03}.json5" for number in range(1, 21)]
    assert sorted(path.read_text() for path in (tmp_path / "new").iterdir()) == sorted(map(str, range(20)))


@pytest.mark.parametrize(
    ("names", "following"), [([], "001"), (["001", "002", "005"], "006"), (["999"], "1000"), (["x", "7.bak"], "001")]
)
def test_the_next_number_follows_the_highest(tmp_path: Path, names: list[str], following: str) -> None:
    for name in names:
        (tmp_path / f"snapshot-{name}.json5").touch()
    assert write_numbered(tmp_path, "snapshot", "text").name == f"snapshot-{following}.json5"
