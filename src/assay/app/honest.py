"""Honest review: what a reviewer is shown of an item now, their own verdict first, and what is put beside real items.

House rules. Whatever a browser gets of an item comes from `item`, so that a blind one is withheld at one place. Nothing made
here reaches a statistic: it stands in observations and asides, which nothing that counts reads. Who sees what depends on the
name a browser goes by; the command line is the operator's and sees everything. Whatever may be done with a real item may be
done with a check, by anybody, with the same answer: looking, deciding, undoing, judging again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from assay.app import protocols, reviewing, telling
from assay.app.checks import Checks
from assay.app.cover import Cover, state_after
from assay.app.opinions import agree, differ, disputed, standing_opinions
from assay.app.showing import Item, Pane, Showcase, labels_of, named, panes_of, withheld
from assay.app.stamps import Stamps
from assay.domain import decisions as rules
from assay.domain.assessment import weighted_score
from assay.domain.errors import InputError, Refused, UnknownName
from assay.domain.identifiers import AssessmentKey, RunId, folded, shown_assessment
from assay.domain.lifecycle import UNDOABLE, AssessmentState, Verb
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

TOLD: Final = "Not blind: the arena has told you who wrote this."
"""What stands over the grades of an item whose names its reviewer knows."""

_REMEMBERED: Final = 20_000
_FIRST: Final = "first"  # in what is known of a further attempt: of which aside, and the how-many-eth it is
_ATTEMPT: Final = "attempt"
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
    """What happened between a reviewer and an item so far; `saw`: the grades of an attempt at it were sent to them."""

    reviewer: str
    saw: bool = False
    told: bool = False
    verdict: Mapping[str, Any] | None = None
    second: bool = False


class Honest:
    """What stands between the review page and the store. Thread-safe: what it remembers only spares a write."""

    def __init__(self, workspace: Workspace, showcase: Showcase, cover: Cover) -> None:
        self._workspace = workspace
        self._showcase = showcase
        self._cover = cover
        self._plans: dict[RunId, RunPlan] = {}
        self._noted: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._checks = Checks(workspace)

    # --- what is shown

    def detail(self, key: AssessmentKey) -> tuple[AssessmentDetail, Aside | None]:
        """The assessment with this key, or what was put beside the real items as if it were one.

        Raises:
            UnknownName: nothing has this key.
        """
        found = self._details([key])
        if key not in found:
            return reviewing.assessment(self._workspace, key), None  # which says that there is none
        return found[key]

    def check_run(self, key: AssessmentKey, run: str | None) -> None:
        """Raise `Refused` where an item is of another run than is said; `UnknownName` where there is none."""
        if run is not None:
            _check_run(self.detail(key)[0], run)

    def _details(self, keys: Sequence[AssessmentKey]) -> dict[AssessmentKey, tuple[AssessmentDetail, Aside | None]]:
        """Those that are there, real or put aside: by the same questions to the store, so that time tells nothing."""
        asides = {one.key: one for one in self._workspace.witness.asides(keys=keys)}
        wanted = dict.fromkeys(asides[key].of if key in asides else key for key in keys)
        real = {detail.row.key: detail for detail in self._workspace.archive.in_full([*wanted])}
        found: dict[AssessmentKey, tuple[AssessmentDetail, Aside | None]] = {}
        for key in keys:
            aside = asides.get(key)
            if aside is not None:
                found[key] = (self._as_detail(aside, real[aside.of]), aside)
            elif key in real:
                found[key] = (real[key], None)
        return found

    def item(self, key: AssessmentKey, *, reviewer: str, whole: bool = False) -> Item:
        """One item as this reviewer may see it now; raises `UnknownName`."""
        return self.items([key], reviewer=reviewer, whole=whole)[0]

    def items(self, keys: Sequence[AssessmentKey], *, reviewer: str, whole: bool = False) -> list[Item]:
        """Items as this reviewer may see them now; that scores were sent is noted, in one write, before they are.

        Raises:
            UnknownName: nothing has one of the keys.
        """
        known = self._details(keys)
        past = self._past(keys, reviewer, [detail for detail, _ in known.values()])
        shared = _Shared(Stamps(self._workspace, plans=self._plans), {})
        opinions = self._standing(self._workspace.witness.observations(kinds=(Seen.OPINION,), assessments=keys))
        items, shows = [], []
        for key in keys:
            detail, aside = known[key] if key in known else self.detail(key)
            item = self._seen_by(detail, aside, past[key], shared, whole)
            if item.state == AssessmentState.PENDING:
                given = opinions.get(key, {})
                closed = "disputed" if differ(given) else "given" if reviewer in given else ""
                item = replace(item, closed=closed)
            if item.closed == "disputed":
                item = replace(item, rerunnable=False, no_rerun="disputed")
            items.append(item)
            if detail.row.by_model and not item.blind and self._tells(item, detail, past[key], shared):
                shows.append(detail)
        self._note_shown(shows, reviewer)
        return items

    def _tells(self, item: Item, detail: AssessmentDetail, past: _Past, shared: _Shared) -> bool:
        """Whether what is shown takes blindness away: grades of what waits, or of what would be blind if it were undone."""
        if item.state == AssessmentState.PENDING:
            return True
        protocol = self._shared_protocol(detail.row.run_id, shared)
        return past.verdict is None and self._is_blind(detail, protocol, saw=past.saw)

    def _shared_protocol(self, run: RunId, shared: _Shared) -> Protocol:
        if run not in shared.protocols:
            shared.protocols[run] = self._protocol(run)
        return shared.protocols[run]

    def _seen_by(
        self, detail: AssessmentDetail, aside: Aside | None, past: _Past, shared: _Shared, whole: bool
    ) -> Item:
        """One item with what is withheld and what was given before."""
        run = detail.row.run_id
        earlier = None if aside is None else [
            self._details([key])[key][0] for key in detail.attempts if key != detail.row.key
        ]  # fmt: skip
        stamp = shared.stamps.words_of(run, detail.row.grader)
        item = self._showcase.item(detail, stamp=stamp, whole=whole, earlier=earlier)
        item = self._under_cover(item, detail, aside)
        if (
            item.state == AssessmentState.SUPERSEDED
            and detail.row.by_model
            and self._next_is_blind(detail, past, shared)
        ):
            return withheld(item)
        if item.state != AssessmentState.PENDING or not detail.row.by_model:
            return item
        protocol = self._shared_protocol(run, shared)
        two = past.second or self._drawn_for_two(detail.row.key, protocol, run)
        item = replace(item, second=two)
        if past.told:
            item = replace(item, told=True, stamp=f"{item.stamp}. {TOLD}")
        if past.verdict is not None:
            return replace(item, own=_as_panes(past.verdict, detail))
        if not item.person and self._is_blind(detail, protocol, saw=past.saw):
            return withheld(item)
        return item

    def _next_is_blind(self, detail: AssessmentDetail, past: _Past, shared: _Shared) -> bool:
        """Whether the attempt that took this one's place waits for this reviewer's own verdict: both grade the same."""
        current, _ = self.detail(detail.attempts[-1])
        if current.row.state is not AssessmentState.PENDING or past.saw or past.verdict is not None:
            return False
        own = self._verdict(current.row.key, past.reviewer)
        protocol = self._shared_protocol(current.row.run_id, shared)
        return own is None and self._is_blind(current, protocol, saw=False)

    def _under_cover(self, item: Item, detail: AssessmentDetail, aside: Aside | None) -> Item:
        """The item by the name it goes by; of a run under cover without a word on its other trials."""
        run = detail.row.run_id
        if aside is None and not self._cover.covers(run):
            return item
        names = {shown_assessment(key): self._cover.name(key, run, aside=aside is not None)
                 for key in (detail.row.key, *detail.attempts)}  # fmt: skip
        return replace(
            item,
            id=names[item.id],
            attempts=tuple(replace(one, id=names[one.id]) for one in item.attempts),
            trials=tuple(replace(one, id=names[item.id], state=item.state) for one in item.trials if one.k == item.k),
        )

    def _past(
        self, keys: Sequence[AssessmentKey], reviewer: str, details: Iterable[AssessmentDetail]
    ) -> dict[AssessmentKey, _Past]:
        """What this reviewer was told, saw and said of items, and whether anybody wished for a second opinion."""
        witness = self._workspace.witness
        details = tuple(details)
        told = telling.told(self._workspace, [detail.row for detail in details], reviewer=reviewer)
        found = {key: _Past(reviewer=reviewer, told=key in told, saw=key in told) for key in keys}
        later = {
            earlier: detail.row.key
            for detail in details if detail.row.key in found
            for earlier in detail.attempts if earlier not in found
        }  # fmt: skip
        seen = (*keys, *later)
        for one in witness.observations(kinds=(Seen.SHOWN, Seen.VERDICT), assessments=seen, reviewer=reviewer):
            if one.assessment in found and one.kind is Seen.VERDICT:
                found[one.assessment] = replace(found[one.assessment], verdict=one.body)
            elif one.kind is Seen.SHOWN:
                key = later.get(one.assessment, one.assessment)
                found[key] = replace(found[key], saw=True)
        for one in witness.observations(kinds=(Seen.SECOND,), assessments=keys):
            found[one.assessment] = replace(found[one.assessment], second=True)
        return found

    def pane(self, key: AssessmentKey, place: int, *, reviewer: str) -> Pane:
        """One response in full length, as the item of this reviewer has it; raises `UnknownName`."""
        panes = self.item(key, reviewer=reviewer, whole=True).panes
        if place >= len(panes):
            said = f"{shown_assessment(key)} has {len(panes)}, counted from 0."
            raise UnknownName("response", str(place), remedy=said)
        return panes[place]

    def verdict(self, key: AssessmentKey, scores: Sequence[tuple[int, str | None, float]], *, reviewer: str) -> Item:
        """Keep a reviewer's own scores of a blind item, then show the judge's.

        Raises:
            InputError: a candidate's score cannot be made of what was given, or a number lies outside 0 to 1.
            Refused: the item does not wait.
        """
        detail, _ = self.detail(key)
        where = shown_assessment(key)
        if detail.row.state is not AssessmentState.PENDING:
            raise Refused(where, f"is {detail.row.state}, not pending.", remedy="Undo that first.")
        if self._verdict(key, reviewer) is None:
            if self._arm(detail, reviewer, self._protocol(detail.row.run_id)) is not None:
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
            Refused: the own verdict has to come first, the state does not allow it, or the key is another item's.
            InputError, UnknownName: the decision makes no sense.
        """
        detail, aside = self.detail(key)
        _check_run(detail, said.run)
        self.check_key(key, once=said.once)
        if self._counted_before(detail, said):
            return str(detail.row.state)
        protocol = self._protocol(detail.row.run_id)
        arm = self._arm(detail, said.reviewer, protocol)
        if said.verb in (Verb.APPROVE, Verb.CORRECT) and arm is None:
            raise Refused(
                shown_assessment(key),
                "is blind: your own verdict comes first.",
                remedy="Score it, then see the judge's.",
            )
        meant = _meant(detail, said)
        told = telling.told(self._workspace, [detail.row], reviewer=said.reviewer)
        decision = self._observation(
            Seen.DECISION, detail, said.reviewer, f"decision:{said.once}",
            {"verb": str(said.verb), "arm": arm or BLIND, "active_ms": said.active_ms, "aside": aside is not None,
             "corrections": len(said.corrections), "protocol": protocol.version,
             **({"told": True} if told else {}), **_measured(detail, said.verb, meant),
             **({} if aside is None else _as_said(aside, said, meant))},
        )  # fmt: skip
        apply = how["apply"] if aside is None else lambda: self._answer(key, said, decision, meant)
        try:
            two = self._is_shared(detail, protocol)
            state = self._carried_out(detail, said, meant, aside=aside is not None, two=two, apply=apply)
        except Refused as error:
            raise self._in_words_of_a_page(error, key, said) from None
        if aside is None:
            (decision,) = self._workspace.witness.note([decision])
            if said.verb is not Verb.UNDO:
                self._put_aside(detail, decision, protocol)
        else:  # stored already, unless it is an opinion, or takes one back
            opinion = replace(decision, body={**decision.body, "opinion": True})
            done = said.verb is not Verb.UNDO or self._reviewer_stands(aside)
            self._workspace.witness.answer([opinion, *self._plant_found(detail, aside, said, meant)], done=done)
        return state

    def check_key(self, key: AssessmentKey, *, once: str) -> None:
        """Raise `Refused` where what a page calls `once` was said of another item, be it a real one or none."""
        onces = [f"{kind}:{once}" for kind in ("decision", "opinion", "plant", "rerun")]
        said = [one.assessment for one in self._workspace.witness.observations(onces=onces)]
        decided = self._workspace.archive.decided_by_key(once)
        for other in (*said, *(() if decided is None else (decided,))):
            rules.check_key(key, of=other)

    def _carried_out(
        self, detail: AssessmentDetail, said: Said, meant: _Meant, *, aside: bool, two: bool, apply: Callable[[], str]
    ) -> str:
        """The decision, on a real item or a check: `apply` is what becomes of it where it is not one of two opinions."""
        if said.verb is not Verb.UNDO:
            if two:
                return self._opine(detail, said, meant, aside=aside, apply=apply)
            self.refuse_disputed(detail)
            return apply()
        _check_own(detail, said)
        mine = self._opinions(detail.row.key).get(said.reviewer)
        waits = detail.row.state is AssessmentState.PENDING
        state = str(AssessmentState.PENDING) if waits and mine else apply()
        if mine:  # it waits for the other one, or theirs was one of the two that agreed
            self._note(Seen.OPINION, detail, said.reviewer, f"opinion:{said.once}", {"withdrawn": True})
        return state

    def refuse_disputed(self, detail: AssessmentDetail) -> None:
        """Raise `Refused` where two opinions on what waits differ."""
        if detail.row.state is AssessmentState.PENDING and differ(self._opinions(detail.row.key)):
            raise disputed(detail.row.key)

    def _in_words_of_a_page(self, error: Refused, key: AssessmentKey, said: Said) -> Refused:
        """The refusal of a decision on what is decided already: by whom, and what can be done there; never the number."""
        detail, _ = self.detail(key)
        row = detail.row
        if said.verb is not Verb.UNDO and row.state in UNDOABLE and detail.events:
            who = detail.events[-1].decision.reviewer
            remedy = "Undo that first." if who == said.reviewer else "Ask them to undo it, or leave it."
            return Refused(error.where, f"is {row.state}, not pending: {who} decided it.", remedy=remedy)
        told = shown_assessment(key) in error.remedy
        return Refused(error.where, error.problem, remedy="Look at it again." if told else error.remedy)

    def _counted_before(self, detail: AssessmentDetail, said: Said) -> bool:
        """Whether this is an opinion, or its withdrawal, that was sent once more and needs nothing done."""
        mine = self._workspace.witness.observations(
            kinds=(Seen.OPINION,), assessments=(detail.row.key,), reviewer=said.reviewer
        )
        again = any(one.once == f"opinion:{said.once}" for one in mine)
        return again and (said.verb is Verb.UNDO or detail.row.state is not AssessmentState.PENDING)

    def ask_second(self, key: AssessmentKey, *, reviewer: str, once: str) -> None:
        """Want two people to decide this item; raises `Refused` where it does not wait."""
        detail, _ = self.detail(key)
        if detail.row.state is not AssessmentState.PENDING:
            raise Refused(shown_assessment(key), f"is {detail.row.state}, not pending.")
        self._note(Seen.SECOND, detail, reviewer, f"second:{key}", {"asked": once})

    def mine_not(self, keys: Collection[AssessmentKey], *, reviewer: str) -> frozenset[AssessmentKey]:
        """Those of the keys that are not this reviewer's to decide: their own opinion stands, or two do and are disputed."""
        standing = self._standing(self._workspace.witness.observations(kinds=(Seen.OPINION,), assessments=keys))
        return frozenset(key for key, opinions in standing.items() if reviewer in opinions or len(opinions) > 1)

    def waits_for_others(self, selection: Selection, *, reviewer: str) -> int:
        """How many waiting assessments of a selection are not this reviewer's to decide.

        None of a run with checks or repeats: there it would move with a real item and not with a check.
        """
        said = self._workspace.witness.opinions_that_wait(selection)
        protocols_of = {run: self._protocol(run) for run in {one.run_id for one in said}}
        open_ = [one for one in said if not (protocols_of[one.run_id].plants or protocols_of[one.run_id].rereview)]
        standing = self._standing(open_).values()
        return sum(1 for opinions in standing if reviewer in opinions or len(opinions) > 1)

    @staticmethod
    def _standing(said: Sequence[Observation]) -> dict[AssessmentKey, dict[str, Observation]]:
        by_item: dict[AssessmentKey, list[Observation]] = {}
        for one in said:
            by_item.setdefault(one.assessment, []).append(one)
        return {key: standing_opinions(given) for key, given in by_item.items()}

    def waiting_asides(self, selection: Selection, *, reviewer: str) -> tuple[AssessmentKey, ...]:
        """Planted checks and repeats that wait for this reviewer in a selection, further attempts first.

        None of a run of which nothing real waits: there is nothing left among which it could stand.
        """
        found = [
            one for one in self._workspace.witness.asides(reviewer=reviewer, done=False)
            if self._cover.covers(one.run_id) and (not selection.runs or one.run_id in selection.runs)
        ]  # fmt: skip
        if found and selection.suites:
            wanted = {folded(name) for name in selection.suites}
            theirs = self._workspace.archive.runs(Selection(runs=tuple({one.run_id for one in found})))
            known = {run.id for run in theirs if folded(run.suite) in wanted}
            found = [one for one in found if one.run_id in known]
        if found and (selection.tasks or selection.judges):
            rows = {one.row.key: one.row for one in self._workspace.archive.in_full([*{one.of for one in found}])}
            found = [
                one for one in found
                if (not selection.tasks or rows[one.of].task in selection.tasks)
                and (not selection.judges or rows[one.of].grader in selection.judges)
            ]  # fmt: skip
        due = self._checks.due(found, reviewer=reviewer)
        return tuple(one.key for one in sorted(due, key=lambda one: one.kind is not AsideKind.REDO))

    def rerun_wished(self, key: AssessmentKey, *, reviewer: str, once: str) -> None:
        """Note that this reviewer had a real item judged again."""
        detail = reviewing.assessment(self._workspace, key)
        self._note(Seen.DECISION, detail, reviewer, f"rerun:{once}",
                   {"verb": str(Verb.RERUN), "arm": self._arm_of_rerun(detail, reviewer), "active_ms": None, "aside": False,
                    "corrections": 0})  # fmt: skip

    # --- inside

    def _protocol(self, run: RunId) -> Protocol:
        return protocols.holding(self._workspace, self._plan(run))

    def _plan(self, run: RunId) -> RunPlan:
        if run not in self._plans:
            self._plans[run] = self._workspace.journal.plan_of(run)
        return self._plans[run]

    def _is_blind(self, detail: AssessmentDetail, protocol: Protocol, *, saw: bool) -> bool:
        """Whether it is drawn for the blind share and its scores were never sent to this reviewer.

        A repeat is drawn like any item: where the others show the judge's scores, one that withholds them would be known.
        """
        if not protocol.draws("blind", seed=self._plan(detail.row.run_id).seed, key=int(detail.row.key)):
            return False
        return not saw

    def _arm(self, detail: AssessmentDetail, reviewer: str, protocol: Protocol) -> str | None:
        """In which arm a decision of this reviewer falls; None where the own verdict is still to come."""
        past = self._past([detail.row.key], reviewer, [detail])[detail.row.key]
        if past.verdict is not None:
            return BLIND
        waits = detail.row.state is AssessmentState.PENDING and detail.row.by_model
        by_person = self._showcase.by_person(detail.row)
        if waits and not by_person and self._is_blind(detail, protocol, saw=past.saw):
            return None
        return ASSISTED

    def _arm_of_rerun(self, detail: AssessmentDetail, reviewer: str) -> str:
        """In which arm a wish to have it judged again falls: blind, where no grade of it had been sent."""
        past = self._past([detail.row.key], reviewer, [detail])[detail.row.key]
        unseen = self._is_blind(detail, self._protocol(detail.row.run_id), saw=past.saw)
        return BLIND if past.verdict is not None or unseen else ASSISTED

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

    def _is_shared(self, detail: AssessmentDetail, protocol: Protocol) -> bool:
        row = detail.row
        return row.state is AssessmentState.PENDING and self._takes_two(row.key, protocol, row.run_id)

    def _opinions(self, key: AssessmentKey) -> dict[str, Observation]:
        """The opinion that stands of each reviewer, by name, in the order in which they were given."""
        return standing_opinions(self._workspace.witness.observations(kinds=(Seen.OPINION,), assessments=(key,)))

    def _opine(
        self, detail: AssessmentDetail, said: Said, meant: _Meant, *, aside: bool, apply: Callable[[], str]
    ) -> str:
        key, where = detail.row.key, shown_assessment(detail.row.key)
        mine = self._opinions(key).get(said.reviewer)
        if mine is not None and mine.once != f"opinion:{said.once}":
            raise Refused(where, _GIVEN, remedy=_UNDO_YOURS)
        if mine is None and differ(self._opinions(key)):
            raise disputed(key)
        body = {
            "verb": str(said.verb), "reason": said.reason, "note": said.note, "result": meant.result,
            "corrections": meant.placed, **({"aside": True} if aside else {}),
        }  # fmt: skip
        opinion = self._observation(Seen.OPINION, detail, said.reviewer, f"opinion:{said.once}", body)
        both = standing_opinions(self._workspace.witness.note_and_read(opinion))
        others = [one for name, one in both.items() if name != said.reviewer]
        if not others or len(both) > 2 or not agree(others[0].body, body):
            return str(AssessmentState.PENDING)
        return apply()

    # --- planted checks and repeats

    def _as_detail(self, aside: Aside, real: AssessmentDetail) -> AssessmentDetail:
        """What was put aside, in the shape of a real assessment that waits, or was decided as it was."""
        shown = aside.shown or reordered(real.judged, seed=self._plan(aside.run_id).seed, key=int(aside.key))
        attempts = self._attempts(aside)
        state, events, counted = self._as_decided(aside, shown)
        row = replace(real.row, key=aside.key, state=state, current=attempts[-1] == aside.key,
                      attempt=attempts.index(aside.key) + 1, assessment=counted)  # fmt: skip
        return replace(real, row=row, judged=shown, attempts=attempts, events=events)

    def _attempts(self, aside: Aside) -> tuple[AssessmentKey, ...]:
        """What was put aside and the further attempts that were asked for, oldest first."""
        first = aside.about.get(_FIRST, aside.key)
        alike = self._workspace.witness.asides(of=aside.of, reviewer=aside.reviewer)
        return (AssessmentKey(first), *(one.key for one in sorted(alike, key=lambda one: (one.about.get(_ATTEMPT, 1), one.key))
                                        if one.about.get(_FIRST) == first))  # fmt: skip

    def _as_decided(
        self, aside: Aside, shown: Assessment
    ) -> tuple[AssessmentState, tuple[ReviewEvent, ...], Assessment]:
        """As a real one would look after what was said of it: its state, its history and its scores."""
        events: list[ReviewEvent] = []
        state, counted = AssessmentState.PENDING, shown
        for one in self._answers_to(aside.key):
            if one.body.get("opinion"):
                continue
            verb, before = Verb(one.body["verb"]), state
            state = state_after(one)
            places = {(name, criterion): value for name, criterion, value in one.body.get("placed", ())}
            counted = _laid_over(shown, places) if verb is Verb.CORRECT else shown
            decision = Decision(assessment=aside.key, verb=verb, reviewer=one.reviewer, via=Via.PAGE, displayed=True,
                                reason=one.body.get("reason", ""), note=one.body.get("note", ""), corrections=places,
                                key=one.once.removeprefix("decision:"))  # fmt: skip
            events.append(ReviewEvent(id=one.id, decision=decision, before=before, after=state, at=one.at))
        return state, tuple(events), counted

    def _answers_to(self, key: AssessmentKey) -> Sequence[Observation]:
        return self._workspace.witness.observations(kinds=(Seen.DECISION,), assessments=(key,))

    def _answer(self, key: AssessmentKey, said: Said, decision: Observation, meant: _Meant) -> str:
        """A decision on what is no real item: kept as an answer, and nothing else happens.

        Of several at once the store takes one; the others are judged by the state which that led to, as on a real item.
        """
        while True:
            known = self._answers_to(key)
            before = next((one for one in known if one.once == decision.once), None)
            if before is not None:
                return str(state_after(before))
            detail, aside = self.detail(key)
            assert aside is not None  # it was, and stays what it is
            after = rules.after(said.verb, detail.row.state, where=shown_assessment(key))
            done = said.verb is not Verb.UNDO or (aside.reviewer != said.reviewer and self._reviewer_stands(aside))
            found = self._plant_found(detail, aside, said, meant)
            if self._workspace.witness.answer([decision, *found], done=done, since=known[-1].id if known else 0):
                return str(after)

    def disputable(self, key: AssessmentKey) -> AssessmentDetail | None:
        """The item, if two may dispute it: a check only while its run is under cover."""
        detail, aside = self.detail(key)
        return detail if aside is None or self._cover.covers(aside.run_id) else None

    def is_check(self, key: AssessmentKey) -> bool:
        """Whether this is no real item."""
        return self._workspace.witness.aside(key) is not None

    def settle_check(
        self, key: AssessmentKey, verb: Verb, corrections: Mapping[tuple[str, str | None], float], *, reason: str,
        reviewer: str, once: str,
    ) -> ReviewEvent:  # fmt: skip
        """Adjudication of a dispute on what is no real item: kept as an answer; the event as a real one would have it."""
        detail, aside = self.detail(key)
        assert aside is not None  # the caller asked `is_check`
        said = Said(verb=verb, reviewer=reviewer, once=once, reason="" if verb is Verb.APPROVE else reason)
        meant = _Meant(corrections if verb is Verb.CORRECT else {}, {})
        body = {"verb": str(verb), "arm": ASSISTED, "active_ms": None, "aside": True, "settles": True, "corrections": 0}
        self._answer(key, said, self._observation(
            Seen.DECISION, detail, reviewer, f"decision:{once}", {**body, **_as_said(aside, said, meant)}
        ), meant)  # fmt: skip
        return next(event for event in reversed(self.detail(key)[0].events) if event.decision.key == once)

    def _reviewer_stands(self, aside: Aside) -> bool:
        """Whether an opinion of the one whom it was put before stands."""
        return aside.reviewer in self._opinions(aside.key)

    def _plant_found(self, detail: AssessmentDetail, aside: Aside, said: Said, meant: _Meant) -> list[Observation]:
        """What an answer says of the reviewer whom a planted check was put before."""
        if aside.kind is not AsideKind.PLANT or not self._measures(aside, said.reviewer):
            return []
        good = aside.about.get("how") == GOOD
        caught = said.verb is Verb.REJECT or any(
            good or _touches(place, aside.about.get("places", ())) for place in meant.corrections
        )
        body = {"caught": caught, "verb": str(said.verb), "how": aside.about.get("how")}
        return [self._observation(Seen.PLANT, detail, said.reviewer, f"plant:{said.once}", body)]

    def _measures(self, aside: Aside, reviewer: str) -> bool:
        """Whether an answer says something of this reviewer: it was put before them, among items that waited."""
        return aside.reviewer == reviewer and self._cover.covers(aside.run_id)

    def rerun_of_aside(self, key: AssessmentKey, *, reviewer: str, once: str, reason: str, note: str) -> AssessmentKey:
        """The further attempt at what is no real item: what its grader said of the original, in another order.

        Nobody is asked and nothing is paid. The wish is kept as the answer: it was found wanting.

        Raises:
            Refused: a real item would not be judged again either.
        """
        detail, aside = self.detail(key)
        assert aside is not None  # the caller asked `attempts` before
        if any(event.decision.key == once for event in detail.events):
            return detail.attempts[-1]
        reviewing.check_rerun(detail.row)
        witness = self._workspace.witness
        first, n = detail.attempts[0], len(detail.attempts) + 1
        new = witness.put_aside(
            Aside(key=AssessmentKey(0), kind=AsideKind.REDO, run_id=aside.run_id, of=aside.of, reviewer=aside.reviewer,
                  made=self._workspace.clock.now(), shown=None, about={_FIRST: int(first), _ATTEMPT: n})
        )  # fmt: skip
        said = [self._observation(
            Seen.DECISION, detail, reviewer, f"decision:{once}",
            {"verb": str(Verb.RERUN), "arm": self._arm_of_rerun(detail, reviewer), "active_ms": None, "aside": True,
             "corrections": 0, "reason": reason or note, "note": note},
        )]  # fmt: skip
        if aside.kind is AsideKind.PLANT and not aside.done and self._measures(aside, reviewer):
            body = {"caught": True, "verb": str(Verb.REJECT), "how": aside.about.get("how")}
            said.append(self._observation(Seen.PLANT, detail, reviewer, f"plant:{once}", body))
        witness.answer(said, done=True)
        return new.key

    def attempts(self, key: AssessmentKey) -> tuple[AssessmentDetail, bool]:
        """The item, and whether a further attempt at it is `rerun_of_aside`; raises `UnknownName`."""
        detail, aside = self.detail(key)
        return detail, aside is not None

    def is_taken(self, key: AssessmentKey, *, once: str) -> bool:
        """Whether the decision that a page calls `once` was taken on this item, be it a real one or none."""
        said = self._workspace.witness.observations(kinds=(Seen.DECISION,), assessments=(key,))
        return any(one.once == f"decision:{once}" for one in said) or any(
            event.decision.key == once for event in self.detail(key)[0].events
        )

    def _put_aside(self, detail: AssessmentDetail, decision: Observation, protocol: Protocol) -> None:
        """After a decision on a real item: a planted check, or the item once more, as chance and the protocol will."""
        if protocol.mode == PLAIN.mode or not detail.row.by_model or self._showcase.by_person(detail.row):
            return
        self._checks.after(detail, decision, protocol=protocol, seed=self._plan(detail.row.run_id).seed)


