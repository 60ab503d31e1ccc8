"""Grades an agent's workspace from its report: one grader, whose criteria are the scenario's
evaluators with their weights.

The weighted score is Σ(score · weight) / Σ weight. Each evaluator is a function of the report
alone, so a stored trial can be graded again with other weights.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement

from assay.domain.assessment import Assessment, weighted_score
from assay.domain.digest import JsonValue
from assay.domain.model import Parameters
from assay.domain.scenarios import JUDGE, EvaluatorSpec, Scenario, WorkspaceReport
from assay.domain.suite import Criterion, Rubric
from assay.scoring.evaluator import Answer, GradingAttempt, Request, Unscorable
from assay.scoring.evaluator_plugins import EVALUATOR_PLUGINS, finding_in, request_for
from assay.scoring.function_evaluator import FunctionEvaluator, plain_grade
from assay.scoring.regex import search_for
from assay.scoring.rubrics import WORKSPACE_RUBRIC

EVALUATORS: Final = "evaluators"
"""Name of the grader, and of the scoring method of tasks with a scenario."""

DECLARED: Final = frozenset({"dependency_targets", "dependency_proximity", "companion_versions"})
"""Evaluators that read the dependency file named by their option `file`."""

HEURISTIC: Final = "heuristic_checks"
"""Evaluator with weighted checks of many kinds; also the kind of the commands that it runs."""

FINDING_COST: Final = 0.2
LEFTOVER_COST: Final = 0.33
_SKIPPED: Final = re.compile(
    r"^\+.*(?:\.skip\(|\bxit\(|\bxdescribe\(|@(?:pytest\.mark|unittest)\.(?:skip|xfail|expectedFailure)|\bskipTest\(|pytest\.skip\()"
)
_REPLACED: Final = re.compile(r"Binary or large files a/(.*) and (?:b/.*|/dev/null) differ ")
_WIDENED: Final = re.compile(
    r'^\+.*(?:"skipLibCheck":\s*true|# type: ignore|# noqa\b|eslint-disable)'
)


class Finding(NamedTuple):
    """An evaluator's score between 0 and 1, and the reason for it."""

    score: float
    reason: str


class WorkspaceGrader(FunctionEvaluator):
    """Gives each agent's workspace one grade per evaluator of the scenario."""

    def ask(self, grading: GradingAttempt, /) -> tuple[Request, ...]:
        """Return a call for each evaluator of a package."""
        scenario = grading.task.scenario
        (response,) = grading.responses
        if scenario is None or WorkspaceReport.from_text(response.text) is None:
            return ()  # `read` says what is wrong
        return tuple(request_for(spec, response.text) for spec in _of_packages(scenario))

    def read(self, grading: GradingAttempt, answers: tuple[Answer, ...], /) -> Assessment:
        """Return the grades of one workspace.

        Raises `Unscorable` if the response is not a report, or a package's evaluator failed.
        """
        (response,) = grading.responses
        scenario = grading.task.scenario
        report = WorkspaceReport.from_text(response.text)
        if scenario is None or report is None:
            raise Unscorable(
                "no_report", "The response is not a workspace report, so it cannot be evaluated."
            )
        rules = [spec for spec in scenario.evaluators if spec.name != JUDGE]
        foreign = {
            spec.name: Finding(*finding_in(spec.name, answer))
            for spec, answer in zip(_of_packages(scenario), answers, strict=True)
        }
        findings = {
            spec.name: foreign.get(spec.name) or evaluate(spec, scenario, report) for spec in rules
        }
        weights = {spec.name: spec.weight for spec in rules}
        grades = [
            plain_grade(response.candidate, name, score, reason)
            for name, (score, reason) in findings.items()
        ]
        scores = {
            response.candidate: weighted_score(
                {name: finding.score for name, finding in findings.items()}, weights
            )
        }
        return Assessment(grades=tuple(grades), scores=scores, weights=weights)


def _of_packages(scenario: Scenario) -> list[EvaluatorSpec]:
    """Return the scenario's evaluators that installed packages offer."""
    kinds = {command.kind for command in scenario.commands}
    own = {*FUNCTIONS, JUDGE, *kinds}
    others = [spec for spec in scenario.evaluators if spec.name not in own]
    offered = EVALUATOR_PLUGINS.plugin_names() if others else ()
    return [spec for spec in others if spec.name in offered]


