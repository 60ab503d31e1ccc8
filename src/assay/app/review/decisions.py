"""List, read and decide assessments by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import AssessmentKey, TrialKey, folded
from assay.domain.lifecycle import AssessmentState, Verb
from assay.domain.observations import ObservationKind
from assay.domain.opinions import differ, disputed, standing_by_item
from assay.domain.review import Decision, ReviewEvent, Via, stated_by
from assay.domain.selection import AssessmentDetail, AssessmentRow, Selection, TrialRow
from assay.domain.verdict_scales import verdict_scale

if TYPE_CHECKING:
    from assay.app.workspace import Workspace
    from assay.domain.decisions import Place
    from assay.store.opening import Store

ScaleWords: TypeAlias = Mapping[str | None, Mapping[str, float]]
"""The words of each criterion's scale with their scores from 0 to 1; None stands for the overall
score.
"""

_AT_ONCE: Final = 500  # maximum number of keys in one query of the store


def assessments(
    store: Store,
    selection: Selection,
    *,
    states: frozenset[AssessmentState] | None = None,
    trial: TrialKey | None = None,
    after: AssessmentKey | None = None,
    limit: int | None = None,
) -> Iterator[AssessmentRow]:
    """Yield matching assessments, oldest first.

    Each assessment is read from the store only when needed.
    """
    return store.archive.assessments.matching(
        selection, states=states, trial=trial, after=after, limit=limit
    )


def assessment(store: Store, key: AssessmentKey) -> AssessmentDetail:
    """Return an assessment with everything that a reviewer sees; raises `UnknownName`."""
    return store.archive.assessments.detail(key)


def assessment_key(text: str) -> AssessmentKey:
    """Return the key of `a17` or `17`; raises `UnknownName` for any other text."""
    number = _number(text[1:] if text[:1] in {"a", "A"} else text)
    if number is None:
        raise UnknownName(
            "assessment", text, remedy="Ids look like a17; `assay review list` shows them."
        )
    return AssessmentKey(number)


def decide(workspace: Workspace, decisions: Sequence[Decision]) -> tuple[ReviewEvent, ...]:
    """Apply decisions, all or none, and return their events.

    Every decision in Assay goes through this function or `settle`.

    Raises InputError without a decision or a required reason, or for a correction without scores.
    Raises the errors of `StoreDecisions.decide`, which applies the review protocol of the run.
    """
    if not decisions:
        raise InputError(
            "",
            "no assessment was given.",
            remedy="`assay review list` shows the ids of assessments.",
        )
    for decision in decisions:
        check_words(decision.verb, reason=decision.reason, corrections=decision.corrections)
    return workspace.decisions.decide(decisions)


def refuse_disputed(store: Store, keys: Sequence[AssessmentKey]) -> None:
    """Raise `Refused` if an assessment is pending because two reviewers disagree on it."""
    for start in range(0, len(keys), _AT_ONCE):
        portion = keys[start : start + _AT_ONCE]
        opinions = store.observations.read(kinds=(ObservationKind.OPINION,), assessments=portion)
        standing = standing_by_item(opinions)
        for key in portion:
            if not differ(standing.get(key, {})):
                continue
            if store.archive.assessments.detail(key).row.state is AssessmentState.PENDING:
                raise disputed(key)


def approve(
    workspace: Workspace,
    keys: Sequence[AssessmentKey],
    *,
    reviewer: str | None = None,
    via: Via = Via.SCRIPT,
) -> tuple[ReviewEvent, ...]:
    """Approve the judge's grades, so that they count.

    Either all approvals are stored or none. Raises the errors of `decide`.
    """
    decision = _decision(workspace, Verb.APPROVE, reviewer, via)
    return decide(workspace, [replace(decision, assessment=key) for key in dict.fromkeys(keys)])


def reject(
    workspace: Workspace,
    keys: Sequence[AssessmentKey],
    *,
    reason: str,
    reviewer: str | None = None,
    via: Via = Via.SCRIPT,
) -> tuple[ReviewEvent, ...]:
    """Reject grades, so that they count in no statistic.

    A reason is required. Raises the errors of `decide`.
    """
    check_words(Verb.REJECT, reason=reason)  # checked before the ids, which may be empty
    decision = replace(_decision(workspace, Verb.REJECT, reviewer, via), reason=reason)
    return decide(workspace, [replace(decision, assessment=key) for key in dict.fromkeys(keys)])


def correct(
    workspace: Workspace,
    key: AssessmentKey,
    corrections: Mapping[Place, float],
    *,
    reason: str,
    reviewer: str | None = None,
    via: Via = Via.SCRIPT,
) -> ReviewEvent:
    """Approve with a person's scores: a value from 0 to 1 by (candidate, criterion), where None is
    the overall score.
    """
    decision = _decision(workspace, Verb.CORRECT, reviewer, via)
    return decide(
        workspace, [replace(decision, assessment=key, reason=reason, corrections=corrections)]
    )[0]


def undo(workspace: Workspace, key: AssessmentKey, *, reviewer: str | None = None) -> ReviewEvent:
    """Undo the last decision; the assessment is pending again, with the grades unchanged."""
    return decide(
        workspace, [replace(_decision(workspace, Verb.UNDO, reviewer, Via.SCRIPT), assessment=key)]
    )[0]


def _decision(workspace: Workspace, verb: Verb, reviewer: str | None, via: Via) -> Decision:
    name = reviewer or workspace.reviewer
    return Decision(
        assessment=AssessmentKey(0),
        verb=verb,
        reviewer=name,
        via=via,
        displayed=False,
        login=workspace.login,
        stated_by=stated_by(name, signed_in=workspace.login, via=via, displayed=False),
    )


def parsed_corrections(
    texts: Iterable[str], row: AssessmentRow, words: ScaleWords | None = None
) -> dict[tuple[str, str | None], float]:
    """Parse corrections as `parsed_correction` does; raises `InputError` if the same score is given
    twice.
    """
    corrections: dict[tuple[str, str | None], float] = {}
    for text in texts:
        target, value = parsed_correction(text, row, words)
        if target in corrections:
            raise InputError("--score", f"{text!r} gives the same score twice.")
        corrections[target] = value
    return corrections


def scale_words(store: Store, row: AssessmentRow) -> ScaleWords:
    """Return the words of an assessment's scales with their scores; the overall score has those of
    an only criterion.
    """
    rubric = store.journal.plan_of(row.run_id).rubric
    scale = verdict_scale(rubric)
    # Rules derive the verdict from the grades: with the grades 1 and 0, an overall score of 0.5 is
    # a Fail and no Partial.
    by_rules = scale is None or scale.rules is not None
    words: dict[str | None, dict[str, float]] = {
        None: {} if by_rules or scale is None else dict(scale.labels)
    }
    for criterion in rubric.criteria:
        best_first = sorted(
            criterion.labels, key=lambda label: criterion.normalised(label[1]) or 0.0, reverse=True
        )
        scores = {word: criterion.normalised(raw) for word, raw in best_first}
        words[criterion.name] = {word: score for word, score in scores.items() if score is not None}
    return words


def score_of(given: str | float, criterion: str | None, words: ScaleWords, *, where: str) -> float:
    """Return a score that a program gives as a number from 0 to 1 or as a word of the scale; raises
    `InputError`.
    """
    if isinstance(given, str):
        return _value(given, given, words.get(criterion) or {}, where=where)
    if not 0 <= given <= 1:
        raise InputError(
            where,
            f"is {given:g}, but a score must be between 0 and 1.",
            remedy="Write 0.7, or a word of the scale.",
        )
    return float(given)


def parsed_correction(
    text: str, row: AssessmentRow, words: ScaleWords | None = None
) -> tuple[tuple[str, str | None], float]:
    """Parse `NAME[/CRITERION]=VALUE`.

    VALUE is a word of the scale, or a number such as 0.7 or 7/10. The longest name is used.

    Raises InputError without `=` or for a value outside 0 to 1, and UnknownName for an unknown
    candidate or criterion.
    """
    name, equals, value = text.rpartition("=")
    if not equals:
        remedy = "Write NAME/CRITERION=VALUE, as in 'alice/integrity=7/10'."
        raise InputError("--score", f"{text!r} has no '='.", remedy=remedy)
    targets: dict[str, tuple[str, str | None]] = {
        candidate: (candidate, None) for candidate in row.candidates
    }
    for grade in row.assessment.grades:
        # A candidate called `a/b` is a longer name than `a` with its criterion `b`, and is left
        # unchanged.
        targets.setdefault(
            f"{grade.candidate}/{grade.criterion}", (grade.candidate, grade.criterion)
        )
    wanted = folded(name.strip())
    for known in targets:
        if folded(known) == wanted:
            return targets[known], _value(value, text, (words or {}).get(targets[known][1]) or {})
    raise UnknownName(
        "score", name.strip(), targets, remedy=f"This assessment has: {', '.join(targets)}."
    )


def _value(value: str, text: str, words: Mapping[str, float], *, where: str = "--score") -> float:
    for word, worth in words.items():
        if folded(word) == folded(value.strip()):
            return worth
    number, slash, whole = value.strip().partition("/")
    try:
        score = float(number) / float(whole) if slash else float(number)
    except (ValueError, ZeroDivisionError):
        score = -1.0
    if not 0 <= score <= 1:
        problem = f"{text!r} gives {value.strip()!r}, but a score must be between 0 and 1."
        remedy = f"Write {', '.join(words)}, 0.7, or 7/10." if words else "Write 0.7, or 7/10."
        raise InputError(where, problem, remedy=remedy)
    return score


def check_words(
    verb: Verb, *, reason: str, corrections: Mapping[tuple[str, str | None], float] | None = None
) -> None:
    """Raise `InputError` for a rejection or correction without a reason, or a correction without
    scores.
    """
    if verb is Verb.REJECT:
        require_reason(reason, "a rejection")
    if verb is Verb.CORRECT:
        require_reason(reason, "a correction")
        if not corrections:
            remedy = "Give at least one, as in --score 'alice/integrity=7/10'."
            raise InputError("--score", "no score is given.", remedy=remedy)


def require_reason(reason: str, what: str) -> None:
    if not reason.strip():
        raise InputError("--reason", f"{what} needs a reason.", remedy="Add --reason TEXT.")


def trial_key(text: str) -> TrialKey | None:
    """Return the key of a trial id such as `t5`; None for other text."""
    number = _number(text[1:]) if text[:1] in {"t", "T"} else None
    return None if number is None else TrialKey(number)


def names_item(text: str) -> bool:
    """True if the text looks like the id of an assessment or a trial."""
    return text[:1] in {"a", "A", "t", "T"} and _number(text[1:]) is not None


def ungraded_trial(store: Store, text: str) -> TrialRow | None:
    """Return trial `t5` if it exists but has no assessment, for example because it failed."""
    key = trial_key(text)
    if key is None or any(True for _ in store.archive.assessments.matching(Selection(), trial=key)):
        return None
    return store.archive.trials.detail(key)


def _number(digits: str) -> int | None:
    """Return the text as a number; None for other text or a number with too many digits for a store
    key.
    """
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else None


def shown_item(store: Store, text: str) -> tuple[AssessmentDetail, ...]:
    """Return assessment `a17`, or all assessments of trial `t5`; raises `UnknownName`."""
    key = trial_key(text)
    if key is None:
        return (store.archive.assessments.detail(assessment_key(text)),)
    rows = store.archive.assessments.matching(Selection(), trial=key)
    details = tuple(store.archive.assessments.detail(row.key) for row in rows)
    if not details:
        remedy = "`assay show RUN` lists the trials and why any of them failed."
        raise UnknownName("assessment of a trial", text, remedy=remedy)
    return details
