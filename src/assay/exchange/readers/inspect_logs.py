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

from assay.domain import import_records as records
from assay.domain.digest import JsonValue
from assay.domain.errors import AssayError, InputError
from assay.domain.failure import Failure, Fault
from assay.exchange.importers import ReadOptions
from assay.exchange.parsing import json_values as js
from assay.exchange.parsing.explained import Shape, explained_share
from assay.exchange.parsing.foreign_names import foreign_names
from assay.exchange.parsing.input_files import FileSample, InputFile
from assay.exchange.parsing.json_rows import read_document
from assay.exchange.parsing.zip_members import ZipMembers
from assay.exchange.readers.inspect_calls import ScorerCalls, usage_of
from assay.exchange.readers.score_table import Origins

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
        log = (
            sample.document if sample.document is not None else js.parse_json(sample.source.read())
        )
    except (js.NotJson, InputError):
        return None
    return explained_share(log, _LOG) if _is_log(log) else None


def read(source: InputFile, options: ReadOptions) -> Iterator[records.Found]:
    """Yield one run, with a task for every sample, a response for every epoch and an assessment for
    every scorer.
    """
    if source.sample.archive_members:
        yield from _archive(source, options)
        return
    log = js.as_object(read_document(source))
    if not _is_log(log):
        yield records.Skipped(
            where=source.name,
            why="is not an Inspect log: it has no `eval` with a task and a model.",
        )
        return
    reading = _LogReader(log, source, options)
    samples = log.get("samples")
    if samples is None:
        yield from reading.run()
        yield records.Noted(
            where=source.name,
            what="the log contains no samples (`log_samples` was off); Assay imports only its set-up.",
        )
        return
    for sample in js.as_list(samples):
        reading.learn_scale(sample)
    numbered = (
        (sample, f"{source.name}#samples/{number}")
        for number, sample in enumerate(js.as_list(samples), 1)
    )
    yield from reading.read_samples(numbered)


def _is_stored(sample: js.JsonObject, origins: Origins) -> bool:
    """True if Assay exported the sample, and all grades in it belong to a run that is still in the
    store.
    """
    run = js.as_text(js.as_object(sample.get("metadata")).get("run"))
    named = [
        js.as_text(js.as_object(js.as_object(score).get("metadata")).get("assessment"))
        for score in js.as_object(sample.get("scores")).values()
    ]
    # A list instead of a generator, so that the report counts every grade.
    stored = [run is not None and name is not None and origins.is_held(run, name) for name in named]
    return bool(stored) and all(stored)


def _is_log(log: object) -> bool:
    spec = js.as_object(js.as_object(log).get("eval"))
    return "task" in spec and "model" in spec


def _archive(source: InputFile, options: ReadOptions) -> Iterator[records.Found]:
    with ZipMembers(source, most=_MAX_SAMPLES) as members:
        header: dict[str, JsonValue] = {}
        for name in (*_HEADERS, "results.json"):
            if name in members and (name == "results.json" or not header):
                try:
                    header |= js.as_object(js.parse_json(members.read(name)))
                except (js.NotJson, InputError) as error:
                    yield records.Skipped(where=f"{source.name}#{name}", why=_why(error))
        if not _is_log(header):
            yield records.Skipped(where=source.name, why="has no header with a task and a model.")
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
) -> Iterator[tuple[JsonValue | records.Skipped, str]]:
    for name in names:
        where = f"{source.name}#{name}"
        try:
            yield js.parse_json(members.read(name)), where
        except (js.NotJson, InputError) as error:
            yield records.Skipped(where=where, why=_why(error)), where


def _learn_scales(members: ZipMembers, reading: _LogReader) -> None:
    """Read all scores, from the summaries or the samples, before any sample is converted."""
    summaries = [name for name in ("summaries.json", "summary.json") if name in members]
    for name in summaries[:1] or [name for name in members.names if name.startswith("samples/")]:
        try:
            document = js.parse_json(members.read(name))
        except (js.NotJson, InputError):
            continue  # reported when the sample is read
        for sample in js.as_list(document) if summaries else [document]:
            reading.learn_scale(sample)


