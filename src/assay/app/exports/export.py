"""Write the output of `assay export`: counted results and, with `everything`, the other results in
a second file.
"""

from __future__ import annotations

import tomllib
from contextlib import ExitStack
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assay.app import results_files
from assay.app.exports import reports
from assay.app.exports.exporters import (
    EXPORTERS,
    Exported,
    ExportRequest,
    OpenOutput,
    only_counted,
    runs_written,
    with_runs,
)
from assay.app.exports.pseudonyms import Anonymiser
from assay.app.recorded_settings import graded_rubric, record_document, run_parameters
from assay.app.review import review_documents as review_documents
from assay.app.review.attention import attention_document, attention_of
from assay.app.review.protocol import achieved_by
from assay.app.runs import run_documents
from assay.app.statistics.basis import approvals_of
from assay.app.statistics.statistics_documents import RunsReadDocument, runs_read_document
from assay.app.statistics.vetting import require_vetted
from assay.app.wire import document, inlined, plain, to_json
from assay.domain.errors import InputError, Refused, UnknownName, did_you_mean
from assay.domain.identifiers import shown_assessment
from assay.domain.lifecycle import AssessmentState
from assay.domain.secret_masking import masked_line
from assay.domain.unescaped_json import unescaped_json
from assay.exchange.results_folder import folder as results_folder
from assay.exchange.writers.parquet import ParquetRows, need_pyarrow
from assay.formats.csv_lines import CsvLines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from assay.app.settings import Settings
    from assay.domain.achieved_review import AchievedReview
    from assay.domain.attention import Attention
    from assay.domain.review import Approvals
    from assay.domain.run import RunPlan
    from assay.domain.selection import AssessmentDetail, NotCounted, RunSummary, ScoreRow, Selection
    from assay.store.opening import Store

    Write = Callable[[str], object]

COLUMNS: Final = tomllib.loads((files(__package__) / "columns.toml").read_text("utf-8"))
"""Data types of the columns, in order."""

_APART: Final = {**COLUMNS, "not_counted": "text"}


def export(request: ExportRequest) -> Exported:
    """Write the selected results one by one, so that memory does not grow with the store.

    Raises InputError for an unknown format, or a missing file name or package, and Refused if a
    file already exists.
    """
    try:
        exporter = EXPORTERS.load(request.format)
    except UnknownName as error:
        names = EXPORTERS.names()
        problem = (
            f"there is no export format {request.format!r}.{did_you_mean(request.format, names)}"
        )
        raise InputError("", problem, remedy=f"Known: {', '.join(names)}.") from error
    rule = (request.threshold, request.against, request.margin)
    if request.format != "junit" and any(value is not None for value in rule):
        raise InputError(
            "", f"--threshold, --against and --margin are for junit, not for {request.format}."
        )
    read = with_runs(request)
    if read.vetted:
        require_vetted(read.workspace, read.selection)
    given = (
        None
        if read.format == "results"
        else approvals_of(read.workspace.store, read.workspace.settings, read.selection)
    )
    return replace(exporter(read), read=runs_written(read), approvals=given)


def export_report(request: ExportRequest) -> Exported:
    """Write a report of the selection as html, markdown, latex or junit."""
    only_counted(request)
    text = reports.written(
        request.workspace.store,
        request.workspace.settings,
        request.format,
        request.chosen or request.selection,
        anonymise=request.anonymise,
        threshold=request.threshold,
        against=request.against,
        margin=request.margin,
    )
    with request.open_output() as output:
        output.write(text)
    return Exported(format=request.format, output=request.output, rows=None, unseen=None)


def export_scores(request: ExportRequest) -> Exported:
    return _export_rows(request, _write_tables)


def export_assessments(request: ExportRequest) -> Exported:
    """Write whole assessments as jsonl, or as json with their runs' provenance."""
    return _export_rows(request, _write_records)


