"""A table for the sessions of signed-in browsers.

Until now a cookie was derived from the token and could not be ended.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Create the table; every browser signs in again."""
    if sa.inspect(op.get_bind()).has_table("session"):
        return  # one version of Assay created it under the number 0012
    op.create_table(
        "session",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("role", sa.String(12), nullable=False),
        sa.Column("name", sa.Text),
        sa.Column("granted_by", sa.String(64), nullable=False),
        sa.Column("begun", sa.String(30), nullable=False),
        sa.Column("until", sa.String(30), nullable=False),
        sa.Column("ended", sa.String(30)),
    )
    op.create_index("ix_session_granted_by", "session", ["granted_by"])
