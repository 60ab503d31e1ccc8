"""Recognise a file's format from its content, never from its name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from assay.exchange.importers import IMPORTERS, Importer
from assay.exchange.parsing.input_files import FileSample, UnreadableFile

LEAST_SHARE: Final = 0.3
"""Minimum share of a file that a reader must understand; a smaller share suggests another format.
"""

ABOUT_EQUAL: Final = 0.9
"""The format is ambiguous if the second-best reader understands at least this fraction of the best
reader's share.
"""


class AmbiguousFormat(UnreadableFile):
    """Raised if two readers explain a file about equally well, so that choosing one would be a
    guess.
    """

    def __init__(self, where: str, formats: tuple[tuple[str, float], tuple[str, float]]) -> None:
        (first, share), (second, other) = formats
        self.formats = (first, second)
        super().__init__(
            where,
            f"fits `{first}` ({share:.0%} of it) and `{second}` ({other:.0%}). Choose one with `--format`.",
        )


def recognise_format(
    sample: FileSample, among: Iterable[Importer] | None = None
) -> Importer | None:
    """Return the importer that explains most of a file; None if no importer explains enough of it.

    Raises AmbiguousFormat if a second importer explains about as much, and UnreadableFile if the
    file cannot be opened.
    """
    shares = [
        (share, importer)
        for importer in (IMPORTERS.load_all() if among is None else among)
        if (share := importer.recognise(sample) or 0.0) >= LEAST_SHARE
    ]
    if not shares:
        return None
    shares.sort(key=lambda claim: -claim[0])
    (highest, best), *others = shares
    if others and others[0][0] >= ABOUT_EQUAL * highest:
        raise AmbiguousFormat(
            sample.source.name, ((best.NAME, highest), (others[0][1].NAME, others[0][0]))
        )
    return best
