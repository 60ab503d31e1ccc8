"""Take a first look at a finished run, so that a scorer that does not fit is noticed before its
verdict is believed.
"""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Final

from assay.domain.conversation import replies_of
from assay.domain.first_look import FirstLook, SampleAnswer, Sign, SignKind
from assay.domain.lifecycle import COUNTS, AssessmentPurpose
from assay.domain.protocol import protocol_of
from assay.domain.selection import Selection
from assay.scoring.contains import FOUND, contains
from assay.scoring.reference_kinds import advised_scorer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.domain.first_look import CandidateTotals
    from assay.domain.identifiers import RunId
    from assay.domain.run import RunPlan
    from assay.domain.selection import AssessmentDetail
    from assay.store.opening import Store

LOOKED_AT: Final = 500
"""Assessments whose answers are read; more would make the summary of a large run slow."""
LONGEST_ANSWER: Final = 160
_FEWEST: Final = 3
"""Scores from which on a constant score is worth a sentence."""
_RULES: Final = frozenset(
    {"exact", "similarity", "numeric", "closeness", "choice", "math", "json", "regex"}
)
"""Methods that may reject an answer that holds the reference."""


def first_look(store: Store, plan: RunPlan) -> FirstLook:
    """Return one answer per candidate and the signs that a run's scores deserve a look."""
    totals = store.archive.runs.candidate_totals(plan.id)
    with closing(
        store.archive.exports.assessments(Selection(runs=(plan.id,)), everything=True)
    ) as details:
        read = [detail for detail, _ in islice(details, LOOKED_AT)]
    looked_at = [detail for detail in read if detail.row.purpose is AssessmentPurpose.WORK]
    signs = [*_constant(totals), *_references_in_zeros(plan.id, looked_at), *_cut_off(totals)]
    # Names beside answers that wait for a blind review would tell the reviewer who wrote them.
    shown = [
        detail
        for detail in looked_at
        if detail.row.state in COUNTS or not protocol_of(plan.protocol).blind
    ]
    return FirstLook(answers=_samples(totals, shown), signs=tuple(signs))


def _samples(
    totals: Sequence[CandidateTotals], details: Sequence[AssessmentDetail]
) -> tuple[SampleAnswer, ...]:
    samples: dict[str, SampleAnswer] = {}
    for detail in details:
        counts = detail.row.state in COUNTS
        for response in detail.responses:
            # A grade that no person saw yet stays hidden, because it would prejudice the review.
            score = detail.row.assessment.scores.get(response.candidate) if counts else None
            sample = SampleAnswer(
                candidate=response.candidate,
                task=detail.row.task,
                trial=detail.row.k,
                text=shortened(_last_reply(response.text) if detail.task.turns else response.text),
                expected=None
                if detail.task.reference is None
                else shortened(detail.task.reference),
                score=score,
            )
            samples.setdefault(response.candidate, sample)
    return tuple(samples[each.candidate] for each in totals if each.candidate in samples)


def _last_reply(transcript: str) -> str:
    """Return the last reply in a conversation's transcript, which begins with a message of the
    user.
    """
    replies = replies_of(transcript)
    return replies[-1] if replies else transcript


def shortened(text: str) -> str:
    """Return a text on one line, cut to `LONGEST_ANSWER` characters."""
    line = " ".join(text[: 20 * LONGEST_ANSWER].split())
    return line if len(line) <= LONGEST_ANSWER else f"{line[: LONGEST_ANSWER - 1]}…"


def _constant(totals: Sequence[CandidateTotals]) -> list[Sign]:
    signs = []
    for each in totals:
        if each.scores < _FEWEST or each.lowest != each.highest or each.lowest not in (0.0, 1.0):
            continue
        if each.lowest == 0.0:
            text = f"{each.candidate} scored 0 in all {each.scores:,} scores. Read its answers before you believe that."
            signs.append(Sign(code=SignKind.ALL_ZERO, candidate=each.candidate, text=text))
        else:
            text = (
                f"{each.candidate} scored 100 in all {each.scores:,} scores. Tasks that it cannot fail do not show which "
                "candidate is better."
            )
            signs.append(Sign(code=SignKind.ALL_FULL, candidate=each.candidate, text=text))
    return signs


def _references_in_zeros(run: RunId, details: Sequence[AssessmentDetail]) -> list[Sign]:
    """Return a sign for each candidate whose answers hold the reference although a rule gave them
    0.
    """
    zeros: dict[str, int] = {}
    holding: dict[str, int] = {}
    methods: set[str] = set()
    references: list[str] = []
    for detail in details:
        reference, method = detail.task.reference, detail.task.scoring.method
        if (
            detail.row.by_model
            or detail.row.state not in COUNTS
            or reference is None
            or method not in _RULES
        ):
            continue
        for response in detail.responses:
            if detail.row.assessment.scores.get(response.candidate) != 0.0:
                continue
            zeros[response.candidate] = zeros.get(response.candidate, 0) + 1
            if contains(response.text, reference, {}) == FOUND:
                holding[response.candidate] = holding.get(response.candidate, 0) + 1
                methods.add(method)
                references.append(reference)
    advised = advised_scorer(references).method if references else "contains"
    # The same rule again would give the same zeros; a judge needs a model that only the author can
    # name.
    scorer = "contains" if advised in methods or advised == "judge" else advised
    return [
        Sign(
            code=SignKind.REFERENCE_IN_ZERO,
            candidate=candidate,
            text=f"{count} of the {zeros[candidate]} answers of {candidate} that scored 0 contain the reference "
            f"(scored by {', '.join(f'`{method}`' for method in sorted(methods))}). `{scorer}` may fit better. To apply it to the "
            "stored answers, without new calls:",
            command=f"assay regrade {run} --score {scorer}",
        )
        for candidate, count in holding.items()
    ]


def _cut_off(totals: Sequence[CandidateTotals]) -> list[Sign]:
    return [
        Sign(
            code=SignKind.CUT_OFF,
            candidate=each.candidate,
            text=f"{each.cut_off:,} of {each.answers:,} answers of {each.candidate} were cut off by a token limit, so their scores "
            "may be too low. Raise `max_tokens` under `parameters` and run the suite again.",
        )
        for each in totals
        if each.cut_off
    ]
