"""Laws of reading a judge's reply: nothing raises, nothing is invented, and what a person can read
is read exactly.
"""

from __future__ import annotations

import contextlib
import json
import string
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from assay.domain.assessment import Response
from assay.domain.calls import Reply
from assay.domain.model import ModelSpec
from assay.domain.suite import Criterion, JudgeSpec, Rubric, Scoring, Task
from assay.scoring.evaluator import GradingAttempt, UnreadableReply
from assay.scoring.json_repair import MAX_DEPTH, read_loosely
from assay.scoring.judge import JointJudge
from assay.scoring.reply_parser import read_grading
from assay.scoring.spoken_verdicts import spoken_verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.domain.digest import JsonValue

CRITERIA = ("integrity", "data_flow", "maintainability", "fitness")
RUBRIC = Rubric(criteria=tuple(Criterion(name=name) for name in CRITERIA))
LABELS = {"ada": "A", "bruno": "B", "chen": "C"}

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
MESSY = st.text(
    alphabet="{}[]\"':,\\/#`*<>thinkABscore integrity0127.%\n\t“”‘’\ufeff\x00\ud800é", max_size=300
)

WORDY = st.lists(
    st.sampled_from(
        [
            "`x.y()`",
            "candidate A",
            "there is no",
            "approve this",
            "\n\n",
            "`",
            "...",
            "`self.a = b`",
            "B's",
            "```",
        ]
    )
).map(" ".join)


@given(st.text() | MESSY)
def test_no_text_makes_the_reader_raise(text: str) -> None:
    loose = read_loosely(text)
    assert all(0 <= entry.start < entry.end <= max(len(text), 1) for entry in loose.documents)
    with contextlib.suppress(UnreadableReply):
        read_grading(text, labels=LABELS, rubric=RUBRIC)
    with contextlib.suppress(UnreadableReply):
        read_grading(text, labels={"ada": "A"}, rubric=RUBRIC)


@given(st.dictionaries(st.text(), JSON_VALUES) | st.lists(JSON_VALUES))
def test_json_reads_as_itself_except_for_unstorable_values(value: JsonValue) -> None:
    documents = read_loosely(json.dumps(value)).documents
    if '"' not in json.dumps(value) or not any(
        odd in json.dumps(value) for odd in ("\\u0000", "\\ud", "\\b", "\\f", "\\t", "\\n", "\\r")
    ):
        assert [entry.value for entry in documents] == [value]
        assert documents[0].repairs == ()
        assert not documents[0].truncated


@given(JSON_VALUES, st.data())
def test_a_damaged_document_never_raises(value: JsonValue, data: st.DataObject) -> None:
    text = json.dumps({"candidates": {"A": {"integrity": {"score": 7, "reason": value}}}})
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text)))
        width = data.draw(st.integers(0, 3))
        text = (
            text[:place]
            + data.draw(st.text(alphabet='{}[]",:\\\n a1', max_size=2))
            + text[place + width :]
        )
    read_loosely(text)
    with contextlib.suppress(UnreadableReply):
        read_grading(text, labels=LABELS, rubric=RUBRIC)


@given(MESSY | WORDY, MESSY | WORDY, st.lists(MESSY, max_size=2), MESSY | WORDY)
def test_flags_never_raise_and_always_say_something(
    reason: str, report: str, evidence: list[str], code: str
) -> None:
    grade = {"score": 7, "reason": reason, "evidence": evidence}
    text = json.dumps(
        {"candidates": {label: dict.fromkeys(CRITERIA, grade) for label in "ABC"}, "report": report}
    )
    task = Task(id="t", thing="t", language="python", scoring=Scoring(method="judge"))
    responses = tuple(Response(candidate=name, text=code) for name in LABELS)
    judge = JointJudge(JudgeSpec(name="judge", model=ModelSpec(provider="echo", name="")), RUBRIC)
    assessment = judge.read(
        GradingAttempt(task=task, responses=responses, labels=LABELS), (Reply(text=text),)
    )
    assert all(flag.detail for flag in assessment.flags)
    assert set(assessment.scores.values()) == {0.7}


# --- any grading in any style reads back exactly --------------------------------------------------


@dataclass(frozen=True)
class Given:
    score: float
    reason: str


@dataclass(frozen=True)
class Style:
    """How a judge writes JSON."""

    shape: str
    fence: str | None
    before: str
    after: str
    quote: str
    bare_keys: bool
    trailing_commas: bool
    comments: bool
    key_case: str
    score_form: str
    indent: int | None
    raw_newlines: bool
    thinks: bool
    cut_after: int | None


