"""Reads reference samples from a user's file (JSONL, JSON, CSV, TSV or YAML); every problem has its
line and a remedy.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, Final

from assay.domain.errors import did_you_mean
from assay.formats.json_lines import lines_of, row_of
from assay.formats.separated import separated_rows
from assay.scoring.reference_samples import ReferenceSample
from assay.suites.checks import ExternalChecks
from assay.suites.files import NamedFiles, whole_text
from assay.suites.grammar import TEXT, Keys, Kind, ReadContext, finite, key
from assay.suites.located_yaml import UnreadableText, Value, read_json, read_yaml, shown
from assay.suites.problems import Location, Path, SuiteErrors, TooManyProblems, dotted

_SEPARATED: Final = {".csv": ",", ".tsv": "\t"}
_EXAMPLE: Final = '{"prompt": "2 + 2?", "response": "4", "score": 1.0, "tolerance": 0.1}'
_REMEDY: Final = f"Write for example {_EXAMPLE}"


def _read_fraction(value: Value, path: Path, context: ReadContext) -> float | None:
    """Read a number between 0 and 1, which may also be written as 7/10 or as text."""
    content = finite(value)
    if isinstance(value, str):
        above, slash, below = value.partition("/")
        try:
            content = float(above) / float(below) if slash else float(above)
        except (ValueError, ZeroDivisionError):
            content = None
    if content is not None and 0 <= content <= 1:
        return content
    context.report(path, f"is {shown(value)}, but must be between 0 and 1.", "Write 0.7, or 7/10.")
    return None


_FRACTION: Final[Kind[float]] = Kind(_read_fraction, {"type": ["number", "string"]})


class SampleKeys(Keys):
    """The keys of a reference sample."""

    id = key(TEXT)
    kind = key(TEXT)
    prompt = key(TEXT, required=_REMEDY)
    response = key(TEXT, required=_REMEDY)
    score = key(_FRACTION, required=_REMEDY)
    tolerance = key(_FRACTION)
    expected = key(TEXT)
    context = key(TEXT)
    twin_of = key(TEXT)


def load_samples(path: FilePath) -> tuple[ReferenceSample, ...]:
    """Return the samples in a file, in the order of the file.

    A sample has `prompt`, `response` and `score` (0 to 1, or 7/10); it may have `id`, `kind`,
    `tolerance` (0.1), `expected` (the reference answer the judge sees), `context` and `twin_of`
    (the id of a shorter twin).

    Raises SuiteErrors if the file cannot be read or is wrong; the error holds every problem.
    """

    def located(line: int) -> ReadContext:
        return problems.at(lambda inner, _at_key: Location(str(path), line, dotted(inner)))

    files = NamedFiles(path.parent)
    problems = ReadContext(
        lambda _path, _at_key: Location(str(path), 0, ""), checks=ExternalChecks(), files=files
    )
    samples: list[ReferenceSample] = []
    lines: dict[str, int] = {}
    try:
        for number, line, row in _rows(path):
            here = located(line)
            if not isinstance(row, dict):
                here.report((), f"is {shown(row)}, expected a sample.", _REMEDY)
                continue
            keys = SampleKeys.read(row, (), here)
            sample = None if keys is None else _sample(keys, number)
            if sample is None:
                continue
            if sample.id in lines:
                here.report(
                    ("id",),
                    f"is {sample.id!r}, as on line {lines[sample.id]}.",
                    "Give every sample its own id.",
                )
            # Kept for the first sample with an id, so that the message names the line that the
            # author should compare with.
            lines.setdefault(sample.id, line)
            samples.append(sample)
        for sample in samples:
            if sample.twin_of is not None and sample.twin_of not in lines:
                problem = (
                    f"names no sample: {sample.twin_of!r}.{did_you_mean(sample.twin_of, lines)}"
                )
                located(lines[sample.id]).report(("twin_of",), problem)
        if not samples and not problems:
            problems.report((), "holds no sample.", _REMEDY)
    except UnreadableText as error:
        located(error.line or 0).report((), error.problem, error.remedy)
    except TooManyProblems:
        pass
    if problems:
        raise SuiteErrors(problems.errors())
    return tuple(samples)


def _rows(path: FilePath) -> Iterator[tuple[int, int, Value]]:
    """Yield (number, counted from 1, line, row) for each sample."""
    text = whole_text(path)
    suffix = path.suffix.lower()
    rows: Iterator[tuple[int, Mapping[str, Any] | str]]
    if suffix in (*_SEPARATED, ".jsonl", ".ndjson"):
        stream = io.BytesIO(text.encode())
        if suffix in _SEPARATED:
            rows = separated_rows(stream, delimiter=_SEPARATED[suffix], strict=True)
        else:
            rows = (
                (line, row_of(written))
                for line, written in enumerate(lines_of(stream), 1)
                if written.strip()
            )
        for number, (line, cells) in enumerate(rows, 1):
            if isinstance(cells, str):
                raise UnreadableText(line, cells)
            # An empty cell counts as an absent value, except that a response may be empty.
            yield (
                number,
                line,
                {key: cell for key, cell in cells.items() if cell != "" or key == "response"},
            )
    elif text.strip():
        document = read_json(text) if suffix == ".json" else read_yaml(text)
        samples = document.value
        path_to_samples: tuple[str, ...] = ()
        if isinstance(samples, dict) and set(samples) == {"samples"}:
            samples, path_to_samples = samples["samples"], ("samples",)
        if not isinstance(samples, list):
            problem = f"is {shown(samples)}, expected a list of samples."
            raise UnreadableText(None, problem, f"Write for example [{_EXAMPLE}]")
        for position, row in enumerate(samples):
            yield position + 1, document.line_of((*path_to_samples, position), False), row


def _sample(keys: SampleKeys, number: int) -> ReferenceSample | None:
    if keys.prompt is None or keys.response is None or keys.score is None:
        return None
    return ReferenceSample(
        id=keys.id or f"sample-{number}",
        kind=keys.kind or "own",
        prompt=keys.prompt,
        response=keys.response,
        score=keys.score,
        tolerance=0.1 if keys.tolerance is None else keys.tolerance,
        expected=keys.expected,
        context=keys.context or "",
        twin_of=keys.twin_of,
    )
