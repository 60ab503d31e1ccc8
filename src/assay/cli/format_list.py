"""Help pages that list formats: Assay's own and those of installed packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.plugin_registry import Offer


class ListsImporters(click.Command):
    """`assay import`, whose help lists the formats that it reads."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the formats; reads entry points, which only the help page needs."""
        from assay.exchange.importers import IMPORTERS

        _write_formats(formatter, IMPORTERS.offers())


class ListsExporters(click.Command):
    """`assay export`, whose help lists the formats that it writes."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the formats; reads entry points, which only the help page needs."""
        from assay.app.exports.exporters import EXPORTERS

        _write_formats(formatter, EXPORTERS.offers())


def _write_formats(formatter: click.HelpFormatter, offers: Iterable[Offer]) -> None:
    usable = [offer for offer in offers if not offer.problem]
    own = ", ".join(offer.name for offer in usable if not offer.of_package)
    packages = [
        (offer.name, f"{offer.package or 'a package'} {offer.version or ''}".strip())
        for offer in usable
        if offer.of_package
    ]
    with formatter.section("Formats"):
        formatter.write_text(own)
    if packages:
        with formatter.section("Formats of installed packages"):
            formatter.write_dl(packages)
