"""Matches words in a judge's reply with candidates and criteria."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from assay.domain.suite import Criterion, Rubric

WRAPPING: Final = " \t\r\n*_`\"'“”‘’[]()"
"""Characters around a name or score that are not part of it."""

NOUN: Final = r"(?i:candidate|option|response|implementation|solution|submission|snippet|model|answer|assistant|code|label|output)"
GLUED_NOUN: Final = r"(?:[Cc]andidate|[Oo]ption|[Rr]esponse|[Ii]mplementation|[Ss]olution|[Ss]ubmission|[Ss]nippet)(?=[A-Z])"
_CALLED: Final = re.compile(rf"^(?:(?i:the)\s+)?(?:{NOUN}[\s_\-:#]+|{GLUED_NOUN})(?P<rest>\S.*)$")
_LABEL: Final = re.compile(
    rf"(?:(?i:the)\s+)?(?:{NOUN}[\s_\-:#]+|{GLUED_NOUN}|(?=.\Z))(?P<letter>[A-Za-z]{{1,2}})"
)
_CRITERION_TAIL: Final = ("score", "rating", "grade", "points", "value")


@lru_cache(1024)
def letter_of_label(name: str) -> str | None:
    """Return the letter of a name that looks like a label (A for `Candidate A`, `response-a`,
    `OptionA` or `a`), else None.
    """
    match = _LABEL.fullmatch(name.strip(WRAPPING))
    return match["letter"].upper() if match else None


def canonical(text: str) -> str:
    """Return the text in lower case without blanks, underscores, hyphens and Markdown's
    backslashes.
    """
    return re.sub(r"[\s_\-‐‑–\\]+", "", text).casefold()


class Names:
    """Finds candidates and criteria by their labels or names, in any common spelling."""

    def __init__(self, labels: Mapping[str, str], rubric: Rubric) -> None:
        # A judge that writes `Candidate A` means the label A, even if a candidate with this name
        # has another label.
        self.candidates = {
            canonical(name): name for name in labels if letter_of_label(name) is None
        }
        # a label takes precedence over a name
        self.candidates |= {canonical(label): name for name, label in labels.items()}
        self.criteria = {canonical(criterion.name): criterion for criterion in rubric.criteria}
        self.pairs = {
            canonical(whose) + canonical(about): (candidate, criterion)
            for whose, candidate in self.candidates.items()
            for about, criterion in self.criteria.items()
        }
        self.lone_candidate = next(iter(labels)) if len(labels) == 1 else None
        self.lone_criterion = rubric.criteria[0] if len(rubric.criteria) == 1 else None

    def candidate(self, key: str) -> str | None:
        key = key.strip(WRAPPING)
        candidate = self.candidates.get(canonical(key)) or self.candidates.get(
            canonical(key.rstrip(".:)"))
        )
        if candidate is None and (called := _CALLED.match(key)):
            candidate = self.candidates.get(canonical(called["rest"].strip(WRAPPING).rstrip(".:)")))
        return candidate

    def criterion(self, key: str) -> Criterion | None:
        plain = canonical(key.strip(WRAPPING).rstrip(".:"))
        if criterion := self.criteria.get(plain):
            return criterion
        for tail in _CRITERION_TAIL:
            if plain.endswith(tail) and (criterion := self.criteria.get(plain.removesuffix(tail))):
                return criterion
        return None

    def both(self, key: str) -> tuple[str, Criterion] | None:
        """Split a key into a candidate and a criterion: `A_integrity`, `A.integrity`,
        `candidate_a_integrity`.
        """
        plain = re.sub(r"[.:/()]", "", canonical(key.strip(WRAPPING)))
        for tail in ("", *_CRITERION_TAIL):
            if plain.endswith(tail) and (
                pair := self.pairs.get(plain.removesuffix(tail).removeprefix("candidate"))
            ):
                return pair
        return None
