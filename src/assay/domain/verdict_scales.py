"""The verdicts that a rubric can give, in their order: Pass, Partial and Fail by rules, or the
words of its only criterion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.domain.verdicts import Verdict, VerdictRules

if TYPE_CHECKING:
    from assay.domain.suite import Rubric

VERDICT: Final = "verdict"
"""Name of the criterion whose score is the verdict's value, as in `--criterion verdict`."""

VALUES: Final = {Verdict.PASS: 1.0, Verdict.PARTIAL: 0.5, Verdict.FAIL: 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictScale:
    """The labels that a response can get as its verdict, best first, each with its value between 0
    and 1.

    `rules` turn the grades into a verdict. Without rules the verdict is the word of the only
    criterion.
    """

    labels: tuple[tuple[str, float], ...]
    rules: VerdictRules | None = None


def verdict_scale(rubric: Rubric) -> VerdictScale | None:
    """Return the verdicts of a rubric; None if it has neither rules for verdicts nor a single
    criterion with words.
    """
    if rubric.rules is not None:
        return VerdictScale(
            labels=tuple((verdict.value, value) for verdict, value in VALUES.items()),
            rules=rubric.rules,
        )
    weighted = [criterion for criterion in rubric.criteria if criterion.weight > 0]
    if len(weighted) != 1 or not weighted[0].labels:
        return None
    words: dict[float, list[str]] = {}
    for word, raw in weighted[0].labels:
        value = weighted[0].normalised(raw)
        if value is not None:
            words.setdefault(value, []).append(word)
    return VerdictScale(
        labels=tuple(("/".join(words[value]), value) for value in sorted(words, reverse=True))
    )
