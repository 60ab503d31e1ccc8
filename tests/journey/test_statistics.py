"""Everything statistics say, through the command line: plan, diagnostics, looks, partial review,
charts, and their JSON.
"""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from assay.app.statistics import power, results, statistics_documents
from assay.app.wire import plain
from assay.app.workspace import Workspace
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.selection import Selection
from tests.contract.stores import a_call, a_decision, a_plan, a_task, grades, judged, planned, wait
from tests.journey.conftest import Command
from tests.support.examples import examples
from tests.support.model_server import ModelServer
from tests.support.sets import write_set

JUDGE = "openai/judge-1"
COMPARED = {
    "a",
    "b",
    "mean_a",
    "mean_b",
    "difference",
    "points",
    "ci95",
    "std_err",
    "t",
    "df",
    "p_value",
    "significant",
    "decision",
    "equivalence",
    "prob_superiority",
    "d_total",
    "effect_label",
    "tasks_won",
    "tasks_lost",
    "tasks_tied",
    "n_tasks",
    "n_trials_a",
    "n_trials_b",
    "scope",
    "method",
    "reason",
    "warnings",
    "diagnostics",
    "verdict",
}
ESTIMATED = {
    "candidate",
    "mean",
    "sd",
    "min",
    "max",
    "ci95",
    "n_trials",
    "n_tasks",
    "scope",
    "method",
    "reason",
    "by_task",
}


@pytest.fixture
def reviewed(assay: Command, server: ModelServer, project: Path) -> Command:
    """A run of three tasks and five trials: twelve approved, one rejected, two waiting."""
    assay("run", write_set(project), "--judge", JUDGE)
    rows = assay("review", "list", "--json").document["assessments"]
    assay("review", "reject", rows[0]["id"], "--reason", "messy")
    assay("review", "approve", *(row["id"] for row in rows[1:13]))
    return assay


def test_plan_shows_the_trials_needed_for_each_pair(reviewed: Command) -> None:
    document = reviewed("plan", "--detect", "3pts", "--json").document
    assert (document["detect"], document["power"]) == (0.03, 0.8)
    assert len(document["pairs"]) == 6
    for pair in document["pairs"]:
        assert pair["words"]
        assert (pair["more_tasks"] is None) == (pair["tasks_needed"] is None)
        for way in (pair["more_tasks"], pair["more_trials"]):
            assert way is None or (way["needed"] >= 1 and way["new_trials"] >= 0)
    assert document["summary"]["words"]
    text = reviewed("plan", "--detect", "0.03")
    assert text.code == 0
    ranked = [row["candidate"] for row in reviewed("rank", "--json").document["candidates"]]
    assert [f"{a} − {b}" in text.out for a, b in combinations(ranked, 2)] == [True] * 6
    assert [(pair["a"], pair["b"]) for pair in document["pairs"]] == list(combinations(ranked, 2))


@pytest.mark.parametrize("wrong", ["0", "1", "3", "-0.1", "three", "100pts", "nan", "0pts"])
def test_a_difference_that_is_none_is_refused(reviewed: Command, wrong: str) -> None:
    for refused in (
        reviewed("plan", f"--detect={wrong}"),
        reviewed("plan", "--detect", "0.03", f"--power={wrong}"),
        reviewed("compare", "nora", "omar", f"--margin={wrong}"),
        reviewed("gate", "nora", "--against", "omar", f"--margin={wrong}"),
    ):
        assert refused.code == 2


def test_plan_without_a_difference_is_bad_usage(reviewed: Command) -> None:
    assert reviewed("plan").code == 2


def test_diagnostics_stand_under_their_key_and_nowhere_else(reviewed: Command) -> None:
    stats = reviewed("stats", "--json").document
    fair = stats["diagnostics"]["fair_play"]
    assert all((one["n_decided"], one["rejected"]) == (13, 1) for one in fair["rates"])
    assert stats["diagnostics"]["with_rejected"]["put_back"] == 1
    assert [one["n_planned"] for one in stats["diagnostics"]["coverage"]] == [15] * 4
    assert all(one["n_trials"] == 12 for one in stats["candidates"])
    back = {one["candidate"]: one for one in stats["diagnostics"]["with_rejected"]["scores"]}
    assert all(back[one["candidate"]]["n_trials"] == 13 for one in stats["candidates"])
    for ends in stats["diagnostics"]["rejected_bounds"]:
        assert ends["lowest"] < back[ends["candidate"]]["mean"] < ends["highest"]
    compared = reviewed("compare", "nora", "omar", "--json").document
    assert compared["n_trials_a"] == 12
    assert compared["diagnostics"]["with_rejected"]["put_back"] == 1
    assert "behind the numbers" in reviewed("stats").out


