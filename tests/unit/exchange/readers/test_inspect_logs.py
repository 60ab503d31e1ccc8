"""Inspect logs: archives and JSON, epochs, limits, errors, graders, edits, and archives made to
harm.
"""

from __future__ import annotations

import json
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from tests.support import harness_files as files
from tests.support.read_files import Read, read_files

from assay.domain.failure import Fault
from assay.domain.import_records import GradedBy


def read_log(folder: Path, *samples: dict[str, Any], **more: Any) -> Read:
    return read_files(files.put(folder / "log.json", files.inspect_log(*samples, **more)))


def read_value(folder: Path, value: Any) -> list[tuple[str, float | None, float | None]]:
    read = read_log(folder, files.inspect_sample(1, 1, value))
    return [(grade.criterion, grade.score, grade.raw_score) for grade in read.assessments[0].grades]


def test_epochs_are_trials(tmp_path: Path) -> None:
    read = read_files(files.inspect(tmp_path))
    assert read.counts == (1, 2, 4, 4)
    assert not read.skipped
    assert read.scores("match") == {
        ("1", "mockllm/tiny", 1): 1.0,
        ("1", "mockllm/tiny", 2): 1.0,
        ("2", "mockllm/tiny", 1): 1.0,
        ("2", "mockllm/tiny", 2): 0.0,
    }
    assert (read.runs[0].started, read.runs[0].complete) == ("2026-03-01T09:00:00.000Z", True)


def test_a_key_in_the_arguments_of_a_model_is_not_kept(tmp_path: Path) -> None:
    assert "sk-never" not in json.dumps(read_files(files.inspect(tmp_path)).runs[0].provenance)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("C", [("", 1.0, 1.0)]),
        ("P", [("", 0.5, 0.5)]),
        ("I", [("", 0.0, 0.0)]),
        ("N", [("", 0.0, 0.0)]),
        (0.25, [("", 0.25, 0.25)]),
        (True, [("", 1.0, 1.0)]),
        ("0.5", [("", 0.5, 0.5)]),
        (7, [("", None, 7.0)]),
        ("quite good", [("", None, None)]),
        (None, [("", None, None)]),
        ({"style": 1, "facts": "I"}, [("style", 1.0, 1.0), ("facts", 0.0, 0.0)]),
        ([1, 0], [("match[0]", 1.0, 1.0), ("match[1]", 0.0, 0.0)]),
    ],
)
def test_a_value_becomes_a_score_only_where_its_scale_is_known(
    tmp_path: Path, value: Any, expected: Any
) -> None:
    assert read_value(tmp_path, value) == expected


def test_a_score_of_nan_is_none_and_does_not_hide_the_log(tmp_path: Path) -> None:
    assert read_value(tmp_path, float("nan")) == [("", None, None)]


def test_scores_without_a_scale_are_said_to_be_so(tmp_path: Path) -> None:
    read = read_log(tmp_path, files.inspect_sample(1, 1, 7))
    assert (
        "1 scores are words or come from a scorer with values outside 0 to 1" in read.notes[0].what
    )


def test_judge_made_with_arguments_is_named_by_its_model(tmp_path: Path) -> None:
    """Inspect writes a scorer's model that was made with arguments as an object of all of them."""
    log = files.inspect_log(files.inspect_sample(1, 1, "C"))
    model = {
        "model": "mockllm/judge",
        "config": {},
        "model_args": {"custom_outputs": [{"completion": "x" * 500}]},
    }
    log["eval"]["scorers"] = [{"name": "match", "options": {"model": model}}]
    (assessment,) = read_files(files.put(tmp_path / "log.json", log)).assessments
    assert (assessment.judge, assessment.by) == ("match (mockllm/judge)", GradedBy.MODEL)


def test_a_score_that_keeps_the_messages_of_its_grading_waits(tmp_path: Path) -> None:
    sample = files.inspect_sample(1, 1, "C")
    sample["scores"] = {
        "careful": {
            "value": "C",
            "metadata": {"grading": [{"role": "assistant", "content": "GRADE: C"}]},
        }
    }
    (assessment,) = read_log(tmp_path, sample).assessments
    assert assessment.by is GradedBy.MODEL


