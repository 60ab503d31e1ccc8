"""SWE-bench: predictions (patches), and the reports of which instances they resolve.

Based on SWE-bench's `harness/reporting.py`, `harness/grading.py` and `run_evaluation.py` from 2024
to 2026 (report `schema_version` 2), and the `results.json` of its experiments repository. A
prediction holds `instance_id`, `model_name_or_path` and `model_patch`, as JSON Lines, a list, or an
object by instance. A run's report lists ids (`resolved_ids`, `unresolved_ids`, `empty_patch_ids`,
`error_ids`, `incomplete_ids`; older: `resolved`, `generated`, `no_generation`); an instance's
report is an object with its id as the only key, and `resolved` and `tests_status` below.

An instance is a task, a patch is a response, and the harness is a rule-based judge: 1 for resolved,
otherwise 0, even for an empty patch, as in SWE-bench. If the evaluation of an instance crashed, the
instance has no grade. Reports contain no model name; it comes from the file name or the
predictions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from assay.plugins import (
    ANY_KEY,
    Failure,
    Fault,
    FileSample,
    Found,
    FoundAssessment,
    FoundCandidate,
    FoundGrade,
    FoundResponse,
    FoundRun,
    FoundTask,
    GradedBy,
    InputFile,
    JsonObject,
    Noted,
    ReadOptions,
    Shape,
    Skipped,
    as_id,
    as_list,
    as_object,
    as_text,
    explained_share,
    first_rows,
    folder_name,
    folder_path,
    foreign_names,
    objects_in,
    parent_folder,
    pick,
    read_object,
    read_rows,
    to_text,
)

NAME: Final = "swe_bench"

_SHOWN_TESTS: Final = 20
_OLDER: Final = ("generated", "no_generation", "no_logs")
_NAMES: Final = foreign_names(__name__)
_COUNTS: Final = _NAMES["counts"]
_PREDICTION: Final[Shape] = dict.fromkeys(_NAMES["prediction"])
_INSTANCE: Final[Shape] = dict.fromkeys(_NAMES["instance"])
_REPORT: Final[Shape] = dict.fromkeys((*_COUNTS, *_NAMES["report"]))


def recognise(sample: FileSample) -> float | None:
    """Recognise patches with instance ids, run reports (lists of resolved ids), and reports on one
    instance.
    """
    match _kind(sample):
        case "predictions":
            rows = first_rows(sample, 20) or objects_in(list(as_object(sample.document).values()))
            return explained_share(rows, _PREDICTION)
        case "report":
            return explained_share(sample.document, _REPORT)
        case "instance":
            return explained_share(sample.document, {ANY_KEY: _INSTANCE})
        case _:
            return None


def companions(source: InputFile, others: Sequence[InputFile]) -> Collection[InputFile]:
    """Return the predictions and instance reports that belong to a report.

    A run's report has as companions the reports on its instances and the predictions for them. If
    there is no run report, the first instance report has these companions.
    """
    kind = _kind(source.sample)
    if kind == "predictions" or kind is None:
        return ()
    ids = _ids(source, kind)
    instances = [other for other in others if _kind(other.sample) == "instance"]
    if kind == "instance":
        if any(_kind(other.sample) == "report" and _covers(other, source) for other in others):
            return ()  # it belongs to the run's report
        folder = parent_folder(folder_path(source))
        same_run = [file for file in instances if parent_folder(folder_path(file)) == folder]
        for file in same_run:
            ids |= _ids(file, "instance")
    else:
        same_run = [file for file in instances if _covers(source, file)]
    predictions = [
        other
        for other in others
        if _kind(other.sample) == "predictions" and ids & _ids(other, "predictions")
    ]
    if kind == "report":
        model = _flat(_model_of_report(source))
        named = [file for file in predictions if model in {_flat(name) for name in _models(file)}]
        folder = folder_path(source)
        near = [
            file for file in predictions if folder_path(file) in (folder, parent_folder(folder))
        ]
        predictions = named or near or (predictions if len(predictions) == 1 else [])
    return [*same_run, *predictions[:1]]


def artifact_folders(source: InputFile, companions: Sequence[InputFile]) -> Collection[str]:
    """Return the folders with instance reports, which also contain the instances' logs and
    patches.
    """
    return tuple(
        folder_path(file) for file in (source, *companions) if _kind(file.sample) == "instance"
    )


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run: patches and the harness's verdicts on them."""
    kind = _kind(source.sample)
    files = (source, *options.beside.get("companions", ()))
    predictions = [file for file in files if _kind(file.sample) == "predictions"]
    instances = [file for file in files if _kind(file.sample) == "instance"]
    models = list(dict.fromkeys(name for file in predictions for name in _models(file)))
    if not models:
        models = [_model_of_report(source) if kind == "report" else _model_of_instance(source)]
    rename = (
        {models[0]: options.candidate} if options.candidate is not None and len(models) == 1 else {}
    )
    report = read_object(source) if kind == "report" else {}
    yield FoundRun(
        suite=options.dataset or NAME,
        format=NAME,
        candidates=tuple(
            FoundCandidate(name=rename.get(name) or name, metadata=options.model_info)
            for name in models
        ),
        provenance=pick(report, _COUNTS),
    )
    seen: set[str] = set()
    for file in predictions:
        yield from _predictions(file, rename, seen)
    candidate = rename.get(models[0]) or models[0]
    if kind != "predictions" and len(models) > 1:
        what = f"the predictions come from {len(models)} models; Assay assigns the report to {models[0]!r}, the first of them."
        yield Noted(where=source.name, what=what)
    graded: set[str] = set()
    for file in instances:
        yield from _instance(file, candidate, graded, seen)
    if kind == "report":
        yield from _report(source, report, candidate, graded, seen)


