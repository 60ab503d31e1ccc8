"""Reads one task: its keys, and the rules that the rest of the suite sets for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from assay.domain.conversation import Turn
from assay.domain.errors import did_you_mean
from assay.domain.identifiers import folded
from assay.domain.model import Parameters
from assay.domain.prompts import all_columns, columns_named, columns_of, filled_in, prompt_columns
from assay.domain.run import MAX_TRIALS
from assay.domain.suite import CandidateSpec, Message, Scoring, Snippet, Task
from assay.domain.tools import CannedTool, expected_calls
from assay.domain.unescaped_json import unescaped_json
from assay.suites.checks import JSON, JUDGED, TOOL_CALLS
from assay.suites.conversations import GRADE_BY, TURN, TURNS
from assay.suites.expected import EXPECTED, EXPECTED_OR_CALLS
from assay.suites.grammar import (
    FREE,
    FREE_MAPPING,
    NAME,
    TEXT,
    WORD,
    Keys,
    Kind,
    Node,
    ReadContext,
    key,
    read_name,
    whole,
)
from assay.suites.located_yaml import Value, as_written
from assay.suites.models import PARAMETERS
from assay.suites.problems import Path
from assay.suites.prompts import PROMPT
from assay.suites.rubrics import WEIGHT
from assay.suites.scoring import SCORE
from assay.suites.snippets import SNIPPETS, SnippetEntry
from assay.suites.tools import TOOL_TURNS, TOOLS, offered_tools

TRIALS: Final = whole(1, MAX_TRIALS)
NO_PARAMETERS: Final = Parameters()


def _read_tags(value: Value, path: Path, context: ReadContext) -> tuple[str, ...]:
    """Read a list of names, or a single name; repeated tags are merged."""
    if not isinstance(value, list):
        value, paths = [value], [path]
    else:
        paths = [(*path, position) for position in range(len(value))]
    names = [read_name(item, inner, context) for item, inner in zip(value, paths, strict=True)]
    return tuple(dict.fromkeys(name for name in names if name is not None))


_TAGS: Final = Kind(_read_tags, {"anyOf": [NAME.schema, {"type": "array", "items": NAME.schema}]})


def column_text(value: Value) -> str:
    """Return a column's value as text for a template: text unchanged, null as nothing, a list or
    mapping as JSON.
    """
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool | list | dict):
        return unescaped_json(value)
    return as_written(value)


def _read_columns(value: Value, path: Path, context: ReadContext) -> dict[str, str] | None:
    content = FREE_MAPPING.read(value, path, context)
    if content is None or not isinstance(value, dict):
        return None
    return {name: column_text(value[name]) for name in content}


class TaskKeys(Keys):
    """The keys of a task, as its author writes it."""

    id = key(NAME, required="Give every task its own id.")
    thing = key(WORD, "The display name; by default the id.")
    context = key(TEXT, "The rules that apply to the task.")
    prompt = key(PROMPT)
    expected = key(EXPECTED_OR_CALLS)
    ideal = key(TEXT, "A solution as it should be written, shown to judges and reviewers.")
    final_answer = key(
        EXPECTED, "Only the right result; scorers compare with it if there is no `expected`."
    )
    score = key(SCORE)
    weight = key(WEIGHT, "0 leaves the task out.")
    tags = key(_TAGS)
    language = key(WORD)
    family = key(
        WORD, "The source it shares with other tasks: one passage, one repository, one template."
    )
    trials = key(TRIALS)
    snippets = key(SNIPPETS)
    category = key(FREE)
    difficulty = key(FREE)
    parameters = key(
        PARAMETERS, "For this task only; replaces those of the candidates and the suite."
    )
    system_prompt = key(TEXT, "For this task only; replaces that of the suite.")
    columns = key(
        Kind(_read_columns, FREE_MAPPING.schema),
        "Further values for the prompts of candidates: {{question}}.",
    )
    turns = key(
        TURNS,
        "What the user says turn by turn: after `prompt`, or from the first turn if there is no `prompt`.",
    )
    grade_by = key(GRADE_BY, "Grade a task with turns as a whole or turn by turn.")
    tools = key(
        TOOLS,
        "Tools that candidates may call, and their results; a name refers to a tool of the suite. Replaces the suite's.",
    )
    tool_turns = key(TOOL_TURNS, "The maximum number of requests for each message of the user.")
    persona = key(
        TEXT,
        "The simulated user's role in this task, replacing the suite's; empty for no simulated user.",
    )


TASK: Final = Kind(TaskKeys.read, TaskKeys.schema())


class CandidateSpellings:
    """Names of candidates in their first spelling: `Alice` and `alice` are the same candidate."""

    def __init__(self) -> None:
        self._spelled: dict[str, str] = {}

    def spelling(self, name: str) -> str:
        """Return the first spelling of a name. A new name becomes its own first spelling."""
        return self._spelled.setdefault(folded(name), name)

    def __contains__(self, name: str) -> bool:
        return folded(name) in self._spelled


@dataclass(slots=True, kw_only=True)
class TaskRules:
    """A suite's rules for each of its tasks, and facts about the tasks read so far.

    Attributes:
        default: scoring for tasks without `score`; None if the suite has no default.
        has_judge: True if a judge grades; this includes set files, which get their judge later.
        joint: True if a judge compares all candidates of a task in one call.
        models: names of the candidates that are models or programs, unlike those with snippets.
        more_candidates: True if candidates may still be added, as with a batch input file.
        spellings: names of all candidates.
        persona: the persona of the suite's simulated user; None without a simulated user.
        by_turn: True if tasks without this setting are graded turn by turn.
        tools: the suite's tools by name. `tool_turns`: maximum number of requests for each message
            of the user.
        templates: candidates that have their own prompt templates.
        columns: columns that these templates use.
        same_columns: True if all tasks have the same columns, as in a table, so that a missing
            column is reported only once.
        with_snippets: names of candidates that have snippets, in order of appearance.
        judged: scoring method of the tasks read so far that an LLM grades; empty if it grades none.
    """

    default: Scoring | None = None
    has_judge: bool = True
    joint: bool = False
    models: tuple[str, ...] = ()
    persona: str | None = None
    by_turn: bool = False
    tools: Mapping[str, CannedTool] = field(default_factory=dict)
    tool_turns: int = 10
    templates: tuple[CandidateSpec, ...] = ()
    columns: frozenset[str] = frozenset()
    same_columns: bool = False
    more_candidates: bool = False
    spellings: CandidateSpellings = field(default_factory=CandidateSpellings)
    with_snippets: dict[str, None] = field(default_factory=dict)
    judged: str = ""
    lacking: set[tuple[str, str]] = field(default_factory=set)


def read_task(
    values: dict[str, Value],
    path: Path,
    context: ReadContext,
    rules: TaskRules,
    *,
    columns: Mapping[str, str] | None = None,
    of_row: Iterable[str] = (),
) -> Task | None:
    """Read a task; None if it has no usable id or scoring.

    Args:
        columns: columns of the task's row that candidates' prompts use, in addition to the keys of
            the task.
        of_row: names of all columns of the row, for messages.
    """
    keys = TaskKeys.read(values, path, context)
    assert keys is not None  # `values` is a mapping
    if keys.parameters is not None and keys.parameters.seed is not None:
        problem = "sets `seed`, but the seeds that Assay sends are derived from the run's seed."
        keys.node.report("parameters", problem, "Set it for the suite.")
    scoring = keys.score
    if "score" not in keys.node:
        scoring = rules.default
        if scoring is None:
            remedy = "Add a `score` to the suite or the task, such as `contains` or `numeric`, or a `judge` to the suite."
            context.report(path, "has no `score`, and the suite has no judge.", remedy)
    snippets = add_snippets(keys.snippets or (), context, rules)
    if scoring is None or keys.id is None:
        return None
    task = Task(
        id=keys.id,
        thing=keys.thing or keys.id,
        context=keys.context or "",
        prompt=keys.prompt or (),
        expected=keys.expected,
        ideal=keys.ideal,
        final_answer=keys.final_answer,
        scoring=scoring,
        weight=1.0 if keys.weight is None else keys.weight,
        tags=keys.tags or (),
        language=keys.language or "",
        family=keys.family or "",
        trials=keys.trials,
        snippets=snippets,
        parameters=NO_PARAMETERS
        if keys.parameters is None
        else replace(keys.parameters, seed=None),
        system_prompt=keys.system_prompt,
        columns={**(columns or {}), **(keys.columns or {})},
        extra={
            name: content
            for name in ("category", "difficulty")
            if (content := getattr(keys, name)) is not None
        },
    )
    tools = rules.tools if keys.tools is None else offered_tools(keys.tools, context, rules.tools)
    if tools:
        task = replace(
            task, tools=tuple(tools.values()), tool_turns=keys.tool_turns or rules.tool_turns
        )
    task = _with_turns(task, keys, rules)
    _apply_rules(task, keys, rules, of_row)
    return (
        task if task.prompt or not task.columns else replace(task, prompt=_prompt_of_columns(task))
    )


def _with_turns(task: Task, keys: TaskKeys, rules: TaskRules) -> Task:
    node, turns = keys.node, keys.turns or ()
    persona = rules.persona if keys.persona is None else keys.persona
    if "persona" in node and persona and rules.persona is None:
        node.report(
            "persona", "needs a simulated user.", "Add `user: {model: provider/name}` to the suite."
        )
    if not (turns or persona or task.tools):
        return task
    if turns and not task.prompt:
        task = replace(task, prompt=(Message(role="user", content=turns[0].content),))
    elif turns or persona or task.tools:
        first = columns_of(task).get("prompt")
        if first is None and task.prompt:
            node.report("prompt", "has no user message, but a conversation begins with one.")
        turns = (Turn(content=first or ""), *turns)
    columns = columns_of(task)
    for name in columns_named(persona or ""):
        if name not in columns:
            node.context.report(node.path, f"has no column {name!r}, which the persona uses.")
    by_turn = rules.by_turn if keys.grade_by is None else keys.grade_by == TURN
    if not turns or (len(turns) == 1 and not persona and not task.tools):
        return task
    if by_turn and persona:
        problem = (
            "is `turn`, but with a simulated user the number of turns is not known in advance."
        )
        node.report("grade_by" if "grade_by" in node else "turns", problem, "Use `conversation`.")
    if not by_turn and any(turn.expected is not None for turn in turns):
        problem = "has `expected` for a turn, which counts only if the task is graded turn by turn."
        node.report(
            "turns",
            problem,
            "Add `grade_by: turn`, or write the `expected` of the last reply in the task.",
        )
    if by_turn and not task.scoring.judged and not any(turn.expected is not None for turn in turns):
        node.report(
            "turns", "has no `expected` to compare a reply with.", "Add it to at least one turn."
        )
    return replace(task, turns=turns, persona=filled_in(persona or "", columns), by_turn=by_turn)


def _prompt_of_columns(task: Task) -> tuple[Message, ...]:
    """Return the columns as a prompt that judges and reviewers can read, for a task whose
    candidates all have their own prompt.
    """
    texts = {name: text for name, text in task.columns.items() if text.strip()}
    lines = (
        list(texts.values())
        if len(texts) == 1
        else [f"{name}: {text}" for name, text in texts.items()]
    )
    return (Message(role="user", content="\n".join(lines)),) if lines else ()


def _apply_rules(task: Task, keys: TaskKeys, rules: TaskRules, of_row: Iterable[str]) -> None:
    """Report values that are valid in isolation but do not fit the rest of the suite."""
    node = keys.node
    method = task.scoring.method
    if method in JUDGED:
        rules.judged = rules.judged or method
        if method != rules.judged:
            problem = f"is {method}, but tasks above have {rules.judged}; a run has one rubric and one judge prompt."
            node.report("score", problem, f"Put the tasks with {method} into a separate suite.")
    if task.by_turn:
        for place, turn in enumerate(task.turns):
            for problem in (
                node.context.checks.reference_problems(method, turn.expected)
                if turn.expected is not None
                else ()
            ):
                node.report("turns", f"turn {place + 1}: {problem}")
    elif (
        all(name not in node for name in ("expected", "final_answer")) or task.reference is not None
    ):
        name = (
            "final_answer"
            if task.expected is None and task.final_answer is not None
            else "expected"
        )
        for problem in node.context.checks.reference_problems(method, task.reference):
            node.report(name, problem)
    given = node.values.get("expected")
    if isinstance(given, dict) and method not in (JSON, *JUDGED):
        node.report(
            "expected",
            f"is a mapping, expected text, a number or a list; `score: {JSON}` compares mappings.",
        )
    elif (
        method not in (TOOL_CALLS, JSON)
        and isinstance(given, list)
        and any(isinstance(item, dict) for item in given)
    ):
        node.report(
            "expected",
            f"is a list with mappings, which only `score: {TOOL_CALLS}` and `score: {JSON}` compare.",
        )
    if method == TOOL_CALLS:
        _check_calls(task, node)
    if method in JUDGED and not rules.has_judge:
        node.report(
            "score",
            f"is {method}, but the suite has no judge.",
            "Add `judge: provider/name` to the suite.",
        )
    given = node.values.get("snippets")
    if task.weight == 0 or len(task.snippets) < (len(given) if isinstance(given, dict) else 0):
        return
    with_snippet = {snippet.candidate for snippet in task.snippets}
    asked = [name for name in rules.models if name not in with_snippet]
    templates = [candidate for candidate in rules.templates if candidate.name in asked]
    own = {
        candidate.name
        for candidate in templates
        if candidate.prompt is not None or candidate.messages
    }
    plain = [name for name in asked if name not in own]
    if plain and not task.prompt and "prompt" not in node:
        node.report_missing(
            "prompt", f"{plain[0]} is a model, but the task has no prompt; add `prompt`."
        )
    for candidate in templates:
        _check_columns(task, candidate, node, rules, of_row)
    if rules.more_candidates:
        return
    count = len(asked) + len(with_snippet)
    if count == 0:
        remedy = (
            "The suite has no model to answer it; add `snippets` here or `candidates` to the suite."
        )
        node.report_missing("snippets", remedy)
    elif count == 1 and method == "judge" and rules.joint:
        only = (*asked, *with_snippet)[0]
        node.context.report(
            node.path,
            f"has one candidate ({only}), but a joint judge compares at least two.",
            "Add a snippet of another candidate, or set `mode: each` on the judge.",
        )


def _check_calls(task: Task, node: Node) -> None:
    """Report problems that prevent comparing the task's tool calls with the expected calls."""
    names = [canned.tool.name for canned in task.tools]
    if not names:
        node.report(
            "score",
            f"is {TOOL_CALLS}, but the task offers no tools.",
            "Add `tools` to the task or the suite.",
        )
        return
    if task.by_turn:
        node.report(
            "grade_by", f"is turn, but `score: {TOOL_CALLS}` compares all calls of a conversation."
        )
    with suppress(ValueError):  # reported with the other problems of `expected`
        for call in expected_calls(task.reference or ""):
            if call.name not in names:
                node.report(
                    "expected",
                    f"names the tool {call.name!r}, which is not offered.{did_you_mean(call.name, names)}",
                )


