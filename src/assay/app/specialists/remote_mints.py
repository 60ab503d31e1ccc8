"""Record mints of batches on another server in files, because only the runs of this store can hold
such a note.

The decisions are made on that server, so nothing here notices the last one: `assay mint --pending`
asks the server again.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from assay.domain.errors import InputError
from assay.domain.observations import MintRequested
from assay.exchange.results_folder.atomic_files import write_atomically
from assay.specialists.templates import read_limited

if TYPE_CHECKING:
    from pathlib import Path

    from assay.app.settings import Settings

_LOG: Final = logging.getLogger("assay")
_LARGEST: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteMint:
    """A recorded mint of a server's batch; `waiting`: pending grades and unfinished runs when the
    server was last asked.
    """

    request: MintRequested
    server: str
    waiting: int


def record(settings: Settings, mint: RemoteMint) -> None:
    """Write a recorded mint, or replace it if one with the same token exists."""
    path = _file(settings, mint.request.token)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, f"{json.dumps(asdict(mint), indent=2)}\n")


def forget(settings: Settings, token: str) -> None:
    """Remove a recorded mint that was carried out."""
    _file(settings, token).unlink(missing_ok=True)


def remote_mints(settings: Settings) -> tuple[RemoteMint, ...]:
    """Return the recorded mints, oldest first; a file that is none is named in the log and left
    out.
    """
    recorded = []
    for path in _folder(settings).glob("*.json"):
        try:
            mint = _read(json.loads(read_limited(path, _LARGEST)))
            if mint.request.token != path.stem:
                raise ValueError
            recorded.append((path.stat().st_mtime_ns, path.name, mint))
        except (InputError, OSError, ValueError, TypeError, KeyError, RecursionError):
            _LOG.warning("%s is not a recorded mint and is left out; delete it", path)
    return tuple(mint for *_, mint in sorted(recorded, key=lambda each: each[:2]))


def _read(stored: Any) -> RemoteMint:
    """Return the recorded mint in a JSON document; raises `ValueError`, `TypeError` or `KeyError`
    if it is none.
    """
    request = stored["request"]
    texts = ("batch_id", "template", "output", "token")
    flags = ("enriched", "require_decided", "require_vetted")
    if not all(isinstance(request[name], str) for name in texts) or not all(
        isinstance(request[name], bool) for name in flags
    ):
        raise ValueError
    if not isinstance(request["key"], str | None) or not isinstance(stored["server"], str):
        raise ValueError
    return RemoteMint(
        request=MintRequested(
            batch_id=request["batch_id"],
            template=request["template"],
            output=request["output"],
            key=request["key"],
            enriched=request["enriched"],
            require_decided=request["require_decided"],
            require_vetted=request["require_vetted"],
            token=request["token"],
        ),
        server=stored["server"],
        waiting=int(stored["waiting"]),
    )


def _folder(settings: Settings) -> Path:
    return settings.folder / ".assay" / "remote-mints"


def _file(settings: Settings, token: str) -> Path:
    return _folder(settings) / f"{token}.json"
