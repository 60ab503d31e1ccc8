"""Judges: an LLM receives the responses and the rubric, and its reply is parsed into grades with
flags.

`JointJudge` shows all candidates of a task in one call, so that their scores are comparable.
`EachJudge` makes one call per candidate. Candidates' responses are treated as data: they are put
between markers that contain a nonce unknown to the candidates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from assay.domain.assessment import (
    Assessment,
    Flag,
    FlagKind,
    Grade,
    Response,
    weighted_scores,
    weights_of,
)
from assay.domain.calls import AnswerSchema, ModelRequest, Purpose, Reply, Role
from assay.domain.digest import JsonValue, text_digest
from assay.domain.model import Parameters
from assay.domain.suite import Criterion, JudgeSpec, Message, Rubric, Task
from assay.domain.unescaped_json import unescaped_json
from assay.scoring.evaluator import Answer, GradingAttempt, UnreadableReply
from assay.scoring.flags import flags_of
from assay.scoring.prompts import JOINT, SOLO, filled, named_placeholders, system_prompt
from assay.scoring.reply_parser import Reading, read_grading
from assay.scoring.rubric_evaluator import RubricEvaluator, grade_on
from assay.scoring.verification import rule_flags

Schema: TypeAlias = "dict[str, JsonValue]"

CONVERSATION_NOTE: Final = (
    "(This began a conversation. What is to be graded are whole conversations: the headings name who spoke. Grade what the "
    "assistant said, and take the user's messages as given.)"
)

JUDGE_DEFAULTS: Final = Parameters(temperature=0.1, max_tokens=6000)
"""Default parameters of a judge, used if neither the judge nor its model sets any."""


@dataclass(frozen=True, slots=True)
class JointJudge(RubricEvaluator):
    """A judge that grades all candidates of a task in one call."""

    def ask(self, grading: GradingAttempt, /) -> tuple[ModelRequest, ...]:
        return (request_of(self.spec, self.rubric, grading, candidate=None),)

    def read(self, grading: GradingAttempt, answers: tuple[Answer, ...], /) -> Assessment:
        """Return the assessment in the last reply; raises `UnreadableReply` if it has no grades."""
        return assessment_of(self.spec, self.rubric, grading, answers)


@dataclass(frozen=True, slots=True)
class EachJudge(JointJudge):
    """A judge that grades each response separately, with one call per candidate."""

    slots = RubricEvaluator.slot_for_each

    def ask(self, grading: GradingAttempt, /) -> tuple[ModelRequest, ...]:
        """Return the request for this grading attempt's only response; raises ValueError if it has
        several.
        """
        if len(grading.responses) != 1:
            raise ValueError(
                f"A judge with `mode: each` grades one response at a time, not {len(grading.responses)}."
            )
        return (
            request_of(self.spec, self.rubric, grading, candidate=grading.responses[0].candidate),
        )


# --- asking ---------------------------------------------------------------------------------------


def answer_schema(labels: tuple[str, ...], rubric: Rubric) -> Schema:
    """Return the JSON Schema of the answer: properties are named by label and criterion, and all
    are required.

    Grades come before the report, so that a token limit that cuts the reply off loses part of the
    report and not grades.
    """
    grades: Schema = {criterion.name: _grade_schema(criterion) for criterion in rubric.criteria}
    parts: Schema = {
        "candidates": closed_object({label: closed_object(dict(grades)) for label in labels})
    }
    if len(labels) > 1:
        parts["ranking"] = {"type": "array", "items": {"type": "string", "enum": [*labels]}}
    parts["report"] = {"type": "string"}
    return closed_object(parts)


def closed_object(properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def _grade_schema(criterion: Criterion) -> Schema:
    score: Schema
    if criterion.labels:
        score = {"type": "string", "enum": [label for label, _ in criterion.labels]}
    else:
        low, high = sorted((criterion.low, criterion.high))
        score = {"type": "number", "minimum": low, "maximum": high}
    return closed_object(
        {
            "evidence": {"type": "array", "items": {"type": "string"}},
            "reason": {"type": "string"},
            "score": score,
        }
    )


def request_of(
    spec: JudgeSpec,
    rubric: Rubric,
    grading: GradingAttempt,
    *,
    candidate: str | None,
    template: str | None = None,
) -> ModelRequest:
    """Return the request for a grading attempt; `template` replaces Assay's own template."""
    labels = labels_of(grading)
    shown = tuple(labels[response.candidate] for response in grading.responses)
    messages = _messages(spec, rubric, grading, labels, template)
    answer = AnswerSchema(name="grading", schema=answer_schema(shown, rubric))
    return judge_request(spec, grading, messages, answer, candidate=candidate)


