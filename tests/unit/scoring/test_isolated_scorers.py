"""Scorers that need a child process: what they ask for, what they read, and the whole way through
real workers.
"""

from __future__ import annotations

import asyncio
import time

import pytest

from assay.domain.assessment import Response
from assay.domain.errors import SuiteError
from assay.domain.failure import Fault
from assay.domain.isolation import IsolatedRequest, Returned, StopKind, Stopped
from assay.domain.suite import Scoring, Task
from assay.sandbox.workers import WorkerPool
from assay.scoring.evaluator import Answer, Evaluator, GradingAttempt, Unscorable
from assay.scoring.evaluators import evaluators_for
from assay.scoring.extraction import extracted, way_problems

SOURCE = """
def by_length(response, reference, options):
    return {"score": min(1, len(response) / options.get("most", 10)), "note": "length", "confidence": 0.5}

def forever(response, reference, options):
    while True: pass

def wild(response, reference, options):
    return 17

def undecided(response, reference, options):
    return None

def right(response, reference, options):
    return response == reference
"""


def grading(
    response: str, expected: str = "5", method: str = "math", **scoring: object
) -> tuple[GradingAttempt, Scoring]:
    how = Scoring(method=method, **scoring)  # type: ignore[arg-type]
    task = Task(id="t", thing="t", expected=expected, scoring=how)
    return GradingAttempt(task=task, responses=(Response(candidate="ada", text=response),)), how


def assess(
    pool: WorkerPool, response: str, expected: str = "5", method: str = "math", **scoring: object
) -> float | None:
    """The score by way of the pool's children; raises Unscorable."""
    seat, _ = grading(response, expected, method, **scoring)
    (evaluator,) = evaluators_for(seat.task, (), None)

    async def answered() -> tuple[Answer, ...]:
        try:
            requests = evaluator.ask(seat)
            return tuple(
                [await pool.call(asked) for asked in requests if isinstance(asked, IsolatedRequest)]
            )
        finally:
            await pool.close()

    assessment = evaluator.read(seat, asyncio.run(answered()))
    return assessment.scores["ada"]  # type: ignore[union-attr]


def graded_or_candidates_fault(
    evaluator: Evaluator, seat: GradingAttempt, answers: tuple[Answer, ...]
) -> bool:
    try:
        return evaluator.read(seat, answers).scores == {"ada": 0.0}  # type: ignore[union-attr]
    except Unscorable as unscored:
        return unscored.fault is Fault.CANDIDATE


def test_most_answers_need_no_child() -> None:
    seat, _ = grading(r"thus \boxed{5}.")
    (evaluator,) = evaluators_for(seat.task, (), None)
    assert evaluator.ask(seat) == ()
    assert evaluator.read(seat, ()).scores == {"ada": 1.0}  # type: ignore[union-attr]


def test_algebra_is_asked_for_and_read() -> None:
    seat, _ = grading("(x+1)^2", "x^2+2x+1")
    (evaluator,) = evaluators_for(seat.task, (), None)
    (asked,) = evaluator.ask(seat)
    assert isinstance(asked, IsolatedRequest)
    assert evaluator.read(seat, (Returned(True),)).scores == {"ada": 1.0}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (StopKind.TIMEOUT, Fault.CANDIDATE),
        (StopKind.MEMORY, Fault.CANDIDATE),
        (StopKind.CRASHED, Fault.HARNESS),
    ],
)
def test_an_answer_beyond_the_limits_is_unscored(kind: StopKind, fault: Fault) -> None:
    seat, _ = grading("9^{9^9}", "x")
    (evaluator,) = evaluators_for(seat.task, (), None)
    with pytest.raises(Unscorable) as caught:
        evaluator.read(seat, (Stopped(kind, "It did."),))
    assert (caught.value.kind, caught.value.fault) == (f"answer_{kind}", fault)


