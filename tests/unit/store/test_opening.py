"""Opening a store, or being told in one sentence why not."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from tests.contract.stores import StandingClock

from assay.domain.errors import SettingsError, StoreError
from assay.store.database import schema
from assay.store.opening import open_store

CLOCK = StandingClock()


def opened_and_closed(path: Path) -> None:
    open_store(f"sqlite:///{path}", clock=CLOCK).close()


def test_a_store_is_made_with_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "new" / ".assay" / "assay.db"
    opened_and_closed(path)
    opened_and_closed(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_processes_that_make_a_store_at_once_make_one(tmp_path: Path) -> None:
    path = tmp_path / "assay.db"
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: opened_and_closed(path), range(6)))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(f"SELECT * FROM {schema.VERSION_TABLE}").fetchall() == [
            (schema.VERSION,)
        ]


def test_a_store_that_must_be_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store yet"):
        open_store(f"sqlite:///{tmp_path / 'assay.db'}", clock=CLOCK, create=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url", ["", "assay.db", "mysql://host/db", "sqlite://", "sqlite:///:memory:", "sqlite:///"]
)
def test_an_address_that_is_none_is_a_setting_to_mend(url: str) -> None:
    with pytest.raises(SettingsError, match="sqlite:///path"):
        open_store(url, clock=CLOCK)


def test_a_password_is_in_no_message() -> None:
    for url in ("postgresql://me:secret@127.0.0.1:1/nothing", "mysql://me:secret@host/db"):
        with pytest.raises((StoreError, SettingsError)) as error:
            open_store(url, clock=CLOCK)
        assert "secret" not in str(error.value)


def test_a_server_that_is_not_there_is_a_sentence() -> None:
    with pytest.raises(StoreError, match="server cannot be reached"):
        open_store("postgresql://me@127.0.0.1:1/nothing", clock=CLOCK)


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are my notes, and they are long enough to be no header." * 50)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is not an Assay store"):
        opened_and_closed(path)
    assert path.read_bytes() == before


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE albums (id INTEGER)")
    with pytest.raises(StoreError, match=r"not Assay's \(albums\)"):
        opened_and_closed(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("albums",)]


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder"):
        opened_and_closed(tmp_path)


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="folder cannot be created"):
        opened_and_closed(tmp_path / "file" / "assay.db")


def test_a_newer_store_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "assay.db"
    opened_and_closed(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE {schema.VERSION_TABLE} SET version_num = '9999'")
        connection.commit()
    with pytest.raises(StoreError, match=r"written by a newer Assay.*Update Assay"):
        opened_and_closed(path)


@pytest.mark.parametrize("version", ["0001", "0010"])
def test_a_store_from_before_the_release_says_how_to_keep_its_runs(
    tmp_path: Path, version: str
) -> None:
    path = tmp_path / "assay.db"
    opened_and_closed(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE {schema.VERSION_TABLE} SET version_num = '{version}'")
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(
        StoreError, match=rf"tables of version {version}.*`assay import results --rebuild`"
    ) as error:
        opened_and_closed(path)
    assert "\n" not in str(error.value)
    assert path.read_bytes() == before


def test_a_damaged_store_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "assay.db"
    opened_and_closed(path)
    content = bytearray(path.read_bytes())
    content[100:3000] = b"\xff" * 2900
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged|not an Assay store"):
        opened_and_closed(path)


def test_opening_a_store_imports_neither_numpy_nor_alembic_nor_psycopg(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from assay.store.opening import open_store\n"
        "from tests.contract.stores import StandingClock\n"
        "open_store(sys.argv[1], clock=StandingClock()).archive.runs.matching()\n"
        "print(sorted({'numpy', 'alembic', 'psycopg'} & set(sys.modules)))\n"
    )
    url = f"sqlite:///{tmp_path / 'assay.db'}"
    done = subprocess.run(
        [sys.executable, "-c", script, url], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
