"""Server time of the pages about models, criteria and calibration over a large store: first look,
later looks, after a decision.

    python bench/judges_pages.py [--assessments 100000]

A store as in `store_scale`, with two calls and four grades an assessment, nine tenths of it decided
by people, one decided assessment in fifty with a verdict given blind. Pages are asked of the app
itself, without a network.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from store_scale import FILL, tasks
from store_speed import plan

from assay.app.workspace import Workspace
from assay.domain.assessment import Assessment, Grade
from assay.domain.identifiers import AssessmentKey
from assay.domain.lifecycle import Verb
from assay.domain.model import ModelSpec
from assay.domain.review import Decision, Via
from assay.domain.suite import Criterion, JudgeSpec, Rubric
from assay.store.database.codec import assessment_bytes
from assay.web.server import create_app

MORE = """
INSERT INTO grade SELECT 1, a.key, 1, g.value, 1.0, ((a.key * 7 + g.value) % 11) / 10.0, ((a.key * 7 + g.value) % 11) / 10.0,
    (a.key * 7 + g.value) % 11, 0, 10, NULL FROM assessment a, generate g;
UPDATE assessment SET state = CASE WHEN key % 10 = 0 THEN 'pending' WHEN key % 10 = 1 THEN 'corrected' ELSE 'approved' END;
UPDATE score SET state = (SELECT state FROM assessment WHERE key = assessment_key);
UPDATE grade SET value = min(1.0, value + 0.2) WHERE criterion_key = 1 AND assessment_key % 10 = 1;
DELETE FROM run_tally WHERE subject = 'assessment';
INSERT INTO run_tally SELECT 1, 'assessment', state, count(*) FROM assessment GROUP BY state;
INSERT INTO review_event SELECT key, 'k' || key, key, 1, 'approve', 'pending', state, 'ann', 'page', 1, '', '', '[]', '', '', ''
    FROM assessment WHERE state != 'pending';
INSERT INTO observation SELECT key, 'verdict', 1, key, 'ann', '', 'v' || key,
    CAST('{"scores": [["echo", "criterion 1", 0.5], ["echo", "criterion 2", 0.4]], "whole": {}}' AS BLOB)
    FROM assessment WHERE state != 'pending' AND key % 50 = 2;
INSERT INTO call SELECT 2 * key + g.value - 2, 1, trial_key, CASE g.value WHEN 1 THEN 'candidate' ELSE 'judge' END, 1, 1, 1, 1,
    CASE g.value WHEN 1 THEN 'openai/gpt-4o' ELSE 'openai/gpt-4o-mini' END, NULL, 'stop', 900, 300, 1.5, NULL, 0.002,
    '2026-01-01T00:00:00.000Z', CASE WHEN key % 40 = 0 THEN 'http_500' END, CASE WHEN key % 40 = 0 THEN 'provider' END,
    CASE WHEN key % 40 = 0 THEN 'It broke.' END, '', NULL FROM assessment, generate g WHERE g.value <= 2;
UPDATE key_source SET next = 10000000 WHERE name IN ('call', 'assessment', 'body');
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assessments", type=int, default=100_000)
    n = parser.parse_args().assessments // 1000 * 1000
    with (
        tempfile.TemporaryDirectory() as name,
        Workspace.open(Path(name), environment={"OPENAI_API_KEY": "k"}) as workspace,
    ):
        judge = JudgeSpec(name="judge", model=ModelSpec(provider="openai", name="gpt-4o-mini"))
        rubric = Rubric(
            criteria=tuple(Criterion(name=f"criterion {number}") for number in range(1, 5))
        )
        workspace.journal.open_run(replace(plan(), judges=(judge,), rubric=rubric), tasks(n))
        empty = Assessment(
            grades=tuple(
                Grade(
                    candidate="echo",
                    criterion=f"criterion {number}",
                    score=0.5,
                    raw_score=5,
                    min_score=0,
                    max_score=10,
                )
                for number in range(1, 5)
            ),
            scores={"echo": 0.5},
        )
        with closing(sqlite3.connect(Path(name) / ".assay" / "assay.db")) as connection:
            fill = FILL.format(body=assessment_bytes(empty).hex())
            fill = fill.replace(
                "INSERT INTO grader VALUES (1, 'judge');\nINSERT INTO run_grader VALUES (1, 1, false);\n",
                "",
            )
            connection.executescript(
                "CREATE TEMP TABLE generate (value); INSERT INTO generate VALUES (1), (2), (3), (4);"
            )
            connection.executescript("BEGIN;" + fill + MORE + "COMMIT;")
        asyncio.run(look(workspace))


async def look(workspace: Workspace) -> None:
    app = create_app(workspace)
    digest = next(iter(workspace.archive.rubrics.uses(0)[1])).rubric.digest
    for path in (
        "/models",
        "/models/openai/gpt-4o-mini",
        "/criteria",
        f"/criteria/{digest}",
        "/calibration",
    ):
        first = await asked(app, path)
        later = sorted([await asked(app, path) for _ in range(10)])
        key = 10 * (1 + len(path))
        workspace.decisions.decide(
            [
                Decision(
                    assessment=AssessmentKey(key),
                    verb=Verb.APPROVE,
                    reviewer="r",
                    via=Via.PAGE,
                    displayed=True,
                )
            ]
        )
        print(
            f"{path[:30]:32s} first {first:8.0f} ms   p50 {later[5]:6.1f} ms   after a decision {await asked(app, path):8.1f} ms"
        )


async def asked(app: object, path: str) -> float:
    """Milliseconds until the app has answered."""
    sent: list[dict[str, object]] = []
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1"), (b"accept", b"text/html")],
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
        "root_path": "",
    }

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    began = time.perf_counter()
    await app(scope, receive, send)  # type: ignore[operator]
    taken = 1000 * (time.perf_counter() - began)
    assert sent[0]["status"] == 200, (path, sent)
    return taken


if __name__ == "__main__":
    main()
