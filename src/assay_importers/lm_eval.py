"""Samples of EleutherAI's lm-evaluation-harness (`--log_samples`), with `results_*.json` from the
same folder.

Based on `lm_eval/evaluator.py`, `loggers/evaluation_tracker.py` and `filters/` from 0.4.0 (December
2023) to 0.4.9 (2025). New layout: `MODEL/results_DATE.json` and `MODEL/samples_TASK_DATE.jsonl`,
one line per document and filter, `arguments` as `{"gen_args_0": {"arg_0": …}}`, metrics named in
`metrics`. Old layout (0.4.0 to 0.4.2): one JSON list in a `.jsonl` file, `arguments` as lists, no
`filter`, metrics among the other keys.

A document is a task in a suite named after the harness's task; every filter is a rule-based judge,
and every metric a criterion. The results state each metric's direction (`higher_is_better`); if
lower is better (an error rate), the score is reversed and the raw value is kept. No file states the
scale of metrics such as perplexity or BLEU (out of 100): if any of a metric's values is outside 0
to 1, the metric keeps its raw values and gets weight 0. For multiple choice, the response is the
most likely continuation.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeAlias

from assay.plugins import (
    Criterion,
    FileSample,
    Found,
    FoundAssessment,
    FoundAtEnd,
    FoundCandidate,
    FoundGrade,
    FoundResponse,
    FoundRun,
    FoundTask,
    GradedBy,
    InputFile,
    JsonObject,
    JsonValue,
    Message,
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
    chat_messages,
    explained_share,
    first_rows,
    folder_name,
    folder_path,
    foreign_names,
    from_unix,
    in_unit_range,
    objects_in,
    objects_of,
    pick,
    read_object,
    read_rows,
    storable,
    to_text,
)

NAME: Final = "lm_eval"

_NAMES: Final = foreign_names(__name__)
_OWN: Final = frozenset(_NAMES["own"])
_SET_UP: Final = _NAMES["set_up"]
_RESULTS: Final[Shape] = dict.fromkeys((*_NAMES["results"], *_SET_UP))
_Argument: TypeAlias = "tuple[JsonValue, JsonValue]"
"""The context and the continuation of one request."""

# The directions of the harness's own metrics (`lm_eval/api/metrics.py`), for samples without their
# results.
_LOWER_IS_BETTER: Final = frozenset(
    ("perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte", "brier_score", "ter")
)
_HIGHER_IS_BETTER: Final = frozenset(_NAMES["higher_is_better"])
_DATE: Final = re.compile(r"_(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)$")
_QUARTER_S: Final = 900
_MODEL: Final = re.compile(r"(?:^|,)\s*(?:pretrained|model|path|engine)=([^,]+)")


def recognise(sample: FileSample) -> float | None:
    """Recognise rows with a document, arguments and answers, or results with configs and
    versions.
    """
    head = sample.head
    if b'"filtered_resps"' in head:
        rows = first_rows(sample, 20)
        fitting = sum(_is_sample(row) for row in rows)
        # A key that the harness does not fill is a metric, so a sample is fully explained.
        return fitting / len(rows) if fitting else None
    if b'"configs"' in head and b'"results"' in head:
        return explained_share(sample.document, _RESULTS) if _is_results(sample.document) else None
    return None


def companions(source: InputFile, others: Sequence[InputFile]) -> Collection[InputFile]:
    """Return the results file of the samples: in the same folder and, if the file names contain
    dates, of the same date.
    """
    if _is_results(source.sample.document):
        return ()
    results = [
        other
        for other in others
        if other.folder == source.folder and _is_results(other.sample.document)
    ]
    return _of_date(source, results)[-1:]


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run for the file's task, with documents, answers and metrics."""
    if _is_results(source.sample.document):
        why = "holds only means, no samples; run lm-evaluation-harness with `--log_samples` and import both files."
        yield Skipped(where=source.name, why=why)
        return
    results: JsonObject = next(
        (read_object(file) for file in options.beside.get("companions", ())), {}
    )
    task = _task_name(source, results)
    metrics = _metrics(source, _directions(results, task))
    candidate, candidate_from = _candidate(source, results, options)
    config = as_object(as_object(results.get("configs")).get(task))
    yield FoundRun(
        suite=options.dataset or task,
        format=NAME,
        candidates=(
            FoundCandidate(
                name=candidate,
                model=as_text(results.get("model_name")),
                metadata=options.model_info,
            ),
        ),
        rubric=tuple(
            Criterion(name=name, low=metric.worst, high=metric.best, weight=metric.weight)
            for name, metric in metrics.items()
        ),
        started=from_unix(as_number(results.get("date"))),
        finished=_finished(source, results),
        provenance={
            "candidate_from": candidate_from,
            **pick(results, _SET_UP),
            "task": storable(config) if config else task,
            "results": storable(as_object(results.get("results")).get(task)),
        },
    )
    yield from _remarks(source, metrics, directed=bool(results))
    asked = as_count(as_object(as_object(results.get("n-samples")).get(task)).get("effective"))
    yield from _rows(source, candidate, metrics, asked)


