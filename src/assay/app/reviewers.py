"""The verbs about reviewers: how each reviews, what two of them disagree on, and settling that."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.analysis.reviewers import Material, Pairs, Reviewer, Taken, reviewer_of
from assay.app import reviewing
from assay.app.honest import agree, standing_opinions
from assay.domain.errors import InputError, Refused, UnknownName
from assay.domain.identifiers import AssessmentKey, shown_assessment
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.observing import AsideKind, Observation, Seen
from assay.domain.review import Via

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.app.wiring import Workspace
    from assay.domain.selection import AssessmentDetail

_DRAWS_SEED = 20240607


def reviewers(workspace: Workspace, *, run: str | None = None) -> dict[str, Reviewer]:
    """Everybody who decided something on a page, by name, with their figures."""
    said = workspace.witness.observations(run=run)  # type: ignore[arg-type] # a run's id
    names = sorted({one.reviewer for one in said if one.kind in (Seen.DECISION, Seen.VERDICT, Seen.OPINION)})
    rng = np.random.default_rng(_DRAWS_SEED)
    pairs = _opinion_pairs(said)
    return {name: reviewer_of(_material(workspace, name, said, pairs), rng=rng) for name in names}


def reviewer(workspace: Workspace, name: str, *, run: str | None = None) -> Reviewer:
    """One reviewer's figures; raises `UnknownName`."""
    found = reviewers(workspace, run=run)
    if name not in found:
        raise UnknownName("reviewer", name, found, remedy="/reviewers lists those who decided on a page.")
    return found[name]


def document(name: str, found: Reviewer) -> dict[str, Any]:
    """The figures as programs read them."""
    return {"reviewer": name, **asdict(found)}


def _material(
    workspace: Workspace,
    name: str,
    said: Sequence[Observation],
    opinions: Sequence[tuple[str, Mapping[str, Any], str, Mapping[str, Any]]],
) -> Material:
    mine = [one for one in said if one.reviewer == name]
    asides = {aside.key: aside for aside in workspace.witness.asides(reviewer=name)}
    taken: dict[AssessmentKey, list[Taken]] = defaultdict(list)
    for one in mine:
        if one.kind is not Seen.DECISION or one.assessment in asides:
            continue
        if one.body["verb"] == "undo":
            if taken[one.assessment]:
                taken[one.assessment].pop()
            continue
        active = one.body.get("active_ms")
        taken[one.assessment].append(
            Taken(verb=one.body["verb"], arm=one.body["arm"], active_s=None if active is None else active / 1000)
        )
    order = dict.fromkeys(one.assessment for one in mine if one.kind is Seen.DECISION and one.assessment not in asides)
    plants = {
        one.assessment: (str(one.body.get("how")), bool(one.body["caught"]))
        for one in mine
        if one.kind is Seen.PLANT and asides[one.assessment].done
    }
    verdicts = {one.assessment: one.body["whole"] for one in mine if one.kind is Seen.VERDICT}
    again: list[tuple[float, float]] = []
    judged: list[tuple[float, float]] = []
    for key, whole in verdicts.items():
        aside = asides.get(key)
        if aside is not None:
            if aside.kind is AsideKind.AGAIN:
                before = aside.about.get("scores", {})
                again += [(before[n], whole[n]) for n in whole if before.get(n) is not None and whole[n] is not None]
            continue
        scores = reviewing.assessment(workspace, key).judged.scores
        judged += [(whole[n], score) for n in whole if (score := scores.get(n)) is not None and whole[n] is not None]
    others: list[tuple[float, float]] = []
    same: list[bool] = []
    for one_name, one_body, other_name, other_body in opinions:
        if name not in (one_name, other_name):
            continue
        same.append(agree(one_body, other_body))
        own, theirs = (one_body, other_body) if name == one_name else (other_body, one_body)
        others += [(own["result"][n], theirs["result"][n]) for n in own["result"] if n in theirs["result"]]
    return Material(
        taken=[one for key in order for one in taken[key]],
        plants=list(plants.values()),
        again=_pairs(again),
        against_judge=_pairs(judged),
        others=_pairs(others),
        same=same,
    )


