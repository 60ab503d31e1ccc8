"""Open a workspace for a function of `import assay`, whose errors name Python's parameters and not
the command's options.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from assay.app.opening import open_workspace
from assay.app.spellings import respell_for_python
from assay.app.workspace import existing_folder
from assay.domain.errors import AssayError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from assay.app.workspace import Workspace


@contextmanager
def opened(folder: str | Path | None, store: str | None) -> Iterator[Workspace]:
    """Open a workspace; an expected error that leaves the block names parameters such as `runs` in
    place of `--run`.
    """
    try:
        with open_workspace(existing_folder(folder), options={"store": store}) as workspace:
            yield workspace
    except AssayError as error:
        respell_for_python(error)
        raise
