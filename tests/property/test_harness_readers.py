"""Readers never fail on odd values: they report or skip them, and every record they yield can be
stored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support import (
    evaluation_files as evaluations,
    harness_files as files,
    platform_files as platforms,
)
from tests.support.read_files import read_files

from assay.domain.import_records import FoundAssessment, FoundResponse
from assay.exchange.detection import recognise_format
from assay.exchange.file_groups import group_files
from assay.exchange.importers import ReadOptions
from assay.exchange.parsing.input_files import InputFile, UnreadableFile, files_in, input_file

ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    1e300,
    2**80,
    "",
    "\ud800",
    "nan",
    [],
    [None],
    [[[]]],
    {},
    {"x": []},
)


def pydantic_json(folder: Path) -> Path:
    """The report of `evaluations.pydantic_report` without its data set in YAML."""
    result = evaluations.pydantic_result(
        "GEval", 4, "GEval", {"score_range": [0, 8], "model": "m"}, "Mostly."
    )
    case = evaluations.pydantic_case("q1", scores={"GEval": result}, evaluator_failures=[result])
    return evaluations.pydantic_report(folder, case, failures=(case,)) / "report.json"


WRITERS: tuple[Callable[[Path], Path], ...] = (
    files.lm_eval,
    files.promptfoo,
    files.openai_log,
    files.openai_api,
    files.alpaca,
    files.mt_bench,
    files.swe_bench,
    files.harbor,
    files.terminal_bench,
    platforms.mlflow,
    platforms.langfuse,
    platforms.deepeval,
    platforms.phoenix,
    evaluations.evalplus,
    evaluations.bigcode,
    evaluations.helm,
    evaluations.opencompass,
    evaluations.braintrust,
    pydantic_json,
)


def inspect_json(folder: Path) -> Path:
    """The log of `files.inspect` as JSON."""
    log = files.inspect_log(
        files.inspect_sample(1, 1, "C"), files.inspect_sample(1, 2, {"style": 0.5})
    )
    log["samples"][0]["scores"]["match"]["history"] = [
        {"value": "I", "provenance": {"author": "Mia"}}
    ]
    return files.put(folder / "log.json", log)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every value inside a document."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield (*at, key)
            yield from places(one, (*at, key))
    elif isinstance(value, list):
        for number, one in enumerate(value[:2]):
            yield (*at, number)
            yield from places(one, (*at, number))


def with_odd(value: Any, at: tuple[Any, ...], odd: Any) -> Any:
    """The document with one value replaced."""
    if not at:
        return odd
    if isinstance(value, dict):
        return {
            key: with_odd(one, at[1:], odd) if key == at[0] else one for key, one in value.items()
        }
    return [
        with_odd(one, at[1:], odd) if number == at[0] else one for number, one in enumerate(value)
    ]


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def assert_can_be_stored(value: Any) -> None:
    """Finite numbers, texts, and what is made of them."""
    if isinstance(value, float):
        assert math.isfinite(value)
    elif isinstance(value, dict):
        for key, one in value.items():
            assert isinstance(key, str)
            assert_can_be_stored(one)
    elif isinstance(value, list | tuple):
        for one in value:
            assert_can_be_stored(one)
    elif is_dataclass(value):
        for field in fields(value):
            assert_can_be_stored(getattr(value, field.name))
    else:
        assert value is None or isinstance(value, str | int)


def assert_sound(found: Any) -> None:
    """Check that a record can be stored, whatever the file held."""
    assert_can_be_stored(found)
    if isinstance(found, FoundResponse):
        assert (found.content is None) != (found.failure is None)
        assert isinstance(found.content, str | None)
        assert found.trial >= 1
        assert found.task
        assert found.candidate
    if isinstance(found, FoundAssessment):
        assert found.grades
        assert all(grade.score is None or 0 <= grade.score <= 1 for grade in found.grades)
        assert found.judge
        assert found.task


@pytest.mark.parametrize("turns", [1, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "write", [inspect_json, *WRITERS], ids=lambda write: getattr(write, "__name__", "")
)
def test_no_odd_value_anywhere_breaks_a_reader(
    tmp_path: Path, write: Callable[[Path], Path], turns: int
) -> None:
    """Every value of every file replaced by one odd value, or by four in turn, read with the reader
    of the sound file.
    """
    target = write(tmp_path)
    paths = list(files_in(target)) if target.is_dir() else [target]
    known = {path: recognise_format(input_file(path).sample) for path in paths}
    tried = 0
    for path in (path for path, importer in known.items() if importer is not None):
        original = path.read_bytes()
        lines = original.split(b"\n") if path.suffix == ".jsonl" else [original]
        for number, line in enumerate(lines):
            if not line.strip() or number > 5:
                continue
            document = json.loads(line)
            for count, at in enumerate(places(document)):
                for one in (ODD[(4 * count + number + turn) % len(ODD)] for turn in range(turns)):
                    changed = [
                        *lines[:number],
                        dumped(with_odd(document, at, one)),
                        *lines[number + 1 :],
                    ]
                    path.write_bytes(b"\n".join(changed))
                    sources = [
                        (input_file(other), importer)
                        for other, importer in known.items()
                        if importer is not None
                    ]
                    groups, _ = group_files(sources, ReadOptions())
                    for group in groups:
                        # a lone surrogate: the import reports the file and goes on
                        with suppress(UnreadableFile):
                            for entry in group.importer.read(group.source, group.options):
                                assert_sound(entry)
                    tried += 1
        path.write_bytes(original)
    assert tried > 12 * turns


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_lines_and_documents_that_are_damaged_are_named_where_they_stand(
    tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    """A cut file keeps what stands before the cut, or is not recognised; nothing is raised."""
    target = write(tmp_path)
    for path in list(files_in(target)) if target.is_dir() else [target]:
        original = path.read_bytes()
        for share in (0.3, 0.9):
            path.write_bytes(original[: int(len(original) * share)])
            for entry in read_files(target).skipped:
                assert entry.where
                assert entry.why.endswith((".", "?")), entry.why
        path.write_bytes(original)


def test_every_valid_file_is_recognised(tmp_path: Path) -> None:
    names = {
        "inspect": "inspect",
        "lm_eval": "lm_eval",
        "promptfoo": "promptfoo",
        "openai_log": "openai_evals_log",
        "openai_api": "openai_evals",
        "alpaca": "alpaca_eval",
        "mt_bench": "mt_bench",
        "swe_bench": "swe_bench",
        "harbor": "harbor",
        "terminal_bench": "terminal_bench",
        "mlflow": "mlflow",
        "langfuse": "langfuse",
        "deepeval": "deepeval",
        "phoenix": "phoenix",
        "evalplus": "code_samples",
        "bigcode": "bigcode",
        "helm": "helm",
        "opencompass": "opencompass",
        "braintrust": "braintrust",
        "pydantic_json": "pydantic_evals",
    }
    for write in (files.inspect, *WRITERS):
        target = write(tmp_path / write.__name__)
        sources: list[InputFile] = [
            input_file(path) for path in (files_in(target) if target.is_dir() else [target])
        ]
        result = {
            None if (importer := recognise_format(source.sample)) is None else importer.NAME
            for source in sources
        }
        leaves_artifacts = write in (evaluations.helm, evaluations.opencompass)
        assert result - ({None} if leaves_artifacts else set()) == {names[write.__name__]}
