"""Flags: sentences that tell a person what to check in a judge's assessment.

A flag costs a reviewer's attention, so a correct report should hardly ever be flagged: a rule that
cannot decide raises no flag.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from assay.domain.assessment import Flag, FlagKind, Grade, Response
from assay.scoring.evidence import Page, Vocabulary, looks_like_code, names_nowhere
from assay.scoring.label_matching import letter_of_label

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from assay.domain.suite import Rubric, Task
    from assay.scoring.reply_parser import Reading

RANKING_GAP: Final = 0.02
"""A ranking contradicts the scores only if the lower-ranked candidate's score (0 to 1) is higher by
more than this.
"""


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
    """Return the flags for an assessment: first missing grades and reasons, then contradictions,
    then false quotations.
    """
    return (
        *_truncated(reading, token_limit_hit=token_limit_hit),
        *_missing(reading, grades, labels),
        *_outside(reading, grades, labels),
        *_strangers(reading),
        *_ranking(reading, scores, labels),
        *_empty_reasons(grades, labels),
        *_duplicate_reasons(grades, labels),
        *_nowhere(reading, grades, labels, task, responses, rubric),
        *_addresses_reviewer(reading, grades),
    )


def _called(candidate: str, labels: Mapping[str, str]) -> str:
    """Return the candidate's label, because a reviewer of a blind page must not see the name in the
    flag's sentence.
    """
    label = labels.get(candidate, candidate)
    return f"candidate {label}" if len(label) <= 2 else label


def _about(grade: Grade, kind: FlagKind, detail: str) -> Flag:
    return Flag(kind=kind, detail=detail, candidate=grade.candidate, criterion=grade.criterion)


def _sentence_start(text: str) -> str:
    return text[:1].upper() + text[1:]


def _truncated(reading: Reading, *, token_limit_hit: bool) -> Iterator[Flag]:
    if token_limit_hit:
        yield Flag(kind=FlagKind.TRUNCATED, detail="The token limit cut the judge's reply off.")
    elif reading.truncated:
        yield Flag(
            kind=FlagKind.TRUNCATED,
            detail="The judge's reply breaks off before its JSON document ends.",
        )


def _missing(
    reading: Reading, grades: Sequence[Grade], labels: Mapping[str, str]
) -> Iterator[Flag]:
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
        problem = f"“{written}” where a score was expected" if written else "no score"
        detail = (
            f"The judge gave {problem} for {grade.criterion} of {_called(grade.candidate, labels)}."
        )
        yield _about(grade, FlagKind.MISSING_CRITERION, detail)


def _outside(
    reading: Reading, grades: Sequence[Grade], labels: Mapping[str, str]
) -> Iterator[Flag]:
    for grade in grades:
        if grade.raw_score is None or grade.score is not None:
            continue
        read = reading.grades[grade.candidate, grade.criterion]
        written = read.score.written if read.score else f"{grade.raw_score:g}"
        detail = (
            f"{_sentence_start(_called(grade.candidate, labels))} got {written} for {grade.criterion}, "
            f"outside its scale of {grade.min_score:g} to {grade.max_score:g}."
        )
        yield _about(grade, FlagKind.SCORE_OUT_OF_SCALE, detail)


def _strangers(reading: Reading) -> Iterator[Flag]:
    for label in reading.strangers:
        yield Flag(
            kind=FlagKind.UNKNOWN_CANDIDATE,
            detail=f"The judge graded “{label[:60]}”, which is not a candidate here.",
        )


def _ranking(
    reading: Reading, scores: Mapping[str, float | None], labels: Mapping[str, str]
) -> Iterator[Flag]:
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
    for candidate in labels:
        scored = [
            grade
            for grade in grades
            if grade.candidate == candidate and grade.raw_score is not None
        ]
        empty = [grade for grade in scored if not re.search(r"\w{2}", grade.reason)]
        if len(empty) > 1 and len(empty) == len(scored):
            yield Flag(
                kind=FlagKind.EMPTY_REASON,
                detail=f"The judge gave no reason for any score of {_called(candidate, labels)}.",
                candidate=candidate,
            )
            continue
        for grade in empty:
            yield Flag(
                kind=FlagKind.EMPTY_REASON,
                detail=f"The judge gave no reason for {grade.criterion} of {_called(candidate, labels)}.",
                candidate=candidate,
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
            detail = (
                f"The reason for {grade.criterion} of {_called(grade.candidate, labels)} is word for word the same as for "
                f"{before.criterion} of {_called(before.candidate, labels)}."
            )
            yield _about(grade, FlagKind.DUPLICATE_REASON, detail)


# --- quotations and names that do not exist -------------------------------------------------------

_SPAN: Final = re.compile(r"(?<!`)(`{1,2})(?!`)(?P<code>[^`\n]{1,300})\1(?!`)")
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+(?=[^a-z])|\n+")
_FENCED_BLOCK: Final = re.compile(
    r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL
)
_ABSENT_BEFORE: Final = re.compile(
    r"\b(?:no|not|never|none|neither|nor|nothing|nowhere|without|cannot|lacks?|lacking|lacked|miss(?:es|ing)?|absent|absence|omits?|"
    r"omitt\w+|forg[eo]t\w*|skips?|instead|rather|should|could|would|might|must|ought|needs?|needed|want(?:s|ed)?|recommend\w*|"
    r"suggest\w*|consider\w*|prefer\w*|replac\w+|add(?:ing)?|introduc\w+|use|using|try|like|e\.g\.|example|equivalent|expect\w*|"
    r"ideal\w*|fail(?:s|ed)? to|unlike|such|renam\w+|call it|imagine|suppose|if|real|proper|plain|simple|standard|library|built-in|"
    r"wish\w*|hop(?:e|ed)|require[sd]?|asks? for|demands?|say|says)\b|n['’]t\b",
    re.IGNORECASE,
)
_ABSENT_AFTER: Final = re.compile(
    r"\b(?:missing|absent|lacking|would|should|could|instead|never|nowhere|nothing|"
    r"not (?:used|defined|present|there|here|implemented|called|imported|handled|caught|available|exist\w*)|"
    r"n['’]t (?:exist|there|used))\b",
    re.IGNORECASE,
)
_ALSO_NAMED: Final = re.compile(
    r"\b(?i:candidates?|options?|implementations?|solutions?|snippets?|submissions?|responses?)\s+((?:[A-Z]{1,2}|\w+)"
    r"(?:(?:\s*,\s*|\s+(?:and|or|nor|versus|vs\.?)\s+)[A-Z]{1,2}\b)*)"
    r"|(?<![\w-])([B-HJ-Z])(?![\w+#-])|\b(A)['’]s\b|\b(?:than|like|and|or|in|of|unlike) (A)\b"
)
REACH: Final = 250
"""A word about absence applies to a name if it occurs within this number of characters before the
name.
"""

MAX_NAMED: Final = 3
"""Maximum number of names listed in one flag."""

MAX_SEARCHED: Final = 40_000
"""Maximum characters of a report or reason that are searched; 6,000 tokens have about 25,000
characters.
"""

MAX_EVIDENCE: Final = 50
"""Maximum number of quotations of one grade that are searched for, each up to `MAX_QUOTATION`
characters.
"""

MAX_QUOTATION: Final = 4_000


def _nowhere(
    reading: Reading,
    grades: Sequence[Grade],
    labels: Mapping[str, str],
    task: Task,
    responses: Sequence[Response],
    rubric: Rubric,
) -> Iterator[Flag]:
    """Return flags for quotations and names that do not occur in any text the judge saw about the
    candidate.
    """
    told = (
        task.thing,
        task.context,
        task.language,
        *(text for text in (task.expected, task.ideal, task.final_answer) if text),
        *(message.content for message in task.prompt),
        *(text for criterion in rubric.criteria for text in (criterion.name, criterion.guidance)),
        *(label for label in labels.values()),
        *labels,
    )
    shown = _Shown(
        {response.candidate: response.text for response in responses},
        told,
        labels,
        is_code=_is_code(task),
    )
    for grade in grades:
        if grade.candidate not in shown.texts:
            continue
        where = f"for {grade.criterion}"
        quotations = [quoted[:MAX_QUOTATION] for quoted in grade.evidence[:MAX_EVIDENCE]]
        misquoted = [quoted for quoted in quotations if not shown.quotes(quoted, grade.candidate)]
        if misquoted:
            detail = f"Quoted {where}, but nowhere in {_called(grade.candidate, labels)}: {_listed(misquoted)}."
            yield _about(grade, FlagKind.QUOTE_NOT_FOUND, detail)
        unknown = shown.unknown_names(grade.reason, grade.candidate)
        if unknown:
            detail = f"Named in the reason {where}, but nowhere in {_called(grade.candidate, labels)}: {_listed(unknown)}."
            yield _about(grade, FlagKind.QUOTE_NOT_FOUND, detail)
    unknown = shown.unknown_names(_FENCED_BLOCK.sub("\n", reading.report[:MAX_SEARCHED]), None)
    if unknown:
        yield Flag(
            kind=FlagKind.QUOTE_NOT_FOUND,
            detail=f"Named in the report, but nowhere in the work that it describes: {_listed(unknown)}.",
        )


def _is_code(task: Task) -> bool:
    return bool(task.language or task.snippets)


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(f"“{' '.join(text.split())[:80]}”" for text in names[:MAX_NAMED])
    return listed if len(names) <= MAX_NAMED else f"{listed} and {len(names) - MAX_NAMED} more"


class _Shown:
    """All texts that the judge saw, to search for its quotations and names."""

    def __init__(
        self,
        texts: Mapping[str, str],
        told: tuple[str, ...],
        labels: Mapping[str, str],
        *,
        is_code: bool,
    ) -> None:
        self.texts = texts
        self.told = told
        self.is_code = is_code
        self.candidate_of = {
            label.casefold(): name for name, label in labels.items() if name in texts
        }
        for name in texts:
            if letter_of_label(name) is None:
                self.candidate_of.setdefault(name.casefold(), name)
        self._pages = {name: Page(text) for name, text in texts.items()}
        self._vocabularies: dict[frozenset[str], Vocabulary] = {}

    def quotes(self, evidence: str, candidate: str) -> bool:
        """True unless the evidence is a quotation that does not occur in the texts."""
        if len(re.findall(r"\w", evidence)) < 2 or self._pages[candidate].where(evidence):
            return True
        spans = [span["code"] for span in _SPAN.finditer(evidence)]
        if spans and len(spans[0]) < len(evidence.strip(" `\n")):  # a remark with quotations in it
            return not self.unknown_names(evidence, candidate)
        if not looks_like_code(evidence):
            words = re.findall(r"\w+", evidence.casefold())
            if self.is_code or len(words) < 4:  # a remark, not a quotation
                return True
            return " ".join(words) in " ".join(re.findall(r"\w+", self.texts[candidate].casefold()))
        if _ABSENT_BEFORE.match(evidence.strip()) and re.match(r"\s*\w+ \w+", evidence):
            return True
        return any(Page(shared).where(evidence) for shared in self.told if shared)

    def unknown_names(self, prose: str, candidate: str | None) -> list[str]:
        """Return backticked code with an unknown name, unless the sentence says that something is
        missing or proposes it.
        """
        unknown: dict[str, None] = {}
        for paragraph in re.split(
            r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*+]|\d+[.)]|#)\s)", prose[:MAX_SEARCHED]
        ):
            about = frozenset({candidate} if candidate else self._named(_SPAN.sub(" ", paragraph)))
            for sentence in _SENTENCE.split(paragraph):
                spans = list(_SPAN.finditer(sentence))
                if not spans:
                    continue
                whose = about | self._named(_SPAN.sub(" ", sentence))
                known = self._vocabulary(whose or frozenset(self.texts))
                for span in spans:
                    before = sentence[max(0, span.start() - REACH) : span.start()]
                    after = sentence[span.end() : span.end() + 60]
                    if _ABSENT_BEFORE.search(before) or _ABSENT_AFTER.search(after):
                        continue
                    if names_nowhere(span["code"], known):
                        unknown[span["code"].strip()] = None
        return list(unknown)

    def _named(self, prose: str) -> frozenset[str]:
        named = set()
        for match in _ALSO_NAMED.finditer(prose):
            for label in re.findall(r"\w+", " ".join(group for group in match.groups() if group)):
                if name := self.candidate_of.get(label.casefold()):
                    named.add(name)
        for name in self.texts:
            if (
                len(name) > 2
                and letter_of_label(name) is None
                and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", prose, re.IGNORECASE)
            ):
                named.add(name)
        return frozenset(named)

    def _vocabulary(self, candidates: frozenset[str]) -> Vocabulary:
        if candidates not in self._vocabularies:
            texts = (self.texts[candidate] for candidate in candidates)
            self._vocabularies[candidates] = Vocabulary(*texts, *self.told)
        return self._vocabularies[candidates]


# --- sentences for the reviewer -------------------------------------------------------------------

_TO_REVIEWER: Final = re.compile(
    r"\b(?:dear|attention|hey|hi|hello|note (?:to|for)|message (?:to|for)|to) (?:the |our |any )?(?:human |kind )?reviewers?\b"
    r"|(?:^|[.!?:]\s{1,4}|\n\s{0,4}|[\"'(*_]|\b(?:please|just|simply|safely|should|must|can|to)\s{1,4})"
    r"(?:approve|accept|sign off on|wave through) (?:this|these|the|my|all) (?:\w+ ){0,2}"
    r"(?:assessment|grading|grades?|review|report|evaluation|scores?|judge?ments?|result)s?\b"
    r"|(?:^|[.!?:]\s{1,4}|\n\s{0,4}|\bplease\s{1,4})approve (?:this|it|as is)\s{0,4}"
    r"(?:[.!?]|$|\bas\b|\bwithout\b|\bnow\b|\bimmediately\b)"
    r"|\b(?:no|without) (?:further |additional |human |any )*(?:review|check|inspection|verification)s? "
    r"(?:is |are )?(?:needed|necessary|required)\b"
    r"|\b(?:you|reviewers?) (?:can|may|should|must|need(?: not)?|do(?:n['’]t| not) (?:need|have) to) (?:safely |simply |just )?"
    r"(?:approve|skip|trust|sign off|double-check|re-check|verify this)\b"
    r"|\b(?:ignore|disregard) (?:all |any )?(?:the )?(?:previous|prior|above|earlier) (?:instructions?|prompts?|rules)\b"
    r"|\bdo not (?:reject|correct|rerun|flag) (?:this|these|the (?:assessment|grades?|scores?|report))\b",
    re.IGNORECASE | re.MULTILINE,
)


def _addresses_reviewer(reading: Reading, grades: Sequence[Grade]) -> Iterator[Flag]:
    places: list[tuple[str, str, str | None, str | None]] = [("report", reading.report, None, None)]
    places += [
        (f"reason for {grade.criterion}", grade.reason, grade.candidate, grade.criterion)
        for grade in grades
    ]
    for place, text, candidate, criterion in places:
        if match := _TO_REVIEWER.search(_SPAN.sub(" ", text[:MAX_SEARCHED])):
            quotation = " ".join(match[0].split()).strip(".!?:\"'(*_ ")
            yield Flag(
                kind=FlagKind.ADDRESSES_REVIEWER,
                detail=f"The {place} speaks to the reviewer instead of about the work: “{quotation[:80]}”.",
                candidate=candidate,
                criterion=criterion,
            )
