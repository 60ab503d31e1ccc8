"""List plug-ins: Assay's own and those of installed packages, with their options and problems.

The options of a plug-in are those that its docstring describes under the line `Options:`, as `name:
what it does`. Options of an agent's class are also the parameters of the class.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, Final

from assay.agents.opening import WORKSPACE_AGENTS
from assay.app.exports.exporters import EXPORTERS
from assay.app.surface_plugins import COMMAND_PLUGINS, PAGE_PLUGINS
from assay.app.wire import document
from assay.domain.errors import AssayError
from assay.exchange.importers import IMPORTERS
from assay.providers.programs.opening import AGENTS
from assay.providers.registry import PROVIDERS
from assay.scoring.evaluator_plugins import EVALUATOR_PLUGINS
from assay.scoring.graders import GRADERS
from assay.scoring.scorer_registry import SCORER_REGISTRY
from assay.scoring.scorers import known_options

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from assay.plugin_registry import Offer, Registry

REGISTRIES: Final[Mapping[str, Registry[Any]]] = {
    "provider": PROVIDERS,
    "scorer": SCORER_REGISTRY,
    "grader": GRADERS,
    "agent": AGENTS,
    "workspace agent": WORKSPACE_AGENTS,
    "importer": IMPORTERS,
    "exporter": EXPORTERS,
    "evaluator": EVALUATOR_PLUGINS,
    "command": COMMAND_PLUGINS,
    "page": PAGE_PLUGINS,
}
"""Every registry by the word for its plug-ins."""

_OPTION: Final = re.compile(r"(?P<name>[\w.*-]+): *(?P<about>.*)")


@document
class PluginOptionDocument:
    """An option of a plug-in; `about` is empty if its docstring does not describe it."""

    name: str
    about: str


@document
class PluginDocument:
    """A plug-in.

    Attributes:
        package, version: of the distribution that offers it; null for Assay's own.
        about: first paragraph of its docstring.
        problem: the reason why it cannot be used; null if it can.
    """

    kind: str
    name: str
    package: str | None
    version: str | None
    about: str
    options: tuple[PluginOptionDocument, ...]
    problem: str | None


def installed_plugins(own_commands: Collection[str]) -> tuple[PluginDocument, ...]:
    """Return every plug-in, by kind; those of packages after Assay's own. Imports all of them.

    Args:
        own_commands: names of Assay's commands, which no plug-in can replace.
    """
    return tuple(
        _described(kind, registry, offer, own_commands if kind == "command" else ())
        for kind, registry in REGISTRIES.items()
        for offer in registry.offers()
    )


def _described(
    kind: str, registry: Registry[Any], offer: Offer, taken: Collection[str]
) -> PluginDocument:
    about = ""
    options: tuple[PluginOptionDocument, ...] = ()
    problem = offer.problem or None
    if offer.name in taken:
        problem = f"is ignored, because Assay has its own {kind} of this name."
    if problem is None:
        try:
            part = registry.load(offer.name)
            about, options = _documentation(part, offer, kind)
        except AssayError as error:
            problem = f"{error.problem} {error.remedy}".strip()
    return PluginDocument(
        kind=kind,
        name=offer.name,
        package=offer.package,
        version=offer.version,
        about=about,
        options=options,
        problem=problem,
    )


def _documentation(
    part: object, offer: Offer, kind: str
) -> tuple[str, tuple[PluginOptionDocument, ...]]:
    """Return the first paragraph of a plug-in's docstring, and its options."""
    text = inspect.getdoc(getattr(part, "callback", part)) or ""  # a command's function has it
    known = dict(_options_in(text))
    if kind == "scorer" and not offer.of_package:
        known = {name: known.get(name, "") for name in known_options(offer.name)}
    if kind == "agent" and inspect.isclass(part):
        known = {name: known.get(name, "") for name in _parameters(part)}
    options = tuple(PluginOptionDocument(name=name, about=known[name]) for name in known)
    return " ".join(text.partition("\n\n")[0].split()), options


def _options_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the description of each option under the line `Options:`."""
    _, heading, rest = text.partition("\nOptions:\n")
    name, words = "", list[str]()
    for line in rest.splitlines() if heading else ():
        if not line.startswith(" "):
            break
        option = _OPTION.fullmatch(line.strip())
        if option is not None and len(line) - len(line.lstrip()) <= 4:
            if name:
                yield name, " ".join(words)
            name, words = option["name"], [option["about"]]
        else:
            words.append(line.strip())
    if name:
        yield name, " ".join(words)


def _parameters(agent: type) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(agent).parameters
    except (TypeError, ValueError):  # a class of a C extension
        return ()
    return tuple(
        name
        for name, parameter in parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    )
