"""Replace names of candidates and reviewers with pseudonyms, the same throughout an export.

Pseudonyms are numbered in random order, so that the order of candidates in a suite reveals nothing.
Names inside texts (reports, reasons, responses, failures) are replaced if they are whole words of
at least three characters. A text that reveals its author in another way is not changed. No file
contains the real names.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any, Final

from assay.domain.identifiers import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from assay.domain.run import RunPlan
    from assay.domain.selection import RunSummary

_SHORTEST_IN_TEXT: Final = 3


class Anonymiser:
    """Replaces names with pseudonyms; without plans, names stay unchanged.

    Args:
        plans: runs whose candidates and models are replaced.
        called: current name of each renamed candidate, by its name in the run's records.
        rng: random source for the order of the numbers.
    """

    def __init__(
        self,
        plans: Iterable[RunPlan] = (),
        *,
        called: Mapping[str, str] | None = None,
        rng: random.Random | None = None,
    ) -> None:
        # Without a seed, because anybody who knew it could draw the same numbers again.
        chance = rng or random.SystemRandom()
        now = {folded(name): folded(mended) for name, mended in (called or {}).items()}
        written: dict[str, str] = {}
        models: dict[str, str] = {}
        for plan in plans:
            for candidate in plan.candidates:
                name = folded(candidate.name)
                written[name] = now.get(name, name)
                if candidate.model is not None:
                    # Texts name models too; a model of several candidates is replaced by the
                    # pseudonym of the first.
                    for text in (candidate.model.ref, candidate.model.name):
                        models.setdefault(folded(text), name)
        own = list(dict.fromkeys(written.values()))
        numbers = list(range(1, len(own) + 1))
        chance.shuffle(numbers)
        self.active = bool(own)
        hidden = {name: f"candidate {number}" for name, number in zip(own, numbers, strict=True)}
        self._candidates = {**hidden, **{name: hidden[mended] for name, mended in written.items()}}
        self._reviewers: dict[str, str] = {}
        self._variants: dict[str, dict[str, int]] = {}
        self._in_text = {
            **{text: self._candidates[name] for text, name in models.items()},
            **self._candidates,
        }
        # Longest first, so that `ann-marie` is replaced before `ann`.
        words = sorted(
            (word for word in self._in_text if len(word) >= _SHORTEST_IN_TEXT),
            key=len,
            reverse=True,
        )
        self._words = (
            re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?!\w)", re.IGNORECASE)
            if words
            else None
        )

    def candidate(self, name: str) -> str:
        """Return a candidate's pseudonym; without plans, the name itself."""
        if not self.active:
            return name
        return self._candidates.get(folded(name)) or self._variant(name)

    def _variant(self, label: str) -> str:
        """Return the pseudonym for a label such as `name (model)`, which distinguishes candidates
        with the same name.
        """
        hidden = self._candidates.get(folded(label.partition(" (")[0]), "candidate")
        labels = self._variants.setdefault(hidden, {})
        return f"{hidden}, variant {labels.setdefault(folded(label), len(labels) + 1)}"

    def reviewer(self, name: str) -> str:
        if not self.active:
            return name
        if name not in self._reviewers:
            self._reviewers[name] = f"reviewer {len(self._reviewers) + 1}"
        return self._reviewers[name]

    def text(self, text: str) -> str:
        if self._words is None:
            return text
        return self._words.sub(
            lambda match: self._in_text.get(folded(match.group()), "candidate"), text
        )

    def texts(self, value: Any) -> Any:
        match value:
            case str():
                return self.text(value)
            case list() | tuple():
                return [self.texts(item) for item in value]
            case dict():
                return {
                    self.text(key) if isinstance(key, str) else key: self.texts(item)
                    for key, item in value.items()
                }
            case _:
                return value

    def candidates(self, names: Sequence[str]) -> list[str]:
        return sorted(self.candidate(name) for name in names) if self.active else list(names)


def names_for(plans: Sequence[RunPlan], summaries: Sequence[RunSummary]) -> Anonymiser:
    """Create pseudonyms for the candidates of some runs, for current and former names."""
    by_id = {summary.id: summary.candidates for summary in summaries}
    called = {
        candidate.name: now
        for plan in plans
        for candidate, now in zip(plan.candidates, by_id[plan.id], strict=True)
        if folded(candidate.name) != folded(now)
    }
    return Anonymiser(plans, called=called)
