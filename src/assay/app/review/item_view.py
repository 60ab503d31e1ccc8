"""Build review items, with labels instead of names, located quotations, and a list of missing
scores.

While an assessment is pending, its item contains no name of a candidate or judge: neither in a
field, nor inside a text, nor through an order that reveals a name. Candidates keep the order in
which the judge saw them. A decision names candidates by their position in this order, and `named`
converts positions to names.
"""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

from assay.app.review.drawn_responses import form_of
from assay.app.review.item import (
    Attempt,
    Cell,
    FinalAnswerCheck,
    Item,
    Pane,
    PastDecision,
    Quote,
    RubricRow,
    ShownFlag,
    Sibling,
)
from assay.app.review.name_masking import Mask, mask_of, masked
from assay.app.review.structured_answers import structured_answer
from assay.domain.digest import shuffled
from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import RunId, shown_assessment
from assay.domain.lifecycle import MAX_ATTEMPTS, AssessmentState
from assay.domain.prompts import sent_to
from assay.domain.suite import PERSON, Task, scale_in_words
from assay.report.markdown import Node, safe_tree
from assay.scoring.blinding import labels_in
from assay.scoring.conversations import rubric_by_turn
from assay.scoring.evidence import Page, page_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from assay.domain.assessment import Assessment, Flag, Grade, Verification
    from assay.domain.run import RunPlan
    from assay.domain.selection import AssessmentDetail, AssessmentRow, TrialMark
    from assay.domain.structure import StructuredAnswer
    from assay.store.execution.journal import StoreJournal
    from assay.store.queries.archive import Archive


MAX_TEXT: Final = 12_000
"""Maximum characters of a text that are sent unless a reader asks for all of it: about 300 lines.
Five items with four such texts take 240 kB.
"""

# Bounded, and tried only at the start of a run of backticks: without this, 20,000 backticks took 9
# s.
_CODE_SPAN: Final = re.compile(r"(?<!`)(`{1,20})(?!`)(.{1,2000}?)(?<!`)\1(?!`)", re.DOTALL)


