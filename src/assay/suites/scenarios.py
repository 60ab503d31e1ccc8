"""Reads scenario folders: `scenario.yaml`, prompts by tier, the fixture of the repository, and
`oracle-answers.json`.

Both spellings are accepted: lists of evaluators and validation commands, or the mappings that
larger harnesses use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, Final

from assay.domain.agent_limits import MAX_TURNS, AgentLimits
from assay.domain.digest import bytes_digest, digest
from assay.domain.errors import InputError, SuiteError
from assay.domain.scenarios import (
    JUDGE,
    THRESHOLD,
    CheckCommand,
    CommandKind,
    EvaluatorSpec,
    Scenario,
)
from assay.domain.suite import Message, Scoring, SuiteCopy, Task
from assay.scoring.evaluator_plugins import EVALUATOR_PLUGINS
from assay.scoring.workspace_grader import (
    DECLARED,
    EVALUATORS,
    FUNCTIONS,
    HEURISTIC,
    evaluator_problem,
    heuristics,
    scenario_rubric,
)
from assay.suites.checks import ExternalChecks
from assay.suites.files import NamedFiles, whole_text
from assay.suites.grammar import (
    FLAG,
    FREE,
    FREE_MAPPING,
    NAME,
    TEXT,
    Keys,
    Kind,
    ReadContext,
    key,
    list_of,
    made_of,
    number,
    whole,
)
from assay.suites.harness_keys import HarnessKeys
from assay.suites.located_yaml import UnreadableText, Value, plain, read_json, read_yaml, shown
from assay.suites.problems import Location, Path, SuiteErrors, TooManyProblems, dotted

SCENARIO_FILE: Final = "scenario.yaml"
_ORACLE: Final = "oracle-answers.json"
_FIXTURES: Final = ("repo-fixture", "repo")
_TIER: Final = re.compile(r"(L\d+|Lx)(?:-.*)?\.md")
KEBAB: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_FILES: Final = 20_000
_LONGEST_MINUTES: Final = 24 * 60
_DEPENDENCY_FILES: Final = ("requirements.txt", "package.json", "pyproject.toml")
_PROTECTED: Final = ("test*", "*/test*", "*_test.*", "*.test.*", "*.spec.*")
_KIND_WORDS: Final[Mapping[str, CommandKind]] = {
    "install": CommandKind.INSTALL,
    **dict.fromkeys(("build", "compile"), CommandKind.BUILD),
    **dict.fromkeys(("tsc", "mypy", "typecheck", "type-check"), CommandKind.TYPECHECK),
    **dict.fromkeys(("lint", "ruff"), CommandKind.LINT),
    "test": CommandKind.TEST,
}


def _read_commands(value: Value, path: Path, context: ReadContext) -> dict[str, list[str]] | None:
    """Read commands by kind (a text or a list of texts each), or a list whose kinds are recognised
    by a word in them.
    """
    if isinstance(value, list):
        commands: dict[str, list[str]] = {}
        for place, text in TEXTS.read(value, path, context) or ():
            named = next((kind for word, kind in _KIND_WORDS.items() if word in text), None)
            if named is None:
                context.report(
                    place,
                    f"is {shown(text)}, whose kind is unknown.",
                    "Write it as `commands: {KIND: COMMAND}`.",
                )
                continue
            commands.setdefault(named.value, []).append(text)
        return commands
    if not isinstance(value, dict):
        context.report(
            path,
            f"is {shown(value)}, expected commands by kind, such as {{test: python -m unittest}}.",
        )
        return None
    result = {}
    for kind, command in value.items():
        listed = TEXTS.read(
            command if isinstance(command, list) else [command], (*path, kind), context
        )
        result[kind] = [text for _, text in listed or ()]
    return result


TEXTS: Final = list_of(TEXT)
_COMMANDS: Final = Kind(
    _read_commands,
    {
        "anyOf": [
            {"type": "array", "items": {"type": "string"}},
            {"type": "object", "additionalProperties": {"type": ["string", "array"]}},
        ]
    },
)


class ValidationKeys(Keys):
    """`validation`: the commands that check the workspace after the agent."""

    commands = key(
        _COMMANDS, "Commands by kind: install, build, typecheck, lint, test, or a name of your own."
    )
    required = key(TEXTS, "Kinds that must pass for a trial to be a success; all kinds by default.")
    seconds = key(number(1, 86_400), "Time limit of each command; 600 by default.")
    network = key(FLAG, "True if these commands and the baseline may use the network.")


def _limits(keys: LimitKeys) -> AgentLimits:
    return AgentLimits(turns=keys.turns or MAX_TURNS, tokens=keys.tokens, cost_usd=keys.cost_usd)


class LimitKeys(Keys):
    """`limits`: the most that an agent may use of its model in one trial; the workspace is graded
    as it stands then.
    """

    turns = key(whole(1), "Replies of the model; 100 by default.")
    tokens = key(whole(1), "Input and output tokens of all replies together.")
    cost_usd = key(number(0), "US dollars.")


class BaselineKeys(Keys):
    """`baseline`: prepares a copy of the fixture before the agent starts."""

    run = key(TEXTS, "Commands in order; all must succeed.", required="List the commands.")


def _evaluator(keys: EvaluatorKeys) -> EvaluatorSpec | None:
    if keys.name is None:
        return None
    return EvaluatorSpec(
        name=keys.name.replace("-", "_"),
        weight=1.0 if keys.weight is None else keys.weight,
        options=plain(keys.options or {}),  # type: ignore[arg-type] # a mapping stays a mapping
    )


class EvaluatorKeys(Keys):
    """An evaluator: one criterion of the grade."""

    name = key(
        NAME,
        f"{', '.join(FUNCTIONS)}, or a kind of validation command.",
        required="Name the evaluator.",
    )
    weight = key(number(0), "Its share in the score; 1 by default.")
    options = key(FREE_MAPPING, "Options of the evaluator.")


EVALUATOR: Final = made_of(EvaluatorKeys, _evaluator)


class ScenarioKeys(HarnessKeys):
    """The keys of `scenario.yaml`."""

    id = key(NAME)
    name = key(NAME)
    suite = key(NAME)
    title = key(TEXT)
    description = key(TEXT)
    timeout_minutes = key(number(0.05, _LONGEST_MINUTES), "Time limit of the agent; 60 by default.")
    limits = key(made_of(LimitKeys, _limits), "Limits of the agent besides its time.")
    network = key(FLAG, "True if the agent's commands may use the network.")
    baseline = key(Kind(BaselineKeys.read, BaselineKeys.schema()))
    validation = key(Kind(ValidationKeys.read, ValidationKeys.schema()))
    validation_commands = key(TEXTS, "A short form of `validation: {commands: […]}`.")
    evaluators = key(list_of(EVALUATOR), "The criteria of the grade, with their weights.")
    llm_judge = key(
        FREE_MAPPING, "Options of the evaluator `llm_judge`, which is added with its `weight`."
    )
    heuristic_checks = key(
        FREE_MAPPING,
        "Options of the evaluator `heuristic_checks`, which is added with its `weight`.",
    )
    protected = key(
        TEXTS,
        "Patterns of files that the agent must neither change nor add; by default, those that hold tests.",
    )
    allowed = key(
        TEXTS,
        "Patterns of files that the agent may change or add although they are protected or steer a tool.",
    )
    threshold = key(
        number(0, 1), f"Weighted score from which a trial is a success; {THRESHOLD:g} by default."
    )
    tags = key(TEXTS)
    family = key(NAME)
    hints = key(FREE)
    success_criteria = key(FREE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedScenario:
    """A scenario with a task for each of its tiers."""

    suite: str
    name: str
    tasks: tuple[Task, ...]
    copy: SuiteCopy


def scenario_folder(base: FilePath, suite: str, name: str) -> FilePath:
    """Return the folder of a scenario; if it does not exist, raises `InputError` with the names of
    existing scenarios.
    """
    folder = base / "suites" / suite / "scenarios" / name
    if KEBAB.fullmatch(suite) and KEBAB.fullmatch(name) and (folder / SCENARIO_FILE).is_file():
        return folder
    known = sorted(
        f"{path.parts[-4]} {path.parts[-2]}"
        for path in base.glob(f"suites/*/scenarios/*/{SCENARIO_FILE}")
    )
    remedy = (
        f"There is: {'; '.join(known[:10])}."
        if known
        else "Create one: assay init --scenario SUITE/NAME"
    )
    raise InputError(
        f"{suite} {name}", f"is not a scenario below {base / 'suites'}.", remedy=remedy
    )


def scenario_problems(file: FilePath) -> tuple[SuiteError, ...]:
    """Return all problems of a scenario's folder, by the path of its `scenario.yaml`."""
    try:
        load_scenario(file.parent, base=file.parent)
    except SuiteErrors as errors:
        return errors.errors
    return ()


