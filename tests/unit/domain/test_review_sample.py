"""The review sample: every trial has its chance, the share holds everywhere, and later trials
change nothing.
"""

from __future__ import annotations

import pytest

from assay.domain.errors import InputError
from assay.domain.review_sample import (
    ReviewLottery,
    ReviewRule,
    ReviewSample,
    SampledBy,
    parsed_rule,
    sample_of,
)

TASKS = [(f"t{n}", ("hard",) if n % 4 == 0 else ("easy", "hard")) for n in range(40)]


def drawn(sample: ReviewSample, *, seed: int = 7, trials: int = 5) -> set[tuple[str, int]]:
    lottery = ReviewLottery(sample, seed=seed, tasks=TASKS)
    return {(task, k) for task, _ in TASKS for k in range(1, trials + 1) if lottery.holds(task, k)}


def test_the_share_holds_in_all_in_each_task_and_in_each_round() -> None:
    sampled = drawn(ReviewSample(share=0.2))
    assert len(sampled) == 40
    assert {sum(task == name for task, _ in sampled) for name, _ in TASKS} == {1}
    assert {sum(k == number for _, k in sampled) for number in range(1, 6)} == {8}


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_the_share_holds_in_each_tag(share: float) -> None:
    sampled = {task for task, _ in drawn(ReviewSample(share=share, by=SampledBy.TAG), trials=1)}
    hard = sum(task in sampled for task, tags in TASKS if tags[0] == "hard")
    assert abs(hard - 10 * share) < 1.5
    assert abs(len(sampled) - 40 * share) < 1.5


def test_more_trials_leave_the_earlier_draw_as_it_was() -> None:
    few, many = (drawn(ReviewSample(share=0.3), trials=trials) for trials in (2, 6))
    assert few == {(task, k) for task, k in many if k <= 2}


def test_every_trial_is_drawn_with_the_chance_of_the_share() -> None:
    times = dict.fromkeys([task for task, _ in TASKS], 0)
    for seed in range(600):
        for task, _ in drawn(ReviewSample(share=0.2), seed=seed, trials=1):
            times[task] += 1
    # 600 draws at 0.2: a standard deviation of 9.8 around 120, and 40 tasks.
    assert all(80 < n < 160 for n in times.values())


def test_another_seed_draws_another_sample() -> None:
    assert drawn(ReviewSample(share=0.2), seed=1) != drawn(ReviewSample(share=0.2), seed=2)


@pytest.mark.parametrize("text", ["every", "flagged", "none", "sample:0.2", "sample:0.25:tag"])
def test_a_rule_reads_as_it_is_written(text: str) -> None:
    assert str(parsed_rule(text, where="--review")) == text


def test_a_sample_is_recorded_with_its_share_and_groups() -> None:
    rule = parsed_rule("sample:0.2:tag", where="--review")
    assert rule.as_json() == {"policy": "sample", "sample": {"share": 0.2, "by": "tag"}}
    assert ReviewRule().as_json() == {"policy": "every"}


@pytest.mark.parametrize(
    "text", ["some", "sample", "sample:0", "sample:1", "sample:20%", "sample:0.2:week", "every:0.2"]
)
def test_another_rule_is_refused_with_the_ones_there_are(text: str) -> None:
    with pytest.raises(InputError, match=r"sample:0\.2:tag"):
        parsed_rule(text, where="--review")


@pytest.mark.parametrize("by", list(SampledBy))
def test_a_grown_sample_has_the_earlier_ones_and_its_share(by: SampledBy) -> None:
    first = ReviewSample(share=0.1, by=by)
    second = first.grown(0.3, where="--review")
    third = second.grown(0.55, where="--review")
    assert sample_of({"sample": third.as_json()}) == third
    samples = [drawn(sample, trials=10) for sample in (first, second, third)]
    assert samples[0] < samples[1] < samples[2]
    for sampled, share in zip(samples, (0.1, 0.3, 0.55), strict=True):
        hard = [task for task, tags in TASKS if tags[0] == "hard"]
        # Each stage is even to within one trial.
        assert abs(len(sampled) - share * 400) <= 1
        assert abs(sum(task in hard for task, _ in sampled) - share * 100) <= 6
        assert all(
            abs(sum(task == name for task, _ in sampled) - share * 10) <= 1 for name, _ in TASKS
        )


def test_growth_gives_every_trial_the_chance_of_the_share() -> None:
    times = dict.fromkeys([task for task, _ in TASKS], 0)
    for seed in range(600):
        for task, _ in drawn(ReviewSample(share=0.4, grown_from=(0.1,)), seed=seed, trials=1):
            times[task] += 1
    # 600 draws at 0.4: a standard deviation of 12 around 240, and 40 tasks.
    assert all(190 < n < 290 for n in times.values())
    assert abs(sum(times.values()) / 40 - 240) < 6
