"""Which processes carry out a run."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "execution",
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("owner", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_execution_run_key_run")),
        sa.PrimaryKeyConstraint("run_key", "owner", name=op.f("pk_execution")),
    )
