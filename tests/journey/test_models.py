"""`assay models`, and the choice of a model at a terminal."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from assay.app.runs.model_list import ModelDocument, default_model, with_model
from assay.cli.models import choose_model
from assay.domain.errors import InputError
from tests.journey.conftest import Command

LISTED = [
    ModelDocument(
        ref=f"anthropic/claude-{name}", input_usd=None, output_usd=None, context_tokens=None
    )
    for name in ("haiku", "opus", "sonnet")
]


def test_models_are_searched_by_every_word(assay: Command) -> None:
    listed = assay("models", "--search", "Sonnet claude", "--json").document["models"]
    assert listed
    assert all("claude" in model["ref"] and "sonnet" in model["ref"] for model in listed)
    (model,) = [model for model in listed if model["ref"] == "anthropic/claude-sonnet-4-5"]
    assert (model["input_usd"], model["output_usd"], model["context_tokens"]) == (
        3.0,
        15.0,
        200_000,
    )
    refused = assay("models", "--search", "no such model")
    assert refused.code == 2
    assert (
        refused.err
        == "assay: --search: is 'no such model', and no known model matches. Try fewer letters.\n"
    )


@pytest.mark.parametrize(
    ("typed", "chosen"),
    [
        ("\n", "opus-5"),
        ("2\n", "claude-opus"),
        ("SON\n1\n", "claude-sonnet"),
        ("brand-new\n", "brand-new"),
        ("9\n", "9"),
    ],
)
def test_model_is_chosen_by_number_piece_or_name(typed: str, chosen: str) -> None:
    @click.command()
    def command() -> None:
        click.echo(f"chosen: {choose_model(LISTED, 'anthropic', 'opus-5')}")

    assert CliRunner().invoke(command, input=typed).stdout.splitlines()[-1] == f"chosen: {chosen}"


@pytest.mark.parametrize(
    ("agent", "target"),
    [
        ("anthropic", "anthropic/opus"),
        ("mine=openrouter", "mine=openrouter/opus"),
        ("claude-code", "claude-code --model opus"),
    ],
)
def test_model_joins_the_agent_that_lacks_one(agent: str, target: str) -> None:
    assert with_model(agent, "opus") == target


@pytest.mark.parametrize("agent", ["echo", "openai/gpt-5", "cmd: ./a.sh"])
def test_model_of_an_agent_without_a_choice_is_refused(agent: str) -> None:
    with pytest.raises(InputError, match="does not apply"):
        with_model(agent, "opus")


def test_agents_have_a_default_model() -> None:
    assert default_model("anthropic") == "claude-sonnet-4-5"
    with pytest.raises(InputError, match="has no default model"):
        default_model("ollama")
