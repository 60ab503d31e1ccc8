"""Scopes of a result: new tasks of the same kind, exactly these tasks, or one task.

The ranges of the two main scopes differ by a factor of 2 to 5, so every result names its scope. The
default depends on the number of *planned* tasks, so that it cannot change while reviews come in:
choosing the scope that happens to be significant would bias results.
"""

TASKS_LIKE_THESE = "tasks_like_these"
THESE_TASKS = "these_tasks"
THIS_TASK_ONLY = "this_task_only"

FEWEST_TASKS_TO_GENERALISE = 6
FEWEST_TASKS_BESIDE = 3
"""Minimum number of tasks for a result about exactly these tasks to come with a range for tasks
like these.
"""


def checked_scope(scope: str | None) -> str | None:
    """Return the requested scope; None and `auto` select the default rule.

    Raises ValueError for any other word.
    """
    if scope in (None, "auto"):
        return None
    if scope in (TASKS_LIKE_THESE, THESE_TASKS):
        return scope
    raise ValueError(
        f"scope is {scope!r}; it must be None, {TASKS_LIKE_THESE!r} or {THESE_TASKS!r}"
    )


def asked_scope(scope: str) -> str:
    """Return the scope to request for a second comparison so that it equals the scope of the
    first.
    """
    return TASKS_LIKE_THESE if scope == TASKS_LIKE_THESE else THESE_TASKS


def default_scope(*, planned_units: int, repeated: bool) -> str:
    """Return the default scope of a result.

    Args:
        planned_units: number of tasks planned in the selected runs, or number of families if tasks
            share families.
        repeated: True if a task has at least two trials, so that trial noise can be estimated.
    """
    if planned_units >= FEWEST_TASKS_TO_GENERALISE:
        return TASKS_LIKE_THESE
    return THESE_TASKS if repeated or planned_units <= 1 else TASKS_LIKE_THESE
