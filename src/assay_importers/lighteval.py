"""Details of LightEval: `details/MODEL/DATE/details_TASK_DATE.parquet`, and `results_DATE.json` for
the model's name.

Based on `lighteval/logging/evaluation_tracker.py` and `info_loggers.py`, `tasks/requests.py` and
`models/model_output.py` of 0.10 to 0.13, and the flat columns of 0.4 to 0.9 (`full_prompt`,
`predictions`, `gold`, `metrics`). A file contains one task of LightEval; each row is a document
with its metrics. All samples of a document share the metrics, so they are one trial.

Metrics in LightEval's `metrics.py` are rule-based, except judges, whose text is in `judgement_…`
next to the score. Any other metric comes from a user's task and may call a model, so it awaits
review.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from assay.plugins import (
    PARQUET_MAGIC,
    Failure,
    Fault,
    FileSample,
    Found,
    FoundCandidate,
    FoundResponse,
    FoundRun,
    FoundTask,
    GradedBy,
    InputFile,
    JsonObject,
    MetricGrades,
    MetricValue,
    Noted,
    ReadOptions,
    Shape,
    Skipped,
    as_count,
    as_id,
    as_list,
    as_messages,
    as_number,
    as_object,
    as_points,
    as_text,
    explained_share,
    folder_path,
    foreign_names,
    from_unix,
    outside_their_scale,
    parquet_columns,
    pick,
    read_object,
    read_table,
    storable,
    to_text,
)

NAME: Final = "lighteval"

_DETAILS: Final = frozenset({"doc", "model_response", "metric"})
_FLAT: Final = frozenset({"full_prompt", "predictions", "gold", "metrics"})
_NAMES: Final = foreign_names(__name__)
_FLAT_ALL: Final = _FLAT | frozenset(_NAMES["flat_all"])
_RESULTS: Final[Shape] = dict.fromkeys(_NAMES["results"])
_RULE: Final = re.compile(
    r"acc|avg@|bits_per_byte|byte_perplexity|word_perplexity|ppl|bleu|chrf|ter$|em$|em_|ex$|exact_match|quasi_exact|pem|qem|pqem"
    r"|extractive_match|f1|mf1|loglikelihood|(math-|latex-)?g-pass@|(gpqa_)?pass@|maj@|mcc|mrr|recall|precision|rouge|truthfulqa_mc"
    r"|longest_common_prefix|edit_|target_perplexity|(prompt|inst)_level_(strict|loose)_acc|multi_f1|drop|expr_gold|math_pass",
    re.IGNORECASE,
)
_JUDGED: Final = re.compile(r"judge|judgement|user_prompt|llm", re.IGNORECASE)
_WORDS: Final = re.compile(r"judgement|user_prompt")
_STAMP: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}[-:]\d{2}[-:]\d{2}(\.\d+)?")


def recognise(sample: FileSample) -> float | None:
    """Recognise files of details by their columns, and files of results."""
    match _kind(sample):
        case "details":
            return 1.0
        case "flat":
            columns = _columns(sample)
            return len(columns & _FLAT_ALL) / len(columns)
        case "results":
            return explained_share(sample.document, _RESULTS)
        case _:
            return None


def companions(source: InputFile, others: Sequence[InputFile]) -> Collection[InputFile]:
    """Return the evaluation's results, recognised by the same date in the file name as the
    details.
    """
    if _kind(source.sample) not in ("details", "flat"):
        return ()
    stamp = _stamp(source)
    return [
        other for other in others if _kind(other.sample) == "results" and _stamp(other) == stamp
    ]


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run, with a task, a response and metrics for every document."""
    if _kind(source.sample) == "results":
        yield Skipped(
            where=source.name,
            why="contains only mean scores, which cannot be compared. Import the details too.",
        )
        return
    results: JsonObject = next(
        (read_object(file) for file in options.beside.get("companions", ())), {}
    )
    general = as_object(results.get("config_general"))
    settings = as_object(general.get("model_config"))
    model = (
        as_text(general.get("model_name"))
        or as_text(settings.get("model_name"))
        or _model_of(source)
    )
    # A first pass: a metric with any value outside 0 to 1 has a different scale everywhere.
    rows = (detail["metric"] for detail, _ in _details(source) if not isinstance(detail, str))
    unscaled = outside_their_scale(
        value for metrics in rows for value in _values(as_object(metrics))
    )
    reading = _DetailReader(options.candidate or model or source.stem, unscaled)
    opened = False
    for detail, where in _details(source):
        if isinstance(detail, str):
            yield Skipped(where=where, why=detail)
            continue
        if not opened:
            opened = True
            name = as_text(as_object(detail["doc"]).get("task_name")) or _task_name(source)
            yield FoundRun(
                suite=options.dataset or name,
                format=NAME,
                candidates=(
                    FoundCandidate(
                        name=reading.candidate, model=model, metadata=options.model_info
                    ),
                ),
                # LightEval's clock starts with the process instead of in 1970: a time out of range
                # is unknown.
                started=from_unix(as_number(general.get("start_time"))),
                finished=from_unix(as_number(general.get("end_time"))),
                provenance={
                    "parameters": pick(
                        as_object(settings.get("generation_parameters")),
                        ("temperature", "top_p", "seed"),
                    ),
                    **pick(
                        general,
                        ("lighteval_sha", "num_fewshot_seeds", "max_samples", "model_config"),
                    ),
                    "results": storable(as_object(results.get("results")).get(name)),
                },
            )
        yield from reading.row(detail, where)
    yield from reading.notes(source.name)
    if not general and options.candidate is None:
        what = f"`results_….json` is not among the files; the candidate {reading.candidate!r} is named after the folder."
        yield Noted(where=source.name, what=what)


