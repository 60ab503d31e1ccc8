"""Read tables of scores: columns task, candidate, trial, score; optional weight, family, criterion,
judge, state, joint.

In a table that Assay exported, each row names its assessment and run. Rows with an assessment that
is already in the store are left out and summed up in one `Held` record. The imported run stores the
other rows' assessment ids (`from_runs`), so that a later export of the same run adds only new rows.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import pairwise
from math import isnan
from typing import Final

from assay.domain import import_records as records
from assay.domain.lifecycle import AssessmentState
from assay.exchange.importers import ReadOptions
from assay.exchange.parsing.input_files import FileSample, InputFile
from assay.exchange.parsing.json_values import as_list, objects_in
from assay.exchange.parsing.off_scale import ScaleCheck
from assay.exchange.parsing.score_rows import AssessmentGatherer, cell_number, cell_text
from assay.exchange.parsing.tables import TableRow, read_header, read_table
from assay.formats.csv_lines import unguarded
from assay.formats.parquet import PARQUET_MAGIC
from assay.formats.separated import cells_by_name, is_utf8, separated_blocks, sniff_delimiter

NAME: Final = "scores"
RULE: Final = "score"
"""Grader for rows without a judge."""

_NEEDED: Final = frozenset({"task", "candidate", "score"})
_KNOWN: Final = _NEEDED | {
    "trial",
    "weight",
    "criterion",
    "judge",
    "state",
    "joint",
    "run",
    "attempt",
    "assessment",
}
_BARE: Final = _NEEDED | {"trial", "judge", "state"}
"""Columns of a table in which each row is a separate assessment."""

_BareRow = tuple[str, str, int, float]
_STATES: Final = frozenset({"", *AssessmentState})
_AT_ONCE: Final = 10_000
_MAX_NAMES: Final = 200_000
_YES: Final = frozenset({"true", "1", "yes"})
_EXPORTED: Final = frozenset({"run", "attempt", "assessment"})
_NUMBER: Final = re.compile(r"a([1-9]\d{0,17})")

FROM_RUNS: Final = "from_runs"
"""Key in a run's environment for the runs and assessments in other stores that its rows come from,
as `ranges`.
"""


def recognise(sample: FileSample) -> float | None:
    """Recognise the columns task, candidate and score."""
    if sample.head.startswith(PARQUET_MAGIC):
        # Parquet lists its columns at its end, so `--map` or another importer may fit better
        return 0.5
    columns = set(read_header(sample))
    if not columns:
        rows = sample.rows or objects_in(as_list(sample.document)[:50])
        columns = (
            set().union(*rows) if rows and all(row.keys() >= _NEEDED for row in rows) else columns
        )
    # Tables of scores may have any other column, so the three required columns explain half, and
    # the known ones the rest.
    return 0.5 + 0.5 * len(columns & _KNOWN) / len(columns) if columns >= _NEEDED else None


def read(source: InputFile, options: ReadOptions) -> Iterator[records.Found]:
    """Yield one run, with the table's tasks and assessments."""
    run: records.FoundRun | None = records.FoundRun(
        suite=options.dataset or source.stem, format=NAME
    )
    origins = Origins(source.name, options)
    decided: Counter[str] = Counter()
    scoreless = 0
    scale = ScaleCheck()
    weights: dict[str, float] = {}
    families: dict[str, str] = {}
    graded = AssessmentGatherer()
    for entry in _rows(source, options):
        if isinstance(entry, records.FoundScores):
            if run is not None:
                yield run
                run = None
            if entry.judge != RULE and entry.state not in (None, AssessmentState.PENDING):
                decided[str(entry.state)] += len(entry.rows)
            scale.inside += len(entry.rows)
            yield entry
            continue
        row, where = entry
        if isinstance(row, str):
            yield records.Skipped(where=where, why=row)
            continue
        row = {
            str(key).strip().lower(): _cell(value) for key, value in row.items() if key is not None
        }
        task, candidate = (
            cell_text(row.get("task")),
            options.candidate or cell_text(row.get("candidate")),
        )
        problem, score, trial = _checked(row, task, candidate)
        weight = cell_number(row.get("weight")) if cell_text(row.get("weight")) else 1.0
        if problem is None and (weight is None or weight < 0):
            problem = (
                f"has weight {row.get('weight')!r}; a weight is a number that is not negative."
            )
        if problem is None and weights.setdefault(task, weight or 0.0) != weight:
            problem = f"gives task {task!r} the weight {weight:g}, but a row above gave it {weights[task]:g}."
        family = cell_text(row.get("family"))
        if problem is None and families.setdefault(task, family) != family:
            problem = f"gives task {task!r} the family {family!r}, but a row above gave it {families[task]!r}."
        state = cell_text(row.get("state")) or None
        if problem is None and state is not None and state not in set(AssessmentState):
            problem = f"has state {state!r}; known: {', '.join(AssessmentState)}."
        if problem is not None:
            raw = cell_number(row.get("score"))
            scale.outside += raw is not None and not 0 <= raw <= 1
            yield records.Skipped(where=where, why=problem)
            continue
        if origins.is_stored(row):
            continue
        if run is not None:
            yield run
            run = None
        if family or weights[task] != 1.0:
            yield records.FoundTask(id=task, weight=weights[task], family=family)
        judge = cell_text(row.get("judge"))
        if judge and state not in (None, AssessmentState.PENDING):
            decided[state] += 1
        criterion = cell_text(row.get("criterion"))
        scoreless += score is None
        scale.inside += score is not None
        graded.add(
            records.FoundGrade(candidate=candidate, criterion=criterion, score=score),
            task=task,
            trial=trial,
            judge=judge or RULE,
            by=records.GradedBy.MODEL if judge else records.GradedBy.RULE,
            where=where,
            joint=cell_text(row.get("joint")).lower() in _YES,
            state=state,
        )
        yield from graded.ready()
    yield from graded.rest()
    scale.refuse_wrong(
        source.name,
        "scores lie outside 0 to 1, the scale for a table of scores",
        "Import it with --map and a `scale`, such as [0, 100].",
    )
    if scoreless:
        rows = "1 row has" if scoreless == 1 else f"{scoreless:,} rows have"
        yield records.Noted(
            where=source.name,
            what=f"{rows} an empty score. Assay keeps them without a score, which no mean counts.",
        )
    if decided:
        yield records.Noted(where=source.name, what=_decided_elsewhere(decided))
    yield from origins.report()


