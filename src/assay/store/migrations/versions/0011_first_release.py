"""The tables of the first release, where every migration starts.

It creates nothing: a new store gets its tables from `schema.py`, and no store older than this is upgraded. Tests start from
the statements kept in `tests/upgrade`.
"""

revision = "0011"
down_revision = None


def upgrade() -> None:
    """Do nothing: a store at this revision has its tables."""
