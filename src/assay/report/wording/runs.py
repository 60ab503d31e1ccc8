"""Sentences about the runs that a result reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from assay.domain.run_choice import RunChoice
from assay.report.wording.numbers import count

if TYPE_CHECKING:
    from assay.domain.run_choice import RunRead, RunsRead

FILE_DATE: Final = "taken from the file's date, because the file states no time"
"""Origin of a run's start time that nobody measured."""

_LISTED: Final = 4
_SUITES_LISTED: Final = 3


def runs_line(read: RunsRead, *, options: bool = True) -> str:
    """Name the runs behind a result with their dates and numbers of trials: the first line of every
    answer.

    `options`: also name other runs and suites, and the options that read them.
    """
    if not read.runs:
        return "No run matches"
    trials = count(read.n_trials, "trial")
    if len(read.runs) == 1 and read.pooled == 1:
        run = read.runs[0]
        return f"Run {run.run_id} of {run.suite}, {when(run.started)}, {trials}{_others(read) if options else ''}"
    dates = list(dict.fromkeys(when(run.started) for run in read.runs))
    period = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    kept = read.runs[-_LISTED:]
    rest = max(read.pooled, len(read.runs)) - len(kept)
    each = ", ".join(map(_with_trials, reversed(kept))) + (f" and {rest:,} more" if rest else "")
    match read.choice:
        case RunChoice.REFERENCES:
            origin, run = read.runs[0], read.runs[-1]
            text = f"Run {run.run_id} of {run.suite}, {when(run.started)}, with the reference grades of {origin.run_id}, {trials}"
        case RunChoice.EACH:
            text = f"The newest run of each candidate, {period}, {trials}: {each}"
        case RunChoice.PARTS:
            text = f"{count(read.pooled, 'imported run')} with different candidates, {period}, {trials}: {each}"
        case RunChoice.SUITES:
            text = f"The newest run of each suite, {period}, {trials}: {each}"
        case RunChoice.BASELINE:
            text = f"{count(len(read.runs), 'run')} compared, {period}, {trials}: {each}"
        case _:
            text = f"{_pooled(read)}, {period}, {trials}: {each}"
    return text + (_suites(read) if options else "")


def not_in_runs(read: RunsRead) -> str:
    """Name candidates of the suite that only other runs have; empty if there are none."""
    if not read.without:
        return ""
    listed = ", ".join(f"{name} (run {run})" for name, run in read.without[:_LISTED])
    rest = len(read.without) - _LISTED
    more = f" and {rest:,} more" if rest > 0 else ""
    return f"Not in this run: {listed}{more}. Read other runs with --run, or all with --all-runs."


def newest_not_counted(read: RunsRead) -> str:
    """State that no trial of the newest run counts, and name the newest run that has counted
    trials; otherwise empty.
    """
    if read.counted_before is None or read.n_trials:
        return ""
    return (
        f"No trial of the newest run counts yet. The newest run with counted trials is {read.counted_before}; "
        f"read it with --run {read.counted_before}."
    )


def newer_run(read: RunsRead) -> str:
    """Name a newer run that lacks one of the compared candidates; empty if there is none."""
    if read.newer is None:
        return ""
    return f"Run {read.newer} is newer, but lacks one of the two candidates; this result reads the newest run that has both."


def pooled_anyway(read: RunsRead) -> str:
    """State that the user allowed a result on runs that differ in what they measure."""
    return f"--pool-anyway pools runs that do not measure the same thing: they differ in {read.differences}."


def mixed_runs(read: RunsRead) -> str:
    """Return the label of results on runs that differ in what they measure; empty for other
    results.
    """
    return f"Mixed runs, which differ in {read.differences}:" if read.differences else ""


def labelled(text: str, read: RunsRead) -> str:
    """Put the label before a verdict, caption or description of a chart if the runs differ in what
    they measure.
    """
    return f"{mixed_runs(read)} {text}".lstrip()


def when(started: str) -> str:
    """Return a stored start time as date and minute in UTC: `2026-11-24 16:30 UTC`."""
    return f"{started[:16].replace('T', ' ')} UTC"


def _pooled(read: RunsRead) -> str:
    if read.pooled >= len(read.runs):
        return f"{count(read.pooled, 'run')} pooled"
    return f"{count(len(read.runs), 'run')}, {read.pooled} with counted trials"


def _with_trials(run: RunRead) -> str:
    return str(run.run_id) if run.n_trials is None else f"{run.run_id} ({run.n_trials:,})"


def _others(read: RunsRead) -> str:
    several = read.of is not None and read.of > 1
    larger = (
        ""
        if read.larger is None
        else f"{read.larger[0]} holds {count(read.larger[1], 'more trial')}; "
    )
    newest = (
        f" (the newest of {read.of:,} runs; {larger}--run ID reads another, --all-runs pools them)"
        if several
        else ""
    )
    return newest + _suites(read)


def _suites(read: RunsRead) -> str:
    if not read.other_suites:
        return ""
    listed = ", ".join(read.other_suites[:_SUITES_LISTED])
    rest = len(read.other_suites) - _SUITES_LISTED
    return f" · other suites: {listed}{f' and {rest:,} more' if rest > 0 else ''} (--suite NAME)"