def load_scenario(
    folder: FilePath, *, base: FilePath, tiers: tuple[str, ...] = ()
) -> LoadedScenario:
    """Return the scenario in a folder `suites/SUITE/scenarios/NAME`, with the tasks of these tiers
    (all by default).

    Raises `SuiteErrors` with every problem in the folder, or `InputError` for a tier that the
    scenario lacks.
    """
    file = folder / SCENARIO_FILE
    try:
        text = whole_text(file)
        document = read_yaml(text)
    except UnreadableText as error:
        raise SuiteErrors(
            [SuiteError(f"{file}:{error.line or 0}", error.problem, remedy=error.remedy)]
        ) from error

    def locate(where: Path, at_key: bool) -> Location:
        return Location(str(file), document.line_of(where, at_key), dotted(where))

    context = ReadContext(locate, checks=ExternalChecks(), files=NamedFiles(folder))
    for misuse in document.misuses:
        context.report(misuse.path, misuse.problem, misuse.remedy, at_key=True)
    tasks: tuple[Task, ...] = ()
    try:
        keys = ScenarioKeys.read(document.value, (), context)
        if keys is not None:
            tasks = _tasks(keys, folder, base, context)
    except TooManyProblems:
        pass
    if errors := context.errors():
        raise SuiteErrors(errors)
    by_tier = {task.tags[0]: task for task in tasks}
    for tier in tiers:
        if tier not in by_tier:
            raise InputError("--tier", f"is {tier!r}, and {folder.name} has {', '.join(by_tier)}.")
    chosen = tuple(by_tier[tier] for tier in dict.fromkeys(tiers)) if tiers else tasks
    suite = folder.resolve().parent.parent.name
    copy = SuiteCopy(
        path=str(file), text=text, digest=digest([text, *sorted(task.digest for task in tasks)])
    )
    return LoadedScenario(suite=suite, name=folder.name, tasks=chosen, copy=copy)


