"""The agent `claude-code`, with a program of ours that prints the format of Claude Code's
`stream-json`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from assay.agents.workspaces import Work
from assay.domain.calls import Usage
from assay.domain.errors import SettingsError
from assay_agents.claude_code import ClaudeCode, read_output
from tests.journey.conftest import Command
from tests.journey.test_bench import SOLUTION, bench, scenario
from tests.journey.test_task_tests import _no_sandbox_works
from tests.support.model_server import ModelServer, Said

__all__ = ["scenario"]

ASKS = """python3 -c '
import json, os, urllib.request
body = json.dumps({"model": "claude-haiku-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}).encode()
headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "content-type": "application/json"}
urllib.request.urlopen(urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages?beta=true", body, headers))
'
"""
INIT = {
    "type": "system",
    "subtype": "init",
    "session_id": "s1",
    "model": "claude-haiku-4-5",
    "tools": ["Bash", "Edit"],
}
CALL = {
    "type": "tool_use",
    "id": "toolu_1",
    "name": "Edit",
    "input": {"file_path": "/workspace/slug.py", "old_string": "é"},
}
SPOKE = {
    "type": "assistant",
    "message": {"role": "assistant", "content": [{"type": "text", "text": "I look."}, CALL]},
}
RESULT_BLOCK = {
    "type": "tool_result",
    "tool_use_id": "toolu_1",
    "content": [{"type": "text", "text": "edited"}],
}
ECHOED = {
    "type": "user",
    "message": {"role": "user", "content": [RESULT_BLOCK]},
    "tool_use_result": {},
}
USED = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 5,
    "cache_read_input_tokens": 3,
    "output_tokens": 7,
}
RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "duration_ms": 4200,
    "num_turns": 3,
    "result": "Mended slug().",
    "stop_reason": None,
    "session_id": "s1",
    "total_cost_usd": 0.25,
    "usage": USED,
    "permission_denials": [],
    "errors": [],
}
WHOLE = [INIT, SPOKE, ECHOED, RESULT]


def printed(*events: object) -> str:
    return "".join(f"{json.dumps(event)}\n" for event in events)


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install a program `claude` that runs some shell commands and then prints a text."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-never-to-be-seen")

    def install(commands: str, text: str, code: int = 0) -> None:
        program = folder / "claude"
        program.write_text(
            f"#!/bin/sh\n{commands}\ncat <<'ASSAY_END'\n{text}ASSAY_END\nexit {code}\n", "utf-8"
        )
        program.chmod(0o755)

    return install


@pytest.mark.slow
def test_claude_code_solves_a_scenario(
    assay: Command,
    scenario: Path,
    claude: Any,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if _no_sandbox_works():
        pytest.skip("no sandbox works here")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.address)
    server.answer = lambda call: Said(text="hi", input_tokens=1000, output_tokens=100)
    (scenario.parents[3] / "agent.json").write_text('{"permissions": {}}', "utf-8")
    claude(
        f'printf "{SOLUTION}" > slug.py; cat > got; echo "$@" >> got; echo x >> "$8" || echo unwritable >> got; {ASKS}',
        printed(*WHOLE),
    )
    document = bench(
        assay, "--agent", "mine=claude-code --settings agent.json --model haiku", "--tier", "L0"
    )
    (trial,) = document["agent_trials"]
    assert (trial["score"], trial["success"], trial["ended"]) == (1.0, True, "done")
    shown = assay("show", "t1").out
    for text in (
        "+Mend slug() in slug.py.",
        "stream-json --verbose",
        "--model haiku",
        "+unwritable",
        ", 3 turns and 2 steps",
    ):
        assert text in shown
    for text in ("Mended slug().", "I look.", "2. Edit", "old_string", "edited"):
        assert text in shown
    run = json.loads(assay("show", document["run_id"], "--json").out)
    assert run["cost_usd"] == pytest.approx(0.0015), (
        "as the gate counted it, and not as the program states"
    )
    assert server.calls[0].headers["x-api-key"] == "sk-never-to-be-seen"


@pytest.mark.parametrize(
    ("text", "code", "kind", "fault"),
    [
        ("", 3, "agent_not_started", "harness"),
        ("no JSON at all\n", 1, "agent_not_started", "harness"),
        (
            printed(
                INIT,
                {
                    **RESULT,
                    "is_error": True,
                    "terminal_reason": "api_error",
                    "api_error_status": 529,
                },
            ),
            1,
            "http_529",
            "provider",
        ),
    ],
)
def test_failures_that_are_not_the_agents_are_no_score(
    assay: Command, scenario: Path, claude: Any, text: str, code: int, kind: str, fault: str
) -> None:
    if _no_sandbox_works():
        pytest.skip("no sandbox works here")
    claude(":", text, code)
    document = bench(assay, "--agent", "claude-code", "--tier", "L0")
    assert [(each["kind"], each["fault"]) for each in document["failures"]] == [(kind, fault)]
    assert document["agent_trials"] == []


def test_an_agent_that_breaks_off_is_graded_as_it_stands(
    assay: Command, scenario: Path, claude: Any
) -> None:
    if _no_sandbox_works():
        pytest.skip("no sandbox works here")
    claude(
        f'printf "{SOLUTION}" > slug.py', printed(INIT, SPOKE) + printed(RESULT)[:60] + "\n", 137
    )
    (trial,) = bench(assay, "--agent", "claude-code", "--tier", "L0")["agent_trials"]
    assert (trial["score"], trial["ended"]) == (1.0, "no result (exit code 137)")


def test_output_is_read_as_far_as_it_can_be() -> None:
    work = Work()
    broken = '{"type": "assistant", "mess\n[1]\n{"type": "user"}\nnull\n' + '{"a":' * 100_000 + "\n"
    odd = {
        "type": "assistant",
        "message": {
            "content": ["text", {"type": "text", "text": 7}, {"type": "tool_use", "id": 1}]
        },
    }
    assert read_output(broken + printed(odd, *WHOLE), work) == RESULT
    assert (work.turns, work.cost_usd, work.usage) == (
        3,
        0.25,
        Usage(input_tokens=18, output_tokens=7),
    )
    assert work.model == "claude-haiku-4-5"
    assert len(work.steps) == 2


@pytest.mark.parametrize("value", [-1, True, "7", None, 1 << 50, 0.5, [1]])
def test_odd_figures_are_unknown(value: object) -> None:
    work = Work()
    read_output(
        printed(
            {**RESULT, "num_turns": value, "usage": {"input_tokens": value, "output_tokens": value}}
        ),
        work,
    )
    assert (work.turns, work.usage) == (None, Usage())
    read_output(printed({**RESULT, "total_cost_usd": value if value != 0.5 else "0.5"}), work)
    assert work.cost_usd is None


def test_without_the_program_or_its_settings_there_is_one_message(
    assay: Command, scenario: Path, claude: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude(":", "")
    for words, problem in (
        ("--settings nowhere.json", "is not a file"),
        ('--model "x', "cannot be read"),
    ):
        with pytest.raises(SettingsError, match=problem):
            ClaudeCode(words, Path())
    monkeypatch.setenv("PATH", "/nowhere")
    result = assay("bench", "basics", "fix-slug", "--agent", "claude-code")
    assert result.code == 2
    assert "which is not installed on this machine" in result.err
