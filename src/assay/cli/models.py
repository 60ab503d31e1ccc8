"""`assay models`, and a prompt for choosing an agent's model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from assay.cli.options import common, workspace
from assay.cli.output import print_json, say, say_table, tell
from assay.cli.parameters import option
from assay.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.app.runs.model_list import ModelDocument

_OFFERED: Final = 12
"""Maximum number of models listed at the prompt."""


@click.command()
@option("--search", metavar="TEXT", help="Only models whose names contain every word of TEXT.")
@common
def models(search: str | None, store: str | None, as_json: bool) -> int:
    """List models by their references, with their prices per million tokens and their context
    sizes.

    The list holds the models of earlier runs and of the price data; any other PROVIDER/NAME can be
    used too.
    """
    from assay.app.runs.model_list import list_models
    from assay.app.wire import to_json

    with workspace(store) as opened:
        matching = list_models(opened.store, opened.settings, search or "")
    if not matching and search:
        raise InputError(
            "--search", f"is {search!r}, and no known model matches.", remedy="Try fewer letters."
        )
    if as_json:
        print_json({"models": [to_json(model) for model in matching]})
        return 0
    rows = [
        (model.ref, _usd(model.input_usd), _usd(model.output_usd), _tokens(model.context_tokens))
        for model in matching
    ]
    say_table(("model", "input $/M", "output $/M", "context"), rows, numbers=frozenset({1, 2, 3}))
    say(f"{len(rows)} models.")
    return 0


def choose_model(listed: Sequence[ModelDocument], vendor: str, default: str) -> str:
    """Ask at the terminal for one of a vendor's models, and return its name.

    A number selects a line and Enter the default. Any other text narrows the list; if no model
    matches, the text is the name.
    """
    names = [
        model.ref.removeprefix(f"{vendor}/")
        for model in listed
        if model.ref.startswith(f"{vendor}/")
    ]
    shown = names
    while True:
        for number, name in enumerate(shown[:_OFFERED], 1):
            tell(f"{number:>3}  {name}")
        if len(shown) > _OFFERED:
            tell(f"     … and {len(shown) - _OFFERED} more; type part of the name")
        text: str = click.prompt("Model (number, or part of the name)", default=default, err=True)
        if text.isdigit() and 1 <= int(text) <= min(len(shown), _OFFERED):
            return shown[int(text) - 1]
        if text == default or text in names:
            return text
        shown = [name for name in names if text.lower() in name.lower()]
        if not shown:
            return text


def _usd(price: float | None) -> str:
    return "unknown" if price is None else f"{price:,.2f}"


def _tokens(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"
