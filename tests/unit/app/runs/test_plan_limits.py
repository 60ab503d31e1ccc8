"""A number of trials that no run can hold, and a model that would be asked nothing, are refused
before anything is done.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.sets import write_set

from assay.app.runs import execution, extension, preflight
from assay.app.runs.run_request import ExtendRequest, RunRequest
from assay.app.workspace import Workspace
from assay.domain.errors import InputError
from assay.domain.run import MAX_PLANNED, MAX_TRIALS, PlannedTask, RunOptions, within_bounds
from assay.engine.planning import planned_tasks

SUITE = """\
name: two
judge: human
tasks:
  - {id: one, prompt: Say one., snippets: {ann: one, bob: two}}
  - {id: two, snippets: {ann: one, bob: two, echo: three}}
  - {id: three, snippets: {ann: one, bob: two}}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(tmp_path, environment={"OPENAI_API_KEY": "k"}) as opened:
        yield opened


def look(
    workspace: Workspace, path: Path, *, trials: int | None = None, candidates: tuple[str, ...] = ()
) -> None:
    suite = preflight.load(workspace.settings, path, judge="human")
    request = RunRequest(trials=trials, candidates=candidates)
    options = preflight.options_for(workspace.settings, suite, request)
    preflight.look_ahead(workspace, suite, options)


@pytest.mark.parametrize("trials", [MAX_TRIALS + 1, 99_999_999_999, 10**30])
def test_a_number_of_trials_that_no_task_can_have_is_refused_at_once(
    workspace: Workspace, tmp_path: Path, trials: int
) -> None:
    path = write_set(tmp_path)
    began = time.monotonic()
    with pytest.raises(
        InputError, match=f"--trials: is {trials:,}, and must be at most 10,000"
    ) as refused:
        look(workspace, path, trials=trials)
    assert refused.value.where == "--trials"
    assert time.monotonic() - began < 20
    look(workspace, path, trials=MAX_TRIALS)


def test_a_suite_file_says_so_at_its_line(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "many.yaml"
    path.write_text(SUITE.replace("judge: human", "judge: human\ntrials: 10001"), "utf-8")
    with pytest.raises(
        InputError, match=r"many.yaml:3 trials: is 10001, expected a whole number from 1 to 10,000"
    ):
        look(workspace, path)


def test_a_plan_is_bounded_over_all_its_tasks(workspace: Workspace, tmp_path: Path) -> None:
    suite = preflight.load(workspace.settings, write_set(tmp_path, things=1), judge="human")
    (planned,) = planned_tasks(suite, RunOptions(trials=MAX_TRIALS))
    fit = MAX_PLANNED // MAX_TRIALS
    assert len(list(within_bounds([planned] * fit, "trials"))) == fit
    with pytest.raises(InputError, match=r"2,010,000 trials for the first 201 tasks"):
        list(within_bounds([planned] * 1000, "trials"))
    prompts = [
        PlannedTask(task=planned.task, position=n, trials=range(1, 101)) for n in range(5_000)
    ]
    assert len(list(within_bounds(prompts, "trials"))) == 5_000, (
        "5,000 prompts, a hundred times each"
    )


def test_an_extension_is_held_to_the_same_bounds(workspace: Workspace, tmp_path: Path) -> None:
    suite = preflight.load(workspace.settings, write_set(tmp_path, trials=2), judge="human")
    run = execution.run(workspace, suite, RunOptions(trials=2)).summary.id
    with pytest.raises(InputError, match="--trials: is 99,999,999,999"):
        extension.add_to(workspace, run, ExtendRequest(more_trials=99_999_999_999))
    with pytest.raises(InputError, match="--until-approved: is 10,001"):
        extension.add_to(workspace, run, ExtendRequest(until_approved=10_001))
    with pytest.raises(InputError, match=r"--trials: would give task '.*' 10,001 trials"):
        extension.add_to(workspace, run, ExtendRequest(more_trials=9_999))
    extension.add_to(workspace, run, ExtendRequest(more_trials=9_998), only_look=True)
    assert sum(execution.result_of(workspace.store, run).summary.trials.values()) == 2 * len(
        list(suite.tasks)
    )


def test_a_model_that_would_be_asked_nothing_is_refused(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write_set(tmp_path, things=3)
    names = tuple(
        c.name for c in preflight.load(workspace.settings, path, judge="human").candidates
    )
    look(workspace, path, candidates=names)
    with pytest.raises(
        InputError, match="--candidate: 'echo' cannot be called, because no task here has a prompt"
    ):
        look(workspace, path, candidates=(*names, "echo"))
    mixed = tmp_path / "mixed.yaml"
    mixed.write_text(SUITE, "utf-8")
    look(workspace, mixed)
    with pytest.raises(
        InputError, match="'openai/x' cannot be called, because 2 of 3 tasks here lack a prompt"
    ) as opened:
        look(workspace, mixed, candidates=("ann", "openai/x"))
    assert "give every task a `prompt` or a snippet" in opened.value.remedy


def test_a_model_that_joins_must_have_something_to_answer(
    workspace: Workspace, tmp_path: Path
) -> None:
    from assay.app.suites import model_candidate

    suite = preflight.load(workspace.settings, write_set(tmp_path), judge="human")
    run = execution.run(workspace, suite, RunOptions()).summary.id
    joins = (model_candidate(workspace.settings, "echo"),)
    with pytest.raises(
        InputError, match="--candidate: 'echo' cannot be called, because no task here has a prompt"
    ):
        extension.add_to(workspace, run, ExtendRequest(candidates=joins))
    assert "echo" not in [c.name for c in workspace.journal.plan_of(run).candidates]


def test_a_budget_draws_the_order_of_the_tasks(workspace: Workspace, tmp_path: Path) -> None:
    suite = preflight.load(workspace.settings, write_set(tmp_path, things=20), judge="human")
    budget = RunOptions(budget_usd=1.0)
    positions = [planned.position for planned in planned_tasks(suite, budget, seed=1)]
    assert positions != sorted(positions)
    assert sorted(positions) == list(range(20))
    assert positions == [planned.position for planned in planned_tasks(suite, budget, seed=1)]
    assert positions != [planned.position for planned in planned_tasks(suite, budget, seed=2)]
    assert [planned.position for planned in planned_tasks(suite, RunOptions(), seed=1)] == list(
        range(20)
    )
