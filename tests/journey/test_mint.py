"""`assay mint`: a specialist's template and the results of a batch become a snapshot, which `assay
mint-verify` checks.
"""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from assay.app.specialists.waiting import mint_or_wait
from assay.app.workspace import Workspace
from assay.domain.observations import MintRequested
from assay.specialists.signatures import SigningKey
from assay.specialists.snapshots import laid_out, read_snapshot, seal
from tests.journey.conftest import Command, Said
from tests.journey.test_bench import JUDGED as WITH_JUDGE, SCENARIO, judging, scenario as scenario
from tests.journey.test_task_tests import _no_sandbox_works
from tests.support.model_server import ModelServer
from tests.web.conftest import serving

MODEL = "claude-3-5-sonnet-20241022"
TEMPLATE = """{
  // the seed's sample
  name: "@org/my-specialist",
  version: "1.0.0",
  persona: {purpose: "Help users with shadcn/ui components", tech_stack: ["React", "TypeScript", "Tailwind CSS"]},
  capabilities: {tags: ["ui", "components", "react"]},
  preferred_models: ["anthropic/claude-3.5-sonnet"],
  documentation: [{source: "https://ui.shadcn.com/docs", type: "web"}],
}
"""


def run(name: str, score: float, *, specialist: bool, **more: Any) -> dict[str, Any]:
    """Return a finished run as another harness sends it."""
    own = {
        "specialistEnabled": True,
        "specialistName": "@org/my-specialist",
        "specialistVersion": "1.0.0",
    }
    return {
        "runId": name,
        "batchId": "comparison_batch",
        "suite": "update-deps",
        "scenario": "nx-pnpm-monorepo",
        "tier": "L1",
        "agent": "anthropic",
        "model": MODEL,
        "status": "completed",
        "startedAt": "2025-01-18T12:00:00Z",
        "evaluations": [
            {"evaluatorName": "build", "score": score, "maxScore": 1.0, "gradedBy": "rule"}
        ],
        "telemetry": {
            "durationMs": 45000,
            "toolCalls": 12,
            "tokensIn": 15000,
            "tokensOut": 2500,
            "costUsd": 0.0825,
        },
        **(own if specialist else {}),
        **more,
    }


WORKED = [
    *(run(f"base-{n}", score, specialist=False) for n, score in enumerate((0.6, 0.65, 0.7))),
    *(run(f"mine-{n}", score, specialist=True) for n, score in enumerate((0.85, 0.87, 0.83))),
]


@pytest.fixture
def template(project: Path) -> Path:
    path = project / "templates" / "my-specialist.json5"
    path.parent.mkdir()
    path.write_text(TEMPLATE, "utf-8")
    return path


def imported(assay: Command, runs: list[dict[str, Any]]) -> None:
    Path("runs.jsonl").write_text("\n".join(map(json.dumps, runs)), "utf-8")
    result = assay("import", "runs.jsonl")
    assert result.code == 0, result.err


def mint(assay: Command, template: Path, *words: object) -> Said:
    return assay(
        "mint",
        template,
        "--batch-id",
        "comparison_batch",
        "--output",
        "snapshots",
        "--json",
        *words,
    )


