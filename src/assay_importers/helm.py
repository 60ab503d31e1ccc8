"""Runs of HELM (`crfm-helm`): a folder for each run, with `scenario_state.json`,
`per_instance_stats.json` and `run_spec.json`.

Based on `helm/benchmark/runner.py`, `adaptation/request_state.py`, `metrics/metric.py` and
`metrics/statistic.py` in 0.5. The candidate is the model that the adapter uses. Each instance (or
each perturbation of it) is a task, and each set of few-shot examples (`train_trial_index`) is a
trial.

`per_instance_stats.json` mixes scores with token counts, times and similar numbers. HELM's
comparisons with references are rule-based. Any other metric may depend on an annotator that calls a
model, so it awaits review; counts and times are left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from assay.plugins import (
    Failure,
    Fault,
    FileSample,
    Found,
    FoundCandidate,
    FoundResponse,
    FoundRun,
    FoundTask,
    GradedBy,
    InputFile,
    JsonObject,
    JsonValue,
    MetricGrades,
    MetricValue,
    Noted,
    NotJson,
    ReadOptions,
    Shape,
    Skipped,
    as_count,
    as_duration,
    as_list,
    as_messages,
    as_number,
    as_object,
    as_text,
    explained_share,
    folder_name,
    folder_path,
    foreign_names,
    from_unix,
    objects_in,
    outside_their_scale,
    parse_json,
    pick,
    shorten,
    storable,
)

NAME: Final = "helm"

_NAMES: Final = foreign_names(__name__)
_STATE: Final[Shape] = {
    "adapter_spec": None,
    "annotator_specs": None,
    "request_states": dict.fromkeys(_NAMES["state"]),
}
_STATS: Final[Shape] = dict.fromkeys(("instance_id", "perturbation", "train_trial_index", "stats"))
_SPEC: Final[Shape] = dict.fromkeys(_NAMES["spec"])
_RULES: Final = frozenset(_NAMES["rules"])
_ERROR_RATES: Final = _NAMES["error_rates"]
_COUNTS: Final = _NAMES["counts"]


class _Cell(NamedTuple):
    """Key of one response: an instance, its perturbation and the set of few-shot examples."""

    task: str
    trial: int


def recognise(sample: FileSample) -> float | None:
    """Recognise a run's states, statistics and specification."""
    shape = {"state": _STATE, "stats": _STATS, "spec": _SPEC}.get(_kind(sample) or "")
    return None if shape is None else explained_share(sample.document, shape)


def companions(source: InputFile, others: Sequence[InputFile]) -> Collection[InputFile]:
    """Return the statistics and specification in the same folder as a run's states or, without
    states, as its statistics.
    """
    kind = _kind(source.sample)
    mine = [other for other in others if folder_path(other) == folder_path(source)]
    kinds = {other: _kind(other.sample) for other in mine}
    if kind == "state":
        return [other for other in mine if kinds[other] in ("stats", "spec")]
    if kind == "stats" and "state" not in kinds.values():
        return [other for other in mine if kinds[other] == "spec"]
    return ()


