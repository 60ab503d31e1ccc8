"""Contract tests that every importer must pass."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from assay.domain.import_records import (
    FoundAssessment,
    FoundAtEnd,
    FoundResponse,
    FoundRun,
    FoundScores,
    FoundTask,
    Held,
    Noted,
    Skipped,
)
from assay.exchange.file_groups import group_files
from assay.exchange.importers import Importer, ReadOptions
from assay.exchange.parsing.input_files import InputFile, UnreadableFile, files_in, input_file

if TYPE_CHECKING:
    from pathlib import Path

    from assay.domain.import_records import Found

_RECORDS = (
    FoundRun,
    FoundAtEnd,
    FoundTask,
    FoundResponse,
    FoundAssessment,
    FoundScores,
    Noted,
    Skipped,
    Held,
)
_FOREIGN = {
    "empty.txt": b"",
    "prose.txt": b"Dear colleagues,\n\nthe results are in.\n",
    "object.json": b'{"name": "a package", "version": 1}',
    "list.json": b'[1, 2, {"three": [null]}]',
    "lines.jsonl": b'{"level": "info", "text": "started"}\n{"level": "info", "text": "ended"}\n',
    "bytes.bin": bytes(range(256)),
}


class ImporterContract:
    """Contract tests for one importer: inherit, and set `importer` and `write_sample`.

    Attributes:
        importer: module or object to test.
        options: options for reading the sample.
        by_content: False if users must select the importer by `--format` or `--map`.
    """

    importer: ClassVar[Importer]
    options: ClassVar[ReadOptions] = ReadOptions()
    by_content: ClassVar[bool] = True

    def write_sample(self, folder: Path, /) -> Path:
        """Write a valid sample file or folder in this format, and return its path."""
        raise NotImplementedError

    def test_its_sample_is_recognised(self, tmp_path: Path) -> None:
        recognised = [
            self.importer.recognise(source.sample) for source in _files(self.write_sample(tmp_path))
        ]
        certain = [certainty for certainty in recognised if certainty is not None]
        assert bool(certain) is self.by_content
        assert all(0 < certainty <= 1 for certainty in certain)

    def test_foreign_files_are_not_recognised(self, tmp_path: Path) -> None:
        for name, content in _FOREIGN.items():
            path = tmp_path / name
            path.write_bytes(content)
            certainty = self.importer.recognise(input_file(path).sample)
            assert not certainty, f"{name} was recognised with certainty {certainty}"

    def test_its_sample_gives_sound_records(self, tmp_path: Path) -> None:
        records = self._read(self.write_sample(tmp_path))
        assert records
        # Files with another role add to the run of the result files that they come with.
        opened = getattr(self.importer, "ROLE", "results") != "results"
        for record in records:
            assert isinstance(record, _RECORDS)
            opened = opened or isinstance(record, FoundRun)
            assert opened or isinstance(record, Noted | Skipped | Held), (
                "a record came before its run"
            )
            _assert_sound(record)

    def test_reading_twice_gives_the_same_records(self, tmp_path: Path) -> None:
        target = self.write_sample(tmp_path)
        assert self._read(target) == self._read(target)

    def test_a_cut_file_raises_nothing_unexpected(self, tmp_path: Path) -> None:
        target = self.write_sample(tmp_path)
        whole = {source.path: source.path.read_bytes() for source in _files(target)}
        for path, content in whole.items():
            for share in (0.3, 0.9):
                path.write_bytes(content[: int(len(content) * share)])
                try:
                    for record in self._read(target):
                        _assert_sound(record)
                except UnreadableFile:
                    pass  # the import reports it and keeps what came before
            path.write_bytes(content)

    def _read(self, target: Path) -> list[Found]:
        sources = [(source, self.importer) for source in _files(target) if self._fits(source)]
        groups, rest = group_files(sources, self.options)
        return [
            record
            for group in (*groups, *rest)
            for record in self.importer.read(group.source, group.options)
        ]

    def _fits(self, source: InputFile) -> bool:
        return not self.by_content or self.importer.recognise(source.sample) is not None


def _files(target: Path) -> list[InputFile]:
    return [input_file(path) for path in (files_in(target) if target.is_dir() else [target])]


def _assert_sound(record: Found) -> None:
    match record:
        case FoundResponse():
            assert record.task
            assert record.candidate
            assert record.trial >= 1
            assert (record.content is None) != (record.failure is None), "either content or failure"
        case FoundAssessment():
            assert record.task
            assert record.judge
            assert record.grades
            for grade in record.grades:
                assert grade.score is None or 0 <= grade.score <= 1
                assert grade.raw_score is None or math.isfinite(grade.raw_score)
        case FoundScores():
            assert record.judge
            for task, candidate, trial, score in record.rows:
                assert task
                assert candidate
                assert trial >= 1
                assert score is None or 0 <= score <= 1
        case Skipped():
            assert record.where
            assert record.why
        case Noted():
            assert record.where
            assert record.what
        case _:
            pass
