"""Spell the options in a message as the caller writes them: `--run ID` is `runs="ID"` in Python and
`run=ID` over HTTP.

Messages are worded once, for the command line. Python and the web server respell them on the way
out. Whole commands, such as `assay doctor --check-store`, stay as they are, because they are typed
in a terminal. So do texts in quotation marks, because they are the user's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.domain.errors import AssayError

_FLAGS: Final = frozenset(
    {
        "all",
        "all-runs",
        "allow-http-keys",
        "anonymise",
        "discard-reviews",
        "force",
        "no-sandbox",
        "pool-anyway",
        "read-only",
    }
)
"""Options without a value that messages name."""

_PYTHON: Final[Mapping[str, str]] = {
    "all": "everything",
    "batch-id": "batch_ids",
    "budget": "budget_usd",
    "candidate": "candidates",
    "criterion": "criteria",
    "input": "inputs",
    "language": "languages",
    "log": "logs",
    "map": "mapping",
    "run": "runs",
    "suite": "suites",
    "tag": "tags",
    "task": "tasks",
}
"""Parameters whose name differs from that of the option."""

_HTTP: Final[Mapping[str, str]] = {"budget": "budget", "candidate": "candidates"}

_COMMAND: Final = (
    r"`assay [^`]*`|\bassay [a-z][\w-]* .*?(?=[.;]? [A-Z(]|[.;]?\s*$)|`(?!--)[^`]* --[^`]*`"
)
# An apostrophe follows a letter, so it opens no quotation.
_QUOTED: Final = r"(?<![\w=])(?:'[^'\n]*'|\"[^\"\n]*\")(?!\w)"
_VALUE: Final = (
    r"(?:[ =](?P<value>'[^']*'|\"[^\"]*\"|(?:vetted|verdict|latest|every|flagged|none|contains)\b"
    r"|(?=[^\s`]*[A-Z0-9/=])[^\s`,;()]*[^\s`,;().:]))?"
)
_OPTION: Final = re.compile(
    rf"(?P<kept>{_COMMAND}|{_QUOTED})|(?P<before>`?)(?<![\w/'\"-])--(?P<name>[a-z][a-z0-9-]*){_VALUE}(?P<after>`?)",
    re.MULTILINE,
)
_NUMBER: Final = re.compile(r"(?:-?\d+(?:\.\d+)?|N)$")


def in_python(text: str) -> str:
    """Return a message with parameters of Python in place of options."""
    return _OPTION.sub(_python, text)


def in_http(text: str) -> str:
    """Return a message with fields and query parameters in place of options."""
    return _OPTION.sub(_http, text)


def respell_for_python(error: AssayError) -> None:
    """Respell an error that is about to leave Assay for a Python program."""
    error.reword(in_python(error.where), in_python(error.problem), in_python(error.remedy))


def _python(match: re.Match[str]) -> str:
    if match["kept"] is not None:
        return match["kept"]
    option, value = match["name"], match["value"]
    name = _PYTHON.get(option, option.replace("-", "_"))
    if option in _FLAGS:
        return _marked(f"{name}=True", match) + ("" if value is None else f" {value}")
    if value is None:
        return _alone(name, match)
    bare = value.strip("'\"")
    # a file to grade by, and not a filter
    name = "suite" if bare == "FILE" and option == "suite" else name
    return _marked(f"{name}={bare}" if _NUMBER.match(bare) else f'{name}="{bare}"', match)


def _http(match: re.Match[str]) -> str:
    if match["kept"] is not None:
        return match["kept"]
    option, value = match["name"], match["value"]
    name = _HTTP.get(option, option.replace("-", "_"))
    if option in _FLAGS:
        return _marked(f"{name}=1", match) + ("" if value is None else f" {value}")
    if value is None:
        return _alone(name, match)
    bare = value.strip("'\"")
    return _marked(f"{name}={bare}", match)


def _alone(name: str, match: re.Match[str]) -> str:
    """Mark a name without a value, except where it is the place of an error: the whole text, or a
    word before a colon.
    """
    is_place = match.group(0) == match.string or match.string[match.end() :].startswith(":")
    return name if is_place else f"`{name}`"


def _marked(text: str, match: re.Match[str]) -> str:
    return f"{match['before']}{text}{match['after']}"
