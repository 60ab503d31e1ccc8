"""From a table to a suite that runs: `assay init --from`, and `assay run` on a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow
import pyarrow.parquet
import pytest

if TYPE_CHECKING:
    from tests.journey.conftest import Command
    from tests.support.model_server import ModelServer

CAPITALS = "Question ID,Question,Answer,Topic,answer_ann,answer_bob,note\n"


def test_a_table_becomes_a_suite_that_runs(assay: Command, project: Path) -> None:
    rows = "a,Capital of Peru?,Lima,south,Lima,Cusco,x\nb,Capital of Chad?,N'Djamena,africa,N'Djamena,Abuja,y\n"
    (project / "my rows.csv").write_text(CAPITALS + rows, "utf-8")
    made = assay("init", "--from", "my rows.csv")
    assert made.code == 0, made.err
    assert "made my-rows.yaml" in made.out
    shown = {tuple(line.split(maxsplit=1)) for line in made.out.splitlines()}
    assert {
        ("id", "Question ID"),
        ("prompt", "Question"),
        ("expected", "Answer"),
        ("tags", "Topic"),
    } <= shown
    assert "answers of ann  answer_ann" in made.out
    assert "not used        note" in made.out
    ran = assay("run", "my-rows.yaml")
    assert ran.code == 0, ran.err
    means = {
        row["candidate"]: row["mean"] for row in assay("stats", "--json").document["candidates"]
    }
    assert means == {"ann": 1.0, "bob": 0.0}


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_jsonl_and_parquet_become_suites_too(assay: Command, project: Path, form: str) -> None:
    row = {"task_id": "a", "input": "Say Lima.", "target": "Say Lima."}
    if form == "jsonl":
        (project / "rows.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), project / "rows.parquet")
    document = assay("init", "--from", f"rows.{form}", "--yes", "--json").document
    assert document == {
        "folder": ".",
        "files": ["rows.yaml"],
        "map": {"id": "task_id", "prompt": "input", "expected": "target"},
        "answers": {},
        "scoring": document["scoring"],
        "notes": [],
        "problems": [],
    }
    assert (document["scoring"]["method"], document["scoring"]["references"]) == (
        "contains",
        "short texts",
    )
    ran = assay("run", "rows.yaml", "--json").document
    assert ran["trials"]["done"] == 1


@pytest.mark.parametrize(
    ("rows", "where"),
    [
        (b"a,Why?,x\nb,,y\n", "rows.csv:3 question: is empty"),
        (b"a,Why?,x\na,How?,y\n", "rows.csv:3 id: is 'a', as on line 2"),
    ],
)
def test_a_row_that_is_no_task_is_named_by_line(
    assay: Command, project: Path, rows: bytes, where: str
) -> None:
    (project / "rows.csv").write_bytes(b"id,question,answer\n" + rows)
    made = assay("init", "--from", "rows.csv")
    assert made.code == 2
    assert where in made.err
    assert (project / "rows.yaml").exists()


def test_a_table_that_cannot_be_read_leaves_no_suite(assay: Command, project: Path) -> None:
    (project / "rows.csv").write_bytes(b"id,question\na,Why?\nb,Caf\xe9?\n")
    made = assay("init", "--from", "rows.csv")
    assert made.code == 2
    assert "rows.csv:3: is not UTF-8 text" in made.err
    (project / "other.csv").write_text("colour,size\nred,3\n", "utf-8")
    made = assay("init", "--from", "other.csv")
    assert made.code == 2
    assert "has no column that looks like prompts. Its columns: colour, size." in made.err
    assert made.err.rstrip().endswith(
        "assay init --from other.csv --map prompt=colour --map expected=size"
    )
    assert not list(project.glob("*.yaml"))


def test_a_suite_that_exists_is_kept(assay: Command, project: Path) -> None:
    (project / "rows.csv").write_text("question\nWhy?\n", "utf-8")
    (project / "rows.yaml").write_text("mine", "utf-8")
    assert "rows.yaml: exists already" in assay("init", "--from", "rows.csv").err
    assert (project / "rows.yaml").read_text("utf-8") == "mine"


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_run_on_a_table_names_the_command_that_helps(
    assay: Command, project: Path, name: str
) -> None:
    (project / name).write_text(
        '{"question": "Why?"}\n' if name.endswith("jsonl") else "question\nWhy?\n", "utf-8"
    )
    ran = assay("run", name)
    assert ran.code == 2
    assert f"assay init --from {name}" in ran.err


@pytest.mark.parametrize("rows", ['[{"q": 1, "question": "Say 5.", "answer": "Say 5."}]', None])
def test_a_json_list_becomes_a_suite_too(assay: Command, project: Path, rows: str | None) -> None:
    table = (
        rows or '{"made": "today", "data": [{"q": 1, "question": "Say 5.", "answer": "Say 5."}]}'
    )
    (project / "rows.json").write_text(table, "utf-8")
    refused = assay("run", "rows.json")
    assert (refused.code, "assay init --from rows.json" in refused.err) == (2, True)
    made = assay("init", "--from", "rows.json", "--json").document
    assert made["map"] == {"prompt": "question", "expected": "answer"}
    assay("run", "rows.yaml")
    assert [row["mean"] for row in assay("stats", "--json").document["candidates"]] == [1.0]


def test_json_that_is_no_table_is_refused(assay: Command, project: Path) -> None:
    (project / "rows.json").write_text(
        '{"a": [{"question": "x"}], "b": [{"question": "y"}]}', "utf-8"
    )
    assert "expected a list of objects" in assay("init", "--from", "rows.json").err
    (project / "typo.json").write_text('{"name": "x", "task": [{"prompt": "x"}]}', "utf-8")
    assert "task: is an unknown key" in assay("run", "typo.json").err


def test_two_prompts_become_candidates(assay: Command, server: ModelServer, project: Path) -> None:
    (project / "rows.csv").write_text(
        "question,answer\nCapital of Peru?,Lima\nCapital of Chad?,N'Djamena\n", "utf-8"
    )
    (project / "terse.txt").write_text("In a word: {{question}}\n", "utf-8")
    (project / "long.txt").write_text("Explain yourself.\n", "utf-8")
    prompts = ("--prompt", "terse.txt", "--prompt", "long.txt")
    made = assay(
        "init", "--from", "rows.csv", *prompts, "--model", "openai/m", "--judge", "openai/judge"
    )
    assert made.code == 0, made.err
    assert "next: assay run rows.yaml && assay review" in made.out
    assert assay("run", "rows.yaml").code == 0
    asked = [call.body["messages"] for call in server.calls if call.body["model"] == "m"]
    assert [{"role": "user", "content": "In a word: Capital of Peru?"}] in asked
    assert [
        {"role": "system", "content": "Explain yourself."},
        {"role": "user", "content": "Capital of Chad?"},
    ] in asked
    waiting = assay("review", "list", "--state", "pending", "--json").document["assessments"]
    assert [set(row["scores"]) for row in waiting] == [{"terse", "long"}] * 2


def test_questions_alone_are_graded_by_people(assay: Command, project: Path) -> None:
    (project / "rows.csv").write_text("question\nWhy?\n", "utf-8")
    assert assay("init", "--from", "rows.csv").code == 0
    assert "1 assessment awaits review" in assay("run", "rows.yaml").out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--from", "rows.csv", "--prompt", "terse.txt"),
            "--prompt: needs a model to ask. Add --model",
        ),
        (
            ("--from", "rows.csv", "--prompt", "gone.txt", "--model", "echo"),
            "gone.txt: does not exist.",
        ),
        (("--model", "echo"), "--prompt, --model, --judge and --map: need --from."),
    ],
)
def test_prompts_that_lead_nowhere_are_refused(
    assay: Command, project: Path, options: tuple[str, ...], message: str
) -> None:
    (project / "rows.csv").write_text("question\nWhy?\n", "utf-8")
    (project / "terse.txt").write_text("{{question}}", "utf-8")
    refused = assay("init", *options)
    assert (refused.code, message in refused.err) == (2, True), refused.err
    assert not (project / "rows.yaml").exists()


@pytest.mark.parametrize(
    ("references", "method", "right", "wrong"),
    [
        (["Lima", "Paris"], "contains", "The capital is {}.", "It is not {}, it is Rome."),
        (["51", "9"], "numeric", "The answer is {}, because 2 × 2 is 4.", "{} plus 1 is 70."),
        (["B", "D"], "choice", "The correct answer is ({}).", "Not {}. The answer is A."),
        (["yes", "no"], "choice", "I say {}", "Maybe"),
        (['{"a": 1}', '{"a": 2}'], "json", "```json\n{}\n```", "[{}]"),
    ],
)
def test_chatty_answers_get_a_scorer_that_fits(
    assay: Command, project: Path, references: list[str], method: str, right: str, wrong: str
) -> None:
    rows = [
        {
            "q": f"Question {n}?",
            "gold": gold,
            "answer_right": right.replace("{}", gold),
            "answer_wrong": wrong.replace("{}", gold),
        }
        for n, gold in enumerate(references)
    ]
    (project / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    made = assay("init", "--from", "rows.jsonl")
    assert made.code == 0, made.err
    assert f"scoring: {method}. All 2 references are" in made.out
    written = (project / "rows.yaml").read_text("utf-8")
    assert "  # All 2 references are" in written
    assert f"  score: {method}\n" in written
    assert assay("run", "rows.yaml").code == 0
    means = {
        row["candidate"]: row["mean"] for row in assay("stats", "--json").document["candidates"]
    }
    assert means == {"right": 1.0, "wrong": 0.0}


def test_long_references_are_left_to_people(assay: Command, project: Path) -> None:
    gold = "Because the order was delivered only twelve days ago, the customer gets a refund."
    (project / "rows.csv").write_text(
        f'question,answer,answer_a\nWhy?,"{gold}","{gold}"\n', "utf-8"
    )
    made = assay("init", "--from", "rows.csv")
    assert "longer than 5 words" in made.out
    assert "next: assay run rows.yaml && assay review" in made.out
    assert "1 assessment awaits review" in assay("run", "rows.yaml").out


def test_references_of_several_lines_are_left_to_people(assay: Command, project: Path) -> None:
    (project / "rows.csv").write_text(
        'question,answer\nWrite f.,"def f(x):\n  return x"\nWrite g.,"def g():\n  pass"\n', "utf-8"
    )
    made = assay("init", "--from", "rows.csv", "--model", "echo")
    assert "2 of 2 references are longer than 5 words or one line." in made.out
    assert "score: contains" not in (project / "rows.yaml").read_text("utf-8")


def test_an_empty_column_of_references_is_left_out(assay: Command, project: Path) -> None:
    (project / "rows.csv").write_text("question,answer\nWhy?,\nWhen?,\n", "utf-8")
    made = assay("init", "--from", "rows.csv", "--model", "echo")
    assert made.code == 0, made.err
    assert "answer is empty in every row, so nothing can be scored by a rule." in made.err
    assert "expected" not in (project / "rows.yaml").read_text("utf-8")


def test_objects_are_references_too(assay: Command, project: Path) -> None:
    row = {"prompt": "Extract.", "expected": {"a": 1}, "answer_ann": 'Here: {"a": 1.0}'}
    (project / "rows.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    assert assay("init", "--from", "rows.jsonl", "--json").document["scoring"]["method"] == "json"
    assay("run", "rows.yaml")
    assert [row["mean"] for row in assay("stats", "--json").document["candidates"]] == [1.0]


@pytest.mark.parametrize(
    "content",
    [
        b"q;gold;answer_ann\nSay, please: 5?;5;It is 5.\n",
        b"q\tgold\tanswer_ann\nSay, please: 5?\t5\tIt is 5.\n",
        b"sep=|\nq|gold|answer_ann\nSay, please: 5?|5|It is 5.\n",
        "q;gold;answer_ann\r\nSay, please: 5?;5;It is 5.\r\n".encode("utf-16"),
        'q,gold,answer_ann\r\n"Say, please: 5?",5,It is 5.\r\n'.encode("utf-16-le"),
        "\ufeffq;gold;answer_ann\nSay, please: 5?;5;It is 5.\n".encode(),
    ],
    ids=["semicolon", "tab", "sep line", "utf-16", "utf-16 without a mark", "utf-8 with a mark"],
)
def test_separators_and_encodings_of_spreadsheets_are_recognised(
    assay: Command, project: Path, content: bytes
) -> None:
    (project / "rows.csv").write_bytes(content)
    made = assay("init", "--from", "rows.csv", "--json")
    assert made.code == 0, made.err
    assert made.document["map"] == {"prompt": "q", "expected": "gold"}
    assert assay("run", "rows.yaml").code == 0
    (row,) = assay("stats", "--json").document["candidates"]
    assert (row["candidate"], row["mean"]) == ("ann", 1.0)


def test_columns_can_be_named(assay: Command, project: Path) -> None:
    (project / "rows.csv").write_text(
        "satz,lösung,gpt 4\nHauptstadt von Peru?,Lima,Es ist Lima.\n", "utf-8"
    )
    refused = assay("init", "--from", "rows.csv")
    assert refused.code == 2
    assert "assay init --from rows.csv --map prompt=satz --map" in refused.err
    options = ("--map", "prompt=satz", "--map", "expected=lösung", "--map", "snippets.gpt=gpt 4")
    made = assay("init", "--from", "rows.csv", *options, "--json").document
    assert made["map"] == {"prompt": "satz", "expected": "lösung"}
    assert made["answers"] == {"gpt": "gpt 4"}
    assert assay("run", "rows.yaml").code == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("prompt", "--map: is 'prompt', expected KEY=COLUMN."),
        (
            "prompt=frge",
            "--map: names the column 'frge', which the table does not have. Did you mean 'frage'?",
        ),
        (
            "promt=frage",
            "--map: names the key 'promt', which tasks do not have. Did you mean 'prompt'?",
        ),
    ],
)
def test_wrong_names_of_columns_are_refused(
    assay: Command, project: Path, given: str, message: str
) -> None:
    (project / "rows.csv").write_text("frage,antwort\nHauptstadt von Peru?,Lima\n", "utf-8")
    refused = assay("init", "--from", "rows.csv", "--map", given)
    assert (refused.code, message in refused.err) == (2, True), refused.err
    assert not (project / "rows.yaml").exists()


def test_a_table_without_a_known_reference_says_how_to_name_it(
    assay: Command, project: Path
) -> None:
    (project / "rows.csv").write_text("question,lösung\nHauptstadt von Peru?,Lima\n", "utf-8")
    made = assay("init", "--from", "rows.csv")
    assert "note: no column looks like references" in made.err
    assert "--map expected=lösung" in made.err or "--map 'expected=lösung'" in made.err


def test_a_suggested_command_is_complete_and_tells_questions_from_answers(
    assay: Command, project: Path
) -> None:
    answers = (
        "Die Hauptstadt ist Lima, wie jeder weiß, der dort war.",
        "Die Hauptstadt ist Oslo, wie jeder weiß, der dort war.",
    )
    (project / "rows.csv").write_text(
        f'satz,lösung\nPeru?,"{answers[0]}"\nNorwegen?,"{answers[1]}"\n', "utf-8"
    )
    (project / "a.txt").write_text("Be terse.", "utf-8")
    refused = assay("init", "--from", "rows.csv", "--prompt", "a.txt", "--model", "echo")
    assert refused.code == 2
    suggested = "assay init --from rows.csv --map prompt=satz --map expected=lösung --prompt a.txt --model echo"
    assert suggested in refused.err.replace("'", "")


@pytest.mark.parametrize("header", ["Frage;Antwort", "pregunta;respuesta", "q;correct_answer"])
def test_columns_in_other_words_are_recognised(assay: Command, project: Path, header: str) -> None:
    (project / "rows.csv").write_text(f"{header}\nHauptstadt von Peru?;Lima\n", "utf-8")
    made = assay("init", "--from", "rows.csv", "--json").document
    assert list(made["map"]) == ["prompt", "expected"]
    assert list(made["map"].values()) == header.split(";")


@pytest.mark.parametrize(
    "header",
    [
        "question,A,B,answer",
        "question,option_a,option_b,correct",
        "question,Choice A,Choice B,gold",
    ],
)
def test_candidates_are_shown_the_options_of_a_multiple_choice(
    assay: Command, server: ModelServer, project: Path, header: str
) -> None:
    (project / "rows.csv").write_text(
        f"{header}\nCapital of Peru?,Oslo,Lima,B\nCapital of Norway?,Oslo,Lima,A\n", "utf-8"
    )
    (project / "a.txt").write_text("Be terse.", "utf-8")
    made = assay("init", "--from", "rows.csv", "--prompt", "a.txt", "--model", "openai/m")
    assert "option A" in made.out
    assert "not used" not in made.out
    assert assay("run", "rows.yaml").code == 0
    messages = [call.body["messages"] for call in server.calls]
    assert [each[0]["content"] for each in messages] == ["Be terse."] * 2
    assert messages[0][1]["content"] == "Capital of Peru?\n\nA) Oslo\nB) Lima"


def test_options_that_no_prompt_shows_are_noted(assay: Command, project: Path) -> None:
    (project / "rows.csv").write_text(
        "question,A,B,answer\nCapital of Peru?,Oslo,Lima,B\n", "utf-8"
    )
    (project / "a.txt").write_text("Choose: {{question}}", "utf-8")
    (project / "b.txt").write_text("Choose: {{question}} A) {{A}} B) {{B}}", "utf-8")
    for prompt, noted in (("a.txt", True), ("b.txt", False)):
        made = assay("init", "--from", "rows.csv", "--prompt", prompt, "--model", "echo")
        note = "A, B look like the options of a multiple choice, but no prompt shows them to the candidates."
        assert (note in made.err) == noted
        (project / "rows.yaml").unlink()
    (project / "bare.csv").write_text(
        "question,answer\nCapital of Peru?,B\nCapital of Norway?,A\n", "utf-8"
    )
    assert "list no options, so nobody can choose" in assay("init", "--from", "bare.csv").err


@pytest.mark.parametrize(
    "rows",
    [
        '{"question": "Capital of Peru?", "answer": "Lima|City of Lima", "answer_ann": "It is Lima.", "answer_bob": "Oslo"}',
        '{"question": "Capital of Peru?", "answer": ["City of Lima", "Lima"], "answer_ann": "It is Lima.", "answer_bob": "Oslo"}',
        '{"question": "Capital of Peru?", "answer": "[\\"Lima\\", \\"C\\"]", "answer_ann": "It is Lima.", "answer_bob": "Oslo"}',
    ],
    ids=["bars", "list", "JSON in a text"],
)
def test_one_of_several_right_answers_suffices(assay: Command, project: Path, rows: str) -> None:
    (project / "rows.jsonl").write_text(rows + "\n", "utf-8")
    made = assay("init", "--from", "rows.jsonl", "--json")
    assert made.document["scoring"]["references"] == "alternatives"
    assert assay("run", "rows.yaml").code == 0
    means = {
        row["candidate"]: row["mean"] for row in assay("stats", "--json").document["candidates"]
    }
    assert means == {"ann": 1.0, "bob": 0.0}


def test_the_answer_that_ends_a_conversation_is_the_reference(
    assay: Command, server: ModelServer, project: Path
) -> None:
    asked = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Capital of Peru?"},
    ]
    row = {"messages": [*asked, {"role": "assistant", "content": "Lima"}]}
    (project / "chats.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    made = assay("init", "--from", "chats.jsonl", "--model", "openai/m", "--json")
    assert made.document["map"] == {"prompt": "messages", "expected": "messages.-1.content"}
    assert made.document["scoring"]["method"] == "contains"
    server.answer = lambda _: "It is Lima."
    assert assay("run", "chats.yaml").code == 0
    assert server.calls[0].body["messages"] == asked
    (row,) = assay("stats", "--json").document["candidates"]
    assert row["mean"] == 1.0
    with (project / "chats.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"messages": asked}) + "\n")
    assert (
        "chats.jsonl:2 messages.-1.content: `expected` is missing"
        in assay("validate", "chats.yaml").err
    )
