"""Imports lines such as `task | candidate | 0.5` under the heading `TALLY 1`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from assay.plugins import FoundAssessment, FoundGrade, FoundRun, GradedBy, Skipped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.plugins import FileSample, Found, InputFile, ReadOptions

NAME: Final = "tally"


def recognise(sample: FileSample, /) -> float | None:
    """Recognise the heading."""
    return 0.9 if sample.text.startswith("TALLY 1\n") else None


def read(source: InputFile, options: ReadOptions, /) -> Iterator[Found]:
    """Yield one run with a score for each line."""
    yield FoundRun(suite=options.dataset or source.stem, format=NAME)
    for number, line in enumerate(source.read().decode("utf-8", "replace").splitlines()[1:], 2):
        where = f"{source.name}:{number}"
        cells = [cell.strip() for cell in line.split("|")]
        try:
            task, candidate, score = cells[0], cells[1], float(cells[2])
        except (IndexError, ValueError):
            yield Skipped(where=where, why="is not a line of three cells that ends in a number.")
            continue
        grade = FoundGrade(candidate=candidate, score=score)
        yield FoundAssessment(
            task=task, trial=1, judge=NAME, by=GradedBy.RULE, where=where, grades=(grade,)
        )
