"""Send a webhook notice when a run ends or items await review, without delaying the run.

A notice contains the run, its progress and an address, but never a response, a candidate's or
judge's name, or a score. Assay sends it directly to the address in the settings, without redirects
or proxies. With `local_only`, an address on another machine is refused before the run starts. A
notice that cannot be delivered causes a warning.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import queue
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from assay.domain.digest import digest
from assay.domain.errors import AssayError, SettingsError
from assay.domain.events import TrialEnded
from assay.domain.lifecycle import TO_COME, AssessmentState, Policy, RunState, TrialState
from assay.domain.selection import Selection
from assay.domain.unescaped_json import unescaped_json
from assay.providers.origin import is_local

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.app.settings import Settings
    from assay.domain.events import Event, Listener
    from assay.domain.run import RunPlan
    from assay.domain.selection import RunSummary
    from assay.ports import Clock
    from assay.store.queries.archive import Archive

FINISHED, FAILED, WAITS = "run_finished", "run_failed", "reviews_wait"

SIGNATURE: Final = "X-Assay-Signature-256"
"""Header with `sha256=` and the HMAC of the body under the secret, in hexadecimal."""

TIMEOUT_S: Final = 3.0
WAITS_S: Final = (0.5, 1.5)
"""Seconds before the second and third attempt."""

PATIENCE_S: Final = 12.0
"""Maximum seconds that a process waits at its end for undelivered notices."""

_LOOK_EVERY_S: Final = 1.0
_MAX_WAITING: Final = 1000
_OVER: Final = frozenset({RunState.FINISHED, RunState.CANCELLED})
_log = logging.getLogger("assay")


def check_webhook(settings: Settings) -> None:
    """Raise `SettingsError` for an invalid webhook address, or one that `local_only` forbids."""
    url = settings.values["webhook"]
    if not url:
        return
    where = f"webhook ({settings.origins['webhook']})"
    try:
        parts = urlsplit(str(url))
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    odd = any(not c.isprintable() or c.isspace() for c in str(url))
    if host is None or parts.scheme not in {"http", "https"} or odd:
        raise SettingsError(
            where, "is not a valid address.", remedy="Write https://host/path, or leave it out."
        )
    if settings.values["local_only"] and not is_local(host):
        problem = f"sends notices to {host}, but local_only allows only this machine and network, so no notice was sent."
        remedy = "Use a local address, leave the webhook out, or set local_only: false."
        raise SettingsError(where, problem, remedy=remedy)


def without_secrets(url: str) -> str:
    """Return only the host and port of a webhook address, because its path and query often contain
    a key.
    """
    try:
        parts = urlsplit(url)
        place = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "***"
    rest = parts.path.strip("/") or parts.query or parts.fragment or parts.netloc != place
    return f"{parts.scheme}://{place}/***" if rest else f"{parts.scheme}://{place}"


class WebhookSource(Protocol):
    """Attributes of a workspace that webhooks need."""

    settings: Settings
    clock: Clock

    @property
    def archive(self) -> Archive: ...


class Notices:
    """Sends the webhook notices of one workspace; `base` is the address of its server, if it is
    running. Thread-safe.
    """

    def __init__(self, workspace: WebhookSource) -> None:
        values = workspace.settings.values
        self._workspace = workspace
        self._url = str(values["webhook"]) if values["webhook"] else None
        # the host name must resolve to this machine or network
        self._pinned = bool(values["local_only"])
        self._secret = str(values["webhook_secret"]).encode() if values["webhook_secret"] else None
        self._waiting: queue.Queue[Callable[[], None] | None] = queue.Queue(_MAX_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.base: str | None = None

    def watch(
        self, plan: RunPlan, before: RunSummary, listener: Listener
    ) -> tuple[Listener, Watch]:
        """Return a listener that also reports the first pending item, and a `Watch` that reports
        the end of the run.
        """
        watching = Watch(self, plan, before)
        if self._url is None:
            return listener, watching

        def both(event: Event) -> None:
            listener(event)
            watching.hear(event)

        return both, watching

    def tell(self, event: str, summary: RunSummary) -> None:
        """Send a notice about an event from another thread."""
        if self._url is None:
            return
        document = self._document(event, summary)
        self._soon(lambda: self._send(document))

    def begun_to_wait(self, plan: RunPlan, told: threading.Event) -> None:
        """Check in another thread whether items of a run are pending, and send a notice the first
        time.
        """
        self._soon(lambda: self._look(plan, told))

    def close(self) -> None:
        """Wait up to `PATIENCE_S` seconds until all notices are sent."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is None:
            return
        try:
            self._waiting.put(None, timeout=PATIENCE_S)
        except queue.Full:
            return
        thread.join(PATIENCE_S)
        if thread.is_alive():
            _log.warning("undelivered notices were dropped: %s did not answer in time", self._place)

    @property
    def _place(self) -> str:
        return urlsplit(self._url or "").netloc.rpartition("@")[2]

    def _soon(self, what: Callable[[], None]) -> None:
        if self._url is None:
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="assay-notices", daemon=True
                )
                self._thread.start()
        try:
            self._waiting.put_nowait(what)
        except queue.Full:
            _log.warning("a notice was dropped: too many are waiting for %s", self._place)

    def _work(self) -> None:
        while (what := self._waiting.get()) is not None:
            try:
                what()
            except Exception as error:  # any error, because it must not stop the next notice
                _log.warning("a notice was not sent: %s: %s", type(error).__name__, error)

    def _look(self, plan: RunPlan, told: threading.Event) -> None:
        if told.is_set():
            return
        try:
            (summary,) = self._workspace.archive.runs.matching(Selection(runs=(plan.id,)))
        except AssayError:
            return  # the notice about the run's end includes it
        if summary.assessments.get(AssessmentState.PENDING, 0) and not told.is_set():
            told.set()
            self._send(self._document(WAITS, summary))

    def _document(self, event: str, summary: RunSummary) -> dict[str, Any]:
        waiting = summary.assessments.get(AssessmentState.PENDING, 0)
        trials = _counts(summary)
        address = None if self.base is None else f"{self.base}/runs/{summary.id}"
        ended = summary.finished or summary.started
        return {
            # The same in every attempt, so that a receiver can drop duplicates.
            "id": digest([event, summary.id, ended, trials["total"], waiting]),
            "event": event,
            "run_id": summary.id,
            "suite": summary.suite,
            "state": str(summary.state),
            "trials": dict(trials),
            "waiting": waiting,
            "address": address,
            "time": self._workspace.clock.now(),
            "text": _text(event, summary, trials, waiting, address),
        }

    def _send(self, document: dict[str, Any]) -> None:
        # A suite's name may contain a lone surrogate, which UTF-8 cannot encode.
        body = unescaped_json(document).encode("utf-8", "replace")
        headers = {"Content-Type": "application/json", "User-Agent": "assay"}
        if self._secret is not None:
            headers[SIGNATURE] = (
                f"sha256={hmac.new(self._secret, body, hashlib.sha256).hexdigest()}"
            )
        why = ""
        for wait in (*WAITS_S, None):
            again, why = asyncio.run(posted(self._url or "", body, headers, pinned=self._pinned))
            if not why:
                return
            if not again or wait is None:
                break
            time.sleep(wait)
        _log.warning(
            "the notice %s of run %s did not reach %s: %s",
            document["event"],
            document["run_id"],
            self._place,
            why,
        )


