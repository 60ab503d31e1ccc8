"""The documentation beside the program: what can be used is documented, and what is documented
works.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import assay
from assay.app.settings import SETTINGS
from assay.cli.main import COMMANDS, cli, exit_code
from assay.domain.assessment import FlagKind
from assay.domain.failure import Fault
from assay.domain.lifecycle import AssessmentState, RunState, TrialState
from assay.exchange.importers import IMPORTERS
from assay.providers.recordings import MATCHED
from assay.providers.registry import PROVIDERS
from assay.providers.vendors import VENDORS
from assay.scoring.prompts import PLACEHOLDERS
from assay.scoring.scorers import JUDGED, MATH, SCORERS
from assay.scoring.task_tests import TESTS
from assay.statistics.warnings import SENTENCES
from assay.suites.schema import set_json_schema, suite_json_schema

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted(DOCS.rglob("*.md")))

SHARED = {"--json", "--store", "--read-only", "--help"}
FILTERS = {
    "--run",
    "--suite",
    "--batch-id",
    "--task",
    "--tag",
    "--language",
    "--criterion",
    "--judge",
    "--family-by",
} | {"--all-runs", "--pool-anyway"}
FILTERED = {"stats", "compare", "rank", "plan", "gate", "chart", "export"}

NAMED_BY_USERS = {"scores", "corrections", "judge_scores", "labels"}
"""Keys whose values have names of candidates as keys."""

OF_THE_STATISTICS = "Parts of every answer", "Verdicts", "Diagnostics", "While more may come"

JUDGE_REPLY = {
    "candidates": {
        "{{label:ann}}": {
            "correct": {"score": 9, "reason": "It is right.", "evidence": ["not in the answer"]}
        },
        "{{label:bob}}": {"correct": {"score": 4, "reason": "It is half right."}},
    },
    "report": "Only **ann** is right.",
}


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def sections(text: str) -> dict[str, str]:
    """The text below each heading, up to the next heading of any level; fenced blocks are no
    headings.
    """
    by_name: dict[str, list[str]] = {"": []}
    name, fenced = "", False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        if not fenced and (heading := re.fullmatch(r"#{1,4} (.+)", line)):
            name = heading[1]
            by_name[name] = []
        else:
            by_name[name].append(line)
    return {heading: "\n".join(lines) for heading, lines in by_name.items()}


def code_in(text: str) -> set[str]:
    """Every word written as code, in spans and in JSON examples."""
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))
    blocks = re.findall(r"^```json\n(.*?)^```", text, re.M | re.S)
    words = {
        word for span in spans for word in re.findall(r"--?[a-z][a-z-]*|\$?[A-Za-z_][\w.]*", span)
    }
    return words | {key for block in blocks for key in re.findall(r'"(\w+)":', block)}


def documented(*headings: str) -> set[str]:
    result = sections(page("reference/commands.md"))
    return {word for heading in headings for word in code_in(result[heading])}


def command(name: str) -> click.Command:
    result = cli.get_command(click.Context(cli), name)
    assert result is not None, name
    return result


def options(of: click.Command) -> set[str]:
    return {
        name
        for one in of.params
        if isinstance(one, click.Option)
        for name in one.opts
        if name.startswith("--")
    }


# --- commands.md ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_in_its_section_and_no_other(name: str) -> None:
    result = command(name)
    family = [result, *(result.commands.values() if isinstance(result, click.Group) else [])]
    taken = set().union(*(options(one) for one in family)) - SHARED
    here = {word for word in documented(f"assay {name}") if word.startswith("--")}
    wanted = taken - FILTERS if name in FILTERED else taken
    assert sorted(wanted - here) == []
    assert sorted(here - taken - SHARED) == []


def test_the_filters_of_the_statistics_are_documented() -> None:
    for name in FILTERED & set(COMMANDS):
        assert options(command(name)) >= FILTERS
    assert documented("Filters") >= FILTERS
    assert documented("What all commands share") >= SHARED


def test_every_command_has_a_section_and_every_section_a_command() -> None:
    headings = {
        heading.removeprefix("assay ")
        for heading in sections(page("reference/commands.md"))
        if heading[:6] == "assay "
    }
    assert set(COMMANDS) - headings == set()
    assert headings - set(COMMANDS) == set()


def test_every_subcommand_of_review_is_documented() -> None:
    group = command("review")
    assert isinstance(group, click.Group)
    text = sections(page("reference/commands.md"))["assay review"]
    assert [name for name in group.commands if f"`review {name}" not in text] == []


def test_settings_states_flags_faults_and_warnings_are_documented() -> None:
    words = code_in(page("reference/commands.md"))
    assert {setting.key for setting in SETTINGS} <= words
    assert {f"ASSAY_{setting.key.upper().replace('.', '_')}" for setting in SETTINGS} <= words
    assert {
        str(state) for states in (AssessmentState, TrialState, RunState) for state in states
    } <= words
    assert {str(kind) for kind in FlagKind} <= words
    assert {str(fault) for fault in Fault} <= words
    of_single_functions = {"task_variance_below_zero_clipped", "incomplete_units_left_out"}
    sources = [*(ROOT / "src/assay/analysis").glob("*.py"), *(ROOT / "src/assay/app").glob("*.py")]
    codes = {
        code for file in sources for code in re.findall(r'\bcode="(\w+)"', file.read_text("utf-8"))
    }
    assert sorted((set(SENTENCES) | codes) - of_single_functions - words) == []


# --- the JSON that commands print -----------------------------------------------------------------


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a judged run of which one trial failed, one grade was corrected, one rejected
    and one waits.
    """
    folder = tmp_path_factory.mktemp("documented")
    before = Path.cwd()
    kept = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("ASSAY_")}
    os.chdir(folder)
    lines = [
        {"match": {"role": "judge"}, "reply": {"text": JUDGE_REPLY}},
        {
            "match": {"role": "judge", "trial": 2},
            "error": {"kind": "timeout", "detail": "too late."},
        },
    ]
    Path("judge.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    Path("suite.yaml").write_text(
        "name: small\ntrials: 4\nmargin: 3pts\nrubric: [correct]\njudge: replay/judge.jsonl\ntasks:\n"
        + "".join(
            f"  - {{id: {task}, prompt: p, snippets: {{ann: right, bob: half}}}}\n"
            for task in ("x", "y")
        ),
        "utf-8",
    )
    yield folder
    os.chdir(before)
    os.environ.update(kept)


