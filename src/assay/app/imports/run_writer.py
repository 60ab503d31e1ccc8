"""Write an importer's records to the store in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import orjson

from assay.app.imports.options import PORTION, ImportOptions, ImportResult, Progress, ReplacedRun
from assay.app.imports.original_files import OriginalFile
from assay.domain.digest import JsonValue, text_digest
from assay.domain.errors import InputError, Refused
from assay.domain.identifiers import RunId
from assay.domain.import_identity import ContentDigest, Relation, is_poorer
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
from assay.domain.lifecycle import Policy
from assay.domain.model import Parameters
from assay.domain.run import RunPlan
from assay.domain.selection import Selection, StartedFrom
from assay.domain.suite import CandidateSpec, Rubric, SuiteCopy
from assay.engine.planning import run_id
from assay.exchange.file_groups import FileGroup
from assay.exchange.parsing.input_files import UnreadableFile
from assay.exchange.parsing.json_values import as_object
from assay.scoring.fields import read_field, reading_as_json
from assay.store.imports.known_results import ImportFacts, KnownRun

if TYPE_CHECKING:
    from assay.app.workspace import Workspace
    from assay.domain.extraction import ExtractionSpec
    from assay.domain.import_records import Found
    from assay.store.imports.import_runs import StoreImport


_DELETE_FIRST: Final = "To import this file instead, first delete that run: assay delete"
MAX_LISTED: Final = 10_000
"""Maximum number of messages about left-out rows, because a file of a few kilobytes can contain
millions of such rows.
"""

MAX_LEFT_OUT: Final = 100_000
"""Reading stops after this many unlisted unusable rows, plus 20 for each usable record."""

_PORTION_CHARS: Final = 12 << 20
"""Characters after which a transaction ends, even if it has fewer than `PORTION` rows."""


def _titled(task: FoundTask, reading: ExtractionSpec | None) -> FoundTask:
    """Return the task with the title that `--fields` extracts from its input; unchanged without
    such a title.
    """
    if reading is None or reading.title is None or task.thing is not None:
        return task
    text = "\n".join(message.content for message in reversed(task.prompt)) or task.context
    return replace(task, thing=read_field(text, reading.title))


@dataclass(slots=True)
class RunWriter:
    """Writes the records of one group of files to the store, and messages to the import result."""

    _workspace: Workspace
    _group: FileGroup
    _options: ImportOptions
    _originals: Sequence[OriginalFile]
    _suite: str | None
    _result: ImportResult
    _progress: Progress
    _reading: ExtractionSpec | None
    _without: frozenset[int]
    _left_out: set[tuple[str, str, int]] = field(default_factory=set)
    rows: int = 0

    def stream(self, target: StoreImport, records: Iterator[Found]) -> list[str]:
        result, name = self._result, self._group.source.name
        tasks: list[FoundTask] = []
        responses: list[FoundResponse] = []
        assessments: list[FoundAssessment] = []
        scores: list[FoundScores] = []
        ids: list[str] = []
        at_end = FoundAtEnd()
        run: FoundRun | None = None
        plan: RunPlan | None = None
        content = ContentDigest()
        reversed_metrics: dict[str, None] = {}
        rows = chars = before = skipped = unlisted = 0

        def flush() -> None:
            nonlocal chars
            if self._without:
                self._leave_out(target, responses, assessments)
            if tasks or responses or assessments or scores:
                result.skipped.extend(
                    target.add(tuple(tasks), tuple(responses), tuple(assessments), tuple(scores))
                )
                scores.clear()
                tasks.clear()
                responses.clear()
                assessments.clear()
                chars = 0
                self._progress(name, rows)

        def close() -> None:
            if plan is None or run is None:
                return
            flush()
            environment = _laid_over(plan.environment, at_end, reversed_metrics)
            # Without an id, the harness's own times tell apart runs with the same results, as
            # greedy models give them.
            times = (
                (at_end.started or run.started, at_end.finished or run.finished)
                if run.identity is None
                else ()
            )
            facts = ImportFacts(
                identity=run.identity,
                version=at_end.version or run.version,
                form=self._group.importer.NAME,
                content=content.hex(self._options.dataset, *times),
                answers=content.answers_hex(self._options.dataset),
                complete=run.complete if at_end.complete is None else at_end.complete,
            )
            finished = at_end.finished or run.finished
            result.skipped.extend(
                target.close_run(
                    started=at_end.started, finished=finished, environment=environment, facts=facts
                )
            )
            if not facts.complete:
                what = "the run is incomplete: according to its log it was stopped, or the log ends too early."
                result.notes.append(Noted(where=name, what=what))
            # nothing of the run is left to store
            if rows == before and (unlisted or len(result.skipped) > skipped):
                target.drop_run()
                ids.remove(plan.id)
            elif rows and not self._needed(target, plan.id):
                ids.remove(plan.id)

        try:
            for record in records:
                if type(record) is FoundResponse:
                    if plan is None:
                        continue
                    responses.append(record)
                    content.add_response(record)
                    rows += 1
                    if record.content is not None:
                        chars += len(record.content)
                    if len(responses) >= PORTION or chars > _PORTION_CHARS:
                        flush()
                elif type(record) is FoundScores:
                    scores.append(record)
                    content.add_scores(record)
                    rows += len(record.rows)
                    if sum(len(batch.rows) for batch in scores) >= PORTION:
                        flush()
                elif type(record) is FoundTask:
                    tasks.append(_titled(record, self._reading))
                    rows += 1
                    chars += sum(len(message.content) for message in record.prompt)
                    if len(tasks) >= PORTION or chars > _PORTION_CHARS:
                        flush()
                elif type(record) is FoundAssessment:
                    assessments.append(record)
                    content.add_assessment(record)
                    reversed_metrics |= _reversed_metrics(record)
                    rows += 1
                    if len(assessments) >= PORTION:
                        flush()
                elif type(record) is Skipped:
                    if len(result.skipped) < MAX_LISTED:
                        result.skipped.append(record)
                    else:
                        unlisted += 1
                        if unlisted > MAX_LEFT_OUT + 20 * rows:
                            left_out = len(result.skipped) + unlisted
                            what = f"was not read to its end: {left_out:,} rows are left out, {rows:,} records kept."
                            raise UnreadableFile(record.where, what)
                elif type(record) is Noted:
                    result.notes.append(record)
                elif type(record) is Held:
                    result.held.append(record)
                elif type(record) is FoundAtEnd:
                    at_end = record
                elif type(record) is FoundRun:
                    close()
                    at_end, run, before, skipped = FoundAtEnd(), record, rows, len(result.skipped)
                    content, reversed_metrics = ContentDigest(), {}
                    plan = self._plan(record)
                    target.open_run(plan)
                    ids.append(plan.id)
        except UnreadableFile as error:  # records before the damaged part are kept
            result.skipped.append(Skipped(where=error.where, why=error.problem))
        close()
        if unlisted:
            result.skipped.append(
                Skipped(where=name, why=f"{unlisted:,} more rows are left out, too many to list.")
            )
        self.rows = rows
        return ids

    def _needed(self, target: StoreImport, new: RunId) -> bool:
        """Compare the new run with stored runs; False if the new run was dropped because the store
        has all of its results.

        Raises PartlyKnown if the store has some of the responses, so that the file must be read
        again without these.
        """
        result, name = self._result, self._group.source.name
        known = target.known_runs()
        by_relation = {each: [run for run in known if run.relation is each] for each in Relation}
        if partly := by_relation[Relation.PARTLY]:
            raise PartlyKnown(partly)
        conflicts = by_relation[Relation.CONFLICT]
        retold = by_relation[Relation.RETOLD]
        stored = [*(by_relation[Relation.SAME] or by_relation[Relation.EARLIER])]
        if not stored and not conflicts and not retold:
            if self._left_out and not target.answers:
                target.drop_run()
                return False
            for run in by_relation[Relation.LATER]:
                try:
                    kept, left = target.replace_run(run, by=new)
                except Refused as error:
                    why = f"is a later version of run {run.id}, but {error.problem} {error.remedy}"
                    result.skipped.append(Skipped(where=name, why=why))
                    target.drop_run()
                    return False
                counts = {
                    each: getattr(run.overlap, each) for each in ("changed", "added", "lacking")
                }
                result.replaced.append(
                    ReplacedRun(where=name, run=run.id, by=new, kept=kept, left=left, **counts)
                )
            return True
        target.drop_run()
        # on rows that the store lacks
        result.notes[:] = [note for note in result.notes if note.where != name]
        for run in () if stored else retold:
            if is_poorer(self._group.importer.NAME, run.form):
                stored.append(run)
                what = f"has no ids, and its answers equal those of run {run.id} ({run.form}), so it was not imported."
                remedy = "If this is a different evaluation, import it as a separate set: --dataset NAME."
                result.notes.append(Noted(where=name, what=f"{what} {remedy}"))
            else:
                why = f"has the same answers as run {run.id} (imported as {run.form}) but no ids and fewer details."
                result.skipped.append(Skipped(where=name, why=f"{why} {_DELETE_FIRST} {run.id}"))
        if stored:
            result.unchanged[name] = (*result.unchanged.get(name, ()), *(run.id for run in stored))
        for run in () if by_relation[Relation.SAME] else by_relation[Relation.EARLIER]:
            what = f"contains an earlier version of run {run.id}, which stays unchanged."
            result.notes.append(Noted(where=name, what=what))
        for run in () if stored else conflicts:
            differing = run.overlap.changed + run.overlap.added + run.overlap.lacking
            why = f"has {differing:,} results that differ from run {run.id}, and nothing shows which version is later."
            result.skipped.append(Skipped(where=name, why=f"{why} {_DELETE_FIRST} {run.id}"))
        return False

    def _leave_out(
        self,
        target: StoreImport,
        responses: list[FoundResponse],
        assessments: list[FoundAssessment],
    ) -> None:
        identities = [response.identity for response in responses if response.identity is not None]
        held = target.held_by(identities, self._without)
        self._left_out.update(
            (response.task, response.candidate, response.trial)
            for response in responses
            if response.identity in held
        )
        responses[:] = [response for response in responses if response.identity not in held]
        kept = []
        for assessment in assessments:
            place = (assessment.task, assessment.trial)
            grades = tuple(
                grade
                for grade in assessment.grades
                if (place[0], grade.candidate, place[1]) not in self._left_out
            )
            if grades:
                kept.append(replace(assessment, grades=grades))
        assessments[:] = kept

    def _plan(self, run: FoundRun) -> RunPlan:
        options, group = self._options, self._group
        suite = self._suite or run.suite
        started, source = run.started, StartedFrom.FILE
        if started is None:
            modified = datetime.fromtimestamp(group.source.path.stat().st_mtime, UTC)
            started = modified.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            source = StartedFrom.FILE_DATE
        parameters = _parameters(run.provenance.get("parameters"))
        imported: dict[str, JsonValue] = {
            "format": run.format,
            "from": group.source.name,
            "sha256": self._originals[0].sha256,
            "originals": [original.as_json() for original in self._originals],
            "started_from": source.value,
            "finished_known": run.finished is not None,
            "complete": run.complete,
        }
        if group.dataset is not None:
            imported["dataset"] = group.dataset
        for requests in group.options.beside.get("input", ())[:1]:
            imported["input"] = requests.name
        if options.run_name is not None:
            imported["run_name"] = options.run_name
        if self._reading is not None:
            imported["reading"] = reading_as_json(self._reading)
        if group.options.criteria is not None:
            imported["criteria"] = group.options.criteria
        # An imported run has no suite file, so a description of its source is stored as the copy.
        text = orjson.dumps(
            {"imported": {"format": run.format, "from": group.source.name, "suite": suite}}
        ).decode()
        return RunPlan(
            id=self._id(run) or run_id(options.run_name or suite, started, self._workspace.nonce()),
            batch_id=run.batch_id,
            suite=suite,
            copy=SuiteCopy(path=group.source.name, text=text, digest=text_digest(text)),
            candidates=tuple(
                CandidateSpec(
                    name=candidate.name,
                    metadata={
                        **({"model": candidate.model} if candidate.model else {}),
                        **candidate.metadata,
                    },
                )
                for candidate in run.candidates
            ),
            judges=(),
            rubric=Rubric(criteria=run.rubric),
            policy=Policy.EVERY,
            parameters=parameters,
            system_prompt="",
            seed=0,
            started=started,
            environment={**run.provenance, "imported": imported},
            protocol={"version": 1, "policy": "every", "mode": "imported"},
        )

    def _id(self, run: FoundRun) -> RunId | None:
        """Return the run id stated in the file; raises `RunIdTaken` if a different run has this
        id.
        """
        if run.id is None:
            return None
        if self._workspace.store.run_removal.is_aside(run.id):
            return None  # a deleted run keeps its id, by which it can be brought back
        try:
            matching = self._workspace.archive.runs.matching(Selection(runs=(run.id,)))
        except InputError:  # no run has this id, or several begin with it
            return RunId(run.id)
        if any(summary.id == run.id for summary in matching):
            raise RunIdTaken(
                self._group.source.name,
                f"is run {run.id}, but the store has a run with this id and different content.",
            )
        return RunId(run.id)


class RunIdTaken(InputError):
    """Raised if another run already uses the id in a file."""


class PartlyKnown(Exception):
    """Raised if stored runs contain some of a file's responses, but not all."""

    def __init__(self, runs: Sequence[KnownRun]) -> None:
        self.runs = tuple(runs)
        super().__init__(", ".join(run.id for run in runs))


