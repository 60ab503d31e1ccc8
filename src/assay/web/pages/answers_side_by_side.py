"""Pages that compare answers: choose runs and candidates, read their answers row by row, and see
who agrees.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypedDict
from urllib.parse import quote, unquote, urlencode

from fastapi import APIRouter, Request, Response

from assay.app.comparison import answers
from assay.app.comparison.answers import (
    Agreement,
    AnswerFilter,
    AnswerQuery,
    AnswersPage,
    ShownAnswers,
)
from assay.app.provenance import calls_of
from assay.app.registry import runs as registry
from assay.app.text_diff import Part, document_of, field_rows, marked, too_long
from assay.domain.answer_rows import AnswerColumn
from assay.domain.errors import InputError
from assay.domain.extraction import Field
from assay.domain.identifiers import RunId
from assay.domain.lifecycle import TrialState
from assay.domain.suite import scale_in_words
from assay.scoring.extraction import way_problems
from assay.scoring.fields import reading_problems
from assay.web import keyboard
from assay.web.context import services_of
from assay.web.links import MAX_COLUMNS, shown_column
from assay.web.query_params import one_of, place_of, reads
from assay.web.responses import Answer
from assay.web.safe_text import visible
from assay.web.templating import page_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.app.workspace import Workspace
    from assay.domain.run import RunPlan
    from assay.domain.selection import RunSummary

READS: Final = ("col", "read", "labels", "title", "q", "only", "by", "after", "find", "together")
RUNS_OFFERED: Final = 40
MAX_SHOWN: Final = 20_000
"""Maximum characters of an answer or a prompt in a row; the trial's page shows the full text."""

DIFFERENCES: Final = ("auto", "off", "word", "line")
_SIMILAR: Final = 0.5
"""Minimum share of common text for marking the differences between two answers automatically."""

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedCandidate:
    """A candidate that can be chosen as a column, with the totals of its calls.

    `success`: share of requests with an answer, from 0 to 1; None without requests. `tokens`:
    tokens sent and received.
    """

    name: str
    column: str
    model: str | None
    calls: int
    success: float | None
    tokens: tuple[int, int] | None
    cost_usd: float | None
    tokens_per_s: float | None
    requests_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedRun:
    """A run whose candidates can be chosen as columns."""

    id: RunId
    suite: str
    started: str
    candidates: tuple[OfferedCandidate, ...]


class Sides:
    """The page's state, read from its address, and addresses built from it."""

    def __init__(self, request: Request) -> None:
        query = request.query_params
        self.columns = tuple(dict.fromkeys(map(_column, query.getlist("col"))))
        if len(self.columns) > MAX_COLUMNS:
            raise InputError(
                "col",
                f"names {len(self.columns)} columns.",
                remedy=f"Choose {MAX_COLUMNS} at most.",
            )
        self.read, self.labels = query.get("read", "").strip(), query.get("labels", "").strip()
        self.title, self.search = query.get("title", "").strip(), query.get("q", "").strip()
        self.only = one_of(
            "only",
            query.get("only") or "all",
            [answer_filter.value for answer_filter in AnswerFilter],
        )
        self.by = one_of("by", query.get("by") or "auto", DIFFERENCES)
        self.task = query.get("task", "")
        self.together = one_of("together", query.get("together") or "yes", ["yes", "no"])
        self.after = place_of("after", query.get("after", "").strip())

    def drop_invalid(self) -> dict[str, str]:
        problems = {}
        # An invalid expression marks its field and does not replace the page with an error page.
        for name in ("read", "title"):
            try:
                if getattr(self, name):
                    _field(name, getattr(self, name))
            except InputError as error:
                problems[name] = f"{error.problem} {error.remedy}"
                setattr(self, name, "")
        return problems

    @property
    def wanted(self) -> AnswerQuery:
        labels = tuple(label.strip() for label in self.labels.split(",") if label.strip())
        read = (_field("read", self.read, labels),) if self.read or labels else ()
        return AnswerQuery(
            columns=self.columns,
            fields=read,
            title=_field("title", self.title) if self.title else None,
            only=AnswerFilter(self.only),
            search=self.search,
        )

    def address(self, path: str, *, after: tuple[int, int] | None = None, **other: str) -> str:
        values = {
            "q": self.search,
            "only": self.only,
            "by": self.by,
            "read": self.read,
            "labels": self.labels,
            "title": self.title,
            "together": self.together,
            **other,
        }
        pairs = [("col", shown_column(column)) for column in self.columns]
        pairs += [
            (name, value) for name, value in values.items() if value and (name, value) not in _PLAIN
        ]
        pairs += [("after", f"{after[0]}.{after[1]}")] if after else []
        return path + (f"?{urlencode(pairs)}" if pairs else "")