def test_a_response_keeps_its_tokens_cost_and_seconds(tmp_path: Path) -> None:
    (once,) = read_log(tmp_path, files.inspect_sample(1, 1, "C")).responses
    assert (once.input_tokens, once.output_tokens, once.cost_usd, once.latency_s) == (
        11,
        3,
        None,
        0.5,
    )
    turns = [
        {"role": "assistant", "content": "Let me see."},
        {"role": "assistant", "content": "four"},
    ]
    total = {"mockllm/tiny": {"input_tokens": 30, "output_tokens": 7, "total_cost": 0.25}}
    several = files.inspect_sample(1, 1, "C", messages=turns, model_usage=total, working_time=2.5)
    (response,) = read_log(tmp_path, several).responses
    assert (response.input_tokens, response.output_tokens) == (30, 7)
    assert (response.cost_usd, response.latency_s) == (0.25, 2.5)


def test_grading_model_is_identified_from_the_log(tmp_path: Path) -> None:
    sample = files.inspect_sample(1, 1, "C")
    sample["scores"] = {
        "careful": {
            "value": "C",
            "explanation": "GRADE: C",
            "metadata": {"grading": [{"role": "user"}]},
        }
    }
    log = files.inspect_log(sample)
    log["eval"]["scorers"] = [{"name": "careful", "options": {"model": "openai/gpt-4o"}}]
    read = read_files(files.put(tmp_path / "log.json", log))
    one = read.assessments[0]
    assert (one.judge, one.by, one.reply) == ("careful (openai/gpt-4o)", GradedBy.MODEL, "GRADE: C")


def test_a_score_a_person_edited_is_that_persons(tmp_path: Path) -> None:
    sample = files.inspect_sample(1, 1, "C")
    sample["scores"]["match"]["history"] = [
        {"value": "I"},
        {"value": "C", "provenance": {"author": "Mia", "reason": "typo"}},
    ]
    one = read_log(tmp_path, sample).assessments[0]
    assert (one.judge, one.by) == ("Mia", GradedBy.PERSON)


def test_a_sample_that_broke_is_a_failure_of_the_harness(tmp_path: Path) -> None:
    sample = files.inspect_sample(
        1, 1, "C", scores=None, error={"message": "boom", "traceback": "…", "traceback_ansi": "…"}
    )
    read = read_log(tmp_path, sample, status="error")
    failure = read.responses[0].failure
    assert failure is not None
    assert (failure.kind, failure.fault, failure.detail) == ("sample_error", Fault.HARNESS, "boom")
    assert read.runs[0].complete is False
    assert not read.assessments


@pytest.mark.parametrize(
    ("limit", "fault"), [("token", Fault.CANDIDATE), ("operator", Fault.HARNESS)]
)
def test_a_limit_without_a_score_is_a_failure(tmp_path: Path, limit: str, fault: Fault) -> None:
    read = read_log(
        tmp_path, files.inspect_sample(1, 1, "C", scores={}, limit={"type": limit, "limit": 500})
    )
    failure = read.responses[0].failure
    assert failure is not None
    assert (failure.kind, failure.fault) == (f"{limit}_limit", fault)


def test_a_limit_that_inspect_scored_counts_as_inspect_counted_it(tmp_path: Path) -> None:
    read = read_log(
        tmp_path, files.inspect_sample(1, 1, "I", limit={"type": "message", "limit": 10})
    )
    assert (read.responses[0].failure, read.responses[0].finish_reason) == (None, "message_limit")
    assert list(read.scores("match").values()) == [0.0]


def test_a_sample_declared_invalid_is_left_out_by_name(tmp_path: Path) -> None:
    read = read_log(
        tmp_path,
        files.inspect_sample(1, 1, "C", invalidation={"author": "Mia", "reason": "leaked"}),
    )
    assert read.counts == (1, 0, 0, 0)
    assert "invalid in Inspect by Mia: leaked" in read.skipped[0].why


def test_texts_that_were_put_aside_are_put_back(tmp_path: Path) -> None:
    key = "0" * 32
    sample = files.inspect_sample(
        1, 1, "C", input=f"attachment://{key}", attachments={key: "a long question"}
    )
    assert read_log(tmp_path, sample).tasks[0].prompt[0].content == "a long question"