def test_worked_comparison_of_the_seed_is_minted_and_verified(
    assay: Command, template: Path
) -> None:
    imported(assay, WORKED)
    minted = mint(assay, template)
    assert minted.code == 0, minted.err
    path = Path(minted.document["path"])
    assert path.parts[-3:] == ("my-specialist", "1.0.0", "snapshot-001.json5")
    snapshot = json.loads(path.read_text("utf-8"))
    comparison = snapshot["benchmarks"]["comparison"]
    shown = {
        key: comparison[key]
        for key in ("baseline_avg_score", "specialist_avg_score", "improvement", "improvement_pct")
    }
    assert shown == {
        "baseline_avg_score": 0.65,
        "specialist_avg_score": 0.85,
        "improvement": 0.2,
        "improvement_pct": 30.77,
    }
    assert comparison["test"]["decision"] == "better"
    assert snapshot["evidence"]["statement"].startswith(
        "The specialist is better than the baseline by 20.0 points"
    )
    assert comparison["test"]["ci95"][0] > 0
    (model,) = comparison["models_compared"]
    assert (model["model"], model["baseline_score"], model["specialist_score"]) == (
        MODEL,
        0.65,
        0.85,
    )
    suites = snapshot["benchmarks"]["test_suites"]
    assert [(suite["name"], suite["path"]) for suite in suites] == [
        ("nx-pnpm-monorepo", "update-deps/nx-pnpm-monorepo")
    ]
    first = snapshot["benchmarks"]["runs"][-1]
    assert first["telemetry"]["token_usage"]["total_tokens"] == 17500
    assert snapshot["documentation"] == [{"source": "https://ui.shadcn.com/docs", "type": "web"}]
    verified = assay("mint-verify", path, "--json")
    assert verified.code == 0, verified.out
    results = {check["check"]: check["result"] for check in verified.document["checks"]}
    assert results == {
        "content": "passed",
        "signature": "not_checked",
        "place": "passed",
        "predecessor": "passed",
        "template": "passed",
        "comparison": "passed",
        "runs": "passed",
        "removed_runs": "passed",
        "validity": "passed",
    }
    assert verified.document["not_checked"] == ["signature"]


def test_runs_that_measure_different_things_are_not_minted(assay: Command, template: Path) -> None:
    other = {
        "evaluations": [
            {"evaluatorName": "lint", "score": 0.9, "maxScore": 1.0, "gradedBy": "rule"}
        ]
    }
    imported(assay, [*WORKED, run("mine-9", 0.9, specialist=True, **other)])
    refused = mint(assay, template)
    assert refused.code == 2
    assert (
        "batch comparison_batch: has runs that differ in the rubric (metric build in "
        in refused.err
    )
    assert "metric lint in " in refused.err
    assert "--batch-id" in refused.err
    assert not Path("snapshots").exists()


def test_runs_of_other_scenarios_may_have_other_evaluators(assay: Command, template: Path) -> None:
    other = {
        "evaluations": [
            {"evaluatorName": "lint", "score": 0.9, "maxScore": 1.0, "gradedBy": "rule"}
        ]
    }
    imported(assay, [*WORKED, run("mine-9", 0.9, specialist=True, scenario="another", **other)])
    assert mint(assay, template).code == 0


def test_parallel_mints_give_each_number_once(
    assay: Command, template: Path, project: Path
) -> None:
    imported(assay, WORKED)
    request = MintRequested(batch_id="comparison_batch", template=str(template), output="snapshots")
    with Workspace.open(project, environment={}) as opened, ThreadPoolExecutor(20) as pool:
        paths = [
            result.path or ""
            for result in pool.map(lambda _: mint_or_wait(opened, request), range(20))
        ]
    assert sorted(Path(path).name for path in paths) == [
        f"snapshot-{number:03}.json5" for number in range(1, 21)
    ]
    assert all(read_snapshot(Path(path))[1] == [] for path in paths)


def test_thin_evidence_is_minted_and_said_unless_decided_is_required(
    assay: Command, template: Path
) -> None:
    scores = ((0.4, 0.65, 0.9), (0.6, 0.85, 1.0))
    imported(
        assay,
        [
            run(f"{side}-{n}", s, specialist=bool(side))
            for side in (0, 1)
            for n, s in enumerate(scores[side])
        ],
    )
    gate = mint(assay, template, "--require", "decided")
    assert (gate.code, gate.document["state"], gate.document["path"]) == (3, "not_decided", None)
    assert not Path("snapshots").exists()
    minted = mint(assay, template)
    assert minted.code == 0
    evidence = json.loads(Path(minted.document["path"]).read_text("utf-8"))["evidence"]
    assert evidence["decided"] is False
    assert "That the specialist is better or worse than the baseline." in evidence["does_not_show"]
    assert any("one scenario only" in sentence for sentence in evidence["does_not_show"])
    assert mint(assay, template).document["path"].endswith("snapshot-002.json5")


