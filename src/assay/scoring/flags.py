"""What a person should look at in a judge's assessment, said in one sentence each.

A flag costs a reviewer's attention, so a clean report must hardly ever get one: where a rule cannot tell, it is silent.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from assay.domain.assessment import Flag, FlagKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from assay.domain.assessment import Grade, Response
    from assay.domain.suite import Rubric, Task
    from assay.scoring.reading import Reading

RANKING_GAP: Final = 0.02
"""A ranking contradicts the scores only when the lower ranked candidate leads by more than this, on 0 to 1."""


def flags_of(
    reading: Reading,
    *,
    grades: Sequence[Grade],
    scores: Mapping[str, float | None],
    rubric: Rubric,
    labels: Mapping[str, str],
    task: Task,
    responses: Sequence[Response],
    token_limit_hit: bool,
) -> tuple[Flag, ...]:
    """Every flag of one assessment, in the order in which a reviewer would ask: complete, consistent, true."""
    return (
        *_truncated(reading, token_limit_hit=token_limit_hit),
        *_missing(reading, grades, labels),
        *_outside(reading, grades, labels),
        *_strangers(reading),
        *_ranking(reading, scores, labels),
        *_empty_reasons(grades, labels),
        *_duplicate_reasons(grades, labels),
    )


def _called(candidate: str, labels: Mapping[str, str]) -> str:
    """The label, which is what the reviewer of a blind page sees; the flag's `candidate` says who it is."""
    label = labels.get(candidate, candidate)
    return f"candidate {label}" if len(label) <= 2 else label


def _sentence_start(text: str) -> str:
    return text[:1].upper() + text[1:]


def _truncated(reading: Reading, *, token_limit_hit: bool) -> Iterator[Flag]:
    if token_limit_hit:
        yield Flag(kind=FlagKind.TRUNCATED, detail="The token limit cut the judge's reply off.")
    elif reading.truncated:
        yield Flag(kind=FlagKind.TRUNCATED, detail="The judge's reply breaks off before its JSON document ends.")


def _missing(reading: Reading, grades: Sequence[Grade], labels: Mapping[str, str]) -> Iterator[Flag]:
    graded = {candidate for candidate, _ in reading.grades}
    for candidate in labels:
        if candidate not in graded:
            yield Flag(
                kind=FlagKind.MISSING_CANDIDATE,
                detail=f"The judge gave no grades to {_called(candidate, labels)}.",
                candidate=candidate,
            )
    for grade in grades:
        if grade.candidate not in graded or grade.raw_score is not None:
            continue
        read = reading.grades.get((grade.candidate, grade.criterion))
        written = read.score.written if read and read.score else ""
        found = f"“{written}” where a score was expected" if written else "no score"
        yield Flag(
            kind=FlagKind.MISSING_CRITERION,
            detail=f"The judge gave {found} for {grade.criterion} of {_called(grade.candidate, labels)}.",
            candidate=grade.candidate,
            criterion=grade.criterion,
        )


def _outside(reading: Reading, grades: Sequence[Grade], labels: Mapping[str, str]) -> Iterator[Flag]:
    for grade in grades:
        if grade.raw_score is None or grade.score is not None:
            continue
        read = reading.grades[grade.candidate, grade.criterion]
        written = read.score.written if read.score else f"{grade.raw_score:g}"
        yield Flag(
            kind=FlagKind.SCORE_OUT_OF_SCALE,
            detail=(
                f"{_sentence_start(_called(grade.candidate, labels))} got {written} for {grade.criterion}, "
                f"outside its scale of {grade.min_score:g} to {grade.max_score:g}."
            ),
            candidate=grade.candidate,
            criterion=grade.criterion,
        )


def _strangers(reading: Reading) -> Iterator[Flag]:
    for label in reading.strangers:
        yield Flag(
            kind=FlagKind.UNKNOWN_CANDIDATE, detail=f"The judge graded “{label[:60]}”, which is no candidate here."
        )


def _ranking(reading: Reading, scores: Mapping[str, float | None], labels: Mapping[str, str]) -> Iterator[Flag]:
    worst: tuple[float, str, str] | None = None
    for place, better in enumerate(reading.ranking):
        for worse in reading.ranking[place + 1 :]:
            above, below = scores.get(better), scores.get(worse)
            if above is None or below is None or below - above <= RANKING_GAP:
                continue
            if worst is None or below - above > worst[0]:
                worst = (below - above, better, worse)
    if worst:
        gap, better, worse = worst
        yield Flag(
            kind=FlagKind.RANKING_CONTRADICTS_SCORES,
            detail=(
                f"The ranking puts {_called(better, labels)} above {_called(worse, labels)}, "
                f"whose scores are {100 * gap:.0f} points higher."
            ),
            candidate=better,
        )


def _empty_reasons(grades: Sequence[Grade], labels: Mapping[str, str]) -> Iterator[Flag]:
    for grade in grades:
        if grade.raw_score is not None and not re.search(r"\w{2}", grade.reason):
            yield Flag(
                kind=FlagKind.EMPTY_REASON,
                detail=f"There is no reason for {grade.criterion} of {_called(grade.candidate, labels)}.",
                candidate=grade.candidate,
                criterion=grade.criterion,
            )


def _duplicate_reasons(grades: Sequence[Grade], labels: Mapping[str, str]) -> Iterator[Flag]:
    first: dict[str, Grade] = {}
    for grade in grades:
        text = " ".join(re.findall(r"\w+", grade.reason.casefold()))
        if not text:
            continue
        before = first.setdefault(text, grade)
        if before is not grade:
            yield Flag(
                kind=FlagKind.DUPLICATE_REASON,
                detail=(
                    f"The reason for {grade.criterion} of {_called(grade.candidate, labels)} is word for word the one for "
                    f"{before.criterion} of {_called(before.candidate, labels)}."
                ),
                candidate=grade.candidate,
                criterion=grade.criterion,
            )
