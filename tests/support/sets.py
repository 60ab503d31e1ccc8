"""Set files and suites written for tests."""

from __future__ import annotations

import json
from pathlib import Path

NAMES = ("nora", "omar", "pia", "quin")


def write_set(
    folder: Path,
    *,
    things: int = 3,
    candidates: int = 4,
    trials: int = 5,
    name: str = "services.json",
) -> Path:
    """A set file: `things` Things, each with a snippet of each of the first `candidates` names."""
    path = folder / name
    path.write_text(
        json.dumps(
            [
                {
                    "thingName": f"Service {chr(65 + number)}",
                    "context": f"Keep invariant {number}.",
                    "language": "python",
                    "trialsNeeded": trials,
                    "snippets": [
                        {
                            "name": who,
                            "content": f"def service_{number}(x):\n    return x + {number * 10 + place}\n",
                        }
                        for place, who in enumerate(NAMES[:candidates])
                    ],
                }
                for number in range(things)
            ]
        ),
        "utf-8",
    )
    return path
