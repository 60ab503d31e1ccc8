"""Every reader on damaged files: records, or a refusal of Assay's own; never another exception, and
bounded work.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal, NoReturn

import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.contract.test_plugins import SAMPLES
from tests.journey.conftest import project as project
from tests.property.test_harness_readers import assert_sound
from tests.support import harness_files
from tests.support.damage import EDITS, Edit, damaged, packed
from tests.support.examples import examples

import assay.cli.main as command_line
from assay.app.imports.discovery import recognise_all
from assay.app.imports.options import ImportResult
from assay.domain.errors import AssayError
from assay.exchange.file_groups import group_files
from assay.exchange.importers import ReadOptions, importer_named
from assay.exchange.parsing.input_files import files_in, input_file

MAX_CPU_S: Final = 20
"""Processor time for a file of a few kilobytes: a hundred times the usual, so that only work that
explodes exceeds it.
"""

MAPPING = {"task": "id", "candidate": "who", "score": "points"}
PACKINGS = st.sampled_from((None, None, None, "gzip", "zip"))


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Bound the work that a damaged file causes."""
    began = time.process_time()
    yield
    assert time.process_time() - began < MAX_CPU_S


# --- importers ------------------------------------------------------------------------------------


def promptfoo_yaml(folder: Path) -> Path:
    """The sample of promptfoo as YAML."""
    document = json.loads(harness_files.promptfoo(folder).read_bytes())
    (folder / "results.json").unlink()
    (folder / "results.yaml").write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return folder / "results.yaml"


WRITERS: Mapping[str, Callable[[Path], Path]] = {**SAMPLES, "promptfoo (YAML)": promptfoo_yaml}


@cache
def sample(name: str) -> Mapping[str, bytes]:
    """The files of a format's sample by their relative path."""
    with tempfile.TemporaryDirectory() as folder:
        target = WRITERS[name](Path(folder))
        paths = files_in(target) if target.is_dir() else [target]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def read_all(folder: Path, forced: str | None) -> None:
    """Recognise and read a folder as an import does."""
    options = ReadOptions(mapping=MAPPING if forced == "map" else None)
    importer = None if forced is None else importer_named(forced)
    files = list(
        recognise_all(
            [input_file(path) for path in files_in(folder)], importer, ImportResult(), options
        )
    )
    groups, rest = group_files(files, options)
    for group in (*groups, *rest):
        # The import reports it and keeps what came before.
        with contextlib.suppress(AssayError):
            for record in group.importer.read(group.source, group.options):
                assert_sound(record)


@pytest.mark.hypothesis
@pytest.mark.parametrize("forced", [False, True], ids=["detected", "forced"])
@pytest.mark.parametrize("name", WRITERS)
def test_an_importer_reads_or_refuses_a_damaged_file(name: str, forced: bool) -> None:
    files, form = sample(name), name.partition(" ")[0]

    @settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(sorted(files)), EDITS, PACKINGS)
    def read_damaged(path: str, edits: list[Edit], packing: Literal["gzip", "zip"] | None) -> None:
        content = damaged(files[path], edits)
        with tempfile.TemporaryDirectory() as folder, bounded():
            for other, whole in files.items():
                place = Path(folder, other)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(
                    whole
                    if other != path
                    else content
                    if packing is None
                    else packed(content, packing)
                )
            read_all(Path(folder), form if forced or form == "map" else None)

    read_damaged()


# --- files that commands read ---------------------------------------------------------------------

