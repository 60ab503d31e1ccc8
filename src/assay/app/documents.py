"""The JSON documents that scripts read, from records; the command line, the web app and the Python verbs share them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from assay.domain.identifiers import shown_assessment, shown_trial
from assay.domain.lifecycle import AssessmentState, TrialState

if TYPE_CHECKING:
    from assay.app.regrading import Conclusion, Regraded
    from assay.app.running import RunResult
    from assay.domain.assessment import Flag, Grade
    from assay.domain.calibration import CalibrationRecord
    from assay.domain.review import ReviewEvent
    from assay.domain.selection import AssessmentDetail, AssessmentRow, RunSummary, TrialRow
    from assay.statistics.comparisons import Comparison

Document: TypeAlias = dict[str, Any]

_DONE = frozenset({TrialState.NEEDS_REVIEW, TrialState.APPROVED, TrialState.REJECTED})


def run_result(result: RunResult) -> Document:
    """The document of `run`, `resume`, `extend` and `regrade`."""
    summary = result.summary
    return {
        "run_id": summary.id,
        "suite": summary.suite,
        "state": summary.state,
        "trials": trial_counts(summary),
        "assessments": assessment_counts(summary),
        "failures": [failed_trial(row) for row in result.failures],
        "tokens": {"input": summary.input_tokens, "output": summary.output_tokens},
        "cost_usd": summary.cost_usd,
        "unpriced_calls": summary.unpriced_calls,
        "judges": [{"judge": name, "calibration": calibration(one)} for name, one in result.calibrations.items()],
        "seconds": round(result.seconds, 3),
    }


def regrade_result(found: Regraded) -> Document:
    """The document of `regrade`: that of a run, and what came out differently."""
    return {
        **run_result(found.result),
        "regrade_of": found.origin,
        "grades": {
            "changed": len(found.changed),
            "unchanged": found.unchanged,
            "kept_reviews": found.kept_reviews,
        },
        "changed": [
            {
                "id": shown_assessment(one.assessment),
                "task": one.task,
                "thing": one.thing,
                "trial": one.k,
                "candidate": one.candidate,
                "judge_before": one.grader_before,
                "judge": one.grader_after,
                "before": one.before,
                "after": one.after,
                "state": one.state,
            }
            for one in found.changed
        ],
        "conclusions": [_conclusion(one) for one in found.conclusions],
        "notes": list(found.notes),
    }


def _conclusion(one: Conclusion) -> Document:
    before, after = one.verdicts
    return {
        "a": one.before.a,
        "b": one.before.b,
        "changed": one.changed,
        "before": _side(one.before, before),
        "after": _side(one.after, after),
    }


def _side(found: Comparison, verdict: str) -> Document:
    return {
        "decision": found.decision,
        "difference": found.difference,
        "ci95": None if found.ci95 is None else list(found.ci95),
        "p_value": found.p_value,
        "reason": found.reason,
        "verdict": verdict,
    }


def calibration(record: CalibrationRecord | None) -> Document | None:
    """The stamp beside a judge's grades; None for a judge without a current calibration, and for a scorer."""
    return None if record is None else {"tier": record.tier.value, "at": record.at, "version": record.version}


def run_summary(summary: RunSummary) -> Document:
    """One row of `runs`."""
    return {
        "run_id": summary.id,
        "suite": summary.suite,
        "state": summary.state,
        "started": summary.started,
        "finished": summary.finished,
        "batch_id": summary.batch_id,
        "candidates": list(summary.candidates),
        "judges": list(summary.judges),
        "trials": trial_counts(summary),
        "assessments": assessment_counts(summary),
        "tokens": {"input": summary.input_tokens, "output": summary.output_tokens},
        "cost_usd": summary.cost_usd,
    }


def trial_counts(summary: RunSummary) -> dict[str, int]:
    """`total`, `done` (stored, whatever people decide of it) and `failed`, and every state by name."""
    return {
        "total": sum(summary.trials.values()),
        "done": sum(n for state, n in summary.trials.items() if state in _DONE),
        **{str(state): summary.trials.get(state, 0) for state in TrialState},
    }


def assessment_counts(summary: RunSummary) -> dict[str, int]:
    """Assessments by state; `pending` and `not_required` are always said, other states where there are any."""
    always = {AssessmentState.PENDING, AssessmentState.NOT_REQUIRED}
    return {
        str(state): summary.assessments.get(state, 0)
        for state in AssessmentState
        if state in always or summary.assessments.get(state)
    }


def failed_trial(row: TrialRow) -> Document:
    """One row of `failures`."""
    failure = row.failure
    return {
        "id": shown_trial(row.key),
        "task": row.task,
        "trial": row.k,
        "kind": failure.kind if failure else None,
        "fault": failure.fault if failure else None,
        "detail": failure.detail if failure else None,
        "tries": failure.tries if failure else None,
    }


def assessment_row(row: AssessmentRow, record: CalibrationRecord | None = None) -> Document:
    """One row of `review list`; `record` is the current calibration of its judge."""
    return {
        "id": shown_assessment(row.key),
        "run_id": row.run_id,
        "suite": row.suite,
        "task": row.task,
        "thing": row.thing,
        "trial": row.k,
        "trials": row.of,
        "attempt": row.attempt,
        "state": row.state,
        "judge": row.grader,
        "calibration": calibration(record),
        "candidates": list(row.candidates),
        "flags": [flag(item) for item in row.assessment.flags],
        "grades": [grade(item) for item in row.assessment.grades],
        "scores": dict(row.assessment.scores),
    }


def assessment_detail(detail: AssessmentDetail, record: CalibrationRecord | None = None) -> Document:
    """The document of `review show`: the row, the report, the responses, other attempts and past decisions."""
    task = detail.task
    return {
        **assessment_row(detail.row, record),
        "context": task.context,
        "prompt": [{"role": m.role, "content": m.content} for m in task.prompt],
        "expected": task.expected,
        "report": detail.row.assessment.report,
        "ranking": list(detail.row.assessment.ranking),
        "labels": dict(detail.row.assessment.labels),
        "judge_grades": [grade(item) for item in detail.judged.grades],
        "judge_scores": dict(detail.judged.scores),
        "raw": detail.judged.raw,
        "responses": [{"candidate": r.candidate, "text": r.text, "truncated": r.truncated} for r in detail.responses],
        "attempts": [shown_assessment(key) for key in detail.attempts],
        "events": [review_event(event) for event in detail.events],
        "call": dict(detail.call),
    }


def flag(item: Flag) -> Document:
    return {"kind": item.kind, "detail": item.detail, "candidate": item.candidate, "criterion": item.criterion}


def grade(item: Grade) -> Document:
    return {
        "candidate": item.candidate,
        "criterion": item.criterion,
        "score": item.score,
        "raw_score": item.raw_score,
        "min_score": item.min_score,
        "max_score": item.max_score,
        "reason": item.reason,
        "evidence": list(item.evidence),
        "confidence": item.confidence,
    }


def review_event(event: ReviewEvent) -> Document:
    decision = event.decision
    return {
        "event": event.id,
        "id": shown_assessment(decision.assessment),
        "decision": decision.verb,
        "before": event.before,
        "after": event.after,
        "reviewer": decision.reviewer,
        "at": event.at,
        "via": decision.via,
        "displayed": decision.displayed,
        "reason": decision.reason,
        "note": decision.note,
        "corrections": {
            name if criterion is None else f"{name}/{criterion}": value
            for (name, criterion), value in decision.corrections.items()
        },
    }
