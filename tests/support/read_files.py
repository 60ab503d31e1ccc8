"""Files through the readers, as the import verb sends them, without a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.domain.import_records import (
    Found,
    FoundAssessment,
    FoundAtEnd,
    FoundGrade,
    FoundResponse,
    FoundRun,
    FoundScores,
    FoundTask,
    Noted,
    Skipped,
)
from assay.exchange.detection import recognise_format
from assay.exchange.file_groups import group_files
from assay.exchange.importers import ReadOptions
from assay.exchange.parsing.input_files import UnreadableFile, files_in, input_file


@dataclass(slots=True)
class Read:
    """Records that readers yielded, by kind."""

    runs: list[FoundRun] = field(default_factory=list)
    ends: list[FoundAtEnd] = field(default_factory=list)
    tasks: list[FoundTask] = field(default_factory=list)
    responses: list[FoundResponse] = field(default_factory=list)
    assessments: list[FoundAssessment] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[Noted] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Runs, tasks, responses, assessments."""
        return len(self.runs), len(self.tasks), len(self.responses), len(self.assessments)

    def scores(self, judge: str, criterion: str = "") -> dict[tuple[str, str, int], float | None]:
        """Score by task, candidate and trial, of one judge on one criterion."""
        return {
            (one.task, grade.candidate, one.trial): grade.score
            for one in self.assessments
            if one.judge == judge
            for grade in one.grades
            if grade.criterion == criterion
        }

    def take(self, found: Found) -> None:
        """Sort one record in."""
        match found:
            case FoundRun():
                self.runs.append(found)
            case FoundAtEnd():
                self.ends.append(found)
            case FoundTask():
                self.tasks.append(found)
            case FoundResponse():
                self.responses.append(found)
            case FoundAssessment():
                self.assessments.append(found)
            case FoundScores():
                for task, candidate, trial, score in found.rows:
                    self.assessments.append(
                        FoundAssessment(
                            task=task,
                            trial=trial,
                            judge=found.judge,
                            by=found.by,
                            state=found.state,
                            where="",
                            grades=(FoundGrade(candidate=candidate, score=score),),
                        )
                    )
            case Skipped():
                self.skipped.append(found)
            case Noted():
                self.notes.append(found)


def read_files(*paths: Path, options: ReadOptions | None = None) -> Read:
    """Everything in files and folders; damage that ends a file early is among what was skipped."""
    read = Read()
    recognisable = []
    for path in paths:
        for file in files_in(path) if path.is_dir() else (path,):
            source = input_file(file)
            try:
                importer = recognise_format(source.sample)
            except UnreadableFile as error:
                read.skipped.append(Skipped(where=error.where, why=error.problem))
                continue
            if importer is None:
                read.strangers.append(file.name)
            else:
                recognisable.append((source, importer))
    groups, _ = group_files(recognisable, options or ReadOptions())
    for group in groups:
        try:
            for one in group.importer.read(group.source, group.options):
                read.take(one)
        except UnreadableFile as error:
            read.skipped.append(Skipped(where=error.where, why=error.problem))
    return read


def formats_of(paths: Sequence[Path]) -> list[str | None]:
    """The format each file is recognised as."""
    readers = (recognise_format(input_file(path).sample) for path in paths)
    return [None if importer is None else importer.NAME for importer in readers]
