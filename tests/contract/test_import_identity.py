"""Contract of identity: the same results count once from whatever file, and a later version
replaces the earlier one.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.rows import assert_derived_agrees
from tests.support import harness_files as files

from assay.app.imports import run_writer
from assay.app.imports.importer import import_paths
from assay.app.imports.options import ImportOptions, ImportResult
from assay.app.registry import removal
from assay.app.review import protocol as protocols
from assay.app.workspace import Workspace
from assay.domain.errors import Refused
from assay.domain.identifiers import AssessmentKey
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.review import Decision, Via
from assay.domain.selection import Selection
from assay.exchange.readers import score_table

MODEL = "mockllm/tiny"


@pytest.fixture
def workspace(url: str, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(
        tmp_path, environment={}, options={"store": url, "results": "off"}
    ) as opened:
        yield opened
    assert_derived_agrees(url)


def bring(workspace: Workspace, *paths: Path) -> ImportResult:
    return import_paths(workspace, paths, ImportOptions(copy=False))


def counted(workspace: Workspace) -> dict[tuple[str, str, int], float]:
    """Every score that counts, by task, candidate and the number of its trial in the store's
    order.
    """
    columns = workspace.archive.scores.columns(Selection())
    return {
        (columns.tasks[task].task, columns.candidates[candidate], int(trial)): float(score)
        for task, candidate, trial, score in zip(
            columns.task, columns.candidate, columns.trial, columns.score, strict=True
        )
    }


def values(workspace: Workspace) -> list[tuple[str, str, float]]:
    return sorted(
        (task, candidate, score) for (task, candidate, _), score in counted(workspace).items()
    )


# --- Inspect --------------------------------------------------------------------------------------


def a_log(
    *samples: dict[str, Any], at: str = "2026-03-01T10:05:00+00:00", **more: Any
) -> dict[str, Any]:
    log = files.inspect_log(*samples, **more)
    log["eval"] |= {"task_id": "PvfW", "eval_id": f"E{at}", "run_id": f"R{at}"}
    log["stats"] = {"started_at": at, "completed_at": at}
    return log


def a_sample(number: int, value: str = "C", **more: Any) -> dict[str, Any]:
    return files.inspect_sample(number, 1, value, uuid=f"u{number}", **more)


def graded_by_model(number: int, value: str) -> dict[str, Any]:
    sample = a_sample(number)
    return {
        **sample,
        "scores": {"model_graded_qa": {"value": value, "explanation": f"GRADE: {value}"}},
    }


RETRIED = "2026-03-01T11:00:00+00:00"


def retry(folder: Path) -> tuple[Path, Path]:
    """A log that broke off after three of six samples, and its retry, which took these over."""
    failed = files.inspect_sample(
        4, 1, "C", uuid="broken", scores={}, error={"message": "no connection"}
    )
    first = files.put(folder / "1.json", a_log(*map(a_sample, (1, 2, 3)), failed, status="error"))
    second = files.put(folder / "2.json", a_log(*map(a_sample, (1, 2, 3, 4, 5, 6)), at=RETRIED))
    return first, second


@pytest.mark.parametrize("reverse", [False, True])
def test_an_evaluation_and_its_retry_count_once(
    workspace: Workspace, tmp_path: Path, reverse: bool
) -> None:
    paths = retry(tmp_path)
    bring(workspace, *(paths[::-1] if reverse else paths))
    assert values(workspace) == [(str(number), MODEL, 1.0) for number in range(1, 7)]
    (run,) = workspace.archive.runs.matching()
    assert sum(run.trials.values()) == 6, "the sample that broke off was asked again"
    for again in range(2):
        assert bring(workspace, *paths).runs == 0, again
    assert len(workspace.archive.runs.matching()) == 1


def test_the_archive_and_the_json_of_one_log_are_one_run(
    workspace: Workspace, tmp_path: Path
) -> None:
    log = a_log(*map(a_sample, (1, 2)))
    archive = files.inspect_archive(tmp_path / "log.eval", log)
    document = files.put(tmp_path / "log.json", log)
    result = bring(workspace, archive, document)
    (run,) = workspace.archive.runs.matching()
    assert (result.runs, result.unchanged) == (1, {str(document): (run.id,)})


def test_equal_answers_of_two_evaluations_are_two_runs(
    workspace: Workspace, tmp_path: Path
) -> None:
    """A model without randomness answers alike in two evaluations, whose ids and samples differ."""
    first = files.put(tmp_path / "1.json", a_log(a_sample(1), a_sample(2)))
    again = [files.inspect_sample(number, 1, "C", uuid=f"again{number}") for number in (1, 2)]
    log = a_log(*again, at=RETRIED)
    log["eval"]["task_id"] = "Bk2q"
    assert bring(workspace, first, files.put(tmp_path / "2.json", log)).runs == 2


def test_samples_that_two_evaluations_share_are_stored_once(
    workspace: Workspace, tmp_path: Path
) -> None:
    first = files.put(tmp_path / "1.json", a_log(a_sample(1), a_sample(2)))
    joined = a_log(a_sample(2), a_sample(3, "I"), at=RETRIED)
    joined["eval"]["task_id"] = "Bk2q"
    results = [bring(workspace, path) for path in (first, files.put(tmp_path / "2.json", joined))]
    assert [result.responses for result in results] == [2, 1]
    assert values(workspace) == [("1", MODEL, 1.0), ("2", MODEL, 1.0), ("3", MODEL, 0.0)]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_terminal_bench_job_without_its_set_up_counts_once(
    workspace: Workspace, tmp_path: Path, reverse: bool
) -> None:
    rows = [
        files.terminal_bench_trial("t", trial, trial == 1) | {"id": f"u{trial}"} for trial in (1, 2)
    ]
    results = files.put(tmp_path / "job/results.json", files.terminal_bench_job(*rows))
    files.put(tmp_path / "job/run_metadata.json", files.terminal_bench_set_up())
    paths = (tmp_path / "job", results)
    for path in paths[::-1] if reverse else paths:
        bring(workspace, path)
    assert len(workspace.archive.runs.matching()) == 1
    assert len(values(workspace)) == 2


def edited(value: str, at: str) -> dict[str, Any]:
    provenance = {"timestamp": at, "author": "ann", "reason": "graded by hand"}
    sample = a_sample(2, value)
    sample["scores"]["match"]["history"] = [
        {"value": "I"},
        {"value": value, "provenance": provenance},
    ]
    return sample


@pytest.mark.parametrize("edited_at", ["2026-03-02T10:00:00Z", "2001-03-02T10:00:00Z"])
@pytest.mark.parametrize("reverse", [False, True])
def test_an_edited_log_replaces_the_log_it_edits(
    workspace: Workspace, tmp_path: Path, reverse: bool, edited_at: str
) -> None:
    """Also if the editor's clock was behind that of the log: an edit is always later than what it
    edits.
    """
    first = files.put(tmp_path / "1.json", a_log(a_sample(1), a_sample(2, "I")))
    second = files.put(tmp_path / "2.json", a_log(a_sample(1), edited("C", edited_at)))
    results = [bring(workspace, path) for path in ((second, first) if reverse else (first, second))]
    assert values(workspace) == [("1", MODEL, 1.0), ("2", MODEL, 1.0)]
    if reverse:
        (note,) = results[1].notes
        assert "contains an earlier version" in note.what
    else:
        (replaced,) = results[1].replaced
        assert (replaced.changed, replaced.added, replaced.lacking) == (1, 0, 0)
        (event,) = removal.events(workspace.store)
        assert (event.run_id, event.verb, event.replaced_by) == (
            replaced.run,
            "replace",
            replaced.by,
        )


def test_an_invalidated_sample_leaves_the_statistics(workspace: Workspace, tmp_path: Path) -> None:
    gone = a_sample(
        2, invalidation={"author": "bob", "reason": "leak", "timestamp": "2026-03-03T00:00:00Z"}
    )
    bring(workspace, files.put(tmp_path / "1.json", a_log(a_sample(1), a_sample(2))))
    result = bring(workspace, files.put(tmp_path / "2.json", a_log(a_sample(1), gone)))
    assert values(workspace) == [("1", MODEL, 1.0)]
    assert [replaced.lacking for replaced in result.replaced] == [1]


def test_reviews_of_unchanged_results_are_kept_and_others_named(
    workspace: Workspace, tmp_path: Path
) -> None:
    bring(
        workspace,
        files.put(
            tmp_path / "1.json", a_log(*(graded_by_model(number, "I") for number in (1, 2, 3)))
        ),
    )
    keys = {row.task: row.key for row in workspace.archive.assessments.matching(Selection())}
    for task, verb in (("1", Verb.APPROVE), ("2", Verb.REJECT), ("3", Verb.CORRECT)):
        corrections: dict[tuple[str, str | None], float] = (
            {(MODEL, None): 0.25} if verb is Verb.CORRECT else {}
        )
        decision = Decision(
            assessment=keys[task],
            verb=verb,
            reviewer="ann",
            via=Via.PAGE,
            displayed=True,
            reason="seen",
            corrections=corrections,
        )
        workspace.decisions.decide((decision,))
    later = a_log(
        graded_by_model(1, "I"), graded_by_model(2, "C"), graded_by_model(3, "I"), at=RETRIED
    )
    (replaced,) = bring(workspace, files.put(tmp_path / "2.json", later)).replaced
    assert (replaced.kept, replaced.left) == (2, 1)
    rows = {row.task: row for row in workspace.archive.assessments.matching(Selection())}
    assert {task: row.state for task, row in rows.items()} == {
        "1": AssessmentState.APPROVED,
        "2": AssessmentState.PENDING,
        "3": AssessmentState.CORRECTED,
    }
    assert values(workspace) == [("1", MODEL, 0.0), ("3", MODEL, 0.25)]
    (event,) = workspace.archive.assessments.detail(rows["3"].key).events
    assert (event.decision.reviewer, event.decision.reason) == (
        "ann",
        f"unchanged in the later import of {replaced.run}",
    )
    assert workspace.event_log.first_broken() is None


def test_a_later_import_keeps_what_two_people_decided_and_no_lone_opinion(
    workspace: Workspace, tmp_path: Path
) -> None:
    bring(
        workspace,
        files.put(
            tmp_path / "1.json", a_log(*(graded_by_model(number, "I") for number in (1, 2, 3, 4)))
        ),
    )
    (run,) = workspace.archive.runs.matching(Selection())
    protocols.switch(workspace, run.id, {"second": 1.0}, reviewer="ann")
    keys = {row.task: row.key for row in workspace.archive.assessments.matching(Selection())}
    for task, person, verb in (
        ("1", "ann", Verb.APPROVE),
        ("1", "bea", Verb.APPROVE),
        ("2", "ann", Verb.APPROVE),
        ("3", "ann", Verb.APPROVE),
        ("3", "bea", Verb.REJECT),
    ):
        decision = Decision(
            assessment=keys[task],
            verb=verb,
            reviewer=person,
            via=Via.PAGE,
            displayed=True,
            reason="seen",
        )
        workspace.decisions.decide((decision,))
    later = a_log(
        *(graded_by_model(number, "I") for number in (1, 2, 3)), graded_by_model(4, "C"), at=RETRIED
    )
    (replaced,) = bring(workspace, files.put(tmp_path / "2.json", later)).replaced
    assert (replaced.kept, replaced.left) == (1, 0)
    states = {row.task: row.state for row in workspace.archive.assessments.matching(Selection())}
    assert states == {
        "1": AssessmentState.APPROVED,
        **dict.fromkeys("234", AssessmentState.PENDING),
    }
    assert values(workspace) == [("1", MODEL, 0.0)]


def test_differing_logs_without_a_version_are_refused_in_words(
    workspace: Workspace, tmp_path: Path
) -> None:
    bring(workspace, files.put(tmp_path / "1.json", a_log(a_sample(1), a_sample(2, "I"))))
    result = bring(workspace, files.put(tmp_path / "2.json", a_log(a_sample(1), a_sample(2, "C"))))
    (run,) = workspace.archive.runs.matching()
    (skipped,) = result.skipped
    assert f"has 1 results that differ from run {run.id}" in skipped.why
    assert f"assay delete {run.id}" in skipped.why
    assert values(workspace) == [("1", MODEL, 1.0), ("2", MODEL, 0.0)]


# --- promptfoo and batch output -------------------------------------------------------------------


def test_a_later_export_of_a_promptfoo_evaluation_replaces_the_earlier(
    workspace: Workspace, tmp_path: Path
) -> None:
    def exported(day: int, score: float) -> Path:
        result = files.promptfoo_result("echo", "Rome") | {"id": "r1"}
        result["gradingResult"]["componentResults"][0]["score"] = score
        document = {
            **files.promptfoo_document(result),
            "metadata": {"exportedAt": f"2026-05-0{day}T00:00:00Z"},
        }
        return files.put(tmp_path / f"{day}.json", document)

    bring(workspace, exported(1, 0.0))
    (replaced,) = bring(workspace, exported(2, 1.0)).replaced
    assert (replaced.changed, replaced.added, replaced.lacking) == (1, 0, 0)
    assert [score for *_, score in values(workspace)] == [1.0]


def test_promptfoo_output_export_and_lines_are_one_run(
    workspace: Workspace, tmp_path: Path
) -> None:
    results = [
        files.promptfoo_result("echo", city) | {"id": f"r-{city}"} for city in ("Rome", "Oslo")
    ]
    document = {**files.promptfoo_document(*results), "evalId": "eval-abc"}
    exported = {**document, "metadata": {"exportedAt": "2026-05-05T00:00:00Z"}}
    lines = files.put_lines(
        tmp_path / "lines.jsonl", [{**row, "evalId": "eval-abc"} for row in results[::-1]]
    )
    before = bring(workspace, files.put(tmp_path / "out.json", document))
    once = values(workspace)
    result = bring(workspace, files.put(tmp_path / "export.json", exported), lines)
    assert (result.runs, set(result.unchanged.values())) == (0, {tuple(before.run_ids)})
    assert values(workspace) == once


def two_prompts(folder: Path, *, answer: str = "Well: Rome.") -> tuple[Path, Path]:
    """One evaluation of a provider with two prompts, as promptfoo's JSON and as its table."""
    results = []
    for number, label in enumerate(("Name {{city}}", "Say {{city}}")):
        result = files.promptfoo_result("echo", "Rome") | {"id": f"r{number}", "promptIdx": number}
        prompt = {"raw": label.replace("{{city}}", "Rome"), "label": label}
        results.append(
            result
            | {"prompt": prompt, "response": {"output": answer if number else {"city": "Rome"}}}
        )
    texts = ['{"city":"Rome"}', answer]
    columns = ["Status", "Score", "Named Scores", "Grader Reason", "Comment"]
    path = folder / "out.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(
            [
                "city",
                *(
                    name
                    for row in results
                    for name in (f"[echo] {row['prompt']['label']}", *columns)
                ),
            ]
        )
        table.writerow(
            ["Rome", *(cell for text in texts for cell in (text, "PASS", "1.00", *[""] * 3))]
        )
    return files.put(folder / "out.json", files.promptfoo_document(*results)), path


