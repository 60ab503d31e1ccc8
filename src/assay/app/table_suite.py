"""Propose a suite for a table, based on the column names."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from assay.app.suites import problems
from assay.domain.errors import InputError, Refused, SuiteError
from assay.domain.prompts import columns_named
from assay.suites.files import whole_text
from assay.suites.located_yaml import UnreadableText
from assay.suites.taskfiles import TABLES, first_rows
from assay.suites.tasks import slug

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assay.app.workspace import Workspace
    from assay.domain.digest import JsonValue

_NAMES: Final = {
    "id": ("id", "task_id", "question_id", "example_id", "sample_id", "custom_id", "row_id", "uid", "key"),
    "prompt": ("prompt", "question", "input", "inputs", "query", "user_input", "instruction", "problem", "message", "text"),
    "expected": ("expected", "expected_output", "expected_answer", "expected_response", "reference", "reference_answer",
                 "ground_truth", "target", "targets", "gold", "label", "solution", "correct_answer", "ideal", "answer"),
    "ideal": ("ideal_response", "ideal_answer", "model_solution"),
    "final_answer": ("final_answer",),
    "tags": ("tags", "tag", "topic", "topics"),
}  # fmt: skip
"""Likely column names for each key of a task, the most reliable first."""

_USUAL: Final = frozenset({"answer_id", "response_id"}.union(*_NAMES.values()))

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
    """

    path: Path
    table: Path
    columns: tuple[str, ...]
    mapping: dict[str, str]
    answers: dict[str, str]
    candidates: tuple[dict[str, JsonValue], ...] = ()
    judge: str | None = None

    @property
    def by_rule(self) -> bool:
        """True if a rule scores the suite's answers, so that they need no review."""
        return self.judge is None and not self.mapping.keys().isdisjoint(("expected", "final_answer"))

    def text(self) -> str:
        keys = {name: json.dumps(column, ensure_ascii=False) for name, column in self.mapping.items()}
        lines = [
            f"# Proposed by `assay init --from {self.table.name}`. Check the mapping, then: assay run {self.path.name}",
            f"name: {json.dumps(self.path.stem, ensure_ascii=False)}",
            "tasks:",
            f"  file: {json.dumps(self.table.name, ensure_ascii=False)}",
            "  map:",
            *(f"    {name}: {column}" for name, column in keys.items()),
        ]
        if self.answers:
            lines.append(f"    snippets: {json.dumps(self.answers, ensure_ascii=False)}")
        if self.by_rule:
            lines.append("  score: exact")
        else:
            lines += ["", f"judge: {self._judge(self.judge or 'human')}"]
        if not self.judge:
            replaced = "score" if self.by_rule else "judge"
            lines += ["", f"# To let a model grade and a person vet every grade, replace `{replaced}` with:"]
            lines.append(f"# judge: {self._judge('openai/gpt-5')}")
        if self.candidates:
            lines += ["", "candidates:"]
            lines += [f"  - {json.dumps(candidate, ensure_ascii=False)}" for candidate in self.candidates]
        elif not self.answers:
            lines += [
                "",
                "# `echo` repeats the prompt and needs no key. To compare models or prompts, list them, such as:",
                "candidates: [echo]",
                '# candidates: [openai/gpt-5, {name: short, model: openai/gpt-5, prompt: "In one word: {{prompt}}"}]',
            ]
        return "\n".join([*lines, ""])

    def _judge(self, model: str) -> str:
        """Return the `judge` value of the suite; with a single candidate, the judge grades each answer separately."""
        alone = len(self.candidates) + len(self.answers) < 2
        return f"{{model: {json.dumps(model)}, mode: each}}" if alone else json.dumps(model)


def propose(table: Path, *, prompts: Sequence[str] = (), models: Sequence[str] = (), judge: str | None = None) -> TableSuite:
    """Propose a suite with a candidate for each prompt and model; raises `InputError` for an unusable table or prompt."""
    if table.suffix.lower() not in TABLES:
        raise InputError(str(table), "is not a table.", remedy=f"Use a file whose name ends with {', '.join(TABLES)}.")
    columns = tuple(dict.fromkeys(column for row in first_rows(table) for column in row))
    mapping = {key: column for key, names in _NAMES.items() if (column := _named(columns, names)) is not None}
    answers: dict[str, str] = {}
    for column in columns:
        match = _ANSWER.fullmatch(column.strip())
        if match and _plain(column) not in _USUAL:
            answers.setdefault(match["after"] or match["before"], column)
    if "prompt" not in mapping and not answers:
        problem = f"has no column that looks like prompts; it has: {', '.join(columns[:12]) or 'none'}."
        remedy = "Name the column `prompt`, or write a suite: `tasks: {file: …, map: {prompt: COLUMN}}`."
        raise InputError(str(table), problem, remedy=remedy)
    path = table.with_name(f"{slug(table.stem) or 'suite'}.yaml")
    made = tuple(_candidates(table.parent, prompts, models))
    return TableSuite(path=path, table=table, columns=columns, mapping=mapping, answers=answers, candidates=made, judge=judge)


def _candidates(folder: Path, prompts: Sequence[str], models: Sequence[str]) -> Iterator[dict[str, JsonValue]]:
    """Yield the suite-file keys of a candidate for each prompt and model. A prompt file without {column} is a system prompt."""
    if prompts and not models:
        raise InputError("--prompt", "needs a model to ask.", remedy="Add --model PROVIDER/NAME.")
    for model in models if not prompts else ():
        yield {"name": model, "model": model}
    for prompt in prompts:
        path = Path(prompt)
        try:
            key = "prompt" if columns_named(whole_text(path)) else "system_prompt"
        except UnreadableText as error:
            raise InputError(prompt, error.problem, remedy=error.remedy or "Name the file of a prompt.") from error
        for model in models:
            name = path.stem if len(models) == 1 else f"{path.stem} {model}"
            yield {"name": name, "model": model, key: {"file": Path(os.path.relpath(path, folder)).as_posix()}}


def write(workspace: Workspace, proposal: TableSuite) -> tuple[SuiteError, ...]:
    """Write a proposed suite and return the problems of its rows; raises `Refused` if the file exists or cannot be written."""
    try:
        with proposal.path.open("x", encoding="utf-8") as file:
            file.write(proposal.text())
    except FileExistsError:
        remedy = f"Run it: assay run {proposal.path}. To propose a new suite, move this file first."
        raise Refused(str(proposal.path), "already exists.", remedy=remedy) from None
    except OSError as error:
        raise Refused(str(proposal.path), f"cannot be written: {error.strerror}.") from error
    return problems(workspace, proposal.path)


def _named(columns: Sequence[str], names: tuple[str, ...]) -> str | None:
    """Return the column whose name fits best, ignoring case, blanks and hyphens; None if no name fits."""
    plain = {_plain(column): column for column in reversed(columns)}
    return next((plain[name] for name in names if name in plain), None)


def _plain(column: str) -> str:
    return re.sub(r"[\s-]+", "_", column.strip().casefold())
