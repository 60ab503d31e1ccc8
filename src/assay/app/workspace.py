"""Workspace: a folder's settings, with a store and model providers that are opened on first use."""

from __future__ import annotations

import asyncio
import os
import pwd
import secrets
import time
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from assay.app.settings import Settings, read_settings
from assay.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from assay.agents.kept import KeptWorkspaces
    from assay.agents.workspaces import Workspaces
    from assay.app.results_folder import ProjectingDecisions, Projector
    from assay.app.webhooks import Notices
    from assay.domain.programs import Agent
    from assay.domain.review import ReviewEvent
    from assay.domain.scenarios import Scenario
    from assay.ports import Clock, ModelGate, Pages, Provider, Workers
    from assay.providers.directory import Directory
    from assay.sandbox.shells.commands import SandboxedCommands
    from assay.store.calibrations import StoreCalibrations
    from assay.store.execution.jobs import StoreJobs
    from assay.store.execution.journal import StoreJournal
    from assay.store.opening import Store
    from assay.store.queries.archive import Archive
    from assay.store.queries.event_log import StoreEventLog
    from assay.store.queries.registry import StoreRegister
    from assay.store.review.control_items import StoreControlItems
    from assay.store.review.leases import StoreLeases
    from assay.store.review.observations import StoreObservations
    from assay.store.review.votes import StoreArena

    AfterDecisions = Callable[["Workspace", Sequence[ReviewEvent]], None]


class SystemClock:
    """The machine's clock; implements `ports.Clock`."""

    def now(self) -> str:
        return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float, /) -> None:
        await asyncio.sleep(seconds)


NO_CHROMIUM = (
    "no Chromium was found on this machine; install it, or set `chromium`, and see `assay doctor`"
)


def browser_of(settings: Settings) -> str | None:
    """Return the path of the browser in the settings, otherwise of an installed Chromium; None
    without a browser.
    """
    from assay.sandbox.pages import found_chromium

    named = settings.values["chromium"]
    return found_chromium(str(named) if named else None)


def browser_notes(settings: Settings) -> tuple[str, ...]:
    from assay.sandbox.pages import has_own_sandbox

    if browser_of(settings) is None or has_own_sandbox():
        return ()
    return (
        "Chromium shows the pages without its own sandbox, because Assay runs as root; run Assay as another user.",
    )


