"""Requests to candidates that are programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.domain.calls import ModelRequest, Purpose, Role
from assay.domain.model import Parameters, of_program
from assay.domain.suite import Message, Scoring, Task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.domain.programs import Program


def request_to(
    program: Program,
    prompt: str = "hello",
    *,
    context: str = "",
    columns: Mapping[str, str] | None = None,
) -> ModelRequest:
    """Return a request about a task with one message."""
    task = Task(
        id="t1",
        thing="first",
        context=context,
        prompt=(Message(role="user", content=prompt),),
        expected="the right answer",
        scoring=Scoring(method="exact"),
        columns=columns or {},
    )
    return ModelRequest(
        model=of_program(program),
        messages=(Message(role="system", content="Be brief."), *task.prompt),
        parameters=Parameters(seed=7),
        purpose=Purpose(role=Role.CANDIDATE, task=task.id, trial=2),
        task=task,
    )
