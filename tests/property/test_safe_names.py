"""Names from data as names of files: never out of the folder, never reserved, never shared by two
names.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from assay.domain.errors import InputError
from assay.domain.identifiers import folded
from assay.exchange.results_folder.safe_names import LONGEST, inside, safe_name

ANY = (
    st.text(max_size=400)
    | st.text(alphabet="./\\-_ a0~:*?\0\n", max_size=30)
    | st.sampled_from(
        [
            "con",
            "NUL.txt",
            "com1",
            "Lpt9.x.y",
            "aux.",
            "metadata.json",
            "..",
            "",
            "a" * 300,
            "~root",
            "C:\\x",
        ]
    )
)


@given(ANY)
@example("../../etc")
@example("/etc/passwd")
@example("a\0b")
@example("x" * 300)
@example("CON")
@example("con.txt")
@example("trailing...")
@example("trailing ")
@example("metadata.json")
@example("é\u0301")
@example("\udc80")
def test_a_name_is_safe_on_every_system(text: str) -> None:
    name = safe_name(text)
    assert re.fullmatch(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?", name), name
    assert len(name) <= LONGEST
    assert name.split(".")[0] not in {
        "con",
        "prn",
        "aux",
        "nul",
        *(f"{d}{n}" for d in ("com", "lpt") for n in range(10)),
    }
    assert name != "metadata.json"
    root = Path("results")
    assert inside(root, name).parent == root


@given(ANY, ANY)
@example("a/b", "a--b")
@example("a b", "a-b")
@example("a-0123456789", "a")
@example("é", "e")
@example("ß", "ss")
@example("x.", "x")
def test_two_names_share_a_file_only_if_they_differ_in_case_alone(one: str, other: str) -> None:
    assert (safe_name(one) == safe_name(other)) == (folded(one) == folded(other))


@given(ANY)
def test_a_name_made_from_a_digest_is_not_taken_for_it(text: str) -> None:
    name = safe_name(text)
    if name != folded(text).replace("/", "--"):
        assert safe_name(name) != name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("alice", "alice"),
        ("Alice", "alice"),
        ("openai/gpt-4o-mini", "openai--gpt-4o-mini"),
        ("qwen-3.5_x", "qwen-3.5_x"),
    ],
)
def test_usual_names_stay_readable(text: str, name: str) -> None:
    assert safe_name(text) == name


def test_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "alice").symlink_to(tmp_path)
    with pytest.raises(InputError, match="leads out"):
        inside(folder, "alice", "x.jsonl")
