"""Options shared by several commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, TypedDict, Unpack

import click

from assay.app.runs.run_request import RunRequest
from assay.cli.parameters import Command, option
from assay.cli.requests import Others, takes
from assay.domain.errors import InputError
from assay.domain.selection import Selection

if TYPE_CHECKING:
    from assay.app.workspace import Workspace
    from assay.domain.review_sample import ReviewRule

_OVER_HTTP = "assay.allow_http_keys"
_READ_ONLY = "assay.read_only"
_NO_SANDBOX = "assay.no_sandbox"


def _is_given(_: click.Context, __: click.Parameter, value: str | None) -> bool:
    return value is not None


STAGE = option(
    "--stage",
    "only_structure",
    type=click.Choice(["structure"]),
    callback=_is_given,
    help="Stop after this stage; `assay resume` continues with judging.",
)
"""The option `--stage structure`; the command gets True or False as `only_structure`."""


def common(command: Command) -> Command:
    """Add the options of every command: `--json`, `--store` and `--read-only`, which `workspace`
    reads.
    """
    about = "Change neither the store nor the results folder."
    command = _flag_for_workspace(command, "--read-only", _READ_ONLY, about)
    about = "Print exactly one JSON document to stdout."
    command = option("--json", "as_json", is_flag=True, help=about)(command)
    about = "Store of results: a file, or postgresql://…; default .assay/assay.db."
    return option("--store", metavar="URL", help=about)(command)


def file_option(*names: str, about: str, multiple: bool = False) -> Callable[[Command], Command]:
    return option(
        *names, metavar="FILE", type=click.Path(path_type=Path), multiple=multiple, help=about
    )


def margin_option(name: str, *, about: str, required: bool = False) -> Callable[[Command], Command]:
    """Return a decorator that adds an option for a score difference, such as 0.03 or 3pts."""
    return option(name, metavar="D", required=required, callback=_parsed_margin, help=about)


def _parsed_margin(_: click.Context, option: click.Parameter, value: str | None) -> float | None:
    from assay.domain.margins import parsed_margin

    return None if value is None else parsed_margin(value, option=option.opts[0])


def _parsed_rule(_: click.Context, option: click.Parameter, value: str | None) -> ReviewRule | None:
    from assay.domain.review_sample import parsed_rule

    return None if value is None else parsed_rule(value, where=option.opts[0])


def event_options(command: Command) -> Command:
    """Add `--reason` and `--reviewer`, which are stored with an event."""
    about = "Name of the person; same default as for reviews."
    command = option("--reviewer", metavar="NAME", help=about)(command)
    return option("--reason", default="", metavar="TEXT", help="Reason, stored with the event.")(
        command
    )


def chart_file(output: str) -> Path:
    """Return the path of a chart; raises `InputError` for an unknown format or a missing folder."""
    from assay.app.statistics.charts import FORMATS

    path = Path(output)
    if path.suffix.lower().removeprefix(".") not in FORMATS:
        problem = f"{output!r} does not end in a supported format."
        raise InputError("--output", problem, remedy="Write FILE.svg, .png, .csv or .json.")
    if not path.parent.is_dir():
        problem = f"there is no folder {str(path.parent)!r}."
        raise InputError("--output", problem, remedy="Create it, or choose another folder.")
    return path


def keys_over_http(command: Command) -> Command:
    """Add `--allow-http-keys` to a command that calls models; `workspace` reads the option."""
    about = "Allow keys to be sent unencrypted beyond this network."
    return _flag_for_workspace(command, "--allow-http-keys", _OVER_HTTP, about)


def run_options(command: Callable[Concatenate[RunRequest, Others], int]) -> Callable[Others, int]:
    """Add the options of a new run, for `assay run` and `assay batch submit`, which get them as a
    `RunRequest` and the `rubric`.
    """
    for add in reversed(
        (
            option(
                "--trials",
                type=int,
                metavar="N",
                help="Trials per task, instead of the suite's number; for a file of answers, gradings of each answer by the judge.",
            ),
            option(
                "--candidate",
                "candidates",
                multiple=True,
                metavar="NAME",
                help="Only this candidate: a name in the suite, or any model as provider/name. May be repeated.",
            ),
            option(
                "--judge",
                metavar="MODEL",
                help="Grade with this model, for example anthropic/claude-sonnet-4-5.",
            ),
            option(
                "--benchmark",
                is_flag=True,
                help="Call candidates with temperature and penalties set to 0.",
            ),
            option(
                "--review",
                metavar="POLICY",
                callback=_parsed_rule,
                help="Which grades a person must review: every, flagged, none, sample:0.2 or sample:0.2:tag.",
            ),
            option("--batch-id", metavar="ID", help="Label that groups runs."),
            option(
                "--budget", "budget_usd", type=float, metavar="USD", help="Maximum cost of the run."
            ),
            option("--limit", type=int, metavar="N", help="Only the first N tasks."),
            file_option(
                "--rubric",
                about="Grade with the rubric in this file; SUITE may then be a file with answers for `assay import`.",
            ),
        )
    ):
        command = add(command)
    return takes(RunRequest)(command)


def without_sandbox(command: Command) -> Command:
    """Add `--no-sandbox` to a command that runs the tests of tasks; `workspace` reads the
    option.
    """
    about = "Run the tests of tasks with your full user permissions; only for code that you trust."
    return _flag_for_workspace(command, "--no-sandbox", _NO_SANDBOX, about)


def _flag_for_workspace(command: Command, name: str, key: str, about: str) -> Command:
    """Add a flag that is stored in the context for `workspace` and not passed to the command."""

    def note(context: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            context.meta[key] = True

    return option(name, is_flag=True, expose_value=False, callback=note, help=about)(command)


def filters(command: Callable[Concatenate[Selection, Others], int]) -> Callable[Others, int]:
    """Add filters by run, task, judge and so on, which the command gets as a `Selection`.

    Without a filter, a command uses the newest run in the store.
    """
    for name, target, metavar, about in reversed(
        [
            (
                "--run",
                "runs",
                "RUN",
                "Only this run: an id, its unique beginning, or latest. Filters may be repeated.",
            ),
            ("--suite", "suites", "NAME", "The newest run of this suite."),
            ("--batch-id", "batch_ids", "ID", "All runs of this batch."),
            ("--task", "tasks", "NAME", "Only this task, by id or name."),
            ("--tag", "tags", "TAG", "Only tasks with this tag."),
            ("--language", "languages", "NAME", "Only tasks in this language."),
            ("--criterion", "criteria", "NAME", "Only this criterion of the rubric."),
            ("--judge", "judges", "NAME", "Only grades of this judge or scorer."),
        ]
    ):
        command = option(name, target, multiple=True, metavar=metavar, help=about)(command)
    about = "Give a verdict even if the runs differ in scorer, rubric, judge, prompt or tasks, and label it as mixed."
    command = option("--pool-anyway", is_flag=True, help=about)(command)
    about = "Pool all runs that the other filters match; without it, only the newest run is read."
    command = option("--all-runs", is_flag=True, help=about)(command)
    about = "Read each task's family from its tags (tag:PREFIX, or tag) or from metadata:KEY."
    command = option("--family-by", metavar="RULE", default="", help=about)(command)
    return takes(Selection, without=("compared",))(command)


class Overrides(TypedDict, total=False):
    """Settings that a command's options override; None keeps the value of the settings."""

    allow_http_keys: bool
    budget: float | None
    concurrency: int | None
    local_only: bool
    results: bool
    sandbox: str


