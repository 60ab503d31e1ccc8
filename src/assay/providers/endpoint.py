"""Find a model's endpoint: its address, key and proxy, and if it is on this machine or network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import SplitResult, urlsplit

from assay.domain.errors import SettingsError
from assay.domain.model import ModelSpec
from assay.providers.address_rules import AddressRules, check_web, choose_key
from assay.providers.origin import Origin, check_characters, is_local, origin_of
from assay.providers.vendors import OLLAMA_PORT, VENDORS, Vendor


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An address with its key and proxy, which never appear in a `repr`.

    `key_variable`: environment variable for the key, even if it is not set. `key_missing`: the
    reason why there is no key. `pinned`: True if all addresses of the host must be on this machine
    or network.
    """

    vendor: Vendor
    url: str
    key_variable: str
    key: str | None = field(default=None, repr=False)
    key_missing: str = ""
    proxy: str | None = field(default=None, repr=False)
    pinned: bool = False

    @property
    def place(self) -> str:
        return urlsplit(self.url).netloc

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def local(self) -> bool:
        """True if the host is on this machine or network."""
        return is_local(self.host)


def endpoint_of(
    model: ModelSpec, environment: Mapping[str, str], rules: AddressRules | None = None
) -> Endpoint:
    """Return a model's endpoint from its `base_url`, the provider's address variable, or the
    provider's usual address.

    The module `address_rules` chooses the API key. Raises SettingsError if the address or the key
    cannot be used.
    """
    rules = rules or AddressRules()
    vendor = VENDORS[model.provider]
    address = _address_of(model, environment)
    origin = origin_of(address.geturl())
    choice = choose_key(vendor, origin, _set_origin(vendor, environment), environment, rules)
    path = "/messages" if vendor.protocol == "anthropic" else "/chat/completions"
    url = address._replace(path=address.path.removesuffix(path) + path)
    # A proxy may be outside the network that `local_only` promises not to leave, and a proxy from a
    # project's file would read unencrypted keys.
    proxies = {name: value for name, value in environment.items() if name not in rules.project}
    return Endpoint(
        vendor=vendor,
        url=url.geturl(),
        key_variable=choice.variable,
        key=choice.key,
        key_missing=choice.missing,
        proxy=None if origin.local else proxy_for(url, proxies),
        # A local name may resolve to an address elsewhere; an unencrypted key must not be sent
        # there.
        pinned=origin.scheme != "https" and choice.key is not None and not rules.allow_http_keys,
    )


def allowed_endpoint(
    model: ModelSpec,
    environment: Mapping[str, str],
    rules: AddressRules | None = None,
    *,
    local_only: bool,
) -> Endpoint:
    """Return a model's endpoint; raises `SettingsError` if it cannot be used or a setting forbids
    it.
    """
    rules = rules or AddressRules()
    vendor = VENDORS[model.provider]
    if model.base_url and rules.web is not None:
        address = _address_of(model, environment)
        check_web(
            model.ref, vendor, origin_of(address.geturl()), _set_origin(vendor, environment), rules
        )
    endpoint = endpoint_of(model, environment, rules)
    if local_only and not endpoint.local:
        raise SettingsError(
            model.ref,
            f"is answered by {endpoint.place}, and local_only allows only this machine and network.",
            remedy=f"Use a model from vllm, ollama or replay, set base_url or {endpoint.vendor.address_variable} to a local "
            "address, or set local_only: false.",
        )
    return replace(endpoint, pinned=True) if local_only else endpoint


def _address_of(model: ModelSpec, environment: Mapping[str, str]) -> SplitResult:
    vendor = VENDORS[model.provider]
    if model.base_url:
        return _parsed(model.base_url, where=f"base_url of {model.ref}", vendor=vendor)
    if set_address := environment.get(vendor.address_variable, "").strip():
        return _parsed(set_address, where=vendor.address_variable, vendor=vendor)
    return urlsplit(vendor.address)


def _set_origin(vendor: Vendor, environment: Mapping[str, str]) -> Origin | None:
    set_address = environment.get(vendor.address_variable, "").strip()
    if not set_address:
        return None
    return origin_of(_parsed(set_address, where=vendor.address_variable, vendor=vendor).geturl())


def _parsed(text: str, *, where: str, vendor: Vendor) -> SplitResult:
    """Parse an address in any common form; return it with scheme, host and version path."""
    written = text.strip()
    ollama = vendor.name == "ollama"
    if ollama and "://" not in written:
        written = f"http://{written}"
        default_port = OLLAMA_PORT
    else:
        default_port = None
    try:
        parts = urlsplit(written)
        if "@" in parts.netloc or "@" in written.partition("?")[0]:
            raise SettingsError(
                where,
                "contains a user name or a password, which would be stored with the run.",
                remedy=f"Remove it, and put the key into {vendor.key_variable}.",
            )
        check_characters(written)
        if ollama and (parts.hostname or "") in ("", "0.0.0.0", "::"):
            # A server can listen on 0.0.0.0, but a client must connect to loopback.
            place = "127.0.0.1" if parts.port is None else f"127.0.0.1:{parts.port}"
            parts = parts._replace(netloc=place)
        origin = origin_of(parts.geturl())
        if parts.port is None and default_port is not None:
            origin = replace(origin, port=default_port)
    except ValueError as error:
        raise SettingsError(
            where,
            f"{text!r} is not an address: {error}."
            if "@" not in text
            else f"is not an address: {error}.",
            remedy=f"Write for example {vendor.address}.",
        ) from error
    path = parts.path.rstrip("/")
    for last in ("/chat/completions", "/messages"):
        path = path.removesuffix(last)
    if not path or path == "/api" or (vendor.protocol == "anthropic" and not path.endswith("/v1")):
        path += "/v1"
    return SplitResult(
        scheme=origin.scheme, netloc=origin.netloc, path=path, query=parts.query, fragment=""
    )


def proxy_for(url: SplitResult, environment: Mapping[str, str]) -> str | None:
    """Return the environment's proxy for this host; None if NO_PROXY exempts the host."""

    def setting(name: str) -> str:
        return (environment.get(name.lower()) or environment.get(name) or "").strip()

    host = url.hostname or ""
    for exempt in setting("NO_PROXY").lower().split(","):
        name = exempt.strip().lstrip(".")
        if name and (name in ("*", host) or host.endswith(f".{name}")):
            return None
    return setting(f"{url.scheme.upper()}_PROXY") or setting("ALL_PROXY") or None