def _wanted(workspace: Workspace, sides: Sides) -> AnswerQuery:
    return answers.with_stored_fields(workspace.store, sides.wanted)


_PLAIN: Final = {("only", "all"), ("by", "auto"), ("together", "yes")}


def _column(text: str) -> AnswerColumn:
    run, _, rest = text.partition("~")
    candidate, _, k = rest.partition("~")
    if not run or not candidate or (k and not re.fullmatch(r"[1-9]\d{0,5}", k)):
        raise InputError(
            "col", f"is {text!r}.", remedy="Write RUN~CANDIDATE, or RUN~CANDIDATE~TRIAL."
        )
    return AnswerColumn(run=RunId(run), candidate=unquote(candidate), k=int(k or 1))


def _field(name: str, text: str, labels: tuple[str, ...] = ()) -> Field:
    """Parse an extraction rule: a method (`$.a.b`, `last_line`, `final_answer`, …), otherwise a
    regular expression.
    """
    is_method = text.startswith("$") or re.fullmatch(r"\w+", text) is not None
    if is_method and not any(True for _ in way_problems(text)):
        return Field(name=name, path=text, labels=labels)
    described: Any = {"fields": {name: {"regex": text}}}
    if text and (problems := list(reading_problems(described))):
        problem = f"{text!r} is not a valid rule: {problems[0]}"
        raise InputError(name, problem, remedy="Write $.a.b, last_line or a regex.")
    return Field(name=name, pattern=text, labels=labels)


class CompareContext(TypedDict):
    """Values of `compare/compare.html`."""

    columns: Sequence[Mapping[str, object]]
    tasks: Sequence[object]
    row: Mapping[str, object] | None
    asked: Sides
    given: Mapping[str, str]
    wrong: dict[str, str]
    filters: Sequence[object]
    offered: Sequence[OfferedRun]
    chosen: Sequence[object]
    criteria: Sequence[Mapping[str, object]]
    criteria_text: str | None
    looked_at: int
    next: str | None
    first: str | None
    agreement: str
    grades: str
    differences: tuple[str, str, str, str]


@router.get("/compare")
@reads(*READS, "task")
def compare_page(request: Request) -> Response:
    """Show answers side by side; if the address names no columns, show runs and candidates to
    choose from.
    """
    sides, workspace = Sides(request), services_of(request).workspace
    wrong, find = sides.drop_invalid(), request.query_params.get("find", "").strip()
    offered = _offered(workspace, find)
    if not sides.columns:
        _shown([], sides.task)
        return page_of(
            request,
            "compare/compare_choose.html",
            twin="/compare.json",
            offered=offered,
            chosen=(),
            find=find,
            most=MAX_COLUMNS,
            offers=RUNS_OFFERED,
        )
    answer_page = answers.page(workspace.store, _wanted(workspace, sides), after=sides.after)
    rows = answer_page.rows
    shown = _shown(rows, sides.task)
    plans = answers.plans_of(workspace.store, sides.wanted)
    return page_of(
        request,
        "compare/compare.html",
        twin=sides.address("/compare.json", after=sides.after),
        boot={"keys": keyboard.for_script(keyboard.BESIDE)},
        **CompareContext(
            columns=_columns(sides),
            tasks=[
                {
                    "title": visible(row.title),
                    "state": row.says.state.value,
                    "here": row is shown,
                    "open": sides.address("/compare", after=sides.after, task=row.row.task.id),
                }
                for row in rows
            ],
            row=None if shown is None else _row(shown, sides),
            asked=sides,
            given=request.query_params,
            wrong=wrong,
            filters=list(AnswerFilter),
            offered=offered,
            chosen=[shown_column(column) for column in sides.columns],
            criteria=_criteria(plans),
            criteria_text=next(
                (text for plan in plans if (text := _imported_criteria(plan))), None
            ),
            looked_at=answer_page.looked_at,
            next=sides.address("/compare", after=answer_page.after) if answer_page.after else None,
            first=sides.address("/compare") if sides.after else None,
            agreement=sides.address("/compare/agreement"),
            grades=f"/compare/grades?{urlencode({'run': sides.columns[0].run})}",
            differences=DIFFERENCES,
        ),
    )


def _shown(rows: Sequence[ShownAnswers], task: str) -> ShownAnswers | None:
    """Return a task's row, or the first row if no task is requested; raises `InputError` for an
    unknown task.
    """
    if not task:
        return next(iter(rows), None)
    shown = next((row for row in rows if row.row.task.id == task), None)
    if shown is None:
        raise InputError(
            "task",
            f"{task!r} is not in the list.",
            remedy="Choose a task from the list on the left.",
        )
    return shown


