"""Read the templates of specialists: JSON5 files with inheritance, checked against a published JSON
Schema.

A template is somebody else's file, so its size and nesting are limited, and it cannot use files
outside its project folder.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assay.domain.errors import InputError, SuiteError, SuiteErrors, UnknownName, did_you_mean
from assay.domain.specialists import SpecialistTemplate, short_name
from assay.domain.unescaped_json import unescaped_json
from assay.specialists.json5_values import TooLarge, read_json5_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.domain.digest import JsonValue
    from assay.specialists.comparison import Section

LARGEST_TEMPLATE: Final = 500_000
"""Maximum bytes of a template; `json5_values.MAX_TOKENS` bounds the time that its numbers, names
and marks take.
"""

TEMPLATES: Final = "templates"
"""Folder of a project in which templates are looked up by name."""

_MAX_PARENTS: Final = 10
_NAME: Final = re.compile(r"((?:@[a-z0-9-]+/)?[a-z0-9-]+)(?:@([0-9A-Za-z.+-]+))?")
_ENRICHED: Final = re.compile(r"enriched-([0-9]{3,9})\.json5")


def extra(module: str) -> Any:
    """Return a module from the packages of the extra `specialists`; raises `InputError` if it is
    not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = "json-five" if module.startswith("json5") else module.partition(".")[0]
        problem = f"need the package {package}, which is not installed."
        raise InputError(
            "specialists", problem, remedy="pip install 'assay-bench[specialists]'"
        ) from error


@cache
def read_schema(name: str) -> dict[str, JsonValue]:
    """Return the JSON Schema (2020-12) of `template` or `snapshot` files."""
    schema: dict[str, JsonValue] = json.loads(
        (files(__package__) / f"{name}.schema.json").read_text("utf-8")
    )
    return schema


def read_template(path: Path) -> SpecialistTemplate:
    """Return a template merged with its parents, whose own values come first; a list replaces the
    parent's list.

    Parents lie in the folder `templates` that contains the template, or else in the template's own
    folder. Raises `SuiteErrors` with every violation of the schema, and `InputError` for a file or
    a parent that cannot be used.
    """
    home = home_of(path).resolve()
    document = _merged(
        path,
        next((folder for folder in (home, *home.parents) if folder.name == TEMPLATES), home),
        (),
    )
    if problems := violations(document, "template"):
        raise SuiteErrors(
            [SuiteError(f"{path} {where}".rstrip(), problem) for where, problem in problems]
        )
    preferred = (
        each if isinstance(each, dict) else {"model": each}
        for each in document.get("preferred_models", ())
    )
    return SpecialistTemplate(
        preferred_models=tuple(
            each["model"] for each in preferred if each.get("specialist_enabled", True)
        ),
        documentation=tuple(document.get("documentation", ())),
        prompts=document.get("prompts", {}),
        document=document,
        **{name: document[name] for name in ("name", "version", "persona", "capabilities")},
    )


def template_problems(path: Path) -> tuple[SuiteError, ...]:
    """Return all problems of a template."""
    try:
        read_template(path)
    except SuiteErrors as errors:
        return errors.errors
    except InputError as error:
        return (SuiteError(error.where, error.problem, remedy=error.remedy),)
    return ()


def read_limited(path: Path, most: int, remedy: str = "") -> bytes:
    """Return the content of a file; raises `InputError` if it is not a file, cannot be read or has
    more than `most` bytes.
    """
    try:
        if not path.is_file():
            raise InputError(str(path), "is not a file.", remedy=remedy)
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror or error}.") from error
    if len(content) > most:
        raise InputError(str(path), f"has more than {most:,} bytes.")
    return content


def read_json5(path: Path) -> tuple[Section, str]:
    """Return the object in a JSON5 file, and the file's text; raises `InputError` if there is no
    such object.
    """
    content = read_limited(
        path, LARGEST_TEMPLATE, "Create a template: assay init --specialist NAME"
    )
    try:
        text = content.decode("utf-8-sig")
        value = read_json5_value(text)
        unescaped_json(value, allow_nan=False).encode()  # no Infinity, NaN or half of a character
    except TooLarge as error:
        raise InputError(str(path), str(error)) from error
    except ValueError as error:
        raise InputError(str(path), f"is not valid JSON5: {str(error)[:300]}") from error
    if not isinstance(value, dict):
        raise InputError(str(path), "is not an object, expected { name: …, version: …, … }.")
    return value, text


