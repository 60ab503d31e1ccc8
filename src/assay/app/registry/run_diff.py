"""Compare two runs: their settings and their results."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from assay.analysis.paired_runs import RunSide, paired_table, side_of
from assay.app.provenance import Provenance, provenance
from assay.app.recorded_settings import graded_rubric, record_document, run_parameters
from assay.app.statistics.pooling import measured_differently
from assay.app.statistics.run_choice import named_run
from assay.app.wire import document
from assay.domain.errors import InputError
from assay.domain.identifiers import folded
from assay.domain.run_choice import in_words
from assay.domain.selection import Selection
from assay.report import wording
from assay.statistics.comparisons import Comparison, compare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.domain.digest import JsonValue
    from assay.domain.suite import CandidateSpec, Task
    from assay.store.opening import Store

MAX_TASKS: Final = 500
"""Maximum number of tasks for which each change has an interval; for more tasks, only the
differences are computed.
"""

_KINDS: Final = (
    "suite",
    "parameters",
    "prompt",
    "criterion",
    "candidate",
    "judge",
    "task",
    "endpoint",
    "version",
    "answered",
)
# Fixed, so that the same two runs always give the same intervals.
_SEED: Final = 20240607


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """One setting that differs between two runs; `lines` is a text diff if both values are long
    texts, otherwise empty.
    """

    kind: str
    name: str
    before: Any
    after: Any
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChange:
    """A candidate's mean on one task in both runs, with the difference (after minus before) and its
    interval.
    """

    task: str
    before: float
    after: float
    difference: float
    ci95: tuple[float, float] | None
    n_before: int
    n_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateChange:
    """A candidate's change between two runs, over tasks that did not change; `comparison` compares
    after with before. `measured_differently`: the change may come from another scorer, rubric or
    judge, so it is not called better or worse.
    """

    candidate: str
    comparison: Comparison
    by_task: tuple[TaskChange, ...]
    measured_differently: bool

    @property
    def sentence(self) -> str:
        comparison = self.comparison
        if comparison.difference is None or comparison.mean_a is None or comparison.mean_b is None:
            return f"{self.candidate}: {wording.why_no_difference(comparison.reason)}"
        ranged = (
            "no range"
            if comparison.ci95 is None
            else f"95% range {wording.difference_range(comparison.ci95)}"
        )
        return (
            f"{self.candidate}: {wording.number(comparison.mean_b)} → {wording.number(comparison.mean_a)}, "
            f"{wording.signed(comparison.difference)} points ({ranged}; {wording.count(comparison.n_tasks, 'shared task')}), "
            f"{self._decision}"
        )

    @property
    def _decision(self) -> str:
        # A new scorer moved a score from 0 to 100, and the candidate was called better.
        if self.measured_differently:
            return "measured differently"
        return self.comparison.decision.replace("_", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDiff:
    """Two runs side by side.

    `measured_differently`: differences in scorer, rubric, judge and its prompt, in words; a change
    of scores may come from them.
    """

    before: str
    after: str
    set_up: tuple[SetUp, ...]
    same: tuple[str, ...]
    changes: tuple[CandidateChange, ...]
    shared_tasks: int
    measured_differently: str = ""

    @property
    def worse(self) -> tuple[str, ...]:
        """Return the candidates that are significantly worse in the second run."""
        return tuple(
            change.candidate for change in self.changes if change.comparison.decision == "worse"
        )


def diff(store: Store, before: str, after: str) -> RunDiff:
    """Compare two runs, each given by its id, a unique prefix or `latest`.

    Only tasks with the same content in both are compared.

    Trials count as independent. Raises `UnknownName` for an unknown run, and `InputError` if both
    ids belong to the same run.
    """
    (before_run,), (other,) = (
        store.archive.runs.matching(Selection(runs=(named_run(store, run),)))
        for run in (before, after)
    )
    if before_run.id == other.id:
        raise InputError("", f"{before_run.id!r} is compared with itself.", remedy="Name two runs.")
    sides = (provenance(store, before_run), provenance(store, other))
    tasks = tuple(
        {p.task.id: (p.task, n) for p, n in store.journal.tasks_of(run.id)}
        for run in (before_run, other)
    )
    set_up = (*_set_up(*sides), *_tasks(*tasks), *_versions(*sides))
    shared = [
        name
        for name, (task, _) in tasks[0].items()
        if name in tasks[1] and tasks[1][name][0].digest == task.digest
    ]
    differences = in_words(measured_differently(store, before_run.id, other.id))
    return RunDiff(
        before=before_run.id,
        after=other.id,
        set_up=set_up,
        same=tuple(kind for kind in _KINDS if kind not in {change.kind for change in set_up}),
        changes=tuple(
            _changes(store, before_run.id, other.id, measured_differently=bool(differences))
        ),
        shared_tasks=len(shared),
        measured_differently=differences,
    )


def _set_up(before: Provenance, after: Provenance) -> Iterator[SetUp]:
    a, b = before.plan, after.plan
    suites = (
        {"name": plan.suite, "file": plan.copy.path, "digest": plan.copy.digest} for plan in (a, b)
    )
    yield from _differing("suite", *suites)
    yield from _differing("parameters", run_parameters(a).as_json(), run_parameters(b).as_json())
    yield from _differing(
        "prompt", {"version": a.prompt_version or None}, {"version": b.prompt_version or None}
    )
    yield from _text("prompt", "system prompt", a.system_prompt, b.system_prompt)
    plain = ("seed", "policy", "margin", "benchmark", "concurrency", "budget_usd")
    yield from _differing(
        "run",
        {name: getattr(a, name) for name in plain},
        {name: getattr(b, name) for name in plain},
    )
    yield from _differing("protocol", dict(a.protocol), dict(b.protocol))
    rubrics = [graded_rubric(side.plan, side.summary) for side in (before, after)]
    scales = [
        {c.name: {"weight": c.weight, "scale": [c.low, c.high]} for c in rubric.criteria}
        for rubric in rubrics
    ]
    yield from _differing("criterion", *scales)
    for criterion in rubrics[0].criteria:
        same = next((c for c in rubrics[1].criteria if c.name == criterion.name), None)
        if same is not None:
            yield from _text(
                "criterion", f"{criterion.name}, guidance", criterion.guidance, same.guidance
            )
    records = [record_document(plan) for plan in (a, b)]
    candidates = [
        {
            c.name: {"asked": _asked(record["asked_with"], c.name), "metadata": dict(c.metadata)}
            for c in plan.candidates
        }
        for record, plan in zip(records, (a, b), strict=True)
    ]
    yield from _differing("candidate", *candidates)
    specs = [{c.name: c for c in plan.candidates} for plan in (a, b)]
    for name in specs[0].keys() & specs[1].keys():
        yield from _text("prompt", f"candidate {name}", *(_own_prompts(of[name]) for of in specs))
    yield from _differing("judge", records[0]["judged_with"], records[1]["judged_with"])
    prompts = [{j.name: j for j in plan.judges} for plan in (a, b)]
    for name in prompts[0].keys() & prompts[1].keys():
        yield from _text("prompt", f"judge {name}", *(of[name].prompt or "" for of in prompts))


def _asked(asked_with: JsonValue, name: str) -> JsonValue:
    """Return a candidate's call settings without prompts, because prompts are compared line by
    line.
    """
    asked = asked_with.get(name) if isinstance(asked_with, dict) else None
    if not isinstance(asked, dict):
        return asked
    return {
        key: value
        for key, value in asked.items()
        if key not in ("system_prompt", "prompt", "messages")
    }


def _own_prompts(candidate: CandidateSpec) -> str:
    """Return the prompts that a candidate defines, as one text; empty if it defines none."""
    system = [] if candidate.system_prompt is None else [f"[system]\n{candidate.system_prompt}"]
    prompt = [] if candidate.prompt is None else [f"[user]\n{candidate.prompt}"]
    return "\n".join(
        [
            *system,
            *prompt,
            *(f"[{message.role}]\n{message.content}" for message in candidate.messages),
        ]
    )


def _tasks(
    before: dict[str, tuple[Task, int]], after: dict[str, tuple[Task, int]]
) -> Iterator[SetUp]:
    for name in before.keys() - after.keys():
        yield SetUp(kind="task", name=name, before="there", after=None)
    for name in after.keys() - before.keys():
        yield SetUp(kind="task", name=name, before=None, after="there")
    plain = ("thing", "weight", "tags", "language", "family")
    for name in (name for name in before if name in after):
        (a, _), (b, _) = sides = (before[name], after[name])
        if a.digest != b.digest:
            yield from _text("task", name, _told(a), _told(b))
        settings = (
            {f"{name}, {key}": getattr(task, key) for key in plain}
            | {f"{name}, scoring": task.scoring.rule, f"{name}, trials": trials}
            for task, trials in sides
        )
        yield from _differing("task", *settings)


def _told(task: Task) -> str:
    messages = "\n".join(f"[{message.role}]\n{message.content}" for message in task.prompt)
    expected = "" if task.expected is None else f"\n[expected]\n{task.expected}"
    return f"[context]\n{task.context}\n{messages}{expected}"


def _versions(before: Provenance, after: Provenance) -> Iterator[SetUp]:
    # Two spellings of a command, such as with and without --json, change nothing in the runs.
    own = [_flat({**side.plan.environment, "command": None}) for side in (before, after)]
    places = [
        {name: value for name, value in flat.items() if name.startswith("endpoints.")}
        for flat in own
    ]
    yield from _differing("endpoint", *places)
    rest = [
        {name: flat[name] for name in flat if name not in place}
        for flat, place in zip(own, places, strict=True)
    ]
    yield from _differing("version", *rest)
    yield from _differing("answered", *(_answered(side) for side in (before, after)))


def _answered(side: Provenance) -> dict[str, str]:
    versions: dict[str, set[str]] = {}
    for total in side.totals:
        versions.setdefault(f"{total.role} {total.name}", set()).add(
            total.model_version or total.model
        )
    return {name: ", ".join(sorted(names)) for name, names in versions.items()}


def _flat(values: Any, before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in dict(values).items():
        name = f"{before}{key}"
        if isinstance(value, dict):
            flat |= _flat(value, f"{name}.")
        else:
            flat[name] = value
    return flat


def _differing(kind: str, before: Any, after: Any) -> Iterator[SetUp]:
    """Yield the keys whose values differ; a missing value counts as None."""
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            yield SetUp(
                kind=kind,
                name=str(name),
                before=_plain(before.get(name)),
                after=_plain(after.get(name)),
            )


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _text(kind: str, name: str, before: str, after: str) -> Iterator[SetUp]:
    if before != after:
        lines = tuple(
            unified_diff(
                before.splitlines(), after.splitlines(), "before", "after", lineterm="", n=2
            )
        )
        yield SetUp(kind=kind, name=name, before=before, after=after, lines=lines)


def _changes(
    store: Store, before: str, after: str, *, measured_differently: bool
) -> Iterator[CandidateChange]:
    columns = [store.archive.scores.columns(Selection(runs=(run,))) for run in (before, after)]
    known = {folded(name): name for name in columns[0].candidates}
    for name in columns[1].candidates:
        if folded(name) not in known:
            continue
        sides = (
            side_of(columns[0], known[folded(name)], "before"),
            side_of(columns[1], name, "after"),
        )
        table = paired_table(*sides).including(("before", "after"))
        comparison = compare(table, "after", "before", None, None, rng=np.random.default_rng(_SEED))
        yield CandidateChange(
            candidate=name,
            comparison=comparison,
            by_task=tuple(_by_task(sides, comparison)),
            measured_differently=measured_differently,
        )


def _by_task(sides: tuple[RunSide, RunSide], comparison: Comparison) -> Iterator[TaskChange]:
    shared = comparison.by_task
    for task in shared:
        ranged = None
        if len(shared) <= MAX_TASKS:
            ranged = compare(
                paired_table(*sides, task=str(task.task)), "after", "before", "these_tasks", None
            ).ci95
        yield TaskChange(
            task=str(task.task).split("\0")[0],
            before=task.mean_b,
            after=task.mean_a,
            difference=task.difference,
            ci95=ranged,
            n_before=task.n_trials_b,
            n_after=task.n_trials_a,
        )


@document
class SetUpDocument:
    """JSON of one setting that differs between two runs."""

    kind: str
    name: str
    before: str | None
    after: str | None
    diff: tuple[str, ...]


@document
class TaskChangeDocument:
    """JSON of one candidate's results on one task in both runs."""

    task: str
    mean_before: float
    mean_after: float
    difference: float
    ci95: tuple[float, float] | None
    n_before: int
    n_after: int