def _kind(sample: FileSample) -> str | None:
    if sample.head.startswith(PARQUET_MAGIC):
        columns = _columns(sample)
        return "details" if columns == _DETAILS else "flat" if columns >= _FLAT else None
    if b'"config_general"' not in sample.head:
        return None
    document = as_object(sample.document)
    return (
        "results"
        if "results" in document and ("config_tasks" in document or "summary_general" in document)
        else None
    )


def _columns(sample: FileSample) -> frozenset[str]:
    """Return the columns of a Parquet file; empty if it is compressed, because the columns are
    listed at the end.
    """
    if sample.source.packing != "plain":
        return frozenset()
    with sample.source.open() as stream:
        return parquet_columns(stream)


def _stamp(source: InputFile) -> str | None:
    match = _STAMP.search(source.stem)
    return None if match is None else match[0].replace(":", "-")


def _model_of(source: InputFile) -> str | None:
    before, _, after = f"/{folder_path(source)}".rpartition("/details/")
    parts = after.split("/")
    if not before and not after:
        return None
    return "/".join(part for part in parts if not _STAMP.fullmatch(part)) or None


def _task_name(source: InputFile) -> str:
    return _STAMP.sub("", source.stem.removeprefix("details_")).strip("_") or source.stem


def _details(source: InputFile) -> Iterator[tuple[dict[str, object] | str, str]]:
    """Yield each row in the current layout with its location; an unreadable row is replaced by an
    error message.
    """
    for row, where in read_table(source):
        if isinstance(row, str) or {"doc", "model_response", "metric"} <= row.keys():
            yield row, where
        elif {"full_prompt", "gold", "metrics", "predictions"} <= row.keys():
            yield _as_detail(row), where
        else:
            yield "does not have the columns of LightEval's details.", where


def _as_detail(row: dict[str, object]) -> dict[str, object]:
    """Convert a row with the flat columns used before 0.10 to the current layout."""
    predictions = row["predictions"]
    return {
        "doc": {
            "query": row["full_prompt"],
            "choices": row.get("choices"),
            "gold_index": row.get("gold_index"),
            "gold": row["gold"],
        },
        "model_response": {"text": predictions if isinstance(predictions, list) else [predictions]},
        "metric": row["metrics"],
    }


