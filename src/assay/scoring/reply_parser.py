"""Parser for judges' replies: finds grades by candidate and criterion in JSON of any layout, or in
prose.

The parser walks through the reply's JSON documents and keeps track of the candidate and criterion
of each value. Both are named by keys (`"A": …`, `"integrity": …`) or by fields of a row
(`"candidate": "A"`), nested in any order; all other keys are ignored. A scale is never guessed from
the size of a number: `85` is outside a scale up to 10, while `85%` and `8.5/10` are unambiguous.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from assay.domain.digest import JsonValue
from assay.domain.suite import Criterion, Rubric
from assay.scoring.evaluator import UnreadableReply
from assay.scoring.json_repair import CutText, LooseText, read_loosely
from assay.scoring.label_matching import GLUED_NOUN, NOUN, WRAPPING, Names, canonical
from assay.scoring.prose_grades import MAX_PLAIN, spoken_grades
from assay.scoring.score_parsing import ReadGrade, read_score

MAX_WALK: Final = 12
"""Maximum levels of nesting that are followed; a judge's answer needs five."""

MAX_DOCUMENTS: Final = 200
"""Only this number of documents at the end of a reply are read; a grading has one, or one per
candidate.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The grades read from a reply.

    Attributes:
        grades: keyed by (candidate's name, criterion); grades that the judge left out are missing.
        strangers: labels that the judge graded although no candidate has them.
        ranking: names, best first.
        truncated: True if the end of the reply's document is missing.
        repairs: repairs that the reply's JSON needed.
    """

    grades: Mapping[tuple[str, str], ReadGrade]
    strangers: tuple[str, ...] = ()
    report: str = ""
    ranking: tuple[str, ...] = ()
    truncated: bool = False
    repairs: tuple[str, ...] = ()


def read_grading(
    text: str, *, labels: Mapping[str, str], rubric: Rubric, cut: bool = False, spoken: bool = True
) -> Reading:
    """Return the grades in a judge's reply.

    Args:
        text: the reply, unchanged.
        labels: the label that the judge saw for each candidate's name. With a single candidate, the
            whole reply is about it.
        rubric: the criteria to grade.
        cut: True if the token limit cut the reply off; its last word may then be incomplete.
        spoken: True to read grades in prose too.

    Raises UnreadableReply if the reply has no grade; the message describes the reply.
    """
    loose = read_loosely(text)
    if not loose.documents and "&quot;" in text:
        loose = read_loosely(html.unescape(text))
    names = Names(labels, rubric)
    walks = [_Walk(names).walk(document.value) for document in loose.documents[-MAX_DOCUMENTS:]]
    readings = [walk for walk in walks if walk.grades]
    if not readings:
        grades = spoken_grades(_prose(loose, cut=cut), labels, names, rubric) if spoken else {}
        if not grades:
            raise UnreadableReply(_what_was_found(text, loose))
        return Reading(grades=grades, report=loose.answer)
    best = max(
        range(len(readings)),
        key=lambda place: (readings[place].readable, len(readings[place].grades), place),
    )
    merged = readings[best]
    for other in (*readings[best + 1 :], *reversed(readings[:best])):
        merged.add_missing(other)
    known = set(merged.graded)
    return Reading(
        grades=merged.grades,
        strangers=tuple(dict.fromkeys(merged.strangers)),
        report=merged.report or loose.prose,
        ranking=tuple(
            dict.fromkeys(name for name in merged.ranking if name in known or name in labels)
        ),
        truncated=loose.truncated,
        repairs=tuple(
            sorted({repair for document in loose.documents for repair in document.repairs})
        ),
    )


def prose_of(text: str, *, cut: bool) -> str:
    """Return the end of a reply without its reasoning trace, and without its last word if it was
    cut off.
    """
    return _prose(read_loosely(text), cut=cut)


def _prose(loose: LooseText, *, cut: bool) -> str:
    answer = loose.answer[-MAX_PLAIN:]
    return _without_last_word(answer) if cut else answer


def _without_last_word(text: str) -> str:
    parts = text.rsplit(maxsplit=1)
    return parts[0] if len(parts) == 2 else ""


