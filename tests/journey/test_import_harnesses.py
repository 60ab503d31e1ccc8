"""From another harness's results to statistics and the review queue, through the command line."""

from __future__ import annotations

import json
import math
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.journey.conftest import Command
from tests.support import harness_files as files, platform_files as platforms
from tests.support.evaluation_files import helm, helm_stat

# What each small evaluation becomes: runs, tasks, responses, assessments; and how many of these
# wait for a person.
EXPECTED: dict[Callable[[Path], Path], tuple[str, tuple[int, int, int, int], int]] = {
    files.inspect: ("inspect", (1, 2, 4, 4), 0),
    files.lm_eval: ("lm_eval", (1, 2, 2, 4), 0),
    files.promptfoo: ("promptfoo", (1, 2, 6, 12), 6),
    files.openai_log: ("openai_evals_log", (1, 3, 3, 2), 0),
    files.openai_api: ("openai_evals", (1, 2, 2, 4), 2),
    files.alpaca: ("alpaca_eval", (1, 3, 6, 3), 3),
    files.mt_bench: ("mt_bench", (1, 2, 4, 8), 8),
    files.swe_bench: ("swe_bench", (1, 4, 4, 3), 0),
    files.harbor: ("harbor", (1, 2, 3, 2), 0),
    files.terminal_bench: ("terminal_bench", (1, 2, 4, 4), 0),
    platforms.mlflow: ("mlflow", (1, 2, 2, 5), 2),
    platforms.langfuse: ("langfuse", (1, 2, 2, 3), 2),
    platforms.langsmith: ("langsmith", (1, 2, 2, 2), 2),
    platforms.deepeval: ("deepeval", (1, 2, 2, 4), 2),
    platforms.ragas: ("ragas", (1, 2, 2, 4), 2),
    platforms.phoenix: ("phoenix", (1, 2, 3, 5), 2),
}

ERRORS = {"task": "id", "candidate": "who", "scores": {"errors": {"score": "wer", "scale": [1, 0]}}}


@pytest.fixture(params=list(EXPECTED), ids=lambda write: write.__name__)
def imported(
    request: pytest.FixtureRequest, assay: Command, project: Path
) -> tuple[Callable[[Path], Path], Path]:
    """An evaluation that has just been imported."""
    write: Callable[[Path], Path] = request.param
    target = write(project / "theirs")
    output = assay("import", target, "--json")
    form, counts, _ = EXPECTED[write]
    assert output.code == 0, output.err
    assert output.document["format"] == form
    assert tuple(output.document["imported"].values()) == counts
    assert output.document["skipped"] == []
    return write, target


Imported = tuple[Callable[[Path], Path], Path]


