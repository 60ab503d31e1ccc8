"""Read any table or JSON with a user's mapping (`--map`) of columns to task, candidate, answer and
scores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from assay.domain.errors import InputError
from assay.domain.failure import Failure, Fault
from assay.domain.import_records import (
    Found,
    FoundGrade,
    FoundResponse,
    FoundRun,
    FoundTask,
    GradedBy,
    Noted,
    Skipped,
)
from assay.domain.suite import Message
from assay.domain.unescaped_json import unescaped_json
from assay.exchange.importers import ReadOptions
from assay.exchange.parsing import mapping as grammar
from assay.exchange.parsing.input_files import FileSample, InputFile, UnreadableFile
from assay.exchange.parsing.json_values import (
    JsonObject,
    as_count,
    as_duration,
    as_list,
    as_messages,
    as_text,
    shorten,
)
from assay.exchange.parsing.mapping import Metric, Place, problem_of as problem_of
from assay.exchange.parsing.off_scale import ScaleCheck
from assay.exchange.parsing.score_rows import AssessmentGatherer, cell_number, cell_text
from assay.exchange.parsing.tables import TableRow, read_table

NAME: Final = "map"

# A location that is missing in all of this many first rows is probably misspelt rather than rare.
_LOOKED_AT: Final = 200
_MAX_WAITING: Final = 100_000


def recognise(sample: FileSample) -> float | None:
    """Return None: only `--map` selects this importer, because file content cannot show that a
    mapping applies.
    """
    return None


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield a run with the mapped rows, or only messages if no row fits the mapping."""
    mapping = options.mapping
    problem = problem_of(mapping)
    if mapping is None or problem is not None:
        raise InputError("--map", problem or "is missing.")
    mapped = _MappedRows(mapping, options.candidate)
    filters = grammar.RowFilter.of(mapping)
    # Held back until a row gives an answer or a score: a mapping that fits no row must leave no run
    # behind.
    waiting: list[Found] | None = [
        FoundRun(suite=options.dataset or str(mapping.get("suite") or source.stem), format=NAME)
    ]
    tasks: set[int] = set()
    absent = grammar.places_in(mapping)
    columns: list[str] = []
    left_out = 0
    rows = read_table(
        source,
        delimiter=as_text(mapping.get("delimiter")),
        columns=[str(name) for name in as_list(mapping.get("columns"))],
        quoted=bool(mapping.get("quoted", True)),
        at=str(mapping.get("rows") or ""),
        skip=as_count(mapping.get("skip")) or 0,
    )
    for number, (row, where) in enumerate(rows, 1):
        if isinstance(row, str):
            yield Skipped(where=where, why=row)
            continue
        row["@line"] = number
        if absent and number <= _LOOKED_AT:
            columns = columns or [key for key in row if not key.startswith("@")]
            absent = {name: place for name, place in absent.items() if not mapped.has(row, place)}
        if absent and number == _LOOKED_AT:
            yield from _about(absent, columns, source.name)
            absent = {}
        if not filters.keeps(row):
            left_out += 1
            continue
        task = mapped.text(row, "task")
        if not task:
            yield Skipped(where=where, why="has no task.")
            continue
        records: list[Found] = []
        if hash(task) not in tasks:  # hashes, because a file may hold millions of long ids
            tasks.add(hash(task))
            records.append(mapped.task(row, task))
        for candidate, cell in mapped.candidates(row):
            if candidate:
                records += mapped.read_cell(cell, row, task, candidate, where)
            else:
                records.append(Skipped(where=where, why="has no candidate."))
        if waiting is None:
            yield from records
        else:
            yield from (record for record in records if isinstance(record, Skipped))
            waiting += (record for record in records if not isinstance(record, Skipped))
            if len(waiting) > _MAX_WAITING:
                raise UnreadableFile(
                    where,
                    "was not read further, because no row up to here has an answer or a score.",
                )
            if mapped.taken:
                yield from waiting
                waiting = None
        yield from mapped.grades.ready()
    yield from mapped.rest(source.name)
    if left_out:
        yield Noted(
            where=source.name,
            what=f"{left_out:,} {'row was' if left_out == 1 else 'rows were'} left out because of `where` or `unless`.",
        )
    yield from _about(absent, columns, source.name)


