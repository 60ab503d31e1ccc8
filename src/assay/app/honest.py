"""Honest review: what a reviewer is shown of an item now, their own verdict first, and what is put beside real items.

House rules. Whatever a browser gets of an item comes from `item`, so that a blind one is withheld at one place. Nothing made
here reaches a statistic: it stands in observations and asides, which nothing that counts reads. Who sees what depends on the
name a browser goes by; the command line is the operator's and sees everything.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from assay.app import protocols, reviewing
from assay.app.checks import Checks
from assay.app.showing import Item, Showcase, named, panes_of, withheld
from assay.app.stamps import Stamps
from assay.domain import decisions as rules
from assay.domain.assessment import weighted_score
from assay.domain.errors import InputError, Refused
from assay.domain.identifiers import AssessmentKey, RunId, shown_assessment
from assay.domain.lifecycle import DECIDED, AssessmentState, Verb
from assay.domain.observing import Aside, AsideKind, Observation, Seen
from assay.domain.protocol import PLAIN, Protocol
from assay.domain.review import Decision, ReviewEvent, Via
from assay.domain.selection import Selection
from assay.scoring.planting import GOOD, reordered

if TYPE_CHECKING:
    from assay.app.wiring import Workspace
    from assay.domain.assessment import Assessment
    from assay.domain.run import RunPlan
    from assay.domain.selection import AssessmentDetail

BLIND: Final = "blind"
ASSISTED: Final = "assisted"
"""The arms: own verdict first, or the judge's scores before it."""

