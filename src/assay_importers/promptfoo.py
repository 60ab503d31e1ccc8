"""Results of promptfoo: `promptfoo eval -o results.json` (or `.jsonl`, `.yaml`), `promptfoo
export`, and OpenAI's Evals page.

Based on promptfoo's `src/types/index.ts` and `src/commands/import.ts` from 2026, and earlier
layouts: format 3 (`results.results`, `results.prompts`), format 2 (`results.results`,
`results.table`), and files with only a table. OpenAI's page offers past results as a format 3 file
for `promptfoo import`.

A candidate is a provider, with its prompt if several prompts were tried. A task is a set of
variables with its assertions, named after its description or a digest, so that an equal test in
another file is the same task. Repetitions of a test become trials. Assertions that a model decides
(`llm-rubric`, `g-eval`, `factuality`, …) are judges whose grades await review. The same applies to
an `assert-set` with such an assertion, and to any assertion that used tokens for grading. `human`
assertions are a person's. All others form one judge, `promptfoo`, with the weighted mean as its
grade. A test that failed its assertions is a response with a low score; a test that crashed is a
failure.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import orjson

from assay.plugins import (
    Failure,
    Fault,
    FileSample,
    Found,
    FoundAssessment,
    FoundCandidate,
    FoundGrade,
    FoundResponse,
    FoundRun,
    FoundTask,
    GradedBy,
    InputFile,
    JsonObject,
    JsonValue,
    Noted,
    NotJson,
    OffScale,
    ReadOptions,
    Shape,
    Skipped,
    as_count,
    as_duration,
    as_list,
    as_messages,
    as_number,
    as_object,
    as_text,
    chat_messages,
    explained_share,
    foreign_names,
    from_text,
    objects_in,
    objects_of,
    parse_json,
    parse_yaml,
    pick,
    read_rows,
    seconds_after,
    shorten,
    storable,
    to_text,
)

NAME: Final = "promptfoo"

_KNOWN_VERSION: Final = 4
_YAML: Final = re.compile(
    rb"(evalId: \S+|version: \d+|results:)\s*\n\s*(results|version|timestamp|prompts)\s*:"
)
_DEEPEST: Final = 20  # a set may contain sets, to any depth
_BROKE: Final = 2  # promptfoo's `ResultFailureReason.ERROR`
_NAMES: Final = foreign_names(__name__)
_BY_MODEL: Final = frozenset(_NAMES["by_model"])
# All other assertions of promptfoo 0.121 except sets. One that is not listed may call a model, so
# it awaits review too.
_BY_RULE: Final = frozenset(_NAMES["by_rule"])
# these use tokens, but no model writes the verdict
_BY_EMBEDDING: Final = ("similar", "classifier")
_SET_UP: Final = (
    "evalId",
    "id",
    "config",
    "shareableUrl",
    "metadata",
    "runtimeOptions",
    "author",
    "createdAt",
)

_RESULT: Final[Shape] = dict.fromkeys(_NAMES["result"])
_SUMMARY: Final[Shape] = {
    "results": _RESULT,
    **dict.fromkeys(("version", "timestamp", "prompts", "stats", "table")),
}
_FILE: Final[Shape] = {
    **_SUMMARY,
    **dict.fromkeys(
        (*_SET_UP, "prompts", "datasetId", "vars", "evalName", "description", "author", "traces")
    ),
    "results": {**_RESULT, **_SUMMARY},
}


def recognise(sample: FileSample) -> float | None:
    """Recognise results or a table with prompts, or lines with a test case, a provider and a
    grading result.
    """
    head = sample.head
    if _YAML.match(head):
        # Its share is not measured by parsing: that takes a second per megabyte, and no other
        # format begins like this.
        return 0.95 if b"gradingResult:" in head or b"promptIdx:" in head else None
    if (
        b'"promptIdx"' in head
        or b'"gradingResult"' in head
        or b'"testCase"' in head
        or b'"table"' in head
    ):
        if any(_is_result(row) for row in sample.rows[:20]):
            return explained_share(sample.rows, _RESULT)
    elif b'"results"' not in head or b'"stats"' not in head:
        return None
    return (
        explained_share(sample.document, _FILE) if _summary(sample.document) is not None else None
    )


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run: every pair of provider and prompt is a candidate, every test a task."""
    if source.sample.rows and any(_is_result(row) for row in source.sample.rows[:20]):
        log: JsonObject = {}
        summary: JsonObject = {}
        columns = _Columns((row for row, _ in objects_of(source)), options)
        rows = read_rows(source)
    else:
        try:
            parse = parse_yaml if _YAML.match(source.sample.head) else parse_json
            log = as_object(parse(source.read()))
        except NotJson as error:
            yield Skipped(where=source.name, why=str(error))
            return
        inner = _summary(log)
        if inner is None:
            yield Skipped(
                where=source.name,
                why="is not a promptfoo result: it holds neither results nor a table.",
            )
            return
        summary = inner
        results = _results(summary)
        columns = _Columns(objects_in(results), options)
        rows = (
            (row if isinstance(row, dict) else "is not a JSON object.", f"{source.name}#{number}")
            for number, row in enumerate(results, 1)
        )
    config = as_object(log.get("config"))
    first = next(iter(source.sample.rows), {})
    evaluation = as_text(log.get("evalId")) or as_text(first.get("evalId"))
    started = from_text(summary.get("timestamp")) or from_text(
        as_object(log.get("metadata")).get("evaluationCreatedAt")
    )
    lasted = as_duration(as_object(summary.get("stats")).get("durationMs"))
    yield FoundRun(
        suite=options.dataset or as_text(config.get("description")) or source.stem,
        format=NAME,
        candidates=columns.candidates(),
        started=started,
        finished=None if lasted is None else seconds_after(started, lasted / 1000),
        provenance={**pick(log, _SET_UP), **pick(summary, ("version", "stats"))},
        identity=None if evaluation is None else f"promptfoo eval {evaluation}",
        version=from_text(as_object(log.get("metadata")).get("exportedAt")),
    )
    version = as_number(summary.get("version"))
    if version is not None and version > _KNOWN_VERSION:
        what = f"the results have format version {version:g}; Assay reads up to {_KNOWN_VERSION}, so some data may be missing."
        yield Noted(where=source.name, what=what)
    yield from _rows(rows, columns)
    yield from columns.scale.remarks(source.name)


