"""Keeps a store and a results folder as this version writes them: `python -m
tests.upgrade.keep_a_version`.

Run it once for each change of the tables: `tests/upgrade/test_versions.py` fails until `versions`
has the file. With the folder of another checkout as argument, that checkout's code writes the file.
Kept files never change; what users have does not either.

The store has two runs. A recorded judge grades six trials of two candidates, of which three count:
two grades are approved, one is corrected, one rejected, one rerun and one left to review. The other
run compares two answers with the expected ones.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
VERSIONS: Final = HERE / "versions"
PROJECT: Final = HERE.parents[1]

CODE: Final = {
    "adder": {
        "ada": "def add(a, b):\n    return a + b\n",
        "bruno": "def add(a, b):\n    return b\n",
    },
    "greeter": {
        "ada": 'def greet(name):\n    return f"Hello, {name}"\n',
        "bruno": "def greet(name):\n    print(name)\n",
    },
}
QUOTED: Final = {
    "adder": {"ada": "return a + b", "bruno": "return b"},
    "greeter": {"ada": "return f", "bruno": "print(name)"},
}
CRITERIA: Final = ("integrity", "data_flow", "maintainability", "fitness")
BEST: Final = {"ada": 8, "bruno": 3}
EXACT: Final = """\
name: capitals
candidates:
  - name: carla
    model: replay/answers.jsonl
trials: 1
tasks:
  - id: france
    prompt: Capital of France?
    expected: Paris
    score: exact
  - id: spain
    prompt: Capital of Spain?
    expected: Madrid
    score: exact
