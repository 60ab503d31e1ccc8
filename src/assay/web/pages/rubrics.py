"""Pages about rubrics and criteria. All numbers come from `app`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import RedirectResponse

from assay.app.registry.rubrics import changes, scale_of
from assay.app.statistics.results import wording
from assay.domain.identifiers import shown_assessment
from assay.formats.csv_lines import CsvLines
from assay.web.formatting import plural, time_element
from assay.web.jobs.judge_services import judging_of
from assay.web.query_params import within
from assay.web.responses import CSV, Answer, download
from assay.web.templating import count, page_of
from assay.web.texts import WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.analysis.figures import Figure
    from assay.app.registry.rubrics import (
        Criteria,
        CriterionInFull,
        Example,
        RubricInFull,
        RubricInUse,
    )

router = APIRouter(include_in_schema=False)

_CHANGE_WORDS: Final = {"same": "unchanged"}

_REASONS: Final = WORDS["rubric_reasons"]

_FIGURE_NAMES: Final = WORDS["rubric_figures"]

RUBRICS_SHOWN: Final = 20
RUNS_SHOWN: Final = 8
_DIGITS: Final = 10
_SHARES: Final = frozenset({"alike", "acceptance", "corrected"})
_HIGH, _WIDE = 60, 300  # size of the drawing in its own units


@router.get("/criteria.json")
def criteria_twin(
    request: Request, start: Annotated[int, Query(ge=0, alias="from")] = 0
) -> Response:
    rubrics = judging_of(request).criteria.all()
    after = within("from", start, len(rubrics)) + RUBRICS_SHOWN
    return Answer(
        {
            "rubrics": [_listed(rubric) for rubric in rubrics[start:after]],
            "next": f"/criteria.json?from={after}" if after < len(rubrics) else None,
        }
    )


@router.get("/criteria")
def criteria_page(
    request: Request, start: Annotated[int, Query(ge=0, alias="from")] = 0
) -> Response:
    """Show every rubric with its criteria and the runs that used it."""
    rubrics = judging_of(request).criteria.all()
    after, before = (
        within("from", start, len(rubrics)) + RUBRICS_SHOWN,
        max(start - RUBRICS_SHOWN, 0),
    )
    return page_of(
        request,
        "judges/rubrics.html",
        twin="/criteria.json" + (f"?from={start}" if start else ""),
        rubrics=[_card(rubric) for rubric in rubrics[start:after]],
        earlier=f"/criteria?from={before}" if start else None,
        later=f"/criteria?from={after}" if after < len(rubrics) else None,
    )


@router.get("/criteria/{name}.json")
def rubric_twin(request: Request, name: str, against: str | None = None) -> Response:
    criteria = judging_of(request).criteria
    use = criteria.in_full(name)
    document = {
        **_listed(use.use),
        "criteria": [_criterion_document(criterion) for criterion in use.criteria],
        "versions": [asdict(sibling) for sibling in use.siblings],
        "read": {"at": use.read_at, "decisions_since": use.since},
    }
    if against is not None:
        other = criteria.one(against)
        before, after = _in_order(other, use.use)
        differences = [asdict(change) for change in changes(before.rubric, after.rubric)]
        document["against"] = {"digest": other.digest, "changes": differences}
    return Answer(document)


@router.get("/criteria/{name}/grades.csv")
def grades_csv(request: Request, name: str) -> Response:
    """Return the distribution of each criterion's counted grades as CSV."""
    rubric = judging_of(request).criteria.in_full(name)
    lines: list[str] = []
    table = CsvLines(lines.append, ("criterion", "from", "to", "counted"))
    for criterion in rubric.criteria:
        for step in criterion.report.steps:
            table.row((criterion.criterion.name, step.low, step.high, step.n))
    return download("".join(lines), "assay-grades.csv", CSV)


