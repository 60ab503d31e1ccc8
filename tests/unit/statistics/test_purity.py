"""The room imports alone, and only what it may."""

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import assay.statistics

ROOM = Path(assay.statistics.__file__).parent
ALLOWED = {
    "numpy",
    "scipy.special",
    "bisect",
    "collections",
    "dataclasses",
    "functools",
    "math",
    "types",
    "typing",
}


def imported(source: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "scipy":
            names |= {f"scipy.{name.name}" for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def test_statistics_import_only_numpy_scipy_special_and_pure_stdlib() -> None:
    for path in sorted(ROOM.glob("*.py")):
        names = {
            name
            for name in imported(path.read_text(encoding="utf-8"))
            if not name.startswith("assay.statistics")
        }
        foreign = {
            name for name in names if name not in ALLOWED and name.split(".")[0] not in ALLOWED
        }
        assert not foreign, f"{path.name} imports {foreign}"


def test_importing_the_room_brings_neither_scipy_stats_nor_another_room() -> None:
    script = (
        "import sys, assay.statistics as st\n"
        "st.proportion(1, 2)\n"
        "bad = [m for m in sys.modules if m == 'scipy.stats' or m == 'pandas'\n"
        "       or (m.startswith('assay.') and not m.startswith('assay.statistics'))]\n"
        "sys.exit(str(bad) if bad else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_star_import_brings_public_names_and_no_module() -> None:
    namespace: dict[str, object] = {"warnings": "mine"}
    exec("from assay.statistics import *", namespace)  # a star import is allowed in a module only
    assert namespace["warnings"] == "mine"
    assert {"ScoreTable", "compare", "rank", "e_value"} <= namespace.keys()
    assert not [
        name
        for name, value in namespace.items()
        if isinstance(value, ModuleType) and not name.startswith("__")
    ]