def test_missing_side_is_null_and_a_baseline_of_0_gives_no_percentage(
    assay: Command, template: Path
) -> None:
    imported(
        assay,
        [
            run("mine", 0.85, specialist=True),
            run("other", 0.1, specialist=True, specialistVersion="0.9.0"),
        ],
    )
    comparison = mint(assay, template).document["comparison"]
    assert (comparison["baseline_avg_score"], comparison["specialist_avg_score"]) == (None, 0.85)
    assert (comparison["improvement"], comparison["test"]["difference"]) == (None, None)
    assert "improvement_pct" not in comparison
    imported(assay, [run("base", 0.0, specialist=False)])
    minted = mint(assay, template).document
    assert minted["comparison"]["improvement"] == 0.85
    assert "improvement_pct" not in minted["comparison"]
    assert any(
        "another specialist or version" in gap for gap in minted["evidence"]["does_not_show"]
    )


def test_models_are_compared_with_themselves_only(assay: Command, template: Path) -> None:
    runs = [run(f"weak-{n}", 0.2 + n / 100, specialist=False, model="weak") for n in range(3)]
    runs += [run(f"strong-{n}", 0.8 + n / 100, specialist=True, model="strong") for n in range(3)]
    imported(assay, runs)
    comparison = mint(assay, template).document["comparison"]
    assert comparison["improvement"] == pytest.approx(0.6), "the averages are those of all runs"
    assert comparison["test"]["difference"] is None, (
        "but another model is no evidence for the specialist"
    )
    assert [(each["model"], each["improvement"]) for each in comparison["models_compared"]] == [
        ("strong", None),
        ("weak", None),
    ]


JUDGED = {"evaluatorName": "llm_judge", "score": 0.5, "maxScore": 1.0, "gradedBy": "model"}


def test_mint_waits_for_the_last_decision(assay: Command, template: Path) -> None:
    imported(
        assay,
        [*WORKED, run("judged", 0.5, specialist=False, scenario="another", evaluations=[JUDGED])],
    )
    waits = mint(assay, template, "--key", made_key(assay))
    assert (waits.code, waits.document["state"], waits.document["waiting"]) == (0, "waiting", 1)
    assert waits.document["comparison"] is None
    assert mint(assay, template, "--key", "key.pem").document["state"] == "waiting"
    listed = assay("mint", "--pending", "--json").document["mints"]
    assert [each["state"] for each in listed] == ["waiting"], "the same request is recorded once"
    item = pending(assay)
    assert (
        assay(
            "review",
            "correct",
            item["id"],
            "--score",
            f"{item['candidates'][0]}=0.65",
            "--reason",
            "fair",
        ).code
        == 0
    )
    (path,) = Path("snapshots").rglob("snapshot-*.json5")
    snapshot = json.loads(path.read_text("utf-8"))
    assert [run["review"] for run in snapshot["benchmarks"]["runs"]].count("person") == 1
    assert snapshot["benchmarks"]["comparison"]["baseline_avg_score"] == 0.65
    assert assay("mint-verify", path, "--key", "key.pem.pub").code == 0
    assert assay("mint", "--pending").out.strip() == "No mint is recorded."


def test_approvals_by_script_are_vetted_only_if_the_project_says_so(
    assay: Command, template: Path, project: Path
) -> None:
    imported(
        assay,
        [*WORKED, run("judged", 0.5, specialist=False, scenario="another", evaluations=[JUDGED])],
    )
    item = pending(assay)
    assert assay("review", "approve", item["id"]).code == 0
    refused = mint(assay, template, "--require", "vetted")
    assert refused.code == 2
    assert (
        f"1 of 1 approval was made by script ({item['id']}), not on a reviewer's screen."
        in refused.err
    )
    assert "assay review undo" in refused.err
    assert "`count_scripted: true` in assay.yaml" in refused.err
    assert not Path("snapshots").exists()
    (project / "assay.yaml").write_text("count_scripted: true\n", "utf-8")
    minted = mint(assay, template, "--require", "vetted")
    assert minted.code == 0, minted.err
    evidence = json.loads(Path(minted.document["path"]).read_text("utf-8"))["evidence"]
    assert evidence["approvals"] == {"shown": 0, "scripted": 1, "imported": 0}
    (sentence,) = (sentence for sentence in evidence["shows"] if "by script" in sentence)
    assert sentence.startswith(
        "1 approved: 1 by script; the project's setting `count_scripted: true`"
    )


