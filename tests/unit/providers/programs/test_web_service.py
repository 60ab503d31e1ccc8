"""Web services of any form: the request from templates, the answer by its path, keys, and every way
to fail.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.programs import request_to

from assay.domain.errors import SettingsError
from assay.domain.failure import CallFailed, Fault
from assay.domain.programs import WebService
from assay.providers.address_rules import AddressRules
from assay.providers.directory import Directory
from assay.providers.origin import origin_of

if TYPE_CHECKING:
    from pathlib import Path

    from assay.domain.calls import Reply


class Service:
    """A server that keeps its requests and answers what a test says."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.answer: Callable[[str], tuple[int, dict[str, str], bytes]] = lambda _: (
            200,
            {},
            b"fine",
        )
        self.hold = Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def respond(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                service.requests.append((self.command, self.path, dict(self.headers.items()), body))
                status, headers, content = service.answer(self.path)
                if self.path == "/hang":
                    service.hold.wait(30)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_GET = respond  # noqa: N815 # names of the standard library

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    thread = Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.hold.set()
    made.server.shutdown()
    made.server.server_close()


def ask(
    program: WebService,
    folder: Path,
    *,
    environment: dict[str, str] | None = None,
    rules: AddressRules | None = None,
    local_only: bool = False,
    **about: Any,
) -> Reply:
    async def asked() -> Reply:
        directory = Directory(
            environment or {}, base_folder=folder, rules=rules, local_only=local_only
        )
        request = request_to(program, **about)
        try:
            return await directory.provider(request.model).complete(request)
        finally:
            await directory.close()

    return asyncio.run(asked())


def fails(program: WebService, folder: Path, **how: Any) -> CallFailed:
    with pytest.raises(CallFailed) as raised:
        ask(program, folder, **how)
    return raised.value


def test_a_request_of_any_form_and_an_answer_by_its_path(service: Service, tmp_path: Path) -> None:
    answer = {"out": {"text": "yes"}, "used": {"in": 3, "out": 1}}
    service.answer = lambda _: (200, {}, json.dumps(answer).encode())
    program = WebService(
        url=f"{service.url}/ask/{{{{id}}}}?q={{{{topic}}}}",
        headers={"X-Run": "{{trial}}"},
        body={
            "question": "{{prompt}}",
            "turns": "{{messages}}",
            "n": 1,
            "deep": [{"{{id}}": True}],
        },
        response="$.out.text",
        usage={"input_tokens": "$.used.in", "output_tokens": "$.used.out"},
    )
    reply = ask(program, tmp_path, prompt='say "hi"', columns={"topic": "a/b&c"})
    assert (reply.text, reply.usage.input_tokens, reply.usage.output_tokens, reply.cost_usd) == (
        "yes",
        3,
        1,
        0.0,
    )
    ((method, path, headers, body),) = service.requests
    assert (method, path, headers["X-Run"]) == ("POST", "/ask/t1?q=a%2Fb%26c", "2")
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": 'say "hi"'}]
    assert json.loads(body) == {
        "question": 'say "hi"',
        "turns": turns,
        "n": 1,
        "deep": [{"t1": True}],
    }


def test_text_is_sent_and_read_as_text(service: Service, tmp_path: Path) -> None:
    assert ask(WebService(url=service.url, body="{{prompt}}!"), tmp_path).text == "fine"
    assert service.requests[0][3] == b"hello!"
    assert service.requests[0][2]["Content-Type"] == "text/plain; charset=utf-8"


def test_only_the_key_of_the_address_is_sent(service: Service, tmp_path: Path) -> None:
    own = origin_of(service.url).key_variable
    environment = {"OPENAI_API_KEY": "openai-key", str(own): "own-key"}
    ask(WebService(url=service.url, body="{{prompt}}"), tmp_path, environment=environment)
    named = WebService(url=service.url, headers={"X-Api-Key": "{{key}}"}, body="{{prompt}}")
    ask(named, tmp_path, environment=environment)
    bearer, header = (headers for _, _, headers, _ in service.requests)
    assert bearer["Authorization"] == "Bearer own-key"
    assert header["X-Api-Key"] == "own-key"
    assert "Authorization" not in header
    with pytest.raises(SettingsError, match=str(own)):
        ask(named, tmp_path, environment={"OPENAI_API_KEY": "openai-key"})


@pytest.mark.parametrize(
    ("status", "headers", "kind", "fault", "transient"),
    [
        (500, {}, "http_500", Fault.CANDIDATE, False),
        (404, {}, "http_404", Fault.HARNESS, False),
        (429, {"Retry-After": "7"}, "http_429", Fault.PROVIDER, True),
        (503, {}, "http_503", Fault.PROVIDER, True),
        (302, {"Location": "http://10.0.0.1/"}, "http_302", Fault.HARNESS, False),
    ],
)
def test_a_status_is_a_failure_with_its_name(
    service: Service,
    tmp_path: Path,
    status: int,
    headers: dict[str, str],
    kind: str,
    fault: Fault,
    transient: bool,
) -> None:
    service.answer = lambda _: (status, headers, b'{"error": {"message": "it broke"}}')
    failure = fails(WebService(url=service.url, body="{{prompt}}"), tmp_path)
    assert (failure.kind, failure.fault, failure.transient) == (kind, fault, transient)
    assert failure.retry_after_s == (7.0 if status == 429 else None)
    assert ("10.0.0.1" if status == 302 else "it broke") in failure.detail


@pytest.mark.parametrize(
    ("content", "kind", "detail"),
    [
        (b"<html>", "bad_answer", "that is not JSON: '<html>'"),
        (b'{"out": {}}', "bad_answer", "Its JSON has no $.out.text: $.out is an empty object."),
        (b'{"out": {"text": null}}', "bad_answer", "$.out.text of the program's JSON is null"),
        (b'{"out": {"text": ""}}', "empty", "The answer is empty."),
    ],
)
def test_a_reply_without_an_answer_is_a_failure(
    service: Service, tmp_path: Path, content: bytes, kind: str, detail: str
) -> None:
    service.answer = lambda _: (200, {}, content)
    failure = fails(WebService(url=service.url, body="{{prompt}}", response="$.out.text"), tmp_path)
    assert failure.kind == kind
    assert detail in failure.detail


def test_a_hanging_service_times_out(service: Service, tmp_path: Path) -> None:
    failure = fails(
        WebService(url=f"{service.url}/hang", body="{{prompt}}", timeout_s=0.3), tmp_path
    )
    assert (failure.kind, failure.transient) == ("timeout", True)
    assert "within 0.3 s" in failure.detail


def test_values_of_a_task_cannot_change_the_address(service: Service, tmp_path: Path) -> None:
    failure = fails(WebService(url=f"{service.url}{{{{id}}}}", body="x"), tmp_path)
    assert failure.kind == "bad_input"
    assert not service.requests


def test_the_host_that_is_asked_is_the_one_that_the_key_belongs_to(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def resolve(host: str, port: int, *_: object, **__: object) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    url = service.url.replace("127.0.0.1", "faß。local")
    ask(
        WebService(url=url, body="x"),
        tmp_path,
        environment={str(origin_of(url).key_variable): "own-key"},
    )
    assert asked == ["xn--fa-hia.local"]
    assert service.requests[0][2]["Authorization"] == "Bearer own-key"


def test_local_only_and_the_web_decide_by_the_address(service: Service, tmp_path: Path) -> None:
    local, remote = (
        WebService(url=url, body="{{prompt}}") for url in (service.url, "https://app.example.com/x")
    )
    assert ask(local, tmp_path, local_only=True).text == "fine"
    with pytest.raises(SettingsError, match="local_only"):
        ask(remote, tmp_path, local_only=True)
    with pytest.raises(SettingsError, match="web_allow_origins"):
        ask(local, tmp_path, rules=AddressRules(web=frozenset()))
    assert (
        ask(local, tmp_path, rules=AddressRules(web=frozenset({origin_of(service.url)}))).text
        == "fine"
    )
