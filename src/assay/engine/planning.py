"""Build a run's plan and its trials, in a fixed order, from a suite and the user's options."""

from __future__ import annotations

import random
import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace

from assay.domain.digest import JsonValue
from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import RunId, folded
from assay.domain.margins import required_margin
from assay.domain.model import DEFAULTS, Parameters
from assay.domain.review_sample import ReviewRule
from assay.domain.run import PlannedTask, RunOptions, RunPlan, check_number_of_trials, within_bounds
from assay.domain.suite import CandidateSpec, ReviewOrder, Suite
from assay.scoring.rubrics import ARENA_RUBRIC, CODE_RUBRIC, QUALITY, is_code

# Applies only to candidates: judges keep their settings, because repeated trials measure their
# noise.
BENCHMARK = Parameters(temperature=0.0, frequency_penalty=0.0, presence_penalty=0.0)
"""Parameters of benchmark mode, which override those of the candidates."""


def planned_run(
    suite: Suite, options: RunOptions, *, started: str, seed: int, nonce: str
) -> RunPlan:
    """Return the plan of a run.

    `started`: ISO 8601 time in UTC. `seed`: used if the suite's parameters set no seed. `nonce`:
    four letters or digits that distinguish runs started in the same second.

    Raises:
        InputError: The number of trials, the concurrency or the budget is out of range, or a joint
            judge has fewer than two candidates.
    """
    _check(options)
    judges = suite.judges if options.judges is None else options.judges
    methods, code = _graded(suite) if judges else (set(), False)
    pages = "code_arena" in methods
    rubric = suite.rubric or (ARENA_RUBRIC if pages else CODE_RUBRIC if code else QUALITY)
    persona = "code" if code or pages or rubric == CODE_RUBRIC else "neutral"
    judges = tuple(
        replace(judge, pages=pages, persona=judge.persona or persona) for judge in judges
    )
    joint = any(judge.mode.compares for judge in judges)
    candidates = options.candidates or suite.candidates
    if joint and len(candidates) < 2 and "judge" in methods:
        raise InputError(
            suite.name,
            f"a joint judge needs at least two candidates, but this run has only {len(candidates)}.",
            remedy="Add candidates, or set `mode: each` for the judge.",
        )
    parameters = suite.parameters
    if options.benchmark:
        parameters = BENCHMARK.over(parameters)
        candidates = tuple(_without_own_sampling(candidate) for candidate in candidates)
    return RunPlan(
        id=run_id(suite.name, started, nonce),
        suite=suite.name,
        copy=suite.copy,
        candidates=candidates,
        judges=judges,
        rubric=rubric,
        policy=(options.review or suite.review).policy,
        parameters=parameters.over(DEFAULTS),
        system_prompt=suite.system_prompt,
        prompt_version=suite.prompt_version,
        seed=seed if suite.parameters.seed is None else suite.parameters.seed,
        started=started,
        concurrency=options.concurrency,
        batch_id=options.batch_id,
        benchmark=options.benchmark,
        margin=suite.margin
        if options.margin is None
        else required_margin(options.margin, argument="margin"),
        budget_usd=options.budget_usd,
        environment=options.environment,
        protocol=_protocol(suite, options.review or suite.review),
        user=suite.user,
    )


def _protocol(suite: Suite, review: ReviewRule) -> dict[str, JsonValue]:
    """Return the run's review protocol, which is fixed before there are any results."""
    protocol = with_review({**suite.protocol.as_json(), "order": str(suite.order)}, review)
    return protocol if suite.looks is None else {**protocol, "looks": suite.looks}


def with_review(protocol: Mapping[str, JsonValue], review: ReviewRule) -> dict[str, JsonValue]:
    """Return a review protocol with another rule for which grades a person must review."""
    kept = {key: value for key, value in protocol.items() if key not in {"sample", "order"}}
    # If only part of a sample is reviewed, that part must be random.
    order = (
        protocol.get("order", str(ReviewOrder.RANDOM))
        if review.sample is None
        else str(ReviewOrder.RANDOM)
    )
    return {**kept, **review.as_json(), "order": order}


