"""The schema of the first release, where every later migration starts.

It changes nothing: a new store gets its tables from `schema.py`, and older stores were never released. Tests use the statements
in `tests/upgrade`.
"""

revision = "0011"
down_revision = None


def upgrade() -> None:
    """Do nothing, because a store of this revision already has its tables."""
