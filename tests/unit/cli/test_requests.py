"""Options of a command that arrive as one typed record."""

from __future__ import annotations

from dataclasses import dataclass

import click
import pytest
from click.testing import CliRunner

from assay.cli.requests import record_of


@dataclass(frozen=True, kw_only=True)
class Wanted:
    names: tuple[str, ...]
    most: int | None = None


NAME = click.option("--name", "names", multiple=True, help="A name.")
MOST = click.option("--most", type=int, help="A limit.")


def test_options_arrive_as_one_record_beside_the_other_options() -> None:
    @click.command()
    @record_of(Wanted, NAME, MOST, into="wanted")
    @click.option("--loud", is_flag=True)
    def greet(wanted: Wanted, loud: bool) -> None:
        """Greet."""
        click.echo(f"{wanted} {loud}")

    run = CliRunner().invoke(greet, ["--name", "ada", "--name", "bob", "--most", "2", "--loud"])
    assert run.output == "Wanted(names=('ada', 'bob'), most=2) True\n"
    help_text = CliRunner().invoke(greet, ["--help"]).output
    assert "Greet." in help_text
    assert help_text.index("--name") < help_text.index("--most") < help_text.index("--loud")


def test_an_option_that_is_no_field_stops_the_import() -> None:
    misspelt = click.option("--name", "nmaes", multiple=True)
    with pytest.raises(TypeError, match="Wanted has no field nmaes"):
        record_of(Wanted, misspelt, into="wanted")