def _about(absent: Iterable[str], columns: Iterable[str], where: str) -> Iterator[Noted]:
    for name in absent:
        what = f"{name}, which none of the first {_LOOKED_AT} rows has. Columns: {shorten(', '.join(columns), 300)}."
        yield Noted(where=where, what=what)


class _Cell(NamedTuple):
    """Key of a score that is the sum of several rows."""

    metric: int
    task: str
    candidate: str
    trial: int
    judge: str
    criterion: str


@dataclass(slots=True)
class _Sum:
    """Running sum of several rows' scores; `total` is None if a score was unreadable."""

    where: str
    worst: float
    best: float
    total: float | None = 0.0
    reasons: list[str] = field(default_factory=list)


class _MappedRows:
    """Reads tasks, candidates, answers and scores from rows, as a valid mapping defines them."""

    def __init__(self, mapping: JsonObject, candidate: str | None) -> None:
        self._mapping = mapping
        self._named = candidate
        self._places = {
            key: grammar.place_of(mapping[key]) for key in mapping if key in grammar.PLACES
        }
        self._amounts = {key: self._places[key] for key in grammar.AMOUNTS if key in self._places}
        self._metrics = grammar.metrics_of(mapping)
        self._answers = "answer" in self._places or "error" in self._places
        self._missing = frozenset(cell_text(item) for item in as_list(mapping.get("missing")))
        self._first = as_count(mapping.get("first_trial", 1)) or 0
        draws = mapping.get("draws")
        self._draws = [
            str(place)
            for place in (draws if isinstance(draws, list) else [draws])
            if place is not None
        ]
        self._joint = bool(mapping.get("joint"))
        self._sums: dict[_Cell, _Sum] | None = {} if mapping.get("sum") else None
        self._answered: set[tuple[str, str, int]] = set()
        self._graders: dict[str, GradedBy] = {}
        self._clipped = 0
        self._scales = [ScaleCheck() for _ in self._metrics]
        self._odd: Counter[str] = Counter()
        self.grades = AssessmentGatherer()
        self.taken = False

    def has(self, row: TableRow, place: Place) -> bool:
        """True if a row, or the part of it that belongs to a candidate, has a value at the
        location.
        """
        if place(row) is not None:
            return True
        parts = (
            (cell for _, cell in self.candidates(row)) if self._mapping.get("candidates") else ()
        )
        return any(place(part) is not None for part in parts if isinstance(part, dict))

    def _value(self, row: TableRow, key: str) -> object:
        place = self._places.get(key)
        return None if place is None else place(row)

    def text(self, row: TableRow, key: str) -> str:
        return cell_text(self._value(row, key))

    def task(self, row: TableRow, task: str) -> FoundTask:
        prompt, expected = self._value(row, "prompt"), self._value(row, "expected")
        weight = cell_number(self._value(row, "weight"))
        return FoundTask(
            id=task,
            thing=self.text(row, "thing") or None,
            context=self.text(row, "context"),
            prompt=() if prompt is None else _prompt(prompt),
            expected=() if expected is None else (_content(expected),),
            ideal=self.text(row, "ideal") or None,
            final_answer=self.text(row, "final_answer") or None,
            weight=1.0 if weight is None or weight < 0 else weight,
            language=self.text(row, "language"),
            family=self.text(row, "family"),
        )

    def candidates(self, row: TableRow) -> Iterator[tuple[str, object]]:
        """Yield each candidate with its part of the row: the whole row in a long table, otherwise
        the value under its key.
        """
        wide = self._mapping.get("candidates")
        if not wide:
            yield self._named or self.text(row, "candidate"), row
        elif isinstance(wide, Mapping | list):
            places = wide.items() if isinstance(wide, Mapping) else ((name, name) for name in wide)
            for name, place in places:
                cell = _opened(grammar.place_of(place)(row))
                if cell is not None:
                    yield str(name), cell
        else:
            cells = row if wide == "*" else _opened(grammar.place_of(wide)(row))
            for name, cell in cells.items() if isinstance(cells, dict) else ():
                # `@key`, `@root` and `@line` are added while reading; they are not columns of the
                # file.
                if not str(name).startswith("@"):
                    yield str(name), _opened(cell)

    def read_cell(
        self, cell: object, row: TableRow, task: str, candidate: str, where: str
    ) -> Iterator[Found]:
        fields = (
            row
            if cell is row
            else {**row, **cell}
            if isinstance(cell, dict)
            else {**row, "@value": cell}
        )
        if not self._draws:
            return self._read_trial(fields, 1, task, candidate, where)
        return self._read_draws(fields, task, candidate, where)

    def _read_draws(
        self, fields: TableRow, task: str, candidate: str, where: str
    ) -> Iterator[Found]:
        lists = {path: _list_at(fields, path) for path in self._draws}
        lengths = {len(items) for items in lists.values() if items is not None}
        if None in lists.values() or len(lengths) != 1 or lengths == {0}:
            shown = ", ".join(
                f"{path} {'no list' if items is None else f'{len(items)} values'}"
                for path, items in lists.items()
            )
            yield Skipped(
                where=where, why=f"does not have lists of equal length for {candidate!r}: {shown}."
            )
            return
        for number, items in enumerate(
            zip(*(items or () for items in lists.values()), strict=True), 1
        ):
            draw = {**fields, **dict(zip(lists, items, strict=True)), "@draw": number}
            yield from self._read_trial(draw, number, task, candidate, where)

    def _read_trial(
        self, fields: TableRow, number: int, task: str, candidate: str, where: str
    ) -> Iterator[Found]:
        k = number
        if "trial" in self._places:
            trial = cell_number(self._value(fields, "trial"))
            if trial is None or trial < self._first or trial != int(trial):
                shown = self._value(fields, "trial")
                yield Skipped(
                    where=where,
                    why=f"has trial {shown!r}; trials are whole numbers from {self._first}.",
                )
                return
            k = int(trial) - self._first + 1
        response = self._response(fields, task, candidate, k, where) if self._answers else None
        if response is not None and (task, candidate, k) not in self._answered:
            self.taken = True
            # Repeated judge draws, and rows that are added up, repeat the answer.
            if self._draws or self._sums is not None:
                self._answered.add((task, candidate, k))
            yield response
        if response is not None and response.failure is not None:
            return
        # An empty text in `missing` means that the user expects cells without a value.
        empty = response is None and not (
            self._answers and self.text(fields, "answer") in self._missing
        )
        for at, metric in enumerate(self._metrics):
            cell = metric.score(fields)
            text = "" if cell is None else cell_text(cell)
            if text in metric.missing:
                empty = False
            elif text:
                empty = False
                problem = self._grade(at, metric, cell, fields, task, candidate, k, where)
                if problem is not None:
                    yield problem
        if empty:
            why = f"holds no {'answer or score' if self._metrics else 'answer'} for {candidate!r}."
            yield Skipped(
                where=where, why=f"{why} If that is intended, list the empty text under `missing`."
            )

    def _response(
        self, fields: TableRow, task: str, candidate: str, k: int, where: str
    ) -> FoundResponse | None:
        error = self.text(fields, "error")
        answer = self._value(fields, "answer")
        if not error and (answer is None or cell_text(answer) in self._missing):
            return None
        amounts = {key: self._amount(key, place(fields)) for key, place in self._amounts.items()}
        failure = (
            Failure(kind="error", fault=Fault.PROVIDER, detail=shorten(error)) if error else None
        )
        return FoundResponse(
            task=task,
            candidate=candidate,
            trial=k,
            where=where,
            content=None if failure is not None else _content(answer),
            failure=failure,
            model_answered=self.text(fields, "model") or None,
            finish_reason=self.text(fields, "finish_reason") or None,
            input_tokens=as_count(amounts.get("input_tokens")),
            output_tokens=as_count(amounts.get("output_tokens")),
            latency_s=amounts.get("latency_s"),
            cost_usd=amounts.get("cost_usd"),
        )

    def _amount(self, key: str, cell: object) -> float | None:
        """Return the tokens, dollars or seconds in a cell; None, counted for a note, unless it is a
        number of at least 0.
        """
        number = as_duration(cell_number(cell))
        if number is None and cell_text(cell):
            self._odd[key] += 1
        return number

    def _grade(
        self,
        at: int,
        metric: Metric,
        cell: object,
        fields: TableRow,
        task: str,
        candidate: str,
        k: int,
        where: str,
    ) -> Skipped | None:
        """Collect the grade in a cell, or add it to a running sum; return the reason if the grade
        cannot be read.
        """
        judge = (
            cell_text(metric.judge(fields)) if metric.judge is not None else ""
        ) or metric.default_judge
        if self._graders.setdefault(judge, metric.by) is not metric.by:
            why = f"has a grade by {judge!r} as a {metric.by}, but other rows say {self._graders[judge]}; use another `judge`."
            return Skipped(where=where, why=why)
        criterion = cell_text(metric.criterion(fields)) if metric.criterion is not None else ""
        reason = cell_text(metric.reason(fields)) if metric.reason is not None else ""
        key = _Cell(at, task, candidate, k, judge, criterion)
        scale = metric.scale_in(fields)
        raw = None if scale is None else metric.raw_score(cell, *scale)
        if scale is None or raw is None:
            why = (
                f"has no scale for the score of {candidate!r}: worst and best must be two different numbers."
                if scale is None
                else f"has score {cell!r} for {candidate!r}, which is neither a finite number nor a known label."
            )
            if self._sums is not None:
                self._sums[key] = _Sum(where, 0.0, 1.0, total=None)
                why = f"{why} Assay leaves out the sum that includes this score."
            return Skipped(where=where, why=why)
        if self._sums is None:
            return self._add(metric, raw, scale, key, reason, where)
        total = self._sums.setdefault(key, _Sum(where, *scale))
        if total.total is not None:
            total.total += raw
            total.reasons += [reason] if reason else []
            self.taken = True
        return None

    def _add(
        self,
        metric: Metric,
        raw: float,
        scale: tuple[float, float],
        cell: _Cell,
        reason: str,
        where: str,
    ) -> Skipped | None:
        worst, best = scale
        score = (raw - worst) / (best - worst)
        check = self._scales[cell.metric]
        if not 0 <= score <= 1:
            if not metric.clip:
                check.outside += 1
                why = f"has the score {raw:g} for {cell.candidate!r}, outside the scale of {worst:g} to {best:g}."
                return Skipped(where=where, why=why)
            score = min(1.0, max(0.0, score))
            self._clipped += 1
        check.inside += 1
        self.taken = True
        self.grades.add(
            FoundGrade(
                candidate=cell.candidate,
                criterion=cell.criterion,
                score=score,
                raw_score=raw,
                min_score=worst,
                max_score=best,
                reason=reason,
            ),
            task=cell.task,
            trial=cell.trial,
            judge=cell.judge,
            by=metric.by,
            where=where,
            joint=self._joint,
        )
        return None

    def rest(self, name: str) -> Iterator[Found]:
        for cell, total in (self._sums or {}).items():
            if total.total is not None:
                metric, scale = self._metrics[cell.metric], (total.worst, total.best)
                problem = self._add(
                    metric, total.total, scale, cell, "\n".join(total.reasons), total.where
                )
                if problem is not None:
                    yield problem
                yield from self.grades.ready()
        yield from self.grades.rest()
        for number, check in enumerate(self._scales, 1):
            which = f"scores of metric {number}" if len(self._scales) > 1 else "scores"
            remedy = "Give the scale, such as `scale: [0, 100]`, or `clip: true` if scores may lie outside."
            check.refuse_wrong(name, f"{which} lie outside the scale", remedy)
        if self._clipped:
            what = f"{self._clipped:,} scores outside the scale were set to the nearest end of the scale because of `clip`."
            yield Noted(where=name, what=what)
        for key, times in self._odd.items():
            what = f"`{key}` is not a number of at least 0 in {times:,} rows; Assay stores it as unknown there."
            yield Noted(where=name, what=what)


def _opened(cell: object) -> object:
    """Parse a cell that contains a JSON object as text; any other cell is returned unchanged."""
    opened = grammar.json_in(cell) if isinstance(cell, str) else None
    return opened if isinstance(opened, dict) else cell


def _list_at(fields: TableRow, path: str) -> list[object] | None:
    value = grammar.place_of(path)(fields)
    if isinstance(value, str):
        value = grammar.json_in(value)
    return list(value) if isinstance(value, list) else None


def _prompt(value: object) -> tuple[Message, ...]:
    turns = (
        as_messages(value)
        if isinstance(value, list) and all(isinstance(turn, dict) for turn in value)
        else ()
    )
    return turns or (Message(role="user", content=_content(value)),)


def _content(value: object) -> str:
    return value if isinstance(value, str) else unescaped_json(value)
