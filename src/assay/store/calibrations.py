"""Store calibrations of judges.

A calibration never changes; a newer calibration of the same judge replaces it.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection, Select, func, insert, select

from assay.domain.calibration_record import CalibrationRecord, JudgeIdentity, Tier
from assay.store.database import schema
from assay.store.database.codec import bytes_json, json_bytes, plain
from assay.store.database.connections import Database, take_keys
from assay.store.execution.writer_thread import Writer


class StoreCalibrations:
    """Stores and reads calibrations of judges; may be used from any thread."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    def keep(self, record: CalibrationRecord, /) -> CalibrationRecord:
        def keep(connection: Connection) -> CalibrationRecord:
            table = schema.calibration
            columns = {**asdict(record.identity), "model": plain(record.identity.model)}
            same = [table.c[name] == value for name, value in columns.items()]
            last = connection.execute(select(func.max(table.c.version)).where(*same)).scalar_one()
            version = (last or 0) + 1
            body_key = take_keys(connection, body=1)["body"].start
            self._database.insert(
                connection, schema.body, [(body_key, json_bytes(dict(record.document)))]
            )
            number = connection.execute(
                insert(table)
                .values(
                    **columns,
                    version=version,
                    tier=record.tier.value,
                    at=record.at,
                    body_key=body_key,
                )
                .returning(table.c.key)
            ).scalar_one()
            return replace(record, version=version, number=int(number))

        return self._writer.call(keep)

    def records(
        self,
        *,
        model: str | None = None,
        newest_only: bool = False,
        before: int | None = None,
        limit: int | None = None,
    ) -> tuple[CalibrationRecord, ...]:
        """Return up to `limit` calibrations, newest first, with numbers below `before`.

        With `newest_only`, return only the newest calibration of each judge identity.
        """
        table, statement = schema.calibration, _with_documents()
        if model is not None:
            statement = statement.where(table.c.model == plain(model))
        if before is not None:
            statement = statement.where(table.c.key < before)
        with self._database.reading() as connection:
            rows = connection.execute(statement.order_by(table.c.key.desc()).limit(limit)).all()
        records: dict[object, CalibrationRecord] = {}
        for row in rows:
            record = _record(row)
            records.setdefault(record.identity if newest_only else row.key, record)
        return tuple(records.values())

    def record(self, number: int, /) -> CalibrationRecord | None:
        with self._database.reading() as connection:
            row = connection.execute(
                _with_documents().where(schema.calibration.c.key == number)
            ).first()
        return None if row is None else _record(row)

    def newest_numbers(self) -> dict[JudgeIdentity, int]:
        """Return the number of each judge identity's newest calibration, without reading the
        calibrations.
        """
        table = schema.calibration
        own = (table.c.model, table.c.prompt, table.c.rubric, table.c.parameters)
        with self._database.reading() as connection:
            rows = connection.execute(
                select(*own, func.max(table.c.key).label("newest")).group_by(*own)
            ).all()
        return {_identity(row): int(row.newest) for row in rows}


def _with_documents() -> Select[Any]:
    table, body = schema.calibration, schema.body
    return select(table, body.c.content).join(body, body.c.key == table.c.body_key)


def _identity(row: Any) -> JudgeIdentity:
    return JudgeIdentity(
        model=row.model, prompt=row.prompt, rubric=row.rubric, parameters=row.parameters
    )


def _record(row: Any) -> CalibrationRecord:
    return CalibrationRecord(
        identity=_identity(row),
        tier=Tier(row.tier),
        at=row.at,
        version=row.version,
        document=bytes_json(row.content),
        number=int(row.key),
    )
