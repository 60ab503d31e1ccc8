"""Record who stated a reviewer's name, if this was another person."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add `stated_by` to both tables of decisions; in earlier decisions it is unknown, and null."""
    for table in ("review_event", "control_event"):
        op.add_column(table, sa.Column("stated_by", sa.Text(), nullable=True))
