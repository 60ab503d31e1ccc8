"""Loads a suite from its file, whose content decides if it is a suite, a set, test cases or an
OpenAI batch input file.

All problems are reported at once. This module makes the checks that need the whole suite:
candidates that appear only in snippets, repeated ids, a judge that compares candidates. Single
values are checked by the code that reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path as FilePath
from typing import Final, TypeAlias

from assay.domain.errors import SuiteError, did_you_mean
from assay.domain.identifiers import folded
from assay.domain.model import Parameters
from assay.domain.prompts import all_columns, columns_named
from assay.domain.protocol import MOST, NUMBERS, PLAIN
from assay.domain.review_sample import EVERY_GRADE
from assay.domain.suite import (
    MAX_LOOKS,
    CandidateSpec,
    JudgeMode,
    JudgeSpec,
    ReviewOrder,
    Scoring,
    Suite,
    SuiteCopy,
    Task,
)
from assay.domain.unescaped_json import unescaped_json
from assay.suites import grammar
from assay.suites.case_files import has_test_cases, read_case_file, tasks_of_cases
from assay.suites.checks import ExternalChecks
from assay.suites.conversations import GRADE_BY, TURN, USER
from assay.suites.files import NamedFiles, unreadable, whole_text
from assay.suites.located_yaml import (
    LocatedDocument,
    UnreadableText,
    Value,
    as_written,
    plain,
    read_json,
    read_yaml,
    shown,
)
from assay.suites.models import CANDIDATES, JUDGES, PARAMETERS, Declared, read_model
from assay.suites.problems import Location, Path, SuiteErrors, TooManyProblems, dotted
from assay.suites.reviews import REVIEW
from assay.suites.rubrics import RUBRIC
from assay.suites.scoring import SCORE
from assay.suites.set_files import is_set, read_set
from assay.suites.taskfiles import BATCH, TABLES, RowMapping, TaskFile, TaskFileKeys, listed_rows
from assay.suites.tasks import TASK, TRIALS, TaskRules, read_task
from assay.suites.tools import TOOL_TURNS, TOOLS, offered_tools

JudgeRef: TypeAlias = "str | Mapping[str, object] | Sequence[object]"
"""A value of `judge:`, which is a model's reference, a mapping, or a list of these."""


_POINTS: Final = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(?:pts?|points?)\s*", re.IGNORECASE)


def _read_margin(value: Value, path: Path, context: grammar.ReadContext) -> float | None:
    """Read the smallest difference that matters, between 0 and 1; `3pts` means 0.03."""
    margin = grammar.finite(value)
    if isinstance(value, str) and (match := _POINTS.fullmatch(value)):
        margin = float(match.group(1)) / 100
    if margin is not None and 0 < margin < 1:
        return margin
    remedy = (
        f"For {margin:g} points write {margin:g}pts."
        if margin is not None and 1 <= margin < 100
        else ""
    )
    problem = f"is {shown(value)}, expected a number between 0 and 1 (both excluded), or points such as 3pts."
    context.report(path, problem, remedy)
    return None


_MARGIN: Final = grammar.Kind(
    _read_margin,
    {
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            {
                "type": "string",
                "pattern": r"^\s*(\d+(\.\d+)?|\.\d+)\s*([pP][tT][sS]?|[pP][oO][iI][nN][tT][sS]?)\s*$",
            },
        ]
    },
)


