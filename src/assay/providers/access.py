"""Describe how Assay can reach a model and which parts of a request it accepts, without sending
anything.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.providers.protocol import Habits


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Facts about access to a model: its endpoint, the variable for its key, and problems; never
    the key itself.

    `place`: host and port; None if no network is needed. `local`: True if the endpoint is on this
    machine or network. `key_variable`: environment variable for the key, even if it is not set;
    None if no key is used. `key_set`: True if this variable contains a key. `problem`: one sentence
    with the reason why Assay cannot call the model, or None; `remedy`: what to do. `blocked`: True
    if the setting `local_only` forbids the call.
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
    """Parts of a request that a model's endpoint accepts; None means unknown.

    `schema`: how Assay requests a structured answer: `response_format`, `forced_tool`, or
    `in_words` if the endpoint refused both. `images`: False if the endpoint refused images. `seed`:
    True if the endpoint accepts a seed, which the `anthropic` protocol lacks. `unsent`: sampling
    parameters that the endpoint refused.
    """

    schema: str | None = None
    images: bool | None = None
    seed: bool | None = None
    unsent: tuple[str, ...] = ()


def takes(protocol: str | None, habits: Habits | None) -> Takes:
    """Return the accepted request parts; `habits` is None before the first answer to a request with
    a schema.
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