@pytest.mark.parametrize("together", [False, True])
def test_promptfoos_table_of_an_imported_evaluation_is_no_run(
    workspace: Workspace, tmp_path: Path, together: bool
) -> None:
    document, table = two_prompts(tmp_path)
    results = (
        [bring(workspace, tmp_path)]
        if together
        else [bring(workspace, path) for path in (document, table)]
    )
    (run,) = workspace.archive.runs.matching()
    assert results[0].formats == {"promptfoo": 1}
    assert (results[-1].unchanged, results[-1].skipped) == ({str(table): (run.id,)}, [])
    (note,) = [
        note
        for note in results[-1].notes
        if note.where == str(table) and "answers equal those of run" in note.what
    ]
    assert run.id in note.what
    assert "--dataset NAME" in note.what
    assert sum(run.trials.values()) == 1
    another = import_paths(workspace, [table], ImportOptions(copy=False, dataset="another"))
    assert another.runs == 1


def test_document_after_its_table_is_refused_with_the_way_to_take_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    document, table = two_prompts(tmp_path)
    (run,) = bring(workspace, table).run_ids
    (skipped,) = bring(workspace, document).skipped
    assert f"assay delete {run}" in skipped.why
    removal.take_out(workspace, [run])
    assert bring(workspace, document).runs == 1


