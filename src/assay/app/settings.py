"""Read the settings and their origins.

`assay.yaml` overrides defaults, ASSAY_* variables override both, options override all.

A project's files (`assay.yaml` and `.env`) may come from somebody else, for example with a
repository. They may set only what `settings.toml` marks with `project = true`. Everything else
(programs to run, keys, tokens, addresses that receive notices or results) comes from the user's own
file, the environment or the command line.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.resources import files
from io import StringIO
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from assay.app.project_files import find_upwards, home, read_project_file, user_file
from assay.domain.errors import SettingsError, did_you_mean
from assay.providers.origin import is_local

if TYPE_CHECKING:
    from assay.domain.digest import JsonValue

FILE: Final = "assay.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting: its key, purpose, default and JSON type.

    `project`: True if a project's files may set it.
    """

    key: str
    about: str
    default: JsonValue
    kind: str
    project: bool = False

    @property
    def variable(self) -> str:
        return f"ASSAY_{self.key.upper().replace('.', '_')}"


SETTINGS: Final = tuple(
    Setting(**{"default": None, **row}, key=key)
    for key, row in tomllib.loads((files(__package__) / "settings.toml").read_text("utf-8")).items()
)

_OTHER_VARIABLES: Final = ("ASSAY_TOKEN", "ASSAY_HOSTS", "ASSAY_TRUSTED_FOLDERS", "ASSAY_DEBUG")
"""Variables that are no setting; a project's `.env` cannot set them.

A known `ASSAY_TOKEN` would open the user's server.
"""

_BY_KEY: Final = {setting.key: setting for setting in SETTINGS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one working folder.

    Attributes:
        values: value of every setting, by key.
        origins: origin of each value, by key: `default`, a file, a variable or an option.
        folder: the folder of `assay.yaml`, or the working folder if there is no such file.
        working_folder: the folder from which a person names files.
        environment: environment variables and those of `.env`; never printed, because they contain
            keys.
        project_variables: variables that `.env` sets.
    """

    values: Mapping[str, Any]
    origins: Mapping[str, str]
    folder: Path
    working_folder: Path
    environment: Mapping[str, str] = field(repr=False)
    project_variables: frozenset[str] = frozenset()

    @property
    def read_from(self) -> tuple[Path, ...]:
        """Folders from which suites may read files: the project folder and the folders in the
        settings.
        """
        return self.folder, *(self.folder / str(named) for named in self.values["read_from"])

    @property
    def judge_refs(self) -> tuple[str, ...]:
        judge = self.values["judge"]
        entries = judge if isinstance(judge, list) else [judge]
        refs = (entry.get("model") if isinstance(entry, Mapping) else entry for entry in entries)
        return tuple(ref for ref in refs if isinstance(ref, str))

    def cap_usd(self, requested: float | None = None) -> float | None:
        """Return the requested maximum cost, or that of the settings if none is requested."""
        default: float | None = self.values["budget"]
        return default if requested is None else requested

    @property
    def store_url(self) -> str:
        """Address of the store; a plain path is a SQLite file.

        The default is a file in the project folder.
        """
        named = str(self.values["store"] or self.folder / ".assay" / "assay.db")
        return named if "://" in named else f"sqlite:///{named}"


def read_settings(
    folder: Path,
    *,
    environment: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
) -> Settings:
    """Read the settings of a folder.

    Args:
        folder: the working folder, from which `project_files` searches for `assay.yaml` and `.env`.
        environment: environment variables; None for those of this process.
        options: command-line values by key; None values are ignored.

    Raises SettingsError for an unreadable file, a file that another user may have written, an
    unknown key, a value of the wrong type, or a setting in a project file that only the user may
    set.
    """
    process = os.environ if environment is None else environment
    own_file = user_file(process)
    file = find_upwards(folder, FILE, process)
    if file is not None and file == own_file:
        file = None
    dotenv = {
        name: value for name, value in _dotenv(folder, process).items() if name not in process
    }
    variables = {**dotenv, **process}
    own = _from_file(own_file, process) if own_file is not None and os.path.isfile(own_file) else {}
    project = _from_file(file, process) if file else {}
    _refuse_own(
        {key: _BY_KEY[key].variable for key in project if not _BY_KEY[key].project},
        str(file),
        own_file,
    )
    forbidden = {
        setting.key: setting.variable
        for setting in SETTINGS
        if not setting.project and dotenv.get(setting.variable)
    }
    forbidden |= {variable: variable for variable in _OTHER_VARIABLES if dotenv.get(variable)}
    _refuse_own(forbidden, str(find_upwards(folder, ".env", process)), own_file)
    if own.get("local_only"):
        # a project may restrict the network further, but never loosen a restriction
        project.pop("local_only", None)
        if "ASSAY_LOCAL_ONLY" in dotenv:
            del variables["ASSAY_LOCAL_ONLY"]
    values: dict[str, Any] = {setting.key: setting.default for setting in SETTINGS}
    origins = dict.fromkeys(values, "default")
    layers = [
        (own, str(own_file)),
        (project, str(file)),
        (_from_variables(variables), ""),
        ({k: v for k, v in (options or {}).items() if v is not None}, "option"),
    ]
    for layer, origin in layers:
        for key, value in layer.items():
            # `keys:` without a value; code that expects a list or a mapping would fail on None
            if value is None:
                continue
            values[key] = value
            origins[key] = origin or _BY_KEY[key].variable
    settings_folder = file.parent if file else folder
    of_project = {key: origin for key, origin in origins.items() if origin in (str(file), *dotenv)}
    if "read_from" in of_project:
        _refuse_outside(values["read_from"], of_project["read_from"], settings_folder, process)
    if "store" in of_project:
        _refuse_store(str(values["store"]), of_project["store"], folder, settings_folder, process)
    if "results" in of_project and isinstance(values["results"], str):
        _refuse_results(values["results"], of_project["results"], settings_folder, process)
    if "web_allow_origins" in of_project:
        _refuse_remote_origins(values["web_allow_origins"], of_project["web_allow_origins"])
    if (
        "budget" in of_project
        and own.get("budget") is not None
        and values["budget"] > own["budget"]
    ):
        # a project may lower the user's own maximum, but never raise it
        values["budget"] = own["budget"]
        origins["budget"] = str(own_file)
    return Settings(
        values=values,
        origins=origins,
        folder=settings_folder,
        working_folder=folder,
        environment=variables,
        project_variables=frozenset(dotenv),
    )


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema of `assay.yaml`, for editors."""
    # The grammar takes a tenth of a second to build, and every command reads settings.
    from assay.suites.rubrics import RUBRIC

    kinds = ("string", "boolean", "integer", "number", "object")
    types: dict[str, dict[str, Any]] = {kind: {"type": kind} for kind in kinds}
    types |= {"any": {}, "array": {"type": "array", "items": {"type": "string"}}}
    own: dict[str, dict[str, Any]] = {"rubric": {"anyOf": [{"type": "string"}, RUBRIC.schema]}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Assay settings",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            s.key: {"description": s.about, **own.get(s.key, types[s.kind])} for s in SETTINGS
        },
    }