def artifact_folders(source: InputFile, companions: Sequence[InputFile]) -> Collection[str]:
    """Return the run's folder, in which HELM also leaves the scenario, aggregates and data for its
    web page.
    """
    return (folder_path(source),) if companions else ()


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run, with a response and metrics for each instance and set of few-shot examples."""
    documents: dict[str | None, JsonValue] = {}
    for file in (source, *options.beside.get("companions", ())):
        try:
            documents[_kind(file.sample)] = parse_json(file.read())
        except NotJson as error:
            yield Skipped(where=file.name, why=str(error))
    if "state" not in documents and "stats" not in documents:
        yield Skipped(
            where=source.name,
            why="is the set-up of a HELM run without results; import the whole run folder.",
        )
        return
    state, spec = as_object(documents.get("state")), as_object(documents.get("spec"))
    adapter = as_object(state.get("adapter_spec")) or as_object(spec.get("adapter_spec"))
    name = as_text(spec.get("name")) or folder_name(folder_path(source)) or source.stem
    model = (
        as_text(adapter.get("model"))
        or as_text(adapter.get("model_deployment"))
        or _part(name, "model")
    )
    candidate = options.candidate or model or source.stem
    yield FoundRun(
        suite=options.dataset or _suite(name),
        format=NAME,
        candidates=(FoundCandidate(name=candidate, model=model, metadata=options.model_info),),
        provenance={
            "run_spec": name,
            "parameters": pick(adapter, ("temperature", "max_tokens", "top_p")),
            **pick(
                adapter,
                ("method", "instructions", "num_outputs", "max_train_instances", "stop_sequences"),
            ),
            **pick(spec, ("scenario_spec", "metric_specs", "groups", "annotators")),
        },
    )
    stats = _stats(documents.get("stats"))
    yield from _responses(state, stats, candidate, source.name)
    yield from _grades(stats, candidate, source.name, annotated=_annotated(state))
    if "stats" not in documents:
        yield Noted(
            where=source.name,
            what="`per_instance_stats.json` is not among the files, so the run has no grades.",
        )
    if "state" not in documents:
        yield Noted(
            where=source.name,
            what="`scenario_state.json` is not among the files, so answers and prompts are missing.",
        )


def _kind(sample: FileSample) -> str | None:
    head = sample.head
    if b'"request_states"' in head and b'"adapter_spec"' in head:
        document = as_object(sample.document)
        return "state" if objects_in(document.get("request_states")) else None
    if b'"train_trial_index"' in head and b'"stats"' in head:
        rows = objects_in(as_list(sample.document)[:20])
        return (
            "stats"
            if rows
            and all("instance_id" in row and isinstance(row.get("stats"), list) for row in rows)
            else None
        )
    if b'"scenario_spec"' in head and b'"metric_specs"' in head:
        return "spec" if "adapter_spec" in as_object(sample.document) else None
    return None


def _part(name: str, key: str) -> str | None:
    """Return a key's value in a run's name, such as `openai_gpt-4` for `model`; None if the name
    lacks the key.
    """
    parts = name.replace(":", ",", 1).split(",")
    return next(
        (part.removeprefix(f"{key}=") for part in parts if part.startswith(f"{key}=")), None
    )


def _suite(name: str) -> str:
    """Return the run's name without its model, so that runs of several models share a suite."""
    scenario, _, arguments = name.partition(":")
    kept = [
        part
        for part in arguments.split(",")
        if part and not part.startswith(("model=", "model_deployment="))
    ]
    return f"{scenario}:{','.join(kept)}" if kept else scenario


def _cell(row: JsonObject, instance: str | None) -> _Cell | None:
    perturbation = as_text(as_object(row.get("perturbation")).get("name"))
    index = as_count(row.get("train_trial_index", 0))
    if instance is None or index is None:
        return None
    return _Cell(f"{instance} {perturbation}" if perturbation else instance, index + 1)


def _stats(document: JsonValue) -> dict[_Cell, dict[str, float]]:
    """Return each response's statistics by name, as means; HELM writes several rows for one
    response.
    """
    by_cell: defaultdict[_Cell, dict[str, float]] = defaultdict(dict)
    for row in objects_in(document):
        cell = _cell(row, as_text(row.get("instance_id")))
        for stat in objects_in(row.get("stats")):
            name, mean = (
                as_text(as_object(stat.get("name")).get("name")),
                as_number(stat.get("mean")),
            )
            if cell is not None and name is not None and mean is not None:
                by_cell[cell][name] = mean
    return by_cell


def _responses(
    state: JsonObject, stats: dict[_Cell, dict[str, float]], candidate: str, name: str
) -> Iterator[Found]:
    tasks: set[str] = set()
    answered: set[_Cell] = set()
    several: Counter[str] = Counter()
    for number, request_state in enumerate(objects_in(state.get("request_states")), 1):
        where = f"{name}#request_states/{number}"
        instance = as_object(request_state.get("instance"))
        row: JsonObject = {**request_state, "perturbation": instance.get("perturbation")}
        cell = _cell(row, as_text(instance.get("id")))
        if cell is None:
            yield Skipped(
                where=where, why="has no instance with an `id`, or no `train_trial_index`."
            )
            continue
        if cell.task not in tasks:
            tasks.add(cell.task)
            yield _task(cell.task, instance, request_state)
        if cell in answered:
            continue  # there is one request per reference, but the instance has only one answer
        answered.add(cell)
        yield _response(cell, request_state, stats.get(cell, {}), candidate, where)
        if len(as_list(as_object(request_state.get("result")).get("completions"))) > 1:
            several[name] += 1
    if several:
        what = f"{several.total():,} requests have several completions. HELM's metrics cover all of them; Assay shows the first."
        yield Noted(where=name, what=what)