# --- names ----------------------------------------------------------------------------------------

_SCORE_KEYS: Final = (
    "score",
    "rating",
    "value",
    "points",
    "grade",
    "mark",
    "rawscore",
    "finalscore",
    "verdict",
    "label",
    "answer",
    "level",
)
_CHOICE_KEYS: Final = ("winner", "better", "betterone", "preferred", "choice")
"""Other names for a criterion whose scores are words."""
_REASON_KEYS: Final = (
    "reason",
    "justification",
    "rationale",
    "explanation",
    "comment",
    "comments",
    "reasoning",
    "feedback",
    "why",
    "notes",
)
_EVIDENCE_KEYS: Final = (
    "evidence",
    "quote",
    "quotes",
    "quotation",
    "quotations",
    "citation",
    "citations",
    "snippets",
)
_TOTAL_KEYS: Final = (
    "max",
    "maximum",
    "outof",
    "maxscore",
    "maxpoints",
    "maximumscore",
    "total",
    "scalemax",
)
_REPORT_KEYS: Final = (
    "report",
    "overallreport",
    "reportmarkdown",
    "summary",
    "overallassessment",
    "overall",
    "analysis",
    "review",
    "markdown",
)
_RANKING_KEYS: Final = (
    "ranking",
    "rankings",
    "rank",
    "ranks",
    "order",
    "finalranking",
    "overallranking",
)
_CANDIDATE_FIELDS: Final = (
    "candidate",
    "candidatelabel",
    "candidateid",
    "candidatename",
    "label",
    "id",
    "name",
    "option",
    "response",
    "implementation",
    "solution",
    "submission",
    "snippet",
    "model",
)
_SURE_CANDIDATE_FIELDS: Final = frozenset(
    {"candidate", "candidatelabel", "candidateid", "candidatename"}
)
_CRITERION_FIELDS: Final = (
    "criterion",
    "criteria",
    "criterionname",
    "dimension",
    "aspect",
    "metric",
    "category",
    "name",
    "id",
)
_LABEL_LIKE: Final = re.compile(
    rf"^(?:(?:{GLUED_NOUN})?[A-Z]{{1,2}}|{NOUN}[\s_\-:#]+[A-Za-z]{{1,2}})$"
)


# --- walking a document ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Stranger:
    label: str


_Whose: TypeAlias = str | _Stranger | None
_Fields: TypeAlias = "dict[str, tuple[str, JsonValue]]"