@router.get("/compare.json")
@reads(*READS)
def compare_twin(request: Request) -> Response:
    sides, workspace = Sides(request), services_of(request).workspace
    if not sides.columns:
        return Answer({"runs": _offered(workspace, request.query_params.get("find", "").strip())})
    answer_page = answers.page(workspace.store, _wanted(workspace, sides), after=sides.after)
    return Answer(_document(sides, answer_page))


@router.get("/compare/agreement.json")
@reads(*READS)
def agreement_twin(request: Request) -> Response:
    sides, workspace = Sides(request), services_of(request).workspace
    if len(sides.columns) < 2:
        return Answer(
            {
                "columns": [shown_column(column) for column in sides.columns],
                "tasks": 0,
                "whole": True,
            }
        )
    return Answer(_agreement(sides, answers.agreement(workspace.store, _wanted(workspace, sides))))


@router.get("/compare/agreement")
@reads(*READS)
def agreement_page(request: Request) -> Response:
    """Show the agreement between candidates, and which one differs most often."""
    sides, workspace = Sides(request), services_of(request).workspace
    few = len(sides.columns) < 2
    return page_of(
        request,
        "compare/agreement.html",
        twin=sides.address("/compare/agreement.json"),
        found=None
        if few
        else _agreement(sides, answers.agreement(workspace.store, _wanted(workspace, sides))),
        columns=_columns(sides),
        back=sides.address("/compare"),
        odd_ones=sides.address("/compare", only="disagree"),
    )


def _offered(workspace: Workspace, find: str = "") -> list[OfferedRun]:
    """Return the newest runs whose suite, id, batch or candidates contain `find`, with totals of
    each candidate's calls.
    """
    runs: list[OfferedRun] = []
    needle = find.casefold()
    for summary in registry.newest_first(workspace.store):
        if len(runs) == RUNS_OFFERED:
            break
        names = (summary.suite, summary.id, summary.batch_id or "", *summary.candidates)
        if needle and not any(needle in name.casefold() for name in names):
            continue
        of_run = calls_of(workspace, summary)
        if (
            summary.imported
            and not of_run.totals
            and not answers.holds_answers(workspace.store, summary)
        ):
            continue  # a table of scores
        candidates = []
        for name in summary.candidates:
            calls = [
                total for total in of_run.totals if total.role == "candidate" and total.name == name
            ]
            n, failed = sum(call.calls for call in calls), sum(call.failed for call in calls)
            output = sum(call.output_tokens for call in calls)
            costs = [call.cost_usd for call in calls if call.cost_usd is not None]
            candidates.append(
                OfferedCandidate(
                    name=name,
                    column=shown_column(AnswerColumn(run=summary.id, candidate=name)),
                    model=next((call.model_version or call.model for call in calls), None),
                    calls=n,
                    success=_answered(summary, n, failed),
                    tokens=None if not n else (sum(call.input_tokens for call in calls), output),
                    cost_usd=sum(costs) if costs else None,
                    tokens_per_s=output / of_run.seconds if of_run.seconds and output else None,
                    requests_per_s=of_run.per_s(n),
                )
            )
        runs.append(
            OfferedRun(
                id=summary.id,
                suite=summary.suite,
                started=summary.started,
                candidates=tuple(candidates),
            )
        )
    return runs


def _answered(summary: RunSummary, calls: int, failed: int) -> float | None:
    """Return the share of calls with an answer, or for an import with one candidate, the share of
    trials that did not fail.
    """
    total = sum(summary.trials.values())
    if summary.imported and len(summary.candidates) == 1 and total:
        return (total - summary.trials.get(TrialState.FAILED, 0)) / total
    return (calls - failed) / calls if calls else None


def _columns(sides: Sides) -> list[Mapping[str, object]]:
    runs, trials = {column.run for column in sides.columns}, {column.k for column in sides.columns}
    return [
        {
            "name": column.candidate,
            "run": column.run,
            "k": column.k,
            "says_run": len(runs) > 1,
            "says_trial": len(trials) > 1 or column.k > 1,
        }
        for column in sides.columns
    ]


def _criteria(plans: tuple[RunPlan, ...]) -> list[Mapping[str, object]]:
    by_name = {c.name: c for plan in reversed(plans) if plan.rubric for c in plan.rubric.criteria}
    return [
        {
            "name": c.name,
            "weight": c.weight,
            "scale": scale_in_words(c.low, c.high),
            "guidance": c.guidance,
        }
        for c in by_name.values()
    ]


