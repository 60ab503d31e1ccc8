"""Totals of a run's calls by candidate or judge: tokens, cost, time and failures."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, case, func, select

from assay.domain.calls import Role
from assay.domain.identifiers import TrialKey
from assay.domain.selection import CallsOfTrial, CallTotals
from assay.store.database import schema
from assay.store.queries.filters import find_run
from assay.store.queries.plans import run_key_of

AMOUNTS: Final = ("input_tokens", "output_tokens", "cost_usd")


def call_totals(connection: Connection, run: str, /) -> tuple[CallTotals, ...]:
    """Return totals of a run's calls by candidate, judge or other model; raises `UnknownName`."""
    run_key = run_key_of(connection, find_run(connection, run))
    table, candidate, grader = schema.call, schema.candidate, schema.grader
    # A call to a judge that grades one candidate at a time has both keys.
    asked = case(
        (table.c.role == Role.JUDGE.value, grader.c.name),
        (table.c.role == Role.STRUCTURER.value, table.c.model),
        else_=candidate.c.name,
    ).label("name")
    failed = case((table.c.fail_kind.is_not(None), 1), else_=0)
    # calls have no index by run
    trials_of_run = select(schema.trial.c.key).where(schema.trial.c.run_key == run_key)
    rows: Any = connection.execute(
        select(
            table.c.role,
            asked,
            table.c.model,
            table.c.model_version,
            func.count().label("calls"),
            func.sum(failed).label("failed"),
            func.sum(func.coalesce(table.c.input_tokens, 0)).label("input_tokens"),
            func.sum(func.coalesce(table.c.output_tokens, 0)).label("output_tokens"),
            func.sum(table.c.cost_usd).label("cost_usd"),
            func.sum(case((table.c.cost_usd.is_(None), 1), else_=0)).label("unpriced"),
            func.sum(table.c.latency_s).label("latency_s"),
            func.min(table.c.started).label("first"),
            func.max(table.c.started).label("last"),
        )
        .join(candidate, candidate.c.key == table.c.candidate_key, isouter=True)
        .join(grader, grader.c.key == table.c.grader_key, isouter=True)
        .where(table.c.trial_key.in_(trials_of_run))
        .group_by(table.c.role, asked, table.c.model, table.c.model_version)
    ).all()
    totals = [
        CallTotals(
            role=row.role,
            name=row.name or "",
            model=row.model,
            model_version=row.model_version,
            calls=int(row.calls),
            failed=int(row.failed),
            input_tokens=int(row.input_tokens),
            output_tokens=int(row.output_tokens),
            cost_usd=None if row.unpriced == row.calls else float(row.cost_usd),
            latency_s=None if row.latency_s is None else float(row.latency_s),
            first=row.first,
            last=row.last,
        )
        for row in rows
    ]
    return tuple(
        sorted(
            totals,
            key=lambda row: (
                row.role != Role.CANDIDATE,
                row.name,
                row.model,
                row.model_version or "",
            ),
        )
    )


def calls_by_trial(connection: Connection, run: str, /) -> tuple[CallsOfTrial, ...]:
    """Sum the calls of each trial by role, candidate and grader; raises `UnknownName`."""
    run_key = run_key_of(connection, find_run(connection, run))
    table, candidate, grader, trial = schema.call, schema.candidate, schema.grader, schema.trial
    groups = (
        table.c.trial_key,
        table.c.role,
        candidate.c.name.label("candidate"),
        grader.c.name.label("grader"),
    )
    rows: Any = connection.execute(
        select(
            *groups,
            func.count().label("calls"),
            func.sum(func.coalesce(table.c.latency_s, 0.0)).label("seconds"),
            *(func.sum(table.c[name]).label(name) for name in AMOUNTS),
            *(func.count(table.c[name]).label(f"{name}_known") for name in AMOUNTS),
        )
        .join(trial, trial.c.key == table.c.trial_key)
        .join(candidate, candidate.c.key == table.c.candidate_key, isouter=True)
        .join(grader, grader.c.key == table.c.grader_key, isouter=True)
        .where(trial.c.run_key == run_key)
        .group_by(*groups)
    ).all()
    return tuple(
        CallsOfTrial(
            trial=TrialKey(row.trial_key),
            role=Role(row.role),
            candidate=row.candidate,
            grader=row.grader,
            calls=int(row.calls),
            seconds=float(row.seconds),
            **{
                name: getattr(row, name) if getattr(row, f"{name}_known") == row.calls else None
                for name in AMOUNTS
            },
        )
        for row in rows
    )
