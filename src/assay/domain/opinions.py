"""Rules for two independent opinions on one item, for every road by which a decision arrives.

An item that needs two opinions counts only after two different people have given the same verdict.
The store calls these rules in the transaction that writes the decision, so that the page, the
terminal, commands, Python and HTTP cannot differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

from assay.domain.errors import Refused
from assay.domain.identifiers import AssessmentKey, folded, shown_assessment
from assay.domain.lifecycle import Verb
from assay.domain.observations import Observation, OpinionGiven, SecondRequested, with_body
from assay.domain.review import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from assay.domain.protocol import Protocol

TOLERANCE: Final = 0.05
"""Two reviewers with the same decision agree if their scores of each candidate differ by at most
this.
"""

# replaces the missing score if only one opinion scores a candidate; never within TOLERANCE
_FAR: Final = 9.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpinionGiver:
    """Whoever gives an opinion, by all that is known of them.

    Attributes:
        reviewer: the name under which they decide.
        stated_by: the signed-in person who stated that name; empty if it speaks for itself.
        login: the person whose login, invitation or token sent the decision; empty if unknown.
        scripted: True if they read no screen.
    """

    reviewer: str
    stated_by: str = ""
    login: str = ""
    scripted: bool = False

    @property
    def names(self) -> frozenset[str]:
        return _folded_names(self.reviewer, self.stated_by)

    def may_be(self, earlier: OpinionGiver) -> bool:
        """True if nothing shows that this is another person than an earlier one.

        Several people may read at one login in turn, each under their own name. A later script
        under that login shows nobody, so it is whoever read there.
        """
        if self.names & earlier.names:
            return True
        return self.scripted and bool(self.login) and folded(self.login) == folded(earlier.login)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingOpinion:
    """A reviewer's latest opinion on an item, unless it was withdrawn; `at` is ISO 8601, UTC."""

    reviewer: str
    at: str
    idempotency_key: str
    given: OpinionGiven

    @property
    def person(self) -> OpinionGiver:
        return _person(self.reviewer, self.given)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpinionsShown:
    """The opinions on an item that somebody may see, and the number of those that are hidden until
    they gave their own.
    """

    visible: tuple[StandingOpinion, ...] = ()
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftToOthers:
    """Numbers of pending items that a reviewer cannot decide.

    `second`: those with an opinion of this reviewer, which need one of another person. `disputed`:
    those on which two people disagree. `own_work`: those that grade the reviewer's own work.
    """

    second: int = 0
    disputed: int = 0
    own_work: int = 0

    @property
    def total(self) -> int:
        return self.second + self.disputed + self.own_work


def standing_opinions(observations: Iterable[Observation]) -> dict[str, StandingOpinion]:
    """Return each reviewer's latest opinion that was not withdrawn, oldest first; the case of names
    is ignored.
    """
    standing: dict[str, StandingOpinion] = {}
    names: dict[str, str] = {}
    for observation in observations:
        name = names.setdefault(folded(observation.reviewer), observation.reviewer)
        standing.pop(name, None)
        if isinstance(observation.body, OpinionGiven):
            standing[name] = StandingOpinion(
                reviewer=observation.reviewer,
                at=observation.at,
                idempotency_key=observation.idempotency_key,
                given=observation.body,
            )
    return standing


def standing_by_item(
    observations: Iterable[Observation],
) -> dict[AssessmentKey, dict[str, StandingOpinion]]:
    by_item: dict[AssessmentKey, list[Observation]] = {}
    for observation in observations:
        by_item.setdefault(observation.assessment, []).append(observation)
    return {key: standing_opinions(given) for key, given in by_item.items()}


def opinion_of(reviewer: str, standing: Mapping[str, StandingOpinion]) -> StandingOpinion | None:
    """Return a reviewer's standing opinion, however the name is spelled."""
    wanted = folded(reviewer)
    return next((opinion for name, opinion in standing.items() if folded(name) == wanted), None)


def opinion_of_person(
    login: str, standing: Mapping[str, StandingOpinion]
) -> StandingOpinion | None:
    """Return a standing opinion of this person, under whichever name they or their login stated
    it.
    """
    wanted = folded(login)
    return next((opinion for opinion in standing.values() if wanted in opinion.person.names), None)


def agree(first: OpinionGiven, second: OpinionGiven) -> bool:
    """True if both opinions reject, or if neither rejects and no score differs by more than
    `TOLERANCE`.
    """
    if Verb.REJECT in (first.verb, second.verb):
        return first.verb is second.verb
    names = first.result.keys() | second.result.keys()
    return all(
        abs(first.result.get(name, _FAR) - second.result.get(name, -_FAR)) <= TOLERANCE
        for name in names
    )


def differ(opinions: Mapping[str, StandingOpinion]) -> bool:
    """True if the opinions of the first two reviewers differ."""
    pair = list(opinions.values())[:2]
    return len(pair) == 2 and not agree(pair[0].given, pair[1].given)


def disputed(key: AssessmentKey) -> Refused:
    return Refused(
        shown_assessment(key),
        "is disputed: two reviewers gave different verdicts, and only adjudication can settle it.",
        remedy="Settle it at /adjudication (`assay serve`).",
    )


def requests_second(requests: Iterable[Observation]) -> frozenset[AssessmentKey]:
    """Return the items for which a reviewer asked for a second opinion and did not withdraw the
    request.
    """
    last = {
        (request.assessment, request.reviewer): body
        for request, body in with_body(requests, SecondRequested)
    }
    return frozenset(key for (key, _), body in last.items() if not body.withdrawn)