def succeeded(scenario: Scenario, report: WorkspaceReport, weighted: float | None) -> bool | None:
    """True if the weighted score reaches the threshold and every required command passed; None if
    there is no score.
    """
    if weighted is None:
        return None
    passed = {outcome.command for outcome in report.outcomes if outcome.exit_code == 0}
    return weighted >= scenario.threshold and all(
        check.command in passed for check in scenario.commands if check.required
    )


def evaluate(spec: EvaluatorSpec, scenario: Scenario, report: WorkspaceReport) -> Finding:
    function = FUNCTIONS.get(spec.name)
    return _command(spec, report) if function is None else function(spec.options, scenario, report)


def judge_rubric(options: Mapping[str, Any]) -> Rubric:
    """Return `llm_judge`'s rubric, its `categories` (1 to 5) or Assay's; raises ValueError,
    KeyError or TypeError if invalid.
    """
    if unknown := options.keys() - JUDGE_OPTIONS:
        raise ValueError(
            f"{', '.join(sorted(unknown))} is unknown; known options are {', '.join(JUDGE_OPTIONS)}"
        )
    criteria: list[Criterion] = []
    for each in options.get("categories", ()):
        row = {"name": each} if isinstance(each, str) else each
        name, weight = str(row["name"]).replace(" ", "_"), float(row.get("weight", 1))
        if not 0 < weight < math.inf:
            raise ValueError(f"the category {name!r} needs a weight above 0")
        criteria.append(
            Criterion(
                name=name,
                weight=weight,
                low=1.0,
                high=5.0,
                guidance=str(row.get("description", "")),
            )
        )
    return Rubric(criteria=tuple(criteria)) if criteria else WORKSPACE_RUBRIC


def judge_parameters(options: Mapping[str, Any]) -> Parameters:
    """Return the parameters of the evaluator `llm_judge`; raises `ValueError` or `TypeError` for
    options in another form.
    """
    most = options.get("max_tokens")
    return Parameters(
        temperature=float(options.get("temperature", 0.1)),
        max_tokens=None if most is None else int(most),
    )


JUDGE_OPTIONS: Final = ("model", "temperature", "max_tokens", "categories")


def scenario_rubric(scenario: Scenario) -> Rubric:
    """Return all criteria of a scenario: its rules, and the judge's categories, which share the
    judge's weight.
    """
    criteria: list[Criterion] = []
    for spec in scenario.evaluators:
        if spec.name != JUDGE:
            criteria.append(Criterion(name=spec.name, weight=spec.weight, high=1.0))
            continue
        categories = judge_rubric(spec.options).criteria
        share = spec.weight / sum(each.weight for each in categories)
        criteria += [replace(each, weight=each.weight * share) for each in categories]
    return Rubric(criteria=tuple(criteria))


def evaluator_problem(name: str, options: Mapping[str, JsonValue], kinds: set[str]) -> str:
    """Return why an evaluator cannot be used, as the end of a sentence; empty if it can."""
    if name in FUNCTIONS or name == JUDGE or name in kinds:
        options = {
            option: value for option, value in options.items() if value not in ([], {}, "", None)
        }
        try:
            if name == JUDGE:
                judge_rubric(options)
                judge_parameters(options)
            elif name not in FUNCTIONS:
                re.compile(options.get("issues", ""))  # type: ignore[type-var] # a number raises TypeError
            else:
                FUNCTIONS[name](
                    options, Scenario(folder="", fixture="", files={}), WorkspaceReport()
                )
        except KeyError as error:
            return f"needs `{error.args[0]}`."
        except (TypeError, ValueError, AttributeError, ZeroDivisionError, re.error) as error:
            return f"has invalid options ({type(error).__name__}: {error}); docs/how-to/bench-coding-agents.md describes them."
        return ""
    offered = EVALUATOR_PLUGINS.plugin_names()
    if name in offered:
        return ""
    known = ", ".join((*FUNCTIONS, JUDGE, *offered))
    return f"is neither an evaluator nor the kind of a validation command. Evaluators: {known}."


