"""Generations of the BigCode evaluation harness with their references and results."""

from __future__ import annotations

from pathlib import Path

from tests.support.evaluation_files import bigcode
from tests.support.harness_files import put
from tests.support.read_files import formats_of, read_files


def test_every_sample_is_a_trial_without_a_grade(tmp_path: Path) -> None:
    records = read_files(bigcode(tmp_path))
    assert (records.counts, records.skipped, records.strangers) == ((1, 2, 4, 0), [], [])
    run = records.runs[0]
    assert (run.suite, run.candidates[0].name) == ("humaneval", "bigcode/starcoder2-3b")
    assert (run.provenance["parameters"], run.provenance["results"]) == (
        {"temperature": 0.2},
        {"humaneval": {"pass@1": 0.25}},
    )
    assert records.tasks[1].expected == ("check(g)",)
    assert [(row.task, row.trial, row.failure is None) for row in records.responses] == [
        ("0", 1, True),
        ("0", 2, True),
        ("1", 1, True),
        ("1", 2, False),
    ]
    assert any("stores no verdicts on single samples" in note.what for note in records.notes)


def test_lists_of_other_texts_are_not_recognised(tmp_path: Path) -> None:
    pairs = put(tmp_path / "pairs.json", [["yes", "no"], ["red", "blue"]])
    names = put(tmp_path / "names.json", ["ada", "bob"])
    assert formats_of([pairs, names]) == [None, None]


def test_references_alone_are_no_results(tmp_path: Path) -> None:
    bigcode(tmp_path)
    (tmp_path / "generations_humaneval.json").unlink()
    records = read_files(tmp_path)
    assert (records.runs, len(records.skipped)) == ([], 2)
