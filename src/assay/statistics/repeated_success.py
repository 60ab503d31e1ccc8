"""Probability of success in several tries of a task: pass@k (at least one succeeds) and pass^k (all
succeed).

Sources: pass@k by Chen et al. (2021), arXiv:2107.03374; pass^k by Yao et al. (2024),
arXiv:2406.12045.
"""

from math import comb


def pass_at_k(trials: int, successes: int, k: int) -> float:
    """Return the unbiased estimate of pass@k for one task; raises ValueError unless 1 <= k <=
    trials.
    """
    _check(trials, successes, k)
    return 1 - comb(trials - successes, k) / comb(trials, k)


def pass_all_k(trials: int, successes: int, k: int) -> float:
    """Return the unbiased estimate of pass^k for one task; raises ValueError unless 1 <= k <=
    trials.
    """
    _check(trials, successes, k)
    return comb(successes, k) / comb(trials, k)


def _check(trials: int, successes: int, k: int) -> None:
    if not (1 <= k <= trials and 0 <= successes <= trials):
        raise ValueError(
            f"k is {k} and successes are {successes}, expected 1 to {trials} and 0 to {trials}"
        )
