"""A command gets its options as a request, and a wrong name is an error at import."""

from __future__ import annotations

from dataclasses import dataclass

import click
import pytest

from assay.cli.requests import takes


@dataclass(frozen=True, kw_only=True)
class _Size:
    width: int
    depth: int = 7


def test_a_command_gets_its_options_as_a_request() -> None:
    @click.command()
    @takes(_Size, without=("depth",))
    @click.option("--width", type=int)
    @click.option("--colour")
    def paint(size: _Size, colour: str) -> int:
        return 0 if (size, colour) == (_Size(width=3), "red") else 1

    assert paint.main(["--width", "3", "--colour", "red"], standalone_mode=False) == 0


def test_two_requests_each_take_their_own_options() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Paint:
        colour: str

    @click.command()
    @takes(Paint)
    @click.option("--colour")
    @takes(_Size)
    @click.option("--width", type=int)
    @click.option("--depth", type=int)
    def paint(size: _Size, colours: Paint, /) -> int:
        return size.width * size.depth + len(colours.colour)

    words = ["--width", "3", "--depth", "2", "--colour", "red"]
    assert paint.main(words, standalone_mode=False) == 9


def test_a_field_without_an_option_is_an_error_at_import() -> None:
    with pytest.raises(TypeError, match=r"paint: no option sets \['depth'\] of _Size\."):

        @takes(_Size)
        @click.option("--width", type=int)
        def paint(size: _Size) -> int:
            return size.width