def test_the_working_folder_is_imported_like_any_other(
    assay: Command, imported: Imported, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = imported[1] if imported[1].is_dir() else imported[1].parent
    monkeypatch.chdir(target)
    output = assay("import", ".", "--json", "--store", f"sqlite:///{target.parent}/other.db")
    form, counts, _ = EXPECTED[imported[0]]
    assert tuple(output.document["imported"].values()) == counts
    assert output.document["format"] == form


def test_a_zip_of_a_folder_is_imported_like_the_folder(
    assay: Command, imported: Imported, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    target = imported[1] if imported[1].is_dir() else imported[1].parent
    packed = shutil.make_archive(str(tmp_path_factory.mktemp("zip") / "theirs"), "zip", target)
    output = assay("import", packed, "--json", "--store", f"sqlite:///{project}/other.db")
    assert tuple(output.document["imported"].values()) == EXPECTED[imported[0]][1]
    assert output.document["skipped"] == []


def test_importing_again_imports_nothing(assay: Command, imported: Imported) -> None:
    output = assay("import", imported[1], "--json")
    assert tuple(output.document["imported"].values()) == (0, 0, 0, 0)
    assert output.document["run_ids"] == []
    assert len(assay("runs", "--json").document["runs"]) == 1


def test_a_models_grades_wait_and_all_others_count(assay: Command, imported: Imported) -> None:
    listed = assay("review", "list", "--json").document["assessments"]
    waiting = [one for one in listed if one["state"] == "pending"]
    _, _, pending = EXPECTED[imported[0]]
    assert len(waiting) == pending
    assert {one["state"] for one in listed} <= {"pending", "not_required"}
    output = assay("stats", "--json")
    assert output.code == 0, output.err
    counted = {one["candidate"]: one["n_trials"] for one in output.document["candidates"]}
    rule_graded = {
        name for one in listed if one["state"] == "not_required" for name in one["scores"]
    }
    assert {name for name, n in counted.items() if n} <= rule_graded


def test_two_candidates_of_another_harness_are_compared(assay: Command, project: Path) -> None:
    rows = []
    for number in range(8):
        for provider, score in (("small", 0.0), ("large", 1.0)):
            row = files.promptfoo_result(provider, f"City{number}")
            row["gradingResult"]["componentResults"] = row["gradingResult"]["componentResults"][:1]
            row["gradingResult"]["componentResults"][0] |= {
                "pass": bool(score),
                "score": score if number else 0.5,
            }
            rows.append(row)
    assert (
        assay("import", files.put(project / "results.json", files.promptfoo_document(*rows))).code
        == 0
    )
    document = assay("compare", "large", "small", "--json").document
    assert (document["decision"], document["n_tasks"]) == ("better", 8)
    assert document["difference"] == pytest.approx(7 / 8)


def test_preferences_become_strengths_once_a_person_has_passed_them(
    assay: Command, project: Path
) -> None:
    rows = [files.alpaca_annotation(number, 2.0 if number % 4 else 1.0) for number in range(8)]
    assert assay("import", files.put(project / "annotations.json", rows)).code == 0
    before = assay("stats", "--json").document
    assert all(one["mean"] is None for one in before["candidates"])
    ids = [
        one["id"]
        for one in assay("review", "list", "--state", "pending", "--json").document["assessments"]
    ]
    assert len(ids) == 8
    assert assay("review", "approve", *ids, "--reviewer", "mia").code == 0
    means = {
        one["candidate"]: one["mean"] for one in assay("stats", "--json").document["candidates"]
    }
    assert means == {"base": pytest.approx(0.25), "new": pytest.approx(0.75)}
    ranked = assay("rank", "--json").document
    assert ranked["candidates"][0]["candidate"] == "new"
    strengths = {one["candidate"]: one["strength"] for one in ranked["preferences"]["candidates"]}
    # 6 of 8 won
    assert strengths == {
        "new": pytest.approx(math.log(3) / 2),
        "base": pytest.approx(-math.log(3) / 2),
    }


def test_a_grader_that_was_imported_is_corrected_like_any_other(
    assay: Command, project: Path
) -> None:
    files.openai_api(project / "theirs")
    assert assay("import", project / "theirs").code == 0
    waiting = assay("review", "list", "--state", "pending", "--json").document["assessments"][0]
    name = waiting["candidates"][0]
    shown = assay("review", "show", waiting["id"])
    assert "Markets" in shown.out or "Sports" in shown.out
    output = assay(
        "review",
        "correct",
        waiting["id"],
        "--score",
        f"{name}=0.5",
        "--reason",
        "too kind",
        "--reviewer",
        "mia",
    )
    assert output.code == 0, output.err
    corrected = assay("review", "list", "--state", "corrected", "--json").document["assessments"]
    assert [one["id"] for one in corrected] == [waiting["id"]]


def test_damaged_rows_are_listed_and_the_rest_is_imported(assay: Command, project: Path) -> None:
    good = [json.dumps(row) for row in (files.openai_item(1, True), files.openai_item(2, False))]
    lines = [good[0], "<<<<<<< HEAD", good[1][:-20], '{"hello": "world"}', good[1]]
    path = files.put_lines(project / "items.jsonl", list(lines))
    output = assay("import", path, "--json")
    assert output.code == 1
    assert tuple(output.document["imported"].values())[2] == 2
    places = [one["where"].rsplit(":", 1)[1] for one in output.document["skipped"]]
    assert places == ["2", "3", "4"]
    whys = [one["why"] for one in output.document["skipped"]]
    assert "conflict marker" in whys[0]
    assert "cut off" in whys[1]
    assert "not an output item" in whys[2]


@pytest.mark.parametrize("write", [files.harbor, files.swe_bench], ids=lambda write: write.__name__)
def test_logs_that_a_harness_leaves_beside_its_results_are_one_note(
    assay: Command, project: Path, write: Callable[[Path], Path]
) -> None:
    target = write(project / "theirs")
    for report in [*target.rglob("*__*/result.json"), *target.rglob("report.json")]:
        (report.parent / "run.log").write_text("building …\n")
        (report.parent / "patch.diff").write_text("diff --git a/x b/x\n")
    (project / "theirs/shopping.txt").write_text("milk\n")
    document = assay("import", project / "theirs", "--json").document
    assert [one["where"].rsplit("/", 1)[1] for one in document["skipped"]] == ["shopping.txt"]
    assert any("logs and artifacts" in one["what"] for one in document["notes"])


def test_a_file_more_in_the_folder_is_another_import(assay: Command, project: Path) -> None:
    folder = files.openai_api(project / "theirs")
    (folder / "eval_1.json").rename(project / "eval_1.json")
    first = assay("import", folder, "--json").document
    (project / "eval_1.json").rename(folder / "eval_1.json")
    second = assay("import", folder, "--json").document
    assert (first["imported"]["runs"], second["imported"]["runs"]) == (1, 1)
    suites = {one["suite"] for one in assay("runs", "--json").document["runs"]}
    assert suites == {"eval_1", "headlines"}


def test_the_model_with_the_lower_error_rate_is_called_better(
    assay: Command, project: Path
) -> None:
    for model, errors in (("good", 1), ("bad", 7)):
        folder = files.lm_eval(project / model) / "org__tiny"
        (results,) = folder.glob("results_*.json")
        document = json.loads(results.read_text())
        files.put(
            results,
            document | {"model_name": model, "higher_is_better": {"sums": {"exact_match": False}}},
        )
        rows = [files.lm_eval_row(n, exact_match=float(n < errors)) for n in range(8)]
        files.put_lines(next(folder.glob("samples_*.jsonl")), rows)
    assert assay("import", project / "good", project / "bad").code == 0
    compared = assay("compare", "good", "bad", "--json").document
    assert compared["difference"] == pytest.approx(6 / 8)
    (warning,) = [one["text"] for one in compared["warnings"] if one["code"] == "lower_is_better"]
    assert "exact_match" in warning


@pytest.mark.parametrize(
    ("write", "options", "metric"),
    [
        (lambda folder: helm(folder, helm_stat("wer_score", 0.25)), (), "wer_score"),
        (
            lambda folder: files.put(
                folder / "rows.json", [{"id": "q1", "who": "ada", "wer": 0.25}]
            ),
            ("--map", "map.json"),
            "errors",
        ),
    ],
)
def test_statistics_name_metrics_of_which_lower_is_better(
    assay: Command,
    project: Path,
    write: Callable[[Path], Path],
    options: tuple[str, ...],
    metric: str,
) -> None:
    (project / "map.json").write_text(json.dumps(ERRORS), "utf-8")
    assay("import", write(project / "theirs"), *options)
    warnings = {one["code"]: one["text"] for one in assay("stats", "--json").document["warnings"]}
    assert f"Lower is better for {metric}." in warnings["lower_is_better"]


def test_a_metric_that_counts_for_one_model_only_is_warned_of(
    assay: Command, project: Path
) -> None:
    for model, highest in (("good", 40.0), ("bad", 1.0)):
        folder = files.lm_eval(project / model) / "org__tiny"
        (results,) = folder.glob("results_*.json")
        files.put(results, json.loads(results.read_text()) | {"model_name": model})
        rows = [
            files.lm_eval_row(n, metrics=["exact_match", "wide"], wide=n % 2 * highest)
            for n in range(8)
        ]
        files.put_lines(next(folder.glob("samples_*.jsonl")), rows)
    run = assay("import", project / "bad", "--json").document["run_ids"][0]
    assert "mixed_metrics" not in {
        one["code"] for one in assay("stats", "--json").document["warnings"]
    }
    runs = [run, *assay("import", project / "good", "--json").document["run_ids"]]
    refused = assay("compare", "good", "bad")
    assert (refused.code, f"the rubric (metric wide in {run})" in refused.err) == (2, True)
    compared = assay("compare", "good", "bad", "--pool-anyway", "--json").document
    (warning,) = [one["text"] for one in compared["warnings"] if one["code"] == "mixed_metrics"]
    assert f"wide counts only in {run}" in warning
    assert "Use --criterion exact_match to compare only what all runs have" in warning
    means = [
        assay("stats", "--run", each, "--criterion", "exact_match", "--json").document
        for each in runs
    ]
    alone = [mean["candidates"][0]["mean"] for mean in means]
    shared = assay("compare", "good", "bad", "--criterion", "exact_match", "--json").document
    assert shared["difference"] == pytest.approx(alone[1] - alone[0])
    assert "mixed_metrics" not in {one["code"] for one in shared["warnings"]}


def test_one_damaged_member_is_named_and_the_others_are_imported(
    assay: Command, project: Path
) -> None:
    good = json.dumps(files.promptfoo_document(files.promptfoo_result("small", "Oslo")))
    with zipfile.ZipFile(project / "all.zip", "w") as archive:
        archive.writestr("a.json", good)
        archive.writestr("b.json", good.replace("Oslo", "Rome"))
    packed = (project / "all.zip").read_bytes()
    # its checksum no longer fits
    (project / "all.zip").write_bytes(packed.replace(b"Name Rome", b"Name Rume", 1))
    output = assay("import", project / "all.zip", "--json")
    assert output.code == 1
    assert output.document["imported"]["runs"] == 1
    (skip,) = output.document["skipped"]
    assert skip["where"].endswith("all.zip#b.json")
    assert skip["why"].startswith("is damaged: Bad CRC-32")


def test_a_file_of_which_every_row_is_left_out_leaves_no_run(assay: Command, project: Path) -> None:
    samples = [files.inspect_sample(number, 1, "C") | {"id": None} for number in (1, 2)]
    result = assay("import", files.put(project / "log.json", files.inspect_log(*samples)), "--json")
    assert result.code == 1
    assert result.document["imported"]["runs"] == 0
    assert [skipped["why"] for skipped in result.document["skipped"]][:2] == [
        "has no `id`, so it belongs to no task."
    ] * 2
    assert assay("runs", "--json").document["runs"] == []


def test_a_long_document_that_was_cut_off_is_called_so(assay: Command, project: Path) -> None:
    log = files.inspect_log(
        *(files.inspect_sample(n, 1, "C", input="x" * 5000) for n in range(1, 300))
    )
    path = files.put(project / "log.json", log)
    path.write_text(path.read_text()[:-2000])
    (skip,) = assay("import", path, "--json").document["skipped"]
    assert skip["why"] == "is cut off: it ends in the middle of a JSON value. Copy it again."


def test_a_run_keeps_its_end_and_says_that_it_is_incomplete(assay: Command, project: Path) -> None:
    log = files.inspect_log(files.inspect_sample(1, 1, "C")) | {"status": "cancelled"}
    output = assay("import", files.put(project / "log.json", log), "--json")
    assert output.code == 0
    assert any("the run is incomplete" in note["what"] for note in output.document["notes"])
    (run,) = assay("runs", "--json").document["runs"]
    assert (run["started"], run["finished"]) == (
        "2026-03-01T09:00:00.000Z",
        "2026-03-01T09:01:00.000Z",
    )