WORDS = st.text(
    alphabet=string.ascii_letters + string.digits + " .;()-+=*<>é", min_size=3, max_size=60
)
PLAIN = WORDS.map(lambda text: f"It {text} holds")
SCORES = st.integers(0, 20).map(lambda half: half / 2)
GRADINGS = st.fixed_dictionaries(
    {
        label: st.fixed_dictionaries({name: st.builds(Given, SCORES, PLAIN) for name in CRITERIA})
        for label in "ABC"
    }
)
STYLES = st.builds(
    Style,
    shape=st.sampled_from(
        ["ours", "flat", "wrapped", "listed", "rows", "criterion first", "scores only"]
    ),
    fence=st.sampled_from([None, "```json", "```", "~~~", "```JSON5"]),
    before=st.sampled_from(
        [
            "",
            "Here is my grading:",
            "I looked at `f(x)` and [1].\n\n# Verdict",
            "Sure! In A, `if (x) { y }` is odd.",
        ]
    ),
    after=st.sampled_from(
        ["", "Hope that helps!", "\nNote: {A} was close.", "Let me know [here](x)."]
    ),
    quote=st.sampled_from(['"', '"', "'", "“"]),
    bare_keys=st.booleans(),
    trailing_commas=st.booleans(),
    comments=st.booleans(),
    key_case=st.sampled_from(["lower", "Title", "UPPER"]),
    score_form=st.sampled_from(["number", "string", "of ten", "percent"]),
    indent=st.sampled_from([None, 0, 2]),
    raw_newlines=st.booleans(),
    thinks=st.booleans(),
    cut_after=st.none() | st.integers(1, 30),
)


@given(GRADINGS, STYLES)
def test_a_grading_reads_back_exactly_however_it_is_written(
    grading: dict[str, dict[str, Given]], style: Style
) -> None:
    reading = read_grading(written(grading, style), labels=LABELS, rubric=RUBRIC)
    name_of = {label: name for name, label in LABELS.items()}
    expected = {
        (name_of[label], name): given
        for label, rows in grading.items()
        for name, given in rows.items()
    }
    assert set(reading.grades) == set(expected)
    for key, given_grade in expected.items():
        read = reading.grades[key]
        assert read.score is not None
        assert read.score.raw == pytest.approx(given_grade.score)
        assert not read.score.outside
        if style.shape != "scores only":
            assert " ".join(read.reason.split()) == " ".join(given_grade.reason.split())
    assert reading.strangers == ()
    if style.shape == "ours":
        assert reading.truncated == (style.cut_after is not None)


def written(grading: dict[str, dict[str, Given]], style: Style) -> str:
    text = rendered(shaped(grading, style), style, 0)
    # the report stands last: only words are lost
    if style.cut_after is not None and style.shape == "ours":
        text = text[: text.rindex("The") + style.cut_after]
        return f"{thoughts(style)}{style.before}\n{style.fence or ''}\n{text}"
    fenced = f"{style.fence}\n{text}\n{style.fence[:3]}" if style.fence else text
    return f"{thoughts(style)}{style.before}\n{fenced}\n{style.after}"


def thoughts(style: Style) -> str:
    return '<think>Perhaps {"A": {"integrity": {"score": 1}}}?</think>\n' if style.thinks else ""


def shaped(grading: dict[str, dict[str, Given]], style: Style) -> JsonValue:
    def cased(key: str) -> str:
        return {"lower": key, "Title": key.replace("_", " ").title(), "UPPER": key.upper()}[
            style.key_case
        ]

    def score(given: Given) -> JsonValue:
        match style.score_form:
            case "number":
                return given.score
            case "string":
                return f"{given.score:g}"
            case "of ten":
                return f"{given.score:g}/10"
            case _:
                return f"{10 * given.score:g}%"

    def grade(given: Given) -> dict[str, JsonValue]:
        return {cased("score"): score(given), cased("reason"): given.reason}

    by_label: dict[str, JsonValue] = {
        label: {cased(name): grade(given) for name, given in rows.items()}
        for label, rows in grading.items()
    }
    match style.shape:
        case "ours":
            return {
                cased("candidates"): by_label,
                cased("ranking"): ["B", "A", "C"],
                cased("report"): "The whole of it, with a long tail of words to be cut.",
            }
        case "flat":
            return {f"Candidate {label}": rows for label, rows in by_label.items()}
        case "wrapped":
            return {cased("evaluation"): {cased("result"): by_label}, cased("note"): "nothing"}
        case "listed":
            return {
                cased("candidates"): [
                    {cased("label"): label, cased("criteria"): rows}
                    for label, rows in by_label.items()
                ]
            }
        case "rows":
            return [
                {
                    cased("candidate"): f"candidate_{label.lower()}",
                    cased("criterion"): cased(name),
                    **grade(given),
                }
                for label, rows in grading.items()
                for name, given in rows.items()
            ]
        case "criterion first":
            return {
                cased("scores"): {
                    cased(name): {label: grade(grading[label][name]) for label in grading}
                    for name in CRITERIA
                }
            }
        case _:
            return {
                label: {cased(name): score(given) for name, given in rows.items()}
                for label, rows in grading.items()
            }