def _tasks(
    keys: ScenarioKeys, folder: FilePath, base: FilePath, context: ReadContext
) -> tuple[Task, ...]:
    prompts = _prompts(folder)
    if not prompts:
        context.report(
            (),
            "has no prompts.",
            f"Write {folder / 'prompts' / 'L0-minimal.md'}, and one file for each further tier.",
        )
    scenario = _scenario(keys, folder, base, context)
    name = folder.name
    return tuple(
        Task(
            id=f"{name}/{tier}",
            thing=f"{keys.title or keys.name or name} ({tier})",
            prompt=(Message(role="user", content=text),),
            scoring=Scoring(method=EVALUATORS),
            tags=(tier, *(tag for _, tag in keys.tags or ())),
            family=keys.family or name,
            language="markdown",
            scenario=scenario,
        )
        for tier, text in prompts.items()
    )


def _prompts(folder: FilePath) -> dict[str, str]:
    """Return the prompts by tier, from the scenario's own folder or else from
    `suites/SUITE/prompts/SCENARIO`.
    """
    for place in (folder / "prompts", folder.parent.parent / "prompts" / folder.name):
        files = sorted(
            place.glob("L*.md"), key=lambda file: (len(file.name.partition("-")[0]), file.name)
        )
        prompts = {
            match[1]: whole_text(file) for file in files if (match := _TIER.fullmatch(file.name))
        }
        if prompts:
            return prompts
    return {}


