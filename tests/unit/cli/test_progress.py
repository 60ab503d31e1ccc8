"""Progress in plain lines: one line per cause of failure, and the corrected cost of the rest."""

from __future__ import annotations

from io import StringIO

from assay.cli.progress import progress_on
from assay.domain.calls import Role
from assay.domain.events import CallEnded, Event, RunEnded, RunStarted, TrialEnded
from assay.domain.failure import Failure, Fault
from assay.domain.identifiers import RunId
from assay.domain.remaining_cost import CallsAhead

RUN = RunId("r")
AHEAD = (CallsAhead(role="candidate", model="openai/m", calls=1_000, usd_per_call=1.0),)


def written(*events: Event) -> list[str]:
    stream = StringIO()
    with progress_on(stream) as listener:
        for event in events:
            listener(event)
    return stream.getvalue().splitlines()


def started(*, budget_left_usd: float | None = None) -> RunStarted:
    return RunStarted(
        run=RUN,
        suite="s",
        total=1_000,
        left=1_000,
        concurrency=50,
        ahead=AHEAD,
        budget_left_usd=budget_left_usd,
    )


def failed(kind: str, detail: str) -> TrialEnded:
    return TrialEnded(
        task="t",
        thing="t",
        k=1,
        of=1,
        failure=Failure(kind=kind, fault=Fault.PROVIDER, detail=detail),
    )


def answered() -> CallEnded:
    return CallEnded(
        role=Role.CANDIDATE,
        model="openai/m",
        input_tokens=1,
        output_tokens=1,
        cost_usd=0.01,
        failure=None,
    )


def test_each_cause_has_one_line_and_its_count_at_the_end() -> None:
    failures = [failed("http_500", f"request {n} broke.") for n in range(40)] + [
        failed("refused", "the model refused.")
    ]
    lines = written(started(), *failures, RunEnded(run=RUN, finished=True))
    assert sum("failed: http_500" in line and line.startswith("Trial") for line in lines) == 1
    assert sum("failed: refused" in line and line.startswith("Trial") for line in lines) == 1
    assert lines[-2:] == [
        "failed: 40 trials: http_500 (provider): request 0 broke.",
        "failed: 1 trial: refused (provider): the model refused.",
    ]


def test_the_rest_costs_what_the_calls_so_far_cost() -> None:
    ended = RunEnded(run=RUN, finished=False)
    assert "more" not in written(started(), *[answered()] * 49, ended)[-1]
    assert "about $9.50 more" in written(started(), *[answered()] * 50, ended)[-1]
    assert (
        "over the budget"
        not in written(started(budget_left_usd=10.1), *[answered()] * 50, ended)[-1]
    )
    assert (
        "about $9.50 more, over the budget"
        in written(started(budget_left_usd=9.9), *[answered()] * 50, ended)[-1]
    )
