"""Compare the records in the results folder with the store."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from assay.domain.errors import InputError
from assay.domain.lifecycle import RunState
from assay.domain.selection import Selection
from assay.exchange.results_folder import folder as results_folder
from assay.store.checking import SHOWN, CheckedPart

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.app.workspace import Workspace

_SETTLED: Final = frozenset({RunState.FINISHED, RunState.CANCELLED, RunState.INTERRUPTED})
"""Run states in which the record is complete, because no process adds to the run."""

_OF_THE_RUN: Final = ("suite", "suite_text", "plan", "regrade_of", "graders", "criteria")
"""Fields of a record's first line that never change after the run ends."""


_LATE: Final = frozenset({"votes", "observations"})
"""Parts of a trial that may change without a decision; they are written with the next one."""

_MARK: Final = "last decision"


def compare_records(workspace: Workspace) -> CheckedPart:
    """Compare the record of each ended run with the store, except decisions and votes that are not
    written to it yet.
    """
    checked, problems = 0, list[str]()
    folder = workspace.results.folder
    if folder is None:
        return CheckedPart(name="results files", checked=0, problems=())
    for run in workspace.archive.runs.matching(Selection()):
        path = results_folder.record_of(folder, run.id)
        if run.state not in _SETTLED or not path.exists():
            continue
        checked += 1
        try:
            stored, written = (
                _lines(workspace.archive.records.whole(run.id)),
                _lines(results_folder.record_lines(path)),
            )
        except (InputError, OSError, ValueError, KeyError, TypeError) as error:
            problems.append(f"{path}: {error}")
            continue
        if stored.pop(_MARK, "") == written.pop(_MARK, "") and stored != written:
            differing = sorted({*stored.items()} ^ {*written.items()})
            problems.append(f"{path}: {differing[0][0]} differs from the store")
    shown = problems[:SHOWN]
    if len(problems) > SHOWN:
        shown.append(f"and {len(problems) - SHOWN:,} more")
    return CheckedPart(name="results files", checked=checked, problems=tuple(shown))


def _lines(lines: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Return digests of the run, each task and each trial in a record, by the names used in
    messages.
    """
    digests: dict[str, str] = {}
    content: object
    for line in lines:
        match line["kind"]:
            case "run":
                name, content = "the run", {key: line[key] for key in _OF_THE_RUN}
            case "trial":
                name, content = (
                    f"trial t{line['key']}",
                    {key: line[key] for key in line if key not in _LATE},
                )
            case "mark":
                name, content = _MARK, line["last_event"]
            case kind:
                name, content = f"{kind} {len(digests)}", line
        text = json.dumps(content, sort_keys=True)
        digests[name] = hashlib.sha256(text.encode()).hexdigest()
    return digests
