"""Rule that nobody decides the grades of their own work.

A candidate may be a person, and a prompt or an agent may carry its author's name. A reviewer with
the name of a graded candidate is therefore taken for its author.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.domain.errors import Refused
from assay.domain.identifiers import folded

if TYPE_CHECKING:
    from collections.abc import Iterable


def is_own_work(reviewer: str, candidates: Iterable[str]) -> bool:
    """True if the reviewer has the name of one of these candidates, however it is typed."""
    name = folded(reviewer)
    return any(folded(candidate) == name for candidate in candidates)


def own_work(reviewer: str, *, where: str) -> Refused:
    """Return the refusal of a decision on the reviewer's own work; `where` is the item's id in
    messages.
    """
    return Refused(
        where,
        f"grades the work of {reviewer}, and nobody decides their own work.",
        remedy="Another reviewer must decide it.",
    )
