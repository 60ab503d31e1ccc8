"""Load suites and check them against providers, scorers and installed packages."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from assay.app.model_prices import priced
from assay.domain.errors import SuiteError
from assay.domain.model import ModelSpec
from assay.domain.suite import CandidateSpec, Rubric, Suite
from assay.providers.model_refs import parse_ref
from assay.providers.programs.opening import AGENTS
from assay.scoring.graders import GRADERS
from assay.scoring.prompts import template_problems
from assay.scoring.scorer_registry import SCORER_REGISTRY
from assay.scoring.scorers import MATH, option_problems, reference_problems
from assay.specialists.templates import read_schema, template_problems as template_problems_in
from assay.suites.checks import METHODS, ExternalChecks
from assay.suites.loading import GivenSuite, JudgeRef, load_suite, problems_in
from assay.suites.notes import notes_on as suite_notes
from assay.suites.rubrics import described_rubric, load_rubric
from assay.suites.scenarios import SCENARIO_FILE, scenario_problems
from assay.suites.schema import scenario_json_schema, set_json_schema, suite_json_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.app.settings import Settings
    from assay.domain.digest import JsonValue
    from assay.domain.run import RunOptions


def read_suite(
    settings: Settings,
    path: Path,
    *,
    judge: JudgeRef | None = None,
    candidates: tuple[str, ...] = (),
    text: str | None = None,
    given: GivenSuite | None = None,
) -> Suite:
    """Read and check a suite, from its file, `text` or the document `given`; the settings supply
    prices and a missing judge.
    """
    suite = load_suite(
        path,
        judge=judge,
        default_judge=settings.values["judge"],
        candidates=candidates,
        folder=settings.folder,
        read_from=settings.read_from,
        checks=checks(),
        text=text,
        given=given,
    )
    return replace(
        suite,
        candidates=tuple(
            c if c.model is None else replace(c, model=priced(settings, _placed(settings, c.model)))
            for c in suite.candidates
        ),
        judges=tuple(replace(j, model=priced(settings, j.model)) for j in suite.judges),
        user=None
        if suite.user is None
        else replace(suite.user, model=priced(settings, suite.user.model)),
        rubric=default_rubric(settings)
        if suite.rubric is None
        else _rubric(settings, suite.rubric),
    )


def rubric_of_file(settings: Settings, path: Path) -> Rubric:
    """Return the rubric in a file, with the price of its structuring model; raises
    `SuiteErrors`.
    """
    return _rubric(settings, load_rubric(path, checks()))


def default_rubric(settings: Settings) -> Rubric | None:
    """Return the rubric in the setting `rubric`; None if it is not set. Raises `SuiteErrors`."""
    given = settings.values["rubric"]
    return (
        None
        if given is None
        else _rubric(settings, described_rubric(given, settings.folder, checks()))
    )


def _rubric(settings: Settings, rubric: Rubric) -> Rubric:
    if rubric.structuring is None:
        return rubric
    model = priced(settings, rubric.structuring.model)
    return replace(rubric, structuring=replace(rubric.structuring, model=model))


def problems(settings: Settings, path: Path, *, text: str | None = None) -> tuple[SuiteError, ...]:
    """Return all problems in a suite file, set file, scenario or template, or in `text` before it
    is saved as a suite.
    """
    if path.suffix == ".json5" and text is None:
        return template_problems_in(path)
    if (path / SCENARIO_FILE).is_file():
        path /= SCENARIO_FILE
    if path.name == SCENARIO_FILE and text is None:
        return scenario_problems(path)
    return problems_in(
        path,
        default_judge=settings.values["judge"],
        read_from=settings.read_from,
        checks=checks(),
        text=text,
    )


def json_schema(kind: str) -> dict[str, JsonValue]:
    """Return the JSON Schema of suite files, set files, scenarios, templates of specialists or
    snapshots, for editors.
    """
    if kind in ("template", "snapshot"):
        return read_schema(kind)
    return {"suite": suite_json_schema, "set": set_json_schema, "scenario": scenario_json_schema}[
        kind
    ]()


def model_candidate(settings: Settings, ref: str) -> CandidateSpec:
    """Return a candidate that calls the referenced model; raises `InputError` for an invalid
    reference.
    """
    return CandidateSpec(name=ref, model=priced(settings, _model(ref)))


def notes_on(suite: Suite, options: RunOptions) -> tuple[str, ...]:
    return suite_notes(suite, trials=options.trials)


def _model(ref: str) -> ModelSpec:
    provider, name = parse_ref(ref)
    return ModelSpec(provider=provider, name=name)


def _placed(settings: Settings, model: ModelSpec) -> ModelSpec:
    """Store the folder of a model's program relative to the working folder if possible, so that a
    project can be moved.
    """
    if model.program is None:
        return model
    folder, root = Path(model.program.folder), settings.working_folder.resolve()
    if folder.is_relative_to(root):
        folder = folder.relative_to(root)
    return replace(model, program=replace(model.program, folder=folder.as_posix()))


def checks() -> ExternalChecks:
    """Return the checks of model references, scoring methods and scorer options, including those of
    installed packages.
    """
    offered = dict.fromkeys((*SCORER_REGISTRY.plugin_names(), *GRADERS.plugin_names()))
    plugins = tuple(name for name in offered if name not in METHODS)

    def problems_of(method: str, options: Mapping[str, JsonValue]) -> tuple[str, ...]:
        if method == MATH and find_spec("math_verify") is None:
            return (
                "`math` needs a package that is not installed. Install it with: pip install 'assay-bench[math]'",
            )
        return () if method in plugins else option_problems(method, options)

    return ExternalChecks(
        parse_ref=_model,
        methods=(*METHODS, *plugins),
        plugins=frozenset(plugins),
        agents=AGENTS.plugin_names(),
        option_problems=problems_of,
        template_problems=template_problems,
        reference_problems=reference_problems,
    )
