"""Store the most common kind of import portion (batch of records): every record is the first answer
to a different task.

Batch output consists of such portions, often a million lines. The general method takes three times
as long per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from assay.domain.import_identity import response_number
from assay.domain.import_records import FoundResponse
from assay.domain.lifecycle import Standing, TrialState
from assay.store.database import schema
from assay.store.database.codec import plain
from assay.store.database.counters import STANDING, TRIAL
from assay.store.imports.portion import Portion, Row
from assay.store.imports.response_rows import call_row, content_bytes, has_call
from assay.store.imports.task_rows import BARE_DIGEST, TASKS_OF_RUN, bare_content, content_digest

Places = dict[str, tuple[int, int]]
"""Position and key of each task, by its id."""


_FAILED: Final = TrialState.FAILED.value
_WAITS: Final = (TrialState.NEEDS_REVIEW.value, Standing.PENDING.value)
"""State and standing of a trial with an ungraded answer."""


def write_first_answers(portion: Portion, responses: Sequence[FoundResponse]) -> bool:
    """Store a portion if every answer is the first in its trial; otherwise store nothing and return
    False.
    """
    run = portion.run
    # The usual portion of batch output, stored in one pass: the general method looks up each trial
    # and compares repeated answers.
    names = [plain(response.task) for response in responses]
    if len(set(names)) < len(names) or any(response.trial != 1 for response in responses):
        return False
    places: Places = {}
    if run.tasks:
        rows = portion.rows_among(TASKS_OF_RUN, (run.run_key,), names)
        places = {task_id: (position, task_key) for task_id, position, task_key in rows}
    if places and run.trials:
        text = "SELECT 1 FROM trial WHERE run_key = {} AND position"
        if portion.rows_among(text, (run.run_key,), [position for position, _ in places.values()]):
            return False
    if len(places) < len(names):
        if run.shared:
            return False
        _write_bare_tasks(portion, [name for name in names if name not in places], places)
    _write_answers(portion, responses, names, places)
    return True


def _write_bare_tasks(portion: Portion, names: list[str], places: Places) -> None:
    """Store tasks for which the file contains only an id."""
    run = portion.run
    names.sort()  # sorted, so that the indexes by id are walked only once
    bodies: list[Row] = []
    rows: list[Row] = []
    planned: list[Row] = []
    for position, name in enumerate(names, run.tasks):
        task_key, body_key = next(portion.task_keys), next(portion.body_keys)
        content = bare_content(name)
        bodies.append((body_key, content))
        rows.append(
            (task_key, run.suite_key, name, BARE_DIGEST, "", "", body_key, content_digest(content))
        )
        planned.append((run.run_key, position, task_key, name, name, 1.0, 1, body_key))
        places[name] = (position, task_key)
    run.tasks += len(names)
    portion.insert_many(schema.body, bodies)
    portion.insert_many(schema.task, rows)
    portion.insert_many(schema.run_task, planned)


def _write_answers(
    portion: Portion, responses: Sequence[FoundResponse], names: list[str], places: Places
) -> None:
    run_key = portion.run.run_key
    trials: list[Row] = []
    calls: list[Row] = []
    rows: list[Row] = []
    waits = (1, *_WAITS, None, None, 1, None, None, None, None)
    stored = lru_cache(maxsize=1000)(plain)  # most rows name the same model and finish reason
    failures = 0
    for response, name in zip(responses, names, strict=True):
        position, task_key = places[name]
        candidate = portion.candidate(response.candidate)
        trial_key, call_key = next(portion.trial_keys), None
        if response.identity is not None:
            portion.identified.append(
                (response_number(response.identity), trial_key, candidate, run_key)
            )
        if has_call(response):
            call_key = next(portion.call_keys)
            calls.append(call_row(portion, call_key, trial_key, candidate, response, stored))
        if response.content is None:
            failures += 1
            failure = response.failure
            assert failure is not None
            failed = (
                plain(failure.kind),
                failure.fault.value,
                plain(failure.detail),
                failure.tries,
            )
            trials.append(
                (
                    trial_key,
                    run_key,
                    task_key,
                    position,
                    1,
                    _FAILED,
                    _FAILED,
                    None,
                    None,
                    1,
                    *failed,
                )
            )
            continue
        trials.append((trial_key, run_key, task_key, position, *waits))
        body_key = next(portion.body_keys)
        portion.bodies.append((body_key, content_bytes(response.content)))
        truncated = response.finish_reason == "length"
        rows.append(
            (next(portion.response_keys), trial_key, candidate, 1, truncated, call_key, body_key)
        )
    portion.insert_many(schema.body, portion.bodies)
    portion.bodies.clear()
    portion.insert_many(schema.trial, trials)
    portion.insert_many(schema.call, calls)
    portion.insert_many(schema.response, rows)
    for state, standing, n in ((*_WAITS, len(trials) - failures), (_FAILED, _FAILED, failures)):
        portion.counters.add(run_key, TRIAL, state, n)
        portion.counters.add(run_key, STANDING, standing, n)
    portion.write_sums()
    portion.run.trials += len(trials)
    portion.run.responses += len(trials)
