"""Real answers with people's grades through the whole pipeline, with recorded replies; agreement is
recomputed here.

The data is not part of this repository: it lies in `shared/data` beside it, or where ASSAY_SHARED
says.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.cli.main import exit_code

DATA = Path(os.environ.get("ASSAY_SHARED", Path(__file__).parents[3] / "shared")) / "data"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not DATA.is_dir(), reason=f"the real data is not at {DATA}; set ASSAY_SHARED to its folder"
    ),
]
WORDS = {1.0: "Yes", 0.5: "Partial", 0.0: "No"}
PASS = {1.0: "Pass", 0.5: "Partial", 0.0: "Fail"}


@pytest.fixture
def assay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Any:
    monkeypatch.chdir(tmp_path)

    def command(*arguments: object) -> Any:
        capfd.readouterr()
        code = exit_code([*map(str, arguments), "--json"])
        out, err = capfd.readouterr()
        assert code in (0, 1), err
        return json.loads(out)

    return command


def recorded(role: str, task: str, candidate: str | None, reply: object) -> str:
    match = {"role": role, "task": task} | ({} if candidate is None else {"candidate": candidate})
    return (
        json.dumps(
            {"match": match, "reply": reply if isinstance(reply, str) else json.dumps(reply)}
        )
        + "\n"
    )


def judged(task: str, candidate: str, word: str) -> str:
    label = f"{{{{label: {candidate}}}}}"
    grade = {"evidence": [], "reason": "Recorded from the published verdict.", "score": word}
    return recorded(
        "judge", task, candidate, {"candidates": {label: {"quality": grade}}, "report": ""}
    )


def rubric(folder: Path, **more: object) -> None:
    (folder / "rubric.yaml").write_text(yaml.safe_dump({"criteria": ["quality"], **more}), "utf-8")


def test_maths_answers_verify_as_their_flags_say(assay: Any, tmp_path: Path) -> None:
    tasks, replies, flags, preds = [], [], {}, {}
    with (DATA / "math_latex/math_cot_100.part1.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines][:15]
    for row in rows:
        task = str(row["idx"])
        models = [f"draw{n}" for n in range(1, 5)]
        tasks.append(
            {
                "task_id": row["idx"],
                "prompt": row["question"],
                "ideal_response": row["solution"],
                "final_answer": f"\\({row['gt']}\\)",
                "model_responses": [
                    {"model_id": model, "response_text": text}
                    for model, text in zip(models, row["code"], strict=False)
                ],
                "human_evaluations": [
                    {"model_id": model, "model_failure": not right}
                    for model, right in zip(models, row["score"], strict=False)
                ],
            }
        )
        replies.append(
            recorded("structurer", task, None, {"steps": ["..."], "final_answer": row["gt"]})
        )
        for model, pred, right in zip(models, row["pred"], row["score"], strict=False):
            flags[task, model], preds[task, model] = right, pred
            replies.append(
                recorded("structurer", task, model, {"steps": ["..."], "final_answer": pred})
            )
            replies.append(judged(task, model, "Yes" if right else "No"))
    (tmp_path / "raw.json").write_text(json.dumps(tasks), "utf-8")
    (tmp_path / "replies.jsonl").write_text("".join(replies), "utf-8")
    rubric(tmp_path, structure="replay/replies.jsonl", verify="math")
    document = assay(
        "run", "raw.json", "--rubric", "rubric.yaml", "--judge", "replay/replies.jsonl"
    )
    assert (document["trials"]["done"], document["failures"]) == (15, [])
    (agreement,) = document["agreement"]
    assert (agreement["agreement"], agreement["n"], agreement["n_tasks"]) == (1.0, 60, 15)
    rows = assay("review", "list", "--run", document["run_id"])["assessments"]
    verified = {
        (row["task"], row["candidates"][0]): row["verifications"][0]["verified"] for row in rows
    }
    assert {place for place, right in flags.items() if right is not verified[place]} == set()
    assert Counter(flags.values())[False] > 0


def test_a_published_judge_agrees_with_people_as_computed_by_hand(
    assay: Any, tmp_path: Path
) -> None:
    rows = json.loads((DATA / "pandalm/testset-v1.json").read_text("utf-8"))[:120]
    verdicts = {
        row["idx"]: str(row["gpt_result"])
        for row in json.loads((DATA / "pandalm/gpt-3.5-turbo-testset-v1.json").read_text("utf-8"))
    }
    points = {"1": (1.0, 0.0), "2": (0.0, 1.0), "0": (0.5, 0.5), "Tie": (0.5, 0.5)}
    replies, same, confusion, unread = [], [], Counter[tuple[str, str]](), 0
    for row in rows:
        label, _ = Counter(str(row[f"annotator{n}"]) for n in (1, 2, 3)).most_common(1)[0]
        for place, name in enumerate(row["cmp_key"].split("_")):
            given = points.get(verdicts[row["idx"]])
            if given is None:
                replies.append(recorded("judge", str(row["idx"]), name, verdicts[row["idx"]]))
                unread += 1
                continue
            replies.append(judged(str(row["idx"]), name, WORDS[given[place]]))
            same.append(given[place] == points[label][place])
            confusion[PASS[points[label][place]], PASS[given[place]]] += 1
    (tmp_path / "testset.json").write_text(json.dumps(rows), "utf-8")
    (tmp_path / "replies.jsonl").write_text("".join(replies), "utf-8")
    rubric(tmp_path)
    (run,) = assay("import", "testset.json")["run_ids"]
    people = assay("stats")["candidates"]
    document = assay("regrade", run, "--rubric", "rubric.yaml", "--judge", "replay/replies.jsonl")
    (agreement,) = document["agreement"]
    assert agreement["n"] == len(same)
    assert agreement["agreement"] == pytest.approx(sum(same) / len(same))
    low, high = agreement["ci95"]
    assert low < sum(same) / len(same) < high
    assert high - low < 0.25
    assert {
        (a, b): n for a, row in agreement["confusion"].items() for b, n in row.items() if n
    } == dict(confusion)
    waiting = assay("review", "list", "--run", document["run_id"])["assessments"]
    assert (
        sum(row["flags"][:1] != [] and row["flags"][0]["kind"] == "parse_error" for row in waiting)
        == unread
    )
    assert assay("stats")["candidates"] == people


def test_a_noisy_judge_of_translations_is_measured_with_its_range(
    assay: Any, tmp_path: Path
) -> None:
    lines = (
        (DATA / "wmt_mqm_ted_ende/mqm_ted_ende.tsv").read_text("utf-8").splitlines(keepends=True)
    )
    few = [line for line in lines[1:] if int(line.split("\t")[3]) <= 8]
    (tmp_path / "mqm.tsv").write_text(lines[0] + "".join(few), "utf-8")
    columns = [
        "system",
        "doc",
        "doc_id",
        "seg",
        "rater",
        "source",
        "target",
        "category",
        "severity",
        "comment",
    ]
    mapping = {
        "task": ["doc", "seg"],
        "candidate": "system",
        "answer": "target",
        "prompt": "source",
        "judge": "rater",
        "by": "person",
        "columns": columns,
        "quoted": False,
        "skip": 1,
        "score": ["severity", "category"],
        "labels": {"major/*": 5, "minor/*": 1, "n*/*": 0},
        "sum": True,
        "scale": [25, 0],
        "clip": True,
    }
    (tmp_path / "map.yaml").write_text(yaml.safe_dump(mapping), "utf-8")
    (run,) = assay("import", "mqm.tsv", "--map", "map.yaml")["run_ids"]
    rows = assay("review", "list", "--run", run)["assessments"]
    people = {(row["task"], name): score for row in rows for name, score in row["scores"].items()}
    noise, replies, same = random.Random(18), [], []
    for (task, name), score in people.items():
        word = ("Yes" if score == 1.0 else "Partial") if noise.random() < 0.8 else "No"
        replies.append(judged(task, name, word))
        same.append(word == ("Yes" if score == 1.0 else "Partial"))
    (tmp_path / "replies.jsonl").write_text("".join(replies), "utf-8")
    rubric(tmp_path)
    document = assay("regrade", run, "--rubric", "rubric.yaml", "--judge", "replay/replies.jsonl")
    (agreement,) = document["agreement"]
    assert (agreement["n"], agreement["n_tasks"]) == (
        len(people),
        len({task for task, _ in people}),
    )
    assert agreement["agreement"] == pytest.approx(sum(same) / len(same), abs=0.02)
    assert agreement["ci95"][0] < 0.8 < agreement["ci95"][1]
    assert len(agreement["by_candidate"]) == len({name for _, name in people}) > 10
