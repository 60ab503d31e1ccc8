"""Signs of careless reviewing in a selection of runs, for all reviewers together and for each of
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.app.review.reviewer_metrics import shown_answers
from assay.app.wire import document
from assay.domain.attention import (
    FASTEST_WPM,
    LONG_RUN,
    TOO_QUICK_S,
    Attention,
    attention_by_reviewer,
)
from assay.domain.observations import ObservationKind
from assay.scoring.planted_errors import GOOD

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from assay.domain.identifiers import RunId
    from assay.store.opening import Store


@document
class AttentionDocument:
    """JSON of signs of careless reviewing among the decisions that were made on a screen, in the
    selected runs.

    `timed` decisions have a measured time. `too_quick` ones took less than `too_quick_s` seconds;
    `unread` ones were faster than the answers can be read at `words_per_minute`. `longest_run`
    counts consecutive approvals of one reviewer; `in_long_runs` counts approvals in runs of at
    least `long_run`. `planted` errors were answered in ended sessions, and `missed` not found.
    """

    decisions: int
    timed: int
    not_timed: int
    too_quick: int
    unread: int
    longest_run: int
    in_long_runs: int
    planted: int
    missed: int
    too_quick_s: float
    words_per_minute: int
    long_run: int


def attention_document(signs: Attention) -> AttentionDocument:
    return AttentionDocument(
        decisions=signs.decisions,
        timed=signs.timed,
        not_timed=signs.not_timed,
        too_quick=signs.too_quick,
        unread=signs.unread,
        longest_run=signs.longest_run,
        in_long_runs=signs.in_long_runs,
        planted=signs.planted,
        missed=signs.missed,
        too_quick_s=TOO_QUICK_S,
        words_per_minute=FASTEST_WPM,
        long_run=LONG_RUN,
    )


def attention_of(store: Store, runs: Collection[RunId]) -> Attention:
    """Return the signs of careless reviewing among all decisions on these runs that were made on a
    screen.
    """
    return Attention.total(by_reviewer(store, runs).values())


def by_reviewer(store: Store, runs: Collection[RunId]) -> Mapping[str, Attention]:
    """Return the signs of each reviewer by name.

    Only the owner may see names beside these figures.
    """
    return attention_by_reviewer(store.decisions.timed(runs), _planted(store, runs))


def _planted(store: Store, runs: Collection[RunId]) -> Iterator[tuple[str, bool]]:
    """Yield each reviewer's answers to planted errors in sessions that have ended; True if they
    found the error.
    """
    checks = store.observations.read(kinds=(ObservationKind.CHECK,), runs=runs)
    for name in dict.fromkeys(check.reviewer for check in checks):
        own = store.observations.read(reviewer=name)
        control = {item.key: item for item in store.control_items.read(reviewer=name)}
        for answer, result in shown_answers(store, own, control):
            if answer.run_id in runs and result.how != GOOD:
                yield name, result.caught
