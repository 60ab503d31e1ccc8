"""Every table of the first release. Older stores are not upgraded; their runs can be restored from the results folder.

Until that release this file is edited together with `schema.py`; after it, it never changes again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

_REFERENCES = (
    *((table, "body_key") for table in ("task", "run_task", "response", "assessment")),
    *((table, "assessment_key") for table in ("score", "grade")),
)


def upgrade() -> None:
    op.create_table(
        "body",
        sa.Column("key", KEY, autoincrement=False, nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_body")),
    )
    op.create_table(
        "candidate",
        sa.Column("key", KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_candidate")),
        sa.UniqueConstraint("folded", name=op.f("uq_candidate_folded")),
    )
    op.create_table(
        "candidate_event",
        sa.Column("id", KEY, nullable=False),
        sa.Column("verb", sa.String(length=12), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("source_key", KEY, nullable=False),
        sa.Column("target_key", KEY, nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.String(length=30), nullable=False),
        sa.Column("undoes", KEY, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_candidate_event")),
    )
    op.create_table(
        "criterion",
        sa.Column("key", KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_criterion")),
        sa.UniqueConstraint("name", name=op.f("uq_criterion_name")),
    )
    op.create_table(
        "grader",
        sa.Column("key", KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_grader")),
        sa.UniqueConstraint("name", name=op.f("uq_grader_name")),
    )
    op.create_table(
        "key_source",
        sa.Column("name", sa.String(length=20), nullable=False),
        sa.Column("next", KEY, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_key_source")),
    )
    op.create_table(
        "lease",
        sa.Column("assessment_key", KEY, autoincrement=False, nullable=False),
        sa.Column("desk", sa.Text(), nullable=False),
        sa.Column("until", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("assessment_key", name=op.f("pk_lease")),
    )
    op.create_table(
        "suite",
        sa.Column("key", KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_suite")),
        sa.UniqueConstraint("name", name=op.f("uq_suite_name")),
    )
    op.create_table(
        "calibration",
        sa.Column("key", KEY, nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("prompt", sa.String(length=32), nullable=False),
        sa.Column("rubric", sa.String(length=32), nullable=False),
        sa.Column("parameters", sa.String(length=32), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("tier", sa.String(length=20), nullable=False),
        sa.Column("at", sa.String(length=30), nullable=False),
        sa.Column("body_key", KEY, nullable=False),
        sa.ForeignKeyConstraint(["body_key"], ["body.key"], name=op.f("fk_calibration_body_key_body")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_calibration")),
        sa.UniqueConstraint(
            "model",
            "prompt",
            "rubric",
            "parameters",
            "version",
            name=op.f("uq_calibration_model_prompt_rubric_parameters_version"),
        ),
    )
    op.create_table(
        "candidate_alias",
        sa.Column("folded", sa.Text(), nullable=False),
        sa.Column("candidate_key", KEY, nullable=False),
        sa.ForeignKeyConstraint(
            ["candidate_key"], ["candidate.key"], name=op.f("fk_candidate_alias_candidate_key_candidate")
        ),
        sa.PrimaryKeyConstraint("folded", name=op.f("pk_candidate_alias")),
    )
    op.create_table(
        "suite_copy",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("body_key", KEY, nullable=False),
        sa.ForeignKeyConstraint(["body_key"], ["body.key"], name=op.f("fk_suite_copy_body_key_body")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_suite_copy")),
    )
    op.create_table(
        "task",
        sa.Column("key", KEY, autoincrement=False, nullable=False),
        sa.Column("suite_key", KEY, nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("family", sa.Text(), nullable=False),
        sa.Column("body_key", KEY, nullable=False),
        sa.Column("body_digest", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["body_key"], ["body.key"], name=op.f("fk_task_body_key_body")),
        sa.ForeignKeyConstraint(["suite_key"], ["suite.key"], name=op.f("fk_task_suite_key_suite")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_task")),
        sa.UniqueConstraint("suite_key", "task_id", "digest", name=op.f("uq_task_suite_key_task_id_digest")),
    )
    op.create_table(
        "run",
        sa.Column("key", KEY, nullable=False),
        sa.Column("id", sa.String(length=200), nullable=False),
        sa.Column("suite_key", KEY, nullable=False),
        sa.Column("suite_digest", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("started", sa.String(length=30), nullable=False),
        sa.Column("finished", sa.String(length=30), nullable=True),
        sa.Column("batch_id", sa.Text(), nullable=True),
        sa.Column("budget_usd", sa.Double(), nullable=True),
        sa.Column("spent_usd", sa.Double(), nullable=False),
        sa.Column("calls", KEY, nullable=False),
        sa.Column("unpriced_calls", KEY, nullable=False),
        sa.Column("input_tokens", KEY, nullable=False),
        sa.Column("output_tokens", KEY, nullable=False),
        sa.Column("cost_usd", sa.Double(), nullable=False),
        sa.Column("judges", sa.Text(), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("plan_key", KEY, nullable=False),
        sa.Column("regrade_of", KEY, nullable=True),
        sa.ForeignKeyConstraint(["plan_key"], ["body.key"], name=op.f("fk_run_plan_key_body")),
        sa.ForeignKeyConstraint(["suite_digest"], ["suite_copy.digest"], name=op.f("fk_run_suite_digest_suite_copy")),
        sa.ForeignKeyConstraint(["suite_key"], ["suite.key"], name=op.f("fk_run_suite_key_suite")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_run")),
        sa.UniqueConstraint("id", name=op.f("uq_run_id")),
    )
    op.create_index("ix_run_regrade_of", "run", ["regrade_of"])
    op.create_index("ix_run_started", "run", ["started", "key"])
    op.create_index("ix_run_state", "run", ["state"])
    op.create_index("ix_run_suite_key", "run", ["suite_key"])
    op.create_table(
        "execution",
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("owner", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_execution_run_key_run")),
        sa.PrimaryKeyConstraint("run_key", "owner", name=op.f("pk_execution")),
    )
    op.create_table(
        "imported",
        sa.Column("key", KEY, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("format", sa.String(length=40), nullable=False),
        sa.Column("dataset", sa.String(length=64), nullable=True),
        sa.Column("suite_key", KEY, nullable=False),
        sa.Column("run_key", KEY, nullable=True),
        sa.Column("owner", sa.String(length=40), nullable=True),
        sa.Column("at", sa.String(length=30), nullable=False),
        sa.Column("identity", sa.Text(), nullable=True),
        sa.Column("version", sa.Text(), nullable=True),
        sa.Column("content", sa.String(length=32), nullable=True),
        sa.Column("answers", sa.String(length=32), nullable=True),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_imported_run_key_run")),
        sa.ForeignKeyConstraint(["suite_key"], ["suite.key"], name=op.f("fk_imported_suite_key_suite")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_imported")),
    )
    op.create_index("ix_imported_answers", "imported", ["answers"])
    op.create_index("ix_imported_content", "imported", ["content"])
    op.create_index("ix_imported_dataset", "imported", ["dataset"])
    op.create_index("ix_imported_digest", "imported", ["digest"])
    op.create_index("ix_imported_identity", "imported", ["identity"])
    op.create_table(
        "imported_response",
        sa.Column("identity", KEY, nullable=False),
        sa.Column("trial_key", KEY, nullable=False),
        sa.Column("candidate_key", KEY, nullable=False),
        sa.Column("run_key", KEY, nullable=False),
        sa.PrimaryKeyConstraint("identity", "trial_key", "candidate_key", name=op.f("pk_imported_response")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "run_event",
        sa.Column("id", KEY, nullable=False),
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("verb", sa.String(length=12), nullable=False),
        sa.Column("before", sa.String(length=12), nullable=False),
        sa.Column("after", sa.String(length=12), nullable=False),
        sa.Column("other_key", KEY, nullable=True),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.String(length=30), nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_run_event_run_key_run")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run_event")),
    )
    op.create_index("ix_run_event_run_key", "run_event", ["run_key"])
    op.create_table(
        "observation",
        sa.Column("id", KEY, nullable=False),
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.Column("purpose", sa.String(length=12), nullable=False),
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("assessment_key", KEY, nullable=False),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("at", sa.String(length=30), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_observation_run_key_run")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_observation")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_observation_idempotency_key")),
    )
    op.create_index("ix_observation_assessment_key", "observation", ["assessment_key", "kind"])
    op.create_index("ix_observation_reviewer_kind", "observation", ["reviewer", "kind"])
    op.create_index("ix_observation_run_kind", "observation", ["run_key", "kind"])
    op.create_table(
        "reservation",
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("owner", sa.String(length=40), nullable=False),
        sa.Column("usd", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_reservation_run_key_run")),
        sa.PrimaryKeyConstraint("run_key", "owner", name=op.f("pk_reservation")),
    )
    op.create_table(
        "run_candidate",
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("candidate_key", KEY, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["candidate_key"], ["candidate.key"], name=op.f("fk_run_candidate_candidate_key_candidate")
        ),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_run_candidate_run_key_run")),
        sa.PrimaryKeyConstraint("run_key", "candidate_key", name=op.f("pk_run_candidate")),
    )
    op.create_table(
        "run_criterion",
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("criterion_key", KEY, nullable=False),
        sa.ForeignKeyConstraint(
            ["criterion_key"], ["criterion.key"], name=op.f("fk_run_criterion_criterion_key_criterion")
        ),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_run_criterion_run_key_run")),
        sa.PrimaryKeyConstraint("run_key", "criterion_key", name=op.f("pk_run_criterion")),
    )
    op.create_table(
        "run_grader",
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("grader_key", KEY, nullable=False),
        sa.Column("reference", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["grader_key"], ["grader.key"], name=op.f("fk_run_grader_grader_key_grader")),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_run_grader_run_key_run")),
        sa.PrimaryKeyConstraint("run_key", "grader_key", name=op.f("pk_run_grader")),
    )
    op.create_table(
        "run_tag",
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("task_key", KEY, nullable=False),
        sa.Column("tag", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_run_tag_run_key_run")),
        sa.ForeignKeyConstraint(["task_key"], ["task.key"], name=op.f("fk_run_tag_task_key_task")),
        sa.PrimaryKeyConstraint("run_key", "task_key", "tag", name=op.f("pk_run_tag")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "run_tally",
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("subject", sa.String(length=12), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("n", KEY, nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_run_tally_run_key_run")),
        sa.PrimaryKeyConstraint("run_key", "subject", "state", name=op.f("pk_run_tally")),
    )
    op.create_table(
        "run_task",
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("task_key", KEY, nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("thing", sa.Text(), nullable=False),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.Column("trials", sa.Integer(), nullable=False),
        sa.Column("body_key", KEY, nullable=False),
        sa.ForeignKeyConstraint(["body_key"], ["body.key"], name=op.f("fk_run_task_body_key_body")),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_run_task_run_key_run")),
        sa.ForeignKeyConstraint(["task_key"], ["task.key"], name=op.f("fk_run_task_task_key_task")),
        sa.PrimaryKeyConstraint("run_key", "position", name=op.f("pk_run_task")),
        sa.UniqueConstraint("run_key", "task_id", name=op.f("uq_run_task_run_key_task_id")),
        sa.UniqueConstraint("run_key", "task_key", name=op.f("uq_run_task_run_key_task_key")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "stretch",
        sa.Column("run_key", KEY, autoincrement=False, nullable=False),
        sa.Column("since", sa.String(length=30), nullable=False),
        sa.Column("done", KEY, nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_stretch_run_key_run")),
        sa.PrimaryKeyConstraint("run_key", name=op.f("pk_stretch")),
    )
    op.create_table(
        "trial",
        sa.Column("key", KEY, autoincrement=False, nullable=False),
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("task_key", KEY, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("k", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("standing", sa.String(length=12), nullable=False),
        sa.Column("rest", sa.String(length=12), nullable=True),
        sa.Column("owner", sa.String(length=40), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("fail_kind", sa.Text(), nullable=True),
        sa.Column("fail_fault", sa.String(length=12), nullable=True),
        sa.Column("fail_detail", sa.Text(), nullable=True),
        sa.Column("fail_tries", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_trial_run_key_run")),
        sa.ForeignKeyConstraint(["task_key"], ["task.key"], name=op.f("fk_trial_task_key_task")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_trial")),
        sa.UniqueConstraint("run_key", "position", "k", name=op.f("uq_trial_run_key_position_k")),
    )
    op.create_index("ix_trial_claim", "trial", ["run_key", "state", "position", "k"])
    op.create_table(
        "assessment",
        sa.Column("key", KEY, autoincrement=False, nullable=False),
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("task_key", KEY, nullable=False),
        sa.Column("trial_key", KEY, nullable=False),
        sa.Column("grader_key", KEY, nullable=False),
        sa.Column("candidate_key", KEY, nullable=True),
        sa.Column("by_model", sa.Boolean(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("state_before", sa.String(length=12), nullable=True),
        sa.Column("flag_count", sa.Integer(), nullable=False),
        sa.Column("response_limit", KEY, nullable=False),
        sa.Column("call_key", KEY, nullable=True),
        sa.Column("body_key", KEY, nullable=True),
        sa.Column("created", sa.String(length=30), nullable=False),
        sa.ForeignKeyConstraint(["body_key"], ["body.key"], name=op.f("fk_assessment_body_key_body")),
        sa.ForeignKeyConstraint(["trial_key"], ["trial.key"], name=op.f("fk_assessment_trial_key_trial")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_assessment")),
    )
    op.create_index("ix_assessment_run_key", "assessment", ["run_key", "key"])
    op.create_index("ix_assessment_run_state", "assessment", ["run_key", "state", "key"])
    op.create_index("ix_assessment_run_task", "assessment", ["run_key", "task_key"])
    op.create_index("ix_assessment_state", "assessment", ["state", "key"])
    op.create_index("ix_assessment_trial_key", "assessment", ["trial_key"])
    op.create_table(
        "call",
        sa.Column("key", KEY, autoincrement=False, nullable=False),
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("trial_key", KEY, nullable=False),
        sa.Column("role", sa.String(length=12), nullable=False),
        sa.Column("candidate_key", KEY, nullable=True),
        sa.Column("grader_key", KEY, nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("model_version", sa.Text(), nullable=True),
        sa.Column("finish_reason", sa.Text(), nullable=True),
        sa.Column("input_tokens", KEY, nullable=True),
        sa.Column("output_tokens", KEY, nullable=True),
        sa.Column("latency_s", sa.Double(), nullable=True),
        sa.Column("first_token_s", sa.Double(), nullable=True),
        sa.Column("cost_usd", sa.Double(), nullable=True),
        sa.Column("started", sa.String(length=30), nullable=False),
        sa.Column("fail_kind", sa.Text(), nullable=True),
        sa.Column("fail_fault", sa.String(length=12), nullable=True),
        sa.Column("fail_detail", sa.Text(), nullable=True),
        sa.Column("request_digest", sa.String(length=32), nullable=False),
        sa.Column("body_key", KEY, nullable=True),
        sa.ForeignKeyConstraint(["trial_key"], ["trial.key"], name=op.f("fk_call_trial_key_trial")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_call")),
    )
    op.create_index("ix_call_trial_key", "call", ["trial_key"])
    structured = sa.text("role = 'structurer'")
    op.create_index(
        "ix_call_structured", "call", ["request_digest"], sqlite_where=structured, postgresql_where=structured
    )
    op.create_table(
        "response",
        sa.Column("key", KEY, autoincrement=False, nullable=False),
        sa.Column("trial_key", KEY, nullable=False),
        sa.Column("candidate_key", KEY, nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("truncated", sa.Boolean(), nullable=False),
        sa.Column("call_key", KEY, nullable=True),
        sa.Column("body_key", KEY, nullable=False),
        sa.ForeignKeyConstraint(["body_key"], ["body.key"], name=op.f("fk_response_body_key_body")),
        sa.ForeignKeyConstraint(["trial_key"], ["trial.key"], name=op.f("fk_response_trial_key_trial")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_response")),
        sa.UniqueConstraint(
            "trial_key", "candidate_key", "round", name=op.f("uq_response_trial_key_candidate_key_round")
        ),
    )
    op.create_table(
        "vote",
        sa.Column("id", KEY, nullable=False),
        sa.Column("once", sa.Text(), nullable=True),
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("trial_key", KEY, nullable=False),
        sa.Column("left_place", sa.Integer(), nullable=False),
        sa.Column("right_place", sa.Integer(), nullable=False),
        sa.Column("choice", sa.String(length=12), nullable=False),
        sa.Column("undoes", KEY, nullable=True),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("active_ms", KEY, nullable=True),
        sa.Column("telling", sa.Boolean(), nullable=False),
        sa.Column("at", sa.String(length=30), nullable=False),
        sa.Column("previous_hash", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_vote_run_key_run")),
        sa.ForeignKeyConstraint(["trial_key"], ["trial.key"], name=op.f("fk_vote_trial_key_trial")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_vote")),
        sa.UniqueConstraint("once", name=op.f("uq_vote_once")),
        sa.UniqueConstraint("undoes", name=op.f("uq_vote_undoes")),
    )
    op.create_index("ix_vote_run_reviewer", "vote", ["run_key", "reviewer", "trial_key"])
    op.create_index("ix_vote_trial_key", "vote", ["trial_key"])
    op.create_table(
        "control_item",
        sa.Column("key", KEY, autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("source_key", KEY, nullable=False),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("made", sa.String(length=30), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["run.key"], name=op.f("fk_control_item_run_key_run")),
        sa.ForeignKeyConstraint(["source_key"], ["assessment.key"], name=op.f("fk_control_item_source_key_assessment")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_control_item")),
    )
    op.create_index("ix_control_item_reviewer", "control_item", ["reviewer", "run_key", "state"])
    op.create_index("ix_control_item_source_key", "control_item", ["source_key"])
    op.create_table(
        "control_event",
        sa.Column("id", KEY, nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("assessment_key", KEY, nullable=False),
        sa.Column("verb", sa.String(length=12), nullable=False),
        sa.Column("before", sa.String(length=12), nullable=False),
        sa.Column("after", sa.String(length=12), nullable=False),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("via", sa.String(length=12), nullable=False),
        sa.Column("displayed", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("corrections", sa.Text(), nullable=False),
        sa.Column("at", sa.String(length=30), nullable=False),
        sa.ForeignKeyConstraint(
            ["assessment_key"], ["control_item.key"], name=op.f("fk_control_event_assessment_key_control_item")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_control_event")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_control_event_idempotency_key")),
    )
    op.create_index("ix_control_event_assessment_key", "control_event", ["assessment_key"])
    op.create_table(
        "secret",
        sa.Column("name", sa.String(length=20), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_secret")),
    )
    op.create_table(
        "person",
        sa.Column("key", KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.String(length=12), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("invited", sa.String(length=30), nullable=False),
        sa.Column("revoked", sa.String(length=30), nullable=True),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_person")),
        sa.UniqueConstraint("digest", name=op.f("uq_person_digest")),
    )
    op.create_table(
        "grade",
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("assessment_key", KEY, nullable=False),
        sa.Column("candidate_key", KEY, nullable=False),
        sa.Column("criterion_key", KEY, nullable=False),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("judged_value", sa.Double(), nullable=True),
        sa.Column("raw", sa.Double(), nullable=True),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("confidence", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["assessment_key"], ["assessment.key"], name=op.f("fk_grade_assessment_key_assessment")
        ),
        sa.PrimaryKeyConstraint("run_key", "assessment_key", "candidate_key", "criterion_key", name=op.f("pk_grade")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "review_event",
        sa.Column("id", KEY, nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("assessment_key", KEY, nullable=False),
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("verb", sa.String(length=12), nullable=False),
        sa.Column("before", sa.String(length=12), nullable=False),
        sa.Column("after", sa.String(length=12), nullable=False),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("via", sa.String(length=12), nullable=False),
        sa.Column("displayed", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("corrections", sa.Text(), nullable=False),
        sa.Column("at", sa.String(length=30), nullable=False),
        sa.Column("previous_hash", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["assessment_key"], ["assessment.key"], name=op.f("fk_review_event_assessment_key_assessment")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_review_event")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_review_event_idempotency_key")),
    )
    op.create_index("ix_review_event_assessment_key", "review_event", ["assessment_key"])
    op.create_table(
        "score",
        sa.Column("run_key", KEY, nullable=False),
        sa.Column("assessment_key", KEY, nullable=False),
        sa.Column("candidate_key", KEY, nullable=False),
        sa.Column("task_key", KEY, nullable=False),
        sa.Column("trial_key", KEY, nullable=False),
        sa.Column("grader_key", KEY, nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("judged_value", sa.Double(), nullable=True),
        sa.Column("joint", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("place", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["assessment_key"], ["assessment.key"], name=op.f("fk_score_assessment_key_assessment")
        ),
        sa.PrimaryKeyConstraint("run_key", "assessment_key", "candidate_key", name=op.f("pk_score")),
        sqlite_with_rowid=False,
    )
    # ### end Alembic commands ###
    if op.get_bind().dialect.name == "postgresql":
        for table, column in _REFERENCES:
            op.create_index(f"ix_{table}_{column}", table, [column])
    sources = sa.table("key_source", sa.column("name"), sa.column("next"))
    keyed = ("task", "trial", "call", "response", "assessment", "body")
    op.bulk_insert(sources, [{"name": name, "next": 1} for name in keyed])
