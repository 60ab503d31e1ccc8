"""Split money between several people."""

from decimal import ROUND_HALF_UP, Decimal


def split(amount, weights):
    if len(weights) == 0:
        raise ValueError("no weights")
    for w in weights:
        if w < 0:
            raise ValueError("negative weight")
    total = sum(weights)
    if total == 0:
        raise ValueError("weights sum to zero")

    result = []
    used = 0
    for w in weights[:-1]:
        part = Decimal(amount) * Decimal(w) / Decimal(total)
        cents = int(part.quantize(Decimal("1"), rounding=ROUND_HALF_UP))
        result.append(cents)
        used += cents
    result.append(amount - used)  # the last one takes the rest
    return result
