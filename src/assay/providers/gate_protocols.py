"""Requests that pass the gate, by the path of each protocol: their fields, kinds of content and
kinds of tools.

House rules. A field, a kind of content or a kind of tool passes only if it is listed here. Content
is part of the request: an address that the provider would fetch and an id of something that the
key's owner stored never pass. Tools are run by the agent; a search or a fetch by the provider
passes only for trials with a network. To let a new field of a provider pass, add it here, with a
case in `tests/attack/test_gate.py` if it could name something outside the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from assay.providers.gate_shapes import (
    Check,
    Kinds,
    PassedParts,
    Shape,
    among,
    each,
    file_address,
    file_data,
    flag,
    free,
    image_address,
    image_data,
    number,
    schema,
    text,
    text_or,
    web_address,
    whole,
)

MAX_OUTPUT: Final = 10_000_000
MAX_ANSWERS: Final = 128

_count: Final = whole(1, MAX_OUTPUT)
_outside: Final = (
    "names something outside of the request that the provider would load, fetch or run."
)
_stored: Final = "names something that is stored in the account of the key's owner."
_dearer: Final = "would change the price of the call."


def _plain(kind: str, **fields: Check) -> Shape:
    """Return the shape of a block of one kind, all of whose fields are required."""
    return Shape(fields={"type": among(kind), **fields}, required=tuple(fields))


# --- Anthropic: messages --------------------------------------------------------------------------


def _cache(value: Any, where: str, parts: PassedParts) -> Any:
    """Pass the mark that caches the prompt up to its block; an hour costs more than the usual five
    minutes.
    """
    passed = Shape(fields={"type": among("ephemeral"), "ttl": among("5m", "1h"), "scope": text})(
        value, where, parts
    )
    parts.cached_for_longer |= passed.get("ttl") == "1h"
    return passed


_CACHED: Final[Mapping[str, Check]] = {"cache_control": _cache}
_A_TEXT: Final = Shape(
    fields={"type": among("text"), "text": text, **_CACHED}, hints=frozenset({"citations"})
)
_INLINE_SOURCE: Final = {"type": among("base64"), "media_type": text}
_A_IMAGE: Final = Shape(
    fields={
        "type": among("image"),
        "source": Kinds(
            kinds={"base64": Shape(fields={**_INLINE_SOURCE, "data": image_data})},
            networked={"url": Shape(fields={"type": among("url"), "url": image_address})},
        ),
        **_CACHED,
    }
)
_A_DOCUMENT: Final = Shape(
    fields={
        "type": among("document"),
        "source": Kinds(
            kinds={
                "base64": Shape(fields={**_INLINE_SOURCE, "data": file_data}),
                "text": Shape(fields={"type": among("text"), "media_type": text, "data": text}),
                "content": Shape(
                    fields={
                        "type": among("content"),
                        "content": text_or(each(Kinds(kinds={"text": _A_TEXT, "image": _A_IMAGE}))),
                    }
                ),
            },
            networked={"url": Shape(fields={"type": among("url"), "url": file_address})},
        ),
        "title": text,
        "context": text,
        "citations": Shape(fields={"enabled": flag}),
        **_CACHED,
    }
)
_A_RESULT: Final = Shape(
    fields={
        "type": among("tool_result"),
        "tool_use_id": text,
        "is_error": flag,
        "content": text_or(
            each(
                Kinds(
                    kinds={
                        "text": _A_TEXT,
                        "image": _A_IMAGE,
                        "document": _A_DOCUMENT,
                        "tool_reference": Shape(
                            fields={"type": among("tool_reference"), "tool_name": text, **_CACHED}
                        ),
                    }
                )
            )
        ),
        **_CACHED,
    }
)
_A_CALL: Final = {"id": text, "name": text, "input": free, **_CACHED}
_A_BLOCKS: Final = Kinds(
    kinds={
        "text": _A_TEXT,
        "image": _A_IMAGE,
        "document": _A_DOCUMENT,
        "tool_use": Shape(
            fields={"type": among("tool_use"), **_A_CALL}, hints=frozenset({"caller"})
        ),
        "tool_result": _A_RESULT,
        "thinking": Shape(fields={"type": among("thinking"), "thinking": text, "signature": text}),
        "redacted_thinking": Shape(fields={"type": among("redacted_thinking"), "data": text}),
    },
    networked={
        "server_tool_use": Shape(
            fields={"type": among("server_tool_use"), **_A_CALL}, hints=frozenset({"caller"})
        ),
        "web_search_tool_result": _plain("web_search_tool_result", tool_use_id=text, content=free),
        "web_fetch_tool_result": _plain("web_fetch_tool_result", tool_use_id=text, content=free),
    },
)
_A_TOOL: Final = {
    "name": text,
    "strict": flag,
    "defer_loading": flag,
    "input_examples": free,
    "eager_input_streaming": flag,
    "allowed_callers": each(among("direct")),
    **_CACHED,
}
_A_SCREEN: Final = {
    "display_width_px": _count,
    "display_height_px": _count,
    "display_number": whole(0, 99),
    "enable_zoom": flag,
}
_A_TOOLS: Final = Kinds(
    kinds={
        "custom": Shape(
            fields={
                "type": among("custom"),
                "description": text,
                "input_schema": schema,
                **_A_TOOL,
            },
            required=("name",),
        ),
        "bash_*": Shape(fields={"type": text, **_A_TOOL}),
        "text_editor_*": Shape(fields={"type": text, "max_characters": _count, **_A_TOOL}),
        "memory_*": Shape(fields={"type": text, **_A_TOOL}),
        "computer_*": Shape(fields={"type": text, **_A_SCREEN, **_A_TOOL}),
    },
    networked={
        f"web_{verb}_*": Shape(
            fields={
                "type": text,
                "max_uses": whole(1, 1000),
                "allowed_domains": each(text),
                "blocked_domains": each(text),
                "max_content_tokens": _count,
                **_A_TOOL,
            }
        )
        for verb in ("search", "fetch")
    },
    default="custom",
)
_A_EDIT: Final = Kinds(
    kinds={
        f"clear_{what}_*": Shape(
            fields={
                "type": text,
                "keep": free,
                "trigger": free,
                "clear_at_least": free,
                "exclude_tools": each(text),
                "clear_tool_inputs": free,
            }
        )
        for what in ("tool_uses", "thinking")
    }
)
_A_COUNTED: Final[Mapping[str, Check]] = {
    "model": text,
    "messages": each(
        Shape(
            fields={
                "role": among("user", "assistant", "system"),
                "content": text_or(each(_A_BLOCKS)),
            },
            required=("role",),
        )
    ),
    "system": text_or(each(Kinds(kinds={"text": _A_TEXT}))),
    "tools": each(_A_TOOLS),
    "tool_choice": Shape(
        fields={
            "type": among("auto", "any", "tool", "none"),
            "name": text,
            "disable_parallel_tool_use": flag,
        }
    ),
    "thinking": Shape(
        fields={
            "type": among("enabled", "disabled", "adaptive"),
            "budget_tokens": _count,
            "display": text,
        }
    ),
    "output_config": Shape(
        fields={
            "effort": text,
            "format": Shape(fields={"type": among("json_schema"), "schema": schema}),
        }
    ),
    "output_format": Shape(fields={"type": among("json_schema"), "schema": schema}),
    "context_management": Shape(fields={"edits": each(_A_EDIT)}),
    **_CACHED,
}
MESSAGES: Final = Shape(
    fields={
        **_A_COUNTED,
        "max_tokens": whole(0, MAX_OUTPUT),
        "metadata": Shape(fields={"user_id": text}),
        "stop_sequences": each(text),
        "stream": flag,
        "temperature": number,
        "top_k": number,
        "top_p": number,
        "service_tier": among("auto", "standard_only"),
        "speed": among("standard"),
        "inference_geo": among("global"),
    },
    required=("messages",),
    hints=frozenset({"diagnostics"}),
    refused={"mcp_servers": _outside, "container": _stored},
)
COUNT_TOKENS: Final = Shape(
    fields=_A_COUNTED,
    required=("messages",),
    hints=frozenset({"metadata", "max_tokens", "stream", "temperature"}),
    refused=MESSAGES.refused,
)

# --- OpenAI: what its three forms share -----------------------------------------------------------

_EFFORT: Final = Shape(
    fields={
        "effort": text,
        "summary": text,
        "generate_summary": text,
        "max_tokens": _count,
        "exclude": flag,
        "enabled": flag,
    }
)
_FORMAT: Final = {"name": text, "description": text, "schema": schema, "strict": flag}
_GRAMMAR: Final = Kinds(
    kinds={
        "text": _plain("text"),
        "grammar": Shape(
            fields={
                "type": among("grammar"),
                "syntax": among("lark", "regex"),
                "definition": text,
                "grammar": Shape(fields={"syntax": among("lark", "regex"), "definition": text}),
            }
        ),
    }
)
_SAMPLING: Final[Mapping[str, Check]] = {
    "model": text,
    "stream": flag,
    "temperature": number,
    "top_p": number,
    "user": text,
    "safety_identifier": text,
    "prompt_cache_key": text,
    "prompt_cache_retention": text,
    "service_tier": among("auto", "default", "flex"),
    "store": flag,
    "parallel_tool_calls": flag,
}
_PENALTIES: Final[Mapping[str, Check]] = {
    "frequency_penalty": number,
    "presence_penalty": number,
    "repetition_penalty": number,
    "top_k": number,
    "min_p": number,
    "logit_bias": free,
    "stop": text_or(each(text)),
    "seed": number,
    "n": whole(1, MAX_ANSWERS),
    "max_tokens": _count,
    "stream_options": Shape(fields={"include_usage": flag, "include_obfuscation": flag}),
}
_HINTS: Final = frozenset({"metadata", "client_metadata"})
_REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("models", "route", "provider", "preset"),
        "could lead to another model; a call goes to the model in `model`.",
    ),
    **dict.fromkeys(("plugins", "web_search_options", "mcp_servers", "transforms"), _outside),
    **dict.fromkeys(("prompt", "previous_response_id", "conversation"), _stored),
    **dict.fromkeys(("prediction", "audio", "modalities"), _dearer),
    "background": "would answer after the call has ended.",
}

# --- OpenAI: chat completions ---------------------------------------------------------------------

_C_TEXT: Final = Shape(fields={"type": among("text"), "text": text, **_CACHED})
_C_FILE: Final = Shape(
    fields={"file_data": file_address, "filename": text},
    required=("file_data",),
    refused={"file_id": _stored},
)
_C_IMAGE: Final = Shape(fields={"url": image_address, "detail": text}, required=("url",))
_C_PARTS: Final = Kinds(
    kinds={
        "text": _C_TEXT,
        "image_url": Shape(
            fields={"type": among("image_url"), "image_url": _C_IMAGE, **_CACHED},
            required=("image_url",),
        ),
        "file": Shape(
            fields={"type": among("file"), "file": _C_FILE, **_CACHED}, required=("file",)
        ),
        "refusal": _plain("refusal", refusal=text),
    }
)
_C_CALLED: Final = Shape(fields={"name": text, "arguments": text})
_C_CALLS: Final = Kinds(
    kinds={
        "function": Shape(
            fields={"type": among("function"), "id": text, "function": _C_CALLED},
            hints=frozenset({"index", "extra_content"}),
        ),
        "custom": Shape(
            fields={
                "type": among("custom"),
                "id": text,
                "custom": Shape(fields={"name": text, "input": text}),
            },
            hints=frozenset({"index"}),
        ),
    },
    default="function",
)
_C_MESSAGE: Final = Shape(
    fields={
        "role": among("system", "developer", "user", "assistant", "tool", "function"),
        "content": text_or(each(_C_PARTS)),
        "name": text,
        "tool_calls": each(_C_CALLS),
        "tool_call_id": text,
        "refusal": text,
        "function_call": _C_CALLED,
        "reasoning": text,
        "reasoning_content": text,
        "reasoning_details": each(
            Shape(
                fields={
                    "type": among("reasoning.text", "reasoning.summary", "reasoning.encrypted"),
                    "text": text,
                    "summary": text,
                    "data": text,
                    "signature": text,
                    "id": text,
                    "format": text,
                    "index": number,
                }
            )
        ),
    },
    required=("role",),
    hints=frozenset({"annotations", "provider_specific_fields"}),
    refused={"audio": _stored},
)
_C_FUNCTION: Final = Shape(
    fields={"name": text, "description": text, "parameters": schema, "strict": flag},
    required=("name",),
)
_C_TOOLS: Final = Kinds(
    kinds={
        "function": Shape(
            fields={"type": among("function"), "function": _C_FUNCTION, **_CACHED},
            required=("type", "function"),
        ),
        "custom": Shape(
            fields={
                "type": among("custom"),
                "custom": Shape(
                    fields={"name": text, "description": text, "format": _GRAMMAR},
                    required=("name",),
                ),
            },
            required=("custom",),
        ),
    }
)
_NAMED: Final = Shape(fields={"name": text})
CHAT: Final = Shape(
    fields={
        **_SAMPLING,
        **_PENALTIES,
        "messages": each(_C_MESSAGE),
        "tools": each(_C_TOOLS),
        "tool_choice": text_or(
            Kinds(
                kinds={
                    "function": Shape(fields={"type": among("function"), "function": _NAMED}),
                    "custom": Shape(fields={"type": among("custom"), "custom": _NAMED}),
                }
            )
        ),
        "functions": each(_C_FUNCTION),
        "function_call": text_or(_NAMED),
        "max_completion_tokens": _count,
        "logprobs": flag,
        "top_logprobs": whole(0, 20),
        "response_format": Kinds(
            kinds={
                "text": _plain("text"),
                "json_object": _plain("json_object"),
                "json_schema": Shape(
                    fields={"type": among("json_schema"), "json_schema": Shape(fields=_FORMAT)}
                ),
            }
        ),
        "reasoning_effort": text,
        "reasoning": _EFFORT,
        "verbosity": text,
        "modalities": each(among("text")),
    },
    required=("messages",),
    hints=_HINTS,
    refused=_REFUSED,
)

# --- OpenAI: completions and embeddings -----------------------------------------------------------


def _prompts(value: Any, where: str, parts: PassedParts) -> Any:
    """Pass a text, a list of texts or of token numbers, or a list of such lists."""
    if isinstance(value, str):
        return value
    tokens = each(whole(0, 10_000_000))
    if isinstance(value, list) and value and isinstance(value[0], str):
        return each(text)(value, where, parts)
    if isinstance(value, list) and value and isinstance(value[0], list):
        return each(tokens)(value, where, parts)
    return tokens(value, where, parts)


COMPLETIONS: Final = Shape(
    fields={
        **_SAMPLING,
        **_PENALTIES,
        "prompt": _prompts,
        "suffix": text,
        "echo": flag,
        "best_of": whole(1, MAX_ANSWERS),
        "logprobs": whole(0, 20),
    },
    required=("prompt",),
    hints=_HINTS,
    refused={name: reason for name, reason in _REFUSED.items() if name != "prompt"},
)
EMBEDDINGS: Final = Shape(
    fields={
        "model": text,
        "input": _prompts,
        "dimensions": _count,
        "encoding_format": among("float", "base64"),
        "user": text,
    },
    required=("input",),
    refused=_REFUSED,
)

# --- OpenAI: responses ----------------------------------------------------------------------------

_R_IDS: Final[Mapping[str, Check]] = {"id": text, "status": text}


def _item(kind: str, *required: str, **fields: Check) -> Shape:
    return Shape(
        fields={"type": among(kind), **_R_IDS, **fields},
        required=required,
        hints=frozenset({"created_by"}),
    )


_R_TEXT: Final = {"text": text}
_R_HINTS: Final = frozenset({"annotations", "logprobs"})
_R_FILE: Final = {"filename": text, "detail": text}
_R_IMAGE: Final = Shape(
    fields={"type": among("input_image"), "image_url": image_address, "detail": text},
    required=("image_url",),
    refused={"file_id": _stored},
)
_R_PARTS: Final = Kinds(
    kinds={
        "input_text": Shape(fields={"type": among("input_text"), **_R_TEXT}),
        "output_text": Shape(fields={"type": among("output_text"), **_R_TEXT}, hints=_R_HINTS),
        "text": Shape(fields={"type": among("text"), **_R_TEXT}),
        "refusal": _plain("refusal", refusal=text),
        "input_image": _R_IMAGE,
        "input_file": Shape(
            fields={"type": among("input_file"), "file_data": file_address, **_R_FILE},
            required=("file_data",),
            refused={
                "file_id": _stored,
                "file_url": "is an address that the provider would fetch.",
            },
        ),
    }
)
_R_SHELL: Final = Shape(
    fields={
        "type": among("exec"),
        "command": each(text),
        "env": free,
        "timeout_ms": number,
        "user": text,
        "working_directory": text,
    }
)
_R_PATCH: Final = Shape(
    fields={"type": among("create_file", "update_file", "delete_file"), "path": text, "diff": text}
)
_R_OUTPUT: Final = text_or(each(_R_PARTS))
_R_ITEMS: Final = Kinds(
    kinds={
        "message": Shape(
            fields={
                "type": among("message"),
                **_R_IDS,
                "role": among("system", "developer", "user", "assistant"),
                "content": text_or(each(_R_PARTS)),
                "phase": text,
            },
            required=("role", "content"),
            hints=frozenset({"created_by"}),
        ),
        "function_call": _item(
            "function_call", "name", call_id=text, name=text, arguments=text, namespace=text
        ),
        "function_call_output": _item(
            "function_call_output", "output", call_id=text, output=_R_OUTPUT
        ),
        "custom_tool_call": _item(
            "custom_tool_call", "name", call_id=text, name=text, input=text, namespace=text
        ),
        "custom_tool_call_output": _item(
            "custom_tool_call_output", "output", call_id=text, output=_R_OUTPUT
        ),
        "local_shell_call": _item("local_shell_call", "action", call_id=text, action=_R_SHELL),
        "local_shell_call_output": _item(
            "local_shell_call_output", "output", call_id=text, output=text
        ),
        "apply_patch_call": _item(
            "apply_patch_call", "operation", call_id=text, operation=_R_PATCH
        ),
        "apply_patch_call_output": _item(
            "apply_patch_call_output", "status", call_id=text, output=text
        ),
        "reasoning": _item(
            "reasoning",
            summary=each(
                Kinds(
                    kinds={"summary_text": Shape(fields={"type": among("summary_text"), **_R_TEXT})}
                )
            ),
            content=each(
                Kinds(
                    kinds={
                        "reasoning_text": Shape(
                            fields={"type": among("reasoning_text"), **_R_TEXT}
                        ),
                        "text": Shape(fields={"type": among("text"), **_R_TEXT}),
                    }
                )
            ),
            encrypted_content=text,
        ),
    },
    networked={
        "web_search_call": _item(
            "web_search_call",
            action=Shape(
                fields={
                    "type": text,
                    "query": text,
                    "queries": each(text),
                    "url": web_address,
                    "pattern": text,
                    "sources": free,
                }
            ),
        )
    },
    default="message",
)
_R_FUNCTION: Final = Shape(
    fields={
        "type": among("function"),
        "name": text,
        "description": text,
        "parameters": schema,
        "strict": flag,
        "defer_loading": flag,
    },
    required=("name",),
)
_R_CUSTOM: Final = Shape(
    fields={
        "type": among("custom"),
        "name": text,
        "description": text,
        "format": _GRAMMAR,
        "defer_loading": flag,
    },
    required=("name",),
)
_R_SEARCH: Final = Shape(
    fields={
        "type": text,
        "search_context_size": text,
        "user_location": free,
        "filters": Shape(fields={"allowed_domains": each(text)}),
        "external_web_access": flag,
    }
)
_R_TOOLS: Final = Kinds(
    kinds={
        "function": _R_FUNCTION,
        "custom": _R_CUSTOM,
        "local_shell": _plain("local_shell"),
        "apply_patch": _plain("apply_patch"),
        "namespace": Shape(
            fields={
                "type": among("namespace"),
                "name": text,
                "description": text,
                "tools": each(Kinds(kinds={"function": _R_FUNCTION, "custom": _R_CUSTOM})),
            },
            required=("name", "tools"),
        ),
    },
    networked={"web_search": _R_SEARCH, "web_search_preview": _R_SEARCH},
)
_R_CHOICE: Final = Shape(
    fields={"type": among("function", "custom", "local_shell", "apply_patch"), "name": text}
)
RESPONSES: Final = Shape(
    fields={
        **_SAMPLING,
        "input": text_or(each(_R_ITEMS)),
        "instructions": text,
        "tools": each(_R_TOOLS),
        "tool_choice": text_or(
            Kinds(
                kinds={
                    **dict.fromkeys(
                        ("function", "custom", "local_shell", "apply_patch"), _R_CHOICE
                    ),
                    "allowed_tools": Shape(
                        fields={
                            "type": among("allowed_tools"),
                            "mode": among("auto", "required"),
                            "tools": each(_R_CHOICE),
                        }
                    ),
                }
            )
        ),
        "max_output_tokens": _count,
        "max_tool_calls": _count,
        "reasoning": _EFFORT,
        "text": Shape(
            fields={
                "verbosity": text,
                "format": Kinds(
                    kinds={
                        "text": _plain("text"),
                        "json_object": _plain("json_object"),
                        "json_schema": Shape(fields={"type": among("json_schema"), **_FORMAT}),
                    }
                ),
            }
        ),
        "stream_options": Shape(fields={"include_obfuscation": flag}),
        "include": each(
            among(
                "reasoning.encrypted_content",
                "message.output_text.logprobs",
                "message.input_image.image_url",
            )
        ),
        "top_logprobs": whole(0, 20),
        "truncation": among("auto", "disabled"),
        "background": among(False),
    },
    required=("input",),
    hints=_HINTS,
    refused=_REFUSED,
)

FORMS: Final[Mapping[str, Mapping[str, Shape]]] = {
    "anthropic": {"/v1/messages": MESSAGES, "/v1/messages/count_tokens": COUNT_TOKENS},
    "openai": {
        "/v1/chat/completions": CHAT,
        "/v1/responses": RESPONSES,
        "/v1/completions": COMPLETIONS,
        "/v1/embeddings": EMBEDDINGS,
    },
}
"""The requests of each wire protocol, by path."""
