"""Names mended and undone: statistics follow, what was written down stays, and nothing is lost on
the way back.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.contract.rows import all_rows, assert_derived_agrees, fold_as_before
from tests.contract.stores import (
    a_call,
    a_decision,
    a_plan,
    a_task,
    judged,
    plain_grades,
    planned,
    wait,
)

from assay.domain.assessment import Response
from assay.domain.errors import Refused, UnknownName
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.renaming import NameVerb
from assay.domain.selection import Selection
from assay.store.opening import Store

OLD, NEW, LATER = (
    "20250101-000000-alpha-aaaa",
    "20250201-000000-alpha-bbbb",
    "20250301-000000-alpha-cccc",
)
WHO = {"reviewer": "rita", "reason": "a typo"}
KEPT = ("candidate_event", "candidate_alias")


def a_run(store: Store, run: str, candidates: tuple[str, ...], value: float) -> None:
    plan = a_plan(
        run, suite="alpha", started=f"{run[:4]}-{run[4:6]}-01T00:00:00.000Z", candidates=candidates
    )
    store.journal.open_run(plan, planned(a_task(snippets={candidates[1]: "own"}), trials=2))
    for trial in store.journal.claim(RunId(run), limit=9):
        result = Response(candidate=candidates[0], text=f"by {candidates[0]}")
        calls = [a_call(trial, candidate=candidates[0])]
        entry = judged(
            trial,
            plain_grades(value, candidates),
            state=AssessmentState.EXEMPT,
            responses=[result],
            calls=calls,
        )
        wait(store.journal.record(entry))


@pytest.fixture
def misspelt(store: Store) -> Store:
    """An old run of `alcie` and bob, and a newer one of alice and carol."""
    a_run(store, OLD, ("alcie", "bob"), 0.2)
    a_run(store, NEW, ("alice", "carol"), 0.8)
    return store


def means(store: Store) -> dict[str, float]:
    columns = store.archive.scores.columns(Selection())
    return {
        name: round(float(columns.score[columns.candidate == code].mean()), 6)
        for code, name in enumerate(columns.candidates)
    }


def rows(url: str) -> dict[str, list[tuple[object, ...]]]:
    return all_rows(url, without=KEPT)


def test_a_merge_counts_both_as_one_and_undo_takes_it_back(misspelt: Store, url: str) -> None:
    before, details = rows(url), list(misspelt.archive.exports.assessments(Selection()))
    event = misspelt.renaming.merge("Alcie", "alice", **WHO)
    assert (event.verb, event.source, event.target, event.runs) == (
        NameVerb.MERGE,
        "alcie",
        "alice",
        (OLD,),
    )
    assert means(misspelt) == {"alice": 0.5, "bob": 0.2, "carol": 0.8}
    assert list(misspelt.archive.exports.assessments(Selection())) == details
    assert [run.candidates for run in misspelt.archive.runs.matching()] == [
        ("alice", "carol"),
        ("alice", "bob"),
    ]
    assert_derived_agrees(url)
    back = misspelt.renaming.undo(event.id, **WHO)
    assert back.undoes == event.id
    assert rows(url) == before
    assert means(misspelt) == {"alcie": 0.2, "bob": 0.2, "alice": 0.8, "carol": 0.8}


def test_rename_changes_the_name_and_keeps_stored_texts(misspelt: Store, url: str) -> None:
    before, details = rows(url), list(misspelt.archive.exports.assessments(Selection()))
    event = misspelt.renaming.rename("bob", "Robert", **WHO)
    assert set(means(misspelt)) == {"alcie", "Robert", "alice", "carol"}
    assert list(misspelt.archive.exports.assessments(Selection())) == details
    (robert,) = [one for one in misspelt.renaming.candidates() if one.name == "Robert"]
    assert (robert.written, robert.runs) == (("bob",), 1)
    misspelt.renaming.undo(event.id, **WHO)
    assert rows(url) == before


def test_a_mended_name_goes_on_to_mean_the_candidate(misspelt: Store, url: str) -> None:
    event = misspelt.renaming.merge("alcie", "alice", **WHO)
    a_run(misspelt, LATER, ("alcie", "dora"), 0.5)
    assert means(misspelt)["alice"] == 0.5
    assert "alcie" not in means(misspelt)
    misspelt.renaming.undo(event.id, **WHO)
    assert (means(misspelt)["alcie"], means(misspelt)["alice"]) == (0.35, 0.8)
    assert_derived_agrees(url)


def test_a_correction_after_a_merge_still_finds_its_candidate(misspelt: Store, url: str) -> None:
    misspelt.renaming.merge("alcie", "alice", **WHO)
    trial = next(iter(misspelt.archive.trials.matching(Selection(runs=(OLD,)))))
    again = misspelt.journal.claim_trial(trial.key)
    assert again.responses["alcie"].text == "by alcie"
    wait(misspelt.journal.record(judged(again, plain_grades(0.4, ("alcie", "bob")), attempt=2)))
    key = max(row.key for row in misspelt.archive.assessments.matching(Selection(runs=(OLD,))))
    misspelt.decisions.decide([a_decision(Verb.CORRECT, key, corrections={("alcie", None): 1.0})])
    assert misspelt.archive.assessments.detail(key).row.assessment.scores["alcie"] == 1.0
    assert means(misspelt)["alice"] == pytest.approx((1.0 + 0.2 + 0.8 + 0.8) / 4)
    assert_derived_agrees(url)


def test_rename_that_would_lose_data_is_refused(misspelt: Store, url: str) -> None:
    before = rows(url)
    renaming = misspelt.renaming
    with pytest.raises(Refused, match="took part in run"):
        renaming.merge("alcie", "bob", **WHO)
    with pytest.raises(Refused, match="already one candidate"):
        renaming.merge("ALICE", "alice", **WHO)
    with pytest.raises(Refused, match="merge"):
        renaming.rename("alcie", "alice", **WHO)
    with pytest.raises(UnknownName, match="alcie"):
        renaming.rename("alciee", "x", **WHO)
    with pytest.raises(UnknownName):
        renaming.undo(77, **WHO)
    assert rows(url) == before
    merged = renaming.merge("alcie", "alice", **WHO)
    called = renaming.rename("alice", "Alice A.", **WHO)
    with pytest.raises(Refused, match="replaced by another name"):
        renaming.rename("bob", "alcie", **WHO)
    with pytest.raises(Refused, match=f"Undo {called.id} first"):
        renaming.undo(merged.id, **WHO)
    renaming.undo(called.id, **WHO)
    with pytest.raises(Refused, match="already"):
        renaming.undo(called.id, **WHO)
    renaming.undo(merged.id, **WHO)
    assert rows(url) == before
    assert [event.undone_by for event in renaming.events()] == [4, 3, None, None]


def test_calls_are_summed_by_model(misspelt: Store) -> None:
    (result,) = misspelt.archive.calls.totals(RunId(OLD))
    assert (result.role, result.name, result.calls, result.input_tokens) == (
        "candidate",
        "alcie",
        2,
        20,
    )


def test_a_store_of_an_earlier_version_still_knows_its_candidates(
    store: Store, url: str, opened: Callable[[], Store]
) -> None:
    a_run(store, OLD, ("ｂｏｔ", "bob"), 0.2)
    fold_as_before(url, "bot", "ｂｏｔ")
    fresh = opened()
    a_run(fresh, NEW, ("ｂｏｔ", "carol"), 0.8)
    assert means(fresh) == {"ｂｏｔ": 0.5, "bob": 0.2, "carol": 0.8}
    (bot,) = [each for each in fresh.renaming.candidates() if each.name == "ｂｏｔ"]
    assert (bot.written, bot.runs) == ((), 2)
    # In that version, `bot` was another candidate, and both stay apart.
    fresh.renaming.rename("bob", "bot", **WHO)
    assert {each.name for each in fresh.renaming.candidates()} == {"ｂｏｔ", "bot", "carol"}