def planned_tasks(
    suite: Suite, options: RunOptions, *, seed: int | None = None
) -> Iterator[PlannedTask]:
    """Yield tasks with a weight above 0 and their trials; the number comes from --trials, the task,
    the suite, or is 1.

    `seed` is the run's seed. With it and a budget, chance draws the positions, by which a run
    carries out its tasks.

    Raises InputError if the tasks have more trials than a run may have.
    """
    # Checked while planning: `--trials 99999999999` once made the planner use up all memory.
    planned = within_bounds(
        _weighty(suite, options), "trials" if options.trials is None else "--trials"
    )
    if seed is None or options.budget_usd is None:
        return planned
    # A budget may end a run early. Of a table sorted by subject, the first rows would give a
    # verdict on the first subject alone.
    places = array("Q", range(sum(1 for _ in _weighty(suite, options))))
    random.Random(seed).shuffle(places)
    return (replace(task, position=places[task.position]) for task in planned)


def _weighty(suite: Suite, options: RunOptions) -> Iterator[PlannedTask]:
    position = 0
    for task in suite.tasks:
        if task.weight == 0:
            continue
        if options.limit is not None and position >= options.limit:
            return
        # A task's own parameters take precedence over the candidate's and the suite's, so benchmark
        # mode must override them too.
        if options.benchmark and task.parameters.as_json():
            task = replace(task, parameters=BENCHMARK.over(task.parameters))
        count = options.trials or task.trials or suite.trials or 1
        yield PlannedTask(task=task, position=position, trials=range(1, count + 1))
        position += 1


def chosen_candidates(suite: Suite, names: tuple[str, ...]) -> tuple[CandidateSpec, ...]:
    """Return the suite's candidates with these names, in the suite's order.

    Case is ignored. Raises UnknownName.
    """
    by_name = {folded(candidate.name): candidate for candidate in suite.candidates}
    for name in names:
        if folded(name) not in by_name:
            known = [candidate.name for candidate in suite.candidates]
            raise UnknownName(
                "candidate", name, known, remedy=f"Suite {suite.name!r} has: {', '.join(known)}."
            )
    wanted = {folded(name) for name in names}
    return tuple(candidate for key, candidate in by_name.items() if key in wanted)


def run_id(suite: str, started: str, nonce: str) -> RunId:
    """Return `YYYYMMDD-HHMMSS-<suite>-<nonce>`, which sorts by time and can be used as a file
    name.
    """
    digits = re.sub(r"\D", "", started)[:14]
    slug = re.sub(r"[^a-z0-9]+", "-", suite.lower()).strip("-")[:32].strip("-") or "suite"
    return RunId(f"{digits[:8]}-{digits[8:]}-{slug}-{nonce}")


def _graded(suite: Suite) -> tuple[set[str], bool]:
    """Return the tasks' scoring methods, and True if all tasks that a judge grades are about
    code.
    """
    methods: set[str] = set()
    code = True
    for task in suite.tasks:
        methods.add(task.scoring.method)
        code = code and (is_code(task) or not task.scoring.judged)
    return methods, code and "judge" in methods


def _without_own_sampling(candidate: CandidateSpec) -> CandidateSpec:
    if candidate.model is None:
        return candidate
    own = BENCHMARK.over(candidate.model.parameters)
    return replace(candidate, model=replace(candidate.model, parameters=own))


def _check(options: RunOptions) -> None:
    check_number_of_trials("--trials", options.trials)
    for name, value in (("--concurrency", options.concurrency), ("--limit", options.limit)):
        if value is not None and value < 1:
            raise InputError(name, f"is {value}, and must be at least 1.")
    # `not … > 0` instead of `<= 0`, because it also refuses NaN.
    if options.budget_usd is not None and not options.budget_usd > 0:
        raise InputError(
            "--budget", f"is {options.budget_usd}, but must be more than 0 US dollars."
        )
