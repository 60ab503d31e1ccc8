"""Money allocation toolkit."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Money:
    cents: int
    currency: str = "EUR"

    def __add__(self, other):
        if self.currency != other.currency:
            raise ValueError("currencies differ")
        return Money(self.cents + other.cents, self.currency)


class AllocationStrategy:
    def allocate(self, money, weights):
        raise NotImplementedError


class ProportionalStrategy(AllocationStrategy):
    def allocate(self, money, weights):
        total = float(sum(weights))
        return [Money(round(money.cents * (weight / total)), money.currency) for weight in weights]


class AllocationVerifier:
    TOLERANCE = 1

    def verify(self, money, shares):
        total = Money(0, money.currency)
        for share in shares:
            total = total + share
        return abs(total.cents - money.cents) <= self.TOLERANCE


class MoneySplitter:
    def __init__(self, strategy=None, verifier=None):
        self.strategy = strategy or ProportionalStrategy()
        self.verifier = verifier or AllocationVerifier()

    def split(self, money, weights):
        if not weights or any(weight < 0 for weight in weights) or sum(weights) == 0:
            raise ValueError("weights must be non-negative and not all zero")
        shares = self.strategy.allocate(money, weights)
        if not self.verifier.verify(money, shares):
            raise ArithmeticError("allocation is off by more than the tolerance")
        return shares


def split(amount, weights):
    return [share.cents for share in MoneySplitter().split(Money(amount), weights)]