def test_statistics_show_the_planned_end_while_reviews_wait(reviewed: Command) -> None:
    stats = reviewed("stats", "--json").document
    assert stats["anytime"] is not None
    partial = {one["candidate"]: one for one in stats["diagnostics"]["partial_review"]}
    for one in stats["candidates"]:
        three = partial[one["candidate"]]
        assert three["n_waiting"] == 2
        assert three["vetted_only"]["mean"] == one["mean"]
        assert three["judge_as_it_is"]["mean"] is not None
        assert three["calibrated"]["mean"] is None
        assert three["calibrated"]["reason"] == "not_random_review"
    compared = reviewed("compare", "nora", "omar", "--json").document
    assert {"e_value", "p", "ci95", "n", "reason"} <= set(compared["anytime"])
    text = reviewed("compare", "nora", "omar").out
    assert "overstate certainty" in text
    assert "At any time" in text


def test_when_nothing_waits_nothing_is_said_of_looking_early(reviewed: Command) -> None:
    rows = reviewed("review", "list", "--state", "pending", "--json").document["assessments"]
    reviewed("review", "approve", *(row["id"] for row in rows))
    stats = reviewed("stats", "--json").document
    assert stats["anytime"] is None
    assert stats["diagnostics"]["partial_review"] == []
    assert reviewed("compare", "nora", "omar", "--json").document["anytime"] is None
    assert "overstate certainty" not in reviewed("stats").out


def test_gate_passes_only_on_shown_evidence(reviewed: Command) -> None:
    result = reviewed("gate", "nora", "--against", "omar", "--margin", "99pts", "--json")
    shown = result.document["non_inferiority"]
    assert shown is not None
    outcome = result.document["outcome"]
    assert (outcome == "fine") == shown["holds"]
    strict = reviewed(
        "gate", "nora", "--against", "omar", "--margin", "99pts", "--on-undecided", "fail"
    )
    assert strict.code == {"fine": 0, "worse": 3, "undecided": 4}[outcome]
    assert result.document["passed"] == shown["holds"]
    assert (
        reviewed("gate", "nora", "--against", "omar", "--margin", "0.9")
        .out.splitlines()[1]
        .startswith(("Gate passed: nora is not", "Gate undecided: too little data."))
    )


def test_candidates_without_a_counted_trial_are_listed_with_the_reason(
    assay: Command, server: ModelServer, project: Path
) -> None:
    assay("run", write_set(project), "--judge", JUDGE)
    stats = assay("stats", "--json").document
    assert [one["candidate"] for one in stats["candidates"]] == ["nora", "omar", "pia", "quin"]
    assert {one["reason"] for one in stats["candidates"]} == {"no_approved_trials"}
    ranks = assay("rank", "--json").document
    assert [one["rank"] for one in ranks["candidates"]] == [None] * 4
    plan = assay("plan", "--detect", "3pts", "--json").document
    assert {pair["reason"] for pair in plan["pairs"]} == {"no_approved_trials"}
    for words in (
        assay("stats"),
        assay("rank"),
        assay("plan", "--detect", "3pts"),
        assay("compare", "nora", "omar"),
    ):
        assert words.code == 0


def test_charts_are_drawn_to_the_file_that_is_named(reviewed: Command, project: Path) -> None:
    for kind, name in (("forest", "a.svg"), ("ranks", "b.csv"), ("pairs", "c.json")):
        result = reviewed("chart", kind, "--output", project / name, "--json")
        assert result.code == 0
        assert result.document["rows"] > 0
    assert (project / "a.svg").read_text("utf-8").startswith("<svg")
    assert (project / "b.csv").read_text("utf-8").startswith("candidate,")
    assert reviewed("chart", "scores", "--output", project / "d.gif").code == 2
    assert reviewed("chart", "scores", "--output", project / "nowhere" / "d.svg").code == 2
    assert reviewed("chart", "pie", "--output", project / "d.svg").code == 2


