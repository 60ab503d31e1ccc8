"""`exact` and `numeric` are 1 or 0; runs of a store from before that keep their numbers, and their
suite's author is told once.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.journey.conftest import Command

SUITE = """\
name: capitals
score: exact
tasks:
  - {id: france, expected: Paris, snippets: {ann: paris, bob: "paris, I think"}}
"""


def as_stored_before(project: Path, key_of_today: bytes = b',"partial_credit":false') -> None:
    """Rewrite the stored tasks as they were when `exact`, or `numeric`, gave partial credit."""
    with closing(sqlite3.connect(project / ".assay" / "assay.db")) as store, store:
        rows = store.execute("SELECT key, content FROM body").fetchall()
        changed = [
            (content.replace(key_of_today, b""), key)
            for key, content in rows
            if key_of_today in content
        ]
        assert changed
        store.executemany("UPDATE body SET content = ? WHERE key = ?", changed)
        digests = [(hashlib.sha256(content).hexdigest()[:32], key) for content, key in changed]
        store.executemany("UPDATE task SET body_digest = ? WHERE body_key = ?", digests)


def means(assay: Command, run: str) -> dict[str, float]:
    document = assay("stats", "--run", run, "--json").document
    return {row["candidate"]: row["mean"] for row in document["candidates"]}


def test_an_answer_is_equal_or_not(project: Path, assay: Command) -> None:
    (project / "capitals.yaml").write_text(SUITE)
    run = assay("run", "capitals.yaml", "--json").document["run_id"]
    assert means(assay, run) == {"ann": 1.0, "bob": 0.0}


def test_an_earlier_run_goes_on_as_it_began(project: Path, assay: Command) -> None:
    (project / "capitals.yaml").write_text(SUITE)
    run = assay("run", "capitals.yaml", "--json").document["run_id"]
    as_stored_before(project)
    assert assay("extend", run, "--trials", 1).code == 0
    (table,) = assay("stats", "--run", run, "--json").document["candidates"][1:]
    assert (table["candidate"], table["n_trials"], table["min"], table["max"]) == (
        "bob",
        2,
        0.0,
        0.675,
    )


def test_the_author_of_an_earlier_suite_hears_of_it_once(project: Path, assay: Command) -> None:
    (project / "capitals.yaml").write_text(SUITE)
    run = assay("run", "capitals.yaml", "--json").document["run_id"]
    as_stored_before(project)
    second = assay("run", "capitals.yaml", "--json")
    assert f"Up to {run} it gave credit for near misses" in second.err
    assert means(assay, second.document["run_id"]) == {"ann": 1.0, "bob": 0.0}
    assert "near misses" not in assay("run", "capitals.yaml").err


def test_no_note_for_a_suite_that_asks_for_similarity(project: Path, assay: Command) -> None:
    (project / "capitals.yaml").write_text(SUITE)
    assay("run", "capitals.yaml")
    as_stored_before(project)
    (project / "capitals.yaml").write_text(SUITE.replace("score: exact", "score: similarity"))
    again = assay("run", "capitals.yaml", "--json")
    assert "near misses" not in again.err
    scores = means(assay, again.document["run_id"])
    assert scores == {"ann": 0.95, "bob": 0.675}


def test_numeric_of_an_earlier_run_goes_on_as_it_began(project: Path, assay: Command) -> None:
    text = (
        SUITE.replace("score: exact", "score: numeric")
        .replace("Paris", "100")
        .replace("ann: paris", 'ann: "101"')
    )
    (project / "capitals.yaml").write_text(text.replace('"paris, I think"', '"102"'))
    run = assay("run", "capitals.yaml", "--json").document["run_id"]
    assert means(assay, run) == {"ann": 0.0, "bob": 0.0}
    as_stored_before(project, b',"strict":true')
    assert assay("extend", run, "--trials", 1).code == 0
    rows = assay("stats", "--run", run, "--json").document["candidates"]
    assert {row["candidate"]: round(row["max"], 4) for row in rows} == {"ann": 1.0, "bob": 0.7172}
    second = assay("run", "capitals.yaml", "--json")
    assert f"Up to {run} it gave credit for near misses" in second.err
    assert "write `score: closeness`" in second.err
    assert means(assay, second.document["run_id"]) == {"ann": 0.0, "bob": 0.0}


def test_numeric_with_a_curve_keeps_its_partial_credit(project: Path, assay: Command) -> None:
    text = SUITE.replace("score: exact", "score: {numeric: {curve: continuous}}").replace(
        "Paris", "100"
    )
    (project / "capitals.yaml").write_text(
        text.replace("ann: paris", 'ann: "101"').replace('"paris, I think"', '"125"')
    )
    run = assay("run", "capitals.yaml", "--json").document["run_id"]
    assert means(assay, run) == {"ann": 1.0, "bob": 0.0}
