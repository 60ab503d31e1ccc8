"""Print data to stdout and messages to stderr; with --json, stdout is exactly one JSON document.

On a terminal, text is wrapped, tables fit the width, and colours mark decisions and states. In a
pipe or a file, text is not wrapped or coloured. All output passes through `visible`, because texts
from models and files may contain escape sequences that would clear the screen or change the window
title.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal

import click

from assay.app.wire import to_json
from assay.domain.amounts import money
from assay.domain.identifiers import shown_trial
from assay.domain.unescaped_json import unescaped_json

if TYPE_CHECKING:
    from assay.app.runs.execution import CostEstimate, RunResult
    from assay.app.runs.run_documents import RegradeDocument, RegradePlanDocument, RunResultDocument
    from assay.domain.remaining_cost import RemainingCost

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that control a terminal or the text direction or cannot be encoded; line breaks and
tabs are allowed.
"""

_UNSEEN_IN_JSON: Final = re.compile(
    "[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


_COLOURS: Final = {
    "better": "green",
    "worse": "red",
    "approved": "green",
    "corrected": "green",
    "done": "green",
    "failed": "red",
    "rejected": "red",
    "interrupted": "red",
    "pending": "yellow",
    "running": "yellow",
}
"""Colour of a table cell, by the cell's text."""

CAUSES_SHOWN: Final = 10
_MAX_DRAWN: Final = 2_000
"""Maximum number of rows in a formatted table, because rich formats only 1,600 rows per second."""


_MAX_SAMPLES: Final = 8
"""Candidates whose answers the summary of a run shows."""


def visible(text: str) -> str:
    """Return the text with every control character, direction mark and lone surrogate shown as
    `\\x1b` or `\\u202e`.
    """
    # Windows line breaks are part of a file's text, not an attempt to overwrite a line.
    return _UNSEEN.sub(_escaped, text.replace("\r\n", "\n"))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def counted(n: int, noun: str) -> str:
    """Return a count with its noun: `1 task`, `12 tasks`, `0 tasks`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def print_json(document: object) -> None:
    """Print a document to stdout; raises `ValueError` for NaN or Infinity."""
    # json instead of orjson, because it refuses NaN; orjson would write null, which reads as "no
    # score".
    text = unescaped_json(document, allow_nan=False, indent=2, default=to_json)
    sys.stdout.write(_UNSEEN_IN_JSON.sub(lambda match: f"\\u{ord(match.group()):04x}", text) + "\n")


def answer(document: object, text: str | Callable[[], object], *, as_json: bool) -> int:
    """Print a document with --json; otherwise print a text, or call a function that prints.

    Return exit code 0.
    """
    if as_json:
        print_json(document)
    elif isinstance(text, str):
        say(text)
    else:
        text()
    return 0


def say(text: str = "", *, colour: str | None = None, bold: bool = False) -> None:
    """Print one line of data to stdout, with colour or bold only on a terminal."""
    lines = visible(text)
    if sys.stdout.isatty():
        lines = "\n".join(map(_wrapped, lines.split("\n")))
        if takes_colour() and (colour or bold):
            lines = click.style(lines, fg=colour, bold=bold or None)
    sys.stdout.write(f"{lines}\n")


def say_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: frozenset[int] = frozenset()
) -> None:
    """Print a table. The columns in `numbers` are right-aligned and never folded."""
    lines = [[visible(" ".join(str(cell).split("\n"))) for cell in row] for row in rows]
    if not sys.stdout.isatty() or len(lines) > _MAX_DRAWN:
        sys.stdout.write(f"{_plain_table(header, lines, numbers)}\n")
        return
    from rich.console import Console  # takes 50 ms, so only imported for a terminal
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    # Long cells are folded, not cut. Ids in the first column stay on one line, because people copy
    # them.
    whole = (
        {*numbers, 0}
        if max((len(line[0]) for line in lines), default=0) <= _width() // 2
        else numbers
    )
    for place, name in enumerate(header):
        justify: Literal["right", "left"] = "right" if place in numbers else "left"
        drawn.add_column(name, justify=justify, no_wrap=place in whole, overflow="fold")
    for line in lines:
        drawn.add_row(*(Text(cell, style=_COLOURS.get(cell, "")) for cell in line))
    colours: Literal["auto"] | None = "auto" if takes_colour() else None
    # Without a height, rich assumes 80 columns for any terminal without colour.
    Console(
        file=sys.stdout, width=_width(), height=24, color_system=colours, highlight=False
    ).print(drawn)


def takes_colour() -> bool:
    """True unless NO_COLOR is set or the terminal has no colours."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _width() -> int:
    return shutil.get_terminal_size().columns


def _wrapped(line: str) -> str:
    """Wrap a line and keep its indentation.

    Words are never split, so that commands can be copied.
    """
    if len(line) <= _width():
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(
        line,
        _width(),
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def tell(text: str) -> None:
    sys.stderr.write(f"{visible(text)}\n")


def complain(message: str, *, as_json: bool) -> None:
    """Print an error to stderr; with --json, also print it to stdout as a document."""
    if as_json:
        print_json({"error": message})
    tell(f"assay: {message}")


def _plain_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], numbers: frozenset[int]
) -> str:
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i in numbers else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def dollars(usd: float | None, *, unpriced: int = 0) -> str:
    """Format a cost, such as `$0.0042`, `$1.23` or `price unknown`, and mention the number of
    `unpriced` calls.
    """
    if usd is None or (unpriced and not usd):
        return "price unknown"
    if unpriced:
        return f"at least {dollars(usd)}, the price of {counted(unpriced, 'call')} is unknown"
    return money(usd)