def _refuse_own(forbidden: Mapping[str, str], where: str, own_file: Path | None) -> None:
    """Raise `SettingsError` if a project file has a setting that only the user may set.

    `forbidden`: the variable that sets it, by the name to show.
    """
    for key, variable in forbidden.items():
        place = (
            f"Write it into {own_file}, or set"
            if own_file is not None and key != variable
            else "Set"
        )
        raise SettingsError(
            f"{where}, {key}",
            "cannot be set by a project's file, which may come from somebody else. A project's file may set only: "
            f"{', '.join(setting.key for setting in SETTINGS if setting.project)}.",
            remedy=f"{place} {variable} in the environment.",
        )


def _refuse_outside(
    named: Iterable[object], origin: str, folder: Path, environment: Mapping[str, str]
) -> None:
    """Raise `SettingsError` if a project file lets suites read folders outside the project."""
    for name in named:
        if not _inside(str(name), folder, folder, environment):
            raise SettingsError(
                f"read_from ({origin})",
                f"names {str(name)!r}, which lies outside the project. A project's file may come from somebody else, and its "
                "suites could send your other files to models.",
                remedy="Set ASSAY_READ_FROM in the environment.",
            )


def _refuse_results(
    results: str, origin: str, folder: Path, environment: Mapping[str, str]
) -> None:
    """Raise `SettingsError` if a project file would let Assay write its results folder outside the
    project.
    """
    if results and not _inside(results, folder, folder, environment):
        raise SettingsError(
            f"results ({origin})",
            f"names {results!r}, which lies outside the project. A project's file may come from somebody else, and Assay would "
            "write into your other folders.",
            remedy="Set ASSAY_RESULTS in the environment.",
        )


def _refuse_store(
    store: str, origin: str, working_folder: Path, folder: Path, environment: Mapping[str, str]
) -> None:
    """Raise `SettingsError` if a project file names a store on another machine, or a file outside
    the project.
    """
    if store.startswith("postgres"):
        if not all(name.startswith("/") or is_local(name) for name in _postgres_hosts(store)):
            raise SettingsError(
                f"store ({origin})",
                "names a PostgreSQL server beyond this machine and network. A project's file may come from somebody else, and that "
                "server would get every prompt and answer.",
                remedy="Set ASSAY_STORE in the environment, use --store, or write it into your own settings.",
            )
        _refuse_borrowed_password(store, origin, environment)
        return
    path = store.removeprefix("sqlite:///")
    if not _inside(path, working_folder, folder, environment):
        raise SettingsError(
            f"store ({origin})",
            f"names {path!r}, which lies outside the project. A project's file may come from somebody else, and Assay would "
            "write into your other files.",
            remedy="Set ASSAY_STORE in the environment, or use --store.",
        )


