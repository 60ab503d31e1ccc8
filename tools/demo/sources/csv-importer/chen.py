"""Configurable CSV import pipeline."""

import csv
from decimal import Decimal, InvalidOperation


class FieldRule:
    def __init__(self, name, convert=str, check=None, message="is invalid"):
        self.name = name
        self.convert = convert
        self.check = check
        self.message = message

    def apply(self, raw):
        try:
            value = self.convert(raw)
        except (ValueError, InvalidOperation):
            raise ValueError(f"{self.name} {self.message}") from None
        if self.check is not None and not self.check(value):
            raise ValueError(f"{self.name} {self.message}")
        return value


class RuleRegistry:
    def __init__(self):
        self._rules = {}

    def register(self, rule):
        self._rules[rule.name] = rule
        return self

    def names(self):
        return list(self._rules)

    def apply_all(self, row):
        return {name: rule.apply((row[name] or "").strip()) for name, rule in self._rules.items()}


def default_registry():
    registry = RuleRegistry()
    registry.register(FieldRule("id", check=bool, message="is empty"))
    registry.register(FieldRule("email", check=lambda text: "@" in text, message="has no @"))
    registry.register(FieldRule("amount", convert=Decimal, message="is not a number"))
    return registry


class ImportPipeline:
    def __init__(self, registry=None):
        self._registry = registry or default_registry()

    def run(self, lines):
        reader = csv.DictReader(lines)
        missing = set(self._registry.names()) - set(reader.fieldnames or [])
        if missing:
            raise ValueError(f"missing columns: {sorted(missing)}")
        records, errors, seen = [], [], set()
        for number, row in enumerate(reader, start=2):
            try:
                record = self._registry.apply_all(row)
                if record["id"] in seen:
                    raise ValueError("id is a duplicate")
            except ValueError as error:
                errors.append((number, str(error)))
                continue
            seen.add(record["id"])
            records.append(record)
        return records, errors


def import_payments(lines):
    return ImportPipeline().run(lines)
