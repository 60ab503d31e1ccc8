"""Copies of tasks are recognised by their content, and only where the content is known."""

from __future__ import annotations

import pytest
from tests.contract.stores import a_plan, a_task, planned

from assay.analysis.tables import cautions, family_codes, planned_families
from assay.domain.selection import Selection
from assay.domain.suite import Task
from assay.store.opening import Store


def units(store: Store, *tasks: Task) -> list[int]:
    """Family code by task, of a run of these tasks."""
    store.journal.open_run(a_plan(), planned(*tasks))
    return [int(code) for code in family_codes(store.archive.scores.columns(Selection()).tasks)]


@pytest.mark.quick_postgresql
def test_tasks_of_equal_content_are_one_family(store: Store) -> None:
    copies = [
        a_task(name, prompt="What is 2 + 2?", snippets={"alice": "4"}) for name in ("a", "b", "c")
    ]
    others = [
        a_task("d", prompt="What is 2 + 3?"),
        a_task("e", prompt="What is 2 + 2?", family="sums"),
    ]
    assert units(store, *copies, *others) == [0, 0, 0, 3, 4]
    columns = store.archive.scores.columns(Selection())
    assert planned_families(columns.tasks) == 3
    (caution,) = cautions(columns)
    assert caution.code == "copies"
    assert caution.text.startswith(
        "3 of 5 tasks are copies of one task, with the same text and reference: a, b, c."
    )
    assert "count 3 instead of 5" in caution.text


def test_tasks_whose_snippets_differ_are_no_copies(store: Store) -> None:
    tasks = [a_task(name, prompt="Compare these.", snippets={"alice": name}) for name in ("a", "b")]
    assert units(store, *tasks, a_task("c", prompt="Compare these.")) == [0, 1, 2]


def test_tasks_of_code_are_copies_by_their_context_and_snippets(store: Store) -> None:
    code = "def add(a: int, b: int) -> int:\n    return a + b  # as the rules ask\n"
    tasks = [
        a_task(name, prompt=" ", snippets={"alice": code, "bob": code[:20]}) for name in ("a", "b")
    ]
    assert units(store, *tasks, a_task("c", prompt=" ", snippets={"alice": code, "bob": code})) == [
        0,
        0,
        2,
    ]


def test_short_responses_without_a_prompt_are_no_copies(store: Store) -> None:
    assert units(
        store,
        *(a_task(name, prompt=" ", snippets={"alice": "A", "bob": "B"}) for name in ("a", "b")),
    ) == [0, 1]


def test_tasks_without_a_text_are_no_copies(store: Store) -> None:
    assert units(store, *(a_task(name, prompt=" ") for name in ("a", "b"))) == [0, 1]


def test_tasks_without_copies_are_no_families(store: Store) -> None:
    assert units(store, a_task("a"), a_task("b")) == [0, 1]
    assert cautions(store.archive.scores.columns(Selection())) == ()