def _check_own(detail: AssessmentDetail, said: Said) -> None:
    """Raise `Refused` where the last decision is somebody else's; on a page people take back their own."""
    if not detail.events or any(event.decision.key == said.once for event in detail.events):
        return
    last = detail.events[-1].decision
    if last.verb is not Verb.UNDO and last.reviewer != said.reviewer:
        where = shown_assessment(detail.row.key)
        raise Refused(where, f"was decided by {last.reviewer}.", remedy="Ask them to undo it.")


def _check_run(detail: AssessmentDetail, run: str | None) -> None:
    if run not in {None, detail.row.run_id}:
        raise Refused("run", f"the item is of run {detail.row.run_id} here, and was decided as one of {run}.",
                      remedy="Another store served that one; nothing was done in this one.")  # fmt: skip


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
    """The candidates' scores if this opinion held; empty for a rejection.

    Raises what the decision itself would, but speaks of candidates as the page does, which may hide their names.
    """
    if verb is Verb.REJECT:
        return {}
    called = labels_of(detail.row)
    judged = _grading(detail.judged)
    held = rules.Grading(
        scores={called[name]: score for name, score in judged.scores.items()},
        grades={(called[name], criterion): score for (name, criterion), score in judged.grades.items()},
        weights=judged.weights,
    )
    if verb is Verb.APPROVE:
        rules.check_approval(held, where=where)
    else:
        given = {(called[name], criterion): value for (name, criterion), value in corrections.items()}
        held = rules.corrected(held, given, where=where)
    scores = ((name, held.scores[called[name]]) for name in judged.scores)
    return {name: score for name, score in scores if score is not None}


