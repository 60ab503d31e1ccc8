"""The tables of the store. Column names are declared only here and in the migrations that created them.

Theory. Lists and statistics read narrow rows of numbers; texts of people and models are in `body`, as bytes, and are fetched one
item at a time. `score` and `grade` are clustered by run, so that a run's scores are one range and need no index. Derived values
that are read often (a trial's state and standing, a run's tallies and sums) are updated in the same transaction as their source.

House rules. Keys of `task`, `trial`, `call`, `response`, `assessment` and `body` come in blocks from `key_source` inside
the write transaction, so a whole batch is inserted without fetching each key. An assessment is current as long as its state is not
`superseded`. `value` is the score that counts, `judged_value` the score that the grader gave.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.types import TypeEngine

OLDEST: Final = "0011"
"""The oldest schema that can be upgraded: 0001 to 0010 were never released."""

VERSION: Final = "0011"
"""The last migration, which leads to these tables."""

VERSION_TABLE: Final = "assay_version"

# SQLite makes a primary key the rowid itself only if its type reads exactly INTEGER.
Key: Final = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

version_metadata = MetaData()

version = Table(
    VERSION_TABLE,
    version_metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)
"""Alembic's version table with its single row; it has separate metadata because Alembic creates it."""


def _filled(kind: type[TypeEngine[Any]] | TypeEngine[Any], *names: str) -> list[Column[Any]]:
    """Return columns that have a value in every row."""
    return [Column(name, kind, nullable=False) for name in names]


def _nullable(kind: type[TypeEngine[Any]] | TypeEngine[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, kind) for name in names]


def _references(*tables: str) -> list[Column[Any]]:
    """Return the columns `TABLE_key`, each of which refers to the key of a table in every row."""
    return [Column(f"{name}_key", Key, ForeignKey(f"{name}.key"), nullable=False) for name in tables]


def _for_deletions(column: str) -> Index:
    """Return an index of a column that refers to another table, on PostgreSQL alone.

    Without it PostgreSQL walks through the whole table for each row that is deleted from the other table. SQLite deletes
    imported rows without looking at references (`Database.staging`).
    """
    return Index(None, column).ddl_if(dialect="postgresql")


key_source = Table("key_source", metadata, Column("name", String(20), primary_key=True), Column("next", Key, nullable=False))
"""The next key of each table; the row `store` holds the store's own id."""

# Measured over a million rows: a GROUP BY takes 2.16 s with the body in the row, 0.23 s on a narrow covering index.
body = Table(
    "body",
    metadata,
    Column("key", Key, primary_key=True, autoincrement=False),
    # Not text: models write NUL and lone surrogates, which PostgreSQL refuses in text.
    Column("content", LargeBinary, nullable=False),
)

suite = Table("suite", metadata, Column("key", Key, primary_key=True), Column("name", Text, nullable=False, unique=True))

candidate = Table(
    "candidate",
    metadata,
    Column("key", Key, primary_key=True),
    Column("name", Text, nullable=False),
    Column("folded", Text, nullable=False, unique=True),
)
"""`folded` is the name in the form used for comparison; `name` is its first spelling."""

candidate_alias = Table(
    "candidate_alias",
    metadata,
    Column("folded", Text, primary_key=True),
    Column("candidate_key", Key, ForeignKey("candidate.key"), nullable=False),
)
"""Aliases: corrected names, each of which refers to the candidate."""

candidate_event = Table(
    "candidate_event",
    metadata,
    Column("id", Key, primary_key=True),
    Column("verb", String(12), nullable=False),
    *_filled(Text, "source", "target"),
    *_filled(Key, "source_key", "target_key"),
    *_filled(Text, "detail", "reviewer", "reason"),
    Column("at", String(30), nullable=False),
    Column("undoes", Key),
)
"""Append-only. `detail`: JSON of the runs whose rows changed and the aliases that were replaced. `undoes`: the earlier event that
this one undoes."""

grader = Table("grader", metadata, Column("key", Key, primary_key=True), Column("name", Text, nullable=False, unique=True))

