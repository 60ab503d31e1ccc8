"""Output and error files of batch endpoints: OpenAI, Anthropic, Mistral, Gemini, Vertex AI,
Bedrock, vLLM, Groq and copies.

A failed line becomes a response with its failure; no line is dropped. Requests and answers are
matched by id; their order does not matter. Vertex AI and Bedrock repeat the request beside the
answer, so their output needs no input file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

import orjson

from assay.domain.digest import JsonValue
from assay.domain.import_records import (
    Found,
    FoundAtEnd,
    FoundCandidate,
    FoundResponse,
    FoundRun,
    FoundTask,
    Noted,
    Skipped,
)
from assay.exchange.importers import ReadOptions
from assay.exchange.parsing.explained import Shape, explained_share
from assay.exchange.parsing.foreign_names import foreign_names
from assay.exchange.parsing.input_files import FileSample, InputFile
from assay.exchange.parsing.json_values import JsonObject, as_text, from_text, from_unix
from assay.exchange.readers import batch_input, batch_lines, batch_object, batch_server_log
from assay.exchange.readers.batch_answers import answer_of, measures_of, model_in
from assay.formats.json_lines import lines_of, row_of

NAME: Final = "openai_batch"
_LINE: Final[Shape] = dict.fromkeys(foreign_names(__name__)["line"])
_MOJIBAKE: Final = re.compile("â€|Ã[\u0080-\u00bfƒŠ‚†ˆ‰‹Œ–—˜™š›œžŸ“”•„…]|ðŸ")
"""Matches UTF-8 that was decoded as Windows-1252 or Latin-1."""


def recognise(sample: FileSample) -> float | None:
    """Recognise lines with an id and an answer or an error, in any known provider's format."""
    rows = batch_lines.first_lines(sample)
    if not rows:
        return None
    fitting = sum(map(batch_lines.looks_like_output, rows))
    return explained_share(rows, _LINE) * fitting / len(rows) if fitting else None


def model_of(sample: FileSample) -> str | None:
    """Return the model that gave most answers at the beginning of a file; None if no line has a
    model name.
    """
    return next((name for name, _ in models_of(sample).most_common(1)), None)


def models_of(sample: FileSample) -> Counter[str]:
    return Counter(
        model
        for row in batch_lines.first_lines(sample)
        if (model := model_in(batch_lines.body_of(row) or {})) is not None
    )


def read(source: InputFile, options: ReadOptions) -> Iterator[Found]:
    """Yield the run, the tasks of the input file if there is one, and a response for each line."""
    inputs, logs = options.beside.get("input", ()), options.beside.get("log", ())
    facts = batch_server_log.facts(logs)
    inlined = (source,) if batch_lines.inlined_lines(source.sample) else ()
    about = batch_object.facts((*options.beside.get("about", ()), *inlined))
    candidate, candidate_from = _candidate(source, options, facts)
    provenance: dict[str, JsonValue] = {"candidate_from": candidate_from, **facts, **about}
    if inputs or _repeats_requests(source.sample):
        provenance["parameters"] = batch_input.parameters_of(
            (inputs[0] if inputs else source).sample
        )
    yield FoundRun(
        suite=options.dataset or (inputs[0].stem if inputs else source.stem),
        format=NAME,
        candidates=(
            FoundCandidate(
                name=candidate, model=model_of(source.sample), metadata=options.model_info
            ),
        ),
        started=as_text(about.get("started")) or _first_answer(source.sample),
        finished=as_text(about.get("finished")),
        complete=about.get("status") not in ("cancelled", "cancelling", "expired", "failed"),
        provenance=provenance,
    )
    for requests in inputs:
        yield from batch_input.tasks(requests)
    yield from _responses(
        source, candidate, named=options.candidate is not None, with_tasks=not inputs
    )
    for errors in options.beside.get("errors", ()):
        yield from _responses(errors, candidate, named=True)


def _first_answer(sample: FileSample) -> str | None:
    """Return the earliest time of the first answers; a later part of the file may have an earlier
    time.
    """
    bodies = (
        body
        for row in batch_lines.first_lines(sample)
        if (body := batch_lines.body_of(row)) is not None
    )
    times = (_answered(body) for body in bodies)
    return min((time for time in times if time is not None), default=None)


def _candidate(source: InputFile, options: ReadOptions, facts: JsonObject) -> tuple[str, str]:
    if options.candidate is not None:
        return options.candidate, "option"
    model = model_of(source.sample)
    if model is not None:
        return model, "answers"
    if (logged := as_text(facts.get("model"))) is not None:
        return logged, "log"
    inputs = options.beside.get("input", ())
    models = {name for requests in inputs for name in batch_input.models_of(requests.sample)}
    if len(models) == 1 and not options.beside.get("shared_input"):
        return models.pop(), "input"
    return source.stem, "file name"


