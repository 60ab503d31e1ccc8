"""Files of a few hundred kilobytes that unpack or parse to gigabytes, and files that never end."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson
import pytest
from tests.attack import figures
from tests.journey.conftest import Command
from tests.support.measured import MAX_MEMORY, measured

from assay.app.imports import importer, run_writer
from assay.exchange.parsing import input_files
from assay.exchange.parsing.input_files import UnreadableFile, archive_members, input_file
from assay.exchange.readers import mapped_columns
from assay.formats import parquet as parquet_format, separated
from assay.formats.json_lines import row_of
from assay.formats.json_size import parsed_bytes
from assay.formats.parquet import parquet_rows
from assay.formats.separated import separated_rows

MB = 1 << 20
DOCUMENTS = {
    "empty objects": b"[" + b"{}," * 9999 + b"{}]",
    "empty lists": b"[" + b"[]," * 9999 + b"[]]",
    "numbers": b"[" + b"0.5," * 9999 + b"0]",
    "short texts": b"[" + b'"ab",' * 9999 + b"0]",
    "small objects": b"[" + b'{"a":1},' * 9999 + b"0]",
    "objects in objects": b"[" + b'{"a":{"a":1}},' * 9999 + b"0]",
    "one emoji": '["🎉\\"'.encode() + b"x" * 99999 + b'"]',
    "one escaped emoji": b'["\\ud83c\\udf89' + b"x" * 99999 + b'"]',
    "one Chinese sign": '["分'.encode() + b"x" * 99999 + b'"]',
    "records": orjson.dumps(
        [{"task": f"t{n}", "answer": "hello " * 40, "score": n} for n in range(1000)]
    ),
}
ROW = b'{"task":"t","model":"m","score":1}\n'
BOMBS: dict[str, Iterable[bytes]] = {
    "objects.json": (b"[", *[b"{}," * (MB // 3)] * 230, b"{}]"),
    "zeros.json": (b"[", *[b"0," * (MB // 2)] * 230, b"0]"),
    "text.json": (b'[{"task":"t","score":"', *[b"x" * MB] * 240, b'"}]'),
    "short.json": (b"[", *[b'"ab",' * (MB // 5)] * 12, b"0]"),
    "rows.jsonl": (ROW * 20, *[b'{"task":"t","x":[' + b"{}," * (9 * MB) + b"0]}\n"] * 6),
    "newlines.jsonl": (ROW, *[b"\n" * MB] * 240),
    "field.csv": (b"task,model,score\n", b't,m,"', *[b"x" * MB] * 240, b'"\n'),
    "cells.csv": (b"task,model,score\n", *[b"ab," * (MB // 3)] * 240, b"\n"),
    "open.csv": (b"task,model,score\n", *[b'"ab\n",' * (MB // 6)] * 240, b"\n"),
    "header.csv": (b"task,model,score", *[b",ab" * (MB // 3)] * 240, b"\n1,2,3\n"),
    "digits.log": [b"1" * MB] * 240,
    "emoji.json": ('[{"task":"🎉'.encode(), *[b"x" * MB] * 60, b'"}]'),
}


def held(value: object, seen: set[int]) -> int:
    """Return the memory of a parsed document; values that Python shares count once."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        size += sum(held(key, seen) + held(inner, seen) for key, inner in value.items())
    elif isinstance(value, list):
        size += sum(held(inner, seen) for inner in value)
    return size


@pytest.mark.parametrize("content", DOCUMENTS.values(), ids=DOCUMENTS)
def test_the_estimate_is_at_least_the_memory_of_the_values(content: bytes) -> None:
    memory = held(orjson.loads(content), set())
    assert 0.95 * memory <= parsed_bytes(content, most=0) <= 9 * memory


