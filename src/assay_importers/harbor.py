"""Job folders of Harbor (Terminal-Bench 2).

Based on Harbor's `models/trial/result.py`, `models/trial/paths.py`, `models/job/` and trajectories
(ATIF 1.2 to 1.7) of 2025 and 2026. A job is a folder with `config.json`, `result.json` and one
folder per trial. A trial's `result.json` contains `task_name`, `agent_info`, `agent_result`
(tokens, cost), `verifier_result.rewards` and `exception_info`; its `agent/trajectory.json` contains
the agent's steps.

A candidate is an agent with its model. A task's trials are numbered by start time. The verifier is
a rule-based judge; if it gives several rewards, each is a criterion. The response is the agent's
last message, because the container in which the agent worked no longer exists. A trial that crashed
before the verifier ran is a failure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from assay.plugins import (
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
    NotJson,
    OffScale,
    ReadOptions,
    Shape,
    Skipped,
    as_count,
    as_duration,
    as_list,
    as_messages,
    as_object,
    as_points,
    as_text,
    content_text,
    explained_share,
    folder_path,
    foreign_names,
    from_text,
    objects_in,
    parent_folder,
    parse_json,
    pick,
    read_object,
    seconds_between,
    shorten,
    storable,
)

NAME: Final = "harbor"

_TRAJECTORY: Final = "agent/trajectory.json"
_NAMES: Final = foreign_names(__name__)
_TRIAL: Final[Shape] = dict.fromkeys(_NAMES["trial"])
_JOB: Final[Shape] = {"trial_results": _TRIAL, **dict.fromkeys(_NAMES["job"])}


def recognise(sample: FileSample) -> float | None:
    """Recognise result and configuration files of trials and jobs, and trajectories."""
    kind = _kind(sample)
    shape = {"trial": _TRIAL, "job": _JOB}.get(kind or "")
    if shape is not None:
        return explained_share(sample.document, shape)
    return None if kind is None else 1.0


def companions(source: InputFile, others: Sequence[InputFile]) -> Collection[InputFile]:
    """Return the other files of the source's job: results of trials, configurations and
    trajectories.
    """
    kind = _kind(source.sample)
    if kind is None:
        return ()
    job = _job_folder(source, kind)
    kinds = ((other, _kind(other.sample)) for other in others)
    return [
        other
        for other, other_kind in kinds
        if other_kind is not None and _job_folder(other, other_kind) == job
    ]


def artifact_folders(source: InputFile, companions: Sequence[InputFile]) -> Collection[str]:
    """Return the job's folder, in which every trial leaves logs and artifacts."""
    kind = _kind(source.sample)
    return (_job_folder(source, kind),) if kind is not None and companions else ()


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run for the job, with a response and the rewards of every trial."""
    files = (source, *options.beside.get("companions", ()))
    job_file = next((file for file in files if _kind(file.sample) == "job"), None)
    job = {} if job_file is None else read_object(job_file)
    trials = [
        _Trial(read_object(file), file.name, file)
        for file in files
        if _kind(file.sample) == "trial"
    ]
    if not trials and job_file is not None:
        results = map(as_object, as_list(job.get("trial_results")))
        trials = [
            _Trial(result, f"{job_file.name}#{number}", None)
            for number, result in enumerate(results, 1)
        ]
    if not trials:
        why = "belongs to a Harbor job whose trials are not among the files; import the whole job folder."
        yield Skipped(where=source.name, why=why)
        return
    configs = (read_object(file) for file in files if _kind(file.sample) == "config")
    config = next((config for config in configs if "datasets" in config), {})
    candidates: dict[str, FoundCandidate] = {}
    for trial in trials:
        name, model = _candidate(trial.result)
        candidates.setdefault(
            name, FoundCandidate(name=name, model=model, metadata=_agent(trial.result))
        )
    if options.candidate is not None and len(candidates) > 1:
        yield Noted(
            where=source.name, what="the job has several agents, so Assay ignores `--candidate`."
        )
    given = options.candidate if len(candidates) == 1 else None
    yield FoundRun(
        suite=options.dataset or _suite(trials, config) or source.stem,
        format=NAME,
        candidates=tuple(
            replace(candidate, name=given or candidate.name) for candidate in candidates.values()
        ),
        started=from_text(job.get("started_at")),
        finished=from_text(job.get("finished_at")),
        complete=job_file is None or job.get("finished_at") is not None,
        provenance={
            **pick(job, ("id", "n_total_trials", "stats", "started_at", "finished_at")),
            **({"config": storable(config)} if config else {}),
        },
    )
    trajectories = {
        parent_folder(folder_path(file)): file
        for file in files
        if _kind(file.sample) == "trajectory" and file.stem == "trajectory"
    }
    scale = OffScale()
    for trial in trials:
        for name, value in _rewards(trial.result).items():
            scale.learn(name, as_points(value))
    counted: dict[tuple[str, str], int] = {}
    tasks: set[str] = set()
    for trial in sorted(
        trials, key=lambda trial: (str(trial.result.get("started_at") or ""), trial.where)
    ):
        task = as_text(trial.result.get("task_name"))
        if task is None:
            yield Skipped(where=trial.where, why="has no task name.")
            continue
        candidate = given or _candidate(trial.result)[0]
        number = counted[task, candidate] = counted.get((task, candidate), 0) + 1
        prompt, last_message = _trajectory(trial.file, trajectories)
        if task not in tasks:
            tasks.add(task)
            metadata = pick(trial.result, ("task_id", "source", "task_checksum"))
            yield FoundTask(id=task, prompt=as_messages(prompt), metadata=metadata)
        yield from _trial_records(trial, task, candidate, number, last_message, scale)
    yield from scale.remarks(source.name)


class _Trial(NamedTuple):
    """One trial's `result.json`, its location for messages, and its file (None for a trial inside
    the job's result).
    """

    result: JsonObject
    where: str
    file: InputFile | None


def _kind(sample: FileSample) -> str | None:
    head = sample.head
    if sample.rows and b"\n" in head.strip():
        return None
    if b'"task_name"' in head and (b'"trial_name"' in head or b'"verifier_result"' in head):
        document = as_object(sample.document)
        if "task_name" in document and (
            {"verifier_result", "exception_info", "agent_info"} & document.keys()
        ):
            return "trial"
    if b'"n_total_trials"' in head:
        document = as_object(sample.document)
        if "n_total_trials" in document and "stats" in document:
            return "job"
    if b'"ATIF-v' in head:
        # A trajectory may hold hundreds of megabytes, so its kind is recognised from the beginning.
        return "trajectory" if b'"schema_version"' in head[:2000] else None
    if b'"agents"' in head or b'"trials_dir"' in head or b'"jobs_dir"' in head:
        document = as_object(sample.document)
        if ("jobs_dir" in document and "agents" in document) or (
            "trials_dir" in document and "agent" in document
        ):
            return "config"
    return None


def _job_folder(source: InputFile, kind: str) -> str:
    """Return the job folder of a file: the folder of the file, or one or two levels above."""
    folder = folder_path(source)
    depth = {"job": 0, "trial": 1, "trajectory": 2}.get(kind)
    if depth is None:
        depth = 1 if "trials_dir" in read_object(source) else 0
    for _ in range(depth):
        folder = parent_folder(folder)
    return folder


def _candidate(result: JsonObject) -> tuple[str, str | None]:
    """Return the candidate's name (agent with model) and the model's reference."""
    agent = as_object(result.get("agent_info"))
    config = as_object(as_object(result.get("config")).get("agent"))
    name = (
        as_text(agent.get("name"))
        or as_text(config.get("name"))
        or as_text(config.get("import_path"))
        or "agent"
    )
    info = as_object(agent.get("model_info"))
    model = as_text(info.get("name")) or as_text(config.get("model_name"))
    provider = as_text(info.get("provider"))
    if model is not None and provider is not None and "/" not in model:
        model = f"{provider}/{model}"
    return (name if model is None else f"{name} ({model})"), model


def _agent(result: JsonObject) -> JsonObject:
    agent = as_object(result.get("agent_info"))
    return {"agent": as_text(agent.get("name")), "agent_version": as_text(agent.get("version"))}


def _suite(trials: Sequence[_Trial], config: JsonObject) -> str | None:
    sources = {as_text(trial.result.get("source")) for trial in trials}
    if len(sources) == 1 and (only := sources.pop()) is not None:
        return only
    names = [as_text(as_object(dataset).get("name")) for dataset in as_list(config.get("datasets"))]
    return names[0] if len(names) == 1 else None


def _trajectory(
    source: InputFile | None, trajectories: Mapping[str, InputFile]
) -> tuple[str, str | None]:
    if source is None:
        return "", None
    beside = trajectories.get(folder_path(source)) or (
        source.sibling(_TRAJECTORY) if not source.member else None
    )
    if beside is None:
        return "", None
    try:
        steps = objects_in(as_object(parse_json(beside.read())).get("steps"))
    except NotJson:
        return "", None
    prompts = (content_text(step.get("message")) for step in steps if step.get("source") == "user")
    replies = (
        content_text(step.get("message"))
        for step in reversed(steps)
        if step.get("source") == "agent"
    )
    return next((text for text in prompts if text), ""), next(
        (text for text in replies if text), None
    )


def _rewards(result: JsonObject) -> JsonObject:
    return as_object(as_object(result.get("verifier_result")).get("rewards"))


def _trial_records(
    trial: _Trial, task: str, candidate: str, number: int, last_message: str | None, scale: OffScale
) -> Iterator[Found]:
    result, where = trial.result, trial.where
    rewards = _rewards(result)
    broke = as_object(result.get("exception_info"))
    usage, execution = (
        as_object(result.get("agent_result")),
        as_object(result.get("agent_execution")),
    )
    kind = shorten(broke.get("exception_type") or "error", 80)
    failure = None
    if not rewards:
        detail = shorten(broke.get("exception_message") or "the verifier gave no reward.")
        failure = Failure(kind=kind if broke else "no_reward", fault=_fault(kind), detail=detail)
    yield FoundResponse(
        task=task,
        candidate=candidate,
        trial=number,
        where=where,
        content=None if failure is not None else last_message or "",
        failure=failure,
        # As in Harbor, a trial that was rewarded although it timed out counts.
        finish_reason=kind if broke and failure is None else None,
        input_tokens=as_count(usage.get("n_input_tokens")),
        output_tokens=as_count(usage.get("n_output_tokens")),
        latency_s=seconds_between(execution.get("started_at"), execution.get("finished_at")),
        cost_usd=as_duration(usage.get("cost_usd")),
        started=from_text(result.get("started_at")),
    )
    if failure is not None:
        return
    alone = len(rewards) == 1
    yield FoundAssessment(
        task=task,
        trial=number,
        judge="verifier",
        by=GradedBy.RULE,
        where=where,
        grades=tuple(
            FoundGrade(
                candidate=candidate,
                score=scale.score(name, as_points(value)),
                criterion="" if alone else name,
                raw_score=as_points(value),
            )
            for name, value in rewards.items()
        )
        + _total(rewards, candidate, scale, alone=alone),
    )


def _total(
    rewards: JsonObject, candidate: str, scale: OffScale, *, alone: bool
) -> tuple[FoundGrade, ...]:
    """Return the overall grade in a trial with several rewards: the one called `reward`.

    Empty if there is none.
    """
    if alone or "reward" not in rewards:
        return ()
    raw = as_points(rewards["reward"])
    return (FoundGrade(candidate=candidate, score=scale.score("reward", raw), raw_score=raw),)


def _fault(kind: str) -> Fault:
    """Return the party at fault: the candidate if its agent timed out or died, but not if verifier
    or environment failed.
    """
    name = kind.lower().replace("_", "")
    if "verifier" in name or "reward" in name:
        return Fault.JUDGE
    return (
        Fault.CANDIDATE
        if "agenttimeout" in name or "agentexit" in name or "nonzeroagent" in name
        else Fault.HARNESS
    )
