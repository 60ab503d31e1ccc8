"""Options in messages are respelled for Python and HTTP; commands, paths and quoted texts stay as
they are.
"""

from __future__ import annotations

import pytest

from assay.app.spellings import in_http, in_python

CASES = [
    ("--all-runs", "all_runs=True", "all_runs=1"),
    ("--budget", "budget_usd", "budget"),
    ("--until-approved", "until_approved", "until_approved"),
    (
        "Read one run with --run 20250101-000000-qa-3709, or add --pool-anyway for a verdict that is labelled as mixed.",
        'Read one run with runs="20250101-000000-qa-3709", or add pool_anyway=True for a verdict that is labelled as mixed.',
        "Read one run with run=20250101-000000-qa-3709, or add pool_anyway=1 for a verdict that is labelled as mixed.",
    ),
    ("Use --margin 3pts.", 'Use margin="3pts".', "Use margin=3pts."),
    (
        "Use --threshold 0.7 (or 70pts), or --against NAME with --margin 3pts.",
        'Use threshold=0.7 (or 70pts), or against="NAME" with margin="3pts".',
        "Use threshold=0.7 (or 70pts), or against=NAME with margin=3pts.",
    ),
    (
        "Choose another run, or use --run.",
        "Choose another run, or use `runs`.",
        "Choose another run, or use `run`.",
    ),
    (
        "Use --criterion verdict alone.",
        'Use criteria="verdict" alone.',
        "Use criterion=verdict alone.",
    ),
    (
        "Reject or correct it, or add --force with a reason.",
        "Reject or correct it, or add force=True with a reason.",
        "Reject or correct it, or add force=1 with a reason.",
    ),
    ("--force replaces it.", "force=True replaces it.", "force=1 replaces it."),
    ("Use `--judge provider/name`.", 'Use `judge="provider/name"`.', "Use `judge=provider/name`."),
    (
        "Describe the file with `--map`.",
        "Describe the file with `mapping`.",
        "Describe the file with `map`.",
    ),
    (
        "Give --trials N or --review sample:0.4.",
        'Give trials=N or review="sample:0.4".',
        "Give trials=N or review=sample:0.4.",
    ),
    (
        "For example: --score contains",
        'For example: score="contains"',
        "For example: score=contains",
    ),
    ("--judge: is 'gpt'.", "judge: is 'gpt'.", "judge: is 'gpt'."),
    (
        "Tell the runs' owners to use --run latest in the suites' folder.",
        "Tell the runs' owners to use runs=\"latest\" in the suites' folder.",
        "Tell the runs' owners to use run=latest in the suites' folder.",
    ),
    ("Use --suite FILE.", 'Use suite="FILE".', "Use suite=FILE."),
    ("Use --output FILE.svg.", 'Use output="FILE.svg".', "Use output=FILE.svg."),
]


@pytest.mark.parametrize(("option", "python", "http"), CASES, ids=[case[0] for case in CASES])
def test_options_are_spelled_as_the_caller_writes_them(option: str, python: str, http: str) -> None:
    assert (in_python(option), in_http(option)) == (python, http)


@pytest.mark.parametrize(
    "text",
    [
        "Check both stores with `assay doctor --check-store`.",
        "Create one with: assay run SUITE --batch-id spring",
        "`inspect log convert --to json` writes one.",
        "/data/--run/results.json",
        "there is no candidate '--run'.",
        "there is no candidate 'bot --run latest'. Did you mean 'bot --margin 3pts'?",
        'command "python3 app.py --budget 5": ended with exit code 2.',
        "a well--known word",
    ],
)
def test_commands_paths_and_quoted_texts_stay(text: str) -> None:
    assert in_python(text) == text
    assert in_http(text) == text
