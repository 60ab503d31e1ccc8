"""Rule that a reviewer judges a blind item before they see the judge's grades, for every road by
which a decision arrives.

The review service asks it before it shows grades, and the store in the transaction that writes the
decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.domain.errors import Refused
from assay.domain.identifiers import AssessmentKey, shown_assessment
from assay.domain.lifecycle import Verb
from assay.domain.review import Via

if TYPE_CHECKING:
    from assay.domain.protocol import Protocol

_ON_SCREEN: Final = (Via.PAGE, Via.TERMINAL)
_ON_GRADES: Final = (Verb.APPROVE, Verb.CORRECT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSeen:
    """A reviewer's history with a pending item.

    `saw`: they received the judge's grades of any attempt at it, or learned its authors.
    `has_verdict`: they gave their own scores. `model_grades`: a model has graded it, and not only a
    person.
    """

    saw: bool
    has_verdict: bool
    model_grades: bool


def is_blind(key: AssessmentKey, *, protocol: Protocol, seed: int, saw: bool) -> bool:
    """True if the item is drawn for blind review and this reviewer never received its grades.

    A repeat is drawn like any other item, because a repeat that withholds grades while other items
    show them would be recognised.
    """
    return not saw and protocol.draws("blind", seed=seed, key=int(key))


def needs_verdict(key: AssessmentKey, *, protocol: Protocol, seed: int, seen: ItemSeen) -> bool:
    """True if the reviewer must score this pending item before the judge's grades are shown or
    decided on.
    """
    waits = seen.model_grades and not seen.has_verdict
    return waits and is_blind(key, protocol=protocol, seed=seed, saw=seen.saw)


def asks_for_verdict(verb: Verb, via: Via) -> bool:
    """True if a decision is about grades that the page or the terminal must not have shown yet.

    A rejection needs no grades. A command or a program shows no item: its decision is stored and is
    never called blind.
    """
    return verb in _ON_GRADES and via in _ON_SCREEN


def verdict_first(key: AssessmentKey) -> Refused:
    """Return the refusal of a decision on grades that the reviewer has not earned to see."""
    problem = "is blind: give your own verdict first."
    return Refused(shown_assessment(key), problem, remedy="Score it to see the judge's scores.")
