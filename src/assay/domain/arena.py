"""Votes by people who choose between two responses to a task before they learn the authors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from assay.domain.assessment import Response
from assay.domain.identifiers import RunId, TrialKey
from assay.domain.suite import Task


class Choice(StrEnum):
    """A person's choice between two responses; left and right are the sides on the page."""

    LEFT = "left"
    RIGHT = "right"
    EQUAL = "equal"
    BOTH_BAD = "both_bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Two candidates' responses to one task in one trial, between which a person votes.

    Attributes:
        position: the task's position in its run, counted from 0.
        k: number of the trial, counted from 1.
        left, right: each candidate's position in the run's order, counted from 0, which stays valid
            after a rename.
    """

    position: int
    k: int
    # Votes are hashed with these positions, so renaming or merging a candidate does not break a
    # hash.
    left: int
    right: int

    @property
    def pair(self) -> tuple[int, int]:
        """Return both candidates' positions in ascending order; swapping left and right does not
        change the pair.
        """
        return (min(self.left, self.right), max(self.left, self.right))

    @property
    def item(self) -> tuple[int, int, int, int]:
        """Return a key for the task, the trial and the pair; swapping left and right does not
        change the key.
        """
        return (self.position, self.k, *self.pair)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A person's choice, stored as an event.

    Attributes:
        idempotency_key: a second vote with the same key changes nothing.
        active_ms: how long the person looked at the pair with the page in the foreground; None if
            unknown.
        telling: True if a response contains a name that reveals the model that wrote it.
        again: True if this person voted on the pair before, learned the authors, and withdrew the
            earlier vote.
        task: the task's id; empty until the vote is stored.
        family: the source that the task shares with other tasks; empty if it shares none.
        id: 0 until the vote is stored.
    """

    run_id: RunId
    pairing: Pairing
    choice: Choice
    reviewer: str
    idempotency_key: str
    active_ms: int | None = None
    telling: bool = False
    again: bool = False
    task: str = ""
    family: str = ""
    at: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """The responses of one trial that people can choose between.

    Attributes:
        responses: keyed by the candidate's position in the run's order; candidates without a
            response are left out.
        judged: judges' scores, keyed by judge and then by candidate position.
    """

    trial: TrialKey
    position: int
    k: int
    of: int
    task: Task
    responses: Mapping[int, Response]
    judged: Mapping[str, Mapping[int, Judged]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A judge's score for one response, and the state of its assessment."""

    score: float
    state: str
