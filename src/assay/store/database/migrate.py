"""Upgrade an older store to the current tables with Alembic, imported late because that takes half
a second.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import delete

from assay.store.database import early_tables, schema

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Connection

MIGRATIONS = Path(__file__).parents[1] / "migrations"


def upgrade(connection: Connection) -> None:
    """Run all missing migrations inside the caller's transaction, in which SQLite's foreign keys
    must be off.
    """
    from alembic import command

    config = configuration()
    config.attributes["connection"] = connection
    if early_tables.are_early(connection):
        # the number says too little, so the first migration looks at the tables
        connection.execute(delete(schema.version))
    command.upgrade(config, "head")


def configuration() -> Config:
    """Return Alembic's settings; no configuration file is needed."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config
