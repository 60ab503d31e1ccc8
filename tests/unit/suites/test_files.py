"""Snippets and prompts that stand in files of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from assay.domain.suite import SourceFile
from assay.suites.loading import load_suite
from assay.suites.problems import SuiteErrors


def files_of(tmp_path: Path, snippet: str) -> tuple[SourceFile, ...]:
    path = tmp_path / "suite.yaml"
    path.write_text(f"score: exact\ntasks: [{{id: a, expected: x, snippets: {{p: {snippet}}}}}]")
    (task,) = load_suite(path).tasks
    return task.snippets[0].files


@pytest.fixture(autouse=True)
def _sources(tmp_path: Path) -> None:
    for name, content in {
        "bob.py": b"x = 1\r\n",
        "alice/main.py": b"import lib\n",
        "alice/lib/core.py": b"y = 2\n",
        "alice/__pycache__/core.pyc": b"\0\1",
        "alice/.git/config": b"[core]",
        "blank.py": b" \n",
        "image.png": b"\x89PNG\r\n\x1a\n",
        "zeros.bin": b"ab\0cd",
        "latin.py": b"# caf\xe9\n",
        "bom.py": b"\xef\xbb\xbfz = 3\n",
        "empty/.keep": b"",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link.py").symlink_to("/etc/hostname")


def test_one_file_is_read_as_it_stands(tmp_path: Path) -> None:
    assert files_of(tmp_path, "{file: bob.py}") == (SourceFile(path="bob.py", content="x = 1\r\n"),)
    assert files_of(tmp_path, "{file: bom.py}") == (SourceFile(path="bom.py", content="z = 3\n"),)


def test_several_files_lose_their_shared_folder_name(tmp_path: Path) -> None:
    files = files_of(tmp_path, "{files: [alice/main.py, alice/lib/core.py]}")
    assert [file.path for file in files] == ["main.py", "lib/core.py"]


def test_folder_gives_text_files_in_order_without_hidden_ones(tmp_path: Path) -> None:
    assert [file.path for file in files_of(tmp_path, "{folder: alice}")] == [
        "lib/core.py",
        "main.py",
    ]


@pytest.mark.parametrize(
    ("snippet", "message"),
    [
        ("{file: bobb.py}", "names 'bobb.py', which does not exist. Did you mean 'bob.py'?"),
        ("{file: alice}", "which is a folder"),
        ("{file: image.png}", "which is a binary file"),
        ("{file: zeros.bin}", "which is a binary file"),
        ("{file: latin.py}", "which is not UTF-8 text: byte 0xe9 at offset 5 (line 1)"),
        ("{file: blank.py}", "with no text"),
        ("{folder: bob.py}", "which is not a folder"),
        ("{folder: " + "x" * 5000 + "}", "which is not a folder"),
        ("{file: " + "x" * 5000 + "}", "file name too long"),
        ("{folder: empty}", "which holds no files"),
        ("{files: []}", "is an empty list"),
        ("{files: [bob.py, absent.py]}", "names 'absent.py', which does not exist"),
        ("{file: pipe}", "is not a regular file"),
        (
            "{file: '/dev/zero'}",
            "names '/dev/zero', which lies outside the suite's folder and the project's",
        ),
        ("{file: ../other.py}", "add its folder to ASSAY_READ_FROM"),
        ("{folder: ..}", "names '..', which lies outside"),
        ("{files: [bob.py, link.py]}", "names 'link.py', which lies outside"),
        ("{file: .env}", "names '.env', which is hidden; such files often hold keys"),
        ("{folder: alice/.git}", "names 'alice/.git', which is hidden"),
        ('{file: "a\\0b"}', "NUL character"),
        ("{}", "has no `file`"),
    ],
)
def test_a_file_that_cannot_be_a_snippet_is_named(
    tmp_path: Path, snippet: str, message: str
) -> None:
    with pytest.raises(SuiteErrors) as caught:
        files_of(tmp_path, snippet)
    assert message in str(caught.value)
    assert "suite.yaml:2 tasks[0].snippets.p" in str(caught.value)


def test_a_hidden_folder_is_read_where_the_settings_list_it(tmp_path: Path) -> None:
    (tmp_path / ".prompts").mkdir()
    (tmp_path / ".prompts" / "p.py").write_text("x = 1\n")
    path = tmp_path / "suite.yaml"
    path.write_text(
        "score: exact\ntasks: [{id: a, expected: x, snippets: {p: {file: .prompts/p.py}}}]"
    )
    with pytest.raises(SuiteErrors, match="which is hidden"):
        load_suite(path)
    (task,) = load_suite(path, read_from=[tmp_path / ".prompts"]).tasks
    assert task.snippets[0].files[0].content == "x = 1\n"


def test_the_digest_of_the_copy_follows_the_files(tmp_path: Path) -> None:
    files_of(tmp_path, "{folder: alice}")
    before = load_suite(tmp_path / "suite.yaml").copy
    (tmp_path / "alice" / "lib" / "core.py").write_text("y = 3\n")
    after = load_suite(tmp_path / "suite.yaml").copy
    assert before.text == after.text
    assert before.digest != after.digest