"""
ANSWERS: Final = {"france": "Paris", "spain": "Lisbon"}

COUNTED: Final = """
    SELECT run.id, candidate.name, count(*), avg(score.value)
    FROM score JOIN run ON run.key = score.run_key JOIN candidate ON candidate.key = score.candidate_key
    WHERE score.state IN ('approved', 'corrected', 'not_required') AND score.value IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2"""


def main(checkout: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_inputs(work)
        review(work, checkout)
        store = work / ".assay" / "assay.db"
        with closing(sqlite3.connect(store, isolation_level=None)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA journal_mode=DELETE")
            connection.execute("VACUUM")
            (work / "figures.json").write_text(
                json.dumps(figures(connection), indent=1) + "\n", "utf-8"
            )
            kept = VERSIONS / f"{name_of(connection)}.tar.xz"
        with tarfile.open(kept, "w:xz", preset=9) as archive:
            archive.add(store, "assay.db", filter=_without_locks)
            archive.add(work / "figures.json", "figures.json", filter=_without_locks)
            if (work / "results").is_dir():
                archive.add(work / "results", "results", filter=_without_locks)
            if (work / "exports").is_dir():
                archive.add(work / "exports", "exports", filter=_without_locks)
    print(kept)


def write_inputs(work: Path) -> None:
    """Write a set, a suite, and the recordings of a judge and a candidate."""
    things = [
        {
            "thingName": task.title(),
            "context": f"Write the {task}.",
            "language": "python",
            "trialsNeeded": 3,
            "snippets": [{"name": name, "content": code} for name, code in snippets.items()],
        }
        for task, snippets in CODE.items()
    ]
    (work / "set.json").write_text(json.dumps(things), "utf-8")
    visits = [(task, trial, 1) for task in CODE for trial in (1, 2, 3)] + [("greeter", 2, 2)]
    (work / "judge.jsonl").write_text(
        "".join(_line("judge", _report(*visit), *visit) for visit in visits), "utf-8"
    )
    (work / "exact.yaml").write_text(EXACT, "utf-8")
    (work / "answers.jsonl").write_text(
        "".join(_line("candidate", text, task) for task, text in ANSWERS.items()), "utf-8"
    )


def review(work: Path, checkout: Path) -> None:
    """Run both files, and decide as a reviewer would, with the commands of a checkout."""
    _assay(
        work,
        checkout,
        "run",
        "set.json",
        "--judge",
        "replay/judge.jsonl",
        "--concurrency",
        "1",
        "--batch-id",
        "kept",
    )
    _assay(work, checkout, "run", "exact.yaml", "--concurrency", "1", "--batch-id", "kept")
    listed = json.loads(_assay(work, checkout, "review", "list", "--state", "pending", "--json"))[
        "assessments"
    ]
    first, second, third, fourth, fifth, _ = sorted(str(row["id"]) for row in listed)
    reviewer = ("--reviewer", "kim")
    _assay(work, checkout, "review", "approve", first, second, *reviewer)
    _assay(
        work,
        checkout,
        "review",
        "correct",
        third,
        "--score",
        "ada/fitness=0.5",
        "--reason",
        "Too much code.",
        *reviewer,
    )
    _assay(
        work,
        checkout,
        "review",
        "reject",
        fourth,
        "--reason",
        "The report is about other code.",
        *reviewer,
    )
    _assay(
        work,
        checkout,
        "review",
        "rerun",
        fifth,
        "--reason",
        "Unclear.",
        "--note",
        "Look at the output.",
        *reviewer,
    )
    if "  export " in _assay(work, checkout, "--help"):  # which came with schema 0003
        (work / "exports").mkdir()
        for form in ("csv", "jsonl"):
            _assay(
                work,
                checkout,
                "export",
                form,
                "--batch-id",
                "kept",
                "--output",
                f"exports/results.{form}",
            )


def figures(connection: sqlite3.Connection) -> dict[str, Any]:
    """Return the figures that every later version must show: counts of states and decisions, and
    the means that count.
    """

    def counts(query: str) -> dict[str, int]:
        return dict(connection.execute(query).fetchall())

    counted: dict[str, dict[str, tuple[int, float]]] = {}
    for run, candidate, number, mean in connection.execute(COUNTED):
        counted.setdefault(run, {})[candidate] = (number, round(mean, 9))
    return {
        "runs": counts("SELECT id, state FROM run ORDER BY 1"),
        "trials": counts("SELECT state, count(*) FROM trial GROUP BY 1"),
        "assessments": counts("SELECT state, count(*) FROM assessment GROUP BY 1"),
        "decisions": counts("SELECT verb, count(*) FROM review_event GROUP BY 1"),
        "last_hash": connection.execute(
            "SELECT hash FROM review_event ORDER BY id DESC LIMIT 1"
        ).fetchone()[0],
        "responses": counts("SELECT 'all', count(*) FROM response")["all"],
        "counted": counted,
    }


def name_of(connection: sqlite3.Connection) -> str:
    """Return the number of a store's schema, and a digest of its tables: several schemas had the
    number 0011.
    """
    statements = connection.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
    ).fetchall()
    (version,) = connection.execute("SELECT version_num FROM assay_version").fetchone()
    return f"{version}-{digest_of(statement for (statement,) in statements)}"


def digest_of(statements: Any) -> str:
    lines = sorted(re.sub(r"\s+", " ", statement).strip() for statement in statements)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]


def _line(
    role: str, text: str, task: str, trial: int | None = None, attempt: int | None = None
) -> str:
    match = {"role": role, "task": task, "trial": trial, "attempt": attempt}
    reply = {"text": text, "usage": {"input_tokens": 100, "output_tokens": 50}}
    return (
        json.dumps(
            {
                "match": {name: value for name, value in match.items() if value is not None},
                "reply": reply,
            }
        )
        + "\n"
    )


def _report(task: str, trial: int, attempt: int) -> str:
    candidates = {
        f"{{{{label:{name}}}}}": {
            criterion: {
                "score": best + trial / 2 - 0.25 * place + attempt / 4 - 0.5,
                "reason": f"In trial {trial}, the {criterion} of this {task} {'holds' if name == 'ada' else 'fails'}.",
                "evidence": [QUOTED[task][name]],
            }
            for place, criterion in enumerate(CRITERIA)
        }
        for name, best in BEST.items()
    }
    ranking = [f"{{{{label:{name}}}}}" for name in BEST]
    return json.dumps(
        {"report": f"I read both, attempt {attempt}.", "ranking": ranking, "candidates": candidates}
    )


def _assay(work: Path, checkout: Path, *arguments: str) -> str:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")
    }
    environment["PYTHONPATH"] = str(checkout / "src")
    # The installed package is this checkout, so that the other must come first on the path.
    code = (
        "import sys; import assay; from assay.cli.main import main; sys.argv[0] = 'assay'; "
        f"assert assay.__file__.startswith({str(checkout)!r}), assay.__file__; sys.exit(main())"
    )
    command = [sys.executable, "-P", "-c", code, *arguments]
    ended = subprocess.run(
        command, cwd=work, env=environment, capture_output=True, text=True, check=False
    )
    if ended.returncode not in (0, 1):
        raise SystemExit(
            f"{' '.join(arguments)}: code {ended.returncode}\n{ended.stdout}{ended.stderr}"
        )
    return ended.stdout


def _without_locks(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return None if member.name.endswith(".lock") else member


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else PROJECT)
