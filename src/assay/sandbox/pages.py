"""Take screenshots of web pages written by models, in a headless Chromium without network access.

The page is treated as hostile. The browser has its own profile in a temporary folder. All of its
requests, including those to loopback, go to a proxy in this process. The proxy serves only the page
and answers every other request with 403, so the page can reach neither the network nor a service on
this machine. The page is served over HTTP, because a page loaded from a file may show other files.
Its content security policy forbids loading anything. If a page does not finish loading in time, or
takes more than `MAX_MEMORY`, Assay kills the browser's processes.

Assay keeps only the screenshots. At most `MAX_AT_ONCE` browsers run at the same time.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import aiohttp

from assay.domain.pages import PageAnswer, PageRequest, Shots, Unseen, View
from assay.domain.suite import Image
from assay.sandbox.process_memory import kill_all, limit_growth, memory_of, tree_of

NAMES: Final = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
)
"""Usual program names of suitable browsers."""
PLACES: Final = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
)
MAX_AT_ONCE: Final = 2
LARGEST_PAGE: Final = 5_000_000
LARGEST_PICTURE: Final = 4_500_000
"""Maximum characters of a PNG in base64; providers refuse larger images."""
SETTLE_S: Final = 1.0
"""Seconds after loading in which a page may run timers and draw."""
LOAD_LIMIT_S: Final = 3.0
START_LIMIT_S: Final = 20.0
MAX_MEMORY: Final = 384 * 2**20
"""Maximum bytes for all processes of one browser together, measured with `memory_of`.

An empty page takes 220 MB.
"""
MAX_GROWTH: Final = 160 * 2**20
"""Maximum bytes by which each process's data may grow after the browser has started."""
_LOOK_EVERY_S: Final = 0.005
_LOOKS_PER_TREE: Final = 4

_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "font-src data:; media-src data: blob:; connect-src 'none'; frame-src 'none'; form-action 'none'; base-uri 'none'"
)
# Chromium does not use a proxy for loopback unless `<-loopback>` removes that rule, and WebRTC and
# QUIC send UDP past any proxy. In a container /dev/shm has 64 MB by default, which is too little
# for a large page.
_ARGUMENTS: Final = (
    "--headless=new",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--metrics-recording-only",
    "--password-store=basic",
    "--use-mock-keychain",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-device-scale-factor=1",
    "--js-flags=--max-old-space-size=256",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--proxy-bypass-list=<-loopback>",
    "--renderer-process-limit=1",
    "--disable-features=SpareRendererForSitePerProcess",
)
# Reserved by RFC 2606, so no server has this name.
_HOST: Final = "page.invalid"


def found_chromium(named: str | None = None) -> str | None:
    """Return the path of the named browser, or of the first installed browser with a usual name;
    None if neither exists.
    """
    if named:
        return shutil.which(named) or (named if Path(named).is_file() else None)
    on_path = (path for name in NAMES if (path := shutil.which(name)))
    return next(on_path, None) or next((place for place in PLACES if Path(place).is_file()), None)


def has_own_sandbox() -> bool:
    """True if Chromium can use its own sandbox, which it refuses to do as root."""
    return not hasattr(os, "geteuid") or os.geteuid() != 0


