"""Rules that withhold a comparison's result in one scope if it contradicts the result in the other
scope.

Theory. New tasks have the same trial noise as these tasks and also differ among themselves, so the
true range for tasks like these is at least as wide as the one for exactly these tasks. But both
ranges are estimated, and with few tasks the first can be narrower because the tasks happen to
agree. A report once showed "about tasks like these: +4.2 to +13.5, p = 0.026" below the headline
"Not decided, p = 0.19".

The headline is never changed. The second result is withheld, with a reason, in these cases:

* about tasks like these: if there are fewer than 3 tasks, if its range is narrower than the range
  for exactly these tasks, or if it is decided and the result for exactly these tasks is not;
* about exactly these tasks: if it is not decided although the headline about tasks like these is. A
  warning then states this.
"""

from dataclasses import replace

from assay.statistics.contrasts import ScopedDifference
from assay.statistics.scopes import FEWEST_TASKS_BESIDE, TASKS_LIKE_THESE
from assay.statistics.warnings import Caution, caution

ALPHA = 0.05


def why_withheld(
    headline: ScopedDifference, beside: ScopedDifference, *, n_tasks: int
) -> str | None:
    """Return the reason for withholding the result in the other scope, or None if it may be
    shown.
    """
    if beside.p_value is None:
        return None
    if beside.scope != TASKS_LIKE_THESE:
        return "wider_than_tasks_like_these" if _contradicts(headline, beside) else None
    if n_tasks < FEWEST_TASKS_BESIDE:
        return "need_at_least_3_tasks"
    narrower = (
        beside.ci95 is not None and headline.ci95 is not None and _width(beside) < _width(headline)
    )
    return "narrower_than_these_tasks" if narrower or _contradicts(beside, headline) else None


def withheld(answer: ScopedDifference, reason: str) -> ScopedDifference:
    """Return a copy of a result without its test and interval."""
    return replace(
        answer, ci95=None, std_err=None, t=None, df=None, p_value=None, method=None, reason=reason
    )


def wider_here(headline: ScopedDifference, beside: ScopedDifference) -> Caution | None:
    """Return a warning if the comparison is decided for tasks like these but not for exactly these
    tasks, else None.
    """
    if not _contradicts(headline, beside) or beside.p_value is None:
        return None
    return caution("narrower_by_chance", p=beside.p_value)


def _contradicts(like: ScopedDifference, these: ScopedDifference) -> bool:
    """True if the result for tasks like these is decided, and the result for exactly these tasks is
    undecided or opposite.
    """
    if like.p_value is None or like.p_value > ALPHA:
        return False
    if these.p_value is None or these.p_value > ALPHA:
        return True
    return (like.difference or 0.0) * (these.difference or 0.0) <= 0


def _width(answer: ScopedDifference) -> float:
    return 0.0 if answer.ci95 is None else answer.ci95[1] - answer.ci95[0]
