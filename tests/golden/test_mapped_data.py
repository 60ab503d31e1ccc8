"""Real rows read with `--map`, compared with the figures that their sources print.

The data is not part of this repository: it lies in `shared/data` beside it, or where ASSAY_SHARED
says.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from tests.support.read_files import Read

from assay.exchange.importers import ReadOptions
from assay.exchange.parsing.input_files import InputFile, archive_members, input_file
from assay.exchange.readers import mapped_columns

DATA = Path(os.environ.get("ASSAY_SHARED", Path(__file__).parents[3] / "shared")) / "data"

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"the real data is not at {DATA}; set ASSAY_SHARED to its folder"
)

MQM: dict[str, Any] = {
    "task": ["doc", "seg"],
    "candidate": "system",
    "judge": "rater",
    "by": "person",
    "quoted": False,
    "skip": 1,
    "score": ["severity", "category"],
    "labels": {
        "*/non-translation*": 25,
        "minor/fluency/punctuation*": 0.1,
        "major/*": 5,
        "minor/*": 1,
        "n*/*": 0,
    },
    "sum": True,
    "scale": [25, 0],
    "clip": True,
}
"""Weights of the source's README: an error row each, added up for a segment and a rater."""


def read(source: InputFile, mapping: dict[str, Any]) -> Read:
    assert mapped_columns.problem_of(mapping) is None
    records = Read()
    for record in mapped_columns.read(source, ReadOptions(mapping=mapping)):
        records.take(record)
    return records


def raw_means(records: Read) -> dict[str, float]:
    """Mean raw score of each candidate over tasks, each the mean of its graders."""
    raw: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for assessment in records.assessments:
        for grade in assessment.grades:
            if grade.raw_score is not None:
                raw[grade.candidate][assessment.task].append(grade.raw_score)
    return {name: round(mean(map(mean, tasks.values())), 3) for name, tasks in raw.items()}


def test_lists_of_eight_completions_hold_444_correct_ones() -> None:
    mapping = {
        "task": "idx",
        "candidate": "=qwen",
        "draws": ["code", "score"],
        "answer": "code",
        "score": "score",
    }
    records = read(input_file(DATA / "math_latex/math_cot_100.part1.jsonl"), mapping)
    assert (records.counts, records.skipped) == ((1, 60, 480, 480), [])
    assert sum(grade.score or 0.0 for row in records.assessments for grade in row.grades) == 444


def test_three_draws_of_a_judge_have_the_published_means() -> None:
    mapping = {
        "task": "idx",
        "candidate": "response_source",
        "draws": "gpt4_score",
        "trial": "=1",
        "score": "gpt4_score",
        "judge": ["=gpt4", "@draw"],
        "scale": [1, 5],
    }
    records = read(input_file(DATA / "prometheus_mt_bench/mt_bench_eval.json"), mapping)
    means = {"chatgpt": 3.817, "llama2_chat_13b": 3.479, "wizardlm_13b": 3.392, "vicuna_13b": 3.267}
    assert raw_means(records) == means


def test_error_rows_add_up_to_the_published_system_scores() -> None:
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
    records = read(
        input_file(DATA / "wmt_mqm_ted_ende/mqm_ted_ende.tsv"), {**MQM, "columns": columns}
    )
    means = raw_means(records)
    assert (records.skipped, len(records.assessments)) == ([], 14 * 529)
    assert (round(means["ref"], 2), round(means["Nemo"], 2), round(means["eTranslation"], 2)) == (
        0.91,
        2.14,
        1.97,
    )


def test_attention_checks_are_filtered_out_of_three_raters() -> None:
    (archive,) = (DATA / "wmt_mqm_sxs_2023_ende").glob("*.tar.gz")
    columns = [
        "system",
        "doc",
        "doc_seg",
        "seg",
        "rater",
        "source",
        "target",
        "category",
        "severity",
        "metadata",
    ]
    mapping = {
        **MQM,
        "columns": columns,
        "unless": {"severity": "HOTW-test"},
        "thing": "metadata.segment.doc",
    }
    records = read(next(archive_members(archive, archive.name)), mapping)
    means = raw_means(records)
    assert len(records.assessments) == 1040 * 3
    assert (means["ONLINE-W"], means["NLLB_MBR_BLEU"]) == (3.247, 11.028)
    assert records.tasks[0].thing == "news_aj-english.33941:en-de"