SUITE = """\
name: whole
trials: 2
candidates: [{name: local, model: ollama/llama, parameters: {temperature: 0}}, {name: other, model: echo}]
judge: [{model: replay/judge.jsonl, mode: joint}, openai/gpt-4o-mini]
rubric:
  - {name: correct, weight: 2, scale: [0, 10], guidance: Right.}
  - {name: concise, scale: ["No", "Partial", "Yes"]}
margin: 0.05
tasks:
  - {id: a, prompt: "1+1?", expected: 2, score: numeric, tags: [x], snippets: {ann: "2", bob: {file: bob.py}}}
  - &b {id: b, prompt: Why not, system_prompt: Be brief, snippets: {ann: "yes", bob: "no"}}
  - {<<: *b, id: c, family: letters, weight: 0.5}
"""
SET_FILE = {
    "name": "things",
    "things": [
        {
            "thingName": "a",
            "context": "?",
            "snippets": [{"name": "ada", "content": "x"}, {"name": "bob", "content": "y"}],
        }
    ],
}
GRADED = """\
name: graded
judge: replay/judge.jsonl
rubric: [correct]
tasks: [{id: a, prompt: Say one., snippets: {ann: one, bob: two}}]
"""
REPLY = json.dumps(
    {"candidates": {label: {"correct": {"score": 5, "reason": "."}} for label in "AB"}}
)
TABLE = "id,who,points,answer\nq1,ada,1,Rating: 5\nq1,bob,0.5,Rating: 4\n"
SAMPLE = {
    "id": "s1",
    "prompt": "2 + 2?",
    "response": "4",
    "score": 1.0,
    "tolerance": 0.1,
    "expected": "4",
}
FIELDS = """\
fields:
  recommendation: {path: $.recommendation, labels: [Strong Yes, Yes, No]}
  rating: {regex: "Rating: (\\\\d+)"}
title: {regex: 'Name: (.+)'}
"""
IMPORT = ("import", "table.csv", "--no-copy", "--map", "map.yaml")
FILES: Mapping[str, str] = {
    "suite.yaml": SUITE,
    "suite.json": json.dumps(yaml.safe_load(SUITE)),
    "set.json": json.dumps(SET_FILE),
    "rows.yaml": "candidates: [echo]\nscore: exact\n"
    "tasks: {file: rows.jsonl, map: {id: custom_id, prompt: body.messages, expected: answer}}\n",
    "rows.jsonl": '{"custom_id": "a", "body": {"messages": [{"role": "user", "content": "1+1?"}]}, "answer": 2}\n',
    "bob.py": "print(2)\n",
    "graded.yaml": GRADED,
    "judge.jsonl": json.dumps({"match": {"role": "judge"}, "reply": {"text": REPLY}}) + "\n",
    "assay.yaml": "reviewer: ann\nconcurrency: 5\nbudget: 2.5\nlocal_only: false\nprices: {m: {input: 1, output: 2}}\n",
    ".env": "ASSAY_REVIEWER=ann\nOTHER='a b'\nASSAY_CONCURRENCY=4\n",
    "table.csv": TABLE,
    "map.yaml": "task: id\ncandidate: who\nanswer: answer\nscore: points\nwhere: {id: q1}\n",
    "fields.yaml": FIELDS,
    "info.yaml": "size: 8B\nvram_gb: 16\nhf_id: org/model\n",
    "criteria.md": "Is the answer right? Is it short?\n",
    "samples.jsonl": json.dumps(SAMPLE)
    + "\n"
    + json.dumps({**SAMPLE, "id": "s2", "twin_of": "s1"})
    + "\n",
    "samples.csv": "id,prompt,response,score\ns1,2 + 2?,4,7/10\n",
    "samples.yaml": yaml.safe_dump([SAMPLE]),
    "input.jsonl": '{"custom_id": "r1", "body": {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}}\n',
    "output.jsonl": '{"custom_id": "r1", "response": {"status_code": 200, '
    '"body": {"model": "m", "choices": [{"message": {"content": "Hello."}}]}}}\n',
    "server.log": "vLLM API server version 0.6.1\n100%|####| 20/20 [00:10<00:00, 2.00it/s]\n",
}
QUICK: Mapping[str, tuple[str, ...]] = {
    "suite.yaml": ("validate", "suite.yaml"),
    "suite.json": ("validate", "suite.json"),
    "set.json": ("validate", "set.json"),
    "rows.yaml": ("validate", "rows.yaml"),
    "rows.jsonl": ("validate", "rows.yaml"),
    "assay.yaml": ("config",),
    ".env": ("config",),
    "samples.jsonl": ("calibrate", "replay/judge.jsonl", "--samples", "samples.jsonl", "--dry-run"),
    "samples.csv": ("calibrate", "replay/judge.jsonl", "--samples", "samples.csv", "--dry-run"),
    "samples.yaml": ("calibrate", "replay/judge.jsonl", "--samples", "samples.yaml", "--dry-run"),
}
SLOW: Mapping[str, tuple[str, ...]] = {
    "judge.jsonl": ("run", "graded.yaml"),
    "graded.yaml": ("run", "graded.yaml"),
    "map.yaml": IMPORT,
    "table.csv": IMPORT,
    "fields.yaml": (*IMPORT, "--fields", "fields.yaml"),
    "info.yaml": (*IMPORT, "--model-info", "info.yaml"),
    "criteria.md": (*IMPORT, "--criteria", "criteria.md"),
    "input.jsonl": ("import", "output.jsonl", "--input", "input.jsonl"),
    "server.log": ("import", "output.jsonl", "--log", "server.log"),
}