class ChromiumPages:
    """Takes screenshots with the Chromium at `path`; implements `ports.Pages`."""

    def __init__(
        self, path: str | None, *, missing: str = "no Chromium was found on this machine"
    ) -> None:
        self._path = path
        self._missing = missing
        self._turns = asyncio.Semaphore(MAX_AT_ONCE)

    async def shoot(self, request: PageRequest, /) -> PageAnswer:
        if self._path is None:
            return Unseen(f"The page was not rendered: {self._missing}.")
        page = request.html.encode("utf-8", "replace")
        if len(page) > LARGEST_PAGE:
            return Unseen(
                f"The page was not rendered: it has {len(page):,} bytes, more than {LARGEST_PAGE:,}."
            )
        async with self._turns:
            try:
                async with asyncio.timeout(START_LIMIT_S + request.time_limit_s):
                    return await self._shoot(page, request)
            except TimeoutError:
                return Unseen(
                    f"The page was not rendered: it did not finish loading within {request.time_limit_s:g} s."
                )
            except (OSError, aiohttp.ClientError, _Lost) as error:
                return Unseen(f"The page was not rendered: {error}.")

    async def close(self) -> None:
        """Do nothing, because no browser stays open between screenshots."""

    async def _shoot(self, page: bytes, request: PageRequest) -> PageAnswer:
        address = f"http://{_HOST}/{secrets.token_hex(16)}"
        with tempfile.TemporaryDirectory(
            prefix="assay-page-", ignore_cleanup_errors=True
        ) as folder:
            served = await asyncio.start_server(_serving(page, address), "127.0.0.1", 0)
            port = served.sockets[0].getsockname()[1]
            process = await self._start(folder, port)
            try:
                async with _Browser(await _debugger(Path(folder) / "profile", process)) as browser:
                    # The system's limit is per process and works even if this loop is busy; the
                    # watch in this loop counts all processes together.
                    limit_growth(tree_of(process.pid), MAX_GROWTH)
                    async with asyncio.timeout(request.time_limit_s):
                        pictures = await _within_memory(
                            browser.pictures(address, request.views), process.pid
                        )
            finally:
                kill_all(tree_of(process.pid))
                _kill_group(process.pid)
                with suppress(ProcessLookupError):
                    await process.wait()
                served.close()
        images = [_image(data, view) for data, view in zip(pictures, request.views, strict=True)]
        return (
            Shots(tuple(image for image in images if image))
            if all(images)
            else Unseen("The page was not rendered.")
        )

    async def _start(self, folder: str, port: int) -> asyncio.subprocess.Process:
        assert self._path is not None
        process = await asyncio.create_subprocess_exec(
            self._path,
            *([] if has_own_sandbox() else ["--no-sandbox"]),
            *_ARGUMENTS,
            f"--user-data-dir={folder}/profile",
            f"--proxy-server=http://127.0.0.1:{port}",
            "--remote-debugging-port=0",
            "about:blank",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=folder,
            env=_environment(folder),
            start_new_session=True,
        )
        # so that the watch on memory gets the processor before the page
        if hasattr(os, "setpriority"):
            with suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, process.pid, 5)
        return process


class _Lost(Exception):
    """Raised if the browser ended or sent an unreadable message."""


async def _within_memory(pictures: Coroutine[Any, Any, list[str]], browser: int) -> list[str]:
    """Wait for the screenshots; if the browser takes more than `MAX_MEMORY`, kill its processes
    and raise `_Lost`.
    """
    task = asyncio.ensure_future(pictures)
    tree, looks = [browser], 0
    try:
        while not (await asyncio.wait({task}, timeout=_LOOK_EVERY_S))[0]:
            # Finding the processes reads all of the machine's, which takes longer than counting the
            # memory of a few.
            if looks % _LOOKS_PER_TREE == 0:
                tree = await asyncio.to_thread(tree_of, browser)
            looks += 1
            if memory_of(tree) > MAX_MEMORY:
                kill_all(await asyncio.to_thread(tree_of, browser))
                raise _Lost(f"the page took more than {MAX_MEMORY >> 20} MB of memory")
        return task.result()
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _debugger(profile: Path, process: asyncio.subprocess.Process) -> str:
    """Wait until the browser has written its debugging address to a file, and return that
    address.
    """
    note = profile / "DevToolsActivePort"
    began = asyncio.get_running_loop().time()
    while asyncio.get_running_loop().time() - began < START_LIMIT_S:
        if process.returncode is not None:
            raise _Lost(f"the browser ended with code {process.returncode}")
        with suppress(OSError, ValueError):
            port, path, *_ = note.read_text("ascii").splitlines()
            return f"ws://127.0.0.1:{int(port)}{path}"
        await asyncio.sleep(0.05)
    raise _Lost("the browser did not start in time")


