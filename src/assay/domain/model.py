"""Models and the parameters that are sent to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from assay.domain.digest import JsonValue
from assay.domain.programs import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Sampling parameters; None means unset, so that layers can be combined."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] | None = None

    def over(self, below: Parameters) -> Parameters:
        """Return these parameters, with missing values taken from `below`."""
        # as in most layers of most trials; a comparison takes a fifth of the time of a copy
        if self == _UNSET:
            return below
        given = {
            name: value for name in self.__slots__ if (value := getattr(self, name)) is not None
        }
        return replace(below, **given) if given else below

    def as_json(self) -> dict[str, JsonValue]:
        """Return the parameters that are set, by name; `stop` as a list."""
        given: dict[str, JsonValue] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            if value is not None:
                given[name] = list(value) if isinstance(value, tuple) else value
        return given


_UNSET = Parameters()
DEFAULTS = Parameters(
    temperature=0.7, top_p=1.0, max_tokens=2048, frequency_penalty=0.0, presence_penalty=0.0
)
"""Parameters for candidates if the suite does not set any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens."""

    input_usd: float
    output_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A model as `provider/name`, with its endpoint, parameters, price and metadata.

    If `program` is set, the program answers instead of a model: `provider` is its kind and `name`
    its label.
    """

    provider: str
    name: str
    base_url: str | None = None
    parameters: Parameters = field(default_factory=Parameters)
    price: Price | None = None
    context_tokens: int | None = None
    program: Program | None = None
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def ref(self) -> str:
        """Return `provider/name`, or the provider alone if it needs no name (`echo`)."""
        return f"{self.provider}/{self.name}" if self.name else self.provider


def of_program(program: Program) -> ModelSpec:
    return ModelSpec(provider=program.kind, name=program.label, program=program)