_REMEMBERED: Final = 20_000
_GIVEN: Final = "has your verdict already; somebody else gives the second."
_UNDO_YOURS: Final = "Undo yours to change it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A decision as a page says it. `once` makes it count once; `active_ms`: time the item was looked at. Where `run` is
    said, the item must be of that run."""

    verb: Verb
    reviewer: str
    once: str
    reason: str = ""
    note: str = ""
    corrections: tuple[tuple[int, str | None, float], ...] = ()
    active_ms: int | None = None
    run: str | None = None


@dataclass(frozen=True, slots=True)
class _Shared:
    """What the items of one request have in common, read once for all of them."""

    stamps: Stamps
    protocols: dict[RunId, Protocol]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    """What happened between a reviewer and an item so far."""

    saw: bool = False
    verdict: Mapping[str, Any] | None = None
    second: bool = False


class Honest:
    """What stands between the review page and the store. Thread-safe: what it remembers only spares a write."""

    def __init__(self, workspace: Workspace, showcase: Showcase) -> None:
        self._workspace = workspace
        self._showcase = showcase
        self._plans: dict[RunId, RunPlan] = {}
        self._noted: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._checks = Checks(workspace)

    # --- what is shown

    def detail(self, key: AssessmentKey, *, reviewer: str | None = None) -> tuple[AssessmentDetail, Aside | None]:
        """The assessment with this key, or what was put aside for this reviewer as if it were one.

        Raises:
            UnknownName: nothing has this key, or it was put before somebody else.
        """
        found = self._details([key], reviewer)
        if key not in found:
            return reviewing.assessment(self._workspace, key), None  # which says that there is none
        return found[key]

    def check_run(self, key: AssessmentKey, run: str | None, *, reviewer: str) -> None:
        """Raise `Refused` where an item is of another run than is said; `UnknownName` where there is none."""
        if run is not None:
            _check_run(self.detail(key, reviewer=reviewer)[0], run)

    def _details(
        self, keys: Sequence[AssessmentKey], reviewer: str | None
    ) -> dict[AssessmentKey, tuple[AssessmentDetail, Aside | None]]:
        """Those that are there, real or put aside: by the same questions to the store, so that time tells nothing."""
        asides = {one.key: one for one in self._workspace.witness.asides(keys=keys)}
        mine = {key: one for key, one in asides.items() if reviewer is None or one.reviewer == reviewer}
        wanted = dict.fromkeys(mine[key].of if key in mine else key for key in keys)
        real = {detail.row.key: detail for detail in self._workspace.archive.in_full([*wanted])}
        found: dict[AssessmentKey, tuple[AssessmentDetail, Aside | None]] = {}
        for key in keys:
            aside = mine.get(key)
            if aside is not None:
                found[key] = (self._as_detail(aside, real[aside.of]), aside)
            elif key in real and key not in asides:
                found[key] = (real[key], None)
        return found

    def item(self, key: AssessmentKey, *, reviewer: str, whole: bool = False) -> Item:
        """One item as this reviewer may see it now; raises `UnknownName`."""
        return self.items([key], reviewer=reviewer, whole=whole)[0]

    def items(self, keys: Sequence[AssessmentKey], *, reviewer: str, whole: bool = False) -> list[Item]:
        """Items as this reviewer may see them now; that scores were sent is noted, in one write, before they are.

        Raises:
            UnknownName: nothing has one of the keys, or it was put before somebody else.
        """
        known = self._details(keys, reviewer)
        past = self._past(keys, reviewer)
        shared = _Shared(Stamps(self._workspace, plans=self._plans), {})
        items, shows = [], []
        for key in keys:
            detail, aside = known[key] if key in known else self.detail(key, reviewer=reviewer)
            item = self._seen_by(detail, aside, past[key], shared, whole)
            items.append(item)
            if item.state == AssessmentState.PENDING and detail.row.by_model and not item.blind:
                shows.append(detail)
        self._note_shown(shows, reviewer)
        return items

    def _seen_by(
        self, detail: AssessmentDetail, aside: Aside | None, past: _Past, shared: _Shared, whole: bool
    ) -> Item:
        """One item with what is withheld and what was given before."""
        run = detail.row.run_id
        item = self._showcase.item(detail, stamp=shared.stamps.words_of(run, detail.row.grader), whole=whole)
        if aside is not None:
            own = tuple(replace(one, id=item.id, state=item.state) if one.k == item.k else one for one in item.trials)
            item = replace(item, trials=own)
        if item.state != AssessmentState.PENDING or not detail.row.by_model:
            return item
        if run not in shared.protocols:
            shared.protocols[run] = self._protocol(run)
        protocol = shared.protocols[run]
        two = past.second or self._drawn_for_two(detail.row.key, protocol, run)
        item = replace(item, second=two)
        if past.verdict is not None:
            return replace(item, own=_as_panes(past.verdict, detail))
        if not item.person and self._is_blind(detail, aside, protocol, saw=past.saw):
            return withheld(item)
        return item

    def _past(self, keys: Sequence[AssessmentKey], reviewer: str) -> dict[AssessmentKey, _Past]:
        """What this reviewer saw and said of items, and whether anybody wished for a second opinion."""
        witness = self._workspace.witness
        found = {key: _Past() for key in keys}
        for one in witness.observations(kinds=(Seen.SHOWN, Seen.VERDICT), assessments=keys, reviewer=reviewer):
            past = found[one.assessment]
            found[one.assessment] = (
                replace(past, verdict=one.body) if one.kind is Seen.VERDICT else replace(past, saw=True)
            )
        for one in witness.observations(kinds=(Seen.SECOND,), assessments=keys):
            found[one.assessment] = replace(found[one.assessment], second=True)
        return found

    def verdict(self, key: AssessmentKey, scores: Sequence[tuple[int, str | None, float]], *, reviewer: str) -> Item:
        """Keep a reviewer's own scores of a blind item, then show the judge's.

        Raises:
            InputError: a candidate's score cannot be made of what was given, or a number lies outside 0 to 1.
            Refused: the item does not wait.
        """
        detail, aside = self.detail(key, reviewer=reviewer)
        where = shown_assessment(key)
        if detail.row.state is not AssessmentState.PENDING:
            raise Refused(where, f"is {detail.row.state}, not pending.", remedy="Undo that first.")
        if self._verdict(key, reviewer) is None:
            if self._arm(detail, aside, reviewer) is not None:
                raise Refused(where, "is not blind: you have its grades.", remedy="Approve, correct or reject it.")
            given = named(detail.row, scores)
            whole = _wholes(detail, given)
            lacking = [name for name in detail.row.candidates if whole.get(name) is None]
            if lacking:
                raise InputError(where, f"your verdict has no score for {len(lacking)} of {len(detail.row.candidates)} candidates.",
                                 remedy="Give each criterion a score, or the candidate as a whole.")  # fmt: skip
            body = {"scores": [[name, criterion, value] for (name, criterion), value in given.items()], "whole": whole}
            self._note(Seen.VERDICT, detail, reviewer, f"verdict:{key}:{reviewer}", body)
        return self.item(key, reviewer=reviewer)

    # --- what is decided

    def decide(self, key: AssessmentKey, said: Said, **how: Any) -> str:
        """Carry out one decision of a page; the state it led to.

        Raises:
            Refused: the own verdict has to come first, or the state does not allow it.
            InputError, UnknownName: the decision makes no sense.
        """
        detail, aside = self.detail(key, reviewer=said.reviewer)
        _check_run(detail, said.run)
        if self._counted_before(detail, said):
            return str(detail.row.state)
        arm = self._arm(detail, aside, said.reviewer)
        if said.verb in (Verb.APPROVE, Verb.CORRECT) and arm is None:
            raise Refused(
                shown_assessment(key),
                "is blind: your own verdict comes first.",
                remedy="Score it, then see the judge's.",
            )
        if aside is not None:
            state = self._answer(detail, aside, said)
        elif said.verb is not Verb.UNDO and self._is_shared(detail):
            state = self._opine(detail, said, **how)
        elif (
            said.verb is Verb.UNDO
            and detail.row.state is AssessmentState.PENDING
            and self._opinions(key).get(said.reviewer)
        ):
            self._note(Seen.OPINION, detail, said.reviewer, f"opinion:{said.once}", {"withdrawn": True})
            state = str(AssessmentState.PENDING)
        else:
            state = how["apply"]()
            if said.verb is Verb.UNDO and self._opinions(key).get(
                said.reviewer
            ):  # theirs was one of the two that agreed
                self._note(Seen.OPINION, detail, said.reviewer, f"opinion:{said.once}", {"withdrawn": True})
        decision = self._note(
            Seen.DECISION, detail, said.reviewer, f"decision:{said.once}",
            {"verb": str(said.verb), "arm": arm or BLIND, "active_ms": said.active_ms, "aside": aside is not None,
             "corrections": len(said.corrections), "protocol": self._protocol(detail.row.run_id).version,
             **self._measured(detail, said), **({} if aside is None else _as_said(detail, said))},
        )  # fmt: skip
        if aside is None and said.verb is not Verb.UNDO:
            self._put_aside(detail, decision)
        return state

    def _counted_before(self, detail: AssessmentDetail, said: Said) -> bool:
        """Whether this is an opinion, or its withdrawal, that was sent once more and needs nothing done."""
        mine = self._workspace.witness.observations(
            kinds=(Seen.OPINION,), assessments=(detail.row.key,), reviewer=said.reviewer
        )
        again = any(one.once == f"opinion:{said.once}" for one in mine)
        return again and (said.verb is Verb.UNDO or detail.row.state is not AssessmentState.PENDING)

    def _measured(self, detail: AssessmentDetail, said: Said) -> dict[str, Any]:
        """How far a decision lies from the judge, how long what was read is, and on which side the better one stood.

        `apart`: mean distance of the candidates' scores, `shift`: mean difference, both None for a rejection. `left`: whether
        the first pane came out above the last; None where they are equal or there is but one.
        """
        size = sum(len(response.text) for response in detail.responses)
        if said.verb not in (Verb.APPROVE, Verb.CORRECT):
            return {"size": size, "apart": None, "shift": None, "left": None}
        result = _outcome(
            detail, said.verb, named(detail.row, said.corrections), where=shown_assessment(detail.row.key)
        )
        judged = detail.judged.scores
        by = [result[name] - score for name in result if (score := judged.get(name)) is not None]
        order = [name for name in panes_of(detail.row) if name in result]
        first, last = (result[order[0]], result[order[-1]]) if len(order) > 1 else (0.0, 0.0)
        return {
            "size": size,
            "apart": sum(map(abs, by)) / len(by) if by else None,
            "shift": sum(by) / len(by) if by else None,
            "left": None if first == last else first > last,
        }

    def ask_second(self, key: AssessmentKey, *, reviewer: str, once: str) -> None:
        """Want two people to decide this item; raises `Refused` where it does not wait."""
        detail, _ = self.detail(key, reviewer=reviewer)
        if detail.row.state is not AssessmentState.PENDING:
            raise Refused(shown_assessment(key), f"is {detail.row.state}, not pending.")
        self._note(Seen.SECOND, detail, reviewer, f"second:{key}", {"asked": once})

    def mine_not(self, keys: Collection[AssessmentKey], *, reviewer: str) -> frozenset[AssessmentKey]:
        """Those of the keys that are not this reviewer's to decide: their own opinion stands, or two do and are disputed."""
        given: dict[AssessmentKey, list[Observation]] = {}
        for one in self._workspace.witness.observations(kinds=(Seen.OPINION,), assessments=keys):
            given.setdefault(one.assessment, []).append(one)
        standing = {key: standing_opinions(said) for key, said in given.items()}
        return frozenset(key for key, opinions in standing.items() if reviewer in opinions or len(opinions) > 1)

    def waiting_asides(self, selection: Selection, *, reviewer: str) -> tuple[AssessmentKey, ...]:
        """Planted checks and repeats that wait for this reviewer in a selection of runs."""
        if selection.tasks or selection.judges:
            return ()
        found: Sequence[Aside] = self._workspace.witness.asides(reviewer=reviewer, done=False)
        if selection.suites:
            known = {run.id for run in self._workspace.archive.runs(selection)}
            found = [one for one in found if one.run_id in known]
        found = [one for one in found if not selection.runs or one.run_id in selection.runs]
        return tuple(one.key for one in self._checks.due(found, reviewer=reviewer))

    def answered_asides(self, selection: Selection, *, reviewer: str) -> int:
        """How many of them this reviewer has answered in a selection of runs."""
        if selection.tasks or selection.judges:
            return 0
        runs = tuple(RunId(run) for run in selection.runs)
        if selection.suites:
            runs = tuple(run.id for run in self._workspace.archive.runs(selection)) or (RunId(""),)
        return self._workspace.witness.asides_answered(reviewer=reviewer, runs=runs)

    def rerun_wished(self, key: AssessmentKey, *, reviewer: str, once: str) -> None:
        """Note that this reviewer had a real item judged again."""
        detail = reviewing.assessment(self._workspace, key)
        self._note(Seen.DECISION, detail, reviewer, f"rerun:{once}",
                   {"verb": str(Verb.RERUN), "arm": ASSISTED, "active_ms": None, "aside": False, "corrections": 0})  # fmt: skip

    # --- inside

    def _protocol(self, run: RunId) -> Protocol:
        return protocols.holding(self._workspace, self._plan(run))

    def _plan(self, run: RunId) -> RunPlan:
        if run not in self._plans:
            self._plans[run] = self._workspace.journal.plan_of(run)
        return self._plans[run]

    def _is_blind(self, detail: AssessmentDetail, aside: Aside | None, protocol: Protocol, *, saw: bool) -> bool:
        """Whether it is drawn for the blind share and its scores were never sent to this reviewer."""
        if aside is not None and aside.kind is AsideKind.AGAIN:
            return True
        if not protocol.draws("blind", seed=self._plan(detail.row.run_id).seed, key=int(detail.row.key)):
            return False
        return not saw

    def _arm(self, detail: AssessmentDetail, aside: Aside | None, reviewer: str) -> str | None:
        """In which arm a decision of this reviewer falls; None where the own verdict is still to come."""
        past = self._past([detail.row.key], reviewer)[detail.row.key]
        if past.verdict is not None:
            return BLIND
        waits = detail.row.state is AssessmentState.PENDING and detail.row.by_model
        by_person = self._showcase.by_person(detail.row)
        if waits and not by_person and self._is_blind(detail, aside, self._protocol(detail.row.run_id), saw=past.saw):
            return None
        return ASSISTED

    def _verdict(self, key: AssessmentKey, reviewer: str) -> Mapping[str, Any] | None:
        said = self._workspace.witness.observations(kinds=(Seen.VERDICT,), assessments=(key,), reviewer=reviewer)
        return said[-1].body if said else None

    def _note(
        self, kind: Seen, detail: AssessmentDetail, reviewer: str, once: str, body: Mapping[str, Any]
    ) -> Observation:
        (kept,) = self._workspace.witness.note([self._observation(kind, detail, reviewer, once, body)])
        return kept

    def _observation(
        self, kind: Seen, detail: AssessmentDetail, reviewer: str, once: str, body: Mapping[str, Any]
    ) -> Observation:
        return Observation(kind=kind, run_id=detail.row.run_id, assessment=detail.row.key, reviewer=reviewer,
                           at=self._workspace.clock.now(), once=once, body=body)  # fmt: skip

    def _note_shown(self, details: Sequence[AssessmentDetail], reviewer: str) -> None:
        """That the judge's scores leave the server while items wait; noted once a reviewer and item."""
        marks = {(reviewer, int(detail.row.key)): detail for detail in details}
        new = [(mark, detail) for mark, detail in marks.items() if mark not in self._noted]
        self._workspace.witness.note([
            self._observation(Seen.SHOWN, detail, reviewer, f"shown:{detail.row.key}:{reviewer}", {}) for _, detail in new
        ])  # fmt: skip
        self._noted.update((mark, None) for mark, _ in new)
        while len(self._noted) > _REMEMBERED:
            self._noted.popitem(last=False)

    # --- second opinions

    def _takes_two(self, key: AssessmentKey, protocol: Protocol, run: RunId) -> bool:
        if self._drawn_for_two(key, protocol, run):
            return True
        return bool(self._workspace.witness.observations(kinds=(Seen.SECOND,), assessments=(key,)))

    def _drawn_for_two(self, key: AssessmentKey, protocol: Protocol, run: RunId) -> bool:
        return bool(protocol.second) and protocol.draws("second", seed=self._plan(run).seed, key=int(key))

    def _is_shared(self, detail: AssessmentDetail) -> bool:
        row = detail.row
        return row.state is AssessmentState.PENDING and self._takes_two(row.key, self._protocol(row.run_id), row.run_id)

    def _opinions(self, key: AssessmentKey) -> dict[str, Observation]:
        """The opinion that stands of each reviewer, by name, in the order in which they were given."""
        return standing_opinions(self._workspace.witness.observations(kinds=(Seen.OPINION,), assessments=(key,)))

    def _opine(self, detail: AssessmentDetail, said: Said, **how: Any) -> str:
        key, where = detail.row.key, shown_assessment(detail.row.key)
        mine = self._opinions(key).get(said.reviewer)
        if mine is not None and mine.once != f"opinion:{said.once}":
            raise Refused(where, _GIVEN, remedy=_UNDO_YOURS)
        corrections = named(detail.row, said.corrections)
        result = _outcome(detail, said.verb, corrections, where=where)
        body = {
            "verb": str(said.verb), "reason": said.reason, "note": said.note, "result": result,
            "corrections": [[name, criterion, value] for (name, criterion), value in corrections.items()],
        }  # fmt: skip
        opinion = self._observation(Seen.OPINION, detail, said.reviewer, f"opinion:{said.once}", body)
        both = standing_opinions(self._workspace.witness.note_and_read(opinion))
        others = [one for name, one in both.items() if name != said.reviewer]
        if not others or len(both) > 2 or not agree(others[0].body, body):
            return str(AssessmentState.PENDING)
        return str(how["apply"]())

    # --- planted checks and repeats

    def _as_detail(self, aside: Aside, real: AssessmentDetail) -> AssessmentDetail:
        """What was put aside, in the shape of a real assessment that waits, or was decided as it was."""
        shown = aside.shown or reordered(real.judged, seed=self._plan(aside.run_id).seed, key=int(aside.key))
        events: tuple[ReviewEvent, ...] = ()
        state, counted = AssessmentState.PENDING, shown
        if aside.done:
            state, events, counted = self._as_decided(aside, shown)
        row = replace(real.row, key=aside.key, state=state, current=True, attempt=1, assessment=counted)
        return replace(real, row=row, judged=shown, attempts=(aside.key,), events=events)

    def _as_decided(
        self, aside: Aside, shown: Assessment
    ) -> tuple[AssessmentState, tuple[ReviewEvent, ...], Assessment]:
        """An answered one as a real one would look: its state, its history and its scores."""
        if self._takes_two(aside.key, self._protocol(aside.run_id), aside.run_id):
            return AssessmentState.PENDING, (), shown  # as a real one whose second verdict is still to come
        said = self._workspace.witness.observations(kinds=(Seen.DECISION,), assessments=(aside.key,))
        events: list[ReviewEvent] = []
        state, counted = AssessmentState.PENDING, shown
        for one in said:
            verb, before = Verb(one.body["verb"]), state
            state = AssessmentState.PENDING if verb is Verb.UNDO else DECIDED[verb]
            places = {(name, criterion): value for name, criterion, value in one.body.get("placed", ())}
            counted = _laid_over(shown, places) if verb is Verb.CORRECT else shown
            decision = Decision(assessment=aside.key, verb=verb, reviewer=one.reviewer, via=Via.PAGE, displayed=True,
                                reason=one.body.get("reason", ""), note=one.body.get("note", ""), corrections=places)  # fmt: skip
            events.append(ReviewEvent(id=one.id, decision=decision, before=before, after=state, at=one.at))
        return state, tuple(events), counted

    def _answer(self, detail: AssessmentDetail, aside: Aside, said: Said) -> str:
        """A decision on what is no real item: kept as an answer, and nothing else happens."""
        where = shown_assessment(aside.key)
        known = self._workspace.witness.observations(kinds=(Seen.DECISION,), assessments=(aside.key,))
        two = self._takes_two(aside.key, self._protocol(aside.run_id), aside.run_id)
        if any(one.once == f"decision:{said.once}" for one in known):
            return str(detail.row.state)
        if two and aside.done and said.verb is not Verb.UNDO:
            raise Refused(where, _GIVEN, remedy=_UNDO_YOURS)
        after = AssessmentState.PENDING if two and aside.done else rules.after(said.verb, detail.row.state, where=where)
        touched = named(detail.row, said.corrections)
        if said.verb in (Verb.APPROVE, Verb.CORRECT):
            _outcome(detail, said.verb, touched, where=where)
        self._workspace.witness.answered(aside.key, done=said.verb is not Verb.UNDO)
        if aside.kind is AsideKind.PLANT:
            good = aside.about.get("how") == GOOD
            caught = said.verb is Verb.REJECT or any(
                good or _touches(place, aside.about.get("places", ())) for place in touched
            )
            body = {"caught": caught, "verb": str(said.verb), "how": aside.about.get("how")}
            self._note(Seen.PLANT, detail, said.reviewer, f"plant:{said.once}", body)
        return str(AssessmentState.PENDING if two else after)

    def rerun_of_aside(self, key: AssessmentKey, *, reviewer: str, once: str) -> bool:
        """Whether the key is an aside's; a wish to judge it again is then kept as its answer: it was found wanting."""
        aside = self._workspace.witness.aside(key)
        if aside is None or aside.reviewer != reviewer:
            return False
        if not aside.done:
            said = Said(verb=Verb.REJECT, reviewer=reviewer, once=once, reason="rerun")
            detail = self._as_detail(aside, reviewing.assessment(self._workspace, aside.of))
            self._answer(detail, aside, said)
            self._note(Seen.DECISION, detail, reviewer, f"decision:{once}",
                       {"verb": str(Verb.REJECT), "arm": ASSISTED, "active_ms": None, "aside": True, "corrections": 0})  # fmt: skip
        return True

    def _put_aside(self, detail: AssessmentDetail, decision: Observation) -> None:
        """After a decision on a real item: a planted check, or the item once more, as chance and the protocol will."""
        protocol = self._protocol(detail.row.run_id)
        if protocol.mode == PLAIN.mode or not detail.row.by_model or self._showcase.by_person(detail.row):
            return
        self._checks.after(detail, decision, protocol=protocol, seed=self._plan(detail.row.run_id).seed)


