"""MT-bench of FastChat: model answers with their turns, single judgments and pairwise judgments.

Based on lm-sys/FastChat's `llm_judge/common.py` and `llm_judge/gen_model_answer.py` (2023 to 2024).
An answer holds `question_id`, `model_id` and `choices` with `turns`; a single judgment `model`,
`judge` (model and prompt), `judgment`, `turn` and `score` (1 to 10, or -1 if none could be read); a
pairwise judgment `model_1`, `model_2`, `g1_winner` and `g2_winner` (`model_1`, `model_2`, `tie` or
`error`) for both orders. `question.jsonl` and `reference_answer/` in the same folder contain
questions and reference answers.

A turn is a task (`81-1`, `81-2`), each choice a trial. A judge is named after its model and prompt;
each order of a pair counts as a separate judge. Every judgment awaits review; pairwise judgments
are preferences (`preferences`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from assay.plugins import (
    PREFERENCE,
    PREFERENCE_KIND,
    Failure,
    Fault,
    FileSample,
    Found,
    FoundAssessment,
    FoundCandidate,
    FoundGrade,
    FoundResponse,
    FoundRun,
    FoundTask,
    GradedBy,
    InputFile,
    JsonObject,
    Message,
    ReadOptions,
    Shape,
    Skipped,
    as_id,
    as_list,
    as_number,
    as_object,
    as_text,
    explained_share,
    first_rows,
    folder_name,
    folder_path,
    foreign_names,
    from_unix,
    objects_of,
    parent_folder,
    preference_assessment,
    read_rows,
    shorten,
    storable,
    to_text,
)

NAME: Final = "mt_bench"

_LOW, _HIGH = 1.0, 10.0
# FastChat's `API_ERROR_OUTPUT`.
_BROKEN: Final = "$ERROR$"
_NO_ANSWER: Final = Failure(
    kind="error", fault=Fault.PROVIDER, detail="the model's API gave no answer."
)
_FOLDERS: Final = ("model_answer", "model_judgment", "reference_answer")
_BESIDE: Final = ("question", "prompts")
_JUDGMENTS: Final = ("single", "pair")
_POINTS: Final = {"model_1": 1.0, "model_2": 0.0, "tie": 0.5}
_ROW: Final[Shape] = dict.fromkeys(foreign_names(__name__)["row"])


def recognise(sample: FileSample) -> float | None:
    """Recognise questions, answers and judgments (lines with a `question_id`), and files of judge
    prompts.
    """
    if b'"question_id"' not in sample.head and b'"prompt_template"' not in sample.head:
        return None
    rows = first_rows(sample, 50)
    kinds = {_kind(row) for row in rows}
    kinds.discard(None)
    return explained_share(rows, _ROW) if len(kinds) == 1 else None


def companions(source: InputFile, others: Sequence[InputFile]) -> Collection[InputFile]:
    """Return the bench's other files, which are read with its first file of judgments or, without
    judgments, of answers.
    """
    kind = _kind_of(source.sample)
    if kind is None or kind in _BESIDE:
        return ()
    bench = [
        other
        for other in others
        if _kind_of(other.sample) is not None and _same_bench(source, other)
    ]
    if kind == "answer":
        judged = any(_kind_of(file.sample) in _JUDGMENTS for file in bench)
        answered = any(
            _kind_of(file.sample) == "answer" and not _is_reference(file) for file in bench
        )
        if judged or (_is_reference(source) and answered):
            return ()
    return bench


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run, with judgments and the answers that they judge, or with answers only."""
    kind = _kind_of(source.sample)
    if kind in _BESIDE:
        why = f"contains only {'questions' if kind == 'question' else 'prompts'}; import it together with answers or judgments."
        yield Skipped(where=source.name, why=why)
        return
    companions = options.beside.get("companions", ())
    of_kind = {
        name: [file for file in companions if _kind_of(file.sample) == name]
        for name in (*_BESIDE, "answer")
    }
    answers = [file for file in of_kind["answer"] if not _is_reference(file)]
    if kind == "answer":
        answers.insert(0, source)
    judgments = [file for file in (source, *companions) if _kind_of(file.sample) in _JUDGMENTS]
    paired = [file for file in judgments if _kind_of(file.sample) == "pair"]
    prompts = {
        to_text(row.get("name")): {
            key: row.get(key) for key in ("system_prompt", "prompt_template", "output_format")
        }
        for file in of_kind["prompts"]
        for row, _ in objects_of(file)
    }
    rows = (row for file in (*answers, *judgments) for row, _ in objects_of(file))
    names = (
        as_text(row.get(key)) for row in rows for key in ("model_id", "model", "model_1", "model_2")
    )
    models = list(dict.fromkeys(name for name in names if name is not None))
    bench = _MtBench(
        questions=_by_id(of_kind["question"]),
        references=_by_id([file for file in of_kind["answer"] if _is_reference(file)]),
        rename={models[0]: options.candidate} if options.candidate and len(models) == 1 else {},
        tasks=set(),
    )
    yield FoundRun(
        suite=options.dataset or NAME,
        format=NAME,
        candidates=tuple(FoundCandidate(name=bench.candidate(name)) for name in models),
        rubric=(PREFERENCE,) if paired else (),
        provenance={
            **({"kind": PREFERENCE_KIND} if paired and len(paired) == len(judgments) else {}),
            "questions": len(bench.questions),
            **({"judge_prompts": storable(prompts)} if prompts else {}),
        },
    )
    for file in answers:
        yield from _answers(file, bench)
    for file in judgments:
        for row_or_problem, where in read_rows(file):
            if isinstance(row_or_problem, str):
                yield Skipped(where=where, why=row_or_problem)
            elif _kind(row_or_problem) not in _JUDGMENTS:
                why = "is not a judgment: it lacks `judge`, or `model` and `score`, or two models and a winner."
                yield Skipped(where=where, why=why)
            else:
                yield from _judgment(row_or_problem, where, bench)


