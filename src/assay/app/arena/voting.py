"""Arena voting: choose the next two responses, store a person's vote, and then reveal the authors.

Any two candidates of a run form a pair, and the pair with the fewest votes comes next. Within a
pair, each person sees tasks and trials in a different random order, so that votes cover the whole
run. Which response is on the left depends only on the store's secret, the run, the person and the
item, so a reload shows the same sides. The vote records the sides.

Until the vote is stored, the arena shows neither the authors nor judges' grades, and it hides names
inside responses. Assay records the disclosure before it reveals the authors, so that a later review
of the same trial does not count as blind.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache, cachedmethod

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

    from assay.app.results_folder import Projector
    from assay.domain.assessment import Response
    from assay.domain.identifiers import RunId
    from assay.domain.run import RunPlan
    from assay.store.opening import Store

LOOKED_AT: Final = 200
"""Maximum number of trials searched for two answers to vote on; in an unfinished run, most trials
may lack an answer.
"""
ALIKE: Final = 1e-9
"""Largest difference between two scores that counts as a tie, because sums of weighted grades
differ in their last digits.
"""
_DESKS: Final = 500  # maximum number of (person, run) pairs whose skips are remembered
_RUNS_KNOWN: Final = 32
_DISCLOSED_KNOWN: Final = 20_000  # maximum number of disclosures remembered as already stored
_LONGEST_NAME: Final = 1_000

WITH_ANSWERS: Final = (
    TrialState.NEEDS_REVIEW,
    TrialState.APPROVED,
    TrialState.REJECTED,
    TrialState.LEFT_OUT,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VotableRun:
    """A run that people can vote on.

    Attributes:
        pairs: number of pairs of candidates.
        items: maximum number of comparisons of two responses.
        has_pages: True if the first answer contains a web page; None if the run has no answer yet.
    """

    summary: RunSummary
    votes: int
    pairs: int
    items: int
    has_pages: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOpinion:
    """One judge's scores for two responses, and its preference.

    Scores range from 0 to 1. `agrees` is True if the person prefers the same response; None if the
    person called both bad.
    """

    judge: str
    left: float
    right: float
    says: Choice
    agrees: bool | None
    waits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reveal:
    """Names and judge opinions that are shown after a vote.

    `names` are the authors of the left and the right response. `telling` lists the words in each
    response that reveal its author.
    """

    vote: Vote
    names: tuple[str, str]
    judges: tuple[JudgeOpinion, ...]
    telling: tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bout:
    """Two responses to vote on, as one person sees them; `reveal` is None until that person has
    voted.

    `hides` finds the names to hide inside responses; None after the vote.
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
        return (
            self.contest.responses[self.pairing.left],
            self.contest.responses[self.pairing.right],
        )

    def text(self, side: int, most: int) -> str:
        """Return the first `most` characters of a response (0: left, 1: right), with names hidden
        until the vote.
        """
        return masked(self.sides[side].text[: most + _LONGEST_NAME], self.hides)[:most]

    def names_somebody(self, side: int) -> bool:
        """True if a name is hidden inside a response (0: left, 1: right)."""
        return masked(self.sides[side].text, self.hides) != self.sides[side].text

    def page(self, side: int) -> str | None:
        """Return the web page in a response (0: left, 1: right); None if the response contains no
        page.
        """
        return page_of(self.sides[side].text)