@dataclass(slots=True)
class _Walk:
    """Collects the grades of one document.

    `whose` and `about` are the candidate and criterion of the current value.
    """

    names: Names
    grades: dict[tuple[str, str], ReadGrade] = field(default_factory=dict)
    strangers: list[str] = field(default_factory=list)
    report: str = ""
    ranking: list[str] = field(default_factory=list)

    @property
    def readable(self) -> int:
        return sum(
            grade.score is not None and grade.score.raw is not None
            for grade in self.grades.values()
        )

    @property
    def graded(self) -> set[str]:
        return {candidate for candidate, _ in self.grades}

    def add_missing(self, other: _Walk) -> None:
        """Copy missing grades from another document; some judges write one document per candidate
        or grade.
        """
        lacked = other.graded - self.graded
        self.grades.update(
            {key: grade for key, grade in other.grades.items() if key not in self.grades}
        )
        self.ranking = self.ranking or other.ranking
        if lacked and other.report and other.report not in self.report:
            self.report = f"{self.report}\n\n{other.report}".strip()

    def walk(
        self, node: JsonValue, whose: _Whose = None, about: Criterion | None = None, depth: int = 0
    ) -> _Walk:
        if depth > MAX_WALK:
            return self
        if isinstance(node, list):
            for item in node:
                self.walk(item, whose, about, depth + 1)
        elif (
            isinstance(node, str) and node.lstrip()[:1] == "{" and depth < 3
        ):  # a document inside a string of this one
            for document in read_loosely(node).documents:
                self.walk(document.value, whose, about, depth + 2)
        elif isinstance(node, dict):
            self._walk_object(node, whose, about, depth)
        else:
            self._note_scalar(node, whose, about)
        return self

    def _walk_object(
        self, node: dict[str, JsonValue], whose: _Whose, about: Criterion | None, depth: int
    ) -> None:
        names, fields = self.names, _by_canonical_key(node)
        whose, about = _from_fields(fields, names, whose, about)
        grade_keys = self._note_grade(fields, whose, about)
        for plain, (key, value) in fields.items():
            if plain in grade_keys:
                continue
            if whose is None and (candidate := names.candidate(key)):
                self.walk(value, candidate, about, depth + 1)
            elif whose is None and about is None and (pair := names.both(key)):
                self.walk(value, *pair, depth + 1)
            elif about is None and (criterion := names.criterion(key)):
                self._note_criterion(fields, value, whose, criterion, depth)
            elif plain in _RANKING_KEYS:
                self.ranking = self.ranking or list(_ranked(value, names))
            elif plain in _REPORT_KEYS and isinstance(value, str):
                self.report = self.report or value
            elif isinstance(value, dict | list):
                stranger = (
                    whose is None
                    and isinstance(value, dict)
                    and _LABEL_LIKE.match(key.strip(WRAPPING))
                )
                self.walk(value, _Stranger(key) if stranger else whose, about, depth + 1)
            elif isinstance(value, str) and value.lstrip()[:1] == "{":
                self.walk(value, whose, about, depth + 1)
            elif about is not None and whose is None and _LABEL_LIKE.match(key.strip(WRAPPING)):
                self._note_scalar(value, _Stranger(key), about)

    def _note_grade(
        self, fields: _Fields, whose: _Whose, about: Criterion | None
    ) -> frozenset[str]:
        """Record this object as a grade if it is one. Returns the keys that were used."""
        names = self.names
        criterion = about or names.lone_criterion
        if criterion is None:
            return frozenset()
        score_key = next(
            (
                plain
                for plain in (*_SCORE_KEYS, *(_CHOICE_KEYS if criterion.labels else ()))
                if plain in fields
                and not isinstance(fields[plain][1], dict | list)
                and (whose is not None or names.candidate(fields[plain][0]) is None)
                and (about is not None or names.criterion(fields[plain][0]) is None)
                and not (
                    plain == "label"
                    and isinstance(fields[plain][1], str)
                    and names.candidate(str(fields[plain][1]))
                )
            ),
            None,
        )
        reasons = [plain for plain in _REASON_KEYS if isinstance(_value(fields, plain), str)]
        if score_key is None and not (about is not None and reasons):
            return frozenset()
        total_keys = [plain for plain in _TOTAL_KEYS if plain in fields]
        evidence_keys = [plain for plain in _EVIDENCE_KEYS if plain in fields]
        total = fields[total_keys[0]][1] if total_keys else None
        grade = ReadGrade(
            score=read_score(fields[score_key][1], criterion, total=total) if score_key else None,
            reason=str(fields[reasons[0]][1]).strip() if reasons else "",
            evidence=tuple(text for plain in evidence_keys for text in _texts(fields[plain][1])),
            confidence=_confidence(_value(fields, "confidence")),
        )
        self._note(grade, whose, criterion)
        return frozenset(
            {score_key or "confidence", "confidence", *reasons, *total_keys, *evidence_keys}
        )

    def _note_criterion(
        self, fields: _Fields, value: JsonValue, whose: _Whose, about: Criterion, depth: int
    ) -> None:
        """Record a criterion's value: a score (with its reason under another key), a grade object,
        or grades by candidate.
        """
        if isinstance(value, list) and len(value) == 1 and not isinstance(value[0], dict | list):
            value = value[0]
        if isinstance(value, dict | list):
            self.walk(value, whose, about, depth + 1)
            return
        beside = canonical(about.name)
        reasons = (_value(fields, beside + tail) for tail in _REASON_KEYS)
        reason = next((told.strip() for told in reasons if isinstance(told, str)), "")
        evidence = tuple(
            text for tail in _EVIDENCE_KEYS for text in _texts(_value(fields, beside + tail))
        )
        score = read_score(value, about)
        if score is not None or reason:
            self._note(ReadGrade(score=score, reason=reason, evidence=evidence), whose, about)

    def _note_scalar(self, value: JsonValue, whose: _Whose, about: Criterion | None) -> None:
        criterion = about or (self.names.lone_criterion if whose is not None else None)
        if (
            criterion is None
            or isinstance(value, dict | list)
            or (score := read_score(value, criterion)) is None
        ):
            return
        if whose is not None or score.raw is not None:
            self._note(ReadGrade(score=score), whose, criterion)

    def _note(self, grade: ReadGrade, whose: _Whose, criterion: Criterion) -> None:
        if isinstance(whose, _Stranger):
            if grade.score is not None:
                self.strangers.append(whose.label)
        elif (candidate := whose or self.names.lone_candidate) is not None:
            before = self.grades.get((candidate, criterion.name))
            if before is None or grade.weight >= before.weight:
                self.grades[candidate, criterion.name] = grade


