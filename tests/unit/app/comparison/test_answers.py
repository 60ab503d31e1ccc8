"""Pages of answers side by side over a fake archive: filters, search, how long a page looks, and
agreement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

from assay.app.comparison.answers import SCAN_S, AnswerFilter, AnswerQuery, agreement, page
from assay.domain.answer_rows import AnswerColumn, AnswerRow, CandidateAnswer
from assay.domain.extraction import Field
from assay.domain.failure import Failure, Fault
from assay.domain.identifiers import RunId
from assay.domain.suite import Message, Scoring, Task

COLUMNS = tuple(AnswerColumn(run=RunId("r"), candidate=name) for name in ("a", "b", "c"))
FAILED = Failure(kind="http_400", fault=Fault.PROVIDER, detail="no such model")


@dataclass
class Rows:
    """An archive that knows only rows; counts how many were read."""

    answers: Sequence[tuple[str | Failure | None, ...]]
    read: int = 0

    def answer_rows(
        self,
        columns: Sequence[AnswerColumn],
        /,
        *,
        after: tuple[int, int] | None = None,
        limit: int = 50,
    ) -> tuple[AnswerRow, ...]:
        start = 0 if after is None else after[1] + 1
        result = tuple(self._row(n) for n in range(start, min(start + limit, len(self.answers))))
        self.read += len(result)
        return result

    def _row(self, number: int) -> AnswerRow:
        asked = Message(role="user", content=f"Name: Person {number}\nHire?")
        return AnswerRow(
            place=(0, number),
            task=Task(
                id=f"t{number}",
                thing=f"t{number}",
                prompt=(asked,),
                scoring=Scoring(method="judge"),
            ),
            digests=("d",) * 3,
            answers=tuple(
                CandidateAnswer(failure=one)
                if isinstance(one, Failure)
                else CandidateAnswer(text=one)
                for one in self.answers[number]
            ),
        )


def over(rows: Rows) -> Any:
    return cast("Any", SimpleNamespace(store=SimpleNamespace(archive=SimpleNamespace(trials=rows))))


ANSWERS: list[tuple[str | Failure | None, ...]] = [
    ('{"hire": "yes"}', 'Sure.\n{"hire": "Yes"}', '{"hire": "no"}'),
    ('{"hire": "no"}', '{"hire": "no"}', "perhaps"),
    ('{"hire": "no"}', FAILED, None),
]
HIRE = (Field(name="hire", path="$.hire", labels=("yes", "no")),)


def titles(only: AnswerFilter, **more: Any) -> list[str]:
    wanted = AnswerQuery(
        columns=COLUMNS, fields=HIRE, title=Field(name="t", pattern="Name: (.*)"), only=only, **more
    )
    return [row.title for row in page(over(Rows(ANSWERS)).store, wanted).rows]


def test_agreement_uses_extracted_answers_and_filters_show_rows() -> None:
    assert titles(AnswerFilter.ALL) == ["Person 0", "Person 1", "Person 2"]
    assert titles(AnswerFilter.DISAGREE) == ["Person 0"]
    assert titles(AnswerFilter.AGREE) == ["Person 1"]
    assert titles(AnswerFilter.ERROR) == ["Person 2"]
    assert titles(AnswerFilter.MISSING) == ["Person 2"]
    assert titles(AnswerFilter.UNPARSABLE) == ["Person 1"]


def test_search_looks_at_title_input_and_answers_whatever_their_case() -> None:
    assert titles(AnswerFilter.ALL, search="person 1") == ["Person 1"]
    assert titles(AnswerFilter.ALL, search="PERHAPS") == ["Person 1"]
    assert titles(AnswerFilter.ALL, search="absent") == []


def test_answers_show_agreement_and_the_odd_one_out() -> None:
    result = agreement(over(Rows(ANSWERS)).store, AnswerQuery(columns=COLUMNS, fields=HIRE))
    assert (result.tasks, result.whole, result.agree, result.disagree) == (3, True, 1, 1)
    assert result.share(0, 1) == 1.0
    assert result.share(2, 0) == 0.0
    assert result.odd == [0, 0, 1]
    assert {state.value: n for state, n in result.states[2].items()} == {
        "ok": 1,
        "error": 0,
        "missing": 1,
        "unparsable": 1,
    }


def test_pages_follow_each_other_and_lose_nothing() -> None:
    rows = Rows([("x", "x" if n % 3 else "y", None) for n in range(500)])
    wanted = AnswerQuery(columns=COLUMNS, only=AnswerFilter.DISAGREE)
    result, after = [], None
    while True:
        one = page(over(rows).store, wanted, after=after, limit=7, clock=lambda: 0.0)
        result += [row.row.task.id for row in one.rows]
        after = one.after
        if after is None:
            break
    assert result == [f"t{n}" for n in range(500) if n % 3 == 0]


def test_a_page_gives_up_looking_in_time_and_says_where_to_go_on() -> None:
    rows, seconds = Rows([("x", "x", "x")] * 5000), iter(range(1000))
    one = page(
        over(rows).store,
        AnswerQuery(columns=COLUMNS, only=AnswerFilter.DISAGREE),
        clock=lambda: next(seconds) * SCAN_S / 3,
    )
    assert (one.rows, one.looked_at) == ((), rows.read)
    assert one.after == (0, rows.read - 1)
    assert rows.read < 500
