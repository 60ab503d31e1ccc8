"""Data for the web pages about calibrations: stored calibrations and the estimate of a new
calibration.

A calibration is current if it is the newest of its judge and the judge's settings are unchanged;
otherwise the page lists the changes. Corrected grades are shown by assessment and never by
candidate.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assay.app.calibration import measure
from assay.app.calibration.answer_cache import FOLDER
from assay.app.calibration.calibration_request import CalibrationRequest
from assay.app.runs import suite_files
from assay.domain.digest import text_digest
from assay.domain.errors import InputError, UnknownName
from assay.domain.suite import PERSON
from assay.domain.unescaped_json import unescaped_json
from assay.engine.estimate import CostEstimate
from assay.report.charts.calibration import calibration as chart_calibration
from assay.scoring.calibration_samples import SAMPLES
from assay.scoring.reference_samples import identity_of
from assay.suites.problems import SuiteErrors

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from assay.app.calibration.setup import Foreseen
    from assay.app.runs.plan_cache import Plans
    from assay.app.settings import Settings
    from assay.app.workspace import Workspace
    from assay.domain.calibration_record import CalibrationRecord, JudgeIdentity
    from assay.report.charts.chart import Chart
    from assay.store.opening import Store

SUFFIXES: Final = (".jsonl", ".ndjson", ".json", ".yaml", ".yml", ".csv", ".tsv")
_NUMBERS: Final = 2**63
"""Upper limit of record numbers."""
LARGEST_TEXT: Final = 2 * 2**20
"""Maximum bytes of samples that a browser may send."""

PASTED: Final = "the pasted samples"
UNNAMED: Final = "a run under review"
PARTS: Final = ("rubric", "prompt", "parameters")
"""A calibration is valid only for the judge model and the settings listed here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A stored calibration and its state.

    `state` is `current`, `replaced` (by the newer calibration number `by`) or `out_of_date`: the
    model's newest run uses different settings, which `changed` lists. `used` is True if a recent
    run has the model as a judge.
    """

    record: CalibrationRecord
    state: str
    by: int | None = None
    changed: tuple[str, ...] = ()
    used: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A calibration that a browser requests.

    `samples` is a file in the project folder; without it, built-in samples are used.
    """

    model: str
    samples: str | None = None
    pasted: str | None = None
    with_built_in: bool = False
    suite: str | None = None
    repeat: int = 1
    budget_usd: float | None = None


class Calibrations:
    """Stored calibrations, prepared for the web pages."""

    def __init__(self, store: Store, plans: Plans) -> None:
        self._store = store
        self._plans = plans

    def some(self, *, before: int | None = None, limit: int = 50) -> tuple[Listed, ...]:
        """Return up to `limit` records with numbers below `before`, newest first."""
        records = self._store.calibrations.records(before=before, limit=limit)
        newest, in_use = self._store.calibrations.newest_numbers(), self._in_use()
        waiting = runs_under_review(self._store)
        return tuple(_listed(_without_names(record, waiting), newest, in_use) for record in records)

    def one(self, number: int) -> Listed:
        """Return the calibration with this number; raises `UnknownName`."""
        # The database driver raises its own error for a number beyond 64-bit integers.
        record = self._store.calibrations.record(number) if 0 < number < _NUMBERS else None
        if record is None:
            raise UnknownName("calibration", str(number), remedy="/calibration lists them.")
        shown = _without_names(record, runs_under_review(self._store))
        return _listed(shown, self._store.calibrations.newest_numbers(), self._in_use())

    def chart(self, number: int) -> Chart:
        """Return a chart of the judge's scores against the reference scores.

        Each point links to its references.
        """
        record = self.one(number).record
        samples: Any = record.document.get("samples", [])
        return chart_calibration([sample for sample in samples if sample["judged"] is not None])

    def _in_use(self) -> dict[str, list[JudgeIdentity]]:
        """Return the judge settings of recent runs by model, newest first."""
        identities: dict[str, list[JudgeIdentity]] = defaultdict(list)
        for plan in self._plans.newest():
            for judge in plan.judges:
                if judge.model.provider != PERSON:
                    identities[judge.model.ref].append(identity_of(judge, plan.rubric))
        return identities


def look(workspace: Workspace, wanted: Wanted) -> Foreseen:
    """Return an estimate of a calibration without calling the judge; raises `InputError` as `assay
    calibrate --dry-run` does.
    """
    with _named(wanted):
        return measure.foreseen(workspace, wanted.model, request_of(workspace.settings, wanted))


def request_of(settings: Settings, wanted: Wanted) -> CalibrationRequest:
    """Return the calibration that a browser requests.

    Pasted samples are saved to a file, and every path is inside the project folder.
    """
    samples: Path | None = None
    if wanted.pasted is not None and wanted.pasted.strip():
        samples = _kept(settings, wanted.pasted)
    elif wanted.samples:
        samples = _placed(settings.working_folder, wanted.samples)
    if wanted.with_built_in and samples is None:
        raise InputError(
            "built_in",
            "can be added only to your own samples. Without samples, Assay always uses the built-in ones.",
        )
    return CalibrationRequest(
        samples=samples,
        with_built_in=wanted.with_built_in,
        suite=suite_files.suite_place(settings, wanted.suite) if wanted.suite else None,
        repeat=wanted.repeat,
        budget_usd=wanted.budget_usd,
    )


