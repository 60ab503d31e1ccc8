"""Evaluations that other programs submit, each stored as a run; `evaluation_result` returns the
results.

An evaluation is a run of one task with the same id, so no other state is stored. The id is derived
from the client's idempotency key. Run ids are unique, so a repeated request finds the existing run,
even from another process or after a crash. The request becomes a suite document, which the suite
reader checks; error messages then name the client's fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4, uuid5

from assay.app.runs import execution, preflight
from assay.app.suites import read_suite
from assay.domain.digest import JsonValue, digest
from assay.domain.errors import InputError, SuiteError, UnknownName
from assay.domain.identifiers import RunId, folded
from assay.domain.lifecycle import RunState
from assay.domain.run import RunOptions, RunPlan
from assay.domain.selection import RunSummary, Selection
from assay.domain.unescaped_json import unescaped_json
from assay.scoring.rubrics import QUALITY
from assay.suites.problems import SuiteErrors
from assay.suites.tasks import slug

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.app.settings import Settings
    from assay.app.workspace import Workspace
    from assay.store.opening import Store

SUITE: Final = "submitted"
"""Suite for evaluations that were submitted without a suite; id and content distinguish their
tasks.
"""

# Namespace of uuid5. If it changed, a client's key would no longer lead to its earlier evaluation.
_KEYS: Final = UUID("6f6e6365-0000-4000-8000-617373617900")
_ID: Final = re.compile(r"eval_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Error positions contain line numbers of our document, which the client never saw; only the field
# is kept.
_PLACE: Final = re.compile(r"(?::\d+)? ?(?:tasks\[0\])?\.?(.*)")
_FILE: Final = "submitted.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """Answers to judge, as sent by a client. None and empty values stand for the suite's defaults.

    Attributes:
        snippets: answer of each candidate, by name; used in every trial.
        task_id: id of the task; None to derive it from `thing`.
        judges: judge models; if empty, the judge in the settings.
        names: names that the client uses for these fields, for error messages.
        kept: ids and metadata from the client, which are stored with the run and returned.
    """

    thing: str
    snippets: tuple[tuple[str, str], ...]
    task_id: str | None = None
    context: str = ""
    language: str = ""
    family: str = ""
    prompt: str | list[dict[str, Any]] | None = None
    expected: Any = None
    ideal: str | None = None
    final_answer: Any = None
    score: JsonValue = None
    suite: str | None = None
    trials: int | None = None
    judges: tuple[str, ...] = ()
    judge_prompt: str | None = None
    mode: str | None = None
    rubric: JsonValue = None
    review: str | None = None
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    batch_id: str | None = None
    budget_usd: float | None = None
    of_answers: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A submitted evaluation, with the plan to execute; None if the run is finished or in
    progress.
    """

    evaluation_id: RunId
    plan: RunPlan | None
    again: bool


def submit(workspace: Workspace, submission: Submission, *, key: str | None = None) -> Submitted:
    """Store a submission as a run, without calling a model.

    `key` is the idempotency key. If a repeated request finds a run that no process executes, its
    plan is returned again.

    Raises InputError if the submission has problems (all are listed), or if the key was used for
    other content.
    """
    known = RunId(f"eval_{uuid4() if key is None else uuid5(_KEYS, key)}")
    content = digest(
        _document(submission)
        | {"kept": dict(submission.kept), "options": _options_document(submission)}
    )
    if key is not None and (earlier := _sent_before(workspace, known, content)) is not None:
        return earlier
    if workspace.settings.values["rubric"] is not None:
        # the suite reader uses the rubric in the settings
        submission = replace(submission, of_answers=False)
    suite = _read(workspace.settings, submission)
    values = workspace.settings.values
    options = RunOptions(
        concurrency=values["concurrency"],
        batch_id=submission.batch_id or None,
        budget_usd=workspace.settings.cap_usd(submission.budget_usd),
    )
    ahead = preflight.look_ahead(workspace, suite, options)
    about: dict[str, JsonValue] = {**submission.kept, "content": content}
    plan = replace(
        ahead.plan, id=known, environment={**ahead.plan.environment, "submission": about}
    )
    try:
        execution.write_down(workspace.store, suite, options, replace(ahead, plan=plan))
    except InputError:
        earlier = None if key is None else _sent_before(workspace, known, content)
        if earlier is None:
            raise
        return earlier  # two processes received the same request at once
    return Submitted(evaluation_id=known, plan=plan, again=False)


def _sent_before(workspace: Workspace, known: RunId, content: str) -> Submitted | None:
    """Return the run of an earlier request with the same key; raises `InputError` if its content
    was different.
    """
    summary = run_of_evaluation(workspace.store, known)
    if summary is None:
        return None
    plan = workspace.journal.plan_of(summary.id)
    kept = plan.environment.get("submission")
    if not isinstance(kept, dict) or kept.get("content") != content:
        problem = "was already sent with different content."
        raise InputError(
            "Idempotency-Key", problem, remedy="Use a different key for each evaluation."
        )
    left = summary.state in {RunState.PLANNED, RunState.INTERRUPTED}
    waits = left and not workspace.journal.is_carried_out(summary.id)
    if waits:
        preflight.check_providers(workspace.settings, workspace.directory, plan)
    return Submitted(evaluation_id=summary.id, plan=plan if waits else None, again=True)


