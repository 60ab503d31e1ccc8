"""The tables of the store.

Column names are declared only here and in the migrations that created them.

Theory. Lists and statistics read narrow rows of numbers. Texts by people and models are bytes in
`body` and are read one at a time. `score` and `grade` are clustered by run, so a run's scores are
one range and need no index. Frequently read derived values (a trial's state and standing, a run's
counts and sums) are updated in the same transaction as the rows from which they are derived.

House rules. The write transaction reserves keys of `task`, `trial`, `call`, `response`,
`assessment` and `body` in blocks from `key_source`, so a whole batch is inserted without fetching
each key. An assessment is current unless its state is `superseded`. `value` is the score that
counts; `judged_value` is the grader's score.
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

VERSION: Final = "0013"
"""The latest migration, whose result is these tables."""

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
"""Alembic's version table with a single row.

Its metadata is separate, because Alembic creates the table.
"""


def _filled(kind: type[TypeEngine[Any]] | TypeEngine[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, kind, nullable=False) for name in names]


def _nullable(kind: type[TypeEngine[Any]] | TypeEngine[Any], *names: str) -> list[Column[Any]]:
    return [Column(name, kind) for name in names]


def _references(*tables: str) -> list[Column[Any]]:
    """Return a column `TABLE_key` for each table: a foreign key that may not be null."""
    return [
        Column(f"{name}_key", Key, ForeignKey(f"{name}.key"), nullable=False) for name in tables
    ]


def _for_deletions(column: str) -> Index:
    """Return an index on a foreign key column, only for PostgreSQL.

    Without this index PostgreSQL would scan the whole table for each row deleted from the
    referenced table. SQLite deletes imported rows without checking references (`Database.staging`).
    """
    return Index(None, column).ddl_if(dialect="postgresql")


key_source = Table(
    "key_source",
    metadata,
    Column("name", String(20), primary_key=True),
    Column("next", Key, nullable=False),
)
"""Next key of each table; the row `store` contains the store's id, and the row `changes` the number
of changes (`change_counter`).
"""

UNFINISHED_COPY: Final = "unfinished copy"
"""Name of the row of `key_source` that stands in a store only until another store has been copied
into it.
"""

# Measured over a million rows: a GROUP BY takes 2.16 s with the body in the row, 0.23 s on a narrow
# covering index.
body = Table(
    "body",
    metadata,
    Column("key", Key, primary_key=True, autoincrement=False),
    # Not text: models write NUL and lone surrogates, which PostgreSQL refuses in text.
    Column("content", LargeBinary, nullable=False),
)

suite = Table(
    "suite",
    metadata,
    Column("key", Key, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)

candidate = Table(
    "candidate",
    metadata,
    Column("key", Key, primary_key=True),
    Column("name", Text, nullable=False),
    Column("folded", Text, nullable=False, unique=True),
)
"""`folded`: the name in the form used for comparison. `name`: the first spelling."""

candidate_alias = Table(
    "candidate_alias",
    metadata,
    Column("folded", Text, primary_key=True),
    Column("candidate_key", Key, ForeignKey("candidate.key"), nullable=False),
)
"""Corrected names of candidates; each alias refers to one candidate."""

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
"""Append-only.