def _summary(document: object) -> JsonObject | None:
    """Return the object with results or a table, at any known nesting in the document; None if
    there is neither.
    """
    log = as_object(document)
    for part in (as_object(log.get("results")), log):
        results, table = part.get("results"), as_object(part.get("table"))
        if isinstance(results, list) and any(_is_result(row) for row in results[:50]):
            return part
        if isinstance(table.get("body"), list) and "head" in table:
            return part
        if results == [] and "stats" in part:
            return part
    return None


def _is_result(row: object) -> bool:
    fields = as_object(row)
    return (
        "provider" in fields
        and ("vars" in fields or "testCase" in fields)
        and ("success" in fields or "gradingResult" in fields)
    )


def _results(summary: JsonObject) -> list[JsonValue]:
    """Return rows as in format 3; if the file contains only a table, the rows are built from the
    table.
    """
    results = as_list(summary.get("results"))
    if results:
        return results
    table = as_object(summary.get("table"))
    head = as_object(table.get("head"))
    prompts = [as_object(prompt) for prompt in as_list(head.get("prompts"))]
    names = [to_text(name) for name in as_list(head.get("vars"))]
    rows: list[JsonValue] = []
    for row in map(as_object, as_list(table.get("body"))):
        test = as_object(row.get("test"))
        variables = as_object(test.get("vars")) or dict(
            zip(names, as_list(row.get("vars")), strict=False)
        )
        for at, output in enumerate(as_list(row.get("outputs"))):
            cell = as_object(output)
            prompt = prompts[at] if at < len(prompts) else {}
            rows.append(
                {
                    **cell,
                    "provider": cell.get("provider") or prompt.get("provider"),
                    "prompt": {
                        "raw": cell.get("prompt"),
                        "label": prompt.get("label") or prompt.get("display"),
                    },
                    "promptIdx": at,
                    "vars": variables,
                    "testCase": cell.get("testCase") or test,
                    "description": row.get("description"),
                    "success": cell.get("pass"),
                    "response": as_object(cell.get("response")) or {"output": cell.get("text")},
                }
            )
    return rows


def _provider(row: JsonObject) -> str | None:
    provider = row.get("provider")
    if isinstance(provider, dict):
        return as_text(provider.get("label")) or as_text(provider.get("id"))
    return as_text(provider)