def _command(spec: EvaluatorSpec, report: WorkspaceReport) -> Finding:
    """Grade the validation commands of one kind by the share that passed or, if they count issues,
    by 1 - issues / `worst`.
    """
    outcomes = [outcome for outcome in report.outcomes if outcome.kind == spec.name]
    if not outcomes:
        return Finding(0.0, f"No {spec.name} command ran.")
    passed = sum(outcome.exit_code == 0 for outcome in outcomes)
    shown = "; ".join(f"{each.command}: {each.ended}" for each in outcomes)
    pattern = spec.options.get("issues")
    if isinstance(pattern, str) and passed < len(outcomes):
        texts = [
            str(match[min(1, match.re.groups)])
            for each in outcomes
            for match in re.finditer(pattern, each.output)
        ]
        counts = [int(text[:9]) for text in texts if text.isdecimal()]
        worst = spec.options.get("worst", 10)
        if counts and counts[-1] and isinstance(worst, int | float) and worst > 0:
            return Finding(
                max(0.0, 1 - counts[-1] / worst),
                f"{counts[-1]} issues; {worst:g} or more score 0. {shown}",
            )
    return Finding(passed / len(outcomes), shown)


def _dependency_targets(
    options: Mapping[str, Any], scenario: Scenario, report: WorkspaceReport
) -> Finding:
    """Share of the rules that hold: a required dependency has an allowed version, a forbidden
    dependency is absent.
    """
    declared = dependencies_in(report.files)
    wrong = [
        f"{name} is forbidden" for name in options.get("forbidden", ()) if name.lower() in declared
    ]
    for target in options["required"]:
        name, wanted = str(target["name"]), str(target["to"])
        version = declared.get(name.lower())
        if version is None:
            wrong.append(f"{name} is missing, wanted {wanted}")
        elif not _allows(version, wanted):
            wrong.append(f"{name} is {version or 'any version'}, wanted {wanted}")
    total = len(options["required"]) + len(options.get("forbidden", ()))
    return Finding((total - len(wrong)) / total, "; ".join(wrong) or "All targets are declared.")


def _dependency_proximity(
    options: Mapping[str, Any], scenario: Scenario, report: WorkspaceReport
) -> Finding:
    """Mean closeness to the expected versions: equal 1, same minor 0.9, same major 0.7, another
    version 0.3, missing 0.
    """
    declared = dependencies_in(report.files)
    shares, reasons = [], []
    for name, wanted in options["expected"].items():
        has, wants = _release(declared.get(name.lower(), "")), _release(str(wanted))
        same = sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(has, wants, strict=False))
        )
        share = (
            0.0
            if name.lower() not in declared
            else 1.0
            if has == wants
            else {0: 0.3, 1: 0.7}.get(same, 0.9)
        )
        shares.append(share)
        reasons += (
            [f"{name} is {declared.get(name.lower()) or 'missing'}, expected {wanted}"]
            if share < 1
            else []
        )
    return Finding(sum(shares) / len(shares), "; ".join(reasons) or "All versions are as expected.")


def _companion_versions(
    options: Mapping[str, Any], scenario: Scenario, report: WorkspaceReport
) -> Finding:
    declared = {
        name: _release(version)[:1] for name, version in dependencies_in(report.files).items()
    }
    apart = []
    total = 0
    for main, companions in options["companions"].items():
        total += len(companions)
        major = declared.get(main.lower())
        apart += [
            f"{each} differs from {main}"
            for each in companions
            if not major or declared.get(each.lower()) != major
        ]
    return Finding(
        (total - len(apart)) / total,
        "; ".join(apart) or "All companions have the version of their main package.",
    )


def _package_manager(
    options: Mapping[str, Any], scenario: Scenario, report: WorkspaceReport
) -> Finding:
    """1 if the repository has a lock file of an allowed package manager and of no other, else 0."""
    present = {
        name: path for path in report.paths if (name := path.rpartition("/")[2]) in LOCK_FILES
    }
    allowed = {name for name, manager in LOCK_FILES.items() if manager in options["allowed"]}
    wrong = sorted(present.keys() - allowed)
    if wrong or not present:
        return Finding(
            0.0,
            f"The repository has {', '.join(wrong) or 'no lock file'}; allowed: {', '.join(sorted(allowed))}.",
        )
    return Finding(1.0, f"It has {', '.join(sorted(present))}.")


LOCK_FILES: Final[Mapping[str, str]] = MappingProxyType(
    tomllib.loads((files(__package__) / "lock_files.toml").read_text("utf-8"))
)
"""Lock files by name, with their package managers."""


