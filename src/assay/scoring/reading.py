"""From a judge's reply to grades: who was graded on what, in whatever shape the judge wrote it down.

The reply's JSON documents are walked with two things in mind: whose part of the document this is, and which criterion
it is about. Both are learned from keys (`"A": …`, `"integrity": …`) and from fields of a row (`"candidate": "A"`), in
any order of nesting; everything else is a wrapper. A scale is never guessed from the size of a number: `85` on a scale
to 10 lies outside it, `85%` and `8.5/10` say what they mean.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from assay.scoring.evaluator import UnreadableReply
from assay.scoring.loose_json import CutText, LooseText, read_loosely

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from assay.domain.digest import JsonValue
    from assay.domain.suite import Criterion, Rubric

MAX_WALK: Final = 12
"""Levels of wrappers followed; a grading needs five."""

MAX_DOCUMENTS: Final = 200
"""Only the last documents of a reply are looked at; a grading has one, or one per candidate."""

MAX_PLAIN: Final = 60_000
"""Characters at the end of a reply that are searched for grades written as plain lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadScore:
    """A score as it was written: `raw` on the criterion's scale, None where `written` could not be read as one.

    `outside` says that it lies outside the scale, `by_word` that one of the criterion's labels was written.
    """

    raw: float | None
    written: str
    outside: bool = False
    by_word: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadGrade:
    """One grade as the judge gave it; `score` is None when there is none to be found."""

    score: ReadScore | None
    reason: str = ""
    evidence: tuple[str, ...] = ()
    confidence: float | None = None

    @property
    def weight(self) -> tuple[bool, bool]:
        """Of two grades for the same thing the heavier holds: a readable score, then a reason."""
        return (self.score is not None and self.score.raw is not None, bool(self.reason))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a reply says.

    Attributes:
        grades: by (candidate's name, criterion); what the judge left out is not here.
        strangers: labels that were graded but are nobody's.
        ranking: names, best first.
        truncated: whether the end of the reply's document is missing.
        repairs: what had to be mended in its JSON.
    """

    grades: Mapping[tuple[str, str], ReadGrade]
    strangers: tuple[str, ...] = ()
    report: str = ""
    ranking: tuple[str, ...] = ()
    truncated: bool = False
    repairs: tuple[str, ...] = ()


def read_grading(text: str, *, labels: Mapping[str, str], rubric: Rubric, cut: bool = False) -> Reading:
    """The grades in a judge's reply.

    Args:
        text: the reply as it came.
        labels: the label each candidate was shown under, by name; one entry means the reply is about that one.
        rubric: what was to be graded.
        cut: whether the token limit is known to have cut the reply off; a last word may then be half a word.

    Raises:
        UnreadableReply: there is no grade at all in it; the message says what was found instead.
    """
    loose = read_loosely(text)
    names = _Names(labels, rubric)
    readings = [
        walked
        for document in loose.documents[-MAX_DOCUMENTS:]
        if (walked := _walk_document(document.value, names)).found
    ]
    if not readings:
        answer = loose.answer[-MAX_PLAIN:]
        spoken = _plain_grades(_without_last_word(answer) if cut else answer, names, rubric)
        if not spoken:
            raise UnreadableReply(_what_was_found(text, loose))
        return Reading(grades=spoken, report=loose.answer)
    best = max(range(len(readings)), key=lambda place: (readings[place].readable, len(readings[place].found), place))
    merged = readings[best]
    for other in (*readings[best + 1 :], *reversed(readings[:best])):
        merged.take_whom_it_lacks(other)
    known = set(merged.graded)
    return Reading(
        grades=merged.found,
        strangers=tuple(dict.fromkeys(merged.strangers)),
        report=merged.report or loose.prose,
        ranking=tuple(dict.fromkeys(name for name in merged.ranking if name in known or name in labels)),
        truncated=loose.truncated,
        repairs=tuple(sorted({repair for document in loose.documents for repair in document.repairs})),
    )


def _without_last_word(text: str) -> str:
    parts = text.rsplit(maxsplit=1)
    return parts[0] if len(parts) == 2 else ""


# --- scores --------------------------------------------------------------------------------------------------------

_NUMERAL: Final = r"[-+−]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?"
_WRITTEN_SCORE: Final = re.compile(
    rf"(?P<number>{_NUMERAL})\s*"
    rf"(?:(?P<percent>%|percent\b)|(?:/|out\s+of|of)\s*(?P<total>{_NUMERAL})|(?:points?|pts?)\b)?"
    r"\s*(?:[.,;:!]?|[-–—(].*)",
    re.IGNORECASE | re.DOTALL,
)
_WRAPPING: Final = " \t\r\n*_`\"'“”‘’[]()"


def read_score(value: JsonValue, criterion: Criterion, *, total: JsonValue = None) -> ReadScore | None:
    """A score out of whatever stands where a score should; None when nothing stands there.

    Words count where the criterion's labels name them. `total` is a maximum that the judge wrote beside the score.
    """
    if isinstance(value, bool):
        return _by_label(_truth_words(value), criterion)
    if isinstance(value, int | float):
        top = total if isinstance(total, int | float) and not isinstance(total, bool) else None
        return _on_scale(float(value), criterion, total=top, written=_shown(float(value)))
    if isinstance(value, CutText) or not isinstance(value, str) or not value.strip():
        return None
    written = value.strip()
    if found := _by_label((written,), criterion):
        return found
    bare = written.strip(_WRAPPING) or written
    match = _WRITTEN_SCORE.fullmatch(bare)
    if match is None or re.match(r"\s*[-–—]\s*[\d.]", bare[match.end("number") :]):  # `7-8` is no score
        return ReadScore(raw=None, written=written[:80])
    number = _to_float(match["number"])
    if match["percent"]:
        if criterion.low == 0 and criterion.high == 100:
            return _on_scale(number, criterion, total=None, written=written)
        return _on_scale(number, criterion, total=100.0, written=written)
    top = _to_float(match["total"]) if match["total"] else None
    if top is None and isinstance(total, int | float) and not isinstance(total, bool):
        top = float(total)
    return _on_scale(number, criterion, total=top, written=written)


def _on_scale(number: float, criterion: Criterion, *, total: float | None, written: str) -> ReadScore:
    if total is not None and total != criterion.high:
        if not 0 < total < 1e9 or not 0 <= number <= total:
            return ReadScore(raw=number, written=written, outside=True)
        number = criterion.low + number / total * (criterion.high - criterion.low)
    return ReadScore(raw=number, written=written, outside=not criterion.low <= number <= criterion.high)


def _by_label(words: tuple[str, ...], criterion: Criterion) -> ReadScore | None:
    for word in words:
        for label, value in criterion.labels:
            if _canonical(label) == _canonical(word.strip(_WRAPPING).rstrip(".!")):
                return ReadScore(raw=value, written=word, by_word=True)
    return None


def _truth_words(value: bool) -> tuple[str, ...]:
    return ("yes", "pass", "true", "correct") if value else ("no", "fail", "false", "incorrect")


def _to_float(numeral: str) -> float:
    return float(numeral.replace("−", "-").replace(",", "")[:320])


def _shown(number: float) -> str:
    return f"{number:g}"


# --- names ---------------------------------------------------------------------------------------------------------

_SCORE_KEYS: Final = (
    "score", "rating", "value", "points", "grade", "mark", "rawscore", "finalscore", "verdict", "label", "answer", "level",
)  # fmt: skip
_REASON_KEYS: Final = (
    "reason", "justification", "rationale", "explanation", "comment", "comments", "reasoning", "feedback", "why", "notes",
)  # fmt: skip
_EVIDENCE_KEYS: Final = ("evidence", "quote", "quotes", "quotation", "quotations", "citation", "citations", "snippets")
_TOTAL_KEYS: Final = ("max", "maximum", "outof", "maxscore", "maxpoints", "maximumscore", "total", "scalemax")
_REPORT_KEYS: Final = (
    "report", "overallreport", "reportmarkdown", "summary", "overallassessment", "overall", "analysis", "review", "markdown",
)  # fmt: skip
_RANKING_KEYS: Final = ("ranking", "rankings", "rank", "ranks", "order", "finalranking", "overallranking")
_CANDIDATE_FIELDS: Final = (
    "candidate", "candidatelabel", "candidateid", "candidatename", "label", "id", "name", "option", "response", "implementation",
    "solution", "submission", "snippet", "model",
)  # fmt: skip
_SURE_CANDIDATE_FIELDS: Final = frozenset({"candidate", "candidatelabel", "candidateid", "candidatename"})
_CRITERION_FIELDS: Final = (
    "criterion", "criteria", "criterionname", "dimension", "aspect", "metric", "category", "name", "id",
)  # fmt: skip
_NOUN: Final = (
    r"(?i:candidate|option|response|implementation|solution|submission|snippet|model|answer|assistant|code|label)"
)
_GLUED_NOUN: Final = (
    r"(?:[Cc]andidate|[Oo]ption|[Rr]esponse|[Ii]mplementation|[Ss]olution|[Ss]ubmission|[Ss]nippet)(?=[A-Z])"
)
_CALLED: Final = re.compile(rf"^(?:(?i:the)\s+)?(?:{_NOUN}[\s_\-:#]+|{_GLUED_NOUN})(?P<rest>\S.*)$")
_LABEL_LIKE: Final = re.compile(rf"^(?:(?:{_GLUED_NOUN})?[A-Z]{{1,2}}|{_NOUN}[\s_\-:#]+[A-Za-z]{{1,2}})$")
_CRITERION_TAIL: Final = ("score", "rating", "grade", "points", "value")


def _canonical(text: str) -> str:
    """Lower case without blanks, underscores, hyphens and the backslashes Markdown puts before them."""
    return re.sub(r"[\s_\-‐‑–\\]+", "", text).casefold()


class _Names:
    """Whom and what a key may mean."""

    def __init__(self, labels: Mapping[str, str], rubric: Rubric) -> None:
        self.candidates = {_canonical(name): name for name in labels}
        self.candidates |= {_canonical(label): name for name, label in labels.items()}  # a label outdoes a name
        self.criteria = {_canonical(criterion.name): criterion for criterion in rubric.criteria}
        self.lone_candidate = next(iter(labels)) if len(labels) == 1 else None
        self.lone_criterion = rubric.criteria[0] if len(rubric.criteria) == 1 else None

    def candidate(self, key: str) -> str | None:
        key = key.strip(_WRAPPING)
        found = self.candidates.get(_canonical(key)) or self.candidates.get(_canonical(key.rstrip(".:)")))
        if found is None and (called := _CALLED.match(key)):
            found = self.candidates.get(_canonical(called["rest"].strip(_WRAPPING).rstrip(".:)")))
        return found

    def criterion(self, key: str) -> Criterion | None:
        plain = _canonical(key.strip(_WRAPPING).rstrip(".:"))
        if found := self.criteria.get(plain):
            return found
        for tail in _CRITERION_TAIL:
            if plain.endswith(tail) and (found := self.criteria.get(plain.removesuffix(tail))):
                return found
        return None


# --- walking a document --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Walked:
    """What one document says, while it is put together."""

    found: dict[tuple[str, str], ReadGrade] = field(default_factory=dict)
    strangers: list[str] = field(default_factory=list)
    report: str = ""
    ranking: list[str] = field(default_factory=list)

    @property
    def readable(self) -> int:
        return sum(grade.score is not None and grade.score.raw is not None for grade in self.found.values())

    @property
    def graded(self) -> set[str]:
        return {candidate for candidate, _ in self.found}

    def note(self, candidate: str, criterion: str, grade: ReadGrade) -> None:
        before = self.found.get((candidate, criterion))
        if before is None or grade.weight >= before.weight:
            self.found[candidate, criterion] = grade

    def take_whom_it_lacks(self, other: _Walked) -> None:
        """Take over candidates that only another document grades: judges write one document a candidate at times."""
        lacked = other.graded - self.graded
        self.found.update({key: grade for key, grade in other.found.items() if key[0] in lacked})
        self.ranking = self.ranking or other.ranking
        if lacked and other.report and other.report not in self.report:
            self.report = f"{self.report}\n\n{other.report}".strip()


@dataclass(frozen=True, slots=True)
class _Stranger:
    """A label that is nobody's."""

    label: str


def _walk_document(value: JsonValue, names: _Names) -> _Walked:
    walked = _Walked()
    _walk(value, walked, names, whose=None, about=None, depth=0)
    return walked


def _walk(
    node: JsonValue,
    walked: _Walked,
    names: _Names,
    *,
    whose: str | _Stranger | None,
    about: Criterion | None,
    depth: int,
) -> None:
    if depth > MAX_WALK:
        return
    if isinstance(node, list):
        for item in node:
            _walk(item, walked, names, whose=whose, about=about, depth=depth + 1)
        return
    if isinstance(node, str) and node.lstrip()[:1] == "{" and depth < 3:  # a document inside a string of the document
        for document in read_loosely(node).documents:
            _walk(document.value, walked, names, whose=whose, about=about, depth=depth + 2)
        return
    if not isinstance(node, dict):
        _note_scalar(node, walked, names, whose=whose, about=about)
        return
    fields = _by_canonical_key(node)
    whose, about = _from_fields(fields, names, whose=whose, about=about)
    grade_keys = _note_grade(fields, walked, names, whose=whose, about=about)
    for plain, (key, value) in fields.items():
        if plain in grade_keys:
            continue
        if whose is None and (candidate := names.candidate(key)):
            _walk(value, walked, names, whose=candidate, about=about, depth=depth + 1)
        elif about is None and (criterion := names.criterion(key)):
            _note_criterion(fields, plain, value, walked, names, whose=whose, about=criterion, depth=depth)
        elif plain in _RANKING_KEYS:
            walked.ranking = walked.ranking or list(_ranked(value, names))
        elif plain in _REPORT_KEYS and isinstance(value, str):
            walked.report = walked.report or value
        elif isinstance(value, dict | list):
            stranger = whose is None and isinstance(value, dict) and _LABEL_LIKE.match(key.strip(_WRAPPING))
            _walk(value, walked, names, whose=_Stranger(key) if stranger else whose, about=about, depth=depth + 1)
        elif isinstance(value, str) and value.lstrip()[:1] == "{":
            _walk(value, walked, names, whose=whose, about=about, depth=depth + 1)
        elif about is not None and whose is None and _LABEL_LIKE.match(key.strip(_WRAPPING)):
            _note_scalar(value, walked, names, whose=_Stranger(key), about=about)


def _by_canonical_key(node: dict[str, JsonValue]) -> dict[str, tuple[str, JsonValue]]:
    fields: dict[str, tuple[str, JsonValue]] = {}
    for key, value in node.items():
        fields[_canonical(key)] = (key, value)
    return fields


def _from_fields(
    fields: dict[str, tuple[str, JsonValue]], names: _Names, *, whose: str | _Stranger | None, about: Criterion | None
) -> tuple[str | _Stranger | None, Criterion | None]:
    """Whom and what a row is about by its own fields (`"candidate": "A"`, `"criterion": "integrity"`)."""
    if about is None:
        for plain in _CRITERION_FIELDS:
            told = fields.get(plain, ("", None))[1]
            if isinstance(told, str) and (about := names.criterion(told)):
                break
    if whose is None:
        for plain in _CANDIDATE_FIELDS:
            told = fields.get(plain, ("", None))[1]
            if isinstance(told, str) and (whose := names.candidate(told)):
                return whose, about
        for plain in _CANDIDATE_FIELDS:
            told = fields.get(plain, ("", None))[1]
            certain = plain in _SURE_CANDIDATE_FIELDS
            if (
                isinstance(told, str)
                and (certain or _LABEL_LIKE.match(told))
                and names.criterion(told) is None
                and told.strip()
            ):
                return _Stranger(told.strip()), about
    return whose, about


def _note_grade(
    fields: dict[str, tuple[str, JsonValue]],
    walked: _Walked,
    names: _Names,
    *,
    whose: str | _Stranger | None,
    about: Criterion | None,
) -> frozenset[str]:
    """Note the grade that this object itself is, if it is one; the keys it used up."""
    criterion = about or names.lone_criterion
    if criterion is None:
        return frozenset()
    score_key = next(
        (
            plain
            for plain in _SCORE_KEYS
            if plain in fields
            and not isinstance(fields[plain][1], dict | list)
            and (whose is not None or names.candidate(fields[plain][0]) is None)
            and (about is not None or names.criterion(fields[plain][0]) is None)
            and not (plain == "label" and isinstance(fields[plain][1], str) and names.candidate(str(fields[plain][1])))
        ),
        None,
    )
    reasons = [plain for plain in _REASON_KEYS if isinstance(fields.get(plain, ("", None))[1], str)]
    if score_key is None and not (about is not None and reasons):
        return frozenset()
    total = next((fields[plain][1] for plain in _TOTAL_KEYS if plain in fields), None)
    used = {score_key, *reasons, *(plain for plain in _TOTAL_KEYS if plain in fields)} - {None}
    evidence_keys = [plain for plain in _EVIDENCE_KEYS if plain in fields]
    used |= {*evidence_keys, "confidence"}
    grade = ReadGrade(
        score=read_score(fields[score_key][1], criterion, total=total) if score_key else None,
        reason=str(fields[reasons[0]][1]).strip() if reasons else "",
        evidence=tuple(text for plain in evidence_keys for text in _texts(fields[plain][1])),
        confidence=_confidence(fields.get("confidence", ("", None))[1]),
    )
    _note(grade, walked, names, whose=whose, criterion=criterion)
    return frozenset(plain for plain in used if plain is not None)


def _note_criterion(
    fields: dict[str, tuple[str, JsonValue]],
    plain: str,
    value: JsonValue,
    walked: _Walked,
    names: _Names,
    *,
    whose: str | _Stranger | None,
    about: Criterion,
    depth: int,
) -> None:
    """Note what stands under a criterion's key: a score with its reason beside it, a grade, or grades by candidate."""
    if isinstance(value, dict | list):
        if isinstance(value, list) and len(value) == 1 and not isinstance(value[0], dict | list):
            value = value[0]
        else:
            _walk(value, walked, names, whose=whose, about=about, depth=depth + 1)
            return
    beside = _canonical(about.name)
    reason = next(
        (str(told) for tail in _REASON_KEYS if isinstance(told := fields.get(beside + tail, ("", None))[1], str)), ""
    )
    evidence = tuple(text for tail in _EVIDENCE_KEYS for text in _texts(fields.get(beside + tail, ("", None))[1]))
    score = read_score(value, about)
    if score is None and not reason:
        return
    _note(
        ReadGrade(score=score, reason=reason.strip(), evidence=evidence), walked, names, whose=whose, criterion=about
    )  # fmt: skip


def _note_scalar(
    value: JsonValue, walked: _Walked, names: _Names, *, whose: str | _Stranger | None, about: Criterion | None
) -> None:
    criterion = about or (names.lone_criterion if whose is not None else None)
    if criterion is None or isinstance(value, dict | list) or (score := read_score(value, criterion)) is None:
        return
    if whose is None and score.raw is None:
        return
    _note(ReadGrade(score=score), walked, names, whose=whose, criterion=criterion)


def _note(
    grade: ReadGrade, walked: _Walked, names: _Names, *, whose: str | _Stranger | None, criterion: Criterion
) -> None:
    if isinstance(whose, _Stranger):
        if grade.score is not None:
            walked.strangers.append(whose.label)
        return
    candidate = whose or names.lone_candidate
    if candidate is not None:
        walked.note(candidate, criterion.name, grade)


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, str) and item.strip():
                yield item
            elif isinstance(item, dict):
                yield from (text for text in item.values() if isinstance(text, str) and len(text.strip()) > 2)


