"""Hostile pages on stage: each with a server of its own outside, so that what is heard there is
known to be its doing.

Many run at once, each two in a browser window of their own (a page behind another is slowed down):
what takes time is waiting, and waiting is shared.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from playwright.sync_api import Error

from tests.support.evil import Evil
from tests.web.escapes import RAN, together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from playwright.sync_api import Browser, Dialog, Page


T = TypeVar("T")


class Outside:
    """A server for each page's name, begun when it is first asked for."""

    def __init__(self) -> None:
        self._known: dict[str, Evil] = {}

    def of(self, name: str) -> Evil:
        if name not in self._known:
            self._known[name] = Evil()
        return self._known[name]

    def written(self, pages: Mapping[str, str]) -> str:
        """One page out of hostile ones by name, each of which reports to its own server; it says
        aloud that it runs.
        """
        return RAN + together(
            page.replace("EVIL", self.of(name).url) for name, page in pages.items()
        )

    def close(self) -> None:
        for one in self._known.values():
            one.close()


@dataclass
class Around:
    """A page of a browser window with hostile ones in it: everything that got out into it, and how
    many of them ran.
    """

    page: Page
    out: list[str] = field(default_factory=list)
    ran: int = 0

    @staticmethod
    def opened(browser: Browser) -> Around:
        """A page in a window of its own."""
        context = browser.new_context(
            viewport={"width": 1360, "height": 900}, accept_downloads=False
        )
        context.set_default_timeout(15_000)
        around = Around(context.new_page())
        page = around.page
        page.on("popup", lambda opened: around.out.append(f"window {opened.url}"))
        page.on("dialog", around._dialog)
        page.on("download", lambda one: around.out.append(f"download {one.url}"))
        page.on("filechooser", lambda _: around.out.append("a file dialog"))
        page.on("console", lambda said: around._hear(said.text))
        return around

    def anew(self) -> Around:
        """The same page, and nothing came of it yet."""
        self.out.clear()
        self.ran = 0
        return self

    def _hear(self, text: str) -> None:
        self.ran += text == "RAN"
        if "GOT OUT" in text:
            self.out.append(text)

    def _dialog(self, dialog: Dialog) -> None:
        self.out.append(f"dialog {dialog.type}: {dialog.message}")
        dialog.dismiss()

    def clicked(self) -> None:
        """A person clicks into each frame, which lets its page do more."""
        for frame in self.page.locator("iframe").all():
            with suppress(Error):
                box = frame.bounding_box()
                if box is not None:
                    self.page.mouse.click(
                        box["x"] + box["width"] / 2, box["y"] + box["height"] - 40
                    )

    def look(self, address: str, title: str | None = None) -> None:
        """Note what became of this page."""
        if self.page.url != address:
            self.out.append(f"the page went to {self.page.url}")
            return
        marked, called = self.page.evaluate(
            "() => [document.documentElement.dataset.out ?? null, document.title]"
        )
        if marked is not None:
            self.out.append(f"the page was marked {marked}")
        if title is not None and called != title:
            self.out.append(f"the page is called {called}")


def until(page: Page, holds: Callable[[T], Any], of: Iterable[T], *, within_s: float) -> bool:
    """Let browsers go on until something holds of all; whether it came to that."""
    every = tuple(of)
    deadline = time.monotonic() + within_s
    while not all(map(holds, every)):
        if time.monotonic() > deadline:
            return False
        with suppress(Error):
            page.wait_for_timeout(30)
    return True


def both_ran(around: Around) -> bool:
    """True if both pages in it began to run."""
    return around.ran >= 2


def portions(names: Iterable[str], size: int) -> Iterable[tuple[str, ...]]:
    """Names in groups of a size, the last perhaps smaller."""
    result = tuple(names)
    return (result[place : place + size] for place in range(0, len(result), size))


def held_openly(outside: Outside, groups: Iterable[Mapping[str, str]], host: Evil) -> str:
    """The address of a page with hostile ones in frames that hold nothing back."""
    frames = []
    for pages in groups:
        evil = outside.of(next(iter(pages)))
        evil.put("/inner", outside.written(pages))
        frames.append(f"<iframe src='{evil.url}/inner' width=240 height=120></iframe>")
    host.put("/held", f"<title>x</title>{''.join(frames)}")
    return host.url.replace("127.0.0.1", "localhost") + "/held"