def _kind(row: object) -> str | None:
    fields = as_object(row)
    if "question_id" not in fields:
        return "prompts" if "prompt_template" in fields and "output_format" in fields else None
    if "judge" in fields:
        if "model_1" in fields and ("g1_winner" in fields or "winner" in fields):
            return "pair"
        return "single" if "model" in fields and "score" in fields else None
    if "choices" in fields and "model_id" in fields:
        return "answer"
    return "question" if isinstance(fields.get("turns"), list) else None


def _kind_of(sample: FileSample) -> str | None:
    return next((kind for row in first_rows(sample, 50) if (kind := _kind(row)) is not None), None)


def _is_reference(source: InputFile) -> bool:
    return "reference" in folder_name(folder_path(source)) or "reference" in source.stem


def _same_bench(source: InputFile, other: InputFile) -> bool:
    """True if the other file is in the same folder, its parent, or a neighbouring folder in
    FastChat's layout.
    """
    folder, other_folder = folder_path(source), folder_path(other)
    beside = parent_folder(folder) == parent_folder(other_folder) and all(
        folder_name(path) in _FOLDERS for path in (folder, other_folder)
    )
    above = folder_name(folder) in _FOLDERS and other_folder == parent_folder(folder)
    return other_folder == folder or beside or above


def _by_id(sources: Sequence[InputFile]) -> dict[str, JsonObject]:
    """Return rows by `question_id`; if several rows have the same id, the first one counts."""
    rows: dict[str, JsonObject] = {}
    for source in sources:
        for row, _ in objects_of(source):
            name = as_id(row.get("question_id"))
            if name is not None:
                rows.setdefault(name, row)
    return rows


def _turns(answer: JsonObject) -> list[str]:
    choice = as_object(next(iter(as_list(answer.get("choices"))), None))
    return [to_text(turn) for turn in as_list(choice.get("turns"))]


