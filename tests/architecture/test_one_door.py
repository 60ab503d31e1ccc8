"""Importers of other formats and agents of others reach Assay by its door alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
PACKAGES = ("assay_importers", "assay_agents")


def imported_modules(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_of_plugins_import_only_the_door(package: str) -> None:
    modules = {
        (file.name, module)
        for file in sorted((SOURCE / package).rglob("*.py"))
        for module in imported_modules(file)
        if module.partition(".")[0] == "assay"
    }
    assert len(modules) > 0
    assert {module for _, module in modules} == {"assay.plugins"}


def test_assay_names_no_module_of_these_packages() -> None:
    files = [*(SOURCE / "assay").rglob("*.py"), *(SOURCE / "assay").rglob("*.toml")]
    assert len(files) > 500
    code = {file: file.read_text("utf-8") for file in files}
    named = {
        f"{file.name}: {package}.{module.stem}"
        for package in PACKAGES
        for module in (SOURCE / package).glob("[a-z]*.py")
        for file, text in code.items()
        if f"{package}.{module.stem}" in text
    }
    assert named == set()
