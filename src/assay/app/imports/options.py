"""Options and result of an import."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assay.domain.import_records import Held, Noted, Skipped

if TYPE_CHECKING:
    from assay.app.imports.original_files import OriginalFile

PORTION: Final = 10_000


Progress = Callable[[str, int], None]
"""Progress callback, called with the name of the current file and the number of rows read from it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    format: str = "auto"
    mapping: str | Path | None = None
    run_name: str | None = None
    candidate: str | None = None
    dataset: str | None = None
    inputs: str | Path | Iterable[str | Path] = ()
    logs: str | Path | Iterable[str | Path] = ()
    criteria: str | Path | None = None
    model_info: str | Path | None = None
    fields: str | Path | None = None
    copy: bool = True
    move: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedRun:
    """A stored run that was replaced by a later version of the same evaluation.

    Attributes:
        where: file of the later version.
        changed, added, lacking: number of results (one per task and candidate) that the later
            version changes, adds and omits.
        kept: number of reviews that also apply to the later version, because answer and grades are
            unchanged.
        left: number of reviews that stay with the replaced run, because the result changed or is
            missing.
    """

    where: str
    run: str
    by: str
    changed: int
    added: int
    lacking: int
    kept: int
    left: int


@dataclass(slots=True, kw_only=True)
class ImportResult:
    """Result of an import.

    Attributes:
        unchanged: files whose results are already stored, with the runs that contain these results.
        replaced: runs that were replaced by a later version.
        held: number of rows whose grades are already stored, even from another file.
        digests: digest of each results file, by which a later import recognises the file.
    """

    formats: dict[str, int] = field(default_factory=dict)
    runs: int = 0
    tasks: int = 0
    responses: int = 0
    assessments: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[Noted] = field(default_factory=list)
    run_ids: list[str] = field(default_factory=list)
    unchanged: dict[str, tuple[str, ...]] = field(default_factory=dict)
    replaced: list[ReplacedRun] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    copies: list[OriginalFile] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)


def paths_of(given: str | Path | Iterable[str | Path]) -> tuple[Path, ...]:
    """Return one path, or each of an iterable, in a tuple."""
    return (Path(given),) if isinstance(given, str | Path) else tuple(Path(path) for path in given)


def import_document(result: ImportResult) -> dict[str, Any]:
    """Return the JSON of `assay import`, including `formats`, `notes` and runs that were already
    stored.
    """
    names = list(result.formats)
    return {
        "format": names[0] if len(names) == 1 else "several" if names else None,
        "formats": dict(result.formats),
        "imported": {
            "runs": result.runs,
            "tasks": result.tasks,
            "responses": result.responses,
            "assessments": result.assessments,
        },
        "skipped": [{"where": skipped.where, "why": skipped.why} for skipped in result.skipped],
        "notes": [{"where": note.where, "what": note.what} for note in result.notes],
        "held": [
            {"file": skipped.where, "run_id": skipped.run, "rows": skipped.rows}
            for skipped in result.held
        ],
        "replaced": [asdict(replaced) for replaced in result.replaced],
        "unchanged": [
            {"file": name, "run_ids": list(ids)} for name, ids in result.unchanged.items()
        ],
        "run_ids": result.run_ids,
    }


def ignore_progress(name: str, rows: int) -> None:
    """Do nothing; the default progress callback."""