def _pairs(found: Sequence[tuple[float, float]]) -> Pairs:
    return Pairs(first=[one for one, _ in found], second=[other for _, other in found])


def _opinion_pairs(said: Sequence[Observation]) -> list[tuple[str, Mapping[str, Any], str, Mapping[str, Any]]]:
    """The first two opinions of each item that two people decided."""
    by_item: dict[AssessmentKey, list[Observation]] = defaultdict(list)
    for one in said:
        if one.kind is Seen.OPINION:
            by_item[one.assessment].append(one)
    both = [[*standing_opinions(found).values()] for found in by_item.values()]
    return [(b[0].reviewer, b[0].body, b[1].reviewer, b[1].body) for b in both if len(b) >= 2]


# --- what two reviewers disagree on


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispute:
    """An item on which two reviewers came to different verdicts; `opinions` in the order in which they were given."""

    detail: AssessmentDetail
    opinions: tuple[Observation, ...]


def disputes(workspace: Workspace) -> tuple[Dispute, ...]:
    """Items that wait to be settled, oldest first."""
    by_item: dict[AssessmentKey, list[Observation]] = defaultdict(list)
    for one in workspace.witness.observations(kinds=(Seen.OPINION,)):
        by_item[one.assessment].append(one)
    found = []
    for key, said in by_item.items():
        opinions = tuple(standing_opinions(said).values())
        if len(opinions) < 2 or agree(opinions[0].body, opinions[1].body):
            continue
        detail = reviewing.assessment(workspace, key)
        if detail.row.state is AssessmentState.PENDING:
            found.append(Dispute(detail=detail, opinions=opinions[:2]))
    return tuple(found)


def settle(
    workspace: Workspace,
    key: AssessmentKey,
    *,
    choice: str,
    reason: str,
    reviewer: str,
    together: bool = False,
    once: str | None = None,
) -> str:
    """Settle a dispute as the `first` or the `second` reviewer has it, or `reject`; the state it leads to.

    Args:
        reviewer: a third person, or one of the two if both settled it together.

    Raises:
        Refused: the item is not disputed, or one of the two would settle it alone.
        InputError: another choice, or no reason.
    """
    where = shown_assessment(key)
    if choice not in ("first", "second", "reject"):
        raise InputError("choice", f"is {choice!r}.", remedy="Say first, second or reject.")
    if not reason.strip():
        raise InputError("reason", "is empty.", remedy="Say why in a few words.")
    dispute = next((one for one in disputes(workspace) if one.detail.row.key == key), None)
    if dispute is None:
        events = reviewing.assessment(workspace, key).events
        seen = next((event for event in events if once is not None and event.decision.key == once), None)
        if seen is not None:
            return str(seen.after)
        raise Refused(where, "is not disputed.", remedy="/adjudication lists what is.")
    if reviewer in {one.reviewer for one in dispute.opinions} and not together:
        raise Refused(where, "is your own dispute.", remedy="A third person settles it, or both of you together.")
    chosen = {"first": 0, "second": 1}.get(choice)
    said: Mapping[str, Any] = {"verb": "reject"} if chosen is None else dispute.opinions[chosen].body
    reason = f"adjudicated{', together' if together else ''}: {reason.strip()}"
    keys = {key: once} if once else None
    match Verb(said["verb"]):
        case Verb.APPROVE:
            (event,) = reviewing.approve(
                workspace, [key], reviewer=reviewer, via=Via.PAGE, displayed=True, idempotency_keys=keys
            )
        case Verb.CORRECT:
            corrections = {(name, criterion): value for name, criterion, value in said["corrections"]}
            event = reviewing.correct(workspace, key, corrections, reason=reason, reviewer=reviewer, via=Via.PAGE,
                                      displayed=True, idempotency_key=once)  # fmt: skip
        case _:
            (event,) = reviewing.reject(workspace, [key], reason=reason, reviewer=reviewer, via=Via.PAGE, displayed=True,
                                        idempotency_keys=keys)  # fmt: skip
    return str(event.after)
