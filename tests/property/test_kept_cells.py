"""Kept cells: whatever people decide, in whatever order, the report is the one that recomputation
gives.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from tests.contract.stores import (
    StandingClock,
    a_decision,
    a_plan,
    a_task,
    grades,
    judged,
    planned,
    wait,
)

from assay.analysis.tables import score_table
from assay.app.statistics.cell_cache import KeptCells
from assay.domain.assessment import Assessment
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.selection import Selection
from assay.statistics import compare, kept_cells, report
from assay.store.opening import Store, open_store

RUN = "20250101-000000-alpha-aaaa"
NAMES = ("alice", "bob", "carol")
LEVELS = (0.0, 0.5, 0.5, 0.75, 1.0)
"""Few levels, so that cells without spread, and extremes that are taken back, come up often."""


def a_store(
    folder: Path, *, judges: tuple[str, ...], joint: bool, n_tasks: int, seed: int
) -> Store:
    """A run in which every trial was judged and waits; more than 7 tasks come in 5 families."""
    draw = random.Random(seed)
    store = open_store(f"sqlite:///{folder / 'kept.db'}", clock=StandingClock())
    in_families = n_tasks > 7
    tasks = [
        a_task(
            f"t{number}", weight=1.0 + number % 2, family=f"f{number % 5}" if in_families else ""
        )
        for number in range(n_tasks)
    ]
    store.journal.open_run(a_plan(RUN, candidates=NAMES, judges=judges), planned(*tasks, trials=4))
    for trial in store.journal.claim(RunId(RUN), limit=1000):
        slots = (
            [(judge, None) for judge in judges]
            if joint
            else [(j, n) for j in judges for n in NAMES]
        )
        for place, (judge, candidate) in enumerate(slots):
            names = NAMES if candidate is None else (candidate,)
            entry = judged(
                trial,
                some_grades(draw, names),
                grader=judge,
                candidate=candidate,
                finished=place == len(slots) - 1,
            )
            wait(store.journal.record(entry))
    return store


def some_grades(draw: random.Random, names: tuple[str, ...]) -> Assessment:
    return grades(
        {name: dict.fromkeys(("integrity", "fitness"), draw.choice(LEVELS)) for name in names}
    )


def decide_at_random(store: Store, draw: random.Random, *, joint: bool) -> None:
    """One decision that the state of some assessment allows, or a rerun of its trial."""
    rows = [row for row in store.archive.assessments.matching(Selection()) if row.current]
    row = draw.choice(rows)
    if row.state is AssessmentState.PENDING:
        verb = draw.choice((Verb.APPROVE, Verb.APPROVE, Verb.REJECT, Verb.CORRECT))
        more: dict[str, Any] = {"reason": "because"}
        if verb is Verb.CORRECT:
            more["corrections"] = {
                (draw.choice(list(row.assessment.scores)), None): draw.choice(LEVELS)
            }
        store.decisions.decide([a_decision(verb, row.key, **more)])
    elif draw.random() < 0.7:
        store.decisions.decide([a_decision(Verb.UNDO, row.key)])
    else:
        trial = store.journal.claim_trial(row.trial)
        names = NAMES if joint else (row.candidate or "",)
        again = some_grades(draw, names)
        wait(
            store.journal.record(
                judged(
                    trial,
                    again,
                    grader=row.grader,
                    candidate=row.candidate,
                    attempt=row.attempt + 1,
                    rerun=a_decision(Verb.RERUN, 0, note="again"),
                )
            )
        )


def assert_same(kept: Any, anew: Any) -> None:
    """The same record, field by field, numbers to nine digits."""
    if isinstance(anew, float) and not isinstance(kept, bool) and kept is not None:
        assert kept == pytest.approx(anew, rel=1e-9, abs=1e-9)
    elif isinstance(anew, tuple):
        assert len(kept) == len(anew)
        for one, other in zip(kept, anew, strict=True):
            assert_same(one, other)
    elif hasattr(anew, "__dataclass_fields__"):
        for name, about in anew.__dataclass_fields__.items():
            if about.compare:
                assert_same(getattr(kept, name), getattr(anew, name))
    else:
        assert kept == anew


@pytest.mark.parametrize("steps", [15, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("judges", "joint", "n_tasks", "seed"),
    [
        (("j",), True, 3, 1),
        (("j",), True, 7, 2),
        (("j",), False, 3, 3),
        (("j", "k"), True, 2, 4),
        (("j", "k"), False, 6, 5),
        (("j",), True, 11, 6),
    ],
)
def test_any_sequence_of_decisions_gives_the_report_of_recomputation(
    tmp_path: Path, steps: int, judges: tuple[str, ...], joint: bool, n_tasks: int, seed: int
) -> None:
    draw = random.Random(seed)
    store = a_store(tmp_path, judges=judges, joint=joint, n_tasks=n_tasks, seed=seed)
    try:
        if n_tasks > 6:  # differences of joint trials then exist from the beginning
            rows = [
                row
                for row in store.archive.assessments.matching(Selection())
                if draw.random() < 0.7
            ]
            store.decisions.decide([a_decision(Verb.APPROVE, row.key) for row in rows])
        kept = KeptCells(store.archive, Selection())
        for step in range(steps):
            decide_at_random(store, draw, joint=joint)
            if step % 3 == 0:  # several decisions may lie between two looks
                kept.refresh()
                table = score_table(store.archive.scores.columns(Selection()))
                # One pair and its trials first; later, every pair is kept, because a report on the
                # same tasks needs all of them.
                assert_same(
                    compare(kept.cells, "bob", "alice"), compare(kept_cells(table), "bob", "alice")
                )
                assert_same(kept.report(), report(table))
                if step > steps - 6:
                    assert_same(kept.report(scope="these_tasks"), report(table, "these_tasks"))
        kept.refresh()
        assert not kept.refresh()
    finally:
        store.close()


def test_scores_that_come_without_a_decision_are_noticed(tmp_path: Path) -> None:
    store = a_store(tmp_path, judges=("j",), joint=True, n_tasks=2, seed=9)
    try:
        kept = KeptCells(store.archive, Selection())
        store.journal.open_run(
            a_plan("20250102-x", candidates=NAMES, judges=("j",)), planned(a_task("t0"), trials=2)
        )
        for trial in store.journal.claim(RunId("20250102-x"), limit=9):
            wait(
                store.journal.record(
                    judged(
                        trial,
                        some_grades(random.Random(1), NAMES),
                        state=AssessmentState.EXEMPT,
                        grader="j",
                    )
                )
            )
        kept.refresh()
        assert_same(kept.report(), report(score_table(store.archive.scores.columns(Selection()))))
        assert sum(one.n_trials for one in kept.report().estimates) == 6
    finally:
        store.close()


def test_decisions_outside_the_selection_change_nothing(tmp_path: Path) -> None:
    store = a_store(tmp_path, judges=("j",), joint=True, n_tasks=2, seed=9)
    try:
        only = Selection(tasks=("t0",))
        kept = KeptCells(store.archive, only)
        rows = list(store.archive.assessments.matching(Selection()))
        store.decisions.decide([a_decision(Verb.APPROVE, row.key) for row in rows])
        kept.refresh()
        assert_same(kept.report(), report(score_table(store.archive.scores.columns(only))))
    finally:
        store.close()