def together(plans: list[Foreseen]) -> CostEstimate:
    estimates = [plan.estimate for plan in plans]
    known = all(estimate.most_usd is not None for estimate in estimates)
    return CostEstimate(
        calls=sum(estimate.calls for estimate in estimates),
        likely_usd=sum(estimate.likely_usd or 0.0 for estimate in estimates) if known else None,
        most_usd=sum(estimate.most_usd or 0.0 for estimate in estimates) if known else None,
        unpriced=tuple(dict.fromkeys(name for estimate in estimates for name in estimate.unpriced)),
    )


def sample_files(folder: Path) -> tuple[str, ...]:
    """Return the sample files in the folder, which are recognised by `response` and `score`."""
    root = folder.resolve()
    files = []
    for path in sorted(_near(root)):
        try:
            with path.open("rb") as file:
                head = file.read(64 * 1024)
        except OSError:
            continue
        # A suite may contain these words too, but has `tasks`.
        if (
            b"response" in head
            and b"score" in head
            and b"prompt" in head
            and b"tasks" not in head[:2000]
        ):
            files.append(path.relative_to(root).as_posix())
    return tuple(files[:100])


def forget_pasted(settings: Settings, wanted: Wanted) -> None:
    if wanted.pasted is not None:
        _pasted_place(settings, wanted.pasted).unlink(missing_ok=True)


def references() -> int:
    return len(SAMPLES)


def _listed(
    record: CalibrationRecord,
    newest: Mapping[JudgeIdentity, int],
    in_use: Mapping[str, list[JudgeIdentity]],
) -> Listed:
    identity = record.identity
    used = in_use.get(identity.model, [])
    by = newest.get(identity, record.number)
    if by != record.number:
        return Listed(record=record, state="replaced", by=by, used=bool(used))
    if not used or identity in used:
        return Listed(record=record, state="current", used=bool(used))
    changed = tuple(part for part in PARTS if getattr(used[0], part) != getattr(identity, part))
    return Listed(record=record, state="out_of_date", changed=changed, used=True)


def shown_source(source: str, waiting: Collection[str]) -> str:
    """Return where a judge's settings come from. Runs with pending items are not named."""
    kind, _, name = source.partition(" ")
    return UNNAMED if kind == "run" and name in waiting else source


def runs_under_review(store: Store) -> frozenset[str]:
    return store.archive.runs.waiting()


def _without_names(record: CalibrationRecord, waiting: Collection[str]) -> CalibrationRecord:
    """Return the record without names of candidates in corrected grades and without names of runs
    under review.
    """
    document = dict(record.document)
    document["settings_of"] = shown_source(str(document.get("settings_of", "")), waiting)
    samples: Any = document.get("samples", [])
    # The id of a corrected grade ends in the candidate's name: `a17/NAME`.
    document["samples"] = [
        {**sample, "id": str(sample["id"]).partition("/")[0]}
        if sample.get("source") == "correction"
        else sample
        for sample in samples
    ]
    return replace(record, document=document)


def _placed(folder: Path, path: str) -> Path:
    whole = suite_files.visible_file(folder, path, SUFFIXES)
    if whole is None:
        raise UnknownName(
            "samples file",
            path,
            remedy="Samples must be in the folder where `assay serve` was started.",
        )
    return whole


def _pasted_place(settings: Settings, text: str) -> Path:
    return settings.folder / ".assay" / FOLDER / f"pasted-{text_digest(text)}.json"


def _kept(settings: Settings, text: str) -> Path:
    if len(text.encode("utf-8", "replace")) > LARGEST_TEXT:
        raise InputError(
            "samples",
            f"are larger than {LARGEST_TEXT // 2**20} MB.",
            remedy="Put the file into the folder.",
        )
    place = _pasted_place(settings, text)
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(_as_json(text))
    return place


def _as_json(text: str) -> str:
    """Return pasted samples as one JSON document; JSON Lines become a list."""
    with suppress(ValueError):
        json.loads(text)
        return text
    with suppress(ValueError):
        return unescaped_json([json.loads(line) for line in text.splitlines() if line.strip()])
    return text


@contextmanager
def _named(wanted: Wanted) -> Iterator[None]:
    try:
        yield
    except SuiteErrors as error:
        if wanted.pasted is None:
            raise
        parts = (
            (each.where.rpartition(".json")[2].strip(": "), each.problem, each.remedy)
            for each in error.errors[:5]
        )
        raise InputError(
            PASTED, "; ".join(" ".join(filter(None, texts)) for texts in parts)
        ) from error


def _near(root: Path) -> Iterator[Path]:
    """Yield the sample files in the folder and its direct subfolders, among the first 2,000
    paths.
    """
    for path in islice(chain(root.glob("*"), root.glob("*/*")), 2_000):
        parts = path.relative_to(root).parts
        if (
            path.suffix.lower() in SUFFIXES
            and not any(part.startswith(".") for part in parts)
            and path.is_file()
        ):
            yield path
