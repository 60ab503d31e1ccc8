"""Verify a snapshot: its bytes, signature and place, and that its numbers follow from its runs and
from those in the store.

A check that was not possible is named with the reason, and `strict` counts it as failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose
from typing import TYPE_CHECKING, Any, Final

from assay.app.registry.removal import of_batch
from assay.app.specialists.evidence import benchmarks_of, runs_that_count
from assay.app.specialists.numbered_files import numbered_files
from assay.app.specialists.removed_runs import (
    counted,
    gaps_of,
    removal_of,
    removed_runs,
    told,
    unstated,
)
from assay.app.wire import document
from assay.domain.errors import UnknownName
from assay.domain.selection import Selection
from assay.domain.specialists import short_name
from assay.specialists.signatures import public_key
from assay.specialists.snapshots import (
    FORMAT,
    file_digest,
    format_of,
    in_own_folders,
    misplaced,
    read_snapshot,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from assay.domain.run_removal import RunEvent
    from assay.specialists.comparison import Section
    from assay.store.opening import Store

PASSED, FAILED, NOT_CHECKED = "passed", "failed", "not_checked"

_MADE_BEFORE: Final = (
    "The snapshot was made before Assay numbered and chained snapshots (format 1) and"
)


@document
class SnapshotCheckDocument:
    """One check of a snapshot; `result` is `passed`, `failed` or `not_checked`."""

    check: str
    result: str
    detail: str


@document
class SnapshotVerificationDocument:
    """JSON of `assay mint-verify`; `valid` is true if no check failed and, with `strict`, every
    check was possible.

    `not_checked`: names of the checks that were not possible; their details say why.
    """

    path: str
    valid: bool
    checks: tuple[SnapshotCheckDocument, ...]
    strict: bool = False
    not_checked: tuple[str, ...] = ()


def verify(
    store: Store, path: Path, key: Path | None = None, *, strict: bool = False
) -> SnapshotVerificationDocument:
    """Check a snapshot.

    Args:
        key: the public or private key that must have signed it.
        strict: True if the snapshot is valid only if every check is possible.

    Raises `InputError` for an unreadable file.
    """
    wanted = None if key is None else public_key(key)
    snapshot, problems = read_snapshot(path)
    if problems:
        checks = [("content", FAILED, " ".join(problems[:5]))]
    else:
        sha256, stored = snapshot["integrity"]["sha256"], _stored_batch(store, snapshot)
        checks = [
            (
                "content",
                PASSED,
                f"No byte has changed since minting, and the schema is met. SHA-256 {sha256}.",
            ),
            _signature(snapshot["snapshot_metadata"]["public_key"], wanted, str(key)),
            _place(snapshot, path),
            _predecessor(snapshot, path),
            _template(snapshot),
            _comparison(snapshot),
            _runs(snapshot, stored),
            _removed_runs(snapshot, stored),
            _validity(snapshot["validity"]["valid_until"], store.clock.now()),
        ]
    documents = tuple(
        SnapshotCheckDocument(check=name, result=result, detail=detail)
        for name, result, detail in checks
    )
    left = tuple(each.check for each in documents if each.result == NOT_CHECKED)
    valid = all(each.result != FAILED for each in documents) and not (strict and left)
    return SnapshotVerificationDocument(
        path=str(path), valid=valid, checks=documents, strict=strict, not_checked=left
    )


def _signature(public: str | None, wanted: str | None, where: str) -> tuple[str, str, str]:
    if public is None:
        detail = (
            "The snapshot is not signed: whoever changed it may have computed its SHA-256 anew."
        )
        return "signature", NOT_CHECKED if wanted is None else FAILED, detail
    if wanted is None:
        detail = f"Signed with the key {public}. Until you give a key that you trust (--key FILE.pub), it shows only that"
        detail = f"{detail} the content is unchanged, not who minted it."
        return "signature", NOT_CHECKED, detail
    detail = f"Signed with the key {public}, which is {'the' if wanted == public else 'not the'} key in {where}."
    return "signature", PASSED if wanted == public else FAILED, detail


def _place(snapshot: Section, path: Path) -> tuple[str, str, str]:
    """Compare the specialist, version and number of a snapshot with its path."""
    if problems := misplaced(snapshot, path):
        return "place", FAILED, f"The file was renamed or moved: {'; '.join(problems)}."
    if format_of(snapshot) < FORMAT:
        return (
            "place",
            NOT_CHECKED,
            f"{_MADE_BEFORE} states no number, so its file name proves nothing.",
        )
    stated = f"snapshot {snapshot['snapshot_metadata']['number']} of {snapshot['name']} {snapshot['version']}"
    if not in_own_folders(path):
        folders = f"{short_name(snapshot['name'])}/{snapshot['version']}"
        return (
            "place",
            NOT_CHECKED,
            f"The file name fits {stated}, but the file does not lie in the folders {folders}.",
        )
    return "place", PASSED, f"The path is that of {stated}."


def _predecessor(snapshot: Section, path: Path) -> tuple[str, str, str]:
    """Compare the file of the snapshot before with its digest in this one."""
    metadata = snapshot["snapshot_metadata"]
    if format_of(snapshot) < FORMAT:
        return (
            "predecessor",
            NOT_CHECKED,
            f"{_MADE_BEFORE} states no digest of the snapshot before it.",
        )
    number, before = metadata["number"], metadata["predecessor"]
    if before is None and number == 1:
        return "predecessor", PASSED, "It states that it is the first snapshot."
    if before is None or before["number"] != number - 1:
        stated = "no predecessor" if before is None else f"the predecessor {before['number']}"
        return (
            "predecessor",
            FAILED,
            f"Snapshot {number} states {stated}, but minting names the snapshot with the number before.",
        )
    file = numbered_files(path.resolve().parent, "snapshot").get(before["number"])
    if file is None:
        detail = f"Snapshot {before['number']} is not in this folder. The file must have the SHA-256 {before['file_sha256']}."
        return "predecessor", NOT_CHECKED, detail
    if file_digest(file) != before["file_sha256"]:
        detail = f"{file.name} was changed or replaced: its SHA-256 is {file_digest(file)}, not {before['file_sha256']}."
        return "predecessor", FAILED, detail
    return "predecessor", PASSED, f"{file.name} is the file that was there at minting."


def _template(snapshot: Section) -> tuple[str, str, str]:
    """Compare the name, version and digest of the template where a snapshot repeats them."""
    metadata, valid_for = (
        snapshot["snapshot_metadata"],
        snapshot["validity"]["valid_for"]["template"],
    )
    stated = [
        ("snapshot_metadata.template_version", metadata["template_version"], snapshot["version"]),
        ("validity.valid_for.template.name", valid_for.get("name"), snapshot["name"]),
        ("validity.valid_for.template.version", valid_for.get("version"), snapshot["version"]),
        (
            "validity.valid_for.template.digest",
            valid_for.get("digest"),
            metadata.get("template_digest"),
        ),
    ]
    wrong = [
        f"{where} is {value!r}, not {expected!r}"
        for where, value, expected in stated
        if value != expected
    ]
    if wrong:
        return "template", FAILED, f"The snapshot contradicts itself: {'; '.join(wrong)}."
    return "template", PASSED, f"All parts name {snapshot['name']} {snapshot['version']}."


def _comparison(snapshot: Section) -> tuple[str, str, str]:
    listed = snapshot["benchmarks"]
    computed, verdict = benchmarks_of(listed["runs"], snapshot["name"], snapshot["version"])
    decided = computed["comparison"]["test"]["decision"] != "not_decided"
    evidence = {"statement": verdict, "decided": decided}
    wrong, absent = _differences(
        snapshot, {key: listed.get(key) for key in computed}, computed, "benchmarks"
    )
    reworded = snapshot["evidence"]["statement"] != verdict and format_of(snapshot) < FORMAT
    for name, value in evidence.items():
        if snapshot["evidence"][name] != value and not (name == "statement" and reworded):
            wrong.append(f"evidence.{name}")
    if wrong:
        return "comparison", FAILED, f"Does not follow from the listed runs: {_some(wrong)}."
    follows = f"The comparison follows from the {len(listed['runs'])} listed runs."
    absent += (
        ["evidence.statement, which this version of Assay words otherwise"] if reworded else []
    )
    if absent:
        return (
            "comparison",
            NOT_CHECKED,
            f"{follows} {_MADE_BEFORE} leaves unchecked: {_some(absent)}.",
        )
    return "comparison", PASSED, follows


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredBatch:
    """The batch of a snapshot in this store: its runs that count, the events that removed others,
    and what they state.
    """

    runs: Mapping[str, Section]
    removals: Sequence[RunEvent]
    removed: Section


def _stored_batch(store: Store, snapshot: Section) -> _StoredBatch | str:
    """Return the batch of a snapshot, or the reason why this store cannot confirm or contradict
    it.
    """
    batch = snapshot["snapshot_metadata"]["batch_id"]
    try:
        runs = {run["run_id"]: run for run in runs_that_count(store, Selection(batch_ids=(batch,)))}
    except UnknownName:
        return f"This store has no batch {batch}"
    removals = of_batch(store, batch)
    listed = [run["run_id"] for run in snapshot["benchmarks"]["runs"]]
    if not any(name in runs or removal_of(removals, name) for name in listed):
        # two projects may name a batch alike
        return f"The batch {batch} in this store has none of the listed runs"
    return _StoredBatch(runs=runs, removals=removals, removed=removed_runs(store, batch))


def _runs(snapshot: Section, stored: _StoredBatch | str) -> tuple[str, str, str]:
    """Compare the listed runs with those of the batch in the store."""
    listed = {run["run_id"]: run for run in snapshot["benchmarks"]["runs"]}
    if len(listed) < len(snapshot["benchmarks"]["runs"]):
        return "runs", FAILED, "A run is listed twice."
    if isinstance(stored, str):
        return "runs", NOT_CHECKED, f"{stored}, so the listed runs were not compared with it."
    wrong, absent = list[str](), list[str]()
    for name, run in listed.items():
        if (event := removal_of(stored.removals, name)) is not None:
            wrong.append(f"{name} ({told(event)})")
        elif name not in stored.runs:
            wrong.append(f"{name} (is missing or does not count)")
        else:
            differing, unstated_parts = _differences(snapshot, run, stored.runs[name], "")
            wrong += [f"{name} ({place})" for place in differing]
            absent += [place for place in unstated_parts if place not in absent]
    more = len(stored.runs.keys() - listed.keys())
    further = (
        f" Runs that now count in the batch but are not in the snapshot: {more}." if more else ""
    )
    if wrong:
        return "runs", FAILED, f"The store has different data: {_some(wrong)}.{further}"
    same = f"All {len(listed)} listed runs are in the store with these scores.{further}"
    if absent:
        return "runs", NOT_CHECKED, f"{same} {_MADE_BEFORE} leaves unchecked: {_some(absent)}."
    return "runs", PASSED, same


def _removed_runs(snapshot: Section, stored: _StoredBatch | str) -> tuple[str, str, str]:
    """Compare the deleted, archived and replaced runs that a snapshot states with those that the
    store knows.
    """
    name, metadata, evidence = "removed_runs", snapshot["snapshot_metadata"], snapshot["evidence"]
    stated, server = evidence.get("removed_runs"), metadata.get("source")
    if stated is None and format_of(snapshot) < FORMAT:
        return (
            name,
            NOT_CHECKED,
            f"{_MADE_BEFORE} does not state which runs of the batch were deleted or archived.",
        )
    if stated is None and server is not None:
        return (
            name,
            NOT_CHECKED,
            f"The server {server} did not send which runs of the batch were deleted or archived.",
        )
    if stated is None:
        return (
            name,
            FAILED,
            "The snapshot does not state which runs of the batch were deleted or archived.",
        )
    if stated != counted(stated["runs"]) or not {*gaps_of(stated)} <= {*evidence["does_not_show"]}:
        return (
            name,
            FAILED,
            "The counts or sentences about deleted and archived runs do not fit the runs that it states.",
        )
    kinds = f"It states {stated['deleted']} deleted, {stated['archived']} archived and {stated['replaced']} replaced runs"
    if isinstance(stored, str):
        return name, NOT_CHECKED, f"{kinds}. {stored}, so they were not compared with it."
    if problems := unstated(stated, stored.removals, metadata["created_at"], names=server is None):
        return (
            name,
            FAILED,
            f"The store knows that other runs were removed before the mint: {_some(problems)}.",
        )
    results = {run["run_id"]: run["results"] for run in stored.removed["runs"]}
    wrong = [
        f"{run['run_id']} ({where})"
        for run in stated["runs"]
        if run["results"] is not None and results.get(run["run_id"]) is not None
        for where, _ in _differing(run["results"], results[run["run_id"]], "results")
    ]
    if wrong:
        return name, FAILED, f"The store has other results of archived runs: {_some(wrong)}."
    return name, PASSED, f"{kinds}, as the store does for the time of the mint."


def _validity(until: str, now: str) -> tuple[str, str, str]:
    over = until < now
    return (
        "validity",
        NOT_CHECKED if over else PASSED,
        f"{'Expired: it was' if over else 'It is'} valid until {until}.",
    )


def _differences(
    snapshot: Section, listed: Section, computed: Section, place: str
) -> tuple[list[str], list[str]]:
    """Return the places at which a part of a snapshot differs, and those that only a snapshot of a
    newer format has.
    """
    differing = list(_differing(listed, computed, place))
    old = format_of(snapshot) < FORMAT
    return [where for where, absent in differing if not (old and absent)], [
        where for where, absent in differing if old and absent
    ]


def _differing(listed: Any, computed: Any, place: str) -> Iterator[tuple[str, bool]]:
    """Yield the places at which two JSON values differ by more than rounding; True if the first
    value has no such key.
    """
    if isinstance(listed, dict) and isinstance(computed, dict):
        for key in {**listed, **computed}:
            where = f"{place}.{key}".lstrip(".")
            if key not in listed:
                yield where, True
            else:
                yield from _differing(listed[key], computed.get(key), where)
    elif isinstance(listed, list) and isinstance(computed, list) and len(listed) == len(computed):
        for number, (x, y) in enumerate(zip(listed, computed, strict=True)):
            yield from _differing(x, y, f"{place}[{number}]")
    elif isinstance(listed, float) and isinstance(computed, float):
        if not isclose(listed, computed, rel_tol=1e-6, abs_tol=2e-6):
            yield place, False
    elif listed != computed:
        yield place, False


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