def left_over(store: Store) -> Iterator[RunPlan]:
    """Yield the plans of accepted evaluations that no process executes, oldest first, for example
    after a crash of the server.
    """
    for run in store.archive.runs.begun_evaluations():
        if _ID.fullmatch(run) and not store.journal.is_carried_out(run):
            plan = store.journal.plan_of(run)
            if isinstance(plan.environment.get("submission"), dict):
                yield plan


def run_of_evaluation(store: Store, evaluation_id: str) -> RunSummary | None:
    if not _ID.fullmatch(evaluation_id):
        return None
    try:
        (summary,) = store.archive.runs.matching(Selection(runs=(evaluation_id,)))
    except UnknownName:
        return None
    return summary if summary.id == evaluation_id else None


def _read(settings: Settings, submission: Submission) -> Any:
    if not slug(submission.thing):
        where = submission.names.get("thing", "thing")
        raise InputError(
            where, f"is {submission.thing!r}, expected a name with at least one letter or digit."
        )
    names = [folded(name) for name, _ in submission.snippets]
    for place, name in enumerate(names):
        if name in names[:place]:
            problem = f"names {submission.snippets[place][0]!r} twice."
            remedy = "Name the candidates differently."
            raise InputError(submission.names.get("snippets", "snippets"), problem, remedy=remedy)
    text = unescaped_json(_document(submission))
    try:
        return read_suite(
            settings, _place(settings.working_folder), judge=_judge(settings, submission), text=text
        )
    except SuiteErrors as error:
        raise SuiteErrors(
            [_renamed(suite_error, submission) for suite_error in error.errors]
        ) from None


def _place(folder: Path) -> Path:
    """Return the path that messages use for the suite document, although no such file exists."""
    root = folder.resolve()
    return Path(_FILE) if root == Path.cwd() else root / _FILE


def _document(submission: Submission) -> dict[str, JsonValue]:
    task: dict[str, JsonValue] = {
        "id": slug(submission.thing) if submission.task_id is None else submission.task_id,
        "thing": submission.thing,
        **{name: getattr(submission, name) or None for name in ("context", "language", "family")},
        **{
            name: getattr(submission, name)
            for name in ("prompt", "expected", "ideal", "final_answer", "score", "trials")
        },
        "snippets": dict(submission.snippets),
    }
    rubric = submission.rubric
    if rubric is None and submission.of_answers:
        rubric = [
            {"name": c.name, "weight": c.weight, "scale": [c.low, c.high], "guidance": c.guidance}
            for c in QUALITY.criteria
        ]
    document: dict[str, JsonValue] = {
        "name": submission.suite or SUITE,
        "review": submission.review,
        "parameters": dict(submission.parameters) or None,
        "rubric": rubric,
        "tasks": [{key: value for key, value in task.items() if value is not None}],
    }
    return {key: value for key, value in document.items() if value is not None}


def _options_document(submission: Submission) -> dict[str, JsonValue]:
    return {
        "judge_prompt": submission.judge_prompt,
        "mode": submission.mode,
        "batch_id": submission.batch_id,
        "judges": list(submission.judges),
        "budget": submission.budget_usd,
    }


def _judge(settings: Settings, submission: Submission) -> Any:
    """Choose the judges. A single candidate is always judged on its own."""
    if submission.score is not None and submission.score != "judge" and not submission.judges:
        return None
    given: Any = list(submission.judges) or settings.values["judge"]
    mode = submission.mode or ("each" if len(submission.snippets) == 1 else None)
    if given is None:
        return None
    full_names = settings.values["judge_names"]
    each = [
        {"model": full_names.get(entry, entry)} if isinstance(entry, str) else entry
        for entry in (given if isinstance(given, list) else [given])
    ]
    keys = {} if mode is None else {"mode": mode}
    if prompt := submission.judge_prompt:
        keys["prompt"] = prompt if "/" in prompt else f"prompts/{prompt}"
    each = [
        {**entry, **keys} if isinstance(entry, Mapping) and "rotate" not in entry else entry
        for entry in each
    ]
    return each[0] if len(each) == 1 else each


def _renamed(error: SuiteError, submission: Submission) -> SuiteError:
    """Rewrite an error about the suite document so that it names the client's fields."""
    where = error.where
    for file in (_FILE, "--judge"):
        _, separator, rest = where.partition(file)
        if separator:
            where = ("judge" if file == "--judge" else "") + (
                _PLACE.fullmatch(rest) or [rest, rest]
            )[1]
            break
    ours, dot, deeper = where.partition(".")
    where = f"{submission.names.get(ours, ours)}{dot}{deeper}" or submission.names.get(
        "judge", "judge"
    )
    return SuiteError(where, error.problem, remedy=error.remedy)