@pytest.fixture(scope="module")
def printed(project: Path) -> dict[str, Any]:
    """The documents of a small run, by command."""
    by_name = {"run": said("run", "suite.yaml", code=1)}
    run = by_name["run"]["run_id"]
    by_name["review list"] = said("review", "list")
    ids = [row["id"] for row in by_name["review list"]["assessments"]]
    said("review", "approve", *ids[:3])
    by_name["decision"] = said(
        "review", "correct", ids[3], "--score", "bob/correct=0.2", "--reason", "too kind"
    )
    said("review", "reject", ids[4], "--reason", "wrong")
    by_name["review show"] = said("review", "show", ids[3])
    by_name["stats"] = said("stats")
    by_name["compare"] = said("compare", "ann", "bob")
    by_name["rank"] = said("rank")
    by_name["gate"] = said("gate", "bob", "--against", "ann", "--margin", "3pts", code=0)
    by_name["plan"] = said("plan", "--detect", "3pts")
    by_name["runs"] = said("runs")
    by_name["show"] = said("show", run)
    by_name["dry run"] = said("run", "suite.yaml", "--dry-run", "--show-prompt")
    by_name["validate"] = said("validate", "suite.yaml")
    by_name["doctor"] = said("doctor", code=None)
    return by_name


def said(*arguments: str, code: int | None = 0) -> Any:
    """The one document a command prints."""
    with Path("out.json").open("w+", encoding="utf-8") as out:
        kept = sys.stdout
        sys.stdout = out
        try:
            ended = exit_code([*arguments, "--json"])
        finally:
            sys.stdout = kept
        out.seek(0)
        document = json.load(out)
    assert code is None or ended == code, document
    return document


