"""Files that options of an import name: pipes, devices, huge ones, and YAML that grows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.attack import figures
from tests.journey.conftest import Command

from assay.exchange.parsing.json_values import NotJson
from assay.exchange.parsing.yaml_documents import parse_yaml

OPTIONS = ("--map", "--fields", "--criteria", "--model-info")
LAUGHS = "a0: &a0 [ha]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 10)
)
GROWING = {
    "aliases": (LAUGHS, ("more than 100,000 values",)),
    "merged aliases": (MERGES, ("more than 100,000 values",)),
    "an alias inside itself": ("a: &a [*a]\n", ("inside the value", "more than 100,000 values")),
    "brackets": ("a: " + "[" * 100_000, ("nested",)),
    "dashes": ("- " * 5_000 + "a\n", ("nested",)),
}


@pytest.fixture
def rows(project: Path) -> Path:
    """A project with a table to import, and hostile files beside it."""
    (project / "rows.csv").write_text("task,candidate,score\nt,bob,1\n", "utf-8")
    with (project / "huge").open("wb") as huge:
        huge.truncate(20 << 30)
    if hasattr(os, "mkfifo"):
        os.mkfifo(project / "pipe")
    return project


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
@pytest.mark.usefixtures("rows")
def test_pipes_devices_and_huge_files_are_refused(assay: Command) -> None:
    held = 0
    for option in OPTIONS:
        for place, problem in (
            ("pipe", "not a regular file"),
            ("/dev/zero", "not a regular file"),
            ("huge", "has 20,480 MB"),
        ):
            refused = assay("import", "rows.csv", option, place)
            held += refused.code != 2 or problem not in refused.err
    figures.publish("file of an option that is a pipe, a device or huge", tried=12, through=held)


def test_yaml_that_grows_is_refused(assay: Command, rows: Path) -> None:
    through = 0
    for text, problems in GROWING.values():
        (rows / "growing.yaml").write_text(text, "utf-8")
        for option in ("--map", "--fields"):
            refused = assay("import", "rows.csv", option, "growing.yaml")
            through += refused.code != 2 or not any(problem in refused.err for problem in problems)
    figures.publish(
        "YAML of an option that grows by aliases or nesting",
        tried=2 * len(GROWING),
        through=through,
    )


def test_a_document_of_many_short_values_is_refused() -> None:
    with pytest.raises(NotJson, match="more than 500,000 values"):
        parse_yaml(b"- a\n" * 500_002)


def test_aliases_that_stay_small_are_followed() -> None:
    assert parse_yaml(b"a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}\n") == {
        "a": {"x": 1},
        "b": {"x": 1},
        "c": {"x": 1, "y": 2},
    }