def _repeats_requests(sample: FileSample) -> bool:
    return any(batch_lines.request_of(row) is not None for row in sample.rows[:1])


def _answered(body: JsonObject) -> str | None:
    created = body.get("created", body.get("created_at"))
    if isinstance(created, int | float):
        return from_unix(created)
    return from_text(body["createTime"]) if "createTime" in body else None


def _responses(
    source: InputFile, candidate: str, *, named: bool, with_tasks: bool = False
) -> Iterator[Found]:
    """Yield a response for each line of a file; with `with_tasks`, also the task of each request
    that a line repeats.

    With `named`, all answers belong to this candidate, regardless of the models in the lines.
    """
    name = source.name
    # A local name, because the loop looks it up for each of a million lines.
    loads = orjson.loads
    first = last = None
    odd, odd_where, odd_text = 0, "", ""
    repeats: Counter[str] = Counter()
    inlined = [orjson.dumps(row) for row in batch_lines.inlined_lines(source.sample)]
    with source.open() as stream:
        for number, line in enumerate(inlined or lines_of(stream), 1):
            if not line:
                continue
            try:
                row = loads(line)
            except orjson.JSONDecodeError:
                if line.strip():
                    yield Skipped(where=f"{name}:{number}", why=str(row_of(line)))
                continue
            where = f"{name}:{number}"
            if not isinstance(row, dict) or not batch_lines.looks_like_output(row):
                yield Skipped(where=where, why=_not_output(row))
                continue
            prompt = None
            if ("request" in row or "modelInput" in row) and (
                request := batch_lines.request_of(row)
            ) is not None:
                prompt = batch_input.prompt_of(request)
            task = row.get("custom_id")
            if not isinstance(task, str) or not task:
                task = batch_input.task_of(row, prompt)
            if task is None:
                yield Skipped(
                    where=where,
                    why="has an id that is not text, so it cannot be matched to a request.",
                )
                continue
            trial = 1
            if prompt is not None:
                if with_tasks:
                    yield FoundTask(id=task, prompt=prompt)
                if batch_lines.id_of(row) is None:  # the same prompt again is another trial
                    trial = repeats[task] = repeats[task] + 1
            body = batch_lines.body_of(row)
            failure = batch_lines.failure_of(row, body)
            content = finish = model = started = None
            tokens_in = tokens_out = latency_s = None
            if body is not None:
                model = model_in(body)
                started = _answered(body)
                tokens_in, tokens_out, latency_s = measures_of(body)
                if failure is None:
                    content, finish, failure = answer_of(body)
            given = (body or {}).get("id") or (body or {}).get("responseId") or row.get("id")
            # For nearly every answer, three searches for a letter are enough, and far cheaper than
            # the pattern.
            if (
                content is not None
                and not content.isascii()
                and ("Ã" in content or "â" in content or "ð" in content)
            ):
                seen = _MOJIBAKE.search(content)
                if seen is not None:
                    odd += 1
                    if odd == 1:
                        odd_where, odd_text = (
                            where,
                            content[max(0, seen.start() - 8) : seen.end() + 8],
                        )
            ended = from_text(row["processed_time"]) if "processed_time" in row else started
            if ended is not None:
                begun = started or ended
                first = begun if first is None or begun < first else first
                last = ended if last is None or ended > last else last
            yield FoundResponse(
                task=task,
                candidate=candidate if named or model is None else model,
                trial=trial,
                where=where,
                content=content,
                failure=failure,
                model_answered=model,
                finish_reason=finish,
                input_tokens=tokens_in,
                output_tokens=tokens_out,
                latency_s=latency_s,
                started=started,
                identity=None if given is None else f"{task} {given} {model}",
            )
    if odd:
        what = (
            f"{odd:,} answers look as if their text was decoded with the wrong encoding ({odd_text!r}); "
            "Assay imports them unchanged."
        )
        yield Noted(where=odd_where, what=what)
    if first is not None:
        yield FoundAtEnd(started=first, finished=last, provenance={"times_from": "answers"})


def _not_output(row: object) -> str:
    if not isinstance(row, dict):
        return "is not a JSON object, so it is not a line of batch output."
    if "custom_id" not in row and batch_lines.id_of(row) is None:
        return "has no `custom_id`, so it cannot be matched to a request."
    if batch_input.looks_like_input(row):
        return "is a request, but this file holds answers."
    return "holds neither a response nor an error."