def test_table_with_another_answer_is_another_run(workspace: Workspace, tmp_path: Path) -> None:
    bring(workspace, two_prompts(tmp_path)[0])
    assert bring(workspace, two_prompts(tmp_path, answer="No.")[1]).runs == 1


def batch_line(number: int, answer: str = "yes") -> str:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": answer},
        "finish_reason": "stop",
    }
    body = {
        "object": "chat.completion",
        "created": 1730126000 + number,
        "model": "m",
        "choices": [choice],
    }
    response = {"status_code": 200, "body": body}
    return json.dumps(
        {
            "id": f"batch_req_{number}",
            "custom_id": f"c{number}",
            "response": response,
            "error": None,
        }
    )


def batch(path: Path, numbers: range, *, between: str = "\n") -> Path:
    path.write_text(between.join(map(batch_line, numbers)) + "\n", "utf-8")
    return path


def test_batch_output_gzipped_reordered_or_spaced_is_no_new_run(
    workspace: Workspace, tmp_path: Path
) -> None:
    first = batch(tmp_path / "out.jsonl", range(50))
    bring(workspace, first)
    (tmp_path / "again.jsonl.gz").write_bytes(gzip.compress(first.read_bytes()))
    result = bring(
        workspace,
        tmp_path / "again.jsonl.gz",
        batch(tmp_path / "reordered.jsonl", range(49, -1, -1)),
        batch(tmp_path / "spaced.jsonl", range(50), between="\n\n"),
    )
    assert (result.runs, len(result.unchanged), result.skipped) == (0, 3, [])
    assert [sum(run.trials.values()) for run in workspace.archive.runs.matching()] == [50]