def _rows(
    source: InputFile, options: ReadOptions
) -> Iterator[records.FoundScores | tuple[TableRow | str, str]]:
    """Yield the rows of a table; rows that contain only a score are yielded in batches.

    Rows that need a closer look, because a cell is empty, wrong or unusual, are yielded one by one.
    """
    columns = read_header(source.sample)
    if (
        options.candidate is not None
        or len(set(columns)) < len(columns)
        or not _NEEDED <= set(columns) <= _BARE
    ):
        yield from read_table(source)
        return
    bare = _BareScores(columns)
    with source.open() as stream:
        for first, names, rows in separated_blocks(
            stream, delimiter=sniff_delimiter(source.sample.text)
        ):
            if isinstance(rows, str):
                yield rows, f"{source.name}:{first}"
                continue
            if bare.take_all(rows):
                if bare.rows >= _AT_ONCE:
                    yield from bare.batches()
                continue
            for line, cells in enumerate(rows, first):
                if not cells or cells == [""] or bare.take(cells):
                    continue
                row = cells_by_name(names, cells)
                yield (
                    row if isinstance(row, str) else dict[str, object](row),
                    f"{source.name}:{line}",
                )
    yield from bare.batches()


class _BareScores:
    """Collects rows that contain only a score; caches parsed cells."""

    def __init__(self, columns: list[str]) -> None:
        self._width = len(columns)
        self._task, self._candidate, self._score = map(
            columns.index, ("task", "candidate", "score")
        )
        self._others = [
            columns.index(name) if name in columns else None for name in ("trial", "judge", "state")
        ]
        self._names: dict[str, str] = {}
        self._graders: dict[tuple[str, ...], tuple[int, list[_BareRow]]] = {}
        self._batches: dict[tuple[str, str], list[_BareRow]] = {}
        self.rows = 0

    def take_all(self, rows: Sequence[list[str]]) -> bool:
        """Add rows column by column, three times as fast as one by one; return False and add
        nothing if one row is unusual.
        """
        if len(rows) < 2:
            return False
        try:
            columns = list(zip(*rows, strict=True))
            scores = list(map(float, columns[self._score]))
        except ValueError:
            return False
        # The sum shows a score that is not a number, which min and max overlook.
        if (
            len(columns) != self._width
            or isnan(sum(scores))
            or min(scores) < 0.0
            or max(scores) > 1.0
        ):
            return False
        tasks, candidates = columns[self._task], columns[self._candidate]
        given = [columns[at] for at in self._others if at is not None]
        others = list(zip(*given, strict=True)) if given else [()] * len(rows)
        columns_known: tuple[tuple[Sequence[object], Container[object]], ...] = (
            (tasks, self._names),
            (candidates, self._names),
            (others, self._graders),
        )
        for column, known in columns_known:
            for cell, at in dict(zip(column, range(len(rows)), strict=True)).items():
                if cell not in known and not self._learn(rows[at], others[at]):
                    return False
        graded = list(map(self._graders.__getitem__, others))
        batch = graded[0][1]
        if len(self._batches) > 1 and any(each[1] is not batch for each in graded):
            return False
        name = self._names.__getitem__
        batch.extend(
            zip(
                map(name, tasks),
                map(name, candidates),
                [trial for trial, _ in graded],
                scores,
                strict=True,
            )
        )
        self.rows += len(rows)
        return True

    def take(self, cells: list[str]) -> bool:
        """Add a row that is a plain score; return False, without adding it, for any other row."""
        if len(cells) != self._width:
            return False
        # Tables repeat the same few cells a million times: a lookup is ten times as fast as reading
        # the cell again.
        others = tuple([cells[at] for at in self._others if at is not None])
        try:
            trial, batch = self._graders[others]
            task, candidate = self._names[cells[self._task]], self._names[cells[self._candidate]]
            score = float(cells[self._score])
        except KeyError:
            return self._learn(cells, others) and self.take(cells)
        except ValueError:
            return False
        if not 0.0 <= score <= 1.0:
            return False
        batch.append((task, candidate, trial, score))
        self.rows += 1
        return True

    def batches(self) -> Iterator[records.FoundScores]:
        for (judge, state), rows in self._batches.items():
            by = records.GradedBy.MODEL if judge else records.GradedBy.RULE
            yield records.FoundScores(
                judge=judge or RULE, by=by, state=state or None, rows=tuple(rows)
            )
        self._batches.clear()
        self._graders.clear()
        if len(self._names) > _MAX_NAMES:
            self._names.clear()
        self.rows = 0

    def _learn(self, cells: list[str], others: tuple[str, ...]) -> bool:
        """Parse and cache a row's cells; return False if a cell is empty, wrong or not UTF-8."""
        if not is_utf8(cells):
            return False
        for at in (self._task, self._candidate):
            name = cell_text(_cell(cells[at]))
            if not name:
                return False
            self._names[cells[at]] = name
        texts = ["" if at is None else cell_text(_cell(cells[at])) for at in self._others]
        trial = cell_number(texts[0]) if texts[0] else 1.0
        if trial is None or trial < 1 or trial != int(trial) or texts[2] not in _STATES:
            return False
        self._graders[others] = (int(trial), self._batches.setdefault((texts[1], texts[2]), []))
        return True