def _scenario(
    keys: ScenarioKeys, folder: FilePath, base: FilePath, context: ReadContext
) -> Scenario | None:
    fixture = next((name for name in _FIXTURES if (folder / name).is_dir()), None)
    if fixture is None:
        context.report(
            (),
            f"has no fixture: there is no folder {folder / _FIXTURES[0]}.",
            "Put the repository there.",
        )
        return None
    commands = _checks(keys, context)
    kinds = {check.kind for check in commands}
    answers, expected = _oracle(folder, keys, context)
    implied = keys.options()
    listed = keys.evaluators
    if not listed:
        names = dict.fromkeys((*(check.kind for check in commands), *implied, "integrity_guard"))
        listed = [(("evaluators",), EvaluatorSpec(name=name)) for name in names]
    evaluators = []
    for path, spec in [
        *listed,
        *_apart(HEURISTIC, keys.heuristic_checks, context),
        *_apart(JUDGE, keys.llm_judge, context),
    ]:
        spec = replace(
            spec, options=spec.options or implied.get(spec.name) or expected.get(spec.name) or {}
        )
        if problem := evaluator_problem(spec.name, spec.options, kinds):
            context.report(path, f"{spec.name!r} {problem}")
        evaluators.append(spec)
    weights = (keys.rubric_overrides or {}).get("weights", {})
    if unknown := [
        name
        for name, weight in weights.items()
        if weight and name not in {spec.name for spec in evaluators}
    ]:
        context.report(
            ("rubric_overrides", "weights"),
            f"names {', '.join(unknown)}, which no evaluator of this scenario has.",
        )
    evaluators = [replace(spec, weight=weights.get(spec.name, spec.weight)) for spec in evaluators]
    if not context.errors():
        every = scenario_rubric(
            Scenario(folder="", fixture="", files={}, evaluators=tuple(evaluators))
        )
        criteria = [criterion.name for criterion in every.criteria]
        if repeated := sorted({name for name in criteria if criteria.count(name) > 1}):
            context.report(
                ("evaluators",),
                f"have {', '.join(repeated)} twice, counting the categories of `{JUDGE}`.",
            )
    if not any(spec.weight for spec in evaluators):
        context.report(("evaluators",), "all have weight 0, expected at least one weight above 0.")
    files = _digests(folder / fixture, context)
    declared = next((name for name in _DEPENDENCY_FILES if name in files), "requirements.txt")
    search: list[str] = []
    keep: list[str] = []
    for spec in evaluators:
        options: Any = spec.options
        search += options.get("from", ()) if spec.name == "namespace_migration" else ()
        keep += _read_files(spec)
        keep += [options.get("file", declared)] if spec.name in DECLARED else ()
        if spec.name == HEURISTIC and not context.errors():
            keep += [check["file"] for check in heuristics(options, "structured")]
            scripts = [
                each["command"]
                for group in ("commands", "scripts")
                for each in heuristics(options, group)
            ]
            commands += tuple(
                CheckCommand(kind=HEURISTIC, command=text, seconds=300.0) for text in scripts
            )
    return Scenario(
        folder=str(folder.relative_to(base)) if folder.is_relative_to(base) else str(folder),
        fixture=fixture,
        files=files,
        baseline=(
            *keys.warm_up(),
            *(text for _, text in (keys.baseline.run if keys.baseline else None) or ()),
        ),
        commands=commands,
        evaluators=tuple(evaluators),
        answers=answers,
        keep=tuple(dict.fromkeys(keep)),
        search=tuple(dict.fromkeys(map(str, search))),
        protected=_PROTECTED
        if keys.protected is None
        else tuple(text for _, text in keys.protected),
        allowed=tuple(text for _, text in keys.allowed or ()),
        network=bool(keys.network),
        setup_network=bool(keys.validation and keys.validation.network),
        minutes=keys.timeout_minutes or 60.0,
        limits=keys.limits or AgentLimits(),
        threshold=THRESHOLD if keys.threshold is None else keys.threshold,
    )


