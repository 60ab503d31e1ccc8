"""A headless Chromium for tests: found, installed from Debian's package where that is possible,
else skipped loudly.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import warnings
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Locator

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
ONE_RENDERER = ("--disable-site-isolation-trials", "--renderer-process-limit=1")
"""Every page and frame in one process: a new process for each new address takes 0.15 s of CPU more.
"""
INSTALL_S = 600
ACTS = ("click", "press", "select_option", "check", "uncheck")
"""What may lead to another page."""


@cache
def chromium() -> Path | str:
    """The browser's path, or why there is none."""
    named = os.environ.get("ASSAY_CHROMIUM")
    result = named or next((path for name in NAMES if (path := shutil.which(name))), None)
    if result:
        return Path(result)
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return "no Chromium is installed, and only root with apt-get could install Debian's"
    outcome = ""
    for command in (
        ["apt-get", "update"],
        ["apt-get", "install", "-y", "--no-install-recommends", "chromium"],
    ):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        try:
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=INSTALL_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"`{' '.join(command)}` took longer than {INSTALL_S} s"
        outcome = done.stderr.strip()[-300:]
    path = shutil.which("chromium")
    return Path(path) if path else f"Chromium could not be installed: {outcome}"


@contextmanager
def browser() -> Iterator[Browser]:
    """A running headless browser; skips the test, or fails it in CI, where there is none."""
    path = chromium()
    if isinstance(path, str):
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(path)
        warnings.warn(f"browser tests are skipped: {path}", stacklevel=2)
        pytest.skip(path)
    # only where there is a browser to drive
    from playwright.sync_api import Locator, sync_playwright

    with sync_playwright() as playwright, pytest.MonkeyPatch.context() as patch:
        for name in ACTS:
            patch.setattr(Locator, name, _until_loaded(getattr(Locator, name)))
        launched = playwright.chromium.launch(
            executable_path=path, args=[*ARGUMENTS, *ONE_RENDERER]
        )
        try:
            yield launched
        finally:
            launched.close()


@contextmanager
def isolating(running: Browser) -> Iterator[Browser]:
    """Another browser, with a process for each origin as users have it: a busy frame leaves its
    page alone.
    """
    path = chromium()
    assert isinstance(path, Path)
    launched = running.browser_type.launch(executable_path=path, args=list(ARGUMENTS))
    try:
        yield launched
    finally:
        launched.close()


def _until_loaded(act: Callable[..., Any]) -> Callable[..., Any]:
    """The act, over once the page it leads to has loaded; of itself it ends as that page begins to
    arrive.
    """

    @wraps(act)
    def acting(at: Locator, *arguments: Any, **options: Any) -> Any:
        result = act(at, *arguments, **options)
        if not at.page.is_closed():
            at.page.wait_for_load_state()
        return result

    return acting
