"""Pages that try to take all memory of the machine that renders them."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.attack import figures
from tests.support.browser import chromium
from tests.support.measured import MAX_MEMORY

from assay.app.settings import read_settings
from assay.app.workspace import browser_notes
from assay.domain.pages import PageAnswer, PageRequest, Shots, Unseen
from assay.sandbox.pages import ChromiumPages
from assay.sandbox.process_memory import limit_growth, memory_of, tree_of

BROWSER = chromium()
real = pytest.mark.skipif(isinstance(BROWSER, str), reason=f"no browser: {BROWSER}")

BOMBS = {
    "arrays": "a=[];for(;;)a.push(new Uint8Array(5e7).fill(7))",
    "arrays later": "a=[];setInterval(()=>a.push(new Uint8Array(1e8).fill(7)),5)",
    "canvases": "a=[];setInterval(()=>{c=document.createElement('canvas');c.width=c.height=8000;"
    "c.getContext('2d').fillRect(0,0,8000,8000);a.push(c)},1)",
    "wasm": "a=[];for(;;)a.push(new Uint8Array(new WebAssembly.Memory({initial:1000}).buffer).fill(7))",
    "nodes": "for(;;)document.documentElement.append('x'.repeat(1e6))",
    "blobs": "a=[];for(;;)a.push(new Blob([new Uint8Array(5e7).fill(7)]))",
    "layers": "s='';for(i=0;i<3000;i++)s+='<div style=\"will-change:transform;position:absolute;width:1000px;height:1000px;"
    "background:linear-gradient(red,blue)\">x</div>';document.body.innerHTML=s",
    "images": "a=[];setInterval(()=>a.push(createImageBitmap(new ImageData(2000,2000))),1)",
    "textures": "c=document.createElement('canvas').getContext('webgl');for(;;){c.bindTexture(3553,c.createTexture());"
    "c.texImage2D(3553,0,6408,2048,2048,0,6408,5121,new Uint8Array(2048*2048*4).fill(9))}",
    "history": "for(;;)history.pushState('x'.repeat(1e6),'')",
    "messages": "for(;;)postMessage(new Uint8Array(8e7).fill(1))",
    "sounds": "a=new AudioContext();b=[];for(;;)b.push(a.createBuffer(2,1e7,44100).getChannelData(0).fill(1))",
    "workers": "for(i=0;i<20;i++)new Worker(URL.createObjectURL(new Blob(['a=[];for(;;)a.push(new Uint8Array(5e7).fill(7))'])))",
}


def resident(pids: Iterable[int]) -> int:
    """Return the resident memory of processes, with each page that several of them share counted
    once (PSS).
    """
    total = 0
    for pid in pids:
        with suppress(OSError):  # it has ended
            sizes = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
            total += sum(
                int(kilobytes) * 1024 for kilobytes in re.findall(r"^Pss: +(\d+) kB", sizes, re.M)
            )
    return total


def shot_and_peak(html: str) -> tuple[PageAnswer, int]:
    """Render a page; return the answer and the peak memory of all child processes that come with
    it.

    Memory is what `memory_of` counts or, if it is more, the resident memory with programs and
    libraries.
    """
    peak, done = 0, threading.Event()
    before = set(tree_of(os.getpid()))  # servers of earlier tests in this process go on

    def watch() -> None:
        nonlocal peak
        browser: list[int] = []
        looks = 0
        while not done.wait(0.01):
            if looks % 8 == 0:  # rarely, because this takes time from the watch that is tested
                browser = [pid for pid in tree_of(os.getpid()) if pid not in before]
            looks += 1
            peak = max(peak, memory_of(browser), resident(browser))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        return asyncio.run(
            ChromiumPages(str(BROWSER)).shoot(PageRequest(html=html, time_limit_s=20))
        ), peak
    finally:
        done.set()
        watching.join()


@pytest.mark.slow
@real
@pytest.mark.parametrize("script", BOMBS.values(), ids=BOMBS)
def test_no_page_takes_more_than_600_mb(script: str) -> None:
    _, peak = shot_and_peak(f"<body><p>x<script>{script}</script>")
    figures.publish(
        "page under `code_arena` that fills memory",
        tried=len(BOMBS),
        through=int(peak > MAX_MEMORY),
    )


@pytest.mark.slow
@real
def test_a_page_that_fills_memory_is_not_rendered() -> None:
    answer, _ = shot_and_peak(f"<body><p>x<script>{BOMBS['nodes']}</script>")
    assert isinstance(answer, Unseen)
    assert "memory" in answer.detail


@pytest.mark.slow
@real
def test_a_large_canvas_is_still_rendered() -> None:
    script = "let c=document.querySelector('canvas').getContext('2d');c.fillRect(0,0,2000,2000)"
    answer, peak = shot_and_peak(
        f"<canvas width=2000 height=2000></canvas><script>{script}</script>"
    )
    assert isinstance(answer, Shots), answer
    assert peak < MAX_MEMORY


def test_memory_counts_processes_that_left_the_group() -> None:
    child = "import sys; held = bytearray(b'x') * (50 << 20); print('held', flush=True); sys.stdin.read()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], start_new_session=True)"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"held\n"
        tree = tree_of(process.pid)
        assert len(tree) == 2
        assert memory_of(tree) > 50 << 20
        process.stdin.close()


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="other systems have no limit on data"
)
def test_a_process_and_its_new_children_grow_within_the_limit() -> None:
    grow = "import sys; print('up', flush=True); sys.stdin.readline(); bytearray(120 << 20)"
    start = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {grow!r}]).returncode)"
    grow_later = "import subprocess, sys; print('up', flush=True); sys.stdin.readline(); " + start
    for program, feed in ((grow, b"go\n"), (grow_later, b"go\ngo\n")):
        with subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            limit_growth(tree_of(process.pid), 100 << 20)
            _, errors = process.communicate(feed)
            assert b"MemoryError" in errors
            assert process.returncode == 1


@pytest.mark.parametrize(("root", "own"), [(0, False), (1000, True)])
def test_pages_without_chromiums_sandbox_are_announced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, root: int, own: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: root, raising=False)
    notes = browser_notes(read_settings(tmp_path, environment={"ASSAY_CHROMIUM": sys.executable}))
    assert bool(notes) is not own
    assert all("without its own sandbox" in note for note in notes)
