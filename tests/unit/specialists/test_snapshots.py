"""Snapshot files: no byte can change unnoticed, and the comparison uses only what is comparable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.domain.errors import InputError
from assay.specialists.comparison import compare_runs, side_of
from assay.specialists.signatures import SigningKey, is_signed, make_key, public_key
from assay.specialists.snapshots import laid_out, read_snapshot, seal

NAME, VERSION = "@org/my-specialist", "1.0.0"


def run(number: int, score: float, *, specialist: bool = False, **more: Any) -> dict[str, Any]:
    return {
        "run_id": f"run_{number}",
        "run_date": "2025-01-18T12:00:00Z",
        "suite": "update-deps",
        "scenario": "nx-pnpm-monorepo",
        "tier": "L1",
        "agent": "anthropic",
        "model": "m",
        "overall_score": score,
        "specialist_enabled": specialist,
        "evaluations": {},
        "telemetry": {},
        **more,
    }


def content() -> dict[str, Any]:
    runs = [run(n, 0.5 + n / 10, specialist=n > 1) for n in range(4)]
    comparison, _ = compare_runs(runs, NAME, VERSION)
    return {
        "name": NAME,
        "version": VERSION,
        "persona": {"purpose": "Größe"},
        "capabilities": {"tags": ["ui"]},
        "benchmarks": {
            "test_suites": [{"name": "nx", "path": "update-deps/nx", "type": "functional"}],
            "scoring": {"methodology": "weighted_average"},
            "runs": runs,
            "comparison": comparison,
        },
        "evidence": {
            "decided": False,
            "statement": "Not decided.",
            "shows": [],
            "does_not_show": [],
        },
        "validity": {
            "valid_for": {"template": {}, "suites": [], "models": [], "judges": []},
            "valid_until": "2025-07-18T12:00:00Z",
        },
        "snapshot_metadata": {
            "created_at": "2025-01-18T12:00:00Z",
            "minted_by": "Assay",
            "template_version": VERSION,
            "batch_id": "b",
        },
    }


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    make_key(tmp_path / "key.pem")
    return SigningKey(tmp_path / "key.pem")


def written(snapshot: dict[str, Any], folder: Path) -> Path:
    path = folder / "snapshot-001.json5"
    path.write_text(laid_out(snapshot), "utf-8")
    return path


@pytest.mark.parametrize("signed", [True, False])
def test_every_changed_byte_is_found(tmp_path: Path, key: SigningKey, signed: bool) -> None:
    path = written(seal(content(), key if signed else None), tmp_path)
    assert read_snapshot(path)[1] == []
    original = path.read_bytes()
    unnoticed = []
    for place in {
        *range(0, len(original), 17 if signed else 61),
        *range(len(original) - 240, len(original), 3),
    }:
        changed = bytearray(original)
        changed[place] ^= 0x20  # changes case, or makes another character
        path.write_bytes(changed)
        if not read_snapshot(path)[1]:
            unnoticed.append(place)
    assert unnoticed == []
    for whole in (
        original[:-1],
        original + b"\n",
        b"\xef\xbb\xbf" + original,
        original.replace(b'"ci95"', b'"ci95" ', 1),
        b"",
        b"[]",
    ):
        path.write_bytes(whole)
        assert read_snapshot(path)[1], whole[:20]


def test_signature_of_another_key_or_a_removed_one_fails(tmp_path: Path, key: SigningKey) -> None:
    sealed = seal(content(), key)
    make_key(tmp_path / "mallory.pem")
    mallory = SigningKey(tmp_path / "mallory.pem")
    digest = sealed["integrity"]["sha256"]
    swapped = {**sealed, "integrity": {"sha256": digest, "ed25519": mallory.sign(digest)}}
    removed = {**sealed, "integrity": {"sha256": digest, "ed25519": None}}
    for forged in (swapped, removed):
        assert read_snapshot(written(forged, tmp_path))[1]
    assert is_signed(digest, sealed["integrity"]["ed25519"], key.public)
    assert public_key(tmp_path / "key.pem") == public_key(tmp_path / "key.pem.pub") == key.public


UNKNOWN_ALGORITHM = "-----BEGIN PUBLIC KEY-----\nMAswBQYDKgMEAwIAqg==\n-----END PUBLIC KEY-----\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not a key",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        UNKNOWN_ALGORITHM,
        None,
    ],
)
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "key"
    if text is not None:
        path.write_text(text, "utf-8")
    with pytest.raises(InputError, match="--new-key FILE"):
        SigningKey(path)


@pytest.mark.parametrize(
    "hostile",
    [
        b"[" * 100_000,
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": 1, "a": 1}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'"\\ud800"',
    ],
)
def test_hostile_files_fail_with_a_reason(tmp_path: Path, hostile: bytes) -> None:
    path = tmp_path / "snapshot-001.json5"
    path.write_bytes(hostile)
    assert read_snapshot(path)[1]


@pytest.mark.parametrize(
    ("stated", "side"),
    [
        ({"specialist_enabled": False}, "baseline"),
        ({}, "specialist"),
        ({"specialist_name": NAME, "specialist_version": VERSION}, "specialist"),
        ({"specialist_name": "my-specialist"}, "specialist"),
        ({"specialist_name": "@other/my-specialist"}, None),
        ({"specialist_name": NAME, "specialist_version": "1.0.1"}, None),
    ],
)
def test_side_of_a_run(stated: dict[str, Any], side: str | None) -> None:
    assert side_of({**run(1, 0.5, specialist=True), **stated}, NAME, VERSION) == side


def test_tiers_of_a_scenario_are_one_piece_of_evidence() -> None:
    runs = [
        run(
            10 * tier + n,
            0.4 + 0.3 * side + n / 50 + tier / 100,
            specialist=bool(side),
            tier=f"L{tier}",
        )
        for side in (0, 1)
        for tier in range(3)
        for n in range(3)
    ]
    section, _ = compare_runs(runs, NAME, VERSION)
    assert (section["test"]["n_pairs"], section["test"]["n_scenarios"]) == (3, 1)
    assert (section["test"]["n_baseline"], section["test"]["n_specialist"]) == (9, 9)
