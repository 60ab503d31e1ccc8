"""Tasks from files of many, and OpenAI batch input files as suites."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc
from pathlib import Path

import pytest

from assay.domain.suite import Message, Scoring
from assay.suites import taskfiles
from assay.suites.loading import load_suite, problems_in
from assay.suites.notes import notes_on
from assay.suites.problems import SuiteErrors

ROWS = [
    {
        "custom_id": "r1",
        "body": {"messages": [{"role": "user", "content": "1+1?"}]},
        "answer": 2,
        "tags": ["sum"],
    },
    {"custom_id": "r2", "body": {"messages": "2+2?"}, "answer": "4", "weight": 2.5},
]
MAP = "{id: custom_id, prompt: body.messages, expected: answer, tags: tags, weight: weight}"


def suite_over(
    tmp_path: Path,
    name: str,
    content: str,
    tasks: str,
    head: str = "candidates: [echo]\nscore: exact",
) -> Path:
    (tmp_path / name).write_text(content, "utf-8")
    path = tmp_path / "suite.yaml"
    path.write_text(f"{head}\ntasks: {tasks}\n")
    return path


def lines(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_rows_become_tasks_through_the_map(tmp_path: Path) -> None:
    path = suite_over(tmp_path, "t.jsonl", lines(ROWS) + "\n\n", f"{{file: t.jsonl, map: {MAP}}}")
    suite = load_suite(path)
    first, second = suite.tasks
    assert (first.id, first.prompt, first.expected) == (
        "r1",
        (Message(role="user", content="1+1?"),),
        "2",
    )
    assert (first.tags, second.weight, second.expected) == (("sum",), 2.5, "4")
    assert first.scoring == Scoring(method="exact")
    assert list(suite.tasks) == list(suite.tasks)


def test_without_a_map_rows_are_tasks(tmp_path: Path) -> None:
    row: dict[str, object] = {
        "id": "a",
        "prompt": "q",
        "expected": "x",
        "score": "exact",
        "snippets": {"Zoe": "x"},
    }
    suite = load_suite(suite_over(tmp_path, "t.jsonl", lines([row]), "{file: t.jsonl}"))
    assert [candidate.name for candidate in suite.candidates] == ["echo", "Zoe"]
    wrong = suite_over(tmp_path, "t.jsonl", lines([{**row, "idd": 1}]), "{file: t.jsonl}")
    assert "t.jsonl:1 idd: is an unknown key. Did you mean 'id'?" in str(problems_in(wrong)[0])


def test_rows_without_an_id_are_called_after_their_line(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"question": "1+1?", "answer": "2"},
        {"question": "1+2?", "answer": "3"},
    ]
    path = suite_over(
        tmp_path,
        "t.jsonl",
        lines(rows),
        "{file: t.jsonl, map: {prompt: question, expected: answer}}",
    )
    assert [task.id for task in load_suite(path).tasks] == ["row-1", "row-2"]


def test_mapped_answers_without_a_judge_are_matched_exactly(tmp_path: Path) -> None:
    path = suite_over(
        tmp_path, "t.jsonl", lines(ROWS), f"{{file: t.jsonl, map: {MAP}}}", "candidates: [echo]"
    )
    suite = load_suite(path)
    assert {task.scoring.method for task in suite.tasks} == {"exact"}
    assert any("are scored by `exact`" in note for note in notes_on(suite))


def test_a_file_may_say_how_its_tasks_are_scored(tmp_path: Path) -> None:
    tasks = f"{{file: t.jsonl, map: {MAP}, score: {{numeric: {{tolerance: 0.1}}}}}}"
    suite = load_suite(
        suite_over(tmp_path, "t.jsonl", lines(ROWS), tasks, "candidates: [echo]\nscore: exact")
    )
    assert {task.scoring.method for task in suite.tasks} == {"numeric"}


@pytest.mark.parametrize("kept", [0, 10**6])
def test_small_and_large_files_give_the_same_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(taskfiles, "KEPT_BYTES", kept)
    suite = load_suite(
        suite_over(tmp_path, "t.jsonl", lines(ROWS), f"{{file: t.jsonl, map: {MAP}}}")
    )
    assert [task.id for task in suite.tasks] == [task.id for task in suite.tasks] == ["r1", "r2"]


def test_columns_of_a_wide_file_are_snippets(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"q": "1+1?", "a": "2", "small": {"solution": "3"}, "large": {"solution": "2"}},
        {"q": "1+2?", "a": "3", "large": {"solution": "3"}},
    ]
    tasks = "{file: t.jsonl, map: {prompt: q, expected: a, snippets: {small: small.solution, large: large.solution}}}"
    suite = load_suite(suite_over(tmp_path, "t.jsonl", lines(rows), tasks, "score: exact"))
    assert [candidate.name for candidate in suite.candidates] == ["small", "large"]
    assert [[s.text for s in task.snippets] for task in suite.tasks] == [["3", "2"], ["3"]]


def test_csv_cells_are_read_as_their_key_wants_them(tmp_path: Path) -> None:
    content = 'id,question,answer,w,labels,n\na,"1+1,\nplease?",2,0.5,x;y,3\nb,2+2?,4,,,\n'
    tasks = "{file: t.csv, map: {id: id, prompt: question, expected: answer, weight: w, tags: labels, trials: n}}"
    first, second = load_suite(suite_over(tmp_path, "t.csv", content, tasks)).tasks
    assert (first.weight, first.tags, first.trials) == (0.5, ("x", "y"), 3)
    assert first.prompt[0].content == "1+1,\nplease?"
    assert (second.weight, second.tags, second.trials) == (1, (), None)


def test_a_csv_mistake_is_named_by_the_line_its_row_starts_on(tmp_path: Path) -> None:
    content = 'id,prompt,expected,weight\na,"1\n\n2",2,1\nb,q,x,heavy\n'
    (problem,) = problems_in(suite_over(tmp_path, "t.csv", content, "{file: t.csv}"))
    assert str(problem).endswith("t.csv:5 weight: is 'heavy', expected a number of at least 0.")


def test_a_csv_row_with_too_many_cells_is_named(tmp_path: Path) -> None:
    (problem,) = problems_in(
        suite_over(tmp_path, "t.csv", "id,prompt,expected\na,q,x,y\n", "{file: t.csv}")
    )
    assert "t.csv:2: has 4 cells, but the header has 3" in str(problem)


def test_tsv_and_json_arrays_are_task_files_too(tmp_path: Path) -> None:
    tsv = suite_over(tmp_path, "t.tsv", "id\tprompt\texpected\na\tq, r\tx\n", "{file: t.tsv}")
    assert [task.prompt[0].content for task in load_suite(tsv).tasks] == ["q, r"]
    path = suite_over(tmp_path, "t.json", json.dumps(ROWS), f"{{file: t.json, map: {MAP}}}")
    assert [task.id for task in load_suite(path).tasks] == ["r1", "r2"]
    wrong = suite_over(
        tmp_path, "t.json", json.dumps([*ROWS, {"answer": 3}]), f"{{file: t.json, map: {MAP}}}"
    )
    assert "t.json [2]: has no `custom_id`" in str(problems_in(wrong)[0])


@pytest.mark.skipif("pyarrow" in sys.modules, reason="says what happens without pyarrow")
def test_parquet_without_pyarrow_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (problem,) = problems_in(suite_over(tmp_path, "t.parquet", "PAR1", "{file: t.parquet}"))
    assert "pyarrow is not installed" in str(problem)


def test_a_file_that_changed_under_the_run_is_noticed(tmp_path: Path) -> None:
    suite = load_suite(
        suite_over(tmp_path, "t.jsonl", lines(ROWS), f"{{file: t.jsonl, map: {MAP}}}")
    )
    (tmp_path / "t.jsonl").write_text(lines(ROWS[:1]))
    with pytest.raises(SuiteErrors, match="was changed while Assay used it"):
        list(suite.tasks)


def test_a_task_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for file, why in [
        ("absent.jsonl", "does not exist"),
        (".", "is a folder"),
        ("pipe", "is not a regular file"),
    ]:
        (problem,) = problems_in(suite_over(tmp_path, "t.jsonl", "", f"{{file: {file}}}"))
        assert f"suite.yaml:3 tasks.file: names {file!r}, which {why}." in str(problem)


def test_the_digest_of_the_copy_follows_the_task_file(tmp_path: Path) -> None:
    path = suite_over(tmp_path, "t.jsonl", lines(ROWS), f"{{file: t.jsonl, map: {MAP}}}")
    before = load_suite(path).copy
    (tmp_path / "t.jsonl").write_text(lines(ROWS[:1]))
    assert load_suite(path).copy.digest != before.digest


@pytest.mark.slow
def test_tasks_of_a_large_file_do_not_pile_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taskfiles, "KEPT_BYTES", 0)

    def rows(count: int) -> Path:
        (tmp_path / "t.jsonl").write_text(
            "".join(
                f'{{"id": "task-{n}", "prompt": "{n:>250} plus {n}?", "expected": {2 * n}}}\n'
                for n in range(count)
            )
        )
        path = tmp_path / "suite.yaml"
        path.write_text("candidates: [echo]\nscore: exact\ntasks: {file: t.jsonl}\n")
        return path

    def peak(path: Path) -> int:
        tracemalloc.start()
        suite = load_suite(path)
        assert sum(1 for _ in suite.tasks) == sum(1 for _ in suite.tasks)
        row = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return row

    # Both files exceed the two megabytes that are held while lines are read.
    small, large = peak(rows(8_000)), peak(rows(16_000))
    # Eight bytes a task are kept, in arrays that grow by an eighth; a Task in memory takes well
    # over a kilobyte.
    assert large - small < 8_000 * 16


def test_a_batch_input_file_is_a_suite(tmp_path: Path) -> None:
    row = {
        "custom_id": "request-1",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {
            "model": "llama",
            "max_tokens": 10,
            "messages": [
                {"role": "system", "content": "Add."},
                {"role": "user", "content": "1+1?"},
            ],
        },
    }
    path = tmp_path / "batch.jsonl"
    path.write_text(json.dumps(row) + "\n")
    suite = load_suite(path, judge="openai/gpt-4o-mini")
    (task,) = suite.tasks
    assert (suite.name, suite.candidates, suite.copy.text) == ("batch", (), path.read_text())
    assert (task.id, [turn.role for turn in task.prompt]) == ("request-1", ["system", "user"])
    assert task.extra == {"body": {"model": "llama", "max_tokens": 10}}
    assert any("has no candidates" in note for note in notes_on(suite))
    assert any("max_tokens, model" in note for note in notes_on(suite))
    with_candidates = load_suite(
        path, judge="openai/gpt-4o-mini", candidates=("echo", "openai/gpt-4o")
    )
    assert [candidate.name for candidate in with_candidates.candidates] == ["echo", "openai/gpt-4o"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"custom_id": "a", "url": "/v1/embeddings", "body": {"input": "x"}}',
            "expected a chat completion",
        ),
        ('{"question": "x"}', "is not a line of an OpenAI batch input file"),
        (
            '{"custom_id": "a", "body": {"messages": [{"role": "tool", "content": "x"}]}}',
            "is 'tool', expected system",
        ),
        (
            '{"custom_id": "a", "body": {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}}',
            "is an image without a `file`",
        ),
        ("{", "is cut off: the line ends in the middle of a JSON value."),
        ("", "holds no tasks"),
    ],
)
def test_file_without_prompts_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "batch.jsonl"
    path.write_text(line)
    (problem, *_) = problems_in(path)
    assert message in str(problem)