def test_a_random_order_of_reviewing_allows_the_calibrated_number(project: Path) -> None:
    with Workspace.open(project) as workspace:
        plan = a_plan("20250101-000000-alpha-aaaa")
        object.__setattr__(plan, "protocol", {"order": "random", "looks": 5})
        fill(workspace, plan, [["approve", "wait", "approve", "wait"]] * 7)
        stats = plain(
            statistics_documents.scores_document(
                results.stats(workspace.store, workspace.settings, Selection())
            )
        )
        calibrated = [one["calibrated"] for one in stats["diagnostics"]["partial_review"]]
        assert all(
            one["mean"] is not None and one["assumes"] == "random_review" for one in calibrated
        )
        compared = plain(
            statistics_documents.comparison_document(
                results.compare(workspace.store, workspace.settings, Selection(), "alice", "bob")
            )
        )
        assert compared["anytime"]["looks"]["planned"] == 5
        assert compared["anytime"]["looks"]["reached"] == 2


def test_margins_that_differ_between_runs_are_not_used_and_said_so(project: Path) -> None:
    with Workspace.open(project) as workspace:
        for number, margin in ((1, 0.03), (2, 0.05)):
            plan = a_plan(f"2025010{number}-000000-alpha-aaaa")
            object.__setattr__(plan, "margin", margin)
            fill(workspace, plan, [["approve", "approve"]] * 3)
        both = results.compare(
            workspace.store, workspace.settings, Selection(all_runs=True), "alice", "bob"
        )
        assert both.comparison.equivalence is None
        assert "margins_differ" in {one.code for one in both.basis.cautions}
        newest = results.compare(workspace.store, workspace.settings, Selection(), "alice", "bob")
        assert newest.basis.margin == 0.05
        comparison = results.compare(
            workspace.store, workspace.settings, Selection(runs=("20250101",)), "alice", "bob"
        )
        assert comparison.basis.margin == 0.03


def test_plan_cost_follows_the_cost_of_past_calls(project: Path) -> None:
    with Workspace.open(project) as workspace:
        fill(workspace, a_plan("20250101-000000-alpha-aaaa"), [["approve", "reject"]] * 6, calls=2)
        document = plain(
            statistics_documents.power_plan_document(
                power.plan(workspace.store, workspace.settings, Selection(), detect=0.01)
            )
        )
        assert document["cost_per_trial_usd"] == pytest.approx(0.002)
        assert document["reviews_per_trial"] == 1.0
        assert document["kept_share"] == 0.5
        way = document["pairs"][0]["more_tasks"]
        assert way["cost_usd"] == pytest.approx(way["new_trials"] * 0.002)
        assert way["reviews"] == way["new_trials"]


# Whatever was decided, every document is whole

DECIDED = st.sampled_from(["approve", "reject", "wait", "correct", "fail", "exempt", "rerun"])


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(DECIDED, min_size=1, max_size=4), min_size=1, max_size=7),
    st.sampled_from([None, 0.03, 0.5]),
    st.booleans(),
)
@pytest.mark.slow
def test_every_document_is_whole_whatever_was_decided(
    tmp_path_factory: pytest.TempPathFactory,
    decisions: list[list[str]],
    margin: float | None,
    joint: bool,
) -> None:
    with Workspace.open(tmp_path_factory.mktemp("w")) as workspace:
        fill(workspace, a_plan("20250101-000000-alpha-aaaa"), decisions, joint=joint)
        everything = Selection()
        stats = plain(
            statistics_documents.scores_document(
                results.stats(workspace.store, workspace.settings, everything)
            )
        )
        compared = plain(
            statistics_documents.comparison_document(
                results.compare(
                    workspace.store, workspace.settings, everything, "alice", "bob", margin=margin
                )
            )
        )
        ranked = plain(
            statistics_documents.ranking_document(
                results.rank(workspace.store, workspace.settings, everything, margin=margin)
            )
        )
        planned_ = plain(
            statistics_documents.power_plan_document(
                power.plan(workspace.store, workspace.settings, everything, detect=0.03)
            )
        )
        gated = plain(
            statistics_documents.gate_document(
                results.gate(workspace, everything, "alice", "bob", margin=margin or 0.1)
            )
        )
        for document in (stats, compared, ranked, planned_, gated):
            assert_whole(document)
        assert {"candidates", "excluded", "warnings", "diagnostics"} <= set(stats)
        assert all(set(one) >= ESTIMATED for one in stats["candidates"])
        assert set(compared) >= COMPARED
        assert compared["decision"] in {"better", "worse", "equivalent", "not_decided"}
        assert (compared["reason"] is not None) == (
            compared["ci95"] is None or compared["p_value"] is None
        )
        for one in stats["candidates"]:
            assert (one["reason"] is not None) == (
                one["mean"] is None or one["ci95"] is None
            ) or one["method"] == "bounded_identical"
        total = sum(len(of_task) for of_task in decisions)
        counted = max((one["n_trials"] for one in stats["candidates"]), default=0)
        gone = stats["excluded"]
        assert counted + gone["pending"] + gone["rejected"] + gone["failed"] == total


