"""Reference samples (responses with a known score) for calibrating judges, and the trials that show
samples to a judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from assay.domain.assessment import Response
from assay.domain.calibration_record import JudgeIdentity
from assay.domain.digest import derived_seed, digest, text_digest
from assay.domain.model import ModelSpec, Parameters
from assay.domain.suite import JudgeMode, JudgeSpec, Message, Rubric, Scoring, Task
from assay.scoring.arena import page_parameters
from assay.scoring.evaluator import GradingAttempt
from assay.scoring.judge import JUDGE_DEFAULTS
from assay.scoring.prompts import ARENA, JOINT, PAIR, SOLO, system_prompt

SEED: Final = 20_250_101
"""Base of the seeds of calibration calls: the same sample gets the same seed every time."""

MAX_PAIRS: Final = 8
"""Maximum number of pairs shown in both orders; each costs two calls."""

FIRST, SECOND = "one", "other"
"""Candidates' names in a pair; judges see labels instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSample:
    """A response with a reference score.

    Attributes:
        kind: what the sample tests: `right`, `wrong`, `partial`, `verbose`, `empty`, `irrelevant`,
            `good_explanation`, …
        score: the score that a careful person would give, between 0 and 1. `tolerance`: the largest
            error that a judge may make.
        expected: the reference answer shown to the judge; None without one.
        twin_of: id of the sample that has the same content in fewer words.
    """

    id: str
    kind: str
    prompt: str
    response: str
    score: float
    tolerance: float = 0.10
    expected: str | None = None
    context: str = ""
    twin_of: str | None = None

    @property
    def bypassed(self) -> bool:
        """True if the sample is scored without calling the judge: an empty answer is a candidate's
        failure in a run.
        """
        return not self.response.strip()


def identity_of(judge: JudgeSpec, rubric: Rubric) -> JudgeIdentity:
    own = (judge.prompt,) if judge.prompt else (ARENA,) if judge.pages else (JOINT, SOLO)
    words = [system_prompt(judge), *own]
    if judge.pages:
        words = [*words, "pages"]  # a user's own template is shown the pictures
    elif judge.mode is JudgeMode.PAIRWISE:
        words = [*words, PAIR]
    parameters = parameters_of(judge).as_json()
    parameters.pop("seed", None)
    return JudgeIdentity(
        model=judge.model.ref,
        prompt=text_digest("\x1f".join(words)),
        rubric=rubric.digest,
        parameters=digest(parameters),
    )


def parameters_of(judge: JudgeSpec) -> Parameters:
    """Return a judge's parameters without the seed that changes with each call."""
    own = page_parameters(judge) if judge.pages else judge.parameters
    return own.over(judge.model.parameters).over(JUDGE_DEFAULTS)


def alone(sample: ReferenceSample, *, repeat: int) -> GradingAttempt:
    """Return a trial whose only response is the sample; `repeat` counts from 1."""
    task = _task(sample, sample.id)
    return GradingAttempt(
        task=task,
        responses=(Response(candidate=FIRST, text=sample.response),),
        labels={FIRST: "A"},
        k=repeat,
        seed=derived_seed(SEED, task.id, repeat, 1, "judge"),
    )


def side_by_side(
    reference_sample: ReferenceSample, other: ReferenceSample, *, swapped: bool
) -> GradingAttempt:
    """Return a trial of two responses to one prompt; `one` is shown first unless `swapped`."""
    task = _task(reference_sample, f"{reference_sample.id}+{other.id}")
    shown = (
        Response(candidate=FIRST, text=reference_sample.response),
        Response(candidate=SECOND, text=other.response),
    )
    responses = shown[::-1] if swapped else shown
    return GradingAttempt(
        task=task,
        responses=responses,
        labels={response.candidate: label for response, label in zip(responses, "AB", strict=True)},
        k=2 if swapped else 1,
        seed=derived_seed(SEED, task.id, 1, 1, "judge"),
    )


def pairs(
    samples: Sequence[ReferenceSample],
) -> tuple[tuple[ReferenceSample, ReferenceSample], ...]:
    """Return pairs of samples with the same prompt, closest scores first, because order matters
    most between similar answers.
    """
    pairs_ = [
        (left, right)
        for left, right in combinations([sample for sample in samples if not sample.bypassed], 2)
        if (left.prompt, left.context, left.expected)
        == (right.prompt, right.context, right.expected)
    ]
    return tuple(sorted(pairs_, key=lambda pair: abs(pair[0].score - pair[1].score))[:MAX_PAIRS])


def family(model: ModelSpec | str) -> str:
    """Return a model's family, derived from its name: `openai/gpt-4o-mini` and
    `openrouter/openai/gpt-5` are `gpt`.
    """
    ref = model if isinstance(model, str) else model.ref
    name = ref.rsplit("/", 1)[-1].lower()
    letters = "".join(letter if letter.isalpha() else " " for letter in name).split()
    return letters[0] if letters else name


def _task(sample: ReferenceSample, identifier: str) -> Task:
    return Task(
        id=f"calibration/{identifier}",
        thing=sample.prompt.strip().split("\n", 1)[0][:80],
        context=sample.context,
        prompt=(Message(role="user", content=sample.prompt),),
        expected=sample.expected,
        scoring=Scoring(method="judge"),
    )
