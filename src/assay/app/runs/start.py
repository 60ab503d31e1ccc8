"""Start a run from the web form, with the same checks as on the command line.

A form contains only differences from the suite file. Trials, candidates, judges and budget act like
command-line options and leave the file unchanged. The rubric, parameters and policy are merged into
a copy of the file, because only a suite can set them; the copy is checked like a file and stored
with the run. Paths are relative to the working folder and cannot lead out of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assay.app.runs import preflight
from assay.app.runs.suite_files import suite_place
from assay.app.suites import problems, read_suite
from assay.domain.errors import InputError, SuiteError
from assay.domain.run import PlannedTask, RunOptions, RunPlan
from assay.domain.unescaped_json import unescaped_json
from assay.engine.planning import planned_tasks
from assay.providers.prices import priced_models as priced_models  # re-exported for surfaces
from assay.suites.files import whole_text
from assay.suites.located_yaml import UnreadableText, plain, read_json, read_yaml
from assay.suites.problems import SuiteErrors
from assay.suites.set_files import is_set
from assay.suites.tasks import slug

if TYPE_CHECKING:
    from assay.app.runs.preflight import LookAhead
    from assay.app.runs.run_request import RunRequest
    from assay.app.settings import Settings
    from assay.app.workspace import Workspace
    from assay.domain.suite import Suite
    from assay.store.opening import Store
    from assay.suites.loading import JudgeRef


_RUNS_LOOKED_AT: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """A model that the form offers, and the source of its name."""

    ref: str
    origin: str


def known_models(store: Store, settings: Settings) -> tuple[KnownModel, ...]:
    """Return the models that forms offer: models in the settings and the newest runs, and `echo`.

    Programs that are candidates, such as agents, are no models: nobody can name one as a judge.
    """
    models: dict[str, str] = {}
    for ref in (*settings.judge_refs, *map(str, settings.values["prices"])):
        models.setdefault(ref, "assay.yaml")
    for summary in store.archive.runs.newest(limit=_RUNS_LOOKED_AT):
        plan = store.journal.plan_of(summary.id)
        for model in (*(c.model for c in plan.candidates), *(j.model for j in plan.judges)):
            if model is not None and model.program is None:
                models.setdefault(model.ref, summary.suite)
    models.setdefault("echo", "")
    return tuple(KnownModel(ref=ref, origin=origin) for ref, origin in models.items())


def model_names(store: Store, settings: Settings) -> tuple[str, ...]:
    """Return model names for completion, known models first, then all models with a known price."""
    return tuple(
        dict.fromkeys((*(model.ref for model in known_models(store, settings)), *priced_models()))
    )


def read(settings: Settings, path: str) -> tuple[Suite | None, tuple[SuiteError, ...]]:
    """Return a suite, or its problems. If only the judge is missing, `echo` becomes the judge."""
    where = suite_place(settings, path)
    wrong = problems(settings, where)
    if wrong:
        return None, wrong
    try:
        return read_suite(settings, where), ()
    except SuiteErrors:
        return replace(read_suite(settings, where, judge="echo"), judges=()), ()


def look(
    workspace: Workspace,
    path: str,
    request: RunRequest,
    *,
    judges: JudgeRef | None,
    changes: Mapping[str, Any],
) -> tuple[Suite, RunOptions, LookAhead]:
    """Return a requested run's suite, options and preview; raises the same `InputError` as `assay
    run --dry-run`.

    `path`: suite or set file, relative to the working folder. `judges`: as in a suite file.
    `changes`: new values for keys of the file, such as `review`, `protocol`, `parameters` and
    `rubric`.
    """
    where = suite_place(workspace.settings, path)
    text = _changed(where, changes) if changes else None
    suite = preflight.load(workspace.settings, where, judge=judges, text=text)
    try:
        options = preflight.options_for(workspace.settings, suite, request)
    except InputError as error:
        error.where = error.where or "--candidate"
        raise
    return suite, options, preflight.look_ahead(workspace, suite, options)


def judges_of(models: Sequence[str], *, mode: str | None, rotate: bool) -> JudgeRef | None:
    """Return judges in the format of a suite file; None, without models, for those of the file.

    `mode`: `joint`, `each` or `pairwise`. With `rotate`, judges take turns, one trial each.
    """
    named = [{"model": ref, "mode": mode} if mode else ref for ref in models]
    if len(named) < 2:
        return named[0] if named else None
    return [{"rotate": named}] if rotate else named


def tasks_of(suite: Suite, options: RunOptions, plan: RunPlan) -> Iterator[PlannedTask]:
    """Yield the tasks of a run; with a budget, chance draws their order from the run's seed."""
    return planned_tasks(suite, options, seed=plan.seed)


def _changed(path: Path, changes: Mapping[str, Any]) -> str:
    """Return the document of a suite file with some keys replaced; a set is first converted to a
    suite.
    """
    try:
        content = whole_text(path)
        document = read_json(content) if path.suffix.lower() == ".json" else read_yaml(content)
    except UnreadableText as error:
        raise SuiteError(str(path), error.problem, remedy=error.remedy) from error
    value: Any = plain(document.value)
    if path.suffix.lower() == ".jsonl":
        problem = (
            "is a batch file, which always has the default rubric, parameters, policy and protocol."
        )
        raise InputError(str(path), problem)
    if is_set(document.value):
        value = _as_suite(path.stem, value)
    if not isinstance(value, dict):
        raise InputError(str(path), "is not a suite.")
    return unescaped_json({**value, **changes}, indent=1)


def _as_suite(stem: str, value: Any) -> dict[str, Any]:
    named = value if isinstance(value, dict) and "things" in value else {"things": value}
    things = named["things"] if isinstance(named["things"], list) else [named["things"]]
    return {"name": named.get("name") or stem, "tasks": [_as_task(thing) for thing in things]}


def _as_task(thing: Any) -> Any:
    if not isinstance(thing, dict):
        return thing
    task = {"id": slug(str(thing.get("thingName", ""))), "thing": thing.get("thingName")}
    names = {
        "context": "context",
        "language": "language",
        "family": "family",
        "trialsNeeded": "trials",
    }
    for in_set, in_suite in names.items():
        if thing.get(in_set) is not None:
            task[in_suite] = thing[in_set]
    snippets = thing.get("snippets")
    if isinstance(snippets, list) and all(isinstance(snippet, dict) for snippet in snippets):
        task["snippets"] = {
            str(snippet.get("name")): snippet.get("content") for snippet in snippets
        }
    return task