def _reversed_metrics(assessment: FoundAssessment) -> dict[str, None]:
    return {
        grade.criterion or "score": None
        for grade in assessment.grades
        if grade.max_score is not None
        and grade.min_score is not None
        and grade.min_score > grade.max_score
    }


def _laid_over(
    environment: Mapping[str, JsonValue], at_end: FoundAtEnd, reversed_metrics: Mapping[str, None]
) -> dict[str, JsonValue]:
    laid: dict[str, JsonValue] = {**environment, **at_end.provenance}
    if reversed_metrics:
        laid["lower_is_better"] = [*reversed_metrics]
    imported = environment.get("imported")
    if isinstance(imported, dict):
        imported = dict(imported)
        if at_end.started is not None:
            imported["started_from"] = StartedFrom.FILE.value
        if at_end.finished is not None:
            imported["finished_known"] = True
        if at_end.complete is not None:
            imported["complete"] = at_end.complete
        laid["imported"] = imported
    return laid


_PARAMETERS: Final = {
    **dict.fromkeys(("temperature", "top_p", "frequency_penalty", "presence_penalty"), int | float),
    **dict.fromkeys(("max_tokens", "seed"), int),
}


def _parameters(value: JsonValue) -> Parameters:
    known: dict[str, Any] = {}
    for name, number in as_object(value).items():
        kind = _PARAMETERS.get(name)
        if kind is not None and isinstance(number, kind) and not isinstance(number, bool):
            known[name] = number
    return Parameters(**known)
