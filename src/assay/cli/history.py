"""`assay diff` and `assay trend`: compare two runs, or all runs of a suite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from assay.cli.options import chart_file, common, workspace
from assay.cli.output import answer, counted, print_json, say, say_table
from assay.cli.parameters import argument, option
from assay.cli.statistics import EXIT_GATE_CLOSED
from assay.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from assay.app.registry.run_diff import RunDiff, SetUp

_WIDTH = 24
_MAX_TASKS = 200


@click.command()
@argument("before", metavar="RUN")
@argument("after", metavar="RUN")
@option(
    "--exit-code",
    is_flag=True,
    help="Exit 3 if a candidate is shown to be worse in the second run, and 2 if the runs are graded differently.",
)
@common
def diff(before: str, after: str, exit_code: bool, store: str | None, as_json: bool) -> int:
    """Compare the set-up and results of two runs; latest is the newest run."""
    from assay.app.registry import run_diff

    with workspace(store) as opened:
        difference = run_diff.diff(opened.store, before, after)
    if exit_code and difference.worse and difference.measured_differently:
        changed = difference.measured_differently
        problem = f"the runs differ in {changed}, so lower scores do not show that a candidate became worse."
        raise InputError(
            "--exit-code",
            problem,
            remedy="Run or regrade the suite, so that both runs are graded in the same way.",
        )
    answer(run_diff.diff_document(difference), lambda: _say_diff(difference), as_json=as_json)
    return EXIT_GATE_CLOSED if exit_code and difference.worse else 0


@click.command()
@argument("suite")
@option(
    "--candidate",
    "candidates",
    multiple=True,
    metavar="NAME",
    help="Only this candidate. May be repeated.",
)
@option(
    "--output",
    metavar="FILE",
    help="Also draw a chart: FILE.svg, .png, .csv (the table) or .json (title and rows).",
)
@common
def trend(
    suite: str, candidates: tuple[str, ...], output: str | None, store: str | None, as_json: bool
) -> int:
    """Show each candidate's score in every run of a suite."""
    from assay.app.registry import trend as trending
    from assay.app.statistics import charts
    from assay.app.statistics.results import wording

    path = None if output is None else chart_file(output)
    with workspace(store) as opened:
        history = trending.trend(opened.store, suite, candidates=candidates)
    if path is not None:
        charts.write_chart(trending.trend_chart(history), path)
    if as_json:
        print_json(trending.trend_document(history))
        return 0
    rows = []
    last: dict[str, float] = {}
    for point in history.points:
        mean = point.estimate.mean or 0.0
        change = "" if point.candidate not in last else wording.signed(mean - last[point.candidate])
        last[point.candidate] = mean
        ranged = (
            "no range" if point.estimate.ci95 is None else wording.range_words(point.estimate.ci95)
        )
        bar = "█" * round(_WIDTH * mean)
        rows.append(
            (
                point.candidate,
                point.started[:16].replace("T", " "),
                wording.number(mean),
                ranged,
                change,
                str(point.estimate.n_trials),
                ", ".join(f"other {part}" for part in point.changed),
                bar,
            )
        )
    rows.sort(key=lambda row: row[0].casefold())
    header = ("candidate", "run of", "score", "95% range", "change", "trials", "", "")
    say_table(header, rows, numbers=frozenset({2, 4, 5}))
    for sentence in trending.changes_in_words(history):
        say(sentence, colour="yellow")
    if not rows:
        say(f"no trial counts yet in {counted(history.runs, 'run')} of {history.suite}")
    return 0


def _say_diff(difference: RunDiff) -> None:
    from assay.app.statistics.results import wording

    say(f"{difference.before} → {difference.after}")
    if rows := [row for entry in difference.set_up for row in _set_up_rows(entry)]:
        say()
        say_table(("set-up", "before", "after"), rows)
    for entry in difference.set_up:
        if entry.lines:
            say(f"\n{entry.kind} {entry.name}:")
        for line in entry.lines:
            say(f"    {line}", colour={"-": "red", "+": "green"}.get(line[:1]))
    if difference.same:
        say(f"\nthe same: {', '.join(difference.same)}")
    say()
    if difference.measured_differently:
        text = "so a change of scores does not show a change of a candidate"
        say(f"The runs differ in {difference.measured_differently}, {text}.", colour="yellow")
    for change in difference.changes:
        say(change.sentence)
    if not difference.changes:
        say("no candidate has counted scores in both runs")
    tasks = [
        (
            change.candidate,
            task.task,
            wording.number(task.before),
            wording.number(task.after),
            wording.signed(task.difference),
            "no range" if task.ci95 is None else wording.difference_range(task.ci95),
        )
        for change in difference.changes
        for task in change.by_task
    ]
    if tasks:
        say()
        header = ("candidate", "task", "before", "after", "points", "95% range")
        say_table(header, tasks[:_MAX_TASKS], numbers=frozenset({2, 3, 4}))
        if len(tasks) > _MAX_TASKS:
            say(f"… and {len(tasks) - _MAX_TASKS} more; --json lists them all")


def _set_up_rows(entry: SetUp) -> Iterator[tuple[str, str, str]]:
    name = f"{entry.kind} {entry.name}"
    if entry.lines:
        return  # long texts follow the table line by line
    if isinstance(entry.before, dict) and isinstance(entry.after, dict):
        before, after = _values(entry.before), _values(entry.after)
        for path in dict.fromkeys((*before, *after)):
            if before.get(path) != after.get(path):
                yield (
                    f"{name}, {path.removeprefix('asked ')}",
                    before.get(path, "–"),
                    after.get(path, "–"),
                )
    else:
        yield name, _in_words(entry.before), _in_words(entry.after)


def _values(value: Mapping[str, Any]) -> dict[str, str]:
    values: dict[str, str] = {}
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            values |= {f"{key} {path}": text for path, text in _values(inner).items()}
        else:
            values[key.replace("_", " ")] = _in_words(inner)
    return values


def _in_words(value: Any) -> str:
    """Return the value of a setting as text; a missing value is a dash."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case dict():
            return (
                ", ".join(f"{path} {text}" for path, text in _values(value).items() if text != "–")
                or "none"
            )
        case list() | tuple():
            return ", ".join(map(_in_words, value)) or "none"
        case _:
            return str(value)
