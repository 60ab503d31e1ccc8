"""Endpoints that list, check and save suite and set files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypedDict

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from assay.app.review import protocol as protocols
from assay.app.runs import start as starting, suite_files
from assay.app.runs.rubric_choices import CriterionRow, criterion_rows, rubrics_for_suite
from assay.domain.errors import InputError
from assay.web.api.start import _problem, _refused
from assay.web.context import services_of
from assay.web.responses import Answer, Body

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.app.workspace import Workspace
    from assay.domain.suite import Suite


router = APIRouter()


class FileBody(Body):
    """A set or suite file from the browser; with `only_look`, it is checked and not saved.

    `title` is the set's name if a file name cannot contain all its characters. With `as_version`,
    an existing file of this name is kept, and the new one is saved under the next free number.
    """

    name: str = Field(min_length=1, max_length=210)
    title: str | None = Field(default=None, min_length=1, max_length=200)
    text: str = Field(max_length=suite_files.LARGEST_TEXT)
    only_look: bool = False
    as_version: bool = False


class SuiteChoices(TypedDict):
    """A valid suite's settings that the start form shows.

    `fitting` is the ready-made rubric to propose if the suite has none. `digest` is abbreviated.
    """

    name: str
    digest: str
    editable: bool
    description: str
    tasks: int
    things: list[str]
    judged: bool
    asks: bool
    trials: int | None
    candidates: list[dict[str, str | None]]
    judges: list[dict[str, str]]
    review: str
    protocol: Mapping[str, object]
    parameters: Mapping[str, object]
    rubric: list[CriterionRow]
    default_rubric: str
    fitting: str


class SuiteForm(TypedDict):
    """A suite file's settings for the start form, or its problems."""

    path: str
    problems: list[dict[str, str]]
    suite: SuiteChoices | None


@router.get("/api/suites", tags=["start"])
def suites(request: Request) -> Response:
    """List the suite and set files in the server's folder, and known models."""
    workspace = services_of(request).workspace
    models = [
        {"ref": model.ref, "from": model.origin}
        for model in starting.known_models(workspace.store, workspace.settings)
    ]
    return Answer({"suites": list(suite_files.suite_files(workspace.settings)), "models": models})


@router.get("/api/models/names", tags=["start"])
def model_names(request: Request) -> Response:
    """List model names for completion: known models first, then all models with a known price."""
    workspace = services_of(request).workspace
    return Answer({"names": list(starting.model_names(workspace.store, workspace.settings))})


@router.get("/api/suites/read", tags=["start"])
def suite(request: Request, path: Annotated[str, Query(max_length=1_000)]) -> Response:
    """Return a suite, or all its problems."""
    return Answer(suite_document(services_of(request).workspace, path))


@router.post("/api/suites", tags=["start"])
def save(request: Request, body: FileBody) -> Response:
    """Save a set or suite in the server's folder, or return its problems.

    Existing files are not overwritten.
    """
    workspace = services_of(request).workspace
    try:
        where, wrong = suite_files.check(
            workspace.settings, workspace.directory, body.name, body.text
        )
        if not wrong and not body.only_look:
            saved = suite_files.save(
                workspace.settings,
                workspace.directory,
                body.name,
                body.text,
                title=body.title,
                as_version=body.as_version,
            )
            return Answer({"suite": saved, "problems": []}, status_code=201)
    except InputError as error:
        return _refused(error, "")
    problems = [_problem(each, where.as_posix()) for each in wrong]
    return Answer(
        {"suite": where.as_posix(), "problems": problems}, status_code=422 if wrong else 200
    )


def suite_document(workspace: Workspace, path: str) -> SuiteForm:
    loaded, wrong = starting.read(workspace.settings, path)
    return {
        "path": path,
        "problems": [_problem(error, path) for error in wrong],
        "suite": None if loaded is None else _document(loaded),
    }


def _document(suite: Suite) -> SuiteChoices:
    tasks = list(suite.tasks)
    default, fitting = rubrics_for_suite(suite)
    return {
        "name": suite.name,
        "digest": suite.copy.digest[:12],
        "editable": suite_files.is_editable(suite),
        "description": suite.description,
        "tasks": len(tasks),
        "things": [task.thing for task in tasks[:5]],
        "judged": any(task.scoring.method == "judge" for task in tasks),
        "asks": any(task.prompt or task.turns for task in tasks)
        or any(candidate.model for candidate in suite.candidates),
        "trials": suite.trials or next((task.trials for task in tasks if task.trials), None),
        "candidates": [
            {"name": candidate.name, "model": candidate.model.ref if candidate.model else None}
            for candidate in suite.candidates
        ],
        "judges": [
            {"ref": judge.model.ref, "name": judge.name, "mode": str(judge.mode)}
            for judge in suite.judges
        ],
        "review": str(suite.review),
        "protocol": protocols.numbers(suite.protocol),
        "parameters": suite.parameters.as_json(),
        "rubric": criterion_rows(suite.rubric),
        "default_rubric": default,
        "fitting": fitting,
    }