def _export_rows(
    request: ExportRequest,
    write_rows: Callable[[ExportRequest, list[OpenOutput], Anonymiser], tuple[int, int, int]],
) -> Exported:
    if request.everything:
        request.need_file("--all writes a second file next to the output file")
    elif request.format == "parquet" or request.write is None:
        request.need_file(f"{request.format} is written to a file")
    if request.format == "parquet":
        need_pyarrow()
    apart = (
        apart_from(request.output) if request.everything and request.output is not None else None
    )
    with ExitStack() as files:
        outputs = [files.enter_context(request.open_output())]
        if apart is not None:
            outputs.append(files.enter_context(request.open_output(apart)))
        counted, unseen, rows_apart = write_rows(request, outputs, request.names())
    return Exported(
        format=request.format,
        output=request.output,
        rows=counted,
        unseen=unseen,
        apart=apart,
        rows_apart=rows_apart,
    )


def export_results(request: ExportRequest) -> Exported:
    """Write the selected runs to the results folder and rebuild the folder's registry."""
    workspace = request.workspace
    if request.everything or request.anonymise:
        raise InputError(
            "results",
            "always contains everything unchanged, each grade with its state, so that a store can be rebuilt from it.",
        )
    folder = request.output or workspace.results.folder
    if folder is None:
        raise InputError(
            "results",
            "the setting `results` is off.",
            remedy="Add --output FOLDER, or set `results`.",
        )
    runs = workspace.archive.runs.matching(request.selection)
    try:
        for summary in reversed(runs):
            results_files.project(workspace, folder, summary.id)
        results_files.register_all(folder)
    except OSError as error:
        raise InputError(str(folder), f"cannot be written: {error.strerror}.") from error
    except results_folder.FolderBusy as error:
        raise Refused(
            str(folder), "is being written by another process.", remedy="Try again when it is done."
        ) from error
    return Exported(format="results", output=folder, rows=len(runs), unseen=None)


def apart_from(output: Path) -> Path:
    """Return the file name for results that do not count: `scores.csv` becomes
    `scores.not-counted.csv`.
    """
    return output.with_name(f"{output.stem}.not-counted{output.suffix}")


@document
class SecondFileDocument:
    """JSON about the second file, which contains the results that do not count."""

    output: str
    rows: int | None


@document
class ExportDocument:
    """JSON of `assay export`; `text` is the export itself if no file was named."""

    format: str
    output: str | None
    text: str | None
    rows: int | None
    unseen: int | None
    not_counted: SecondFileDocument | None
    read: RunsReadDocument | None
    approvals: review_documents.ApprovalsDocument | None


def exported_document(exported: Exported, *, text: str | None = None) -> ExportDocument:
    """Return the JSON of `assay export`, including the export itself if no file was named."""
    second = exported.apart
    read, approvals = exported.read, exported.approvals
    return ExportDocument(
        format=exported.format,
        output=None if exported.output is None else str(exported.output),
        text=text,
        rows=exported.rows,
        unseen=exported.unseen,
        not_counted=None
        if second is None
        else SecondFileDocument(output=str(second), rows=exported.rows_apart),
        read=None if read is None else runs_read_document(read),
        approvals=None if approvals is None else review_documents.approvals_document(approvals),
    )


def _write_tables(
    request: ExportRequest, outputs: list[OpenOutput], names: Anonymiser
) -> tuple[int, int, int]:
    """Write score rows; return the numbers of counted rows, counted rows that no person has seen,
    and other rows.
    """
    counted = unseen = apart = 0
    with ExitStack() as writers:
        lines = [
            _table(writers, output, request.format, columns)
            for output, columns in zip(outputs, (COLUMNS, _APART), strict=False)
        ]
        rows = request.workspace.archive.exports.score_rows(
            request.selection, everything=len(outputs) > 1
        )
        for row in rows:
            cells = _cells(row, names)
            if row.not_counted is None:
                lines[0].row(cells)
                counted += 1
                unseen += row.state is AssessmentState.EXEMPT
            else:
                lines[1].row([*cells, str(row.not_counted)])
                apart += 1
    return counted, unseen, apart


