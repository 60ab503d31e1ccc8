"""Calibrations of judges."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "calibration",
        sa.Column("key", KEY, nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("prompt", sa.String(length=32), nullable=False),
        sa.Column("rubric", sa.String(length=32), nullable=False),
        sa.Column("parameters", sa.String(length=32), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("tier", sa.String(length=20), nullable=False),
        sa.Column("at", sa.String(length=30), nullable=False),
        sa.Column("body_key", KEY, nullable=False),
        sa.ForeignKeyConstraint(["body_key"], ["body.key"], name=op.f("fk_calibration_body_key_body")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_calibration")),
        sa.UniqueConstraint(
            "model",
            "prompt",
            "rubric",
            "parameters",
            "version",
            name=op.f("uq_calibration_model_prompt_rubric_parameters_version"),
        ),
    )
