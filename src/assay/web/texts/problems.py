"""The sentences of pages that say what went wrong."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "problem.said": "Error {status} at",
    "problem.unknown": "There is no {kind} “{name}”",
    "problem.unknown.lead": "It may have been removed, be kept in another store, or its name may be written differently.",
    "problem.near": "Did you mean one of these?",
    "problem.near.one": "Did you mean this?",
    "problem.page": "There is no such page",
    "problem.page.lead": "Nothing is kept under this address. A letter may be wrong in it, or the page has another place now.",
    "problem.covered": "Statistics wait for the review",
    "problem.covered.more": "Numbers that move with one decision and not with the next would tell which items are checks."
    " They are told once nothing waits. Whoever does not review, or minds knowing less than waiting, may see them now.",
    "problem.covered.anyway": "Show them now",
    "problem.refused": "Not possible now",
    "problem.address": "Something in the address is not right",
    "problem.found": "What it says",
    "problem.right": "What is right",
    "problem.nothing": "nothing",
    "problem.ours": "Something broke",
    "problem.ours.lead": "The server made a mistake while it made this page. Nothing was changed by it. What happened stands in "
    "the server's log, in the window in which it was started.",
    "problem.store": "The store does not answer",
    "problem.foreign": "This was not let in",
    "problem.method": "This address is not for looking at",
    "problem.method.lead": "It takes what a page or a program sends, and shows nothing by itself.",
    "problem.large": "That was too much at once",
    "problem.other": "That did not work",
    "problem.again": "Try again",
    "problem.back": "Back to where you came from",
    "problem.without": "Open it without that",
    "problem.plain": "Open it without filters",
    "problem.review_run": "Review what waits in this run",
    "problem.the_run": "Open the run",
    "problem.home": "Queue",
    "problem.all.run": "All runs",
    "problem.all.candidate": "All candidates",
    "problem.all.model": "All models",
    "problem.all.rubric": "All criteria",
    "problem.all.calibration": "All measured judges",
    "problem.all.reviewer": "All reviewers",
    "problem.all.suite": "All suites",
    "problem.all.assessment": "Review what waits",
    # what a part of an address may be
    "right.whole": "a whole number",
    "right.number": "a number",
    "right.least": "{number} or more",
    "right.most": "{number} or less",
    "right.chars": "at most {number} characters",
    "right.chars_least": "at least {number} characters",
    "right.yes_no": "yes or no, written 1 or 0",
    "right.one_of": "one of {names}",
    "right.there": "a value for it; it is missing",
    "right.items": "at most {number} of them",
}