`detail`: JSON of the changed runs and the replaced aliases. `undoes`: the earlier event that this
event undoes.
"""

grader = Table(
    "grader",
    metadata,
    Column("key", Key, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)

criterion = Table(
    "criterion",
    metadata,
    Column("key", Key, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
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
    # Lists read one page of runs by these. Without them, summarising 20,000 runs takes about a
    # second.
    Index("ix_run_started", "started", "key"),
    Index("ix_run_suite_key", "suite_key"),
    Index("ix_run_state", "state"),
    Index("ix_run_regrade_of", "regrade_of"),
)
"""`judges`: JSON list of names. `settings`: JSON list of [judge, digest]. `regrade_of`: the run
whose responses this run grades.
"""

# Stored, because COUNT over a million trials takes a tenth of a second, on every page.
run_tally = Table(
    "run_tally",
    metadata,
    Column("run_key", Key, ForeignKey("run.key"), nullable=False),
    *_filled(String(12), "subject", "state"),
    Column("n", Key, nullable=False),
    PrimaryKeyConstraint("run_key", "subject", "state"),
)
"""Counters per run: trials by state, trials by standing, assessments by state."""

reservation = Table(
    "reservation",
    metadata,
    Column("run_key", Key, ForeignKey("run.key"), nullable=False),
    Column("owner", String(40), nullable=False),
    *_filled(Double, "usd", "most_usd"),
    PrimaryKeyConstraint("run_key", "owner"),
)
"""Sums over each process's calls in flight (`domain.budget`). After a process has ended, its `usd`
is booked as spent. The owner `job` represents all open batch jobs of the run; its row remains after
every process has ended.
"""

execution = Table(
    "execution",
    metadata,
    Column("run_key", Key, ForeignKey("run.key"), nullable=False),
    Column("owner", String(40), nullable=False),
    PrimaryKeyConstraint("run_key", "owner"),
)
"""Processes that execute a run; a row is invalid after its process has ended."""

stretch = Table(
    "stretch",
    metadata,
    Column("run_key", Key, ForeignKey("run.key"), primary_key=True, autoincrement=False),
    Column("since", String(30), nullable=False),
    Column("done", Key, nullable=False),
)
"""Time of the run's last start or resume, and its number of done or failed trials at that time;
used to estimate the time left.
"""

run_candidate = Table(
    "run_candidate",
    metadata,
    *_references("run", "candidate"),
    Column("position", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("identity", Text, nullable=False, default=""),
    PrimaryKeyConstraint("run_key", "candidate_key"),
)
"""`identity`: model and digest of the system prompt; empty if unknown
(`domain.candidate_identity`).
"""

run_grader = Table(
    "run_grader",
    metadata,
    *_references("run", "grader"),
    Column("reference", Boolean, nullable=False, default=False),
    PrimaryKeyConstraint("run_key", "grader_key"),
)
"""`reference`: True for people whose grades came with the data; no later grading replaces these
grades.
"""

run_criterion = Table(
    "run_criterion",
    metadata,
    *_references("run", "criterion"),
    PrimaryKeyConstraint("run_key", "criterion_key"),
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
"""A task's identity. `body_key`: the newest full text, shared by runs with an identical task."""

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
"""`owner`: the process that claimed the trial, while `state` is `running`. `rest`: the state after
the owner releases the trial.
"""

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
    # Only these replies are looked up by their request; an index over all calls would slow every
    # commit.
    Index(
        "ix_call_structured",
        "request_digest",
        sqlite_where=text("role = 'structurer'"),
        postgresql_where=text("role = 'structurer'"),
    ),
)
"""`body_key`: an unusable reply; a usable reply is stored in its response or assessment.
`tool_calls`: JSON of the reply's tool calls, which a resumed conversation needs.
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
"""Batches of requests at a provider (`domain.jobs`).