criterion = Table(
    "criterion", metadata, Column("key", Key, primary_key=True), Column("name", Text, nullable=False, unique=True)
)

suite_copy = Table(
    "suite_copy",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("body_key", Key, ForeignKey("body.key"), nullable=False),
)

run = Table(
    "run",
    metadata,
    Column("key", Key, primary_key=True),
    Column("id", String(200), nullable=False, unique=True),
    Column("suite_key", Key, ForeignKey("suite.key"), nullable=False),
    Column("suite_digest", String(64), ForeignKey("suite_copy.digest"), nullable=False),
    Column("state", String(12), nullable=False),
    Column("started", String(30), nullable=False),
    Column("finished", String(30)),
    Column("batch_id", Text),
    Column("budget_usd", Double),
    Column("spent_usd", Double, nullable=False),
    *_filled(Key, "calls", "unpriced_calls", "input_tokens", "output_tokens"),
    Column("cost_usd", Double, nullable=False),
    *_filled(Text, "judges", "settings"),
    Column("plan_key", Key, ForeignKey("body.key"), nullable=False),
    Column("regrade_of", Key),
    # Lists read one page of runs by these. Without them, summarising 20,000 runs takes about a second.
    Index("ix_run_started", "started", "key"),
    Index("ix_run_suite_key", "suite_key"),
    Index("ix_run_state", "state"),
    Index("ix_run_regrade_of", "regrade_of"),
)
"""`judges`: JSON list of names. `settings`: JSON list of [judge, digest]. `regrade_of`: the run whose responses it grades."""

# Stored, because COUNT over a million trials takes a tenth of a second, on every page.
run_tally = Table(
    "run_tally",
    metadata,
    Column("run_key", Key, ForeignKey("run.key"), nullable=False),
    *_filled(String(12), "subject", "state"),
    Column("n", Key, nullable=False),
    PrimaryKeyConstraint("run_key", "subject", "state"),
)
"""Counts per run: trials by state, standings of trials, assessments by state."""

reservation = Table(
    "reservation",
    metadata,
    Column("run_key", Key, ForeignKey("run.key"), nullable=False),
    Column("owner", String(40), nullable=False),
    *_filled(Double, "usd", "most_usd"),
    PrimaryKeyConstraint("run_key", "owner"),
)
"""Sums over the calls in flight of each process (`domain.budget`); when a process has ended, its `usd` is booked as spent.

The owner `job` stands for all open jobs of the run; its row outlives every process."""

execution = Table(
    "execution",
    metadata,
    Column("run_key", Key, ForeignKey("run.key"), nullable=False),
    Column("owner", String(40), nullable=False),
    PrimaryKeyConstraint("run_key", "owner"),
)
"""Processes that execute a run; a row is invalid once its process has ended."""

stretch = Table(
    "stretch",
    metadata,
    Column("run_key", Key, ForeignKey("run.key"), primary_key=True, autoincrement=False),
    Column("since", String(30), nullable=False),
    Column("done", Key, nullable=False),
)
"""When a run last started or resumed, and how many of its trials were done or failed then; used to estimate the time left."""

