"""The package of docs/how-to/write-a-plugin.md works as the page says, with its own files and
commands.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.journey.test_pytest_plugin import run_pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.journey.conftest import Command

PAGE = (Path(__file__).parents[2] / "docs/how-to/write-a-plugin.md").read_text("utf-8")
FILES = dict(re.findall(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```", PAGE, re.M | re.S))
COMMANDS = [
    line.split() for line in re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S)[0].splitlines()
]


@pytest.fixture
def package(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write the page's files, and the metadata that `pip install -e .` leaves."""
    for name, text in FILES.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text, "utf-8")
    described = tomllib.loads(FILES["pyproject.toml"])["project"]
    metadata = project / "word_tools-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {described['name']}\nVersion: {described['version']}\n",
        "utf-8",
    )
    lines = [
        line
        for group, entries in described["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in entries.items()))
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path, str(project)])
    monkeypatch.setenv("PYTHONPATH", str(project))
    importlib.invalidate_caches()
    yield project
    for name in [name for name in sys.modules if name.partition(".")[0] == "word_tools"]:
        del sys.modules[name]


def test_commands_of_the_page_work(assay: Command, package: Path) -> None:
    printed = {words[1]: assay(*words[1:]) for words in COMMANDS if words[0] == "assay"}
    assert {name: answer.code for name, answer in printed.items()} == dict.fromkeys(
        ("plugins", "run", "export", "means"), 0
    )
    assert "word-tools 1.0" in printed["plugins"].out
    assert "shortest: number of letters" in printed["plugins"].out
    assert (package / "out.txt").read_text("utf-8").startswith("a parrot 0.66")
    assert printed["means"].out.startswith("parrot: 0.66")


@pytest.mark.slow
def test_its_tests_pass_and_its_types_hold(assay: Command, package: Path) -> None:
    (package / "pytest.ini").write_text("[pytest]\n", "utf-8")
    (tests,) = [words[1] for words in COMMANDS if words[0] == "pytest"]
    ended = run_pytest(package, tests)
    assert ended.returncode == 0, ended.stdout
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "types", "word_tools", tests],
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_table_names_every_group_and_type() -> None:
    from assay import plugins, testing
    from assay.app.installed_plugins import REGISTRIES

    table = PAGE.partition("## Every kind")[2]
    assert {registry.group for registry in REGISTRIES.values()} <= set(
        re.findall(r"assay\.\w+", table)
    )
    assert set(testing.__all__) <= set(re.findall(r"\w+Contract", table))
    named = {
        "PluginScorer",
        "Grader",
        "ProviderOpener",
        "Provider",
        "WorkingAgent",
        "Importer",
        "Exporter",
    }
    assert named <= set(plugins.__all__) & set(re.findall(r"\w+", table))
