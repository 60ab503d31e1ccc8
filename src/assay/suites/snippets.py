"""Reads the snippets of a task for each candidate: text, or the files that contain it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assay.domain.suite import SourceFile
from assay.suites.grammar import (
    NAME,
    TEXT,
    Keys,
    Kind,
    ReadContext,
    Schema,
    key,
    list_of,
    made_of,
    read_name,
    read_text,
)
from assay.suites.located_yaml import Value, shown
from assay.suites.problems import Path


@dataclass(frozen=True, slots=True)
class SnippetEntry:
    """Files that a suite gives for a candidate, and the path of this entry in the suite."""

    path: Path
    candidate: str
    files: tuple[SourceFile, ...]


# --- snippets by the candidate's name -------------------------------------------------------------

_FILE_PATH: Final = Kind(read_text, {"type": "string", "minLength": 1})


class SnippetFileKeys(Keys):
    """The keys that give a snippet's files; exactly one must be given."""

    file = key(_FILE_PATH)
    files = key(list_of(_FILE_PATH, empty="is an empty list, expected at least one path."))
    folder = key(_FILE_PATH)


def _named_files(keys: SnippetFileKeys) -> tuple[SourceFile, ...] | None:
    node = keys.node
    given = [name for name in ("file", "files", "folder") if name in node]
    if len(given) != 1:
        problem = f"has {' and '.join(f'`{name}`' for name in given)}" if given else "has no `file`"
        node.context.report(
            node.path, f"{problem}, expected exactly one of `file`, `files` and `folder`."
        )
        return None
    if keys.folder is not None:
        contents = node.context.files.folder_texts(keys.folder, node.at("folder"), node.context)
    else:
        listed = [(node.at("file"), keys.file)] if keys.file is not None else keys.files or []
        named = node.values.get("files")
        if isinstance(named, list) and len(listed) < len(named):
            return None
        contents = _contents(listed, node.context)
    if not contents:
        return None
    if not any(content.strip() for _, content in contents):
        names = f"file {contents[0][0]!r}" if len(contents) == 1 else "files"
        node.report(given[0], f"names {names} with no text, expected the candidate's text.")
        return None
    return tuple(SourceFile(path=path, content=content) for path, content in contents)


def _contents(
    listed: Sequence[tuple[Path, str]], context: ReadContext
) -> list[tuple[str, str]] | None:
    """Return the contents of all named files; None if no file is named, or if one cannot be read.

    Parent folders that all paths share are removed, because their name is often the candidate's,
    which a judge must not see.
    """
    texts = [context.files.text(named, path, context) for path, named in listed]
    if not texts or any(text is None for text in texts):
        return None
    parts = [named.replace("\\", "/").split("/") for _, named in listed]
    shared = 0
    while all(len(steps) > shared + 1 and steps[shared] == parts[0][shared] for steps in parts):
        shared += 1
    return [
        ("/".join(steps[shared:]), text or "") for steps, text in zip(parts, texts, strict=True)
    ]


_FILES: Final = made_of(SnippetFileKeys, _named_files)


def _read_source(value: Value, path: Path, context: ReadContext) -> tuple[SourceFile, ...] | None:
    if isinstance(value, dict):
        return _FILES.read(value, path, context)
    if value is None or (isinstance(value, str) and not value.strip()):
        context.report(path, "is empty, expected the candidate's text.")
        return None
    if isinstance(value, list):
        context.report(
            path,
            f"is {shown(value)}, expected text, {{file: ...}}, {{files: [...]}} or {{folder: ...}}.",
        )
        return None
    content = read_text(value, path, context)
    return None if content is None else (SourceFile(path="", content=content),)


def _read_snippets(value: Value, path: Path, context: ReadContext) -> list[SnippetEntry] | None:
    if not isinstance(value, dict):
        context.report(path, f"is {shown(value)}, expected a mapping.")
        return None
    if not value:
        context.report(path, "is empty, expected text by the candidate's name.")
    entries = []
    for name, source in value.items():
        inner = (*path, name)
        candidate = read_name(name, inner, context)
        files = _read_source(source, inner, context)
        if candidate is not None and files is not None:
            entries.append(SnippetEntry(inner, candidate, files))
    return entries


_SOURCE: Final[Schema] = {
    "anyOf": [
        {**TEXT.schema, "minLength": 1},
        {"minProperties": 1, "maxProperties": 1, **_FILES.schema},
    ]
}
SNIPPETS: Final = Kind(
    _read_snippets, {"type": "object", "minProperties": 1, "additionalProperties": _SOURCE}
)


# --- snippets of set files ------------------------------------------------------------------------


class ListedSnippetKeys(Keys):
    """A snippet in a set file."""

    name = key(NAME, required="Name the candidate who wrote it.")
    content = key(
        Kind(read_text, {**TEXT.schema, "minLength": 1}), required="Give the snippet its text."
    )


def _listed_snippet(keys: ListedSnippetKeys) -> SnippetEntry | None:
    if keys.content is not None and not keys.content.strip():
        keys.node.report("content", "is empty, expected the candidate's text.")
    elif keys.name is not None and keys.content is not None:
        files = (SourceFile(path="", content=keys.content),)
        return SnippetEntry(keys.node.at("name"), keys.name, files)
    return None


_LISTED: Final = list_of(
    made_of(ListedSnippetKeys, _listed_snippet),
    empty="is an empty list, expected {name, content} for each candidate.",
)


def _read_listed(value: Value, path: Path, context: ReadContext) -> list[SnippetEntry]:
    return [entry for _, entry in _LISTED.read(value, path, context) or ()]


LISTED_SNIPPETS: Final = Kind(_read_listed, _LISTED.schema)
