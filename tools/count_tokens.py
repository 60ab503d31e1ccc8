#!/usr/bin/env python3
"""Count the tokens of each package, and write them into ARCHITECTURE.md.

    python tools/count_tokens.py [--write]

A token is a name, a number, a string or a sign of Python's grammar. Comments, line ends and
indentation are not counted, so that formatting changes nothing but trailing commas. The sample
answers of the demo are left out.
"""

from __future__ import annotations

import argparse
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- tokens -->", "<!-- end of tokens -->"
NOT_COUNTED = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the figures into the page")
    given = parser.parse_args()
    text = sentence(counts(ROOT / "src"))
    if given.write:
        page = PAGE.read_text("utf-8")
        before, _, rest = page.partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", "utf-8")
    print(text)
    return 0


def counts(source: Path) -> Counter[str]:
    """Return the tokens of each room of `assay`, and of each other package."""
    tokens: Counter[str] = Counter()
    for file in sorted(source.rglob("*.py")):
        package, *parts = file.relative_to(source).parts
        if parts[0] == "demo":
            continue
        room = package if package != "assay" else parts[0] if len(parts) > 1 else "other modules"
        with file.open("rb") as lines:
            tokens[room] += sum(
                token.type not in NOT_COUNTED for token in tokenize.tokenize(lines.readline)
            )
    return tokens


def sentence(tokens: Counter[str]) -> str:
    """Return the figures in thousands, the largest first."""
    packages = {room: n for room, n in tokens.items() if room.startswith("assay_")}
    rooms = Counter({room: n for room, n in tokens.items() if room not in packages})
    listed = ", ".join(f"{room} {_thousands(n)}" for room, n in rooms.most_common())
    others = ", ".join(f"`{name}` {_thousands(n)}" for name, n in packages.items())
    return f"Tokens in thousands: `assay` {_thousands(rooms.total())} ({listed}); {others}."


def _thousands(n: int) -> str:
    return f"{n / 1000:.0f}"


if __name__ == "__main__":
    sys.exit(main())
