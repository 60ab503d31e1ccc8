"""The code-arena judge: it grades a web page by its code and by pictures of the rendered page.

The judge works in two rounds: it first requests pictures of the page, then the judge's grades. If there is no picture,
because there is no browser, the page never stops changing or the judge's endpoint takes no images, it grades the code
alone and the assessment says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from assay.domain.assessment import Assessment, Flag, FlagKind, Grade, weights_of
from assay.domain.calls import ModelRequest
from assay.domain.model import Parameters
from assay.domain.pages import PageRequest, Shots, Unseen
from assay.domain.run import Slot
from assay.domain.suite import Criterion, Image, Rubric
from assay.scoring.evaluator import MoreRequests, UnreadableReply
from assay.scoring.judge import JUDGE_DEFAULTS, EachJudge, assessment_of, request_of
from assay.scoring.pages import page_of
from assay.scoring.prompts import ARENA

if TYPE_CHECKING:
    from assay.domain.suite import JudgeSpec
    from assay.scoring.evaluator import Answer, Request, Sitting

TEMPERATURE: Final = 0.3
"""Parameters of this judge unless its suite sets another temperature than a judge's usual one."""

ARENA_RUBRIC: Final = Rubric(
    criteria=(
        Criterion(
            name="visual_accuracy",
            weight=40.0,
            guidance=(
                "Does the page look like what was asked for? Layout, spacing, colours, type, and every element that was named. "
                "10: nothing asked for is missing or off; 5: recognisable, with plain faults; 0: blank, broken or another page."
            ),
        ),
        Criterion(
            name="code_quality",
            weight=30.0,
            guidance=(
                "Would one want to keep this code? Semantic elements, structure, names, no dead or doubled code, accessible "
                "by keyboard and screen reader. 10: clean throughout; 5: works, but would have to be tidied; 0: a tangle."
            ),
        ),
        Criterion(
            name="functionality",
            weight=20.0,
            guidance=(
                "Does what should happen happen? Follow each control in the code: handlers, state, edge cases. A static page "
                "that was asked to be static does all it should. 10: all of it; 5: the main path; 0: none, or it fails at once."
            ),
        ),
        Criterion(
            name="responsiveness",
            weight=10.0,
            guidance=(
                "Does it hold in a narrow window? No sideways scrolling, readable type, controls within reach. "
                "10: made for both; 5: usable with effort; 0: falls apart."
            ),
        ),
    )
)


@dataclass(frozen=True, slots=True)
class ArenaJudge:
    """Makes one call per candidate, with pictures of its page if there are any."""

    spec: JudgeSpec
    rubric: Rubric

    @property
    def grader(self) -> str:
        return self.spec.name

    @property
    def by_model(self) -> bool:
        return True

    def slots(self, candidates: tuple[str, ...], /) -> tuple[Slot, ...]:
        """Return one slot for each candidate."""
        return tuple(Slot(grader=self.grader, candidate=candidate, by_model=True) for candidate in candidates)

    def ask(self, sitting: Sitting, /) -> tuple[Request, ...]:
        """Request that the page be rendered; nothing if the response has none."""
        page = page_of(sitting.responses[0].text)
        return () if page is None else (PageRequest(html=page),)

    def foreseen(self, sitting: Sitting, /) -> tuple[Request, ...]:
        """Return the question to the judge, with the largest number of pictures."""
        return (
            self._request(sitting, tuple(Image(media_type="image/png", data="") for _ in PageRequest(html="").views)),
        )

    def read(self, sitting: Sitting, answers: tuple[Answer, ...], /) -> Assessment | MoreRequests:
        """Return the question after the page is rendered, then the assessment; 0 at once for a response without a page."""
        if not answers:
            return self._nothing(sitting)
        rendered = answers[0]
        if not isinstance(rendered, Shots | Unseen):
            raise UnreadableReply("There is no page to judge.")
        if len(answers) == 1:
            images = rendered.images if isinstance(rendered, Shots) else ()
            return MoreRequests(requests=(self._request(sitting, images),))
        assessment = assessment_of(self.spec, self.rubric, sitting, answers)
        return replace(assessment, flags=(*_unseen(rendered), *assessment.flags))

    def _request(self, sitting: Sitting, images: tuple[Image, ...]) -> ModelRequest:
        request = page_request(self.spec, self.rubric, sitting)
        *before, last = request.messages
        return replace(request, messages=(*before, replace(last, images=(*last.images, *images))))

    def _nothing(self, sitting: Sitting) -> Assessment:
        (response,) = sitting.responses
        return Assessment(
            grades=tuple(
                Grade(
                    candidate=response.candidate,
                    criterion=criterion.name,
                    score=0.0,
                    raw_score=criterion.low,
                    min_score=criterion.low,
                    max_score=criterion.high,
                    reason="The response holds no web page.",
                    confidence=1.0,
                )
                for criterion in self.rubric.criteria
            ),
            scores={response.candidate: 0.0},
            weights=weights_of(self.rubric),
            labels=dict(sitting.labels),
        )


@dataclass(frozen=True, slots=True)
class PageCodeJudge(EachJudge):
    """The same judge without a browser, for calibration: it grades the code of a page, without pictures."""

    def ask(self, sitting: Sitting, /) -> tuple[ModelRequest, ...]:
        """Return the question about the only response of this sitting (grading attempt)."""
        return (page_request(self.spec, self.rubric, sitting),)


def page_request(spec: JudgeSpec, rubric: Rubric, sitting: Sitting) -> ModelRequest:
    """Return the question about a page, without pictures."""
    asked = replace(spec, parameters=page_parameters(spec))
    return request_of(asked, rubric, sitting, candidate=sitting.responses[0].candidate, template=ARENA)


def page_parameters(spec: JudgeSpec) -> Parameters:
    """Return the judge's own parameters, with the temperature of this method unless it sets another than the usual one."""
    temperature = spec.parameters.over(spec.model.parameters).temperature
    if temperature not in (None, JUDGE_DEFAULTS.temperature):
        return spec.parameters
    return Parameters(temperature=TEMPERATURE).over(spec.parameters)


def _unseen(rendered: Shots | Unseen) -> tuple[Flag, ...]:
    if isinstance(rendered, Unseen):
        return (Flag(kind=FlagKind.NO_SCREENSHOT, detail=f"{rendered.detail} The judge read the code alone."),)
    return ()
