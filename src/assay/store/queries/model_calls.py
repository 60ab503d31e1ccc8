"""Calls to models in the whole store, read incrementally so that a process adds up each call once.

Calls are only appended, and their keys follow the order of commits. A reader that remembers the
newest key can continue from it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import Connection, and_, case, exists, func, or_, select

from assay.domain.identifiers import RunId
from assay.domain.lifecycle import SET_ASIDE, TrialState
from assay.domain.model_calls import CallFact, CallGroup
from assay.domain.programs import KINDS
from assay.store.database import schema
from assay.store.database.codec import bytes_text, plain
from assay.store.queries.call_totals import call_totals, calls_by_trial
from assay.store.queries.snapshots import Queries, snapshot

_LATENCY_WINDOW: Final = 50_000
"""Maximum calls, of all models, that are searched for a model's newest latencies."""


def call_groups(connection: Connection, after: int, /) -> tuple[int, tuple[CallGroup, ...]]:
    """Return the newest call's key, and sums over calls with keys above `after`, by run, role,
    model and outcome.
    """
    table, run = schema.call, schema.run
    # A process adds up all calls once, and from then on only adds the calls made since.
    newest = connection.execute(select(func.coalesce(func.max(table.c.key), 0))).scalar_one()
    if newest <= after:
        return after, ()
    # A failed call without a token count is assumed to have cost nothing.
    answered = or_(table.c.fail_kind.is_(None), table.c.input_tokens.is_not(None))
    own = (table.c.run_key, table.c.role, table.c.model, table.c.fail_kind, table.c.fail_fault)
    summed = (
        select(
            *own,
            func.count().label("calls"),
            func.sum(func.coalesce(table.c.input_tokens, 0)).label("input_tokens"),
            func.sum(func.coalesce(table.c.output_tokens, 0)).label("output_tokens"),
            func.sum(func.coalesce(table.c.cost_usd, 0.0)).label("cost_usd"),
            func.sum(case((and_(table.c.cost_usd.is_(None), answered), 1), else_=0)).label(
                "unpriced"
            ),
            func.min(table.c.key).label("first_call"),
            func.max(table.c.key).label("last_call"),
        )
        .where(table.c.key > after, table.c.key <= newest)
        .group_by(*own)
        .subquery()
    )
    rows: Any = connection.execute(
        select(summed, run.c.id.label("run_id"))
        .join(run, run.c.key == summed.c.run_key)
        .where(run.c.state.not_in([state.value for state in SET_ASIDE]))
        .order_by(summed.c.last_call)
    ).all()
    return int(newest), tuple(
        CallGroup(
            run_key=row.run_key,
            run_id=RunId(row.run_id),
            role=row.role,
            model=row.model,
            kind=row.fail_kind,
            fault=row.fail_fault,
            calls=int(row.calls),
            input_tokens=int(row.input_tokens),
            output_tokens=int(row.output_tokens),
            cost_usd=float(row.cost_usd),
            unpriced=int(row.unpriced),
            first_call=int(row.first_call),
            last_call=int(row.last_call),
        )
        for row in rows
    )


def call_facts(connection: Connection, keys: Collection[int], /) -> tuple[CallFact, ...]:
    """Return calls by key, sorted by key; unknown keys are omitted."""
    table = schema.call
    columns = (
        table.c.fail_kind.label("kind"),
        table.c.fail_fault.label("fault"),
        table.c.fail_detail.label("detail"),
    )
    rows: Any = connection.execute(
        select(
            table.c.key.label("call"), table.c.run_key, table.c.started, table.c.latency_s, *columns
        )
        .where(table.c.key.in_(sorted(keys)))
        .order_by(table.c.key)
    )
    return tuple(CallFact(**row) for row in rows.mappings())


def newest_latencies(
    connection: Connection, model: str, /, *, role: str, first: int, last: int, limit: int
) -> tuple[float, ...]:
    """Return a model's newest successful latencies in seconds, for calls between two keys, newest
    first.
    """
    table = schema.call
    first = max(first, last - _LATENCY_WINDOW)
    rows = connection.execute(
        select(table.c.latency_s)
        .where(
            and_(table.c.key >= first, table.c.key <= last),
            table.c.model == plain(model),
            table.c.role == role,
            table.c.fail_kind.is_(None),
            table.c.latency_s.is_not(None),
        )
        .order_by(table.c.key.desc())
        .limit(limit)
    )
    return tuple(float(value) for value in rows.scalars())


def missing_answers(connection: Connection) -> dict[int, int]:
    """Count the requests without an answer in imported files, by run number; runs without such
    requests are omitted.
    """
    trial, imported = schema.trial, schema.imported
    runs = select(imported.c.run_key).where(imported.c.run_key.is_not(None))
    rows = connection.execute(
        select(trial.c.run_key, func.count().label("n"))
        .where(
            trial.c.run_key.in_(runs),
            trial.c.state == TrialState.FAILED.value,
            trial.c.fail_kind == "missing",
        )
        .group_by(trial.c.run_key)
    )
    return {row.run_key: int(row.n) for row in rows}


def program_logs(connection: Connection, trial: int, /) -> dict[str, str]:
    """Return the output and traceback of each candidate program's last call in a trial, by
    candidate.
    """
    table, body, candidate = schema.call, schema.body, schema.candidate
    rows = connection.execute(
        select(candidate.c.name, body.c.content)
        .join(candidate, candidate.c.key == table.c.candidate_key)
        .join(body, body.c.key == table.c.body_key)
        # The body of any other call is a reply: an unreadable one of a model, or an earlier turn of
        # a conversation.
        .where(
            table.c.trial_key == trial,
            or_(*(table.c.model.startswith(f"{kind}/") for kind in KINDS)),
            or_(
                table.c.fail_kind.is_not(None),
                exists().where(schema.response.c.call_key == table.c.key),
            ),
        )
        .order_by(table.c.key)
    )
    return {row.name: bytes_text(row.content) for row in rows}


class CallQueries(Queries):
    """Queries about calls to models."""

    totals = snapshot(call_totals)
    by_trial = snapshot(calls_by_trial)
    groups = snapshot(call_groups)
    facts = snapshot(call_facts)
    newest_latencies = snapshot(newest_latencies)
    program_logs = snapshot(program_logs)
    missing_answers = snapshot(missing_answers)