run_candidate = Table(
    "run_candidate",
    metadata,
    *_references("run", "candidate"),
    Column("position", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("identity", Text, nullable=False, default=""),
    PrimaryKeyConstraint("run_key", "candidate_key"),
)
"""`identity`: model and digest of the system prompt; empty if unknown (`domain.candidate_identity`)."""

run_grader = Table(
    "run_grader",
    metadata,
    *_references("run", "grader"),
    Column("reference", Boolean, nullable=False, default=False),
    PrimaryKeyConstraint("run_key", "grader_key"),
)
"""`reference`: people whose grades came with the data; no later grading replaces these grades."""

run_criterion = Table(
    "run_criterion", metadata, *_references("run", "criterion"), PrimaryKeyConstraint("run_key", "criterion_key")
)

task = Table(
    "task",
    metadata,
    Column("key", Key, primary_key=True, autoincrement=False),
    Column("suite_key", Key, ForeignKey("suite.key"), nullable=False),
    Column("task_id", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    *_filled(Text, "language", "family"),
    Column("body_key", Key, ForeignKey("body.key"), nullable=False),
    Column("body_digest", String(64), nullable=False),
    UniqueConstraint("suite_key", "task_id", "digest"),
    _for_deletions("body_key"),
)
"""A task's identity. `body_key` is its newest full text, shared by runs in which the task is identical."""

run_task = Table(
    "run_task",
    metadata,
    Column("run_key", Key, ForeignKey("run.key"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("task_key", Key, ForeignKey("task.key"), nullable=False),
    *_filled(Text, "task_id", "thing"),
    Column("weight", Double, nullable=False),
    Column("trials", Integer, nullable=False),
    Column("body_key", Key, ForeignKey("body.key"), nullable=False),
    PrimaryKeyConstraint("run_key", "position"),
    UniqueConstraint("run_key", "task_key"),
    UniqueConstraint("run_key", "task_id"),
    _for_deletions("body_key"),
    sqlite_with_rowid=False,
)

run_tag = Table(
    "run_tag",
    metadata,
    *_references("run", "task"),
    Column("tag", Text, nullable=False),
    PrimaryKeyConstraint("run_key", "task_key", "tag"),
    sqlite_with_rowid=False,
)

trial = Table(
    "trial",
    metadata,
    Column("key", Key, primary_key=True, autoincrement=False),
    *_references("run", "task"),
    *_filled(Integer, "position", "k"),
    *_filled(String(12), "state", "standing"),
    Column("rest", String(12)),
    Column("owner", String(40)),
    Column("tries", Integer, nullable=False),
    Column("fail_kind", Text),
    Column("fail_fault", String(12)),
    Column("fail_detail", Text),
    Column("fail_tries", Integer),
    UniqueConstraint("run_key", "position", "k"),
    # Finds the next pending trials in plan order with one seek, however long the run is.
    Index("ix_trial_claim", "run_key", "state", "position", "k"),
)
"""`owner` has claimed the trial while `state` is `running`; `rest` is the state after it releases the trial."""

call = Table(
    "call",
    metadata,
    Column("key", Key, primary_key=True, autoincrement=False),
    Column("run_key", Key, nullable=False),
    Column("trial_key", Key, ForeignKey("trial.key"), nullable=False),
    Column("role", String(12), nullable=False),
    *_nullable(Key, "candidate_key", "grader_key"),
    *_filled(Integer, "attempt", "number"),
    Column("model", Text, nullable=False),
    *_nullable(Text, "model_version", "finish_reason"),
    *_nullable(Key, "input_tokens", "output_tokens"),
    *_nullable(Double, "latency_s", "first_token_s", "cost_usd"),
    Column("started", String(30), nullable=False),
    Column("fail_kind", Text),
    Column("fail_fault", String(12)),
    Column("fail_detail", Text),
    Column("request_digest", String(32), nullable=False),
    Column("body_key", Key),
    Column("tool_calls", Text),
    Index("ix_call_trial_key", "trial_key"),
    # Only these replies are looked up by their request; an index over all calls would slow every commit.
    Index(
        "ix_call_structured",
        "request_digest",
        sqlite_where=text("role = 'structurer'"),
        postgresql_where=text("role = 'structurer'"),
    ),
)
"""`body_key` holds a reply that could not be used; a usable reply is kept in the response or assessment that it led to.

`tool_calls` is JSON of the calls in a reply, which a resumed conversation needs.
"""

job = Table(
    "job",
    metadata,
    Column("key", Key, primary_key=True),
    Column("run_key", Key, ForeignKey("run.key"), nullable=False),
    Column("token", String(16), nullable=False, unique=True),
    Column("stage", String(12), nullable=False),
    *_filled(Text, "place", "model"),
    Column("base_url", Text),
    Column("habits", Text, nullable=False),
    Column("state", String(12), nullable=False),
    Column("owner", String(40)),
    Column("requests", Key, nullable=False),
    *_nullable(Text, "input_file", "remote_id", "status", "detail"),
    Column("created", String(30), nullable=False),
    *_nullable(String(30), "sent", "ended"),
    Column("log_key", Key, ForeignKey("body.key")),
    Index("ix_job_run_key", "run_key"),
    _for_deletions("log_key"),
)
"""Requests that wait together at a provider (`domain.jobs`). `owner` is the process that sends or collects the job now."""

job_request = Table(
    "job_request",
    metadata,
    Column("job_key", Key, ForeignKey("job.key"), nullable=False),
    Column("number", Key, nullable=False),
    Column("trial_key", Key, ForeignKey("trial.key"), nullable=False),
    Column("role", String(12), nullable=False),
    Column("digest", String(32), nullable=False),
    Column("visit", Integer, nullable=False),
    Column("state", String(12), nullable=False),
    Column("usd", Double, nullable=False),
    Column("shares", Key),
    Column("failure", Text),
    PrimaryKeyConstraint("job_key", "number"),
    Index("ix_job_request_trial_key", "trial_key"),
    sqlite_with_rowid=False,
)
"""`number` and the token of the job make the `custom_id`. `visit`: the trial's `tries` when it was asked. `usd`: reserved.
`shares`: the number of an equal request of another trial, whose answer serves this one. `failure`: JSON, of a failed answer."""

response = Table(
    "response",
    metadata,
    Column("key", Key, primary_key=True, autoincrement=False),
    Column("trial_key", Key, ForeignKey("trial.key"), nullable=False),
    Column("candidate_key", Key, nullable=False),
    Column("round", Integer, nullable=False),
    Column("truncated", Boolean, nullable=False),
    Column("call_key", Key),
    Column("body_key", Key, ForeignKey("body.key"), nullable=False),
    UniqueConstraint("trial_key", "candidate_key", "round"),
    _for_deletions("body_key"),
)
"""Responses by models; snippets are part of their task. `round` above 1: asked again after a harness fault; the last one counts."""

assessment = Table(
    "assessment",
    metadata,
    Column("key", Key, primary_key=True, autoincrement=False),
    *_filled(Key, "run_key", "task_key"),
    Column("trial_key", Key, ForeignKey("trial.key"), nullable=False),
    Column("grader_key", Key, nullable=False),
    Column("candidate_key", Key),
    Column("by_model", Boolean, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("state", String(12), nullable=False),
    Column("state_before", String(12)),
    Column("flag_count", Integer, nullable=False),
    Column("response_limit", Key, nullable=False),
    Column("call_key", Key),
    Column("body_key", Key, ForeignKey("body.key")),
    Column("created", String(30), nullable=False),
    Index("ix_assessment_trial_key", "trial_key"),
    Index("ix_assessment_run_state", "run_key", "state", "key"),
    # The review queue's seek, answered by the index alone: 0.57 ms (p50) per claim with a million pending.
    Index("ix_assessment_state", "state", "key"),
    Index("ix_assessment_run_key", "run_key", "key"),
    # For a review of one task. Without it, each item read the whole run: 0.25 s at 100,000 trials.
    Index("ix_assessment_run_task", "run_key", "task_key"),
    _for_deletions("body_key"),
)
"""`candidate_key` is null for joint assessments. `state_before` is the state before the assessment was superseded. Graded responses
have keys below `response_limit`. `body_key` is null for a bare score, because its rows in `score` and `grade` contain everything.
"""

score = Table(
    "score",
    metadata,
    Column("run_key", Key, nullable=False),
    Column("assessment_key", Key, ForeignKey("assessment.key"), nullable=False),
    *_filled(Key, "candidate_key", "task_key", "trial_key", "grader_key"),
    *_nullable(Double, "value", "judged_value"),
    Column("joint", Boolean, nullable=False),
    Column("state", String(12), nullable=False),
    Column("place", Integer),
    PrimaryKeyConstraint("run_key", "assessment_key", "candidate_key"),
    _for_deletions("assessment_key"),
    sqlite_with_rowid=False,
)
"""`place` is the candidate's position in the order drawn for the judge, from 1; null if there was one candidate or no draw."""

grade = Table(
    "grade",
    metadata,
    Column("run_key", Key, nullable=False),
    Column("assessment_key", Key, ForeignKey("assessment.key"), nullable=False),
    *_filled(Key, "candidate_key", "criterion_key"),
    Column("weight", Double, nullable=False),
    *_nullable(Double, "value", "judged_value", "raw", "low", "high", "confidence"),
    PrimaryKeyConstraint("run_key", "assessment_key", "candidate_key", "criterion_key"),
    _for_deletions("assessment_key"),
    sqlite_with_rowid=False,
)

review_event = Table(
    "review_event",
    metadata,
    Column("id", Key, primary_key=True),
    Column("idempotency_key", Text, unique=True),
    Column("assessment_key", Key, ForeignKey("assessment.key"), nullable=False),
    Column("run_key", Key, nullable=False),
    *_filled(String(12), "verb", "before", "after"),
    Column("reviewer", Text, nullable=False),
    Column("via", String(12), nullable=False),
    Column("displayed", Boolean, nullable=False),
    *_filled(Text, "reason", "note", "corrections"),
    Column("at", String(30), nullable=False),
    *_filled(String(64), "previous_hash", "hash"),
    Index("ix_review_event_assessment_key", "assessment_key"),
)
"""Append-only. `corrections`: JSON list of [candidate, criterion or null, score]. `hash` covers the row and `previous_hash`."""

lease = Table(
    "lease",
    metadata,
    Column("assessment_key", Key, primary_key=True, autoincrement=False),
    Column("desk", Text, nullable=False),
    Column("until", Double, nullable=False),
)
"""Pending assessments reserved for a desk; `until` in seconds since 1970. May be lost without harm."""

calibration = Table(
    "calibration",
    metadata,
    Column("key", Key, primary_key=True),
    Column("model", Text, nullable=False),
    *_filled(String(32), "prompt", "rubric", "parameters"),
    Column("version", Integer, nullable=False),
    Column("tier", String(20), nullable=False),
    Column("at", String(30), nullable=False),
    Column("body_key", Key, ForeignKey("body.key"), nullable=False),
    UniqueConstraint("model", "prompt", "rubric", "parameters", "version"),
)
"""Append-only. `prompt`, `rubric`, `parameters`: digests of these parts of the judge's requests; `version` counts from 1 for each
identity."""

imported = Table(
    "imported",
    metadata,
    Column("key", Key, primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("name", Text, nullable=False),
    Column("format", String(40), nullable=False),
    Column("dataset", String(64)),
    Column("suite_key", Key, ForeignKey("suite.key"), nullable=False),
    Column("run_key", Key, ForeignKey("run.key")),
    Column("owner", String(40)),
    Column("at", String(30), nullable=False),
    *_nullable(Text, "identity", "version"),
    *_nullable(String(32), "content", "answers"),
    Index("ix_imported_digest", "digest"),
    Index("ix_imported_dataset", "dataset"),
    Index("ix_imported_identity", "identity"),
    Index("ix_imported_content", "content"),
    Index("ix_imported_answers", "answers"),
)
"""Imported runs, one per row. `digest`: covers the file's bytes and the options with which it was read. `dataset`: digest of the
requests, independent of their order and model. `identity` and `version`: the harness's id of the evaluation, and its version.
`content`: digest of all answers and grades, independent of their order and file; `answers`: of candidates and answers alone.
`run_key` is null for tasks alone. `owner` is set until the whole run is stored."""

imported_response = Table(
    "imported_response",
    metadata,
    # The key comes first: in `PRAGMA integrity_check`, SQLite 3.40 takes a column between two key columns for NULL.
    *_filled(Key, "identity", "trial_key", "candidate_key", "run_key"),
    PrimaryKeyConstraint("identity", "trial_key", "candidate_key"),
    sqlite_with_rowid=False,
)
"""The identity that a harness or provider gave a response, as 63 bits of a digest, by which the same row is recognised in another
file."""

run_event = Table(
    "run_event",
    metadata,
    Column("id", Key, primary_key=True),
    Column("run_key", Key, ForeignKey("run.key"), nullable=False),
    *_filled(String(12), "verb", "before", "after"),
    Column("other_key", Key),
    *_filled(Text, "reviewer", "reason"),
    Column("at", String(30), nullable=False),
    Index("ix_run_event_run_key", "run_key"),
)
"""Append-only: runs that were deleted, replaced by the import of a later version (`other_key`), or brought back."""

control_event = Table(
    "control_event",
    metadata,
    Column("id", Key, primary_key=True),
    Column("idempotency_key", Text, unique=True),
    Column("assessment_key", Key, ForeignKey("control_item.key"), nullable=False),
    *_filled(String(12), "verb", "before", "after"),
    Column("reviewer", Text, nullable=False),
    Column("via", String(12), nullable=False),
    Column("displayed", Boolean, nullable=False),
    *_filled(Text, "reason", "note", "corrections"),
    Column("at", String(30), nullable=False),
    Index("ix_control_event_assessment_key", "assessment_key"),
)
"""Decisions on control items, with the columns of `review_event` but outside its chain of hashes, its log and its exports."""

control_item = Table(
    "control_item",
    metadata,
    Column("key", Key, primary_key=True, autoincrement=False),
    Column("kind", String(12), nullable=False),
    Column("run_key", Key, ForeignKey("run.key"), nullable=False),
    Column("source_key", Key, ForeignKey("assessment.key"), nullable=False),
    Column("reviewer", Text, nullable=False),
    Column("made", String(30), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("state", String(12), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("ix_control_item_reviewer", "reviewer", "run_key", "state"),
    Index("ix_control_item_source_key", "source_key"),
)
"""Assessments with the purpose `control`. Keys come from those of `assessment`, so that their numbers do not give them away.
No list, count, statistic or export reads this table. `body`: the grades shown, and the origin."""

observation = Table(
    "observation",
    metadata,
    Column("id", Key, primary_key=True),
    *_filled(String(12), "kind", "purpose"),
    Column("run_key", Key, ForeignKey("run.key"), nullable=False),
    Column("assessment_key", Key, nullable=False),
    Column("reviewer", Text, nullable=False),
    Column("at", String(30), nullable=False),
    Column("idempotency_key", Text, nullable=False, unique=True),
    Column("body", LargeBinary, nullable=False),
    Index("ix_observation_assessment_key", "assessment_key", "kind"),
    Index("ix_observation_run_kind", "run_key", "kind"),
    Index("ix_observation_reviewer_kind", "reviewer", "kind"),
)
"""Observations of the review process, append-only; no statistic uses them. `assessment_key` is 0 for a whole run, and the
key of a `control_item` if `purpose` is `control`."""

secret = Table("secret", metadata, Column("name", String(20), primary_key=True), Column("value", LargeBinary, nullable=False))
"""Random bytes shared by all processes that use the store."""

person = Table(
    "person",
    metadata,
    Column("key", Key, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", String(12), nullable=False),
    Column("digest", String(64), nullable=False, unique=True),
    Column("invited", String(30), nullable=False),
    Column("revoked", String(30)),
)
"""Invitations to the web app. `digest` is a hash of the token, which is not stored; `revoked` is the time when the invitation was
revoked."""

vote = Table(
    "vote",
    metadata,
    Column("id", Key, primary_key=True),
    Column("once", Text, unique=True),
    *_references("run", "trial"),
    *_filled(Integer, "left_place", "right_place"),
    Column("choice", String(12), nullable=False),
    Column("undoes", Key, unique=True),
    Column("reviewer", Text, nullable=False),
    Column("active_ms", Key),
    Column("telling", Boolean, nullable=False),
    Column("at", String(30), nullable=False),
    *_filled(String(64), "previous_hash", "hash"),
    Index("ix_vote_run_reviewer", "run_key", "reviewer", "trial_key"),
    Index("ix_vote_trial_key", "trial_key"),
)
"""Votes of the arena, append-only, hashed as review events are. `once` is the idempotency key, under the name that it has in the
records of results folders. `choice` is `undo` if the row takes back the vote `undoes`; a vote is valid as long as no row takes it
back. Places are those of `run_candidate`, which a renamed candidate keeps."""
