"""Addresses, keys, proxies and what counts as local."""

from __future__ import annotations

from itertools import product
from urllib.parse import urlsplit

import pytest

from assay.domain.errors import SettingsError
from assay.domain.model import ModelSpec
from assay.providers.address_rules import AddressRules
from assay.providers.endpoint import Endpoint, endpoint_of
from assay.providers.origin import ascii_host, is_local, origin_of


def endpoint(provider: str, base_url: str | None = None, **environment: str) -> Endpoint:
    return endpoint_of(ModelSpec(provider=provider, name="m", base_url=base_url), environment)


@pytest.mark.parametrize(
    ("provider", "url"),
    [
        ("openai", "https://api.openai.com/v1/chat/completions"),
        ("anthropic", "https://api.anthropic.com/v1/messages"),
        ("openrouter", "https://openrouter.ai/api/v1/chat/completions"),
        ("vllm", "http://127.0.0.1:8000/v1/chat/completions"),
        ("ollama", "http://127.0.0.1:11434/v1/chat/completions"),
    ],
)
def test_each_provider_has_its_usual_address(provider: str, url: str) -> None:
    assert endpoint(provider).url == url


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1/chat/completions"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1/chat/completions"),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1/chat/completions"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1/chat/completions"),
        ("http://127.0.0.1:8000/v1/chat/completions", "http://127.0.0.1:8000/v1/chat/completions"),
        ("HTTP://LocalHost:8000", "http://localhost:8000/v1/chat/completions"),
        ("http://[::1]:8000", "http://[::1]:8000/v1/chat/completions"),
        ("https://api.groq.com/openai/v1", "https://api.groq.com/openai/v1/chat/completions"),
        ("https://host/v1beta/openai/", "https://host/v1beta/openai/chat/completions"),
        ("https://host/d/x?api-version=1", "https://host/d/x/chat/completions?api-version=1"),
    ],
)
def test_a_base_url_is_read_with_or_without_slash_and_version(written: str, url: str) -> None:
    assert endpoint("openai", written).url == url
    assert endpoint("openai", OPENAI_BASE_URL=written).url == url


@pytest.mark.parametrize(
    "written", ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/messages"]
)
def test_anthropic_addresses_always_have_their_version(written: str) -> None:
    assert endpoint("anthropic", written).url == "http://h:1/v1/messages"


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434/v1/chat/completions"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1/chat/completions"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080/v1/chat/completions"),
        (":8080", "http://127.0.0.1:8080/v1/chat/completions"),
        ("gpu-box", "http://gpu-box:11434/v1/chat/completions"),
        ("http://gpu-box:9", "http://gpu-box:9/v1/chat/completions"),
        ("https://ollama.example/", "https://ollama.example/v1/chat/completions"),
        ("", "http://127.0.0.1:11434/v1/chat/completions"),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(written: str, url: str) -> None:
    assert endpoint("ollama", OLLAMA_HOST=written).url == url


def test_a_models_own_base_url_comes_before_the_variable() -> None:
    assert "mine" in endpoint("openai", "http://mine/v1", OPENAI_BASE_URL="http://theirs/v1").url


@pytest.mark.parametrize(
    "written",
    [
        "127.0.0.1:8000/v1",
        "ftp://host/v1",
        "http://",
        "not an address",
        "http://host:99999/v1",
        "http://ho st/v1",
        "http://[::1",
    ],
)
def test_an_address_that_is_none_names_the_field(written: str) -> None:
    with pytest.raises(SettingsError, match=r"base_url of openai/m"):
        endpoint("openai", written)
    with pytest.raises(SettingsError, match="OPENAI_BASE_URL"):
        endpoint("openai", OPENAI_BASE_URL=written)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(SettingsError) as caught:
        endpoint("openai", "https://me:hunter2@host/v1")
    assert "hunter2" not in str(caught.value)


class TestKeys:
    def test_a_key_goes_to_the_providers_own_host(self) -> None:
        assert endpoint("openai", OPENAI_API_KEY="k1").key == "k1"

    def test_a_key_goes_to_the_host_the_environment_names(self) -> None:
        set_up = {"OPENAI_API_KEY": "k1", "OPENAI_BASE_URL": "https://proxy.example/v1"}
        assert endpoint("openai", **set_up).key == "k1"
        assert endpoint("openai", "https://proxy.example/other/v1", **set_up).key == "k1"

    @pytest.mark.parametrize(
        "base_url",
        [
            "http://127.0.0.1:9/v1",
            "https://collector.example/v1",
            "https://api.openai.com:8443/v1",
            "http://api.openai.com/v1",
            "https://api.openai.com.evil.example/v1",
            "https://proxy.example:444/v1",
        ],
    )
    def test_an_address_that_only_the_suite_names_gets_no_key(self, base_url: str) -> None:
        asked = endpoint(
            "openai", base_url, OPENAI_API_KEY="k1", OPENAI_BASE_URL="https://proxy.example/v1"
        )
        assert asked.key is None
        assert "no key is bound to http" in asked.key_missing

    def test_the_variable_of_an_origin_is_named_where_its_key_is_missing(self) -> None:
        assert (
            endpoint("openai", "https://collector.example/v1").key_variable
            == "ASSAY_KEY_COLLECTOR_EXAMPLE"
        )

    def test_a_host_can_have_a_key_of_its_own(self) -> None:
        asked = endpoint(
            "openai",
            "https://api.example.com/v1",
            OPENAI_API_KEY="k1",
            ASSAY_KEY_API_EXAMPLE_COM="k2",
        )
        assert asked.key == "k2"

    @pytest.mark.parametrize(
        "host", ["api-example.com", "api.example-com", "api-example-com", "api_example.com"]
    )
    def test_a_variable_belongs_to_one_spelling_of_a_host(self, host: str) -> None:
        assert endpoint("openai", f"https://{host}/v1", ASSAY_KEY_API_EXAMPLE_COM="k2").key is None

    def test_a_settings_binding_decides_by_exact_origin(self) -> None:
        rules = AddressRules(bound={origin_of("https://gate.example:8443"): "GATE_KEY"})
        asked = {
            url: endpoint_of(
                ModelSpec(provider="openai", name="m", base_url=url), {"GATE_KEY": "k3"}, rules
            ).key
            for url in (
                "https://gate.example:8443/v1",
                "https://gate.example/v1",
                "http://gate.example:8443/v1",
            )
        }
        assert list(asked.values()) == ["k3", None, None]

    def test_an_address_from_a_project_file_attracts_no_key(self) -> None:
        names = {"OPENAI_API_KEY": "k1", "OPENAI_BASE_URL": "https://proxy.example/v1"}
        model = ModelSpec(provider="openai", name="m")
        asked = endpoint_of(model, names, AddressRules(project=frozenset({"OPENAI_BASE_URL"})))
        assert asked.key is None
        assert "comes from .env" in asked.key_missing
        assert endpoint_of(model, names, AddressRules(project=frozenset(names))).key == "k1"

    def test_a_key_goes_elsewhere_only_encrypted_unless_allowed(self) -> None:
        names = {"OPENAI_API_KEY": "k1", "OPENAI_BASE_URL": "http://proxy.example/v1"}
        with pytest.raises(SettingsError, match="without encryption"):
            endpoint("openai", **names)
        model = ModelSpec(provider="openai", name="m")
        assert endpoint_of(model, names, AddressRules(allow_http_keys=True)).key == "k1"
        assert endpoint(
            "openai", OPENAI_API_KEY="k1", OPENAI_BASE_URL="http://10.0.0.7:8000"
        ).pinned

    def test_a_key_never_shows_in_a_repr(self) -> None:
        assert "k1" not in repr(endpoint("openai", OPENAI_API_KEY="k1"))

    def test_space_around_a_key_is_taken_off(self) -> None:
        assert endpoint("openai", OPENAI_API_KEY=" k1\n").key == "k1"

    @pytest.mark.parametrize("key", ["two words", "line\nend", "schlüssel"])
    def test_a_key_that_cannot_be_sent_is_named_and_not_repeated(self, key: str) -> None:
        with pytest.raises(SettingsError, match="OPENAI_API_KEY") as caught:
            endpoint("openai", OPENAI_API_KEY=key)
        assert key not in str(caught.value)


class TestProxies:
    def test_a_remote_host_is_asked_through_the_proxy(self) -> None:
        assert endpoint("openai", HTTPS_PROXY="http://proxy:3128").proxy == "http://proxy:3128"
        assert endpoint("openai", https_proxy="http://proxy:3128").proxy == "http://proxy:3128"

    def test_a_local_host_is_not(self) -> None:
        assert (
            endpoint("vllm", HTTP_PROXY="http://proxy:3128", ALL_PROXY="http://proxy:3128").proxy
            is None
        )

    @pytest.mark.parametrize(
        "exempt", ["api.openai.com", ".openai.com", "openai.com", "a.example, openai.com", "*"]
    )
    def test_no_proxy_exempts_hosts(self, exempt: str) -> None:
        assert endpoint("openai", HTTPS_PROXY="http://proxy:3128", NO_PROXY=exempt).proxy is None


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("EVIL。Com.", "evil.com"),
        ("evil．com", "evil.com"),
        ("evil｡com", "evil.com"),
        ("①②⑦.0.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("[::FFFF:127.0.0.1]", "127.0.0.1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("XN--bcher-kva.example", "xn--bcher-kva.example"),
    ],
)
def test_a_host_has_one_spelling(written: str, sent: str) -> None:
    assert ascii_host(written) == sent
    place = f"[{written}]" if written.startswith("0:") else written
    assert urlsplit(endpoint("openai", f"http://{place}:8/v1").url).hostname == sent


@pytest.mark.parametrize(
    "written",
    [
        "evil․com",
        "a..b",
        "-a.b",
        "a-.b",
        "a%2eb",
        "1.2.3.4.5",
        "gpu.8000",
        "x" * 64,
        "",
        "a b",
        "a‥b",
        ".a",
    ],
)
def test_a_host_that_parsers_read_differently_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"host|address"):
        ascii_host(written)
    with pytest.raises(SettingsError):
        endpoint("openai", f"http://{written}/v1")


def test_different_origins_never_share_a_key_variable() -> None:
    labels = ("a", "b", "a-b", "a--b", "xn--a", "8000x")
    hosts = [".".join(parts) for n in (1, 2, 3) for parts in product(labels, repeat=n)] + [
        "127.0.0.1",
        "10.0.0.1",
    ]
    origins = {
        origin_of(f"https://{host}{port}") for host in hosts for port in ("", ":80", ":8000", ":1")
    }
    variables = {origin.key_variable for origin in origins}
    assert len(variables) == len(origins)
    assert origin_of("https://[::1]").key_variable is None


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST.",
        "127.0.0.1",
        "127.8.9.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0.0.0.0",
        "::1",
        "[::1]",
        "::ffff:10.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.178.20",
        "169.254.1.1",
        "fd00::1",
        "fe80::1%eth0",
        "gpu-box",
        "gpu.local",
        "api.localhost",
    ],
)
def test_this_machine_and_network_are_local(host: str) -> None:
    assert is_local(host)


@pytest.mark.parametrize(
    "host",
    [
        "api.openai.com",
        "8.8.8.8",
        "134744072",
        "0x08080808",
        "010.010.010.010",
        "::ffff:8.8.8.8",
        "2001:4860:4860::8888",
        "172.32.0.1",
        "localhost.example.com",
        "127.0.0.1.nip.io",
        "local.example",
        "evil。com",
        "evil．com",
        "evil｡com",
        "evil․com",
        "８.８.８.８",
        "2002:808:808::1",
        "2001:0:808:808::1",
        "192.0.2.1",
        "a b",
        "",
    ],
)
def test_everything_else_is_not(host: str) -> None:
    assert not is_local(host)
