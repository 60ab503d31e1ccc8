"""Verify a snapshot: its bytes, schema and signature, and that its numbers follow from its runs and from those in the store."""

from __future__ import annotations

from math import isclose
from typing import TYPE_CHECKING, Any

from assay.app.specialists.evidence import benchmarks_of, runs_that_count
from assay.app.wire import document
from assay.domain.errors import UnknownName
from assay.specialists.signatures import public_key
from assay.specialists.snapshots import read_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from assay.app.workspace import Workspace
    from assay.specialists.comparison import Section

PASSED, FAILED, NOT_CHECKED = "passed", "failed", "not_checked"


@document
class SnapshotCheckDocument:
    """One check of a snapshot; `result` is `passed`, `failed` or `not_checked`."""

    check: str
    result: str
    detail: str


@document
class SnapshotVerificationDocument:
    """JSON of `assay mint-verify`; `valid` is true if no check failed. A check that was not possible does not fail."""

    path: str
    valid: bool
    checks: tuple[SnapshotCheckDocument, ...]


def verify(workspace: Workspace, path: Path, key: Path | None = None) -> SnapshotVerificationDocument:
    """Check a snapshot. `key`: the public or private key that must have signed it; raises `InputError` for an unreadable file."""
    wanted = None if key is None else public_key(key)
    snapshot, problems = read_snapshot(path)
    if problems:
        checks = [("content", FAILED, " ".join(problems[:5]))]
    else:
        sha256 = snapshot["integrity"]["sha256"]
        checks = [
            ("content", PASSED, f"No byte has changed since minting, and the schema is met. SHA-256 {sha256}."),
            _signature(snapshot["snapshot_metadata"]["public_key"], wanted, str(key)),
            _comparison(snapshot),
            _runs(workspace, snapshot),
            _validity(snapshot["validity"]["valid_until"], workspace.clock.now()),
        ]
    documents = tuple(SnapshotCheckDocument(check=name, result=result, detail=detail) for name, result, detail in checks)
    valid = all(each.result != FAILED for each in documents)
    return SnapshotVerificationDocument(path=str(path), valid=valid, checks=documents)


def _signature(public: str | None, wanted: str | None, where: str) -> tuple[str, str, str]:
    if public is None:
        detail = "The snapshot is not signed: whoever changed it may have computed its SHA-256 anew."
        return "signature", NOT_CHECKED if wanted is None else FAILED, detail
    if wanted is None:
        detail = f"Signed with the key {public}. Until you give a key that you trust (--key FILE.pub), it shows only that"
        detail = f"{detail} the content is unchanged, not who minted it."
        return "signature", NOT_CHECKED, detail
    detail = f"Signed with the key {public}, which is {'the' if wanted == public else 'not the'} key in {where}."
    return "signature", PASSED if wanted == public else FAILED, detail


def _comparison(snapshot: Section) -> tuple[str, str, str]:
    listed = snapshot["benchmarks"]
    computed, verdict = benchmarks_of(listed["runs"], snapshot["name"], snapshot["version"])
    wrong = [f"benchmarks.{place}" for place in _differing(listed, computed, "")]
    wrong += ["evidence.statement"] if snapshot["evidence"]["statement"] != verdict else []
    decided = computed["comparison"]["test"]["decision"] != "not_decided"
    wrong += ["evidence.decided"] if snapshot["evidence"]["decided"] is not decided else []
    if wrong:
        return "comparison", FAILED, f"Does not follow from the listed runs: {_some(wrong)}."
    return "comparison", PASSED, f"The comparison follows from the {len(listed['runs'])} listed runs."


def _runs(workspace: Workspace, snapshot: Section) -> tuple[str, str, str]:
    """Compare the listed runs with those of the batch in the store."""
    batch = snapshot["snapshot_metadata"]["batch_id"]
    listed = {run["run_id"]: run for run in snapshot["benchmarks"]["runs"]}
    try:
        stored = {run["run_id"]: run for run in runs_that_count(workspace, batch)}
    except UnknownName:
        return "runs", NOT_CHECKED, f"This store has no batch {batch}, so the listed runs were not compared with it."
    if not listed.keys() & stored.keys():
        return "runs", NOT_CHECKED, f"The batch {batch} in this store has none of the listed runs."
    wrong = [f"{name} (is missing or does not count)" for name in listed if name not in stored]
    for name in sorted(listed.keys() & stored.keys()):
        wrong += [f"{name} ({place})" for place in _differing(listed[name], stored[name], "")]
    more = len(stored.keys() - listed.keys())
    further = f" Runs that now count in the batch but are not in the snapshot: {more}." if more else ""
    if wrong:
        return "runs", FAILED, f"The store has different data: {_some(wrong)}.{further}"
    return "runs", PASSED, f"All {len(listed)} listed runs are in the store with these scores.{further}"


def _validity(until: str, now: str) -> tuple[str, str, str]:
    over = until < now
    return "validity", NOT_CHECKED if over else PASSED, f"{'Expired: it was' if over else 'It is'} valid until {until}."


def _differing(a: Any, b: Any, place: str) -> Iterator[str]:
    """Yield the paths at which two JSON values differ by more than rounding."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in {**a, **b}:
            yield from _differing(a.get(key), b.get(key), f"{place}.{key}".lstrip("."))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for number, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from _differing(x, y, f"{place}[{number}]")
    elif isinstance(a, float) and isinstance(b, float):
        if not isclose(a, b, rel_tol=1e-6, abs_tol=2e-6):
            yield place
    elif a != b:
        yield place


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
