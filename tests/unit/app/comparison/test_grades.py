"""Grades beside each other from a real store: in portions as in one, filtered by criterion, across
a regrade, while reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pytest
from tests.contract.stores import WEIGHTS, a_plan, a_task, grades, judged, planned, wait

from assay.app.comparison import grade_summary
from assay.app.comparison.grade_rows import CompareBy, GradeFilter, GradeQuery
from assay.app.comparison.grades import GradeComparison
from assay.app.workspace import Workspace
from assay.domain.errors import UnknownName
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.review import Decision, Via
from assay.domain.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.app.comparison.grades import GradesPage

OLD, AGAIN = "20250101-000000-alpha-aaaa", "20250201-000000-alpha-bbbb"
TASKS = tuple(f"task-{n}" for n in range(8))
FIRST, SECOND = WEIGHTS


def graded(
    workspace: Workspace, run: str, judges: dict[str, Callable[[int], tuple[float, float]]]
) -> None:
    """Every trial graded by each judge, who gives both criteria of alice for the how-many-eth trial
    it is; bob gets .5.
    """
    for number, trial in enumerate(workspace.journal.claim(RunId(run), limit=100)):
        for place, (name, says) in enumerate(judges.items()):
            first, second = says(number)
            report = grades(
                {"alice": {FIRST: first, SECOND: second}, "bob": dict.fromkeys(WEIGHTS, 0.5)}
            )
            last = place == len(judges) - 1
            wait(
                workspace.journal.record(
                    judged(trial, report, grader=name, state=AssessmentState.EXEMPT, finished=last)
                )
            )


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(tmp_path, environment={}) as opened:
        opened.journal.open_run(
            a_plan(OLD, judges=("mild", "strict")), planned(*map(a_task, TASKS), trials=2)
        )
        graded(
            opened, OLD, {"mild": lambda n: (0.9, 0.9), "strict": lambda n: (0.9, 0.9 - 0.05 * n)}
        )
        yield opened


def rows(page: GradesPage) -> list[tuple[str, int, str, float | None]]:
    return [
        (row.task.task, row.k, row.candidate, None if row.gap is None else round(row.gap, 6))
        for row in page.rows
    ]


@pytest.mark.parametrize("by", [CompareBy.JUDGES, CompareBy.PEOPLE])
@pytest.mark.parametrize("only", list(GradeFilter))
def test_grades_read_in_pages_equal_one_reading(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, by: CompareBy, only: GradeFilter
) -> None:
    keys = [row.key for row in workspace.archive.assessments.matching(Selection())]
    assert len(keys) == 2 * 2 * len(TASKS)
    wanted = GradeQuery(run=OLD, by=by, only=only)
    whole = GradeComparison(workspace.store).page(wanted, limit=100)
    monkeypatch.setattr(grade_summary, "_PORTION", 3)
    parts = GradeComparison(workspace.store).page(wanted, limit=100)
    assert whole.figures is not None
    assert parts.figures is not None
    assert replace(parts.figures, summary=whole.figures.summary) == whole.figures
    assert (parts.figures.summary.n, parts.figures.summary.alike) == (
        whole.figures.summary.n,
        whole.figures.summary.alike,
    )
    assert parts.figures.summary.gap == pytest.approx(whole.figures.summary.gap)
    assert rows(parts) == rows(whole)


def test_the_widest_gap_comes_first_and_pages_go_on_where_they_ended(workspace: Workspace) -> None:
    beside, wanted = GradeComparison(workspace.store), GradeQuery(run=OLD)
    first, second = beside.page(wanted, limit=3), beside.page(wanted, start=3, limit=3)
    assert [row[:3] for row in rows(first)] == [
        ("task-7", 2, "alice"),
        ("task-7", 1, "alice"),
        ("task-6", 2, "alice"),
    ]
    assert rows(first)[-1][3] > rows(second)[0][3]  # type: ignore[operator]
    in_order = replace(wanted, by_gap=False)
    seen, after = [], None
    while True:
        page = beside.page(in_order, after=after, limit=3)
        seen += rows(page)
        if not page.more:
            break
        after = page.after
    assert [row[:3] for row in seen] == [
        (task, k, who) for task in TASKS for k in (1, 2) for who in ("alice", "bob")
    ]


def test_one_criterion_alone_decides_gaps_filters_and_figures(workspace: Workspace) -> None:
    beside = GradeComparison(workspace.store)
    same = beside.page(GradeQuery(run=OLD, criterion=FIRST.upper(), only=GradeFilter.DIFFER))
    assert same.rows == (), "the judges differ on the other criterion only"
    assert same.criteria == tuple(WEIGHTS)
    other = beside.page(GradeQuery(run=OLD, criterion=SECOND), limit=100)
    assert other.figures is not None
    assert other.rows[0].gap == pytest.approx(0.05 * 15)
    assert {
        grade.criterion
        for row in other.rows
        for sheet in row.sheets
        if sheet
        for grade in sheet.grades
    } == {SECOND}
    assert other.rows[0].sheets[1] is not None
    assert other.rows[0].sheets[1].score == pytest.approx(0.15)
    with pytest.raises(UnknownName, match=r"no criterion 'integrety'.*Did you mean 'integrity'"):
        beside.page(GradeQuery(run=OLD, criterion="integrety"))


def test_regrade_appears_beside_the_earlier_grade(workspace: Workspace) -> None:
    again = replace(
        a_plan(AGAIN, judges=("mild",), started="2025-02-01T00:00:00.000Z"), regrade_of=RunId(OLD)
    )
    workspace.journal.open_run(again, planned(*map(a_task, TASKS), trials=2))
    graded(workspace, AGAIN, {"mild": lambda n: (0.1, 0.1)})
    page = GradeComparison(workspace.store).page(GradeQuery(run=OLD, beside=AGAIN), limit=100)
    assert page.panes == (f"mild · {OLD}", f"strict · {OLD}", f"mild · {AGAIN}")
    assert len(page.rows) == 2 * 2 * len(TASKS)
    assert max(row.gap or 0 for row in page.rows) == pytest.approx(0.8)


def test_a_long_run_shows_its_rows_before_it_has_been_read(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grade_summary, "SMALL", 0)
    monkeypatch.setattr(grade_summary, "_WAIT_LARGE_S", 0.0)
    beside, held = GradeComparison(workspace.store), grade_summary.GradeFiguresCache._whole
    let_go = Event()

    def later(*args: object) -> object:
        let_go.wait(10)
        return held(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(grade_summary.GradeFiguresCache, "_whole", later)
    page = beside.page(GradeQuery(run=OLD), limit=4)
    assert (page.figures, page.by_gap) == (None, False)
    assert [row[:2] for row in rows(page)] == [
        ("task-0", 1),
        ("task-0", 1),
        ("task-0", 2),
        ("task-0", 2),
    ]
    let_go.set()
    monkeypatch.setattr(grade_summary, "_WAIT_LARGE_S", 10.0)
    page = beside.page(GradeQuery(run=OLD), limit=4)
    assert page.figures is not None
    assert page.by_gap
    assert rows(page)[0][0] == "task-7"
    beside.close()


def test_undone_item_leaves_the_rows_already_read(workspace: Workspace) -> None:
    beside, wanted = (
        GradeComparison(workspace.store),
        GradeQuery(run=OLD, by=CompareBy.PEOPLE, judge="strict", candidate="alice"),
    )
    page = beside.page(wanted)
    assert page.rows == (), "what nobody had to look at is no word of a person"
    pending = replace(a_plan("20250301-000000-beta-cccc", suite="beta", judges=("strict",)))
    workspace.journal.open_run(pending, planned(a_task("one"), trials=1))
    (trial,) = workspace.journal.claim(pending.id, limit=1)
    wait(
        workspace.journal.record(
            judged(trial, grades({"alice": dict.fromkeys(WEIGHTS, 0.4)}), grader="strict")
        )
    )
    wanted = GradeQuery(run=pending.id, by=CompareBy.PEOPLE)
    page = beside.page(wanted)
    assert page.figures is not None
    assert (page.rows, page.figures.waiting) == ((), 1)
    (row,) = workspace.archive.assessments.matching(Selection(runs=(pending.id,)))
    decision = Decision(
        assessment=row.key, verb=Verb.APPROVE, reviewer="r", via=Via.PAGE, displayed=True
    )
    workspace.decisions.decide([decision])
    page = beside.page(wanted)
    assert page.figures is not None
    assert (len(page.rows), page.figures.waiting) == (1, 0)
    workspace.decisions.decide([replace(decision, verb=Verb.UNDO)])
    assert beside.page(wanted).rows == ()
