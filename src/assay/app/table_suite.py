"""Propose a suite for a table: its keys from the names of the columns, its scorer from the
references.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import textwrap
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from assay.app.suites import problems
from assay.domain.errors import InputError, Refused, SuiteError, did_you_mean
from assay.domain.prompts import columns_named
from assay.domain.unescaped_json import unescaped_json
from assay.exchange.results_folder.atomic_files import AtomicFile
from assay.scoring.numeric import numbers_in
from assay.scoring.reference_kinds import (
    LIST_SEPARATOR,
    ScorerAdvice,
    advised_scorer,
    alternatives_advised,
)
from assay.scoring.scorers import MATH
from assay.suites.files import whole_text
from assay.suites.located_yaml import UnreadableText, Value
from assay.suites.taskfiles import LAST_MESSAGE, TABLES, first_rows, last_answer, references_in
from assay.suites.tasks import TaskKeys, slug

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assay.app.settings import Settings
    from assay.domain.digest import JsonValue

_NAMES: Final = {
    "id": (
        "id",
        "task_id",
        "question_id",
        "example_id",
        "sample_id",
        "custom_id",
        "row_id",
        "uid",
        "key",
    ),
    "prompt": (
        "prompt",
        "question",
        "input",
        "inputs",
        "query",
        "user_input",
        "instruction",
        "problem",
        "message",
        "text",
        "prompts",
        "questions",
        "user_prompt",
        "user_message",
        "q",
        "messages",
        "conversation",
        "chat",
        "dialogue",
        "dialog",
        "frage",
        "pregunta",
        "pergunta",
        "domanda",
        "vraag",
    ),
    "expected": (
        "expected",
        "expected_output",
        "expected_answer",
        "expected_response",
        "reference",
        "reference_answer",
        "ground_truth",
        "target",
        "targets",
        "gold",
        "golden",
        "gold_answer",
        "golden_answer",
        "truth",
        "label",
        "solution",
        "correct_answer",
        "correct_option",
        "correct_choice",
        "correct",
        "answer_key",
        "right_answer",
        "expected_result",
        "ideal",
        "answer",
        "answers",
        "antwort",
        "respuesta",
        "resposta",
        "risposta",
        "antwoord",
    ),
    "ideal": ("ideal_response", "ideal_answer", "model_solution"),
    "final_answer": ("final_answer",),
    "tags": ("tags", "tag", "topic", "topics"),
}
"""Likely column names for each key of a task, the most reliable first."""

_SHOWN: Final = 20
"""Columns that a message lists."""

_PAIRED: Final = {"q": "a"}
"""Names of a reference that are clear only beside this name of a prompt."""

MAX_REFERENCES: Final = 10_000
"""References that are looked at; a larger table takes longer to read than its author wants to wait.
"""

_USUAL: Final = frozenset({"answer_id", "response_id"}.union(*_NAMES.values()))

_OPTION: Final = re.compile(r"(?:(?:option|choice|opt)_?)?(?P<letter>[a-j])\)?")
_OPTIONS: Final = frozenset({"options", "choices", "alternatives"})
"""Names of columns with the options of a multiple choice: one column for each letter, or one for
all.
"""

_ANSWER: Final = re.compile(
    r"(?:answer|response|output|completion|prediction)[_ -]+(?P<after>.+)"
    r"|(?P<before>.*[^_ -])[_ -]+(?:answer|response|output|completion|prediction)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSuite:
    """A suite proposed for a table.

    Attributes:
        path: suite file to write, in the table's folder.
        mapping: column for each key of a task.
        answers: column with the answers of each candidate, by candidate.
        candidates: suite-file keys of each candidate that calls a model.
        judge: model that grades; None if a rule or people grade.
        advice: the scorer that fits the references; None without references.
        options: column of each option of a multiple choice, by letter; the candidates' prompts show
            them.
        notes: what the author should know, each with what to do.
    """

    path: Path
    table: Path
    columns: tuple[str, ...]
    mapping: dict[str, str]
    answers: dict[str, str]
    candidates: tuple[dict[str, JsonValue], ...] = ()
    judge: str | None = None
    advice: ScorerAdvice | None = None
    options: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def by_rule(self) -> bool:
        """True if a rule scores the suite's answers, so that they need no review."""
        return self.judge is None and self.advice is not None and self.advice.method != "judge"

    @property
    def scoring(self) -> tuple[str, str]:
        """The way in which answers are scored, as a suite's value, and the reason for it."""
        if self.judge is not None:
            return "judge", f"{self.judge} grades, and a person reviews every grade."
        if self.advice is None:
            return (
                "judge",
                "The table has no references, so a person grades every answer (judge: human), or a judge that you name.",
            )
        if self.advice.method == "judge":
            return (
                "judge",
                f"{self.advice.reason} Until you name a judge, a person grades (judge: human).",
            )
        method, options = self.advice.method, dict(self.advice.options)
        return unescaped_json({method: options}) if options else method, self.advice.reason

    def text(self) -> str:
        keys = {name: unescaped_json(column) for name, column in self.mapping.items()}
        lines = [
            f"# Proposed by `assay init --from {self.table.name}`. Check the mapping, then: assay run {self.path.name}",
            f"name: {unescaped_json(self.path.stem)}",
            "tasks:",
            f"  file: {unescaped_json(self.table.name)}",
            "  map:",
            *(f"    {name}: {column}" for name, column in keys.items()),
        ]
        if self.answers:
            lines.append(f"    snippets: {unescaped_json(self.answers)}")
        score, reason = self.scoring
        if self.by_rule:
            lines += [*_comment(reason, indent="  "), f"  score: {score}"]
        else:
            lines += ["", *_comment(reason), f"judge: {self._judge(self.judge or 'human')}"]
        if not self.judge:
            replaced = "score" if self.by_rule else "judge"
            lines += [
                "",
                f"# To let a model grade and a person vet every grade, replace `{replaced}` with:",
            ]
            lines.append(f"# judge: {self._judge('openai/gpt-5')}")
        if self.candidates:
            lines += ["", "candidates:"]
            lines += [f"  - {unescaped_json(candidate)}" for candidate in self.candidates]
        elif not self.answers:
            lines += [
                "",
                "# `echo` repeats the prompt and needs no key. To compare models or prompts, list them, such as:",
                "candidates: [echo]",
                '# candidates: [openai/gpt-5, {name: short, model: openai/gpt-5, prompt: "In one word: {{prompt}}"}]',
                "# Your own program or web service can be a candidate too:",
                '# candidates: [{name: mine, command: ["./answer.sh", "{{prompt}}"]}]',
                '# candidates: [{name: app, http: {url: "http://127.0.0.1:80/ask", body: {q: "{{prompt}}"}, response: "$.a"}}]',
            ]
        return "\n".join([*lines, ""])

    def _judge(self, model: str) -> str:
        """Return the `judge` value of the suite; with a single candidate, the judge grades each
        answer separately.
        """
        alone = len(self.candidates) + len(self.answers) < 2
        return f"{{model: {json.dumps(model)}, mode: each}}" if alone else json.dumps(model)