def rendered(value: JsonValue, style: Style, depth: int) -> str:
    if isinstance(value, str):
        return string_of(value, style)
    if not isinstance(value, dict | list):
        return json.dumps(value)
    parts = (
        [
            f"{key_of(key, style)}: {rendered(inner, style, depth + 1)}"
            for key, inner in value.items()
        ]
        if isinstance(value, dict)
        else [rendered(inner, style, depth + 1) for inner in value]
    )
    gap = " " if style.indent is None else "\n" + " " * (style.indent * (depth + 1))
    lines = [f"{gap}{part}," for part in parts]
    if lines and not style.trailing_commas:
        lines[-1] = lines[-1][:-1]
    if style.comments and lines:
        lines[0] += " // as agreed\n"
        lines[-1] += " /* the last */ "
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + "".join(lines) + gap + closing


def key_of(key: str, style: Style) -> str:
    return key if style.bare_keys and key.isidentifier() else string_of(key, style)


def string_of(text: str, style: Style) -> str:
    if style.raw_newlines and len(text) > 40:
        text = text.replace(" ", "\n", 1)
    inner = json.dumps(text, ensure_ascii=False)[1:-1]
    if style.raw_newlines:
        inner = inner.replace("\\n", "\n")
    return f"“{inner}”" if style.quote == "“" else f"{style.quote}{inner}{style.quote}"


# --- hostile input --------------------------------------------------------------------------------

HOSTILE = {
    "a megabyte of braces": "{" * 1_000_000,
    "a megabyte of brackets": "[" * 1_000_000,
    "objects 10,000 deep": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "braces 10,000 deep": "{" * 10_000 + "}" * 10_000,
    "lists 100,000 deep": "[" * 100_000 + "]" * 100_000,
    "mixed nesting": '[{"a":' * 100_000,
    "keys without end": '{"' * 300_000,
    "bare keys without end": "{a:" * 300_000,
    "strings in strings": '{"a":"' * 150_000,
    "quotes and commas": '{"a": "' + 'x, "y": ' * 120_000,
    "quotes and blanks": '{"a": "' + '" ' * 400_000,
    "backslashes": '{"a": "' + "\\" * 1_000_000,
    "blanks": '{"a": "x"' + " " * 1_000_000,
    "comments": "{/*" * 300_000,
    "slashes": "{/" * 400_000,
    "backticks": "{`" * 400_000,
    "escaped quotes": '{\\"' * 300_000,
    "digits": '{"a": ' + "9" * 1_000_000,
    "one long word": "{" + "a" * 1_000_000,
    "many documents": '{"a":1,}' * 100_000,
    "open fences": '{"a":1,~~~' * 100_000,
    "thoughts": "<think>" * 140_000,
    "closed thoughts": '</think>{"a":1}' * 60_000,
    "scores": "score: " * 140_000,
    "names": "Candidate A " * 80_000,
}


@contextlib.contextmanager
def in_linear_time() -> Iterator[None]:
    """Allow 60 s of processor time, many times what a slow machine needs; quadratic work takes
    longer.
    """
    start = time.thread_time()
    yield
    assert time.thread_time() - start < 60


@pytest.mark.parametrize("name", sorted(HOSTILE))
@pytest.mark.slow
def test_hostile_replies_are_answered_in_time(name: str) -> None:
    text = HOSTILE[name]
    for labels in (LABELS, {"ada": "A"}):
        with in_linear_time(), pytest.raises(UnreadableReply):
            read_grading(text, labels=labels, rubric=RUBRIC)


SPOKEN = {
    "verbs": "score of the " * 5_000,
    "breaks": "\n" * 50_000,
    "a noun and blanks": "candidate" + " " * 50_000,
    "praise": "A is" + " much" * 10_000,
    "brackets": "[[" * 30_000,
    "得分": "得分 " * 20_000,
}


@pytest.mark.parametrize("name", sorted(SPOKEN))
def test_hostile_sentences_are_answered_in_time(name: str) -> None:
    lone = Rubric(criteria=RUBRIC.criteria[:1])
    with in_linear_time(), pytest.raises(UnreadableReply):
        read_grading(SPOKEN[name], labels={"ada": "A"}, rubric=lone)
    assert spoken_verdict(SPOKEN[name], "A", "B") is None


def test_nesting_within_the_limit_is_read_and_beyond_it_is_left() -> None:
    def nested(depth: int) -> str:
        return "{a:" * depth + "1" + "}" * depth

    assert len(read_loosely(nested(MAX_DEPTH)).documents) == 1
    deeper = read_loosely(nested(MAX_DEPTH + 3)).documents
    # at most what stands inside, never the whole
    assert all(entry.start > MAX_DEPTH for entry in deeper)
