"""Scopes of a result: new tasks of the same kind, exactly these tasks, or one task.

The ranges of the two scopes differ by a factor of 2 to 5, so every number names its scope. The default depends on the number of
*planned* tasks, so that it cannot change while reviews come in: choosing the scope that happens to be significant would be a
form of peeking.
"""

TASKS_LIKE_THESE = "tasks_like_these"
THESE_TASKS = "these_tasks"
THIS_TASK_ONLY = "this_task_only"

FEWEST_TASKS_TO_GENERALISE = 6
FEWEST_TASKS_BESIDE = 3
"""Minimum number of tasks for a result about exactly these tasks to come with a range for tasks like these."""


def checked_scope(scope: str | None) -> str | None:
    """Check a requested scope; None and `auto` mean the default rule.

    Raises:
        ValueError: the word is not a scope.
    """
    if scope in (None, "auto"):
        return None
    if scope in (TASKS_LIKE_THESE, THESE_TASKS):
        return scope
    raise ValueError(f"scope is {scope!r}; it must be None, {TASKS_LIKE_THESE!r} or {THESE_TASKS!r}")


def asked_scope(scope: str) -> str:
    """Return the scope to request for a second comparison, given the scope of the first."""
    return TASKS_LIKE_THESE if scope == TASKS_LIKE_THESE else THESE_TASKS


def default_scope(*, planned_units: int, repeated: bool) -> str:
    """Return the default scope of a result.

    Args:
        planned_units: number of tasks planned in the selected runs, or of their families.
        repeated: True if the data show trial noise (a task has at least two trials).
    """
    if planned_units >= FEWEST_TASKS_TO_GENERALISE:
        return TASKS_LIKE_THESE
    return THESE_TASKS if repeated or planned_units <= 1 else TASKS_LIKE_THESE
