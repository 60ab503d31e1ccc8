"""Programs as candidates: a Python function, a command, a web service, or an installed agent.

A program is part of a `ModelSpec`, so every kind of candidate is planned, called, stored and shown
like a model.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self, TypeAlias
from urllib.parse import urlsplit

from assay.domain.digest import JsonValue, canonical, digest

TIME_LIMIT_S: Final = 120.0
LONGEST_LABEL: Final = 120
_NOT_BEHAVIOUR: Final = frozenset({"folder", "restored"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Called:
    """Settings that all programs share.

    Attributes:
        folder: the working folder, to which relative paths refer.
        timeout_s: seconds after which a call is stopped.
        files: digest of each file that the program refers to.
        offline: True if the author declares that the program uses no network, so that `local_only`
            allows it.
        restored: True if the program comes from an imported results file, not from a suite, so it
            must not be started.
    """

    folder: str = "."
    timeout_s: float = TIME_LIMIT_S
    files: Mapping[str, str] = field(default_factory=dict)
    offline: bool = False
    restored: bool = False

    def as_json(self) -> dict[str, JsonValue]:
        """Return all settings except a Python object, which no other process could use."""
        values: dict[str, Any] = {
            each.name: getattr(self, each.name) for each in fields(self) if each.name != "given"
        }
        return {
            name: dict(value)
            if isinstance(value, Mapping)
            else list(value)
            if isinstance(value, tuple)
            else value
            for name, value in values.items()
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Build the record from its stored settings; keys from other versions are ignored."""
        known = {each.name for each in fields(cls) if each.init}
        values: dict[str, Any] = {name: value for name, value in data.items() if name in known}
        if "words" in values:
            values["words"] = tuple(values["words"])
        return cls(**values)

    @property
    def digest(self) -> str:
        """Digest of all settings that affect the answers, without the folder, because a project may
        be moved.
        """
        return digest(
            {name: value for name, value in self.as_json().items() if name not in _NOT_BEHAVIOUR}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Function(_Called):
    """A Python function, or a class that each worker process instantiates once.

    Attributes:
        target: `FILE.py:NAME`, `package.module:NAME`, or the name of a Python object.
        options: passed to a parameter named `options`, or to the class as keyword arguments.
        source: for a module, its distribution with the version, and the digest of its file.
        from_python: True if the target is a Python object that other processes cannot import by
            name.
        given: the Python object; not stored.
    """

    kind: str = field(default="python", init=False)
    target: str
    options: Mapping[str, JsonValue] = field(default_factory=dict)
    source: str = ""
    from_python: bool = False
    given: Callable[..., object] | None = field(default=None, compare=False, repr=False)

    @property
    def label(self) -> str:
        return self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent(_Called):
    """An agent of an installed package: a function or class under the entry-point group
    `assay.agents`.
    """

    kind: str = field(default="agent", init=False)
    target: str
    options: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(_Called):
    """A command that is started for each prompt, without a shell.

    Attributes:
        words: program and arguments, each a template that may use the task's columns.
        stdin: `text` for the prompt, `json` for a document, or `none`.
        response: path of the answer in the JSON on standard output; empty if the output is the
            answer.
        usage: paths of `input_tokens`, `output_tokens` and `cost_usd` in that JSON.
    """

    kind: str = field(default="command", init=False)
    words: tuple[str, ...]
    stdin: str = "text"
    response: str = ""
    usage: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return shortened(shlex.join(self.words))


@dataclass(frozen=True, slots=True, kw_only=True)
class WebService(_Called):
    """A web service that is called over HTTP; the form of its requests and replies is configurable.

    Attributes:
        url, headers, body: templates that may use the task's columns; a body that is not text is
            sent as JSON.
        response: path of the answer in the JSON of the reply; empty if the reply is the answer.
        usage: as in `Command`.
    """

    kind: str = field(default="http", init=False)
    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: JsonValue = None
    response: str = ""
    usage: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return shortened(urlsplit(self.url)._replace(query="", fragment="").geturl())


OFFERED: Final = frozenset({"prompt", "messages", "system_prompt", "seed", "trial", "key"})
"""Placeholders that a program's templates may contain in addition to the task's columns."""

Program: TypeAlias = Function | Agent | Command | WebService

_BY_KIND: Final[Mapping[str, type[Program]]] = {
    "python": Function,
    "agent": Agent,
    "command": Command,
    "http": WebService,
}
KINDS: Final = tuple(_BY_KIND)
"""Kinds of programs, by the key of a candidate in a suite, which is also the first part of
`ModelSpec.ref`.
"""


def template_of(program: Program) -> str:
    """Return a program's templates as one text; empty for functions and agents."""
    match program:
        case Command():
            return "\n".join(program.words)
        case WebService():
            return "\n".join([program.url, *program.headers.values(), canonical(program.body)])
        case _:
            return ""


def program_from_json(data: Mapping[str, Any]) -> Program:
    return _BY_KIND[data["kind"]].from_json(data)


def shortened(label: str) -> str:
    """Return a label on one line, truncated if it is long."""
    line = " ".join(label.split())
    return line if len(line) <= LONGEST_LABEL else f"{line[: LONGEST_LABEL - 1]}…"