def propose(
    table: Path,
    *,
    prompts: Sequence[str] = (),
    models: Sequence[str] = (),
    judge: str | None = None,
    mapped: Sequence[str] = (),
) -> TableSuite:
    """Propose a suite with a candidate for each prompt and model; raises `InputError` for an
    unusable table or prompt.

    `mapped`: columns that the caller names, as `KEY=COLUMN`; they go before the columns that are
    recognised by their names.
    """
    if table.suffix.lower() not in TABLES:
        raise InputError(
            str(table),
            "is not a table.",
            remedy=f"Use a file whose name ends with {', '.join(TABLES)}.",
        )
    rows = first_rows(table)
    columns = tuple(dict.fromkeys(column for row in rows for column in row))
    named, answers = _named_columns(mapped, columns)
    taken = {*named.values(), *answers.values()}
    free = tuple(column for column in columns if column not in taken)
    mapping = {
        key: column
        for key, names in _NAMES.items()
        if (column := named.get(key) or _named(free, names)) is not None
    }
    mapping |= named
    if "expected" not in mapping and (pair := _PAIRED.get(_plain(mapping.get("prompt", "")))):
        mapping.update(("expected", column) for column in free if _plain(column) == pair)
    for column in free:
        match = _ANSWER.fullmatch(column.strip())
        if match and _plain(column) not in _USUAL and column not in mapping.values():
            answers.setdefault(match["after"] or match["before"], column)
    if "prompt" not in mapping and not answers:
        problem = f"has no column that looks like prompts. Its columns: {_listed(columns)}."
        line = _map_line(table, rows, columns, mapping) + _typed(prompts, models, judge)
        raise InputError(str(table), problem, remedy=f"Name them: {line}")
    if "prompt" in mapping and _answered(rows, mapping["prompt"]):
        mapping.setdefault(
            "ideal" if "expected" in mapping else "expected", f"{mapping['prompt']}{LAST_MESSAGE}"
        )
    made = tuple(_candidates(table.parent, prompts, models))
    proposal = TableSuite(
        path=table.with_name(f"{slug(table.stem) or 'suite'}.yaml"),
        table=table,
        columns=columns,
        mapping=mapping,
        answers=answers,
        candidates=made,
        judge=judge,
    )
    reference = mapping.get("expected") or mapping.get("final_answer")
    references = references_in(table, reference, most=MAX_REFERENCES) if reference else []
    unused = [column for column in columns if column not in (*mapping.values(), *answers.values())]
    if references:
        advice = _possible(
            _advice(references, rows, str(reference), asked=_asked(rows, mapping, prompts))
        )
        return _with_options(replace(proposal, advice=advice), references, rows, unused)
    if reference:
        note = f"{reference} is empty in every row, so nothing can be scored by a rule."
        filled = {key: column for key, column in mapping.items() if column != reference}
        return replace(proposal, mapping=filled, notes=(note,))
    if judge is None and unused:
        line = _map_line(table, rows, columns, mapping) + _typed(prompts, models, judge)
        note = f"no column looks like references, so nothing can be scored by a rule. If {_listed(unused)} holds them: {line}"
        return replace(proposal, notes=(note,))
    return proposal


