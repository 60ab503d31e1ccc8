"""Peak memory of an `echo` run of 100,000 trials against one of 10,000; exits 1 when the ratio is
above the promise.

Measured for many trials of few tasks and for one trial of many tasks.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

SMALL, LARGE = 10_000, 100_000
PROMISE = 1.2


def main() -> int:
    worst = 0.0
    with tempfile.TemporaryDirectory() as place:
        for shape in ("trials", "tasks"):
            peaks = [
                _peak_mb(Path(place) / f"{shape}{size}", size, shape) for size in (SMALL, LARGE)
            ]
            ratio = peaks[1] / peaks[0]
            worst = max(worst, ratio)
            print(
                f"{shape}: {peaks[0]:.0f} MB at {SMALL:,}, {peaks[1]:.0f} MB at {LARGE:,}: {ratio:.2f} times"
            )
    print(f"promised: {PROMISE}")
    return int(worst > PROMISE)


def _peak_mb(folder: Path, size: int, shape: str) -> float:
    folder.mkdir()
    n_tasks = size if shape == "tasks" else 100
    with (folder / "tasks.jsonl").open("w") as file:
        for i in range(n_tasks):
            file.write(
                json.dumps(
                    {"id": f"t{i}", "prompt": f"say number {i}", "answer": f"say number {i}"}
                )
                + "\n"
            )
    (folder / "suite.yaml").write_text(
        f"name: echo\ntrials: {size // n_tasks}\ncandidates: [echo]\n"
        "tasks: {file: tasks.jsonl, map: {id: id, prompt: prompt, expected: answer}, score: exact}\n"
    )
    code = (
        "import resource, sys; from assay.cli.main import exit_code;"
        "code = exit_code(['run', 'suite.yaml', '--concurrency', '50', '--json']);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode or json.loads(done.stdout)["trials"]["done"] != size:
        raise SystemExit(done.stderr[-2000:] + done.stdout[-500:])
    return int(done.stderr.splitlines()[-1]) / (1024 if sys.platform != "darwin" else 1024**2)


if __name__ == "__main__":
    assert resource.RUSAGE_SELF == 0
    sys.exit(main())
