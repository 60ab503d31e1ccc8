"""The script that Alembic runs to migrate a store.

It uses the caller's connection and transaction.
"""

from alembic import context

from assay.store.database import schema

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=schema.metadata,
    version_table=schema.VERSION_TABLE,
    transaction_per_migration=False,
)
context.run_migrations()