class _Columns:
    """Names candidates after a row's provider and, if the provider has several columns, after the
    column too.
    """

    def __init__(self, rows: Iterable[JsonObject], options: ReadOptions) -> None:
        prompts: dict[str, dict[str, str]] = {}
        templates: set[str] = set()
        models: dict[str, str] = {}
        self.scale = OffScale()
        for row in rows:
            provider = _provider(row)
            if provider is None:
                continue
            key, label = _column(row)
            prompts.setdefault(provider, {}).setdefault(key, label)
            templates.add(label or as_text(row.get("promptId")) or key)
            model = as_object(row.get("provider")).get("id")
            models.setdefault(provider, model if isinstance(model, str) else provider)
            for component in _components(row):
                self.scale.learn(_named(component), _score(component))
        self.templates = len(templates)
        keys = [(provider, key) for provider, columns in prompts.items() for key in columns]
        given = options.candidate if len(prompts) == 1 else None
        names = candidate_names(
            [(given or provider, prompts[provider][key]) for provider, key in keys]
        )
        self._names = dict(zip(keys, names, strict=True))
        self._models = models

    def of(self, row: JsonObject) -> str | None:
        provider = _provider(row)
        return None if provider is None else self._names.get((provider, _column(row)[0]))

    def candidates(self) -> tuple[FoundCandidate, ...]:
        return tuple(
            FoundCandidate(name=name, model=self._models.get(provider))
            for (provider, _), name in self._names.items()
        )


def candidate_names(columns: Sequence[tuple[str, str]]) -> list[str]:
    """Return a name for each column (provider, prompt's label): the provider, with the label if it
    has several columns.
    """
    names: list[str] = []
    for at, (provider, label) in enumerate(columns):
        number = sum(other == provider for other, _ in columns[: at + 1])
        name = provider
        if sum(other == provider for other, _ in columns) > 1:
            name = f"{provider}, {label if len(label) <= 60 and label else f'prompt {number}'}"
        # A provider that was set up twice is two candidates; under one name they would become two
        # trials of one candidate.
        names.append(f"{name} ({number})" if name in names else name)
    return names


def _column(row: JsonObject) -> tuple[str, str]:
    prompt = as_object(row.get("prompt"))
    label = as_text(prompt.get("label")) or as_text(prompt.get("display")) or ""
    number = row.get("promptIdx")
    key = (str(number) if number is not None else None) or as_text(row.get("promptId")) or label
    return key, label.strip().splitlines()[0] if label.strip() else ""


def _rows(rows: Iterable[tuple[JsonObject | str, str]], columns: _Columns) -> Iterator[Found]:
    tasks: set[str] = set()
    trials: dict[tuple[str, str], int] = {}
    for row, where in rows:
        if isinstance(row, str):
            yield Skipped(where=where, why=row)
            continue
        candidate = columns.of(row) if _is_result(row) else None
        if candidate is None:
            yield Skipped(
                where=where,
                why="is not a result: it lacks a provider, variables or a grading result.",
            )
            continue
        task = _task(row, one_prompt=columns.templates == 1)
        if task.id not in tasks:
            tasks.add(task.id)
            yield task
        trial = trials[task.id, candidate] = trials.get((task.id, candidate), 0) + 1
        response = _response(row, task.id, candidate, trial, where)
        yield response
        if response.failure is None:
            yield from _assessments(row, task.id, candidate, trial, where, columns.scale)