def _postgres_hosts(store: str) -> list[str]:
    """Return every host that a PostgreSQL address names, also as a parameter; an address that
    cannot be read names itself.
    """
    try:
        parts = urlsplit(store)
        host = parts.hostname
    except ValueError:
        return [store]
    parameters = parse_qs(parts.query)
    listed = [
        *parameters.get("host", []),
        *parameters.get("hostaddr", []),
        *([host] if host else []),
    ]
    return [name for text in listed for name in text.split(",")]


def _refuse_remote_origins(named: Iterable[object], origin: str) -> None:
    """Raise `SettingsError` if a project file lets the web app send prompts to another machine."""
    for name in named:
        try:
            host = urlsplit(str(name)).hostname or ""
        except ValueError:
            continue  # `address_rules` refuses it with its own message
        if host and not is_local(host):
            raise SettingsError(
                f"web_allow_origins ({origin})",
                f"names {str(name)!r}, which is beyond this machine and network. A project's file may come from somebody else, "
                "and runs that start in the browser could send your data there.",
                remedy="Set ASSAY_WEB_ALLOW_ORIGINS in the environment, or write it into your own settings.",
            )


def _inside(name: str, start: Path, folder: Path, environment: Mapping[str, str]) -> bool:
    """True if a path, seen from `start`, lies in the project of `folder` (its repository, if it is
    in one) and not in `.git`.
    """
    user_home, bottom = home(environment), folder.resolve()
    above = takewhile(lambda place: place != user_home, (bottom, *bottom.parents))
    root = next((place for place in above if (place / ".git").exists()), bottom)
    if "\0" in name:
        return False
    place = Path(os.path.realpath(start / name))
    return place.is_relative_to(root) and ".git" not in place.relative_to(root).parts


def _refuse_borrowed_password(store: str, origin: str, environment: Mapping[str, str]) -> None:
    """Raise `SettingsError` if a project file names a PostgreSQL server that would receive the
    user's own password.
    """
    if not store.startswith("postgres"):
        return
    with suppress(ValueError):
        if urlsplit(store).password:
            return
    user_home = home(environment) or Path.home()
    kept = [
        name
        for name in ("PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGSERVICEFILE")
        if environment.get(name)
    ]
    kept += [f"~/{name}" for name in (".pgpass", ".pg_service.conf") if (user_home / name).exists()]
    if kept:
        raise SettingsError(
            f"store ({origin})",
            "names a PostgreSQL server without its password. A project's file may come from somebody else, and that server "
            f"would get your own password ({', '.join(kept)}).",
            remedy="Set ASSAY_STORE in the environment, or use --store.",
        )


def _dotenv(folder: Path, environment: Mapping[str, str]) -> Mapping[str, str]:
    file = find_upwards(folder, ".env", environment)
    if file is None:
        return {}
    from dotenv import dotenv_values  # only needed if the file exists

    # With interpolation, OPENAI_BASE_URL=http://elsewhere/${OPENAI_API_KEY} would send a key of the
    # environment away.
    content = dotenv_values(
        stream=StringIO(read_project_file(file, environment)), interpolate=False
    )
    return {key: value for key, value in content.items() if value is not None}


def _from_file(file: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    content = _yaml(read_project_file(file, environment), str(file))
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SettingsError(
            str(file), f"holds {type(content).__name__}, but must be a mapping of settings."
        )
    for key, value in content.items():
        if key not in _BY_KEY:
            problem = f"{key!r} is not a setting.{did_you_mean(str(key), _BY_KEY)}"
            raise SettingsError(str(file), problem, remedy=f"Known: {', '.join(_BY_KEY)}.")
        _check(_BY_KEY[key], value, f"{file}, {key}")
    return content


def _from_variables(variables: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for setting in SETTINGS:
        name = setting.variable
        text = variables.get(name)
        if text:
            # Text is taken literally: as YAML, a reviewer named `on` or `007` would become another
            # value.
            values[setting.key] = text if setting.kind == "string" else _yaml(text, name)
            _check(setting, values[setting.key], name)
    return values


def _yaml(text: str, where: str) -> Any:
    """Parse YAML with the limits that suites have: depth, size and unique keys."""
    # only where there is something to read
    from assay.suites.located_yaml import UnreadableText, plain, read_yaml

    try:
        document = read_yaml(text)
    except UnreadableText as error:
        place = f"{where}:{error.line}" if error.line else where
        raise SettingsError(place, error.problem, remedy=error.remedy) from error
    for misuse in document.misuses:
        raise SettingsError(
            f"{where}, {'.'.join(map(str, misuse.path))}", misuse.problem, remedy=misuse.remedy
        )
    return plain(document.value)


def _check(setting: Setting, value: object, where: str) -> None:
    fits = {
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": int | float,
        "object": dict,
        "array": list,
        "any": object,
    }
    # In Python True is an integer, but `concurrency: true` must not mean 1.
    wrong_number = isinstance(value, bool) and setting.kind in {"integer", "number"}
    if value is not None and (wrong_number or not isinstance(value, fits[setting.kind])):
        raise SettingsError(
            where,
            f"is {value!r}, but must be of type {setting.kind}.",
            remedy=f"It sets {setting.about}.",
        )