def keys_of(document: Any) -> set[str]:
    if isinstance(document, list):
        return set().union(*map(keys_of, document)) if document else set()
    if not isinstance(document, dict):
        return set()
    below = [
        keys_of(value)
        for key, value in document.items()
        if key not in NAMED_BY_USERS or isinstance(value, list)
    ]
    return set(document).union(*below)


@pytest.mark.parametrize(
    ("which", "headings"),
    [
        ("run", ("assay run", "Words in the output")),
        ("dry run", ("assay run",)),
        ("review list", ("review list",)),
        ("review show", ("review list", "assay run")),
        ("decision", ("review list",)),
        ("stats", ("assay stats", *OF_THE_STATISTICS)),
        ("compare", ("assay compare", *OF_THE_STATISTICS)),
        ("gate", ("assay gate", "assay compare", *OF_THE_STATISTICS)),
        ("rank", ("assay rank", *OF_THE_STATISTICS)),
        ("plan", ("assay plan", *OF_THE_STATISTICS)),
        ("runs", ("assay runs", "assay run", "Words in the output")),
        ("validate", ("assay validate",)),
        ("doctor", ("assay doctor",)),
    ],
)
def test_every_key_a_command_prints_is_documented(
    printed: dict[str, Any], which: str, headings: tuple[str, ...]
) -> None:
    of_calls = keys_of(printed[which].pop("call", {})) if which == "review show" else set()
    assert sorted(keys_of(printed[which]) - documented(*headings) - of_calls) == []


def test_every_key_of_a_shown_run_is_documented(printed: dict[str, Any]) -> None:
    assert sorted(set(printed["show"]) - documented("assay show", "assay runs", "assay run")) == []


# --- suites.md and providers.md -------------------------------------------------------------------


