"""Hide which items are control items: use totals that every decision changes equally, and opaque
item names.

A planted check is a copy of a decided assessment, so a reviewer could recognise it by a total that
changes only with real items. While items of such a run are pending, the review page therefore
counts every decision: of T expected decisions, control items included, D have been made and T - D
are left. T depends only on the number of items and on the protocol, so no decision changes it. T -
D is approximate and at least 1 while an item is pending; afterwards it is exact.

An invited reviewer gets opaque item names: `r` and eight letters, the item's number encrypted with
a secret of the store. Nobody can look up an item that the queue did not hand out, and gaps between
numbers reveal nothing. Pages of the owner and the command line show plain numbers and actual
counts. Changes made by another process are visible after at most `LOOK_S` seconds.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final

from assay.app.review import decisions
from assay.app.review.protocol import switches_by_run
from assay.domain.errors import UnknownName
from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.lifecycle import DECIDED, AssessmentState
from assay.domain.protocol import Protocol, protocol_of
from assay.domain.selection import RunSummary, Selection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.domain.observations import Observation
    from assay.store.opening import Store

LOOK_S: Final = 1.0
"""Seconds for which protocols of runs are cached."""

_LETTERS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_HALF: Final = 20  # bits in each half; eight letters of five bits hold both halves
_ROUNDS: Final = 6
_STATES: Final = tuple(DECIDED.values())


@dataclass(frozen=True, slots=True)
class _Covered:
    """Protocol of a run whose control items are hidden, and the counts that its pages show."""

    protocol: Protocol
    decided_before: int
    control_before: int


class Concealment:
    """Opaque names and shown counts of the items in runs that hide their control items.

    Thread-safe.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()  # protects everything below
        self._runs: Mapping[RunId, _Covered] = {}
        self._looked = float("-inf")
        self._keys: tuple[bytes, ...] = ()
        self._before: dict[tuple[RunId, int], int] = {}

    # --- which runs

    def covers(self, run: RunId) -> bool:
        """True if the run may have control items and any of its items is pending."""
        return run in self._known()

    def covered(self) -> frozenset[RunId]:
        return frozenset(self._known())

    def forget(self) -> None:
        """Clear the cache of runs after this process switched a protocol."""
        with self._lock:
            self._looked = float("-inf")

    def _known(self) -> Mapping[RunId, _Covered]:
        with self._lock:
            now = self._store.clock.monotonic()
            if now - self._looked >= LOOK_S:
                self._runs = self._looked_up()
                self._looked = now
            return self._runs

    def _looked_up(self) -> dict[RunId, _Covered]:
        waiting = self._store.event_log.waiting()
        if not waiting:
            return {}
        switches = switches_by_run(self._store)
        covered: dict[RunId, _Covered] = {}
        for run in waiting:
            protocol, decided, made = protocol_of(run.protocol), 0, 0
            if run.id in switches:
                last, switch = switches[run.id][-1]
                protocol, decided = switch.protocol, switch.decided_before
                made = self._made_before(last, protocol)
            if protocol.control_share or run.has_control_items:
                covered[run.id] = _Covered(protocol, decided, made)
        return covered

    def _made_before(self, switch: Observation, protocol: Protocol) -> int:
        mark = (switch.run_id, protocol.version)
        if mark not in self._before:
            self._before[mark] = self._store.control_items.count(switch.run_id, before=switch.at)
        return self._before[mark]

    # --- names of items

    def key_of(self, text: str, *, sealed: bool = False) -> AssessmentKey:
        """Return the key of an item `a17`, `17` or an opaque name (only opaque names if `sealed`);
        raises `UnknownName`.
        """
        if not _is_sealed(text):
            if sealed:
                raise UnknownName("assessment", text)
            return decisions.assessment_key(text)
        number = 0
        for letter in text[1:]:
            number = number << 5 | _LETTERS.index(letter)
        return AssessmentKey(_mixed(number, self._round_keys()[::-1]))

    def sealed(self, key: AssessmentKey) -> str:
        """Return an item's opaque name; it is the same in every process."""
        number = _mixed(int(key), self._round_keys())
        return "r" + "".join(_LETTERS[number >> 5 * place & 31] for place in range(7, -1, -1))

    def _round_keys(self) -> tuple[bytes, ...]:
        """Return the keys for the rounds of the cipher; all processes of a store use the same
        keys.
        """
        with self._lock:
            if not self._keys:
                secret = self._store.secret.value()
                self._keys = tuple(
                    hashlib.blake2b(bytes([n]), key=secret).digest()[:16] for n in range(_ROUNDS)
                )
            return self._keys

    # --- totals

    def tally(self, selection: Selection) -> dict[AssessmentState, int]:
        """Count the assessments of runs by state, as the review page shows them."""
        chosen = Selection(runs=selection.runs, suites=selection.suites)
        totals: Counter[AssessmentState] = Counter(self._store.archive.assessments.tally(chosen))
        covered = self._known()
        if covered and (runs := [run for run in covered if not chosen.runs or run in chosen.runs]):
            for summary in self._store.archive.runs.matching(
                Selection(runs=tuple(runs), suites=chosen.suites)
            ):
                totals.subtract(summary.assessments)
                totals.update(self._shown(summary))
        return {state: n for state, n in totals.items() if n > 0}

    def _shown(self, summary: RunSummary) -> Mapping[AssessmentState, int]:
        """Count the assessments of one run by state.

        While any item is pending, control items are included.
        """
        covered = self._known().get(summary.id)
        real = summary.assessments
        if covered is None or not real.get(AssessmentState.PENDING):
            return real
        answered = self._store.control_items.tally().get(summary.id, Counter())
        items = real[AssessmentState.PENDING] + sum(real.get(state, 0) for state in _STATES)
        # Only numbers that no decision changes: a total that fell only with real items would reveal
        # the control items.
        after = max(0, items - covered.decided_before)
        expected = items + covered.control_before + round(covered.protocol.control_share * after)
        counts = {
            state: real.get(state, 0) + answered[state]
            for state in (*_STATES, AssessmentState.SUPERSEDED)
        }
        # Chance may have made more control items than expected while a real item is still pending.
        return {
            **real,
            **counts,
            AssessmentState.PENDING: max(1, expected - sum(counts[state] for state in _STATES)),
        }


def _is_sealed(text: str) -> bool:
    return len(text) == 9 and text[0] == "r" and all(letter in _LETTERS for letter in text[1:])


def _mixed(number: int, keys: Sequence[bytes]) -> int:
    """Encrypt a forty-bit number with a Feistel network; with the keys in reverse order, decrypt
    it.
    """
    left, right = number >> _HALF, number & (1 << _HALF) - 1
    for key in keys:
        drawn = hashlib.blake2b(right.to_bytes(3, "big"), key=key, digest_size=4).digest()
        left, right = right, left ^ int.from_bytes(drawn, "big") & (1 << _HALF) - 1
    return right << _HALF | left
