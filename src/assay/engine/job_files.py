"""Write the request files of batch jobs and index the lines of their answer files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import BinaryIO

import orjson

from assay.domain.calls import ModelRequest, Role
from assay.domain.digest import text_digest
from assay.domain.identifiers import TrialKey
from assay.domain.jobs import STAGE_OF, JobRequest, JobStage, RequestKey, custom_id, number_of
from assay.domain.run import FirstRequests, PlannedTask, RunPlan
from assay.engine.conversation import candidate_request
from assay.engine.estimate import worst_case_tokens
from assay.ports import BatchApi, Jobs, ModelDirectory


class AnswerLines:
    """Index of the lines in a job's answer files, by request number; if a number occurs twice, the
    first line counts.
    """

    def __init__(self, token: str, paths: Iterable[Path]) -> None:
        self.unknown = self.repeated = self.broken = 0
        self._files: list[mmap] = []
        self._places: dict[int, tuple[mmap, int, int]] = {}
        for path in paths:
            with path.open("rb") as file:
                if not path.stat().st_size:
                    continue
                # Mapped and not read: 50,000 reads in another order took a third of the time of
                # collecting.
                mapped = mmap(file.fileno(), 0, access=ACCESS_READ)
                self._files.append(mapped)
                offset = 0
                for line in file:
                    self._note(token, mapped, offset, line)
                    offset += len(line)

    def __len__(self) -> int:
        return len(self._places)

    def _note(self, token: str, file: mmap, offset: int, line: bytes) -> None:
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError:
            self.broken += bool(line.strip())
            return
        number = number_of(row.get("custom_id"), token) if isinstance(row, dict) else None
        if number is None:
            self.unknown += 1
        elif number in self._places:
            self.repeated += 1
        else:
            self._places[number] = (file, offset, offset + len(line))

    def line(self, number: int) -> Mapping[str, object] | None:
        place = self._places.get(number)
        if place is None:
            return None
        file, start, end = place
        row: Mapping[str, object] = orjson.loads(file[start:end])
        return row

    @property
    def numbers(self) -> Collection[int]:
        return self._places.keys()

    def close(self) -> None:
        for file in self._files:
            file.close()


@dataclass(slots=True, kw_only=True)
class PlannedJob:
    key: int
    token: str
    api: BatchApi
    path: Path
    file: BinaryIO
    requests: int = 0
    size: int = 0
    taken: int = 0
    """Request numbers used so far, including those of requests that were not written."""


class Outbox:
    """Writes a run's new requests to job files, one file per model and stage.

    `name` returns a new job's token. `path` maps a token to the path of its file.
    """

    def __init__(
        self,
        jobs: Jobs,
        plan: RunPlan,
        *,
        name: Callable[[], str],
        path: Callable[[str], Path],
        most_requests: int | None = None,
    ) -> None:
        self._jobs = jobs
        self._plan = plan
        self._name = name
        self.path = path
        self._most = sys.maxsize if most_requests is None else most_requests
        self._open: dict[tuple[str, str | None, JobStage], PlannedJob] = {}
        self._lines: dict[RequestKey, bytes] = {}
        self.by_key: dict[int, PlannedJob] = {}

    def place(self, api: BatchApi, request: ModelRequest) -> RequestKey:
        """Return a new request's key; it is sent only if the caller stores it and passes the key to
        `write`.
        """
        model, stage = request.model, STAGE_OF[request.purpose.role]
        job = self._open.get((model.ref, model.base_url, stage))
        while True:
            if job is None:
                job = self._open[model.ref, model.base_url, stage] = self._begin(
                    api, request, stage
                )
            key = RequestKey(job.key, job.taken + 1)
            line = api.line(custom_id(job.token, key.number), request)
            if job.taken == 0 or (
                job.taken < min(api.most_requests, self._most)
                and job.size + len(line) < api.most_bytes
            ):
                break
            job = None
        job.taken += 1
        job.size += len(line) + 1
        self._lines[key] = line
        return key

    def write(self, keys: Iterable[RequestKey]) -> None:
        for key in keys:
            job = self.by_key[key.job]
            job.file.write(self._lines[key] + b"\n")
            job.requests += 1
        self._lines.clear()

    def discard(self) -> None:
        for job in self.by_key.values():
            job.file.close()
            job.path.unlink(missing_ok=True)

    def close(self) -> tuple[PlannedJob, ...]:
        """Complete the files and return their jobs, oldest first."""
        for job in self.by_key.values():
            job.file.flush()
            os.fsync(job.file.fileno())
            job.file.close()
            self._jobs.note(job.key, requests=job.requests)
        return tuple(self.by_key.values())

    def _begin(self, api: BatchApi, request: ModelRequest, stage: JobStage) -> PlannedJob:
        token = self._name()
        path = self.path(token)
        path.parent.mkdir(parents=True, exist_ok=True)
        key = self._jobs.plan(
            self._plan.id,
            token=token,
            stage=stage,
            place=api.place,
            model=request.model.ref,
            base_url=request.model.base_url,
            habits=api.habits(request.model),
        )
        file = path.open("wb")
        job = self.by_key[key] = PlannedJob(key=key, token=token, api=api, path=path, file=file)
        return job


def first_requests(
    plan: RunPlan, jobs: Jobs, directory: ModelDirectory, outbox: Outbox
) -> FirstRequests | None:
    """Return a function that writes the first requests of new trials to jobs; None if trials may
    start differently.

    It creates the same requests as `carry_out`, but saves the claim, the reading of tasks and the
    commits.
    """
    apis = {c.name: directory.batches(c.model) for c in plan.candidates if c.model is not None}
    if plan.regrade_of is not None or plan.budget_usd is not None or None in apis.values():
        return None

    def place(planned: PlannedTask, k: int, trial: TrialKey) -> Sequence[JobRequest]:
        claimed, asked = planned.trial(plan.id, k), []
        for candidate in plan.candidates:
            api = apis.get(candidate.name)
            if (
                api is None
                or candidate.model is None
                or planned.task.snippet_of(candidate.name) is not None
            ):
                continue
            request = candidate_request(plan, claimed, candidate, candidate.model)
            key, usd = (
                outbox.place(api, request),
                (worst_usd(directory, request) or 0.0) * api.share,
            )
            digest = slot_digest(jobs.digest(request), request)
            asked.append(
                JobRequest(
                    key=key, trial=trial, role=Role.CANDIDATE, digest=digest, visit=0, usd=usd
                )
            )
        # the file is sent only after the trials are committed
        outbox.write(request.key for request in asked)
        return asked

    return place


def slot_digest(digest: str, request: ModelRequest) -> str:
    """Return the digest that identifies a request in jobs; it differs between graders and
    candidates with equal requests.
    """
    purpose = request.purpose
    if purpose.role is Role.STRUCTURER:  # shared by all who need it
        return digest
    return text_digest(
        f"{digest}\x1f{purpose.candidate}\x1f{purpose.judge}\x1f{sorted(purpose.labels.items())}"
    )


def worst_usd(directory: ModelDirectory, request: ModelRequest) -> float | None:
    asked, answered = worst_case_tokens(request)
    return directory.cost_usd(request.model, input_tokens=asked, output_tokens=answered)