def _is_sample(row: object) -> bool:
    return isinstance(row, dict) and "doc_id" in row and "filtered_resps" in row


def _is_results(results: object) -> bool:
    fields = as_object(results)
    return (
        isinstance(fields.get("results"), dict)
        and isinstance(fields.get("configs"), dict)
        and "versions" in fields
    )


def _of_date(source: InputFile, results: Sequence[InputFile]) -> list[InputFile]:
    """Return the results files of the samples' date, or else the undated ones; if the samples are
    undated, return all.
    """
    date = _DATE.search(source.stem)
    if date is None:
        return list(results)
    same_date = [file for file in results if file.stem.endswith(date[1])]
    return same_date or [file for file in results if not _DATE.search(file.stem)]


def _task_name(source: InputFile, results: JsonObject) -> str:
    stem = _DATE.sub("", source.stem).removeprefix("samples_")
    known = as_object(results.get("configs"))
    if stem in known or not known:
        return stem
    ending = [name for name in known if stem.endswith(name)]
    return max(ending, key=len) if ending else stem


def _candidate(source: InputFile, results: JsonObject, options: ReadOptions) -> tuple[str, str]:
    if options.candidate is not None:
        return options.candidate, "option"
    name = as_text(results.get("model_name"))
    if name is not None:
        return name, "results"
    config = as_object(results.get("config"))
    arguments = config.get("model_args")
    named = as_text(as_object(arguments).get("pretrained")) or as_text(
        as_object(arguments).get("model")
    )
    if (
        named is None
        and isinstance(arguments, str)
        and (match := _MODEL.search(arguments)) is not None
    ):
        named = match[1]
    if named is not None:
        return named, "results"
    folder = folder_name(folder_path(source))
    if "__" in folder:
        # The harness writes the slash of a model's name as two underscores.
        return folder.replace("__", "/", 1), "folder name"
    model = as_text(config.get("model"))
    return (source.stem, "file name") if model is None else (model, "results")


def _finished(source: InputFile, results: JsonObject) -> str | None:
    """Return the end of the run: the date in the file name, in the time zone implied by the
    results' start and duration.

    The file name contains local time, and `date` the start in seconds since 1970. Zones are
    multiples of 15 minutes, so for a run of under 15 minutes only one zone fits. If several zones
    fit, none is used.
    """
    date, start = _DATE.search(source.stem), as_number(results.get("date"))
    try:
        longest = float(str(results.get("total_evaluation_time_seconds")))
        written = datetime.strptime(date[1] if date else "", "%Y-%m-%dT%H-%M-%S.%f").replace(
            tzinfo=UTC
        )
    except ValueError:
        return None
    if start is None or not 0 <= longest < _QUARTER_S:
        return None
    seconds = (written.timestamp() - start) % _QUARTER_S
    return from_unix(start + seconds) if seconds <= longest else None


class _Metric(NamedTuple):
    """A metric's direction, and its counts over a file: values, values outside 0 to 1, and rows
    without a value.
    """

    values: int = 0
    outside: int = 0
    lacking: int = 0
    lower_is_better: bool = False

    @property
    def weight(self) -> float:
        """Weight 1, or 0 if the scale is unknown: after a single value outside 0 to 1, none of the
        values can count.
        """
        return 0.0 if self.outside else 1.0

    @property
    def worst(self) -> float:
        return 1.0 if self.lower_is_better else 0.0

    @property
    def best(self) -> float:
        return 1.0 - self.worst


