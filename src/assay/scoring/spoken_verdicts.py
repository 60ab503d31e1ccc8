"""Reads verdicts on a pair of answers that a judge wrote without JSON: `[[A>B]]`, `Verdict: A`,
"Output (a) is better", "A 更好".

House rule: a verdict is read only if the reply states it outright and all its statements agree.
Denials, conditions, praise for a single aspect, and brackets with other labels are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from assay.scoring.label_matching import NOUN, WRAPPING

TIE: Final = "tie"
MAX_TEXT: Final = 20_000

_BRACKETED: Final = re.compile(r"\[\[\s*([^\[\]\n]{1,40}?)\s*\]\]")
_TIE_WORDS: Final = re.compile(
    r"(?:it(?:['’]s| is)\s+|they(?:['’]re| are)\s+|(?:the\s+)?(?:two|both)(?:\s+\w+)?\s+are\s+)?(?:an?\s+)?"
    r"(?:tie|draw|tied|equal|equally good|no difference|平局|不分上下|一样好)",
    re.IGNORECASE,
)
_UNSURE: Final = re.compile(
    r"\b(?:not|never|neither|nor|cannot|if|unless|whether|hardly|barely|would|could|should|might|may|which|who|either|seems?|"
    r"although|though|however|wait|except)\b|n['’]t\b|\?|不|如果|若",
    re.IGNORECASE,
)
_IN_PART: Final = re.compile(
    r"\s*(?:(?:in|at|on|when|where|regarding|with respect)\b|than\s+(?!(?:the\s+)?other)\S+\s+(?:in|at|on)\b)",
    re.IGNORECASE,
)
_SENTENCES: Final = re.compile(
    r"(?<=[.!?;。！？；])\s+|(?<=[。！？；])|\n+|[,;]\s+(?:but|and|while)\s+"
)
_BETTER: Final = r"(?:better|best|superior|preferable|preferred|stronger|the\s+winner)"
_MUCH: Final = r"(?:\s+(?:clearly|much|far|slightly|overall|simply|definitely|a\s+bit|a\s+little|somewhat|significantly|the|an?))*"


def spoken_verdict(text: str, first: str, second: str) -> str | None:
    """Return the label (`first` or `second`) of the better answer, or `TIE`; None if the end of the
    text has no clear verdict.
    """
    tail = text[-MAX_TEXT:].strip()
    pair = _Pair(first, second)
    if brackets := _BRACKETED.findall(tail):
        return _agreed(pair.relation(content) for content in brackets)
    if (whole := pair.relation(tail)) is not None:
        return whole
    if declared := [pair.relation(match[1]) for match in pair.declared.finditer(tail)]:
        return _agreed(iter(declared))
    stated: list[str | None] = []
    for sentence in _SENTENCES.split(tail):
        verdicts = [*pair.statements(sentence)]
        if verdicts and _UNSURE.search(sentence):
            return None
        stated += verdicts
    return _agreed(iter(stated))


def _agreed(verdicts: Iterator[str | None]) -> str | None:
    distinct = set(verdicts)
    return distinct.pop() if len(distinct) == 1 else None


class _Pair:
    def __init__(self, first: str, second: str) -> None:
        self._labels = {first.casefold(): first, second.casefold(): second}
        either = "|".join(map(re.escape, (first, second)))
        # A label on its own must have its capital letters: "a" is an article.
        name = (
            rf"(?:(?:the\s+)?{NOUN}[\s(\[\"'*_`]{{0,6}}(?i:{either})|[(\[\"'*_`]{{1,6}}(?i:{either})(?=[)\]\"'*_`])"
            rf"|(?<![\w(])(?-i:{either}))[)\]\"'*_`]*(?![\w>=<])"
        )
        self._is = re.compile(rf"{name}\Z", re.IGNORECASE)
        self._compared = re.compile(
            rf"({either})\s*(>{{1,3}}|<{{1,3}}|={{1,2}}|≈|≻)\s*({either})", re.IGNORECASE
        )
        self.declared = re.compile(
            rf"^[ \t*_#>-]{{0,20}}(?:(?:my|the)\s+)?(?:final\s+)?"
            rf"(?:verdict|winner|better(?:\s+{NOUN})?|preferred(?:\s+{NOUN})?|preference|choice|decision|结论|胜者|更好的(?:回答)?)"
            rf"\s*(?:[:：=*_]+|is\b|是)[ :：*_]{{0,6}}([^\n]{{1,60}}?)[ .。*_]{{0,6}}$",
            re.IGNORECASE | re.MULTILINE,
        )
        winner, rest = rf"(?P<winner>{name})", r"(?P<rest>[^.]{0,60})"
        chinese = rf"(?P<winner>(?-i:{either}))"
        better = (
            rf"{winner}\s+(?:is|was){_MUCH}\s+{_BETTER}\b{rest}",
            rf"{winner}\s+(?:wins|beats|outperforms)\b{rest}",
            rf"\bI\s+(?:prefer|choose|pick|favou?r)\s+{winner}{rest}",
            rf"\b{_BETTER}\s+(?:{NOUN}|one)\s+is\s+{winner}{rest}",
            rf"(?<![A-Za-z]){chinese}\s*(?:更好|更优|较好|胜出)(?P<rest>)",
            rf"更好的?(?:回答|答案)?是\s*(?:回答|答案|候选)?\s*{chinese}(?![A-Za-z])(?P<rest>)",
        )
        worse = rf"{winner}\s+is{_MUCH}\s+(?:worse|inferior)\s+(?:than|to)\s+{name}{rest}"
        self._statements = [(re.compile(pattern, re.IGNORECASE), False) for pattern in better]
        self._statements.append((re.compile(worse, re.IGNORECASE), True))

    def relation(self, content: str) -> str | None:
        """Return the verdict that a text consists of: a label, `A>B`, or a tie; None for any other
        text.
        """
        bare = content.strip(WRAPPING + ".。!")
        if match := self._compared.fullmatch(bare):
            left, sign, right = match[1].casefold(), match[2], match[3].casefold()
            if left == right:
                return None
            if sign in ("=", "==", "≈"):
                return TIE
            return self._labels[right if "<" in sign else left]
        if _TIE_WORDS.fullmatch(bare):
            return TIE
        whole = content.strip().strip(".。!").strip()
        return self._label(whole) if self._is.match(whole) or self._is.match(bare) else None

    def statements(self, sentence: str) -> Iterator[str | None]:
        """Yield the verdict of each statement in a sentence; None for a statement about only one
        aspect.
        """
        for pattern, inverse in self._statements:
            for match in pattern.finditer(sentence):
                label = self._label(match["winner"])
                other = next(name for name in self._labels.values() if name != label)
                yield None if _IN_PART.match(match["rest"]) else other if inverse else label
        if _TIE_WORDS.fullmatch(sentence.strip(WRAPPING + ".。!")):
            yield TIE

    def _label(self, written: str) -> str:
        return next(
            self._labels[word]
            for word in reversed(re.findall(r"\w+", written.casefold()))
            if word in self._labels
        )
