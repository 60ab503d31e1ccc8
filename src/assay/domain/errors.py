"""Errors, grouped by who can fix them: the user, a suite's author, the operator, or the provider.

Every message states where the error is, what was found, what is expected and how to fix it. Only
the command line and the web server print errors; they map the classes below to exit codes and HTTP
statuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

MORE_FILES: Final = "Close other programs, lower --concurrency, or raise the limit: ulimit -n 4096"
"""Remedy for a process that has reached its limit of open files."""

SHOWN: Final = 20
"""Maximum problems listed in one message, so that a file of the wrong kind does not flood the
terminal.
"""


class AssayError(Exception):
    """An expected failure with a message for a person.

    Args:
        where: file and line, field, command or identifier; may be empty.
        problem: one sentence, without the location, that states what was found and what is
            expected.
        remedy: one sentence on how to fix it; may be empty.
    """

    def __init__(self, where: str, problem: str, *, remedy: str = "") -> None:
        super().__init__()
        self.reword(where, problem, remedy)

    def reword(self, where: str, problem: str, remedy: str) -> None:
        """Replace the three parts of the message, and the message that they make."""
        self.where = where
        self.problem = problem
        self.remedy = remedy
        self.args = (
            " ".join(part for part in (f"{where}:" if where else "", problem, remedy) if part),
        )


class InputError(AssayError):
    """The user's files, options or names are wrong; nothing was changed."""


class SuiteError(InputError):
    """A suite or set file is wrong; its author can fix it."""


class SuiteErrors(InputError):
    """All problems with a suite or a template, each as a `SuiteError`, in the order of the file."""

    def __init__(self, errors: Sequence[SuiteError]) -> None:
        self.errors = tuple(errors)
        lines = [str(error) for error in self.errors[:SHOWN]]
        if len(self.errors) > SHOWN:
            lines.append(f"... and {len(self.errors) - SHOWN} more.")
        super().__init__("", "\n".join(lines))


class SettingsError(InputError):
    """A setting, environment variable or key is wrong or missing; the operator can fix it."""


class UnknownName(InputError):
    """A run, task, candidate, assessment or option that does not exist.

    `kind` and `name`: the requested item. `near`: up to three known names that resemble it, the
    most similar first.
    """

    def __init__(
        self, kind: str, name: str, known: Iterable[str] = (), *, remedy: str = ""
    ) -> None:
        self.kind = kind
        self.name = name
        self.near = nearest(name, known, most=3)
        super().__init__("", f"there is no {kind} {name!r}.{_hint(self.near)}", remedy=remedy)


class DifferentRuns(InputError):
    """The selected runs do not measure the same thing, so no verdict pools them.

    `newest`: the run to read instead.
    """

    def __init__(self, differences: str, newest: str) -> None:
        self.newest = newest
        super().__init__(
            "",
            f"the selected runs differ in {differences}. Their scores do not measure the same thing, so they are not pooled.",
            remedy=f"Read one run with --run {newest}, or add --pool-anyway for a verdict that is labelled as mixed.",
        )


class Refused(InputError):
    """The request is valid but not allowed in the current state; nothing was changed."""


class StoreError(AssayError):
    """The store cannot be opened, read or written; the operator can fix it."""


class ConnectionLost(StoreError):
    """The PostgreSQL server cannot be reached or ended the connection; a later attempt may
    succeed.
    """


class ReadOnlyStore(StoreError):
    """The store is open for reading only, so a command that would change it cannot start."""


class DamagedValue(StoreError, ValueError):
    """A stored value was damaged by a disk fault or changed by another program."""


class Interrupted(AssayError):
    """The user stopped a run; finished work is kept and the run can be resumed."""


class Unanswered(AssayError):
    """The model returned no usable answer, so nothing was stored."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint such as ` Did you mean 'trials'?`, or an empty string when no known name is
    similar.
    """
    return _hint(nearest(name, known, most=1))


def nearest(name: str, known: Iterable[str], *, most: int) -> tuple[str, ...]:
    """Return the known names that resemble this one, ignoring case; the most similar first."""
    lowered = {spelling.lower(): spelling for spelling in known}
    return tuple(
        lowered[match]
        for match in get_close_matches(name.lower(), list(lowered), n=most, cutoff=0.6)
    )


def _hint(near: tuple[str, ...]) -> str:
    return f" Did you mean {near[0]!r}?" if near else ""
