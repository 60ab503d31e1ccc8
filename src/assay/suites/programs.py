"""Reads candidates that are programs: `python`, `command`, `http` and `agent`.

Nothing is imported or started here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Final, Protocol, cast

from assay.domain.digest import JsonValue, bytes_digest
from assay.domain.errors import did_you_mean
from assay.domain.programs import KINDS, Agent, Command, Function, Program, WebService
from assay.domain.secret_masking import place_of_secret
from assay.formats.json_paths import steps_of
from assay.plugin_registry import source_of
from assay.suites.grammar import (
    FREE,
    FREE_MAPPING,
    NAME,
    TEXT,
    DeclaredKey as Declared,
    Keys,
    Kind,
    Node,
    ReadContext,
    Schema,
    choice,
    key,
    mapping_of,
    read_name,
    read_text,
)
from assay.suites.located_yaml import Value, shown
from assay.suites.problems import Path

_FUNCTION: Final = re.compile(r"(?P<place>[^:]+):(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
_FUNCTION_SCHEMA: Final[Schema] = {"type": "string", "pattern": r"^[^:]+:[A-Za-z_][\w.]*$"}
_METHODS: Final = ("POST", "GET", "PUT", "PATCH", "DELETE")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SECRET_HEADER: Final = re.compile(r"authorization|cookie|api-?key|token|secret", re.IGNORECASE)


def _read_path(value: Value, path: Path, context: ReadContext) -> str | None:
    text = read_name(value, path, context)
    if text is None:
        return None
    try:
        steps_of(text)
    except ValueError as error:
        remedy = "Write a path to one value, such as $.choices[0].text; wildcards and filters are not understood."
        context.report(path, f"is {shown(text)}: {error}.", remedy)
        return None
    return text


_PATH: Final = Kind(_read_path, {"type": "string", "pattern": r"^\$"})
_USAGE: Final = mapping_of(
    {name: Declared(_PATH) for name in ("input_tokens", "output_tokens", "cost_usd")},
    lambda **paths: paths,
)


# --- python and agent -----------------------------------------------------------------------------


class FunctionKeys(Keys):
    """A Python function or class."""

    function = key(
        Kind(read_name, _FUNCTION_SCHEMA),
        required="Write it as FILE.py:NAME or package.module:NAME.",
    )
    options = key(
        FREE_MAPPING, "Passed to a parameter named `options`, or to the class as keywords."
    )


def _read_python(value: Value, path: Path, context: ReadContext) -> Function | None:
    options: Mapping[str, JsonValue] = {}
    inner = path
    if isinstance(value, dict):
        keys = FunctionKeys.read(value, path, context)
        if keys is None or keys.function is None:
            return None
        target, options, inner = keys.function, keys.options or {}, (*path, "function")
    else:
        name = read_name(value, path, context)
        if name is None:
            return None
        target = name
    match = _FUNCTION.fullmatch(target)
    if match is None:
        context.report(inner, f"is {shown(target)}, expected FILE.py:NAME or package.module:NAME.")
        return None
    files, source = {}, ""
    if match["place"].endswith(".py"):
        digest = _checked_source(match["place"], match["name"], inner, context)
        if digest is None:
            return None
        files[match["place"]] = digest
    elif not re.fullmatch(r"\w+(\.\w+)*", match["place"]):
        context.report(inner, f"is {shown(target)}, expected FILE.py:NAME or package.module:NAME.")
        return None
    else:
        source = source_of(match["place"], _folder(context))
    return Function(
        target=target, options=options, folder=_folder(context), files=files, source=source
    )


def _checked_source(named: str, name: str, path: Path, context: ReadContext) -> str | None:
    """Check that a Python file defines a name, without importing it, and return the file's
    digest.
    """
    source = context.files.text(named, path, context)
    if source is None:
        return None
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        context.report(path, f"names {named}, which is not valid Python: {error}.")
        return None
    first = name.partition(".")[0]
    functions = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    if first not in _bound_names(tree) and "*" not in _bound_names(tree):
        has = f" It has {', '.join(functions[:8])}." if functions else ""
        context.report(
            path,
            f"names {first!r}, which {named} does not have.{did_you_mean(first, functions) or has}",
        )
        return None
    return bytes_digest((context.files.folder / named).read_bytes())


def _bound_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                names.update((each.asname or each.name).partition(".")[0] for each in imported)
    return names


PYTHON: Final = Kind(_read_python, {"anyOf": [_FUNCTION_SCHEMA, FunctionKeys.schema()]})


class AgentKeys(Keys):
    """An agent of an installed package."""

    name = key(NAME, required="Name the agent.")
    options = key(FREE_MAPPING, "Passed to the agent; see its package.")


def _read_agent(value: Value, path: Path, context: ReadContext) -> Agent | None:
    if isinstance(value, dict):
        keys = AgentKeys.read(value, path, context)
        name, options = (None, {}) if keys is None else (keys.name, keys.options or {})
    else:
        name, options = read_name(value, path, context), {}
    if name is None:
        return None
    if name not in context.checks.agents:
        known = (
            f" Installed are {', '.join(context.checks.agents)}." if context.checks.agents else ""
        )
        hint = did_you_mean(name, context.checks.agents) or known
        context.report(
            path,
            f"is {shown(name)}, but no installed package offers this agent.{hint}",
            "Install its package.",
        )
        return None
    return Agent(target=name, options=options, folder=_folder(context))


AGENT: Final = Kind(_read_agent, {"anyOf": [NAME.schema, AgentKeys.schema()]})


# --- command --------------------------------------------------------------------------------------


def _read_words(value: Value, path: Path, context: ReadContext) -> tuple[str, ...] | None:
    if not isinstance(value, list) or not value:
        remedy = 'Write a list, such as ["./agent.sh", "{{prompt}}"]; no shell reads it.'
        context.report(
            path, f"is {shown(value)}, expected a list of the program and its arguments.", remedy
        )
        return None
    words = [read_text(word, (*path, place), context) for place, word in enumerate(value)]
    if any(word is None for word in words):
        return None
    if "{{" in str(words[0]) or not str(words[0]).strip():
        context.report((*path, 0), f"is {shown(words[0])}, expected the name of a program.")
        return None
    texts = tuple(map(str, words))
    if (place := place_of_secret(texts)) is not None:
        context.report(
            (*path, place),
            "would store a key with every run, and show it in reports.",
            "Let the program read it from its environment, which has your variables and those of `.env`.",
        )
        return None
    return texts


_WORDS: Final = Kind(
    _read_words, {"type": "array", "minItems": 1, "items": {"type": ["string", "number"]}}
)


class CommandKeys(Keys):
    """A command with its input and output."""

    run = key(
        _WORDS,
        "Program and arguments; {{prompt}} and columns are filled in.",
        required="Name the command.",
    )
    stdin = key(
        choice(["text", "json", "none"]), "The prompt, a JSON document with the task, or nothing."
    )
    response = key(_PATH, "Path of the answer in the JSON on standard output.")
    usage = key(_USAGE, "Paths of token counts and cost in that JSON.")


def _read_command(value: Value, path: Path, context: ReadContext) -> Command | None:
    if not isinstance(value, dict):
        words = _WORDS.read(value, path, context)
        return None if words is None else _command(words, context)
    keys = CommandKeys.read(value, path, context)
    if keys is None or keys.run is None:
        return None
    made = _command(keys.run, context)
    return replace(
        made,
        stdin=keys.stdin or made.stdin,
        response=keys.response or "",
        usage=_without_none(keys.usage),
    )


def _command(words: tuple[str, ...], context: ReadContext) -> Command:
    files = {}
    for word in words:
        place = context.files.folder / word
        # Only files next to the suite count: others, such as /usr/bin/python3, belong to the
        # machine and not to the candidate.
        if "{{" not in word and not FilePath(word).is_absolute() and _is_file(place):
            files[word] = bytes_digest(place.read_bytes())
            context.files.record(word, files[word])
    stdin = "none" if any("{{" in word for word in words) else "text"
    return Command(words=words, stdin=stdin, folder=_folder(context), files=files)


def _is_file(place: FilePath) -> bool:
    try:
        return place.is_file()
    except (OSError, ValueError):
        return False


COMMAND: Final = Kind(_read_command, {"anyOf": [_WORDS.schema, CommandKeys.schema()]})


# --- http -----------------------------------------------------------------------------------------


def _read_url(value: Value, path: Path, context: ReadContext) -> str | None:
    url = read_text(value, path, context)
    if url is not None and not url.startswith(("http://", "https://")):
        context.report(
            path, f"is {url!r}, expected an address that starts with http:// or https://."
        )
        return None
    return url


ADDRESS: Final = Kind(_read_url, {"type": "string", "pattern": "^https?://"})


def _read_headers(value: Value, path: Path, context: ReadContext) -> dict[str, str] | None:
    if not isinstance(value, dict):
        context.report(path, f"is {shown(value)}, expected a mapping of names to values.")
        return None
    headers = {}
    for name, written in value.items():
        text = read_text(written, (*path, name), context)
        if text is None:
            continue
        if not _HEADER.fullmatch(name) or not text.isprintable():
            context.report(
                (*path, name),
                "is not a header: a name of letters and hyphens, and a value on one line.",
            )
        elif _SECRET_HEADER.search(name) and "{{key}}" not in text:
            context.report(
                (*path, name),
                "would store a key with every run.",
                "Write {{key}} in its place, and set the key of the address as docs/reference/settings.md describes.",
            )
        else:
            headers[name] = text
    return headers


class WebServiceKeys(Keys):
    """The keys of a web service: an address that answers over HTTP."""

    url = key(ADDRESS, required="Give its address.")
    method = key(choice(_METHODS), "POST by default, or GET without a body.")
    headers = key(Kind(_read_headers, {"type": "object", "additionalProperties": TEXT.schema}))
    body = key(
        FREE, "Sent as JSON, or as text if it is text; {{prompt}} and columns are filled in."
    )
    response = key(
        _PATH, "Path of the answer in the JSON of the reply; without it, the reply is the answer."
    )
    usage = key(_USAGE, "Paths of token counts and cost in that JSON.")


def _read_http(value: Value, path: Path, context: ReadContext) -> WebService | None:
    keys = WebServiceKeys.read(value, path, context)
    if keys is None or keys.url is None:
        return None
    if "{{" not in f"{keys.url}{keys.body}{keys.headers}":
        keys.node.report_missing(
            "body", 'Put the prompt into the request, such as body: {question: "{{prompt}}"}.'
        )
    return WebService(
        url=keys.url,
        method=keys.method or ("GET" if keys.body is None else "POST"),
        headers=keys.headers or {},
        body=cast("JsonValue", keys.body),
        response=keys.response or "",
        usage=_without_none(keys.usage),
        folder=_folder(context),
    )


HTTP: Final = Kind(_read_http, WebServiceKeys.schema())


class _ProgramKeys(Protocol):
    """The keys of a candidate that describe programs."""

    node: Node
    python: Function | None
    command: Command | None
    http: WebService | None
    agent: Agent | None
    timeout: float | None
    offline: bool | None


def program_of(keys: _ProgramKeys) -> Program | None:
    """Return a candidate's program with its time limit; None if it has none, several or an invalid
    program.
    """
    node = keys.node
    named = [kind for kind in KINDS if kind in node]
    if not named:
        return None
    for other in ("model", *named[1:]):
        if other in node:
            node.report(
                other,
                f"is given together with `{named[0]}`, but a candidate has only one of these keys.",
                "Keep one of them.",
            )
    for stray in ("base_url", "context_tokens"):
        if stray in node:
            node.report(
                stray, f"describes a model, but the candidate is `{named[0]}`.", "Remove it."
            )
    if "name" not in node:
        node.report_missing("name", "Give the candidate a name.")
    program: Program | None = getattr(keys, named[0])
    if program is None:
        return None
    limit_s = program.timeout_s if keys.timeout is None else keys.timeout
    return replace(program, offline=bool(keys.offline), timeout_s=limit_s)


def _folder(context: ReadContext) -> str:
    return str(context.files.folder.resolve())


def _without_none(paths: Mapping[str, str] | None) -> dict[str, str]:
    return {name: path for name, path in (paths or {}).items() if path}