def assert_whole(document: Any) -> None:
    """Only what JSON has, and no number that is none."""
    match document:
        case dict():
            assert all(isinstance(key, str) for key in document)
            for value in document.values():
                assert_whole(value)
        case list():
            for value in document:
                assert_whole(value)
        case float():
            assert math.isfinite(document)
        case _:
            assert document is None or isinstance(document, (str, int, bool)), type(document)


def fill(
    workspace: Workspace,
    plan: Any,
    decisions: list[list[str]],
    *,
    joint: bool = True,
    calls: int = 0,
) -> None:
    """A run with a task for each list and a trial for each word in it, decided as the word says."""
    tasks = [a_task(f"t{number}") for number in range(len(decisions))]
    plans = [
        planned(task, trials=len(of_task))[0]
        for task, of_task in zip(tasks, decisions, strict=True)
    ]
    plans = [
        type(one)(task=one.task, position=place, trials=one.trials)
        for place, one in enumerate(plans)
    ]
    workspace.journal.open_run(plan, plans)
    for trial in workspace.journal.claim(RunId(plan.id), limit=1000):
        decide(
            workspace,
            trial,
            decisions[int(trial.task.id[1:])][trial.k - 1],
            joint=joint,
            calls=calls,
        )


def decide(workspace: Workspace, trial: Any, how: str, *, joint: bool, calls: int) -> None:
    from assay.domain.failure import Failure, Fault
    from assay.domain.run import Entry

    journal, desk = workspace.journal, workspace.decisions
    if how == "fail":
        failure = Failure(kind="timeout", fault=Fault.PROVIDER, detail="no answer")
        wait(journal.record(Entry(trial=trial.key, finished=True, failure=failure)))
        return
    place = int(trial.task.id[1:])
    scores = {
        "alice": 0.5 + 0.05 * ((place * 3 + trial.k) % 7),
        "bob": 0.4 + 0.1 * ((place + trial.k) % 5),
    }
    state = AssessmentState.EXEMPT if how == "exempt" else AssessmentState.PENDING
    sides: list[tuple[str | None, dict[str, float]]] = (
        [(None, scores)] if joint else [(name, {name: score}) for name, score in scores.items()]
    )
    for number, (candidate, result) in enumerate(sides):
        graded = grades(
            {name: dict.fromkeys(("integrity", "fitness"), score) for name, score in result.items()}
        )
        made = [a_call(trial) for _ in range(calls)]
        last = number == len(sides) - 1
        wait(
            journal.record(
                judged(trial, graded, candidate=candidate, state=state, finished=last, calls=made)
            )
        )
    rows = list(workspace.archive.assessments.matching(Selection(), trial=trial.key))
    match how:
        case "approve":
            desk.decide([a_decision(Verb.APPROVE, row.key) for row in rows])
        case "reject":
            desk.decide([a_decision(Verb.REJECT, row.key, reason="no") for row in rows])
        case "correct":
            desk.decide(
                [
                    a_decision(
                        Verb.CORRECT,
                        row.key,
                        corrections={(next(iter(row.assessment.scores)), None): 1.0},
                    )
                    for row in rows
                ]
            )
        case "rerun":
            again = journal.claim_trial(trial.key)
            for number, (candidate, result) in enumerate(sides):
                graded = grades(
                    {name: dict.fromkeys(("integrity", "fitness"), 0.9) for name in result}
                )
                wait(
                    journal.record(
                        judged(
                            again,
                            graded,
                            candidate=candidate,
                            attempt=2,
                            finished=number == len(sides) - 1,
                        )
                    )
                )
            fresh = [
                row
                for row in workspace.archive.assessments.matching(Selection(), trial=trial.key)
                if row.current
            ]
            desk.decide([a_decision(Verb.APPROVE, row.key) for row in fresh])


