"""Notes on a suite that are shown before it runs."""

from __future__ import annotations

from tests.unit.suites.conftest import Load

from assay.suites.notes import notes_on

SUITE = """\
candidates: [echo]
judge: {model: openai/gpt-4o-mini, mode: each}
trials: TRIALS
tasks:
  - {id: auth, prompt: q, snippets: {alice: x, carol: y}}
  - {id: cache, prompt: q, snippets: {alice: x}}
  - {id: queue, prompt: q, snippets: {alice: x, echo: y}}
  - {id: later, prompt: q, weight: 0}
"""


def test_gaps_are_named(load: Load) -> None:
    notes = notes_on(load(SUITE.replace("TRIALS", "3")))
    assert notes == (
        "carol has no snippet for cache, queue.",
        "echo is a model, but its snippet is used for queue.",
        "Weight 0 leaves out later.",
    )


def test_few_judged_trials_are_named_unless_the_command_asks_for_more(load: Load) -> None:
    suite = load(SUITE.replace("TRIALS", "2"))
    assert (
        "With fewer than 3 trials, nothing shows how much the judge's grades vary: auth, cache, queue."
        in notes_on(suite)
    )
    assert not any("fewer than 3" in note for note in notes_on(suite, trials=5))


def test_many_tasks_are_counted(load: Load) -> None:
    rows = "".join(f"  - {{id: t{n}, expected: x, snippets: {{p: x}}}}\n" for n in range(9))
    suite = load(
        f"score: exact\ntasks:\n{rows}  - {{id: last, expected: x, snippets: {{p: x, q: x}}}}\n"
    )
    assert notes_on(suite) == ("q has no snippet for 9 of 10 tasks (t0, t1, t2, ...).",)
