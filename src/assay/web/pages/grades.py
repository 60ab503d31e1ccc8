"""Pages that compare grades: several judges, attempts, or judge and person, criterion by
criterion.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypedDict

from fastapi import APIRouter, Query, Request, Response
from pydantic import field_validator

from assay.app.comparison.grade_rows import APART, CompareBy, GradeFilter, GradeQuery
from assay.app.comparison.grade_summary import WIDEST, GradeSummary
from assay.app.comparison.grades import PORTION, GradesPage, GradesRow, PaneGrades
from assay.app.registry import runs as registry
from assay.app.text_diff import Part, marked
from assay.domain.errors import InputError
from assay.domain.identifiers import shown_assessment
from assay.web import keyboard
from assay.web.context import services_of
from assay.web.formatting import plural
from assay.web.query_params import PageQuery, place_of, whole
from assay.web.responses import Answer
from assay.web.safe_text import visible
from assay.web.templating import count, page_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.app.workspace import Workspace
    from assay.statistics.agreement import Alpha

DIFFS: Final[tuple[Literal["word", "line", "off"], ...]] = ("word", "line", "off")
RUNS_OFFERED: Final = 100
MAX_SHOWN: Final = 8_000
"""Maximum characters of a reason or report; a longer one is cut, with a note."""

router = APIRouter(include_in_schema=False)


class GradesQuery(PageQuery):
    """The page's state."""

    run: str = ""
    by: CompareBy = CompareBy.JUDGES
    beside: str = ""
    judge: str = ""
    task: str = ""
    candidate: str = ""
    criterion: str = ""
    only: GradeFilter = GradeFilter.ALL
    apart: str = f"{100 * APART:g}"
    sort: Literal["gap", "run"] = "gap"
    diff: Literal["word", "line", "off"] = "word"
    from_: int = 0
    after: str = ""
    together: Literal["yes", "no"] = "yes"

    @field_validator("apart")
    @classmethod
    def _in_points(cls, text: str) -> str:
        return f"{_points(text or f'{100 * APART:g}'):g}"

    @field_validator("from_", mode="before")
    @classmethod
    def _row_of_list(cls, text: object) -> int:
        return whole("from", str(text or 0), high=WIDEST)

    @field_validator("after")
    @classmethod
    def _place(cls, text: str) -> str:
        return _shown_place(place_of("after", text))

    @property
    def wanted(self) -> GradeQuery:
        return GradeQuery(
            run=self.run,
            by=self.by,
            beside=self.beside,
            judge=self.judge,
            task=self.task,
            candidate=self.candidate,
            criterion=self.criterion,
            apart=float(self.apart) / 100,
            only=self.only,
            by_gap=self.sort == "gap",
        )


@router.get("/compare/grades.json")
def grades_twin(request: Request, asked: Annotated[GradesQuery, Query()]) -> Response:
    if not asked.run:
        return Answer({"runs": _offered(services_of(request).workspace)})
    page = _page_of_rows(request, asked)
    figures = page.figures
    return Answer(
        {
            "panes": _panes(page),
            "criteria": list(page.criteria),
            "criterion": page.wanted.criterion or None,
            "summary": None if figures is None else _summary_document(figures.summary),
            "rows": [_row_document(row) for row in page.rows],
            "of": None if figures is None else figures.of[asked.only],
            "waiting": None if figures is None else figures.waiting,
            "by_gap": page.by_gap,
            "reading": figures is None,
            "decisions_since": None if figures is None else figures.since,
            "next": _later(asked, page, "/compare/grades.json"),
        }
    )


class GradesContext(TypedDict):
    """Values of `compare/grades.html`."""

    panes: Sequence[str]
    widest: int
    rows: Sequence[object]
    summary: Sequence[tuple[str, str, str]]
    nothing: str
    first: str | None
    earlier: str | None
    later: str | None
    in_order: str