def test_a_log_of_version_1_has_one_scorer_and_one_score(tmp_path: Path) -> None:
    sample = files.inspect_sample(1, 1, "C")
    sample["score"] = sample.pop("scores")["match"]
    results = {
        "scorer": {"name": "model_graded_fact", "params": {}},
        "metrics": {"accuracy": {"value": float("nan")}},
    }
    read = read_log(tmp_path, sample, version=1, results=results)
    assert [(one.judge, one.by) for one in read.assessments] == [
        ("model_graded_fact", GradedBy.MODEL)
    ]
    assert read.assessments[0].grades[0].score == 1.0


def test_without_an_output_the_models_last_words_are_the_answer(tmp_path: Path) -> None:
    sample = files.inspect_sample(1, 1, "C")
    del sample["output"]
    sample["messages"].append({"role": "tool", "content": "exit 1"})
    assert read_log(tmp_path, sample).responses[0].content == "four"


def test_a_run_that_goes_on_is_read_from_its_journal(tmp_path: Path) -> None:
    log = files.inspect_log(files.inspect_sample(1, 1, "C"), status="started")
    read = read_files(files.inspect_archive(tmp_path / "log.eval", log))
    assert read.counts == (1, 1, 1, 1)
    assert read.runs[0].complete is False


def test_summaries_stand_in_where_no_sample_was_kept(tmp_path: Path) -> None:
    log = files.inspect_log()
    path = files.inspect_archive(tmp_path / "log.eval", log)
    summary = {
        "id": 1,
        "epoch": 1,
        "input": "2 + 1?",
        "target": "3",
        "scores": {"match": {"value": "C"}},
    }
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("summaries.json", json.dumps([summary]))
    read = read_files(path)
    assert read.counts == (1, 1, 0, 1)
    assert "only summaries" in read.notes[0].what