def answers(workspace: Workspace) -> list[str]:
    return sorted(trial.task for trial in workspace.archive.trials.matching(Selection()))


@pytest.mark.parametrize("reverse", [False, True])
def test_responses_that_two_batch_files_share_are_stored_once(
    workspace: Workspace, tmp_path: Path, reverse: bool
) -> None:
    paths = [batch(tmp_path / "a.jsonl", range(10)), batch(tmp_path / "b.jsonl", range(6, 16))]
    for path in [*(paths[::-1] if reverse else paths), *paths]:
        result = bring(workspace, path)
    assert answers(workspace) == sorted(f"c{number}" for number in range(16))
    assert (result.runs, list(result.unchanged)) == (0, [str(paths[1])])


def test_a_batch_file_that_grew_replaces_the_shorter_one(
    workspace: Workspace, tmp_path: Path
) -> None:
    short, whole = (
        batch(tmp_path / "short.jsonl", range(8)),
        batch(tmp_path / "whole.jsonl", range(12)),
    )
    bring(workspace, short)
    (replaced,) = bring(workspace, whole).replaced
    assert (replaced.added, replaced.lacking, replaced.changed) == (4, 0, 0)
    assert bring(workspace, short).runs == 0
    assert answers(workspace) == sorted(f"c{number}" for number in range(12))


