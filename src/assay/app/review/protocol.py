"""Review protocol of a run: its current version, the work that it requires, and changes for future
reviews.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from assay.domain.achieved_review import AchievedReview
from assay.domain.digest import canonical
from assay.domain.errors import InputError, UnknownName
from assay.domain.identifiers import AssessmentKey, RunId
from assay.domain.lifecycle import DECIDED, AssessmentState, Policy
from assay.domain.observations import Observation, ObservationKind, ProtocolSwitched, with_body
from assay.domain.protocol import MOST, NUMBERS, PLAIN, Protocol, effort, protocol_of
from assay.domain.review_sample import sample_of
from assay.domain.selection import RunSummary, Selection
from assay.domain.suite import JudgeMode
from assay.scoring.evaluators import evaluators_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from assay.app.workspace import Workspace
    from assay.domain.run import PlannedTask, RunPlan
    from assay.store.opening import Store
    from assay.store.review.decisions import StoreDecisions

RANDOM: Final = "random"
"""Review order in a run's protocol: chance draws the next item."""

OF_THE_RUN = AssessmentKey(0)
"""Assessment key of observations that concern the whole run."""


def holding(store: Store, plan: RunPlan) -> Protocol:
    observations = store.observations.read(
        kinds=(ObservationKind.PROTOCOL,), run=plan.id, assessments=(OF_THE_RUN,)
    )
    switches = with_body(observations, ProtocolSwitched)
    return switches[-1][1].protocol if switches else protocol_of(plan.protocol)


def switches_by_run(store: Store) -> dict[RunId, list[tuple[Observation, ProtocolSwitched]]]:
    """Return all protocol changes by run, oldest first."""
    observations = store.observations.read(
        kinds=(ObservationKind.PROTOCOL,), assessments=(OF_THE_RUN,)
    )
    switches: defaultdict[RunId, list[tuple[Observation, ProtocolSwitched]]] = defaultdict(list)
    for observation, switch in with_body(observations, ProtocolSwitched):
        switches[observation.run_id].append((observation, switch))
    return dict(switches)


class RunProtocols:
    """Plans and current protocols of runs. Each plan is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.known: dict[RunId, RunPlan] = {}

    def plan(self, run: RunId) -> RunPlan:
        """Return a run's plan; raises `UnknownName`."""
        if run not in self.known:
            self.known[run] = self._store.journal.plan_of(run)
        return self.known[run]

    def protocol(self, run: RunId) -> Protocol:
        """Return the newest version of a run's protocol; raises `UnknownName`."""
        return holding(self._store, self.plan(run))


def wished(store: Store, run: RunId, numbers: Mapping[str, float]) -> Protocol:
    """Return a run's protocol with other numbers, as a new version if they differ; raises
    `InputError` or `UnknownName`.
    """
    for name, value in numbers.items():
        if name not in NUMBERS:
            raise UnknownName(
                "share", name, NUMBERS, remedy=f"A protocol has: {', '.join(NUMBERS)}."
            )
        if not 0 <= value <= MOST[name]:
            raise InputError(name, f"is {value!r}, but must be between 0 and {MOST[name]:g}.")
    before = holding(store, store.journal.plan_of(run))
    after = replace(before, **numbers)  # type: ignore[arg-type]  # every number is a field of that name
    return before if after == before else replace(after, version=before.version + 1)


def switch(
    workspace: Workspace, run: RunId, numbers: Mapping[str, float], *, reviewer: str | None = None
) -> Protocol:
    """Change numbers of a run's protocol for future reviews and return the new protocol; raises the
    errors of `wished`.
    """
    plan = workspace.journal.plan_of(run)
    after = wished(workspace.store, run, numbers)
    if after == holding(workspace.store, plan):
        return after
    (summary,) = workspace.archive.runs.matching(Selection(runs=(plan.id,)))
    decided = sum(summary.assessments.get(state, 0) for state in DECIDED.values())
    switch = ProtocolSwitched(protocol=after, decided_before=decided)
    (kept,) = workspace.observations.note(
        [
            Observation(
                run_id=plan.id,
                assessment=OF_THE_RUN,
                reviewer=reviewer or workspace.reviewer,
                at=workspace.clock.now(),
                idempotency_key=f"protocol:{plan.id}:{after.version}",
                body=switch,
            )
        ]
    )
    return kept.body.protocol if isinstance(kept.body, ProtocolSwitched) else after


