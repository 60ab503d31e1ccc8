"""Jobs of Terminal-Bench 1: `results.json` of the job and each trial, and the setup in
`run_metadata.json` and `tb.lock`.

Based on `terminal_bench/harness/models.py` and 54 jobs of its public leaderboard (2025). A job is a
folder with `results.json` (`results`, a row per trial, and the lists `resolved_ids` and
`unresolved_ids`, in which a task appears once per trial) and `TASK/TRIAL/results.json`, which
repeat the rows. Terminal-Bench 2 is Harbor (`harbor.py`).

A candidate is an agent with its model, as named in the setup. If no model is named, the job's
folder is used instead, because agents with different models would otherwise be one candidate. A
trial without a verdict (because the tests timed out or their output was unreadable) counts as not
resolved, as in Terminal-Bench's accuracy.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from assay.plugins import (
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
    as_count,
    as_list,
    as_messages,
    as_object,
    as_text,
    explained_share,
    folder_name,
    folder_path,
    foreign_names,
    from_text,
    lies_beneath,
    parent_folder,
    pick,
    read_object,
    seconds_between,
    to_text,
)

NAME: Final = "terminal_bench"

_NAMES: Final = foreign_names(__name__)
_TRIAL: Final[Shape] = dict.fromkeys(_NAMES["trial"])
_JOB: Final[Shape] = {"results": _TRIAL, **dict.fromkeys(_NAMES["job"])}
_SET_UP: Final = _NAMES["set_up"]
_ATTEMPT: Final = re.compile(r"\.(\d+)-of-\d+\.(.+)$")
_NO_MODE: Final = (None, "unset", "none")


class _Trial(NamedTuple):
    row: JsonObject
    where: str


def recognise(sample: FileSample) -> float | None:
    """Recognise results of jobs and trials, and setup files of jobs."""
    kind = _kind(sample)
    shape = {"trial": _TRIAL, "job": _JOB}.get(kind or "")
    if shape is not None:
        return explained_share(sample.document, shape)
    return None if kind is None else 1.0


def companions(source: InputFile, others: Sequence[InputFile]) -> Collection[InputFile]:
    """Return the setup and trial results of a job; if the job's results are missing, of the first
    trial's job.
    """
    kind = _kind(source.sample)
    if kind not in ("job", "trial"):
        return ()
    job = _job_folder(source, kind)
    mine = []
    for other in others:
        other_kind = _kind(other.sample)
        if (
            other_kind is None
            or not lies_beneath(folder_path(other), job)
            or _job_folder(other, other_kind) != job
        ):
            continue
        if other_kind == "job" and kind == "trial":
            return ()
        if other_kind != "job":
            mine.append(other)
    return mine


def artifact_folders(source: InputFile, companions: Sequence[InputFile]) -> Collection[str]:
    """Return the job's folder, in which every trial leaves recordings and logs."""
    kind = _kind(source.sample)
    return (_job_folder(source, kind),) if kind is not None and companions else ()


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run for the job, with a response and a verdict for each trial."""
    by_kind: dict[str | None, list[InputFile]] = {}
    for file in (source, *options.beside.get("companions", ())):
        by_kind.setdefault(_kind(file.sample), []).append(file)
    trials, extra = _trials(by_kind.get("job", []), by_kind.get("trial", []))
    if not trials:
        yield Skipped(
            where=source.name,
            why="belongs to a Terminal-Bench job whose results are missing; import the whole job folder.",
        )
        return
    set_up: JsonObject = next((read_object(file) for file in by_kind.get("metadata", ())), {})
    lock: JsonObject = next((read_object(file) for file in by_kind.get("lock", ())), {})
    job = _job_folder(source, _kind(source.sample) or "job")
    name, model, name_from = _candidate(set_up, lock, _job_name(source, job, trials))
    yield FoundRun(
        suite=options.dataset
        or as_text(set_up.get("dataset_name"))
        or _dataset(lock)
        or "terminal-bench",
        format=NAME,
        candidates=(
            FoundCandidate(
                name=options.candidate or name, model=model, metadata=options.model_info
            ),
        ),
        started=from_text(set_up.get("start_time")) or _first_start(trials),
        finished=from_text(set_up.get("end_time")),
        complete="job" in by_kind and set_up.get("end_time", "") is not None,
        provenance={
            "candidate_from": "option" if options.candidate else name_from,
            **pick(set_up, _SET_UP),
            **pick(lock, ("harness", "run_config")),
        },
    )
    if options.candidate is None and name_from != "set-up":
        what = f"no file states the agent and its model; candidate {name!r} is named after {name_from}; `--candidate` renames it."
        yield Noted(where=source.name, what=what)
    if "job" not in by_kind:
        what = "the job's own `results.json` is not among the files; the run has only the trials in the files."
        yield Noted(where=source.name, what=what)
    elif extra:
        what = f"{extra:,} trials have a file of their own but no row in the job's results; Assay imports them too."
        yield Noted(where=source.name, what=what)
    yield from _records(source, trials, options.candidate or name)


def _kind(sample: FileSample) -> str | None:
    head = sample.head
    if sample.rows and b"\n" in head.strip():
        return None
    if b'"is_resolved"' in head:
        document = as_object(sample.document)
        if "is_resolved" in document:
            return "trial" if "task_id" in document else None
        rows = [as_object(row) for row in as_list(document.get("results"))[:50]]
        return (
            "job"
            if rows and all("task_id" in row and "is_resolved" in row for row in rows)
            else None
        )
    if b'"agent_name"' in head and b'"n_concurrent_trials"' in head and b'"run_id"' in head:
        return "metadata" if "agent_name" in as_object(sample.document) else None
    if b'"lockfile_version"' in head and b"terminal-bench" in head:
        return "lock" if "agent" in as_object(sample.document) else None
    return None


def _job_folder(source: InputFile, kind: str) -> str:
    folder = folder_path(source)
    return parent_folder(parent_folder(folder)) if kind == "trial" else folder


def _trials(jobs: Sequence[InputFile], files: Sequence[InputFile]) -> tuple[list[_Trial], int]:
    trials = [
        _Trial(as_object(row), f"{job.name}#{number}")
        for job in jobs
        for number, row in enumerate(as_list(read_object(job).get("results")), 1)
    ]
    known = {as_text(trial.row.get("trial_name")) for trial in trials}
    own = [_Trial(read_object(file), file.name) for file in files]
    extra = [trial for trial in own if as_text(trial.row.get("trial_name")) not in known]
    return trials + extra, len(extra)


def _candidate(set_up: JsonObject, lock: JsonObject, folder: str) -> tuple[str, str | None, str]:
    locked = as_object(lock.get("agent"))
    agent = as_text(set_up.get("agent_name")) or as_text(locked.get("name"))
    model = (
        as_text(set_up.get("model_name"))
        or as_text(as_object(set_up.get("agent_kwargs")).get("model_name"))
        or as_text(locked.get("model_name"))
    )
    if agent is None:
        return folder, model, "the folder"
    return (
        (f"{agent} ({folder})", None, "the agent and the folder")
        if model is None
        else (f"{agent} ({model})", model, "set-up")
    )


def _job_name(source: InputFile, job: str, trials: Sequence[_Trial]) -> str:
    """Return the job's folder name, with the file's name unless it is `results`, because several
    jobs may share a folder.
    """
    own_name = "" if source.stem == "results" else source.stem
    return "/".join(filter(None, (folder_name(job), own_name))) or _run_id(trials) or source.stem


def _dataset(lock: JsonObject) -> str | None:
    return as_text(as_object(lock.get("dataset")).get("name"))


def _run_id(trials: Sequence[_Trial]) -> str | None:
    match = _ATTEMPT.search(as_text(trials[0].row.get("trial_name")) or "")
    return None if match is None else match[2]


def _first_start(trials: Sequence[_Trial]) -> str | None:
    starts = [
        start
        for trial in trials
        if (start := from_text(trial.row.get("trial_started_at"))) is not None
    ]
    return min(starts, default=None)


def _records(source: InputFile, trials: Sequence[_Trial], candidate: str) -> Iterator[Found]:
    taken: dict[str, set[int]] = {}
    without_verdict: Counter[str] = Counter()
    for row, where in trials:
        task = as_text(row.get("task_id"))
        resolved = row.get("is_resolved")
        if task is None:
            yield Skipped(where=where, why="has no task.")
            continue
        if not isinstance(resolved, bool) and resolved is not None:
            yield Skipped(
                where=where, why="has an `is_resolved` that is neither true, false nor null."
            )
            continue
        if task not in taken:
            taken[task] = set()
            yield FoundTask(id=task, prompt=as_messages(as_text(row.get("instruction"))))
        number = _trial_number(row, taken[task])
        taken[task].add(number)
        mode = as_text(row.get("failure_mode"))
        yield FoundResponse(
            task=task,
            candidate=candidate,
            trial=number,
            where=where,
            content="",  # the agent's work was the state of a container that no longer exists
            finish_reason=None if mode in _NO_MODE else mode,
            input_tokens=as_count(row.get("total_input_tokens")),
            output_tokens=as_count(row.get("total_output_tokens")),
            latency_s=seconds_between(row.get("agent_started_at"), row.get("agent_ended_at")),
            started=from_text(row.get("trial_started_at")),
            # A job read without its set-up gets a different candidate and suite, but the same
            # trials.
            identity=None
            if (trial_id := as_text(row.get("id"))) is None
            else f"terminal-bench trial {trial_id}",
        )
        reason = _tests(row)
        if resolved is None:
            without_verdict[mode or "no reason"] += 1
            reason = (
                f"no verdict ({mode or 'no reason'}), which Terminal-Bench counts as not resolved"
            )
        grade = FoundGrade(candidate=candidate, score=float(resolved or False), reason=reason)
        yield FoundAssessment(
            task=task,
            trial=number,
            judge="Terminal-Bench",
            by=GradedBy.RULE,
            where=where,
            grades=(grade,),
        )
    if without_verdict:
        modes = ", ".join(f"{mode} {count:,}" for mode, count in without_verdict.most_common())
        what = (
            f"trials without a verdict: {without_verdict.total():,} of {len(trials):,} ({modes}). They count as not "
            "resolved, as in Terminal-Bench's own accuracy."
        )
        yield Noted(where=source.name, what=what)


def _trial_number(row: JsonObject, taken: Collection[int]) -> int:
    match = _ATTEMPT.search(as_text(row.get("trial_name")) or "")
    number = 0 if match is None else int(match[1][:6])
    if number < 1 or number in taken:
        number = next(free for free in range(1, len(taken) + 2) if free not in taken)
    return number


def _tests(row: JsonObject) -> str:
    results = as_object(row.get("parser_results"))
    failed = [name for name, result in results.items() if result != "passed"]
    names = ", ".join(map(to_text, failed[:20]))
    counts = f"{len(results) - len(failed)} of {len(results)} tests passed"
    return "" if not results else counts + (f"; not: {names}" if failed else "")
