"""The code-arena judge: it grades a web page by its code and by pictures of the rendered page.

It works in two rounds: it first requests pictures of the page, and then the model's grades.
Pictures can be missing because there is no browser, the page never stops changing, or the model's
endpoint does not accept images. The judge then grades only the code, and the assessment states
this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from assay.domain.assessment import Assessment, Flag, FlagKind, weights_of
from assay.domain.calls import ModelRequest
from assay.domain.model import Parameters
from assay.domain.pages import PageRequest, Shots, Unseen
from assay.domain.suite import Image, JudgeSpec, Rubric
from assay.scoring.evaluator import Answer, GradingAttempt, MoreRequests, Request, UnreadableReply
from assay.scoring.judge import JUDGE_DEFAULTS, EachJudge, assessment_of, request_of
from assay.scoring.pages import page_of
from assay.scoring.prompts import ARENA
from assay.scoring.rubric_evaluator import RubricEvaluator, grade_on

TEMPERATURE: Final = 0.3
"""Temperature of this judge, unless its suite sets a temperature other than the usual default for
judges.
"""


@dataclass(frozen=True, slots=True)
class ArenaJudge(RubricEvaluator):
    """Makes one call per candidate, with pictures of its page if there are any."""

    slots = RubricEvaluator.slot_for_each

    def ask(self, grading: GradingAttempt, /) -> tuple[Request, ...]:
        """Request that the page be rendered. Returns no request if the response has no page."""
        page = page_of(grading.responses[0].text)
        return () if page is None else (PageRequest(html=page),)

    def foreseen(self, grading: GradingAttempt, /) -> tuple[Request, ...]:
        return (
            self._request(
                grading,
                tuple(Image(media_type="image/png", data="") for _ in PageRequest(html="").views),
            ),
        )

    def read(
        self, grading: GradingAttempt, answers: tuple[Answer, ...], /
    ) -> Assessment | MoreRequests:
        """Return the request to the judge, then the assessment; a response without a page scores
        0.
        """
        if not answers:
            return self._nothing(grading)
        rendered = answers[0]
        if not isinstance(rendered, Shots | Unseen):
            raise UnreadableReply("There is no page to judge.")
        if len(answers) == 1:
            images = rendered.images if isinstance(rendered, Shots) else ()
            return MoreRequests(requests=(self._request(grading, images),))
        assessment = assessment_of(self.spec, self.rubric, grading, answers)
        return replace(assessment, flags=(*_unseen(rendered), *assessment.flags))

    def _request(self, grading: GradingAttempt, images: tuple[Image, ...]) -> ModelRequest:
        request = page_request(self.spec, self.rubric, grading)
        *before, last = request.messages
        return replace(request, messages=(*before, replace(last, images=(*last.images, *images))))

    def _nothing(self, grading: GradingAttempt) -> Assessment:
        name = grading.responses[0].candidate
        grades = [grade_on(criterion, name, criterion.low) for criterion in self.rubric.criteria]
        reason = "The response holds no web page."
        return Assessment(
            grades=tuple(replace(grade, reason=reason, confidence=1.0) for grade in grades),
            scores={name: 0.0},
            weights=weights_of(self.rubric),
            labels=dict(grading.labels),
        )


@dataclass(frozen=True, slots=True)
class PageCodeJudge(EachJudge):
    """The judge without a browser, for calibration: it grades only the page's code."""

    def ask(self, grading: GradingAttempt, /) -> tuple[ModelRequest, ...]:
        return (page_request(self.spec, self.rubric, grading),)


def page_request(spec: JudgeSpec, rubric: Rubric, grading: GradingAttempt) -> ModelRequest:
    asked = replace(spec, parameters=page_parameters(spec))
    return request_of(
        asked, rubric, grading, candidate=grading.responses[0].candidate, template=ARENA
    )


def page_parameters(spec: JudgeSpec) -> Parameters:
    """Return the judge's own parameters, but replace a judge's default temperature with the
    arena's.
    """
    temperature = spec.parameters.over(spec.model.parameters).temperature
    if temperature not in (None, JUDGE_DEFAULTS.temperature):
        return spec.parameters
    return Parameters(temperature=TEMPERATURE).over(spec.parameters)


def _unseen(rendered: Shots | Unseen) -> tuple[Flag, ...]:
    if isinstance(rendered, Unseen):
        return (
            Flag(
                kind=FlagKind.NO_SCREENSHOT,
                detail=f"{rendered.detail} The judge read only the code.",
            ),
        )
    return ()
