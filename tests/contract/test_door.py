"""`assay.plugins` has every name that a plug-in needs, and its table and its types agree."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support import example_plugin
from tests.support.example_plugin import exporter, grader, importer, judge, provider, scorer
from tests.support.example_plugin.workspace_agent import Scribe

from assay import plugins

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = sorted(Path(example_plugin.__file__).parent.glob("*.py"))

# The type checker compares each part of the example package with the type that the door exports.
SCORER: plugins.PluginScorer = scorer.words_present
GRADER: plugins.Grader = grader.manners
PROVIDER: plugins.ProviderOpener = provider.open_shouting
JUDGE: plugins.ProviderOpener = judge.open_lenient
IMPORTER: plugins.Importer = importer
EXPORTER: plugins.Exporter = exporter.export_lines
WORKSPACE_AGENT: Callable[[str, Path], plugins.WorkingAgent] = Scribe


def _typed_names() -> dict[str, set[str]]:
    """Return the names of the door's block for type checkers, by module."""
    source = ast.parse(Path(plugins.__file__).read_text("utf-8"))
    block = next(node for node in source.body if isinstance(node, ast.If))
    return {
        str(node.module): {alias.name for alias in node.names}
        for node in block.body
        if isinstance(node, ast.ImportFrom)
    }


def test_type_checkers_see_the_names_that_the_door_loads() -> None:
    assert {module: set(names) for module, names in plugins._NAMES.items()} == _typed_names()


@pytest.mark.parametrize("name", plugins.__all__)
def test_each_name_loads(name: str) -> None:
    assert getattr(plugins, name) is not None
    assert name in dir(plugins)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        plugins.nothing  # type: ignore[attr-defined] # noqa: B018


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_example_package_imports_nothing_of_assay_but_the_door(file: Path) -> None:
    modules = {
        module
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        for module in (
            [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
        if module.partition(".")[0] == "assay"
    }
    assert modules <= {"assay.plugins"}


def test_importing_the_door_imports_no_other_part() -> None:
    program = "import assay.plugins, sys; print(*(m for m in sys.modules if m.startswith('assay')))"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["assay", "assay.plugins"]