def _kind(sample: FileSample) -> str | None:
    head = sample.head
    if b'"model_patch"' in head:
        rows = first_rows(sample, 20) or objects_in(list(as_object(sample.document).values()))[:20]
        fitting = sum("model_patch" in row for row in rows)
        return "predictions" if rows and fitting * 2 > len(rows) else None
    if b'"resolved_ids"' in head or b'"resolved"' in head:
        document = as_object(sample.document)
        if isinstance(document.get("resolved_ids"), list) or (
            isinstance(document.get("resolved"), list)
            and any(isinstance(document.get(key), list) for key in _OLDER)
        ):
            return "report"
        reports = [as_object(value) for value in document.values()]
        fits = all(
            "resolved" in report and ("tests_status" in report or "patch_exists" in report)
            for report in reports
        )
        return "instance" if reports and fits else None
    return None


def _ids(source: InputFile, kind: str) -> set[str]:
    if kind == "predictions":
        names = (
            as_id(row.get("instance_id"))
            for row, _ in _prediction_rows(source)
            if not isinstance(row, str)
        )
        return {name for name in names if name is not None}
    report = read_object(source)
    if kind == "instance":
        return set(report)
    return {
        name
        for key in ("submitted_ids", "resolved_ids", "generated", "resolved")
        for name in _list(report, key)
    }


def _covers(report: InputFile, instance: InputFile) -> bool:
    """True if a run's report `MODEL.RUN_ID.json` covers an instance's report
    `…/RUN_ID/MODEL/INSTANCE/report.json`.

    In the experiments repository, `results/results.json` covers `logs/INSTANCE/report.json` in the
    same folder.
    """
    folder = parent_folder(folder_path(instance))
    if folder_name(folder) == "logs" and folder_name(folder_path(report)) == "results":
        return parent_folder(folder) == parent_folder(folder_path(report))
    if report.stem != f"{folder_name(folder)}.{folder_name(parent_folder(folder))}":
        return False
    return _ids(instance, "instance") <= _ids(report, "report")


def _model_of_instance(source: InputFile) -> str:
    """Return the model's name: the folder above the instance's folder or, in the experiments
    repository, above `logs`.
    """
    folder = parent_folder(folder_path(source))
    if folder_name(folder) == "logs":
        folder = parent_folder(folder)
    return folder_name(folder).replace("__", "/") or source.stem


def _models(source: InputFile) -> list[str]:
    names = (
        as_text(row.get("model_name_or_path"))
        for row, _ in _prediction_rows(source)
        if not isinstance(row, str)
    )
    return list(dict.fromkeys(name for name in names if name is not None))


def _model_of_report(source: InputFile) -> str:
    """Return the model's name from `MODEL.RUN_ID.json`, in which two underscores stand for a
    slash.
    """
    stem = source.stem
    return (stem.rpartition(".")[0] or stem).replace("__", "/")


def _flat(model: str) -> str:
    return model.replace("/", "__")


def _list(report: JsonObject, key: str) -> list[str]:
    return [name for item in as_list(report.get(key)) if (name := as_id(item)) is not None]


def _prediction_rows(source: InputFile) -> Iterator[tuple[JsonObject | str, str]]:
    document = None if source.sample.rows else source.sample.document
    if isinstance(document, dict) and "model_patch" not in document:
        for name, row in document.items():
            value = (
                {"instance_id": name, **row} if isinstance(row, dict) else "is not a prediction."
            )
            yield value, f"{source.name}#{name}"
        return
    yield from read_rows(source)