def _table(
    writers: ExitStack,
    output: OpenOutput,
    format: str,  # noqa: A002
    columns: dict[str, str],
) -> CsvLines | ParquetRows:
    if format == "csv" or output.file is None:
        return CsvLines(output.write, list(columns))
    rows = ParquetRows(output.file.file, columns)
    writers.callback(rows.close)
    return rows


def _cells(row: ScoreRow, names: Anonymiser) -> list[Any]:
    return [
        row.task,
        names.candidate(row.candidate),
        row.trial,
        row.score,
        row.weight,
        row.criterion,
        row.judge,
        str(row.state),
        row.joint,
        row.family,
        row.run_id,
        row.suite,
        row.task_id,
        row.thing,
        row.k,
        row.attempt,
        shown_assessment(row.assessment),
    ]


def _write_records(
    request: ExportRequest, outputs: list[OpenOutput], names: Anonymiser
) -> tuple[int, int, int]:
    """Write assessments as lines, or as a list at the end of a JSON document; return the same
    counts as `_write_tables`.
    """
    workspace, selection = request.workspace, request.selection
    plans = list(plans_of(workspace.store, selection)) if request.format == "json" else []
    head = (
        _head(workspace.store, workspace.settings, selection, plans, names)
        if request.format == "json"
        else None
    )
    counts = [0] * len(outputs)
    unseen = 0
    for output in outputs:
        if head is not None:
            # The closing brace comes later: the list is written row by row, so that memory does not
            # grow with the store.
            output.write(unescaped_json(head, allow_nan=False)[:-1] + ', "assessments": [')
    for detail, why in workspace.archive.exports.assessments(
        selection, everything=len(outputs) > 1
    ):
        place = 0 if why is None else 1
        text = unescaped_json(
            assessment_record(detail, why, names), allow_nan=False, default=to_json
        )
        before = "" if head is None else (",\n" if counts[place] else "\n")
        outputs[place].write(f"{before}{text}" if head is not None else f"{text}\n")
        counts[place] += 1
        unseen += place == 0 and detail.row.state is AssessmentState.EXEMPT
    for output, n in zip(outputs, counts, strict=True):
        if head is not None:
            output.write(f'\n], "n_assessments": {n}}}\n')
    return counts[0], unseen, sum(counts[1:])


@document
class ExportedAssessmentDocument:
    """JSON of an exported assessment: the fields of `assay review show`, and whether the assessment
    counts.
    """

    assessment: review_documents.AssessmentDetailDocument = inlined()
    counts: bool
    not_counted: str | None


def assessment_record(
    detail: AssessmentDetail, why: NotCounted | None, names: Anonymiser
) -> ExportedAssessmentDocument | dict[str, Any]:
    """Return an assessment with its grades, reasons, responses and reviews; names are replaced in
    an anonymous export.
    """
    shown = review_documents.assessment_detail(detail)
    exported = ExportedAssessmentDocument(
        assessment=shown, counts=why is None, not_counted=None if why is None else str(why)
    )
    if not names.active:
        return exported
    record = plain(exported)
    unnamed = {key: _anonymous(key, value, names) for key, value in record.items()}
    return {
        **unnamed,
        "candidates": names.candidates(record["candidates"]),
        "call": {
            key: value
            for key, value in record["call"].items()
            if key not in {"model", "model_version"}
        },
        "events": [
            {
                **names.texts({key: value for key, value in event.items() if key != "corrections"}),
                "reviewer": names.reviewer(event["reviewer"]),
                "stated_by": None
                if event["stated_by"] is None
                else names.reviewer(event["stated_by"]),
                "corrections": {
                    _corrected(key, detail, names): value
                    for key, value in event["corrections"].items()
                },
            }
            for event in record["events"]
        ],
    }


_KEPT: Final = frozenset(
    {"id", "run_id", "suite", "task", "judge", "state", "attempts", "call", "calibration"}
)
"""Assessment fields in which an anonymised export does not replace names."""