def _task(row: JsonObject, *, one_prompt: bool) -> FoundTask:
    test = as_object(row.get("testCase"))
    variables = as_object(row.get("vars")) or as_object(test.get("vars"))
    # promptfoo adds the conversation so far as a separate variable, which would make every turn a
    # different task.
    given = {key: value for key, value in variables.items() if not key.startswith("_")}
    asserted = [
        {key: assertion.get(key) for key in ("type", "value", "metric", "threshold", "weight")}
        for assertion in map(as_object, as_list(test.get("assert")))
    ]
    description = as_text(row.get("description")) or as_text(test.get("description"))
    digest = hashlib.sha256(
        orjson.dumps(
            [storable(given), storable(asserted), description], option=orjson.OPT_SORT_KEYS
        )
    ).hexdigest()[:10]
    first_text = next((value for value in given.values() if isinstance(value, str)), "test")
    thing = description or shorten(first_text, 60).replace("\n", " ")
    expected = [
        assertion["value"]
        for assertion in asserted
        if assertion["type"] in ("equals", "similar", "factuality", "is-json")
        and assertion["value"]
    ]
    prompt = (
        chat_messages(as_object(row.get("prompt")).get("raw"))
        if one_prompt
        else as_messages("\n".join(f"{key}: {to_text(value)}" for key, value in given.items()))
    )
    return FoundTask(
        id=f"{shorten(description, 60)} {digest}" if description else digest,
        thing=thing,
        prompt=prompt,
        expected=tuple(to_text(value) for value in expected[:1]),
        metadata={
            "vars": storable(given),
            "assert": storable(asserted),
            **pick(test, ("metadata", "threshold")),
        },
    )


def _response(row: JsonObject, task: str, candidate: str, trial: int, where: str) -> FoundResponse:
    answer = as_object(row.get("response"))
    output = answer.get("output")
    error = as_text(row.get("error")) or as_text(answer.get("error"))
    broke = row.get("failureReason") == _BROKE or (
        row.get("failureReason") is None and error is not None and output is None
    )
    failure = None
    if broke or output is None:
        detail = shorten(error or "there is no output.")
        lower = detail.lower()
        kind = (
            "timeout"
            if "timed out" in lower or "timeout" in lower
            else "error"
            if error
            else "no_output"
        )
        failure = Failure(kind=kind, fault=Fault.PROVIDER, detail=detail)
    usage = as_object(row.get("tokenUsage")) or as_object(answer.get("tokenUsage"))
    latency = as_duration(row.get("latencyMs"))
    return FoundResponse(
        task=task,
        candidate=candidate,
        trial=trial,
        where=where,
        # An object as JavaScript writes it, as in promptfoo's own tables.
        content=None if failure else output if isinstance(output, str) else _as_javascript(output),
        failure=failure,
        finish_reason=as_text(answer.get("finishReason")),
        input_tokens=as_count(usage.get("prompt")),
        output_tokens=as_count(usage.get("completion")),
        latency_s=None if latency is None else latency / 1000,
        identity=None
        if (row_id := as_text(row.get("id"))) is None
        else f"promptfoo result {row_id}",
        cost_usd=as_duration(row.get("cost"))
        if as_duration(row.get("cost"))
        else as_duration(answer.get("cost")),
    )


def _as_javascript(output: object) -> str:
    return json.dumps(storable(output), ensure_ascii=False, separators=(",", ":"))


def _components(row: JsonObject) -> list[JsonObject]:
    """Return the results of a test's assertions, or the whole result if the file does not list the
    assertions.
    """
    grading = as_object(row.get("gradingResult"))
    components = [
        component
        for component in objects_in(grading.get("componentResults"))
        if "score" in component or "pass" in component
    ]
    return components or ([_whole(row, grading)] if _graded(row, grading) else [])


def _named(component: JsonObject) -> str:
    assertion = as_object(component.get("assertion"))
    return "\x1f".join(to_text(assertion.get(key)) for key in ("type", "metric", "value"))


def _assessments(
    row: JsonObject, task: str, candidate: str, trial: int, where: str, scale: OffScale
) -> Iterator[Found]:
    components = _components(row)
    by_judge: dict[tuple[str, GradedBy], list[JsonObject]] = {}
    for component in components:
        by_judge.setdefault(_judge(component, beside=components), []).append(component)
    for (judge, by), assertions in by_judge.items():
        scores = [(_weight(part), scale.score(_named(part), _score(part))) for part in assertions]
        counted = [(weight, score) for weight, score in scores if weight > 0]
        unread = not counted or any(score is None for _, score in counted)
        total = sum(weight for weight, _ in counted)
        score = (
            None if unread else sum(weight * (score or 0.0) for weight, score in counted) / total
        )
        raw = as_number(assertions[0].get("score")) if len(assertions) == 1 else score
        reasons = [to_text(assertion.get("reason")) for assertion in assertions]
        yield FoundAssessment(
            task=task,
            trial=trial,
            judge=judge,
            by=by,
            where=where,
            grades=(
                FoundGrade(
                    candidate=candidate,
                    score=score,
                    raw_score=raw,
                    reason=reasons[0]
                    if len(assertions) == 1
                    else "\n".join(map(_line, assertions)),
                ),
            ),
            reply="\n\n".join(_words_of(assertions)) if by is GradedBy.MODEL else None,
            input_tokens=_tokens(assertions, "prompt") if by is GradedBy.MODEL else None,
            output_tokens=_tokens(assertions, "completion") if by is GradedBy.MODEL else None,
        )


