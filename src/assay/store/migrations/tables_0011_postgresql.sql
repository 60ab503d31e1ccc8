CREATE TABLE key_source (
	name VARCHAR(20) NOT NULL, 
	next BIGINT NOT NULL, 
	CONSTRAINT pk_key_source PRIMARY KEY (name)
);
CREATE TABLE body (
	key BIGINT NOT NULL, 
	content BYTEA NOT NULL, 
	CONSTRAINT pk_body PRIMARY KEY (key)
);
CREATE TABLE suite (
	key BIGSERIAL NOT NULL, 
	name TEXT NOT NULL, 
	CONSTRAINT pk_suite PRIMARY KEY (key), 
	CONSTRAINT uq_suite_name UNIQUE (name)
);
CREATE TABLE candidate (
	key BIGSERIAL NOT NULL, 
	name TEXT NOT NULL, 
	folded TEXT NOT NULL, 
	CONSTRAINT pk_candidate PRIMARY KEY (key), 
	CONSTRAINT uq_candidate_folded UNIQUE (folded)
);
CREATE TABLE candidate_event (
	id BIGSERIAL NOT NULL, 
	verb VARCHAR(12) NOT NULL, 
	source TEXT NOT NULL, 
	target TEXT NOT NULL, 
	source_key BIGINT NOT NULL, 
	target_key BIGINT NOT NULL, 
	detail TEXT NOT NULL, 
	reviewer TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	at VARCHAR(30) NOT NULL, 
	undoes BIGINT, 
	CONSTRAINT pk_candidate_event PRIMARY KEY (id)
);
CREATE TABLE grader (
	key BIGSERIAL NOT NULL, 
	name TEXT NOT NULL, 
	CONSTRAINT pk_grader PRIMARY KEY (key), 
	CONSTRAINT uq_grader_name UNIQUE (name)
);
CREATE TABLE criterion (
	key BIGSERIAL NOT NULL, 
	name TEXT NOT NULL, 
	CONSTRAINT pk_criterion PRIMARY KEY (key), 
	CONSTRAINT uq_criterion_name UNIQUE (name)
);
CREATE TABLE lease (
	assessment_key BIGINT NOT NULL, 
	desk TEXT NOT NULL, 
	until DOUBLE PRECISION NOT NULL, 
	CONSTRAINT pk_lease PRIMARY KEY (assessment_key)
);
CREATE TABLE imported_response (
	identity BIGINT NOT NULL, 
	trial_key BIGINT NOT NULL, 
	candidate_key BIGINT NOT NULL, 
	run_key BIGINT NOT NULL, 
	CONSTRAINT pk_imported_response PRIMARY KEY (identity, trial_key, candidate_key)
);
CREATE TABLE secret (
	name VARCHAR(20) NOT NULL, 
	value BYTEA NOT NULL, 
	CONSTRAINT pk_secret PRIMARY KEY (name)
);
CREATE TABLE person (
	key BIGSERIAL NOT NULL, 
	name TEXT NOT NULL, 
	role VARCHAR(12) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	invited VARCHAR(30) NOT NULL, 
	revoked VARCHAR(30), 
	CONSTRAINT pk_person PRIMARY KEY (key), 
	CONSTRAINT uq_person_digest UNIQUE (digest)
);
CREATE TABLE candidate_alias (
	folded TEXT NOT NULL, 
	candidate_key BIGINT NOT NULL, 
	CONSTRAINT pk_candidate_alias PRIMARY KEY (folded), 
	CONSTRAINT fk_candidate_alias_candidate_key_candidate FOREIGN KEY(candidate_key) REFERENCES candidate (key)
);
CREATE TABLE suite_copy (
	digest VARCHAR(64) NOT NULL, 
	body_key BIGINT NOT NULL, 
	CONSTRAINT pk_suite_copy PRIMARY KEY (digest), 
	CONSTRAINT fk_suite_copy_body_key_body FOREIGN KEY(body_key) REFERENCES body (key)
);
CREATE TABLE task (
	key BIGINT NOT NULL, 
	suite_key BIGINT NOT NULL, 
	task_id TEXT NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	language TEXT NOT NULL, 
	family TEXT NOT NULL, 
	body_key BIGINT NOT NULL, 
	body_digest VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_task PRIMARY KEY (key), 
	CONSTRAINT uq_task_suite_key_task_id_digest UNIQUE (suite_key, task_id, digest), 
	CONSTRAINT fk_task_suite_key_suite FOREIGN KEY(suite_key) REFERENCES suite (key), 
	CONSTRAINT fk_task_body_key_body FOREIGN KEY(body_key) REFERENCES body (key)
);
CREATE TABLE calibration (
	key BIGSERIAL NOT NULL, 
	model TEXT NOT NULL, 
	prompt VARCHAR(32) NOT NULL, 
	rubric VARCHAR(32) NOT NULL, 
	parameters VARCHAR(32) NOT NULL, 
	version INTEGER NOT NULL, 
	tier VARCHAR(20) NOT NULL, 
	at VARCHAR(30) NOT NULL, 
	body_key BIGINT NOT NULL, 
	CONSTRAINT pk_calibration PRIMARY KEY (key), 
	CONSTRAINT uq_calibration_model_prompt_rubric_parameters_version UNIQUE (model, prompt, rubric, parameters, version), 
	CONSTRAINT fk_calibration_body_key_body FOREIGN KEY(body_key) REFERENCES body (key)
);
CREATE TABLE run (
	key BIGSERIAL NOT NULL, 
	id VARCHAR(200) NOT NULL, 
	suite_key BIGINT NOT NULL, 
	suite_digest VARCHAR(64) NOT NULL, 
	state VARCHAR(12) NOT NULL, 
	started VARCHAR(30) NOT NULL, 
	finished VARCHAR(30), 
	batch_id TEXT, 
	budget_usd DOUBLE PRECISION, 
	spent_usd DOUBLE PRECISION NOT NULL, 
	calls BIGINT NOT NULL, 
	unpriced_calls BIGINT NOT NULL, 
	input_tokens BIGINT NOT NULL, 
	output_tokens BIGINT NOT NULL, 
	cost_usd DOUBLE PRECISION NOT NULL, 
	judges TEXT NOT NULL, 
	settings TEXT NOT NULL, 
	plan_key BIGINT NOT NULL, 
	regrade_of BIGINT, 
	CONSTRAINT pk_run PRIMARY KEY (key), 
	CONSTRAINT uq_run_id UNIQUE (id), 
	CONSTRAINT fk_run_suite_key_suite FOREIGN KEY(suite_key) REFERENCES suite (key), 
	CONSTRAINT fk_run_suite_digest_suite_copy FOREIGN KEY(suite_digest) REFERENCES suite_copy (digest), 
	CONSTRAINT fk_run_plan_key_body FOREIGN KEY(plan_key) REFERENCES body (key)
);
CREATE TABLE run_tally (
	run_key BIGINT NOT NULL, 
	subject VARCHAR(12) NOT NULL, 
	state VARCHAR(12) NOT NULL, 
	n BIGINT NOT NULL, 
	CONSTRAINT pk_run_tally PRIMARY KEY (run_key, subject, state), 
	CONSTRAINT fk_run_tally_run_key_run FOREIGN KEY(run_key) REFERENCES run (key)
);
CREATE TABLE reservation (
	run_key BIGINT NOT NULL, 
	owner VARCHAR(40) NOT NULL, 
	usd DOUBLE PRECISION NOT NULL, 
	most_usd DOUBLE PRECISION NOT NULL, 
	CONSTRAINT pk_reservation PRIMARY KEY (run_key, owner), 
	CONSTRAINT fk_reservation_run_key_run FOREIGN KEY(run_key) REFERENCES run (key)
);
CREATE TABLE execution (
	run_key BIGINT NOT NULL, 
	owner VARCHAR(40) NOT NULL, 
	CONSTRAINT pk_execution PRIMARY KEY (run_key, owner), 
	CONSTRAINT fk_execution_run_key_run FOREIGN KEY(run_key) REFERENCES run (key)
);
CREATE TABLE stretch (
	run_key BIGINT NOT NULL, 
	since VARCHAR(30) NOT NULL, 
	done BIGINT NOT NULL, 
	CONSTRAINT pk_stretch PRIMARY KEY (run_key), 
	CONSTRAINT fk_stretch_run_key_run FOREIGN KEY(run_key) REFERENCES run (key)
);
CREATE TABLE run_candidate (
	run_key BIGINT NOT NULL, 
	candidate_key BIGINT NOT NULL, 
	position INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	identity TEXT NOT NULL, 
	CONSTRAINT pk_run_candidate PRIMARY KEY (run_key, candidate_key), 
	CONSTRAINT fk_run_candidate_run_key_run FOREIGN KEY(run_key) REFERENCES run (key), 
	CONSTRAINT fk_run_candidate_candidate_key_candidate FOREIGN KEY(candidate_key) REFERENCES candidate (key)
);
CREATE TABLE run_grader (
	run_key BIGINT NOT NULL, 
	grader_key BIGINT NOT NULL, 
	reference BOOLEAN NOT NULL, 
	CONSTRAINT pk_run_grader PRIMARY KEY (run_key, grader_key), 
	CONSTRAINT fk_run_grader_run_key_run FOREIGN KEY(run_key) REFERENCES run (key), 
	CONSTRAINT fk_run_grader_grader_key_grader FOREIGN KEY(grader_key) REFERENCES grader (key)
);
CREATE TABLE run_criterion (
	run_key BIGINT NOT NULL, 
	criterion_key BIGINT NOT NULL, 
	CONSTRAINT pk_run_criterion PRIMARY KEY (run_key, criterion_key), 
	CONSTRAINT fk_run_criterion_run_key_run FOREIGN KEY(run_key) REFERENCES run (key), 
	CONSTRAINT fk_run_criterion_criterion_key_criterion FOREIGN KEY(criterion_key) REFERENCES criterion (key)
);
CREATE TABLE run_task (
	run_key BIGINT NOT NULL, 
	position INTEGER NOT NULL, 
	task_key BIGINT NOT NULL, 
	task_id TEXT NOT NULL, 
	thing TEXT NOT NULL, 
	weight DOUBLE PRECISION NOT NULL, 
	trials INTEGER NOT NULL, 
	body_key BIGINT NOT NULL, 
	CONSTRAINT pk_run_task PRIMARY KEY (run_key, position), 
	CONSTRAINT uq_run_task_run_key_task_key UNIQUE (run_key, task_key), 
	CONSTRAINT uq_run_task_run_key_task_id UNIQUE (run_key, task_id), 
	CONSTRAINT fk_run_task_run_key_run FOREIGN KEY(run_key) REFERENCES run (key), 
	CONSTRAINT fk_run_task_task_key_task FOREIGN KEY(task_key) REFERENCES task (key), 
	CONSTRAINT fk_run_task_body_key_body FOREIGN KEY(body_key) REFERENCES body (key)
);
CREATE TABLE run_tag (
	run_key BIGINT NOT NULL, 
	task_key BIGINT NOT NULL, 
	tag TEXT NOT NULL, 
	CONSTRAINT pk_run_tag PRIMARY KEY (run_key, task_key, tag), 
	CONSTRAINT fk_run_tag_run_key_run FOREIGN KEY(run_key) REFERENCES run (key), 
	CONSTRAINT fk_run_tag_task_key_task FOREIGN KEY(task_key) REFERENCES task (key)
);
CREATE TABLE trial (
	key BIGINT NOT NULL, 
	run_key BIGINT NOT NULL, 
	task_key BIGINT NOT NULL, 
	position INTEGER NOT NULL, 
	k INTEGER NOT NULL, 
	state VARCHAR(12) NOT NULL, 
	standing VARCHAR(12) NOT NULL, 
	rest VARCHAR(12), 
	owner VARCHAR(40), 
	tries INTEGER NOT NULL, 
	fail_kind TEXT, 
	fail_fault VARCHAR(12), 
	fail_detail TEXT, 
	fail_tries INTEGER, 
	CONSTRAINT pk_trial PRIMARY KEY (key), 
	CONSTRAINT uq_trial_run_key_position_k UNIQUE (run_key, position, k), 
	CONSTRAINT fk_trial_run_key_run FOREIGN KEY(run_key) REFERENCES run (key), 
	CONSTRAINT fk_trial_task_key_task FOREIGN KEY(task_key) REFERENCES task (key)
);
CREATE TABLE job (
	key BIGSERIAL NOT NULL, 
	run_key BIGINT NOT NULL, 
	token VARCHAR(16) NOT NULL, 
	stage VARCHAR(12) NOT NULL, 
	place TEXT NOT NULL, 
	model TEXT NOT NULL, 
	base_url TEXT, 
	habits TEXT NOT NULL, 
	state VARCHAR(12) NOT NULL, 
	owner VARCHAR(40), 
	requests BIGINT NOT NULL, 
	input_file TEXT, 
	remote_id TEXT, 
	status TEXT, 
	detail TEXT, 
	created VARCHAR(30) NOT NULL, 
	sent VARCHAR(30), 
	ended VARCHAR(30), 
	log_key BIGINT, 
	CONSTRAINT pk_job PRIMARY KEY (key), 
	CONSTRAINT fk_job_run_key_run FOREIGN KEY(run_key) REFERENCES run (key), 
	CONSTRAINT uq_job_token UNIQUE (token), 
	CONSTRAINT fk_job_log_key_body FOREIGN KEY(log_key) REFERENCES body (key)
);
CREATE TABLE imported (
	key BIGSERIAL NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	name TEXT NOT NULL, 
	format VARCHAR(40) NOT NULL, 
	dataset VARCHAR(64), 
	suite_key BIGINT NOT NULL, 
	run_key BIGINT, 
	owner VARCHAR(40), 
	at VARCHAR(30) NOT NULL, 
	identity TEXT, 
	version TEXT, 
	content VARCHAR(32), 
	answers VARCHAR(32), 
	CONSTRAINT pk_imported PRIMARY KEY (key), 
	CONSTRAINT fk_imported_suite_key_suite FOREIGN KEY(suite_key) REFERENCES suite (key), 
	CONSTRAINT fk_imported_run_key_run FOREIGN KEY(run_key) REFERENCES run (key)
);
CREATE TABLE run_event (
	id BIGSERIAL NOT NULL, 
	run_key BIGINT NOT NULL, 
	verb VARCHAR(12) NOT NULL, 
	before VARCHAR(12) NOT NULL, 
	after VARCHAR(12) NOT NULL, 
	other_key BIGINT, 
	reviewer TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	at VARCHAR(30) NOT NULL, 
	CONSTRAINT pk_run_event PRIMARY KEY (id), 
	CONSTRAINT fk_run_event_run_key_run FOREIGN KEY(run_key) REFERENCES run (key)
);
CREATE TABLE observation (
	id BIGSERIAL NOT NULL, 
	kind VARCHAR(12) NOT NULL, 
	purpose VARCHAR(12) NOT NULL, 
	run_key BIGINT NOT NULL, 
	assessment_key BIGINT NOT NULL, 
	reviewer TEXT NOT NULL, 
	at VARCHAR(30) NOT NULL, 
	idempotency_key TEXT NOT NULL, 
	body BYTEA NOT NULL, 
	CONSTRAINT pk_observation PRIMARY KEY (id), 
	CONSTRAINT fk_observation_run_key_run FOREIGN KEY(run_key) REFERENCES run (key), 
	CONSTRAINT uq_observation_idempotency_key UNIQUE (idempotency_key)
);
CREATE TABLE call (
	key BIGINT NOT NULL, 
	run_key BIGINT NOT NULL, 
	trial_key BIGINT NOT NULL, 
	role VARCHAR(12) NOT NULL, 
	candidate_key BIGINT, 
	grader_key BIGINT, 
	attempt INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	model TEXT NOT NULL, 
	model_version TEXT, 
	finish_reason TEXT, 
	input_tokens BIGINT, 
	output_tokens BIGINT, 
	latency_s DOUBLE PRECISION, 
	first_token_s DOUBLE PRECISION, 
	cost_usd DOUBLE PRECISION, 
	started VARCHAR(30) NOT NULL, 
	fail_kind TEXT, 
	fail_fault VARCHAR(12), 
	fail_detail TEXT, 
	request_digest VARCHAR(32) NOT NULL, 
	body_key BIGINT, 
	tool_calls TEXT, 
	CONSTRAINT pk_call PRIMARY KEY (key), 
	CONSTRAINT fk_call_trial_key_trial FOREIGN KEY(trial_key) REFERENCES trial (key)
);
CREATE TABLE job_request (
	job_key BIGINT NOT NULL, 
	number BIGINT NOT NULL, 
	trial_key BIGINT NOT NULL, 
	role VARCHAR(12) NOT NULL, 
	digest VARCHAR(32) NOT NULL, 
	visit INTEGER NOT NULL, 
	state VARCHAR(12) NOT NULL, 
	usd DOUBLE PRECISION NOT NULL, 
	shares BIGINT, 
	failure TEXT, 
	CONSTRAINT pk_job_request PRIMARY KEY (job_key, number), 
	CONSTRAINT fk_job_request_job_key_job FOREIGN KEY(job_key) REFERENCES job (key), 
	CONSTRAINT fk_job_request_trial_key_trial FOREIGN KEY(trial_key) REFERENCES trial (key)
);
CREATE TABLE response (
	key BIGINT NOT NULL, 
	trial_key BIGINT NOT NULL, 
	candidate_key BIGINT NOT NULL, 
	round INTEGER NOT NULL, 
	truncated BOOLEAN NOT NULL, 
	call_key BIGINT, 
	body_key BIGINT NOT NULL, 
	CONSTRAINT pk_response PRIMARY KEY (key), 
	CONSTRAINT uq_response_trial_key_candidate_key_round UNIQUE (trial_key, candidate_key, round), 
	CONSTRAINT fk_response_trial_key_trial FOREIGN KEY(trial_key) REFERENCES trial (key), 
	CONSTRAINT fk_response_body_key_body FOREIGN KEY(body_key) REFERENCES body (key)
);
CREATE TABLE assessment (
	key BIGINT NOT NULL, 
	run_key BIGINT NOT NULL, 
	task_key BIGINT NOT NULL, 
	trial_key BIGINT NOT NULL, 
	grader_key BIGINT NOT NULL, 
	candidate_key BIGINT, 
	by_model BOOLEAN NOT NULL, 
	attempt INTEGER NOT NULL, 
	state VARCHAR(12) NOT NULL, 
	state_before VARCHAR(12), 
	flag_count INTEGER NOT NULL, 
	response_limit BIGINT NOT NULL, 
	call_key BIGINT, 
	body_key BIGINT, 
	created VARCHAR(30) NOT NULL, 
	CONSTRAINT pk_assessment PRIMARY KEY (key), 
	CONSTRAINT fk_assessment_trial_key_trial FOREIGN KEY(trial_key) REFERENCES trial (key), 
	CONSTRAINT fk_assessment_body_key_body FOREIGN KEY(body_key) REFERENCES body (key)
);
CREATE TABLE vote (
	id BIGSERIAL NOT NULL, 
	once TEXT, 
	run_key BIGINT NOT NULL, 
	trial_key BIGINT NOT NULL, 
	left_place INTEGER NOT NULL, 
	right_place INTEGER NOT NULL, 
	choice VARCHAR(12) NOT NULL, 
	undoes BIGINT, 
	reviewer TEXT NOT NULL, 
	active_ms BIGINT, 
	telling BOOLEAN NOT NULL, 
	at VARCHAR(30) NOT NULL, 
	previous_hash VARCHAR(64) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_vote PRIMARY KEY (id), 
	CONSTRAINT uq_vote_once UNIQUE (once), 
	CONSTRAINT fk_vote_run_key_run FOREIGN KEY(run_key) REFERENCES run (key), 
	CONSTRAINT fk_vote_trial_key_trial FOREIGN KEY(trial_key) REFERENCES trial (key), 
	CONSTRAINT uq_vote_undoes UNIQUE (undoes)
);
CREATE TABLE score (
	run_key BIGINT NOT NULL, 
	assessment_key BIGINT NOT NULL, 
	candidate_key BIGINT NOT NULL, 
	task_key BIGINT NOT NULL, 
	trial_key BIGINT NOT NULL, 
	grader_key BIGINT NOT NULL, 
	value DOUBLE PRECISION, 
	judged_value DOUBLE PRECISION, 
	joint BOOLEAN NOT NULL, 
	state VARCHAR(12) NOT NULL, 
	place INTEGER, 
	CONSTRAINT pk_score PRIMARY KEY (run_key, assessment_key, candidate_key), 
	CONSTRAINT fk_score_assessment_key_assessment FOREIGN KEY(assessment_key) REFERENCES assessment (key)
);
CREATE TABLE grade (
	run_key BIGINT NOT NULL, 
	assessment_key BIGINT NOT NULL, 
	candidate_key BIGINT NOT NULL, 
	criterion_key BIGINT NOT NULL, 
	weight DOUBLE PRECISION NOT NULL, 
	value DOUBLE PRECISION, 
	judged_value DOUBLE PRECISION, 
	raw DOUBLE PRECISION, 
	low DOUBLE PRECISION, 
	high DOUBLE PRECISION, 
	confidence DOUBLE PRECISION, 
	CONSTRAINT pk_grade PRIMARY KEY (run_key, assessment_key, candidate_key, criterion_key), 
	CONSTRAINT fk_grade_assessment_key_assessment FOREIGN KEY(assessment_key) REFERENCES assessment (key)
);
CREATE TABLE review_event (
	id BIGSERIAL NOT NULL, 
	idempotency_key TEXT, 
	assessment_key BIGINT NOT NULL, 
	run_key BIGINT NOT NULL, 
	verb VARCHAR(12) NOT NULL, 
	before VARCHAR(12) NOT NULL, 
	after VARCHAR(12) NOT NULL, 
	reviewer TEXT NOT NULL, 
	via VARCHAR(12) NOT NULL, 
	displayed BOOLEAN NOT NULL, 
	reason TEXT NOT NULL, 
	note TEXT NOT NULL, 
	corrections TEXT NOT NULL, 
	at VARCHAR(30) NOT NULL, 
	previous_hash VARCHAR(64) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_review_event PRIMARY KEY (id), 
	CONSTRAINT uq_review_event_idempotency_key UNIQUE (idempotency_key), 
	CONSTRAINT fk_review_event_assessment_key_assessment FOREIGN KEY(assessment_key) REFERENCES assessment (key)
);
CREATE TABLE control_item (
	key BIGINT NOT NULL, 
	kind VARCHAR(12) NOT NULL, 
	run_key BIGINT NOT NULL, 
	source_key BIGINT NOT NULL, 
	reviewer TEXT NOT NULL, 
	made VARCHAR(30) NOT NULL, 
	attempt INTEGER NOT NULL, 
	state VARCHAR(12) NOT NULL, 
	body BYTEA NOT NULL, 
	CONSTRAINT pk_control_item PRIMARY KEY (key), 
	CONSTRAINT fk_control_item_run_key_run FOREIGN KEY(run_key) REFERENCES run (key), 
	CONSTRAINT fk_control_item_source_key_assessment FOREIGN KEY(source_key) REFERENCES assessment (key)
);
CREATE TABLE control_event (
	id BIGSERIAL NOT NULL, 
	idempotency_key TEXT, 
	assessment_key BIGINT NOT NULL, 
	verb VARCHAR(12) NOT NULL, 
	before VARCHAR(12) NOT NULL, 
	after VARCHAR(12) NOT NULL, 
	reviewer TEXT NOT NULL, 
	via VARCHAR(12) NOT NULL, 
	displayed BOOLEAN NOT NULL, 
	reason TEXT NOT NULL, 
	note TEXT NOT NULL, 
	corrections TEXT NOT NULL, 
	at VARCHAR(30) NOT NULL, 
	CONSTRAINT pk_control_event PRIMARY KEY (id), 
	CONSTRAINT uq_control_event_idempotency_key UNIQUE (idempotency_key), 
	CONSTRAINT fk_control_event_assessment_key_control_item FOREIGN KEY(assessment_key) REFERENCES control_item (key)
);
CREATE TABLE assay_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT assay_version_pkc PRIMARY KEY (version_num)
);
CREATE INDEX ix_assessment_body_key ON assessment (body_key);
CREATE INDEX ix_assessment_run_key ON assessment (run_key, key);
CREATE INDEX ix_assessment_run_state ON assessment (run_key, state, key);
CREATE INDEX ix_assessment_run_task ON assessment (run_key, task_key);
CREATE INDEX ix_assessment_state ON assessment (state, key);
CREATE INDEX ix_assessment_trial_key ON assessment (trial_key);
CREATE INDEX ix_call_structured ON call (request_digest) WHERE role = 'structurer';
CREATE INDEX ix_call_trial_key ON call (trial_key);
CREATE INDEX ix_control_event_assessment_key ON control_event (assessment_key);
CREATE INDEX ix_control_item_reviewer ON control_item (reviewer, run_key, state);
CREATE INDEX ix_control_item_source_key ON control_item (source_key);
CREATE INDEX ix_grade_assessment_key ON grade (assessment_key);
CREATE INDEX ix_imported_answers ON imported (answers);
CREATE INDEX ix_imported_content ON imported (content);
CREATE INDEX ix_imported_dataset ON imported (dataset);
CREATE INDEX ix_imported_digest ON imported (digest);
CREATE INDEX ix_imported_identity ON imported (identity);
CREATE INDEX ix_job_log_key ON job (log_key);
CREATE INDEX ix_job_request_trial_key ON job_request (trial_key);
CREATE INDEX ix_job_run_key ON job (run_key);
CREATE INDEX ix_observation_assessment_key ON observation (assessment_key, kind);
CREATE INDEX ix_observation_reviewer_kind ON observation (reviewer, kind);
CREATE INDEX ix_observation_run_kind ON observation (run_key, kind);
CREATE INDEX ix_response_body_key ON response (body_key);
CREATE INDEX ix_review_event_assessment_key ON review_event (assessment_key);
CREATE INDEX ix_run_event_run_key ON run_event (run_key);
CREATE INDEX ix_run_regrade_of ON run (regrade_of);
CREATE INDEX ix_run_started ON run (started, key);
CREATE INDEX ix_run_state ON run (state);
CREATE INDEX ix_run_suite_key ON run (suite_key);
CREATE INDEX ix_run_task_body_key ON run_task (body_key);
CREATE INDEX ix_score_assessment_key ON score (assessment_key);
CREATE INDEX ix_task_body_key ON task (body_key);
CREATE INDEX ix_trial_claim ON trial (run_key, state, position, k);
CREATE INDEX ix_vote_run_reviewer ON vote (run_key, reviewer, trial_key);
CREATE INDEX ix_vote_trial_key ON vote (trial_key);
