"""Describe how models can be reached and which parts of a request they accept, without sending anything."""

from __future__ import annotations

from dataclasses import dataclass

from assay.providers.protocol import Habits


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How a model can be reached: endpoint, name of the key's variable, and problems; never the key itself.

    Attributes:
        place: host and port; None if no network is needed.
        local: True if the endpoint is on this machine or network.
        key_variable: the environment variable for the key, even if it is not set; None if no key is used.
        key_set: True if this variable contains a key.
        problem: one sentence that says why the model cannot be called; None if it can. `remedy` says what to do.
        blocked: True if the setting `local_only` forbids the call.
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
    """Parts of a request that a model's endpoint accepts; None means that this is not known.

    Attributes:
        schema: how a structured answer is requested: `response_format`, `forced_tool`, or `in_words` if both were refused.
        images: False if the endpoint refused pictures.
        seed: True if the endpoint accepts a seed; the `anthropic` protocol has none.
        unsent: sampling parameters that the endpoint refused.
    """

    schema: str | None = None
    images: bool | None = None
    seed: bool | None = None
    unsent: tuple[str, ...] = ()


def takes(protocol: str | None, habits: Habits | None) -> Takes:
    """Return the accepted request parts; `habits` is None until the endpoint answers a request with a schema and a seed."""
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
