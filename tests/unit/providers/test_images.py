"""Pictures on the wire of both protocols, and endpoints that take none."""

from __future__ import annotations

import base64

import pytest

from assay.domain.calls import ModelRequest, Purpose, Role
from assay.domain.model import ModelSpec, Parameters
from assay.domain.suite import Image, Message
from assay.providers.anthropic_messages import AnthropicMessages
from assay.providers.error_mapping import Saying
from assay.providers.json_body import dump, parse
from assay.providers.openai_chat import OpenAIChat
from assay.providers.protocol import USUAL, Habits, learned

PICTURE = Image(media_type="image/png", data=base64.b64encode(b"png").decode(), caption="Wide:")
BLIND = Habits(images=False)


def request(*images: Image) -> ModelRequest:
    return ModelRequest(
        model=ModelSpec(provider="openai", name="m"),
        messages=(
            Message(role="system", content="Be fair."),
            Message(role="user", content="Grade.", images=images),
        ),
        parameters=Parameters(max_tokens=10),
        purpose=Purpose(role=Role.JUDGE, task="t", trial=1),
    )


def test_chat_completions_have_pictures_as_data_urls_after_the_text() -> None:
    body = parse(dump(OpenAIChat().body(request(PICTURE))))
    assert body["messages"][1]["content"] == [
        {"type": "text", "text": "Grade."},
        {"type": "text", "text": "Wide:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}},
    ]


def test_anthropic_has_pictures_as_base64_sources() -> None:
    body = parse(dump(AnthropicMessages().body(request(PICTURE))))
    assert body["system"] == "Be fair."
    assert body["messages"][0]["content"][-1] == {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "cG5n"},
    }


@pytest.mark.parametrize("wire", [OpenAIChat(), AnthropicMessages()])
def test_without_pictures_and_for_the_blind_a_message_is_its_text(
    wire: OpenAIChat | AnthropicMessages,
) -> None:
    plain = parse(dump(wire.body(request())))
    assert plain["messages"][-1] == {"role": "user", "content": "Grade."}
    assert parse(dump(wire.body(request(PICTURE), BLIND))) == plain


@pytest.mark.parametrize(
    ("words", "images"),
    [
        ("Invalid content type. image_url is only supported by certain models.", False),
        ("This model does not support vision.", False),
        ("messages[1].content must be a string", False),
        ("No endpoints found that support image input", False),
        ("invalid request", False),
        ("This model's maximum context length is 8192 tokens.", True),
    ],
)
def test_a_refusal_that_may_be_about_pictures_is_learned_from(words: str, images: bool) -> None:
    assert learned(USUAL, Saying(message=words), request(PICTURE)).images is images
    assert learned(USUAL, Saying(message=words), request()).images
