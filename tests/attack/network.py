"""A network that leads every connection to one server on this machine, which keeps the bytes it
receives.

Names resolve as the test says, and no packet leaves this machine, whatever address is asked.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from asyncio.selector_events import BaseSelectorEventLoop
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    import pytest

PUBLIC = "203.0.113.9"


@dataclass
class CapturedNetwork:
    """Every destination that was asked, and every byte that was sent to any of them.

    Attributes:
        addresses: the answers of the resolver to a name.
        answer: what the server sends back to a request.
    """

    addresses: Callable[[str], Sequence[str]] = lambda _: (PUBLIC,)
    answer: bytes = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    destinations: list[tuple[str, int]] = field(default_factory=list)
    received: bytearray = field(default_factory=bytearray)

    def __enter__(self) -> Self:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._lock = threading.Lock()
        threading.Thread(target=self._serve, name="captured-network", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Lead this process's names and connections here."""
        at = self._listening.getsockname()[1]
        connect = BaseSelectorEventLoop.sock_connect

        def resolve(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
            families = {True: socket.AF_INET6, False: socket.AF_INET}
            return [
                (
                    families[":" in address],
                    socket.SOCK_STREAM,
                    6,
                    "",
                    (address, port, 0, 0) if ":" in address else (address, port),
                )
                for address in self.addresses(host)
            ]

        async def captured(
            loop: BaseSelectorEventLoop, opened: socket.socket, address: Any
        ) -> None:
            self.destinations.append((address[0], address[1]))
            if opened.family == socket.AF_INET6:
                raise ConnectionRefusedError
            await connect(loop, opened, ("127.0.0.1", at))

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        monkeypatch.setattr(BaseSelectorEventLoop, "sock_connect", captured)

    def _serve(self) -> None:
        while True:
            try:
                accepted, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._take, args=(accepted,), daemon=True).start()

    def _take(self, accepted: socket.socket) -> None:
        with accepted:
            try:
                while block := accepted.recv(65536):
                    with self._lock:
                        self.received += block
                    accepted.sendall(self.answer)
            except OSError:
                return


def each(
    attempts: Iterable[Any],
    attempt: Callable[[Any], Awaitable[None]],
    *,
    at_once: int = 8,
    close: Callable[[], Awaitable[None]] | None = None,
) -> int:
    """Carry out attempts in one event loop, some at once, and then `close`; return the number of
    attempts.
    """

    async def all_of_them() -> int:
        limit, number = asyncio.Semaphore(at_once), 0

        async def limited(values: Any) -> None:
            async with limit:
                await attempt(values)

        async with asyncio.TaskGroup() as group:
            for values in attempts:
                group.create_task(limited(values))
                number += 1
        if close is not None:
            await close()
        return number

    return asyncio.run(all_of_them())