@pytest.fixture
def command(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run a command in a project with all files; an error of Assay's own fails the test with its
    traceback.
    """

    def raised(error: Exception, arguments: list[str], *, as_json: bool) -> NoReturn:
        raise error

    monkeypatch.setattr(command_line, "_our_error", raised)
    # or the import reports an error of a reader as a skipped file
    monkeypatch.setenv("ASSAY_DEBUG", "1")
    for name, text in FILES.items():
        (project / name).write_text(text, "utf-8")
    return lambda *arguments: command_line.exit_code([*arguments])


@pytest.mark.hypothesis
@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_a_command_reads_or_refuses_a_damaged_file(
    command: Callable[..., int], project: Path, name: str
) -> None:
    arguments = {**QUICK, **SLOW}[name]
    whole = FILES[name].encode()
    assert command(*arguments) == 0

    @settings(
        max_examples=examples(150 if name in QUICK else 40), suppress_health_check=list(HealthCheck)
    )
    @given(EDITS)
    def read_damaged(edits: list[Edit]) -> None:
        (project / name).write_bytes(damaged(whole, edits))
        with bounded():
            assert command(*arguments) in (0, 1, 2)

    read_damaged()


@pytest.mark.slow
def test_a_rebuild_reads_or_refuses_a_damaged_results_folder(
    command: Callable[..., int], project: Path
) -> None:
    assert command("run", "graded.yaml") == 0
    results = {
        path.relative_to(project): path.read_bytes() for path in files_in(project / "results")
    }
    assert len(results) > 3

    @settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(sorted(results)), EDITS)
    def read_damaged(path: Path, edits: list[Edit]) -> None:
        for name, whole in results.items():
            (project / name).write_bytes(whole if name != path else damaged(whole, edits))
        shutil.rmtree(project / ".assay", ignore_errors=True)
        with bounded():
            assert command("import", "results", "--rebuild") in (0, 1, 2)

    read_damaged()


@pytest.mark.parametrize(
    ("option", "text", "problem"),
    [
        ("--map", "task: 2026-13-45\ncandidate: who\nscore: points\n", ""),
        ("--map", "[" * 3000, "nested deeper"),
        ("--map", "task: id\ntask: id\n", "given twice"),
        ("--model-info", "released: 2026-02-31\n", ""),
        ("--criteria", "\0", "binary"),
    ],
)
def test_an_option_file_is_read_within_the_limits_of_suites(
    command: Callable[..., int],
    project: Path,
    capfd: pytest.CaptureFixture[str],
    option: str,
    text: str,
    problem: str,
) -> None:
    (project / "option").write_text(text, "utf-8")
    code = command(
        "import",
        "table.csv",
        "--no-copy",
        *(() if option == "--map" else IMPORT[3:]),
        option,
        "option",
    )
    assert code in (0, 1, 2)
    assert problem in capfd.readouterr().err