def _confidence(value: JsonValue) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str) and not isinstance(value, CutText):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(%?)\s*", value)
        if match is None:
            return None
        value = float(match[1]) / (100 if match[2] else 1)
    if isinstance(value, int | float) and 0 <= value <= 1:
        return float(value)
    return None


def _ranked(value: JsonValue, names: _Names) -> Iterator[str]:
    """Names best first, out of a list, a list of rows, a mapping from label to rank or from rank to label, or a line."""
    if isinstance(value, str):
        value = [*re.split(r"\s*(?:>|,|\n|;|→|->|\d+[.)]\s)\s*", value[:2000])]
    if isinstance(value, dict):
        places: list[tuple[float, str]] = []
        for key, told in value.items():
            if isinstance(told, int | float) and (name := names.candidate(key)):
                places.append((float(told), name))
            elif isinstance(told, str) and re.fullmatch(r"\d{1,3}", key.strip()) and (name := names.candidate(told)):
                places.append((float(key), name))
        yield from (name for _, name in sorted(places, key=lambda place: place[0]))
        return
    if not isinstance(value, list):
        return
    rows: list[tuple[float, str]] = []
    for place, item in enumerate(value):
        if isinstance(item, dict):
            fields = _by_canonical_key(item)
            whose, _ = _from_fields(fields, names, whose=None, about=None)
            rank = next((fields[key][1] for key in ("rank", "place", "position") if key in fields), None)
            if isinstance(whose, str):
                rows.append((float(rank) if isinstance(rank, int | float) else float(place), whose))
        elif isinstance(item, str) and (name := names.candidate(item)):
            rows.append((float(place), name))
    yield from (name for _, name in sorted(rows, key=lambda row: row[0]))


