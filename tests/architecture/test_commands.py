"""The command line as the contract and a stranger expect it."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

import click
import pytest

from assay.cli.main import COMMANDS, cli

OF_THE_CONTRACT = {
    "run": {
        "--trials",
        "--candidate",
        "--judge",
        "--concurrency",
        "--benchmark",
        "--batch-id",
        "--budget",
        "--dry-run",
        "--show-prompt",
        "--limit",
    },
    "resume": set(),
    "extend": {"--trials", "--until-approved", "--candidate"},
    "regrade": {"--judge", "--suite"},
    "calibrate": {"--samples"},
    "validate": set(),
    "init": set(),
    "config": set(),
    "review": {"--run"},
    "stats": {
        "--run",
        "--suite",
        "--batch-id",
        "--task",
        "--tag",
        "--language",
        "--criterion",
        "--judge",
    },
    "compare": {"--scope", "--margin", "--run"},
    "rank": {"--run"},
    "plan": {"--detect", "--power", "--run"},
    "gate": {"--against", "--margin", "--run"},
    "runs": set(),
    "show": set(),
    "serve": {"--host", "--port"},
    "doctor": set(),
}


def command(name: str) -> click.Command:
    result = cli.get_command(click.Context(cli), name)
    assert result is not None, name
    return result


def options(of: click.Command) -> dict[str, click.Option]:
    return {
        name: option
        for option in of.params
        if isinstance(option, click.Option)
        for name in option.opts
    }


@pytest.mark.parametrize("name", OF_THE_CONTRACT)
def test_a_command_takes_the_contract_s_options_and_json(name: str) -> None:
    assert {*OF_THE_CONTRACT[name], "--json", "--store"} <= set(options(command(name)))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name: str) -> None:
    result = command(name)
    family = [result, *(result.commands.values() if isinstance(result, click.Group) else [])]
    for one in family:
        assert one.help, one.name
        undocumented = [name for name, option in options(one).items() if not option.help]
        assert undocumented == [], one.name


def leaves(of: click.Command) -> Iterator[click.Command]:
    for each in of.commands.values() if isinstance(of, click.Group) else ():
        yield from leaves(each)
    if not isinstance(of, click.Group) or of.invoke_without_command:
        yield of


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_a_parameter_or_a_field_of_the_request(name: str) -> None:
    for each in leaves(command(name)):
        function = each.callback
        fields: set[str] = set()
        n_requests = 0
        while "__wrapped__" in vars(function):
            fields |= vars(function).get("request_fields", set())
            n_requests += "request_fields" in vars(function)
            function = vars(function)["__wrapped__"]
        assert function is not None, each.name
        parameters = list(inspect.signature(function).parameters)
        passed = {option.name for option in each.params if option.expose_value}
        assert passed - fields == {*parameters[n_requests:]} - {"context"}, each.name


def test_review_has_every_decision_and_each_takes_a_reviewer() -> None:
    group = command("review")
    assert isinstance(group, click.Group)
    assert set(group.commands) >= {"list", "show", "approve", "reject", "correct", "rerun", "undo"}
    assert all("--reviewer" in options(one) for one in group.commands.values())


def test_help_loads_no_heavy_module() -> None:
    code = (
        "import sys; from assay.cli.main import exit_code; exit_code(['--help']);"
        "print(*[m for m in ('numpy', 'sqlalchemy', 'aiohttp', 'fastapi', 'alembic', 'rich', 'yaml') if m in sys.modules],"
        "file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == ""


def test_help_takes_less_than_three_tenths_of_a_second_of_cpu() -> None:
    children = __import__("resource")

    def cpu_s() -> float:
        used = children.getrusage(children.RUSAGE_CHILDREN)
        return float(used.ru_utime + used.ru_stime)

    figures = []
    for _ in range(3):
        before = cpu_s()
        subprocess.run([sys.executable, "-m", "assay", "--help"], capture_output=True, check=True)
        figures.append(cpu_s() - before)
        time.sleep(0.05)
    assert min(figures) < 0.3


def test_a_misspelt_command_is_answered_with_a_likely_one() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "assay", "rveiew"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "Did you mean 'review'?" in done.stderr
    assert done.stdout == ""


def test_the_package_and_the_command_know_the_version() -> None:
    import assay

    done = subprocess.run(
        [sys.executable, "-m", "assay", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"assay, version {assay.__version__}\n"
    assert assay.__version__[0].isdigit()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_completes_commands_and_options(shell: str) -> None:
    def completed(instruction: str, **words: str) -> str:
        environment = {**os.environ, "_ASSAY_COMPLETE": f"{shell}_{instruction}", **words}
        return subprocess.run(
            [sys.executable, "-m", "assay"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    script = completed("source")
    assert f"_ASSAY_COMPLETE={shell}_complete" in script
    # each of the shells that this machine has checks the script's grammar
    if executable := shutil.which(shell):
        subprocess.run([executable, "-n"], input=script, text=True, check=True)
    second = "st" if shell == "fish" else "1"
    assert "stats" in completed("complete", COMP_WORDS="assay st", COMP_CWORD=second)
    third = "--by" if shell == "fish" else "2"
    assert "--by-task" in completed("complete", COMP_WORDS="assay stats --by", COMP_CWORD=third)


def test_completing_a_command_imports_none() -> None:
    script = "import sys; from assay.cli.main import main; main()"
    environment = {
        **os.environ,
        "_ASSAY_COMPLETE": "bash_complete",
        "COMP_WORDS": "assay ",
        "COMP_CWORD": "1",
        "PYTHONPROFILEIMPORTTIME": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert len(done.stdout.splitlines()) == len(COMMANDS)
    assert "assay.cli.main" in done.stderr
    assert "assay.cli.statistics" not in done.stderr
