"""Other names of candidates, and the events by which names were mended."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "candidate_alias",
        sa.Column("folded", sa.Text(), nullable=False),
        sa.Column("candidate_key", KEY, nullable=False),
        sa.ForeignKeyConstraint(
            ["candidate_key"], ["candidate.key"], name=op.f("fk_candidate_alias_candidate_key_candidate")
        ),
        sa.PrimaryKeyConstraint("folded", name=op.f("pk_candidate_alias")),
    )
    op.create_table(
        "candidate_event",
        sa.Column("id", KEY, nullable=False),
        sa.Column("verb", sa.String(12), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("source_key", KEY, nullable=False),
        sa.Column("target_key", KEY, nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.String(30), nullable=False),
        sa.Column("undoes", KEY, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_candidate_event")),
    )
