"""A server of documents on loopback, of which some harm a careless client."""

from __future__ import annotations

import asyncio
import gzip
import threading
from contextlib import suppress
from typing import Final, Self

from aiohttp import web

PAGE: Final = b"""<html><head><title>Guide</title></head><body><nav>Home About</nav><article><h1>Main</h1><p>The main text explains
how buttons of the library are composed from smaller parts, and how their variants are named.</p></article></body></html>"""

_FLOOD: Final = 10**9
_BLOCK: Final = b"x" * 65_536


class DocumentServer:
    """Serves `/page` and traps in a thread.

    `served` counts requests, `sent` the bytes of a flood.
    """

    def __init__(self) -> None:
        self.page = PAGE
        self.kind = "text/html"
        self.served = 0
        self.sent = 0
        self.in_flight = 0
        self.peak = 0
        self.delay_s = 0.0
        self.url = ""

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run(ready)), name="document-server", daemon=True
        )
        self._thread.start()
        assert ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=10)

    async def _run(self, ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.set()
        await self._stop.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(runner.cleanup(), 1)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.served += 1
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await asyncio.sleep(self.delay_s)
            return await self._answer(request)
        finally:
            self.in_flight -= 1

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        match request.path:
            case "/hang":
                await asyncio.sleep(3600)
            case "/loop":
                return web.Response(status=302, headers={"Location": "/loop"})
            case "/redirect":
                return web.Response(status=302, headers={"Location": request.query["to"]})
            case "/missing":
                return web.Response(status=404)
            case "/drip" | "/flood":
                return await self._stream(request)
            case "/bomb":
                packed = gzip.compress(bytes(100 * 2**20), 1)
                return web.Response(
                    body=packed, content_type="text/html", headers={"Content-Encoding": "gzip"}
                )
            case "/gzip":
                return web.Response(
                    body=self.page, content_type=self.kind, headers={"Content-Encoding": "gzip"}
                )
            case _:
                pass
        return web.Response(body=self.page, content_type=self.kind)

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/html"})
        if not request.query:
            response.content_length = _FLOOD
        await response.prepare(request)
        with suppress(ConnectionError):
            for _ in range(_FLOOD // len(_BLOCK)):
                if request.path == "/drip":
                    await response.write(b".")
                    await asyncio.sleep(0.05)
                else:
                    await response.write(_BLOCK)
                    self.sent += len(_BLOCK)
        return response
