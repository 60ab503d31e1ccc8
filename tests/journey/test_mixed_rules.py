"""Runs that score one task by different rules are pooled only with `--pool-anyway`; the answer
names the rules and the runs.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from tests.journey.conftest import Command


def run(assay: Command, project: Path, score: str, *, tasks: int = 3, gap: str = "") -> str:
    path = project / "pool.yaml"
    rows = "".join(
        f"  - {{id: t{n}, prompt: q{n}{gap}, expected: '10', snippets: {{a: '10.5', b: '10'}}}}\n"
        for n in range(tasks)
    )
    path.write_text(f"name: pool\nscore: {score}\ntasks:\n{rows}", "utf-8")
    done = assay("run", path, "--json")
    assert done.code == 0, done.err
    return str(done.document["run_id"])


def warnings(assay: Command, *command: str) -> list[str]:
    document = assay(*command, "--all-runs", "--pool-anyway", "--json").document
    return [warning["text"] for warning in document["warnings"] if warning["code"] == "mixed_rules"]


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ("exact", "similarity", ("exact", "similarity")),
        (
            "{numeric: {tolerance: 0.1}}",
            "{numeric: {tolerance: 1}}",
            ('numeric {"tolerance":0.1}', 'numeric {"tolerance":1}'),
        ),
    ],
    ids=["scorer", "option"],
)
def test_different_rules_of_a_task_are_named(
    assay: Command, project: Path, first: str, second: str, names: tuple[str, str]
) -> None:
    runs = [run(assay, project, first), run(assay, project, second)]
    for command in (["stats"], ["compare", "a", "b"], ["rank"]):
        (warning,) = warnings(assay, *command)
        assert "t0, t1, t2" in warning
        assert all(
            f"{name} in {of_run}" in warning for name, of_run in zip(names, runs, strict=True)
        ), warning
        refused = assay(*command, "--all-runs")
        assert refused.code == 2
        assert all(
            f"{name} in {of_run}" in refused.err for name, of_run in zip(names, runs, strict=True)
        ), refused.err
    newest = assay("stats", "--json").document
    assert (newest["runs"], [w for w in newest["warnings"] if w["code"] == "mixed_rules"]) == (
        runs[1:],
        [],
    )


def test_one_rule_and_regrades_carry_no_such_warning(assay: Command, project: Path) -> None:
    first = run(assay, project, "exact")
    run(assay, project, "exact")
    run(assay, project, "similarity", gap=" changed")
    assert warnings(assay, "stats") == []
    path = project / "pool.yaml"
    path.write_text(path.read_text("utf-8").replace(" changed", ""), "utf-8")
    assert assay("regrade", first, "--suite", path).code == 0
    # The regrade takes the place of the first run, and the second run is still scored by `exact`.
    (warning,) = warnings(assay, "stats")
    assert first not in warning


def test_exact_of_before_and_after_the_change_are_named(assay: Command, project: Path) -> None:
    runs = [run(assay, project, "exact"), run(assay, project, "exact", tasks=2)]
    engine = create_engine(f"sqlite:///{project}/.assay/assay.db")
    with engine.begin() as connection:
        # As runs were stored when `exact` gave credit for near misses.
        rows = connection.execute(
            text(
                "SELECT position, content FROM run_task JOIN body ON body.key = body_key WHERE run_key = 1"
            )
        ).all()
        for place, (position, content) in enumerate(rows):
            task = json.loads(content)
            del task["scoring"]["partial_credit"]
            connection.execute(
                text("INSERT INTO body (key, content) VALUES (:key, :content)"),
                {"key": 9000 + place, "content": json.dumps(task).encode()},
            )
            connection.execute(
                text(
                    "UPDATE run_task SET body_key = :key WHERE run_key = 1 AND position = :position"
                ),
                {"key": 9000 + place, "position": position},
            )
    engine.dispose()
    (warning,) = warnings(assay, "compare", "a", "b", "--judge", "exact")
    assert (
        f"exact with credit for near misses, as it was then in {runs[0]}; exact in {runs[1]}"
        in warning
    )