def _predictions(
    source: InputFile, rename: Mapping[str, str | None], seen: set[str]
) -> Iterator[Found]:
    for row, where in _prediction_rows(source):
        if isinstance(row, str):
            yield Skipped(where=where, why=row)
            continue
        task, model = as_id(row.get("instance_id")), as_text(row.get("model_name_or_path"))
        if task is None or model is None or "model_patch" not in row:
            yield Skipped(
                where=where,
                why="is not a prediction: it lacks `instance_id`, `model_name_or_path` or `model_patch`.",
            )
            continue
        if task not in seen:
            seen.add(task)
            yield _task(task)
        patch = row["model_patch"]
        failure = None
        if patch is None:
            failure = Failure(
                kind="no_patch", fault=Fault.CANDIDATE, detail="the prediction holds no patch."
            )
        yield FoundResponse(
            task=task,
            candidate=rename.get(model) or model,
            trial=1,
            where=where,
            content=None if patch is None else to_text(patch),
            failure=failure,
        )


def _task(name: str) -> FoundTask:
    repository = name.rpartition("-")[0].replace("__", "/")
    return FoundTask(id=name, tags=(repository,) if repository else ())


def _graded(task: str, candidate: str, score: float, where: str, reason: str) -> FoundAssessment:
    return FoundAssessment(
        task=task,
        trial=1,
        judge="SWE-bench harness",
        by=GradedBy.RULE,
        where=where,
        grades=(FoundGrade(candidate=candidate, score=score, reason=reason),),
    )


def _instance(
    source: InputFile, candidate: str, graded: set[str], seen: set[str]
) -> Iterator[Found]:
    for name, value in read_object(source).items():
        where, report = f"{source.name}#{name}", as_object(value)
        resolved = report.get("resolved")
        if not isinstance(resolved, bool):
            yield Skipped(where=where, why="has a `resolved` that is neither true nor false.")
            continue
        if name in graded:
            yield Skipped(where=where, why=f"reports {name} again; the first report is kept.")
            continue
        graded.add(name)
        if name not in seen:
            seen.add(name)
            yield _task(name)
        yield _graded(name, candidate, float(resolved), where, _tests(report))


def _tests(report: JsonObject) -> str:
    if report.get("patch_successfully_applied") is False:
        return "the patch could not be applied."
    parts = []
    for group, value in as_object(report.get("tests_status")).items():
        status = as_object(value)
        good, bad = as_list(status.get("success")), as_list(status.get("failure"))
        if good or bad:
            names = ", ".join(map(to_text, bad[:_SHOWN_TESTS]))
            parts.append(
                f"{group}: {len(good)} passed, {len(bad)} failed" + (f" ({names})" if bad else "")
            )
    return "; ".join(parts)


def _report(
    source: InputFile, report: JsonObject, candidate: str, graded: set[str], seen: set[str]
) -> Iterator[Found]:
    """Yield grades of instances that only the lists in the run's report mention."""
    where = source.name
    resolved = set(_list(report, "resolved_ids") or _list(report, "resolved"))
    empty = set(_list(report, "empty_patch_ids") or _list(report, "no_generation"))
    broken = set(_list(report, "error_ids") or _list(report, "no_logs"))
    tried = {*_list(report, "unresolved_ids"), *_list(report, "generated")}
    if not any(
        isinstance(report.get(key), list)
        for key in ("unresolved_ids", "generated", "submitted_ids")
    ):
        # the report lists only resolved ones; predictions or reports beside it have the rest
        tried = seen | graded
        if not tried:
            # Imported alone, a list of successes would have a mean of 1.
            why = "lists the resolved instances but not the attempted ones; import it with its predictions (`all_preds.jsonl`)."
            yield Skipped(where=where, why=why)
            return
    unresolved = tried - resolved - broken - empty
    for instances, score, reason in (
        (resolved, 1.0, "resolved"),
        (unresolved, 0.0, "not resolved"),
        (empty, 0.0, "the patch is empty"),
    ):
        for name in sorted(instances - graded):
            if name not in seen:
                seen.add(name)
                yield _task(name)
            graded.add(name)
            yield _graded(name, candidate, score, where, reason)
    for name in sorted(broken - graded):
        if name not in seen:
            seen.add(name)
            yield _task(name)
            failure = Failure(
                kind="evaluation_error",
                fault=Fault.HARNESS,
                detail="the evaluation of this patch ended with an error.",
            )
            yield FoundResponse(
                task=name, candidate=candidate, trial=1, where=where, failure=failure
            )
    if broken:
        yield Noted(
            where=where,
            what=f"the evaluation of {len(broken):,} patches ended with an error; they have no grade.",
        )
    missing = _list(report, "incomplete_ids")
    if missing:
        yield Noted(
            where=where,
            what=f"{len(missing):,} instances of the set were never attempted; this run leaves them out.",
        )
