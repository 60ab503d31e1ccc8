"""Identity of imported results: recognises the same evaluation in two files even if their bytes
differ.

Theory. A harness may give an evaluation an id (`FoundRun.identity`) and a response an id
(`FoundResponse.identity`). Without ids, Assay uses a digest of all answers and grades. The digest
is a sum over records, so it does not depend on their order or on the file's format and compression.
Reasons, tokens and times are left out, because they are not results. Each component of a grade (who
graded and how, task, candidate, score) is hashed to a number below a prime, and the grade adds the
product of these numbers. Such sums collide as rarely as digests do. The numbers are cached, because
a table of a million grades repeats most components.

A harness may write one evaluation in two formats, one of them with fewer details: no ids, different
task names and only the sum of the grades. A second digest, of candidates and answers only, shows
that both files contain the same evaluation.

House rules. This module does not depend on any format or on the store. Only `relation` decides how
to treat a run that is already partly in the store.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from assay.domain.import_records import FoundAssessment, FoundResponse, FoundScores

_PRIME: Final = (1 << 127) - 1
_MAX_NUMBERS: Final = 100_000
_BITS: Final = (1 << 63) - 1


def response_number(identity: str) -> int:
    """Return a response's identity as a 63-bit integer, which every database can index."""
    raw = hashlib.blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(raw, "big") & _BITS


class _Numbers(dict["str | float | None", int]):
    """Cache of hashed grade parts (judge, task, candidate, score), computed when first needed."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind

    def __missing__(self, part: str | float | None) -> int:
        if len(self) >= _MAX_NUMBERS:
            self.clear()
        # Values that Python treats as the same dictionary key, such as 1 and 1.0 or 0.0 and -0.0,
        # must give the same text.
        text = part if part is None or isinstance(part, str) else float(part) + 0.0
        number = self[part] = _number(f"{self._kind}\x1f{text}")
        return number


def _number(text: str) -> int:
    # SHA-256, because most processors compute it in hardware: for an answer of 2 kB it takes half
    # the time of BLAKE2.
    return (
        int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16], "big")
        % _PRIME
    )


def _graded(record: FoundAssessment | FoundScores, *, joint: bool) -> int:
    return _number(f"a\x1f{record.judge}\x1f{record.by}\x1f{record.state}\x1f{joint}")


class ContentDigest:
    """Order-independent digest of a run's answers and grades."""

    def __init__(self) -> None:
        self._total = 0
        self._records = 0
        self._answers = 0
        self._tasks, self._candidates, self._scores = _Numbers("t"), _Numbers("c"), _Numbers("s")

    def add_response(self, response: FoundResponse) -> None:
        failure = response.failure
        answer = _number(f"r\x1f{response.content}" if failure is None else f"r\x1e{failure.kind}")
        self._add(_number(f"{answer:x}\x1f{response.task}\x1f{response.candidate}"))
        if response.content:  # formats use different kinds of failures
            self._answers = (self._answers + answer * self._candidates[response.candidate]) % _PRIME

    def add_assessment(self, assessment: FoundAssessment) -> None:
        graded = _graded(assessment, joint=assessment.joint)
        if len(assessment.grades) == 1:
            (grade,) = assessment.grades
            bare = grade.criterion == "" and grade.raw_score is None
            score = (
                grade.score if bare else f"{grade.criterion}\x1f{grade.score}\x1f{grade.raw_score}"
            )
            names = self._tasks[assessment.task] * self._candidates[grade.candidate]
            self._add(graded * names * self._scores[score])
        else:
            texts = sorted(
                f"{grade.candidate}\x1f{grade.criterion}\x1f{grade.score}\x1f{grade.raw_score}"
                for grade in assessment.grades
            )
            self._add(graded * _number("\x1d".join((assessment.task, *texts))))

    def add_scores(self, scores: FoundScores) -> None:
        """Add rows; each row is treated as an assessment with a single grade."""
        tasks, candidates, numbers = self._tasks, self._candidates, self._scores
        total = sum(
            [
                tasks[task] * candidates[name] * numbers[score]
                for task, name, _, score in scores.rows
            ]
        )
        self._add(_graded(scores, joint=False) * total)
        self._records += len(scores.rows) - 1

    def hex(self, *apart: str | None) -> str:
        """Return the digest so far; equal content with different `apart` values gives different
        digests.
        """
        text = "\x1f".join((f"{self._records}-{self._total:x}", *(each or "" for each in apart)))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def answers_hex(self, *apart: str | None) -> str | None:
        """Return the digest without grades; None if no answer has a text."""
        text = "\x1f".join((f"{self._answers:x}", *(each or "" for each in apart)))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest() if self._answers else None

    def _add(self, number: int) -> None:
        self._total = (self._total + number) % _PRIME
        self._records += 1


def is_poorer(form: str, other: str) -> bool:
    """True if `form` is the less detailed of two formats of one harness, such as `promptfoo_csv`
    for `promptfoo`.
    """
    return form.startswith(f"{other}_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Comparison of a new run with a stored run; a cell is one candidate's answer to a task, with
    its grades.

    Attributes:
        same_evaluation: True if both runs have the same evaluation id from the harness.
        same: cells with the same answer and grades.
        changed: cells in both runs with a different answer or different grades.
        added: cells that only the new run has.
        lacking: cells that only the stored run has.
        new_version, stored_version: version of the evaluation; None if unknown.
        new_complete, stored_complete: False if the harness left the run unfinished.
    """

    same_evaluation: bool
    same: int
    changed: int
    added: int
    lacking: int
    new_version: str | None = None
    stored_version: str | None = None
    new_complete: bool = True
    stored_complete: bool = True


class Relation(StrEnum):
    """Relation of a new run to a stored run."""

    SAME = "same"
    EARLIER = "earlier"
    LATER = "later"
    PARTLY = "partly"
    CONFLICT = "conflict"
    RETOLD = "retold"
    """The same answers, imported in two formats of one harness; one of the formats has no ids."""


def relation(overlap: Overlap) -> Relation:
    """Return how a new run relates to a stored one: the later version counts, regardless of which
    was imported first.

    A later version that its harness left unfinished does not replace a run with more results. Two
    versions conflict if it is unknown which is later; a person must then decide.
    """
    if not (overlap.changed or overlap.added or overlap.lacking):
        return Relation.SAME
    new, stored = overlap.new_version, overlap.stored_version
    if overlap.same_evaluation and new is not None and stored is not None and new != stored:
        if new > stored:
            unfinished = overlap.lacking and not overlap.new_complete
            return Relation.EARLIER if unfinished else Relation.LATER
        unfinished = overlap.added and not overlap.stored_complete
        return Relation.LATER if unfinished else Relation.EARLIER
    if overlap.changed:
        return Relation.CONFLICT
    if not overlap.lacking:
        return Relation.LATER
    if not overlap.added:
        return Relation.EARLIER
    return Relation.CONFLICT if overlap.same_evaluation else Relation.PARTLY