def asked(estimate: CostEstimate) -> str:
    """Format an estimate, such as `35 calls, about $0.42, at most $1.20 without retries`."""
    calls = counted(estimate.calls, "call")
    if estimate.unpriced:
        return f"{calls}; the price of {', '.join(estimate.unpriced)} is unknown"
    if not estimate.calls or estimate.most_usd == 0:
        return f"{calls}, no cost"
    return f"{calls}, about {dollars(estimate.likely_usd)}, at most {dollars(estimate.most_usd)} without retries"


def remaining_words(remaining: RemainingCost, budget_usd: float | None) -> str:
    """Return what the rest of a run costs, such as `the rest costs about $3.10, so $3.50 in all, by
    its 120 calls so far`.
    """
    rest, total = dollars(remaining.remaining_usd), dollars(remaining.total_usd)
    over = (
        ""
        if budget_usd is None or remaining.total_usd <= budget_usd
        else f", over the budget of {dollars(budget_usd)}"
    )
    return f"the rest costs about {rest}, so {total} in all, by its {counted(remaining.answered_calls, 'call')} so far{over}"


def _say_causes(result: RunResult) -> None:
    """List the causes of failed trials with their counts, and one trial of each cause."""
    for cause in result.causes[:CAUSES_SHOWN]:
        example = next(
            (
                row
                for row in result.failures
                if row.failure is not None and row.failure.detail == cause.detail
            ),
            None,
        )
        where = (
            ""
            if example is None
            else f"{shown_trial(example.key)}, {example.task} trial {example.k}"
        )
        others = f"{counted(cause.trials, 'trial')}, such as {where}" if cause.trials > 1 else where
        say(f"  failed: {cause.kind} ({cause.fault}): {cause.detail} ({others})")
    if len(result.causes) > CAUSES_SHOWN:
        rest = result.causes[CAUSES_SHOWN:]
        trials = counted(sum(cause.trials for cause in rest), "trial")
        say(
            f"  … and {counted(len(rest), 'other cause')} of {trials}; `assay show {result.summary.id}` lists every failed trial"
        )


def exit_of(document: RunResultDocument | RegradeDocument | RegradePlanDocument) -> int:
    """Return the exit code of a run or a regrade: 1 if it paused itself or a trial failed,
    otherwise 0.
    """
    from assay.app.runs.run_documents import RegradeDocument, RegradePlanDocument

    if isinstance(document, RegradePlanDocument):
        return 0
    run = document.run if isinstance(document, RegradeDocument) else document
    return int(run.paused is not None or bool(run.failures))


def say_result(result: RunResult) -> None:
    from assay.app.runs import run_documents

    document = run_documents.run_result(result)
    trials, waiting = document.trials, document.assessments["pending"]
    cost = dollars(document.cost_usd, unpriced=document.unpriced_calls)
    say(
        f"run {document.run_id}: {trials['done']} of {trials['total']} trials done, {trials['failed']} failed; {cost}"
    )
    if document.budget is not None and document.budget.over_usd:
        over, budget = dollars(document.budget.over_usd), dollars(document.budget.usd)
        say(
            f"  {over} over the budget of {budget}, because calls cost more than was reserved for them"
        )
    _say_causes(result)
    if result.pause is not None:
        say(f"  {result.pause.sentence}")
        say(f"  {result.pause.remedy(result.summary.id, result.enough_usd)}")
    elif trials["failed"]:
        more = f" --budget {result.enough_usd:g}" if result.enough_usd is not None else ""
        say(f"  retry the failed trials with: assay resume {document.run_id}{more}")
    if result.remaining is not None and result.remaining.total_usd:
        say(f"  {remaining_words(result.remaining, result.summary.budget_usd)}")
    for sample in document.answers[:_MAX_SAMPLES]:
        score = "not scored yet" if sample.score is None else f"{100 * sample.score:.3g}"
        reference = "" if sample.expected is None else f" (expected: {sample.expected})"
        say(
            f"  {sample.candidate}, {sample.task}: {score} for: {sample.text or 'an empty answer'}{reference}"
        )
    if len(document.answers) > _MAX_SAMPLES:
        say(f"  … and {len(document.answers) - _MAX_SAMPLES} more candidates")
    for sign in document.signs:
        say(f"look: {sign.text}", colour="yellow")
        if sign.command is not None:
            say(f"  {sign.command}")
    if unproven := [name for name, record in result.calibrations.items() if record is None]:
        say(f"uncalibrated: {', '.join(unproven)}; `assay calibrate MODEL` measures a judge")
    if waiting:
        wait = f"{counted(waiting, 'assessment')} {'awaits' if waiting == 1 else 'await'} review"
        say(f"{wait}: `assay serve`, or `assay review --run {document.run_id}`")
    elif result.summary.not_graded:
        answers = counted(result.summary.not_graded, "trial")
        say(
            f"{answers} not graded: `assay regrade {document.run_id} --judge MODEL`, or `--judge human` to grade by hand"
        )
    elif trials["done"]:
        say(f"no assessment awaits review; see `assay stats --run {document.run_id}`")