def takes_two(key: AssessmentKey, *, protocol: Protocol, seed: int, requested: bool) -> bool:
    """True if an item needs two opinions, by the protocol's random draw or because a reviewer
    requested it.
    """
    return requested or (
        bool(protocol.second) and protocol.draws("second", seed=seed, key=int(key))
    )


def outcome_of_opinion(
    given: OpinionGiven,
    *,
    key: AssessmentKey,
    reviewer: str,
    two: bool,
    standing: Mapping[str, StandingOpinion],
) -> Outcome:
    """Return the effect of a decision on a pending item.

    Args:
        given: the decision as an opinion, with the scores that it would make final.
        two: True if the item needs two opinions.
        standing: opinions on the item so far.

    Raises `Refused` if the reviewer has already given an opinion, or if two reviewers disagree
    about the item.
    """
    if two and opinion_of(reviewer, standing) is not None:
        raise Refused(
            shown_assessment(key),
            "already has your verdict; another reviewer must give the second verdict.",
            remedy="Undo yours to change it.",
        )
    if two and (own := _under_another_name(reviewer, given, standing)) is not None:
        said_by = f"of the same person, under the name {own.reviewer}"
        if not own.person.names & _person(reviewer, given).names:
            said_by = f"from the same login, under the name {own.reviewer}"
        raise Refused(
            shown_assessment(key),
            f"already has a verdict {said_by}; another person must give the second.",
            remedy="Let the other person decide under their own login, with `assay review` or on the review page.",
        )
    if differ(standing):
        raise disputed(key)
    if not two:
        return Outcome.DECIDED
    if not standing:
        return Outcome.FIRST_OPINION
    earlier = [opinion.given for opinion in standing.values()]
    # Two that agree on a pending item were left by a store in which a third person could undo their
    # decision.
    return Outcome.DECIDED if len(earlier) > 1 or agree(earlier[0], given) else Outcome.DISPUTED


def _under_another_name(
    reviewer: str, given: OpinionGiven, standing: Mapping[str, StandingOpinion]
) -> StandingOpinion | None:
    """Return a standing opinion of the same person under another name, as `--reviewer` can state
    any.
    """
    person = _person(reviewer, given)
    return next((opinion for opinion in standing.values() if person.may_be(opinion.person)), None)


def _person(reviewer: str, given: OpinionGiven) -> OpinionGiver:
    return OpinionGiver(
        reviewer=reviewer, stated_by=given.stated_by, login=given.login, scripted=given.scripted
    )


def _folded_names(*names: str) -> frozenset[str]:
    return frozenset(folded(name) for name in names if name)


def shown_to(
    readers: Iterable[str], *, pending: bool, standing: Mapping[str, StandingOpinion]
) -> OpinionsShown:
    """Return the opinions that somebody may see.

    The first opinion is hidden from everybody whose own may still follow it, because the second
    must be independent.

    Args:
        readers: the name that the reader gives, and the signed-in person; none of them may have an
            opinion to give.
        pending: True if the item has no decision yet.
    """
    opinions = tuple(standing.values())
    given = {name for opinion in opinions for name in opinion.person.names}
    second_is_due = pending and len(opinions) == 1
    if second_is_due and not given.issuperset(map(folded, readers)):
        return OpinionsShown(hidden=len(opinions))
    return OpinionsShown(visible=opinions)


def by_two_people(standing: Mapping[str, StandingOpinion]) -> bool:
    """True if two of the opinions come from different people, and not from one person under two
    names.
    """
    people = [opinion.person for opinion in standing.values()]
    return any(not second.may_be(first) for first, second in combinations(people, 2))


def withdrawn_by_undo(
    reviewer: str, standing: Mapping[str, StandingOpinion]
) -> tuple[StandingOpinion, ...]:
    """Return the opinions that fall with an undone decision.

    A reviewer's undo withdraws only their own opinion. An undo by somebody else rejects a verdict
    that two people share, so both must judge again; opinions that differ stay, and the item is
    disputed again.
    """
    own = opinion_of(reviewer, standing)
    if own is not None:
        return (own,)
    return () if differ(standing) else tuple(standing.values())


def check_settles(
    key: AssessmentKey,
    *,
    settler: OpinionGiver,
    together: bool,
    standing: Mapping[str, StandingOpinion],
) -> None:
    """Raise `Refused` unless the item is disputed and this person, under whichever name, may settle
    the dispute.
    """
    where = shown_assessment(key)
    if not differ(standing):
        raise Refused(where, "is not disputed.", remedy="/adjudication lists the disputed ones.")
    of_the_two = next(
        (opinion for opinion in list(standing.values())[:2] if settler.may_be(opinion.person)), None
    )
    if of_the_two is not None and not together:
        if settler.names & of_the_two.person.names:
            problem = "is your own dispute."
            remedy = "A third person must settle it, or the two of you together."
        else:
            problem = f"has a verdict from the same login, under the name {of_the_two.reviewer}."
            remedy = "Let a third person open the dispute at /adjudication and settle it there."
        raise Refused(where, problem, remedy=remedy)
    if together and opinion_of(settler.reviewer, standing) is None:
        problem = "is not a dispute of yours, and only the two who disagree settle it together."
        raise Refused(
            where,
            problem,
            remedy="Settle it as a third person, or under the name of one of the two.",
        )