def _asked(
    rows: Sequence[dict[str, Value]], mapping: dict[str, str], prompts: Sequence[str]
) -> str:
    """Return all that the first rows and the prompts ask of the candidates."""
    column = mapping.get("prompt")
    texts = [str(row.get(column)) for row in rows] if column is not None else []
    return "\n".join([*texts, *(whole_text(Path(prompt)) for prompt in prompts)])


def _advice(
    references: Sequence[str], rows: Sequence[dict[str, Value]], column: str, *, asked: str
) -> ScorerAdvice:
    """Advise a scorer; a list of texts holds alternatives, unless a prompt asks for a list or for
    JSON.
    """
    alternative = re.search(r"\b(?:json|list|array)\b", asked, re.IGNORECASE) is None
    lists = [value for row in rows if isinstance(value := row.get(column), list)]
    texts = all(isinstance(item, str) for value in lists for item in value)
    if (
        lists
        and len(lists) == len(rows)
        and texts
        and any(len(value) > 1 for value in lists)
        and alternative
    ):
        return alternatives_advised(separator=LIST_SEPARATOR, written="lists of texts")
    return advised_scorer(references, lists_are_alternatives=alternative)


def _answered(rows: Sequence[dict[str, Value]], column: str) -> bool:
    """True if each row's conversation ends with the assistant's answer, which a candidate must not
    be sent.
    """
    return all(last_answer(row.get(column)) is not None for row in rows)