def _cell(value: object) -> object:
    """Remove the leading quote that prevents spreadsheets from interpreting a cell as a formula."""
    return unguarded(value) if isinstance(value, str) else value


def _checked(row: TableRow, task: str, candidate: str) -> tuple[str | None, float | None, int]:
    """Return a row's problem (or None), score and trial."""
    if not task or not candidate:
        return f"has no {'candidate' if task else 'task'}.", None, 1
    cell = row.get("score")
    score = None
    if cell_text(cell):
        score = cell_number(cell)
        if score is None:
            return f"has score {cell!r}, which is not a finite number.", None, 1
        if not 0 <= score <= 1:
            return f"has score {score:g}; scores in a table lie between 0 and 1.", None, 1
    trial = cell_number(row.get("trial")) if cell_text(row.get("trial")) else 1.0
    if trial is None or trial < 1 or trial != int(trial):
        return f"has trial {row.get('trial')!r}; trials count from 1.", None, 1
    return None, score, int(trial)


def _decided_elsewhere(decided: Counter[str]) -> str:
    states = ", ".join(f"{n:,} {state}" for state, n in decided.most_common())
    return (
        f"{decided.total():,} rows with a judge have a `state` that was decided elsewhere ({states}). Assay accepts it; the "
        "audit log of this store has no decision on them."
    )


class Origins:
    """Runs and assessments that the rows of an Assay export came from."""

    def __init__(self, name: str, options: ReadOptions) -> None:
        self._name = name
        self._holds = options.holds
        self._held: Counter[str] = Counter()
        self._unknown: Counter[str] = Counter()
        self._new: defaultdict[str, set[int]] = defaultdict(set)

    def is_stored(self, row: TableRow) -> bool:
        """True if a row belongs to a run in the store, so that it must not be imported again as
        part of another run.
        """
        if self._holds is None or not row.keys() >= _EXPORTED:
            return False
        return self.is_held(cell_text(row["run"]), cell_text(row["assessment"]))

    def is_held(self, run: str, assessment: str) -> bool:
        """True if an assessment (`a17`) belongs to a run in the store; `report` counts such
        assessments.
        """
        number = _NUMBER.fullmatch(assessment)
        if self._holds is None or not run or number is None:
            return False
        match self._holds(run, int(number[1])):
            case True:
                self._held[run] += 1
            case False:
                self._unknown[run] += 1
            case None:
                self._new[run].add(int(number[1]))
                return False
        return True

    def report(self) -> Iterator[records.Found]:
        """Yield records of the rows that were left out and of the imported rows' origins."""
        for run, rows in self._held.items():
            yield records.Held(where=self._name, run=run, rows=rows)
        for run, rows in self._unknown.items():
            why = f"{rows:,} rows have assessments that run {run} in this store does not have; they were left out."
            yield records.Skipped(where=self._name, why=why)
        if self._new:
            yield records.FoundAtEnd(
                provenance={FROM_RUNS: {run: ranges(numbers) for run, numbers in self._new.items()}}
            )


def ranges(numbers: Iterable[int]) -> str:
    """Write numbers as a short text with ranges, such as `1-36 40`."""
    ordered = sorted(numbers)
    gaps = [(before, after) for before, after in pairwise(ordered) if after > before + 1]
    starts = [ordered[0], *(after for _, after in gaps)]
    ends = [*(before for before, _ in gaps), ordered[-1]]
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def numbers_of(text: str) -> set[int]:
    """Parse a text that `ranges` wrote."""
    numbers: set[int] = set()
    for part in text.split():
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers
