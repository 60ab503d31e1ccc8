"""Keys and local_only: no key reaches an address that the user did not name, as the receiving side
sees it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient
from tests.attack.figures import publish
from tests.attack.network import PUBLIC, CapturedNetwork, each

from assay.app.runs import preflight
from assay.app.workspace import Workspace
from assay.domain.calls import ModelRequest, Purpose, Role
from assay.domain.errors import SettingsError
from assay.domain.failure import CallFailed
from assay.domain.model import DEFAULTS, ModelSpec
from assay.domain.run import RunOptions
from assay.domain.suite import Message
from assay.providers.address_rules import AddressRules
from assay.providers.directory import Directory
from assay.providers.endpoint import endpoint_of
from assay.providers.origin import is_local_address
from assay.web.server import create_app

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

MARK = "sk-secret-of-the-operator"
KEYS = {
    f"{vendor}_API_KEY": f"{MARK}-{vendor}"
    for vendor in ("OPENAI", "ANTHROPIC", "OPENROUTER", "VLLM", "OLLAMA")
}
KEYS |= {
    f"ASSAY_KEY_{host}": f"{MARK}-{host}"
    for host in ("API_EXAMPLE_COM", "10_0_0_7_8000", "GPU__BOX", "EVIL")
}
PROVIDERS = ("openai", "anthropic", "vllm")

DOTS = ".。．｡․‥。．"
HOSTS = (
    *(f"evil{dot}com" for dot in DOTS),
    *(f"api{dot}openai{dot}com{dot}evil{dot}com" for dot in DOTS),
    *(f"api{dot}example{dot}com{dot}evil" for dot in DOTS),
    *(
        "api-example.com",
        "api.example-com",
        "api_example.com",
        "api-example-com",
        "apiexample.com",
        "api--example.com",
    ),
    *(
        "gpu.box",
        "gpu--box",
        "gpu_box",
        "10-0-0-7",
        "10.0.0.7.8000",
        "evil.8000",
        "evil-",
        "-evil",
        "evil..",
        "evil..",
    ),
    *(
        "api.openai.com@evil.com",
        "api.openai.com:443@evil.com",
        "api.openai.com%40evil.com",
        "api.openai.com%00.evil.com",
    ),
    *(
        "evil.com#@api.openai.com",
        "evil.com?@api.openai.com",
        "evil.com\\@api.openai.com",
        "evil.com/@api.openai.com",
    ),
    *(
        "api.openai.com\\.evil.com",
        "api.openai.com\t.evil.com",
        "api.openai.com\n.evil.com",
        "api.openai.com .evil.com",
    ),
    *(
        "api.openai.com..",
        "api.openai.com..evil.com",
        ".api.openai.com",
        "api.openai.com%2eevil.com",
        "api.openai.com;evil",
    ),
    *(
        "api.ореnai.com",
        "арі.openai.com",
        "api.openai.cοm",
        "api.open\u00adai.com.evil",
        "api.open\u200bai.com.evil",
    ),
    *(
        "xn--api-openai-com.evil",
        "xn--pi-7bc.openai.com.evil",
        "XN--EVIL",
        "ⓔⓥⓘⓛ.com",
        "ｅｖｉｌ.com",
        "EVIL.COM",
        "eviL.cOm.",
    ),
    *(
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "017700000001",
        "0177.0.0.1",
        "0",
        "0.0.0.0",
        "①②⑦.1",
    ),
    *(
        "8.8.8.8",
        "134744072",
        "0x08080808",
        "010.010.010.010",
        "8.8.2056",
        "８.８.８.８",
        "169.254.169.254",
        "2852039166",
    ),
    *(
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:8.8.8.8]",
        "[::ffff:7f00:1]",
        "[2002:808:808::1]",
        "[fe80::1%25lo]",
    ),
    *(
        "[64:ff9b::808:808]",
        "[fd00::1]",
        "[::8.8.8.8]",
        "[::1",
        "::1",
        "localhost",
        "LOCALHOST.",
        "localhost.evil.com",
    ),
    *(
        "gpu-box.local",
        "evil.localhost",
        "10.0.0.7",
        "10.0.0.7.",
        "192.168.1.1",
        "metadata",
        "evil",
        "a.b.c.d.e.f",
        "1.1.1.1.1",
    ),
)
HOSTS += (
    *(f"evil{dot}com{dot}local" for dot in "…·・﹒︒"),
    *(
        "٨.٨.٨.٨",
        "𝟖.𝟖.𝟖.𝟖",
        "8.525320",
        "4429711368",
        "[::ffff:0:8.8.8.8]",
        "[fec0::1]",
        "[fe80::1%eth0@evil.com]",
        "[v1.evil]",
    ),
    *(
        f"evil.com{mark}.local"
        for mark in ("%2e", "/", "?", "#", "；", "／", "＃", "|", "%09", "\u2028")
    ),
    *(
        "localhoſt",
        "faß.local",
        "ⅇvil.com.ⅼocal",
        "℀evil.com",
        "127.0.0.1＠evil.com",
        "api.openai.com:443.",
        "%75@evil.com",
    ),
)
OWN_ADDRESSES = ("http://evil.com", "https://evil.com", "http://lab", f"http://{PUBLIC}")
EXPANSIONS = ("{OPENAI_API_KEY}", "OPENAI_API_KEY", "{OPENAI_API_KEY:-x}")
PROXIES = ("HTTP_PROXY", "ALL_PROXY", "http_proxy")
NAMED = {
    "https://api.openai.com",
    "https://api.anthropic.com",
    "http://127.0.0.1:8000",
    "https://api.example.com",
    "http://10.0.0.7:8000",
    "https://10.0.0.7:8000",
    "http://gpu-box",
    "https://gpu-box",
    "http://evil",
    "https://evil",
}
"""Origins that the variables above name, in their one spelling."""


def addresses() -> Iterator[tuple[str, str]]:
    """Every base_url to try, with its provider."""
    ports = ("", ":80", ":443", ":8000", ":8443")
    for provider, scheme, host, port in product(PROVIDERS, ("http", "https", "HTTP"), HOSTS, ports):
        yield provider, f"{scheme}://{host}{port}/v1"


def request_to(model: ModelSpec) -> ModelRequest:
    return ModelRequest(
        model=model,
        messages=(Message(role="user", content="hello"),),
        parameters=DEFAULTS,
        purpose=Purpose(role=Role.CANDIDATE, task="t", trial=1),
    )


async def ask(directory: Directory, model: ModelSpec) -> None:
    """Ask once; a refusal or a failed call is as good as any."""
    with suppress(SettingsError, CallFailed):
        await directory.provider(model).complete(request_to(model))


def origin_in(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[CapturedNetwork]:
    with CapturedNetwork() as captured:
        captured.install(monkeypatch)
        yield captured


def test_no_key_reaches_a_base_url_that_nobody_named(network: CapturedNetwork) -> None:
    through: list[str] = []
    directory = Directory(KEYS, base_folder=Path(), timeout_s=5)

    async def attempt(values: tuple[str, str]) -> None:
        model = ModelSpec(provider=values[0], name="m", base_url=values[1])
        with suppress(SettingsError):
            endpoint = endpoint_of(model, KEYS)
            if endpoint.key is not None:
                # An own key may go to the one origin its variable spells, a vendor's key to the
                # vendor's own.
                assert origin_in(endpoint.url) in NAMED
                return
        before = network.received.count(MARK.encode())
        await ask(directory, model)
        if network.received.count(MARK.encode()) > before:
            through.append(values[1])

    tried = each(addresses(), attempt, at_once=1, close=directory.close)
    assert MARK.encode() not in network.received
    publish("key to a base_url that only a suite names", tried=tried, through=len(through))


def test_local_only_asks_no_address_elsewhere(network: CapturedNetwork) -> None:
    directory = Directory({}, base_folder=Path(), local_only=True, timeout_s=5)

    async def attempt(values: tuple[str, str]) -> None:
        await ask(directory, ModelSpec(provider=values[0], name="m", base_url=values[1]))

    tried = each(addresses(), attempt, close=directory.close)
    assert network.destinations, "literal local addresses are asked"
    elsewhere = [host for host, _ in network.destinations if not is_local_address(host)]
    publish("call to another network with local_only", tried=tried, through=len(elsewhere))


def test_a_resolver_that_changes_its_answer_gains_nothing(network: CapturedNetwork) -> None:
    answers = (
        "127.0.0.1",
        PUBLIC,
        "10.0.0.7",
        "::1",
        "2002:808:808::1",
        "::ffff:8.8.8.8",
        "0.0.0.0",
        "100.64.0.1",
    )
    names = ("gpu-box", "gpu-box.local", "evil.localhost", "metadata", "evil")
    keys = {"OPENAI_API_KEY": MARK}
    plans = list(product(names, answers, answers, (False, True)))

    async def attempt(plan: tuple[str, str, str, bool]) -> None:
        name, first, second, local_only = plan
        asked = iter((first, second))
        network.addresses = lambda _: (next(asked, second),)
        environment = {**keys, "OPENAI_BASE_URL": f"http://{name}:8000/v1"}
        directory = Directory(environment, base_folder=Path(), local_only=local_only, timeout_s=5)
        for _ in range(2):
            await ask(directory, ModelSpec(provider="openai", name="m"))
        network.addresses = lambda _: (first, second)  # both at once
        both = Directory(environment, base_folder=Path(), local_only=local_only, timeout_s=5)
        await ask(both, ModelSpec(provider="openai", name="m"))
        await directory.close()
        await both.close()

    tried = 3 * each(plans, attempt, at_once=1)
    assert MARK.encode() in network.received, "local addresses get the key that the user gave them"
    elsewhere = [host for host, _ in network.destinations if not is_local_address(host)]
    publish("key or call after DNS rebinding", tried=tried, through=len(elsewhere))


def test_a_redirect_never_carries_a_key_elsewhere(network: CapturedNetwork) -> None:
    targets = (
        *(
            "http://evil.com/",
            "https://evil.com/v1",
            "//evil.com/v1",
            "///evil.com",
            "\\\\evil.com",
            "/\\evil.com",
            "evil.com",
        ),
        *(
            "http://127.0.0.1:8001/v1",
            "https://127.0.0.1:8000/v1",
            "http://127.0.0.1/",
            "http://localhost:8000/v1",
        ),
        *(
            "http://127.0.0.1:8000@evil.com/",
            "http://u:p@127.0.0.1:8000/",
            "http://127.1:8000/",
            "http://[::1]:8000/",
        ),
        *(
            "http://evil。com:8000/",
            "http:evil.com",
            "file:///etc/passwd",
            "javascript:1",
            "data:,x",
            "ftp://127.0.0.1:8000/",
        ),
        *(
            "http://127.0.0.1:8000.evil.com/",
            "http://127.0.0.1:08001/",
            "http://2130706433:8001/",
            "",
            " http://evil.com",
        ),
    )
    attempts = product(
        ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"), (301, 302, 303, 307, 308), targets
    )

    async def attempt(values: tuple[str, int, str]) -> None:
        variable, status, target = values
        network.answer = f"HTTP/1.1 {status} Moved\r\nLocation: {target}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        directory = Directory(
            {**KEYS, variable: "http://127.0.0.1:8000/v1"}, base_folder=Path(), timeout_s=5
        )
        provider = "openai" if variable.startswith("OPENAI") else "anthropic"
        await ask(directory, ModelSpec(provider=provider, name="m"))
        await directory.close()

    tried = each(attempts, attempt, at_once=1)
    assert MARK.encode() in network.received, "the named address gets its key"
    elsewhere = [place for place in network.destinations if place != ("127.0.0.1", 8000)]
    publish("key carried on by a redirect", tried=tried, through=len(elsewhere))


def test_no_project_file_collects_keys_or_names_a_program(
    tmp_path: Path, network: CapturedNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    network.addresses = lambda _: ("127.0.0.1",)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n", "utf-8")
    program.chmod(0o755)
    contents = [
        *((".env", f"OPENAI_BASE_URL={url}\n") for url in OWN_ADDRESSES),
        *((".env", f"OPENAI_BASE_URL=http://evil.com/${form}\n") for form in EXPANSIONS),
        *(
            (".env", f"OPENAI_BASE_URL=http://evil.com\n{name}=http://evil.com:3128\n")
            for name in PROXIES
        ),
        (".env", "ASSAY_KEYS={http://evil.com: OPENAI_API_KEY}\nOPENAI_BASE_URL=http://evil.com\n"),
        (".env", "ASSAY_ALLOW_HTTP_KEYS=true\nOPENAI_BASE_URL=http://evil.com\n"),
        (".env", f"ASSAY_CHROMIUM={program}\n"),
        ("assay.yaml", f"chromium: {program}\n"),
        ("assay.yaml", "chromium: ./program\n"),
        ("assay.yaml", "keys: {http://evil.com: OPENAI_API_KEY}\n"),
        ("assay.yaml", "allow_http_keys: true\n"),
        ("assay.yaml", "judge: {model: openai/m, base_url: http://evil.com}\n"),
        ("assay.yaml", '{"chromium": "./program"}\n'),
    ]
    places = ("", "..", "../..")
    tried = through = 0
    for (name, content), place in product(contents, places):
        tried += 1
        folder = tmp_path / f"project-{tried}"
        below = folder / "a" / "b"
        below.mkdir(parents=True)
        (below / place / name).resolve().write_text(content, "utf-8")
        try:
            with Workspace.open(
                below, environment={**KEYS, "PATH": os.environ["PATH"]}
            ) as workspace:
                address = "http://evil.com" if "base_url" in content else None
                model = ModelSpec(provider="openai", name="m", base_url=address)
                each([model], partial(ask, workspace.directory), close=workspace.directory.close)
                through += workspace.settings.values["chromium"] is not None
        except SettingsError as refusal:
            through += name not in refusal.where  # a refusal names the file
    through += ran.exists() + network.received.count(MARK.encode())
    publish("keys or a program by a project's file", tried=tried, through=through)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_repository_cannot_name_a_program_for_git(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n", "utf-8")
    program.chmod(0o755)
    project = tmp_path / "project"
    project.mkdir()
    suite = project / "s.yaml"
    suite.write_text(
        "name: s\ncandidates: [echo]\ntasks: [{id: t, prompt: hello, expected: x, score: exact}]\n",
        "utf-8",
    )
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for command in (
        ("init",),
        ("add", "."),
        (*author, "commit", "-m", "a"),
        ("config", "core.fsmonitor", str(program)),
    ):
        subprocess.run(["git", "-C", str(project), *command], check=True, capture_output=True)
    with Workspace.open(project, environment={}) as workspace:
        ahead = preflight.look_ahead(
            workspace, preflight.load(workspace.settings, suite), RunOptions()
        )
    git = ahead.plan.environment["git"]
    assert isinstance(git, dict)
    assert git["changed"] is False
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file away"
)
def test_a_file_of_another_user_is_refused_by_name(tmp_path: Path) -> None:
    owners, modes, names, places = (
        (65534, 1, 1000, 4242),
        (0o644, 0o666, 0o646),
        ("assay.yaml", ".env"),
        ("", "..", "../.."),
    )
    mine = [(0, mode) for mode in (0o666, 0o646, 0o602)]
    tried = through = 0
    for (owner, mode), name, place in product([*product(owners, modes), *mine], names, places):
        tried += 1
        below = tmp_path / f"project-{tried}" / "a" / "b"
        below.mkdir(parents=True)
        file = (below / place / name).resolve()
        file.write_text(
            "reviewer: mallory\n" if name == "assay.yaml" else "ASSAY_REVIEWER=mallory\n", "utf-8"
        )
        file.chmod(mode)
        os.chown(file, owner, -1)
        with pytest.raises(SettingsError, match="somebody else") as refusal:
            Workspace.open(below, environment={})
        through += str(file) not in str(refusal.value)
    publish("settings in a file that another user can write", tried=tried, through=through)


def test_the_web_asks_no_address_that_a_browser_names(
    tmp_path: Path, network: CapturedNetwork
) -> None:
    network.addresses = lambda _: ("127.0.0.1",)
    urls = [
        f"{scheme}://{host}{port}/v1"
        for scheme, host, port in product(("http", "https"), HOSTS, ("", ":6379"))
    ]
    urls = [url for url in urls if not set(url) & set("\n\t")]
    (tmp_path / "suites").mkdir()
    tried = through = 0
    with (
        Workspace.open(tmp_path, environment=KEYS) as workspace,
        TestClient(create_app(workspace), base_url="http://127.0.0.1:8000") as client,
    ):
        for number, (url, role) in enumerate(product(urls, ("candidate", "judge", "user"))):
            tried += 2
            suite: dict[str, Any] = {
                "name": "s",
                "tasks": [
                    {"id": "t", "prompt": "hello", "expected": "x", "snippets": {"ann": "y"}}
                ],
            }
            model = {"model": "openai/m", "base_url": url}
            if role == "user":
                suite |= {
                    "candidates": ["openai/m"],
                    "judge": {"model": "openai/n", "mode": "each"},
                    "user": model,
                }
                suite["tasks"] = [{"id": "t", "prompt": "hello", "persona": "A user."}]
            else:
                suite |= (
                    {"candidates": [model], "judge": "openai/n"}
                    if role == "candidate"
                    else {"judge": model}
                )
            text = json.dumps(suite)
            saved = client.post(
                "/api/suites", json={"name": f"by-browser-{number}.json", "text": text}
            )
            through += saved.status_code < 400
            (tmp_path / "suites" / f"on-disk-{number}.json").write_text(text, "utf-8")
            started = client.post(
                "/api/start", json={"suite": f"suites/on-disk-{number}.json", "trials": 1}
            )
            through += started.status_code < 400
    assert not network.destinations
    publish("a base_url by the browser", tried=tried, through=through)


def test_an_allowed_origin_is_asked_from_the_web_without_a_key() -> None:
    model = ModelSpec(provider="openai", name="m", base_url="http://127.0.0.1:8000/v1")
    with pytest.raises(SettingsError, match="web_allow_origins"):
        Directory(KEYS, base_folder=Path(), rules=AddressRules(web=frozenset())).provider(model)
