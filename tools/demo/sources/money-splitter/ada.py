"""Split an amount of cents by weights so that nothing is lost: the largest-remainder method."""

from collections.abc import Sequence


def split(amount: int, weights: Sequence[int]) -> list[int]:
    """Shares of `amount` in whole cents, in the order of `weights`.

    The shares add up to `amount` exactly, and each is less than one cent away from its exact value.
    Cents that remain go to the largest fractions; among equal fractions the earlier party gets one.
    A negative amount, such as a refund, is split like the positive one.

    Raises:
        ValueError: no weights, a negative weight, or weights that are all zero.
    """
    if not weights:
        raise ValueError("weights must not be empty")
    if any(weight < 0 for weight in weights):
        raise ValueError(f"weights must not be negative, got {list(weights)}")
    total = sum(weights)
    if total == 0:
        raise ValueError("at least one weight must be positive")

    if amount < 0:
        return [-share for share in split(-amount, weights)]

    shares, remainders = [], []
    for weight in weights:
        share, remainder = divmod(amount * weight, total)
        shares.append(share)
        remainders.append(remainder)

    left_over = amount - sum(shares)
    by_remainder = sorted(range(len(weights)), key=lambda index: -remainders[index])
    for index in by_remainder[:left_over]:
        shares[index] += 1
    return shares
