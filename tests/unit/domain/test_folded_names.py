"""Names that differ only in how they are typed are the same name."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from assay.domain.identifiers import folded
from assay.domain.own_work import is_own_work


@pytest.mark.parametrize(
    ("typed", "same"),
    [
        ("alice", "ALICE"),
        ("alice", "ａｌｉｃｅ"),
        ("alice", "Ａlice"),
        ("alice", "al\u200bice"),
        ("alice", "al\u00adice"),
        ("alice", "\u202ealice\u202c"),
        ("alice", "alice\u200f"),
        ("alice", "\ufeffalice"),
        ("alice", "alice\U000e0061"),
        ("alice", "alice\u00a0"),
        ("ann lee", "ann\u00a0lee"),
        ("René", "Rene\u0301"),
        ("René", "re\u200bne\u0301"),
        ("René", "rene\u200b\u0301"),
        ("Straße", "STRASSE"),
        ("fi", "ﬁ"),
        ("ᾳ", "α\u0345"),
        ("ΑΣ", "ας"),
    ],
)
def test_names_that_differ_only_in_how_they_are_typed_are_the_same_name(
    typed: str, same: str
) -> None:
    assert folded(typed) == folded(same)
    assert is_own_work(same, [typed])
    assert is_own_work(typed, ["somebody", same])


@pytest.mark.parametrize(
    ("first", "second"),
    [("alice", "alicе"), ("rene", "rené"), ("ann lee", "annlee"), ("a-1", "a_1"), ("0", "O")],
)
def test_different_letters_are_different_names(first: str, second: str) -> None:
    assert folded(first) != folded(second)


@given(st.text(max_size=20))
def test_a_folded_name_is_its_own_fold(text: str) -> None:
    assert folded(folded(text)) == folded(text)
    assert folded(text.strip()) == folded(text)


def test_every_character_is_its_own_fold_after_folding() -> None:
    characters = map(chr, range(0x110000))
    folds = {fold for character in characters if (fold := folded(character)) != character}
    assert len(folds) > 1000
    # A character that is its own fold is unchanged by the second folding, too.
    assert [fold for fold in folds if folded(fold) != fold] == []