@router.get("/compare/grades")
def grades_page(request: Request, asked: Annotated[GradesQuery, Query()]) -> Response:
    """Show grades side by side; without a run, show the runs to choose from."""
    runs = _offered(services_of(request).workspace)
    boot: dict[str, object] = {"keys": keyboard.for_script(keyboard.BESIDE)}
    shared: dict[str, Any] = {
        "texts": "grades help close",
        "runs": runs,
        "asked": asked.wanted,
        "points": asked.apart,
        "diff": asked.diff,
        "diffs": DIFFS,
        "together": asked.together,
        "bys": [by.value for by in CompareBy],
        "onlys": [only.value for only in GradeFilter],
        "sheet": keyboard.groups(keyboard.BESIDE),
        "boot": boot,
    }
    if not asked.run:
        twin = "/compare/grades.json"
        return page_of(request, "compare/grades.html", twin=twin, found=None, **shared)
    page = _page_of_rows(request, asked)
    boot["diffs"] = {
        diff: asked.address("/compare/grades", GradesQuery(diff=diff)) for diff in DIFFS
    }
    # The figures of a large run are computed in a thread, and the script polls this address until
    # they are ready.
    boot["reading"] = asked.address("/compare/grades.json") if page.figures is None else None
    first = asked.address("/compare/grades", GradesQuery(from_=0, after=""))
    return page_of(
        request,
        "compare/grades.html",
        twin=asked.address("/compare/grades.json"),
        **{**shared, "asked": page.wanted},
        found=page,
        said=_said_of(page, asked),
        **GradesContext(
            panes=_panes(page),
            widest=WIDEST,
            rows=[_row(row, asked) for row in page.rows],
            summary=_summary(page, asked),
            nothing=_nothing(page, asked),
            first=first if asked.from_ or asked.after else None,
            earlier=asked.address(
                "/compare/grades", GradesQuery(from_=max(0, asked.from_ - PORTION))
            )
            if page.by_gap and asked.from_
            else None,
            later=_later(asked, page, "/compare/grades"),
            in_order=asked.address("/compare/grades", GradesQuery(sort="run", from_=0, after="")),
        ),
    )


def _later(asked: GradesQuery, page: GradesPage, path: str) -> str | None:
    if not page.more:
        return None
    if page.by_gap:
        return asked.address(path, GradesQuery(from_=asked.from_ + PORTION, after=""))
    place = _shown_place(page.after)
    return asked.address(path, GradesQuery(sort="run", from_=0, after=place))


def _shown_place(place: tuple[int, int] | None) -> str:
    return "" if place is None else f"{place[0]}.{place[1]}"


def _said_of(page: GradesPage, asked: GradesQuery) -> list[str]:
    figures, shown = page.figures, len(page.rows)
    if figures is None:
        wait = "Its summary and largest differences are still being computed; until then, rows appear in run order."
        return [f"This is a large run. {wait}"]
    of = figures.of[asked.only]
    sentences = [f"Rows shown: {shown} of {count(of)}."] if shown else []
    if figures.waiting:
        sentences.append(f"{count(figures.waiting)} left out because they await review.")
    if page.by_gap and of > WIDEST:
        sentences.append(f"Only the {count(WIDEST)} largest differences are listed.")
    if not page.by_gap and page.more and shown < PORTION:
        trials = plural(page.looked_at, "1 trial was", f"{count(page.looked_at)} trials were")
        sentences.append(f"{trials} checked. The next page continues from there.")
    if figures.since:
        decisions = plural(
            figures.since, "1 decision was", f"{count(figures.since)} decisions were"
        )
        sentences.append(f"{decisions} made after this summary was computed.")
    return sentences


def _page_of_rows(request: Request, asked: GradesQuery) -> GradesPage:
    return services_of(request).grades.page(
        asked.wanted, start=asked.from_, after=place_of("after", asked.after)
    )


def _offered(workspace: Workspace) -> list[dict[str, str]]:
    judged = (summary for summary in registry.newest_first(workspace.store) if summary.judges)
    return [
        {"id": summary.id, "suite": summary.suite, "started": summary.started}
        for summary in islice(judged, RUNS_OFFERED)
    ]


def _panes(page: GradesPage) -> list[str]:
    return [_named(name) for name in page.panes]


def _named(pane: str) -> str:
    if pane == "person":
        return "person"
    word, _, number = pane.partition(" ")
    return f"Attempt {number}" if word == "attempt" and number.isdecimal() else pane


