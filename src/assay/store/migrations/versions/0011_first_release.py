"""The schema of the first release, where every later migration starts.

A new store gets its tables from `schema.py`. A store from before the release gets what its tables
lack.
"""

from alembic import op

from assay.store.database.early_tables import bring_to_first_release

revision = "0011"
down_revision = None


def upgrade() -> None:
    """Bring the tables of any earlier version to this schema."""
    bring_to_first_release(op.get_bind())