def test_a_document_or_a_line_of_many_values_is_refused(tmp_path: Path) -> None:
    content = b"[" + b"{}," * (4 * MB) + b"{}]"
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(UnreadableFile, match="320 MB of memory"):
        input_file(tmp_path / "a.json").read()
    assert "160 MB of memory" in str(row_of(b'{"a":' + content + b"}"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
@pytest.mark.parametrize("place", ["pipe", "/dev/zero"])
def test_pipes_and_devices_are_refused_by_name(tmp_path: Path, place: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableFile, match="is not a regular file"):
        input_file(tmp_path / place)


@pytest.mark.parametrize(
    "rows", [b"x" * 200 + b"\n", b"a," * 100 + b"\n", b'"' + b"x\n" * 100, b'"x\n",' * 50]
)
def test_a_row_beyond_the_limit_ends_the_table(
    monkeypatch: pytest.MonkeyPatch, rows: bytes
) -> None:
    monkeypatch.setattr(separated, "MAX_ROW_CHARACTERS", 100)
    (first, rest) = list(separated_rows(io.BytesIO(b"a,b\n1,2\n" + rows), delimiter=","))
    assert first == (2, {"a": "1", "b": "2"})
    assert "has a row of more than" in str(rest[1])


@pytest.mark.parametrize("packed", [False, True])
def test_a_tar_header_of_any_length_is_not_read_at_once(tmp_path: Path, packed: bool) -> None:
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 5 << 30
    content = header.tobuf(tarfile.USTAR_FORMAT) + bytes(2 * MB)
    (tmp_path / "a.tar").write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(UnreadableFile, match="header of more than 1 MB"):
        list(archive_members(tmp_path / "a.tar", "a.tar"))


def test_a_zip_with_a_long_list_of_members_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number in range(20):
            archive.writestr(f"{number}.json", b"{}")
    assert len(list(archive_members(tmp_path / "a.zip", "a.zip"))) == 20
    monkeypatch.setattr(input_files, "_MAX_LIST_BYTES", 1000)
    with pytest.raises(UnreadableFile, match="holds more than"):
        list(archive_members(tmp_path / "a.zip", "a.zip"))


def parquet_bombs(folder: Path) -> dict[str, Path]:
    """Parquet files of a few kilobytes whose rows take far more."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    long, one = "x" * (2 * MB), pa.array([0] * 1000, pa.int32())
    columns = {
        "a page": pa.array([long] * 100, pa.large_string()),
        "a dictionary": pa.DictionaryArray.from_arrays(one, pa.array([long])),
        "lists": pa.ListArray.from_arrays(
            pa.array([0, 20_000_000], pa.int32()), pa.nulls(20_000_000, pa.int8())
        ),
        "rows": pa.nulls(20_000_000),
    }
    files = {}
    for name, column in columns.items():
        files[name] = folder / f"{name}.parquet"
        table = pa.table({"task": column})
        limits = {"use_dictionary": name != "a page", "dictionary_pagesize_limit": 64 * MB}
        parquet.write_table(table, files[name], compression="zstd", **limits)
    return files


@pytest.mark.slow
def test_parquet_that_unpacks_to_far_more_than_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the files need not be larger than this shows
    monkeypatch.setattr(parquet_format, "_FREE_ROWS", 100 * MB)
    through = 0
    files = parquet_bombs(tmp_path)
    for path in files.values():
        taken, last = 0, ""
        with path.open("rb") as stream:
            for _, row in parquet_rows(stream):
                taken, last = (
                    (taken, row)
                    if isinstance(row, str)
                    else (taken + len(str(row.get("task"))), "")
                )
        through += "far more than its size allows" not in last or taken > 100 * MB
    figures.publish("Parquet file that unpacks to gigabytes", tried=len(files), through=through)


@pytest.mark.slow
def test_a_batch_of_parquet_holds_few_long_rows(tmp_path: Path) -> None:
    path = parquet_bombs(tmp_path)["a dictionary"]
    group = pytest.importorskip("pyarrow.parquet").ParquetFile(path).metadata.row_group(0)
    assert parquet_format._rows_at_once(group) <= 12


def test_rows_beyond_the_longest_list_of_messages_are_counted(
    assay: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_writer, "MAX_LISTED", 5)
    (project / "rows.csv").write_text("task,candidate,score\nt,bob,1\n" + ",bob,1\n" * 20, "utf-8")
    skipped = assay("import", "rows.csv", "--json").document["skipped"]
    assert len(skipped) == 6
    assert skipped[-1]["why"] == "15 more rows are left out, too many to list."


@pytest.mark.parametrize("row", ["bob,1", "t,,1", "t,bob,", "t,bob,x"])
def test_a_file_without_usable_rows_is_not_read_to_its_end(
    assay: Command, project: Path, monkeypatch: pytest.MonkeyPatch, row: str
) -> None:
    monkeypatch.setattr(run_writer, "MAX_LISTED", 300)
    monkeypatch.setattr(run_writer, "MAX_LEFT_OUT", 100)
    monkeypatch.setattr(mapped_columns, "_MAX_WAITING", 100)
    header = "model,score" if row == "bob,1" else "task,model,score"
    (project / "rows.csv").write_text(f"{header}\n" + f"{row}\n" * 1000, "utf-8")
    (project / "map.json").write_text(
        '{"task":"task","candidate":"model","score":"score"}', "utf-8"
    )
    done = assay("import", "rows.csv", "--map", "map.json", "--json")
    assert done.code == 1
    reasons = [each["why"] for each in done.document["skipped"]]
    assert sum("not read to its end" in reason for reason in reasons) == 1
    assert len(reasons) <= 303
    notes = json.dumps(done.document["notes"])
    assert ("which none of the first 200 rows has" in notes) is (header == "model,score")


@pytest.mark.parametrize(
    ("error", "named"), [(KeyError("score"), True), (AssertionError("ours"), False)]
)
def test_only_errors_of_damaged_files_are_taken_for_the_file(
    assay: Command, project: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, named: bool
) -> None:
    def damaged(records: Iterable[object], **_: object) -> Iterator[object]:
        yield from records
        raise error

    monkeypatch.setattr(importer, "checked", damaged)
    (project / "rows.csv").write_text("task,candidate,score\nt,bob,1\n", "utf-8")
    done = assay("import", "rows.csv")
    assert ("could not be read as" in done.out + done.err) is named
    assert ("internal error in Assay" in done.err) is not named
    assert assay("runs", "--json").document["runs"] == []


@pytest.mark.slow
def test_long_answers_of_a_small_parquet_file_stay_under_600_mb(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    answers = pa.DictionaryArray.from_arrays(
        pa.array([0] * 3000, pa.int32()), pa.array(["x" * 300_000])
    )
    table = pa.table(
        {"task": [str(number) for number in range(3000)], "score": [1] * 3000, "answer": answers}
    )
    parquet.write_table(
        table, tmp_path / "a.parquet", compression="zstd", use_dictionary=["answer"]
    )
    (tmp_path / "map.json").write_text(
        '{"task":"task","candidate":"=m","answer":"answer","score":"score"}', "utf-8"
    )
    done = measured("import", "a.parquet", "--map", "map.json", folder=tmp_path, limit_s=120)
    assert done.status == 1, done.err[-500:]
    assert done.peak < MAX_MEMORY


@pytest.mark.slow
@pytest.mark.parametrize("mapped", [False, True], ids=["detected", "mapped"])
@pytest.mark.parametrize("name", BOMBS)
def test_no_import_takes_more_than_600_mb(tmp_path: Path, name: str, mapped: bool) -> None:
    with gzip.open(tmp_path / f"{name}.gz", "wb", compresslevel=9) as packed:
        for piece in BOMBS[name]:
            packed.write(piece)
    mapping = {"task": "task", "candidate": "=m", "answer": "task", "score": "score"}
    (tmp_path / "map.json").write_text(json.dumps(mapping))
    options = ("--map", "map.json") if mapped else ()
    done = measured("import", f"{name}.gz", *options, folder=tmp_path)
    assert done.status in (0, 1, 2), done.err[-500:]
    assert "Traceback" not in done.err
    assert "internal error in Assay" not in done.err
    through = int(done.peak > MAX_MEMORY)
    figures.publish(
        "import of a file that unpacks or parses to gigabytes",
        tried=2 * len(BOMBS),
        through=through,
    )
