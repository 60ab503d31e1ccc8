"""Contract of approvals: each counted grade that rests on a person is counted once, by how the
decision came about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.contract.stores import a_decision, a_plan, a_task, judged, planned, wait

from assay.app.imports.importer import import_paths
from assay.app.imports.options import ImportOptions
from assay.app.workspace import Workspace
from assay.domain.lifecycle import AssessmentState, Policy, Verb
from assay.domain.review import Approvals, Decision, Via
from assay.domain.selection import AssessmentRow, Selection
from assay.store.opening import Store

RUN = a_plan().id


def with_assessments(store: Store, n: int) -> list[AssessmentRow]:
    store.journal.open_run(a_plan(), planned(a_task(), trials=n))
    for trial in store.journal.claim(RUN, limit=n):
        wait(store.journal.record(judged(trial)))
    return list(store.archive.assessments.matching(Selection()))


def decision(verb: Verb, row: AssessmentRow, via: Via, *, displayed: bool, **more: Any) -> Decision:
    return replace(a_decision(verb, row.key, **more), via=via, displayed=displayed)


@pytest.mark.quick_postgresql
def test_approvals_are_counted_by_the_road_of_their_last_decision(store: Store) -> None:
    rows = with_assessments(store, 8)
    store.decisions.decide(
        [
            decision(Verb.APPROVE, rows[0], Via.PAGE, displayed=True),
            decision(Verb.APPROVE, rows[1], Via.TERMINAL, displayed=True),
            decision(
                Verb.CORRECT,
                rows[2],
                Via.SCRIPT,
                displayed=False,
                corrections={("alice", None): 0.5},
                reason="x",
            ),
            decision(Verb.APPROVE, rows[3], Via.PAGE, displayed=False),
            decision(Verb.APPROVE, rows[4], Via.IMPORT, displayed=False),
            decision(Verb.REJECT, rows[5], Via.PAGE, displayed=True, reason="x"),
            decision(Verb.APPROVE, rows[6], Via.SCRIPT, displayed=False),
            decision(Verb.UNDO, rows[6], Via.SCRIPT, displayed=False),
            decision(Verb.APPROVE, rows[6], Via.PAGE, displayed=True),
        ]
    )
    assert store.archive.scores.approvals(Selection()) == Approvals(shown=3, scripted=2, imported=1)
    assert store.archive.scores.approvals_by_run([RUN]) == {
        RUN: Approvals(shown=3, scripted=2, imported=1)
    }


@pytest.mark.quick_postgresql
def test_the_first_scripted_approvals_are_named_and_no_others(store: Store) -> None:
    rows = with_assessments(store, 6)
    store.decisions.decide(
        [
            decision(Verb.APPROVE, rows[0], Via.PAGE, displayed=True),
            decision(Verb.APPROVE, rows[1], Via.SCRIPT, displayed=False),
            decision(Verb.APPROVE, rows[2], Via.IMPORT, displayed=False),
            decision(Verb.REJECT, rows[3], Via.SCRIPT, displayed=False, reason="x"),
            decision(Verb.APPROVE, rows[4], Via.SCRIPT, displayed=False),
            decision(Verb.APPROVE, rows[5], Via.TERMINAL, displayed=False),
        ]
    )
    scores = store.archive.scores
    assert scores.scripted(Selection(), limit=5) == (rows[1].key, rows[4].key, rows[5].key)
    assert scores.scripted(Selection(), limit=2) == (rows[1].key, rows[4].key)
    assert scores.unreviewed(Selection()) == 0


@pytest.mark.quick_postgresql
def test_exempt_grades_are_unreviewed_and_not_approved(store: Store) -> None:
    store.journal.open_run(replace(a_plan(), policy=Policy.NONE), planned(a_task(), trials=3))
    for trial in store.journal.claim(RUN, limit=3):
        wait(store.journal.record(judged(trial, state=AssessmentState.EXEMPT)))
    scores = store.archive.scores
    assert scores.unreviewed(Selection()) == 3
    assert scores.scripted(Selection(), limit=5) == ()
    assert scores.approvals(Selection()) == Approvals()
    assert scores.approvals_by_run([RUN]) == {RUN: Approvals()}


@pytest.mark.quick_postgresql
def test_replaced_approvals_are_counted_by_their_road(store: Store) -> None:
    rows = with_assessments(store, 4)
    store.decisions.decide(
        [
            decision(Verb.APPROVE, rows[0], Via.PAGE, displayed=True),
            decision(Verb.APPROVE, rows[1], Via.SCRIPT, displayed=False),
            decision(Verb.APPROVE, rows[2], Via.IMPORT, displayed=False),
        ]
    )
    newer = replace(
        a_plan("20250301-000000-arithmetic-cccc", started="2025-03-01T00:00:00.000Z"),
        regrade_of=RUN,
    )
    store.journal.open_run(newer, planned(a_task(), trials=4))
    for trial in store.journal.claim(newer.id, limit=4):
        wait(store.journal.record(judged(trial, state=AssessmentState.EXEMPT)))
    (replaced,) = store.archive.scores.replaced(Selection())
    assert (replaced.run, replaced.trials) == (RUN, 3)
    assert replaced.approvals == Approvals(shown=1, scripted=1, imported=1)
    assert store.archive.scores.approvals(Selection()) == Approvals()


def test_filters_apply_to_approvals_as_to_scores(store: Store) -> None:
    rows = with_assessments(store, 2)
    store.decisions.decide([a_decision(Verb.APPROVE, row.key) for row in rows])
    by_task = store.archive.scores.approvals(Selection(tasks=(rows[0].task,)))
    by_criterion = store.archive.scores.approvals(Selection(criteria=("integrity",)))
    by_judge = store.archive.scores.approvals(Selection(judges=(rows[0].grader,)))
    assert by_task == by_criterion == by_judge == Approvals(scripted=2)


def test_the_stater_of_a_reviewers_name_is_stored_beside_the_name(store: Store) -> None:
    (row,) = with_assessments(store, 1)
    store.decisions.decide([replace(a_decision(Verb.APPROVE, row.key), stated_by="root")])
    (event,) = store.archive.assessments.detail(row.key).events
    assert (event.decision.reviewer, event.decision.stated_by) == ("rita", "root")
    assert event.decision.reviewer_words == "rita, stated by root"
    assert store.event_log.first_broken() is None


@pytest.fixture
def workspace(url: str, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(
        tmp_path, environment={}, options={"store": url, "results": "off"}
    ) as opened:
        yield opened


def test_decisions_stated_by_an_imported_table_count_as_imported(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "scores.csv"
    rows = [
        "t1,a,1,0.5,j,approved",
        "t2,a,1,0.5,j,corrected",
        "t3,a,1,0.5,j,rejected",
        "t4,a,1,0.5,j,",
        "t5,a,1,0.5,,",
    ]
    path.write_text("\n".join(["task,candidate,trial,score,judge,state", *rows]) + "\n", "utf-8")
    import_paths(workspace, [path], ImportOptions(copy=False))
    approvals = workspace.archive.scores.approvals
    assert approvals(Selection()) == Approvals(imported=2)
    assert approvals(Selection(tasks=("t1",))) == Approvals(imported=1)
    assert _of_only_run(workspace) == Approvals(imported=2)


def test_grades_that_people_gave_before_the_import_count_as_imported(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "preferences.jsonl"
    line = '{{"prompt": "question {n}", "chosen": "yes {n}", "rejected": "no {n}"}}\n'
    path.write_text("".join(line.format(n=n) for n in range(3)), "utf-8")
    import_paths(workspace, [path], ImportOptions(copy=False))
    assert workspace.archive.scores.approvals(Selection()) == Approvals(imported=3)
    assert _of_only_run(workspace) == Approvals(imported=3)


def _of_only_run(workspace: Workspace) -> Approvals:
    (summary,) = workspace.archive.runs.matching(Selection())
    return workspace.archive.scores.approvals_by_run([summary.id])[summary.id]
