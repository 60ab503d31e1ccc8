"""Opinions of two people: one of each stands, however they spell their name."""

from __future__ import annotations

from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.lifecycle import Verb
from assay.domain.observations import Observation, OpinionGiven, OpinionWithdrawn
from assay.domain.opinions import standing_opinions


def opinion(reviewer: str, verb: str, *, withdrawn: bool = False) -> Observation:
    return Observation(
        run_id=RunId("run"),
        assessment=AssessmentKey(1),
        reviewer=reviewer,
        at="2026-01-01T00:00:00Z",
        idempotency_key=f"{reviewer} {verb}",
        body=OpinionWithdrawn() if withdrawn else OpinionGiven(verb=Verb(verb)),
    )


def test_two_spellings_of_a_name_are_one_opinion() -> None:
    standing = standing_opinions([opinion("ann", "approve"), opinion("Ann", "reject")])
    assert {name: str(opinion.given.verb) for name, opinion in standing.items()} == {
        "ann": "reject"
    }
    assert standing_opinions([opinion("ann", "approve"), opinion("ANN", "", withdrawn=True)]) == {}
    assert [*standing_opinions([opinion("ann", "approve"), opinion("bob", "approve")])] == [
        "ann",
        "bob",
    ]