def schema_keys(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        properties = schema.get("properties")
        yield from properties if isinstance(properties, dict) else ()
        for value in schema.values():
            yield from schema_keys(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from schema_keys(value)


def test_every_key_of_a_suite_and_a_set_is_documented() -> None:
    wanted = {*schema_keys(suite_json_schema()), *schema_keys(set_json_schema())}
    assert {"$schema", "thingName", "context_tokens", "folder"} <= wanted
    assert sorted(wanted - code_in(page("reference/suites.md"))) == []


def test_every_way_of_scoring_and_placeholder_is_documented() -> None:
    words = code_in(page("reference/suites.md"))
    assert {*SCORERS, *JUDGED, *PLACEHOLDERS} <= words
    rows = sections(page("reference/suites.md"))["Scoring"]
    assert set(re.findall(r"^\| `(\w+)` \|", rows, re.M)) == {*SCORERS, MATH, TESTS, *JUDGED}


def complete(text: str) -> list[tuple[str, str]]:
    """Kind and text of the fenced blocks that are marked as complete suites or sets."""
    return re.findall(r"^<!-- complete[^>]*-->\n```(yaml|json)\n(.*?)^```", text, re.M | re.S)


@pytest.mark.parametrize("name", ["reference/suites.md", "reference/providers.md"])
def test_every_complete_example_is_valid(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = page(name)
    for block in re.findall(r"^```csv\n(.*?)^```", text, re.M | re.S):
        Path("questions.csv").write_text(block, "utf-8")
    result = complete(text)
    assert len(result) == text.count("<!-- complete") > 0
    for number, (kind, block) in enumerate(result):
        Path(f"{number}.{kind}").write_text(block, "utf-8")
    answer = said(
        "validate", *(f"{number}.{kind}" for number, (kind, _) in enumerate(result)), code=None
    )
    assert [file["problems"] for file in answer["files"]] == [[] for _ in result]


def test_documented_recording_gives_the_documented_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    part = sections(page("reference/providers.md"))["Recorded answers: `replay/FILE`"]
    (recording,) = re.findall(r"^```json\n(.*?)^```", part, re.M | re.S)
    Path("judge.jsonl").write_text(recording, "utf-8")
    Path("greet.yaml").write_text(complete(part)[0][1], "utf-8")
    assert exit_code(["run", "greet.yaml"]) == 1
    assert exit_code(["review", "list"]) == 0
    (shown,) = re.findall(r"^```console\n(.*?)^```", part, re.M | re.S)
    wanted = [line for line in shown.splitlines() if not line.startswith("$")]
    assert masked(capsys.readouterr().out) == masked("\n".join(wanted) + "\n")


def masked(text: str) -> str:
    return re.sub(r"\d{8}-\d{6}-(\w+)-[0-9a-f]{4}", r"RUN-\1", text)


def test_providers_variables_and_recording_keys_are_documented() -> None:
    words = code_in(page("reference/providers.md"))
    assert {*PROVIDERS.own, "human"} <= words
    assert {
        name
        for vendor in VENDORS.values()
        for name in (vendor.key_variable, vendor.address_variable)
    } <= words
    assert {*MATCHED, "reply", "error", "finish_reason", "usage", "transient"} <= words


# --- python.md ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_examples_for_python_run_one_after_the_other(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page("reference/python.md"), re.M | re.S)
    assert len(blocks) >= 5
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")
    }
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    for block in re.findall(r"^```text\n(.*?)^```", page("reference/python.md"), re.M | re.S):
        assert block in done.stdout


def test_every_verb_is_documented() -> None:
    text = page("reference/python.md")
    named = set(re.findall(r"\bassay\.(\w+)", text))
    functions = set(re.findall(r"`assay\.(\w+)\(", text))
    assert set(assay.__all__) - named == set()
    assert functions - set(assay.__all__) == set()
    from assay.app.python_api import review

    words = code_in(text)
    verbs = {"list", "show", "approve", "reject", "correct", "rerun", "undo"}
    assert all(hasattr(review, verb) for verb in verbs)
    assert verbs <= words


# --- every page -----------------------------------------------------------------------------------


def anchor(heading: str) -> str:
    """The anchor GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """Headings and named places of a page."""
    return {anchor(heading) for heading in sections(text)} | set(
        re.findall(r'<a name="([^"]+)"></a>', text)
    )


@pytest.mark.parametrize("file", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(file: Path) -> None:
    text = re.sub(r"^```.*?^```", "", file.read_text("utf-8"), flags=re.M | re.S)
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        place, _, part = target.partition("#")
        result = (file.parent / place).resolve() if place else file
        known = anchors(result.read_text("utf-8")) if part and result.is_file() else {part}
        if not result.exists() or part not in known:
            dead.append(target)
    assert dead == []


@pytest.mark.parametrize("file", sorted(DOCS.rglob("*.md")), ids=lambda path: path.name)
def test_no_page_names_a_place_on_somebody_s_machine(file: Path) -> None:
    assert re.findall(r"(?:/home/|/work/|/root/|/Users/|C:\\)\S*", file.read_text("utf-8")) == []


def test_the_index_names_every_page() -> None:
    text = page("README.md")
    pages = (
        page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md") if page.name != "README.md"
    )
    assert [page for page in pages if f"({page})" not in text] == []


def test_every_format_that_is_imported_has_a_line() -> None:
    rows = [
        line.split("|")[1]
        for line in page("reference/formats.md").splitlines()
        if line.startswith("| `")
    ]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} >= set(
        IMPORTERS.own_names()
    )
