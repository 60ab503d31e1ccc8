"""Consecutive numbers of files that several processes write at once."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from assay.app.specialists.numbered_files import write_numbered


def _write(arguments: tuple[Path, int]) -> str:
    folder, text = arguments
    return write_numbered(folder, "snapshot", lambda *_: str(text)).name


def test_twenty_writers_get_twenty_numbers_without_gaps(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("fork")) as pool:
        names = list(pool.map(_write, [(tmp_path / "new", text) for text in range(20)]))
    assert sorted(names) == [f"snapshot-{number:03}.json5" for number in range(1, 21)]
    assert sorted(path.read_text() for path in (tmp_path / "new").iterdir()) == sorted(
        map(str, range(20))
    )


@pytest.mark.parametrize(
    ("names", "following"),
    [([], "001"), (["001", "002", "005"], "006"), (["999"], "1000"), (["x", "7.bak"], "001")],
)
def test_the_next_number_follows_the_highest(
    tmp_path: Path, names: list[str], following: str
) -> None:
    for name in names:
        (tmp_path / f"snapshot-{name}.json5").touch()
    assert (
        write_numbered(tmp_path, "snapshot", lambda *_: "text").name
        == f"snapshot-{following}.json5"
    )


def test_a_text_is_written_for_its_number_and_the_file_before(tmp_path: Path) -> None:
    def text_of(number: int, before: Path | None) -> str:
        if not (tmp_path / "taken").exists():  # another process takes the number meanwhile
            (tmp_path / "taken").touch()
            (tmp_path / f"snapshot-{number:03}.json5").write_text("theirs")
        return f"{number} after {before and before.name}"

    (tmp_path / "snapshot-004.json5").touch()
    path = write_numbered(tmp_path, "snapshot", text_of)
    assert (path.name, path.read_text()) == ("snapshot-006.json5", "6 after snapshot-005.json5")
    assert (tmp_path / "snapshot-005.json5").read_text() == "theirs"
