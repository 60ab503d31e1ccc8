"""A server that hears whatever reaches it: connections, what they ask for, and datagrams.

It stands for the world outside.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Evil:
    """Listens on one loopback port by TCP and UDP; `heard` says what came, in order."""

    def __init__(self) -> None:
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._tcp.getsockname()[1])
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        self._lock = threading.Lock()  # protects _heard
        self._heard: list[str] = []
        self._pages: dict[str, str] = {}
        for work in (self._accept, self._datagrams):
            threading.Thread(target=work, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def heard(self) -> list[str]:
        """Requests that came in, except those for pages that this server holds."""
        with self._lock:
            return list(self._heard)

    def forget(self) -> None:
        with self._lock:
            self._heard.clear()

    def put(self, path: str, page: str) -> None:
        """Have a page answered here, so that it can be seen what it does where nothing holds it."""
        self._pages[path] = page

    def close(self) -> None:
        self._tcp.close()
        self._udp.close()

    def _say(self, what: str) -> None:
        with self._lock:
            self._heard.append(what)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._tcp.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        self._say("a connection")
        with connection, suppress(OSError):
            connection.settimeout(2)
            asked = b""
            while b"\r\n\r\n" not in asked and (some := connection.recv(4096)):
                asked += some
            line = asked.split(b"\r\n", 1)[0].decode("latin-1")
            path = line.split(" ")[1] if line.count(" ") == 2 else ""
            page = self._pages.get(path.partition("?")[0])
            if page is None:
                self._say(line)
            else:
                with self._lock, suppress(ValueError):
                    # a page that was put here is no report of one
                    self._heard.remove("a connection")
            body = (page or "").encode()
            head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
            head += "Access-Control-Allow-Origin: *\r\nConnection: close\r\n"
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def _datagrams(self) -> None:
        with suppress(OSError):
            while True:
                self._udp.recvfrom(2048)
                self._say("a datagram")
