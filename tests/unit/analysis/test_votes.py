"""Arena votes: ties count half, "both bad" counts for neither, side preference shows, judges are
compared with people.
"""

from __future__ import annotations

from typing import Any

import pytest

from assay.analysis.votes import judge_agreement, vote_findings
from assay.domain.arena import Choice, Pairing, Vote
from assay.domain.identifiers import RunId
from assay.statistics.preferences import bradley_terry

NAMES = ("ann", "bob", "eve")
L, R, E, BAD = Choice.LEFT, Choice.RIGHT, Choice.EQUAL, Choice.BOTH_BAD


def a_vote(left: int, right: int, choice: Choice, **more: Any) -> Vote:
    by_name: dict[str, Any] = {"task": "page", "reviewer": "a person", **more}
    return Vote(
        run_id=RunId("run"),
        pairing=Pairing(position=0, k=1, left=left, right=right),
        choice=choice,
        idempotency_key="",
        **by_name,
    )


VOTES = [
    *(a_vote(0, 1, L) for _ in range(6)),
    *(a_vote(1, 0, L) for _ in range(3)),
    a_vote(0, 1, E),
    a_vote(1, 0, E),
    *(a_vote(1, 2, L) for _ in range(5)),
    *(a_vote(2, 1, L) for _ in range(2)),
    a_vote(0, 2, L),
    a_vote(2, 0, R),
    a_vote(0, 2, R),
    a_vote(0, 1, BAD),
    a_vote(2, 1, BAD),
]


def test_strengths_are_those_of_bradley_terry_with_ties_as_half_a_win() -> None:
    result = vote_findings(VOTES, NAMES)
    counted = [vote for vote in VOTES if vote.choice is not BAD]
    points = {L: 1.0, R: 0.0, E: 0.5}
    expected = bradley_terry(
        [NAMES[vote.pairing.left] for vote in counted],
        [NAMES[vote.pairing.right] for vote in counted],
        [points[vote.choice] for vote in counted],
    )
    by_name = {one.candidate: one for one in result.strengths}
    assert [by_name[str(name)].strength for name in expected.items] == pytest.approx(
        list(expected.log_strength)
    )
    assert [one.candidate for one in result.strengths] == ["ann", "bob", "eve"]
    for one in result.strengths:
        assert one.ci95 is not None
        assert one.strength is not None
        assert one.preferred_ci95 is not None
        assert one.ci95[0] < one.strength < one.ci95[1]
        assert 0 < one.preferred_ci95[0] < one.preferred_ci95[1] < 1
    assert result.method == "information_z"


def test_both_bad_counts_for_neither_and_is_counted_apart() -> None:
    with_bad, without = (
        vote_findings(VOTES, NAMES),
        vote_findings([v for v in VOTES if v.choice is not BAD], NAMES),
    )
    assert [one.strength for one in with_bad.strengths] == [
        one.strength for one in without.strengths
    ]
    assert (with_bad.votes, with_bad.compared, with_bad.both_bad) == (len(VOTES), len(VOTES) - 2, 2)
    assert {one.candidate: one.both_bad for one in with_bad.strengths} == {
        "ann": 1,
        "bob": 2,
        "eve": 1,
    }
    first = with_bad.pairs[0]
    assert (first.a, first.b, first.wins, first.ties, first.losses, first.both_bad) == (
        "ann",
        "bob",
        6,
        2,
        3,
        1,
    )
    assert first.preferred == pytest.approx(7 / 11)


def test_side_preference_is_shown_for_a_one_sided_voter_only() -> None:
    lazy = vote_findings([a_vote(n % 2, 1 - n % 2, L) for n in range(40)], NAMES[:2])
    assert lazy.left is not None
    assert lazy.left.mean == 1
    assert lazy.side_is_even is False
    fair = vote_findings(
        [a_vote(n % 2, 1 - n % 2, R if n % 4 < 2 else L) for n in range(40)], NAMES[:2]
    )
    assert fair.side_is_even is True
    assert vote_findings([a_vote(0, 1, E)], NAMES[:2]).side_is_even is None


def test_unbeaten_candidate_has_no_strength_and_a_reason() -> None:
    result = vote_findings([a_vote(0, 1, L), a_vote(1, 2, L), a_vote(2, 1, L)], NAMES)
    assert {one.candidate: one.strength is None for one in result.strengths} == {
        "bob": False,
        "eve": False,
        "ann": True,
    }
    assert result.reason == "separation"
    assert vote_findings([], NAMES).reason == "no_comparisons"
    assert all(one.strength is None for one in vote_findings([], NAMES).strengths)
    assert all(one.strength is None for one in vote_findings([a_vote(0, 1, BAD)], NAMES).strengths)


