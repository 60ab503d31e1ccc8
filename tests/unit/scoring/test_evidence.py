"""Lines of quoted evidence, and quoted names that do not exist."""

from __future__ import annotations

import pytest

from assay.scoring.evidence import Page, Vocabulary, names_nowhere

CODE = """\
class Store:
    def get(self, key):
        with self._lock:
            return self.items.get(key)

    def put(self, key, value):
        self.items[key] = value  # last write wins
"""


@pytest.mark.parametrize(
    ("evidence", "lines"),
    [
        ("with self._lock:", (3, 3)),
        ("`with self._lock:`", (3, 3)),
        ('"with self._lock:"', (3, 3)),
        ("with self._lock: return self.items.get(key)", (3, 4)),
        ("with  self._lock :\n\treturn self.items.get( key )", (3, 4)),
        ("```python\nwith self._lock:\n```", (3, 3)),
        ("def get(self, key): ... self.items[key] = value", (2, 7)),
        ("def get(self, key):\n    …\n    return self.items.get(key)", (2, 4)),
        ("def get(self, key):\n    return self.items.get(key)", (2, 4)),
        ("3: with self._lock:", (3, 3)),
        ("line 7: self.items[key] = value", (7, 7)),
        ("self.items[key] = value;", (7, 7)),
        ("return self.items.get(key)  # no default", (4, 4)),
    ],
)
def test_a_quotation_is_found_however_it_is_set(evidence: str, lines: tuple[int, int]) -> None:
    assert Page(CODE).where(evidence) == lines


@pytest.mark.parametrize(
    "evidence",
    [
        "",
        "...",
        "x",
        "with self._mutex:",
        "self.items[key] = None ... def get(self, key):",
        "put(); get()",
    ],
)
def test_missing_evidence_is_reported_missing(evidence: str) -> None:
    assert Page(CODE).where(evidence) is None


@pytest.mark.parametrize(
    ("span", "nowhere"),
    [
        ("self._lock", ()),
        ("lock", ()),
        ("Store.get", ()),
        ("items.get(key)", ()),
        ("put(key, value)", ()),
        ("_LOCK", ()),
        ("O(n)", ()),
        ("None", ()),
        ("KeyError", ()),
        ("StoreError", ()),
        ("try/except", ()),
        ("return value", ()),
        ("42", ()),
        ("last write wins", ()),
        ("a happy little path", ()),
        ("DRY", ()),
        ("'some text'", ()),
        ("self._guard", ("_guard",)),
        ("retry_with_backoff", ("retry_with_backoff",)),
        ("Store.evict(key)", ("evict",)),
    ],
)
def test_only_names_that_are_nowhere_are_named(span: str, nowhere: tuple[str, ...]) -> None:
    assert names_nowhere(span, Vocabulary(CODE)) == nowhere
