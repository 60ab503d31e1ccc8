"""Format an assessment as text: with all names for the operator, or without names for a review in
the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from assay.app.review.double_review import wording
from assay.cli.output import visible
from assay.domain.identifiers import shown_assessment
from assay.domain.review import reviewer_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from assay.app.review.item import Item, RubricRow
    from assay.domain.opinions import OpinionsShown
    from assay.domain.selection import AssessmentDetail

_BLOCKS: Final = frozenset(
    {"p", "li", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote", "tr", "br", "hr"}
)


_MAX_ROWS: Final = 200
_ROW: Final = 80


class ItemLine(NamedTuple):
    """One line of an item, before it is wrapped."""

    text: str
    heading: bool = False


def material_lines(
    item: Item, prompt: Sequence[tuple[str, str]], columns: Sequence[tuple[str, str]]
) -> list[ItemLine]:
    """Return the task, the reference and the answers of an item, as the reviewer may see them.

    Args:
        prompt: messages sent to all candidates; empty if candidates received different messages.
        columns: the task's columns, which candidates' prompts may contain.
    """
    lines = [ItemLine(f"{item.stamp} · suite {item.suite}")]
    if prompt:
        for role, text in prompt:
            lines += _part(f"Prompt that was sent ({role})", text)
    else:
        lines += _part("Rules", item.context)
        for role, text in item.prompt:
            lines += _part(f"Prompt of the task ({role})", text)
        asked = {text for _, text in item.prompt}
        for name, text in ((name, text) for name, text in columns if text not in asked):
            lines += _part(f"Column {name}", text)
    lines += _part("Expected answer", item.expected or "")
    lines += _part("Model solution", item.ideal or "")
    lines += _part("Correct final answer", item.final_answer or "")
    for pane in item.panes:
        cut = " · cut off by the token limit" if pane.truncated else ""
        label = f"{pane.label}{'' if pane.name is None else f', {pane.name}'}{cut}"
        lines += [ItemLine(""), ItemLine(label, heading=True)]
        lines += [
            ItemLine(f"{number:4} {line}") for number, line in enumerate(pane.text.splitlines(), 1)
        ]
        if pane.structured is not None:
            steps = "\n".join(f"{n}. {step}" for n, step in enumerate(pane.structured.steps, 1))
            lines += _part(
                f"Structured answer of {pane.label}",
                f"{steps}\nFinal answer: {pane.structured.final_answer}",
            )
        for role, text in pane.sent if not prompt else ():
            lines += _part(f"Prompt that was sent to {pane.label} ({role})", text)
    return _split(lines)


def grade_lines(item: Item) -> list[ItemLine]:
    """Return the criteria of an item with the grades that the reviewer may see now."""
    lines = [
        ItemLine(""),
        ItemLine("Criteria" if item.blind or item.person else "Grades", heading=True),
    ]
    for row in item.criteria:
        lines += _criterion(item, row)
    for pane in item.panes if not item.person else ():
        if pane.verdict:
            lines.append(ItemLine(f"  {pane.label}: {pane.verdict}"))
        if pane.check:
            lines.append(ItemLine(f"  {pane.label}: {pane.check.message} ({pane.check.scorer})"))
    lines += [ItemLine(f"▲ {flag.detail}") for flag in item.flags]
    lines += _part("Report", "".join(_texts(item.report)).strip())
    lines += [
        ItemLine(f"{event.at} {event.reviewer}: {event.verb} {event.reason}".rstrip())
        for event in item.events
    ]
    return _split(lines)


def shortened(lines: Iterable[ItemLine]) -> list[ItemLine]:
    """Return the lines with at most 200 rows of 80 characters under each heading."""
    kept: list[ItemLine] = []
    rows = 0
    for line in lines:
        left = _MAX_ROWS if line.heading else _MAX_ROWS - rows
        rows = _MAX_ROWS - left + 1 + len(line.text) // _ROW
        if rows <= _MAX_ROWS:
            kept.append(line)
        elif left >= 0:
            kept.append(ItemLine(line.text[: left * _ROW]))
            kept.append(ItemLine("… the rest is left out; type view to see all of it"))
    return kept


def _split(lines: Iterable[ItemLine]) -> list[ItemLine]:
    return [
        ItemLine(text, line.heading)
        for line in lines
        for text in visible(line.text).expandtabs(4).split("\n")
    ]


def _part(title: str, text: str) -> list[ItemLine]:
    return [ItemLine(""), ItemLine(title, heading=True), ItemLine(text)] if text else []


def _criterion(item: Item, row: RubricRow) -> Iterator[ItemLine]:
    yield ItemLine(
        f"{row.name} ({row.scale}, weight {row.weight:g})"
        + (f": {row.guidance}" if row.guidance else "")
    )
    own = {(pane, criterion): score for pane, criterion, score in item.own or ()}
    for place, (pane, cell) in enumerate(zip(item.panes, row.cells, strict=True)):
        if cell is not None and not item.person:
            raw = "no score" if cell.raw is None else f"{cell.raw:g}"
            reason = "".join(
                part if isinstance(part, str) else f"“{part.text}”" for part in cell.reason
            )
            yield ItemLine(f"  {pane.label}: {raw}. {reason}".rstrip())
            yield from (ItemLine(f"      “{quote.text}”") for quote in cell.evidence)
        if (place, row.name) in own:
            yield ItemLine(
                f"  {pane.label}, your score: {row.low + own[place, row.name] * (row.high - row.low):g}"
            )


def _texts(nodes: Iterable[object]) -> Iterator[str]:
    """Yield the texts of a report, with a line break after each block."""
    for node in nodes:
        if isinstance(node, str):
            yield node
        elif isinstance(node, list):
            yield from _texts(node[2:])
            if node[0] in _BLOCKS:
                yield "\n"


def shown(detail: AssessmentDetail, opinions: OpinionsShown) -> str:
    """Return an assessment as text: responses, names, grades, flags, report, decisions and
    opinions.
    """
    row, lines = detail.row, []
    lines.append(
        f"{row.thing} · trial {row.k} of {row.of} · attempt {row.attempt} · {shown_assessment(row.key)} · {row.state}"
    )
    lines.append(f"suite {row.suite} · run {row.run_id} · judge {row.grader}")
    if detail.task.context:
        lines += ["", "Rules", detail.task.context]
    lines += [text for m in detail.task.prompt for text in ("", f"Prompt ({m.role})", m.content)]
    labels = row.assessment.labels
    for response in detail.responses:
        label = f" (judged as {labels[response.candidate]})" if response.candidate in labels else ""
        lines += [
            "",
            f"--- {response.candidate}{label}{' · cut off' if response.truncated else ''}",
        ]
        lines += [f"{number:4} {line}" for number, line in enumerate(response.text.splitlines(), 1)]
    lines += ["", "Grades"]
    for grade in row.assessment.grades:
        best = max(grade.min_score, grade.max_score)
        direction = ", lower is better" if grade.min_score > grade.max_score else ""
        raw = (
            "missing"
            if grade.raw_score is None
            else f"{grade.raw_score:g} out of {best:g}{direction}"
        )
        lines.append(f"  {grade.candidate} · {grade.criterion}: {raw}. {grade.reason}")
        lines += [f"      evidence: {quote}" for quote in grade.evidence]
    for name, score in row.assessment.scores.items():
        lines.append(
            f"  {name}: {'no score, a criterion is missing' if score is None else f'{100 * score:.1f} out of 100'}"
        )
    lines += [
        f"  {name}: {verdict}"
        for name, verdict in row.assessment.verdicts.items()
        if verdict is not None
    ]
    lines += [
        f"  {each.candidate}: {each.message} ({each.scorer})"
        for each in row.assessment.verifications
    ]
    if row.assessment.flags:
        lines += [
            "",
            "Flags",
            *(f"  ▲ {item.kind}: {item.detail}" for item in row.assessment.flags),
        ]
    if row.assessment.report:
        lines += ["", "Report", row.assessment.report]
    for event in detail.events:
        decision = event.decision
        why = f": {decision.reason}" if decision.reason else ""
        change = f"{event.before} → {event.after}"
        how = wording.decision_road(decision)
        lines.append(
            f"{event.at} {decision.reviewer_words}: {decision.verb}{why} ({change}; {how})"
        )
    lines += _opinion_lines(opinions)
    return visible("\n".join(lines))


def _opinion_lines(opinions: OpinionsShown) -> list[str]:
    lines = []
    for opinion in opinions.visible:
        given = opinion.given
        why = f": {given.reason}" if given.reason else ""
        scores = "".join(f", {name} {100 * score:.1f}" for name, score in given.result.items())
        who = reviewer_words(opinion.reviewer, given.stated_by)
        lines.append(
            f"  {opinion.at} {who}: {given.verb}{why}{scores} ({wording.road(given.road)})"
        )
    if opinions.hidden:
        lines.append(f"  {wording.opinions_hidden(opinions.hidden)}")
    return ["", "Opinions", *lines] if lines else []