@router.get("/criteria/{name}")
def rubric_page(request: Request, name: str, against: str | None = None) -> Response:
    """Show one rubric: its text, its versions and their differences, and statistics of each
    criterion.
    """
    criteria = judging_of(request).criteria
    use = criteria.one(name)
    query = f"?{urlencode({'against': against})}" if against else ""
    # An abbreviated digest and SUITE@VERSION redirect to one permanent address.
    if name != use.digest:
        return RedirectResponse(f"{_address(use.digest)}{query}", status_code=303)
    rubric = criteria.in_full(name)
    return page_of(
        request,
        "judges/rubric.html",
        title=_name(use),
        twin=f"{_address(name)}.json{query}",
        card=_card(use),
        criteria=[_criterion(criterion) for criterion in rubric.criteria],
        since=rubric.since,
        versions=_versions(rubric, against),
        compared=_compared(criteria, use, against),
        own=_address(name),
    )


def _card(rubric_in_use: RubricInUse) -> Mapping[str, object]:
    return {
        "digest": rubric_in_use.digest,
        "short": rubric_in_use.digest[:_DIGITS],
        "href": _address(rubric_in_use.digest),
        "name": _name(rubric_in_use),
        "versions": [f"{v.suite}, version {v.number}" for v in rubric_in_use.versions],
        "criteria": [
            {
                "name": c.name,
                "weight": f"{c.weight:g}",
                "scale": scale_of(c),
                "guidance": c.guidance,
            }
            for c in rubric_in_use.rubric.criteria
        ],
        "runs": [
            {"id": run.run_id, "at": time_element(run.started)}
            for run in rubric_in_use.runs[:RUNS_SHOWN]
        ],
        "more": len(rubric_in_use.runs) - RUNS_SHOWN,
        "n": len(rubric_in_use.runs),
    }


def _versions(rubric_in_full: RubricInFull, against: str | None) -> list[Mapping[str, object]]:
    return [
        {
            "name": f"{v.suite}, version {v.number}",
            "href": _address(v.digest),
            "first": v.first,
            "last": v.last,
            "runs": plural(v.runs, "1 run", f"{v.runs} runs"),
            "this": v.digest == rubric_in_full.use.digest,
            "compare": f"{_address(rubric_in_full.use.digest)}?{urlencode({'against': v.digest})}",
            "on": against is not None and v.digest.startswith(against),
        }
        for v in rubric_in_full.siblings
    ]


def _compared(
    criteria: Criteria, use: RubricInUse, against: str | None
) -> Mapping[str, object] | None:
    """Compare two rubrics; the one that was used first comes first."""
    if against is None:
        return None
    before, after = _in_order(criteria.one(against), use)
    differences = changes(before.rubric, after.rubric)
    return {
        "title": f"From {_name(before)} to {_name(after)}",
        "changes": [
            {**asdict(change), "word": _CHANGE_WORDS.get(change.how, change.how)}
            for change in differences
        ],
        "same": all(change.how == "same" for change in differences),
    }


def _in_order(*uses: RubricInUse) -> list[RubricInUse]:
    return sorted(uses, key=lambda use: use.runs[-1].run_key)


def _criterion(criterion_in_full: CriterionInFull) -> Mapping[str, object]:
    report, criterion = criterion_in_full.report, criterion_in_full.criterion
    span = criterion.high - criterion.low
    mean = spread = ""
    if report.mean is not None:
        mean = f"{criterion.low + report.mean * span:.2f}"
        spread = "unknown for one grade" if report.spread is None else f"{report.spread * span:.2f}"
    change = f"{report.up} raised, {report.down} lowered" if report.up or report.down else ""
    halves, first, second = "", report.first_half.value, report.second_half.value
    if first is not None and second is not None:
        halves = f"corrected in {_share(first)} of the first half, {_share(second)} of the second"
    decided = wording.approved_or_corrected(report.decided)
    corrected = f"of {decided} changed this criterion" if report.decided else ""
    alpha = "Krippendorff's alpha over verdicts given before the judge's grade was shown"
    examples = (
        ("Highest grade", criterion_in_full.highest),
        ("Lowest grade", criterion_in_full.lowest),
    )
    return {
        "name": criterion.name,
        "of": f"weight {criterion.weight:g}, scale {scale_of(criterion)}",
        "guidance": criterion.guidance,
        "counted": f"{count(report.n)}, mean {mean}, standard deviation {spread}"
        if report.n
        else "No grade on this criterion counts yet.",
        "bars": _bars(criterion_in_full) if report.n else [],
        "figures": [
            _figure("alpha", report.alpha, alpha),
            *([_figure("alike", report.alike)] if report.alike.n else []),
            *([_figure("apart", report.apart)] if report.apart.n else []),
            _figure("acceptance", report.acceptance),
            _figure("corrected", report.corrected, corrected),
            *([_figure("change", report.change, change)] if change else []),
            _figure("drift", report.drift, halves),
        ],
        "examples": [
            {"title": title, **_example(example)}
            for title, example in examples
            if example is not None
        ],
    }