def _nothing(page: GradesPage, asked: GradesQuery) -> str:
    if asked.by is CompareBy.JUDGES and len(page.panes) < 2:
        other = "Choose a second run with the same responses, or compare attempts or the person's grades."
        return f"Only one judge graded this run. {other}"
    if page.rows or page.more or asked.from_ or asked.after:
        return ""
    if asked.by is CompareBy.ATTEMPTS and asked.only is GradeFilter.ALL:
        return "This judge has no reruns."
    return "No rows match."


def _row(row: GradesRow, asked: GradesQuery) -> Mapping[str, object]:
    names = list(
        dict.fromkeys(grade.criterion for sheet in row.sheets if sheet for grade in sheet.grades)
    )
    by_pane = [
        {grade.criterion: grade for grade in sheet.grades} if sheet else {} for sheet in row.sheets
    ]
    criteria = []
    for name in names:
        scores = [grades[name].score if name in grades else None for grades in by_pane]
        criteria.append(
            {"name": name, "scores": [_hundred(score) for score in scores], **_gap(scores)}
        )
    return {
        "thing": row.task.thing,
        "task": row.task.task,
        "k": row.k,
        "candidate": row.candidate,
        # In floating point, 0.55 - 0.5 is slightly more than 0.05, which must still be within the
        # limit of 5 points.
        "state": "none"
        if row.gap is None
        else "agree"
        if row.gap <= float(asked.apart) / 100 + 1e-9
        else "differ",
        "gap": None if row.gap is None else f"{100 * row.gap:.0f}",
        "criteria": criteria,
        "total": [_hundred(sheet.score) if sheet else None for sheet in row.sheets],
        "total_gap": _gap([sheet.score if sheet else None for sheet in row.sheets]),
        "panes": [_pane(row, place, names, asked.diff) for place in range(len(row.sheets))],
    }


def _pane(row: GradesRow, place: int, names: list[str], diff: str) -> Mapping[str, object]:
    sheet = row.sheets[place]
    if sheet is None:
        return {
            "id": None,
            "state": "missing",
            "words": [],
            "who": "",
            "said": "",
            "report": [],
            "cut": False,
        }
    other = next(
        (each for at, each in enumerate(row.sheets) if at != place and each is not None), None
    )
    other_grades = {grade.criterion: grade for grade in other.grades} if other else {}
    words, cut = [], False
    for name in names:
        grade = next((each for each in sheet.grades if each.criterion == name), None)
        if grade is None or not (grade.reason or grade.evidence):
            continue
        # A person gives no reasons. Compared with an empty text, the judge's whole reason would be
        # marked.
        against = (other_grades[name].reason or None) if name in other_grades else None
        reason, evidence = (
            grade.reason[:MAX_SHOWN],
            [visible(each[:MAX_SHOWN]) for each in grade.evidence],
        )
        cut |= len(grade.reason) > MAX_SHOWN
        words.append(
            {"criterion": name, "parts": _parts(reason, against, diff), "evidence": evidence}
        )
    report, other_report = sheet.report[:MAX_SHOWN], other.report if other else None
    return {
        "id": shown_assessment(sheet.assessment),
        "state": str(sheet.state),
        "scored": sheet.score is not None,
        "words": words,
        "who": sheet.who,
        "said": visible(sheet.reason),
        "report": _parts(report, other_report or None, diff) if report else [],
        "cut": cut or len(sheet.report) > MAX_SHOWN,
    }


def _parts(text: str, other: str | None, diff: str) -> list[Part]:
    if other is None or diff == "off":
        return [Part(visible(text))]
    return [
        replace(part, text=visible(part.text))
        for part in marked(text, other[:MAX_SHOWN], by_line=diff == "line")
    ]


def _hundred(score: float | None) -> str | None:
    return None if score is None else f"{100 * score:.0f}"


def _gap(scores: list[float | None]) -> Mapping[str, object]:
    """Return the difference between the highest and lowest score in points, with the start and
    width of its bar.
    """
    given = [score for score in scores if score is not None]
    if len(given) < 2:
        return {"gap": None, "low": 0, "wide": 0}
    low, high = min(given), max(given)
    return {
        "gap": f"{100 * (high - low):.0f}",
        "low": round(100 * low, 1),
        "wide": round(100 * (high - low), 1),
    }