class Watch:
    """Watches one run and sends notices about its first pending item and its end."""

    def __init__(self, notices: Notices, plan: RunPlan, before: RunSummary) -> None:
        self._notices = notices
        self._plan = plan
        self._told = threading.Event()
        self._looked = float("-inf")
        self._may_wait = plan.policy is not Policy.NONE
        if before.assessments.get(AssessmentState.PENDING, 0):
            self._told.set()  # items were already pending

    def hear(self, event: Event) -> None:
        """Check for a pending item after a trial, but only from time to time because each check
        costs a query.
        """
        if (
            not isinstance(event, TrialEnded)
            or event.failure is not None
            or self._told.is_set()
            or not self._may_wait
        ):
            return
        now = time.monotonic()
        # Each check costs a query, and a fast run ends many trials per second.
        if now - self._looked >= _LOOK_EVERY_S:
            self._looked = now
            self._notices.begun_to_wait(self._plan, self._told)

    def ended(self, summary: RunSummary) -> None:
        """Send a notice if the run has ended, and another if there are pending items not yet
        reported in a notice.
        """
        if summary.assessments.get(AssessmentState.PENDING, 0) and not self._told.is_set():
            self._told.set()
            self._notices.tell(WAITS, summary)
        if summary.state in _OVER:
            counts = _counts(summary)
            self._notices.tell(
                FAILED if counts["failed"] and not counts["done"] else FINISHED, summary
            )

    def broke(self, summary: RunSummary) -> None:
        self._notices.tell(FAILED, summary)


def _counts(summary: RunSummary) -> dict[str, int]:
    """Return the numbers of all trials, completed trials (reviewed or not) and failed trials."""
    failed = summary.trials.get(TrialState.FAILED, 0)
    total = sum(summary.trials.values())
    open_ = sum(summary.trials.get(state, 0) for state in TO_COME)
    return {"total": total, "done": total - failed - open_, "failed": failed}


def _text(
    event: str, summary: RunSummary, trials: dict[str, int], waiting: int, address: str | None
) -> str:
    what = {FINISHED: f"is {summary.state}", FAILED: "failed", WAITS: "has pending reviews"}[event]
    parts = [f"{trials['done']} of {trials['total']} trials done"]
    parts += [f"{trials['failed']} failed"] if trials["failed"] else []
    parts += (
        [f"{waiting} {'assessment awaits' if waiting == 1 else 'assessments await'} review"]
        if waiting
        else []
    )
    message = f"Assay: run {summary.id} of {summary.suite} {what}: {', '.join(parts)}."
    message = (
        " ".join(message.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    )
    return f"{message} {address}" if address else message


async def posted(
    url: str, body: bytes, headers: dict[str, str], *, pinned: bool, timeout_s: float = TIMEOUT_S
) -> tuple[bool, str]:
    """Send a POST request once.

    Return (True if a retry makes sense, reason for the failure); the reason is empty on success.
    """
    import aiohttp  # only needed with a webhook

    from assay.providers.session import CheckedResolver

    timeout = aiohttp.ClientTimeout(total=timeout_s)
    try:
        connector = aiohttp.TCPConnector(resolver=CheckedResolver() if pinned else None)
        async with (
            aiohttp.ClientSession(
                connector=connector,
                timeout=timeout,
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            ) as session,
            session.post(url, data=body, headers=headers, allow_redirects=False) as answer,
        ):
            status = answer.status
    except TimeoutError:
        return True, f"no answer within {timeout_s:g} s"
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return True, f"{type(error).__name__}"
    if 200 <= status < 300:
        return False, ""
    if 300 <= status < 400:
        return False, f"it answered {status}, a redirect, which is not followed"
    # 408 and 429 invite another attempt; repeating after any other status below 500 would not help.
    return status >= 500 or status in {408, 429}, f"it answered {status}"