def _bars(criterion_in_full: CriterionInFull) -> list[Mapping[str, object]]:
    steps = criterion_in_full.report.steps
    most = max(step.n for step in steps)
    width = _WIDE / len(steps)
    return [
        {
            "x": f"{place * width + 1:.1f}",
            "width": f"{max(width - 2, 1):.1f}",
            "y": f"{_HIGH - _HIGH * step.n / most:.1f}",
            "height": f"{_HIGH * step.n / most:.1f}",
            "label": f"{step.low:g}" if step.low == step.high else f"{step.low:g} – {step.high:g}",
            "n": count(step.n),
        }
        for place, step in enumerate(steps)
    ]


def _figure(name: str, figure: Figure, about: str = "") -> Mapping[str, object]:
    if figure.value is None:
        reason = _REASONS[figure.reason or "nothing_yet"].format(n=figure.n)
        return {"name": _FIGURE_NAMES[name], "value": None, "reason": reason, "about": about}
    ranged = (
        "no range"
        if figure.ci95 is None
        else "95% range " + " to ".join(_number(name, end) for end in figure.ci95)
    )
    unit = "" if name == "alpha" or name in _SHARES else " points out of 100"
    counted = "grade" if name in ("alpha", "alike") else "assessment"
    return {
        "name": _FIGURE_NAMES[name],
        "value": f"{_number(name, figure.value)}{unit}",
        "range": ranged,
        "n": f"{figure.n} {plural(figure.n, counted, counted + 's')}",
        "about": about,
    }


def _number(name: str, value: float) -> str:
    if name == "alpha":
        return f"{value:.2f}".replace("-", "−")
    if name in _SHARES:
        return _share(value)
    points = round(100 * value, 1)
    return f"{points:+.1f}".replace("-", "−") if points else "0.0"


def _share(value: float) -> str:
    return f"{100 * value:.0f}%"


def _example(example: Example) -> Mapping[str, object]:
    return {
        "href": f"/assessments/{shown_assessment(example.assessment)}",
        "where": f"{example.thing}, trial {example.k} of {example.of}",
        "score": f"{example.score:g}"
        if example.score == round(example.score, 2)
        else f"{example.score:.2f}",
        "reason": example.reason or "The judge gave no reason.",
        "corrected": example.corrected,
    }


def _listed(rubric_in_use: RubricInUse) -> Mapping[str, object]:
    return {
        "digest": rubric_in_use.digest,
        "versions": [asdict(v) for v in rubric_in_use.versions],
        "criteria": [asdict(c) for c in rubric_in_use.rubric.criteria],
        "runs": [run.run_id for run in rubric_in_use.runs[:200]],
        "n_runs": len(rubric_in_use.runs),
    }


def _criterion_document(criterion_in_full: CriterionInFull) -> Mapping[str, object]:
    def example(example: Example | None) -> Mapping[str, object] | None:
        return (
            None
            if example is None
            else {**asdict(example), "assessment": shown_assessment(example.assessment)}
        )

    document = asdict(criterion_in_full.report)
    for name in ("lowest", "highest"):
        document.pop(name)
    return {
        **asdict(criterion_in_full.criterion),
        **document,
        "highest": example(criterion_in_full.highest),
        "lowest": example(criterion_in_full.lowest),
    }


def _name(rubric_in_use: RubricInUse) -> str:
    """Return the name of the newest version of a suite with this rubric; without a suite, the
    digest.
    """
    if not rubric_in_use.versions:
        return f"Rubric {rubric_in_use.digest[:_DIGITS]}"
    newest = max(rubric_in_use.versions, key=lambda v: v.last)
    return f"{newest.suite}, version {newest.number}"


def _address(digest: str) -> str:
    return f"/criteria/{quote(digest, safe='')}"