def judge_request(
    spec: JudgeSpec,
    grading: GradingAttempt,
    messages: tuple[Message, ...],
    answer: AnswerSchema,
    candidate: str | None = None,
) -> ModelRequest:
    parameters = spec.parameters.over(spec.model.parameters).over(JUDGE_DEFAULTS)
    return ModelRequest(
        model=spec.model,
        messages=messages,
        parameters=parameters
        if grading.seed is None
        else Parameters(seed=grading.seed).over(parameters),
        purpose=Purpose(
            role=Role.JUDGE,
            task=grading.task.id,
            trial=grading.k,
            attempt=grading.attempt,
            candidate=candidate,
            judge=spec.name,
            labels=labels_of(grading),
        ),
        answer_schema=answer,
    )


def labels_of(grading: GradingAttempt) -> dict[str, str]:
    """Return the label of each name in this grading attempt; if names are not hidden, each name is
    its own label.
    """
    shown = [response.candidate for response in grading.responses]
    hidden = {name: label for name, label in grading.labels.items() if name in shown}
    return hidden | {name: name for name in shown if name not in hidden}


def _messages(
    spec: JudgeSpec,
    rubric: Rubric,
    grading: GradingAttempt,
    labels: dict[str, str],
    template: str | None,
) -> tuple[Message, ...]:
    example = _example(tuple(labels[response.candidate] for response in grading.responses), rubric)
    template = template or (JOINT if len(grading.responses) > 1 else SOLO)
    return messages_of(spec, rubric, grading, labels, template=template, example=example)


def messages_of(
    spec: JudgeSpec,
    rubric: Rubric,
    grading: GradingAttempt,
    labels: dict[str, str],
    *,
    template: str,
    example: str,
) -> tuple[Message, ...]:
    """Build a judge's messages from its own template, or else from `template` with Assay's system
    prompt.
    """
    task = grading.task
    note = grading.note.strip()
    own = spec.prompt is None
    values = {
        "thing": task.thing,
        "context": section("Context and rules", task.context) if own else task.context.strip(),
        "prompt": section("What was asked", prompt_text(task)) if own else prompt_text(task),
        "expected": _references(task) if own else (task.reference or "").strip(),
        "ideal": (task.ideal or "").strip(),
        "final_answer": (task.final_answer or "").strip(),
        "candidates": shown_work(spec, grading, labels),
        "rubric": rubric_text(rubric),
        "schema": example,
        "note": section("From the reviewer of your last attempt", note) if own else note,
    }
    images = tuple(image for message in task.prompt for image in message.images)
    if spec.prompt is None:
        asked = Message(role="user", content=filled(template, values), images=images)
        return (Message(role="system", content=system_prompt(spec)), asked)
    user = filled(spec.prompt, values)
    if note and "note" not in named_placeholders(spec.prompt):
        user = f"{user}\n\n{note}"
    return (
        Message(role="system", content=system_prompt(spec)),
        Message(role="user", content=user, images=images),
    )


def prompt_text(task: Task) -> str:
    """Return the candidates' prompt as one text; if there are several messages, each is preceded by
    its role.
    """
    text = _messages_text(task)
    tools = "".join(f"\n- {canned.tool.name}: {canned.tool.description}" for canned in task.tools)
    offered = f"\n\n(The assistant may call these tools:{tools})" if tools else ""
    return f"{text}\n\n{CONVERSATION_NOTE}{offered}" if task.turns else text


def _messages_text(task: Task) -> str:
    if len(task.prompt) == 1:
        return task.prompt[0].content.strip()
    return "\n\n".join(f"[{message.role}]\n{message.content.strip()}" for message in task.prompt)


def _references(task: Task) -> str:
    parts = (
        ("Reference answer", task.expected),
        ("A model solution", task.ideal),
        ("The right final answer", task.final_answer),
    )
    return "".join(section(title, text or "") for title, text in parts)


def section(title: str, body: str) -> str:
    """Return a section of a prompt with its heading; an empty text if the section is empty."""
    return f"## {title}\n\n{body.strip()}\n\n" if body.strip() else ""


def shown_work(spec: JudgeSpec, grading: GradingAttempt, labels: dict[str, str]) -> str:
    """Return the responses in order, each between markers that contain its label, shortened to the
    judge's limit.
    """
    nonce = _nonce(grading)
    return "\n\n".join(
        f'<candidate-{nonce} label="{labels[response.candidate]}">\n'
        f"{_fenced(response, grading.task.language, spec.max_code_chars)}\n"
        f"</candidate-{nonce}>"
        for response in grading.responses
    )


def _nonce(grading: GradingAttempt) -> str:
    """Return eight characters that no candidate's text contains.

    Equal sittings get the same characters.
    """
    everything = "\n".join(response.text for response in grading.responses)
    drawn = text_digest(
        f"{grading.seed}\x1f{grading.task.digest}\x1f{grading.k}\x1f{grading.attempt}"
    )[:8]
    while drawn in everything:
        drawn = text_digest(drawn)[:8]
    return drawn