def in_use(store: Store, plans: Iterable[RunPlan]) -> tuple[dict[str, Any], ...]:
    """Return the distinct protocols of these runs, each with its `runs` and what their reviews
    `achieved`.

    `switched` lists protocol changes made after decisions: the new `version` and the number of
    items `decided_before`.
    """
    switches = switches_by_run(store)
    in_use: dict[str, dict[str, Any]] = {}
    for plan in plans:
        of_run = [switch for _, switch in switches.get(plan.id, ())]
        planned = {name: value for name, value in plan.protocol.items() if name not in NUMBERS}
        late = [
            {"version": switch.protocol.version, "decided_before": switch.decided_before}
            for switch in of_run
            if switch.decided_before
        ]
        held: dict[str, Any] = {
            **planned,
            "policy": str(plan.policy),
            **(of_run[-1].protocol if of_run else protocol_of(plan.protocol)).as_json(),
            **({"switched": late} if late else {}),
        }
        in_use.setdefault(canonical(held), {**held, "runs": []})["runs"].append(str(plan.id))
    return with_achieved(store.decisions, in_use.values())


def with_achieved(
    decisions: StoreDecisions, protocols: Iterable[Mapping[str, Any]]
) -> tuple[dict[str, Any], ...]:
    """Return protocols of `in_use` with what the reviews of their runs have achieved by now."""
    protocols = tuple(protocols)
    runs = [RunId(run) for held in protocols for run in held["runs"]]
    ordered = [
        RunId(run) for held in protocols if held.get("order") == RANDOM for run in held["runs"]
    ]
    achieved = decisions.achieved(runs, ordered=ordered)
    return tuple(
        {
            **held,
            "achieved": AchievedReview.total(
                achieved[run] for run in map(RunId, held["runs"])
            ).as_json(),
        }
        for held in protocols
    )


def achieved_by(decisions: StoreDecisions, plan: RunPlan) -> AchievedReview:
    """Return what the review of one run has achieved by now."""
    ordered = (plan.id,) if plan.protocol.get("order") == RANDOM else ()
    return decisions.achieved((plan.id,), ordered=ordered)[plan.id]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Number of assessments to review (the maximum if `most` is True), and their mean number of
    scores.
    """

    items: int
    scores: float
    most: bool = False


def load_of(plan: RunPlan, tasks: Iterable[PlannedTask]) -> Load:
    names = tuple(candidate.name for candidate in plan.candidates)
    criteria = len(plan.rubric.criteria) or 1
    rotates = any(
        not judge.grades_trial(k) for judge in plan.judges for k in range(1, len(plan.judges) + 1)
    )
    items = scores = 0
    for planned in tasks if plan.policy is not Policy.NONE else ():
        n = len(planned.trials)
        candidates = names or tuple(snippet.candidate for snippet in planned.task.snippets)
        for k, times in ((k, 1) for k in planned.trials) if rotates else ((1, n),):
            for evaluator in evaluators_for(planned.task, plan.judges, plan.rubric, k=k):
                if not evaluator.by_model:
                    continue
                for slot in evaluator.slots(candidates):
                    items += times
                    scores += times * criteria * (len(candidates) if slot.candidate is None else 1)
    mean = scores / items if items else 0.0
    if (sample := sample_of(plan.protocol)) is not None:
        items = round(items * sample.share)
    return Load(items=items, scores=mean, most=plan.policy is Policy.FLAGGED)


def load_left(store: Store, summary: RunSummary) -> Load:
    plan = store.journal.plan_of(summary.id)
    joint = any(judge.mode is not JudgeMode.EACH for judge in plan.judges)
    scores = (len(plan.rubric.criteria) or 1) * (len(summary.candidates) if joint else 1)
    return Load(items=summary.assessments.get(AssessmentState.PENDING, 0), scores=float(scores))


def numbers(protocol: Protocol) -> dict[str, float]:
    """Return all numbers of a protocol for a form, including zeros."""
    return {name: float(getattr(protocol, name)) for name in NUMBERS}


def cost(protocol: Protocol, load: Load) -> dict[str, Any]:
    """Return the decisions and key presses that a review needs under a protocol, and the key
    presses without a protocol.
    """
    plain = effort(PLAIN, items=load.items, scores=load.scores)
    return {
        **asdict(effort(protocol, items=load.items, scores=load.scores)),
        "plain_keys": plain.keys,
        "scores": round(load.scores, 1),
        "most": load.most,
    }
