"""Look up the provider and price of each model, and report all problems that would prevent a run.

An HTTP client or price list is imported only when a model needs it, so that `assay --help` stays
fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from assay.domain.agent_limits import AgentLimits
from assay.domain.errors import SettingsError, UnknownName
from assay.domain.model import ModelSpec
from assay.domain.programs import Agent
from assay.domain.suite import PERSON
from assay.ports import BatchApi, ModelGate, Provider
from assay.providers.access import Access, Takes, takes
from assay.providers.address_rules import AddressRules
from assay.providers.endpoint import Endpoint, allowed_endpoint, endpoint_of
from assay.providers.model_refs import provider_names
from assay.providers.origin import origin_of
from assay.providers.prices import PriceList
from assay.providers.recordings import Recording
from assay.providers.registry import PROVIDERS, ProviderContext
from assay.providers.vendors import VENDORS

if TYPE_CHECKING:
    from assay.providers.session import HttpSession

TIMEOUT_S: Final = 120.0
_DEMO: Final = "@demo"


class Directory:
    """The models that one process can use; implements `ports.ModelDirectory`.

    Args:
        environment: variables with keys and addresses, usually `.env` overridden by `os.environ`.
        base_folder: folder for relative file names of recordings.
        read_from: further folders that may contain recordings.
        local_only: True to refuse every endpoint outside this machine and network.
        rules: rules for keys and origins; by default, vendors' keys are sent only to the vendors'
            own origins.
        timeout_s: time limit for a request, from the first byte sent to the last byte read.
        agent: function that opens Assay's own agents.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        base_folder: Path,
        read_from: Iterable[Path] = (),
        local_only: bool = False,
        rules: AddressRules | None = None,
        timeout_s: float = TIMEOUT_S,
        agent: Callable[[Agent], Provider | None] = lambda program: None,
    ) -> None:
        self._environment = environment
        self._base_folder = base_folder
        self._roots = (base_folder, *read_from)
        self._local_only = local_only
        self._rules = rules or AddressRules()
        self._timeout_s = timeout_s
        self._prices = PriceList()
        self._context = ProviderContext(
            environment=environment,
            base_folder=base_folder,
            local_only=local_only,
            rules=self._rules,
            cost_of=self._prices.cost_of,
            http=self._http,
            recording=self._recording,
            agent=agent,
        )
        self._providers: dict[tuple[object, ...], Provider] = {}
        self._batches: dict[tuple[object, ...], BatchApi | None] = {}
        self.batch_files = False
        self._recordings: dict[str, Recording] = {}
        self._session: HttpSession | None = None

    def provider(self, model: ModelSpec, /) -> Provider:
        """Return the provider of a model; all models at one endpoint share one provider.

        Raises SettingsError if the endpoint cannot be used, or if it is not local and only local
        endpoints are allowed.
        """
        key = _key_of(model)
        provider = self._providers.get(key)
        if provider is None:
            provider = self._providers[key] = self._open(model)
        return provider

    def batches(self, model: ModelSpec, /) -> BatchApi | None:
        """Return a model's batch API; None if it has only direct calls.

        Raises SettingsError if its endpoint cannot be used.

        With `batch_files`, a model with OpenAI's protocol but without a batch API gets batch files
        that a person transfers.
        """
        key = _key_of(model)
        if key not in self._batches:
            self._batches[key] = self._open_batches(model)
        return self._batches[key]

    def _open_batches(self, model: ModelSpec) -> BatchApi | None:
        vendor = VENDORS.get(model.provider)
        if vendor is None or model.program is not None:
            return None
        from assay.providers.batches import FileBatches, open_batches  # most runs need none

        if vendor.batch:
            return open_batches(model, self._context)
        return (
            FileBatches(model, self._context)
            if self.batch_files and vendor.protocol == "openai"
            else None
        )

    def address(self, model: ModelSpec, /) -> str | None:
        """Return a model's address without secrets; None if the model needs no network.

        Raises SettingsError if the endpoint cannot be used.
        """
        if model.provider not in VENDORS:
            return None
        return urlsplit(self._endpoint(model).url)._replace(query="", fragment="").geturl()

    def gate(
        self,
        provider: str,
        /,
        *,
        network: bool,
        limits: AgentLimits,
        priced: Callable[[ModelSpec], ModelSpec] = lambda model: model,
    ) -> ModelGate:
        """Return the gate through which one trial of an agent reaches a provider's models, or one
        model as `provider/name`.

        `priced` adds the price that the user's settings state for a model.

        Raises:
            SettingsError: the provider is unknown, its key is missing, or its address cannot be
                used.
        """
        provider, _, name = provider.partition("/")
        model = ModelSpec(provider=provider, name=name)
        if provider not in VENDORS:
            raise SettingsError(
                f"provider {provider!r}", f"is unknown; an agent may ask {', '.join(VENDORS)}."
            )
        if problem := self._key_problem(self._endpoint(model)):
            raise problem
        from assay.providers.gate import Gate  # most runs have no such agent
        from assay.providers.gate_requests import GateRules

        return Gate(
            self._endpoint(model),
            self._context,
            self,
            rules=GateRules(vendor=VENDORS[provider], network=network, model=name),
            limits=limits,
            priced=priced,
        )

    def check_address(self, model: ModelSpec, /) -> None:
        """Raise `SettingsError` if Assay may not call a model's address or use its program."""
        if model.program is None:
            self.address(model)
        else:
            self.provider(model)

    def cost_usd(
        self, model: ModelSpec, /, *, input_tokens: int, output_tokens: int
    ) -> float | None:
        return self._prices.cost_usd(model, input_tokens=input_tokens, output_tokens=output_tokens)

    def context_tokens(self, model: ModelSpec, /) -> int | None:
        return self._prices.context_tokens(model)

    def problems(
        self, models: Iterable[ModelSpec], /, *, judges: Iterable[ModelSpec] = ()
    ) -> tuple[SettingsError, ...]:
        """Return all distinct problems that would prevent calls to these models, without sending
        anything.

        `judges` are also checked for their role as judges, because `echo` cannot grade; `models`
        may omit them.
        """
        grading = tuple(judges)
        models = tuple(models)
        problems: list[SettingsError | None] = []
        if any(model.provider == PERSON for model in models):
            problems.append(
                SettingsError(
                    PERSON,
                    ("is a grader and cannot be called as a candidate."),
                    remedy="Write a person's answers as snippets.",
                )
            )
        problems += [self._problem(model) for model in (*models, *grading)]
        if any(model.provider == "echo" for model in grading):
            problems.append(
                SettingsError(
                    "judge",
                    "echo only repeats the prompt and cannot grade.",
                    remedy="Use a model that can grade, for example openai/gpt-4o-mini, or use replay/FILE for a recording.",
                )
            )
        return tuple(
            {str(problem): problem for problem in problems if problem is not None}.values()
        )

    def access(self, model: ModelSpec, /) -> Access:
        """Return facts about access to a model, without its key and without sending anything; never
        raises.
        """
        problem = self._problem(model)
        sentence = None if problem is None else f"{problem.where} {problem.problem}"
        remedy = "" if problem is None else problem.remedy
        if model.provider not in VENDORS:
            return Access(problem=sentence, remedy=remedy)
        try:
            endpoint = endpoint_of(model, self._environment, self._rules)
        except SettingsError:
            variable = VENDORS[model.provider].key_variable
            return Access(problem=sentence, remedy=remedy, local=False, key_variable=variable)
        return Access(
            problem=sentence,
            remedy=remedy,
            place=endpoint.place,
            local=endpoint.local,
            key_variable=endpoint.key_variable,
            key_set=endpoint.key is not None,
            blocked=self._local_only and not endpoint.local,
        )

    def takes(self, model: ModelSpec, /) -> Takes:
        """Return the request parts that a model's endpoint accepts, according to its protocol and
        its answers so far.
        """
        if model.provider not in VENDORS:
            return Takes()
        provider = self._providers.get(_key_of(model))
        shown = getattr(provider, "habits_of", None)
        return takes(VENDORS[model.provider].protocol, None if shown is None else shown(model.name))

    async def close(self) -> None:
        """Close this event loop's connections; safe to call twice.

        A later call opens new connections.
        """
        for provider in tuple(self._providers.values()):
            await provider.close()
        if self._session is not None:
            await self._session.close()

    def _problem(self, model: ModelSpec) -> SettingsError | None:
        try:
            if model.provider == "replay":
                self._recording(model.name)
            elif model.provider in VENDORS:
                return self._key_problem(self._endpoint(model))
            elif model.provider != PERSON:
                self.provider(model)  # opening a provider sends nothing
        except SettingsError as error:
            return error
        return None

    def _key_problem(self, endpoint: Endpoint) -> SettingsError | None:
        """Return a missing key as a problem, but only at the provider's usual host; other endpoints
        may need no key.
        """
        vendor = endpoint.vendor
        if (
            endpoint.key is not None
            or not vendor.key_required
            or origin_of(endpoint.url) != origin_of(vendor.address)
        ):
            return None
        return SettingsError(
            vendor.key_variable,
            f"is not set, but models of {vendor.name} need it.",
            remedy=f"Set it in the environment or in .env, or point {vendor.address_variable} at another endpoint.",
        )

    def _endpoint(self, model: ModelSpec) -> Endpoint:
        return allowed_endpoint(model, self._environment, self._rules, local_only=self._local_only)

    def _open(self, model: ModelSpec) -> Provider:
        if model.program is not None:
            from assay.providers.programs.opening import open_program  # most runs have no programs

            return open_program(model.program, self._context)
        try:
            opener = PROVIDERS.load(model.provider)
        except UnknownName:
            raise _unknown(model) from None
        if (
            self._local_only
            and model.provider not in PROVIDERS.own
            and not getattr(opener, "local", False)
        ):
            raise SettingsError(
                model.ref,
                "is answered by a plug-in that may use the network, and local_only forbids that.",
                remedy="Use a model from vllm, ollama or replay, or set local_only: false.",
            )
        return opener(model, self._context)

    def _http(self) -> HttpSession:
        if self._session is None:
            from assay.providers.session import HttpSession

            self._session = HttpSession(timeout_s=self._timeout_s)
        return self._session

    def _recording(self, name: str) -> Recording:
        """Return the recording with this file name, relative to the working folder; Assay includes
        `@demo`.
        """
        if name in self._recordings:
            return self._recordings[name]
        from assay.providers.recordings import Recording, bounded_lines

        where = f"replay/{name}"
        if name.startswith("@") and name != _DEMO:
            raise SettingsError(
                where, f"is not a recording included with Assay; the only one is {_DEMO}."
            )
        place = (
            resources.files("assay").joinpath("demo", "judge.jsonl")
            if name == _DEMO
            else self._place(name, where)
        )
        if not place.is_file():  # a device or a pipe may have no end
            folder = "in this installation" if name == _DEMO else f"under {self._base_folder}"
            raise SettingsError(
                where, f"there is no file {name!r} {folder}.", remedy="Check its name."
            )
        try:
            with place.open("r", encoding="utf-8-sig") as lines:
                recording = Recording(bounded_lines(lines, where=where), name=name)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise SettingsError(where, f"the file cannot be read: {reason}.") from error
        self._recordings[name] = recording
        return recording

    def _place(self, name: str, where: str) -> Path:
        """Return a recording's path; outside the allowed folders, the `SettingsError` does not
        reveal if a file exists.
        """
        # name too long, NUL in it, loop of links, no home folder
        with suppress(OSError, ValueError, RuntimeError):
            place = (self._base_folder / Path(name).expanduser()).resolve()
            inside = [
                place.relative_to(root.resolve())
                for root in self._roots
                if place.is_relative_to(root.resolve())
            ]
            if any(not any(part.startswith(".") for part in within.parts) for within in inside):
                return place
        raise SettingsError(
            where,
            "is hidden, or lies outside the project's folder.",
            remedy="Copy the recording there, or add its folder to ASSAY_READ_FROM.",
        )


def _key_of(model: ModelSpec) -> tuple[object, ...]:
    program = model.program
    if program is not None:
        # The id is enough, because the provider keeps the program alive; a digest would take 0.1
        # ms.
        return model.provider, id(program)
    return model.provider, model.name if model.provider == "replay" else model.base_url


def _unknown(model: ModelSpec) -> SettingsError:
    known = ", ".join(provider_names())
    return SettingsError(
        model.ref,
        f"has the unknown provider {model.provider!r}; known are {known}.",
        remedy="If a package offers this provider, install that package.",
    )
