"""Jobs: requests sent together to a provider's batch API, which outlive the process that sent
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from assay.domain.calls import Role
from assay.domain.failure import Failure
from assay.domain.identifiers import RunId, TrialKey


class JobStage(StrEnum):
    """Stage of a run to which a job's requests belong."""

    ANSWERS = "answers"
    STRUCTURING = "structuring"
    JUDGING = "judging"


FILE: Final = "file"
"""Value of `place` and `status` for a batch job whose files a person uploads and downloads."""

STAGE_OF: Final = {
    Role.CANDIDATE: JobStage.ANSWERS,
    Role.USER: JobStage.ANSWERS,
    Role.STRUCTURER: JobStage.STRUCTURING,
    Role.JUDGE: JobStage.JUDGING,
}


class JobState(StrEnum):
    """State of a job.

    `PLANNED`: the job's file is being written or uploaded, and no batch exists yet. `CREATING`: the
    batch may exist, so Assay asks the provider before it creates one. `SENT`: the batch is at the
    provider. `COLLECTED`: every answer is stored.
    """

    PLANNED = "planned"
    CREATING = "creating"
    SENT = "sent"
    COLLECTED = "collected"


class RequestState(StrEnum):
    """State of a request in a job.

    `SENT`: no answer is stored yet. `READ`: the answer is stored. `VOID`: no answer will arrive.
    `GIVEN_UP`: the request failed and will not be sent again.
    """

    SENT = "sent"
    READ = "read"
    GIVEN_UP = "given_up"
    VOID = "void"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJob:
    """A batch of requests at a provider.

    Attributes:
        token: the job's name, which Assay chose; part of each `custom_id`, of the file's name and
            of the batch's metadata.
        place: host of the provider, or `file` if people transfer its files by hand.
        habits: request format options, in the form that the provider's `BatchApi` reads.
        status: the provider's own name for the state.
        created, sent, ended: ISO 8601 times; `ended` is the time when Assay saw that the provider
            had finished.
    """

    key: int
    run: RunId
    token: str
    stage: JobStage
    place: str
    model: str
    base_url: str | None
    habits: str
    state: JobState
    requests: int
    answered: int = 0
    input_file: str | None = None
    remote_id: str | None = None
    status: str | None = None
    detail: str | None = None
    created: str = ""
    sent: str | None = None
    ended: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatus:
    """Batch status, as reported by the provider.

    Attributes:
        status: the provider's own name for the state.
        ended: True if no further answers will arrive.
        failure: why the provider refused the whole batch before processing it; None if it did not
            refuse.
        again: True if the provider may accept the same batch later.
        finished: True if every request was processed, so a request without a result line was lost.
        done: number of requests with an answer or an error so far; None if unknown.
        files: names of the files with answers and errors.
    """

    status: str
    ended: bool = False
    failure: Failure | None = None
    again: bool = False
    finished: bool = False
    done: int | None = None
    files: tuple[str, ...] = ()


class RequestKey(NamedTuple):
    """Key of a request: the job, and the request's number in the job."""

    job: int
    number: int


@dataclass(slots=True, kw_only=True)
class JobRequest:
    """A request in a job; `shares` is the number of an identical request whose answer is reused for
    this one.
    """

    key: RequestKey
    trial: TrialKey
    role: Role
    digest: str
    visit: int
    state: RequestState = RequestState.SENT
    usd: float = 0.0
    shares: int | None = None
    failure: Failure | None = None
    unread: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAnswer:
    """The job request that a stored call answers; `given_up` is True if it failed and will not be
    sent again.
    """

    key: RequestKey
    digest: str
    given_up: bool = False
    unread: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedTrial:
    """A claimed trial that now waits for jobs, with the new requests; `open` is True if earlier
    requests are unanswered.
    """

    trial: TrialKey
    requests: tuple[JobRequest, ...] = ()
    open: bool = False


def custom_id(token: str, number: int) -> str:
    """Return a request's id at the provider, in a form that all batch APIs accept."""
    return f"{token}-{number}"


def number_of(custom_id: object, token: str) -> int | None:
    """Return the request number in an id; None if the id belongs to another job."""
    if not isinstance(custom_id, str):
        return None
    name, _, number = custom_id.rpartition("-")
    return int(number) if name == token and number.isascii() and number.isdecimal() else None
