"""Logs of Inspect (`inspect_ai`): `.eval` archives and JSON, of finished, cancelled and crashed
runs.

Based on inspect_ai's `log/_log.py`, `log/_recorders/eval.py`, `scorer/_metric.py` and
`scorer/_model.py` from 0.3.41 (October 2024) to 0.3.154 (December 2025), and its test logs since
May 2024; log format versions 1 and 2. A `.eval` file is a zip archive of `header.json` (during the
run: `_journal/start.json`), `samples/ID_epoch_N.json` and `summaries.json`; the oldest archives
have `start.json` and `results.json` instead.

An epoch is a trial. A scorer is a judge; the values C, P, I and N are 1, 0.5, 0 and 0, as in
Inspect's own metrics. A scorer counts as a model if its name or options indicate one, if it stores
messages in `metadata.grading`, or if its span contains model events; its grades then await review,
with the model's text as the reply. A user-defined scorer's grades await review too if the sample
has no events but used further models. A sample that was stopped by a limit is a response if Inspect
scored it, otherwise a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from assay.plugins import (
    AssayError,
    Failure,
    Fault,
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
    InputError,
    InputFile,
    JsonObject,
    JsonValue,
    Noted,
    NotJson,
    Origins,
    ReadOptions,
    Shape,
    Skipped,
    ZipMembers,
    as_count,
    as_duration,
    as_id,
    as_list,
    as_messages,
    as_number,
    as_object,
    as_text,
    as_texts,
    content_text,
    explained_share,
    foreign_names,
    from_text,
    in_unit_range,
    objects_in,
    parse_json,
    pick,
    read_document,
    shorten,
    storable,
)
from assay_importers.inspect_calls import ScorerCalls, usage_of

NAME: Final = "inspect"

_KNOWN_VERSION: Final = 2
_MAX_SAMPLES: Final = 200_000
_VALUES: Final = {
    "C": 1.0,
    "CORRECT": 1.0,
    "YES": 1.0,
    "TRUE": 1.0,
    "P": 0.5,
    "PARTIAL": 0.5,
    "I": 0.0,
    "INCORRECT": 0.0,
    "NO": 0.0,
    "FALSE": 0.0,
    "N": 0.0,
    "NOANSWER": 0.0,
}
_NAMES: Final = foreign_names(__name__)
_SET_UP: Final = _NAMES["set_up"]
_LOG: Final[Shape] = dict.fromkeys(_NAMES["log"])
# Inspect's own scorers that call no model.
_BY_RULE: Final = frozenset(
    {"includes", "match", "exact", "f1", "choice", "pattern", "answer", "math"}
)
_ATTACHMENT: Final = re.compile(r"(?:attachment|tc)://([0-9a-f]{32})")
_HEADERS: Final = ("header.json", "_journal/start.json", "start.json")
# A candidate is at fault if it exceeds its limits of time, tokens or messages, but not for these
# two.
_FOREIGN_LIMITS: Final = ("operator", "cost")


def recognise(sample: FileSample) -> float | None:
    """Recognise an archive by its members, and a document by `status` and an `eval` with a task and
    a model.
    """
    names = sample.archive_members
    if names:
        fits = any(name in names for name in _HEADERS) and any(
            name.startswith(("samples/", "_journal/")) or name in ("summaries.json", "results.json")
            for name in names
        )
        return 1.0 if fits else None
    head = sample.head
    if b'"eval"' not in head or b'"status"' not in head or sample.rows:
        return None
    try:
        log = sample.document if sample.document is not None else parse_json(sample.source.read())
    except (NotJson, InputError):
        return None
    return explained_share(log, _LOG) if _is_log(log) else None


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield one run, with a task for every sample, a response for every epoch and an assessment for
    every scorer.
    """
    if source.sample.archive_members:
        yield from _archive(source, options)
        return
    log = as_object(read_document(source))
    if not _is_log(log):
        yield Skipped(
            where=source.name,
            why="is not an Inspect log: it has no `eval` with a task and a model.",
        )
        return
    reading = _LogReader(log, source, options)
    samples = log.get("samples")
    if samples is None:
        yield from reading.run()
        yield Noted(
            where=source.name,
            what="the log contains no samples (`log_samples` was off); Assay imports only its set-up.",
        )
        return
    for sample in as_list(samples):
        reading.learn_scale(sample)
    numbered = (
        (sample, f"{source.name}#samples/{number}")
        for number, sample in enumerate(as_list(samples), 1)
    )
    yield from reading.read_samples(numbered)


