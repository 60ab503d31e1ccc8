"""Registries of providers, scorers, importers and other plug-ins, from Assay and from installed
packages.

A package offers a plug-in through an entry point:

    [project.entry-points."assay.importers"]
    my_format = "my_package.my_format"

Plug-ins that Assay always needs are listed in tables, because reading entry points takes 12 ms and
imports `importlib.metadata` (25 ms). Assay's distribution offers its other plug-ins through entry
points too. The command line reads entry points only for a name that is not in the table, or if it
needs all plug-ins. A plug-in from another package cannot replace one of Assay's own.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

from assay.domain.digest import bytes_digest
from assay.domain.errors import SettingsError, UnknownName

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from importlib.metadata import EntryPoint

Part = TypeVar("Part")

DISTRIBUTION: Final = "assay-bench"
"""Name of Assay's own distribution."""


_ENTRY_POINT_LISTS: Final = (
    "*.dist-info/entry_points.txt",
    "*.egg-info/entry_points.txt",
    "EGG-INFO/entry_points.txt",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A plug-in that Assay or an installed package offers.

    Attributes:
        package, version: of the distribution; None for Assay's own, and if unknown.
        problem: the reason why its name leads to another plug-in; empty if it can be loaded.
        of_package: True if another package offers it.
    """

    name: str
    package: str | None
    version: str | None
    problem: str
    of_package: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry(Generic[Part]):
    """Plug-ins of one type, such as importers, by name. Each plug-in is imported on first use.

    Attributes:
        kind: word for such a plug-in in messages, for example "importer".
        group: entry-point group in which packages offer such plug-ins.
        own: plug-ins that Assay always needs, as `module` or `module:attribute`, in the order in
            which they are tried.
        members: attributes that a plug-in must have.
    """

    kind: str
    group: str
    own: Mapping[str, str]
    members: tuple[str, ...]

    def plugin_names(self) -> tuple[str, ...]:
        """Return the sorted names of plug-ins from other packages."""
        entries = _entry_points(self.group).items()
        return tuple(
            name for name, entry in entries if name not in self.own and not _is_bundled(entry)
        )

    def own_names(self) -> tuple[str, ...]:
        """Return the names of Assay's own plug-ins: those of the table, then the others, sorted."""
        bundled = (name for name, entry in _entry_points(self.group).items() if _is_bundled(entry))
        return (*self.own, *bundled)

    def names(self) -> tuple[str, ...]:
        """Return all names: Assay's own in the order of the table, then those of packages."""
        return (*self.own_names(), *self.plugin_names())

    def load(self, name: str) -> Part:
        """Return the plug-in with this name.

        Raises:
            UnknownName: neither Assay nor an installed package has this plug-in.
            SettingsError: an installed package's plug-in cannot be imported or lacks a required
                member.
        """
        if name in self.own:
            return cast("Part", _imported(self.own[name]))
        entry = _entry_points(self.group).get(name)
        if entry is None:
            raise UnknownName(
                self.kind,
                name,
                self.names(),
                remedy=f"If a package offers this {self.kind}, install that package.",
            )
        return self._plugin(entry)

    def target(self, name: str) -> str:
        """Return the location of a plug-in as `module:attribute`, so that another process can
        import it; raises `UnknownName`.
        """
        entry = _entry_points(self.group).get(name)
        if entry is None:
            raise UnknownName(
                self.kind, name, self.names(), remedy="Install the package that offers it."
            )
        return entry.value

    def load_all(self) -> Iterator[Part]:
        """Load and yield every plug-in, in the order of `names`."""
        for name in self.names():
            yield self.load(name)

    def offers(self) -> Iterator[Offer]:
        """Yield every plug-in that Assay and installed packages offer, sorted within each package,
        with the reason why it cannot be used, if any. Loads none.
        """
        own = self.own_names()
        for name in own:
            yield Offer(name=name, package=None, version=None, problem="")
        chosen = _entry_points(self.group)
        for entry in _all_entry_points(self.group):
            if _is_bundled(entry):
                continue
            problem = ""
            if entry.name in own:
                problem = f"is ignored, because Assay has its own {self.kind} of this name."
            elif chosen[entry.name] != entry:
                problem = f"is ignored, because another package offers a {self.kind} of this name."
            yield Offer(
                name=entry.name,
                package=None if entry.dist is None else entry.dist.name,
                version=None if entry.dist is None else entry.dist.version,
                problem=problem,
                of_package=True,
            )

    def _plugin(self, entry: EntryPoint) -> Part:
        remedy = "Update the package, or uninstall it."
        try:
            part = entry.load()
        except (Exception, SystemExit) as error:
            # Importing a plug-in runs other people's code, so the message for any failure there
            # names the plug-in and a remedy.
            raise SettingsError(
                self._place(entry),
                f"cannot be loaded: {type(error).__name__}: {error}.",
                remedy=remedy,
            ) from error
        missing = [member for member in self.members if not hasattr(part, member)]
        if missing:
            raise SettingsError(
                self._place(entry),
                f"lacks {', '.join(f'`{name}`' for name in missing)}.",
                remedy=remedy,
            )
        return cast("Part", part)

    def _place(self, entry: EntryPoint) -> str:
        """Name a plug-in and its package for an error.

        Only an error asks for it: the name of the package costs 3 ms, because its metadata is
        parsed each time, and recognising one file loads all importers.
        """
        package = "a package" if entry.dist is None else f"the package {entry.dist.name}"
        return f"{self.kind} {entry.name!r} of {package}"


def source_of(module: str, folder: str) -> str:
    """Return the distributions of a module with their versions, and a digest of the module's file;
    empty for an unknown module.

    The folder is searched before `sys.path`. The module is not imported.
    """
    from importlib.machinery import PathFinder
    from importlib.metadata import packages_distributions, version

    spec, places = None, [folder, *sys.path]
    for part in module.split("."):
        spec = PathFinder.find_spec(part, places)
        if spec is None:
            return ""
        places = list(spec.submodule_search_locations or ())
    held = sorted(set(packages_distributions().get(module.partition(".")[0], ())))
    content = (
        Path(spec.origin).read_bytes()
        if spec is not None and spec.origin and spec.has_location
        else b""
    )
    return ", ".join([*(f"{name} {version(name)}" for name in held), bytes_digest(content)])


@lru_cache(maxsize=256)
def _imported(target: str) -> object:
    module, _, attribute = target.partition(":")
    loaded = import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


def _entry_points(group: str) -> Mapping[str, EntryPoint]:
    return _read_entry_points(group, tuple(sys.path))


def _all_entry_points(group: str) -> tuple[EntryPoint, ...]:
    return _read_all_entry_points(group, tuple(sys.path))


@lru_cache(maxsize=16)
def _read_entry_points(group: str, path: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    """Return a group's entry points by name, sorted. Of several with the same name, Assay's own
    counts, otherwise the last.
    """
    entries = _read_all_entry_points(group, path)
    return {entry.name: entry for entry in sorted(entries, key=lambda e: (e.name, _is_bundled(e)))}


def _is_bundled(entry: EntryPoint) -> bool:
    return (entry.name, entry.value) in _read_bundled(entry.group, tuple(sys.path))


@lru_cache(maxsize=16)
def _read_bundled(group: str, path: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """Return the names and places of the plug-ins that Assay's own distribution offers.

    Its list is read once, because the name of an entry point's distribution costs 3 ms: its
    metadata is parsed each time.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        entries = distribution(DISTRIBUTION).entry_points
    except PackageNotFoundError:  # run from a copy of the source
        return frozenset()
    return frozenset((entry.name, entry.value) for entry in entries if entry.group == group)


def _is_offered(group: str, path: Sequence[str]) -> bool:
    """True if an installed package may offer a plug-in of this group.

    Reads the lists of entry points as bytes, which takes 3 ms, and `importlib.metadata` is imported
    only for a group that stands in one. A package in an archive counts as one that may.
    """
    wanted = f"[{group}]".encode()
    for place in dict.fromkeys(path):
        folder = Path(place or ".")
        try:
            if folder.is_file() or any(
                wanted in listed.read_bytes()
                for pattern in _ENTRY_POINT_LISTS
                for listed in folder.glob(pattern)
            ):
                return True
        except OSError:  # unreadable for us, but perhaps not for `importlib.metadata`
            return True
    return False


@lru_cache(maxsize=16)
def _read_all_entry_points(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return a group's entry points, sorted by name.

    Tests and notebooks extend `sys.path`, so `path` is a cache key.
    """
    if not _is_offered(group, path):
        return ()
    from importlib.metadata import entry_points

    return tuple(sorted(entry_points(group=group), key=lambda entry: entry.name))
