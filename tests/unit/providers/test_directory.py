"""Which provider answers, and what is found before a run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from assay.domain.errors import SettingsError
from assay.domain.model import ModelSpec
from assay.providers.directory import Directory
from assay.providers.echo import Echo

MINI = ModelSpec(provider="openai", name="gpt-4o-mini")
LOCAL = ModelSpec(provider="openai", name="m", base_url="http://127.0.0.1:9/v1")
ECHO = ModelSpec(provider="echo", name="")


def directory(
    folder: Path | None = None, *, local_only: bool = False, **environment: str
) -> Directory:
    return Directory(environment, base_folder=folder or Path(), local_only=local_only)


def test_models_at_one_endpoint_share_a_provider() -> None:
    known = directory(OPENAI_API_KEY="k")
    assert known.provider(MINI) is known.provider(ModelSpec(provider="openai", name="gpt-4o"))
    assert known.provider(MINI) is not known.provider(LOCAL)


def test_a_missing_key_is_named_once_however_many_models_need_it() -> None:
    (problem,) = directory().problems(
        [MINI, ModelSpec(provider="openai", name="gpt-4o")], judges=[MINI]
    )
    assert problem.where == "OPENAI_API_KEY"
    assert "OPENAI_BASE_URL" in problem.remedy


def test_a_key_is_missed_only_for_providers_the_run_uses() -> None:
    assert (
        directory(ANTHROPIC_API_KEY="k").problems([ModelSpec(provider="anthropic", name="c")]) == ()
    )


@pytest.mark.parametrize("provider", ["openai", "anthropic", "openrouter"])
def test_every_vendor_needs_its_key(provider: str) -> None:
    (problem,) = directory().problems([ModelSpec(provider=provider, name="m")])
    assert problem.where == f"{provider.upper()}_API_KEY"


def test_a_local_endpoint_needs_no_key() -> None:
    assert directory().problems([LOCAL]) == ()
    assert directory(OPENAI_BASE_URL="http://127.0.0.1:8000/v1").problems([MINI]) == ()
    assert (
        directory().problems(
            [ModelSpec(provider="vllm", name="m"), ModelSpec(provider="ollama", name="m")]
        )
        == ()
    )


class TestLocalOnly:
    def test_a_remote_endpoint_is_refused_before_anything_is_sent(self) -> None:
        known = directory(local_only=True, OPENAI_API_KEY="k")
        (problem,) = known.problems([MINI])
        assert "local_only" in str(problem)
        assert "api.openai.com" in str(problem)
        with pytest.raises(SettingsError, match="local_only"):
            known.provider(MINI)

    def test_local_addresses_are_allowed_when_local_only(self) -> None:
        known = directory(
            local_only=True,
            VLLM_BASE_URL="http://10.0.0.7:8000",
            OPENAI_BASE_URL="http://gpu-box:1",
        )
        models = [
            ModelSpec(provider=provider, name="m") for provider in ("openai", "vllm", "ollama")
        ]
        assert known.problems([*models, ECHO]) == ()

    def test_a_number_that_spells_a_remote_address_is_refused(self) -> None:
        known = directory(local_only=True)
        assert known.problems(
            [ModelSpec(provider="openai", name="m", base_url="http://134744072/v1")]
        )


def test_echo_cannot_judge_but_can_be_a_candidate() -> None:
    assert directory().problems([ECHO]) == ()
    (problem,) = directory().problems([ECHO], judges=[ECHO])
    assert "cannot grade" in str(problem)
    assert isinstance(directory().provider(ECHO), Echo)


def test_a_missing_recording_is_named(tmp_path: Path) -> None:
    (problem,) = directory(tmp_path).problems([ModelSpec(provider="replay", name="gone.jsonl")])
    assert "gone.jsonl" in str(problem)


def test_a_wrong_recording_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"reply": "x"}\nnot json\n')
    (problem,) = directory(tmp_path).problems([ModelSpec(provider="replay", name="a.jsonl")])
    assert "a.jsonl:2" in str(problem)


def test_a_recording_may_be_named_by_its_whole_path(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"reply": "x"}\n')
    assert (
        directory(tmp_path).problems([ModelSpec(provider="replay", name=str(tmp_path / "a.jsonl"))])
        == ()
    )


def test_only_the_demo_comes_with_assay() -> None:
    (problem,) = directory().problems([ModelSpec(provider="replay", name="@demos")])
    assert "@demo" in str(problem)


def test_a_bad_address_and_an_unknown_provider_are_problems_too() -> None:
    problems = directory().problems(
        [
            ModelSpec(provider="openai", name="m", base_url="nowhere"),
            ModelSpec(provider="bedrock", name="m"),
        ]
    )
    assert [problem.where for problem in problems] == ["base_url of openai/m", "bedrock/m"]


def test_importing_the_directory_imports_neither_http_nor_prices() -> None:
    program = "import sys, assay.providers.directory; print([m for m in ('aiohttp', 'genai_prices', 'yarl') if m in sys.modules])"
    answered = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert answered.stdout.strip() == "[]"
