"""The `math` scorer: compares the final answer with the reference by mathematical meaning.

Most answers can be compared as text. All others are compared in a child process, because they may
be hostile.
"""

from __future__ import annotations

from typing import Final

from assay.domain.failure import Fault
from assay.domain.isolation import IsolatedAnswer, IsolatedRequest, Returned, StopKind
from assay.scoring.final_answer import final_answer, nesting, same_answer
from assay.scoring.scorer_result import Outcome, Score, Unscored

TIME_LIMIT_S: Final = 1.5
MAX_NESTING: Final = 40


def begin(response: str, reference: str) -> Outcome | IsolatedRequest:
    """Return the score if comparing the text suffices, else the call that compares by algebra;
    without an answer the score is 0.
    """
    wanted = final_answer(reference)
    if wanted is None:
        return Unscored("no_reference", "The reference contains no answer to compare with.")
    given = final_answer(response)
    if given is None:
        return Score(0.0, "no answer in the response", 1.0)
    if nesting(given) > MAX_NESTING:
        return Score(0.0, f"the answer is nested more than {MAX_NESTING} levels deep", 1.0)
    same = same_answer(given, wanted)
    if same is None:
        return IsolatedRequest(
            function="same_answer",
            arguments={"given": given, "wanted": wanted},
            time_limit_s=TIME_LIMIT_S,
        )
    return _score(same, "by its text")


def finish(answer: IsolatedAnswer) -> Outcome:
    """Return the child's score, or `Unscored` with fault `CANDIDATE` if the answer exceeds the
    limits.
    """
    if isinstance(answer, Returned):
        return _score(bool(answer.value), "by algebra")
    fault = Fault.HARNESS if answer.kind is StopKind.CRASHED else Fault.CANDIDATE
    return Unscored(
        f"answer_{answer.kind}", f"The final answer cannot be compared: {answer.detail}", fault
    )


def _score(same: bool, how: str) -> Score:
    return (
        Score(1.0, f"the same answer, {how}", 1.0)
        if same
        else Score(0.0, f"another answer, {how}", 1.0)
    )