def test_an_answer_changed_under_the_same_id_is_refused(
    workspace: Workspace, tmp_path: Path
) -> None:
    bring(workspace, batch(tmp_path / "out.jsonl", range(5)))
    forged = tmp_path / "forged.jsonl"
    forged.write_text("\n".join([*map(batch_line, range(4)), batch_line(4, "no")]), "utf-8")
    result = bring(workspace, forged)
    assert result.runs == 0
    assert "that differ from run" in result.skipped[0].why


# --- deleting -------------------------------------------------------------------------------------


def test_a_deleted_run_leaves_every_reader_and_comes_back_whole(
    workspace: Workspace, tmp_path: Path
) -> None:
    kept = bring(
        workspace, files.put(tmp_path / "kept.json", files.inspect_log(a_sample(9)))
    ).run_ids
    before = readers(workspace)
    document = a_log(*(graded_by_model(number, "C") for number in (1, 2)))
    document["eval"]["model"] = "mockllm/other"
    (run,) = bring(workspace, files.put(tmp_path / "log.json", document)).run_ids
    keys = workspace.store.imports.assessments_of(run)
    assert keys
    with_run = readers(workspace)
    assert with_run != before
    (event,) = removal.take_out(workspace, [run], reason="wrong model", reviewer="ann")
    assert (event.verb, event.reviewer, event.reason, event.stands) == (
        "delete",
        "ann",
        "wrong model",
        True,
    )
    assert readers(workspace) == before
    decision = Decision(
        assessment=AssessmentKey(min(keys)),
        verb=Verb.APPROVE,
        reviewer="x",
        via=Via.SCRIPT,
        displayed=False,
    )
    with pytest.raises(Refused, match="was deleted"):
        workspace.decisions.decide((decision,))
    removal.restore(workspace, run, reviewer="ann")
    assert readers(workspace) == with_run
    assert [each.verb for each in removal.events(workspace.store)] == ["delete", "restore"]
    assert kept


