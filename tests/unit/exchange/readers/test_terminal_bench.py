"""Jobs of Terminal-Bench 1: every trial counts, and agents of different jobs stay apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support import harness_files as files
from tests.support.read_files import formats_of, read_files


def mean(scores: dict[tuple[str, str, int], float | None]) -> float:
    return sum(score or 0.0 for score in scores.values()) / len(scores)


def test_each_of_the_trials_counts_as_in_its_own_accuracy(tmp_path: Path) -> None:
    read = read_files(files.terminal_bench(tmp_path))
    scores = read.scores("Terminal-Bench")
    assert set(scores) == {
        (task, "terminus (acme/tiny)", trial) for task in ("hello", "bye") for trial in (1, 2)
    }
    assert mean(scores) == 0.25
    assert any("without a verdict: 1 of 4 (parse_error 1)" in note.what for note in read.notes)


def test_a_job_without_a_folder_of_its_own_is_no_swe_bench_report(tmp_path: Path) -> None:
    rows = [files.terminal_bench_trial(f"t{n % 8}", n // 8 + 1, n < 19) for n in range(40)]
    path = files.put(tmp_path / "results.json", files.terminal_bench_job(*rows))
    assert formats_of([path]) == ["terminal_bench"]
    read = read_files(path)
    assert len(read.assessments) == 40
    assert mean(read.scores("Terminal-Bench")) == 19 / 40


def test_jobs_of_unnamed_agents_stay_different_candidates(tmp_path: Path) -> None:
    job = files.terminal_bench_job(files.terminal_bench_trial("hello", 1, True))
    for name in (
        "one/results.json",
        "two/results.json",
        "three/a_results.json",
        "three/b_results.json",
    ):
        files.put(tmp_path / name, job)
    read = read_files(tmp_path)
    names = [candidate.name for run in read.runs for candidate in run.candidates]
    assert names == ["one", "three/a_results", "three/b_results", "two"]
    assert all("--candidate" in note.what for note in read.notes)


def test_one_agent_with_an_unnamed_model_is_named_with_its_folder(tmp_path: Path) -> None:
    for folder in ("sonnet", "opus"):
        files.put(
            tmp_path / folder / "results.json",
            files.terminal_bench_job(files.terminal_bench_trial("t", 1, True)),
        )
        files.put(tmp_path / folder / "run_metadata.json", files.terminal_bench_set_up(model=None))
    read = read_files(tmp_path)
    assert [run.candidates[0].name for run in read.runs] == ["terminus (opus)", "terminus (sonnet)"]


def test_trials_without_their_jobs_results_are_one_incomplete_run(tmp_path: Path) -> None:
    folder = files.terminal_bench(tmp_path)
    (folder / "r1/results.json").unlink()
    read = read_files(folder)
    assert read.counts == (1, 2, 4, 4)
    assert not read.runs[0].complete
    assert any("not among the files" in note.what for note in read.notes)


def test_a_trial_keeps_its_times_and_tokens(tmp_path: Path) -> None:
    read = read_files(files.terminal_bench(tmp_path))
    (run,) = read.runs
    assert (run.suite, run.started, run.finished) == (
        "core",
        "2026-03-01T10:00:00.000Z",
        "2026-03-01T10:30:00.000Z",
    )
    first = read.responses[0]
    assert (first.latency_s, first.input_tokens, first.output_tokens) == (120.0, 50, 20)
    assert read.assessments[1].grades[0].reason == "1 of 2 tests passed; not: test_b"


@pytest.mark.parametrize("value", ["yes", 1, []])
def test_a_verdict_of_another_kind_is_skipped_by_name(tmp_path: Path, value: object) -> None:
    rows = [
        files.terminal_bench_trial("a", 1, True),
        files.terminal_bench_trial("b", 1, True, is_resolved=value),
    ]
    read = read_files(files.put(tmp_path / "j/results.json", files.terminal_bench_job(*rows)))
    assert len(read.assessments) == 1
    assert [skip.where.rpartition("#")[2] for skip in read.skipped] == ["2"]