class SuiteKeys(grammar.Keys):
    """The keys of a suite file. `tasks` is read last, once the candidates and judges are known."""

    schema_address = grammar.key(grammar.unread({"type": "string"}), name="$schema")
    name = grammar.key(grammar.NAME)
    description = grammar.key(grammar.TEXT)
    system_prompt = grammar.key(grammar.TEXT)
    prompt_version = grammar.key(
        grammar.TEXT, "Your name for this version of the prompts; stored with each run."
    )
    trials = grammar.key(
        TRIALS, "Repetitions of each task, unless the task or --trials sets another number."
    )
    review = grammar.key(REVIEW, "Which LLM grades a person must review.")
    order = grammar.key(
        grammar.member(ReviewOrder), "Order in which waiting grades reach a reviewer."
    )
    protocol = grammar.key(
        grammar.mapping_of(
            {name: grammar.DeclaredKey(grammar.number(0, MOST[name])) for name in NUMBERS},
            partial(replace, PLAIN),
        ),
        "Shares of items that are reviewed with more care.",
    )
    looks = grammar.key(grammar.whole(1, MAX_LOOKS), "Number of planned looks at the result.")
    parameters = grammar.key(PARAMETERS)
    candidates = grammar.key(CANDIDATES)
    judge = grammar.key(JUDGES)
    margin = grammar.key(_MARGIN, "The smallest difference that matters: 0.03, or 3pts.")
    rubric = grammar.key(RUBRIC)
    score = grammar.key(SCORE, "Default scoring, for tasks without `score`.")
    user = grammar.key(USER, "A model that plays the user in conversations.")
    grade_by = grammar.key(
        GRADE_BY, "Default for tasks with turns: grade the conversation as a whole or turn by turn."
    )
    tools = grammar.key(TOOLS, "Tools that candidates may call, and the results they return.")
    tool_turns = grammar.key(
        TOOL_TURNS, "The maximum number of requests for each message of the user, 10 by default."
    )
    tasks = grammar.key(
        grammar.unread(
            {
                "anyOf": [
                    {"type": "array", "minItems": 1, "items": TASK.schema},
                    TaskFileKeys.schema(),
                ]
            }
        ),
        required="Add a list of tasks, or {file: tasks.jsonl}.",
    )