def _task(task: str, instance: JsonObject, request_state: JsonObject) -> FoundTask:
    references = objects_in(instance.get("references"))
    correct = [reference for reference in references if "correct" in as_list(reference.get("tags"))]
    texts = (as_text(as_object(reference.get("output")).get("text")) for reference in correct)
    prompt = as_text(as_object(request_state.get("request")).get("prompt"))
    return FoundTask(
        id=task,
        prompt=as_messages(prompt or as_text(as_object(instance.get("input")).get("text"))),
        expected=tuple(text for text in texts if text is not None),
        metadata={
            "references": storable(
                [as_object(reference.get("output")).get("text") for reference in references]
            ),
            **pick(instance, ("split", "sub_split", "perturbation", "extra_data")),
        },
    )


def _response(
    cell: _Cell, request_state: JsonObject, stats: dict[str, float], candidate: str, where: str
) -> FoundResponse:
    result = as_object(request_state.get("result"))
    completion = as_object(next(iter(as_list(result.get("completions"))), None))
    content = as_text(completion.get("text")) or ("" if completion else None)
    chosen = stats.get("predicted_index")
    if request_state.get("reference_index") is not None and chosen is not None:
        # The model was asked for the likelihood of each reference; the most likely one is its
        # answer.
        references = objects_in(as_object(request_state.get("instance")).get("references"))
        index = int(chosen)
        if 0 <= index < len(references):
            content = as_text(as_object(references[index].get("output")).get("text")) or ""
    failure = None
    if result.get("success") is False or content is None:
        detail = shorten(as_text(result.get("error")) or "there is no completion.")
        failure = Failure(kind="error", fault=Fault.PROVIDER, detail=detail)
    prompt_tokens = stats.get("num_prompt_tokens")
    output_tokens = stats.get("num_completion_tokens", stats.get("num_output_tokens"))
    return FoundResponse(
        task=cell.task,
        candidate=candidate,
        trial=cell.trial,
        where=where,
        content=None if failure is not None else content,
        failure=failure,
        finish_reason=as_text(as_object(completion.get("finish_reason")).get("reason")),
        input_tokens=as_count(prompt_tokens),
        output_tokens=as_count(output_tokens),
        latency_s=as_duration(result.get("request_time")),
        started=from_unix(as_number(result.get("request_datetime"))),
    )


def _annotated(state: JsonObject) -> bool:
    """True if annotators, which are usually models, processed the run's answers."""
    return bool(state.get("annotator_specs")) or any(
        request_state.get("annotations")
        for request_state in objects_in(state.get("request_states"))[:50]
    )


def _grades(
    stats: dict[_Cell, dict[str, float]], candidate: str, name: str, *, annotated: bool
) -> Iterator[Found]:
    unscaled = outside_their_scale(
        metric for row in stats.values() for metric in _values(row, annotated=annotated)
    )
    grades = MetricGrades(unscaled)
    for cell, row in stats.items():
        metrics = list(_values(row, annotated=annotated))
        where = f"{name}#{cell.task}"
        yield from grades.assessments(
            metrics, task=cell.task, candidate=candidate, trial=cell.trial, where=where
        )
    yield from grades.notes(name)


def _values(row: dict[str, float], *, annotated: bool) -> Iterator[MetricValue]:
    for name, value in row.items():
        if name.startswith(_COUNTS):
            continue
        is_rule = name in _RULES or name in _ERROR_RATES
        worst, best = (1.0, 0.0) if name in _ERROR_RATES else (0.0, 1.0)
        yield MetricValue(
            criterion=name,
            value=value,
            judge="HELM" if is_rule else f"HELM {name}",
            by=GradedBy.RULE if is_rule else GradedBy.MODEL,
            worst=worst,
            best=best,
            assumed=not is_rule and not annotated,
        )
