"""The runs that a result reads, and the differences between runs that keep their scores from being
pooled into a verdict.

A result reads one run, the newest of its suite, unless the user asks for more. Runs of one suite
are pooled only if they measure the same thing: the same scorer, rubric, judge, prompt and tasks.
Runs of different suites differ in all of these; naming several suites asks for that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from assay.domain.digest import JsonValue, digest, text_digest
from assay.domain.errors import DifferentRuns, InputError
from assay.domain.identifiers import RunId, folded
from assay.domain.run import RunPlan
from assay.domain.selection import RunSummary, Selection
from assay.domain.suite import JudgeSpec, Rubric

LATEST: Final = "latest"
"""Word in place of a run's id: the newest run that the other filters match."""

_RUNS_SHOWN: Final = 3
_TASKS_SHOWN: Final = 5


class RunChoice(StrEnum):
    """How the runs of a result were chosen.

    `EACH`: no run has both candidates, so each is read from its newest run. `PARTS`: imported runs
    with one part of the candidates each, as other harnesses write them. `REFERENCES`: a run that
    grades imported responses, and the imported run with people's grades of the same responses.
    `BASELINE`: earlier runs are compared with new ones, not pooled.
    """

    NEWEST = "newest"
    EACH = "newest_of_each"
    PARTS = "imported_parts"
    REFERENCES = "with_references"
    SUITES = "newest_of_suites"
    BASELINE = "against_baseline"
    NAMED = "named"
    BATCH = "batch"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRuns:
    """The runs of one result.

    Attributes:
        selection: the user's filters with the runs filled in, unless a batch or all runs were asked
            for.
        runs: the chosen runs, newest first; only the first of them if there are very many.
        of: number of runs of the same suites that match the filters; None if it was not counted.
        other_suites: names of suites with runs that were not chosen, only if the user named no
            suite, run or batch.
        newer: a newer run of the suite that was passed over because it lacks one of the candidates.
        counted_before: the newest run with counted trials, if the chosen run has none.
        without: (candidate, run) for candidates of the suite that only other runs have, with the
            newest such run.
        larger: (run, trials) for the run of the suite with most trials in any state, and how many
            more than the chosen run it has; None if the chosen run has as many. A later import of a
            part of the rows is such a chosen run.
    """

    selection: Selection
    choice: RunChoice
    runs: tuple[RunSummary, ...] = ()
    of: int | None = None
    other_suites: tuple[str, ...] = ()
    newer: RunSummary | None = None
    counted_before: RunSummary | None = None
    without: tuple[tuple[str, RunId], ...] = ()
    larger: tuple[RunId, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRead:
    """A run that a result reads.

    `n_trials`: its counted trials; None if they were not counted by run.
    """

    run_id: RunId
    suite: str
    started: str
    imported: bool
    n_trials: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsRead:
    """The runs behind a result, as every answer states them.

    Attributes:
        runs: oldest first; only the newest of them if there are very many.
        pooled: number of runs with counted trials. A run and the reference grades of its responses
            count as one.
        n_trials: counted trials of all runs.
        of, other_suites, newer, counted_before, without, larger: as in `ChosenRuns`, with ids in
            place of runs.
        differences: differences between the runs, in words; empty unless the user allowed a mixed
            verdict.
    """

    choice: RunChoice
    runs: tuple[RunRead, ...]
    pooled: int
    n_trials: int
    of: int | None = None
    other_suites: tuple[str, ...] = ()
    newer: RunId | None = None
    counted_before: RunId | None = None
    without: tuple[tuple[str, RunId], ...] = ()
    larger: tuple[RunId, int] | None = None
    differences: str = ""


def runs_read(
    chosen: ChosenRuns,
    runs: Sequence[str],
    n_trials: int,
    *,
    by_run: Mapping[RunId, int] | None = None,
    differences: Iterable[RunDifference] = (),
) -> RunsRead:
    """Describe the runs behind a result. `runs`: the ids of the runs that it read, oldest first."""
    own = frozenset(runs)
    shown = [run for run in reversed(chosen.runs) if run.id in own]
    counts = {RunId(run): n_trials for run in runs} if len(runs) == 1 else (by_run or {})
    return RunsRead(
        choice=chosen.choice,
        runs=tuple(
            RunRead(
                run_id=run.id,
                suite=run.suite,
                started=run.started,
                imported=run.imported,
                n_trials=None if by_run is None and len(runs) != 1 else counts.get(run.id, 0),
            )
            for run in shown
        ),
        pooled=1
        if chosen.choice is RunChoice.REFERENCES and runs
        else len(runs if by_run is None else by_run),
        n_trials=n_trials,
        of=chosen.of,
        other_suites=chosen.other_suites,
        newer=None if chosen.newer is None else chosen.newer.id,
        counted_before=None if chosen.counted_before is None else chosen.counted_before.id,
        without=chosen.without,
        larger=chosen.larger,
        differences=in_words(differences),
    )


class Measured(StrEnum):
    """A part of the measurement in which runs may differ."""

    SCORER = "scorer"
    RUBRIC = "rubric"
    JUDGE = "judge"
    PROMPT = "prompt"
    TASKS = "tasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDifference:
    """One difference between the runs of a suite.

    `ways`: each variant in words, with its runs; empty for differing tasks.
    """

    what: Measured
    ways: tuple[tuple[str, tuple[str, ...]], ...] = ()
    detail: str = ""

    def __str__(self) -> str:
        if not self.ways:
            return f"the {self.what} ({self.detail})"
        return f"the {self.what} ({'; '.join(f'{words} in {listed(runs)}' for words, runs in self.ways)})"


def plan_differences(
    plans: Sequence[RunPlan],
    *,
    judges: Collection[str] = (),
    criteria: Collection[str] = (),
    prompts_apart: bool = False,
) -> tuple[RunDifference, ...]:
    """Compare how runs of one suite ask and grade: judges, rubric and prompts.

    `judges` and `criteria` are the selected ones; empty for all. `prompts_apart`: candidates with
    different prompts are kept apart, so that a different system prompt pools nothing.
    """
    wanted = frozenset(map(folded, judges))
    graders = {
        str(plan.id): [judge for judge in plan.judges if not wanted or folded(judge.name) in wanted]
        for plan in plans
    }
    grading = [plan for plan in plans if graders[str(plan.id)]]
    prompts: dict[str, list[str]] = {}
    for plan in plans:
        prompts.setdefault("" if prompts_apart else plan.system_prompt, []).append(str(plan.id))
    users: dict[str, list[str]] = {}
    for plan in plans:
        users.setdefault(
            "" if plan.user is None else f"{plan.user.model.ref}, {plan.user.turns} turns", []
        ).append(str(plan.id))
    return (
        *_differing(
            Measured.JUDGE, _groups({run: _judges(specs) for run, specs in graders.items()})
        ),
        *_differing(
            Measured.RUBRIC,
            _groups({str(plan.id): _rubric(plan.rubric, criteria) for plan in grading}),
        ),
        *_differing(
            Measured.PROMPT,
            _groups({str(plan.id): _judge_prompts(graders[str(plan.id)]) for plan in grading}),
        ),
        *_differing(
            Measured.PROMPT, {_text("system prompt", text): runs for text, runs in prompts.items()}
        ),
        *_differing(
            Measured.PROMPT,
            {f"simulated user {who or 'none'}": runs for who, runs in users.items()},
        ),
    )


def grader_differences(graders: Mapping[RunId, frozenset[str]]) -> tuple[RunDifference, ...]:
    """Compare the names of the scorers and judges of imported runs."""
    words = {
        str(run): ", ".join(sorted(names, key=folded)) or "none" for run, names in graders.items()
    }
    return _differing(Measured.SCORER, _groups({run: (text, text) for run, text in words.items()}))


def task_differences(changed: Sequence[str], missing: Sequence[str]) -> tuple[RunDifference, ...]:
    """Report tasks whose content changed between runs of a suite, and tasks that only some of these
    runs have.
    """
    parts = [f"changed: {_tasks(changed)}"] if changed else []
    parts += [f"only in some of the runs: {_tasks(missing)}"] if missing else []
    return (RunDifference(what=Measured.TASKS, detail="; ".join(parts)),) if parts else ()


def refusal(differences: Iterable[RunDifference], newest: str) -> DifferentRuns:
    """Return the error for runs that may not be pooled, with the newest run as the one to read
    instead.
    """
    return DifferentRuns(in_words(differences), newest)


def baseline_refusal(
    differences: Iterable[RunDifference], baseline: Sequence[str], tested: Sequence[str]
) -> InputError:
    """Return the error for a baseline that does not measure the same thing as the tested runs."""
    problem = (
        f"{listed(baseline)} and {listed(tested)} differ in {in_words(differences)}, "
        "so a difference in their scores would not show a change of the candidate."
    )
    remedy = (
        "Run the suite again for the baseline, or regrade it, so that both measure the same thing. "
        "--pool-anyway gives a verdict that is labelled as mixed."
    )
    return InputError("--baseline", problem, remedy=remedy)


def in_words(differences: Iterable[RunDifference]) -> str:
    """Join differences to a phrase such as `the scorer (exact in R1; contains in R2) and the tasks
    (changed: t1)`.
    """
    texts = [str(difference) for difference in differences]
    return "".join(texts) if len(texts) < 2 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def listed(names: Sequence[str]) -> str:
    """List the first run ids or candidates and the number of the others."""
    return ", ".join(names[:_RUNS_SHOWN]) + (
        f" and {len(names) - _RUNS_SHOWN} more" if len(names) > _RUNS_SHOWN else ""
    )


def has_candidate(run: RunSummary, name: str) -> bool:
    """True if a run has a candidate with this name, ignoring case."""
    return folded(name) in {folded(candidate) for candidate in run.candidates}


def _tasks(names: Sequence[str]) -> str:
    return ", ".join(names[:_TASKS_SHOWN]) + (
        f" and {len(names) - _TASKS_SHOWN} more" if len(names) > _TASKS_SHOWN else ""
    )


def _groups(described: Mapping[str, tuple[str, str]]) -> dict[str, list[str]]:
    """Group runs by key; `described` holds (key, words) by run.

    Equal words of different keys are told apart by the key.
    """
    words: dict[str, str] = {}
    runs: dict[str, list[str]] = {}
    for run, (key, text) in described.items():
        words.setdefault(key, text)
        runs.setdefault(key, []).append(run)
    several = [text for text in words.values() if list(words.values()).count(text) > 1]
    versions = {
        key: f"{text}, version {text_digest(key)[:6]}" if text in several else text
        for key, text in words.items()
    }
    return {versions[key]: of_key for key, of_key in runs.items()}


def _differing(what: Measured, groups: Mapping[str, Sequence[str]]) -> tuple[RunDifference, ...]:
    if len(groups) < 2:
        return ()
    return (
        RunDifference(
            what=what, ways=tuple((words, tuple(runs)) for words, runs in groups.items())
        ),
    )


def _judges(judges: Sequence[JudgeSpec]) -> tuple[str, str]:
    settings: list[JsonValue] = [
        [
            folded(judge.name),
            judge.model.ref,
            judge.mode.value,
            {name: value for name, value in judge.parameters.as_json().items() if name != "seed"},
            judge.pages,
        ]
        for judge in sorted(judges, key=lambda judge: folded(judge.name))
    ]
    return digest(settings), ", ".join(judge.name for judge in judges) or "no judge"


def _rubric(rubric: Rubric, criteria: Collection[str]) -> tuple[str, str]:
    if not criteria:
        return rubric.digest, ", ".join(
            criterion.name for criterion in rubric.criteria
        ) or "no criteria"
    wanted = frozenset(map(folded, criteria))
    own = Rubric(
        criteria=tuple(
            criterion for criterion in rubric.criteria if folded(criterion.name) in wanted
        )
    )
    return own.digest, ", ".join(criterion.name for criterion in own.criteria) or "no criteria"


def _judge_prompts(judges: Sequence[JudgeSpec]) -> tuple[str, str]:
    # A persona of None or "code" begins the same prompt (`store.queries.plans.settings_of`).
    texts: list[JsonValue] = [
        [folded(judge.name), judge.prompt, None if judge.persona == "code" else judge.persona]
        for judge in sorted(judges, key=lambda judge: folded(judge.name))
    ]
    return digest(texts), "judge's own prompt" if any(
        judge.prompt for judge in judges
    ) else "judge's built-in prompt"


def _text(what: str, text: str) -> str:
    return f"{what} {text_digest(text)[:6]}" if text else f"no {what}"