def _apart(name: str, given: Value, context: ReadContext) -> list[tuple[Path, EvaluatorSpec]]:
    """Return the evaluator whose options have a separate key, unless they contain `enabled:
    false`.
    """
    if not isinstance(given, dict) or not given.get("enabled", True):
        return []
    options: Value = {
        option: value for option, value in given.items() if option not in ("enabled", "weight")
    }
    weight: Value = given.get("weight", 1.0)
    spec = EVALUATOR.read({"name": name, "weight": weight, "options": options}, (name,), context)
    return [] if spec is None else [((name,), spec)]


def _checks(keys: ScenarioKeys, context: ReadContext) -> tuple[CheckCommand, ...]:
    """Return the validation commands, those of the known kinds first and in their order."""
    validation = keys.validation
    commands = dict((validation.commands if validation else None) or {})
    if keys.validation_commands:
        short = [text for _, text in keys.validation_commands]
        commands |= _read_commands(list(short), ("validation_commands",), context) or {}
    required = {text for _, text in (validation.required if validation else None) or ()}
    if unknown := required - commands.keys():
        context.report(
            ("validation", "required"), f"names {', '.join(sorted(unknown))}, which has no command."
        )
    order = [kind.value for kind in CommandKind]
    kinds = sorted(commands, key=lambda kind: order.index(kind) if kind in order else len(order))
    seconds = (validation.seconds if validation else None) or 600.0
    return tuple(
        CheckCommand(
            kind=kind, command=text, required=not required or kind in required, seconds=seconds
        )
        for kind in kinds
        for text in commands[kind]
    )


def _read_files(spec: EvaluatorSpec) -> Iterable[str]:
    """Return the files that `config_accuracy` or an evaluator of a package reads."""
    if spec.name != "config_accuracy" and spec.name not in EVALUATOR_PLUGINS.plugin_names():
        return ()
    files = spec.options.get("files", ())
    return [str(name) for name in files] if isinstance(files, list | tuple | dict) else ()


def _digests(fixture: FilePath, context: ReadContext) -> dict[str, str]:
    digests: dict[str, str] = {}
    for place in sorted(fixture.rglob("*")):
        if place.is_symlink() or not place.is_file() or "__pycache__" in place.parts:
            continue
        if len(digests) == _MAX_FILES:
            context.report(
                (),
                f"has a fixture with more than {_MAX_FILES:,} files.",
                "Leave out what can be rebuilt.",
            )
            break
        digests[place.relative_to(fixture).as_posix()] = bytes_digest(place.read_bytes())
    return digests


def _oracle(
    folder: FilePath, keys: ScenarioKeys, context: ReadContext
) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Return the oracle's answers (`answers`, or a whole flat mapping), and the options in its
    `expected`, by evaluator.
    """
    named = (keys.oracle or {}).get("answers_file") or _ORACLE
    text = (
        context.files.text(named, ("oracle",), context)
        if named != _ORACLE or (folder / named).is_file()
        else "{}"
    )
    try:
        value: Any = plain(read_json(text or "{}").value)
    except UnreadableText as error:
        context.report(("oracle",), f"names {named}, which {error.problem}", error.remedy)
        return {}, {}
    answers = value.get("answers", value) if isinstance(value, dict) else None
    expected = value.get("expected", {}) if isinstance(value, dict) else None
    if not isinstance(answers, dict) or not isinstance(expected, dict):
        context.report(("oracle",), f"names {named}, expected a mapping from questions to answers.")
        return {}, {}
    options = {"dependency_proximity": {"expected": expected.get("dependencies")}}
    options["file_structure"] = {"required": expected.get("files")}
    return {
        question: answer for question, answer in answers.items() if isinstance(answer, str)
    }, options
