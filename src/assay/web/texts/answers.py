"""The sentences of a trial's answers, and of the ways on for answers that nobody has graded."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "answers.lead": "Trial {k} of {of}: {state}.",
    "answers.asked": "What was asked",
    "answers.asked_none": "What was asked was not imported; import the file of requests together with the answers to have both.",
    "answers.hidden": "Something of this run waits for a person. Who answered what is shown once nothing waits.",
    "answers.none": "There is no answer.",
    "answers.size": "{n} characters",
    "answers.size.one": "1 character",
    "answers.tokens": "{n} tokens",
    "answers.tokens.one": "1 token",
    "answers.cut": "The first {shown} characters; all {size} are in the file.",
    "answers.file": "as a file",
    "answers.truncated": "The model stopped at its limit of tokens.",
    "answers.failed": "Why there is none",
    "ungraded.title": "These answers are not graded yet",
    "ungraded.about": "{n} answers came without grades. They reach no statistic before somebody grades them. That makes a run "
    "beside this one, over the same answers, whose grades wait for review; this one stays as it is.",
    "ungraded.about.one": "One answer came without a grade. It reaches no statistic before somebody grades it. That makes a run "
    "beside this one, over the same answer, whose grade waits for review; this one stays as it is.",
    "ungraded.judge": "Judge",
    "ungraded.look": "What would it cost?",
    "ungraded.go": "Have them judged",
    "ungraded.people": "Grade them by people",
    "ungraded.read": "Read them side by side",
    "ungraded.need_judge": "Name the model that is to judge, as provider/name.",
    "ungraded.terminal": "The same from a terminal:",
    "ungraded.done": "They are graded in:",
    "ungraded.asked": "{n} calls, {cost}.",
    "ungraded.asked.one": "1 call, {cost}.",
}
