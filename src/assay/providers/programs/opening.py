"""Open a candidate's program, or refuse it if only models are allowed. Starts and sends nothing.

A suite that a person runs in a terminal may contain programs. A suite from a browser or another
program may not, because it could run any command on this machine. `local_only` allows a program if
its author declares it offline.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, assert_never

from assay.domain.digest import bytes_digest
from assay.domain.errors import SettingsError, UnknownName
from assay.domain.programs import Agent, Command, Function, Program, WebService
from assay.plugin_registry import Registry, source_of
from assay.ports import Provider
from assay.providers.registry import ProviderContext

AGENTS: Final[Registry[Callable[..., object]]] = Registry(
    kind="agent", group="assay.agents", own={}, members=("__call__",)
)
"""Agents from installed packages: functions or classes as in `python:`, called in worker processes.
"""


def open_program(program: Program, context: ProviderContext, /) -> Provider:
    """Return a program's provider; raises `SettingsError` if the program may not be used."""
    where = f"{program.kind} {program.label!r}"
    if program.restored:
        raise SettingsError(
            where,
            "comes from an imported file, but Assay starts only programs in suites that you run.",
            remedy="Start a new run of this suite.",
        )
    if isinstance(program, WebService):
        from assay.providers.programs.web_service import WebServices

        return WebServices(program, context)
    _check_allowed(program, context, where)
    folder = (context.base_folder / program.folder).resolve()
    if isinstance(program, Function) and program.from_python:
        return _open_object(program, folder, context, where)
    _check_files(program, folder, where)
    match program:
        case Command():
            from assay.providers.programs.commands import Commands

            _check_program(program.words[0], folder, context, where)
            return Commands(program, folder=folder, environment=context.environment)
        case Agent():
            if (own := context.agent(program)) is not None:
                return own
            target = _agent_target(program.target, where)
        case Function():
            target = program.target
            _check_source(program, folder, where)
        case _:
            assert_never(program)
    from assay.providers.programs.functions import Functions, check_platform

    check_platform(where)
    return Functions(program, target=target, folder=folder, environment=context.environment)


def _open_object(program: Function, folder: Path, context: ProviderContext, where: str) -> Provider:
    if program.given is None:
        raise SettingsError(
            where,
            ("was a Python object, which exists only in the process that started the run."),
            remedy="Start a new run from Python with this callable.",
        )
    from assay.providers.programs.callables import open_callable

    return open_callable(program, program.given, folder=folder, environment=context.environment)


def _check_allowed(program: Program, context: ProviderContext, where: str) -> None:
    if context.rules.web is not None:
        raise SettingsError(
            where,
            "is a program, but runs started from the browser or over HTTP may only ask models.",
            remedy="Run the suite in a terminal with `assay run`.",
        )
    if context.local_only and not program.offline:
        raise SettingsError(
            where,
            "is a program that may use the network, but local_only forbids that.",
            remedy="State `offline: true` for this candidate if it uses no network, or set local_only: false.",
        )


def _agent_target(name: str, where: str) -> str:
    try:
        return AGENTS.target(name)
    except UnknownName as error:
        raise SettingsError(where, "is not installed.", remedy=error.remedy) from error


def _check_files(program: Program, folder: Path, where: str) -> None:
    """Raise `SettingsError` if a program's file is missing or has changed since the run started."""
    for name, digest in program.files.items():
        try:
            content = (folder / name).read_bytes()
        except OSError as error:
            raise SettingsError(
                where, f"names {name}, which cannot be read: {error.strerror}."
            ) from error
        if bytes_digest(content) != digest:
            raise SettingsError(
                where,
                f"has changed: {name} is not the file with which this run started, and results of different versions must not "
                "be mixed.",
                remedy="Put the earlier file back, or start a new run with `assay run`.",
            )


def _check_source(program: Function, folder: Path, where: str) -> None:
    """Raise `SettingsError` if a function's module has changed since the run started."""
    present = source_of(program.target.partition(":")[0], str(folder)) if program.source else ""
    if present != program.source:
        raise SettingsError(
            where,
            f"has changed: the run started with {program.source}, and {present or 'nothing'} is installed.",
            remedy="Install the earlier version, or start a new run with `assay run`.",
        )


def _check_program(name: str, folder: Path, context: ProviderContext, where: str) -> None:
    if os.sep in name:
        place = folder / name
        if not place.is_file():
            raise SettingsError(
                where, f"names {name}, which is not a file in {folder}.", remedy="Check its name."
            )
        if not os.access(place, os.X_OK):
            raise SettingsError(
                where, f"names {name}, which may not be executed.", remedy=f"Run: chmod +x {place}"
            )
    elif shutil.which(name, path=context.environment.get("PATH")) is None:
        raise SettingsError(
            where,
            f"names the program {name!r}, which is not on the PATH.",
            remedy=f"Install it, or write ./{name} for a file beside the suite.",
        )
