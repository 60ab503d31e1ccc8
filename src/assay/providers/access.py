"""Facts about access to models: if one can be called from here, and which parts of a request it accepts. Sends nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.providers.protocol import Habits


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Facts about access to a model: endpoint, key and problems. Never holds a key itself.

    Attributes:
        place: host and port; None if no network is needed.
        local: it is on this machine or network.
        key_variable: the variable of the key, whether it is set or not; None if no key is used.
        key_set: the variable holds a key.
        problem: one sentence on why it cannot be called; None if it can. `remedy` says what to do.
        blocked: the setting `local_only` forbids it.
    """

    place: str | None = None
    local: bool = True
    key_variable: str | None = None
    key_set: bool = False
    problem: str | None = None
    remedy: str = ""
    blocked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Takes:
    """Parts of a request that a model's endpoint accepts; None means not known.

    Attributes:
        schema: how a structured answer is requested: `response_format`, `forced_tool`, or `in_words` if the endpoint refused
            the other way.
        images: False if it refused pictures.
        seed: it accepts a seed; the protocol of `anthropic` has none.
        unsent: sampling parameters that it refused.
    """

    schema: str | None = None
    images: bool | None = None
    seed: bool | None = None
    unsent: tuple[str, ...] = ()


def takes(protocol: str | None, habits: Habits | None) -> Takes:
    """Return the parts of a request that are accepted, according to the protocol and the endpoint's answers in this process.

    Args:
        habits: None if it has not answered a request with a schema and a seed.
    """
    if protocol is None:
        return Takes()
    no_seed = protocol == "anthropic"
    if habits is None:
        return Takes(seed=False if no_seed else None)
    native = "forced_tool" if no_seed else "response_format"
    return Takes(
        schema=native if habits.structured else "in_words",
        images=None if habits.images else False,
        seed=not no_seed and "seed" not in habits.unsent,
        unsent=tuple(sorted(habits.unsent)),
    )