@pytest.mark.slow
@pytest.mark.parametrize(
    "response",
    [
        "9**9**9",
        "9^{9^9}",
        "$10^{10^{10^{10}}}$",
        "1000000!",
        "x" * 10**6,
        "9" * 10**6,
        "1," * 500_000,
        "$x " * 300_000,
        "{" * 10_000 + "1" + "}" * 10_000,
        "\\boxed{" * 10_000 + "1" + "}" * 10_000,
        "\\boxed{" * 150_000,
        "\\frac{1}{" * 10_000,
        "answer is " * 100_000,
        "#### " * 200_000,
        "\\sqrt{" * 39 + "2" + "}" * 39,
        "\\boxed{1} and " * 80_000,
        "(x+y+z)^{3000}",
        "\\boxed{" + "x^" * 900 + "2}",
    ],
    ids=range(18),
)
def test_no_answer_holds_a_run_up(response: str) -> None:
    pytest.importorskip("math_verify", reason="the extra `math` is not installed")
    seat, _ = grading(response, "x^2+1")
    (evaluator,) = evaluators_for(seat.task, (), None)

    async def timed() -> tuple[float, tuple[Answer, ...]]:
        pool = WorkerPool(size=1)
        try:
            await pool.call(
                IsolatedRequest(
                    function="same_answer",
                    arguments={"given": "x", "wanted": "y+1"},
                    time_limit_s=60,
                )
            )
            began = time.perf_counter()
            asked = [
                request for request in evaluator.ask(seat) if isinstance(request, IsolatedRequest)
            ]
            answers = tuple([await pool.call(request) for request in asked])
            return time.perf_counter() - began, answers
        finally:
            await pool.close()

    seconds, answers = asyncio.run(timed())
    assert seconds < 10
    assert graded_or_candidates_fault(evaluator, seat, answers)


def test_a_suites_own_scorer_runs_in_a_child() -> None:
    pool = WorkerPool(size=1)
    own = {"source": SOURCE, "method": "scorers.py:by_length"}
    assert assess(pool, "12345", **own) == 0.5
    assert assess(pool, "12345", options={"most": 5}, **own) == 1.0
    assert assess(pool, "5", source=SOURCE, method="scorers.py:right") == 1.0


@pytest.mark.parametrize(
    ("name", "kind"),
    [("wild", "scorer_bad_value"), ("undecided", "scorer_undecided"), ("absent", "scorer_crashed")],
)
def test_a_suites_own_scorer_that_fails_is_no_score(name: str, kind: str) -> None:
    with pytest.raises(Unscorable) as caught:
        assess(WorkerPool(size=1), "12345", source=SOURCE, method=f"scorers.py:{name}")
    assert (caught.value.kind, caught.value.fault) == (kind, Fault.HARNESS)


def test_a_plugin_that_is_gone_is_no_score() -> None:
    with pytest.raises(SuiteError, match="is `gone`, which no installed package offers"):
        assess(WorkerPool(size=1), "12345", method="gone", plugin=True)


@pytest.mark.parametrize(
    ("text", "way", "part"),
    [
        ("a\nb \n\n", "last_line", "b"),
        ("", "last_line", None),
        ("x\n```python\nprint(1)\n```\ny", "fenced", "print(1)"),
        ("```\n1\n```\n~~~\n2\n~~~", "fenced", "2"),
        ("```json\n{}", "fenced", "{}"),
        ("no fence", "fenced", None),
        ("I think\nA: 18", "final_answer", "18"),
        ('so: {"a": {"b": [3, "four"]}}', "$.a.b[1]", "four"),
        ('```json\n{"a": {"b": 3}}\n```', "$.a", '{"b": 3}'),
        ('{"a": 1}', "$.b", None),
        ("no json", "$.a", None),
    ],
)
def test_a_part_of_a_response(text: str, way: str, part: str | None) -> None:
    assert extracted(text, way) == part


def test_extracted_answer_is_the_scored_one() -> None:
    seat, _ = grading(
        "thinking of London\nParis", "Paris", "exact", options={"extract": "last_line"}
    )
    (evaluator,) = evaluators_for(seat.task, (), None)
    assert evaluator.read(seat, ()).scores == {"ada": 1.0}  # type: ignore[union-attr]
    seat, _ = grading("thinking of Paris", "Paris", "exact", options={"extract": "fenced"})
    (evaluator,) = evaluators_for(seat.task, (), None)
    assessment = evaluator.read(seat, ())
    assert assessment.scores == {"ada": 0.0}  # type: ignore[union-attr]
    assert "nothing to extract" in assessment.grades[0].reason  # type: ignore[union-attr]


def test_a_wrong_extract_is_said_with_its_mend() -> None:
    assert list(way_problems("$.a.b[0]")) == []
    assert "Did you mean 'last_line'" in next(way_problems("last-line"))
    assert next(way_problems(3))
