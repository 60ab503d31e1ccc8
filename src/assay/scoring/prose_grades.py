"""Reads grades that a judge wrote without JSON: as lines, in a table, as YAML or tags, or in
sentences.

House rule: a score is read only if its candidate and its criterion are clear. Ranges (`7-8`),
denials, conditions and two different scores for the same grade are not read. A number that may be
the answer under judgement is not read either: "the final answer 3/4 is correct" does not contain a
score.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from assay.domain.suite import Criterion, Rubric
from assay.scoring.label_matching import NOUN, WRAPPING, Names
from assay.scoring.score_parsing import NUMBER_WORDS, NUMERAL, ReadGrade, ReadScore, read_score

MAX_PLAIN: Final = 60_000
"""Characters at the end of a reply that are searched for grades written as plain lines."""

MAX_MENTIONS: Final = 5_000

_LONE_CALLED: Final = (
    "score",
    "rating",
    "grade",
    "verdict",
    "final score",
    "overall score",
    "overall",
    "judgement",
    "judgment",
)
# "The final answer is No" is more often about the response's answer than about its score, so such
# words are read only on a separate line.
_LABEL_LINE: Final = re.compile(
    r"^[ \t*_#>-]*(?:final answer|result|decision)[ \t*_]*[:=][ \t*_]*(?P<value>[^\n]{1,80}?)[.!*_ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_UNSURE: Final = re.compile(
    r"\b(?:not|never|neither|nor|cannot|if|unless|whether|hardly|barely|could|should|might|may|torn|either|"
    r"(?:more|less|fewer|higher|lower|better|worse) than|at (?:most|least)|up to|below|above|under|over|nearly|almost)\b"
    r"|n['’]t\b|不|如果|若",
    re.IGNORECASE,
)
"""Words in a sentence that deny its score, or turn it into a condition or a bound."""
_LEADING_NUMBER: Final = re.compile(
    rf"[*_`\"'\[( ]*{NUMERAL}\s*(?:/\s*{NUMERAL}|out\s+of\s+{NUMERAL}|%)?(?:(?![\w%/])|(?=[A-Z][a-z]))"
    r"(?![*_`\"'\]) ]*(?:\?|(?:[-–—/]|or\b|to\b)\s*\d))"
    r"(?![ \t]+(?!because|for|and|on|as|but|while|since|with|points?|pts?|stars?)[a-z]{3,})"
)
_LEADING_WORDS: Final = re.compile(r"[*_`\"'\[( ]*([A-Za-z][\w ]{0,30}?)[*_`\"'\]).,;:!]*(?:\s|$)")


def spoken_grades(
    text: str, labels: Mapping[str, str], names: Names, rubric: Rubric
) -> dict[tuple[str, str], ReadGrade]:
    """Return the grades in a reply without JSON, by (candidate's name, criterion); only the end of
    a long reply is read.
    """
    prose = text[-MAX_PLAIN:]
    if not prose.strip():
        return {}
    grades = (
        {}
        if names.lone_candidate is None
        else _lines_about_one(prose, names.lone_candidate, names, rubric)
    )
    if len(grades) < len(labels) * len(rubric.criteria) and (
        names.lone_candidate is None or len(rubric.criteria) > 1
    ):
        table = _table(prose, names)
        # Sentences are not read if there is a table: an incomplete row would be read across its
        # columns.
        read_grades = _passages(prose, labels, rubric) if table is None else table
        grades = read_grades if len(read_grades) > len(grades) else grades
    return grades


# --- one candidate --------------------------------------------------------------------------------


def _lines_about_one(
    prose: str, candidate: str, names: Names, rubric: Rubric
) -> dict[tuple[str, str], ReadGrade]:
    """Read a single candidate's grades, written as lines (`Score: 8/10`, `integrity: 7`); the last
    line of each kind counts.
    """
    grades: dict[tuple[str, str], ReadGrade] = {}
    for criterion in rubric.criteria:
        called = (criterion.name, *(_LONE_CALLED if names.lone_criterion else ()))
        score = _spoken_score(prose, called, criterion)
        if score is None and names.lone_criterion:
            score = (
                _whole_score(prose, criterion)
                or _declared_label(prose, criterion)
                or _only_score(prose, criterion)
            )
        if score is not None:
            reason = "" if len(prose) < 40 else prose
            grades[candidate, criterion.name] = ReadGrade(
                score=score, reason=reason if names.lone_criterion else ""
            )
    return grades


def _spoken_score(prose: str, called: tuple[str, ...], criterion: Criterion) -> ReadScore | None:
    names = "|".join(
        r"[\s_\-]{1,3}".join(re.escape(part) for part in re.split(r"[\s_\-]+", name))
        for name in called
    )
    line = re.compile(
        rf"(?:^|(?<=[\s*_#>|(\[0-9<]))(?:{names})(?:[ \t]+(?:score|rating|grade))?[\"'*_`\])]{{0,4}}[ \t]*"
        rf"(?:[:=|>]|\bis\b|\bof\b|–|—|-(?=[ \t]))[ \t]*(?P<value>[^\n|]{{1,200}})",
        re.IGNORECASE | re.MULTILINE,
    )
    best = None
    position = 0
    while match := line.search(prose, position):
        position = match.start("value")  # a value may contain the next name: `first: 8second: 6`
        value = match["value"].strip()
        leading = (_LEADING_WORDS if criterion.labels else _LEADING_NUMBER).match(value)
        for part in (value.strip(WRAPPING), leading[0].strip(WRAPPING) if leading else ""):
            score = read_score(part, criterion) if part else None
            if score and score.raw is not None and (score.by_word or not criterion.labels):
                best = score
                break
    return best


def _whole_score(prose: str, criterion: Criterion) -> ReadScore | None:
    score = read_score(prose, criterion) if len(prose) <= 40 else None
    return score if score and score.raw is not None else None


_NUMBER: Final = rf"(?P<number>{NUMERAL}|{'|'.join(NUMBER_WORDS)})(?:\s*(?:/|out\s+of)\s*(?P<total>{NUMERAL}|ten|five))?"
_ENDED: Final = r"(?=[*_`\"'\])]*\s*(?:[.,;!)](?!\d)|$|[—–(]|-\s|(?:because|for|since|as|and|but|overall|points?|pts?|stars?)\b))"
_BETWEEN: Final = (
    r"(?:\s+(?:an?|the|this|that|it|is|at|as|of|to|be|with|answer|response|candidate|output|text|code|solution|solid|strong|full|"
    r"only|just|about|overall|final|quality|score|rating|grade|mark|him|her|them|would)){0,6}"
)
_GIVEN: Final = re.compile(
    rf"\b(?:(?:rated?|g[ia]ve|award|assign|grade|score|deserves?|earns?|worth|rating|scored?|assessment|evaluation|mark)\b{_BETWEEN}"
    rf"|(?:gets?|receives?)\s+an?)[\s:=*]{{1,4}}(?:{_NUMBER}{_ENDED}|\\boxed\{{\s*(?P<boxed>{NUMERAL})\s*\}})",
    re.IGNORECASE,
)
_ALONE: Final = re.compile(
    rf"^[\s*_`\"'(>#-]*(?:{_NUMBER}{_ENDED}|\\boxed\{{\s*(?P<boxed>{NUMERAL})\s*\}}\W*$)",
    re.IGNORECASE,
)
_IN_CHINESE: Final = re.compile(
    rf"(?:(?:得分|分数|评分|总分|打分)\s*(?:是|为|[:：])?|打|得)\s*(?P<number>{NUMERAL}|[零一二三四五六七八九十])(?![\d-])"
    rf"\s*(?:/\s*(?P<total>{NUMERAL}))?\s*(?:分(?!之)|点)?\s*(?=[。.,，；;!！)）（(\n]|$)"
)
_CHINESE_TOTAL: Final = re.compile(rf"满分\s*(?:是|为|[:：])?\s*(?P<total>{NUMERAL})\s*分")
_SENTENCES: Final = re.compile(r"(?<=[.!?;。！？；])\s+|(?<=[。！？；])|\n+")
_STARS: Final = re.compile(r"(?<!★)★{1,10}☆{1,10}")


def _only_score(prose: str, criterion: Criterion) -> ReadScore | None:
    """Read a score that a sentence gives (`I give it an 8.`, `8 out of 10`, ★★★★☆, `得分: 8 分`) if
    there is no other.
    """
    if criterion.labels:
        return _only_label(prose, criterion)
    given: set[str] = set()
    for sentence in _SENTENCES.split(prose):
        written = _given_in(sentence, criterion)
        if written and _UNSURE.search(sentence):
            return None
        given |= written
    score = read_score(given.pop(), criterion) if len(given) == 1 else None
    return score if score and score.raw is not None else None


def _given_in(sentence: str, criterion: Criterion) -> set[str]:
    """Return the scores that a sentence gives, as they would be written in JSON."""
    given = {f"{match[0].count('★')}/{len(match[0])}" for match in _STARS.finditer(sentence)}
    for match in _GIVEN.finditer(sentence):
        given.add(_written(match["boxed"] or match["number"], match["total"]))
    # A number at the beginning counts as a score only together with its scale: `3/4` may be the
    # answer that is graded.
    alone = _ALONE.match(sentence)
    if alone and alone["boxed"] and alone.end() == len(sentence):
        given.add(alone["boxed"])
    elif (
        alone
        and alone["total"]
        and _numeral(alone["total"]) == f"{max(criterion.low, criterion.high):g}"
    ):
        given.add(_written(alone["number"], alone["total"]))
    total = _CHINESE_TOTAL.search(sentence)
    rest = _CHINESE_TOTAL.sub("", sentence)
    for match in _IN_CHINESE.finditer(rest):
        given.add(_written(match["number"], match["total"] or (total["total"] if total else None)))
    return given


def _written(number: str, total: str | None) -> str:
    return _numeral(number) if total is None else f"{_numeral(number)}/{_numeral(total)}"


def _numeral(written: str) -> str:
    word = written.casefold()
    if word in NUMBER_WORDS:
        return f"{NUMBER_WORDS.index(word)}"
    return f"{_CHINESE_NUMERALS.index(word)}" if word in _CHINESE_NUMERALS else written


_CHINESE_NUMERALS: Final = "零一二三四五六七八九十"


def _only_label(prose: str, criterion: Criterion) -> ReadScore | None:
    """Return the only label in a short reply, or None if the reply contains a denial."""
    if len(prose) > 200 or _UNSURE.search(prose):
        return None
    words = re.findall(r"[\w]+|[^\w\s]\ufe0f?", prose)
    scores = {
        score.raw: score
        for word in words
        if (score := read_score(word, criterion)) and score.by_word
    }
    return next(iter(scores.values())) if len(scores) == 1 else None


def _declared_label(prose: str, criterion: Criterion) -> ReadScore | None:
    """Return the label that a line consists of or declares better; the last such line counts."""
    best: tuple[int, ReadScore] | None = None
    for match in _LABEL_LINE.finditer(prose) if criterion.labels else ():
        if (score := read_score(match["value"], criterion)) and score.by_word:
            best = match.start(), score
    for label, value in criterion.labels:
        declared = re.compile(
            rf"(?:^(?:[^\w\n]|_){{0,12}}{re.escape(label)}(?:[^\w\n]|_){{0,12}}$"
            rf"|(?<!\w){re.escape(label)}[\"'*`]{{0,3}}\s{{1,3}}(?:is|was|as)\s{{1,3}}(?!not\b)(?:\w{{1,20}}\s{{1,3}})?(?:the\s{{1,3}})?"
            rf"(?:better|best|superior|preferred|winner)\b)",
            re.IGNORECASE | re.MULTILINE,
        )
        for match in declared.finditer(prose):
            if best is None or match.start() > best[0]:
                best = match.start(), ReadScore(raw=value, written=match[0].strip()[:80])
    return best[1] if best else None


# --- several candidates ---------------------------------------------------------------------------

_FILLER: Final = re.compile(
    r"(?:[\s*_`\"'’)\](:=|>—–\-/]|</?[\w ]{1,20}>"
    r"|\b(?:the|an?|i|would|score[sd]?|rating|rated|rate|grade|is|was|of|gets?|got|receives?|received|earns?|deserves?|at|be|as|give|it|"
    r"solid|points?|value|final|overall)\b){0,40}",
    re.IGNORECASE,
)
"""Text that may come between a name and its score."""
_SCORE_HERE: Final = re.compile(
    rf"(?P<score>{NUMERAL}\s*(?:/\s*{NUMERAL}|out\s+of\s+{NUMERAL}|%)?|(?:{'|'.join(NUMBER_WORDS)})\b)"
    r"(?!\s*[-–]\s*\d|\w)(?![ \t]+(?!because|for|and|on|as|but|while|since|with|points?|pts?\b)[A-Za-z]{3,})",
    re.IGNORECASE,
)
_COUNTS_ELSE: Final = re.compile(
    r"[*_`\"'\])]*[ \t]*(?:of|is|are|was|were|if|or|to)\b", re.IGNORECASE
)
"""Text that shows that the number before it counts something else (`3/4 is correct`, `3 of the
tests`) or is conditional.
"""
_BEHIND: Final = r"[ \t]*[*_`\"')\]]{0,4}[ \t]*(?:[:=>)|]|[—–-][ \t]|$|\n)"


def _passages(
    prose: str, labels: Mapping[str, str], rubric: Rubric
) -> dict[tuple[str, str], ReadGrade]:
    """Read grades in lists and sentences; a score is assigned to the candidate and criterion most
    recently named before it.

    A text may list criteria under each candidate, or candidates under each criterion. Both readings
    are tried, and the one that finds more grades is used. The next name on the outer level ends the
    passage about the previous one.
    """
    whose = {label.casefold(): name for name, label in labels.items()}
    about = {
        re.sub(r"[\s_\-]+", " ", criterion.name).casefold(): criterion
        for criterion in rubric.criteria
    }
    lone = next(iter(labels)) if len(labels) == 1 else None
    mention = re.compile(
        rf"(?:{NOUN}[\s_\-:#*=\"'<>]{{1,4}}(?P<called>{_any(whose)})(?!\w)"
        rf"|(?:(?<![^\n])[ \t]*(?:[-*#>]{{1,6}}[ \t]*|\d{{1,2}}[.)][ \t]*)?|(?<=[(\[<,;|*\"' ]))"
        rf"[*_`\"'(\[<]{{0,4}}(?P<bare>(?-i:{_any(labels.values())}))"
        rf"(?:(?={_BEHIND})|(?=[ \t]+(?:{_any(about)})\b)))"
        rf"|(?<![A-Za-z])(?P<about>{_any(about)})(?![A-Za-z])",
        re.IGNORECASE,
    )
    marks = list(islice(mention.finditer(prose), MAX_MENTIONS))
    readings = []
    for outer in ("whose", "about"):
        grades: dict[tuple[str, str], ReadGrade] = {}
        candidate: str | None = lone
        criterion: Criterion | None = rubric.criteria[0] if len(rubric.criteria) == 1 else None
        for place, mark in enumerate(marks):
            if mark["about"]:
                criterion = about[re.sub(r"[\s_\-]+", " ", mark["about"]).casefold()]
                candidate = candidate if outer == "whose" else lone
            else:
                candidate = whose[(mark["called"] or mark["bare"]).casefold()]
                criterion = criterion if outer == "about" or len(rubric.criteria) == 1 else None
            end = marks[place + 1].start() if place + 1 < len(marks) else len(prose)
            if candidate is not None and criterion is not None:
                grade = _graded_here(prose[mark.end() : end], criterion)
                if grade is not None:
                    grades[candidate, criterion.name] = grade
        readings.append(grades)
    return max(readings, key=len)


def _any(names: Iterable[str]) -> str:
    longest_first = sorted(names, key=len, reverse=True)
    return "|".join(
        r"[\s_\-]{1,3}".join(map(re.escape, re.split(r"[\s_\-]+", name))) for name in longest_first
    )


def _graded_here(after: str, criterion: Criterion) -> ReadGrade | None:
    """Return the score after a name; the text up to the next name is the reason."""
    gap = _FILLER.match(after[:200])
    start = gap.end() if gap else 0
    if criterion.labels:
        words = _LEADING_WORDS.match(after, start)
        score = read_score(words[0].strip(WRAPPING), criterion) if words else None
        end = words.end() if words else start
        if score is None or not score.by_word:
            return None
    else:
        match = _SCORE_HERE.match(after, start)
        if match is None or _COUNTS_ELSE.match(after, match.end()):
            return None
        score, end = read_score(match["score"], criterion), match.end()
    if score is None or score.raw is None:
        return None
    reason = after[end:].split("\n\n")[0].strip(" \t\r\n-–—:;.,|*_<>/)#")
    return ReadGrade(score=score, reason=reason if len(reason) > 3 else "")


def _table(prose: str, names: Names) -> dict[tuple[str, str], ReadGrade] | None:
    """Read a Markdown or CSV table of grades with one axis of candidates and one of criteria; None
    without such a table.
    """
    grades: dict[tuple[str, str], ReadGrade] = {}
    seen = False
    header: list[str] = []
    for line in prose.splitlines():
        cells = _cells(line)
        if len(cells) < 2:
            header = []
            continue
        known = sum(bool(names.criterion(cell) or names.candidate(cell)) for cell in cells[1:])
        if known and known == sum(bool(cell) for cell in cells[1:]) - _spare(cells[1:], names):
            header, seen = cells, seen or "|" in line
            continue
        if not header or len(cells) != len(header):
            continue
        for top, cell in zip(header[1:], cells[1:], strict=True):
            candidate = names.candidate(cells[0]) or names.candidate(top)
            criterion = names.criterion(top) or names.criterion(cells[0]) or names.lone_criterion
            if (
                candidate
                and criterion
                and (score := read_score(cell, criterion))
                and score.raw is not None
            ):
                grades[candidate, criterion.name] = ReadGrade(score=score)
    return grades if seen or grades else None


def _spare(cells: list[str], names: Names) -> int:
    """Count the header cells that name no candidate or criterion (such as a total); 0 if there are
    over two or one has a digit.
    """
    others = [
        cell for cell in cells if cell and not (names.criterion(cell) or names.candidate(cell))
    ]
    return (
        len(others)
        if len(others) <= 2 and not any(re.search(r"\d", cell) for cell in others)
        else 0
    )


def _cells(line: str) -> list[str]:
    if "|" in line:
        return [cell.strip() for cell in line.strip().strip("|").split("|")]
    return (
        [cell.strip() for cell in line.split("\t" if "\t" in line else ",")]
        if len(line) < 400
        else []
    )