def _graded(row: JsonObject, grading: JsonObject) -> bool:
    """True if the test has assertions; a test without assertions always passes, so its score of 1
    means nothing.
    """
    if "score" not in grading and "pass" not in grading:
        return False
    test = as_object(row.get("testCase"))
    return (
        bool(as_list(test.get("assert")))
        or "no assertions" not in to_text(grading.get("reason")).lower()
    )


def _whole(row: JsonObject, grading: JsonObject) -> JsonObject:
    """Return a result that lists no assertions as one set of all of the test's assertions."""
    assertions = objects_in(as_object(row.get("testCase")).get("assert"))
    flat = [
        *assertions,
        *(nested for assertion in assertions for nested in objects_in(assertion.get("assert"))),
    ]
    parts: list[JsonValue] = [{"assertion": dict(assertion)} for assertion in flat]
    return {**grading, "componentResults": parts}


def _judge(component: JsonObject, *, beside: Sequence[JsonObject]) -> tuple[str, GradedBy]:
    """Return an assertion's judge and kind of grader; the kind is a model if a model may have
    influenced the score.
    """
    kind = _kind(component)
    if kind == "human":
        return "human", GradedBy.PERSON
    models = _models(component)
    if not models and kind == "max-score":  # it is computed from the scores of the other assertions
        models = [name for other in beside for name in _models(other)]
    if not models:
        return NAME, GradedBy.RULE
    names = ", ".join(dict.fromkeys(models))
    return (
        f"{kind or 'assert-set'} ({names})" if kind not in models[0] or not kind else names
    ), GradedBy.MODEL


def _models(component: JsonObject, depth: int = 0) -> list[str]:
    """Return the names of model-graded assertions in a component, including the component; empty if
    only rules decided.
    """
    kind = _kind(component)
    names: list[str] = []
    if kind in _BY_MODEL or kind not in _BY_RULE:
        asked = as_object(component.get("assertion")).get("provider")
        model = as_text(asked) or as_text(as_object(asked).get("id"))
        names.append(kind if model is None else f"{kind} ({model})")
    parts = objects_in(component.get("componentResults")) if depth < _DEEPEST else []
    names += [name for part in parts for name in _models(part, depth + 1)]
    used = as_count(as_object(component.get("tokensUsed")).get("total"))
    if not names and used and not kind.startswith(_BY_EMBEDDING):
        names.append(kind or "assert-set")
    return names


def _kind(component: JsonObject) -> str:
    return (as_text(as_object(component.get("assertion")).get("type")) or "").removeprefix("not-")


def _tokens(components: Sequence[JsonObject], key: str) -> int | None:
    """Return the tokens that grading used; None if no assertion states them.

    An assertion set's count includes its members.
    """
    counts = [as_count(as_object(component.get("tokensUsed")).get(key)) for component in components]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _words_of(components: Sequence[JsonObject], depth: int = 0) -> list[str]:
    words: list[str] = []
    for component in components:
        words.append(to_text(component.get("reason")))
        if depth < _DEEPEST:
            words += _words_of(objects_in(component.get("componentResults")), depth + 1)
    return [text for text in words if text]


def _score(component: JsonObject) -> float | None:
    if as_object(component.get("metadata")).get("graderError") is True:
        return None  # the grader broke; promptfoo writes 0
    score = as_number(component.get("score"))
    passed = component.get("pass")
    return float(passed) if score is None and isinstance(passed, bool) else score


def _weight(component: JsonObject) -> float:
    weight = as_number(as_object(component.get("assertion")).get("weight"))
    return 1.0 if weight is None or weight < 0 else weight


def _line(component: JsonObject) -> str:
    assertion = as_object(component.get("assertion"))
    name = as_text(assertion.get("metric")) or as_text(assertion.get("type")) or "assertion"
    return f"{name}: {'passed' if component.get('pass') else 'failed'}, {shorten(component.get('reason'), 300)}"