def _fenced(response: Response, language: str, most: int | None) -> str:
    """Put a text between code fences longer than any fence inside it.

    Prose is fenced too, because it is data.
    """
    text = response.text[:most]
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    cut = (
        "\n(The candidate's own output limit cut this answer off here.)"
        if response.truncated
        else ""
    )
    if len(text) < len(response.text):
        cut = (
            f"\n(Only the first {len(text):,} of {len(response.text):,} characters are shown here.)"
        )
    return f"{fence}{language}\n{text}\n{fence}{cut}"


def cut_flags(spec: JudgeSpec, grading: GradingAttempt, labels: dict[str, str]) -> tuple[Flag, ...]:
    most = spec.max_code_chars
    return tuple(
        Flag(
            kind=FlagKind.CODE_CUT,
            detail=f"The judge saw the first {most:,} of {len(response.text):,} characters of {labels[response.candidate]}.",
            candidate=response.candidate,
        )
        for response in grading.responses
        if most is not None and len(response.text) > most
    )


def rubric_text(rubric: Rubric) -> str:
    """Return the criteria as a list in text, each with scale, weight and guidance."""
    rows = []
    for criterion in rubric.criteria:
        if criterion.labels:
            scale = "one of " + ", ".join(f'"{label}"' for label, _ in criterion.labels)
        else:
            scale = f"{criterion.low:g} (worst) to {criterion.high:g} (best), decimals allowed"
        weight = "" if len(rubric.criteria) == 1 else f"; weight {criterion.weight:g}"
        guidance = f"\n  {criterion.guidance.strip()}" if criterion.guidance.strip() else ""
        rows.append(f"- `{criterion.name}` ({scale}{weight}){guidance}")
    return "\n".join(rows)


def _example(labels: tuple[str, ...], rubric: Rubric) -> str:
    """Return an example of the answer for endpoints that do not enforce the schema, with one line
    per grade.
    """
    grades = ",\n".join(
        f'   {_quoted(criterion.name)}: {{"evidence": ["..."], "reason": "...", "score": {_score_place(criterion)}}}'
        for criterion in rubric.criteria
    )
    graded = ",\n".join(f"  {_quoted(label)}: {{\n{grades}\n  }}" for label in labels)
    ranking = f' "ranking": [{", ".join(["<best label>", "..."])}],\n' if len(labels) > 1 else ""
    return f'```json\n{{\n "candidates": {{\n{graded}\n }},\n{ranking} "report": "..."\n}}\n```'


def _score_place(criterion: Criterion) -> str:
    if criterion.labels:
        return "<" + " or ".join(_quoted(label) for label, _ in criterion.labels) + ">"
    return f"<number from {criterion.low:g} to {criterion.high:g}>"


def _quoted(text: str) -> str:
    return unescaped_json(text)


# --- reading --------------------------------------------------------------------------------------


def assessment_of(
    spec: JudgeSpec, rubric: Rubric, grading: GradingAttempt, answers: tuple[Answer, ...]
) -> Assessment:
    """Return the grades in the last answer, with flags; raises `UnreadableReply` if it has no
    grades.
    """
    reply = answers[-1] if answers else None
    if not isinstance(reply, Reply):
        raise UnreadableReply("There is no reply to read.")
    labels = labels_of(grading)
    if reply.finish_reason == "refusal":
        raise UnreadableReply("The judge refused to answer.")
    reading = read_grading(reply.text, labels=labels, rubric=rubric, cut=reply.truncated)
    grades = tuple(
        _grade(candidate, criterion, reading)
        for candidate in labels
        for criterion in rubric.criteria
    )
    weights = weights_of(rubric)
    scores = weighted_scores(labels, grades, weights)
    return Assessment(
        grades=grades,
        scores=scores,
        weights=weights,
        report=reading.report,
        ranking=reading.ranking,
        labels={name: label for name, label in labels.items() if name in grading.labels},
        shown=grading.shown,
        flags=_blind_flags(reply)
        + cut_flags(spec, grading, labels)
        + flags_of(
            reading,
            grades=grades,
            scores=scores,
            rubric=rubric,
            labels=labels,
            task=grading.task,
            responses=grading.responses,
            token_limit_hit=reply.truncated,
        )
        + (() if rubric.rules is None else tuple(rule_flags(rubric.rules, grades, labels))),
        raw=reply.text,
        rules=rubric.rules,
    )


def _blind_flags(reply: Reply) -> tuple[Flag, ...]:
    if not reply.blind:
        return ()
    detail = "The judge's endpoint accepts no images, so the judge read only the text."
    return (Flag(kind=FlagKind.NO_SCREENSHOT, detail=detail),)


def _grade(candidate: str, criterion: Criterion, reading: Reading) -> Grade:
    read = reading.grades.get((candidate, criterion.name))
    score = read.score if read else None
    grade = grade_on(criterion, candidate, score.raw if score else None)
    if score is not None and score.outside:
        grade = replace(grade, score=None)
    if read is None:
        return grade
    return replace(grade, reason=read.reason, evidence=read.evidence, confidence=read.confidence)