def test_order_and_looks_of_a_suite_become_the_run_s_protocol(
    assay: Command, server: ModelServer, project: Path
) -> None:
    (project / "suite.yaml").write_text(
        "name: planned\njudge: openai/judge-1\norder: random\nlooks: 5\ntrials: 6\ntasks:\n"
        + "".join(
            f"  - {{id: t{n}, snippets: {{ann: 'x = {n}', bob: 'y = {n}'}}}}\n" for n in range(3)
        ),
        "utf-8",
    )
    run = assay("run", "suite.yaml", "--json").document["run_id"]
    protocol = assay("show", run, "--json").document["protocol"]
    assert (protocol["order"], protocol["looks"]) == ("random", 5)
    waiting = [item["id"] for item in assay("review", "list", "--json").document["assessments"]]
    assay("review", "approve", *waiting[:12])
    document = assay("stats", "--json").document
    assert all(
        one["calibrated"]["reason"] is None for one in document["diagnostics"]["partial_review"]
    )
    assert document["looks"] == {
        "planned": 5,
        "reached": 3,
        "p_to_beat": pytest.approx(0.0084, abs=5e-4),
    }
    assert "look 3 of 5" in assay("stats").out.lower()


@pytest.mark.parametrize(
    ("line", "said"), [("looks: 0", "looks"), ("looks: 21", "looks"), ("order: chance", "order")]
)
def test_a_protocol_that_cannot_be_is_refused(
    assay: Command, project: Path, line: str, said: str
) -> None:
    (project / "suite.yaml").write_text(
        f"{line}\ntasks:\n  - {{id: a, prompt: b, expected: c}}\n", "utf-8"
    )
    refused = assay("validate", "suite.yaml")
    assert refused.code == 2
    assert f"suite.yaml:1 {said}" in refused.err + refused.out


def test_a_suite_s_review_protocol_is_printed_with_every_number(
    assay: Command, project: Path
) -> None:
    (project / "careful.yaml").write_text(
        "name: careful\nprotocol: {blind: 0.2, plants: 0.03}\ntrials: 3\nscore: exact\ntasks:\n"
        "  - {id: one, prompt: Say a., expected: a, snippets: {x: a, y: b}}\n",
        "utf-8",
    )
    assert assay("run", "careful.yaml").code == 0
    (result,) = assay("compare", "x", "y", "--json").document["protocol"]
    assert (result["mode"], result["blind"], result["plants"], result["version"]) == (
        "mixed",
        0.2,
        0.03,
        1,
    )
    assert "20% blind-first, 3% planted checks" in assay("stats").out


def test_a_protocol_is_switched_as_an_event_that_makes_a_new_version(
    assay: Command, project: Path
) -> None:
    (project / "plain.yaml").write_text(
        "name: plain\ntrials: 3\nscore: exact\ntasks:\n  - {id: one, prompt: Say a., expected: a, snippets: {x: a, y: b}}\n",
        "utf-8",
    )
    run = assay("run", "plain.yaml", "--json").document["run_id"]
    assert assay("review", "protocol", run, "--json").document["protocol"]["mode"] == "plain"
    switched = assay("review", "protocol", run, "--set", "blind=1", "--json").document["protocol"]
    assert (switched["mode"], switched["blind"], switched["version"]) == ("blind_first", 1.0, 2)
    assert (
        assay("review", "protocol", run, "--set", "blind=1", "--json").document["protocol"][
            "version"
        ]
        == 2
    )
    assert assay("stats", "--json").document["protocol"][0]["version"] == 2
    assert assay("review", "protocol", run, "--set", "blind=2").code == 2
    assert assay("review", "protocol", run, "--set", "blnd=0.2").code == 2
    assert assay("run", "plain.yaml").code == 0
    assert "mixed_protocols" in {
        one["code"] for one in assay("stats", "--all-runs", "--json").document["warnings"]
    }


@pytest.mark.parametrize("kind", ["forest", "ranks", "pairs", "scores"])
def test_a_chart_of_nothing_is_refused_and_writes_no_file(
    assay: Command, project: Path, kind: str
) -> None:
    refused = assay("chart", kind, "--output", project / "x.svg")
    assert refused.code == 2
    assert "No run matches, and no score counts, so there is nothing to draw." in refused.err
    assert not (project / "x.svg").exists()
