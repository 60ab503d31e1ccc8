"""Whatever control items a store holds and whatever is decided on them, everything that counts
stays as it is without them.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from hypothesis import HealthCheck, example, given, settings, strategies as st
from tests.contract.rows import all_rows, assert_derived_agrees
from tests.contract.stores import (
    StandingClock,
    a_decision,
    a_plan,
    a_task,
    judged,
    plain_grades,
    planned,
    wait,
)
from tests.support.examples import examples

from assay.domain.control_items import AttemptOrigin, CheckOrigin, ControlItem, RepeatOrigin
from assay.domain.errors import Refused
from assay.domain.event_log import EventFilter
from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.lifecycle import COUNTS, AssessmentPurpose, AssessmentState, Verb
from assay.domain.selection import Selection
from assay.store.opening import Store, open_store

RUN = RunId(a_plan().id)
EVERYTHING = Selection()
OF_CONTROL = ("control_item", "control_event", "observation", "secret", "key_source")
"""Tables that may differ: those of control items, and the source of keys, from which they take
theirs.
"""

ORIGINS = (
    CheckOrigin(how="known_good"),
    CheckOrigin(how="moved_score", places=(("alice", "integrity"),), vouched_by="own"),
    RepeatOrigin(
        scores={"alice": 0.5, "bob": None},
        since=3,
        after_items=50.0,
        due="2026-01-01T00:00:00+00:00",
    ),
)
Step: TypeAlias = tuple[str, int, Verb]
VERBS = st.sampled_from((Verb.APPROVE, Verb.CORRECT, Verb.REJECT, Verb.UNDO))
STEPS = st.lists(
    st.tuples(st.sampled_from(("real", "put", "control", "again")), st.integers(0, 7), VERBS),
    max_size=12,
)


def a_store(folder: Path, name: str) -> Store:
    """Four judged trials of one run: three that wait, and one that was approved."""
    store = open_store(f"sqlite:///{folder / name}", clock=StandingClock())
    store.journal.open_run(a_plan(), planned(a_task(), trials=4))
    for n, trial in enumerate(store.journal.claim(RUN, limit=4)):
        wait(store.journal.record(judged(trial, plain_grades(0.2 * n))))
    store.decisions.decide([a_decision(Verb.APPROVE, keys_of(store)[0])])
    return store


def keys_of(store: Store) -> list[AssessmentKey]:
    return [row.key for row in store.archive.assessments.matching(EVERYTHING)]


def decided(
    store: Store, key: AssessmentKey, verb: Verb, n: int, purpose: AssessmentPurpose
) -> None:
    """One decision, which may be refused."""
    more: dict[str, Any] = {"corrections": {("alice", None): 0.9}} if verb is Verb.CORRECT else {}
    decision = a_decision(verb, key, idempotency=f"{purpose}-{n}", reason="why", **more)
    with suppress(Refused):
        store.decisions.decide([replace(decision, purpose=purpose)])


def carried_out(store: Store, steps: list[Step], *, control: bool) -> None:
    """The steps on real assessments and, if asked for, those on control items between them."""
    reals, items = keys_of(store), list[ControlItem]()
    for n, (what, place, verb) in enumerate(steps):
        if what == "real":
            decided(store, reals[place % len(reals)], verb, n, AssessmentPurpose.WORK)
        elif control and what == "put":
            items.append(
                store.control_items.put(
                    an_item(reals[place % len(reals)], ORIGINS[place % len(ORIGINS)])
                )
            )
        elif items and what == "control":
            decided(store, items[place % len(items)].key, verb, n, AssessmentPurpose.CONTROL)
        elif items and what == "again":
            item = items[place % len(items)]
            attempt = replace(
                an_item(item.source, AttemptOrigin(first=item.first)), attempt=item.attempt + 1
            )
            wish = replace(
                a_decision(Verb.RERUN, item.key, idempotency=f"again-{n}"),
                purpose=AssessmentPurpose.CONTROL,
            )
            store.control_items.supersede(wish, attempt)


def an_item(source: AssessmentKey, origin: Any) -> ControlItem:
    return ControlItem(
        key=AssessmentKey(0),
        run_id=RUN,
        source=source,
        reviewer="ann",
        made="2026-01-01T00:00:00Z",
        judged=plain_grades(0.6),
        origin=origin,
    )


def readings(store: Store) -> dict[str, Any]:
    """What every reader of results says: statistics, counts, lists, exports, logs and the record of
    the results folder.
    """
    archive, log = store.archive, store.event_log
    columns = archive.scores.columns(EVERYTHING)
    seeker = store.leases.seeker(EVERYTHING)
    return {
        "scores": {
            name: np.asarray(getattr(columns, name)).tolist()
            for name in ("score", "task", "candidate")
        },
        "rows": list(archive.exports.score_rows(EVERYTHING, everything=True)),
        "excluded": archive.scores.excluded(EVERYTHING),
        "runs": archive.runs.matching(EVERYTHING),
        "totals": archive.runs.totals(EVERYTHING),
        "tally": archive.assessments.tally(EVERYTHING),
        "assessments": [
            (row.key, row.state, row.assessment) for row in archive.assessments.matching(EVERYTHING)
        ],
        "facts": archive.rubrics.criterion_facts(EVERYTHING),
        "moments": repr(archive.scores.criterion_moments(EVERYTHING)),
        "details": list(archive.exports.assessments(EVERYTHING)),
        "took_part": archive.scores.took_part(EVERYTHING),
        "record": list(archive.records.whole(RUN)),
        "events": list(archive.exports.events(EVERYTHING)),
        "log": log.portion(EventFilter()),
        "chain": (log.newest(), log.check(0), log.first_broken()),
        "reviewers": log.reviewers(),
        "queue": [seeker(key) for key in range(8)],
    }


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
@example([("put", 0, Verb.APPROVE), ("control", 0, Verb.APPROVE), ("real", 1, Verb.APPROVE)])
@example(
    [
        ("put", 1, Verb.APPROVE),
        ("control", 0, Verb.CORRECT),
        ("again", 0, Verb.UNDO),
        ("real", 2, Verb.REJECT),
    ]
)
def test_results_do_not_change_with_control_items(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with_control, without = a_store(folder, "with.db"), a_store(folder, "without.db")
        carried_out(with_control, steps, control=True)
        carried_out(without, steps, control=False)
        assert readings(with_control) == readings(without)
        with_control.close()
        without.close()
        urls = [f"sqlite:///{folder / file}" for file in ("with.db", "without.db")]
        rows = [all_rows(url, without=OF_CONTROL) for url in urls]
        assert rows[0] == rows[1], "no row of any other table knows of them"
        assert_derived_agrees(urls[0])


def test_control_items_are_decided_by_the_rules_for_real_ones(tmp_path: Path) -> None:
    store = a_store(tmp_path, "alike.db")
    real = keys_of(store)[1]
    item = store.control_items.put(an_item(real, ORIGINS[0]))
    for n, verb in enumerate(
        (Verb.UNDO, Verb.REJECT, Verb.APPROVE, Verb.UNDO, Verb.CORRECT, Verb.CORRECT)
    ):
        decided(store, real, verb, n, AssessmentPurpose.WORK)
        decided(store, item.key, verb, n, AssessmentPurpose.CONTROL)
    (after,) = store.control_items.read(keys=[item.key])
    detail = store.archive.assessments.detail(real)
    assert after.state is detail.row.state is AssessmentState.CORRECTED
    assert after.state in COUNTS, "which is why they stand apart"
    events = store.control_items.events([item.key])[item.key]
    assert [(e.decision.verb, e.before, e.after) for e in events] == [
        (e.decision.verb, e.before, e.after) for e in detail.events
    ]
    store.close()