KEPT_TEXT: Final = 4 * 2**20
"""Maximum bytes of a batch input file whose text is stored in the suite's copy; its tasks are
always stored with the run.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """The caller's additions to a suite file.

    Attributes:
        judge: replaces the suite's judges. A bare model name keeps the first one's mode,
            temperature and prompt.
        judge_from: name for the source of `judge` in messages.
        default_judge: used if the file has no judge; `default_judge_from` is the name of its
            source.
        candidates: references or mappings as in `candidates:`, added to the suite's own.
        folder: folder to which relative paths in `judge` and `default_judge` refer; by default the
            working folder.
        read_from: additional folders whose files the suite may use.
        judge_may_come: True to accept a set file or batch input file without a judge, as when a
            file is only checked.
    """

    judge: JudgeRef | None = None
    judge_from: str = "--judge"
    default_judge: JudgeRef | None = None
    default_judge_from: str = "assay.yaml judge"
    candidates: tuple[str | Mapping[str, object], ...] = ()
    folder: FilePath = FilePath()
    read_from: tuple[FilePath, ...] = ()
    judge_may_come: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSuite:
    """A suite that a program passes as values instead of a file; the values have the structure of a
    suite file.

    Attributes:
        label: the suite's name in messages, which have no line numbers.
        files: maps the names of files that exist only in memory to their texts.
    """

    document: Mapping[str, object]
    label: str
    files: Mapping[str, str] = field(default_factory=dict)


def load_suite(
    path: FilePath,
    *,
    judge: JudgeRef | None = None,
    default_judge: JudgeRef | None = None,
    candidates: Sequence[str | Mapping[str, object]] = (),
    folder: FilePath | None = None,
    read_from: Iterable[FilePath] = (),
    checks: ExternalChecks | None = None,
    text: str | None = None,
    given: GivenSuite | None = None,
) -> Suite:
    """Return the suite in a file after all checks.

    Args:
        path: as the user gave it; messages and the suite's copy use it in this form.
        judge, default_judge, candidates, folder, read_from: as in `LoadOptions`; the suite may also
            use files in the working folder.
        checks: checks of references and options by providers and scorers; if None, only built-in
            names are known.
        text: JSON that is read instead of the file's content.
        given: values that are read instead of a file; `path` then only sets the name of the suite's
            copy and its folder.

    Raises SuiteErrors if the file is wrong; the error holds every problem.
    """
    options = LoadOptions(
        judge=judge,
        default_judge=default_judge,
        candidates=tuple(candidates),
        folder=folder or FilePath(),
        read_from=(FilePath(), *read_from),
    )
    suite, errors = _read(
        FilePath(path), str(path), options, checks or ExternalChecks(), text, given
    )
    if errors or suite is None:
        raise SuiteErrors(errors)
    return suite


def problems_in(
    path: FilePath,
    *,
    default_judge: JudgeRef | None = None,
    read_from: Iterable[FilePath] = (),
    checks: ExternalChecks | None = None,
    text: str | None = None,
) -> tuple[SuiteError, ...]:
    """Return all problems with a suite file (or `text` instead) in file order; set and batch files
    need no judge.
    """
    options = LoadOptions(
        default_judge=default_judge, read_from=(FilePath(), *read_from), judge_may_come=True
    )
    return _read(FilePath(path), str(path), options, checks or ExternalChecks(), text)[1]


def _read(
    path: FilePath,
    named: str,
    options: LoadOptions,
    checks: ExternalChecks,
    text: str | None,
    given: GivenSuite | None = None,
) -> tuple[Suite | None, tuple[SuiteError, ...]]:
    document: LocatedDocument | None = None
    content = ""
    label = named
    if given is not None:
        label = given.label
        document = LocatedDocument(_as_value(given.document), (), lambda where, at_key: 0)
        content = unescaped_json(document.value, indent=1)
    is_table = SuiteError(
        named,
        "is a table, not a suite.",
        remedy=f"Propose a suite for it: assay init --from {named}",
    )
    ending = path.suffix.lower() if given is None and text is None else ""
    if ending in TABLES and ending not in (".jsonl", ".json") and unreadable(path) is None:
        return None, (is_table,)
    try:
        # Batch input files may be larger than memory and are read line by line.
        if given is None and (
            text is not None or path.suffix.lower() != ".jsonl" or unreadable(path) is not None
        ):
            content = whole_text(path) if text is None else text
            document = _document(path, content)
    except UnreadableText as error:
        return None, (
            SuiteError(
                str(Location(named, error.line or 0, "")), error.problem, remedy=error.remedy
            ),
        )

    if document is not None and ending == ".json" and _is_table(document.value):
        return None, (is_table,)

    def locate(where: Path, at_key: bool) -> Location:
        return Location(
            label, 0 if document is None else document.line_of(where, at_key), dotted(where)
        )

    files = NamedFiles(
        path.parent, also=options.read_from, texts={} if given is None else given.files
    )
    context = grammar.ReadContext(locate, checks=checks, files=files)
    loader = _Loader(path, named, content, options, context)
    suite = None
    with suppress(TooManyProblems):
        suite = loader.batch_file() if document is None else loader.document(document)
    return suite, context.errors()


def _is_table(value: Value) -> bool:
    """True if a JSON document is a list of rows without any keys of a suite, a Thing or a test
    case.
    """
    if has_test_cases(value) or (
        isinstance(value, dict) and (is_set(value) or value.keys() & SuiteKeys.table.keys)
    ):
        return False
    marks = {"thingName", "trialsNeeded", "snippets"}
    rows = listed_rows(value) or []
    return bool(rows) and all(
        isinstance(row, dict) and row and marks.isdisjoint(row) for row in rows
    )


def _document(path: FilePath, content: str) -> LocatedDocument:
    start = content.lstrip()[:1]
    if not start:
        raise UnreadableText(
            None, "is empty, expected a suite: a mapping with `tasks`, or a list of Things."
        )
    suffix = path.suffix.lower()
    if suffix == ".json" or (suffix not in (".yaml", ".yml") and start in "[{"):
        return read_json(content)
    return read_yaml(content)


class _Loader:
    def __init__(
        self,
        path: FilePath,
        named: str,
        content: str,
        options: LoadOptions,
        context: grammar.ReadContext,
    ) -> None:
        self.path = path
        self.named = named
        self.content = content
        self.options = options
        self.context = context
        self.rules = TaskRules()

    def document(self, document: LocatedDocument) -> Suite | None:
        for misuse in document.misuses:
            self.context.report(misuse.path, misuse.problem, misuse.remedy, at_key=True)
        if has_test_cases(document.value):
            return self.case_file(document.value)
        if is_set(document.value):
            return self.set_file(document.value)
        if isinstance(document.value, dict):
            return self.suite_file(document.value)
        problem = "is empty" if document.value is None else f"is {shown(document.value)}"
        self.context.report(
            (), f"{problem}, expected a suite: a mapping with `tasks`, or a list of Things."
        )
        return None

    def suite_file(self, value: Value) -> Suite | None:
        keys = SuiteKeys.read(value, (), self.context)
        assert keys is not None  # `value` is a mapping
        declared = [candidate for _, candidate in keys.candidates or ()] + self._caller_candidates()
        judges = self._judges(keys.judge or ())
        self._set_rules(declared, judges, keys.score)
        self.rules.by_turn = keys.grade_by == TURN
        self.rules.tools = offered_tools(keys.tools or [], self.context, {})
        self.rules.tool_turns = keys.tool_turns or self.rules.tool_turns
        if keys.user is not None:
            self.rules.persona = keys.user.persona
            self.rules.columns |= frozenset(columns_named(keys.user.persona))
        # A judge with a problem still counts as a judge, because a second message about its tasks
        # would not help.
        self.rules.has_judge = (
            bool(judges) or "judge" in keys.node or self.options.judge is not None
        )
        if self.rules.default is None and self.rules.has_judge:
            self.rules.default = Scoring(method="judge")
        tasks = self._tasks(keys.tasks)
        candidates = self._candidates(declared)
        if not keys.judge and self.options.judge is None and not self.rules.judged:
            # the judge from the settings grades nothing here, so its API key may be missing
            judges = ()
        return self._suite(keys, tasks=tasks, candidates=candidates, judges=judges)

    def set_file(self, value: Value) -> Suite | None:
        declared = self._caller_candidates()
        judges = self._judges(())
        self._require_judge(judges)
        self._set_rules(declared, judges, None)
        # a judge that is added later is joint by default
        self.rules.joint = self.rules.joint or not judges
        name, tasks = read_set(value, self.context, self.rules)
        keys = SuiteKeys()
        keys.name = name
        return self._suite(keys, judges=judges, candidates=self._candidates(declared), tasks=tasks)

    def case_file(self, value: Value) -> Suite | None:
        declared = self._caller_candidates()
        # The format's `llm-judge` grades each answer separately.
        judges = tuple(replace(judge, mode=JudgeMode.EACH) for judge in self._judges(()))
        self._set_rules(declared, judges, None)
        self.rules.more_candidates = not self.rules.models
        written = read_case_file(value, self.context)
        if written.judge_system_prompt:
            judges = tuple(
                replace(judge, persona=judge.persona or written.judge_system_prompt)
                for judge in judges
            )
        tasks = tasks_of_cases(written.test_cases or [], self.context, self.rules)
        if self.rules.judged:
            self._require_judge(judges)
        keys = SuiteKeys()
        keys.name, keys.description, keys.system_prompt = (
            written.name,
            written.description,
            written.system_prompt,
        )
        judges = judges if self.rules.judged else ()
        return self._suite(keys, judges=judges, candidates=self._candidates(declared), tasks=tasks)

    def batch_file(self) -> Suite | None:
        declared = self._caller_candidates()
        judges = self._judges(())
        self._set_rules(declared, judges, None)
        self.rules.more_candidates = not self.rules.models
        self.rules.default = Scoring(method="judge")
        tasks = TaskFile(self.path, self.named, BATCH, self.rules, self.context)
        # Checked first, because a judge would not help if the file is not a batch file.
        if self.context or not tasks.is_batch():
            return None
        tasks.check()
        content_digest = tasks.digest()
        if self.path.stat().st_size <= KEPT_TEXT and not self.context:
            self.content = whole_text(self.path)
        else:
            self.content = f"# {len(tasks)} lines of {self.named}, SHA-256 {content_digest}\n"
        self.context.files.record(self.named, content_digest)
        return self._suite(
            SuiteKeys(), judges=judges, candidates=self._candidates(declared), tasks=tasks
        )

    def _require_judge(self, judges: tuple[JudgeSpec, ...]) -> None:
        if not judges and not self.options.judge_may_come and not self.context:
            remedy = "Use `--judge provider/name`, or set `judge:` in assay.yaml."
            self.context.report((), "is graded by a judge, but none is given.", remedy)

    def _caller_candidates(self) -> list[Declared]:
        here = self.context.at(lambda where, _at_key: Location("--candidate", 0, dotted(where[1:])))
        given = [_as_value(candidate) for candidate in self.options.candidates]
        return [candidate for _, candidate in CANDIDATES.read(given, (), here) or ()]

    def _judges(self, own: tuple[JudgeSpec, ...]) -> tuple[JudgeSpec, ...]:
        """Return the judges that apply: the caller's, or else the suite's, or else those in the
        settings.
        """
        options = self.options
        if options.judge is not None:
            ref, source = options.judge, options.judge_from
        elif own or options.default_judge is None:
            return own
        else:
            ref, source = options.default_judge, options.default_judge_from
        here = self.context.at(
            lambda where, _at_key: Location(source, 0, dotted(where)),
            files=NamedFiles(options.folder, also=options.read_from),
        )
        judges = JUDGES.read(_as_value(ref), (), here) or ()
        # `--judge` on the command line changes the model, but not the way in which the suite wants
        # it to judge.
        if isinstance(ref, str) and own and judges:
            return (replace(own[0], name=judges[0].name, model=judges[0].model, turn=None),)
        return judges

    def _set_rules(
        self, declared: list[Declared], judges: tuple[JudgeSpec, ...], default: Scoring | None
    ) -> None:
        spellings = self.rules.spellings
        for candidate in declared:
            if candidate.name in spellings:
                problem = f"is a second candidate named {spellings.spelling(candidate.name)!r}."
                here = self.context.at(candidate.locate)
                here.report(candidate.path, problem, "Give it a `name` of its own.")
            spellings.spelling(candidate.name)
        self.rules.models = tuple(candidate.name for candidate in declared if candidate.is_model)
        specs = (candidate.spec for candidate in declared if candidate.spec is not None)
        self.rules.templates = tuple(
            spec
            for spec in specs
            if all_columns(spec)
            or spec.prompt is not None
            or spec.messages
            or spec.system_prompt is not None
        )
        self.rules.columns = frozenset(
            name for spec in self.rules.templates for name in all_columns(spec)
        )
        self.rules.joint = any(judge.mode.compares for judge in judges)
        self.rules.default = default

    def _tasks(self, value: Value) -> Iterable[Task]:
        path: Path = ("tasks",)
        if isinstance(value, dict):
            return self._task_file(value, path) or ()
        if not isinstance(value, list):
            if value is not None:
                self.context.report(path, f"is {shown(value)}, expected a list.")
            return ()
        tasks: list[Task] = []
        first: dict[str, Path] = {}
        for position, item in enumerate(value):
            inner = (*path, position)
            if not isinstance(item, dict):
                self.context.report(inner, f"is {shown(item)}, expected a mapping with `id`.")
                continue
            self._note_id(item.get("id"), inner, first)
            task = read_task(item, inner, self.context, self.rules)
            if task is not None:
                tasks.append(task)
        if not value:
            self.context.report(path, "is an empty list, expected at least one task.")
        if len(tasks) == len(value) and tasks and not any(task.weight for task in tasks):
            self.context.report(path, "all have weight 0, so nothing would be run.")
        return tuple(tasks)

    def _note_id(self, value: Value, path: Path, first: dict[str, Path]) -> None:
        """Report an id that an earlier task already has, even if the earlier task has problems
        too.
        """
        if not isinstance(value, str | int | float):
            return
        task_id = value.strip() if isinstance(value, str) else as_written(value)
        if task_id in first:
            where = (*first[task_id], "id")
            line = self.context.locate(where, False).line
            on_line = f" on line {line}" if line else ""
            problem = f"is {shown(value)}, as {dotted(where)}{on_line} is."
            self.context.report((*path, "id"), problem, "Give every task its own id.")
        else:
            first[task_id] = path

    def _task_file(self, value: Value, path: Path) -> TaskFile | None:
        keys = TaskFileKeys.read(value, path, self.context)
        if keys is None or keys.file is None or (keys.map is None and "map" in keys.node):
            return None
        node, files = keys.node, self.context.files
        file = self.path.parent / keys.file
        if not files.within(keys.file, node.at("file"), self.context):
            return None
        if (problem := unreadable(file)) is not None:
            node.report("file", f"names {keys.file!r}, which {problem}.", f"Looked for {file}.")
            return None
        mapping = keys.map or RowMapping({}, {})
        tasks = TaskFile(file, str(file), mapping, self.rules, self.context)
        if keys.score is not None:
            self.rules.default = keys.score
        elif (
            self.rules.default is None
            and not mapping.keys.keys().isdisjoint(("expected", "final_answer"))
            and "score" not in mapping.keys
        ):
            # Rows from other programs cannot name a scoring method; a mapped reference without a
            # judge can only mean `exact`.
            self.rules.default = Scoring(method="exact")
            tasks.exact_by_default = True
        before = len(self.context)
        if tasks.report_misspelt(node.at("map")):
            return None
        weighs = tasks.check()
        if not weighs and len(self.context) == before:
            node.report("file", f"names {keys.file!r}, whose tasks all have weight 0.")
        files.record(keys.file, tasks.digest())
        return tasks

    def _candidates(self, declared: list[Declared]) -> tuple[CandidateSpec, ...]:
        """Return the declared candidates in their order, then those that only have snippets, in
        order of appearance.
        """
        candidates: dict[str, CandidateSpec] = {}
        # Names that differ only in case occur in people's files: `Alice` and `alice` are the same
        # candidate.
        with_snippets = {folded(name) for name in self.rules.with_snippets}
        for candidate in declared:
            spec = candidate.spec
            if spec is None and candidate.is_model:
                continue
            if (spec is None or spec.model is None) and folded(candidate.name) not in with_snippets:
                self._report_unknown(candidate)
                continue
            name = self.rules.spellings.spelling(candidate.name)
            candidates.setdefault(
                name, CandidateSpec(name=name) if spec is None else replace(spec, name=name)
            )
        for name in self.rules.with_snippets:
            candidates.setdefault(name, CandidateSpec(name=name))
        return tuple(candidates.values())

    def _report_unknown(self, candidate: Declared) -> None:
        here = self.context.at(candidate.locate)
        if candidate.ref is None:
            problem = (
                f"names {candidate.name!r}, which has neither a model nor a snippet in any task."
            )
            here.report(
                candidate.path, problem, "Add `model: provider/name`, or a snippet under this name."
            )
        elif not self.rules.with_snippets:
            read_model(candidate.ref, candidate.path, here)
        else:
            hint = did_you_mean(candidate.ref, self.rules.with_snippets)
            remedy = (
                "" if hint else "Write a model as provider/name, for example openai/gpt-4o-mini."
            )
            problem = f"is {candidate.ref!r}, which is neither a model (provider/name) nor the name of a snippet.{hint}"
            here.report(candidate.path, problem, remedy)

    def _suite(
        self,
        keys: SuiteKeys,
        *,
        tasks: Iterable[Task],
        candidates: tuple[CandidateSpec, ...],
        judges: tuple[JudgeSpec, ...],
    ) -> Suite | None:
        if self.context:
            return None
        return Suite(
            name=keys.name or self.path.stem.strip() or "suite",
            description=keys.description or "",
            system_prompt=keys.system_prompt or "",
            prompt_version=keys.prompt_version or "",
            trials=keys.trials,
            review=keys.review or (keys.rubric.review if keys.rubric else None) or EVERY_GRADE,
            order=keys.order or ReviewOrder.SPREAD,
            looks=keys.looks,
            protocol=keys.protocol or PLAIN,
            parameters=keys.parameters or Parameters(),
            candidates=candidates,
            judges=judges,
            margin=keys.margin,
            user=None if keys.user is None else keys.user.user,
            rubric=keys.rubric,
            tasks=tasks,
            copy=SuiteCopy(
                path=self.named, text=self.content, digest=self.context.files.digest(self.content)
            ),
        )


def _as_value(content: object) -> Value:
    if isinstance(content, Mapping):
        return {str(key): _as_value(value) for key, value in content.items()}
    if isinstance(content, Sequence) and not isinstance(content, str | bytes):
        return [_as_value(value) for value in content]
    if content is None or isinstance(content, str | int | float | bool):
        return plain(content)
    return str(content)