def _anonymous(key: str, value: Any, names: Anonymiser) -> Any:
    match key:
        case "scores" | "judge_scores" | "verdicts" | "labels":
            return _renamed(value, names)
        case "verifications" | "grades" | "judge_grades" | "responses" | "flags":
            return [_of_candidate(fields, names) for fields in value]
        case "shown" | "ranking":
            return [names.candidate(name) for name in value]
        case _:
            return value if key in _KEPT else names.texts(value)


def _renamed(by_name: dict[str, Any], names: Anonymiser) -> dict[str, Any]:
    return {
        names.candidate(name): value
        # Sorted by pseudonym, because the suite's order would reveal the candidate behind each
        # pseudonym.
        for name, value in sorted(by_name.items(), key=lambda item: names.candidate(item[0]))
    }


def _of_candidate(fields: dict[str, Any], names: Anonymiser) -> dict[str, Any]:
    name = fields["candidate"]
    return {**names.texts(fields), "candidate": None if name is None else names.candidate(name)}


def _corrected(key: str, detail: AssessmentDetail, names: Anonymiser) -> str:
    """Replace the name in a correction's key (NAME or NAME/CRITERION); a name may contain
    slashes.
    """
    # Longest first, because `a/b` and `a` may both be candidates.
    for name in sorted(detail.row.candidates, key=len, reverse=True):
        if key == name or key.startswith(f"{name}/"):
            return names.candidate(name) + key[len(name) :]
    return names.text(key)


def provenance(
    summary: RunSummary,
    plan: RunPlan,
    given: Approvals,
    names: Anonymiser,
    *,
    achieved: AchievedReview,
    signs: Attention,
) -> dict[str, Any]:
    """Return the facts about a run that a reader needs to understand its export later."""
    environment = dict(plan.environment)
    if isinstance(command := environment.get("command"), str):
        # Earlier versions stored commands of logs with their secrets.
        environment["command"] = masked_line(command)
    document: dict[str, Any] = {
        **plain(run_documents.run_summary(summary, given)),
        **record_document(plan),
        "seed": plan.seed,
        "parameters": run_parameters(plan).as_json(),
        "review": str(plan.policy),
        "margin": plan.margin,
        "protocol": {**plan.protocol, "achieved": achieved.as_json()},
        "attention": plain(attention_document(signs)),
        "rubric": plain(run_documents.criteria(graded_rubric(plan, summary))),
        "environment": environment,
    }
    if not names.active:
        return document
    known = ("run_id", "suite", "state", "started", "finished", "batch_id", "judges", "approvals")
    kept = {key: document[key] for key in known}
    # The address of an endpoint and the options of the command can name a candidate's vendor.
    document["environment"] = {
        key: value for key, value in environment.items() if key not in {"endpoints", "command"}
    }
    document["asked_with"] = {
        names.candidate(name): {"parameters": how["parameters"]}
        for name, how in document["asked_with"].items()
    }
    return {**names.texts(document), **kept, "candidates": names.candidates(summary.candidates)}


def _head(
    store: Store, settings: Settings, selection: Selection, plans: list[RunPlan], names: Anonymiser
) -> dict[str, Any]:
    summaries = {summary.id: summary for summary in store.archive.runs.matching(selection)}
    by_run = store.archive.scores.approvals_by_run(list(summaries))
    return {
        "assay_export": 1,
        "exported": store.clock.now(),
        "anonymised": names.active,
        "filters": {key: list(values) for key, values in selection.filters().items()},
        "approvals": to_json(
            review_documents.approvals_document(approvals_of(store, settings, selection))
        ),
        "runs": [
            provenance(
                summaries[plan.id],
                plan,
                by_run[plan.id],
                names,
                achieved=achieved_by(store.decisions, plan),
                signs=attention_of(store, (plan.id,)),
            )
            for plan in plans
        ],
    }


def plans_of(store: Store, selection: Selection) -> Iterator[RunPlan]:
    for summary in store.archive.runs.matching(selection):
        yield store.journal.plan_of(summary.id)