class _MtBench(NamedTuple):
    """Questions and reference answers by id, the new name of a model, and the ids of tasks yielded
    so far.
    """

    questions: dict[str, JsonObject]
    references: dict[str, JsonObject]
    rename: dict[str, str]
    tasks: set[str]

    def candidate(self, model: str) -> str:
        return self.rename.get(model, model)

    def new_task(self, question: str, turn: int) -> Iterator[FoundTask]:
        """Yield a turn's task once, with the user's questions up to that turn but without answers,
        which differ by model.
        """
        name = f"{question}-{turn}"
        if name in self.tasks:
            return
        self.tasks.add(name)
        asked = self.questions.get(question, {})
        turns = [to_text(text) for text in as_list(asked.get("turns"))]
        reference = [to_text(text) for text in as_list(asked.get("reference"))]
        expected = reference or _turns(self.references.get(question, {}))
        category = as_text(asked.get("category"))
        yield FoundTask(
            id=name,
            thing=f"{category or 'question'} {question}, turn {turn}",
            prompt=tuple(Message(role="user", content=text) for text in turns[:turn] if text),
            expected=tuple(expected[turn - 1 : turn]),
            tags=() if category is None else (category,),
        )


def _answers(source: InputFile, bench: _MtBench) -> Iterator[Found]:
    for row, where in read_rows(source):
        if isinstance(row, str):
            yield Skipped(where=where, why=row)
            continue
        question, model = as_id(row.get("question_id")), as_text(row.get("model_id"))
        if question is None or model is None or _kind(row) != "answer":
            yield Skipped(
                where=where,
                why="is not an answer: it lacks `question_id`, `model_id` or `choices`.",
            )
            continue
        for trial, choice in enumerate(as_list(row["choices"]), 1):
            for turn, answer in enumerate(as_list(as_object(choice).get("turns")), 1):
                yield from bench.new_task(question, turn)
                text = answer.get("content") if isinstance(answer, dict) else answer
                broken = text is None or text == _BROKEN
                yield FoundResponse(
                    task=f"{question}-{turn}",
                    candidate=bench.candidate(model),
                    trial=trial,
                    where=where,
                    content=None if broken else to_text(text),
                    failure=_NO_ANSWER if broken else None,
                    started=from_unix(as_number(row.get("tstamp"))),
                )


def _judgment(row: JsonObject, where: str, bench: _MtBench) -> Iterator[Found]:
    question = as_id(row.get("question_id"))
    turn = as_number(row.get("turn", 1))
    if question is None or turn is None or turn < 1 or turn != int(turn):
        yield Skipped(
            where=where, why="has no `question_id`, or a `turn` that is not a number of at least 1."
        )
        return
    yield from bench.new_task(question, int(turn))
    task = f"{question}-{int(turn)}"
    judge = (
        "/".join(to_text(part) for part in as_list(row["judge"]))
        or to_text(row["judge"])
        or "judge"
    )
    if _kind(row) == "single":
        model = as_text(row["model"])
        if model is None:
            yield Skipped(where=where, why="has no model.")
            return
        raw = as_number(row["score"])
        readable = raw is not None and _LOW <= raw <= _HIGH  # -1 means a judgment without a score
        grade = FoundGrade(
            candidate=bench.candidate(model),
            score=(raw - _LOW) / (_HIGH - _LOW) if raw is not None and readable else None,
            raw_score=raw if readable else None,
            min_score=_LOW,
            max_score=_HIGH,
            reason=to_text(row.get("judgment")),
        )
        yield FoundAssessment(
            task=task,
            trial=1,
            judge=judge,
            by=GradedBy.MODEL,
            where=where,
            grades=(grade,),
            reply=to_text(row.get("judgment")),
        )
        return
    first, second = as_text(row.get("model_1")), as_text(row.get("model_2"))
    if first is None or second is None or first == second:
        yield Skipped(where=where, why="does not have two models.")
        return
    for game, order in (("g1", "model_1 first"), ("g2", "model_2 first")):
        verdict = row.get(f"{game}_winner", row.get("winner"))
        if verdict is None:
            continue
        words = to_text(row.get(f"{game}_judgment"))
        yield preference_assessment(
            bench.candidate(first),
            bench.candidate(second),
            _POINTS.get(to_text(verdict)),
            task=task,
            judge=f"{judge}, {order}",
            by=GradedBy.MODEL,
            where=where,
            reason=words,
            reply=words or f"winner: {shorten(verdict, 80)}",
        )
