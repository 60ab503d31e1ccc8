"""Write the folder with which a shell guards the checks of graded code; see
`assay.sandbox.guard`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

from assay.domain.sandbox import CHECKERS, GuardedChecks

_PROGRAMS: Final = Path(__file__).parents[1] / "guard"
_COPIES: Final = {
    "startup.py": "sitecustomize.py",
    "runner.py": "runner.py",
    "child.py": "child.py",
}
_STARTED: Final = ("python", "python3", "pytest", "py.test")
_VERSIONS: Final = tuple(f"python3.{minor}" for minor in range(8, 21))

# A command may set PYTHONPATH itself, as in `PYTHONPATH=src python -m unittest`. Python would
# search its folders even for the modules of its own start, so that graded code could run before the
# guard. Only the guard stays there; it adds the others later.
_SHIM: Final = """#!/bin/sh
here=${0%/*}
guard=${here%/bin}
IFS=:
set -f
if [ "$PYTHONPATH" != "$guard" ]; then
  ASSAY_PYTHONPATH=
  for folder in $PYTHONPATH; do
    [ "$folder" = "$guard" ] || ASSAY_PYTHONPATH=${ASSAY_PYTHONPATH:+$ASSAY_PYTHONPATH:}${folder:-.}
  done
  PYTHONPATH=$guard
  export PYTHONPATH ASSAY_PYTHONPATH
fi
for folder in $PATH; do
  if [ "$folder" != "$here" ] && [ -x "$folder/NAME" ]; then
    unset IFS
    exec "$folder/NAME" "$@"
  fi
done
echo "sh: 1: NAME: not found" >&2
exit 127
"""


def write(folder: Path) -> None:
    """Write the programs of the guard, which every user may read and nobody inside the sandbox may
    change.
    """
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    for name, copy in _COPIES.items():
        shutil.copyfile(_PROGRAMS / name, folder / copy)
        (folder / copy).chmod(0o644)
    (folder / "bin").mkdir(mode=0o755)
    (folder / "bin").chmod(0o755)
    # Not for versions that are missing: `command -v` would find them.
    for name in (*_STARTED, *(name for name in _VERSIONS if shutil.which(name))):
        place = folder / "bin" / name
        place.write_text(_SHIM.replace("NAME", name), "utf-8")
        place.chmod(0o755)


def write_settings(folder: Path, checks: GuardedChecks, root: str) -> None:
    settings = {"root": root, "trusted": checks.trusted, "own": checks.own, "reserved": CHECKERS}
    place = folder / "settings.json"
    place.write_text(json.dumps(settings), "utf-8")
    place.chmod(0o644)


def environment(folder: str) -> dict[str, str]:
    """Return the variables by which each Python loads the guard, in safe-path mode and without
    caches and the user's packages.
    """
    return {
        "PYTHONPATH": folder,
        "PYTHONSAFEPATH": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
