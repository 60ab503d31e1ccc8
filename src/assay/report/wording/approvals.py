"""Words for approved grades: how many there are, and how each decision came about.

Every surface that prints a number of approved grades takes its words from here, so that none of
them can present a script's approvals as reviews.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from assay.domain.review import Road, Via
from assay.report.wording.numbers import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.domain.review import Approvals, Decision

_ROADS: Final = {
    Road.SHOWN: "read on screen",
    Road.SCRIPTED: "by script",
    Road.IMPORTED: "imported",
}

NONE_APPROVED: Final = "none approved by a person"

SESSION_APPROVALS: Final = "{n} approved on screen"
"""Text for the number of a reviewer's approvals in one session of the review page, whose script
fills in `n`.
"""

_ALLOWED: Final = "; the project's setting `count_scripted: true` accepts approvals by script"


def approvals(numbers: Approvals) -> str:
    """State how many grades people approved, and how: `28 approved: 21 read on screen, 7 by
    script`; empty without any.
    """
    return f"{numbers.total:,} approved: {approval_roads(numbers)}" if numbers.total else ""


def approvals_cell(numbers: Approvals) -> str:
    """State the same in a column headed `approved`: `28: 21 read on screen, 7 by script`, or
    `0`.
    """
    return f"{numbers.total:,}: {approval_roads(numbers)}" if numbers.total else "0"


def approval_roads(numbers: Approvals) -> str:
    """State how the approvals came about: `21 read on screen, 7 by script`; empty without any."""
    parts = (
        (numbers.shown, Road.SHOWN),
        (numbers.scripted, Road.SCRIPTED),
        (numbers.imported, Road.IMPORTED),
    )
    text = ", ".join(f"{number:,} {_ROADS[taken]}" for number, taken in parts if number)
    return text + _ALLOWED if numbers.scripted and numbers.scripted_allowed else text


def road(taken: Road) -> str:
    """State how one decision came about: `read on screen`, `by script` or `imported`."""
    return _ROADS[taken]


def decision_road(decision: Decision) -> str:
    """State how one decision came about and where: `read on screen in the browser`, `by script` or
    `imported`.
    """
    screens = {Via.PAGE: " in the browser", Via.TERMINAL: " in the terminal"}
    return _ROADS[decision.road] + (
        screens.get(decision.via, "") if decision.road is Road.SHOWN else ""
    )


def opinions_hidden(n: int) -> str:
    """State that a reader may not see another person's opinion before giving their own."""
    other = "1 opinion of another person is" if n == 1 else f"{n:,} opinions of other people are"
    return f"{other} shown once you have given yours."


def approved_or_corrected(n: int) -> str:
    """State on how many assessments a figure about corrections rests: `12 approved or corrected
    assessments`.
    """
    return f"{n:,} approved or corrected {'assessment' if n == 1 else 'assessments'}"


def runs_approved(n: int) -> str:
    """State how many runs have grades that were approved or corrected, beside the sentence about
    how that came about.
    """
    return f"The grades of {count(n, 'run')} were approved or corrected."


def reviewer_decisions(*, approved: int, corrected: int, rejected: int, blind: int) -> str:
    """Count one reviewer's decisions: `4 decisions: 3 approved, 1 corrected, 0 rejected; 2 of them
    blind first.`
    """
    decisions = count(approved + corrected + rejected, "decision")
    return f"{decisions}: {approved:,} approved, {corrected:,} corrected, {rejected:,} rejected; {blind:,} of them blind first."


def scripted_refused(numbers: Approvals, ids: Sequence[str]) -> str:
    """State that approvals by script do not count as vetted: `7 of 28 approvals were made by
    script: a1, a2 and 5 more.`
    """
    were = "was" if numbers.scripted == 1 else "were"
    more = f" and {numbers.scripted - len(ids):,} more" if numbers.scripted > len(ids) else ""
    named = f" ({', '.join(ids)}{more})" if ids else ""
    return f"{numbers.scripted:,} of {count(numbers.total, 'approval')} {were} made by script{named}, not on a reviewer's screen."


def none_counts(waiting: int) -> str:
    """State that a result has no grade that could be vetted: `No grade counts yet: 4 trials await
    review.`
    """
    return f"No grade counts yet: {count(waiting, 'trial')} {'awaits' if waiting == 1 else 'await'} review."


def unseen_refused(n: int) -> str:
    """State that grades seen by no person do not count as vetted."""
    return f"{count(n, 'counted grade')} {'was' if n == 1 else 'were'} seen by no person, because the review policy exempts them."