def _with_options(
    proposal: TableSuite,
    references: Sequence[str],
    rows: Sequence[dict[str, Value]],
    unused: Sequence[str],
) -> TableSuite:
    """Return a proposal whose prompts show the options of a multiple choice, or one that notes that
    no prompt shows them.
    """
    letters = {
        match["letter"].upper(): column
        for column in unused
        if (match := _OPTION.fullmatch(_plain(column)))
    }
    lists = [column for column in unused if _plain(column) in _OPTIONS]
    prompt = proposal.mapping.get("prompt")
    chosen = proposal.advice is not None and proposal.advice.kind == "letters"
    if prompt is None:
        return proposal
    if not (lists or (len(letters) > 1 and "A" in letters)):
        shown = any(_shows_options(str(row.get(prompt))) for row in rows)
        if chosen and not shown and not proposal.answers:
            note = f"the references are letters, but the texts in {prompt} list no options, so nobody can choose. "
            return replace(
                proposal,
                notes=(f"{note}Put the options into the table, in columns A, B, C and so on.",),
            )
        return proposal
    named = lists if lists else list(letters.values())
    asked = "\n".join(
        [
            f"{{{{{prompt}}}}}",
            "",
            *(f"{letter}) {{{{{column}}}}}" for letter, column in sorted(letters.items())),
        ]
    )
    if (
        lists
        or not chosen
        or any("prompt" in candidate for candidate in proposal.candidates)
        or not proposal.candidates
    ):
        shown_as = ", ".join(f"{{{{{column}}}}}" for column in named)
        if proposal.candidates and all(
            _names_all(proposal.table.parent, each, named) for each in proposal.candidates
        ):
            return proposal
        note = f"{_listed(named)} look like the options of a multiple choice, but no prompt shows them to the candidates."
        return replace(
            proposal, notes=(f"{note} Name them in the prompt of each candidate: {shown_as}.",)
        )
    shown_to = tuple({**candidate, "prompt": asked} for candidate in proposal.candidates)
    return replace(proposal, candidates=shown_to, options=dict(sorted(letters.items())))


def _shows_options(text: str) -> bool:
    return (
        re.search(r"\bA[).:]|\(A\)", text) is not None
        and re.search(r"\bB[).:]|\(B\)", text) is not None
    )


def _names_all(folder: Path, candidate: dict[str, JsonValue], columns: Sequence[str]) -> bool:
    """True if the candidate's prompt file names all of these columns."""
    prompt = candidate.get("prompt")
    file = prompt.get("file") if isinstance(prompt, dict) else None
    return isinstance(file, str) and set(columns) <= set(columns_named(whole_text(folder / file)))


def _typed(prompts: Sequence[str], models: Sequence[str], judge: str | None) -> str:
    """Return the options for prompts, models and the judge as they are typed, so that a suggested
    command is complete.
    """
    pairs = [
        *(("--prompt", prompt) for prompt in prompts),
        *(("--model", model) for model in models),
    ]
    pairs += [("--judge", judge)] if judge is not None else []
    return "".join(f" {option} {shlex.quote(value)}" for option, value in pairs)