def _directions(results: JsonObject, task: str) -> dict[str, bool]:
    """Return, for each metric, True if the results or the task's configuration state that higher is
    better.
    """
    listed = objects_in(as_object(as_object(results.get("configs")).get(task)).get("metric_list"))
    directions = {
        name: higher
        for metric in listed
        if (name := as_text(metric.get("metric"))) is not None
        and isinstance(higher := metric.get("higher_is_better"), bool)
    }
    named = as_object(as_object(results.get("higher_is_better")).get(task))
    return directions | {name: higher for name, higher in named.items() if isinstance(higher, bool)}


def _metrics(source: InputFile, directions: Mapping[str, bool]) -> dict[str, _Metric]:
    """Return every metric of the file.

    Needs a separate pass, because even the last row may have a value outside 0 to 1.
    """
    metrics: dict[str, _Metric] = {}
    graded = 0
    for row, _ in objects_of(source):
        if not _is_sample(row):
            continue
        scores = _scores(row)
        graded += bool(scores)
        for name, value in scores.items():
            metric = metrics.get(name) or _Metric(
                lower_is_better=not directions.get(name, name not in _LOWER_IS_BETTER)
            )
            outside = metric.outside + (in_unit_range(value) is None)
            metrics[name] = metric._replace(values=metric.values + 1, outside=outside)
    return {
        name: metric._replace(lacking=graded - metric.values) for name, metric in metrics.items()
    }


def _remarks(
    source: InputFile, metrics: Mapping[str, _Metric], *, directed: bool
) -> Iterator[Found]:
    unscaled = {name: metric for name, metric in metrics.items() if metric.outside}
    for name, metric in unscaled.items():
        what = (
            f"{name} is outside 0 to 1 in {metric.outside:,} of {metric.values:,} rows, and no file states its scale. Assay "
            f"keeps all {metric.values:,} values as raw scores, which no statistic counts."
        )
        # With another metric, every row still has a score; without one, the file gives no scores at
        # all.
        alone = len(unscaled) == len(metrics)
        yield (
            Skipped(where=source.name, why=what) if alone else Noted(where=source.name, what=what)
        )
    for name, metric in metrics.items():
        if metric.lacking:
            rows = metric.values + metric.lacking
            why = f"{name} is missing or not a number in {metric.lacking:,} of {rows:,} graded rows, whose scores leave it out."
            yield Skipped(where=source.name, why=why)
    lower = [
        name for name, metric in metrics.items() if metric.lower_is_better and not metric.outside
    ]
    if lower:
        what = f"lower is better for {', '.join(lower)}; the score is 1 minus the value, which is kept as the raw score."
        yield Noted(where=source.name, what=what)
    unknown = (
        []
        if directed
        else [name for name in metrics if name not in _LOWER_IS_BETTER | _HIGHER_IS_BETTER]
    )
    if unknown:
        what = (
            f"no `results_*.json` beside the samples says whether higher or lower is better for {', '.join(unknown)}; Assay "
            "assumes that higher is better. Import the samples together with their results."
        )
        yield Noted(where=source.name, what=what)


def _scores(row: JsonObject) -> dict[str, float]:
    """Return a row's numeric metrics; skips lists, from which the harness computes metrics
    later.
    """
    named = [name for name in as_list(row.get("metrics")) if isinstance(name, str)]
    keys = named or [key for key in row if key not in _OWN]
    return {key: value for key in keys if (value := as_points(row.get(key))) is not None}


