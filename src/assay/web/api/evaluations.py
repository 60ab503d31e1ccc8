"""Endpoints for other programs: submit an evaluation and get its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import APIRouter, Body, Header, Query, Request, Response
from pydantic import ConfigDict, Discriminator, Field, Tag

from assay.app.integrations import evaluation_result, evaluations
from assay.domain.errors import InputError, Refused, SuiteError
from assay.domain.run import MAX_TRIALS
from assay.web import responses
from assay.web.api.schemas import SubmittedDocument, examples_of, problems
from assay.web.context import services_of
from assay.web.errors import problem_of
from assay.web.responses import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping


router = APIRouter(tags=["evaluations"])

MAX_CHARS: Final = 8_000_000

_Text = Annotated[str, Field(max_length=MAX_CHARS)]
_Name = Annotated[str, Field(min_length=1, max_length=500)]


class SnippetBody(responses.Body):
    """One candidate's snippet."""

    name: _Name
    content: str = Field(min_length=1, max_length=MAX_CHARS)


class SubmissionBody(responses.Body):
    """An evaluation of a Thing with the candidates' snippets, as in a set file; a suite's task
    fields are accepted too.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    thing: _Name = Field(
        alias="thingName", description="What is compared; also accepted as `thing`."
    )
    snippets: list[SnippetBody] | dict[str, _Text] = Field(
        description="Each candidate's code or answer: a list of {name, content}, or an object of texts by name."
    )
    id: _Name | None = Field(
        None, description="The task's id; default: made from the Thing's name."
    )
    context: _Text = Field("", description="The rules that apply to the Thing.")
    language: str = Field("", max_length=100)
    family: str = Field(
        "", max_length=200, description="The source that the Thing shares with other Things."
    )
    prompt: _Text | list[dict[str, Any]] | None = Field(
        None, description="What the candidates were asked."
    )
    expected: str | float | bool | list[Any] | None = Field(None, description="The correct answer.")
    ideal: _Text | None = Field(None, description="A model solution.")
    final_answer: str | float | bool | None = Field(
        None, description="Only the correct final answer."
    )
    score: str | dict[str, Any] | None = Field(
        None, description="How to score, as in `score` of a suite; default: judge."
    )
    suite: str | None = Field(
        None, max_length=200, description="The name under which tasks are pooled."
    )
    trials: int | None = Field(
        None,
        alias="trialsNeeded",
        ge=1,
        le=MAX_TRIALS,
        description="Number of trials; also accepted as `trials`.",
    )
    judge: _Name | list[_Name] | None = Field(
        None,
        description="provider/name, several of them, or `human`; default: the judge in the settings.",
    )
    mode: Literal["joint", "each", "pairwise"] | None = None
    rubric: list[Any] | dict[str, Any] | None = Field(None, max_length=100)
    review: str | None = Field(None, max_length=40)
    parameters: dict[str, Any] = Field(default_factory=dict)
    batch_id: str | None = Field(None, max_length=200)
    budget: float | None = Field(
        None, description="The most this evaluation may cost, in US dollars."
    )
    metadata: dict[str, Any] = Field(
        default_factory=dict, description="Any data to store with the evaluation."
    )

    def submission(self) -> evaluations.Submission:
        given = self.snippets
        pairs = (
            given.items()
            if isinstance(given, dict)
            else [(snippet.name, snippet.content) for snippet in given]
        )
        renamed = {"thing", "id", "snippets", "judge", "budget", "metadata"}
        return evaluations.Submission(
            **{name: getattr(self, name) for name in type(self).model_fields.keys() - renamed},
            thing=self.thing.strip(),
            task_id=self.id,
            snippets=tuple((name.strip(), text) for name, text in pairs),
            judges=_listed(self.judge),
            budget_usd=self.budget,
            names={
                "id": "thingName" if self.id is None else "id",
                "thing": "thingName",
                "name": "suite",
                "trials": "trialsNeeded",
            },
            kept={"metadata": self.metadata},
        )


class ResponseBody(responses.Body):
    """One model's response to one prompt, with the field names of clients that send single
    responses.
    """

    prompt_id: _Name
    prompt_content: _Text
    prompt_metadata: dict[str, Any] = Field(default_factory=dict)
    model_response_id: str | None = Field(None, max_length=500)
    model_name: _Name
    model_response_text: str = Field(min_length=1, max_length=MAX_CHARS)
    ideal_response_id: str | None = Field(None, max_length=500)
    ideal_response_text: _Text = ""
    correct_answer: str | float | bool | None = Field(None, description="The correct final answer.")
    judge_llm_model: _Name | None = Field(
        None, description="provider/name; default: the judge in the settings."
    )
    judge_prompt_version: str | None = Field(
        None, max_length=500, description="A judge prompt from the folder `prompts`."
    )
    trials: int | None = Field(None, ge=1, le=MAX_TRIALS)
    rubric: list[Any] | dict[str, Any] | None = Field(None, max_length=100)
    review: str | None = Field(
        None, max_length=40, description="Which grades need review, as in `review` of a suite."
    )
    batch_id: str | None = Field(None, max_length=200)
    budget: float | None = None

    def submission(self) -> evaluations.Submission:
        return evaluations.Submission(
            thing=self.prompt_id.strip(),
            snippets=((self.model_name.strip(), self.model_response_text),),
            prompt=self.prompt_content,
            ideal=self.ideal_response_text or None,
            final_answer=self.correct_answer,
            trials=self.trials,
            rubric=self.rubric,
            review=self.review,
            batch_id=self.batch_id,
            judges=_listed(self.judge_llm_model),
            judge_prompt=self.judge_prompt_version,
            budget_usd=self.budget,
            of_answers=True,
            names=_OF_RESPONSE,
            kept={
                "metadata": self.prompt_metadata,
                **{name: getattr(self, name) for name in _KEPT},
            },
        )


_KEPT = ("prompt_id", "model_response_id", "ideal_response_id", "judge_prompt_version")
_OF_RESPONSE = {
    "id": "prompt_id",
    "thing": "prompt_id",
    "prompt": "prompt_content",
    "final_answer": "correct_answer",
    "ideal": "ideal_response_text",
    "snippets": "model_response_text",
    "judge": "judge_llm_model",
}

_TAGS = ("as a Thing", "as one response")


def _kind(body: Any) -> str:
    """Return the tag of the request's type: a response if it has a field that only responses have,
    otherwise a Thing.
    """
    fields: Mapping[str, Any] = body if isinstance(body, dict) else {}
    own = set(ResponseBody.model_fields) - set(SubmissionBody.model_fields)
    return _TAGS[1] if own & set(fields) else _TAGS[0]


AnyBody = Annotated[
    Annotated[SubmissionBody, Tag(_TAGS[0])] | Annotated[ResponseBody, Tag(_TAGS[1])],
    Discriminator(_kind),
]

EXAMPLES: Final = examples_of("evaluation")


@router.post(
    "/submit_evaluation",
    status_code=202,
    response_model=SubmittedDocument,
    responses=problems(401, 409, 413, 415, 422),
)
def submit_evaluation(
    request: Request,
    body: Annotated[AnyBody, Body(openapi_examples=EXAMPLES)],
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=200,
            description="A request sent again with the same key is the same evaluation.",
        ),
    ] = None,
) -> Response:
    """Submit candidates' snippets or one response for judging; returns as soon as the run is
    stored.
    """
    services = services_of(request)
    try:
        submitted = evaluations.submit(services.workspace, body.submission(), key=idempotency_key)
    # `Refused` is an `InputError` too, but gets status 409.
    except Refused:
        raise
    except InputError as error:
        return _refused(error)
    if submitted.plan is not None:
        # Queued, not started directly: a client may submit many at once, and the runs start as
        # slots become free.
        services.runner.queue(submitted.plan)
    known = submitted.again
    message = (
        "This evaluation was submitted before."
        if known
        else "The evaluation was accepted and is stored."
    )
    document = SubmittedDocument(
        status="submitted", message=message, evaluation_id=submitted.evaluation_id
    )
    return Answer(
        document,
        status_code=202,
        headers={"location": f"/get_evaluation_result/{submitted.evaluation_id}"},
    )


@router.get(
    "/get_evaluation_result/{evaluation_id}",
    response_model=evaluation_result.EvaluationDocument,
    responses=problems(401, 404),
)
def get_evaluation_result(
    request: Request,
    evaluation_id: str,
    after: Annotated[
        str | None, Query(max_length=40, description="The value of `next` in the previous answer.")
    ] = None,
) -> Response:
    """Return an evaluation's state, the scores that count, and the number of pending grades."""
    services = services_of(request)
    return Answer(
        evaluation_result.evaluation(
            services.workspace.store, services.workspace.settings, evaluation_id, after=after
        )
    )


def _listed(judge: str | list[str] | None) -> tuple[str, ...]:
    return () if judge is None else (judge,) if isinstance(judge, str) else tuple(judge)


def _refused(error: InputError) -> Response:
    """Return a 422 response with all problems; `error` holds the first one, as in every failed
    request.
    """
    each: tuple[SuiteError | InputError, ...] = getattr(error, "errors", (error,))
    problems = [problem_of(problem)["error"] for problem in each]
    return Answer({**problem_of(each[0]), "problems": problems}, status_code=422)
