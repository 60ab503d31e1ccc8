"""Prompts of candidates: the grammar, the columns they may name, and the messages that result."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.suites.conftest import Load

from assay.domain.prompts import candidate_messages, columns_named, filled_in
from assay.domain.suite import CandidateSpec, Message, Scoring, Suite, Task
from assay.suites.loading import load_suite, problems_in

SUITE = "system_prompt: Be kind.\nscore: exact\n"


def problems(folder: Path) -> str:
    return "\n".join(str(problem) for problem in problems_in(folder / "suite.yaml"))


def over_table(
    folder: Path, prompt: str, table: str, tasks: str = "", name: str = "rows.csv"
) -> Path:
    (folder / name).write_text(table, "utf-8")
    path = folder / "suite.yaml"
    tasks = tasks or f"{{file: {name}, map: {{id: id, expected: answer}}}}"
    path.write_text(
        f"{SUITE}candidates:\n  - {{name: own, model: echo, prompt: '{prompt}'}}\ntasks: {tasks}\n",
        "utf-8",
    )
    return path


def sent(suite: Suite) -> list[tuple[Message, ...]]:
    (candidate,) = suite.candidates
    return [candidate_messages(suite.system_prompt, task, candidate) for task in suite.tasks]


def last(messages: tuple[Message, ...]) -> str:
    return messages[-1].content


def test_a_template_is_filled_in_once_and_never_evaluated() -> None:
    hostile = {"q": "{{secret}} {% raw %} ${x} \\1", "secret": "leaked"}
    assert (
        filled_in("A: {{ q }} {{unknown}} {{}}", hostile)
        == "A: {{secret}} {% raw %} ${x} \\1 {{unknown}} {{}}"
    )
    assert filled_in('{"q": {{q}}}', {"q": "1"}) == '{"q": 1}'
    assert columns_named("{{ b }} {{a.c}} {{b}} {{\n}} {{ }}") == ("b", "a.c")


def test_a_prompt_names_columns_that_the_map_leaves_out(tmp_path: Path) -> None:
    path = over_table(
        tmp_path,
        "Q: {{question}} ({{hint}})",
        "id,question,hint,answer\na,1+1?,easy,2\nb,2+2?,,4\n",
    )
    messages = sent(load_suite(path))
    assert [last(one) for one in messages] == ["Q: 1+1? (easy)", "Q: 2+2? ()"]
    assert messages[0][0] == Message(role="system", content="Be kind.")
    task = next(iter(load_suite(path).tasks))
    assert task.prompt == (Message(role="user", content="question: 1+1?\nhint: easy"),), (
        "the judge sees the columns"
    )


def test_rows_that_are_tasks_may_have_columns_for_a_prompt(tmp_path: Path) -> None:
    path = over_table(
        tmp_path, "{{question}}!", "id,question,expected\na,1+1?,2\n", "{file: rows.csv}"
    )
    assert [last(one) for one in sent(load_suite(path))] == ["1+1?!"]


def test_nested_rows_and_other_values_are_shown_as_json(tmp_path: Path) -> None:
    rows = '{"id": "a", "answer": "x", "in": {"q": "why", "n": [1, true]}, "k": 0.10}\n'
    path = over_table(
        tmp_path,
        "{{in.q}} {{in.n}} {{k}}",
        rows,
        "{file: r.jsonl, map: {id: id, expected: answer}}",
        "r.jsonl",
    )
    assert [last(one) for one in sent(load_suite(path))] == ["why [1, true] 0.1"]


def test_a_missing_column_is_named_with_its_row(tmp_path: Path) -> None:
    over_table(tmp_path, "{{qestion}}", "id,question,answer\na,1+1?,2\nb,2+2?,4\n")
    text = problems(tmp_path)
    assert (
        "rows.csv:2: has no column 'qestion', which a prompt of candidate 'own' uses. Did you mean 'question'?"
        in text
    )
    assert "rows.csv:3" not in text, "all rows of a table have the same columns"
    rows = '{"id": "a", "q": "1", "answer": "1"}\n{"id": "b", "answer": "2"}\n'
    over_table(
        tmp_path, "{{q}}", rows, "{file: r.jsonl, map: {id: id, expected: answer}}", "r.jsonl"
    )
    assert "r.jsonl:2: has no column 'q'" in problems(tmp_path)


def test_a_row_that_asks_nothing_is_named(tmp_path: Path) -> None:
    over_table(tmp_path, "Q: {{question}}", "id,question,answer\na,1+1?,2\nb, ,4\n")
    assert (
        "rows.csv:3: has no value in 'question', so the prompt of candidate 'own' would be empty."
        in problems(tmp_path)
    )


def test_columns_of_a_written_task_and_its_own_keys(load: Load) -> None:
    suite = load(
        SUITE
        + "candidates:\n  - {name: own, model: echo, prompt: '{{thing}}/{{context}}/{{prompt}}/{{n}}'}\n"
        "tasks: [{id: a, thing: T, context: C, prompt: P, columns: {n: 1.50}, expected: x}]\n"
    )
    (messages,) = sent(suite)
    assert messages == (
        Message(role="system", content="Be kind."),
        Message(role="user", content="T/C/P/1.50"),
    )


def test_a_prompt_replaces_only_the_last_user_message(load: Load) -> None:
    task = "[{role: system, content: S}, {role: user, content: U1}, {role: assistant, content: A1}, {role: user, content: U2}]"
    suite = load(
        SUITE
        + "candidates:\n  - {name: own, model: echo, prompt: 'Now: {{prompt}}', system_prompt: 'Hi {{id}}.'}\n"
        f"tasks: [{{id: a, prompt: {task}, context: C, expected: x}}]\n"
    )
    assert [(m.role, m.content) for m in sent(suite)[0]] == [
        ("system", "Hi a.\n\nC\n\nS"),
        ("user", "U1"),
        ("assistant", "A1"),
        ("user", "Now: U2"),
    ]


def test_messages_replace_all_messages_of_the_task(load: Load) -> None:
    suite = load(
        SUITE
        + "candidates:\n  - name: own\n    model: echo\n    messages:\n      - {role: system, content: 'Rules: {{context}}'}\n"
        "      - {role: user, content: Hello}\n      - {role: assistant, content: Yes?}\n"
        "      - {role: user, content: '{{prompt}}'}\n"
        "tasks: [{id: a, prompt: Q, context: C, expected: x, system_prompt: Of the task.}]\n"
    )
    assert [(m.role, m.content) for m in sent(suite)[0]] == [
        ("system", "Of the task.\n\nRules: C"),
        ("user", "Hello"),
        ("assistant", "Yes?"),
        ("user", "Q"),
    ]


def test_a_prompt_may_be_in_a_file(load: Load, tmp_path: Path) -> None:
    (tmp_path / "terse.txt").write_text("Briefly: {{prompt}}\n", "utf-8")
    (tmp_path / "kind.md").write_text("Be kind to {{id}}.", "utf-8")
    text = (
        "score: exact\ncandidates:\n  - {name: own, model: echo, prompt: terse.txt, system_prompt: {file: kind.md}}\n"
        "tasks: [{id: a, prompt: Q, expected: x}]\n"
    )
    suite = load(text)
    assert [(m.role, m.content) for m in sent(suite)[0]] == [
        ("system", "Be kind to a."),
        ("user", "Briefly: Q"),
    ]
    assert suite.candidates[0].prompt_path == "terse.txt"
    (tmp_path / "terse.txt").write_text("Shortly: {{prompt}}\n", "utf-8")
    assert load(text).copy.digest != suite.copy.digest


@pytest.mark.parametrize(
    ("candidate", "problem"),
    [
        ("prompt: trse.txt", "names 'trse.txt', which does not exist. Did you mean 'terse.txt'?"),
        ("prompt: ../terse.txt", "lies outside the suite's folder"),
        ("prompt: Answer tersely.", "names no column, so every task would get the same prompt."),
        (
            'prompt: "Answer\\ntersely."',
            "names no column, so every task would get the same prompt.",
        ),
        ("prompt: ''", "is empty, expected a template or the path of its file."),
        (
            "prompt: '{{expected}}'",
            "names {{expected}}, the right answer, which a candidate must not see.",
        ),
        (
            "prompt: '{{prompt}}', messages: [{role: user, content: '{{prompt}}'}]",
            "is given together with `prompt`.",
        ),
        ("messages: [{role: user, content: Hello}]", "names no column"),
        ("messages: '{{prompt}}'", "expected a list of {role, content}."),
    ],
)
def test_wrong_prompts_are_explained(
    load: Load, tmp_path: Path, candidate: str, problem: str
) -> None:
    (tmp_path / "terse.txt").write_text("Briefly: {{prompt}}", "utf-8")
    (tmp_path / "suite.yaml").write_text(
        f"score: exact\ncandidates:\n  - {{name: own, model: echo, {candidate}}}\ntasks: [{{id: a, prompt: Q, expected: x}}]\n"
    )
    assert problem in problems(tmp_path)


def test_a_prompt_needs_a_model(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(
        "score: exact\ncandidates: [{name: a, prompt: '{{prompt}}'}]\ntasks: [{id: a, prompt: Q, expected: x, snippets: {a: x}}]\n"
    )
    assert "`prompt` describes a model; add `model: provider/name`." in problems(tmp_path)


def test_a_column_that_repeats_the_prompt_leaves_the_task_as_it_is(load: Load) -> None:
    def digest(task: str) -> str:
        (task_,) = load(
            f"score: exact\ncandidates: [echo]\ntasks: [{{id: a, expected: x, {task}}}]\n"
        ).tasks
        assert isinstance(task_, Task)
        return task_.digest

    plain = digest("prompt: Q")
    assert digest("prompt: Q, columns: {question: Q}") == plain
    assert digest("prompt: Q, columns: {hint: H}") not in (
        plain,
        digest("prompt: Q, columns: {hint: I}"),
    )


def test_a_snippet_or_a_candidate_without_templates_changes_nothing() -> None:
    asked = (Message(role="user", content="{{id}}"),)
    task = Task(id="a", thing="a", context="C", prompt=asked, scoring=Scoring(method="exact"))
    assert candidate_messages("S", task, CandidateSpec(name="x")) == (
        Message(role="system", content="S\n\nC"),
        Message(role="user", content="{{id}}"),
    )
