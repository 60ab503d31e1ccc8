"""Calibrations started on a page, which a thread of this process executes one after another.

If a calibration or the server is stopped, every paid answer is kept, and the same calibration
continues from there.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.app.calibration import measure, records
from assay.app.runs import stopper as stopper_
from assay.domain.errors import AssayError, Interrupted, Refused, UnknownName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.app.calibration.records import Wanted
    from assay.app.workspace import Workspace

MAX_WAITING: Final = 20
_REMEMBERED: Final = 100
_PATIENCE_S: Final = 10.0
_log = logging.getLogger("assay")

GOES_ON: Final = frozenset({"waiting", "measuring"})


@dataclass(slots=True)
class Job:
    """One calibration: `done` out of `of` answers have arrived.

    `state`: waiting, measuring, done, stopped or failed.
    """

    id: str
    wanted: Wanted
    stopper: stopper_.Stopper
    state: str = "waiting"
    done: int = 0
    of: int = 0
    taken_over: int = 0
    number: int | None = None
    tier: str | None = None
    lost: int = 0
    problem: str = ""


class Measuring:
    """The queue of this process's calibrations. Thread-safe."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = threading.Lock()  # protects everything below
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._worker: threading.Thread | None = None
        self._stopped = False

    def jobs(self) -> tuple[Job, ...]:
        with self._lock:
            return tuple(reversed(self._jobs.values()))

    def begin(self, key: str, wanted: Sequence[Wanted]) -> tuple[Job, ...]:
        """Measure these judges, one after the other.

        A repeated key returns the jobs that it started before.
        """
        with self._lock:
            known = tuple(job for name, job in self._jobs.items() if name.rpartition("/")[0] == key)
            if known:
                return known
            if self._stopped:
                raise Refused("calibrate", "cannot start: the server is stopping.")
            if sum(job.state in GOES_ON for job in self._jobs.values()) + len(wanted) > MAX_WAITING:
                problem = f"may have at most {MAX_WAITING} judges waiting."
                raise Refused("calibrate", problem, remedy="Wait until some of them are done.")
            made = [
                Job(id=f"{key}/{place}", wanted=request, stopper=stopper_.Stopper())
                for place, request in enumerate(wanted)
            ]
            self._jobs.update((job.id, job) for job in made)
            while len(self._jobs) > _REMEMBERED:
                self._jobs.popitem(last=False)
            if self._worker is None:
                self._worker = threading.Thread(
                    target=self._work, name="assay-calibrate", daemon=True
                )
                self._worker.start()
            return tuple(made)

    def stop(self, job_id: str) -> Job:
        """Stop a calibration; raises `UnknownName` if no calibration has this id."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None:
                raise UnknownName("calibration under way", job_id)
            if job.state == "waiting":
                job.state = "stopped"
        job.stopper.stop()
        return job

    def close(self) -> None:
        """Stop all calibrations and wait until the current one has ended."""
        with self._lock:
            self._stopped = True
            worker, jobs = self._worker, list(self._jobs.values())
            for job in jobs:
                if job.state == "waiting":
                    job.state = "stopped"
        for job in jobs:
            job.stopper.stop()
        if worker is not None:
            worker.join(_PATIENCE_S)

    def _work(self) -> None:
        while True:
            with self._lock:
                job = next(
                    (
                        candidate
                        for candidate in self._jobs.values()
                        if candidate.state == "waiting"
                    ),
                    None,
                )
                if job is None:
                    # Under the lock, so that `begin` either sees that no thread runs, or this
                    # thread sees the new job.
                    self._worker = None
                    return
                job.state = "measuring"
            self._measure(job)

    def _measure(self, job: Job) -> None:
        def answered(done: int, of: int) -> None:
            job.done, job.of = done, max(of, done)

        beside = self._workspace.beside()
        try:
            calibrated = measure.calibrate(
                beside,
                job.wanted.model,
                records.request_of(beside.settings, job.wanted),
                stopper=job.stopper,
                answered=answered,
            )
        except Interrupted:
            job.state, job.problem = "stopped", ""
        except AssayError as error:
            job.state, job.problem = "failed", str(error)
        except Exception:
            _log.exception("calibration of %s failed", job.wanted.model)
            job.state, job.problem = (
                "failed",
                "It failed because of an internal error; see the server's log.",
            )
        else:
            records.forget_pasted(beside.settings, job.wanted)
            job.number, job.tier = calibrated.record.number, calibrated.trust.tier.words
            job.taken_over, job.lost = calibrated.taken_over, len(calibrated.failures)
            job.state = "done"
