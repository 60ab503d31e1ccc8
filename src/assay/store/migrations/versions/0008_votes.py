"""Votes of the arena."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "vote",
        sa.Column("id", KEY, nullable=False),
        sa.Column("once", sa.Text(), nullable=True),
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("trial_key", KEY, nullable=False),
        sa.Column("left_place", sa.Integer(), nullable=False),
        sa.Column("right_place", sa.Integer(), nullable=False),
        sa.Column("choice", sa.String(length=12), nullable=False),
        sa.Column("undoes", KEY, nullable=True),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("active_ms", KEY, nullable=True),
        sa.Column("telling", sa.Boolean(), nullable=False),
        sa.Column("at", sa.String(length=30), nullable=False),
        sa.Column("previous_hash", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_vote_run_key_run")),
        sa.ForeignKeyConstraint(["trial_key"], ["trial.key"], name=op.f("fk_vote_trial_key_trial")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vote")),
        sa.UniqueConstraint("once", name=op.f("uq_vote_once")),
        sa.UniqueConstraint("undoes", name=op.f("uq_vote_undoes")),
    )
    op.create_index("ix_vote_run_reviewer", "vote", ["run_key", "reviewer", "trial_key"])
    op.create_index("ix_vote_trial_key", "vote", ["trial_key"])
