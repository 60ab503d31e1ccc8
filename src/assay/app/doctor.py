"""Check which of Assay's requirements and optional extras are present on this machine."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from assay.app.results_check import compare_records
from assay.app.settings import read_settings
from assay.domain.errors import AssayError
from assay.domain.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.app.settings import Settings
    from assay.app.workspace import Workspace
    from assay.store.checking import CheckedPart

KEYS = {
    "OPENAI_API_KEY": "models of openai",
    "ANTHROPIC_API_KEY": "models of anthropic",
    "OPENROUTER_API_KEY": "models of openrouter",
}

EXTRAS = {
    "math": ("math_verify", "the math scorer"),
    "charts": ("vl_convert", "charts as PNG"),
    "postgres": ("psycopg", "a store on PostgreSQL"),
    "specialists": ("trafilatura", "enriched templates and snapshots"),
    "parquet": ("pyarrow", "exports and imports Parquet"),
}


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check.

    `state` is `good`, `absent` (a problem only if you need the feature) or `broken`.
    """

    what: str
    state: str
    detail: str
    remedy: str = ""


def examine(workspace: Workspace, *, whole_store: bool = False) -> tuple[Check, ...]:
    """Check Python, the store, API keys, packages and the browser; `whole_store` reads every row.

    Keys are never shown.
    """
    parts = _parts_of_store(workspace) if whole_store else ()
    return (
        _python(),
        _store(workspace),
        *parts,
        *_keys(workspace.settings),
        *_extras(),
        _chromium(workspace.settings),
        _kept(workspace),
    )


def _python() -> Check:
    good = sys.version_info >= (3, 11)
    remedy = "" if good else "Install Python 3.11 or later."
    return Check("python", "good" if good else "broken", platform.python_version(), remedy)


def _store(workspace: Workspace) -> Check:
    try:
        runs = workspace.archive.runs.totals(Selection()).runs
        event, vote = workspace.event_log.first_broken(), workspace.arena.first_broken()
    except AssayError as error:
        return Check("store", "broken", error.problem, error.remedy)
    for changed, name, kind in (
        (event, f"review event {event}", "Decisions"),
        (vote, f"vote {vote} of the arena", "Votes"),
    ):
        if changed is not None:
            remedy = f"{kind} must never be changed. Restore the store from a backup."
            return Check("store", "broken", f"{name} was changed after it was stored", remedy)
    # The user and password of a PostgreSQL address stay out of the output.
    place = workspace.settings.store_url.rpartition("@")[2].removeprefix("sqlite:///")
    return Check("store", "good", f"{place}, {runs} runs")


def _parts_of_store(workspace: Workspace) -> Iterator[Check]:
    try:
        parts = tuple(workspace.store.check.parts())
    except AssayError as error:
        yield Check("store, every row", "broken", error.problem, error.remedy)
        return
    for part in parts:
        yield _checked(part, "Restore the store from a copy.")
    if not any(part.problems for part in parts):
        if not _is_the_projects_store(workspace.settings):
            detail = "not compared, because --store names another store than this project's"
            yield Check(
                "store, results files",
                "absent",
                detail,
                "Run the check without --store for the project's own store.",
            )
            return
        remedy = "If the store is correct, `assay export results RUN` rewrites the files. Otherwise restore a backup."
        yield _checked(compare_records(workspace), remedy)


def _is_the_projects_store(settings: Settings) -> bool:
    """True unless an option names another store than the settings do; the results folder belongs to
    the store of the settings.
    """
    # A backup lags behind the folder, and every run since then was reported as damage.
    if settings.origins["store"] != "option":
        return True
    configured = read_settings(settings.working_folder, environment=settings.environment).store_url
    prefix = "sqlite:///"
    if settings.store_url.startswith(prefix) and configured.startswith(prefix):
        named, own = (
            settings.working_folder / url.removeprefix(prefix)
            for url in (settings.store_url, configured)
        )
        return named.resolve() == own.resolve()
    return settings.store_url == configured


def _checked(part: CheckedPart, remedy: str) -> Check:
    if part.problems:
        return Check(f"store, {part.name}", "broken", "; ".join(part.problems), remedy)
    return Check(f"store, {part.name}", "good", f"{part.checked:,} checked")


def _keys(settings: Settings) -> Iterator[Check]:
    for name, use in KEYS.items():
        if settings.environment.get(name):
            yield Check(name, "good", "set")
        else:
            yield Check(
                name,
                "absent",
                "not set",
                f"Only needed for {use}: set it in the environment or in .env.",
            )


def _extras() -> Iterator[Check]:
    for extra, (module, use) in EXTRAS.items():
        if find_spec(module) is not None:
            yield Check(f"extra {extra}", "good", "installed")
        else:
            yield Check(
                f"extra {extra}",
                "absent",
                "not installed",
                f"For {use}: pip install 'assay-bench[{extra}]'.",
            )


def _kept(workspace: Workspace) -> Check:
    count, size = workspace.kept_workspaces.total_bytes()
    most = workspace.settings.values["kept_workspaces_gb"]
    return Check("workspaces", "good", f"{count} kept, {size / 10**9:.1f} of at most {most:g} GB")


def _chromium(settings: Settings) -> Check:
    from assay.app.workspace import browser_of
    from assay.sandbox.pages import has_own_sandbox

    named, browser = settings.values["chromium"], browser_of(settings)
    if browser and has_own_sandbox():
        return Check("chromium", "good", browser)
    if browser:
        remedy = "Run Assay as a user other than root, so that Chromium opens pages written by models in a sandbox."
        return Check(
            "chromium",
            "good",
            f"{browser}, without its own sandbox, because Assay runs as root",
            remedy,
        )
    if named:
        remedy = "Correct `chromium` in your own settings, or ASSAY_CHROMIUM."
        return Check("chromium", "broken", f"{named} is not a program", remedy)
    remedy = (
        "Only needed for `score: code_arena`; without a browser, pages are judged without a screenshot. Install your system's "
        "chromium package, or set ASSAY_CHROMIUM to the path of a browser."
    )
    return Check("chromium", "absent", "not found", remedy)
