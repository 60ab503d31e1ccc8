"""Results made elsewhere, brought in by `assay import`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.journey.conftest import Command
from tests.journey.test_regrade import graded
from tests.support.model_server import ModelServer

DATA = Path(os.environ.get("ASSAY_SHARED", Path(__file__).parents[3] / "shared")) / "data"

NO_TEMPLATE = "As of transformers v4.44, default chat template is no longer allowed"


def request(task: str, *, model: str = "m") -> dict[str, Any]:
    messages = [
        {"role": "user", "content": f"**Candidate:** Person {task}\n**Current Role:** Engineer"}
    ]
    return {
        "custom_id": task,
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": model, "messages": messages},
    }


def answer(task: str, text: str, *, model: str = "Qwen/Qwen3-4B-Instruct-2507") -> dict[str, Any]:
    body = {
        "object": "chat.completion",
        "created": 1730126000,
        "model": model,
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }
    return {
        "id": f"vllm-{task}",
        "custom_id": task,
        "response": {"status_code": 200, "body": body},
        "error": None,
    }


def refused(task: str) -> dict[str, Any]:
    body = {"object": "error", "message": NO_TEMPLATE, "type": "BadRequestError", "code": 400}
    return {
        "id": f"vllm-{task}",
        "custom_id": task,
        "response": {"status_code": 400, "body": body},
        "error": None,
    }


def write(path: str | Path, rows: list[dict[str, Any]]) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file


def whole(store: str = ".assay/assay.db") -> None:
    """Every key points at something, and what is derived agrees."""
    from tests.contract.rows import assert_derived_agrees

    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute(
            "SELECT count(*) FROM run WHERE state = 'importing'"
        ).fetchone() == (0,)
    assert_derived_agrees(f"sqlite:///{store}")


IDS = [f"c-{number:03}" for number in range(40)]


@pytest.fixture
def mess(project: Path) -> Path:
    """Five models under three naming patterns, one in another folder, one that failed altogether;
    and their logs.
    """
    write("mess/batch_5k.jsonl", [request(task) for task in IDS])
    models = {
        "qwen3_4b_5k_offline_results.jsonl": "Qwen/Qwen3-4B-Instruct-2507",
        "benchmarks/raw/vllm-native-gemma3-4b-5000-2025-10-28.jsonl": "google/gemma-3-4b-it",
        "llama32_3b_5k_results.jsonl": "meta-llama/Llama-3.2-3B-Instruct",
        "llama32_1b_5k_results.jsonl": "meta-llama/Llama-3.2-1B-Instruct",
    }
    for number, (name, model) in enumerate(models.items()):
        order = IDS[number:] + IDS[:number]
        write(f"mess/{name}", [answer(task, f"yes {task}", model=model) for task in order])
    write("mess/olmo2_1b_5k_offline_results.jsonl", [refused(task) for task in IDS])
    log = "Running batch: 100% Completed | 5000/5000 [24:35<00:00,  3.39req/s]\n"
    Path("mess/qwen3_4b_5k_offline.log").write_text(
        f"INFO model='Qwen/Qwen3-4B-Instruct-2507'\n{log}"
    )
    Path("mess/olmo2_1b_5k_offline.log").write_text(f"INFO model='allenai/OLMo-2-0425-1B'\n{log}")
    return project / "mess"


def test_five_models_under_three_naming_patterns_meet_in_one_suite(
    assay: Command, mess: Path
) -> None:
    output = assay("import", mess, "--json")
    assert output.code == 0, output.document["skipped"]
    assert output.document["imported"] == {
        "runs": 5,
        "tasks": 200,
        "responses": 200,
        "assessments": 0,
    }
    runs = assay("runs", "--json").document["runs"]
    assert {run["suite"] for run in runs} == {"batch_5k"}
    assert {tuple(run["candidates"]) for run in runs} == {
        ("Qwen/Qwen3-4B-Instruct-2507",),
        ("google/gemma-3-4b-it",),
        ("meta-llama/Llama-3.2-3B-Instruct",),
        ("meta-llama/Llama-3.2-1B-Instruct",),
        ("allenai/OLMo-2-0425-1B",),
    }
    with closing(sqlite3.connect(".assay/assay.db")) as connection:
        assert connection.execute("SELECT count(*) FROM task").fetchone() == (len(IDS),)
    whole()


def test_a_run_that_failed_altogether_is_shown_with_its_error(assay: Command, mess: Path) -> None:
    assay("import", mess)
    (failed,) = [run for run in assay("runs", "--json").document["runs"] if run["trials"]["failed"]]
    assert failed["trials"]["failed"] == len(IDS)
    shown = assay("show", failed["run_id"], "--json").document
    assert {one["failure"]["kind"] for one in shown["trial_list"]} == {"http_400"}
    assert shown["trial_list"][0]["failure"]["detail"] == NO_TEMPLATE


def test_a_log_gives_its_model_s_run_the_throughput(assay: Command, mess: Path) -> None:
    assay("import", mess)
    runs = assay("runs", "--json").document["runs"]
    (qwen,) = [
        run["run_id"] for run in runs if run["candidates"] == ["Qwen/Qwen3-4B-Instruct-2507"]
    ]
    environment = assay("show", qwen, "--json").document["environment"]
    assert (environment["requests_per_s"], environment["duration_s"]) == (3.39, 1475)


def test_importing_twice_changes_nothing_and_says_so(assay: Command, mess: Path) -> None:
    first = assay("import", mess, "--json").document
    again = assay("import", mess, "--json")
    assert again.code == 0
    assert set(again.document["imported"].values()) == {0}
    assert again.document["run_ids"] == []
    known = [run for one in again.document["unchanged"] for run in one["run_ids"]]
    assert sorted(known) == sorted(first["run_ids"])
    assert len(assay("runs", "--json").document["runs"]) == 5


def test_a_request_nobody_answered_is_missing_and_not_wrong(assay: Command, project: Path) -> None:
    write("in.jsonl", [request("a", model="x"), request("b", model="x")])
    write("out.jsonl", [answer("a", "yes", model="x")])
    run = assay("import", "in.jsonl", "out.jsonl", "--json").document["run_ids"][0]
    trials = assay("show", run, "--json").document["trial_list"]
    (failure,) = [one["failure"] for one in trials if one["failure"]]
    assert (failure["task"], failure["kind"]) == ("b", "missing")
    whole()


def test_an_imported_run_cannot_be_resumed_or_extended_and_stays_as_it_is(
    assay: Command, project: Path
) -> None:
    write("in.jsonl", [request("a", model="x"), request("b", model="x")])
    write("out.jsonl", [answer("a", "yes", model="x")])
    run = assay("import", "in.jsonl", "out.jsonl", "--json").document["run_ids"][0]
    before = assay("show", run, "--json").document
    for command in (
        ("resume", run),
        ("extend", run, "--trials", 2),
        ("extend", run, "--candidate", "echo"),
    ):
        output = assay(*command)
        assert output.code == 2
        assert "was imported" in output.err
    assert assay("show", run, "--json").document == before
    record = next(Path("results").rglob(f"*{run}*"), None)
    assert record is not None, "its record is what a lost store is made from"
    shutil.rmtree(".assay")
    assay("import", "results", "--format", "results")
    assert assay("resume", run).code == 2, "a run that was restored is as much an import as before"


def test_every_line_that_is_no_answer_is_named_with_its_place(
    assay: Command, project: Path
) -> None:
    good = json.dumps(answer("a", "yes")).encode()
    lines = {
        2: (b"<<<<<<< HEAD", "conflict marker"),
        3: (json.dumps(answer("a", "no")).encode(), "a different answer"),
        4: (good, "word for word"),
        5: (good.replace(b'"prompt_tokens": 7', b'"prompt_tokens": NaN'), "NaN"),
        6: (b'{"custom_id": "\x00"}', "NUL"),
        7: (b'{"custom_id": "\xff"}', "not UTF-8"),
        8: (b'{"custom_id": ' + b"[" * 100_000, "nested too deeply"),
        9: (b'{"id": 1}', "no `custom_id`"),
        10: (b"version https://git-lfs.github.com/spec/v1", "Git LFS"),
        11: (b'{"custom_id": "x", "pad": "' + b"x" * (40 << 20) + b'"}', "one line of 41.9 MB"),
        12: (good[: len(good) // 2], "cut off"),
    }
    Path("out.jsonl").write_bytes(
        b"\xef\xbb\xbf" + good + b"\r\n" + b"\n".join(line for line, _ in lines.values())
    )
    output = assay("import", "out.jsonl", "--json")
    assert output.code == 1
    assert output.document["imported"]["responses"] == 1
    by_name = {one["where"]: one["why"] for one in output.document["skipped"]}
    assert set(by_name) == {f"out.jsonl:{number}" for number in lines}
    for number, (_, why) in lines.items():
        assert why in by_name[f"out.jsonl:{number}"], number


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "Git LFS"),
        (b'{"a": 1}\n<<<<<<< HEAD\n{"a": 2}\n=======\n', "conflict markers"),
        (b"", "is empty"),
        (b"[" * 100_000, "nested too deeply"),
        (json.dumps({"a": "Ã©tÃ©"}).encode(), "wrong encoding"),
        ("{}".encode("utf-16"), "UTF-16"),
        (b"hello", "no format that Assay recognises"),
    ],
)
def test_file_without_results_is_named_by_its_kind(
    assay: Command, project: Path, content: bytes, why: str
) -> None:
    Path("x.jsonl").write_bytes(content)
    output = assay("import", "x.jsonl", "--json")
    assert output.code == 1
    assert [(one["where"], why in one["why"]) for one in output.document["skipped"]] == [
        ("x.jsonl", True)
    ]
    assert output.document["run_ids"] == []


@pytest.mark.slow
def test_killed_import_leaves_no_run_that_seems_complete(assay: Command, project: Path) -> None:
    n = 30_000
    write("out.jsonl", [answer(f"task {number}", f"text {number} " * 20) for number in range(n)])
    store = Path(".assay/assay.db")
    for _ in range(2):
        importer = subprocess.Popen(
            [sys.executable, "-m", "assay", "import", "out.jsonl"], stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and importer.poll() is None:
            if store.exists() and _trials(store) > 0:
                break
            time.sleep(0.005)
        importer.send_signal(signal.SIGKILL)
        importer.wait()
        assert importer.returncode == -signal.SIGKILL, (
            "the importer was done before it could be killed"
        )
        assert _trials(store) > 0
        assert assay("runs", "--json").document["runs"] == []
    output = assay("import", "out.jsonl", "--json")
    assert output.code == 0
    assert output.document["imported"] == {"runs": 1, "tasks": n, "responses": n, "assessments": 0}
    assert _trials(store) == n
    whole()
    assert [
        path.name for path in Path(".assay/imports").iterdir() if path.name.endswith(".partial")
    ] == []


def _trials(store: Path) -> int:
    with closing(sqlite3.connect(store)) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM trial").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


def test_a_score_table_becomes_statistics_and_grades_of_a_judge_wait(
    assay: Command, project: Path
) -> None:
    rows = "t1,a,1,1,\nt1,b,1,0.5,\nt2,a,1,0.5,\nt2,b,1,0,\nt1,a,1,0.1,gpt\nt9,a,1,7,\nt9,a,x,1,\nt9,a,1,NaN,\n"
    Path("scores.csv").write_text("task,candidate,trial,score,judge\n" + rows)
    output = assay("import", "scores.csv", "--json")
    assert output.code == 1
    assert [one["where"] for one in output.document["skipped"]] == [
        f"scores.csv:{line}" for line in (7, 8, 9)
    ]
    means = {
        one["candidate"]: one["mean"] for one in assay("stats", "--json").document["candidates"]
    }
    assert means == {"a": 0.75, "b": 0.25}
    (waiting,) = assay("review", "list", "--state", "pending", "--json").document["assessments"]
    assert (waiting["judge"], waiting["scores"]) == ("gpt", {"a": 0.1})
    assert assay("review", "approve", waiting["id"]).code == 0
    means = {
        one["candidate"]: one["mean"] for one in assay("stats", "--json").document["candidates"]
    }
    assert means["a"] == pytest.approx((0.55 + 0.5) / 2)
    whole()


def test_a_mapping_reads_rows_of_any_make(assay: Command, project: Path) -> None:
    Path("wide.jsonl").write_text(
        '{"q": "x", "one": {"ok": true, "said": "A"}, "two": {"ok": false, "said": "B"}}\n'
    )
    Path("wide.yaml").write_text("task: q\ncandidates: [one, two]\nanswer: said\nscore: ok\n")
    assert assay("import", "wide.jsonl", "--map", "wide.yaml", "--json").document["imported"] == {
        "runs": 1,
        "tasks": 1,
        "responses": 2,
        "assessments": 2,
    }
    Path("long.tsv").write_text("w1\titem 1\tYes\nw2\titem 1\tNo\n")
    Path("long.yaml").write_text(
        "columns: [who, item, label]\ntask: item\ncandidate: =it\njudge: who\nby: person\nscore: label\nlabels: {Yes: 1, No: 0}\n"
    )
    assert (
        assay("import", "long.tsv", "--map", "long.yaml", "--json").document["imported"][
            "assessments"
        ]
        == 2
    )
    means = {
        one["candidate"]: one["mean"]
        for one in assay("stats", "--all-runs", "--json").document["candidates"]
    }
    assert means == {"one": 1.0, "two": 0.0, "it": 0.5}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tsk: q\n", "Did you mean 'task'"),
        ("task: q\n", "`candidate`"),
        ("task: q\ncandidate: c\n", "neither"),
        ("[", "YAML"),
    ],
)
def test_a_wrong_mapping_is_said_before_anything_is_read(
    assay: Command, project: Path, text: str, said: str
) -> None:
    Path("x.jsonl").write_text("{}\n")
    Path("map.yaml").write_text(text)
    answered = assay("import", "x.jsonl", "--map", "map.yaml")
    assert answered.code == 2
    assert said in answered.err
    assert "map.yaml" in answered.err


def test_sets_and_preferences(assay: Command, project: Path) -> None:
    snippets = [{"name": "ann", "content": "a"}, {"name": "bob", "content": "b"}]
    Path("set.json").write_text(
        json.dumps([{"thingName": "Auth", "context": "c", "snippets": snippets}])
    )
    assert assay("import", "set.json", "--json").document["imported"]["responses"] == 2
    talk = "Human: hi\n\nAssistant:"
    write("pairs.jsonl", [{"chosen": f"{talk} hello", "rejected": f"{talk} go away"}])
    document = assay("import", "pairs.jsonl", "--json").document
    assert document["imported"] == {"runs": 1, "tasks": 1, "responses": 2, "assessments": 1}


def test_the_originals_are_kept_and_moved_only_once_verified(assay: Command, project: Path) -> None:
    content = write("out.jsonl", [answer("a", "yes")]).read_bytes()
    assert assay("import", "out.jsonl", "--move").code == 0
    assert not Path("out.jsonl").exists()
    (copy,) = Path(".assay/imports").iterdir()
    assert copy.read_bytes() == content


def test_names_in_an_archive_lead_nowhere(assay: Command, project: Path) -> None:
    line = json.dumps(answer("a", "yes")) + "\n"
    with zipfile.ZipFile("all.zip", "w") as archive:
        archive.writestr("../../escaped.jsonl", line)
        archive.writestr("/tmp/absolute.jsonl", json.dumps(answer("b", "no")) + "\n")
    output = assay("import", "all.zip", "--json")
    assert output.document["imported"]["responses"] == 2
    assert not (project.parent.parent / "escaped.jsonl").exists()
    assert sorted(path.name for path in project.iterdir()) == [".assay", "all.zip", "results"]


@pytest.mark.slow
def test_a_bomb_is_not_unpacked(assay: Command, project: Path) -> None:
    with (
        zipfile.ZipFile("bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.jsonl", "w") as out,
    ):
        first = json.dumps(answer("a", "yes")).encode() + b"\n"
        out.write(first)
        for _ in range(300):
            out.write((b" " * 1023 + b"\n") * 1024)
    output = assay("import", "bomb.zip", "--json")
    assert output.code == 1
    assert any("unpacks to more" in one["why"] for one in output.document["skipped"])


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared data is not here")
def test_the_flags_of_gsm8k_are_its_published_figures(assay: Command, project: Path) -> None:
    names = ["6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification"]
    Path("map.yaml").write_text(
        f"task: '@line'\nprompt: question\nexpected: ground_truth\ncandidates: {names}\nanswer: solution\nscore: is_correct\n"
    )
    source = DATA / "gsm8k" / "example_model_solutions.jsonl"
    output = assay("import", source, "--map", "map.yaml", "--dataset", "gsm8k", "--json")
    assert output.document["imported"] == {
        "runs": 1,
        "tasks": 1319,
        "responses": 5276,
        "assessments": 5276,
    }
    right = {
        one["candidate"]: one["mean"] * 1319
        for one in assay("stats", "--json").document["candidates"]
    }
    assert {name: round(n) for name, n in right.items()} == dict(
        zip(names, (286, 515, 458, 742), strict=True)
    )


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared data is not here")
def test_batch_output_of_every_make_is_read(assay: Command, project: Path) -> None:
    document = assay("import", DATA / "openai_batch", "--json").document
    assert document["formats"]["openai_batch"] == 10
    assert document["imported"]["responses"] == 22
    lines = sum(
        1
        for path in (DATA / "openai_batch").rglob("*.jsonl")
        for line in path.read_text("utf-8").splitlines()
        if '"response"' in line and "..." not in line[-400:]
    )
    assert lines >= 22
    whole()


def test_field_mapping_is_kept_with_the_run_and_titles_its_tasks(
    assay: Command, mess: Path
) -> None:
    Path("fields.yaml").write_text(
        "fields: {recommendation: {labels: [Yes, No]}}\ntitle: {regex: '\\*\\*Candidate:\\*\\* (.+)'}\n"
    )
    assert assay("import", mess, "--fields", "fields.yaml").code == 0
    run = assay("runs", "--json").document["runs"][0]["run_id"]
    shown = assay("show", run, "--json").document
    assert shown["environment"]["imported"]["reading"]["fields"] == {
        "recommendation": {"labels": ["Yes", "No"]}
    }
    assert "Person c-001" in assay("show", run).out
    Path("fields.yaml").write_text("felds: {}\n")
    assert "Did you mean 'fields'" in assay("import", mess, "--fields", "fields.yaml").err


def test_candidates_named_only_in_rows_are_exported(assay: Command, project: Path) -> None:
    Path("scores.csv").write_text(
        "task,candidate,trial,score\nt,ann,1,0.5\nt,bob,1,0.75\nu,ann,1,1\nu,bob,1,0\n"
    )
    output = assay("import", "scores.csv", "--json")
    assert output.err.count("not up to date") == 0
    assert {path.parent.name for path in (project / "results").glob("*/*.meta.json")} == {
        "ann",
        "bob",
    }
    anonymous = assay("export", "csv", "--anonymise", "--output", "anonymous.csv")
    assert anonymous.code == 0, anonymous.err
    content = Path("anonymous.csv").read_text("utf-8")
    assert "ann" not in content
    assert len(content.splitlines()) == 5


def test_text_that_was_read_with_the_wrong_encoding_is_named_and_kept(
    assay: Command, project: Path
) -> None:
    Path("scores.csv").write_text(
        "task,candidate,trial,score\ncaf\u00c3\u00a9,ann,1,0.5\n", "utf-8"
    )
    output = assay("import", "scores.csv")
    assert output.code == 0
    assert "wrong encoding" in output.out + output.err
    shown = assay("stats", "--json").document["candidates"][0]["by_task"]
    assert [one["task"] for one in shown] == ["caf\u00c3\u00a9"]


def test_regrade_with_a_rubric_judges_imported_answers(
    assay: Command, project: Path, server: ModelServer
) -> None:
    server.answer = graded()
    write("in.jsonl", [request("a", model="x"), request("b", model="x"), request("c", model="x")])
    write("out.jsonl", [answer("a", "yes", model="x"), answer("c", "no" * 500, model="x")])
    run = assay("import", "in.jsonl", "out.jsonl", "--json").document["run_ids"][0]
    without = assay("regrade", run)
    assert without.code == 2
    assert "has no judge" in without.err
    ahead = assay("regrade", run, "--judge", "openai/judge-1", "--dry-run", "--json").document
    assert (ahead["trials"], ahead["calls"]) == (3, 2), (
        "the answers that are there are counted, each once"
    )
    done = assay("regrade", run, "--judge", "openai/judge-1", "--json")
    assert done.code == 1, "one trial has no answer"
    assert len(server.calls) == 2, "candidates are never asked"
    assert "Person a" in str(server.calls[0].body), "the judge sees what was asked"
    assert "yes" in str(server.calls[0].body)
    document = done.document
    assert document["trials"]["failed"] == 1
    assert [one["kind"] for one in document["failures"]] == ["missing"]
    assert document["assessments"]["pending"] == 2
    people = assay("regrade", run, "--judge", "human", "--json").document
    assert people["assessments"]["pending"] == 2
    assert len(server.calls) == 2, "people are not asked over the network"


def test_regrade_of_answers_without_prompts_says_so(
    assay: Command, project: Path, server: ModelServer
) -> None:
    server.answer = graded()
    write("out.jsonl", [answer("a", "yes", model="x")])
    run = assay("import", "out.jsonl", "--json").document["run_ids"][0]
    output = assay("regrade", run, "--judge", "openai/judge-1", "--dry-run")
    assert "1 of 1 tasks have no prompt" in output.err
