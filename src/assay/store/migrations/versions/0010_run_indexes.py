"""Ways to the newest runs, to those of a suite or in a state, and to those that grade others, past all the rest."""

from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_index("ix_run_started", "run", ["started", "key"])
    op.create_index("ix_run_suite_key", "run", ["suite_key"])
    op.create_index("ix_run_state", "run", ["state"])
    op.create_index("ix_run_regrade_of", "run", ["regrade_of"])
