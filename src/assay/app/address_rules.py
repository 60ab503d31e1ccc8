"""Read the user's rules about addresses and keys from the settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from assay.domain.errors import SettingsError
from assay.providers.address_rules import AddressRules, FetchRules
from assay.providers.origin import Origin, bare_origin, origin_of

if TYPE_CHECKING:
    from assay.app.settings import Settings

_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]*")


def address_rules(settings: Settings, *, web: bool) -> AddressRules:
    """Return the workspace's rules about addresses and keys; raises `SettingsError` for invalid
    `keys` or `web_allow_origins`.

    `web` is True if a browser or an HTTP request starts the model calls.
    """
    return AddressRules(
        bound=_bound(settings),
        project=settings.project_variables,
        allow_http_keys=bool(settings.values["allow_http_keys"]),
        web=_allowed(settings) if web else None,
    )


def _bound(settings: Settings) -> dict[Origin, str]:
    bound: dict[Origin, str] = {}
    for written, variable in settings.values["keys"].items():
        where = f"keys, {written} ({settings.origins['keys']})"
        origin = bare_origin(str(written), where=where)
        if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable):
            # The value may be the key itself, so the message does not repeat it.
            remedy = (
                "Write the name of the variable that holds the key, in capitals: EXAMPLE_API_KEY."
            )
            raise SettingsError(where, "does not name a variable.", remedy=remedy)
        bound[origin] = variable
    return bound


def fetch_rules(settings: Settings) -> FetchRules:
    """Return the rules for fetching the documents in templates; raises `SettingsError` for an
    invalid `fetch.allow`.
    """
    return FetchRules(
        frozenset(_origins(settings, "fetch.allow")), bool(settings.values["local_only"])
    )


def _origins(settings: Settings, key: str) -> set[Origin]:
    where = f"{key} ({settings.origins[key]})"
    return {bare_origin(str(written), where=where) for written in settings.values[key]}


def _allowed(settings: Settings) -> frozenset[Origin]:
    allowed = _origins(settings, "web_allow_origins")
    judge = settings.values["judge"]
    for entry in judge if isinstance(judge, list) else [judge]:
        address = entry.get("base_url") if isinstance(entry, Mapping) else None
        # the owner named it; if it is invalid, the reader of judges reports that
        if isinstance(address, str):
            try:
                allowed.add(origin_of(address))
            except ValueError:
                continue
    return frozenset(allowed)
