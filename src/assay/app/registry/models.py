"""Models that were called or can be called, with usage, failures, and a test call.

Usage is summed once; later reads add only new calls (`Archive.call_groups`), so reading takes the
same time however many calls are stored. Price, address and parameters come from the newest plans.
Runs with pending items are not listed for a model, because reviewers would learn which models took
part. Keys are never shown, only whether they are set.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from cachetools import FIFOCache

from assay.app.calibration_status import words
from assay.app.runs.cost_estimate import Tally
from assay.app.suites import model_candidate
from assay.domain.calls import AnswerSchema, ModelRequest, Purpose, Role
from assay.domain.errors import AssayError, Refused, UnknownName
from assay.domain.failure import CallFailed, Fault
from assay.domain.model import ModelSpec, Parameters
from assay.domain.programs import KINDS
from assay.domain.selection import RunSummary, Selection
from assay.domain.suite import PERSON, Message
from assay.providers.wires import sent_parameters

if TYPE_CHECKING:
    from assay.app.runs.plan_cache import Plans
    from assay.app.workspace import Workspace
    from assay.domain.calibration_record import CalibrationRecord
    from assay.domain.digest import JsonValue
    from assay.domain.identifiers import RunId
    from assay.domain.model_calls import CallFact, CallGroup
    from assay.domain.run import RunPlan
    from assay.engine.estimate import CostEstimate
    from assay.providers.access import Access, Takes
    from assay.providers.directory import Directory

LATENCIES: Final = 2_000
"""Number of newest successful calls that the latency summary covers."""

RUNS_SHOWN: Final = 200
CHECK_S: Final = 60.0
_FREE: Final = frozenset({"echo", "replay", *KINDS})
_CHECK_TOKENS: Final = 256
_CHECKS_KEPT: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """Price in US dollars per million tokens, with its source (`assay.yaml`, `suite`, `list` or
    `free`); None if unknown.
    """

    input_usd: float | None = None
    output_usd: float | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Total usage of one model in one role.

    `cost_usd` covers the calls with a known price, and `unpriced` counts the others. `unanswered`
    counts requests in imported runs that have no answer.
    """

    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    runs: int = 0
    unanswered: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Result of a test call. `text` is the reply; `kind` and `detail` describe a failure."""

    at: str
    ok: bool
    latency_s: float | None = None
    text: str = ""
    model_version: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    kind: str | None = None
    detail: str | None = None
    takes: Takes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model in one role, `candidate` or `judge`.

    Attributes:
        takes: supported request features, from the last test call of this process, otherwise from
            the protocol.
        check_costs: price of a test call; None if unknown. `can_check` is True if the model can be
            called.
        checked: last test call of this process.
        stamps: for a judge, trust tiers of its newest calibrations.
    """

    ref: str
    role: str
    provider: str
    access: Access
    takes: Takes
    price: Priced
    context_tokens: int | None
    parameters: Mapping[str, Any]
    used: Used
    last: CallFact | None
    last_error: CallFact | None
    can_check: bool
    check_costs: float | None
    checked: Checked | None
    stamps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOfModel:
    """A run, with the usage of one model in one role."""

    run: RunSummary
    role: str
    used: Used


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """Failed calls with the same failure kind and fault; `last` is the newest.

    Requests without an answer have kind `missing`.
    """

    kind: str
    fault: str
    role: str
    calls: int
    last: CallFact | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Latency of the newest successful calls, in seconds."""

    role: str
    n: int
    p50: float
    p90: float
    p99: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInFull:
    """One model with its roles, runs, failures and latency."""

    ref: str
    roles: tuple[Model, ...]
    runs: tuple[RunOfModel, ...]
    more_runs: int
    failures: tuple[Failing, ...]
    latencies: tuple[Latency, ...]
    calibrations: tuple[CalibrationRecord, ...]


@dataclass(slots=True)
class _Sum:
    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    last: int = 0
    last_failed: int = 0
    first: int = 0
    runs: dict[int, _Sum] = field(default_factory=dict)
    failures: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)

    def add(self, call_group: CallGroup) -> None:
        self.calls += call_group.calls
        self.input_tokens += call_group.input_tokens
        self.output_tokens += call_group.output_tokens
        self.cost_usd += call_group.cost_usd
        self.unpriced += call_group.unpriced
        self.first = min(self.first or call_group.first_call, call_group.first_call)
        self.last = max(self.last, call_group.last_call)
        if call_group.kind is not None:
            self.failed += call_group.calls
            self.last_failed = max(self.last_failed, call_group.last_call)
            n, last = self.failures.get((call_group.kind, call_group.fault or ""), (0, 0))
            newest = max(last, call_group.last_call)
            self.failures[call_group.kind, call_group.fault or ""] = (n + call_group.calls, newest)

    def used(self, unanswered: int = 0) -> Used:
        same = ("calls", "failed", "input_tokens", "output_tokens", "cost_usd", "unpriced")
        return Used(
            unanswered=unanswered,
            runs=len(self.runs),
            **{name: getattr(self, name) for name in same},
        )


class Models:
    """Models by role, with their usage. Thread-safe."""

    def __init__(self, workspace: Workspace, plans: Plans) -> None:
        self._workspace = workspace
        self._plans = plans
        self._lock = Lock()  # protects everything below
        self._newest = self._aside = 0
        self._sums: dict[tuple[str, str], _Sum] = {}
        self._runs: dict[int, RunId] = {}
        self._missing: dict[int, int] = {}
        self._checks: FIFOCache[str, Checked] = FIFOCache(_CHECKS_KEPT)
        self._checking: set[str] = set()

    def all(self) -> tuple[Model, ...]:
        """Return every model that was called or is in a new plan or the settings, sorted by role
        (judges first) and name.
        """
        with self._lock:
            self._take_in()
            specs = self._specs()
            roles = {*specs, *self._sums}
            tiers = self._tiers()
            models = [self._model(role, ref, specs, tiers) for role, ref in roles]
        return tuple(
            sorted(models, key=lambda model: (model.role != Role.JUDGE, model.ref.lower()))
        )

    def knows(self, ref: str) -> bool:
        """True if `one` can return this model, because the store or the settings contain it."""
        with self._lock:
            self._take_in()
            return any(name == ref for _, name in self._sums) or any(
                name == ref for _, name in self._specs()
            )

    def one(self, ref: str) -> ModelInFull:
        """Return a model with each of its roles; raises `UnknownName`."""
        with self._lock:
            self._take_in()
            specs = self._specs()
            mine = sorted({role for role, name in (*specs, *self._sums) if name == ref})
            if not mine:
                known = sorted({name for _, name in (*specs, *self._sums)})
                raise UnknownName("model", ref, known, remedy="/models lists them.")
            tiers = self._tiers()
            roles = tuple(self._model(role, ref, specs, tiers) for role in mine)
            runs = self._runs_of(ref)
            failures = [
                (role, kind, fault, n, last)
                for role in mine
                for (kind, fault), (n, last) in self._sum(role, ref).failures.items()
            ]
            failures += [
                (role, "missing", Fault.PROVIDER.value, n, 0)
                for role in mine
                if (n := self._unanswered(role, ref))
            ]
            facts = self._facts([last for *_, last in failures])
            latencies = tuple(
                latency for role in mine if (latency := self._latency(role, ref)) is not None
            )
        return ModelInFull(
            ref=ref,
            roles=roles,
            runs=tuple(runs[:RUNS_SHOWN]),
            more_runs=max(0, len(runs) - RUNS_SHOWN),
            failures=tuple(
                Failing(kind=kind, fault=fault, role=role, calls=n, last=facts.get(last))
                for role, kind, fault, n, last in sorted(failures, key=lambda failure: -failure[3])
            ),
            latencies=latencies,
            calibrations=tuple(self._workspace.calibrations.records(model=ref)),
        )

    def check(self, ref: str) -> Checked:
        """Ask a model a test question without retries, and remember the outcome; raises
        `UnknownName` or `Refused`.
        """
        with self._lock:
            self._take_in()
            specs = self._specs()
            spec = next((specs[role, name] for role, name in specs if name == ref), None)
            if spec is None and not any(name == ref for _, name in self._sums):
                raise UnknownName(
                    "model", ref, sorted({name for _, name in specs}), remedy="/models lists them."
                )
            spec = spec or self._bare(ref)
            access = self._workspace.directory.access(spec)
            if access.problem is not None:
                raise Refused(ref, f"cannot be called: {access.problem}", remedy=access.remedy)
            if not _can_check(spec):
                raise Refused(ref, "replays recorded answers, so it cannot answer a test question.")
            if ref in self._checking:
                raise Refused(ref, "is already being checked.", remedy="Wait for the result.")
            self._checking.add(ref)
        try:
            # Made outside the lock, because a call may take `CHECK_S` seconds, during which pages
            # need the lock.
            outcome = asyncio.run(_ask(self._workspace, spec))
        finally:
            with self._lock:
                self._checking.discard(ref)
        with self._lock:
            self._checks[ref] = outcome
        return outcome

    # --- internal, called under the lock

    def _take_in(self) -> None:
        """Add the calls since the last read.

        If a run was deleted or restored, recount all calls.
        """
        runs = self._workspace.archive.runs.numbers()
        aside = self._workspace.archive.runs.newest_run_event()
        if aside != self._aside or any(
            runs.get(key) != identifier for key, identifier in self._runs.items()
        ):
            self._aside = aside
            self._newest, self._sums, self._runs = 0, {}, {}
        self._newest, groups = self._workspace.archive.calls.groups(self._newest)
        self._missing = self._workspace.archive.calls.missing_answers()
        for group in groups:
            self._runs[group.run_key] = group.run_id
            whole = self._sums.setdefault((group.role, group.model), _Sum())
            whole.add(group)
            whole.runs.setdefault(group.run_key, _Sum()).add(group)

    def _left_out(self, role: str, run_key: int) -> int:
        return self._missing.get(run_key, 0) if role == Role.CANDIDATE else 0

    def _unanswered(self, role: str, ref: str) -> int:
        return sum(self._left_out(role, key) for key in self._sum(role, ref).runs)

    def _sum(self, role: str, ref: str) -> _Sum:
        return self._sums.get((role, ref)) or _Sum()

    def _specs(self) -> dict[tuple[str, str], ModelSpec]:
        """Return how to call each model, by role and reference, from the newest plan with the model
        or from the settings.
        """
        specs: dict[tuple[str, str], ModelSpec] = {}
        for plan in self._plans.newest():
            self._note(specs, plan)
        for ref in self._workspace.settings.judge_refs:
            if (spec := self._named(ref)) is not None:
                specs.setdefault((Role.JUDGE.value, spec.ref), spec)
        named = {ref for _, ref in (*specs, *self._sums)}
        for ref in self._workspace.settings.values["prices"]:
            if str(ref) not in named and (spec := self._named(str(ref))) is not None:
                specs.setdefault((Role.CANDIDATE.value, spec.ref), spec)
        for role, ref in self._sums:
            if (role, ref) not in specs and (spec := self._of_older_run(role, ref)) is not None:
                specs[role, ref] = spec
        return {key: spec for key, spec in specs.items() if spec.provider != PERSON}

    def _note(self, specs: dict[tuple[str, str], ModelSpec], plan: RunPlan) -> None:
        for candidate in plan.candidates:
            if candidate.model is not None:
                asked = candidate.model.parameters.over(plan.parameters)
                # each trial has its own seed
                spec = replace(candidate.model, parameters=replace(asked, seed=None))
                specs.setdefault((Role.CANDIDATE.value, spec.ref), spec)
        for judge in plan.judges:
            parameters = judge.parameters.over(judge.model.parameters)
            specs.setdefault(
                (Role.JUDGE.value, judge.model.ref), replace(judge.model, parameters=parameters)
            )

    def _of_older_run(self, role: str, ref: str) -> ModelSpec | None:
        newest = max(self._sum(role, ref).runs)
        summary = self._workspace.archive.runs.matching(Selection(runs=(self._runs[newest],)))
        specs: dict[tuple[str, str], ModelSpec] = {}
        for entry in summary:
            plan = self._plans.of(entry)
            self._note(specs, plan)
            if "imported" in plan.environment and role == Role.CANDIDATE:
                specs.setdefault((role, ref), replace(self._bare(ref), parameters=plan.parameters))
        return specs.get((role, ref)) or self._named(ref)

    def _named(self, ref: str) -> ModelSpec | None:
        """Return the model with this reference, without parameters; None for an invalid
        reference.
        """
        try:
            return model_candidate(self._workspace.settings, ref).model
        except AssayError:
            return None

    def _bare(self, ref: str) -> ModelSpec:
        """Return the model with this reference.

        A name from imported data without a known provider cannot be called.
        """
        return self._named(ref) or ModelSpec(provider=ref, name="")

    def _model(
        self,
        role: str,
        ref: str,
        specs: Mapping[tuple[str, str], ModelSpec],
        tiers: Mapping[str, Sequence[str]],
    ) -> Model:
        directory = self._workspace.directory
        spec = specs.get((role, ref)) or self._bare(ref)
        asked = self._sum(role, ref)
        # The list shows no failure texts, because in a run under review they may contain a judge's
        # scores.
        facts = {
            call: replace(fact, detail=None)
            for call, fact in self._facts([asked.last, asked.last_failed]).items()
        }
        checked = self._checks.get(ref)
        estimate = _estimate(self._workspace.directory, spec)
        access = directory.access(spec)
        return Model(
            ref=ref,
            role=role,
            provider=spec.provider,
            access=access,
            takes=checked.takes
            if checked is not None and checked.takes is not None
            else directory.takes(spec),
            price=self._price(spec),
            context_tokens=directory.context_tokens(spec),
            parameters=sent_parameters(spec, spec.parameters).as_json(),
            used=asked.used(self._unanswered(role, ref)),
            last=facts.get(asked.last),
            last_error=facts.get(asked.last_failed),
            can_check=_can_check(spec) and access.problem is None,
            check_costs=estimate.most_usd,
            checked=checked,
            stamps=tuple(tiers.get(ref, ())) if role == Role.JUDGE else (),
        )

    def _price(self, spec: ModelSpec) -> Priced:
        if spec.price is not None:
            configured = self._named(spec.ref)
            source = (
                "assay.yaml"
                if configured is not None and configured.price == spec.price
                else "suite"
            )
            return Priced(
                input_usd=spec.price.input_usd, output_usd=spec.price.output_usd, source=source
            )
        if spec.provider in _FREE:
            return Priced(input_usd=0.0, output_usd=0.0, source="free")
        directory = self._workspace.directory
        into, out = (
            directory.cost_usd(spec, input_tokens=tokens, output_tokens=1000 - tokens)
            for tokens in (1000, 0)
        )
        if into is None or out is None:
            return Priced()
        return Priced(input_usd=into * 1000, output_usd=out * 1000, source="list")

    def _facts(self, calls: Sequence[int]) -> dict[int, CallFact]:
        wanted = [call for call in calls if call]
        return (
            {fact.call: fact for fact in self._workspace.archive.calls.facts(wanted)}
            if wanted
            else {}
        )

    def _latency(self, role: str, ref: str) -> Latency | None:
        asked = self._sum(role, ref)
        if not asked.calls:
            return None
        seconds = self._workspace.archive.calls.newest_latencies(
            ref, role=role, first=asked.first, last=asked.last, limit=LATENCIES
        )
        if not seconds:
            return None
        p50, p90, p99 = np.quantile(np.asarray(seconds), (0.5, 0.9, 0.99)).tolist()
        return Latency(role=role, n=len(seconds), p50=p50, p90=p90, p99=p99, most=max(seconds))

    def _runs_of(self, ref: str) -> list[RunOfModel]:
        asked: dict[RunId, list[tuple[str, Used]]] = defaultdict(list)
        for (role, name), whole in self._sums.items():
            if name == ref:
                for key, usage in whole.runs.items():
                    asked[self._runs[key]].append((role, usage.used(self._left_out(role, key))))
        if not asked:
            return []
        rows: list[RunOfModel] = []
        for summary in self._workspace.archive.runs.matching(Selection(runs=tuple(asked))):
            rows += [
                RunOfModel(run=summary, role=role, used=usage) for role, usage in asked[summary.id]
            ]
        return rows

    def _tiers(self) -> dict[str, list[str]]:
        tiers: dict[str, list[str]] = defaultdict(list)
        for record in self._workspace.calibrations.records(newest_only=True):
            if words(record) not in tiers[record.identity.model]:
                tiers[record.identity.model].append(words(record))
        return tiers


def _can_check(spec: ModelSpec) -> bool:
    return spec.provider not in ("replay", PERSON)


def _question(spec: ModelSpec) -> ModelRequest:
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"word": {"type": "string"}},
        "required": ["word"],
        "additionalProperties": False,
    }
    return ModelRequest(
        model=spec,
        messages=(Message(role="user", content='Answer with the word "ready".'),),
        parameters=Parameters(max_tokens=_CHECK_TOKENS, seed=1),
        purpose=Purpose(role=Role.JUDGE, task="check", trial=1),
        answer_schema=AnswerSchema(name="check", schema=schema),
    )


def _estimate(directory: Directory, spec: ModelSpec) -> CostEstimate:
    tally = Tally(directory)
    tally.add(_question(spec), times=1)
    return tally.estimate()


async def _ask(workspace: Workspace, spec: ModelSpec) -> Checked:
    # Own providers, because the server's connections belong to another event loop.
    beside = workspace.beside()
    at, began = workspace.clock.now(), workspace.clock.monotonic()
    request = _question(spec)
    try:
        reply = await asyncio.wait_for(beside.directory.provider(spec).complete(request), CHECK_S)
    except CallFailed as error:
        took, cost_usd = workspace.clock.monotonic() - began, error.cost_usd
        return Checked(
            at=at, ok=False, latency_s=took, kind=error.kind, detail=error.detail, cost_usd=cost_usd
        )
    except TimeoutError:
        return Checked(
            at=at, ok=False, kind="timeout", detail=f"No answer came within {CHECK_S:.0f} seconds."
        )
    finally:
        await beside.directory.close()
    return Checked(
        at=at,
        ok=True,
        latency_s=reply.latency_s or workspace.clock.monotonic() - began,
        text=_word(reply.text),
        model_version=reply.model_version,
        input_tokens=reply.usage.input_tokens,
        output_tokens=reply.usage.output_tokens,
        cost_usd=reply.cost_usd,
        takes=beside.directory.takes(spec),
    )


def _word(text: str) -> str:
    """Return the reply's `word` field, or the beginning of a reply without this field."""
    try:
        reply = json.loads(text)
    except ValueError:
        reply = None
    word = reply.get("word") if isinstance(reply, dict) else None
    return str(word if isinstance(word, str) else text)[:80]
