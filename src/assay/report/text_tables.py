"""Writes a report as Markdown, and its tables as LaTeX: scores, pairs and tasks, with counts and
warnings.
"""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from assay.domain.suite import scale_in_words
from assay.report import wording

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from assay.analysis.verdict_rates import CandidateVerdicts, VerdictRates
    from assay.report.summary import ReportContents
    from assay.statistics.estimates import Estimate
    from assay.statistics.ranking import RankedPair

TASKS_SHOWN: Final = 200
"""Maximum rows of the table of tasks."""

# The dollar sign is included because many programs read it as the start of a formula.
_MARKS: Final = re.compile(r"([\\`*_{}\[\]<>#|~$])")

_LATEX: Final[dict[str, str]] = tomllib.loads(
    (files(__package__) / "latex.toml").read_text("utf-8")
)


def markdown(report: ReportContents) -> str:
    """Write the report as Markdown; text from outside is escaped, so it appears exactly as it was
    written.
    """
    parts = [f"# {_md(report.title)}", _md(report.about)]
    parts.append("\n".join(f"* {_md(verdict)}" for verdict in report.verdicts))
    parts += ["## Scores", _md_table(score_header(), score_rows(report), numbers={1, 2})]
    if report.ranking.compared:
        parts += [
            "## All pairs",
            _md_table(PAIR_HEADER, map(pair_row, report.ranking.compared), numbers={1, 3, 4}),
        ]
        parts.append(_md(wording.comparisons_made(report.ranking)))
    header, rows, left_out = task_rows(report)
    if rows:
        parts += ["## Tasks", _md_table(header, rows, numbers=set(range(1, len(header))))]
        if left_out:
            parts.append(f"{wording.count(left_out, 'more task')} not shown.")
    if report.criteria:
        parts += ["## Criteria", _md_table(*criterion_rows(report))]
    parts += ["## What counts", _md(counts_sentence(report))]
    parts.append("\n".join(f"* {_md(wording.capitalise(line))}." for line in report.how_reviewed))
    if report.cautions:
        parts += ["## Warnings", "\n".join(f"* {_md(caution.text)}" for caution in report.cautions)]
    for run in report.runs:
        parts += [f"## Run {_md(run.id)}", _md_table(("field", "value"), run.facts)]
        if run.models:
            parts.append(_md_table(tuple(run.models[0]), run.model_rows))
    if report.reviews:
        header = ("when", "about", "decision", "reviewer", "how", "reason")
        rows_of = (
            (review.at, review.about, review.verb, review.reviewer, review.how, review.reason)
            for review in report.reviews
        )
        parts += ["## Reviews", _md_table(header, rows_of)]
        if report.reviews_left_out:
            parts.append(f"{wording.count(report.reviews_left_out, 'older decision')} not shown.")
    return "\n\n".join(part for part in parts if part) + "\n"


def latex(report: ReportContents) -> str:
    """Write scores and pairs as `table` environments, after the rates of verdicts; they need only
    the package booktabs.
    """
    lines = [
        f"% {_comment(report.title)}: {_comment(report.about)}",
        f"% written {report.written} by Assay; needs \\usepackage{{booktabs}}",
        *(f"% {_comment(line)}" for line in report.how_reviewed),
        *(f"% {_comment(caution.text)}" for caution in report.cautions),
    ]
    if report.rates is not None:
        caption = wording.labelled(
            f"Rates of verdicts in percent. {wording.verdict_level(report.rates)}", report.read
        )
        columns = f"l{'r' * len(report.rates.labels)}l"
        lines += _latex_table(
            rate_header(report.rates), rate_rows(report.rates), columns, caption, "verdicts"
        )
    caption = wording.labelled(f"Scores are out of 100. {counts_sentence(report)}", report.read)
    lines += _latex_table(score_header(), score_rows(report), "lrrll", caption, "scores")
    if report.ranking.compared:
        compared = f"Differences in points. {wording.comparisons_made(report.ranking)}".strip()
        caption = wording.labelled(compared, report.read)
        rows = [pair_row(pair) for pair in report.ranking.compared]
        lines += _latex_table(PAIR_HEADER, rows, "lrlrrl", caption, "pairs")
    return "\n".join(lines) + "\n"


def in_order(report: ReportContents) -> tuple[Estimate, ...]:
    """Return the estimates, best first; candidates without a score come last."""
    return tuple(candidate.estimate for candidate in report.ranking.candidates)


def rate_header(rates: VerdictRates) -> tuple[str, ...]:
    return ("candidate", *rates.labels, "from")


def rate_rows(rates: VerdictRates) -> list[tuple[str, ...]]:
    return [
        (candidate.candidate, *_rate_cells(candidate, rates.labels), _rate_source(candidate))
        for candidate in rates.candidates
    ]


