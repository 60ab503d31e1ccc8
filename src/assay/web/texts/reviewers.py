"""The sentences of the reviewers and of adjudication."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, str]] = {
    "reviewers.title": "Reviewers",
    "reviewers.of": "Reviewer {name}",
    "reviewers.lead": "How the reviewing was done, with a range for each figure. Look at the assessments before the person.",
    "reviewers.none": "Nobody has decided anything on a page yet.",
    "reviewers.apart": "None of this is part of any statistic of candidates.",
    "reviewers.figures": "Figures",
    "reviewers.decisions": "Decisions",
    "reviewers.approved": "Approved",
    "reviewers.over_time": "Part of all decisions, in their order",
    "reviewers.tally": "{n} decisions: {approved} approved, {corrected} corrected, {rejected} rejected; {blind} of "
    "them blind-first.",
    "reviewers.n": "of {n}",
    "reviewers.range": "{low} to {high}",
    "reviewers.no_range": "too few for a range",
    "reviewers.caught": "{k} of {n} found",
    "reviewers.few": "Fewer than 20 checks say little; the range says how little.",
    "reviewers.group.checks": "Planted checks",
    "reviewers.group.self": "Against oneself",
    "reviewers.group.judge": "Beside the judge",
    "reviewers.group.others": "Against other reviewers",
    "reviewers.group.pace": "Pace and drift",
    "reviewers.about.checks": "Real assessments with one thing broken on purpose: found when rejected, or corrected "
    "where it is broken.",
    "reviewers.about.self": "Own earlier decisions, put before the reviewer again without their scores. Alike: at "
    "most 5 points apart.",
    "reviewers.about.judge": "Own verdicts given before the judge's scores were seen. Approving what one has seen is "
    "acceptance, not "
    "agreement. Anchoring: corrections among blind items minus corrections among others.",
    "reviewers.about.others": "Items that two people decided, neither seeing the other's verdict.",
    "reviewers.about.pace": "Active time: page in front, something done within two minutes. Drift: share approved in "
    "the second half of "
    "all decisions minus the first.",
    "reviewers.figure.catch_rate": "Catch rate",
    "reviewers.figure.self_alike": "Alike with oneself",
    "reviewers.figure.self_alpha": "Alpha with oneself",
    "reviewers.figure.self_distance": "Apart from oneself",
    "reviewers.figure.acceptance": "Acceptance, scores seen first",
    "reviewers.figure.anchoring": "Anchoring",
    "reviewers.figure.judge_alpha": "Alpha with the judge, blind",
    "reviewers.figure.judge_distance": "Apart from the judge, blind",
    "reviewers.figure.others_alike": "Alike with others",
    "reviewers.figure.others_alpha": "Alpha with others",
    "reviewers.figure.active_s": "Active time, median",
    "reviewers.figure.drift": "Drift",
    "reviewers.reason.nothing_yet": "nothing yet",
    "reviewers.reason.one_side_is_empty": "needs both kinds",
    "reviewers.reason.not_measured": "not measured",
    "reviewers.reason.no_variation": "nothing varies",
    "reviewers.reason.no_pairable_ratings": "nothing yet",
    "reviewers.plant.swapped_scores": "scores of two candidates swapped",
    "reviewers.plant.invented_quote": "a quotation that stands nowhere",
    "reviewers.plant.score_against_reason": "a score against its reason",
    "adjudication.title": "Adjudication",
    "adjudication.lead": "Two people decided these differently. Neither name is shown; a third settles it, or both together.",
    "adjudication.none": "Nothing is disputed.",
    "adjudication.open": "Look at it",
    "adjudication.verdict": "Verdict",
    "adjudication.decision": "Decision",
    "adjudication.reviewer": "Reviewer {n}",
    "adjudication.approve": "approve",
    "adjudication.correct": "correct",
    "adjudication.reject": "reject",
    "adjudication.settle": "Settle it",
    "adjudication.as": "as reviewer {n} has it",
    "adjudication.reject_it": "reject the assessment",
    "adjudication.together": "Both reviewers settle it together",
    "adjudication.button": "Settle",
    "adjudication.done": "Settled.",
    "adjudication.all_done": "Settled. Nothing else is disputed.",
}
