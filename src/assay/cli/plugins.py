"""`assay plugins`: list plug-ins, Assay's own and those of installed packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from assay.cli.output import counted, print_json, say, say_table, tell
from assay.cli.parameters import option

if TYPE_CHECKING:
    from assay.app.installed_plugins import PluginDocument


@click.command()
@option("--installed", is_flag=True, help="Only plug-ins of installed packages.")
@option("--json", "as_json", is_flag=True, help="Print exactly one JSON document to stdout.")
def plugins(installed: bool, as_json: bool) -> int:
    """List providers, scorers, graders, agents, importers, exporters and commands, and where they
    come from.

    Exit 1 if a plug-in of a package cannot be used.
    """
    from assay.app.installed_plugins import installed_plugins
    from assay.app.wire import to_json
    from assay.cli.main import COMMANDS

    listed = [part for part in installed_plugins(COMMANDS) if part.package or not installed]
    broken = [part for part in listed if part.problem is not None]
    if as_json:
        print_json({"plugins": [to_json(part) for part in listed]})
        return int(bool(broken))
    rows = [(part.kind, part.name, _origin(part), _options(part)) for part in listed]
    say_table(("kind", "name", "from", "options"), rows)
    for part in listed:
        if part.package and (described := [each for each in part.options if each.about]):
            say(f"{part.kind} {part.name}:")
            for each in described:
                say(f"  {each.name}: {each.about}")
    for part in broken:
        tell(f"! {part.kind} {part.name} of {_origin(part)} {part.problem}")
    packages = len({part.package for part in listed if part.package})
    say(f"{counted(len(listed), 'plug-in')}, from {counted(packages, 'package')} and Assay.")
    return int(bool(broken))


def _origin(part: PluginDocument) -> str:
    return "built in" if part.package is None else f"{part.package} {part.version}"


def _options(part: PluginDocument) -> str:
    return "cannot be used" if part.problem else ", ".join(each.name for each in part.options)