def violations(document: Mapping[str, Any], schema: str) -> list[tuple[str, str]]:
    """Return all violations of the schema with this name as (path in the document, problem), in the
    order of the document.
    """
    problems = []
    for violation in (
        extra("jsonschema").Draft202012Validator(read_schema(schema)).iter_errors(document)
    ):
        where = "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in violation.absolute_path
        ).lstrip(".")
        if violation.validator == "required":
            missing = [name for name in violation.validator_value if name not in violation.instance]
            problems += [(f"{where}.{name}".lstrip("."), "is missing.") for name in missing]
        elif violation.validator == "additionalProperties" and violation.validator_value is False:
            known = violation.schema["properties"]
            unknown = [
                name
                for name in violation.instance
                if name not in known and not name.startswith(("x-", "_"))
            ]
            problems += [
                (f"{where}.{name}".lstrip("."), f"is unknown.{did_you_mean(name, known)}")
                for name in unknown
            ]
        else:
            shown = unescaped_json(violation.instance)
            shown = shown if len(shown) <= 60 else f"{shown[:59]}…"
            problems.append(
                (
                    where,
                    f"is {shown}, expected {violation.schema.get('description', violation.message)}.",
                )
            )
    return list(dict.fromkeys(problems))


def home_of(path: Path) -> Path:
    """Return the folder to which a template's relative paths refer; an enriched template has the
    original's folder.
    """
    if (
        not _ENRICHED.fullmatch(path.name)
        or len(path.parents) < 3
        or path.parents[1].name != "enriched"
    ):
        return path.parent
    folder = path.parents[2]
    beside = folder.parent / f"{folder.name}.json5"
    return folder.parent if beside.is_file() and not (folder / beside.name).is_file() else folder


def enriched_folder(path: Path, version: str) -> Path:
    """Return the folder of a template's enriched versions: `enriched/VERSION` in a folder with the
    template's own name.
    """
    home = home_of(path)
    if home != path.parent:  # an enriched template
        return path.parents[1] / version
    return (home if home.name == path.stem else home / path.stem) / "enriched" / version


def most_enriched(path: Path) -> Path:
    """Return the newest enriched version of a template, else `NAME/VERSION/NAME.json5`, else the
    template.

    An enriched version that differs from the template by more than its enrichment is older than the
    template, and left out.
    """
    template = read_template(path)
    home, own = home_of(path), _without_enrichment(template)
    folders = dict.fromkeys(
        (enriched_folder(path, template.version), home / "enriched" / template.version)
    )
    files_there = [file for folder in folders for file in folder.glob("enriched-*.json5")]
    numbered = [
        (int(match[1]), file) for file in files_there if (match := _ENRICHED.fullmatch(file.name))
    ]
    copies = [home / path.stem / template.version / path.name, home / template.version / path.name]
    for file in [
        *(file for _, file in sorted(numbered, reverse=True)),
        *(file for file in copies if file.is_file()),
    ]:
        if _without_enrichment(read_template(file)) == own:
            return file
    return path


def find_template(wanted: str, folder: Path) -> Path:
    """Return the file `NAME.json5` in or below a folder with the template `@org/name` or `name`,
    optionally with `@version`.

    Without a version, the highest one is returned. Raises `UnknownName` if there is no such
    template.
    """
    match = _NAME.fullmatch(wanted)
    if match is None:
        raise InputError(
            "specialist",
            f"is {wanted!r}, expected a file, or a name such as @org/react-expert@1.0.0.",
        )
    known: dict[tuple[str, str], Path] = {}
    for file in sorted(folder.rglob(f"{short_name(match[1])}.json5")):
        document, _ = read_json5(file)
        known.setdefault((str(document.get("name")), str(document.get("version"))), file)
    fitting = [
        (_order(version), file)
        for (name, version), file in known.items()
        if match[1] in (name, short_name(name)) and match[2] in (None, version)
    ]
    if not fitting:
        remedy = f"Give its file, or create it: assay init --specialist {match[1]}"
        raise UnknownName(
            "specialist", wanted, [f"{name}@{version}" for name, version in known], remedy=remedy
        )
    return max(fitting)[1]


def _order(version: str) -> tuple[tuple[int, ...], bool, str]:
    core, _, later = version.partition("-")
    return tuple(int(part) for part in re.findall(r"\d+", core)), not later, later


def _without_enrichment(template: SpecialistTemplate) -> Section:
    documents = [
        {key: value for key, value in each.items() if key != "enrichment"}
        for each in template.documentation
    ]
    return {**template.document, "documentation": documents}


def _merged(path: Path, root: Path, children: tuple[Path, ...]) -> Section:
    own = path.resolve()
    if own in children or len(children) > _MAX_PARENTS:
        raise InputError(
            f"{children[-1]} from",
            f"leads back to {path}." if own in children else "has too many parents.",
        )
    document, _ = read_json5(path)
    parent = document.pop("from", None)
    if parent is None:
        return document
    if not isinstance(parent, str) or not parent:
        raise InputError(f"{path} from", f"is {parent!r}, expected the path or name of a template.")
    place = find_template(parent, root) if _NAME.fullmatch(parent) else home_of(path) / parent
    if not place.resolve().is_relative_to(root):
        raise InputError(f"{path} from", f"is {parent!r}, which lies outside of {root}.")
    return _overridden(_merged(place, root, (*children, own)), document)


def _overridden(parent: Section, child: Section) -> Section:
    both = {
        name
        for name in child
        if isinstance(child[name], dict) and isinstance(parent.get(name), dict)
    }
    return {**parent, **child, **{name: _overridden(parent[name], child[name]) for name in both}}