def test_of_two_members_with_one_name_the_later_holds(tmp_path: Path) -> None:
    path = files.inspect_archive(
        tmp_path / "log.eval", files.inspect_log(files.inspect_sample(1, 1, "I"))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("samples/1_epoch_1.json", json.dumps(files.inspect_sample(1, 1, "C")))
    assert list(read_files(path).scores("match").values()) == [1.0]


def test_a_newer_format_is_read_and_said_to_be_newer(tmp_path: Path) -> None:
    read = read_log(tmp_path, files.inspect_sample(1, 1, "C"), version=3)
    assert len(read.responses) == 1
    assert "version 3" in read.notes[0].what


@pytest.mark.parametrize(
    ("member", "content", "why"),
    [
        ("samples/bad.json", b"{", "is not JSON"),
        ("samples/deep.json", b"[" * 100_000, "nested too deeply"),
        ("samples/no_id.json", b'{"epoch": 1}', "has no `id`"),
        ("samples/epoch.json", b'{"id": 1, "epoch": "one"}', "has the epoch"),
        ("samples/list.json", b"[1, 2]", "has no `id`"),
        ("samples/../../../etc/passwd.json", b'{"epoch": 1}', "has no `id`"),
    ],
)
def test_a_damaged_member_is_named_and_the_others_are_read(
    tmp_path: Path, member: str, content: bytes, why: str
) -> None:
    path = files.inspect_archive(
        tmp_path / "log.eval", files.inspect_log(files.inspect_sample(1, 1, "C"))
    )
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(member, content)
    read = read_files(path)
    assert read.counts == (1, 1, 1, 1)
    assert [one.where for one in read.skipped] == [f"{path}#{member}"]
    assert why in read.skipped[0].why


def test_a_member_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    path = files.inspect_archive(
        tmp_path / "log.eval", files.inspect_log(files.inspect_sample(1, 1, "C"))
    )
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/bomb.json", b" " * (60 << 20))
    read = read_files(path)
    assert len(read.responses) == 1
    assert "unpacks to more than" in read.skipped[0].why


def test_a_link_in_an_archive_is_not_followed(tmp_path: Path) -> None:
    path = files.inspect_archive(
        tmp_path / "log.eval", files.inspect_log(files.inspect_sample(1, 1, "C"))
    )
    link = zipfile.ZipInfo("samples/link.json")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    read = read_files(path)
    assert [one.where for one in read.skipped] == [f"{path}#samples/link.json"]
    assert "is a symbolic link" in read.skipped[0].why


def scorer_events(scorer: str, model: str | None) -> list[dict[str, Any]]:
    """The events of a scorer: its span inside that of all scorers, with a call unless `model` is
    None.
    """
    call = {
        "event": "model",
        "span_id": "inner",
        "model": model,
        "working_time": 0.5,
        "output": {
            "choices": [{"message": {"role": "assistant", "content": "GRADE: C"}}],
            "usage": {"input_tokens": 40, "output_tokens": 9, "total_cost": 0.02},
        },
    }
    return [
        {"event": "span_begin", "id": "solvers", "type": "solvers"},
        {
            "event": "model",
            "span_id": "solvers",
            "model": "mockllm/tiny",
            "output": {"usage": {"input_tokens": 11}},
        },
        {"event": "span_begin", "id": "all", "type": "scorers"},
        {"event": "span_begin", "id": "own", "parent_id": "all", "type": "scorer", "name": scorer},
        {"event": "span_begin", "id": "inner", "parent_id": "own", "type": "tool", "name": "ask"},
        *([call] if model else []),
        {"event": "score", "span_id": "own", "scorer": scorer},
    ]


def test_a_scorer_with_a_model_call_in_its_span_waits_with_the_reply(tmp_path: Path) -> None:
    scores = {"quality": {"value": "C"}}
    read = read_log(
        tmp_path,
        files.inspect_sample(
            1, 1, "C", scores=scores, events=scorer_events("quality", "acme/judge")
        ),
    )
    (assessment,) = read.assessments
    assert (assessment.by, assessment.reply) == (GradedBy.MODEL, "GRADE: C")
    assert (assessment.input_tokens, assessment.output_tokens) == (40, 9)
    assert (assessment.latency_s, assessment.cost_usd) == (0.5, 0.02)


def test_a_scorer_without_a_model_call_counts_by_rule(tmp_path: Path) -> None:
    sample = files.inspect_sample(
        1, 1, "C", scores={"quality": {"value": "C"}}, events=scorer_events("quality", None)
    )
    (assessment,) = read_log(tmp_path, sample).assessments
    assert assessment.by is GradedBy.RULE
    assert assessment.input_tokens is None


def test_a_model_call_in_the_steps_of_older_logs_is_found(tmp_path: Path) -> None:
    call = scorer_events("quality", "acme/judge")[5]
    events = [
        {"event": "step", "action": "begin", "type": "scorer", "name": "quality"},
        {key: value for key, value in call.items() if key != "span_id"},
        {"event": "step", "action": "end", "type": "scorer", "name": "quality"},
    ]
    (assessment,) = read_log(
        tmp_path, files.inspect_sample(1, 1, "C", scores={"quality": {"value": "C"}}, events=events)
    ).assessments
    assert assessment.by is GradedBy.MODEL


def test_an_own_scorer_waits_if_a_further_model_was_used_unseen(tmp_path: Path) -> None:
    used = {"mockllm/tiny": {"input_tokens": 1}, "acme/judge": {"input_tokens": 1}}
    scores = {"quality": {"value": "C"}, "match": {"value": "I"}}
    read = read_log(tmp_path, files.inspect_sample(1, 1, "C", scores=scores, model_usage=used))
    assert {one.judge: one.by for one in read.assessments} == {
        "quality": GradedBy.MODEL,
        "match": GradedBy.RULE,
    }


def test_models_of_combined_scorers_name_the_judge(tmp_path: Path) -> None:
    log = files.inspect_log(
        files.inspect_sample(1, 1, "C", scores={"multi_scorer": {"value": "C"}})
    )
    parts = [
        {"name": "model_graded_qa", "params": {"model": model}} for model in ("acme/a", "acme/b")
    ]
    log["eval"]["scorers"] = [{"name": "multi_scorer", "options": {"scorers": parts}}]
    (assessment,) = read_files(files.put(tmp_path / "log.json", log)).assessments
    assert (assessment.judge, assessment.by) == ("multi_scorer (acme/a, acme/b)", GradedBy.MODEL)


@pytest.mark.parametrize("write", ["json", "eval"])
def test_one_value_off_the_scale_takes_the_score_of_its_scorers_others(
    tmp_path: Path, write: str
) -> None:
    log = files.inspect_log(
        *(files.inspect_sample(n, 1, value) for n, value in enumerate((0, 1, 7), 1))
    )
    path = tmp_path / f"log.{write}"
    read = read_files(files.inspect_archive(path, log) if write == "eval" else files.put(path, log))
    assert set(read.scores("match").values()) == {None}
    assert [one.grades[0].raw_score for one in read.assessments] == [0.0, 1.0, 7.0]
    assert read.notes[0].what.startswith("3 scores")


def test_an_archive_that_was_cut_off_is_no_traceback(tmp_path: Path) -> None:
    path = files.inspect(tmp_path)
    path.write_bytes(path.read_bytes()[:-400])
    assert read_files(path).counts == (0, 0, 0, 0)


def packed_with_zstandard(path: Path, log: dict[str, Any]) -> Path:
    """Write a log whose members are stored already packed, and then declared to be of method 93."""
    packer = pytest.importorskip("zstandard", reason="`zstandard` is not installed")
    members = {
        f"samples/{n}_epoch_1.json": sample for n, sample in enumerate(log.pop("samples"), 1)
    }
    checksums = []
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (*members.items(), ("header.json", log)):
            plain = json.dumps(content).encode()
            archive.writestr(name, packer.compress(plain))
            checksums.append((archive.getinfo(name).CRC, zlib.crc32(plain)))
    packed = path.read_bytes()
    for sign, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        parts = packed.split(sign)
        packed = sign.join(
            [parts[0], *(one[: at - 4] + b"\x5d\x00" + one[at - 2 :] for one in parts[1:])]
        )
    for stored, true in checksums:
        packed = packed.replace(stored.to_bytes(4, "little"), true.to_bytes(4, "little"))
    path.write_bytes(packed)
    return path


def test_members_packed_with_zstandard_are_read(tmp_path: Path) -> None:
    path = packed_with_zstandard(
        tmp_path / "log.eval", files.inspect_log(files.inspect_sample(1, 1, "C"))
    )
    assert read_files(path).counts == (1, 1, 1, 1)


@pytest.mark.parametrize("unpacks", [False, True])
def test_a_damaged_zstandard_member_is_named_and_the_rest_read(
    tmp_path: Path, unpacks: bool
) -> None:
    samples = [files.inspect_sample(n, 1, "C", input=f"Question {n}") for n in (1, 2)]
    path = packed_with_zstandard(tmp_path / "log.eval", files.inspect_log(*samples))
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("samples/1_epoch_1.json")
    start = info.header_offset + 30 + len(info.filename)
    if unpacks:  # to something else than was packed
        data = data.replace(info.CRC.to_bytes(4, "little"), (info.CRC ^ 1).to_bytes(4, "little"))
    else:
        data[start + 4 : start + 20] = bytes(16)
    path.write_bytes(data)
    read = read_files(path)
    assert read.counts == (1, 1, 1, 1)
    (skipped,) = read.skipped
    assert skipped.where.endswith("samples/1_epoch_1.json")
    assert skipped.why.startswith("is damaged: Bad CRC-32" if unpacks else "is damaged: zstd")


def test_member_with_unsupported_compression_gives_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from assay.exchange.parsing import zip_members

    path = files.inspect(tmp_path)
    packed = path.read_bytes().replace(
        b"PK\x01\x02\x14\x03\x14\x00\x00\x00\x08\x00", b"PK\x01\x02\x14\x03\x14\x00\x00\x00\x5d\x00"
    )
    assert packed != path.read_bytes()
    path.write_bytes(packed)

    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(zip_members, "import_module", absent)
    read = read_files(path)
    assert read.counts == (0, 0, 0, 0)
    assert any("inspect log convert" in one.why for one in read.skipped)


def test_family_in_the_metadata_of_a_sample_is_its_family(tmp_path: Path) -> None:
    first, second = files.inspect_sample(1, 1, "C"), files.inspect_sample(2, 1, "C")
    first["metadata"] = {"family": "passage-1"}
    read = read_log(tmp_path, first, second)
    assert [task.family for task in read.tasks] == ["passage-1", ""]