def _is_stored(sample: JsonObject, origins: Origins) -> bool:
    """True if Assay exported the sample, and all grades in it belong to a run that is still in the
    store.
    """
    run = as_text(as_object(sample.get("metadata")).get("run"))
    named = [
        as_text(as_object(as_object(score).get("metadata")).get("assessment"))
        for score in as_object(sample.get("scores")).values()
    ]
    # A list instead of a generator, so that the report counts every grade.
    stored = [run is not None and name is not None and origins.is_held(run, name) for name in named]
    return bool(stored) and all(stored)


def _is_log(log: object) -> bool:
    spec = as_object(as_object(log).get("eval"))
    return "task" in spec and "model" in spec


def _archive(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    with ZipMembers(source, most=_MAX_SAMPLES) as members:
        header: dict[str, JsonValue] = {}
        for name in (*_HEADERS, "results.json"):
            if name in members and (name == "results.json" or not header):
                try:
                    header |= as_object(parse_json(members.read(name)))
                except (NotJson, InputError) as error:
                    yield Skipped(where=f"{source.name}#{name}", why=_why(error))
        if not _is_log(header):
            yield Skipped(where=source.name, why="has no header with a task and a model.")
            return
        # A log without `header.json` has no status: its run is still in progress, or was killed.
        header.setdefault("status", "started")
        reading = _LogReader(header, source, options)
        _learn_scales(members, reading)
        names = [
            name for name in members.names if name.startswith("samples/") and name.endswith(".json")
        ]
        if not names:
            yield from reading.run()
            yield from _summaries(members, reading, source)
            yield from reading.rest()
            return
        yield from reading.read_samples(_members(members, names, source))


def _members(
    members: ZipMembers, names: Sequence[str], source: InputFile
) -> Iterator[tuple[JsonValue | Skipped, str]]:
    for name in names:
        where = f"{source.name}#{name}"
        try:
            yield parse_json(members.read(name)), where
        except (NotJson, InputError) as error:
            yield Skipped(where=where, why=_why(error)), where


def _learn_scales(members: ZipMembers, reading: _LogReader) -> None:
    """Read all scores, from the summaries or the samples, before any sample is converted."""
    summaries = [name for name in ("summaries.json", "summary.json") if name in members]
    for name in summaries[:1] or [name for name in members.names if name.startswith("samples/")]:
        try:
            document = parse_json(members.read(name))
        except (NotJson, InputError):
            continue  # reported when the sample is read
        for sample in as_list(document) if summaries else [document]:
            reading.learn_scale(sample)


def _summaries(members: ZipMembers, reading: _LogReader, source: InputFile) -> Iterator[Found]:
    """Yield scores from the summaries of a log that lacks the samples; summaries contain no
    answers.
    """
    name = next((file for file in ("summaries.json", "summary.json") if file in members), None)
    if name is None:
        yield Noted(
            where=source.name, what="the log contains no samples; Assay imports only its set-up."
        )
        return
    try:
        summaries = as_list(parse_json(members.read(name)))
    except (NotJson, InputError) as error:
        yield Skipped(where=f"{source.name}#{name}", why=_why(error))
        return
    yield Noted(
        where=f"{source.name}#{name}",
        what="the log contains only summaries; Assay imports their scores, but no answers.",
    )
    for number, summary in enumerate(summaries, 1):
        yield from reading.sample(summary, f"{source.name}#{name}:{number}", summary=True)


class _LogReader:
    """Reads one log; remembers the log's header, the tasks so far, and the number of scores without
    a scale.
    """

    def __init__(self, log: JsonObject, source: InputFile, options: ReadOptions) -> None:
        self._log = log
        self._spec = as_object(log.get("eval"))
        self._source = source
        self._options = options
        self._model = as_text(self._spec.get("model")) or "unknown"
        self._candidate = options.candidate or self._model
        self._judges = {
            name: _models_in(scorer.get("options"))
            for scorer in objects_in(self._spec.get("scorers"))
            if (name := as_text(scorer.get("name"))) is not None
        }
        self._only_scorer = (
            as_text(as_object(as_object(log.get("results")).get("scorer")).get("name")) or "score"
        )
        self._tasks: set[str] = set()
        self._off_scale: set[tuple[str, str]] = set()
        self._unscaled = 0
        self._unscaled_at = ""
        self._version = _newest_time(log.get("stats"), self._spec, log.get("log_updates")) or ""
        self._edits = 0

    def run(self) -> Iterator[Found]:
        log, spec = self._log, self._spec
        stats = as_object(log.get("stats"))
        status = as_text(log.get("status")) or "unknown"
        provenance: dict[str, JsonValue] = {
            **pick(spec, _SET_UP),
            **pick(log, ("version", "status", "error", "plan", "invalidated", "tags")),
            **pick(stats, ("model_usage",)),
        }
        results = as_object(log.get("results"))
        if results.get("scores"):
            provenance["results"] = storable(results["scores"])
        task = (
            as_text(spec.get("task_display_name")) or as_text(spec.get("task")) or self._source.stem
        )
        yield FoundRun(
            suite=self._options.dataset or task,
            format=NAME,
            candidates=(
                FoundCandidate(
                    name=self._candidate, model=self._model, metadata=self._options.model_info
                ),
            ),
            started=from_text(stats.get("started_at")) or from_text(spec.get("created")),
            finished=from_text(stats.get("completed_at")),
            complete=status == "success",
            provenance=provenance,
            identity=_identity(spec),
            version=self._version,
        )
        version = as_number(log.get("version"))
        if version is not None and version > _KNOWN_VERSION:
            what = f"the log has format version {version:g}; Assay reads up to {_KNOWN_VERSION}, so some data may be missing."
            yield Noted(where=self._source.name, what=what)

    def read_samples(self, samples: Iterable[tuple[JsonValue | Skipped, str]]) -> Iterator[Found]:
        """Yield the run and its samples, except samples that Assay exported from runs in the
        store.
        """
        own = as_object(self._spec.get("metadata")).get("exported_by") == "assay"
        origins = Origins(self._source.name, self._options)
        begun = False
        for sample, where in samples:
            if own and _is_stored(as_object(sample), origins):
                continue
            if not begun:
                begun = True
                yield from self.run()
            yield from ([sample] if isinstance(sample, Skipped) else self.sample(sample, where))
        report = [record for record in origins.report() if not isinstance(record, FoundAtEnd)]
        if not begun and not report:
            yield from self.run()
        yield from report
        if begun or not report:
            yield from self.rest()

    def learn_scale(self, value: object) -> None:
        """Record a sample's scores outside 0 to 1: after a single such score, none of the scorer's
        values can count.
        """
        sample = as_object(value)
        for name, score in self._scores(sample).items():
            for part, part_value in _parts(name, as_object(score).get("value")):
                raw = _raw(part_value)
                if raw is not None and in_unit_range(raw) is None:
                    self._off_scale.add((name, part))

    def _scores(self, sample: JsonObject) -> dict[str, JsonValue]:
        scores = as_object(sample.get("scores"))
        # logs of version 1 have one scorer
        if not scores and isinstance(sample.get("score"), dict):
            scores = {self._only_scorer: sample["score"]}
        return scores

    def sample(self, value: object, where: str, *, summary: bool = False) -> Iterator[Found]:
        sample = as_object(value)
        task = as_id(sample.get("id"))
        if task is None:
            yield Skipped(where=where, why="has no `id`, so it belongs to no task.")
            return
        trial = as_count(sample.get("epoch", 1))
        if not trial:
            yield Skipped(
                where=where,
                why=f"has the epoch {shorten(sample.get('epoch'), 40)!r}, not a number of at least 1.",
            )
            return
        edits = [
            edit
            for score in as_object(sample.get("scores")).values()
            for edit in as_list(as_object(score).get("history"))
        ]
        invalid = as_object(sample.get("invalidation"))
        self._version = max(self._version, _newest_time(invalid, edits) or "")
        self._edits += len(edits) + bool(invalid)
        if invalid:
            by, reason = (
                shorten(invalid.get("author") or "someone", 80),
                shorten(invalid.get("reason") or "no reason", 200),
            )
            yield Skipped(where=where, why=f"was declared invalid in Inspect by {by}: {reason}")
            return
        sample = _with_attachments(sample)
        if task not in self._tasks:
            self._tasks.add(task)
            yield _task(task, sample)
        scores = self._scores(sample)
        if not summary:
            yield self._response(sample, task, trial, where, scored=bool(scores))
        elif sample.get("error") and not scores:
            failure = Failure(
                kind="sample_error", fault=Fault.HARNESS, detail=shorten(sample["error"])
            )
            yield FoundResponse(
                task=task, candidate=self._candidate, trial=trial, where=where, failure=failure
            )
        calls = ScorerCalls(sample, self._model)
        for name, score in scores.items():
            yield self._assessment(name, as_object(score), task, trial, where, calls)

    def rest(self) -> Iterator[Found]:
        """Yield the log's version, which is newer after an edit, and a note about scores without a
        known scale.
        """
        if self._version:
            # The history of a log only grows, even if a clock was set back: of two logs with the
            # same time, the one with more edits is later.
            yield FoundAtEnd(
                version=f"{self._version} {self._edits:06}" if self._edits else self._version
            )
        if self._unscaled:
            what = (
                f"{self._unscaled:,} scores are words or come from a scorer with values outside 0 to 1, and the log does not "
                "state their scale. Assay keeps them as raw scores, which no statistic counts."
            )
            yield Noted(where=self._unscaled_at, what=what)

    def _response(
        self, sample: JsonObject, task: str, trial: int, where: str, *, scored: bool
    ) -> FoundResponse:
        output = as_object(sample.get("output"))
        choice = as_object(next(iter(as_list(output.get("choices"))), None))
        content = content_text(as_object(choice.get("message")).get("content"))
        if content is None:
            content = as_text(output.get("completion")) or _last_message(sample)
        stopped = as_object(sample.get("limit"))
        error = as_object(sample.get("error")) or as_object(
            output.get("error") and {"message": output["error"]}
        )
        finish = as_text(choice.get("stop_reason"))
        failure = None
        if error and not scored:
            failure = Failure(
                kind="sample_error",
                fault=Fault.HARNESS,
                detail=shorten(error.get("message") or "no message"),
            )
        elif stopped and not scored:
            kind = shorten(stopped.get("type") or "unknown", 40)
            fault = Fault.HARNESS if kind in _FOREIGN_LIMITS else Fault.CANDIDATE
            failure = Failure(
                kind=f"{kind}_limit",
                fault=fault,
                detail=f"stopped at the {kind} limit of {shorten(stopped.get('limit'), 40)}.",
            )
        elif content is None and not scored:
            failure = Failure(
                kind="empty", fault=Fault.CANDIDATE, detail="the sample holds no output."
            )
        if failure is None and stopped:
            finish = f"{shorten(stopped.get('type') or 'unknown', 40)}_limit"
        elif failure is None and error:
            finish = "sample_error"
        usage, latency = self._usage(sample, output)
        return FoundResponse(
            task=task,
            candidate=self._candidate,
            trial=trial,
            where=where,
            content=None if failure is not None else content or "",
            failure=failure,
            model_answered=as_text(output.get("model")),
            finish_reason="length" if finish == "max_tokens" else finish,
            input_tokens=as_count(usage.get("input_tokens")),
            output_tokens=as_count(usage.get("output_tokens")),
            latency_s=latency,
            cost_usd=as_duration(usage.get("total_cost")),
            started=from_text(sample.get("started_at")),
            identity=None
            if (uuid := as_text(sample.get("uuid"))) is None
            else f"inspect sample {uuid}",
        )

    def _usage(self, sample: JsonObject, output: JsonObject) -> tuple[JsonObject, float | None]:
        """Return the candidate's tokens and seconds, from its only call or from the model's totals
        for the sample.
        """
        calls = sum(
            message.get("role") == "assistant" for message in objects_in(sample.get("messages"))
        )
        if calls <= 1 and output.get("usage"):
            return as_object(output["usage"]), as_duration(output.get("time"))
        by_model = as_object(sample.get("model_usage"))
        return as_object(by_model.get(self._model)), as_duration(sample.get("working_time"))

    def _assessment(
        self, name: str, score: JsonObject, task: str, trial: int, where: str, calls: ScorerCalls
    ) -> FoundAssessment:
        value = score.get("value")
        metadata = as_object(score.get("metadata"))
        # A score that a person edited in Inspect belongs to that person; the last editor counts.
        provenances = [
            as_object(edit.get("provenance")) for edit in objects_in(score.get("history"))
        ]
        editors = [
            editor
            for provenance in provenances
            if (editor := as_text(provenance.get("author"))) is not None
        ]
        asked = self._judges.get(name, ())
        own_calls = calls.of(name)
        by_model = (
            "model_graded" in name
            or "grading" in metadata
            or bool(asked or own_calls)
            or (calls.may_be_unseen and name not in _BY_RULE)
        )
        explanation = as_text(score.get("explanation"))
        words = next((text for call in reversed(own_calls) if (text := call.reply)), None)
        judge, by = name, GradedBy.RULE
        if editors:
            judge, by = editors[-1], GradedBy.PERSON
        elif by_model:
            judge, by = (f"{name} ({', '.join(asked)})" if asked else name), GradedBy.MODEL
        answer = as_text(score.get("answer"))
        reason = explanation or ("" if answer is None else f"Answer read: {shorten(answer, 500)}")
        grades = [
            self._grade(part_value, where, scorer=name, criterion=part, reason=reason)
            for part, part_value in _parts(name, value)
        ]
        return FoundAssessment(
            task=task,
            trial=trial,
            judge=judge,
            by=by,
            where=where,
            grades=tuple(grades)
            or (FoundGrade(candidate=self._candidate, score=None, reason=reason),),
            reply=(explanation or words) if by is GradedBy.MODEL else None,
            **usage_of(own_calls if by is GradedBy.MODEL else ()),
        )

    def _grade(
        self, value: object, where: str, *, scorer: str, criterion: str, reason: str
    ) -> FoundGrade:
        raw = _raw(value)
        if raw is None and isinstance(value, str):
            reason = f"{value}: {reason}" if reason else value
        score = None if (scorer, criterion) in self._off_scale else in_unit_range(raw)
        if score is None and value is not None and (raw is not None or isinstance(value, str)):
            self._unscaled += 1
            self._unscaled_at = self._unscaled_at or where
        return FoundGrade(
            candidate=self._candidate,
            score=score,
            criterion=criterion,
            raw_score=raw,
            reason=reason,
        )


def _parts(scorer: str, value: object) -> list[tuple[str, object]]:
    """Return the criteria of a score with their values; a single value has no criterion."""
    if isinstance(value, dict):
        return [(str(key), part) for key, part in value.items()]
    if isinstance(value, list):
        return [(f"{scorer}[{at}]", part) for at, part in enumerate(value)]
    return [("", value)]


def _raw(value: object) -> float | None:
    """Return a score as a number; None for text other than Inspect's values (C, P, I, N)."""
    if isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        return as_number(value)
    raw = _VALUES.get(value.strip().upper())
    if raw is not None:
        return raw
    try:
        return as_number(float(value))
    except ValueError:
        return None


def _models_in(options: object, depth: int = 0) -> tuple[str, ...]:
    fields = as_object(options)
    given = fields.get("model")
    # A model created with arguments is written as an object with its name, configuration and
    # arguments.
    named = as_texts(
        [
            as_object(model).get("model", model)
            for model in (given if isinstance(given, list) else [given])
        ]
    )
    if depth < 5:
        for scorer in objects_in(fields.get("scorers")):
            named += _models_in(scorer.get("params"), depth + 1)
    return tuple(dict.fromkeys(named))


def _identity(spec: JsonObject) -> str | None:
    """Return the id that all logs of an evaluation share: the task's, the only id that `eval-retry`
    keeps.
    """
    task = as_text(spec.get("task_id")) or as_text(spec.get("eval_id"))
    return None if task is None else f"inspect task {task}"


def _newest_time(*parts: object) -> str | None:
    """Return the newest time in a log: of the run, of a log update, or of an edited score."""
    times: list[str] = []
    for part in parts:
        for entry in part if isinstance(part, list) else [part]:
            fields = as_object(entry)
            texts = [
                fields.get(name) for name in ("created", "started_at", "completed_at", "timestamp")
            ]
            texts.append(as_object(fields.get("provenance")).get("timestamp"))
            times += [time for text in texts if (time := from_text(text)) is not None]
    return max(times, default=None)


def _task(task: str, sample: JsonObject) -> FoundTask:
    metadata = pick(sample, ("choices", "files", "setup"))
    family = as_object(sample.get("metadata")).get("family")
    return FoundTask(
        id=task,
        prompt=as_messages(sample.get("input")),
        expected=as_texts(sample.get("target")),
        family=str(family) if isinstance(family, str | int) else "",
        metadata={**as_object(storable(sample.get("metadata"))), **metadata},
    )


def _last_message(sample: JsonObject) -> str | None:
    """Return the model's last message, for a log with messages but no output."""
    turns = reversed(objects_in(sample.get("messages")))
    texts = (content_text(turn.get("content")) for turn in turns if turn.get("role") == "assistant")
    return next((text for text in texts if text), None)


def _with_attachments(sample: dict[str, JsonValue]) -> dict[str, JsonValue]:
    attachments = as_object(sample.get("attachments")) or as_object(
        as_object(sample.get("transcript")).get("content")
    )
    if not attachments:
        return sample

    def put_back(match: re.Match[str]) -> str:
        text = attachments.get(match[1])
        return text if isinstance(text, str) else match[0]

    def filled(value: JsonValue, depth: int = 0) -> JsonValue:
        if isinstance(value, str):
            return _ATTACHMENT.sub(put_back, value) if "://" in value else value
        # A file may be nested deeply, and Python's stack ends at 1,000 calls.
        if depth > 20:
            return value
        if isinstance(value, list):
            return [filled(item, depth + 1) for item in value]
        if isinstance(value, dict):
            return {key: filled(item, depth + 1) for key, item in value.items()}
        return value

    needed = ("input", "target", "messages", "output", "scores", "choices", "metadata")
    return {**sample, **{key: filled(sample[key]) for key in needed if key in sample}}


def _why(error: Exception) -> str:
    return (
        f"{error.problem} {error.remedy}".strip() if isinstance(error, AssayError) else str(error)
    )