def _check_columns(
    task: Task, candidate: CandidateSpec, node: Node, rules: TaskRules, of_row: Iterable[str]
) -> None:
    """Report columns that a candidate's templates use and the task lacks, and a prompt without any
    text from the task.
    """
    columns = columns_of(task)
    for name in all_columns(candidate):
        if (
            name in columns
            or (name == "prompt" and "prompt" in node)
            or (candidate.name, name) in rules.lacking
        ):
            continue
        if rules.same_columns:
            rules.lacking.add((candidate.name, name))
        own = list(of_row) or [
            column for column in columns if columns[column] and column != "system_prompt"
        ]
        hint = did_you_mean(name, own)
        remedy = "" if hint else f"It has: {', '.join(own)}."
        node.context.report(
            node.path,
            f"has no column {name!r}, which a prompt of candidate {candidate.name!r} uses.{hint}",
            remedy,
        )
    named = [name for name in prompt_columns(candidate) if name in columns]
    if named and not any(columns[name].strip() for name in named):
        listed = ", ".join(map(repr, named))
        problem = f"has no value in {listed}, so the prompt of candidate {candidate.name!r} would be empty."
        node.context.report(node.path, problem)


def add_snippets(
    given: Sequence[SnippetEntry], context: ReadContext, rules: TaskRules
) -> tuple[Snippet, ...]:
    """Return a task's snippets keyed by the first spelling of each candidate's name; report second
    snippets of a candidate.
    """
    snippets: dict[str, Snippet] = {}
    for entry in given:
        name = rules.spellings.spelling(entry.candidate)
        if name in snippets:
            problem = f"is a second snippet of {name!r} for this task; upper and lower case make no difference."
            context.report(entry.path, problem, "Keep one of them.", at_key=True)
            continue
        rules.with_snippets[name] = None
        snippets[name] = Snippet(candidate=name, files=entry.files)
    return tuple(snippets.values())


def slug(thing: str) -> str:
    """Return an id for a display name: lower case, with `-` for every run of characters that are
    not letters or digits.
    """
    spaced = "".join(char if char.isalnum() else " " for char in thing.lower())
    return "-".join(spaced.split())
