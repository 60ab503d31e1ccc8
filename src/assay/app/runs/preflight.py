"""Check whether a run can start, and estimate its calls and cost."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from assay.app.calibration_status import check_demands
from assay.app.environment import surroundings
from assay.app.review.lottery import lottery_of
from assay.app.runs.cost_estimate import Tally, check_cap, over_budget
from assay.app.webhooks import check_webhook
from assay.app.workspace import Workspace, browser_notes
from assay.domain.assessment import Response
from assay.domain.calls import ModelRequest, Reply, Role
from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import folded
from assay.domain.lifecycle import Policy
from assay.domain.names import name_problem
from assay.domain.run import PlannedTask, RunOptions, RunPlan
from assay.domain.selection import Selection
from assay.domain.suite import CandidateSpec, Suite, Task, ToolMessage
from assay.domain.tools import ToolCall
from assay.engine.conversation import Conversation
from assay.engine.estimate import CostEstimate, likely_tokens
from assay.engine.planning import chosen_candidates, planned_run, planned_tasks
from assay.engine.trial import grading_attempt
from assay.scoring.evaluators import evaluators_for
from assay.scoring.structuring import foreseen_structuring

if TYPE_CHECKING:
    from pathlib import Path

    from assay.app.runs.run_request import RunRequest
    from assay.app.settings import Settings
    from assay.providers.directory import Directory
    from assay.store.opening import Store
    from assay.suites.loading import JudgeRef


Held = Iterable[tuple[PlannedTask, int, Mapping[str, Response]]]
"""Trials with stored responses, as (task, trial number, response by candidate)."""


_NOW_STRICT: Final = {
    "exact": (
        "an answer that equals `expected` (ignoring outer white space, case and Unicode form)",
        "similarity",
    ),
    "numeric": ("an answer whose result equals the number in `expected`", "closeness"),
}
"""Methods that gave credit for near misses in earlier versions: the answers they accept now, and
the method for that credit.
"""

_GRADING: Final = (Role.JUDGE, Role.STRUCTURER)
_UNKNOWN: Final = "\x7f"
"""Filler for an unknown answer: a single byte that no suite text contains, counted as one letter.
"""
_UNKNOWN_ANSWER: Final = re.compile(f"{_UNKNOWN}+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAhead:
    """Preview of a run: its plan, cost estimate, notes, and the prompts of its first task.

    `reviews` counts the assessments that will await review; with policy `flagged`, at most that
    many. `strict` contains the methods of its tasks that gave credit for near misses in earlier
    versions.
    """

    plan: RunPlan
    trials: int
    tasks: int
    estimate: CostEstimate
    notes: tuple[str, ...]
    prompts: tuple[ModelRequest, ...]
    strict: frozenset[str] = frozenset()
    reviews: int = 0


def load(
    settings: Settings, path: Path, *, judge: JudgeRef | None = None, text: str | None = None
) -> Suite:
    """Load a suite from its file or `text`; if it has no judge, `judge` or the setting `judge`
    applies.

    Raises `InputError` with all problems.
    """
    # imported here because YAML and validation are only needed to read a file
    from assay.app.suites import read_suite

    return read_suite(settings, path, judge=judge, text=text)


def options_for(settings: Settings, suite: Suite, request: RunRequest) -> RunOptions:
    """Return the options of a requested run. Candidates are looked up by name; a name such as
    `openai/gpt-4o-mini` adds that model as a candidate.
    """
    from assay.app.suites import model_candidate

    known = {folded(candidate.name) for candidate in suite.candidates}
    models = [
        name
        for name in request.candidates
        if folded(name) not in known and ("/" in name or name == "echo")
    ]
    named = chosen_candidates(
        suite, tuple(name for name in request.candidates if name not in models)
    )
    return RunOptions(
        trials=request.trials,
        candidates=(*named, *(model_candidate(settings, name) for name in models)),
        concurrency=settings.values["concurrency"],
        benchmark=request.benchmark,
        batch_id=request.batch_id,
        budget_usd=settings.cap_usd(request.budget_usd),
        limit=request.limit,
        review=request.review,
    )


def look_ahead(workspace: Workspace, suite: Suite, options: RunOptions) -> LookAhead:
    """Return a run's plan, cost estimate and notes, without any model call.

    Raises InputError for a missing key, a refused provider, a prompt that is too long, a candidate
    model without a prompt, an unknown price under a budget, a suite without tasks, or too many
    trials.
    """
    from assay.app.suites import notes_on

    if problem := name_problem(options.batch_id or ""):
        raise InputError("batch_id", f"is {options.batch_id!r}, {problem}")
    plan = planned_run(
        suite,
        options,
        started=workspace.clock.now(),
        seed=workspace.seed(),
        nonce=workspace.nonce(),
    )
    check_providers(workspace.settings, workspace.directory, plan)
    check_demands(workspace.store, plan)
    plan = replace(plan, environment=surroundings(workspace, plan))
    trials = tasks = reviews = 0
    methods: set[str] = set()
    strict: set[str] = set()
    tally = Tally(workspace.directory)
    nothing_asked = _NothingAsked(plan.candidates)
    lottery = lottery_of(plan, planned_tasks(suite, options))
    prompts: tuple[ModelRequest, ...] = ()
    for planned in planned_tasks(suite, options):
        tasks += 1
        methods.add(planned.task.scoring.method)
        strict |= {planned.task.scoring.rule} & _NOW_STRICT.keys()
        nothing_asked.note(planned.task)
        trials += len(planned.trials)
        # A single request represents all similar ones, so that a million trials take no longer to
        # estimate than one.
        for alike in _trials_alike(plan, planned.trials):
            requests = tuple(_requests(plan, planned, k=alike[0]))
            for request in requests:
                tally.add(request, times=len(alike))
                _check_context(workspace.directory, request)
            prompts = prompts or tuple(map(_readable, requests))
            times = len(alike) if lottery is None else lottery.count(planned.task.id, alike)
            reviews += times * _reviews_of(plan, planned, k=alike[0])
    if not tasks:
        raise InputError(
            suite.name, "has no task with a weight above 0, so there is no trial to run."
        )
    nothing_asked.check()
    if methods & {"tests", "evaluators"}:
        # In a separate thread, because a notebook's event loop runs in this one.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, workspace.commands.choose()).result()
    estimate = tally.estimate()
    check_cap(estimate, plan.budget_usd)
    notes = (
        *notes_on(suite, options),
        *over_budget(estimate, plan.budget_usd),
        *(browser_notes(workspace.settings) if "code_arena" in methods else ()),
    )
    return LookAhead(
        plan=plan,
        trials=trials,
        tasks=tasks,
        estimate=estimate,
        notes=notes,
        prompts=prompts,
        strict=frozenset(strict),
        reviews=reviews,
    )


def _reviews_of(plan: RunPlan, planned: PlannedTask, *, k: int) -> int:
    if plan.policy is Policy.NONE or not planned.task.judged:
        return 0
    names = tuple(
        candidate.name
        for candidate in plan.candidates
        if candidate.model is not None or planned.task.snippet_of(candidate.name) is not None
    )
    evaluators = evaluators_for(planned.task, plan.judges, plan.rubric, k=k)
    return sum(len(evaluator.slots(names)) for evaluator in evaluators if evaluator.by_model)


def note_on_rules(store: Store, ahead: LookAhead) -> str:
    """Return a note if the suite's latest run used a rule with partial credit that is now strict;
    otherwise an empty text.
    """
    # The new run becomes the latest and gives no partial credit, so the author sees the note only
    # once.
    if not ahead.strict:
        return ""
    with suppress(UnknownName):
        for run in store.archive.runs.matching(Selection(suites=(ahead.plan.suite,)), limit=1):
            for planned, _ in store.journal.tasks_of(run.id):
                scoring = planned.task.scoring
                if scoring.near_misses and scoring.method in ahead.strict:
                    rule, lenient = _NOW_STRICT[scoring.method]
                    return (
                        f"`{scoring.method}` now gives 1 to {rule} and 0 to any other. Up to {run.id} it gave credit for near "
                        f"misses, and those scores stay as they are. To score as before, write `score: {lenient}`."
                    )
    return ""


class _NothingAsked:
    """Collects candidate models that cannot be called because a task has no prompt: `note` each
    task, then `check`.
    """

    def __init__(self, candidates: Iterable[CandidateSpec]) -> None:
        # A candidate with its own prompt was checked against the columns of each task when the
        # suite was read.
        self._models = tuple(
            candidate.name
            for candidate in candidates
            if candidate.model is not None and candidate.prompt is None and not candidate.messages
        )
        self._tasks = self._mute = 0
        self._found: dict[str, None] = {}

    def note(self, task: Task) -> None:
        self._tasks += 1
        if any(message.role != "system" for message in task.prompt):
            return
        unasked = [name for name in self._models if task.snippet_of(name) is None]
        self._mute += bool(unasked)
        self._found.update(dict.fromkeys(unasked))

    def check(self) -> None:
        """Raise `InputError` if a candidate model would get a task without a prompt."""
        if not self._found:
            return
        names = ", ".join(map(repr, self._found))
        how_many = (
            "no task here has"
            if self._mute == self._tasks
            else f"{self._mute} of {self._tasks} tasks here lack"
        )
        raise InputError(
            "--candidate",
            f"{names} cannot be called, because {how_many} a prompt.",
            remedy="Leave out the candidate, or give every task a `prompt` or a snippet of this name. Only suites, not set files, "
            "have prompts.",
        )


def estimate_of_judging(
    directory: Directory, plan: RunPlan, planned: Iterable[PlannedTask], *, held: Held | None = None
) -> CostEstimate:
    """Estimate the cost of judging responses: those in `held` are stored; all others count at
    maximum length.
    """
    tally = Tally(directory)
    groups: Iterable[tuple[PlannedTask, int, Mapping[str, Response] | None, int]] = (
        ((task, k, responses, 1) for task, k, responses in held)
        if held is not None
        else (
            (task, alike[0], None, len(alike))
            for task in planned
            for alike in _trials_alike(plan, task.trials)
        )
    )
    for planned_task, k, responses, times in groups:
        for request in _requests(plan, planned_task, k=k, held=responses):
            if request.purpose.role in _GRADING:
                tally.add(request, times=times)
                _check_context(directory, request)
    return tally.estimate()


def _trials_alike(plan: RunPlan, trials: range) -> list[Sequence[int]]:
    """Return trial numbers grouped by the judges that grade them; a single group unless judges take
    turns.
    """
    if not any(judge.turn for judge in plan.judges):
        return [trials] if trials else []
    groups: dict[tuple[bool, ...], list[int]] = {}
    for k in trials:
        groups.setdefault(
            tuple(judge.grades_trial(k) for judge in plan.judges if judge.turn), []
        ).append(k)
    return list(groups.values())


def check_providers(settings: Settings, directory: Directory, plan: RunPlan) -> None:
    """Raise an error if a model of the run cannot be called.

    In a regrade, candidates are not checked.
    """
    check_webhook(settings)
    asked = plan.candidates if plan.regrade_of is None else ()
    candidates = [c.model for c in asked if c.model is not None]
    candidates += [plan.user.model] if plan.user is not None and candidates else []
    judges = [judge.model for judge in plan.judges]
    judges += [] if plan.rubric.structuring is None else [plan.rubric.structuring.model]
    if problems := directory.problems(candidates, judges=judges):
        raise problems[0]


def _requests(
    plan: RunPlan, planned: PlannedTask, *, k: int = 1, held: Mapping[str, Response] | None = None
) -> Iterable[ModelRequest]:
    """Yield the calls in a task's k-th trial that can be predicted; `held` contains stored
    answers.
    """
    responses = {
        s.candidate: Response(candidate=s.candidate, text=s.text) for s in planned.task.snippets
    }
    responses.update(held or {})
    claimed = planned.trial(plan.id, k, responses=responses)
    for candidate in plan.candidates:
        if candidate.model is not None:
            conversation = Conversation(plan, claimed, candidate, candidate.model)
            while (request := conversation.request) is not None:
                yield request
                # At four characters per token, this is half of the maximum answer, as
                # `likely_tokens` assumes. One round of tool calls is assumed for each message of
                # the user.
                calls = tuple(
                    ToolCall(id="", name=tool.name, arguments={}) for tool in request.tools[:1]
                )
                used = isinstance(next(reversed(request.messages), None), ToolMessage)
                text = _UNKNOWN * 2 * (request.parameters.max_tokens or 0)
                conversation.hear(Reply(text=text, tool_calls=() if used else calls))
            responses[candidate.name] = conversation.response
    for evaluator in evaluators_for(planned.task, plan.judges, plan.rubric, k=k):
        if not evaluator.by_model:
            continue
        for slot in evaluator.slots(tuple(responses)):
            grading = grading_attempt(plan, claimed, slot, responses)
            yield from foreseen_structuring(plan.rubric, grading, k=k)
            asked = evaluator.foreseen(grading)
            yield from (request for request in asked if isinstance(request, ModelRequest))


def _readable(request: ModelRequest) -> ModelRequest:
    messages = (
        replace(
            message,
            content=_UNKNOWN_ANSWER.sub("[the answer, not known before the run]", message.content),
        )
        for message in request.messages
    )
    return replace(request, messages=tuple(messages))


def _check_context(directory: Directory, request: ModelRequest) -> None:
    room = directory.context_tokens(request.model)
    if room is None:
        return
    asked, _ = likely_tokens(request)
    answered = request.parameters.max_tokens or 0
    if asked + answered > room:
        what = "the judge's prompt" if request.purpose.role == "judge" else "the prompt"
        raise InputError(
            f"task {request.purpose.task}",
            f"{what} has about {asked:,} tokens and its answer up to {answered:,}; the context of {request.model.ref} is {room:,}.",
            remedy="Use `mode: each`, fewer or shorter candidates, a lower max_tokens, or a model with a larger context.",
        )
