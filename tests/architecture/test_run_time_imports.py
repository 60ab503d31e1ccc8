"""No module imports another by name at run time, because the import contract cannot see that."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = Path(__file__).parents[2] / "src"

IMPORTS: Final = {
    # names that a plug-in, a project or a table gives
    "assay/__init__.py": 2,  # public names, loaded on first use
    "assay/plugins.py": 1,  # the door's names, loaded on first use
    "assay/plugin_registry.py": 1,
    "assay/cli/main.py": 1,  # the table of commands
    "assay/web/server.py": 2,  # every module with a router, and SciPy, which has no types
    "assay/providers/programs/host.py": 1,  # functions of a project
    "assay/sandbox/child.py": 1,  # functions that may run in a child process
    # the standard library, in a process without Assay
    "assay/sandbox/guard/child.py": 1,
    # modules that only some systems have
    "assay/sandbox/process_memory.py": 1,
    # packages of an extra, of which one may be absent
    "assay/exchange/parsing/zip_members.py": 1,
    "assay/formats/parquet.py": 4,
    "assay/specialists/templates.py": 1,
}
"""Files that import by name, and how often; a number may only shrink."""


def imports_by_name(text: str) -> list[ast.Call]:
    """Return the calls of `import_module` and `__import__`."""
    return [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and (
            (isinstance(node.func, ast.Attribute) and node.func.attr == "import_module")
            or (isinstance(node.func, ast.Name) and node.func.id in {"import_module", "__import__"})
        )
    ]


def calls_of_source() -> dict[str, list[ast.Call]]:
    calls = {
        file.relative_to(SOURCE).as_posix(): imports_by_name(file.read_text("utf-8"))
        for file in SOURCE.rglob("*.py")
    }
    assert len(calls) > 500
    return {name: lines for name, lines in sorted(calls.items()) if lines}


def test_only_named_files_import_by_name() -> None:
    assert {name: len(calls) for name, calls in calls_of_source().items()} == IMPORTS


def test_no_import_by_name_spells_a_module_of_assay() -> None:
    spelled = [
        f"{name}:{call.lineno}"
        for name, calls in calls_of_source().items()
        for call in calls
        if call.args
        and isinstance(call.args[0], ast.Constant)
        and str(call.args[0].value).startswith("assay")
        and name != "assay/__init__.py"  # the public package `assay.review`
    ]
    assert spelled == []


@pytest.mark.parametrize(
    "line",
    [
        "import_module('assay.app.specialists.waiting').mint_due()",
        "importlib.import_module(name)",
        "__import__(name)",
    ],
)
def test_each_way_to_import_by_name_is_seen(line: str) -> None:
    assert len(imports_by_name(line)) == 1