# --- replies without JSON ------------------------------------------------------------------------------------------

_LONE_CALLED: Final = ("score", "rating", "grade", "verdict", "final answer", "final score", "overall score")
_LEADING_NUMBER: Final = re.compile(
    rf"[*_`\"'\[( ]*{_NUMERAL}\s*(?:/\s*{_NUMERAL}|out\s+of\s+{_NUMERAL}|%)?(?:(?![\w%/])|(?=[A-Z][a-z]))"
)
_LEADING_WORDS: Final = re.compile(r"[*_`\"'\[( ]*([A-Za-z][\w ]{0,30}?)[*_`\"'\]).,;:!]*(?:\s|$)")


def _plain_grades(prose: str, names: _Names, rubric: Rubric) -> dict[tuple[str, str], ReadGrade]:
    """Grades of a lone candidate written as lines (`Score: 8/10`, `integrity: 7`); the last line of a kind holds."""
    if names.lone_candidate is None or not prose:
        return {}
    grades: dict[tuple[str, str], ReadGrade] = {}
    for criterion in rubric.criteria:
        called = (criterion.name, *(_LONE_CALLED if names.lone_criterion else ()))
        score = _spoken_score(prose, called, criterion)
        if score is None and names.lone_criterion:
            score = _whole_score(prose, criterion) or _declared_label(prose, criterion)
        if score is not None:
            reason = "" if len(prose) < 40 else prose
            grades[names.lone_candidate, criterion.name] = ReadGrade(
                score=score, reason=reason if names.lone_criterion else ""
            )
    return grades


