"""Full-screen view for terminals of any size: a title, a scrollable text, and a line of keys.

Keys take effect without Enter, and keys typed early are never lost. Lines are edited with readline.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import termios
import textwrap
import tty
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import click

from assay.cli.output import takes_colour, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assay.cli.review_item import ScreenLine

_KEY: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)
_MOVES: Final = {
    "\x1b[A": -1,
    "\x1b[B": 1,
    "\x1bOA": -1,
    "\x1bOB": 1,
    "k": -1,
    "j": 1,
    "\n": 1,
    "\r": 1,
}
_PAGES: Final = {"\x1b[5~": -1, "\x1b[6~": 1, " ": 1, "b": -1}
_ENDS: Final = {"\x1b[H": 0, "\x1b[1~": 0, "\x1b[F": 1, "\x1b[4~": 1, "\x1bOH": 0, "\x1bOF": 1}


class Screen:
    """Full-screen view of a review, for use within `opened`."""

    def __init__(self) -> None:
        self._typed: list[str] = []
        self._top = 0
        self._input = sys.stdin.fileno()

    def show(
        self,
        title: str,
        lines: Sequence[ScreenLine],
        keys: str,
        *,
        message: str = "",
        from_top: bool = True,
    ) -> str:
        """Show a text that keys can scroll, and return the first other key; 'q' at the end of
        input.
        """
        if from_top:
            self._top = 0
        while True:
            self._draw(title, lines, keys, message)
            key = self._next_key()
            height, length = self._height, self._length
            if key in _MOVES:
                self._top += _MOVES[key]
            elif key in _PAGES:
                self._top += _PAGES[key] * max(1, height - 1)
            elif key in _ENDS:
                self._top = _ENDS[key] * length
            else:
                return key.lower()

    def ask(self, question: str, text: str = "") -> str | None:
        """Ask the user for a line, prefilled with `text`; None if they cancel with Ctrl-C or
        Ctrl-D.
        """
        _, rows = shutil.get_terminal_size()
        sys.stdout.write(
            f"\x1b[{rows};1H\x1b[K Enter: save · Ctrl-C: back\x1b[{rows - 1};1H\x1b[K\x1b[?25h"
        )
        sys.stdout.flush()
        termios.tcsetattr(self._input, termios.TCSADRAIN, self._cooked)
        try:
            with _prefilled(text):
                return input(f"{visible(question)}: ")
        except (KeyboardInterrupt, EOFError):
            return None
        finally:
            self._read_keys()

    @contextmanager
    def opened(self) -> Iterator[Screen]:
        """Take over the terminal, and restore it after the block."""
        self._cooked = termios.tcgetattr(self._input)
        self._read_keys()
        sys.stdout.write("\x1b[?1049h\x1b[?25l")
        try:
            yield self
        finally:
            sys.stdout.write("\x1b[?25h\x1b[?1049l")
            sys.stdout.flush()
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._cooked)

    def _read_keys(self) -> None:
        # TCSADRAIN, because the default of `tty` drops keys that were typed before the screen
        # appeared.
        tty.setcbreak(self._input, termios.TCSADRAIN)

    def _draw(self, title: str, lines: Sequence[ScreenLine], keys: str, message: str) -> None:
        columns, rows = shutil.get_terminal_size()
        below = [*textwrap.wrap(visible(message), columns), *textwrap.wrap(keys, columns)]
        body = [part for line in lines for part in _folded(line, columns)]
        self._height, self._length = max(1, rows - 1 - len(below)), len(body)
        self._top = max(0, min(self._top, self._length - self._height))
        window = body[self._top : self._top + self._height]
        if self._length > self._height:
            title = (
                f"{title} · lines {self._top + 1} to {self._top + len(window)} of {self._length}"
            )
        window += [""] * (self._height - len(window))
        heading = visible(title)[:columns].ljust(columns)
        screen = [
            click.style(heading, reverse=True) if takes_colour() else heading,
            *window,
            *below,
        ]
        sys.stdout.write(
            "\x1b[?25l\x1b[H" + "\r\n".join(f"{line}\x1b[K" for line in screen) + "\x1b[J"
        )
        sys.stdout.flush()

    def _next_key(self) -> str:
        if not self._typed:
            # An escape sequence arrives in one read.
            got = os.read(self._input, 1024).decode("utf-8", "replace")
            self._typed = _KEY.findall(got) or ["q"]
        key = self._typed.pop(0)
        return "q" if key == "\x04" else key


def _folded(line: ScreenLine, columns: int) -> list[str]:
    """Split a line at the width of the screen, between words if possible."""
    if line.text.isascii() and len(line.text) <= columns:
        parts = [line.text]
    else:
        from rich.cells import cell_len  # letters of some scripts are two columns wide
        from rich.console import Console
        from rich.text import Text

        if cell_len(line.text) <= columns:
            parts = [line.text]
        else:
            console = Console(width=columns, height=1, color_system=None)
            parts = [part.plain for part in Text(line.text).wrap(console, columns, overflow="fold")]
    return (
        [click.style(part, bold=True) for part in parts]
        if line.heading and takes_colour()
        else parts
    )


@contextmanager
def _prefilled(text: str) -> Iterator[None]:
    with suppress(ImportError):
        import readline

        readline.set_startup_hook(lambda: readline.insert_text(text))
    try:
        yield
    finally:
        with suppress(ImportError):
            import readline

            readline.set_startup_hook(None)
