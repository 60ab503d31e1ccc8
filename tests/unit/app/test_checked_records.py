"""Records of importers whose names or texts cannot be kept."""

from __future__ import annotations

import pytest

from assay.app.imports.checked_records import MAX_TEXT_BYTES, checked
from assay.domain.import_records import (
    Found,
    FoundAssessment,
    FoundCandidate,
    FoundGrade,
    FoundResponse,
    FoundRun,
    FoundScores,
    FoundTask,
    GradedBy,
    Skipped,
)
from assay.domain.names import name_problem
from assay.domain.suite import Criterion, Message

HOSTILE = [
    "a\0b",
    "a\x1bb",
    "a\x7fb",
    "a\x85b",
    "a\nb",
    "a\u2028b",
    "a\u202eb",
    "a\u2066b",
    "a\ud800b",
    "a\ufffeb",
    "a\uffffb",
    "a\ufdd0b",
    "a\U0010ffffb",
    "x" * 201,
]
FAIR = ["Ann", "gpt-4o (2024)", "Zoë", "模型", "👩\u200d💻", "می\u200cخواهم", "a\u00a0b", "x" * 200]


def run(**changes: object) -> FoundRun:
    return FoundRun(**{"suite": "s", "format": "map", **changes})  # type: ignore[arg-type]


def response(**changes: object) -> FoundResponse:
    values: dict[str, object] = {
        "task": "t",
        "candidate": "c",
        "trial": 1,
        "where": "f:2",
        "content": "x",
    }
    return FoundResponse(**values | changes)  # type: ignore[arg-type]


def graded(
    *, candidate: str = "c", criterion: str = "", reason: str = "", **changes: object
) -> FoundAssessment:
    grades = (FoundGrade(candidate=candidate, score=1.0, criterion=criterion, reason=reason),)
    values: dict[str, object] = {
        "task": "t",
        "trial": 1,
        "judge": "j",
        "by": GradedBy.RULE,
        "where": "f:2",
    }
    return FoundAssessment(**values | {"grades": grades} | changes)  # type: ignore[arg-type]


def of_kind(name: str) -> list[Found]:
    return [
        run(suite=name),
        run(batch_id=name),
        FoundTask(id=name),
        FoundTask(id="t", family=name),
        FoundTask(id="t", language=name),
        FoundTask(id="t", tags=(name,)),
        response(task=name),
        response(candidate=name),
        graded(task=name),
        graded(judge=name),
        graded(candidate=name),
        graded(criterion=name),
        FoundScores(judge=name, by=GradedBy.RULE, rows=(("t", "c", 1, 1.0),)),
    ]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_record_with_a_hostile_name_is_left_out_by_name(name: str) -> None:
    assert name_problem(name) is not None
    for record in of_kind(name):
        (message,) = checked([record], source="f")
        assert isinstance(message, Skipped), record
        assert repr(name)[1:3] in message.why
        assert ("control characters" in message.why) != (len(name) > 200)


@pytest.mark.parametrize("name", FAIR, ids=ascii)
def test_a_record_with_a_fair_name_stays_as_it_is(name: str) -> None:
    assert name_problem(name) is None
    for record in of_kind(name):
        assert list(checked([record], source="f")) == [record]


def test_a_run_loses_only_the_parts_with_hostile_names() -> None:
    parts = (FoundCandidate(name="a\0"), FoundCandidate(name="b"))
    criteria = (Criterion(name="clear"), Criterion(name="c\nd"))
    *messages, kept = checked([run(candidates=parts, rubric=criteria)], source="f")
    assert kept == run(candidates=parts[1:], rubric=criteria[:1])
    assert [type(message) for message in messages] == [Skipped, Skipped]


def test_the_records_of_a_refused_run_are_left_out_with_it() -> None:
    records: list[Found] = [
        run(suite="a\0"),
        FoundTask(id="t"),
        response(),
        graded(),
        run(),
        response(),
    ]
    message, *kept = checked(records, source="f")
    assert isinstance(message, Skipped)
    assert kept == records[-2:]


def test_rows_of_scores_are_left_out_one_by_one() -> None:
    rows = (("t", "c", 1, 1.0), ("t\0", "c", 1, 1.0), ("t", "c\ufffe", 1, 1.0), ("u", "c", 1, 0.5))
    *messages, kept = checked([FoundScores(judge="j", by=GradedBy.RULE, rows=rows)], source="f")
    assert isinstance(kept, FoundScores)
    assert list(kept.rows) == [rows[0], rows[3]]
    assert len(messages) == 2


def test_a_text_beyond_the_limit_is_left_out() -> None:
    fair, long = "x" * (MAX_TEXT_BYTES - 1000), "\N{PARTY POPPER}" + "x" * (MAX_TEXT_BYTES // 4)
    for text, kept in ((fair, True), (long, False)):
        for record in (
            response(content=text),
            graded(reply=text),
            graded(reason=text),
            FoundTask(id="t", context=text),
            FoundTask(id="t", expected=(text,)),
            FoundTask(id="t", prompt=(Message(role="user", content=text),)),
        ):
            (after,) = checked([record], source="f")
            assert (after == record) is kept
            assert kept or (isinstance(after, Skipped) and "32 MB" in after.why)
