"""Archives inside archives are opened in memory to a stated depth; damage is named and ends nothing
else.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.support import harness_files as files

from assay.domain.import_records import FoundAssessment, Skipped
from assay.exchange.detection import recognise_format
from assay.exchange.importers import ReadOptions
from assay.exchange.parsing import input_files
from assay.exchange.parsing.input_files import InputFile, input_file, unpacked

LINE = b'{"id": 1}\n'


def is_a_format(source: InputFile) -> bool:
    return recognise_format(source.sample) is not None


def opened(path: Path) -> tuple[list[InputFile], list[Skipped]]:
    """Every file in an archive, as an import finds them, and what was left out."""
    skipped: list[Skipped] = []
    return list(unpacked(input_file(path, path.name), is_a_format, skipped.append)), skipped


def zipped(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), content)
    return path


def tarred(content: bytes, name: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def test_an_inspect_log_inside_two_archives_is_read_whole(tmp_path: Path) -> None:
    log = files.inspect(tmp_path).read_bytes()
    inner = zipped(tmp_path / "inner.zip", logs__a_eval=log).read_bytes()
    (source,), skipped = opened(zipped(tmp_path / "outer.zip", inner_zip=inner))
    assert not skipped
    assert source.name == "outer.zip#inner.zip#logs/a.eval"
    assert (source.member, source.stem, source.folder) == (
        "inner.zip#logs/a.eval",
        "a",
        "outer.zip#inner.zip#logs",
    )
    importer = recognise_format(source.sample)
    assert importer is not None
    records = list(importer.read(source, ReadOptions()))
    assert sum(isinstance(record, FoundAssessment) for record in records) == 4


@pytest.mark.parametrize(
    ("name", "content"),
    [("rows_jsonl_gz", gzip.compress(LINE)), ("rows_tar_gz", tarred(LINE, "rows.jsonl"))],
    ids=["gzip", "tar"],  # the bytes hold the time, and all test processes must name a test alike
)
def test_compressed_members_are_unpacked(tmp_path: Path, name: str, content: bytes) -> None:
    (source,), skipped = opened(zipped(tmp_path / "all.zip", **{name: content}))
    assert not skipped
    assert source.read() == LINE


def test_a_neighbour_inside_a_nested_archive_is_found(tmp_path: Path) -> None:
    inner = zipped(tmp_path / "inner.zip", x__a_json=b"{}", x__b_json=b"[1]").read_bytes()
    (first, _), _ = opened(zipped(tmp_path / "outer.zip", inner_zip=inner))
    neighbour = first.sibling("b.json")
    assert neighbour is not None
    assert neighbour.read() == b"[1]"


def test_a_fourth_level_is_refused_by_name(tmp_path: Path) -> None:
    content = zipped(tmp_path / "0.zip", a_json=b"{}").read_bytes()
    for level in range(1, 4):
        content = zipped(tmp_path / f"{level}.zip", n_zip=content).read_bytes()
    assert [source.name for source in opened(tmp_path / "2.zip")[0]] == ["2.zip#n.zip#n.zip#a.json"]
    sources, (skip,) = opened(tmp_path / "3.zip")
    assert sources == []
    assert skip.where == "3.zip#n.zip#n.zip#n.zip"
    assert "opens 3 levels" in skip.why


def test_archives_of_archives_share_one_limit_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = zipped(tmp_path / "inner.zip", a_json=b"{}", b_json=b"{}").read_bytes()
    outer = zipped(tmp_path / "outer.zip", one_zip=inner, two_zip=inner)
    monkeypatch.setattr(input_files, "MAX_MEMBERS", 4)
    sources, skipped = opened(outer)
    assert len(sources) == 2
    assert "more than 4 files" in skipped[0].why


def test_a_damaged_archive_inside_another_does_not_hide_its_neighbours(tmp_path: Path) -> None:
    inner = zipped(tmp_path / "inner.zip", a_json=json.dumps([1] * 500).encode()).read_bytes()
    sources, (skip,) = opened(zipped(tmp_path / "outer.zip", bad_zip=inner[:-30], good_json=b"{}"))
    assert [source.member for source in sources] == ["good.json"]
    assert skip == Skipped(
        where="outer.zip#bad.zip",
        why="is a zip archive that is cut off: its end is missing. Copy it again.",
    )


@pytest.mark.parametrize("cut", ["gzip", "tar"])
def test_a_file_that_ends_too_early_is_called_cut_off(tmp_path: Path, cut: str) -> None:
    content = LINE * 5000
    packed = gzip.compress(content) if cut == "gzip" else tarred(content, "rows.jsonl")
    path = tmp_path / "rows.gz"
    path.write_bytes(packed[:-20])
    sources, skipped = opened(path)
    whys = [skip.why for skip in skipped]
    if sources:  # a short one is only found to be cut when it is read
        with pytest.raises(input_files.UnreadableFile) as caught:
            sources[0].read()
        whys.append(caught.value.problem)
    assert whys == ["is cut off: it ends too early. Copy it again."]