class ArenaVoting:
    """Stores votes and chooses the next pair.

    Thread-safe. Skipped pairs are forgotten when the process ends.
    """

    def __init__(self, store: Store, results: Projector) -> None:
        self._store = store
        self._results = results
        self._lock = Lock()  # protects the caches below
        self._skipped: LRUCache[tuple[str, str], set[tuple[int, int, int, int]]] = LRUCache(_DESKS)
        self._plans: LRUCache[tuple[str, tuple[str, ...]], RunPlan] = LRUCache(_RUNS_KNOWN)
        self._pages: dict[str, bool] = {}
        self._disclosed: LRUCache[tuple[object, ...], None] = LRUCache(_DISCLOSED_KNOWN)
        self._extents: LRUCache[tuple[str, int], tuple[int, int]] = LRUCache(_RUNS_KNOWN)

    def offers(
        self, *, before: str | None, limit: int
    ) -> tuple[tuple[VotableRun, ...], str | None]:
        """Return up to `limit` runs with at least two candidates, newest first, and the `before`
        argument for the next page.
        """
        arena = self._store.arena
        summaries: list[RunSummary] = []
        more = False
        for summary in self._store.archive.runs.newest_first(before=before):
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
        """Return a run's summary; raises `UnknownName` for an unknown run or a run with a single
        candidate.
        """
        (summary,) = self._store.archive.runs.matching(Selection(runs=(run,)))
        if len(summary.candidates) < 2:
            raise UnknownName(
                "pair", run, remedy="The arena needs a run with at least two candidates."
            )
        return summary

    def next(
        self, summary: RunSummary, reviewer: str, *, beside: tuple[int, int, int, int] | None = None
    ) -> Bout | None:
        """Return the next pair for a person; None if the person has voted on all pairs.

        `beside` is an item to leave out.
        """
        arena, plan = self._store.arena, self._plan(summary)
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
        """Return the pair with this web address; raises `UnknownName`."""
        summary = self.summary(run)
        plan, arena = self._plan(summary), self._store.arena
        position = arena.position_of(summary.id, task)
        contest = None if position is None else arena.contest(summary.id, position, k)
        if contest is not None:
            for places in combinations(sorted(contest.responses), 2):
                if self._name_of(plan, contest.task.id, k, places) == pair:
                    return self._bout(summary, plan, contest, places, reviewer)
        raise UnknownName("pair of responses", f"{task}, trial {k}, {pair}")

    def cast(
        self, bout: Bout, choice: Choice, *, idempotency_key: str, active_ms: int | None
    ) -> Reveal:
        """Store a person's vote and return the authors; raises `Refused` for a second vote on the
        same pair.
        """
        names = bout.summary.candidates
        telling = any(telling_words(response.text, names) for response in bout.sides)
        vote = self._store.arena.cast(
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
        self._results.touch(bout.summary.id, bout.contest.trial)
        return self._reveal(bout.summary, self._plan(bout.summary), bout.contest, vote)

    def take_back(
        self, run: str, reviewer: str, *, idempotency_key: str, vote: int | None = None
    ) -> Bout:
        """Withdraw a person's vote (by default the newest) and return its pair, so that the person
        can vote again.
        """
        summary = self.summary(run)
        taken = self._store.arena.take_back(
            summary.id, reviewer=reviewer, idempotency_key=idempotency_key, vote=vote
        )
        contest = self._store.arena.contest(summary.id, taken.pairing.position, taken.pairing.k)
        if contest is None:
            raise UnknownName("trial", f"{taken.task} {taken.pairing.k}")
        self._results.touch(summary.id, contest.trial)
        return self._bout(summary, self._plan(summary), contest, taken.pairing.pair, reviewer)

    def skip(self, bout: Bout) -> None:
        """Show a pair to this person only after all other pairs."""
        with self._lock:
            self._skipped.setdefault((bout.summary.id, bout.reviewer), set()).add(bout.pairing.item)

    def _offer(self, summary: RunSummary, votes: int) -> VotableRun:
        plan = self._plan(summary)
        n = len(summary.candidates)
        pairs = n * (n - 1) // 2
        trials = sum(summary.trials.get(state, 0) for state in WITH_ANSWERS)
        brought = sum(candidate.model is None for candidate in plan.candidates)
        # the responses are the same in every trial, so one vote per task is enough
        if brought == n:
            trials = min(trials, self._extent(summary)[0])
        return VotableRun(
            summary=summary,
            votes=votes,
            pairs=pairs,
            items=pairs * trials,
            has_pages=self._has_pages(summary),
        )

    def _has_pages(self, summary: RunSummary) -> bool | None:
        known = self._pages.get(summary.id)
        if known is None:
            contest = self._store.arena.contest(summary.id, 0, 1)
            responses = [] if contest is None else list(contest.responses.values())
            if not responses:
                return None
            known = any(page_of(response.text) is not None for response in responses)
            with self._lock:
                self._pages[summary.id] = known
        return known

    def _name_of(self, plan: RunPlan, task: str, k: int, pair: tuple[int, int]) -> str:
        content = f"{plan.id}\x1f{task}\x1f{k}\x1f{pair[0]}\x1f{pair[1]}".encode()
        return blake2b(content, key=self._key(), digest_size=6, person=b"pair").hexdigest()

    def _drawn(self, plan: RunPlan, reviewer: str, what: str, *numbers: int) -> int:
        """Return a 63-bit number that depends only on the store's secret and the arguments."""
        content = "\x1f".join([str(plan.id), reviewer, what, *map(str, numbers)]).encode(
            "utf-8", "replace"
        )
        drawn = blake2b(content, key=self._key(), digest_size=8, person=b"arena").digest()
        return int.from_bytes(drawn, "big") >> 1

    def _key(self) -> bytes:
        """Return the store's secret.

        The run's seed is not used, because the run's record contains the seed.
        """
        return self._store.secret.value()

    @cachedmethod(
        attrgetter("_plans"), lambda _, run: (run.id, run.candidates), attrgetter("_lock")
    )
    def _plan(self, summary: RunSummary) -> RunPlan:
        """Return a run's plan. The cached plan is replaced after candidates have been added."""
        return self._store.journal.plan_of(summary.id)

    @cachedmethod(
        attrgetter("_extents"),
        lambda _, run: (run.id, sum(run.trials.values())),
        attrgetter("_lock"),
    )
    def _extent(self, summary: RunSummary) -> tuple[int, int]:
        """Return a run's (number of tasks, trials per task).

        The cached pair is replaced after trials have been added.
        """
        return self._store.arena.extent(summary.id)

    def _walk(
        self,
        summary: RunSummary,
        plan: RunPlan,
        reviewer: str,
        left_out: set[tuple[int, int, int, int]],
    ) -> Iterator[tuple[Pairing, Contest]]:
        """Yield items to vote on, from the pair with the fewest votes first, and in a random order
        per person within a pair.
        """
        arena = self._store.arena
        tasks, most = self._extent(summary)
        votes = arena.by_pair(summary.id)
        pairs = sorted(
            combinations(range(len(summary.candidates)), 2),
            key=lambda places: (votes.get(places, 0), self._drawn(plan, reviewer, "pair", *places)),
        )
        brought = {
            place for place, candidate in enumerate(plan.candidates) if candidate.model is None
        }
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
                    yield (
                        Pairing(position=position, k=nth + 1, left=places[0], right=places[1]),
                        contest,
                    )
                if looked == LOOKED_AT:
                    break

    def _bout(
        self,
        summary: RunSummary,
        plan: RunPlan,
        contest: Contest,
        pair: tuple[int, int],
        reviewer: str,
    ) -> Bout:
        first, second = pair
        if self._drawn(plan, reviewer, "side", contest.position, contest.k, *pair) % 2:
            first, second = second, first
        pairing = Pairing(position=contest.position, k=contest.k, left=first, right=second)
        vote = self._store.arena.vote_on(summary.id, pairing, reviewer=reviewer)
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
        names = summary.candidates
        left, right = (
            telling_words(contest.responses[place].text, names)
            for place in (vote.pairing.left, vote.pairing.right)
        )
        brought = any(plan.candidates[place].model is None for place in vote.pairing.pair)
        self._note_disclosed(
            summary.id, contest.task.id, None if brought else contest.k, vote.reviewer
        )
        return Reveal(
            vote=vote,
            names=(names[vote.pairing.left], names[vote.pairing.right]),
            judges=tuple(judges_say(contest.judged, vote)),
            telling=(left, right),
        )

    @cachedmethod(attrgetter("_disclosed"), lock=attrgetter("_lock"))
    def _note_disclosed(self, run: RunId, task: str, k: int | None, reviewer: str) -> None:
        """Record that a reviewer learns the authors of a trial; repeated calls have no effect."""
        arena_disclosures.note(self._store, run, task, k, reviewer=reviewer)


def judges_say(judged: Mapping[str, Mapping[int, Judged]], vote: Vote) -> Iterator[JudgeOpinion]:
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