@dataclass(frozen=True, slots=True)
class _Meant:
    """What a decision comes to: scores by candidate and criterion, and the candidates' scores if it held."""

    corrections: Mapping[tuple[str, str | None], float]
    result: Mapping[str, float]

    @property
    def placed(self) -> list[list[Any]]:
        return [[name, criterion, value] for (name, criterion), value in self.corrections.items()]


def _meant(detail: AssessmentDetail, said: Said) -> _Meant:
    """What was said, read against the item and whatever its state; real items, opinions and checks are all read here.

    Raises:
        InputError, UnknownName: it makes no sense: a reason or a score lacks, or a score is of nothing that is there.
        Refused: a candidate would be left without a score.
    """
    given = said.corrections if said.verb is Verb.CORRECT else ()
    corrections = named(detail.row, given)
    reason = said.reason if said.verb is Verb.REJECT else said.reason or said.note
    reviewing.check_words(said.verb, reason=reason, corrections=corrections)
    if said.verb not in (Verb.APPROVE, Verb.CORRECT):
        return _Meant(corrections, {})
    return _Meant(corrections, _outcome(detail, said.verb, corrections, where=shown_assessment(detail.row.key)))


def _measured(detail: AssessmentDetail, verb: Verb, meant: _Meant) -> dict[str, Any]:
    """How far a decision lies from the judge, how long what was read is, and on which side the better one stood.

    `apart`: mean distance of the candidates' scores, `shift`: mean difference, both None for a rejection. `left`: whether
    the first pane came out above the last; None where they are equal or there is but one.
    """
    size = sum(len(response.text) for response in detail.responses)
    if verb not in (Verb.APPROVE, Verb.CORRECT):
        return {"size": size, "apart": None, "shift": None, "left": None}
    result, judged = meant.result, detail.judged.scores
    by = [result[name] - score for name in result if (score := judged.get(name)) is not None]
    order = [name for name in panes_of(detail.row) if name in result]
    first, last = (result[order[0]], result[order[-1]]) if len(order) > 1 else (0.0, 0.0)
    return {
        "size": size,
        "apart": sum(map(abs, by)) / len(by) if by else None,
        "shift": sum(by) / len(by) if by else None,
        "left": None if first == last else first > last,
    }


def _as_said(aside: Aside, said: Said, meant: _Meant) -> dict[str, Any]:
    """What the history of a decision shows, which for a real item stands in its events; of a repeat the scores it led to."""
    again = aside.kind is AsideKind.AGAIN and said.verb in (Verb.APPROVE, Verb.CORRECT)
    return {"reason": said.reason, "note": said.note, "placed": meant.placed, "result": meant.result if again else {}}


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
