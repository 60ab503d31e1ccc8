"""Contract of stored calibrations: each is kept unchanged, versions count by judge, the newest is
returned.
"""

from __future__ import annotations

from dataclasses import replace

from assay.domain.calibration_record import CalibrationRecord, JudgeIdentity, Tier
from assay.store.opening import Store

IDENTITY = JudgeIdentity(
    model="openai/judge", prompt="a" * 32, rubric="b" * 32, parameters="c" * 32
)
RECORD = CalibrationRecord(
    identity=IDENTITY,
    tier=Tier.FAIR,
    at="2025-01-02T03:04:05.678Z",
    document={"n": 14, "samples": [{"id": "ü"}]},
)


def test_a_calibration_comes_back_as_it_was_kept(store: Store) -> None:
    kept = store.calibrations.keep(RECORD)
    assert kept == replace(RECORD, version=1, number=kept.number)
    assert kept.number > 0
    assert store.calibrations.records() == (kept,)


def test_calibration_versions_count_per_identity_newest_is_current(store: Store) -> None:
    other = replace(RECORD, identity=replace(IDENTITY, rubric="d" * 32))
    for record in (RECORD, other, replace(RECORD, tier=Tier.GOOD)):
        store.calibrations.keep(record)
    result = store.calibrations.records()
    assert [(one.identity.rubric[0], one.version, one.tier) for one in result] == [
        ("b", 2, Tier.GOOD),
        ("d", 1, Tier.FAIR),
        ("b", 1, Tier.FAIR),
    ]
    assert [one.version for one in store.calibrations.records(newest_only=True)] == [2, 1]
    assert store.calibrations.records(model="openai/another") == ()


def test_a_calibration_is_found_by_its_number_and_lists_go_on_below_one(store: Store) -> None:
    other = replace(RECORD, identity=replace(IDENTITY, rubric="d" * 32))
    first, second, third = (store.calibrations.keep(record) for record in (RECORD, other, RECORD))
    assert store.calibrations.record(second.number) == second
    assert store.calibrations.record(third.number + 1) is None
    assert store.calibrations.records(limit=2) == (third, second)
    assert store.calibrations.records(before=second.number, limit=2) == (first,)
    assert store.calibrations.newest_numbers() == {
        IDENTITY: third.number,
        other.identity: second.number,
    }
