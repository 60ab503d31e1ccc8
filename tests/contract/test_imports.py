"""Contract of imports: shown whole and once, and hidden until they end."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.support import harness_files as files

from assay.app.imports.importer import import_paths
from assay.app.imports.options import ImportOptions
from assay.app.workspace import Workspace
from assay.domain.lifecycle import AssessmentState, RunState
from assay.domain.selection import Selection, StartedFrom


def output(custom_id: str, said: str | None) -> str:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": said},
        "finish_reason": "stop",
    }
    body = {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice]}
    wrong = {"status_code": 400, "body": {"error": {"message": "no template"}}}
    response = wrong if said is None else {"status_code": 200, "body": body}
    return json.dumps(
        {"id": f"r-{custom_id}", "custom_id": custom_id, "response": response, "error": None}
    )


def test_batch_output_and_a_score_table_are_imported_once(url: str, tmp_path: Path) -> None:
    lines = [output(f"c{n}", None if n % 10 == 0 else f"answer {n}") for n in range(250)]
    (tmp_path / "out.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    rows = [
        f"t{n},{name},1,0.{n}{place},,judge"
        for n in range(1, 6)
        for place, name in enumerate(("a", "b"))
    ]
    (tmp_path / "scores.csv").write_text(
        "task,candidate,trial,score,criterion,judge\n" + "\n".join(rows) + "\n", "utf-8"
    )
    with Workspace.open(
        tmp_path, environment={}, options={"store": url, "results": "off"}
    ) as workspace:
        for _ in range(2):
            import_paths(
                workspace,
                [tmp_path / "out.jsonl", tmp_path / "scores.csv"],
                ImportOptions(copy=False),
            )
        runs = workspace.archive.runs.matching()
        assert sorted(sum(run.trials.values()) for run in runs) == [5, 250]
        assert {run.state for run in runs} == {RunState.FINISHED}
        (batch,) = (run for run in runs if sum(run.trials.values()) == 250)
        failed = list(
            workspace.archive.trials.matching(Selection(runs=(batch.id,)), failed_only=True)
        )
        assert {trial.failure.kind for trial in failed if trial.failure} == {"http_400"}
        assert len(failed) == 25
        assert {row.state for row in workspace.archive.assessments.matching(Selection())} == {
            AssessmentState.PENDING
        }
        assert len(list(workspace.archive.assessments.matching(Selection()))) == 10
        (table,) = (run for run in runs if run.id != batch.id)
        named = [candidate.name for candidate in workspace.journal.plan_of(table.id).candidates]
        assert named == list(table.candidates) == ["a", "b"], (
            "the plan knows those whom only the rows name"
        )


def test_tokens_and_cost_of_a_judge_are_kept_with_the_run(url: str, tmp_path: Path) -> None:
    row = files.promptfoo_result("small", "Oslo")
    row["gradingResult"]["componentResults"][1]["tokensUsed"] = {
        "total": 140,
        "prompt": 100,
        "completion": 40,
    }
    path = files.put(tmp_path / "out.json", files.promptfoo_document(row))
    with Workspace.open(
        tmp_path, environment={}, options={"store": url, "results": "off"}
    ) as workspace:
        import_paths(workspace, [path], ImportOptions(copy=False))
        (run,) = workspace.archive.runs.matching()
        totals = {total.role: total for total in workspace.archive.calls.totals(run.id)}
        assert (totals["judge"].input_tokens, totals["judge"].output_tokens) == (100, 40)
        assert totals["candidate"].input_tokens == 5


def test_a_start_that_is_only_the_date_of_a_file_says_so(url: str, tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text(output("c1", "yes") + "\n", "utf-8")
    os.utime(tmp_path / "out.jsonl", (1_700_000_000, 1_700_000_000))
    stated = {**json.loads(output("c1", "no")), "custom_id": "c2"}
    stated["response"]["body"] |= {"created": 1730126000, "object": "chat.completion"}
    (tmp_path / "stated.jsonl").write_text(json.dumps(stated) + "\n", "utf-8")
    with Workspace.open(
        tmp_path, environment={}, options={"store": url, "results": "off"}
    ) as workspace:
        import_paths(
            workspace,
            [tmp_path / "out.jsonl", tmp_path / "stated.jsonl"],
            ImportOptions(copy=False),
        )
        starts = {run.started[:10]: run.started_from for run in workspace.archive.runs.matching()}
        assert starts == {"2023-11-14": StartedFrom.FILE_DATE, "2024-10-28": StartedFrom.FILE}
        assert {run.started_from for run in workspace.archive.runs.newest(limit=5)} == set(
            starts.values()
        )