def test_rejected_grades_are_in_no_number_but_named(assay: Command, template: Path) -> None:
    imported(
        assay,
        [*WORKED, run("judged", 0.5, specialist=False, scenario="another", evaluations=[JUDGED])],
    )
    assert assay("review", "reject", pending(assay)["id"], "--reason", "wrong").code == 0
    minted = mint(assay, template).document
    assert minted["comparison"]["baseline_avg_score"] == 0.65
    assert "Anything about 1 run that was rejected." in minted["evidence"]["does_not_show"]


def test_a_failing_mint_stays_recorded_and_harms_no_decision(
    assay: Command, template: Path, caplog: pytest.LogCaptureFixture
) -> None:
    imported(
        assay,
        [*WORKED, run("judged", 0.5, specialist=False, scenario="another", evaluations=[JUDGED])],
    )
    mint(assay, template)
    text = template.read_text("utf-8")
    template.unlink()
    item = pending(assay)
    decided = assay("review", "approve", item["id"])
    assert decided.code == 0
    assert "assay mint --pending" in caplog.text
    assert assay("mint", "--pending").code == 1
    template.write_text(text, "utf-8")
    assert assay("mint", "--pending").code == 0
    assert len(list(Path("snapshots").rglob("snapshot-*.json5"))) == 1


def test_page_lists_a_mint_that_waits_and_then_its_snapshot(
    assay: Command, template: Path, project: Path
) -> None:
    imported(
        assay,
        [*WORKED, run("judged", 0.5, specialist=False, scenario="another", evaluations=[JUDGED])],
    )
    assay("mint", template, "--batch-id", "comparison_batch", "--output", "elsewhere")
    with serving(project) as server:
        waits = server.get("/specialists.json")
        assert waits["mints"] == [
            {
                "batch_id": "comparison_batch",
                "template": "templates/my-specialist.json5",
                "waiting": 1,
                "server": None,
            }
        ]
        assert waits["snapshots"] == []
        assay("review", "approve", pending(assay)["id"])
        minted = server.get("/specialists.json")
    assert minted["mints"] == []
    (snapshot,) = minted["snapshots"]
    assert snapshot["path"] == "elsewhere/my-specialist/1.0.0/snapshot-001.json5"
    assert snapshot["content"]["comparison"]["baseline_runs"] == 4


def test_deleted_and_archived_runs_are_counted_and_named(assay: Command, template: Path) -> None:
    imported(
        assay, [*WORKED, *(run(name, 0.1, specialist=True) for name in ("bad", "worse", "worst"))]
    )
    assert assay("delete", "bad", "worse", "--yes", "--reason", "looks bad").code == 0
    assert assay("archive", "worst", "--yes").code == 0
    minted = mint(assay, template)
    assert minted.code == 0, minted.err
    evidence = minted.document["evidence"]
    stated = evidence["removed_runs"]
    assert (stated["deleted"], stated["archived"], stated["replaced"]) == (2, 1, 0)
    (worst,) = (each for each in stated["runs"] if each["run_id"] == "worst")
    assert [each["overall_score"] for each in worst["results"]] == [0.1]
    worse, bad, _ = stated["runs"]
    assert (bad["run_id"], bad["reason"], bad["results"]) == ("bad", "looks bad", None)
    assert bad["by"]
    deleted, archived = (
        next(gap for gap in evidence["does_not_show"] if word in gap)
        for word in ("deleted", "archived")
    )
    when = f"(by {bad['by']} on {bad['at'][:10]})"
    assert (
        deleted
        == f"Anything about 2 runs of the batch that were deleted: {worse['run_id']} {when}, bad {when}."
    )
    assert archived.endswith("; 1 graded trial, mean score 10.0).")
    assert minted.document["comparison"]["specialist_runs"] == 3
    assert assay("mint-verify", minted.document["path"]).code == 0
    assert assay("archive", "worst", "--undo").code == 0
    restored = assay("mint-verify", minted.document["path"], "--json")
    assert "Runs that now count in the batch but are not in the snapshot: 1" in restored.out