@document
class CandidateChangeDocument:
    """JSON of one candidate's results in both runs."""

    candidate: str
    mean_before: float | None
    mean_after: float | None
    difference: float | None
    ci95: tuple[float, float] | None
    p_value: float | None
    decision: str
    n_tasks: int
    scope: str
    reason: str | None
    verdict: str
    by_task: tuple[TaskChangeDocument, ...]


@document
class RunDiffDocument:
    """JSON of `assay diff`."""

    before: str
    after: str
    set_up: tuple[SetUpDocument, ...]
    same: tuple[str, ...]
    shared_tasks: int
    candidates: tuple[CandidateChangeDocument, ...]


def diff_document(difference: RunDiff) -> RunDiffDocument:
    return RunDiffDocument(
        before=difference.before,
        after=difference.after,
        set_up=tuple(
            SetUpDocument(
                kind=setting.kind,
                name=setting.name,
                before=setting.before,
                after=setting.after,
                diff=setting.lines,
            )
            for setting in difference.set_up
        ),
        same=difference.same,
        shared_tasks=difference.shared_tasks,
        candidates=tuple(map(_change_document, difference.changes)),
    )


def _change_document(change: CandidateChange) -> CandidateChangeDocument:
    comparison = change.comparison
    return CandidateChangeDocument(
        candidate=change.candidate,
        mean_before=comparison.mean_b,
        mean_after=comparison.mean_a,
        difference=comparison.difference,
        ci95=comparison.ci95,
        p_value=comparison.p_value,
        decision=comparison.decision,
        n_tasks=comparison.n_tasks,
        scope=comparison.scope,
        reason=comparison.reason,
        verdict=change.sentence,
        by_task=tuple(
            TaskChangeDocument(
                task=task.task,
                mean_before=task.before,
                mean_after=task.after,
                difference=task.difference,
                ci95=task.ci95,
                n_before=task.n_before,
                n_after=task.n_after,
            )
            for task in change.by_task
        ),
    )