def _by_canonical_key(node: dict[str, JsonValue]) -> _Fields:
    return {canonical(key): (key, value) for key, value in node.items()}


def _value(fields: _Fields, plain: str) -> JsonValue:
    return fields.get(plain, ("", None))[1]


def _from_fields(
    fields: _Fields, names: Names, whose: _Whose = None, about: Criterion | None = None
) -> tuple[_Whose, Criterion | None]:
    """Return the candidate and criterion that a row names in its own fields (`"candidate": "A"`,
    `"criterion": "integrity"`).
    """
    if about is None:
        for plain in _CRITERION_FIELDS:
            told = _value(fields, plain)
            if isinstance(told, str) and (about := names.criterion(told)):
                break
    if whose is None:
        for plain in _CANDIDATE_FIELDS:
            told = _value(fields, plain)
            if isinstance(told, str) and (whose := names.candidate(told)):
                return whose, about
        for plain in _CANDIDATE_FIELDS:
            told = _value(fields, plain)
            if not isinstance(told, str) or not told.strip() or names.criterion(told) is not None:
                continue
            if plain in _SURE_CANDIDATE_FIELDS or _LABEL_LIKE.match(told):
                return _Stranger(told.strip()), about
    return whose, about


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, str) and item.strip():
                yield item
            elif isinstance(item, dict):
                yield from (
                    text
                    for text in item.values()
                    if isinstance(text, str) and len(text.strip()) > 2
                )


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


def _ranked(value: JsonValue, names: Names) -> Iterator[str]:
    """Return names, best first, from a list, a list of rows, a mapping from labels to ranks or vice
    versa, or a line of text.
    """
    if isinstance(value, str):
        value = [*re.split(r"\s{0,20}(?:>|,|\n|;|→|->|\d+[.)]\s)\s{0,20}", value[:2000])]
    if isinstance(value, dict):
        places: list[tuple[float, str]] = []
        for key, told in value.items():
            if isinstance(told, int | float) and (name := names.candidate(key)):
                places.append((float(told), name))
            elif (
                isinstance(told, str)
                and re.fullmatch(r"\d{1,3}", key.strip())
                and (name := names.candidate(told))
            ):
                places.append((float(key), name))
        yield from (name for _, name in sorted(places, key=lambda place: place[0]))
        return
    if not isinstance(value, list):
        return
    rows: list[tuple[float, str]] = []
    for place, item in enumerate(value):
        if isinstance(item, dict):
            fields = _by_canonical_key(item)
            whose, _ = _from_fields(fields, names)
            rank = next(
                (fields[key][1] for key in ("rank", "place", "position") if key in fields), None
            )
            if isinstance(whose, str):
                rows.append((float(rank) if isinstance(rank, int | float) else float(place), whose))
        elif isinstance(item, str) and (name := names.candidate(item)):
            rows.append((float(place), name))
    yield from (name for _, name in sorted(rows, key=lambda row: row[0]))


# --- what was found instead -----------------------------------------------------------------------

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