@contextmanager
def workspace(store: str | None, **settings: Unpack[Overrides]) -> Iterator[Workspace]:
    """Open the workspace of the current folder, and close it after the block."""
    from assay.app.opening import open_workspace

    flags = click.get_current_context().meta
    if _OVER_HTTP in flags:
        settings["allow_http_keys"] = True
    if _NO_SANDBOX in flags:
        settings["sandbox"] = "none"
    options = {"store": store_url(store), **settings}
    with open_workspace(options=options, read_only=_READ_ONLY in flags) as opened:
        opened.command = _typed()
        yield opened


def _typed() -> str | None:
    """Return the command as it was typed, without its secrets; None for a server, whose runs no
    command line describes.
    """
    from assay.domain.secret_masking import masked_command

    words = click.get_current_context().find_root().obj
    return (
        masked_command(["assay", *words])
        if isinstance(words, tuple) and words[:1] != ("serve",)
        else None
    )


def damage_of(arguments: Sequence[str]) -> str:
    """Return a description of the first damage in a command's store; empty if the store is
    intact.
    """
    from assay.app.workspace import Workspace

    named = [after for before, after in pairwise(arguments) if before == "--store"]
    named += [
        argument.removeprefix("--store=")
        for argument in arguments
        if argument.startswith("--store=")
    ]
    options = {"store": store_url(named[-1] if named else None)}
    with Workspace.open(options=options, read_only="--read-only" in arguments) as opened:
        return opened.damage()


def store_url(store: str | None) -> str | None:
    """Return the URL of a store; a plain path is a SQLite file."""
    return store if store is None or "://" in store else f"sqlite:///{store}"


def require_vetted_option(command: Command) -> Command:
    """Add the option `--require vetted`; the command gets True or False as `vetted`."""
    about = "Refuse (exit 2) grades that a script approved or that no person has seen."
    choice = click.Choice(["vetted"])
    return option("--require", "vetted", type=choice, callback=_is_given, help=about)(command)