def test_strict_fails_on_what_was_not_checked(assay: Command, template: Path) -> None:
    imported(assay, WORKED)
    path = mint(assay, template, "--key", made_key(assay)).document["path"]
    lenient = assay("mint-verify", path)
    assert lenient.code == 0
    assert lenient.out.strip().endswith("no check failed; not checked: signature")
    strict = assay("mint-verify", path, "--strict")
    assert strict.code == 3
    assert strict.out.strip().endswith("verification failed; not checked: signature")
    assert assay("mint-verify", path, "--strict", "--key", "key.pem.pub").code == 0
    assert (
        assay("mint-verify", path, "--strict", "--key", "key.pem.pub", "--store", "empty.db").code
        == 3
    )


def pending(assay: Command) -> Any:
    (item,) = (
        each
        for each in assay("review", "list", "--json").document["assessments"]
        if each["state"] == "pending"
    )
    return item


def made_key(assay: Command) -> str:
    assert assay("mint", "--new-key", "key.pem").code == 0
    return "key.pem"


def results(verified: Said) -> dict[str, str]:
    return {check["check"]: check["result"] for check in verified.document["checks"]}


def test_signature_names_the_key_and_forgeries_fail(assay: Command, template: Path) -> None:
    imported(assay, WORKED)
    assert (Path(made_key(assay)).stat().st_mode & 0o777) == 0o600
    assert assay("mint", "--new-key", "key.pem").code == 2, "a key is never overwritten"
    path = Path(mint(assay, template, "--key", "key.pem").document["path"])
    assert results(assay("mint-verify", path, "--json"))["signature"] == "not_checked", (
        "an unknown key proves no author"
    )
    assert (
        results(assay("mint-verify", path, "--key", "key.pem.pub", "--json"))["signature"]
        == "passed"
    )
    assert assay("mint", "--new-key", "mallory.pem").code == 0
    forged = assay("mint-verify", path, "--key", "mallory.pem.pub", "--json")
    assert (forged.code, results(forged)["signature"]) == (3, "failed")


def test_numbers_must_follow_from_the_listed_runs_and_the_store(
    assay: Command, template: Path
) -> None:
    imported(assay, WORKED)
    key = SigningKey(Path(made_key(assay)))
    path = Path(mint(assay, template, "--key", "key.pem").document["path"])
    snapshot, _ = read_snapshot(path)
    del snapshot["integrity"]
    snapshot["benchmarks"]["comparison"]["test"]["p_value"] = 0.001
    path.write_text(laid_out(seal(snapshot, key)), "utf-8")
    assert results(assay("mint-verify", path, "--json"))["comparison"] == "failed"
    for each in snapshot["benchmarks"]["runs"]:
        each["overall_score"] = 0.9 if each["specialist_enabled"] else 0.1
    path.write_text(laid_out(seal(snapshot, key)), "utf-8")
    assert results(assay("mint-verify", path, "--json"))["runs"] == "failed"
    elsewhere = assay("mint-verify", path, "--store", "empty.db", "--json")
    assert results(elsewhere)["runs"] == "not_checked"