def _file_structure(
    options: Mapping[str, Any], scenario: Scenario, report: WorkspaceReport
) -> Finding:
    """Share of the listed files that are as required: `required` files exist, and `absent` files do
    not.
    """
    present = set(report.paths)
    missing = [path for path in options["required"] if path not in present]
    left = [path for path in options.get("absent", ()) if path in present]
    total = len(options["required"]) + len(options.get("absent", ()))
    reasons = [f"{path} is missing" for path in missing] + [
        f"{path} should be gone" for path in left
    ]
    return Finding(
        (total - len(reasons)) / total, "; ".join(reasons) or "All files are as required."
    )


def _config_accuracy(
    options: Mapping[str, Any], scenario: Scenario, report: WorkspaceReport
) -> Finding:
    wrong, total = [], 0
    for file, keys in options["files"].items():
        document = _document(file, report.files.get(file))
        for path, wanted in keys.items():
            total += 1
            value = _value_at(document, path)
            if value != wanted:
                wrong.append(
                    f"{file} {path} is {json.dumps(value)[:80]}, wanted {json.dumps(wanted)[:80]}"
                )
    return Finding(
        (total - len(wrong)) / total, "; ".join(wrong) or "All keys have the expected values."
    )


def _namespace_migration(
    options: Mapping[str, Any], scenario: Scenario, report: WorkspaceReport
) -> Finding:
    """1 minus 0.33 for each file that still contains an old name."""
    left = [
        f"{path} still has {name!r}"
        for name in options["from"]
        for path in report.matches.get(name, ())
    ]
    return Finding(
        max(0.0, 1 - LEFTOVER_COST * len(left)), "; ".join(left[:20]) or "No old name is left."
    )


def _integrity_guard(
    options: Mapping[str, Any], scenario: Scenario, report: WorkspaceReport
) -> Finding:
    """1 minus 0.2 for each sign of cheating: a check changed, deleted, replaced or added, a test
    skipped, a warning silenced.
    """
    protected = set(scenario.protected_files)
    findings = [each.removesuffix(".") for each in report.violations]
    path = ""
    for line in report.diff.splitlines():
        if line.startswith("--- "):
            path = line[4:].removeprefix("a/")
        elif line.startswith("+++ "):
            if path in protected:
                findings.append(f"{path} was {'deleted' if line == '+++ /dev/null' else 'changed'}")
            path = line[4:].removeprefix("b/")
        elif (replaced := _REPLACED.match(line)) and replaced[1] in protected:
            findings.append(f"{replaced[1]} was replaced")
        elif _SKIPPED.match(line):
            findings.append(f"{path} skips a test: {line[1:].strip()[:80]}")
        elif _WIDENED.match(line):
            findings.append(f"{path} silences a check: {line[1:].strip()[:80]}")
    return Finding(
        max(0.0, 1 - FINDING_COST * len(findings)),
        "; ".join(findings[:20]) or "No check was weakened.",
    )


def heuristics(options: Mapping[str, Any], group: str) -> list[dict[str, Any]]:
    """Return the heuristic checks of a group as mappings; a string stands for the value of the key
    in `HEURISTICS`.
    """
    return [
        {HEURISTICS[group]: item} if isinstance(item, str) else item
        for item in options.get(group, ())
    ]


HEURISTICS: Final = {
    "commands": "command",
    "scripts": "command",
    "files": "path",
    "patterns": "pattern",
    "structured": "path",
}
"""Groups of heuristic checks, and the key that each check in the group requires."""


def heuristic_patterns(scenario: Scenario) -> dict[str, tuple[str, str]]:
    """Return (path pattern, regular expression) of each search, by the name that the report's
    matches use for it.
    """
    specs = (spec for spec in scenario.evaluators if spec.name == HEURISTIC)
    checks = [check for spec in specs for check in heuristics(spec.options, "patterns")]
    return {_pattern_name(check): (check.get("files", "*"), check["pattern"]) for check in checks}


def _pattern_name(check: Mapping[str, Any]) -> str:
    return f"/{check['pattern']}/ in {check.get('files', '*')}"


