"""Since when a run goes on without a break, and how much of it was done then."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "stretch",
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("since", sa.String(length=30), nullable=False),
        sa.Column("done", KEY, nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_stretch_run_key_run")),
        sa.PrimaryKeyConstraint("run_key", name=op.f("pk_stretch")),
    )