def _named_columns(
    mapped: Sequence[str], columns: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the columns in `KEY=COLUMN` by key, and those of answers (`snippets.NAME=COLUMN`) by
    candidate.
    """
    keys: dict[str, str] = {}
    answers: dict[str, str] = {}
    for pair in mapped:
        key, equals, column = (part.strip() for part in pair.partition("="))
        known = tuple(TaskKeys.table.keys)
        if not equals or not key or not column:
            raise InputError(
                "--map",
                f"is {pair!r}, expected KEY=COLUMN.",
                remedy="For example: --map prompt=question",
            )
        if column not in columns:
            problem = f"names the column {column!r}, which the table does not have.{did_you_mean(column, columns)}"
            raise InputError("--map", problem, remedy=f"Its columns: {_listed(columns)}.")
        inner = key.removeprefix("snippets.")
        if inner != key and inner:
            answers[inner] = column
        elif key in known and key != "snippets":
            keys[key] = column
        else:
            problem = f"names the key {key!r}, which tasks do not have.{did_you_mean(key, known)}"
            remedy = "Use prompt, expected, id, tags or another key of a task, or snippets.NAME for a candidate's answers."
            raise InputError("--map", problem, remedy=remedy)
    return keys, answers


def _possible(advice: ScorerAdvice) -> ScorerAdvice:
    """Return the advice, or that a person should grade if it needs a package that is not
    installed.
    """
    if advice.method != MATH or find_spec("math_verify") is not None:
        return advice
    remedy = "That package is not installed (pip install 'assay-bench[math]'; then run this command again)."
    return replace(advice, method="judge", options={}, reason=f"{advice.reason} {remedy}")


def _map_line(
    table: Path, rows: Sequence[dict[str, Value]], columns: Sequence[str], mapping: dict[str, str]
) -> str:
    """Return the command that names the columns of prompts and references, with the columns most
    likely to hold them.
    """
    free = [column for column in columns if column not in mapping.values()]
    questions = [
        column
        for column in free
        if 2 * sum("?" in str(row.get(column, "")) for row in rows) > len(rows)
    ]
    by_length = sorted(free, key=lambda column: -sum(len(str(row.get(column, ""))) for row in rows))
    by_length.sort(key=lambda column: column not in questions)
    counted = [
        column
        for column in free
        if all(numbers_in(str(row.get(column, ""))) == [at] for at, row in enumerate(rows, 1))
    ]
    likely = [column for column in by_length if column not in counted] or by_length
    prompt = mapping.get("prompt") or next(iter(likely), "COLUMN")
    expected = mapping.get("expected") or next(
        (column for column in likely if column != prompt), None
    )
    pairs = [("prompt", prompt)] if "prompt" not in mapping else []
    pairs += [("expected", expected)] if expected is not None and "expected" not in mapping else []
    options = " ".join(f"--map {shlex.quote(f'{key}={column}')}" for key, column in pairs)
    return f"assay init --from {shlex.quote(str(table))} {options}"


def _listed(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - _SHOWN} more" if len(columns) > _SHOWN else ""
    return ", ".join(columns[:_SHOWN]) + more if columns else "none"


def _comment(text: str, *, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        110,
        initial_indent=f"{indent}# ",
        subsequent_indent=f"{indent}# ",
        break_long_words=False,
    )


def _candidates(
    folder: Path, prompts: Sequence[str], models: Sequence[str]
) -> Iterator[dict[str, JsonValue]]:
    """Yield the suite-file keys of a candidate for each prompt and model.

    A prompt file without {column} is a system prompt.
    """
    if prompts and not models:
        raise InputError("--prompt", "needs a model to ask.", remedy="Add --model PROVIDER/NAME.")
    for model in models if not prompts else ():
        yield {"name": model, "model": model}
    for prompt in prompts:
        path = Path(prompt)
        try:
            key = "prompt" if columns_named(whole_text(path)) else "system_prompt"
        except UnreadableText as error:
            raise InputError(
                prompt, error.problem, remedy=error.remedy or "Name the file of a prompt."
            ) from error
        for model in models:
            name = path.stem if len(models) == 1 else f"{path.stem} {model}"
            yield {
                "name": name,
                "model": model,
                key: {"file": Path(os.path.relpath(path, folder)).as_posix()},
            }


def write(settings: Settings, proposal: TableSuite) -> tuple[SuiteError, ...]:
    """Write a proposed suite and return the problems of its rows; raises `Refused` if the file
    exists or cannot be written.
    """
    try:
        with AtomicFile(proposal.path) as file:
            file.write(proposal.text())
    except Refused as refusal:
        remedy = f"Run it: assay run {proposal.path}. To propose a new suite, move this file first."
        raise Refused(str(proposal.path), refusal.problem, remedy=remedy) from None
    return problems(settings, proposal.path)


def _named(columns: Sequence[str], names: tuple[str, ...]) -> str | None:
    """Return the column whose name fits best, ignoring case, blanks and hyphens; None if no name
    fits.
    """
    plain = {_plain(column): column for column in reversed(columns)}
    return next((plain[name] for name in names if name in plain), None)


def _plain(column: str) -> str:
    return re.sub(r"[\s-]+", "_", column.strip().casefold())
