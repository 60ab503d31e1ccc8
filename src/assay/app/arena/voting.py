"""Arena voting: choose the next two responses, store a person's vote, and then reveal the authors.

Theory. Any two candidates of a run form a pair, and the pair with the fewest votes comes next. Within a pair, tasks and trials
follow in an order that is drawn for each person, so that votes cover the whole run. The side of each response depends only on
the store's secret, the run, the person and the item: a reload shows the same sides, and the vote records them. Until the vote
is stored, the arena reveals neither the authors nor a judge's grades, and it hides names inside responses as the review page
does. The disclosure is recorded before it happens, so that a later review of the same trial does not count as blind.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from threading import Lock
from typing import TYPE_CHECKING, Final

from assay.app.random_order import Shuffle
from assay.app.review import arena_disclosures
from assay.app.review.name_masking import Mask, mask_of, masked
from assay.domain.arena import Choice, Contest, Judged, Pairing, Vote
from assay.domain.errors import UnknownName
from assay.domain.lifecycle import AssessmentState, TrialState
from assay.domain.selection import RunSummary, Selection
from assay.scoring.authorship import telling_words
from assay.scoring.pages import page_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from assay.app.workspace import Workspace
    from assay.domain.assessment import Response
    from assay.domain.run import RunPlan

LOOKED_AT: Final = 200
"""Maximum trials checked for one pair before the next pair is tried; in an unfinished run, most may lack an answer."""
ALIKE: Final = 1e-9
"""Scores that differ by less than this are treated as equal, because sums of weighted grades differ in their last digits."""
_DESKS: Final = 500  # maximum number of (person, run) pairs whose skips are remembered
_RUNS_KNOWN: Final = 32
_DISCLOSED_KNOWN: Final = 20_000  # maximum number of disclosures remembered as already stored
_LONGEST_NAME: Final = 1_000

WITH_ANSWERS: Final = (TrialState.NEEDS_REVIEW, TrialState.APPROVED, TrialState.REJECTED, TrialState.LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class VotableRun:
    """A run that people can vote on.

    Attributes:
        pairs: number of pairs of candidates.
        items: the largest possible number of comparisons of two responses.
        has_pages: True if the first answer contains a web page; None if there is no answer yet.
    """

    summary: RunSummary
    votes: int
    pairs: int
    items: int
    has_pages: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOpinion:
    """A judge's own scores of the two responses (0 to 1), its preference, and whether the person agrees.

    `agrees` is None if the person called both responses bad, because that does not rank them.
    """

    judge: str
    left: float
    right: float
    says: Choice
    agrees: bool | None
    waits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reveal:
    """The names and judge opinions shown after a vote.

    Attributes:
        names: authors of the left and the right response.
        telling: words in each response that reveal its author.
    """

    vote: Vote
    names: tuple[str, str]
    judges: tuple[JudgeOpinion, ...]
    telling: tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bout:
    """Two responses as one person sees them; `reveal` is None until that person has voted.

    `hides` finds the names to hide inside responses; None once they are revealed.
    """

    summary: RunSummary
    contest: Contest
    pairing: Pairing
    reviewer: str
    pair: str
    reveal: Reveal | None
    hides: Mask | None

    @property
    def sides(self) -> tuple[Response, Response]:
        """The left and the right response."""
        return (self.contest.responses[self.pairing.left], self.contest.responses[self.pairing.right])

    def text(self, side: int, most: int) -> str:
        """Return the beginning of the response on a side, 0 or 1, as this person may read it."""
        return masked(self.sides[side].text[: most + _LONGEST_NAME], self.hides)[:most]

    def names_somebody(self, side: int) -> bool:
        """True if a name is hidden inside the response on a side, 0 or 1."""
        return masked(self.sides[side].text, self.hides) != self.sides[side].text

    def page(self, side: int) -> str | None:
        """Return the web page in the response on a side, 0 or 1; None if it contains none."""
        return page_of(self.sides[side].text)


class ArenaVoting:
    """Hands out pairs and stores votes; thread-safe. Skips are remembered for the life of the process."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = Lock()  # protects the caches below
        self._skipped: OrderedDict[tuple[str, str], set[tuple[int, int, int, int]]] = OrderedDict()
        self._plans: OrderedDict[tuple[str, tuple[str, ...]], RunPlan] = OrderedDict()
        self._pages: dict[str, bool] = {}
        self._disclosed: OrderedDict[tuple[str, str, int | None, str], None] = OrderedDict()
        self._extents: OrderedDict[tuple[str, int], tuple[int, int]] = OrderedDict()

    def offers(self, *, before: str | None, limit: int) -> tuple[tuple[VotableRun, ...], str | None]:
        """Return runs with two or more candidates, newest first after the run `before`, and the id to continue after."""
        arena = self._workspace.arena
        summaries: list[RunSummary] = []
        more = False
        for summary in self._workspace.archive.runs.newest_first(before=before):
            if len(summary.candidates) < 2:
                continue
            if len(summaries) == limit:
                more = True
                break
            summaries.append(summary)
        votes = arena.counts([summary.id for summary in summaries])
        offers = tuple(self._offer(summary, votes.get(summary.id, 0)) for summary in summaries)
        return offers, summaries[-1].id if more else None

    def summary(self, run: str) -> RunSummary:
        """Return the summary of a run; raises `UnknownName` if the run does not exist or has only one candidate."""
        (summary,) = self._workspace.archive.runs.matching(Selection(runs=(run,)))
        if len(summary.candidates) < 2:
            raise UnknownName("pair", run, remedy="The arena needs a run with at least two candidates.")
        return summary

    def next(
        self, summary: RunSummary, reviewer: str, *, beside: tuple[int, int, int, int] | None = None
    ) -> Bout | None:
        """Return the next pair for this person; None if nothing is left for them.

        Args:
            beside: an item that is not offered, because the page shows it already.
        """
        arena, plan = self._workspace.arena, self._plan(summary)
        done = set(arena.voted(summary.id, reviewer=reviewer))
        if beside is not None:
            done.add(beside)
        with self._lock:
            skipped = set(self._skipped.get((summary.id, reviewer), ()))
        for left_out in (done | skipped, done) if skipped else (done,):
            for pairing, contest in self._walk(summary, plan, reviewer, left_out):
                return self._bout(summary, plan, contest, pairing.pair, reviewer)
        return None

    def bout(self, run: str, task: str, k: int, pair: str, reviewer: str) -> Bout:
        """Return the pair with an address, as this person sees it; raises `UnknownName`."""
        summary = self.summary(run)
        plan, arena = self._plan(summary), self._workspace.arena
        position = arena.position_of(summary.id, task)
        contest = None if position is None else arena.contest(summary.id, position, k)
        if contest is not None:
            for places in combinations(sorted(contest.responses), 2):
                if self._name_of(plan, contest.task.id, k, places) == pair:
                    return self._bout(summary, plan, contest, places, reviewer)
        raise UnknownName("pair of responses", f"{task}, trial {k}, {pair}")

    def cast(self, bout: Bout, choice: Choice, *, idempotency_key: str, active_ms: int | None) -> Reveal:
        """Store this person's vote and reveal the authors; raises `Refused` for a second vote on the same pair."""
        names = bout.summary.candidates
        telling = any(telling_words(response.text, names) for response in bout.sides)
        vote = self._workspace.arena.cast(
            Vote(
                run_id=bout.summary.id,
                pairing=bout.pairing,
                choice=choice,
                reviewer=bout.reviewer,
                idempotency_key=idempotency_key,
                active_ms=active_ms,
                telling=telling,
            )
        )
        self._workspace.results.touch(bout.summary.id, bout.contest.trial)
        return self._reveal(bout.summary, self._plan(bout.summary), bout.contest, vote)

    def take_back(self, run: str, reviewer: str, *, idempotency_key: str, vote: int | None = None) -> Bout:
        """Withdraw a person's vote, by default their newest, and return its pair so that they can vote again."""
        summary = self.summary(run)
        taken = self._workspace.arena.take_back(
            summary.id, reviewer=reviewer, idempotency_key=idempotency_key, vote=vote
        )
        contest = self._workspace.arena.contest(summary.id, taken.pairing.position, taken.pairing.k)
        if contest is None:
            raise UnknownName("trial", f"{taken.task} {taken.pairing.k}")
        self._workspace.results.touch(summary.id, contest.trial)
        return self._bout(summary, self._plan(summary), contest, taken.pairing.pair, reviewer)

    def skip(self, bout: Bout) -> None:
        """Move a pair to the end for this person."""
        with self._lock:
            key = (str(bout.summary.id), bout.reviewer)
            self._skipped.setdefault(key, set()).add(bout.pairing.item)
            self._skipped.move_to_end(key)
            while len(self._skipped) > _DESKS:
                self._skipped.popitem(last=False)

    def _offer(self, summary: RunSummary, votes: int) -> VotableRun:
        plan = self._plan(summary)
        n = len(summary.candidates)
        pairs = n * (n - 1) // 2
        trials = sum(summary.trials.get(state, 0) for state in WITH_ANSWERS)
        brought = sum(candidate.model is None for candidate in plan.candidates)
        if brought == n:  # the responses are the same in every trial, so one vote per task is enough
            trials = min(trials, self._extent(summary)[0])
        return VotableRun(
            summary=summary, votes=votes, pairs=pairs, items=pairs * trials, has_pages=self._has_pages(summary)
        )

    def _has_pages(self, summary: RunSummary) -> bool | None:
        known = self._pages.get(summary.id)
        if known is None:
            contest = self._workspace.arena.contest(summary.id, 0, 1)
            responses = [] if contest is None else list(contest.responses.values())
            if not responses:
                return None
            known = any(page_of(response.text) is not None for response in responses)
            with self._lock:
                self._pages[summary.id] = known
        return known

    def _name_of(self, plan: RunPlan, task: str, k: int, pair: tuple[int, int]) -> str:
        """Return the opaque name of a pair in web addresses; it differs between trials."""
        content = f"{plan.id}\x1f{task}\x1f{k}\x1f{pair[0]}\x1f{pair[1]}".encode()
        return blake2b(content, key=self._key(), digest_size=6, person=b"pair").hexdigest()

    def _drawn(self, plan: RunPlan, reviewer: str, what: str, *numbers: int) -> int:
        """Return a 63-bit number that depends only on the store's secret, the run, the person and the purpose."""
        content = "\x1f".join([str(plan.id), reviewer, what, *map(str, numbers)]).encode("utf-8", "replace")
        drawn = blake2b(content, key=self._key(), digest_size=8, person=b"arena").digest()
        return int.from_bytes(drawn, "big") >> 1

    def _key(self) -> bytes:
        """Return the store's secret. The run's seed is not suitable: it is in the run's record, where it would reveal the sides."""
        return self._workspace.store.secret.value()

    def _plan(self, summary: RunSummary) -> RunPlan:
        """Return the plan of a run, cached; it is read again after candidates have been added."""
        key = (str(summary.id), summary.candidates)
        with self._lock:
            plan = self._plans.get(key)
        if plan is None:
            plan = self._workspace.journal.plan_of(summary.id)
            with self._lock:
                self._plans[key] = plan
                while len(self._plans) > _RUNS_KNOWN:
                    self._plans.popitem(last=False)
        return plan

    def _extent(self, summary: RunSummary) -> tuple[int, int]:
        """Return (tasks, trials per task) of a run, cached; it is read again after trials have been added."""
        key = (str(summary.id), sum(summary.trials.values()))
        with self._lock:
            extent = self._extents.get(key)
        if extent is None:
            extent = self._workspace.arena.extent(summary.id)
            with self._lock:
                self._extents[key] = extent
                while len(self._extents) > _RUNS_KNOWN:
                    self._extents.popitem(last=False)
        return extent

    def _walk(
        self, summary: RunSummary, plan: RunPlan, reviewer: str, left_out: set[tuple[int, int, int, int]]
    ) -> Iterator[tuple[Pairing, Contest]]:
        """Yield items to vote on: the pair with the fewest votes first, each pair in an order drawn for this person."""
        arena = self._workspace.arena
        tasks, most = self._extent(summary)
        votes = arena.by_pair(summary.id)
        pairs = sorted(
            combinations(range(len(summary.candidates)), 2),
            key=lambda places: (votes.get(places, 0), self._drawn(plan, reviewer, "pair", *places)),
        )
        brought = {place for place, candidate in enumerate(plan.candidates) if candidate.model is None}
        for places in pairs:
            shuffle = Shuffle(self._drawn(plan, reviewer, "walk", *places))
            drawn = (divmod(shuffle.next(tasks * most), most) for _ in range(tasks * most))
            looked = 0
            for position, nth in drawn:
                item = (position, nth + 1, *places)
                if item in left_out or (nth and brought.issuperset(places)):
                    continue
                looked += 1
                contest = arena.contest(summary.id, position, nth + 1)
                if contest is not None and contest.responses.keys() >= set(places):
                    yield Pairing(position=position, k=nth + 1, left=places[0], right=places[1]), contest
                if looked == LOOKED_AT:
                    break

    def _bout(self, summary: RunSummary, plan: RunPlan, contest: Contest, pair: tuple[int, int], reviewer: str) -> Bout:
        first, second = pair
        if self._drawn(plan, reviewer, "side", contest.position, contest.k, *pair) % 2:
            first, second = second, first
        pairing = Pairing(position=contest.position, k=contest.k, left=first, right=second)
        vote = self._workspace.arena.vote_on(summary.id, pairing, reviewer=reviewer)
        reveal = None if vote is None else self._reveal(summary, plan, contest, vote)
        return Bout(
            summary=summary,
            contest=contest,
            pairing=pairing if vote is None else vote.pairing,
            reviewer=reviewer,
            pair=self._name_of(plan, contest.task.id, contest.k, pair),
            reveal=reveal,
            hides=mask_of(plan) if reveal is None else None,
        )

    def _reveal(self, summary: RunSummary, plan: RunPlan, contest: Contest, vote: Vote) -> Reveal:
        left, right = contest.responses[vote.pairing.left], contest.responses[vote.pairing.right]
        telling = tuple(telling_words(response.text, summary.candidates) for response in (left, right))
        names = summary.candidates
        brought = any(plan.candidates[place].model is None for place in vote.pairing.pair)
        self._note_disclosed(summary, contest.task.id, None if brought else contest.k, vote.reviewer)
        return Reveal(
            vote=vote,
            names=(names[vote.pairing.left], names[vote.pairing.right]),
            judges=tuple(judges_say(contest.judged, vote)),
            telling=(telling[0], telling[1]),
        )

    def _note_disclosed(self, summary: RunSummary, task: str, k: int | None, reviewer: str) -> None:
        mark = (str(summary.id), task, k, reviewer)
        with self._lock:
            known = mark in self._disclosed
        if known:
            return
        arena_disclosures.note(self._workspace, summary.id, task, k, reviewer=reviewer)
        with self._lock:
            self._disclosed[mark] = None
            while len(self._disclosed) > _DISCLOSED_KNOWN:
                self._disclosed.popitem(last=False)


def judges_say(judged: Mapping[str, Mapping[int, Judged]], vote: Vote) -> Iterator[JudgeOpinion]:
    """Return the opinion of each judge that scored both responses of a vote."""
    for judge, scores in judged.items():
        left, right = scores.get(vote.pairing.left), scores.get(vote.pairing.right)
        if left is None or right is None:
            continue
        apart = left.score - right.score
        says = Choice.EQUAL if abs(apart) < ALIKE else Choice.LEFT if apart > 0 else Choice.RIGHT
        yield JudgeOpinion(
            judge=judge,
            left=left.score,
            right=right.score,
            says=says,
            agrees=None if vote.choice is Choice.BOTH_BAD else says is vote.choice,
            waits=AssessmentState.PENDING in (left.state, right.state),
        )
