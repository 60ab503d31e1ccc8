"""Convert imported tasks, responses and assessments to rows, with one query per record type instead
of one per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from assay.domain.import_records import (
    FoundAssessment,
    FoundResponse,
    FoundScores,
    FoundTask,
    Skipped,
)
from assay.store.database.codec import plain
from assay.store.imports.first_answers import write_first_answers
from assay.store.imports.graded_rows import rows_of_assessments
from assay.store.imports.portion import Portion
from assay.store.imports.response_rows import rows_of_responses
from assay.store.imports.score_rows import Scores, note_states, write_scores
from assay.store.imports.task_rows import declared_tasks, place_tasks
from assay.store.imports.trial_rows import (
    GradedPlace,
    settle_old_trials,
    trials_of,
    write_new_trials,
)


def write_portion(
    portion: Portion,
    tasks: Sequence[FoundTask],
    responses: Sequence[FoundResponse],
    assessments: Sequence[FoundAssessment],
    scores: Sequence[FoundScores] = (),
) -> list[Skipped]:
    """Store one portion (batch of records), and return the records that could not be stored."""
    portion.take_keys(tasks, responses, assessments, scores)
    if not tasks and not scores and not assessments and write_first_answers(portion, responses):
        return portion.skipped
    declared = declared_tasks(portion, tasks)
    scored = [Scores.of(batch) for batch in scores]
    of_scores = chain.from_iterable(each.trials for each in scored)
    records: list[GradedPlace] = [*responses, *assessments, *dict.fromkeys(of_scores)]
    names = list(dict.fromkeys(chain(declared, (plain(record.task) for record in records))))
    places = place_tasks(portion, declared, names)
    if not records:
        return portion.skipped
    trials = trials_of(portion, places, records)
    rows = rows_of_responses(portion, trials, responses) + rows_of_assessments(
        portion, trials, assessments
    )
    note_states(trials, scored)
    portion.insert_bodies()
    write_new_trials(portion, trials)
    for table, of_table in rows:
        portion.insert(table, of_table)
    write_scores(portion, trials, scored)
    settle_old_trials(portion, trials)
    portion.write_sums()
    return portion.skipped