class _Browser:
    """Sends commands to a running browser over its debugging socket, one at a time, and closes
    dialogs.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._number = 0
        self._session: str | None = None
        self._http = aiohttp.ClientSession(trust_env=False)
        self._loaded = False

    async def __aenter__(self) -> _Browser:
        self._socket = await self._http.ws_connect(self._address, max_msg_size=64 * 2**20)
        target = await self._ask("Target.createTarget", url="about:blank")
        attached = await self._ask(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        self._session = attached["sessionId"]
        await self._ask("Page.enable")
        await self._ask("Fetch.enable", patterns=[{"urlPattern": "*"}])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def pictures(self, address: str, views: tuple[View, ...]) -> list[str]:
        """Return a screenshot of the page for each view, as PNG in base64."""
        return [await self.picture(address, view) for view in views]

    async def picture(self, address: str, view: View) -> str:
        """Return a screenshot of the page in a window of the view's size, as PNG in base64, after
        the page had time to draw.
        """
        self._page, self._loaded = address, False
        size = {"width": view.width, "height": view.height, "mobile": view.width < 600}
        await self._ask("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1)
        await self._ask("Page.navigate", url=address)
        # a page that redirects elsewhere never reports that it is loaded
        with suppress(TimeoutError):
            async with asyncio.timeout(LOAD_LIMIT_S):
                while not self._loaded:
                    await self._take()
        await self._listen(SETTLE_S)
        shot = await self._ask("Page.captureScreenshot", format="png")
        return str(shot["data"])

    async def _ask(self, method: str, **parameters: Any) -> Mapping[str, Any]:
        number = await self._send(method, **parameters)
        while True:
            message = await self._take()
            if message.get("id") == number:
                if "result" not in message:
                    raise _Lost(f"the browser refused {method}")
                result: Mapping[str, Any] = message["result"]
                return result

    async def _send(self, method: str, **parameters: Any) -> int:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        await self._socket.send_json(
            message | ({"sessionId": self._session} if self._session else {})
        )
        return self._number

    async def _listen(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    await self._take()

    async def _take(self) -> Mapping[str, Any]:
        """Receive the next message.

        Close any dialog that it reports, and refuse any request except that for the page.
        """
        arrived = await self._socket.receive()
        if arrived.type is not aiohttp.WSMsgType.TEXT:
            raise _Lost("the browser ended")
        message: Mapping[str, Any] = json.loads(arrived.data)
        match message:
            case {"method": "Page.loadEventFired"}:
                self._loaded = True
            case {"method": "Inspector.targetCrashed"}:
                raise _Lost("the page crashed the browser, most likely because memory ran out")
            case {"method": "Page.javascriptDialogOpening"}:
                await self._send("Page.handleJavaScriptDialog", accept=False)
            case {
                "method": "Fetch.requestPaused",
                "params": {"requestId": identifier, "request": {"url": url}},
            }:
                if url == self._page:
                    await self._send("Fetch.continueRequest", requestId=identifier)
                else:
                    await self._send(
                        "Fetch.failRequest", requestId=identifier, errorReason="Aborted"
                    )
            case _:
                pass
        return message


def _image(data: str, view: View) -> Image | None:
    if len(data) > LARGEST_PICTURE:
        return None
    caption = f"The page in a {view.name} window, {view.width} by {view.height} pixels:"
    return Image(media_type="image/png", data=data, caption=caption)


def _serving(
    page: bytes, address: str
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]:
    """Return a proxy's request handler that serves the page's address and answers every other
    request with 403.
    """
    wanted = f"GET {address} ".encode()
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(page)}\r\n"
        f"Content-Security-Policy: {_POLICY}\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
        "Connection: close\r\n\r\n"
    ).encode()
    refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(
            OSError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            TimeoutError,
            asyncio.CancelledError,
        ):
            async with asyncio.timeout(5):
                asked = await reader.readuntil(b"\r\n\r\n")
            writer.write(head + page if asked.startswith(wanted) else refusal)
            await writer.drain()
        writer.close()

    return answer


def _environment(folder: str) -> dict[str, str]:
    """Return the browser's environment: only a home folder and the program path, so it contains no
    API keys.
    """
    kept = {
        name: os.environ[name]
        for name in ("PATH", "LANG", "LC_ALL", "SYSTEMROOT")
        if name in os.environ
    }
    return {
        **kept,
        "HOME": folder,
        "TMPDIR": folder,
        "XDG_CONFIG_HOME": folder,
        "XDG_CACHE_HOME": folder,
    }


def _kill_group(pid: int) -> None:
    kill = getattr(os, "killpg", None)
    if kill is not None:
        with suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
