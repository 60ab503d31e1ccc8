"""Import speed of batch output and of score tables, compared with bare loops that store the same
columns.

`python -m bench.import_speed [--lines 100000] [--bytes 2000] [--scores 300000]` writes output lines
of a model, imports them with `assay import`, and stores custom_id, status, model, finish reason,
tokens, time and answer with a bare loop of orjson and sqlite3 in one table, in the same run on the
same disk. It does the same with a table of scores and a bare loop of csv and sqlite3, and prints
the speed of both, their ratio, the importer's peak memory, and the bytes that the store needs per
score. The ratio for lines is of seconds and includes the start of the program. The ratio for scores
is of CPU time and leaves it out. A table of fewer than 100,000 scores is not comparable: its run is
small enough to be written to the results folder as well.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson

WORDS = [
    "pedigree",
    "trajectory",
    "engineer",
    "strong",
    "average",
    "weak",
    "company",
    "degree",
    "years",
    "\u2019s",
    "role",
]


def write_lines(path: Path, lines: int, size: int) -> int:
    """Batch output of a model that answers at length; ids in no order."""
    rng = random.Random(7)
    with path.open("w", encoding="utf-8") as out:
        for number in range(lines):
            answer = " ".join(rng.choices(WORDS, k=max(1, (size - 560) // 8)))
            row = {
                "id": f"vllm-{rng.getrandbits(128):032x}",
                "custom_id": f"{rng.getrandbits(128):032x}",
                "response": {
                    "status_code": 200,
                    "request_id": f"vllm-batch-{rng.getrandbits(128):032x}",
                    "body": {
                        "id": f"chatcmpl-{rng.getrandbits(128):032x}",
                        "object": "chat.completion",
                        "created": 1730126000 + number // 3,
                        "model": "Qwen/Qwen3-4B-Instruct-2507",
                        "choices": [
                            {
                                "index": 0,
                                "message": {
                                    "role": "assistant",
                                    "content": answer,
                                    "refusal": None,
                                },
                                "logprobs": None,
                                "finish_reason": "stop",
                                "stop_reason": None,
                            }
                        ],
                        "usage": {
                            "prompt_tokens": 747,
                            "total_tokens": 1081,
                            "completion_tokens": 334,
                        },
                    },
                },
                "error": None,
            }
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path.stat().st_size


def bare_loop(path: Path, database: Path) -> float:
    """Seconds of the loop that anyone would write first, with the care that makes it fast."""
    began = time.perf_counter()
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(
        "CREATE TABLE answer (custom_id TEXT PRIMARY KEY, status INTEGER, model TEXT, finish_reason TEXT, "
        "input_tokens INTEGER, output_tokens INTEGER, created INTEGER, content TEXT)"
    )

    def rows() -> Any:
        with path.open("rb") as stream:
            for line in stream:
                row = orjson.loads(line)
                response = row["response"]
                body = response["body"]
                choice, usage = body["choices"][0], body["usage"]
                yield (
                    row["custom_id"],
                    response["status_code"],
                    body["model"],
                    choice["finish_reason"],
                    usage["prompt_tokens"],
                    usage["completion_tokens"],
                    body["created"],
                    choice["message"]["content"],
                )

    connection.executemany("INSERT INTO answer VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows())
    connection.commit()
    connection.close()
    return time.perf_counter() - began


def write_scores(path: Path, rows: int) -> None:
    """Write a table of scores: ten candidates, five trials of each task."""
    rng = random.Random(7)
    with path.open("w", encoding="utf-8") as out:
        out.write("task,candidate,trial,score\n")
        for number in range(rows):
            task, candidate, trial = number // 50, number // 5 % 10, number % 5 + 1
            out.write(f"task-{task:06},model-{candidate},{trial},{rng.random():.3f}\n")


def bare_scores(path: Path, database: Path) -> float:
    """Return the seconds of the loop that anyone would write first for a table of scores."""
    began = time.perf_counter()
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(
        "CREATE TABLE score (task TEXT, candidate TEXT, trial INTEGER, score REAL, PRIMARY KEY (task, candidate, trial))"
    )
    with path.open(encoding="utf-8", newline="") as stream:
        rows = csv.reader(stream)
        next(rows)
        values = (
            (task, candidate, int(trial), float(score)) for task, candidate, trial, score in rows
        )
        connection.executemany("INSERT INTO score VALUES (?, ?, ?, ?)", values)
    connection.commit()
    connection.close()
    return time.perf_counter() - began


def compare_scores(folder: Path, rows: int) -> None:
    """Print the CPU time of both ways for a table of scores, and the bytes of each row in the
    store.

    The ratio leaves out the start of the program and the creation of the store, measured by the
    import of ten rows.
    """
    table, few = folder / "scores.csv", folder / "few.csv"
    write_scores(table, rows)
    write_scores(few, 10)
    bare_s = ours_s = start_s = float("inf")
    peak, store = 0.0, folder
    # CPU time and the best of five, because a busy machine slows single runs of either down by
    # half.
    for number in range(5):
        home, empty = folder / f"scores-{number}", folder / f"few-{number}"
        home.mkdir()
        empty.mkdir()
        before = time.process_time()
        bare_scores(table, home / "bare.db")
        bare_s = min(bare_s, time.process_time() - before)
        seconds, peak = ours(table, home)[1:]
        ours_s, store = min(ours_s, seconds), home / ".assay/assay.db"
        start_s = min(start_s, ours(few, empty)[1])
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    net_s = ours_s - start_s
    print(f"{rows:,} scores, in CPU time")
    print(f"bare loop     {bare_s:7.2f} s  {rows / bare_s:9,.0f} rows/s")
    print(
        f"assay import  {net_s:7.2f} s  {rows / net_s:9,.0f} rows/s  {net_s / bare_s:.1f} times the bare loop  "
        f"{store.stat().st_size / rows:.0f} bytes a row  peak {peak:.0f} MB"
    )
    print(
        f"start-up      {start_s:7.2f} s, left out above; with it {ours_s / bare_s:.1f} times the bare loop"
    )


def ours(path: Path, folder: Path) -> tuple[float, float, float]:
    """Seconds and CPU seconds of the whole command, and the peak memory in MB of all commands so
    far.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "assay", "import", str(path), "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.loads(done.stdout)["imported"], file=sys.stderr)
    return seconds, cpu, after.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--bytes", type=int, default=2_000, help="about how long a line is")
    parser.add_argument("--folder", type=Path, help="where to write; default a temporary folder")
    parser.add_argument("--scores", type=int, default=300_000, help="rows of the table of scores")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as name:
        folder = Path(name)
        lines = folder / "output.jsonl"
        size = write_lines(lines, chosen.lines, chosen.bytes) / 1e6
        bare_s = bare_loop(lines, folder / "bare.db")
        ours_s, _, peak = ours(lines, folder)
        bare, mine = size / bare_s, size / ours_s
        print(f"{chosen.lines:,} lines, {size:,.0f} MB")
        print(f"bare loop     {bare_s:7.1f} s  {bare:7.1f} MB/s")
        print(
            f"assay import  {ours_s:7.1f} s  {mine:7.1f} MB/s  {mine / bare:.2f} of the bare loop  peak {peak:.0f} MB"
        )
        compare_scores(folder, chosen.scores)


if __name__ == "__main__":
    main()
