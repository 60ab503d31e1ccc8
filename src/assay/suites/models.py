"""Reads the candidates and judges of a suite: models by reference, with their parameters, prices
and prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from assay.domain.calibration_record import DEMANDABLE
from assay.domain.errors import AssayError
from assay.domain.identifiers import folded
from assay.domain.model import ModelSpec, Parameters, Price, of_program
from assay.domain.programs import KINDS
from assay.domain.prompts import REFERENCES, columns_named, program_columns, prompt_columns
from assay.domain.suite import PERSON, CandidateSpec, JudgeMode, JudgeSpec
from assay.suites import grammar
from assay.suites.located_yaml import Value, shown
from assay.suites.problems import Locate, Path
from assay.suites.programs import ADDRESS, AGENT, COMMAND, HTTP, PYTHON, program_of
from assay.suites.prompts import (
    JUDGE_TEMPLATE,
    MESSAGES,
    SYSTEM_TEMPLATE,
    USER_TEMPLATE,
    asks_the_same,
)

JUDGE_TEMPERATURE: Final = 0.1
LARGEST_SEED: Final = 2**31 - 1


# --- parameters, prices and addresses -------------------------------------------------------------


def _read_stop(value: Value, path: Path, context: grammar.ReadContext) -> tuple[str, ...] | None:
    words = value if isinstance(value, list) else [value]
    texts = tuple(
        word for word in words if isinstance(word, str) and word and grammar.unfit(word) is None
    )
    if not words or len(texts) < len(words):
        context.report(
            path, f"is {shown(value)}, expected text or a list of texts that are not empty."
        )
        return None
    return texts


_STOP_WORD: Final[grammar.Schema] = {"type": "string", "minLength": 1}
_STOP: Final = grammar.Kind(
    _read_stop, {"anyOf": [_STOP_WORD, {"type": "array", "minItems": 1, "items": _STOP_WORD}]}
)


PARAMETERS: Final = grammar.mapping_of(
    {
        "temperature": grammar.DeclaredKey(grammar.number(0, 2)),
        "top_p": grammar.DeclaredKey(grammar.number(0, 1)),
        "max_tokens": grammar.DeclaredKey(grammar.whole(1)),
        "frequency_penalty": grammar.DeclaredKey(grammar.number(-2, 2)),
        "presence_penalty": grammar.DeclaredKey(grammar.number(-2, 2)),
        "seed": grammar.DeclaredKey(grammar.whole(0, LARGEST_SEED)),
        "stop": grammar.DeclaredKey(_STOP),
    },
    Parameters,
)

_DOLLARS: Final = "US dollars per million tokens."
_PRICE: Final = grammar.number(0, 1e6)


class PriceKeys(grammar.Keys):
    """The price of a model's tokens; keys with and without the suffix `_usd` have the same
    meaning.
    """

    input = grammar.key(_PRICE, _DOLLARS)
    output = grammar.key(_PRICE, _DOLLARS)
    input_usd = grammar.key(_PRICE, _DOLLARS)
    output_usd = grammar.key(_PRICE, _DOLLARS)


def _price(keys: PriceKeys) -> Price | None:
    for side in ("input", "output"):
        if side in keys.node and f"{side}_usd" in keys.node:
            keys.node.report(
                side, f"is given twice, as `{side}` and as `{side}_usd`.", "Keep one of them."
            )
        elif side not in keys.node and f"{side}_usd" not in keys.node:
            keys.node.report_missing(
                side, "Give US dollars per million tokens as {input: 0.15, output: 0.6}."
            )
    input_usd = keys.input if keys.input is not None else keys.input_usd
    output_usd = keys.output if keys.output is not None else keys.output_usd
    return (
        None
        if input_usd is None or output_usd is None
        else Price(input_usd=input_usd, output_usd=output_usd)
    )


class ModelKeys(grammar.Keys):
    """Keys that describe any model."""

    name = grammar.key(grammar.NAME)
    model = grammar.key(grammar.NAME)
    base_url = grammar.key(ADDRESS)
    parameters = grammar.key(PARAMETERS)
    price = grammar.key(grammar.made_of(PriceKeys, _price))
    context_tokens = grammar.key(grammar.whole(1))
    metadata = grammar.key(grammar.FREE_MAPPING)


def read_model(ref: str, path: Path, context: grammar.ReadContext) -> ModelSpec | None:
    """Parse a model reference, or report a problem and return None."""
    try:
        return context.checks.parse_ref(ref)
    except AssayError as error:
        context.report(path, error.problem, error.remedy)
    except ValueError as error:
        context.report(path, f"is {ref!r}, which names no model: {error}")
    return None


def described_model(keys: ModelKeys) -> ModelSpec | None:
    model = (
        None
        if keys.model is None
        else read_model(keys.model, keys.node.at("model"), keys.node.context)
    )
    if model is None:
        return None
    return replace(
        model, base_url=keys.base_url, price=keys.price, context_tokens=keys.context_tokens
    )


# --- candidates -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Declared:
    """An item of `candidates:`.

    A single word without a slash may be the name of a snippet; it is kept in `ref` until the tasks
    are known. `spec` is None for such a word, and for a model with a problem.
    """

    locate: Locate
    path: Path
    name: str
    spec: CandidateSpec | None
    ref: str | None = None

    @property
    def is_model(self) -> bool:
        """True if the candidate is a model, even an invalid one, so that tasks are not reported as
        lacking a candidate.
        """
        return self.ref is None and (self.spec is None or self.spec.model is not None)


class CandidateKeys(ModelKeys):
    """The keys of a candidate: a model or program with optional prompts of its own, or a name for
    snippets.
    """

    python = grammar.key(PYTHON, "A function or class, as FILE.py:NAME or package.module:NAME.")
    command = grammar.key(
        COMMAND, "A program with its arguments, started without a shell for each prompt."
    )
    http = grammar.key(HTTP, "An address that answers over HTTP.")
    agent = grammar.key(AGENT, "An agent of an installed package.")
    timeout = grammar.key(
        grammar.number(0.01, 86_400),
        "Seconds after which a call to a program is stopped; 120 by default.",
    )
    offline = grammar.key(
        grammar.FLAG, "States that the program uses no network, so that `local_only` allows it."
    )
    system_prompt = grammar.key(
        SYSTEM_TEMPLATE, "Replaces the system prompt of suite and task: a template, or {file: ...}."
    )
    prompt = grammar.key(
        USER_TEMPLATE,
        "Replaces the task's last user message: a template such as {{prompt}}, or its file.",
    )
    messages = grammar.key(
        MESSAGES, "Replaces all messages of the task; their texts are templates."
    )


def _described_candidate(keys: CandidateKeys) -> Declared | None:
    node = keys.node
    has_program = any(kind in node for kind in KINDS)
    if has_program:
        program = program_of(keys)
        model = None if program is None else replace(of_program(program), price=keys.price)
    else:
        _report_stray(node)
        model = described_model(keys)
    name = keys.name if "name" in node else keys.model
    if name is None:
        return None
    locate = node.context.locate
    if model is None and (has_program or keys.model is not None):
        return Declared(locate, node.path, name, None)
    if model is not None:
        model = replace(model, parameters=keys.parameters or Parameters())
    system, prompt = keys.system_prompt, keys.prompt
    spec = CandidateSpec(
        name=name,
        model=model,
        system_prompt=None if system is None else system.text,
        prompt=None if prompt is None else prompt.text,
        prompt_path=None if prompt is None else prompt.path,
        messages=keys.messages or (),
        metadata=keys.metadata or {},
    )
    _check_prompts(spec, node)
    return Declared(locate, node.path, name, spec)


_OF_MODELS: Final = (
    "base_url",
    "parameters",
    "price",
    "context_tokens",
    "system_prompt",
    "prompt",
    "messages",
)
"""Keys that describe how a model is asked, so they are valid only with a model."""


def _report_stray(node: grammar.Node) -> None:
    """Report keys that only models or programs may have, for a candidate without a program."""
    stray = next((name for name in ("timeout", "offline") if name in node), None)
    if stray is not None:
        node.report(
            stray, f"describes a program; add {grammar.one_of([f'`{kind}`' for kind in KINDS])}."
        )
    if "model" not in node:
        stray = next((name for name in _OF_MODELS if name in node), None)
        if stray is not None:
            node.report_missing(
                "model", f"`{stray}` describes a model; add `model: provider/name`."
            )
        elif "name" not in node:
            node.report_missing(
                "model", "Write {name: ..., model: provider/name}, or {name: ...} for snippets."
            )


def _check_prompts(spec: CandidateSpec, node: grammar.Node) -> None:
    """Report templates that cannot be combined, that ask the same for every task, or that reveal
    the expected answer.
    """
    if spec.prompt is not None and spec.messages:
        node.report("messages", "is given together with `prompt`.", "Keep one of them.")
    elif spec.prompt is not None:
        asks_the_same((spec.prompt,), node.at("prompt"), node.context)
    elif spec.messages:
        asks_the_same(
            [message.content for message in spec.messages], node.at("messages"), node.context
        )
    for name, columns in (
        ("system_prompt", columns_named(spec.system_prompt or "")),
        ("messages" if spec.messages else "prompt", prompt_columns(spec)),
        ("http" if "http" in node else "command", program_columns(spec)),
    ):
        secret = next((column for column in columns if column in REFERENCES), None)
        if secret is not None:
            problem = f"names {{{{{secret}}}}}, the right answer, which a candidate must not see."
            node.report(name, problem, "Remove it; the judge gets it automatically.")


_DESCRIBED_CANDIDATE: Final = grammar.made_of(CandidateKeys, _described_candidate)


def _read_candidate(value: Value, path: Path, context: grammar.ReadContext) -> Declared | None:
    if isinstance(value, dict):
        return _DESCRIBED_CANDIDATE.read(value, path, context)
    ref = grammar.read_name(value, path, context)
    if ref is None:
        return None
    try:
        return Declared(
            context.locate, path, ref, CandidateSpec(name=ref, model=context.checks.parse_ref(ref))
        )
    except (AssayError, ValueError):
        # A name without a slash may belong to a snippet; this is decided when the tasks are read,
        # which happens later.
        if "/" not in ref:
            return Declared(context.locate, path, ref, None, ref)
        read_model(ref, path, context)
        return Declared(context.locate, path, ref, None)


_NAME_OR_MODEL: Final[grammar.Schema] = {"anyOf": [{"required": ["name"]}, {"required": ["model"]}]}
CANDIDATES: Final = grammar.list_of(
    grammar.Kind(
        _read_candidate,
        {"anyOf": [grammar.NAME.schema, {**_DESCRIBED_CANDIDATE.schema, **_NAME_OR_MODEL}]},
    )
)


# --- judges ---------------------------------------------------------------------------------------


class JudgeKeys(ModelKeys):
    """The keys of a judge."""

    model = grammar.key(grammar.NAME, required="Add `model: provider/name`.")
    mode = grammar.key(grammar.member(JudgeMode))
    temperature = grammar.key(grammar.number(0, 2))
    persona = grammar.key(
        SYSTEM_TEMPLATE, "Who the judge is: neutral, code, a text of your own, or {file: ...}."
    )
    prompt = grammar.key(
        JUDGE_TEMPLATE, "Replaces Assay's prompt: a template with {{candidates}}, or its file."
    )
    max_code_chars = grammar.key(
        grammar.whole(1), "Longer responses are cut off for this judge, and its grades are flagged."
    )
    require_calibration = grammar.key(
        grammar.choice([tier.value for tier in DEMANDABLE]),
        "The tier that `assay calibrate` must have shown before a run.",
    )


def _described_judge(keys: JudgeKeys) -> JudgeSpec | None:
    node = keys.node
    model = described_model(keys)
    parameters = keys.parameters or Parameters()
    if keys.temperature is not None and parameters.temperature not in (None, keys.temperature):
        problem = (
            f"is {keys.temperature:g}, but parameters.temperature is {parameters.temperature:g}."
        )
        node.report("temperature", problem, "Keep one of them.")
    if keys.require_calibration is not None and keys.mode is JudgeMode.PAIRWISE:
        problem = "cannot be used with a pairwise judge, because `assay calibrate` measures scores."
        node.report("require_calibration", problem, "Remove it, or use `mode: joint` or `each`.")
    prompt = _judge_prompt(keys)
    if model is not None and model.provider == PERSON:
        if keys.name not in (None, PERSON):
            problem = f"is {keys.name!r}, but each decision by a person names its reviewer."
            node.report("name", problem, "Remove it.")
        if keys.mode is JudgeMode.PAIRWISE:
            node.report(
                "mode",
                "is pairwise, but people grade on the rubric.",
                "Use `mode: joint` or `each`.",
            )
    if model is None:
        return None
    default = Parameters(
        temperature=JUDGE_TEMPERATURE if keys.temperature is None else keys.temperature
    )
    return JudgeSpec(
        name=keys.name or model.ref,
        model=replace(model, metadata=keys.metadata or {}),
        mode=keys.mode or JudgeMode.JOINT,
        parameters=parameters.over(default),
        prompt=prompt,
        prompt_path=None if keys.prompt is None else keys.prompt.path,
        persona=None if keys.persona is None else keys.persona.text.strip() or None,
        max_code_chars=keys.max_code_chars,
        require_calibration=keys.require_calibration,
    )


def _judge_prompt(keys: JudgeKeys) -> str | None:
    if keys.prompt is None:
        return None
    source = "" if keys.prompt.path is None else f"names {keys.prompt.path}: "
    for problem in keys.node.context.checks.template_problems(keys.prompt.text):
        keys.node.report("prompt", f"{source}{problem}")
    return keys.prompt.text


_DESCRIBED_JUDGE: Final = grammar.made_of(JudgeKeys, _described_judge)


def _read_judge(value: Value, path: Path, context: grammar.ReadContext) -> JudgeSpec | None:
    if isinstance(value, dict):
        return _DESCRIBED_JUDGE.read(value, path, context)
    if not isinstance(value, str):
        context.report(
            path,
            f"is {shown(value)}, expected a model as provider/name, or a mapping with `model`.",
        )
        return None
    ref = grammar.read_name(value, path, context)
    model = None if ref is None else read_model(ref, path, context)
    return None if model is None else JudgeSpec(name=model.ref, model=model)


_JUDGE: Final = grammar.Kind(_read_judge, {"anyOf": [grammar.NAME.schema, _DESCRIBED_JUDGE.schema]})
_TURNS: Final = grammar.list_of(_JUDGE)


def _read_turns(
    value: Value, path: Path, context: grammar.ReadContext
) -> list[tuple[Path, JudgeSpec]] | None:
    if not isinstance(value, list) or len(value) < 2:
        context.report(path, f"is {shown(value)}, expected a list of at least two judges.")
        return None
    # Turns are assigned only to judges without problems, so that every trial has a judge.
    judges = _TURNS.read(value, path, context) or []
    return [
        (inner, replace(judge, turn=(turn, len(judges))))
        for turn, (inner, judge) in enumerate(judges)
    ]


class RotateKeys(grammar.Keys):
    """The keys of a group of judges that take turns."""

    rotate = grammar.key(
        grammar.Kind(_read_turns, {**_TURNS.schema, "minItems": 2}),
        "Judges that take turns: each trial is graded by just one of them.",
        required="Write {rotate: [provider/name, provider/name]}.",
    )


def _read_judges(value: Value, path: Path, context: grammar.ReadContext) -> tuple[JudgeSpec, ...]:
    """Read one judge (a reference or a mapping), `{rotate: [...]}`, or a list of these for a
    panel.
    """
    if isinstance(value, list) and not value:
        context.report(path, "is an empty list, expected at least one judge.")
    items: Sequence[tuple[Path, Value]] = [(path, value)]
    if isinstance(value, list):
        items = [((*path, position), item) for position, item in enumerate(value)]
    panel: dict[str, JudgeSpec] = {}
    for inner, item in items:
        for where, judge in _read_seat(item, inner, context):
            if folded(judge.name) in panel:
                context.report(
                    where,
                    f"is a second judge named {judge.name!r}.",
                    "Give it a `name` of its own.",
                )
            panel.setdefault(folded(judge.name), judge)
    return tuple(panel.values())


def _read_seat(
    value: Value, path: Path, context: grammar.ReadContext
) -> list[tuple[Path, JudgeSpec]]:
    """Read a member of a panel: a judge, or several judges that take turns."""
    if isinstance(value, dict) and "rotate" in value:
        keys = RotateKeys.read(value, path, context)
        return [] if keys is None else keys.rotate or []
    judge = _read_judge(value, path, context)
    return [] if judge is None else [(path, judge)]


_SEAT: Final = [grammar.NAME.schema, _DESCRIBED_JUDGE.schema, RotateKeys.schema()]
JUDGES: Final = grammar.Kind(
    _read_judges,
    {"anyOf": [*_SEAT, {"type": "array", "minItems": 1, "items": {"anyOf": [*_SEAT]}}]},
)