class Showcase:
    """Builds review items from stored assessments."""

    def __init__(self, archive: Archive, journal: StoreJournal) -> None:
        self._archive = archive
        self._journal = journal
        self._plans: dict[RunId, RunPlan] = {}

    def item(
        self,
        detail: AssessmentDetail,
        *,
        stamp: str | None = None,
        whole: bool = False,
        earlier: Sequence[AssessmentDetail] | None = None,
    ) -> Item:
        """Return an assessment as a review item; `stamp` is the calibration label of its judge.

        Long responses are shortened unless `whole` is True. `earlier` contains the other attempts;
        if None, they are read.
        """
        row = detail.row
        if earlier is None:
            earlier = [
                self._archive.assessments.detail(key) for key in detail.attempts if key != row.key
            ]
        hidden = any(
            other.row.state is AssessmentState.PENDING and other.row.current
            for other in (detail, *earlier)
        )
        plan = self._plan(row.run_id)
        order = panes_of(row)
        told = detail.task if whole else _beginning(detail.task)
        images = [image for message in detail.task.prompt for image in message.images]
        mask = mask_of(plan) if hidden else None
        pages, labels = _pages(detail), self.labels(row)
        trials = tuple(_sibling(mark) for mark in self._archive.assessments.marks(row))
        return Item(
            id=shown_assessment(row.key),
            run_id=row.run_id,
            suite=row.suite,
            task=row.task,
            thing=row.thing,
            k=row.k,
            of=row.of,
            attempt=row.attempt,
            current=row.current,
            by_model=row.by_model,
            state=str(row.state),
            hidden=hidden,
            joint=row.candidate is None,
            judge=None if hidden else row.grader,
            stamp=self._words_of(row, stamp),
            person=self.by_person(row),
            rerunnable=not self._no_rerun(row),
            no_rerun=self._no_rerun(row),
            language=detail.task.language,
            context=told.context,
            expected=told.expected,
            ideal=told.ideal,
            final_answer=told.final_answer,
            prompt=tuple((message.role, message.content) for message in told.prompt),
            images=tuple(
                (f"data:{each.media_type};base64,{each.data}", each.caption) for each in images
            )
            if whole or not images
            else None,
            told_cut=told is not detail.task,
            panes=tuple(
                replace(
                    _pane(
                        detail, name, labels[name], pages[name], mask, hidden=hidden, whole=whole
                    ),
                    sent=() if hidden else self._sent(plan, detail, name, whole=whole),
                    structured=self._structured(plan, detail, name, mask),
                )
                for name in order
            ),
            criteria=tuple(_rubric_rows(detail, order, plan, pages, mask)),
            report=_linked(safe_tree(masked(detail.judged.report, mask)), pages, order),
            ranking=tuple(order.index(name) for name in detail.judged.ranking if name in order),
            flags=tuple(_flag(flag, order, mask) for flag in detail.judged.flags),
            missing=tuple(_missing(row.assessment, order)),
            attempts=tuple(_attempt(other, order, detail) for other in earlier),
            trials=trials,
            events=tuple(
                PastDecision(
                    verb=str(event.decision.verb),
                    reason=event.decision.reason,
                    note=event.decision.note,
                    displayed=event.decision.displayed,
                    reviewer=event.decision.reviewer_words,
                    at=event.at,
                    via=str(event.decision.via),
                    after=str(event.after),
                )
                for event in detail.events
            ),
            call={} if hidden else {str(name): value for name, value in detail.call.items()},
        )

    def _sent(
        self, plan: RunPlan, detail: AssessmentDetail, name: str, *, whole: bool
    ) -> tuple[tuple[str, str], ...]:
        """Return the messages that a candidate received, as (role, text)."""
        # After a rename, assessments and plans both keep the names that were used then.
        candidate = next(
            (candidate for candidate in plan.candidates if candidate.name == name), None
        )
        messages = () if candidate is None else sent_to(plan.system_prompt, candidate, detail.task)
        return tuple(
            (message.role, message.content if whole else _head(message.content))
            for message in messages
        )

    def _structured(
        self, plan: RunPlan, detail: AssessmentDetail, name: str, mask: Mask | None
    ) -> StructuredAnswer | None:
        text = next(
            (response.text for response in detail.responses if response.candidate == name), None
        )
        if text is None or plan.rubric.structuring is None:
            return None
        answer = structured_answer(
            self._journal, plan.rubric.structuring, detail.task, text, candidate=name
        )
        parts = {} if answer is None else asdict(answer)
        hidden = {
            name: masked(part, mask)
            if isinstance(part, str)
            else tuple(masked(each, mask) for each in part)
            for name, part in parts.items()
        }
        return answer and replace(answer, **hidden)  # type: ignore[arg-type] # names and values agree

    def labels(self, row: AssessmentRow) -> dict[str, str]:
        """Return each candidate's label while names are hidden; no label equals a candidate name of
        the run.
        """
        return _labels_of(row, (candidate.name for candidate in self._plan(row.run_id).candidates))

    def common_prompt(self, detail: AssessmentDetail) -> tuple[tuple[str, str], ...]:
        """Return the messages that all candidates received, as (role, text); empty if candidates
        received different messages.

        These messages may be shown while names are hidden, because they do not distinguish
        candidates.
        """
        plan = self._plan(detail.row.run_id)
        sent = {
            self._sent(plan, detail, candidate.name, whole=True) for candidate in plan.candidates
        }
        return sent.pop() if len(sent) == 1 else ()

    def _words_of(self, row: AssessmentRow, stamp: str | None) -> str:
        if self.by_person(row):
            return "Graded by a person"
        if not row.by_model:
            return "Graded by a rule"
        return f"Judge: {stamp or 'uncalibrated'}"

    def _no_rerun(self, row: AssessmentRow) -> str:
        """Return why the item cannot be judged again without `--force`; empty if it can."""
        if not row.current:
            return "superseded"
        if self.by_person(row):
            return "by_person"
        if not row.by_model:
            return "by_rule"
        return "" if row.attempt < MAX_ATTEMPTS else "limit"

    def by_person(self, row: AssessmentRow) -> bool:
        """True if only people grade the assessment."""
        return row.grader == PERSON

    def _plan(self, run: RunId) -> RunPlan:
        if run not in self._plans:
            self._plans[run] = self._journal.plan_of(run)
        return self._plans[run]


def _sibling(mark: TrialMark) -> Sibling:
    if mark.assessment is None:
        return Sibling(k=mark.k, state=str(mark.state), id=None)
    return Sibling(k=mark.k, state=str(mark.assessment_state), id=shown_assessment(mark.assessment))


