"""Reads rubrics: criteria with their weights and scales, in numbers or in words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, Final

from assay.domain.assessment import RULE_FLAGS
from assay.domain.errors import SuiteError
from assay.domain.identifiers import folded
from assay.domain.model import Parameters
from assay.domain.prompts import columns_named
from assay.domain.structure import Structuring
from assay.domain.suite import Criterion, Rubric
from assay.domain.verdicts import VerdictRules
from assay.scoring.rubrics import READY_MADE, SOLUTION_CRITERIA
from assay.suites import grammar
from assay.suites.checks import ExternalChecks
from assay.suites.files import NamedFiles, whole_text
from assay.suites.located_yaml import UnreadableText, Value, read_yaml, shown
from assay.suites.models import ModelKeys, described_model
from assay.suites.problems import Location, Path, SuiteErrors, dotted
from assay.suites.prompts import SYSTEM_TEMPLATE
from assay.suites.reviews import REVIEW
from assay.suites.scoring import SCORE

_EXPECTED: Final = "[low, high], words from worst to best such as [No, Partial, Yes], or words with values such as {No: 0, Yes: 1}"


@dataclass(frozen=True, slots=True)
class Scale:
    """The lowest and the highest raw score, and the words for raw scores, if any."""

    low: float = 0.0
    high: float = 10.0
    labels: tuple[tuple[str, float], ...] = ()


def _read_scale(value: Value, path: Path, context: grammar.ReadContext) -> Scale | None:
    if isinstance(value, dict):
        labels = _read_valued_words(value, path, context)
    elif (
        isinstance(value, list)
        and len(value) == 2
        and all(grammar.finite(bound) is not None for bound in value)
    ):
        low, high = (grammar.finite(bound) or 0.0 for bound in value)
        if low < high:
            return Scale(low, high)
        context.report(
            path,
            f"runs from {low:g} to {high:g}, expected the lower bound first and the higher one second.",
        )
        return None
    elif (
        isinstance(value, list) and len(value) >= 2 and all(isinstance(word, str) for word in value)
    ):
        labels = _read_spaced_words(value, path, context)
    else:
        has_truth = isinstance(value, list) and any(isinstance(word, bool) for word in value)
        remedy = "Put true and false in quotes if they are meant as words." if has_truth else ""
        context.report(path, f"is {shown(value)}, expected {_EXPECTED}.", remedy)
        return None
    if not labels:
        return None
    values = [content for _, content in labels]
    if min(values) == max(values):
        context.report(
            path, "gives all words the same value, expected at least two different values."
        )
        return None
    return Scale(min(values), max(values), labels)


def _read_spaced_words(
    words: list[Value], path: Path, context: grammar.ReadContext
) -> tuple[tuple[str, float], ...]:
    """Read words from worst (0) to best (1), spaced at equal distances."""
    names = [
        grammar.read_name(word, (*path, position), context) for position, word in enumerate(words)
    ]
    seen: set[str] = set()
    for position, name in enumerate(names):
        if name is None:
            return ()
        if name.casefold() in seen:
            context.report(
                (*path, position),
                f"repeats the word {name!r}.",
                "Name each step of the scale once.",
            )
            return ()
        seen.add(name.casefold())
    return tuple((name or "", position / (len(names) - 1)) for position, name in enumerate(names))


def _read_valued_words(
    values: dict[str, Value], path: Path, context: grammar.ReadContext
) -> tuple[tuple[str, float], ...]:
    labels: dict[str, tuple[str, float]] = {}
    for word, value in values.items():
        content = grammar.finite(value)
        name = grammar.read_name(word, path, context)
        if content is None:
            context.report((*path, word), f"is {shown(value)}, expected a number.")
        elif name is not None and name.casefold() in labels:
            problem = f"repeats the word {name!r}."
            context.report((*path, word), problem, "Name each step of the scale once.", at_key=True)
        elif name is not None:
            labels[name.casefold()] = (name, content)
    if len(labels) < len(values):
        return ()
    if len(labels) < 2:
        context.report(path, f"has {len(labels)} words, expected at least two.")
        return ()
    return tuple(labels.values())


_SCALE: Final = grammar.Kind(
    _read_scale,
    {
        "anyOf": [
            {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}},
            {"type": "array", "minItems": 2, "items": {"type": "string", "minLength": 1}},
            {"type": "object", "minProperties": 2, "additionalProperties": {"type": "number"}},
        ]
    },
)
WEIGHT: Final = grammar.number(0)


class CriterionKeys(grammar.Keys):
    """A criterion with its weight and scale."""

    name = grammar.key(grammar.NAME, required="Give the criterion a name.")
    weight = grammar.key(WEIGHT)
    scale = grammar.key(_SCALE)
    guidance = grammar.key(grammar.TEXT)


def _criterion(keys: CriterionKeys) -> Criterion | None:
    if keys.name is None:
        return None
    scale = keys.scale or Scale()
    return Criterion(
        name=keys.name,
        weight=1.0 if keys.weight is None else keys.weight,
        low=scale.low,
        high=scale.high,
        labels=scale.labels,
        guidance=keys.guidance or "",
    )


_DESCRIBED_CRITERION: Final = grammar.made_of(CriterionKeys, _criterion)


def _read_criterion(value: Value, path: Path, context: grammar.ReadContext) -> Criterion | None:
    if isinstance(value, dict):
        return _DESCRIBED_CRITERION.read(value, path, context)
    name = grammar.read_name(value, path, context)
    return None if name is None else Criterion(name=name)


_CRITERIA: Final = grammar.list_of(
    grammar.Kind(_read_criterion, {"anyOf": [grammar.NAME.schema, _DESCRIBED_CRITERION.schema]}),
    empty="is empty, expected at least one criterion.",
)


_NAMED: Final = grammar.choice(tuple(READY_MADE))


_RULES: Final[grammar.Kind[dict[str, bool]]] = grammar.mapping_of(
    dict.fromkeys(
        ("fail_if_any_no", "partial_if_any_partial", "pass_if_all_yes"),
        grammar.DeclaredKey(grammar.FLAG),
    ),
    dict,
)
_FLAGS: Final[grammar.Kind[dict[str, Any]]] = grammar.mapping_of(
    {
        **dict.fromkeys(
            (*(kind.value for kind in RULE_FLAGS), "parse_error"), grammar.DeclaredKey(grammar.FLAG)
        ),
        "trivial_chars": grammar.DeclaredKey(
            grammar.whole(0),
            "Length in characters up to which a justification is trivial; 10 by default.",
        ),
    },
    dict,
)


class StructuringKeys(ModelKeys):
    """Keys of the model that splits answers into parts before a judge grades them."""

    model = grammar.key(grammar.NAME, required="Add `model: provider/name`.")
    prompt = grammar.key(
        SYSTEM_TEMPLATE,
        "Replaces Assay's prompt: a template with {{prompt}} and {{answer}}, or {file: ...}.",
    )


def _structuring(keys: StructuringKeys) -> Structuring | None:
    model = described_model(keys)
    if keys.prompt is not None and "answer" not in columns_named(keys.prompt.text):
        keys.node.report(
            "prompt", "does not contain {{answer}}, so the model would not see the answer."
        )
    if model is None:
        return None
    model = replace(model, parameters=keys.parameters or Parameters())
    return Structuring(model=model, prompt=None if keys.prompt is None else keys.prompt.text)


_DESCRIBED_STRUCTURING: Final = grammar.made_of(StructuringKeys, _structuring)


def _read_structuring(value: Value, path: Path, context: grammar.ReadContext) -> Structuring | None:
    given: Value = {"model": value} if isinstance(value, str) else value
    return _DESCRIBED_STRUCTURING.read(given, path, context)


class RubricKeys(grammar.Keys):
    """A rubric that gives each response a verdict: Pass, Partial or Fail."""

    criteria = grammar.key(_CRITERIA, "Five criteria for worked solutions by default.")
    scores = grammar.key(
        _SCALE, "The scale of criteria without their own; {Yes: 1, Partial: 0.5, No: 0} by default."
    )
    verdict = grammar.key(_RULES, "Rules that give a verdict; all are on by default.")
    flags = grammar.key(
        _FLAGS, "Rules that flag a grade for review by a person; all are on by default."
    )
    verify = grammar.key(
        SCORE,
        "The scorer that verifies final answers in addition to the judge; it never affects the score.",
    )
    structure = grammar.key(
        grammar.Kind(
            _read_structuring, {"anyOf": [grammar.NAME.schema, _DESCRIBED_STRUCTURING.schema]}
        )
    )
    review = grammar.key(REVIEW, "Which grades by this rubric a person must review.")


def _rubric(keys: RubricKeys) -> Rubric | None:
    scale = keys.scores or Scale(0.0, 1.0, (("Yes", 1.0), ("Partial", 0.5), ("No", 0.0)))
    if keys.verify is not None and (keys.verify.judged or keys.verify.verify is not None):
        keys.node.report("verify", "is judged by a model, expected a scorer such as math.")
    criteria = (
        [(keys.node.path, Criterion(name=name)) for name in SOLUTION_CRITERIA]
        if "criteria" not in keys.node
        else keys.criteria
    )
    if criteria is None:
        return None
    scaled = [
        (
            path,
            replace(each, low=scale.low, high=scale.high, labels=scale.labels)
            if not _has_scale(each)
            else each,
        )
        for path, each in criteria
    ]
    rules = VerdictRules(**(keys.verdict or {}), **(keys.flags or {}))
    rubric = _of_criteria(scaled, keys.node.path, keys.node.context)
    if rubric is None:
        return None
    return replace(
        rubric, rules=rules, verify=keys.verify, structuring=keys.structure, review=keys.review
    )


def _has_scale(criterion: Criterion) -> bool:
    return bool(criterion.labels) or (criterion.low, criterion.high) != (0.0, 10.0)


_WITH_VERDICT: Final = grammar.made_of(RubricKeys, _rubric)


def _read_rubric(value: Value, path: Path, context: grammar.ReadContext) -> Rubric | None:
    """Read a list of criteria, a mapping with rules for verdicts, a file with either, or the name
    of a ready-made rubric.
    """
    if isinstance(value, str):
        named = _NAMED.read(value, path, context)
        return None if named is None else READY_MADE[named]
    if isinstance(value, dict):
        return _WITH_VERDICT.read(value, path, context)
    return _of_criteria(_CRITERIA.read(value, path, context) or [], path, context)


def _of_criteria(
    given: list[tuple[Path, Criterion]], path: Path, context: grammar.ReadContext
) -> Rubric | None:
    criteria: dict[str, Criterion] = {}
    for inner, criterion in given:
        if folded(criterion.name) in criteria:
            context.report(
                inner,
                f"is a second criterion named {criterion.name!r}.",
                "Give it a name of its own.",
            )
        criteria.setdefault(folded(criterion.name), criterion)
    if criteria and all(criterion.weight == 0 for criterion in criteria.values()):
        context.report(path, "has only criteria of weight 0, so nothing would count.")
    return Rubric(criteria=tuple(criteria.values())) if criteria else None


RUBRIC: Final = grammar.Kind(
    _read_rubric, {"anyOf": [_CRITERIA.schema, _NAMED.schema, _WITH_VERDICT.schema]}
)


def load_rubric(path: FilePath, checks: ExternalChecks) -> Rubric:
    """Return the rubric in a file; raises `SuiteErrors` with every problem."""
    try:
        document = read_yaml(whole_text(path))
    except UnreadableText as error:
        raise SuiteErrors(
            (SuiteError(f"{path}:{error.line or 0}", error.problem, remedy=error.remedy),)
        ) from None
    context = grammar.ReadContext(
        lambda where, at_key: Location(str(path), document.line_of(where, at_key), dotted(where)),
        checks=checks,
        files=NamedFiles(path.parent, also=(FilePath(),), texts={}),
    )
    return _checked(RUBRIC.read(document.value, (), context), context)


def described_rubric(value: Value, folder: FilePath, checks: ExternalChecks) -> Rubric:
    """Return the rubric for a value of `rubric`: a description, a ready-made rubric's name, or a
    file relative to `folder`.

    Raises `SuiteErrors` with every problem.
    """
    if isinstance(value, str) and FilePath(value).suffix in (".yaml", ".yml", ".json"):
        return load_rubric(folder / value, checks)
    context = grammar.ReadContext(
        lambda where, at_key: Location("assay.yaml", 0, dotted(("rubric", *where))),
        checks=checks,
        files=NamedFiles(folder, also=(), texts={}),
    )
    return _checked(RUBRIC.read(value, (), context), context)


def _checked(rubric: Rubric | None, context: grammar.ReadContext) -> Rubric:
    if rubric is None or context.errors():
        raise SuiteErrors(context.errors())
    return rubric
