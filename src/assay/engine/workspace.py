"""Let a model work in a workspace through tool calls, until a reply has no tool call or a limit is
reached.

Each reply is stored before the next request. After a kill, Assay repeats the tool calls of the
stored replies in a new workspace, so no reply is paid for twice.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from assay.domain.agent_limits import Spent
from assay.domain.assessment import Response
from assay.domain.model import ModelSpec
from assay.domain.run import CallRecord, ClaimedTrial, Entry
from assay.domain.scenarios import Scenario
from assay.domain.suite import CandidateSpec, Message, ToolMessage
from assay.engine.conversation import candidate_request
from assay.engine.run_context import RunContext
from assay.ports import WorkspaceSource

_SYSTEM: Final = (
    "You work in a repository by calling tools; paths are relative to its root. Carry out the task, check your work by running"
    " commands, and then answer with a summary of what you changed, without calling a tool."
)


async def work(
    context: RunContext,
    workspaces: WorkspaceSource,
    scenario: Scenario,
    claimed: ClaimedTrial,
    candidate: CandidateSpec,
    model: ModelSpec,
) -> tuple[Response, tuple[CallRecord, ...]]:
    """Return a workspace's report as a response, and the last call, which is not stored yet.

    Raises `GaveUp` if the model returned no usable answer or the budget is spent, and `CallFailed`
    if the workspace could not be prepared or checked.
    """
    opening = candidate_request(context.plan, claimed, candidate, model)
    messages: tuple[Message, ...] = (Message(role="system", content=_SYSTEM), *opening.messages)
    stored = list(claimed.spoken.get(candidate.name, ()))
    calls: tuple[CallRecord, ...] = ()
    answer, end = "", None
    spent = Spent()
    async with workspaces.open(scenario, claimed.task.id) as workspace:
        deadline = asyncio.get_running_loop().time() + 60 * scenario.minutes
        while end is None:
            if asyncio.get_running_loop().time() > deadline:
                end = "timed_out"
                break
            if stored:
                reply = stored.pop(0)
            else:
                if calls:
                    await context.journal.record(Entry(trial=claimed.key, calls=calls))
                request = replace(opening, messages=messages, tools=workspace.tools)
                async with context.slots:
                    answered = await context.asker.answer(
                        request, lambda reply: None, trial=claimed.key
                    )
                reply, calls = answered.reply, answered.calls
            answer, spent = (
                reply.text or answer,
                spent.plus(reply.usage.input_tokens, reply.usage.output_tokens, reply.cost_usd),
            )
            if not reply.tool_calls:
                end = "length limit" if reply.truncated else "done"
                break
            results = tuple([await workspace.use(call) for call in reply.tool_calls])
            messages += (
                ToolMessage(role="assistant", content=reply.text, calls=reply.tool_calls),
                ToolMessage(role="tool", content="", results=results),
            )
            end = scenario.limits.reached(spent)
        text = await workspace.report(answer=answer, end=end, turns=spent.turns)
    return Response(candidate=candidate.name, text=text), calls
