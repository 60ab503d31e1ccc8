"""Decide which key may be sent to which origin, and which addresses a run from the browser may
call.

Keys are bound to exact origins. A vendor's key is sent only to the vendor's origin, to the origin
in the vendor's address variable, and to origins that the user's own settings bind to it. A
`base_url` from a suite, a browser or an import never gets a key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from assay.domain.errors import SettingsError
from assay.providers.origin import Origin, is_local_address, is_public, origin_of
from assay.providers.vendors import Vendor

_NOT_IN_A_HEADER: Final = re.compile(r"[^\x21-\x7e]")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressRules:
    """The user's rules about addresses and keys.

    Attributes:
        bound: environment variable of the key for each origin, from the user's own settings.
        project: variables set by a project's `.env`. An address in this file gets only keys from
            the same file, and a proxy in it is ignored.
        allow_http_keys: True to allow sending keys unencrypted to hosts outside this machine and
            network.
        web: origins allowed for `base_url` in runs from the browser; None for other runs.
    """

    bound: Mapping[Origin, str] = field(default_factory=dict)
    project: frozenset[str] = frozenset()
    allow_http_keys: bool = False
    web: frozenset[Origin] | None = None


class FetchRules(NamedTuple):
    """`allowed`: origins that may be private.

    `local_only`: refuse every address outside this machine and network, even then.
    """

    allowed: frozenset[Origin] = frozenset()
    local_only: bool = False

    def problem(self, origin: Origin, address: str) -> str | None:
        """Return the reason why an address may not be called; None if it may."""
        if self.local_only and not is_local_address(address):
            return "which local_only forbids, because it is not on this machine or network"
        if origin in self.allowed or is_public(address):
            return None
        return f"which is not public; if you trust the document, add {origin} to `fetch.allow` in your own settings"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChoice:
    """The key for an origin; it never appears in a `repr`.

    `variable`: environment variable for the key, even if it is not set. `missing`: the reason why
    there is no key, for messages.
    """

    variable: str
    key: str | None = field(default=None, repr=False)
    missing: str = ""


def choose_key(
    vendor: Vendor,
    origin: Origin,
    set_origin: Origin | None,
    environment: Mapping[str, str],
    rules: AddressRules,
) -> KeyChoice:
    """Return the key that may be sent to an origin; `set_origin` is the origin in the vendor's
    address variable.

    Raises SettingsError if the key may not be sent, or could only be sent unencrypted.
    """
    own = origin.key_variable
    missing = ""
    if origin in rules.bound:
        variable = rules.bound[origin]
    elif own is not None and environment.get(own, "").strip():
        variable = own
    elif origin == origin_of(vendor.address):
        variable = vendor.key_variable
    elif origin == set_origin:
        variable = vendor.key_variable
        if vendor.address_variable in rules.project and variable not in rules.project:
            # A downloaded repository may contain a `.env`, and an address in it must not collect
            # keys from the environment.
            missing = (
                f"{variable} is not sent to {origin}, because that address comes from .env and the key does not; bind the key "
                f"to {origin} under `keys` in your own settings, or set {vendor.address_variable} in the environment"
            )
    else:
        variable = own or f"a variable bound to {origin} under `keys`"
        if own is None or environment.get(vendor.key_variable, "").strip():
            binding = f"bind {origin} under `keys` in your own settings"
            missing = f"no key is bound to {origin}; {binding}" + (f", or set {own}" if own else "")
    return _choice(variable, missing, origin, environment, rules)


def own_key(origin: Origin, environment: Mapping[str, str], rules: AddressRules) -> KeyChoice:
    """Return the key for an origin that is no vendor's; raises `SettingsError` like
    `choose_key`.
    """
    variable = rules.bound.get(origin) or origin.key_variable
    if variable is None:
        unset = f"no key is bound to {origin}; bind one under `keys` in your own settings"
        return KeyChoice(variable=f"a variable bound to {origin} under `keys`", missing=unset)
    return _choice(variable, "", origin, environment, rules)


def _choice(
    variable: str, missing: str, origin: Origin, environment: Mapping[str, str], rules: AddressRules
) -> KeyChoice:
    key = None if missing else environment.get(variable, "").strip() or None
    if key is None:
        return KeyChoice(variable=variable, missing=missing or f"{variable} is not set")
    if _NOT_IN_A_HEADER.search(key):
        raise SettingsError(
            variable,
            "contains characters that no key has (a space, a line end or a letter outside ASCII).",
            remedy="Set the variable again without these characters.",
        )
    if origin.scheme != "https" and not origin.local and not rules.allow_http_keys:
        raise SettingsError(
            variable,
            f"would be sent to {origin} without encryption; nothing was sent.",
            remedy="Use an https address, or allow it with --allow-http-keys.",
        )
    return KeyChoice(variable=variable, key=key)


def check_web(
    ref: str, vendor: Vendor, origin: Origin, set_origin: Origin | None, rules: AddressRules
) -> None:
    """Raise `SettingsError` if runs from the browser may not call the origin of a `base_url`."""
    if rules.web is None or origin in {
        *rules.web,
        *rules.bound,
        origin_of(vendor.address),
        set_origin,
    }:
        return
    raise SettingsError(
        f"base_url of {ref}",
        f"names {origin}, which the settings do not allow for runs and calls started from the browser or over HTTP.",
        remedy=f"Add it to assay.yaml as `web_allow_origins: [{origin}]`, set {vendor.address_variable} to it, or run the "
        "suite in a terminal.",
    )