class _DetailReader:
    def __init__(self, candidate: str, unscaled: Collection[str]) -> None:
        self.candidate = candidate
        self._trials: Counter[str] = Counter()
        self._number = 0
        self._several = 0
        self._grades = MetricGrades(unscaled)

    def row(self, row: dict[str, object], where: str) -> Iterator[Found]:
        doc, answer, metrics = (
            as_object(row.get("doc")),
            as_object(row.get("model_response")),
            as_object(row.get("metric")),
        )
        task = as_id(doc.get("id")) or str(self._number)
        self._number += 1
        self._trials[task] += 1
        trial = self._trials[task]
        if trial == 1:
            yield _task(task, doc)
        texts = [text for text in as_list(answer.get("text")) if isinstance(text, str)]
        self._several += len(texts) > 1
        content = texts[0] if texts else _likeliest(doc, answer)
        failure = None
        if content is None:
            failure = Failure(
                kind="no_output",
                fault=Fault.PROVIDER,
                detail="the answer has neither a text nor a likelihood.",
            )
        output_tokens = as_list(answer.get("output_tokens"))
        yield FoundResponse(
            task=task,
            candidate=self.candidate,
            trial=trial,
            where=where,
            content=content,
            failure=failure,
            input_tokens=as_count(len(as_list(answer.get("input_tokens")))) or None,
            output_tokens=len(as_list(output_tokens[0])) if texts and output_tokens else None,
        )
        yield from self._grades.assessments(
            list(_values(metrics)), task=task, candidate=self.candidate, trial=trial, where=where
        )

    def notes(self, where: str) -> Iterator[Noted]:
        if self._several:
            what = f"{self._several:,} documents have several samples with common metrics; the first sample is shown."
            yield Noted(where=where, what=what)
        yield from self._grades.notes(where)


def _task(task: str, doc: JsonObject) -> FoundTask:
    choices = as_list(doc.get("choices"))
    index = doc.get("gold_index")
    places = [
        place for place in (index if isinstance(index, list) else [index]) if isinstance(place, int)
    ]
    golds = [to_text(choices[place]).strip() for place in places if 0 <= place < len(choices)]
    if not golds and (gold := doc.get("gold")) is not None:
        golds = [to_text(item) for item in (gold if isinstance(gold, list) else [gold])]
    instruction, query = as_text(doc.get("instruction")), as_text(doc.get("query")) or ""
    prompt = (
        query if instruction is None or query.startswith(instruction) else f"{instruction}{query}"
    )
    return FoundTask(
        id=task,
        prompt=as_messages(prompt),
        expected=tuple(golds),
        metadata=pick(doc, ("choices", "specific", "fewshot_sorting_class")),
    )


def _likeliest(doc: JsonObject, answer: JsonObject) -> str | None:
    """Return the choice with the highest likelihood; None if the model was not asked for
    likelihoods.
    """
    likelihoods = [as_number(value) for value in as_list(answer.get("logprobs"))]
    choices = as_list(doc.get("choices"))
    known = [
        (value, place)
        for place, value in enumerate(likelihoods)
        if value is not None and place < len(choices)
    ]
    return to_text(choices[max(known)[1]]).strip() if known and len(known) == len(choices) else None


def _values(metrics: JsonObject) -> Iterator[MetricValue]:
    words = [
        to_text(value)
        for name, value in metrics.items()
        if _WORDS.match(name) and value and "judgement" in name
    ]
    for name, value in metrics.items():
        if _WORDS.match(name) or as_points(value) is None:
            continue
        judged = bool(_JUDGED.search(name))
        rule = not judged and _RULE.match(name) is not None
        yield MetricValue(
            criterion=name,
            value=value,
            judge="LightEval" if rule else f"LightEval {name}",
            by=GradedBy.RULE if rule else GradedBy.MODEL,
            reason="\n".join(words) if judged else "",
            assumed=not rule and not judged,
        )
