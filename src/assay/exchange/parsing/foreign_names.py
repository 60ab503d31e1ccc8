"""Names that occur in the files of other tools, from `readers/foreign_names.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files


def foreign_names(module: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(names) for name, names in _tables()[module.rpartition(".")[2]].items()}


@cache
def _tables() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(
        (files("assay.exchange.readers") / "foreign_names.toml").read_text("utf-8")
    )
