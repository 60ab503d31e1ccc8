"""`--map`: several metrics, draws, sums, filters and amounts of a row, and mappings that do not
fit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.read_files import Read

from assay.domain.import_records import GradedBy
from assay.exchange.importers import ReadOptions
from assay.exchange.parsing.input_files import input_file
from assay.exchange.parsing.off_scale import WrongScale
from assay.exchange.readers import mapped_columns

LONG = {"task": "id", "candidate": "who"}


def read(path: Path, **mapping: Any) -> Read:
    mapping = {**LONG, **mapping}
    assert mapped_columns.problem_of(mapping) is None
    records = Read()
    for record in mapped_columns.read(input_file(path), ReadOptions(mapping=mapping)):
        records.take(record)
    return records


def table(folder: Path, text: str, name: str = "rows.csv") -> Path:
    (folder / name).write_text(text, "utf-8")
    return folder / name


def lines(folder: Path, *rows: dict[str, Any]) -> Path:
    return table(folder, "".join(json.dumps(row) + "\n" for row in rows), "rows.jsonl")


def graded(records: Read) -> list[tuple[str, str, int, float | None, float | None]]:
    """Judge, criterion, trial, score and raw score of every grade."""
    return [
        (assessment.judge, grade.criterion, assessment.trial, grade.score, grade.raw_score)
        for assessment in records.assessments
        for grade in assessment.grades
    ]


def test_several_metrics_have_their_own_scale_judge_and_direction(tmp_path: Path) -> None:
    path = table(tmp_path, "id,who,em,wer,help,why\nq1,a,true,0.25,4,good\n")
    metrics = {
        "exact": "em",
        "errors": {"score": "wer", "scale": [1, 0]},
        "helpful": {
            "score": "help",
            "scale": [1, 5],
            "judge": "=gpt",
            "by": "model",
            "reason": "why",
        },
    }
    records = read(path, scores=metrics)
    assert graded(records) == [
        ("score", "exact", 1, 1.0, 1.0),
        ("score", "errors", 1, 0.75, 0.25),
        ("gpt", "helpful", 1, 0.75, 4.0),
    ]
    assert [assessment.by for assessment in records.assessments] == [GradedBy.RULE, GradedBy.MODEL]
    assert records.assessments[1].grades[0].reason == "good"
    errors = records.assessments[0].grades[1]
    assert (errors.min_score, errors.max_score) == (1.0, 0.0)  # the worst value, then the best


def test_truth_is_the_higher_end_of_a_reversed_scale(tmp_path: Path) -> None:
    path = table(tmp_path, "id,who,is_wrong\nq1,a,true\nq2,a,false\n")
    records = read(path, score="is_wrong", scale=[1, 0])
    assert [(score, raw) for *_, score, raw in graded(records)] == [(0.0, 1.0), (1.0, 0.0)]


def test_grade_of_a_model_never_joins_those_of_a_rule(tmp_path: Path) -> None:
    path = table(tmp_path, "id,who,em,help,by\nq1,a,1,0.5,x\n")
    metrics = {
        "exact": {"score": "em", "judge": "by", "by": "rule"},
        "helpful": {"score": "help", "judge": "by"},
    }
    records = read(path, scores=metrics)
    assert graded(records) == [("x", "exact", 1, 1.0, 1.0)]
    assert "has a grade by 'x' as a model, but other rows say rule" in records.skipped[0].why
    unnamed = read(path, scores={"exact": "em", "helpful": {"score": "help", "by": "model"}})
    assert [(assessment.judge, assessment.by) for assessment in unnamed.assessments] == [
        ("score", GradedBy.RULE),
        ("model", GradedBy.MODEL),
    ]


def test_scale_may_stand_in_the_row(tmp_path: Path) -> None:
    path = table(tmp_path, "id,who,points,most\nq1,a,3,4\nq2,a,3,12\nq3,a,3,\n")
    records = read(path, score="points", scale=[0, "most"])
    assert [grade[3] for grade in graded(records)] == [0.75, 0.25]
    assert [skipped.where[-5:] for skipped in records.skipped] == ["csv:4"]
    assert "no scale" in records.skipped[0].why


def test_tokens_cost_and_errors_belong_to_the_response(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        "id,who,out,in,cached,tok,usd,s,err\nq1,a,yes,10,5,7,0.25,1.5,\nq2,a,,10,,0,free,2,timed out\n",
    )
    records = read(
        path,
        answer="out",
        error="err",
        input_tokens={"sum": ["in", "cached"]},
        output_tokens="tok",
        cost_usd="usd",
        latency_s="s",
    )
    first, second = records.responses
    assert (
        first.content,
        first.input_tokens,
        first.output_tokens,
        first.cost_usd,
        first.latency_s,
    ) == ("yes", 15, 7, 0.25, 1.5)
    assert second.failure is not None
    assert (second.content, second.failure.detail, second.cost_usd) == (None, "timed out", None)
    assert "`cost_usd` is not a number of at least 0 in 1 rows" in records.notes[0].what


def test_failed_response_has_no_grade(tmp_path: Path) -> None:
    records = read(
        table(tmp_path, "id,who,out,err,ok\nq1,a,,broke,0\n"), answer="out", error="err", score="ok"
    )
    assert (len(records.responses), records.assessments, records.skipped) == (1, [], [])


def test_places_lead_into_json_in_a_cell(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        'id\twho\tmeta\nq1\ta\t{"result": {"ok": [false, true]}}\nq2\ta\tno json\n',
        "rows.tsv",
    )
    records = read(path, score="meta.result.ok.1", quoted=False)
    assert graded(records) == [("score", "", 1, 1.0, 1.0)]
    assert (
        "holds no score for 'a'" in records.skipped[0].why
        or "holds no answer" in records.skipped[0].why
    )


def test_columns_of_candidates_may_hold_json(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        'id\tada\tbob\nq1\t{"out": "x", "ok": true}\t{"out": "y", "ok": false}\n',
        "rows.tsv",
    )
    mapping = {"task": "id", "candidate": None, "candidates": ["ada", "bob"], "quoted": False}
    records = read(path, **mapping, answer="out", score="ok")
    assert [(response.candidate, response.content) for response in records.responses] == [
        ("ada", "x"),
        ("bob", "y"),
    ]
    assert [grade[3] for grade in graded(records)] == [1.0, 0.0]


def test_lists_of_draws_become_trials(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        {"id": "q1", "who": "a", "out": ["x", "y"], "pass": [True, False]},
        {"id": "q2", "who": "a", "out": ["x"], "pass": [True, False]},
        {"id": "q3", "who": "a", "out": [], "pass": []},
    )
    records = read(path, draws=["out", "pass"], answer="out", score="pass")
    assert [(response.trial, response.content) for response in records.responses] == [
        (1, "x"),
        (2, "y"),
    ]
    assert [grade[2:4] for grade in graded(records)] == [(1, 1.0), (2, 0.0)]
    assert [skipped.why.partition(": ")[2] for skipped in records.skipped] == [
        "out 1 values, pass 2 values.",
        "out 0 values, pass 0 values.",
    ]


def test_draws_of_a_judge_stay_one_trial(tmp_path: Path) -> None:
    path = table(tmp_path, "id\twho\tout\tgpt\nq1\ta\thi\t[3, 5]\n", "rows.tsv")
    records = read(
        path,
        draws="gpt",
        trial="=1",
        judge=["=gpt", "@draw"],
        answer="out",
        score="gpt",
        scale=[1, 5],
        quoted=False,
    )
    assert [grade[:4] for grade in graded(records)] == [
        ("gpt/1", "", 1, 0.5),
        ("gpt/2", "", 1, 1.0),
    ]
    assert len(records.responses) == 1


def test_rows_are_filtered_and_added_up(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        "id,who,severity,kind,lang\n"
        "q1,a,Major,style,de\nq1,a,Minor,punctuation,de\nq1,a,Minor,style,fr\nq1,a,HOTW,style,de\nq2,a,none,none,de\n",
    )
    records = read(
        path,
        where={"lang": ["DE"]},
        unless={"severity": "hotw"},
        sum=True,
        score=["severity", "kind"],
        labels={"major/*": 5, "minor/punctuation": 0.1, "minor/*": 1, "none/*": 0},
        scale=[25, 0],
    )
    assert [(grade[3], grade[4]) for grade in graded(records)] == [
        (pytest.approx(19.9 / 25), 5.1),
        (1.0, 0.0),
    ]
    assert [note.what for note in records.notes] == [
        "2 rows were left out because of `where` or `unless`."
    ]


def test_sum_with_an_unreadable_row_is_left_out(tmp_path: Path) -> None:
    path = table(tmp_path, "id,who,points\nq1,a,0.5\nq1,a,odd\nq1,a,0.25\nq2,a,0.5\nq2,a,0.25\n")
    records = read(path, sum=True, score="points")
    assert [
        (assessment.task, assessment.grades[0].score) for assessment in records.assessments
    ] == [("q2", 0.75)]
    assert [skipped.where.rpartition(":")[2] for skipped in records.skipped] == ["3"]
    assert "Assay leaves out the sum that includes this score." in records.skipped[0].why


def test_mapping_that_fits_nothing_opens_no_run(tmp_path: Path) -> None:
    records = read(table(tmp_path, "id,who,score\nq1,a,1\nq2,a,0\n"), score="scroe")
    assert (records.runs, records.tasks, len(records.skipped)) == ([], [], 2)
    assert (
        "`score` names 'scroe', which none of the first 200 rows has. Columns: id, who, score."
        in records.notes[0].what
    )


def test_scores_mostly_outside_their_scale_are_all_refused(tmp_path: Path) -> None:
    path = table(tmp_path, "id,who,score\nq1,a,0\nq2,a,50\nq3,a,90\n")
    with pytest.raises(WrongScale, match="2 of 3 scores lie outside the scale"):
        read(path, score="score")
    assert len(read(path, score="score", scale=[0, 100]).assessments) == 3
    assert len(read(path, score="score", clip=True).assessments) == 3
    with pytest.raises(WrongScale, match="2 of 3 scores of metric 2"):
        read(path, scores={"first": {"score": "score", "scale": [0, 100]}, "second": "score"})


def test_row_without_a_value_is_named_unless_missing_lists_it(tmp_path: Path) -> None:
    path = table(tmp_path, "id,who,score\nq1,a,1\nq2,a,\nq3,a,None\n")
    assert [
        skipped.where.rpartition(":")[2]
        for skipped in read(path, score="score", missing=["None"]).skipped
    ] == ["3"]
    records = read(path, score="score", missing=["None", ""])
    assert (len(records.tasks), len(records.assessments), records.skipped) == (3, 1, [])


@pytest.mark.parametrize(
    ("mapping", "problem"),
    [
        ({"score": "s", "scores": {"a": "b"}}, "has both `score` and `scores`"),
        ({"scores": {"a": "b"}, "criterion": "c"}, "has both `criterion` and `scores`"),
        (
            {"scores": {"a": {"scroe": "b"}}},
            "`scores` of a: scroe is an unknown key. Did you mean 'score'?",
        ),
        ({"scores": {"a": {"scale": [0, 1]}}}, "`scores` of a: has no `score`."),
        ({"scores": {"a": {"score": "b", "scale": [1, 1]}}}, "`scores` of a: `scale` is [1, 1]"),
        ({"scores": {"a": {"score": "b", "by": "cat"}}}, "known: model, rule, person"),
        ({"scores": ["a"]}, "`scores` must be a mapping."),
        (
            {"score": {"mean": ["a"]}},
            "it must be a column, a list of columns, or {sum: [COLUMNS]}.",
        ),
        (
            {"score": "s", "cost_usd": "c"},
            "has `cost_usd`, which describes a response, but no `answer`.",
        ),
        ({"score": "s", "where": ["a"]}, "`where` must be a mapping."),
    ],
)
def test_wrong_mapping_is_refused_with_the_right_form(
    mapping: dict[str, Any], problem: str
) -> None:
    assert problem in (mapped_columns.problem_of({**LONG, **mapping}) or "")


def test_a_single_row_left_out_is_called_one(tmp_path: Path) -> None:
    path = table(tmp_path, "id,who,score,lang\nq1,a,1,de\nq2,a,1,fr\n")
    records = read(path, where={"lang": "de"}, score="score")
    assert [note.what for note in records.notes] == [
        "1 row was left out because of `where` or `unless`."
    ]
