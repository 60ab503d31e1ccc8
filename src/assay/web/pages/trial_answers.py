"""The page of a trial's full answers, for trials that are ungraded, failed, or too long for the
comparison page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from assay.app.comparison import trial_answers
from assay.app.review.drawn_responses import prose_tree
from assay.web.context import services_of
from assay.web.formatting import seconds
from assay.web.responses import Answer, download
from assay.web.safe_text import visible
from assay.web.templating import page_of
from assay.web.texts import t

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.app.comparison.trial_answers import TrialAnswers
    from assay.domain.failure import Failure

MAX_SHOWN: Final = 1_000_000
"""Maximum characters of one text on the page; the page links to the file with the full text."""

router = APIRouter(include_in_schema=False)


@router.get("/runs/{run_id}/trials/{trial_id}/answers.json")
def answers_twin(request: Request, run_id: str, trial_id: str) -> Response:
    answers = trial_answers.trial_answers(services_of(request).workspace.store, run_id, trial_id)
    return Answer(trial_answers.trial_answers_document(answers))


class TrialAnswersContext(TypedDict):
    """Values of `runs/trial_answers.html`."""

    run: str
    suite: str
    thing: str
    task: str
    k: int
    of: int
    state: str
    failure: Mapping[str, str] | None
    asked: Mapping[str, object]
    answers: Sequence[object]


@router.get("/runs/{run_id}/trials/{trial_id}/answers")
def answers_page(request: Request, run_id: str, trial_id: str) -> Response:
    """Show a trial's prompt and each candidate's whole answer."""
    answers = trial_answers.trial_answers(services_of(request).workspace.store, run_id, trial_id)
    here = f"/runs/{quote(answers.summary.id, safe='')}/trials/{quote(trial_id, safe='')}/answers"
    trial = answers.trial
    return page_of(
        request,
        "runs/trial_answers.html",
        title=f"{visible(trial.thing)} · Trial {trial.k}",
        twin=f"{here}.json",
        **TrialAnswersContext(
            run=answers.summary.id,
            suite=visible(answers.summary.suite),
            thing=visible(trial.thing),
            task=visible(trial.task),
            k=trial.k,
            of=trial.of,
            state=_state(answers),
            failure=_failure(trial.failure),
            asked=_shown(answers.asked),
            answers=list(_answers(answers, here)),
        ),
    )


@router.get("/runs/{run_id}/trials/{trial_id}/answers/{place}.txt")
def answer_file(request: Request, run_id: str, trial_id: str, place: int) -> Response:
    """Return one answer as a file, unchanged and in full length."""
    text = trial_answers.answer_text(services_of(request).workspace.store, run_id, trial_id, place)
    return download(text, f"{trial_id}-{place}.txt", "text/plain; charset=utf-8")


def _state(answers: TrialAnswers) -> str:
    state = str(answers.trial.state)
    return t(
        "trial.not_graded"
        if state == "needs_review" and answers.summary.not_graded
        else f"trial.{state}"
    )


def _answers(trial: TrialAnswers, here: str) -> Any:
    for place, ((name, answer), sent) in enumerate(zip(trial.answers, trial.sent, strict=True), 1):
        yield {
            "sent": [(message.role, visible(message.content[:MAX_SHOWN])) for message in sent],
            "name": visible(name),
            **_shown(answer.text or ""),
            "there": answer.text is not None,
            "truncated": answer.truncated,
            "failure": _failure(answer.failure),
            "tokens": answer.output_tokens,
            "took": None if answer.latency_s is None else seconds(answer.latency_s),
            "cost_usd": answer.cost_usd,
            "log": visible(trial.logs.get(name, "")[:MAX_SHOWN]),
            "file": f"{here}/{place}.txt",
        }


def _failure(failure: Failure | None) -> Mapping[str, str] | None:
    if failure is None:
        return None
    return {
        "kind": visible(failure.kind),
        "fault": str(failure.fault),
        "detail": visible(failure.detail),
    }


def _shown(text: str) -> Mapping[str, object]:
    """Return the displayed beginning of a text, with its length and the full length; `tree` renders
    the Markdown of prose.
    """
    shown = text[:MAX_SHOWN]
    return {
        "text": visible(shown),
        "tree": prose_tree(text),
        "size": len(text),
        "shown": len(shown),
    }
