"""Registry of providers by name: Assay's own and those of installed packages.

A function `(model, context)` opens a provider: it returns an object with the two methods of
`assay.ports.Provider`. It must not send anything, because Assay opens a provider to check a suite
before the run. It raises `SettingsError` if a key or an address is missing. With
`context.local_only`, Assay opens a package's provider only if the function has the attribute `local
= True`.

To add an HTTP provider to Assay, add a record to `vendors`. To add any other provider, write a
module like `echo` and add a line to the table below. A package offers a provider under the
entry-point group `assay.providers`; its models are written `NAME/MODEL`.
`assay.testing.ProviderContract` tests both kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from assay.domain.model import ModelSpec
from assay.domain.programs import Agent
from assay.plugin_registry import Registry
from assay.ports import Provider
from assay.providers.address_rules import AddressRules
from assay.providers.prices import CostOf
from assay.providers.recordings import Recording
from assay.providers.vendors import VENDORS

if TYPE_CHECKING:
    from assay.providers.session import HttpSession  # aiohttp takes 0.2 s to import


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderContext:
    """Settings and shared resources for opening a provider.

    Attributes:
        environment: variables with keys and addresses, usually `.env` overridden by `os.environ`.
        base_folder: folder for relative file names.
        local_only: True to allow only endpoints on this machine or network.
        rules: which keys may be sent to which origins, and which addresses runs from the browser
            may call.
        cost_of: function that returns the price of a call from its token counts.
        http: function that returns the shared HTTP session.
        recording: function that returns the recording with a file name.
        agent: function that returns the provider of one of Assay's own agents, or None.
    """

    environment: Mapping[str, str]
    base_folder: Path
    local_only: bool
    rules: AddressRules
    cost_of: CostOf
    http: Callable[[], HttpSession]
    recording: Callable[[str], Recording]
    agent: Callable[[Agent], Provider | None] = lambda program: None


class ProviderOpener(Protocol):
    """Function that opens the provider of a model."""

    def __call__(self, model: ModelSpec, context: ProviderContext, /) -> Provider:
        """Return the provider; raises `SettingsError` if it cannot be used."""
        ...


PROVIDERS: Final[Registry[ProviderOpener]] = Registry(
    kind="provider",
    group="assay.providers",
    own={
        **dict.fromkeys(VENDORS, "assay.providers.http_model:open_endpoint"),
        "replay": "assay.providers.replay:open_replay",
        "echo": "assay.providers.echo:open_echo",
    },
    members=("__call__",),
)