def _rows(
    source: InputFile, candidate: str, metrics: Mapping[str, _Metric], asked: int | None
) -> Iterator[Found]:
    tasks: set[str] = set()
    graded: set[tuple[str, str]] = set()
    ungraded, ungraded_at = 0, ""
    for row, where in read_rows(source):
        if isinstance(row, str):
            yield Skipped(where=where, why=row)
            continue
        task = as_id(row.get("doc_id"))
        if task is None or not _is_sample(row):
            yield Skipped(
                where=where, why="is not a sample: it lacks `doc_id` or `filtered_resps`."
            )
            continue
        if task not in tasks:
            tasks.add(task)
            arguments = _arguments(row.get("arguments"))
            yield _task(task, row, arguments)
            yield FoundResponse(
                task=task,
                candidate=candidate,
                trial=1,
                where=where,
                content=_answer(row, arguments),
            )
        filtered = as_text(row.get("filter")) or "none"
        if (task, filtered) in graded:
            yield Skipped(
                where=where,
                why=f"repeats document {task} under the filter {filtered!r}; the first is kept.",
            )
            continue
        graded.add((task, filtered))
        scores = _scores(row)
        if not scores:
            ungraded += 1
            ungraded_at = ungraded_at or where
            continue
        reading = to_text(as_list(row.get("filtered_resps"))[:1])[1:-1]
        yield FoundAssessment(
            task=task,
            trial=1,
            judge=NAME if filtered == "none" else f"{NAME} {filtered}",
            by=GradedBy.RULE,
            where=where,
            grades=tuple(
                _grade(name, value, metrics[name], candidate, f"Answer read: {reading[:500]}")
                for name, value in scores.items()
            ),
        )
    if ungraded:
        what = (
            f"{ungraded:,} rows hold no metric that is a number (some, like F1 or BLEU, are computed over the whole set); "
            "Assay keeps their answers without a grade."
        )
        yield (
            Skipped(where=ungraded_at, why=what) if metrics else Noted(where=ungraded_at, what=what)
        )
    if asked is not None and len(tasks) < asked:
        yield Noted(
            where=source.name,
            what=f"holds {len(tasks):,} of the {asked:,} documents that the results file counts.",
        )
        yield FoundAtEnd(complete=False)


def _grade(name: str, value: float, metric: _Metric, candidate: str, reason: str) -> FoundGrade:
    score = None
    if not metric.outside:
        score = 1.0 - value if metric.lower_is_better else value
    return FoundGrade(
        candidate=candidate,
        score=score,
        criterion=name,
        raw_score=value,
        min_score=metric.worst,
        max_score=metric.best,
        reason=reason,
    )


def _arguments(value: JsonValue) -> list[_Argument]:
    """Return pairs of a context with its continuation or generation settings, from the new or the
    old layout.
    """
    if isinstance(value, dict):
        pairs = [as_object(item) for item in value.values()]
        return [(pair.get("arg_0"), pair.get("arg_1")) for pair in pairs]
    lists = [as_list(item) for item in as_list(value)]
    return [(item[0], item[1] if len(item) > 1 else None) for item in lists if item]


def _task(task: str, row: JsonObject, arguments: Sequence[_Argument]) -> FoundTask:
    target = row.get("target")
    return FoundTask(
        id=task,
        prompt=_prompt(arguments[0][0] if arguments else None),
        expected=() if target in (None, "") else (to_text(target),),
        metadata={
            "doc": storable(row.get("doc")),
            **pick(row, ("doc_hash", "prompt_hash", "target_hash")),
        },
    )


def _prompt(context: object) -> tuple[Message, ...]:
    if isinstance(context, list) and len(context) == 1 and isinstance(context[0], str):
        context = context[0]  # 0.4.4 and later wrap the chat in a list
    chat = isinstance(context, str) and context.startswith('[{"role"')
    return chat_messages(context) if chat else as_messages(context)


def _answer(row: JsonObject, arguments: Sequence[_Argument]) -> str:
    """Return the generated text; for multiple choice, the most likely continuation; otherwise the
    numbers as JSON.
    """
    answers = [
        item[0] if isinstance(item, list) and len(item) == 1 else item
        for item in as_list(row.get("resps"))
    ]
    first = answers[0] if answers else None
    if (
        isinstance(first, list)
        and first
        and all(isinstance(draw, str) for draw in first)
        and not _likelihood(first)
    ):
        # repeated samples: a filter chose among them for the metrics, without saying which one
        first = first[0]
    if isinstance(first, str):
        return first
    likely = [_likelihood(answer) for answer in answers]
    if len(answers) > 1 and None not in likely and len(arguments) >= len(answers):
        best = max(range(len(answers)), key=lambda at: likely[at] or float("-inf"))
        continuation = arguments[best][1]
        if isinstance(continuation, str):
            return continuation.strip()
    return to_text(first if len(answers) == 1 else answers)


def _likelihood(value: object) -> float | None:
    """Return the log-likelihood in `[-1.2, false]`, which older versions write as `["-1.2",
    "False"]`.
    """
    if not isinstance(value, list) or len(value) != 2:
        return None
    if isinstance(value[1], bool) or value[1] in ("True", "False"):
        try:
            return as_number(float(value[0]))
        except (TypeError, ValueError):
            return None
    return None
