"""Jobs: requests that wait together at a provider's batch API and outlive the process that sent them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from assay.domain.calls import Role

if TYPE_CHECKING:
    from assay.domain.failure import Failure
    from assay.domain.identifiers import RunId, TrialKey


class JobStage(StrEnum):
    """The part of a run for which a job asks."""

    ANSWERS = "answers"
    STRUCTURING = "structuring"
    JUDGING = "judging"


FILE: Final = "file"
"""Place and status of a job whose files people carry."""

STAGE_OF: Final = {
    Role.CANDIDATE: JobStage.ANSWERS,
    Role.USER: JobStage.ANSWERS,
    Role.STRUCTURER: JobStage.STRUCTURING,
    Role.JUDGE: JobStage.JUDGING,
}


class JobState(StrEnum):
    """The state of a job.

    `PLANNED`: its file is being written or uploaded, and no provider knows a batch of it. `CREATING`: the batch may exist at
    the provider, where it is looked up before it is created again. `SENT`: it waits at the provider. `COLLECTED`: each answer
    is stored.
    """

    PLANNED = "planned"
    CREATING = "creating"
    SENT = "sent"
    COLLECTED = "collected"


class RequestState(StrEnum):
    """The state of a request in a job: `SENT` until its answer is stored (`READ`), or known never to have come (`VOID`).

    `GIVEN_UP`: the answer failed, and it is not asked for again.
    """

    SENT = "sent"
    READ = "read"
    GIVEN_UP = "given_up"
    VOID = "void"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJob:
    """A batch at a provider.

    Attributes:
        token: the name that Assay gave it; part of each `custom_id`, of the file's name and of the batch's metadata.
        place: host of the provider, or `file` if people carry its files.
        habits: the form in which its requests were written, as its provider's `BatchApi` reads it.
        status: the provider's own word for its state.
        created, sent, ended: times as ISO 8601; `ended` when the provider was seen to be done.
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
    """The state of a batch at its provider.

    Attributes:
        status: the provider's own word.
        ended: True if no further answer will come.
        failure: why the provider refused the whole batch, so that nothing was asked; None if it did not.
        again: True if the same batch may be accepted later.
        finished: True if each request was carried out, so that one without a line was lost.
        done: requests with an answer or an error so far; None if the provider does not say.
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
    """The key of a request: its job and its number in the job."""

    job: int
    number: int


@dataclass(slots=True, kw_only=True)
class JobRequest:
    """A request in a job; `shares` is the number of an equal request of another trial whose answer serves this one."""

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
    """The request in a job to which a call was the answer; `given_up` if it failed and is not asked for again."""

    key: RequestKey
    digest: str
    given_up: bool = False
    unread: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedTrial:
    """A claimed trial that waits from now on: its new requests in planned jobs, and `open` if older ones are unanswered."""

    trial: TrialKey
    requests: tuple[JobRequest, ...] = ()
    open: bool = False


def custom_id(token: str, number: int) -> str:
    """Return the id of a request at the provider, which all batch APIs allow."""
    return f"{token}-{number}"


def number_of(custom_id: object, token: str) -> int | None:
    """Return the number of a request by its id; None if the id is not one of this job."""
    if not isinstance(custom_id, str):
        return None
    name, _, number = custom_id.rpartition("-")
    return int(number) if name == token and number.isascii() and number.isdecimal() else None