def _check_run(detail: AssessmentDetail, run: str | None) -> None:
    if run not in {None, detail.row.run_id}:
        shown = shown_assessment(detail.row.key)
        raise Refused("run", f"{shown} is of run {detail.row.run_id} here, and was decided as one of {run}.",
                      remedy="Another store served that one; nothing was done in this one.")  # fmt: skip


def standing_opinions(said: Sequence[Observation]) -> dict[str, Observation]:
    """The last opinion of each reviewer that was not taken back."""
    found: dict[str, Observation] = {}
    for one in said:
        found.pop(one.reviewer, None)
        if not one.body.get("withdrawn"):
            found[one.reviewer] = one
    return found


TOLERANCE: Final = 0.05
"""Two reviewers agree when they decide alike and no candidate's resulting score is further apart than this."""


def agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two opinions come to the same: both reject, or both let scores count that lie close together."""
    if "reject" in (one["verb"], other["verb"]):
        return bool(one["verb"] == other["verb"])
    names = one["result"].keys() | other["result"].keys()
    return all(abs(one["result"].get(name, 9) - other["result"].get(name, -9)) <= TOLERANCE for name in names)


def _grading(judged: Assessment) -> rules.Grading:
    return rules.Grading(
        scores=judged.scores,
        grades={(grade.candidate, grade.criterion): grade.score for grade in judged.grades},
        weights=judged.weights,
    )


def _laid_over(judged: Assessment, corrections: Mapping[tuple[str, str | None], float]) -> Assessment:
    """The assessment with a person's scores in place of the judge's."""
    held = rules.corrected(_grading(judged), corrections, where="")
    grades = tuple(replace(one, score=held.grades[one.candidate, one.criterion]) for one in judged.grades)
    return replace(judged, scores=held.scores, grades=grades)


def _outcome(
    detail: AssessmentDetail, verb: Verb, corrections: Mapping[tuple[str, str | None], float], *, where: str
) -> dict[str, float]:
    """The candidates' scores if this opinion held; empty for a rejection. Raises what the decision itself would."""
    grading = _grading(detail.judged)
    if verb is Verb.REJECT:
        return {}
    if verb is Verb.APPROVE:
        rules.check_approval(grading, where=where)
        return {name: score for name, score in grading.scores.items() if score is not None}
    held = rules.corrected(grading, corrections, where=where)
    return {name: score for name, score in held.scores.items() if score is not None}


