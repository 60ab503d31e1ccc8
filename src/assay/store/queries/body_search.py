"""Search stored documents for bytes without parsing them."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, LargeBinary, func, literal

from assay.store.database import schema


def body_holds(connection: Connection, text: bytes) -> ColumnElement[bool]:
    """Return an SQL condition that is true if a document in `body` contains these bytes."""
    content = schema.body.c.content
    if connection.dialect.name == "sqlite":  # LIKE does not work on bytes in this database
        return func.instr(content, literal(text, LargeBinary)) > 0
    escaped = text.replace(b"\\", rb"\\").replace(b"%", rb"\%").replace(b"_", rb"\_")
    return content.op("LIKE", is_comparison=True)(literal(b"%" + escaped + b"%", LargeBinary))