def readers(workspace: Workspace) -> list[object]:
    """Everything that lists runs or what is in them."""
    archive = workspace.archive
    return [
        [run.id for run in archive.runs.matching()],
        [run.id for run in archive.runs.newest_first()],
        sorted(row.key for row in archive.assessments.matching(Selection())),
        sorted(trial.task for trial in archive.trials.matching(Selection())),
        values(workspace),
        [candidate.name for candidate in workspace.store.renaming.candidates()],
        [candidate.name for candidate in workspace.register.candidates()],
        [run.id for run in workspace.event_log.waiting()],
        archive.runs.totals(Selection()),
    ]


def test_a_deleted_run_may_be_imported_again_but_not_doubled(
    workspace: Workspace, tmp_path: Path
) -> None:
    log = files.put(tmp_path / "log.json", a_log(*map(a_sample, (1, 2))))
    (run,) = bring(workspace, log).run_ids
    removal.take_out(workspace, [run])
    (again,) = bring(workspace, log).run_ids
    assert again != run
    with pytest.raises(Refused, match=f"run {again} also contains"):
        removal.restore(workspace, run)
    removal.take_out(workspace, [again])
    removal.restore(workspace, run)
    assert [each.id for each in workspace.archive.runs.matching()] == [run]


# --- two imports at a time ------------------------------------------------------------------------


def scores_file(path: Path, rows: int) -> Path:
    lines = [f"t{number},m,{number % 2}" for number in range(rows)]
    path.write_text("\n".join(["task,candidate,score", *lines]) + "\n", "utf-8")
    return path


@pytest.mark.parametrize("kind", ["scores", "batch", "batch-reordered"])
def test_of_two_imports_at_a_time_one_says_it_was_there(
    url: str, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(run_writer, "PORTION", 100)
    monkeypatch.setattr(score_table, "_AT_ONCE", 100)
    if kind == "scores":
        first = second = scores_file(tmp_path / "s.csv", 250)
    else:
        first = second = batch(tmp_path / "out.jsonl", range(250))
        if kind == "batch-reordered":
            second = batch(tmp_path / "out-2.jsonl", range(249, -1, -1))
    between: list[ImportResult] = []

    def import_other(_name: str, _rows: int) -> None:
        """Import the same results in another process's place once the first portion is under
        way.
        """
        if not between:
            between.append(ImportResult())
            with Workspace.open(
                tmp_path, environment={}, options={"store": url, "results": "off"}
            ) as other:
                between[0] = bring(other, second)

    result = import_paths(workspace, (first,), ImportOptions(copy=False), progress=import_other)
    assert (between[0].runs, between[0].skipped) == (1, [])
    assert (result.runs, result.run_ids, result.skipped) == (0, [], [])
    assert list(result.unchanged.values()) == [tuple(between[0].run_ids)]
    assert len(workspace.archive.runs.matching()) == 1
