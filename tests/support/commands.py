"""Commands of `assay` in this process and in a folder: half a second less than a process of their
own.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

from assay.cli.main import exit_code


def printed(folder: Path, *words: object) -> str:
    """Run a command that succeeds in a folder; return what it prints."""
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as out:
        code = exit_code([str(word) for word in words])
    assert code == 0, f"{words} ended with {code}"
    return out.getvalue()
