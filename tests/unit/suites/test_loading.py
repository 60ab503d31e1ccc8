"""Suite files: what becomes of every key, and what may not be."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.suites.conftest import Load

from assay.domain.errors import SHOWN, SuiteErrors
from assay.domain.lifecycle import Policy
from assay.domain.model import ModelSpec, Parameters, Price
from assay.domain.suite import CandidateSpec, Criterion, JudgeMode, Message, Scoring, Suite
from assay.scoring.prompts import template_problems
from assay.suites.checks import ExternalChecks
from assay.suites.loading import load_suite, problems_in

FULL = """\
name: arithmetic
description: Sums.
system_prompt: Be brief.
trials: 5
review: flagged
parameters: {temperature: 0.7, top_p: 1, max_tokens: 2048, frequency_penalty: 0, presence_penalty: 0, seed: 7}
candidates:
  - openai/gpt-4o-mini
  - {name: small, model: vllm/some-model, base_url: "http://127.0.0.1:8000/v1", parameters: {temperature: 0},
     price: {input: 0.1, output: 0.4}, context_tokens: 8192, metadata: {quantised: true}}
judge:
  model: anthropic/claude-sonnet-4-5
  mode: each
  temperature: 0.2
  prompt: prompts/judge.md
margin: 3pts
rubric:
  - {name: integrity, weight: 2, scale: [0, 10], guidance: Does it hold}
  - {name: verdict, scale: [No, Partial, Yes]}
  - {name: pass, scale: {Yes: 1, No: 0}}
  - clarity
tasks:
  - id: auth
    thing: Auth Service
    context: No plain text passwords.
    prompt: Write it.
    weight: 2
    tags: [security, backend]
    language: python
    trials: 2
    category: code
    difficulty: hard
  - id: sum
    prompt:
      - {role: system, content: Add.}
      - {role: user, content: What is 1+1}
    expected: 2
    score: {numeric: {tolerance: 0.01}}
