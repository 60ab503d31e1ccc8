"""A damaged store may return bytes where every column is text; the message names the damage."""

from __future__ import annotations

import pytest

from assay.cli.main import _our_error


def test_bytes_among_texts_are_named_as_damage(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.cli.main._damage", lambda arguments: "")
    monkeypatch.delenv("ASSAY_DEBUG", raising=False)
    mixed = TypeError("'>' not supported between instances of 'bytes' and 'str'")
    assert _our_error(mixed, ["review", "list"], as_json=False) == 2
    assert "the store is damaged: a text is stored as bytes" in capsys.readouterr().err
    assert (
        _our_error(TypeError("'int' object is not iterable"), ["review", "list"], as_json=False)
        != 2
    )