def _heuristic_checks(
    options: Mapping[str, Any], scenario: Scenario, report: WorkspaceReport
) -> Finding:
    """Share of the checks that hold, by weight: commands succeed, files exist, patterns match,
    documents have a key or section.
    """
    if unknown := options.keys() - HEURISTICS.keys():
        raise ValueError(
            f"{', '.join(sorted(unknown))} is unknown; known groups are {', '.join(HEURISTICS)}"
        )
    succeeded = {
        each.command for each in report.outcomes if each.kind == HEURISTIC and each.exit_code == 0
    }
    held, total, failed = 0.0, 0.0, []
    for group, needed in HEURISTICS.items():
        for check in heuristics(options, group):
            name = check[needed]
            match group:
                case "files":
                    holds = name in report.paths
                case "patterns":
                    search_for(name)
                    holds = bool(report.matches.get(_pattern_name(check)))
                case "structured":
                    holds = _has_part(check["file"], name, report.files.get(check["file"]))
                case _:
                    holds = name in succeeded
            holds = holds is not bool(check.get("absent"))
            weight = max(0.0, float(check.get("weight", 1)))
            total += weight
            held += weight * holds
            failed += [] if holds else [f"{name} ({group})"]
    return Finding(
        held / total, f"Failed: {'; '.join(failed[:20])}" if failed else "All checks hold."
    )


def _has_part(file: str, part: str, content: str | None) -> bool:
    """True if a JSON or TOML file has the value at `$.a.b`, or a text has a Markdown heading or
    `[section]` of this name.
    """
    if not part.startswith("$."):
        heading = rf"(?im)^\s*(?:#+\s*{re.escape(part)}\s*#*|\[{re.escape(part)}\])\s*$"
        return re.search(heading, content or "") is not None
    return _value_at(_document(file, content), part[2:]) is not None


FUNCTIONS: Final[
    Mapping[str, Callable[[Mapping[str, Any], Scenario, WorkspaceReport], Finding]]
] = MappingProxyType(
    {
        "dependency_targets": _dependency_targets,
        "dependency_proximity": _dependency_proximity,
        "companion_versions": _companion_versions,
        "package_manager": _package_manager,
        "file_structure": _file_structure,
        "config_accuracy": _config_accuracy,
        "namespace_migration": _namespace_migration,
        "integrity_guard": _integrity_guard,
        HEURISTIC: _heuristic_checks,
    }
)
"""Assay's evaluators by name; any other is a package's, or a kind of validation command."""


def dependencies_in(files: Mapping[str, str | None]) -> dict[str, str]:
    """Return the declared version of each dependency in requirements files, pyproject.toml and
    package.json, by lower-case name.
    """
    declared: dict[str, str] = {}
    for path, content in files.items():
        name = path.rpartition("/")[2]
        if content is None:
            continue
        if name == "package.json":
            document = _document(path, content)
            for group in ("dependencies", "devDependencies", "peerDependencies"):
                part = document.get(group) if isinstance(document, dict) else None
                declared |= (
                    {key.lower(): str(value) for key, value in part.items()}
                    if isinstance(part, dict)
                    else {}
                )
            continue
        lines = (
            content.splitlines()
            if name.endswith(".txt")
            else _project_dependencies(_document(path, content))
        )
        for line in lines:
            try:
                requirement = Requirement(line.partition("#")[0].strip())
            except InvalidRequirement:
                continue
            declared[requirement.name.lower()] = str(requirement.specifier)
    return declared


def _project_dependencies(document: Any) -> list[str]:
    project = document.get("project") if isinstance(document, dict) else None
    listed = project.get("dependencies") if isinstance(project, dict) else None
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []


def _document(path: str, content: str | None) -> Any:
    """Return the content of a JSON or TOML file; None if it cannot be read."""
    try:
        return (
            None
            if content is None
            else tomllib.loads(content)
            if path.endswith(".toml")
            else json.loads(content)
        )
    except (ValueError, RecursionError):
        return None


def _value_at(document: Any, path: str) -> Any:
    """Return the value under a path of keys such as `a.b`; None if the path does not exist."""
    for step in path.split("."):
        document = document.get(step) if isinstance(document, dict) else None
    return document


_NUMBERS: Final = re.compile(r"\d+(?:\.\d+)*")


def _release(version: str) -> tuple[int, ...]:
    """Return the first version number in a text as three numbers; empty if the text has no
    number.
    """
    number = _NUMBERS.search(version)
    return () if number is None else (*map(int, number.group()[:60].split(".")), 0, 0)[:3]


def _allows(declared: str, wanted: str) -> bool:
    """True if a declared version (`==2.1.0`, `^18.2.0`) is at least the target, within the same
    major version.
    """
    has, wants = _release(declared), _release(wanted)
    if not has or not wants:
        return declared.strip() == wanted.strip()
    return has[0] == wants[0] and has >= wants
