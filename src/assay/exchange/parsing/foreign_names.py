"""Names that occur in the files of other tools, from the file `foreign_names.toml` of a package."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files


def foreign_names(module: str) -> dict[str, tuple[str, ...]]:
    """Return the names that a module declares in the table of its name, in `foreign_names.toml`
    next to it: `foreign_names(__name__)`.
    """
    package, _, table = module.rpartition(".")
    return {name: tuple(names) for name, names in _tables(package)[table].items()}


@cache
def _tables(package: str) -> dict[str, dict[str, list[str]]]:
    return tomllib.loads((files(package) / "foreign_names.toml").read_text("utf-8"))
