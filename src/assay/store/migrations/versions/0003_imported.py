"""What was imported."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "imported",
        sa.Column("key", KEY, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("format", sa.String(length=40), nullable=False),
        sa.Column("dataset", sa.String(length=64), nullable=True),
        sa.Column("suite_key", KEY, nullable=False),
        sa.Column("run_key", KEY, nullable=True),
        sa.Column("owner", sa.String(length=40), nullable=True),
        sa.Column("at", sa.String(length=30), nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_imported_run_key_run")),
        sa.ForeignKeyConstraint(["suite_key"], ["suite.key"], name=op.f("fk_imported_suite_key_suite")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_imported")),
    )
    op.create_index("ix_imported_digest", "imported", ["digest"])
    op.create_index("ix_imported_dataset", "imported", ["dataset"])