def _rate_cells(candidate: CandidateVerdicts, labels: Sequence[str]) -> list[str]:
    """Return a cell for each verdict with its rate and range; a dash if no verdict counts."""
    by_verdict = {rate.verdict: rate for rate in candidate.rates}
    return [
        wording.verdict_rate(by_verdict[label]) if label in by_verdict else "–" for label in labels
    ]


def _rate_source(candidate: CandidateVerdicts) -> str:
    return (
        f"{wording.count(candidate.n_tasks, 'task')}, {wording.count(candidate.n_trials, 'trial')}"
    )


def score_header() -> tuple[str, ...]:
    return ("candidate", "score", "sd", "95% range", "from")


def score_rows(report: ReportContents) -> list[tuple[str, ...]]:
    return [_score_row(estimate) for estimate in in_order(report)]


def _score_row(estimate: Estimate) -> tuple[str, ...]:
    """Return the table row of a candidate; if a number is missing, the row explains why."""
    if estimate.mean is None:
        return (
            str(estimate.candidate),
            "",
            "",
            wording.MISSING[estimate.reason or "no_approved_trials"],
            "",
        )
    tasks = wording.tasks_in_families(estimate.n_tasks, estimate.n_families)
    return (
        str(estimate.candidate),
        wording.number(estimate.mean),
        "" if estimate.sd is None else wording.number(estimate.sd),
        wording.range_or_none(estimate.ci95, estimate.n_tasks).removeprefix("95% range "),
        f"{tasks}, {wording.count(estimate.n_trials, 'trial')}",
    )


PAIR_HEADER: Final = ("pair", "points", "95% range", "p", "p (Holm)", "decision")


def pair_row(pair: RankedPair) -> tuple[str, ...]:
    return (
        f"{pair.a} − {pair.b}",
        "" if pair.difference is None else wording.signed(pair.difference),
        "" if pair.ci95 is None else wording.difference_range(pair.ci95),
        wording.probability(pair.p_value),
        wording.probability(pair.p_holm),
        pair.decision.replace("_", " "),
    )


def task_rows(report: ReportContents) -> tuple[tuple[str, ...], list[tuple[str, ...]], int]:
    """Return means by task and candidate: header, rows (up to `TASKS_SHOWN`), and the number of
    rows left out.
    """
    names = [str(estimate.candidate) for estimate in report.estimates]
    by_task: dict[str, dict[str, str]] = {}
    for estimate in report.estimates:
        for task in estimate.by_task:
            if str(task.task) in by_task or len(by_task) < TASKS_SHOWN:
                by_task.setdefault(str(task.task), {})[str(estimate.candidate)] = wording.number(
                    task.mean
                )
    every = {str(task.task) for estimate in report.estimates for task in estimate.by_task}
    rows = [(task, *(means.get(name, "–") for name in names)) for task, means in by_task.items()]
    return ("task", *names), rows, len(every) - len(rows)


def criterion_rows(report: ReportContents) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    several = len({criterion.suite for criterion in report.criteria}) > 1
    names = [str(estimate.candidate) for estimate in report.estimates]
    return ("criterion", "weight", "scale", *names), [
        (
            f"{criterion.suite}: {criterion.name}" if several else criterion.name,
            f"{criterion.weight:g}",
            scale_in_words(*criterion.scale),
            *("–" if mean is None else wording.number(mean) for mean in criterion.means),
        )
        for criterion in report.criteria
    ]


def counts_sentence(report: ReportContents) -> str:
    return f"{wording.what_counts(report.counted, report.excluded, report.approvals)}."


def _md(text: str) -> str:
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def _md_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], numbers: set[int] | None = None
) -> str:
    marks = ["--:" if place in (numbers or ()) else "---" for place in range(len(header))]
    lines = [[_md(cell) for cell in header], marks, *([_md(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _tex(text: str) -> str:
    # TeX stops with an error at control characters.
    return "".join(
        _LATEX.get(character, character)
        for character in text
        if character >= " " or character == "\n"
    )


def _comment(text: str) -> str:
    # A line break would end the comment, and TeX would run the text after it.
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _latex_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], columns: str, caption: str, label: str
) -> list[str]:
    return [
        "",
        r"\begin{table}[htbp]",
        r"  \centering",
        rf"  \caption{{{_tex(caption)}}}",
        rf"  \label{{tab:assay-{label}}}",
        rf"  \begin{{tabular}}{{{columns}}}",
        r"    \toprule",
        f"    {' & '.join(_tex(cell) for cell in header)} \\\\",
        r"    \midrule",
        *(f"    {' & '.join(_tex(cell) for cell in row)} \\\\" for row in rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
