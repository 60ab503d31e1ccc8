"""List the specialists of a project: templates with their enrichment, snapshots, and mints that
wait.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assay.app.specialists.evidence import waiting_in
from assay.app.specialists.remote_mints import remote_mints
from assay.app.specialists.waiting import open_mints
from assay.app.wire import Json, document
from assay.domain.errors import AssayError, InputError
from assay.domain.observations import MintEnded, MintRequested, ObservationKind, with_body
from assay.domain.selection import Selection
from assay.domain.specialists import short_name
from assay.report import wording
from assay.report.charts.chart import SPOKEN, Chart, Row, points
from assay.specialists.enrichment import printable_line
from assay.specialists.snapshots import misplaced, read_snapshot
from assay.specialists.templates import TEMPLATES, home_of, most_enriched, read_template

if TYPE_CHECKING:
    from assay.app.settings import Settings
    from assay.store.opening import Store

MAX_TEMPLATES, MAX_SNAPSHOTS = 50, 50
LARGEST_LISTED: Final = 2_000_000
"""Bytes of a snapshot whose content is shown; `assay mint-verify` reads larger ones."""

_TEXT, _ITEMS, _NUMBER = 2_000, 20, 10**9
_SNAPSHOT_FILE: Final = re.compile(r"snapshot-[0-9]{1,9}\.json5")


@document
class SnapshotDocument:
    """A snapshot file, with the parts of its content that the page shows; long texts and lists are
    cut.

    `problem`: why the content cannot be trusted or read; `content` is null then, and name and
    version are those of the path.
    """

    path: str
    name: str
    version: str
    problem: str | None = None
    content: Json = None


@document
class TemplateDocument:
    """A template.

    `problem`: why it cannot be read; the later fields are empty then. `enriched`: file with the
    enrichment.
    """

    path: str
    problem: str | None = None
    name: str = ""
    version: str = ""
    purpose: str = ""
    preferred_models: Json = ()
    documentation: Json = ()
    enriched: str | None = None


@document
class WaitingMintDocument:
    """A recorded mint; `waiting` counts pending grades and unfinished runs of its batch.

    `server`: the server that has the batch, as it was last asked; null for a batch in this store.
    """

    batch_id: str
    template: str
    waiting: int
    server: str | None = None


@document
class SpecialistsDocument:
    """JSON of the page of specialists, with the newest snapshots first; `more_…` count what is left
    out.
    """

    templates: tuple[TemplateDocument, ...]
    more_templates: int
    snapshots: tuple[SnapshotDocument, ...]
    more_snapshots: int
    mints: tuple[WaitingMintDocument, ...]


def specialists(store: Store, settings: Settings) -> SpecialistsDocument:
    """Return the templates in the project's folder `templates`, snapshots of the project, and mints
    that wait.
    """
    root = settings.working_folder.resolve()
    files = [path for path in sorted((root / TEMPLATES).rglob("*.json5")) if path.is_file()]
    # of all files, because templates have parents
    state = hash(tuple((path, *_state(path)) for path in files))
    originals = [
        path
        for path in files
        if home_of(path) == path.parent and not _SNAPSHOT_FILE.fullmatch(path.name)
    ]
    templates = [_template(path, root, state) for path in originals[:MAX_TEMPLATES]]
    notes = list(store.observations.read(kinds=(ObservationKind.MINT,)))
    folders = {
        root / "snapshots",
        *(root / mint.output for _, mint in with_body(notes, MintRequested)),
    }
    remote = remote_mints(settings)
    folders |= {root / mint.request.output for mint in remote}
    folders |= {
        Path(root / end.path).parents[2]
        for _, end in with_body(notes, MintEnded)
        if end.path.count("/") > 2
    }
    paths = {
        path.resolve()
        for folder in folders
        for path in folder.glob("*/*/snapshot-*.json5")
        if path.is_file()
    }
    paths = {path for path in paths if _SNAPSHOT_FILE.fullmatch(path.name)}
    newest = sorted(paths, key=lambda path: (_state(path), path), reverse=True)
    archive = store.archive.runs
    return SpecialistsDocument(
        # Of files with the same name and version, the first one is used by name.
        templates=tuple(
            {
                (each.name and each.version, each.name or each.path): each
                for each in reversed(templates)
            }.values()
        )[::-1],
        more_templates=max(0, len(originals) - MAX_TEMPLATES),
        snapshots=tuple(_snapshot(path, root, _state(path)) for path in newest[:MAX_SNAPSHOTS]),
        more_snapshots=max(0, len(newest) - MAX_SNAPSHOTS),
        mints=(
            *(
                WaitingMintDocument(
                    batch_id=mint.batch_id,
                    template=mint.template,
                    waiting=waiting_in(archive.matching(Selection(batch_ids=(mint.batch_id,)))),
                )
                for mint in open_mints(store)
            ),
            *(
                WaitingMintDocument(
                    batch_id=printable_line(mint.request.batch_id, _TEXT),
                    template=printable_line(mint.request.template, _TEXT),
                    waiting=mint.waiting,
                    server=printable_line(mint.server, _TEXT),
                )
                for mint in remote
            ),
        ),
    )


def comparison_chart(comparison: Any) -> Chart:
    """Chart the differences in the comparison of a snapshot, over all models and per model, with
    their 95% ranges.
    """
    models, rows = comparison["models_compared"], list[Row]()
    for name, test in [
        *([("All models", comparison["test"])] if len(models) != 1 else []),
        *((each["model"], each["test"]) for each in models),
    ]:
        if (difference := test["difference"]) is None:
            continue
        ends = test["ci95"] and tuple(sorted(max(-1.0, min(1.0, end)) for end in test["ci95"]))
        low, high = map(points, ends or (None, None))
        decision, label = test["decision"].replace("_", " "), wording.signed(difference)
        shown = f"95% range {wording.difference_range(ends)}" if ends else "no range"
        spoken = f"{name}, specialist − baseline: {label} points, {shown}, {decision}"
        row = {
            "row": name,
            "column": "",
            "name": name,
            "points": points(difference),
            "low": low,
            "high": high,
        }
        rows.append(row | {"decision": decision, "label": label, SPOKEN: spoken})
    about = "Difference between specialist and baseline in points with its 95% range, over all models and per model."
    order = [*(str(row["row"]) for row in rows), ""]
    return Chart(
        kind="pairs",
        title="Specialist − baseline",
        about=about,
        rows=tuple(rows),
        settings={"order": order},
    )


def _state(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=4 * MAX_TEMPLATES)
def _template(path: Path, root: Path, _state: int) -> TemplateDocument:
    """Read a template with its newest enrichment; the result is cached until a file changes."""
    shown = printable_line(str(path.relative_to(root)), _TEXT)
    try:
        file = most_enriched(path)
        template = read_template(file)
    except (AssayError, OSError, RecursionError) as error:
        return TemplateDocument(
            path=shown, problem=str(error).replace(f"{root}/", "")[:_TEXT] or type(error).__name__
        )
    return TemplateDocument(
        path=shown,
        name=template.name,
        version=template.version,
        purpose=printable_line(template.persona["purpose"], _TEXT),
        preferred_models=_bounded(template.preferred_models),
        documentation=[_bounded(each) for each in template.documentation],
        enriched=None if file == path else printable_line(str(file.relative_to(root)), _TEXT),
    )


@lru_cache(maxsize=4 * MAX_SNAPSHOTS)
def _snapshot(path: Path, root: Path, state: tuple[int, int]) -> SnapshotDocument:
    """Read a snapshot, and check its bytes, schema and signature; the result is cached until the
    file changes.
    """
    shown = printable_line(
        str(path.relative_to(root) if path.is_relative_to(root) else path), _TEXT
    )
    try:
        if state[1] > LARGEST_LISTED:
            raise InputError(
                "",
                f"The file has more than {LARGEST_LISTED:,} bytes.",
                remedy=f"assay mint-verify {shown}",
            )
        content, problems = read_snapshot(path)
        if not problems and (moved := misplaced(content, path)):
            problems = [f"The file was renamed or moved: {'; '.join(moved)}."]
    except (AssayError, RecursionError) as error:
        problems = [str(error) or type(error).__name__]
    if problems:
        name, version = (printable_line(part, _TEXT) for part in path.parts[-3:-1])
        return SnapshotDocument(
            path=shown, name=name, version=version, problem=" ".join(problems[:5])[:_TEXT]
        )
    parts = {name: content[name] for name in ("evidence", "snapshot_metadata", "integrity")}
    parts |= {
        "valid_until": content["validity"]["valid_until"],
        "comparison": content["benchmarks"]["comparison"],
    }
    return SnapshotDocument(
        path=shown, name=content["name"], version=content["version"], content=_bounded(parts)
    )


def is_of(snapshot: SnapshotDocument, template: TemplateDocument) -> bool:
    """True if a snapshot belongs to this template and version; a changed file is matched by the
    names of its folders.
    """
    name = short_name(template.name) if snapshot.problem else template.name
    return (snapshot.name, snapshot.version) == (name, template.version)


def _bounded(value: Any, depth: int = 8) -> Any:
    """Return a JSON value from somebody else's file, with its texts, lists, numbers and nesting
    limited.
    """
    if isinstance(value, dict):
        return (
            {printable_line(key, _TEXT): _bounded(part, depth - 1) for key, part in value.items()}
            if depth
            else None
        )
    if isinstance(value, list | tuple):
        return [_bounded(part, depth - 1) for part in value[:_ITEMS]] if depth else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return max(-_NUMBER, min(_NUMBER, value))
    return printable_line(value, _TEXT) if isinstance(value, str) else value