def panes_of(row: AssessmentRow) -> tuple[str, ...]:
    """Return an assessment's candidates in the order in which the judge saw them; in random order
    if it has no judge.
    """
    labels = row.assessment.labels
    if all(name in labels for name in row.candidates):
        return tuple(sorted(row.candidates, key=lambda name: (len(labels[name]), labels[name])))
    return shuffled(row.candidates, int(row.key))


def _labels_of(row: AssessmentRow, names: Iterable[str]) -> dict[str, str]:
    drawn = {**labels_in(panes_of(row), others=names), **row.assessment.labels}
    return {
        name: f"Candidate {drawn[name]}" if len(drawn[name]) <= 2 else drawn[name]
        for name in panes_of(row)
    }


def named(
    row: AssessmentRow, corrections: Sequence[tuple[int, str | None, float]]
) -> dict[tuple[str, str | None], float]:
    """Convert corrections by pane to corrections by candidate; raises `UnknownName` for an unknown
    pane.
    """
    order = panes_of(row)
    scores: dict[tuple[str, str | None], float] = {}
    for pane, criterion, value in corrections:
        if not 0 <= pane < len(order):
            raise UnknownName(
                "candidate",
                str(pane),
                remedy=f"This assessment has {len(order)} panes, numbered from 0.",
            )
        if (order[pane], criterion) in scores:
            raise InputError("corrections", "the same score is corrected twice.")
        scores[order[pane], criterion] = value
    return scores


def _head(text: str) -> str:
    """Return a text; a long text is cut at the end of a line."""
    return text if len(text) <= MAX_TEXT else text[: text.rfind("\n", 0, MAX_TEXT) + 1 or MAX_TEXT]


def _beginning(task: Task) -> Task:
    """Return a task with long texts cut; a task without long texts is returned unchanged."""
    beginning = replace(
        task,
        context=_head(task.context),
        expected=None if task.expected is None else _head(task.expected),
        ideal=None if task.ideal is None else _head(task.ideal),
        prompt=tuple(replace(message, content=_head(message.content)) for message in task.prompt),
    )
    return task if beginning == task else beginning


def _pane(
    detail: AssessmentDetail,
    name: str,
    label: str,
    page: Page,
    mask: Mask | None,
    *,
    hidden: bool,
    whole: bool,
) -> Pane:
    response = next((response for response in detail.responses if response.candidate == name), None)
    # before lengths are measured, because lengths can reveal names too
    text = masked(response.text if response else "", mask)
    cut = not whole and len(text) > MAX_TEXT
    return Pane(
        label=label,
        name=None if hidden else name,
        text=_head(text) if cut else text,
        cut=cut,
        chars=len(text),
        lines=page.lines,
        truncated=bool(response and response.truncated),
        score=detail.row.assessment.scores.get(name),
        judged=detail.judged.scores.get(name),
        form=form_of(text, detail.task.language, turns=bool(detail.task.turns)),
        verdict=detail.row.assessment.verdicts.get(name),
        check=next(
            (_check(each, mask) for each in detail.judged.verifications if each.candidate == name),
            None,
        ),
    )


def _check(verification: Verification, mask: Mask | None) -> FinalAnswerCheck:
    message = masked(verification.message, mask)
    return FinalAnswerCheck(
        verified=verification.verified, message=message, scorer=verification.scorer
    )


def _rubric_rows(
    detail: AssessmentDetail,
    order: Sequence[str],
    plan: RunPlan,
    pages: Mapping[str, Page],
    mask: Mask | None,
) -> Iterable[RubricRow]:
    rubric = {
        criterion.name: criterion for criterion in rubric_by_turn(detail.task, plan.rubric).criteria
    }
    counted = {(grade.candidate, grade.criterion): grade for grade in detail.row.assessment.grades}
    judged = {(grade.candidate, grade.criterion): grade for grade in detail.judged.grades}
    for criterion in dict.fromkeys(
        (*detail.judged.weights, *(grade.criterion for grade in detail.judged.grades))
    ):
        grades = [counted.get((name, criterion)) for name in order]
        scale = next((grade for grade in grades if grade is not None), None)
        low, high = (scale.min_score, scale.max_score) if scale else (0.0, 1.0)
        known = rubric.get(criterion)
        labels = (
            known.labels if known is not None and (known.low, known.high) == (low, high) else ()
        )
        yield RubricRow(
            name=criterion,
            weight=detail.judged.weights.get(criterion, 1.0),
            low=low,
            high=high,
            guidance=known.guidance if known is not None else "",
            scale=_scale_in_words(low, high, labels),
            labels=labels,
            cells=tuple(
                _cell(grade, judged.get((name, criterion), grade), pages.get(name), mask)
                if grade
                else None
                for name, grade in zip(order, grades, strict=True)
            ),
        )