def _summaries(
    members: ZipMembers, reading: _LogReader, source: InputFile
) -> Iterator[records.Found]:
    """Yield scores from the summaries of a log that lacks the samples; summaries contain no
    answers.
    """
    name = next((file for file in ("summaries.json", "summary.json") if file in members), None)
    if name is None:
        yield records.Noted(
            where=source.name, what="the log contains no samples; Assay imports only its set-up."
        )
        return
    try:
        summaries = js.as_list(js.parse_json(members.read(name)))
    except (js.NotJson, InputError) as error:
        yield records.Skipped(where=f"{source.name}#{name}", why=_why(error))
        return
    yield records.Noted(
        where=f"{source.name}#{name}",
        what="the log contains only summaries; Assay imports their scores, but no answers.",
    )
    for number, summary in enumerate(summaries, 1):
        yield from reading.sample(summary, f"{source.name}#{name}:{number}", summary=True)


class _LogReader:
    """Reads one log; remembers the log's header, the tasks so far, and the number of scores without
    a scale.
    """

    def __init__(self, log: js.JsonObject, source: InputFile, options: ReadOptions) -> None:
        self._log = log
        self._spec = js.as_object(log.get("eval"))
        self._source = source
        self._options = options
        self._model = js.as_text(self._spec.get("model")) or "unknown"
        self._candidate = options.candidate or self._model
        self._judges = {
            name: _models_in(scorer.get("options"))
            for scorer in js.objects_in(self._spec.get("scorers"))
            if (name := js.as_text(scorer.get("name"))) is not None
        }
        self._only_scorer = (
            js.as_text(js.as_object(js.as_object(log.get("results")).get("scorer")).get("name"))
            or "score"
        )
        self._tasks: set[str] = set()
        self._off_scale: set[tuple[str, str]] = set()
        self._unscaled = 0
        self._unscaled_at = ""
        self._version = _newest_time(log.get("stats"), self._spec, log.get("log_updates")) or ""
        self._edits = 0

    def run(self) -> Iterator[records.Found]:
        log, spec = self._log, self._spec
        stats = js.as_object(log.get("stats"))
        status = js.as_text(log.get("status")) or "unknown"
        provenance: dict[str, JsonValue] = {
            **js.pick(spec, _SET_UP),
            **js.pick(log, ("version", "status", "error", "plan", "invalidated", "tags")),
            **js.pick(stats, ("model_usage",)),
        }
        results = js.as_object(log.get("results"))
        if results.get("scores"):
            provenance["results"] = js.storable(results["scores"])
        task = (
            js.as_text(spec.get("task_display_name"))
            or js.as_text(spec.get("task"))
            or self._source.stem
        )
        yield records.FoundRun(
            suite=self._options.dataset or task,
            format=NAME,
            candidates=(
                records.FoundCandidate(
                    name=self._candidate, model=self._model, metadata=self._options.model_info
                ),
            ),
            started=js.from_text(stats.get("started_at")) or js.from_text(spec.get("created")),
            finished=js.from_text(stats.get("completed_at")),
            complete=status == "success",
            provenance=provenance,
            identity=_identity(spec),
            version=self._version,
        )
        version = js.as_number(log.get("version"))
        if version is not None and version > _KNOWN_VERSION:
            what = f"the log has format version {version:g}; Assay reads up to {_KNOWN_VERSION}, so some data may be missing."
            yield records.Noted(where=self._source.name, what=what)

    def read_samples(
        self, samples: Iterable[tuple[JsonValue | records.Skipped, str]]
    ) -> Iterator[records.Found]:
        """Yield the run and its samples, except samples that Assay exported from runs in the
        store.
        """
        own = js.as_object(self._spec.get("metadata")).get("exported_by") == "assay"
        origins = Origins(self._source.name, self._options)
        begun = False
        for sample, where in samples:
            if own and _is_stored(js.as_object(sample), origins):
                continue
            if not begun:
                begun = True
                yield from self.run()
            yield from (
                [sample] if isinstance(sample, records.Skipped) else self.sample(sample, where)
            )
        report = [
            record for record in origins.report() if not isinstance(record, records.FoundAtEnd)
        ]
        if not begun and not report:
            yield from self.run()
        yield from report
        if begun or not report:
            yield from self.rest()

    def learn_scale(self, value: object) -> None:
        """Record a sample's scores outside 0 to 1: after a single such score, none of the scorer's
        values can count.
        """
        sample = js.as_object(value)
        for name, score in self._scores(sample).items():
            for part, part_value in _parts(name, js.as_object(score).get("value")):
                raw = _raw(part_value)
                if raw is not None and js.in_unit_range(raw) is None:
                    self._off_scale.add((name, part))

    def _scores(self, sample: js.JsonObject) -> dict[str, JsonValue]:
        scores = js.as_object(sample.get("scores"))
        # logs of version 1 have one scorer
        if not scores and isinstance(sample.get("score"), dict):
            scores = {self._only_scorer: sample["score"]}
        return scores

    def sample(
        self, value: object, where: str, *, summary: bool = False
    ) -> Iterator[records.Found]:
        sample = js.as_object(value)
        task = js.as_id(sample.get("id"))
        if task is None:
            yield records.Skipped(where=where, why="has no `id`, so it belongs to no task.")
            return
        trial = js.as_count(sample.get("epoch", 1))
        if not trial:
            yield records.Skipped(
                where=where,
                why=f"has the epoch {js.shorten(sample.get('epoch'), 40)!r}, not a number of at least 1.",
            )
            return
        edits = [
            edit
            for score in js.as_object(sample.get("scores")).values()
            for edit in js.as_list(js.as_object(score).get("history"))
        ]
        invalid = js.as_object(sample.get("invalidation"))
        self._version = max(self._version, _newest_time(invalid, edits) or "")
        self._edits += len(edits) + bool(invalid)
        if invalid:
            by, reason = (
                js.shorten(invalid.get("author") or "someone", 80),
                js.shorten(invalid.get("reason") or "no reason", 200),
            )
            yield records.Skipped(
                where=where, why=f"was declared invalid in Inspect by {by}: {reason}"
            )
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
                kind="sample_error", fault=Fault.HARNESS, detail=js.shorten(sample["error"])
            )
            yield records.FoundResponse(
                task=task, candidate=self._candidate, trial=trial, where=where, failure=failure
            )
        calls = ScorerCalls(sample, self._model)
        for name, score in scores.items():
            yield self._assessment(name, js.as_object(score), task, trial, where, calls)

    def rest(self) -> Iterator[records.Found]:
        """Yield the log's version, which is newer after an edit, and a note about scores without a
        known scale.
        """
        if self._version:
            # The history of a log only grows, even if a clock was set back: of two logs with the
            # same time, the one with more edits is later.
            yield records.FoundAtEnd(
                version=f"{self._version} {self._edits:06}" if self._edits else self._version
            )
        if self._unscaled:
            what = (
                f"{self._unscaled:,} scores are words or come from a scorer with values outside 0 to 1, and the log does not "
                "state their scale. Assay keeps them as raw scores, which no statistic counts."
            )
            yield records.Noted(where=self._unscaled_at, what=what)

    def _response(
        self, sample: js.JsonObject, task: str, trial: int, where: str, *, scored: bool
    ) -> records.FoundResponse:
        output = js.as_object(sample.get("output"))
        choice = js.as_object(next(iter(js.as_list(output.get("choices"))), None))
        content = js.content_text(js.as_object(choice.get("message")).get("content"))
        if content is None:
            content = js.as_text(output.get("completion")) or _last_message(sample)
        stopped = js.as_object(sample.get("limit"))
        error = js.as_object(sample.get("error")) or js.as_object(
            output.get("error") and {"message": output["error"]}
        )
        finish = js.as_text(choice.get("stop_reason"))
        failure = None
        if error and not scored:
            failure = Failure(
                kind="sample_error",
                fault=Fault.HARNESS,
                detail=js.shorten(error.get("message") or "no message"),
            )
        elif stopped and not scored:
            kind = js.shorten(stopped.get("type") or "unknown", 40)
            fault = Fault.HARNESS if kind in _FOREIGN_LIMITS else Fault.CANDIDATE
            failure = Failure(
                kind=f"{kind}_limit",
                fault=fault,
                detail=f"stopped at the {kind} limit of {js.shorten(stopped.get('limit'), 40)}.",
            )
        elif content is None and not scored:
            failure = Failure(
                kind="empty", fault=Fault.CANDIDATE, detail="the sample holds no output."
            )
        if failure is None and stopped:
            finish = f"{js.shorten(stopped.get('type') or 'unknown', 40)}_limit"
        elif failure is None and error:
            finish = "sample_error"
        usage, latency = self._usage(sample, output)
        return records.FoundResponse(
            task=task,
            candidate=self._candidate,
            trial=trial,
            where=where,
            content=None if failure is not None else content or "",
            failure=failure,
            model_answered=js.as_text(output.get("model")),
            finish_reason="length" if finish == "max_tokens" else finish,
            input_tokens=js.as_count(usage.get("input_tokens")),
            output_tokens=js.as_count(usage.get("output_tokens")),
            latency_s=latency,
            cost_usd=js.as_duration(usage.get("total_cost")),
            started=js.from_text(sample.get("started_at")),
            identity=None
            if (uuid := js.as_text(sample.get("uuid"))) is None
            else f"inspect sample {uuid}",
        )

    def _usage(
        self, sample: js.JsonObject, output: js.JsonObject
    ) -> tuple[js.JsonObject, float | None]:
        """Return the candidate's tokens and seconds, from its only call or from the model's totals
        for the sample.
        """
        calls = sum(
            message.get("role") == "assistant" for message in js.objects_in(sample.get("messages"))
        )
        if calls <= 1 and output.get("usage"):
            return js.as_object(output["usage"]), js.as_duration(output.get("time"))
        by_model = js.as_object(sample.get("model_usage"))
        return js.as_object(by_model.get(self._model)), js.as_duration(sample.get("working_time"))

    def _assessment(
        self, name: str, score: js.JsonObject, task: str, trial: int, where: str, calls: ScorerCalls
    ) -> records.FoundAssessment:
        value = score.get("value")
        metadata = js.as_object(score.get("metadata"))
        # A score that a person edited in Inspect belongs to that person; the last editor counts.
        provenances = [
            js.as_object(edit.get("provenance")) for edit in js.objects_in(score.get("history"))
        ]
        editors = [
            editor
            for provenance in provenances
            if (editor := js.as_text(provenance.get("author"))) is not None
        ]
        asked = self._judges.get(name, ())
        own_calls = calls.of(name)
        by_model = (
            "model_graded" in name
            or "grading" in metadata
            or bool(asked or own_calls)
            or (calls.may_be_unseen and name not in _BY_RULE)
        )
        explanation = js.as_text(score.get("explanation"))
        words = next((text for call in reversed(own_calls) if (text := call.reply)), None)
        judge, by = name, records.GradedBy.RULE
        if editors:
            judge, by = editors[-1], records.GradedBy.PERSON
        elif by_model:
            judge, by = (f"{name} ({', '.join(asked)})" if asked else name), records.GradedBy.MODEL
        answer = js.as_text(score.get("answer"))
        reason = explanation or (
            "" if answer is None else f"Answer read: {js.shorten(answer, 500)}"
        )
        grades = [
            self._grade(part_value, where, scorer=name, criterion=part, reason=reason)
            for part, part_value in _parts(name, value)
        ]
        return records.FoundAssessment(
            task=task,
            trial=trial,
            judge=judge,
            by=by,
            where=where,
            grades=tuple(grades)
            or (records.FoundGrade(candidate=self._candidate, score=None, reason=reason),),
            reply=(explanation or words) if by is records.GradedBy.MODEL else None,
            **usage_of(own_calls if by is records.GradedBy.MODEL else ()),
        )

    def _grade(
        self, value: object, where: str, *, scorer: str, criterion: str, reason: str
    ) -> records.FoundGrade:
        raw = _raw(value)
        if raw is None and isinstance(value, str):
            reason = f"{value}: {reason}" if reason else value
        score = None if (scorer, criterion) in self._off_scale else js.in_unit_range(raw)
        if score is None and value is not None and (raw is not None or isinstance(value, str)):
            self._unscaled += 1
            self._unscaled_at = self._unscaled_at or where
        return records.FoundGrade(
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
        return js.as_number(value)
    raw = _VALUES.get(value.strip().upper())
    if raw is not None:
        return raw
    try:
        return js.as_number(float(value))
    except ValueError:
        return None


def _models_in(options: object, depth: int = 0) -> tuple[str, ...]:
    fields = js.as_object(options)
    given = fields.get("model")
    # A model created with arguments is written as an object with its name, configuration and
    # arguments.
    named = js.as_texts(
        [
            js.as_object(model).get("model", model)
            for model in (given if isinstance(given, list) else [given])
        ]
    )
    if depth < 5:
        for scorer in js.objects_in(fields.get("scorers")):
            named += _models_in(scorer.get("params"), depth + 1)
    return tuple(dict.fromkeys(named))


def _identity(spec: js.JsonObject) -> str | None:
    """Return the id that all logs of an evaluation share: the task's, the only id that `eval-retry`
    keeps.
    """
    task = js.as_text(spec.get("task_id")) or js.as_text(spec.get("eval_id"))
    return None if task is None else f"inspect task {task}"


def _newest_time(*parts: object) -> str | None:
    """Return the newest time in a log: of the run, of a log update, or of an edited score."""
    times: list[str] = []
    for part in parts:
        for entry in part if isinstance(part, list) else [part]:
            fields = js.as_object(entry)
            texts = [
                fields.get(name) for name in ("created", "started_at", "completed_at", "timestamp")
            ]
            texts.append(js.as_object(fields.get("provenance")).get("timestamp"))
            times += [time for text in texts if (time := js.from_text(text)) is not None]
    return max(times, default=None)


def _task(task: str, sample: js.JsonObject) -> records.FoundTask:
    metadata = js.pick(sample, ("choices", "files", "setup"))
    family = js.as_object(sample.get("metadata")).get("family")
    return records.FoundTask(
        id=task,
        prompt=js.as_messages(sample.get("input")),
        expected=js.as_texts(sample.get("target")),
        family=str(family) if isinstance(family, str | int) else "",
        metadata={**js.as_object(js.storable(sample.get("metadata"))), **metadata},
    )


def _last_message(sample: js.JsonObject) -> str | None:
    """Return the model's last message, for a log with messages but no output."""
    turns = reversed(js.objects_in(sample.get("messages")))
    texts = (
        js.content_text(turn.get("content")) for turn in turns if turn.get("role") == "assistant"
    )
    return next((text for text in texts if text), None)


def _with_attachments(sample: dict[str, JsonValue]) -> dict[str, JsonValue]:
    attachments = js.as_object(sample.get("attachments")) or js.as_object(
        js.as_object(sample.get("transcript")).get("content")
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
