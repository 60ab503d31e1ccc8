"""Import payments from CSV: good rows become records, bad rows become errors with their line."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

COLUMNS = ("id", "email", "amount")


@dataclass(frozen=True, slots=True)
class Payment:
    id: str
    email: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class RowError:
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class ImportResult:
    payments: tuple[Payment, ...]
    errors: tuple[RowError, ...]


def import_payments(lines: Iterable[str]) -> ImportResult:
    """Read `lines` of CSV text; raises ValueError when the header lacks a column."""
    reader = csv.DictReader(lines, restval="")
    header = [(name or "").removeprefix("\ufeff").strip().lower() for name in reader.fieldnames or []]
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        raise ValueError(f"header lacks {', '.join(missing)}; found {header}")
    reader.fieldnames = header

    payments: dict[str, Payment] = {}
    errors: list[RowError] = []
    for row in reader:
        try:
            payment = _parse(row)
            if payment.id in payments:
                raise ValueError(f"id {payment.id} was used before")
        except ValueError as error:
            errors.append(RowError(reader.line_num, str(error)))
        else:
            payments[payment.id] = payment
    return ImportResult(tuple(payments.values()), tuple(errors))


def _parse(row: dict[str, str]) -> Payment:
    identifier, email, raw = (row[column].strip() for column in COLUMNS)
    if not identifier:
        raise ValueError("id is empty")
    if "@" not in email:
        raise ValueError(f"email {email!r} has no @")
    try:
        amount = Decimal(raw)
    except InvalidOperation:
        raise ValueError(f"amount {raw!r} is not a number") from None
    if not amount.is_finite():
        raise ValueError(f"amount {raw!r} is not finite")
    return Payment(identifier, email, amount)