def _scale_in_words(low: float, high: float, labels: Sequence[tuple[str, float]]) -> str:
    """Format a scale as `0–100`, `-1 to 1`, or as labels with their digit keys: `1 bad / 2 ok / 3
    good`.
    """
    if labels:
        return " / ".join(f"{place} {word}" for place, (word, _) in enumerate(labels, 1))
    if low > high or low < 0:
        return scale_in_words(low, high)
    return f"{low:.10g}–{high:.10g}"


def _cell(grade: Grade, judged: Grade, page: Page | None, mask: Mask | None) -> Cell:
    raw = grade.raw_score
    if grade.score is not None:
        raw = round(grade.min_score + grade.score * (grade.max_score - grade.min_score), 6)
    return Cell(
        score=grade.score,
        raw=raw,
        judged=judged.raw_score,
        reason=tuple(_with_quotes(judged.reason, page, mask)),
        evidence=tuple(_quote(text, page, mask) for text in judged.evidence if text.strip()),
        confidence=judged.confidence,
    )


def _quote(text: str, page: Page | None, mask: Mask | None) -> Quote:
    return Quote(text=masked(text, mask), at=page.where(text) if page else None)


def _with_quotes(reason: str, page: Page | None, mask: Mask | None) -> Iterable[str | Quote]:
    """Yield the parts of a reason; code spans that occur in the response become quotations."""
    rest = 0
    for span in _CODE_SPAN.finditer(reason):
        quote = _quote(span[2].strip(), page, mask)
        if quote.at is None:
            continue
        if span.start() > rest:
            yield masked(reason[rest : span.start()], mask)
        yield quote
        rest = span.end()
    if rest < len(reason):
        yield masked(reason[rest:], mask)


def _linked(nodes: list[Node], pages: Mapping[str, Page], order: Sequence[str]) -> list[Node]:
    """Link each code span of the report to its lines if exactly one response contains it."""
    for node in nodes:
        if not isinstance(node, list):
            continue
        children = node[2:]
        if node[0] == "code" and len(children) == 1 and isinstance(children[0], str):
            places = [
                (place, at)
                for place, name in enumerate(order)
                if (at := pages[name].where(children[0]))
            ]
            if len(places) == 1:
                (place, at) = places[0]
                node[1] = {"pane": str(place), "from": str(at[0]), "to": str(at[1])}
        elif node[0] != "pre":
            _linked([child for child in children if not isinstance(child, dict)], pages, order)
    return nodes


def _pages(detail: AssessmentDetail) -> dict[str, Page]:
    texts = {response.candidate: response.text for response in detail.responses}
    return {name: page_of(texts.get(name, "")) for name in detail.row.candidates}


def _flag(flag: Flag, order: Sequence[str], mask: Mask | None) -> ShownFlag:
    pane = order.index(flag.candidate) if flag.candidate in order else None
    return ShownFlag(
        kind=str(flag.kind), detail=masked(flag.detail, mask), pane=pane, criterion=flag.criterion
    )


def _missing(assessment: Assessment, order: Sequence[str]) -> Iterable[tuple[int, str | None]]:
    for place, name in enumerate(order):
        if assessment.scores.get(name) is not None:
            continue
        graded = {
            grade.criterion: grade.score for grade in assessment.grades if grade.candidate == name
        }
        wanted = [
            criterion for criterion, weight in assessment.weights.items() if weight > 0
        ] or list(graded)
        lacking = [criterion for criterion in wanted if graded.get(criterion) is None]
        if not lacking:
            yield place, None
        for criterion in lacking:
            yield place, criterion


def _attempt(other: AssessmentDetail, order: Sequence[str], item: AssessmentDetail) -> Attempt:
    raw = {
        (grade.candidate, grade.criterion): grade.raw_score for grade in other.row.assessment.grades
    }
    criteria = dict.fromkeys(
        (*item.judged.weights, *(grade.criterion for grade in item.judged.grades))
    )
    return Attempt(
        id=shown_assessment(other.row.key),
        attempt=other.row.attempt,
        state=str(other.row.state),
        scores=tuple(other.row.assessment.scores.get(name) for name in order),
        raw=tuple(tuple(raw.get((name, criterion)) for name in order) for criterion in criteria),
    )
