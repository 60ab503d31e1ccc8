"""Which waiting assessments lie on whose desk, and a task's trials and assessments within a run."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "lease",
        sa.Column("assessment_key", KEY, autoincrement=False, nullable=False),
        sa.Column("desk", sa.Text(), nullable=False),
        sa.Column("until", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("assessment_key", name=op.f("pk_lease")),
    )
    op.create_index("ix_assessment_run_task", "assessment", ["run_key", "task_key"])