`owner`: the process that now sends or collects the job.
"""

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
"""The `custom_id` consists of the job's token and `number`. `visit`: the trial's `tries` when the
request was made. `usd`: reserved amount. `shares`: number of another trial's equal request whose
answer serves this request too. `failure`: JSON of a failed answer.
"""

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
"""Responses by models; snippets are stored with their task. `round`: above 1 if the candidate was
asked again after a harness fault; the last round counts.
"""

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
    # The review queue's seek, answered by the index alone: 0.57 ms (p50) per claim with a million
    # pending.
    Index("ix_assessment_state", "state", "key"),
    Index("ix_assessment_run_key", "run_key", "key"),
    # For a review of one task. Without it, each item read the whole run: 0.25 s at 100,000 trials.
    Index("ix_assessment_run_task", "run_key", "task_key"),
    _for_deletions("body_key"),
)
"""`candidate_key`: null in joint assessments. `state_before`: the state before `superseded`.
`response_limit`: the graded responses have keys below it. `body_key`: null for a bare score, whose
rows in `score` and `grade` are complete.
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
"""`place`: the candidate's position, from 1, in the order drawn for the judge; null for a single
candidate or without a draw.
"""

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
    Column("stated_by", Text),
    Index("ix_review_event_assessment_key", "assessment_key"),
)
"""Append-only. `corrections`: JSON list of [candidate, criterion or null, score]. `hash`: over the
row and `previous_hash`. `stated_by`: the person who gave the reviewer's name; null if this was the
reviewer, or for decisions before schema 0012.
"""

lease = Table(
    "lease",
    metadata,
    Column("assessment_key", Key, primary_key=True, autoincrement=False),
    Column("desk", Text, nullable=False),
    Column("until", Double, nullable=False),
)
"""Leases of pending assessments to desks (browser tabs).

`until`: seconds since 1970. These rows may be lost without harm.
"""

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
"""Append-only. `prompt`, `rubric`, `parameters`: digests of these parts of the judge's requests.
`version`: counts from 1 for each identity.
"""

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
"""Imported runs, one per row. `digest`: over the file's bytes and the import options. `dataset`:
digest of the requests, independent of their order and model. `identity`, `version`: the harness's
id of the evaluation, and its version. `content`: digest of all answers and grades, independent of
their order and file. `answers`: digest of candidates and answers only. `run_key`: null for tasks
without a run. `owner`: set until the whole run is stored.
"""

imported_response = Table(
    "imported_response",
    metadata,
    # The key comes first: in `PRAGMA integrity_check`, SQLite 3.40 takes a column between two key
    # columns for NULL.
    *_filled(Key, "identity", "trial_key", "candidate_key", "run_key"),
    PrimaryKeyConstraint("identity", "trial_key", "candidate_key"),
    sqlite_with_rowid=False,
)
"""A harness's or provider's id of a response, as 63 bits of a digest; another file with the same
row is recognised by it.
"""

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
"""Append-only.

Events that deleted a run, replaced it with the import of a later version (`other_key`), or restored
it.
"""

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
    Column("stated_by", Text),
    Index("ix_control_event_assessment_key", "assessment_key"),
)
"""Decisions on control items: the columns of `review_event`, but without its hash chain, its log
and its exports.
"""

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
"""Control items: assessments with the purpose `control`. They share the keys of `assessment`, so
reviewers cannot recognise them by number. No list, count, statistic or export reads this table.
`body`: the grades shown, and the origin.
"""

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
"""Observations of the review process, append-only; no statistic uses them. `assessment_key`: 0 for
a whole run; the key of a `control_item` if `purpose` is `control`.
"""

secret = Table(
    "secret",
    metadata,
    Column("name", String(20), primary_key=True),
    Column("value", LargeBinary, nullable=False),
)
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
"""Invitations to the web app.

`digest`: hash of the token, which itself is not stored. `revoked`: time of the revocation.
"""

session = Table(
    "session",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("role", String(12), nullable=False),
    Column("name", Text),
    Column("granted_by", String(64), nullable=False),
    *_filled(String(30), "begun", "until"),
    Column("ended", String(30)),
    Index("ix_session_granted_by", "granted_by"),
)
"""Signed-in browsers. `digest`: hash of the cookie. `name`: null for the owner. `granted_by`: hash
of the token that was presented; an invitation's token opens one session only. `ended`: time of the
sign-out.
"""

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
"""Arena votes, append-only, hashed like review events. `once`: the idempotency key, under its name
in results folders. `choice`: `undo` if the row takes back the vote `undoes`; all other votes are
valid. Candidates are identified by position in `run_candidate`, which a rename does not change.
"""
