"""Tables, colour and width: what a person sees on a terminal, and what a pipe gets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journey.conftest import Command
from tests.support.terminal import plain, terminal

EXACT = {
    "name": "sums",
    "score": "exact",
    "candidates": [
        {"name": "ann", "model": "echo"},
        {"name": "bob", "model": "echo", "prompt": "{{prompt}}!"},
    ],
    "tasks": [{"id": f"t{n}", "prompt": f"{n}", "expected": f"{n}"} for n in range(8)],
}
JUDGED = {
    "name": "judged",
    "judge": "openai/gpt-4o-mini",
    "candidates": ["openai/gpt-4o-mini", "openai/gpt-4o"],
    "tasks": [{"id": "sky", "prompt": "Why is the sky blue?"}],
}


@pytest.fixture
def sums(assay: Command, project: Path) -> Path:
    (project / "sums.json").write_text(json.dumps(EXACT), "utf-8")
    assert assay("run", "sums.json").code == 0
    return project


def test_stats_prints_one_table_and_tasks_only_if_asked(assay: Command, sums: Path) -> None:
    lines = assay("stats").out.splitlines()
    header = lines.index("candidate  score   sd  95% range      rank  from")
    assert lines[header + 1].split() == [
        "ann",
        "100.0",
        "0.0",
        "68.8",
        "to",
        "100.0",
        "1",
        "8",
        "tasks,",
        "8",
        "trials",
    ]
    assert [line for line in lines if line.startswith("ann − bob")]
    assert [line for line in lines if line.startswith("ann is better than bob by 100.0 points")]
    assert not any(line.startswith("t3 ") for line in lines)
    by_task = assay("stats", "--by-task").out.splitlines()
    assert sum(line.startswith("t3 ") for line in by_task) == 2


def test_stats_before_any_review_says_what_to_do(assay: Command, project: Path) -> None:
    people = {**EXACT, "judge": "human"}
    del people["score"]
    (project / "sums.json").write_text(json.dumps(people), "utf-8")
    assert assay("run", "sums.json").code == 0
    shown = assay("stats")
    assert shown.code == 0, shown.err
    run, first, *_, last = shown.out.splitlines()
    assert run.endswith("no trials")
    assert first == "No trials count yet; 8 await review"
    assert last == "Review them first: `assay review`, or `assay serve`."
    assert assay("compare", "ann", "bob").code == 0


def test_stats_of_many_candidates_names_the_pairs_left_out(assay: Command, project: Path) -> None:
    many = {**EXACT, "candidates": [{"name": f"c{n}", "model": "echo"} for n in range(6)]}
    (project / "sums.json").write_text(json.dumps(many), "utf-8")
    assert assay("run", "sums.json").code == 0
    output = assay("stats").out
    assert output.count(" − ") == 5
    assert "… and 10 more pairs; `assay rank` lists them all" in output
    assert assay("rank").out.count(" − ") == 15


def test_a_table_fits_a_narrow_terminal_and_loses_nothing(assay: Command, sums: Path) -> None:
    with terminal("runs", folder=sums, columns=50) as screen:
        assert screen.end() == 0
    lines = plain(screen.output).splitlines()
    assert max(map(len, lines)) <= 50
    assert "\x1b[1m" in screen.output
    (run,) = assay("runs", "--json").document["runs"]
    assert run["run_id"] in [line.split(" ")[0] for line in lines]


@pytest.mark.slow
def test_no_colour_means_no_escape_sequences(sums: Path) -> None:
    for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        with terminal("stats", folder=sums, columns=60, environment=environment) as screen:
            assert screen.end() == 0
        assert "\x1b" not in screen.output
        assert "ann is better than bob" in screen.output
        assert [line for line in plain(screen.output).splitlines() if len(line) > 60] == []


def test_a_pipe_gets_whole_lines_without_escape_sequences(assay: Command, sums: Path) -> None:
    output = assay("stats").out
    assert "\x1b" not in output
    assert max(map(len, output.splitlines())) > 120


def test_diff_shows_values_and_no_python_dictionaries(assay: Command, sums: Path) -> None:
    (first,) = assay("runs", "--json").document["runs"]
    changed = json.loads(json.dumps(EXACT))
    changed["candidates"][0] |= {"system_prompt": "short", "parameters": {"temperature": 0.25}}
    changed["candidates"].append({"name": "cas", "model": "echo"})
    (sums / "sums.json").write_text(json.dumps(changed), "utf-8")
    second = assay("run", "sums.json", "--json").document["run_id"]
    output = assay("diff", first["run_id"], second).out
    assert not set("{}'") & set(output)
    rows = [line.split() for line in output.splitlines()]
    assert not [row for row in rows if "temperature" in row]  # echo is sent none
    assert ["prompt", "candidate", "ann:"] in rows
    assert [row for row in rows if row[:3] == ["candidate", "cas", "–"]]


def test_unknown_answers_are_named_in_the_prompt_of_a_dry_run(
    assay: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    (project / "judged.json").write_text(json.dumps(JUDGED), "utf-8")
    output = assay("run", "judged.json", "--dry-run", "--show-prompt")
    assert output.out.count("[the answer, not known before the run]") == 2
    assert "xxxx" not in output.out
    assert "\\x7f" not in output.out
    prompts = assay("run", "judged.json", "--dry-run", "--show-prompt", "--json").document[
        "prompts"
    ]
    assert "not known before the run" in json.dumps(prompts)


@pytest.mark.slow
def test_rich_is_imported_for_a_table_on_a_terminal_alone(sums: Path) -> None:
    script = "import sys; from assay.cli.main import exit_code; exit_code(sys.argv[1:]); print('rich' in sys.modules)"
    for arguments in (["--help"], ["runs"], ["stats"]):
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            cwd=sums,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines()[-1] == "False"