@pytest.mark.parametrize(
    "words",
    [
        ("verify",),
        ("verify", "--output", "x"),
        ("--pending", "t.json5"),
        (),
        ("--pending", "--new-key", "k"),
    ],
)
def test_no_positional_is_a_verb(assay: Command, words: tuple[str, ...]) -> None:
    refused = assay("mint", *words)
    assert refused.code == 2
    assert "TEMPLATE with --batch-id and --output" in refused.err


def test_a_batch_without_agents_or_an_unknown_one_is_refused(
    assay: Command, template: Path
) -> None:
    refused = mint(assay, template)
    assert refused.code == 2
    assert "comparison_batch" in refused.out + refused.err


def test_batch_of_a_server_is_recorded_and_minted_after_its_review_there(
    assay: Command, template: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    remote = tmp_path / "remote"
    remote.mkdir()
    monkeypatch.chdir(remote)
    judged = run("judged", 0.5, specialist=False, scenario="another", evaluations=[JUDGED])
    imported(assay, [*WORKED, run("weak", 0.1, specialist=True), judged])
    assert assay("delete", "weak", "--yes", "--reason", "secret").code == 0
    with serving(remote) as server:
        address = f"http://127.0.0.1:{server.port}"
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("ASSAY_SERVER", address)
        for _ in range(2):
            waits = mint(assay, template).document
            assert (waits["state"], waits["waiting"], waits["path"], waits["server"]) == (
                "waiting",
                1,
                None,
                address,
            )
        assert (
            f"to finish on {address}. The mint is recorded; after the review"
            in mint_said(assay, template).out
        )
        listed = assay("mint", "--pending", "--json")
        assert (listed.code, [each["state"] for each in listed.document["mints"]]) == (
            0,
            ["waiting"],
        ), "recorded once"
        with serving(tmp_path) as own:
            (shown,) = own.get("/specialists.json")["mints"]
        monkeypatch.chdir(tmp_path)  # a server restores the working folder of its start
        assert (shown["batch_id"], shown["waiting"], shown["server"]) == (
            "comparison_batch",
            1,
            address,
        )
        monkeypatch.setenv("ASSAY_SERVER", "http://127.0.0.1:9")
        other = assay("mint", "--pending", "--json")
        assert (other.code, other.document["mints"][0]["state"]) == (1, "waiting")
        assert f"recorded for the server {address}" in other.document["mints"][0]["problem"]
        monkeypatch.setenv("ASSAY_SERVER", address)
        monkeypatch.chdir(remote)
        name = pending(assay)["candidates"][0]
        decided = assay(
            "review", "correct", pending(assay)["id"], "--score", f"{name}=0.65", "--reason", "fair"
        )
        assert decided.code == 0, decided.err
        monkeypatch.chdir(tmp_path)
        with monkeypatch.context() as patch:  # as if the process ended after it wrote the snapshot
            patch.setattr("assay.app.specialists.waiting.forget", lambda *_: None)
            assert assay("mint", "--pending").code == 0
        (minted,) = assay("mint", "--pending", "--json").document["mints"]
        assert minted["state"] == "minted"
        assert assay("mint", "--pending").out.strip() == "No mint is recorded."
        assert len(list(Path("snapshots").rglob("*.json5"))) == 1
        unknown = assay("mint", template, "--batch-id", "none", "--output", "snapshots")
        assert unknown.code == 2
    snapshot = json.loads(Path(minted["path"]).read_text("utf-8"))
    comparison = snapshot["benchmarks"]["comparison"]
    assert (comparison["baseline_avg_score"], comparison["specialist_avg_score"]) == (0.65, 0.85)
    assert (comparison["baseline_runs"], comparison["improvement_pct"]) == (4, 30.77)
    assert snapshot["snapshot_metadata"]["source"] == address
    (removed,) = snapshot["evidence"]["removed_runs"]["runs"]
    assert (removed["run_id"], removed["removal"], removed["by"], removed["reason"]) == (
        "weak",
        "deleted",
        None,
        None,
    )
    assert results(assay("mint-verify", minted["path"], "--json"))["runs"] == "not_checked"
    assert assay("runs", "--json").document["runs"] == [], "the runs were not imported here"
    there = assay("mint-verify", minted["path"], "--store", f"{remote}/.assay/assay.db", "--json")
    assert results(there)["removed_runs"] == "passed"
    monkeypatch.setenv("ASSAY_SERVER", address)
    assert mint(assay, template).code == 2, (
        "a server that is gone is an input error, not a traceback"
    )


def mint_said(assay: Command, template: Path) -> Said:
    return assay("mint", template, "--batch-id", "comparison_batch", "--output", "snapshots")


@pytest.mark.slow
def test_bench_mints_its_batch(assay: Command, template: Path, scenario: Path) -> None:
    if _no_sandbox_works():
        pytest.skip("no sandbox works here")
    words = ("--agent", "echo", "--tier", "L0", "--batch-id", "b7", "--json", "--mint-template")
    assert assay("bench", "basics", "fix-slug", *words, "missing.json5").code == 2
    assert assay("runs", "--json").document["runs"] == [], "a missing template costs nothing"
    own = ("--specialist", "@org/my-specialist", "--baseline", "--iterations", "2")
    done = assay(
        "bench", "basics", "fix-slug", *words, "@org/my-specialist", "--mint-output", "out", *own
    )
    minted = done.document["mint"]
    assert minted["path"] == str(Path("out/my-specialist/1.0.0/snapshot-001.json5").absolute())
    comparison = minted["comparison"]
    assert (
        comparison["baseline_runs"],
        comparison["specialist_runs"],
        comparison["improvement"],
    ) == (2, 2, 0)
    assert comparison["test"]["n_scenarios"] == 1, (
        "both sides have the same agent, whatever their candidates are called"
    )
    assert not any("other content" in gap for gap in minted["evidence"]["does_not_show"])
    verified = assay("mint-verify", minted["path"], "--json")
    assert results(verified)["runs"] == "passed"
    again = mint(assay, template, "--batch-id", "b7", "--no-enriched")
    assert again.code == 0
    with sqlite3.connect(
        ".assay/assay.db"
    ) as store:  # as if the review policy let a model's grade of one agent pass
        store.execute(
            "UPDATE score SET state = 'exempt' WHERE assessment_key = (SELECT min(assessment_key) FROM score)"
        )
    path = Path(mint(assay, template, "--batch-id", "b7").document["path"])
    reviews = [each["review"] for each in json.loads(path.read_text("utf-8"))["benchmarks"]["runs"]]
    assert sorted(reviews) == ["rule", "rule", "rule", "unseen"], (
        "and says nothing about the trial's other agent"
    )


@pytest.mark.slow
def test_bench_with_a_judge_mints_after_the_last_approval(
    assay: Command, server: ModelServer, template: Path, scenario: Path
) -> None:
    if _no_sandbox_works():
        pytest.skip("no sandbox works here")
    server.answer = judging
    (scenario / "scenario.yaml").write_text(SCENARIO + WITH_JUDGE, "utf-8")
    words = (
        "--agent",
        "echo",
        "--tier",
        "L0",
        "--batch-id",
        "b8",
        "--specialist",
        "@org/my-specialist",
        "--baseline",
    )
    done = assay(
        "bench",
        "basics",
        "fix-slug",
        *words,
        "--mint-template",
        "@org/my-specialist",
        "--mint-output",
        "out",
    )
    assert "is not minted yet" in done.out, done.err
    waiting = assay("review", "list", "--state", "pending", "--json").document["assessments"]
    for item in waiting:
        assert not list(Path("out").rglob("*.json5")), "nothing is minted before the last decision"
        assert assay("review", "approve", item["id"]).code == 0
    (path,) = Path("out").rglob("snapshot-*.json5")
    runs = json.loads(path.read_text("utf-8"))["benchmarks"]["runs"]
    assert [(each["specialist_enabled"], each["review"]) for each in runs] == [
        (False, "person"),
        (True, "person"),
    ]
    assert assay("mint-verify", path).code == 0