def _as_said(detail: AssessmentDetail, said: Said) -> dict[str, Any]:
    """What the history of a decision shows, which for a real item stands in its events."""
    placed = [[name, criterion, value] for (name, criterion), value in named(detail.row, said.corrections).items()]
    return {"reason": said.reason, "note": said.note, "placed": placed}


def _touches(place: Sequence[Any], places: Sequence[Sequence[str]]) -> bool:
    candidate, criterion = place
    return any(candidate == name and criterion in (None, one) for name, one in places)


def _wholes(detail: AssessmentDetail, given: Mapping[tuple[str, str | None], float]) -> dict[str, float | None]:
    """Each candidate's score by an own verdict: the one given, else the weighted mean of the criteria given."""
    weights = dict(detail.judged.weights) or dict.fromkeys((one for _, one in given if one is not None), 1.0)
    found: dict[str, float | None] = {}
    for name in detail.row.candidates:
        own = given.get((name, None))
        by_criterion = {criterion: value for (other, criterion), value in given.items() if other == name and criterion}
        found[name] = weighted_score(by_criterion, weights) if own is None else own
    return found


def _as_panes(verdict: Mapping[str, Any], detail: AssessmentDetail) -> tuple[tuple[int, str | None, float], ...]:
    order = panes_of(detail.row)
    return tuple((order.index(name), criterion, value) for name, criterion, value in verdict["scores"] if name in order)