def _imported_criteria(plan: RunPlan) -> str | None:
    imported = plan.environment.get("imported")
    criteria = imported.get("criteria") if isinstance(imported, dict) else None
    return criteria if isinstance(criteria, str) else None


def _row(shown: ShownAnswers, sides: Sides) -> Mapping[str, object]:
    row, cells = shown.row, shown.cells
    texts = [each.text for each in row.answers]
    documents = [None if text is None else document_of(text) for text in texts]
    answered = [place for place, text in enumerate(texts) if text is not None]
    base, second = (*answered, None, None)[:2]
    panes = []
    for place, (answer, each) in enumerate(zip(row.answers, cells, strict=True)):
        text, other = texts[place], second if place == base else base
        against = None if other is None else texts[other]
        if place == base and len(answered) > 2:
            against = None  # the other answers are compared with this one
        differs = text is not None and against is not None and text != against
        trial = (
            None
            if answer.trial is None
            else f"/runs/{quote(sides.columns[place].run)}/trials/t{answer.trial}"
        )
        panes.append(
            {
                "state": each.state.value,
                "lines": _lines(_parts(text, against, sides)),
                "size": len(text or ""),
                "whole": f"{trial}/answers" if trial and len(text or "") > MAX_SHOWN else None,
                "undone": differs
                and too_long(text or "", against or "", by_line=sides.by == "line"),
                "truncated": answer.truncated,
                "value": each.value if each.read else None,
                "more": [*each.read.items()][1:],
                "failure": each.failure,
                "score": answer.score,
                "open": trial if answer.score is not None or answer.waits else None,
                "odd": shown.says.odd == place,
            }
        )
    asked = answers.input_of(row)
    fields = (
        field_rows(documents, answered)
        if sum(document is not None for document in documents) > 1
        else ()
    )
    return {
        "task": visible(row.task.id),
        "title": visible(shown.title),
        "state": shown.says.state.value,
        "changed": shown.changed,
        "input": visible(asked[:MAX_SHOWN]),
        "expected": None if row.task.expected is None else visible(str(row.task.expected)),
        "panes": panes,
        "fields": fields,
    }


def _parts(text: str | None, against: str | None, sides: Sides) -> list[Part]:
    if text is None:
        return []
    other = text if against is None or sides.by == "off" else against
    parts = marked(text, other, by_line=sides.by == "line")
    if sides.by == "auto" and sum(
        len(part.text) for part in parts if not part.changed
    ) < _SIMILAR * len(text):
        parts = (Part(text),)
    shown: list[Part] = []
    room = MAX_SHOWN
    for part in parts:
        if room > 0:
            shown.append(replace(part, text=visible(part.text[:room])))
        room -= len(part.text)
    return shown


def _lines(parts: list[Part]) -> list[list[Part]]:
    lines: list[list[Part]] = [[]]
    for part in parts:
        first, *others = part.text.split("\n")
        lines[-1].append(replace(part, text=first))
        lines += [[replace(part, text=other)] for other in others]
    return lines if any(part.text for part in lines[-1]) else lines[:-1]


def _document(sides: Sides, answers_page: AnswersPage) -> Mapping[str, object]:
    return {
        "columns": [shown_column(column) for column in sides.columns],
        "rows": [
            {
                "task": shown.row.task.id,
                "title": shown.title,
                "state": shown.says.state.value,
                "changed": shown.changed,
                "odd": shown.says.odd,
                "answers": [
                    {
                        "state": cell.state.value,
                        "text": answer.text,
                        "value": cell.value if cell.read else None,
                        "failure": None if cell.failure is None else cell.failure.kind,
                        "score": answer.score,
                    }
                    for cell, answer in zip(shown.cells, shown.row.answers, strict=True)
                ],
            }
            for shown in answers_page.rows
        ],
        "next": sides.address("/compare.json", after=answers_page.after)
        if answers_page.after
        else None,
    }


def _agreement(sides: Sides, agreement: Agreement) -> Mapping[str, object]:
    n = range(len(sides.columns))
    return {
        "columns": [shown_column(column) for column in sides.columns],
        "tasks": agreement.tasks,
        "whole": agreement.whole,
        "agree": agreement.agree,
        "disagree": agreement.disagree,
        "matrix": [[None if a == b else agreement.share(a, b) for b in n] for a in n],
        "both": [[None if a == b else agreement.both[min(a, b), max(a, b)] for b in n] for a in n],
        "odd": agreement.odd,
        "states": [
            {state.value: count for state, count in state.items()} for state in agreement.states
        ],
    }
