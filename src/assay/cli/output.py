"""Data to stdout, talk to stderr; with --json, stdout is exactly one document."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether `--json` was among the arguments, also where they could not be understood."""
    return "--json" in arguments


def print_json(document: Any) -> None:
    """The one document on stdout; a NaN or Infinity in it is our error, and raises ValueError."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n")


def say(text: str = "") -> None:
    """A line of data on stdout."""
    sys.stdout.write(f"{text}\n")


def tell(text: str) -> None:
    """A line of talk on stderr."""
    sys.stderr.write(f"{text}\n")


def complain(message: str, *, as_json: bool) -> None:
    """One clear message on stderr; with --json also a document that says the same, so that stdout is never empty."""
    if as_json:
        print_json({"error": message})
    tell(f"assay: {message}")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: frozenset[int] = frozenset()) -> str:
    """Aligned columns with two spaces between; columns in `numbers` align right."""
    lines = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i in numbers else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def dollars(usd: float | None) -> str:
    """`$0.0042`, `$1.23`, `<$0.0001`, or `price unknown`."""
    if usd is None:
        return "price unknown"
    if usd == 0:
        return "$0.00"
    if usd < 0.0001:
        return "<$0.0001"
    return f"${usd:.4f}" if usd < 0.1 else f"${usd:,.2f}"
