"""Review progress, and the lookup of items by the ids that a visitor may see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from fastapi import Request

from assay.app.review.item import Item
from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import AssessmentKey, RunId, shown_assessment
from assay.domain.lifecycle import AssessmentState
from assay.domain.people import VisitorRole
from assay.domain.selection import Selection
from assay.web.context import Services, reviewer_of, services_of
from assay.web.run_rows import DECIDED
from assay.web.security.access import visitor_of

MAX_COUNTED = 2_000
"""Maximum number of assessments of one task or judge that are counted after each decision."""


def selection_of(
    run: str | None = None,
    suite: str | None = None,
    task: str | None = None,
    judge: str | None = None,
) -> Selection:
    return Selection(
        runs=(run,) if run else (),
        suites=(suite,) if suite else (),
        tasks=(task,) if task else (),
        judges=(judge,) if judge else (),
    )


def progress(services: Services, selection: Selection) -> dict[str, int]:
    """Return the numbers of pending and decided assessments of a selection, from stored tallies."""
    totals = services.concealment.tally(selection)
    return {
        "waiting": totals.get(AssessmentState.PENDING, 0),
        "decided": sum(totals.get(state, 0) for state in DECIDED),
        **{str(state): totals.get(state, 0) for state in DECIDED},
    }


def on_the_desk(
    services: Services, selection: Selection, *, reviewer: str
) -> dict[str, int] | None:
    """Count this reviewer's items, other reviewers' items, and decided items; None if counting
    would take too long.
    """
    counts = (
        progress(services, selection)
        if not (selection.tasks or selection.judges)
        else _narrowed(services, selection)
    )
    if counts is None:
        return None
    others = min(
        counts["waiting"], services.review.opinions.waits_for_others(selection, reviewer=reviewer)
    )
    return {"waiting": counts["waiting"] - others, "decided": counts["decided"], "others": others}


def _narrowed(services: Services, selection: Selection) -> dict[str, int] | None:
    """Count one task's or judge's assessments; None if too many, or if the counts would reveal a
    run's control items.
    """
    covered = services.concealment.covered()
    if covered and any(
        summary.id in covered for summary in services.workspace.archive.runs.matching(selection)
    ):
        return None
    totals = services.workspace.archive.assessments.tally_within(selection, most=MAX_COUNTED)
    if totals is None:
        return None
    decided = sum(totals.get(state, 0) for state in DECIDED)
    return {"waiting": totals.get(AssessmentState.PENDING, 0), "decided": decided}


@contextmanager
def by_its_name(name: str, key: AssessmentKey) -> Iterator[None]:
    """Replace the assessment's number in error messages by the id in the request, because reviewers
    may not see numbers.
    """
    number = re.compile(rf"\b{shown_assessment(key)}\b")
    try:
        yield
    except InputError as error:
        if isinstance(error, UnknownName) and error.kind == "assessment":
            raise UnknownName("assessment", name) from None
        for part in ("where", "problem", "remedy"):
            # A function, because `sub` would interpret a backslash in a replacement string.
            setattr(error, part, number.sub(lambda _: name, getattr(error, part)))
        raise


def is_sealed(request: Request) -> bool:
    """True if the visitor sees opaque item ids, and can therefore open only items from the
    queue.
    """
    return visitor_of(request).role is VisitorRole.REVIEWER


def key_of(request: Request, text: str) -> AssessmentKey:
    """Return the key of the item with this id; raises `UnknownName` for other texts, such as a
    number sent by a reviewer.
    """
    return services_of(request).concealment.key_of(text, sealed=is_sealed(request))


def as_named(request: Request, item: Item) -> Item:
    """Return an item with the ids that the visitor may see; for an invited reviewer, they are
    opaque. The owner also learns why the judge cannot be called.
    """
    if not is_sealed(request):
        if not item.rerunnable or visitor_of(request).role is not VisitorRole.OWNER:
            return item
        review, run = services_of(request).review, RunId(item.run_id)
        problem = review.judge_problem(run)
        text = "" if problem is None else review.without_judges(run, str(problem))
        return replace(item, rerun_problem=text)
    names = services_of(request).concealment

    def sealed(name: str) -> str:
        return names.sealed(names.key_of(name))

    return replace(
        item,
        id=sealed(item.id),
        attempts=tuple(replace(attempt, id=sealed(attempt.id)) for attempt in item.attempts),
        trials=tuple(replace(trial, id=trial.id and sealed(trial.id)) for trial in item.trials),
    )


def shown(request: Request, assessment_id: str, *, whole: bool = False) -> Item:
    """Return an item as the visitor may see it; raises `UnknownName`."""
    key = key_of(request, assessment_id)
    with by_its_name(assessment_id, key):
        return as_named(
            request,
            services_of(request).review.item(key, reviewer=reviewer_of(request), whole=whole),
        )