"""


@pytest.fixture
def full(tmp_path: Path) -> Suite:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "judge.md").write_text("Judge {{candidates}}.")
    (tmp_path / "suite.yaml").write_text(FULL)
    return load_suite(tmp_path / "suite.yaml")


def test_every_key_of_the_suite_arrives(full: Suite) -> None:
    assert (full.name, full.description, full.system_prompt, full.trials) == (
        "arithmetic",
        "Sums.",
        "Be brief.",
        5,
    )
    assert full.review.policy is Policy.FLAGGED
    assert full.margin == 0.03
    assert full.parameters == Parameters(
        temperature=0.7, top_p=1, max_tokens=2048, frequency_penalty=0, presence_penalty=0, seed=7
    )


def test_candidates_are_models_with_their_settings(full: Suite) -> None:
    small = ModelSpec(
        provider="vllm",
        name="some-model",
        base_url="http://127.0.0.1:8000/v1",
        parameters=Parameters(temperature=0),
        price=Price(input_usd=0.1, output_usd=0.4),
        context_tokens=8192,
    )
    assert full.candidates == (
        CandidateSpec(
            name="openai/gpt-4o-mini", model=ModelSpec(provider="openai", name="gpt-4o-mini")
        ),
        CandidateSpec(name="small", model=small, metadata={"quantised": True}),
    )


def test_the_judge_brings_its_prompt_and_mode(full: Suite) -> None:
    (judge,) = full.judges
    assert (judge.name, judge.mode, judge.parameters.temperature) == (
        "anthropic/claude-sonnet-4-5",
        JudgeMode.EACH,
        0.2,
    )
    assert (judge.prompt, judge.prompt_path) == ("Judge {{candidates}}.", "prompts/judge.md")


def test_scales_are_numbers_or_words(full: Suite) -> None:
    assert full.rubric is not None
    assert full.rubric.criteria == (
        Criterion(name="integrity", weight=2, low=0, high=10, guidance="Does it hold"),
        Criterion(name="verdict", low=0, high=1, labels=(("No", 0), ("Partial", 0.5), ("Yes", 1))),
        Criterion(name="pass", low=0, high=1, labels=(("Yes", 1), ("No", 0))),
        Criterion(name="clarity"),
    )


def test_tasks_arrive_whole(full: Suite) -> None:
    auth, total = full.tasks
    assert (auth.thing, auth.context, auth.weight, auth.tags) == (
        "Auth Service",
        "No plain text passwords.",
        2,
        ("security", "backend"),
    )
    assert (auth.language, auth.trials, auth.scoring) == ("python", 2, Scoring(method="judge"))
    assert auth.extra == {"category": "code", "difficulty": "hard"}
    assert auth.prompt == (Message(role="user", content="Write it."),)
    assert total.thing == "sum"
    assert total.expected == "2"
    assert total.scoring == Scoring(method="numeric", options={"tolerance": 0.01})
    assert [turn.role for turn in total.prompt] == ["system", "user"]


def test_the_copy_is_the_text_and_its_digest_covers_the_files_it_names(
    full: Suite, tmp_path: Path
) -> None:
    assert full.copy.text == FULL
    assert full.copy.path == str(tmp_path / "suite.yaml")
    assert load_suite(tmp_path / "suite.yaml").copy == full.copy
    (tmp_path / "prompts" / "judge.md").write_text("Judge {{candidates}} anew.")
    assert load_suite(tmp_path / "suite.yaml").copy.digest != full.copy.digest


def test_the_name_defaults_to_the_file(load: Load) -> None:
    suite = load("tasks: [{id: a, expected: x, score: exact, snippets: {p: x}}]", "my.suite.yaml")
    assert suite.name == "my.suite"


def test_identifiers_and_answers_keep_their_letters(load: Load) -> None:
    (task,) = load(
        "tasks: [{id: 1.0, expected: 007, score: exact, snippets: {no: yes, on: 2024-01-01}}]"
    ).tasks
    assert (task.id, task.expected) == ("1.0", "007")
    assert {s.candidate: s.text for s in task.snippets} == {"no": "yes", "on": "2024-01-01"}


def test_a_list_is_an_expected_text(load: Load) -> None:
    (task,) = load("tasks: [{id: a, expected: [2, 1.0, x], score: math, snippets: {p: x}}]").tasks
    assert task.expected == "2, 1.0, x"


def test_candidates_are_named_ones_then_snippet_authors(load: Load) -> None:
    suite = load(
        "score: exact\n"
        "candidates: [{name: Bob, metadata: {years: 3}}, echo]\n"
        "tasks:\n"
        "  - {id: a, prompt: q, expected: x, snippets: {Zoe: x, bob: y}}\n"
        "  - {id: b, prompt: q, expected: x, snippets: {ZOE: x, alice: y}}\n"
    )
    assert [c.name for c in suite.candidates] == ["Bob", "echo", "Zoe", "alice"]
    assert suite.candidates[0].metadata == {"years": 3}
    assert [[s.candidate for s in task.snippets] for task in suite.tasks] == [
        ["Zoe", "Bob"],
        ["Zoe", "alice"],
    ]


def test_a_lone_word_may_name_a_snippet(load: Load) -> None:
    suite = load(
        "candidates: [bob, alice]\nscore: exact\ntasks: [{id: a, expected: x, snippets: {alice: x, bob: y}}]"
    )
    assert [c.name for c in suite.candidates] == ["bob", "alice"]


JUDGED = "judge: {judge}\ntasks: [{{id: a, snippets: {{p: x, q: y}}}}]"


def test_a_plain_judge_from_the_caller_keeps_how_the_suite_judges(load: Load) -> None:
    text = JUDGED.format(
        judge="{model: openai/gpt-4o, mode: each, temperature: 0, base_url: 'http://127.0.0.1:1'}"
    )
    (judge,) = load(text, judge="anthropic/claude-sonnet-4-5").judges
    assert (judge.name, judge.model.base_url) == ("anthropic/claude-sonnet-4-5", None)
    assert (judge.mode, judge.parameters.temperature) == (JudgeMode.EACH, 0)


def test_the_settings_judge_stands_in_only_where_the_suite_names_none(load: Load) -> None:
    own = load(JUDGED.format(judge="openai/gpt-4o"), default_judge="anthropic/claude-sonnet-4-5")
    assert [judge.name for judge in own.judges] == ["openai/gpt-4o"]
    none = load(
        JUDGED.format(judge=""),
        default_judge={"model": "anthropic/claude-sonnet-4-5", "mode": "each"},
    )
    assert [(judge.name, judge.mode) for judge in none.judges] == [
        ("anthropic/claude-sonnet-4-5", JudgeMode.EACH)
    ]


def test_the_settings_judge_is_left_out_where_nothing_is_judged(load: Load) -> None:
    suite = load(
        "tasks: [{id: a, expected: x, score: exact, snippets: {p: x}}]",
        default_judge="openai/gpt-4o",
    )
    assert suite.judges == ()


def test_a_wrong_judge_from_the_caller_is_named_as_such(load: Load) -> None:
    with pytest.raises(SuiteErrors, match=r"^--judge: is 'gpt', expected a model"):
        load(JUDGED.format(judge="openai/gpt-4o"), judge="gpt")


def test_a_panel_is_several_judges(load: Load) -> None:
    suite = load(JUDGED.format(judge="[openai/gpt-4o, {name: second, model: openai/gpt-4o}]"))
    assert [judge.name for judge in suite.judges] == ["openai/gpt-4o", "second"]


def test_caller_candidates_are_added(load: Load) -> None:
    suite = load("score: exact\ntasks: [{id: a, expected: x, prompt: q}]", candidates=("echo",))
    assert [c.name for c in suite.candidates] == ["echo"]


def test_suite_loading_asks_providers_and_scorers_for_problems(load: Load) -> None:
    checks = ExternalChecks(
        methods=("exact", "mine"),
        option_problems=lambda method, options: tuple(
            f"`{method}` has no option {name!r}." for name in options
        ),
        reference_problems=lambda method, expected: (
            () if expected == "ok" else (f"{expected!r} will not do.",)
        ),
    )
    with pytest.raises(SuiteErrors) as caught:
        load(
            "tasks: [{id: a, expected: x, score: {mine: {loud: 1}}, snippets: {p: x}}]",
            checks=checks,
        )
    assert [error.problem for error in caught.value.errors] == [
        "`mine` has no option 'loud'.",
        "'x' will not do.",
    ]


def test_a_long_list_of_mistakes_is_cut_in_the_message_only(load: Load) -> None:
    rows = "".join(f"  - {{id: t{n}, wrong: 1}}\n" for n in range(30))
    with pytest.raises(SuiteErrors) as caught:
        load(f"score: exact\ntasks:\n{rows}")
    assert len(caught.value.errors) > SHOWN
    assert str(caught.value).endswith(f"... and {len(caught.value.errors) - SHOWN} more.")
    assert str(caught.value).count("\n") == SHOWN


def test_mistakes_without_end_stop_the_reading(load: Load) -> None:
    with pytest.raises(SuiteErrors) as caught:
        load("tasks:\n" + "".join(f"  - {{wrong: {n}}}\n" for n in range(5000)))
    assert len(caught.value.errors) <= 200


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"  \n\n", "is empty"),
        (b"# only a comment\n", "is empty"),
        (b"just text", "is 'just text', expected a suite"),
        (b"\x89PNG\r\n", "is a binary file"),
        (b"name: a\0b", "is a binary file"),
        (b"name: caf\xe9", "is not UTF-8 text: byte 0xe9 at offset 9"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "is a Git LFS pointer"),
    ],
)
def test_suite_file_that_is_not_text_is_reported(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "suite.yaml"
    path.write_bytes(data)
    (problem,) = problems_in(path)
    assert message in problem.problem


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks_are_understood(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text("tasks: [{id: ä, expected: x, score: exact, snippets: {p: x}}]", encoding)
    assert [task.id for task in load_suite(path).tasks] == ["ä"]


def test_absent_files_folders_and_devices_are_no_suites(tmp_path: Path) -> None:
    for path in (
        tmp_path / "absent.yaml",
        tmp_path,
        Path("/dev/null"),
        Path("a\0b"),
        Path("x" * 5000),
    ):
        assert len(problems_in(path)) == 1
        assert len(problems_in(path.with_name(path.name + ".jsonl"))) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks: []", "is an empty list"),
        ("tasks: [{id: a, weight: 0, score: exact, expected: x}]", "all have weight 0"),
        ("tasks: [3]", "is 3, expected a mapping"),
        ("name: x", "has no `tasks`"),
        ("tasks: [{id: a, score: exact, expected: x}]", "The suite has no model to answer it"),
        (
            "tasks: [{id: a, score: exact, expected: x, weight: true, snippets: {p: x}}]",
            "is true, expected a number",
        ),
        (
            "trials: 0\ntasks: [{id: a, score: exact, expected: x, snippets: {p: x}}]",
            "is 0, expected a whole number",
        ),
        (
            "trials: 2.5\ntasks: [{id: a, score: exact, expected: x, snippets: {p: x}}]",
            "is 2.5, expected a whole number",
        ),
        (
            "name: true\ntasks: [{id: a, score: exact, expected: x, snippets: {p: x}}]",
            "Put it in quotes",
        ),
        (
            "tasks: [{id: a, score: exact, expected: x, prompt: [], snippets: {p: x}}]",
            "is an empty list",
        ),
        (
            "tasks: [{id: a, score: exact, expected: x, prompt: [{role: system, content: x}], snippets: {p: x}}]",
            "only system messages",
        ),
        (
            "tasks: [{id: a, score: exact, expected: x, snippets: {p: [x]}}]",
            "is a list of 1, expected text",
        ),
        (
            "tasks: [{id: a, score: exact, expected: {x: 1}, snippets: {p: x}}]",
            "is a mapping, expected text",
        ),
        (
            '{"tasks": [{"id": "a", "score": "exact", "expected": "\\ud800", "snippets": {"p": "x"}}]}',
            "lone surrogate",
        ),
        (
            '{"tasks": [{"id": "a", "score": "exact", "expected": "x", "snippets": {"p": "\\u0000"}}]}',
            "NUL character",
        ),
        (
            '{"tasks": [{"id": "a\\nb", "score": "exact", "expected": "x", "snippets": {"p": "x"}}]}',
            "on one line",
        ),
        (
            '{"tasks": [{"id": "a", "score": "exact", "expected": "x", "weight": NaN, "snippets": {"p": "x"}}]}',
            "is nan, expected a number",
        ),
    ],
)
def test_a_mistake_is_named(load: Load, text: str, message: str) -> None:
    with pytest.raises(SuiteErrors) as caught:
        load(text, "suite.json" if text.startswith("{") else "suite.yaml")
    assert message in str(caught.value)


def test_json_is_the_same_structure(load: Load) -> None:
    json_text = '{"trials": 2, "tasks": [{"id": "a", "expected": 4, "score": "exact", "snippets": {"p": "4"}}]}'
    yaml_text = "trials: 2\ntasks: [{id: a, expected: 4, score: exact, snippets: {p: '4'}}]"
    assert load(json_text, "suite.json").tasks == load(yaml_text, "suite.yaml").tasks


@pytest.mark.parametrize(
    "name", ["Ünïcode", "田中\u3000太郎", "👩\u200d💻", "a b/c=d", "Auth\u00a0Service"]
)
def test_names_of_every_script_are_names(load: Load, name: str) -> None:
    suite = load(f'tasks: [{{id: "{name}", expected: x, score: exact, snippets: {{"{name}": x}}}}]')
    assert [candidate.name for candidate in suite.candidates] == [name]


@pytest.mark.parametrize("name", ["a\\nb", "a\\x1b[31m", "a\\u202eb", "a\\u2028b"])
def test_names_that_mislead_are_refused(load: Load, name: str) -> None:
    with pytest.raises(SuiteErrors, match="without control characters"):
        load(f'tasks: [{{id: "{name}", expected: x, score: exact, snippets: {{p: x}}}}]')


def test_empty_words_are_absent_ones(load: Load) -> None:
    (task,) = load(
        "tasks: [{id: a, thing: '', language: '', context: '', expected: x, score: exact, snippets: {p: x}}]"
    ).tasks
    assert (task.thing, task.language, task.context) == ("a", "", "")


ASKED = "candidates: [echo]\ntasks: [{id: a, prompt: q}]\n"


@pytest.mark.parametrize(
    "name", ["correctness", "helpfulness", "faithfulness", "style", "code", "quality"]
)
def test_a_rubric_may_be_named(load: Load, name: str) -> None:
    suite = load(f"{ASKED}rubric: {name}\njudge: {{model: openai/gpt-4o, mode: each}}")
    assert suite.rubric is not None
    assert all(criterion.guidance for criterion in suite.rubric.criteria)


def test_an_unknown_rubric_gets_a_hint(load: Load) -> None:
    with pytest.raises(SuiteErrors, match="Did you mean 'helpfulness'"):
        load(f"{ASKED}rubric: helpfullness\njudge: {{model: openai/gpt-4o, mode: each}}")


def test_a_judge_has_a_persona_and_a_prompt_in_the_suite(load: Load) -> None:
    judge = '{model: openai/gpt-4o, mode: each, persona: You are strict., prompt: "Grade {{candidates}} by {{rubric}}"}'
    (spec,) = load(f"{ASKED}judge: {judge}").judges
    assert (spec.persona, spec.prompt, spec.prompt_path) == (
        "You are strict.",
        "Grade {{candidates}} by {{rubric}}",
        None,
    )


def test_a_prompt_in_the_suite_must_show_the_work(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        f'{ASKED}judge: {{model: openai/gpt-4o, mode: each, prompt: "By {{{{rubric}}}}"}}'
    )
    with pytest.raises(SuiteErrors, match="never shows the work to grade"):
        load_suite(path, checks=ExternalChecks(template_problems=template_problems))
