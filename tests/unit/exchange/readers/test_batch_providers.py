"""Batch output of providers other than OpenAI's chat: answers, refusals, tokens, and who is at
fault.

The lines have the shapes of the providers' own references: Gemini's batch mode, Vertex AI's batch
prediction, Anthropic's message batches, Mistral's batch jobs, Bedrock's batch inference and
OpenAI's Responses.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.harness_files import put, put_lines
from tests.support.read_files import Read, formats_of, read_files

from assay.domain.failure import Fault
from assay.domain.import_records import FoundResponse
from assay.domain.suite import Message

USAGE = {
    "promptTokenCount": 10,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 5,
    "totalTokenCount": 35,
}


def gemini_body(*texts: str, finish: str = "STOP", **more: Any) -> dict[str, Any]:
    parts = [{"text": text} for text in texts]
    return {
        "candidates": [
            {"content": {"parts": parts, "role": "model"}, "finishReason": finish, "index": 0}
        ],
        "usageMetadata": USAGE,
        "modelVersion": "gemini-2.5-flash",
        "responseId": "r-1",
        **more,
    }


def vertex_line(
    body: dict[str, Any], text: str = "Hello?", *, status: str = "", **more: Any
) -> dict[str, Any]:
    part = {"text": text, "fileData": None, "inlineData": None}
    return {
        "status": status,
        "processed_time": "2026-03-01T18:13:16.826+00:00",
        "request": {
            "contents": [{"parts": [part], "role": "user"}],
            "generationConfig": {"temperature": 0.5, "maxOutputTokens": 64},
        },
        "response": body,
        **more,
    }


def anthropic_line(name: str, *content: dict[str, Any], stop: str = "end_turn") -> dict[str, Any]:
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 4,
        "cache_read_input_tokens": 5,
        "output_tokens": 7,
    }
    message = {
        "id": f"msg_{name}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
    }
    return {"custom_id": name, "result": {"type": "succeeded", "message": message}}


def responses_line(
    name: str, *items: dict[str, Any], status: str = "completed", **more: Any
) -> dict[str, Any]:
    body = {
        "id": f"resp_{name}",
        "object": "response",
        "created_at": 1760000000,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": "gpt-5-mini",
        "output": list(items),
        "usage": {"input_tokens": 11, "output_tokens": 64},
        **more,
    }
    return {
        "id": f"batch_req_{name}",
        "custom_id": name,
        "response": {"status_code": 200, "body": body},
        "error": None,
    }


def message_item(**part: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "status": "completed", "content": [part]}


def only(folder: Path, *rows: dict[str, Any]) -> Read:
    read = read_files(put_lines(folder / "output.jsonl", list(rows)))
    assert not read.skipped
    assert not read.strangers
    return read


def answer(folder: Path, row: dict[str, Any]) -> FoundResponse:
    (response,) = only(folder, row).responses
    return response


def fault(folder: Path, row: dict[str, Any]) -> tuple[str, Fault]:
    failure = answer(folder, row).failure
    assert failure is not None
    return failure.kind, failure.fault


# --- Gemini ---------------------------------------------------------------------------------------


def test_gemini_lines_are_answers_with_their_tokens(tmp_path: Path) -> None:
    read = only(tmp_path, {"key": "request-1", "response": gemini_body("Hel", "lo")})
    (response,) = read.responses
    assert (response.task, response.content, response.finish_reason) == (
        "request-1",
        "Hello",
        "stop",
    )
    # thoughts are paid for as output
    assert (response.input_tokens, response.output_tokens) == (10, 25)
    assert read.runs[0].candidates[0].name == response.model_answered == "gemini-2.5-flash"
    assert response.identity == "request-1 r-1 gemini-2.5-flash"


def test_a_gemini_line_may_have_a_custom_id_or_a_result(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"custom_id": "a", "response": gemini_body("one")},
        {"custom_id": "b", "result": {"type": "succeeded", "response": gemini_body("two")}},
        {"metadata": {"key": "c"}, "response": gemini_body("three")},
    ]
    read = only(tmp_path, *rows)
    assert {one.task: one.content for one in read.responses} == {
        "a": "one",
        "b": "two",
        "c": "three",
    }


def test_gemini_thoughts_are_no_part_of_the_answer(tmp_path: Path) -> None:
    body = gemini_body("42")
    body["candidates"][0]["content"]["parts"].insert(0, {"text": "Let me think.", "thought": True})
    assert answer(tmp_path, {"key": "1", "response": body}).content == "42"


@pytest.mark.parametrize(
    "reason", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII"]
)
def test_a_gemini_filter_is_a_refusal_even_amid_the_answer(tmp_path: Path, reason: str) -> None:
    assert fault(tmp_path, {"key": "1", "response": gemini_body("half", finish=reason)}) == (
        "refused",
        Fault.REFUSAL,
    )


def test_a_prompt_that_gemini_blocked_is_a_refusal_with_its_tokens(tmp_path: Path) -> None:
    body = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 10},
    }
    response = answer(tmp_path, {"key": "1", "response": body})
    assert response.failure is not None
    assert (response.failure.kind, response.failure.fault) == ("refused", Fault.REFUSAL)
    assert "PROHIBITED_CONTENT" in response.failure.detail
    assert (response.input_tokens, response.output_tokens) == (10, None)


def test_gemini_without_text_at_the_limit_is_the_candidates(tmp_path: Path) -> None:
    body = gemini_body(finish="MAX_TOKENS")
    response = answer(tmp_path, {"key": "1", "response": body})
    assert response.failure is not None
    assert (response.failure.kind, response.failure.fault) == ("empty", Fault.CANDIDATE)
    assert "token limit" in response.failure.detail
    assert response.finish_reason == "length"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (3, ("http_400", Fault.HARNESS)),  # google.rpc INVALID_ARGUMENT
        (400, ("http_400", Fault.HARNESS)),
        (8, ("http_429", Fault.PROVIDER)),  # RESOURCE_EXHAUSTED
        (13, ("http_500", Fault.PROVIDER)),  # INTERNAL
    ],
)
def test_a_gemini_error_is_its_requests_or_its_providers(
    tmp_path: Path, code: int, expected: tuple[str, Fault]
) -> None:
    assert fault(tmp_path, {"key": "1", "error": {"code": code, "message": "No."}}) == expected


def test_gemini_calls_a_tool(tmp_path: Path) -> None:
    body = gemini_body()
    body["candidates"][0]["content"]["parts"] = [
        {"functionCall": {"name": "add", "args": {"a": 1}}}
    ]
    content = answer(tmp_path, {"key": "1", "response": body}).content
    assert content == '{"tool_calls": [{"name": "add", "args": {"a": 1}}]}'


def test_gemini_input_files_give_prompts_by_key(tmp_path: Path) -> None:
    request = {
        "contents": [
            {"parts": [{"text": "Hello?"}]},
            {"parts": [{"text": "Yes?"}], "role": "model"},
        ],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"temperature": 0.2, "maxOutputTokens": 9, "topP": 0.5},
    }
    put_lines(tmp_path / "input.jsonl", [{"key": "request-1", "request": request}])
    put_lines(tmp_path / "output.jsonl", [{"key": "request-1", "response": gemini_body("Hi.")}])
    read = read_files(tmp_path)
    assert read.tasks[0].prompt == (
        Message(role="system", content="Be brief."),
        Message(role="user", content="Hello?"),
        Message(role="assistant", content="Yes?"),
    )
    assert read.runs[0].provenance["parameters"] == {
        "temperature": 0.2,
        "max_tokens": 9,
        "top_p": 0.5,
    }
    assert read.counts == (1, 1, 1, 0)


def test_a_gemini_batch_without_a_file_is_read_from_its_object(tmp_path: Path) -> None:
    answers = [
        {"metadata": {"key": "first"}, "response": gemini_body("one")},
        {"error": {"code": 13, "message": "Oh."}},
    ]
    batch = {
        "name": "batches/b",
        "metadata": {
            "state": "BATCH_STATE_SUCCEEDED",
            "createTime": "2026-03-01T10:00:00Z",
            "endTime": "2026-03-01T10:01:00Z",
        },
        "done": True,
        "response": {"inlinedResponses": {"inlinedResponses": answers}},
    }
    path = put(tmp_path / "batch.json", batch)
    assert formats_of([path]) == ["openai_batch"]
    read = read_files(path)
    assert [(one.task, one.content) for one in read.responses] == [("first", "one"), ("2", None)]
    assert (read.runs[0].started, read.runs[0].finished) == (
        "2026-03-01T10:00:00.000Z",
        "2026-03-01T10:01:00.000Z",
    )
    assert not read.skipped


# --- Vertex AI ------------------------------------------------------------------------------------


def test_vertex_lines_hold_their_own_prompts_and_times(tmp_path: Path) -> None:
    read = only(
        tmp_path,
        vertex_line(gemini_body("Hi."), custom_id="q1"),
        vertex_line(gemini_body("Ho."), "Bye?"),
    )
    assert [task.prompt[0].content for task in read.tasks] == ["Hello?", "Bye?"]
    assert read.tasks[0].id == "q1"
    assert [response.content for response in read.responses] == ["Hi.", "Ho."]
    assert [response.task for response in read.responses] == [task.id for task in read.tasks]
    assert read.runs[0].provenance["parameters"] == {"temperature": 0.5, "max_tokens": 64}
    assert read.ends[0].finished == "2026-03-01T18:13:16.826Z"


def test_vertex_repeats_of_one_prompt_without_an_id_are_trials(tmp_path: Path) -> None:
    read = only(tmp_path, vertex_line(gemini_body("Hi.")), vertex_line(gemini_body("Ho.")))
    assert len({task.id for task in read.tasks}) == 1
    assert [response.trial for response in read.responses] == [1, 2]


def test_vertex_input_and_output_without_ids_meet_by_their_prompt(tmp_path: Path) -> None:
    request = {"contents": [{"role": "user", "parts": {"text": "Hello?"}}]}
    put_lines(tmp_path / "input.jsonl", [{"request": request}])
    put_lines(tmp_path / "output.jsonl", [vertex_line(gemini_body("Hi."))])
    read = read_files(tmp_path)
    assert read.counts == (1, 1, 1, 0)
    assert read.responses[0].task == read.tasks[0].id


def test_a_litellm_label_names_the_task(tmp_path: Path) -> None:
    line = vertex_line(gemini_body("Hi."))
    line["request"]["labels"] = {"litellm_custom_id": "request-1"}
    assert answer(tmp_path, line).task == "request-1"


def test_a_vertex_status_is_the_error_of_its_line(tmp_path: Path) -> None:
    bad = 'Bad Request: {"error": {"code": 400, "message": "Invalid image.", "status": "INVALID_ARGUMENT"}}'
    assert fault(tmp_path, vertex_line({}, status=bad, custom_id="1")) == (
        "http_400",
        Fault.HARNESS,
    )
    assert fault(tmp_path, vertex_line({}, status="Internal error encountered.")) == (
        "error",
        Fault.PROVIDER,
    )


def test_claude_on_vertex_is_read_like_anthropics(tmp_path: Path) -> None:
    message = anthropic_line("1", {"type": "text", "text": "Hi."})["result"]["message"]
    line = {
        "custom_id": "1",
        "request": {"messages": [{"role": "user", "content": "Hello?"}]},
        "status": "",
    }
    read = only(tmp_path, {**line, "response": message})
    assert (read.tasks[0].prompt[0].content, read.responses[0].content) == ("Hello?", "Hi.")


def test_rows_of_bigquery_hold_request_and_response_as_text(tmp_path: Path) -> None:
    line = vertex_line(gemini_body("Hi."))
    read = only(
        tmp_path,
        {**line, "request": json.dumps(line["request"]), "response": json.dumps(line["response"])},
    )
    assert (read.tasks[0].prompt[0].content, read.responses[0].content) == ("Hello?", "Hi.")


# --- batch objects --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "status"),
    [
        (
            {
                "object": "batch",
                "id": "b",
                "status": "SUCCESS",
                "created_at": 1772359200,
                "completed_at": 1772359260,
            },
            True,
        ),
        (
            {
                "object": "batch",
                "id": "b",
                "status": "CANCELLED",
                "created_at": 1772359200,
                "completed_at": 1772359260,
            },
            False,
        ),
        (
            {
                "type": "message_batch",
                "id": "b",
                "processing_status": "ended",
                "request_counts": {"succeeded": 1, "canceled": 0},
                "created_at": "2026-03-01T10:00:00Z",
                "ended_at": "2026-03-01T10:01:00Z",
            },
            True,
        ),
        (
            {
                "name": "batches/b",
                "metadata": {
                    "state": "BATCH_STATE_EXPIRED",
                    "createTime": "2026-03-01T10:00:00Z",
                    "endTime": "2026-03-01T10:01:00Z",
                },
            },
            False,
        ),
    ],
)
def test_batch_objects_of_every_provider_give_times_and_status(
    tmp_path: Path, batch: dict[str, Any], status: bool
) -> None:
    put(tmp_path / "batch_object.json", batch)
    put_lines(
        tmp_path / "batch_output.jsonl", [anthropic_line("1", {"type": "text", "text": "Hi."})]
    )
    read = read_files(tmp_path)
    (run,) = read.runs
    assert (run.started, run.finished) == ("2026-03-01T10:00:00.000Z", "2026-03-01T10:01:00.000Z")
    assert run.complete is status


# --- Anthropic ------------------------------------------------------------------------------------


def test_anthropic_answers_count_cached_tokens_as_input(tmp_path: Path) -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    response = answer(
        tmp_path, anthropic_line("1", thinking, {"type": "text", "text": "Hi."}, stop="max_tokens")
    )
    assert (response.content, response.finish_reason) == ("Hi.", "length")
    assert (response.input_tokens, response.output_tokens) == (12, 7)
    assert response.identity == "1 msg_1 claude-sonnet-4-5"


def test_an_anthropic_refusal_is_a_refusal(tmp_path: Path) -> None:
    line = anthropic_line("1", {"type": "text", "text": "I cannot"}, stop="refusal")
    assert fault(tmp_path, line) == ("refused", Fault.REFUSAL)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"type": "expired"}, ("expired", Fault.PROVIDER)),
        ({"type": "canceled"}, ("canceled", Fault.HARNESS)),
        (
            {
                "type": "errored",
                "error": {"type": "error", "error": {"type": "api_error", "message": "Oh."}},
            },
            ("api_error", Fault.PROVIDER),
        ),
        (
            {
                "type": "errored",
                "error": {
                    "type": "error",
                    "error": {"type": "invalid_request_error", "message": "max_tokens: missing"},
                },
            },
            ("invalid_request_error", Fault.HARNESS),
        ),
        (
            {
                "type": "errored",
                "error": {
                    "type": "error",
                    "error": {"type": "invalid_request_error", "message": "prompt is too long"},
                },
            },
            ("context_length", Fault.CANDIDATE),
        ),
    ],
)
def test_anthropic_failures_name_the_party_at_fault(
    tmp_path: Path, result: dict[str, Any], expected: tuple[str, Fault]
) -> None:
    assert fault(tmp_path, {"custom_id": "1", "result": result}) == expected


def test_a_tool_call_of_anthropic_is_its_answer(tmp_path: Path) -> None:
    line = anthropic_line(
        "1", {"type": "tool_use", "id": "t", "name": "add", "input": {"a": 1}}, stop="tool_use"
    )
    response = answer(tmp_path, line)
    assert response.finish_reason == "tool"
    assert response.content is not None
    assert '"name": "add"' in response.content


def test_an_output_of_anthropic_is_no_error_file_of_a_neighbour(tmp_path: Path) -> None:
    requests = [
        {"custom_id": name, "body": {"messages": [{"role": "user", "content": name}]}}
        for name in "ab"
    ]
    put_lines(tmp_path / "in.jsonl", requests)
    put_lines(tmp_path / "one.jsonl", [anthropic_line("a", {"type": "text", "text": "Hi."})])
    body = {"model": "m", "choices": [{"message": {"content": "Ho."}, "finish_reason": "stop"}]}
    put_lines(
        tmp_path / "two.jsonl", [{"custom_id": "b", "response": {"status_code": 200, "body": body}}]
    )
    assert len(read_files(tmp_path).runs) == 2


# --- OpenAI's responses ---------------------------------------------------------------------------


def test_an_incomplete_response_keeps_its_text_as_cut_off(tmp_path: Path) -> None:
    line = responses_line(
        "1",
        {
            "type": "reasoning",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "Hm."}],
        },
        message_item(type="output_text", text="Half an"),
        status="incomplete",
        incomplete_details={"reason": "max_output_tokens"},
    )
    response = answer(tmp_path, line)
    assert (response.content, response.finish_reason) == ("Half an", "length")
    assert (response.input_tokens, response.output_tokens) == (11, 64)
    assert response.started == "2025-10-09T08:53:20.000Z"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("max_output_tokens", ("empty", Fault.CANDIDATE)),
        ("content_filter", ("refused", Fault.REFUSAL)),
    ],
)
def test_an_incomplete_response_without_text_is_a_failure(
    tmp_path: Path, reason: str, expected: tuple[str, Fault]
) -> None:
    line = responses_line(
        "1",
        {"type": "reasoning", "summary": []},
        status="incomplete",
        incomplete_details={"reason": reason},
    )
    assert fault(tmp_path, line) == expected


def test_a_refusal_in_a_response_is_a_refusal_in_its_words(tmp_path: Path) -> None:
    failure = answer(
        tmp_path, responses_line("1", message_item(type="refusal", refusal="I can't."))
    ).failure
    assert failure is not None
    assert (failure.kind, failure.fault, failure.detail) == ("refused", Fault.REFUSAL, "I can't.")


def test_a_failed_response_is_its_providers(tmp_path: Path) -> None:
    line = responses_line("1", status="failed", error={"code": "server_error", "message": "Oh."})
    assert fault(tmp_path, line) == ("server_error", Fault.PROVIDER)


# --- Mistral and chat completions -----------------------------------------------------------------


def chat_line(content: Any, finish: str) -> dict[str, Any]:
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": content},
    }
    body = {
        "id": "m1",
        "object": "chat.completion",
        "model": "magistral",
        "created": 1760000000,
        "choices": [choice],
    }
    return {
        "id": "b1",
        "custom_id": "0",
        "response": {"status_code": 200, "body": body},
        "error": None,
    }


def test_mistrals_thinking_is_no_part_of_the_answer(tmp_path: Path) -> None:
    content = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "Comté."},
    ]
    response = answer(tmp_path, chat_line(content, "model_length"))
    assert (response.content, response.finish_reason) == ("Comté.", "length")


@pytest.mark.parametrize(
    ("finish", "expected"),
    [("error", ("no_answer", Fault.PROVIDER)), ("content_filter", ("refused", Fault.REFUSAL))],
)
def test_a_chat_without_text_names_who_ended_it(
    tmp_path: Path, finish: str, expected: tuple[str, Fault]
) -> None:
    assert fault(tmp_path, chat_line("", finish)) == expected


# --- Bedrock --------------------------------------------------------------------------------------


def bedrock_line(model_input: dict[str, Any], **outcome: Any) -> dict[str, Any]:
    return {"recordId": "CALL0000001", "modelInput": model_input, **outcome}


TITAN = {
    "inputTextTokenCount": 8,
    "results": [{"tokenCount": 3, "outputText": "blue\n", "completionReason": "FINISH"}],
}
LLAMA = {
    "generation": "blue",
    "prompt_token_count": 8,
    "generation_token_count": 3,
    "stop_reason": "length",
}
CONVERSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "blue"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 8, "outputTokens": 3, "totalTokens": 11},
    "metrics": {"latencyMs": 250},
}


@pytest.mark.parametrize(
    ("model_input", "output", "text", "finish"),
    [
        ({"inputText": "Roses are red, violets are"}, TITAN, "blue\n", "stop"),
        ({"prompt": "Roses are red, violets are"}, LLAMA, "blue", "length"),
        (
            {"messages": [{"role": "user", "content": [{"text": "Roses are red, violets are"}]}]},
            CONVERSE,
            "blue",
            "stop",
        ),
    ],
)
def test_bedrock_lines_hold_prompt_answer_and_tokens(
    tmp_path: Path, model_input: dict[str, Any], output: dict[str, Any], text: str, finish: str
) -> None:
    read = only(tmp_path, bedrock_line(model_input, modelOutput=output))
    (response,) = read.responses
    assert read.tasks[0].prompt[0].content == "Roses are red, violets are"
    assert (response.task, response.content, response.finish_reason) == (
        "CALL0000001",
        text,
        finish,
    )
    assert (response.input_tokens, response.output_tokens) == (8, 3)


@pytest.mark.parametrize(
    "output",
    [
        {"outputs": [{"text": "blue", "stop_reason": "length"}]},  # Mistral
        {
            "generations": [{"id": "g1", "text": "blue", "finish_reason": "MAX_TOKENS"}],
            "id": "1",
            "prompt": "Roses",
        },
        {"text": "blue", "finish_reason": "MAX_TOKENS", "generation_id": "g1"},  # Cohere's chat
    ],
)
def test_bedrock_models_without_counts_of_tokens_are_read(
    tmp_path: Path, output: dict[str, Any]
) -> None:
    response = answer(tmp_path, bedrock_line({"prompt": "Roses are red"}, modelOutput=output))
    assert (response.content, response.finish_reason, response.input_tokens) == (
        "blue",
        "length",
        None,
    )


def test_converse_states_its_seconds(tmp_path: Path) -> None:
    assert answer(tmp_path, bedrock_line({"messages": []}, modelOutput=CONVERSE)).latency_s == 0.25


def test_bedrocks_anthropic_models_answer_like_anthropics(tmp_path: Path) -> None:
    message = anthropic_line("1", {"type": "text", "text": "Hi."})["result"]["message"]
    assert answer(tmp_path, bedrock_line({"messages": []}, modelOutput=message)).content == "Hi."


def test_bedrock_failures_name_the_party_at_fault(tmp_path: Path) -> None:
    error = {"errorCode": 400, "errorMessage": "bad request"}
    assert fault(tmp_path, bedrock_line({"inputText": "Hello"}, error=error)) == (
        "http_400",
        Fault.HARNESS,
    )
    stopped = {**CONVERSE, "stopReason": "guardrail_intervened"}
    assert fault(tmp_path, bedrock_line({"messages": []}, modelOutput=stopped)) == (
        "refused",
        Fault.REFUSAL,
    )


def test_bedrock_input_is_recognised_beside_openais(tmp_path: Path) -> None:
    bedrock = put_lines(tmp_path / "b.jsonl", [bedrock_line({"inputText": "Hello"})])
    foreign = put(
        tmp_path / "key.json", {"key": "x", "response": {"status": "ok"}, "request": {"id": 1}}
    )
    assert formats_of([bedrock, foreign]) == ["openai_batch_input", None]
