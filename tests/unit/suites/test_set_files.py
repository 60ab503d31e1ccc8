"""Set files: Things with the code of each candidate."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tests.unit.suites.conftest import Load

from assay.domain.suite import Scoring
from assay.suites.loading import load_suite, problems_in
from assay.suites.problems import SuiteErrors

JUDGE = "openai/gpt-4o-mini"


def thing(name: str = "Auth Service", **more: object) -> dict[str, object]:
    snippets = [
        {"name": "Alice", "content": "def a(): ..."},
        {"name": "Bob", "content": "def b(): ..."},
    ]
    return {
        "thingName": name,
        "context": "No plain text.",
        "language": "python",
        "snippets": snippets,
        **more,
    }


def test_a_thing_is_a_judged_task(load: Load) -> None:
    suite = load(json.dumps([thing(trialsNeeded=5)]), "auth.json", judge=JUDGE)
    (task,) = suite.tasks
    assert (suite.name, task.id, task.thing, task.trials) == (
        "auth",
        "auth-service",
        "Auth Service",
        5,
    )
    assert (task.context, task.language, task.scoring) == (
        "No plain text.",
        "python",
        Scoring(method="judge"),
    )
    assert [candidate.name for candidate in suite.candidates] == ["Alice", "Bob"]
    assert [snippet.text for snippet in task.snippets] == ["def a(): ...", "def b(): ..."]
    assert [judge.name for judge in suite.judges] == [JUDGE]


def test_one_object_is_a_set_of_one(load: Load) -> None:
    suite = load(json.dumps(thing()), "one.json", judge=JUDGE)
    assert [task.id for task in suite.tasks] == ["auth-service"]
    assert [task.trials for task in suite.tasks] == [None]


def test_a_set_may_say_its_name(load: Load) -> None:
    suite = load(
        json.dumps({"name": "A/B test", "things": [thing()]}), "a-b-test.json", judge=JUDGE
    )
    assert (suite.name, [task.id for task in suite.tasks]) == ("A/B test", ["auth-service"])
    for wrong, message in (
        ({"name": "A", "things": []}, "things: is an empty list"),
        ({"name": "A", "things": [thing("???")]}, "things[0].thingName: is '???'"),
        ({"name": "A", "thing": 1, "things": [thing()]}, "thing: is an unknown key"),
        ({"name": ["A"], "things": [thing()]}, "name: is a list"),
    ):
        with pytest.raises(SuiteErrors) as caught:
            load(json.dumps(wrong), "set.json", judge=JUDGE)
        assert message in str(caught.value)


def test_names_match_whatever_their_case_across_things(load: Load) -> None:
    other = thing(
        "Cache", snippets=[{"name": "ALICE", "content": "x"}, {"name": "carol", "content": "y"}]
    )
    suite = load(json.dumps([thing(), other]), "set.json", judge=JUDGE)
    assert [candidate.name for candidate in suite.candidates] == ["Alice", "Bob", "carol"]
    assert [s.candidate for s in list(suite.tasks)[1].snippets] == ["Alice", "carol"]


def test_a_byte_order_mark_is_no_part_of_the_set(tmp_path: Path) -> None:
    (tmp_path / "set.json").write_text(json.dumps([thing()]), "utf-8-sig")
    assert len(list(load_suite(tmp_path / "set.json", judge=JUDGE).tasks)) == 1


def test_a_set_without_a_judge_can_be_checked_but_not_run(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text(json.dumps([thing()]))
    assert problems_in(path) == ()
    with pytest.raises(SuiteErrors, match="is graded by a judge, but none is given"):
        load_suite(path)


def test_one_candidate_is_enough_when_each_is_judged_alone(load: Load) -> None:
    alone = json.dumps([thing(snippets=[{"name": "Alice", "content": "x"}])])
    assert len(load(alone, "set.json", judge={"model": JUDGE, "mode": "each"}).candidates) == 1
    with pytest.raises(SuiteErrors, match="a joint judge compares at least two"):
        load(alone, "set.json", judge=JUDGE)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "is an empty list"),
        (
            [thing(), thing("auth  service!")],
            "gives the task id 'auth-service', as does [0].thingName on line 1",
        ),
        ([thing("???")], "at least one letter or digit"),
        ([thing("")], "is empty, expected a name"),
        ([thing(trialsNeeded=0)], "is 0, expected a whole number of at least 1"),
        ([thing(trialsNeeded="5")], "is '5', expected a whole number"),
        ([thing(snippets=[])], "is an empty list"),
        ([thing(snippets={"Alice": "x"})], "is a mapping, expected a list"),
        ([thing(snippets=["x"])], "is 'x', expected a mapping"),
        ([thing(snipets=[])], "Did you mean 'snippets'?"),
        (["x"], "is 'x', expected a mapping"),
        ([None], "is empty, expected a mapping"),
    ],
)
def test_a_wrong_thing_is_named(load: Load, items: list[object], message: str) -> None:
    with pytest.raises(SuiteErrors) as caught:
        load(json.dumps(items), "set.json", judge=JUDGE)
    assert message in str(caught.value)


def test_a_thousand_things_load_in_two_seconds(tmp_path: Path) -> None:
    code = "def f(x):\n    return 'é' + x\n" * 350
    path = tmp_path / "big.json"
    things = [
        thing(
            f"Thing {n}", snippets=[{"name": "a", "content": code}, {"name": "b", "content": code}]
        )
        for n in range(1000)
    ]
    path.write_text(json.dumps(things))
    started = time.process_time()
    suite = load_suite(path, judge=JUDGE)
    assert time.process_time() - started < 2
    assert len(list(suite.tasks)) == 1000
