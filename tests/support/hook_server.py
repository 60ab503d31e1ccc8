"""A real server on this machine that takes notices, and can be told to misbehave."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Told:
    """One request: its path, headers with lower-case names, and bytes."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.body)
        return document


@dataclass
class HookServer:
    """Answers `statuses` one after the other, then 200; `hang_s` holds every answer back; 3xx leads
    to `/elsewhere`.
    """

    statuses: list[int] = field(default_factory=list)
    hang_s: float = 0.0
    told: list[Told] = field(default_factory=list)

    def __enter__(self) -> Self:
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.told.append(
                    Told(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                )
                time.sleep(hook.hang_s)
                status = hook.statuses.pop(0) if hook.statuses else 200
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_GET(self) -> None:
                self.do_POST()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # the base class's name
                """Nothing on stderr."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/services/T0/B0/s3cret"

    @property
    def events(self) -> list[str]:
        return [one.document["event"] for one in self.told]