def _summary(page: GradesPage, asked: GradesQuery) -> list[tuple[str, str, str]]:
    if page.figures is None or not page.figures.summary.n:
        return []
    summary, names = page.figures.summary, _panes(page)
    lines = [("Rows with both scores", count(summary.n), "")]
    if summary.alike is not None and summary.alike_ci95 is not None:
        low, high = (f"{100 * end:.0f}%" for end in summary.alike_ci95)
        lines.append(
            (
                f"At most {asked.apart} points apart",
                f"{100 * summary.alike:.0f}%",
                f"{low} to {high}",
            )
        )
    if summary.gap is not None and summary.distance is not None:
        gap = f"{100 * summary.gap:+.1f} points".replace("-", "\u2212")
        lines.append((f"Mean difference, {names[1]} minus {names[0]}", gap, ""))
        lines.append(("Mean absolute difference", f"{100 * summary.distance:.1f} points", ""))
    if summary.alpha is not None:
        figure, remark = _said(summary.alpha)
        sampled = (
            ""
            if summary.sampled is None
            else f"From a random sample of {count(summary.sampled)} rows"
        )
        lines.append(
            ("Agreement (Krippendorff's alpha)", figure, ". ".join(filter(None, (remark, sampled))))
        )
    if summary.accepted is not None and summary.accepted[1]:
        k, n = summary.accepted
        of = plural(n, "1 decided assessment", f"{count(n)} decided assessments")
        remark = f"{k} of {of}. Approving keeps the judge's scores, so this is acceptance, not agreement."
        lines.append(("Accepted unchanged", f"{100 * k / n:.0f}%", remark))
        blind = ("–", "not measured; use a review protocol with a blind-first share to measure it")
        if summary.blind is not None:
            figure, remark = _said(summary.blind)
            scores = plural(summary.n_blind, "1 score", f"{count(summary.n_blind)} scores")
            blind = (figure, f"{remark}. {scores} given before the reviewer saw the judge's.")
        lines.append(("Agreement on blind verdicts (alpha)", *blind))
    return lines


def _said(alpha: Alpha) -> tuple[str, str]:
    if alpha.alpha is None:
        return "–", alpha.reason or ""
    remark = alpha.reading or ""
    if alpha.ci95 is not None:
        remark = f"{_minus(alpha.ci95[0])} to {_minus(alpha.ci95[1])}, {remark}"
    return _minus(alpha.alpha), remark


def _minus(value: float) -> str:
    return f"{value:.2f}".replace("-", "\u2212")


def _summary_document(grade_summary: GradeSummary) -> Mapping[str, object]:
    return {
        "n": grade_summary.n,
        "alike": grade_summary.alike,
        "alike_ci95": grade_summary.alike_ci95,
        "gap": grade_summary.gap,
        "distance": grade_summary.distance,
        "alpha": _alpha_document(grade_summary.alpha),
        "alpha_sampled": grade_summary.sampled,
        "blind": _alpha_document(grade_summary.blind),
        "n_blind": grade_summary.n_blind,
        "accepted": grade_summary.accepted
        and dict(zip(("n", "of"), grade_summary.accepted, strict=True)),
    }


def _alpha_document(alpha: Alpha | None) -> Mapping[str, object] | None:
    if alpha is None:
        return None
    return {
        name: getattr(alpha, name) for name in ("alpha", "ci95", "reading", "reason", "n_units")
    }


def _row_document(row: GradesRow) -> Mapping[str, object]:
    return {
        "task": row.task.task,
        "thing": row.task.thing,
        "trial": row.k,
        "candidate": row.candidate,
        "gap": row.gap,
        "panes": [_sheet_document(sheet) for sheet in row.sheets],
    }


def _sheet_document(sheet: PaneGrades | None) -> Mapping[str, object] | None:
    if sheet is None:
        return None
    return {
        "id": shown_assessment(sheet.assessment),
        "state": str(sheet.state),
        "score": sheet.score,
        "report": sheet.report,
        "reviewer": sheet.who or None,
        "reason": sheet.reason or None,
        "grades": [
            {
                name: getattr(grade, name)
                for name in ("criterion", "score", "raw_score", "reason", "evidence")
            }
            for grade in sheet.grades
        ],
    }


def _points(text: str) -> float:
    try:
        points = float(text.strip().removesuffix("pts").replace(",", "."))
    except ValueError:
        points = -1.0
    if not 0 <= points <= 100:
        raise InputError("apart", f"is {text!r}, expected points from 0 to 100.")
    return points
