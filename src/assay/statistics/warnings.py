"""Warnings that accompany a number: a code for programs and a sentence for people."""

from dataclasses import dataclass

SENTENCES = {
    "few_tasks": "Only {n_tasks} tasks: a result for exactly these tasks may not hold for other tasks of the same kind.",
    "few_families": "Only {n_families} families of tasks: a range over so few families is rough, and a result for exactly these "
    "tasks may not hold for other families.",
    "too_few_families": "A statement about other tasks of the same kind needs at least 4 families of tasks, but there "
    "are {n_families}: no result goes beyond exactly these tasks.",
    "one_family_dominates": "The weights make this nearly one family of tasks: {n_eff:.1f} effective families.",
    "one_task_dominates": "The weights make this nearly one task: {n_eff:.1f} effective tasks.",
    "identical_tasks": "The {n} tasks show only {patterns} patterns of scores, which looks like {patterns} tasks entered several "
    "times. Copies count as separate tasks and make a result look surer than it is: remove them, or give them one family.",
    "zero_variance": "{values} are equal; the range shows how much {n} equal results support.",
    "narrower_by_chance": "For exactly these tasks the difference is not decided (p = {p:.2g}): the tasks agree more closely than "
    "their trial noise explains. This can happen by chance, so add trials before relying on it.",
    "dropped_tasks": "{n} of the tasks lack counted trials of one candidate and are left out: {names}.",
    "one_shared_task": "Only one task has counted trials of both candidates, so this says nothing about other tasks.",
    "single_trial_tasks": "{n} tasks have a single trial; their noise is estimated from the other tasks.",
    "permutation_cannot_reach_alpha": "With so few observations no permutation test can reach 5%, so there is no second opinion.",
    "unpaired_trials_left_out": "{n} jointly graded trials count for only one candidate and are left out.",
    "unequal_tasks": "The candidates do not all have counted trials on the same tasks; each mean covers the candidate's own tasks.",
    "task_variance_below_zero_clipped": "The tasks differ less than trial noise explains; their variance is estimated as 0.",
    "incomplete_units_left_out": "{n} units were not rated by every rater and are left out.",
    "all_ties": "Every comparison is a tie.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caution:
    """A warning about a number that is still reported: a code for programs, a sentence for
    people.
    """

    code: str
    text: str


def caution(code: str, **facts: object) -> Caution:
    return Caution(code=code, text=SENTENCES[code].format(**facts))


def about_sample(n_tasks: int, n_families: int | None, n_eff: float) -> list[Caution]:
    """Return warnings about too few tasks or families, or one that dominates by weight.

    Args:
        n_families: None if tasks share no families.
        n_eff: effective number of tasks, or of families.
    """
    warnings = []
    if n_families is not None:
        if n_families <= 5 and n_tasks > 1:
            code = "few_families" if n_families >= 4 else "too_few_families"
            warnings.append(caution(code, n_families=n_families))
        if n_families > 1 and n_eff < 2 - 1e-9:
            warnings.append(caution("one_family_dominates", n_eff=n_eff))
        return warnings
    if 2 <= n_tasks <= 5:
        warnings.append(caution("few_tasks", n_tasks=n_tasks))
    # Two tasks with equal weights have an n_eff of 2, apart from rounding, and neither dominates.
    if n_tasks > 1 and n_eff < 2 - 1e-9:
        warnings.append(caution("one_task_dominates", n_eff=n_eff))
    return warnings


def few_names(labels: list[object], *, shown: int = 5) -> str:
    """Return the first labels as text, followed by the number of labels left out."""
    rest = len(labels) - shown
    head = ", ".join(str(label) for label in labels[:shown])
    return f"{head} and {rest} more" if rest > 0 else head
