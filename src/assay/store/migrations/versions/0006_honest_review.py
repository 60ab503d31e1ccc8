"""How the reviewing was done, and what was put before reviewers beside real items."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "observation",
        sa.Column("id", KEY, nullable=False),
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("assessment_key", KEY, nullable=False),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("at", sa.String(length=30), nullable=False),
        sa.Column("once", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_observation_run_key_run")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_observation")),
        sa.UniqueConstraint("once", name=op.f("uq_observation_once")),
    )
    op.create_index("ix_observation_assessment_key", "observation", ["assessment_key", "kind"])
    op.create_index("ix_observation_run_kind", "observation", ["run_key", "kind"])
    op.create_index("ix_observation_reviewer_kind", "observation", ["reviewer", "kind"])
    op.create_table(
        "aside",
        sa.Column("key", KEY, autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("assessment_key", KEY, nullable=False),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("made", sa.String(length=30), nullable=False),
        sa.Column("done", sa.Boolean(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["assessment_key"], ["assessment.key"], name=op.f("fk_aside_assessment_key_assessment")
        ),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_aside_run_key_run")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_aside")),
    )
    op.create_index("ix_aside_reviewer", "aside", ["reviewer", "run_key", "done"])
    op.create_index("ix_aside_assessment_key", "aside", ["assessment_key"])