class Workspace:
    """A folder with its settings, and its store and providers, which are opened on first use.

    Use it in a `with` block.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        folder: Path,
        clock: Clock | None = None,
        read_only: bool = False,
        after_decisions: AfterDecisions | None = None,
    ) -> None:
        self.read_only = read_only
        self.settings = settings
        self.folder = folder
        self.clock: Clock = clock or SystemClock()
        # The command line that opened the workspace, without secrets; None in Python and on the
        # server.
        self.command: str | None = None
        self._after_decisions = after_decisions
        self._borrowed = False
        self._for_web = False

    @classmethod
    def open(
        cls,
        folder: Path | None = None,
        *,
        options: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        read_only: bool = False,
        after_decisions: AfterDecisions | None = None,
    ) -> Self:
        """Open a folder's workspace; `options` override settings.

        With `read_only`, store and results stay unchanged. `after_decisions` is called with
        decisions that were stored; `opening.open_workspace` passes the function that mints.
        """
        place = folder or Path.cwd()
        settings = read_settings(place, environment=environment, options=options)
        return cls(
            settings,
            folder=place,
            clock=clock,
            read_only=read_only,
            after_decisions=after_decisions,
        )

    @cached_property
    def store(self) -> Store:
        """The store, opened on first use and upgraded to the current schema if needed."""
        # SQLAlchemy costs a tenth of a second; help does not need it
        from assay.store.opening import open_store

        return open_store(self.settings.store_url, clock=self.clock, read_only=self.read_only)

    @property
    def journal(self) -> StoreJournal:
        return self.store.journal

    @cached_property
    def decisions(self) -> ProjectingDecisions:
        """Review decisions in the store.

        Each new decision is queued for the results folder and passed to `after_decisions`.
        """
        from assay.app.results_folder import ProjectingDecisions

        return ProjectingDecisions(self.store.decisions, self.results, self._follow_up)

    def _follow_up(self, events: Sequence[ReviewEvent]) -> None:
        if self._after_decisions is not None:
            self._after_decisions(self, events)

    @cached_property
    def results(self) -> Projector:
        """Updater of the results folder; has no effect with the setting `results: off`."""
        from assay.app.results_folder import Projector, folder_of

        folder = folder_of(self.settings.values["results"], self.settings.folder)
        return Projector(self, None if self.read_only else folder)

    @cached_property
    def notices(self) -> Notices:
        """Sender of webhook notices; has no effect without a webhook address in the settings."""
        from assay.app.webhooks import Notices

        return Notices(self)

    @property
    def jobs(self) -> StoreJobs:
        return self.store.jobs

    @property
    def archive(self) -> Archive:
        return self.store.archive

    @cached_property
    def store_id(self) -> str:
        """Unique id of the store.

        It does not depend on the address, and a copy of the store has the same id.
        """
        return self.store.identity()

    @property
    def leases(self) -> StoreLeases:
        return self.store.leases

    @property
    def observations(self) -> StoreObservations:
        return self.store.observations

    @property
    def control_items(self) -> StoreControlItems:
        return self.store.control_items

    @property
    def register(self) -> StoreRegister:
        return self.store.register

    @property
    def event_log(self) -> StoreEventLog:
        return self.store.event_log

    @property
    def arena(self) -> StoreArena:
        return self.store.arena

    @property
    def calibrations(self) -> StoreCalibrations:
        return self.store.calibrations

    @cached_property
    def directory(self) -> Directory:
        """Model providers, created on first use."""
        # only commands that call models need this
        from assay.app.address_rules import address_rules
        from assay.providers.directory import Directory

        return Directory(
            self.settings.environment,
            base_folder=self.folder,
            read_from=self.settings.read_from,
            local_only=bool(self.settings.values["local_only"]),
            rules=address_rules(self.settings, web=self._for_web),
            agent=self._own_agent,
        )

    @cached_property
    def workspaces(self) -> Workspaces:
        from assay.agents.workspaces import Workspaces  # most runs have no agent

        def gate(provider: str, scenario: Scenario) -> ModelGate:
            from assay.app.model_prices import priced

            return self.directory.gate(
                provider,
                network=scenario.network,
                limits=scenario.limits,
                priced=lambda model: priced(self.settings, model),
            )

        return Workspaces(
            choose=self.commands.choose, base=self.folder, kept=self.kept_workspaces, gate=gate
        )

    @cached_property
    def kept_workspaces(self) -> KeptWorkspaces:
        """Workspaces of the newest agents' trials."""
        from assay.agents.kept import KeptWorkspaces  # most runs have no agent

        most = float(self.settings.values["kept_workspaces_gb"])
        return KeptWorkspaces(
            self.settings.folder / ".assay" / "workspaces", most_bytes=int(most * 10**9)
        )

    def _own_agent(self, program: Agent) -> Provider | None:
        from assay.agents.opening import open_agent

        return open_agent(program, self.workspaces, self.folder)

    @cached_property
    def workers(self) -> Workers:
        """Child processes for scorers that run isolated; the first such scorer starts them."""
        from assay.sandbox.workers import WorkerPool  # most runs need none

        return WorkerPool()

    @cached_property
    def commands(self) -> SandboxedCommands:
        from assay.sandbox.shells.commands import SandboxedCommands  # most runs need none

        return SandboxedCommands(self.settings.values["sandbox"])

    @cached_property
    def pages(self) -> Pages:
        """Browser that renders pages for judges.

        Without an installed browser, each page fails with a message.
        """
        from assay.sandbox.pages import ChromiumPages  # most runs need none

        named = self.settings.values["chromium"]
        missing = (
            f"there is no browser at {named} (the setting `chromium`)" if named else NO_CHROMIUM
        )
        return ChromiumPages(browser_of(self.settings), missing=missing)

    @property
    def reviewer(self) -> str:
        """Name under which decisions are recorded by default: the setting `reviewer`, otherwise the
        login name.
        """
        return str(self.settings.values["reviewer"] or self.login)

    @cached_property
    def login(self) -> str:
        """Name of the operating system's user.

        Unlike `reviewer`, no environment and no settings file changes it.
        """
        try:
            return pwd.getpwuid(os.getuid()).pw_name
        except KeyError:  # a container may run as a number that no user has
            return f"user {os.getuid()}"

    def start_web(self) -> None:
        """Restrict calls to a `base_url` to the allowed origins from now on, because a browser may
        send one.
        """
        self._for_web = True
        self.__dict__.pop("directory", None)

    def nonce(self) -> str:
        """Return four random hexadecimal digits."""
        return secrets.token_hex(2)

    def seed(self) -> int:
        """Draw a seed, 0 <= seed < 2**31, for a run whose suite sets no seed."""
        return secrets.randbelow(2**31)

    def beside(self) -> Workspace:
        """Return a workspace with the same settings and store, but separate providers, for a second
        task in this process.
        """
        other = Workspace(
            self.settings, folder=self.folder, clock=self.clock, read_only=self.read_only
        )
        other.__dict__.update(
            store=self.store, decisions=self.decisions, results=self.results, notices=self.notices
        )
        other._borrowed = True
        other._for_web = self._for_web
        return other

    def damage(self, *, within_s: float = 10.0) -> str:
        """Return the first damage in the store, or an empty text.

        The search ends after `within_s` seconds.
        """
        from assay.store.opening import open_store

        store = open_store(
            self.settings.store_url, clock=self.clock, create=False, read_only=self.read_only
        )
        try:
            return store.check.first_damage(within_s=within_s)
        finally:
            store.close()

    def close(self) -> None:
        """Update the results folder and close everything that this workspace opened.

        A workspace from `beside` closes nothing.
        """
        if self._borrowed:
            return
        if "results" in self.__dict__:
            self.results.flush()
        if "notices" in self.__dict__:
            self.notices.close()
        if "store" in self.__dict__:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def existing_folder(folder: str | Path | None) -> Path | None:
    """Return the folder that a program names, or None for the working folder; raises `InputError`
    if it does not exist.
    """
    if folder is None or Path(folder).is_dir():
        return None if folder is None else Path(folder)
    raise InputError(
        "folder",
        f"{str(folder)!r} is no folder.",
        remedy="Name the folder of assay.yaml, or create it first.",
    )