def _spoken_score(prose: str, called: tuple[str, ...], criterion: Criterion) -> ReadScore | None:
    names = "|".join(r"[\s_\-]{1,3}".join(re.escape(part) for part in re.split(r"[\s_\-]+", name)) for name in called)
    line = re.compile(
        rf"(?:^|(?<=[\s*_#>|(\[0-9]))(?:{names})(?:[ \t]+(?:score|rating|grade))?[\"'*_`\])]{{0,4}}[ \t]*"
        rf"(?:[:=|]|\bis\b|\bof\b|–|—|-(?=[ \t]))[ \t]*(?P<value>[^\n|]{{1,200}})",
        re.IGNORECASE | re.MULTILINE,
    )
    best = None
    position = 0
    while match := line.search(prose, position):
        position = match.start("value")  # a value may hold the next name: `first: 8second: 6`
        value = match["value"].strip()
        leading = (_LEADING_WORDS if criterion.labels else _LEADING_NUMBER).match(value)
        for part in (value.strip(_WRAPPING), leading[0].strip(_WRAPPING) if leading else ""):
            score = read_score(part, criterion) if part else None
            if score and score.raw is not None and (score.by_word or not criterion.labels):
                best = score
                break
    return best


def _whole_score(prose: str, criterion: Criterion) -> ReadScore | None:
    """A reply that is nothing but the score."""
    score = read_score(prose, criterion) if len(prose) <= 40 else None
    return score if score and score.raw is not None else None


def _declared_label(prose: str, criterion: Criterion) -> ReadScore | None:
    """The label that a line consists of, or that is said to be better; the last one holds, two in the first line none."""
    best: tuple[int, ReadScore] | None = None
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


# --- what was found instead ----------------------------------------------------------------------------------------

_REFUSAL: Final = re.compile(
    r"\b(?:I(?:['’]m| am) (?:sorry|unable|not able)|I (?:can(?:no|['’])t|cannot|won['’]t|must decline)|"
    r"(?:can|could)(?:not|['’]t) (?:assist|help|comply|grade|evaluate))",
    re.IGNORECASE,
)


def _what_was_found(text: str, loose: LooseText) -> str:
    if not text.strip():
        return "The judge's reply is empty."
    if loose.thoughts_only:
        return "The judge's reply holds only its thinking and no answer."
    if loose.documents:
        cut = " and breaks off" if loose.truncated else ""
        return f"The judge's reply holds JSON{cut}, but no grade for any candidate and criterion of the rubric."
    if _REFUSAL.search(loose.prose[:600]):
        return f"The judge refused: “{_start_of(loose.prose)}”"
    return f"The judge's reply is prose without grades: “{_start_of(loose.prose or text)}”"


def _start_of(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:79]}…"