def test_votes_on_several_tasks_are_clustered_by_task() -> None:
    votes = [a_vote(n % 2, 1 - n % 2, L if n % 3 else R, task=f"task {n % 5}") for n in range(30)]
    assert vote_findings(votes, NAMES[:2]).method == "sandwich_t"


def test_vote_range_with_few_tasks_is_never_narrower_than_independent() -> None:
    choices = [L, R, E, L]
    few = [a_vote(0, 1, choices[n % 4], task=f"task {n // 4}") for n in range(12)]
    alone = [a_vote(0, 1, choices[n % 4]) for n in range(12)]
    clustered, independent = vote_findings(few, NAMES[:2]), vote_findings(alone, NAMES[:2])
    assert (clustered.method, independent.method) == ("sandwich_t", "information_z")
    for one, other in zip(clustered.strengths, independent.strengths, strict=True):
        assert one.preferred_ci95 == pytest.approx(other.preferred_ci95)
    low, high = clustered.pairs[0].difference_ci95 or (0.5, 0.5)
    assert high - low > 0.4


def test_a_judge_is_held_beside_the_people() -> None:
    result = judge_agreement("j", [(L, L), (R, R), (L, R), (E, L), (R, R), (L, L)])
    assert result is not None
    assert result.agreed.mean == pytest.approx(4 / 6)
    low, high = result.agreed.wilson
    assert low < 4 / 6 < high
    assert result.kappa.kappa is not None
    assert judge_agreement("j", []) is None


def test_telling_votes_and_votes_cast_anew_are_counted() -> None:
    result = vote_findings(
        [a_vote(0, 1, L, telling=True), a_vote(0, 1, R, again=True, reviewer="b")], NAMES
    )
    assert (result.telling, result.again, result.reviewers, result.tasks) == (1, 1, 2, 1)


def test_a_share_of_few_votes_decides_nothing_and_every_place_stays_open() -> None:
    result = vote_findings([a_vote(0, 1, L), a_vote(0, 1, L), a_vote(1, 0, L)], NAMES[:2])
    (pair,) = result.pairs
    assert pair.preferred == pytest.approx(2 / 3)
    assert (pair.compared, pair.decision) == (3, "not_decided")
    assert [(one.rank_low, one.rank_high) for one in result.strengths] == [(1, 2), (1, 2)]


def test_many_votes_decide_and_the_places_say_so() -> None:
    votes = [
        a_vote(
            *(two if n % 2 else two[::-1]), (L if n % 2 else R) if n % 10 else (R if n % 2 else L)
        )
        for two in ((0, 1), (0, 2))
        for n in range(100)
    ]
    votes += [a_vote(1, 2, L if n % 2 else R) for n in range(20)]
    result = vote_findings(votes, NAMES)
    assert {(one.a, one.b): one.decision for one in result.pairs} == {
        ("ann", "bob"): "a",
        ("ann", "eve"): "a",
        ("bob", "eve"): "not_decided",
    }
    assert {one.candidate: (one.rank_low, one.rank_high) for one in result.strengths} == {
        "ann": (1, 1),
        "bob": (2, 3),
        "eve": (2, 3),
    }
    turned = vote_findings(votes, ("zoe", "bob", "eve"))
    assert {one.candidate: one.rank_low for one in turned.strengths}["zoe"] == 1
    for one in result.pairs:
        assert one.p_holm is not None
        assert one.p_value is not None
        assert one.p_holm >= one.p_value


def test_candidate_without_strength_has_no_rank() -> None:
    result = vote_findings([a_vote(0, 1, L), a_vote(0, 1, L)], NAMES)
    assert result.reason is not None
    assert {one.rank_low for one in result.strengths if one.strength is None} == {None}
    assert {one.decision for one in result.pairs} == {"not_decided"}


def test_votes_cluster_by_family_where_tasks_share_one() -> None:
    votes = [
        a_vote(
            0,
            1,
            L if (number * 7) % 5 < 3 else R,
            task=f"t{number % 12}",
            family=f"f{number % 12 // 3}",
        )
        for number in range(60)
    ]
    clustered = bradley_terry(
        ["ann"] * 60,
        ["bob"] * 60,
        [1.0 if v.choice is L else 0.0 for v in votes],
        task=[v.family for v in votes],
    )
    (pair,) = vote_findings(votes, NAMES[:2]).pairs
    expected = clustered.contrast("ann", "bob")
    assert pair.p_value == pytest.approx(expected.p_value)
    assert clustered.n_tasks == 4
