"""Shapes of gradings, forms of scores, and what is refused."""

from __future__ import annotations

import json

import pytest

from assay.domain.suite import Criterion, Rubric
from assay.scoring.evaluator import UnreadableReply
from assay.scoring.reply_parser import read_grading
from assay.scoring.score_parsing import read_score

RUBRIC = Rubric(criteria=(Criterion(name="integrity"), Criterion(name="data_flow")))
LONE = Rubric(criteria=(Criterion(name="quality"),))
YES_NO = Rubric(
    criteria=(
        Criterion(
            name="complete", low=0, high=1, labels=(("Yes", 1.0), ("Partial", 0.5), ("No", 0.0))
        ),
    )
)
LABELS = {"ada": "A", "bruno": "B"}

FULL = {
    ("ada", "integrity"): 8,
    ("ada", "data_flow"): 7,
    ("bruno", "integrity"): 5,
    ("bruno", "data_flow"): 4,
}


def scores(
    text: str, labels: dict[str, str] | None = None, rubric: Rubric = RUBRIC
) -> dict[tuple[str, str], float | None]:
    grades = read_grading(text, labels=labels or LABELS, rubric=rubric).grades
    return {key: grade.score.raw if grade.score else None for key, grade in grades.items()}


@pytest.mark.parametrize(
    "document",
    [
        {
            "candidates": {
                "A": {"integrity": {"score": 8}, "data_flow": {"score": 7}},
                "B": {"integrity": 5, "data_flow": 4},
            }
        },
        {"A": {"Integrity": 8, "Data Flow": "7"}, "B": {"INTEGRITY": "5/10", "data-flow": "40%"}},
        {
            "Candidate A": {"integrity": 8, "dataFlow": 7},
            "candidate_b": {"integrity": 5, "data_flow": 4},
        },
        {"integrity": {"A": 8, "B": 5}, "data_flow": {"A": {"rating": 7}, "B": {"value": 4}}},
        {
            "evaluation": {
                "result": [
                    {"label": "A", "scores": {"integrity": 8, "data_flow": 7}},
                    {"label": "B", "scores": {"integrity": 5, "data_flow": 4}},
                ]
            }
        },
        [
            {"candidate": "A", "criterion": "integrity", "score": 8},
            {"candidate": "A", "criterion": "data_flow", "score": 7},
            {"candidate": "B", "criterion": "integrity", "score": 5},
            {"candidate": "B", "criterion": "data_flow", "score": 4},
        ],
        {
            "candidates": [
                {"id": "A", "integrity": 8, "data_flow": 7},
                {"id": "B", "integrity": 5, "data_flow": 4},
            ]
        },
        {
            "candidates": [
                {
                    "name": "Candidate A",
                    "grades": [
                        {"name": "integrity", "score": 8},
                        {"name": "data_flow", "points": 7},
                    ],
                },
                {
                    "name": "bruno",
                    "grades": [
                        {"name": "integrity", "score": 5},
                        {"name": "data_flow", "points": 4},
                    ],
                },
            ]
        },
        {
            "assessment": {
                "A": {"criteria": {"integrity": {"Score": 8}, "data_flow": {"SCORE": 7}}},
                "B": {"criteria": {"integrity": {"Score": 5}, "data_flow": {"SCORE": 4}}},
            }
        },
        {
            "A": {"integrity_score": 8, "integrity_reason": "x", "data_flow_score": 7},
            "B": {"integrity_score": 5, "data_flow_score": 4},
        },
        {
            "grades": json.dumps(
                {"A": {"integrity": 8, "data_flow": 7}, "B": {"integrity": 5, "data_flow": 4}}
            )
        },
        {"**A**": {"`integrity`": 8, r"data\_flow": 7}, "B.": {"integrity": 5, "data_flow": 4}},
        {
            "A": {"integrity": {"score": 80, "max": 100}, "data_flow": {"score": 7, "out_of": 10}},
            "B": {"integrity": {"score": "50%"}, "data_flow": {"score": "4 out of 10"}},
        },
    ],
)
def test_every_shape_is_the_same_grading(document: object) -> None:
    assert scores(json.dumps(document)) == FULL


def test_documents_about_one_candidate_each_belong_together() -> None:
    text = '### A\n```json\n{"A": {"integrity": 8, "data_flow": 7}}\n```\n### B\n{"B": {"integrity": 5, "data_flow": 4}}'
    assert scores(text) == FULL


def test_the_final_grading_outdoes_a_draft() -> None:
    draft = json.dumps(
        {"A": {"integrity": 1, "data_flow": 1}, "B": {"integrity": 1, "data_flow": 1}}
    )
    final = json.dumps(
        {"A": {"integrity": 8, "data_flow": 7}, "B": {"integrity": 5, "data_flow": 4}}
    )
    assert scores(f"Draft: {draft}\nOn reflection: {final}") == FULL


def test_reason_evidence_and_confidence_come_along_under_any_name() -> None:
    text = '{"A": {"integrity": {"Rating": 8, "Justification": " why ", "Quotes": ["x", {"text": "y = 2"}], "confidence": "80%"}}}'
    grade = read_grading(text, labels=LABELS, rubric=RUBRIC).grades["ada", "integrity"]
    assert (grade.reason, grade.evidence, grade.confidence) == ("why", ("x", "y = 2"), 0.8)


@pytest.mark.parametrize("confidence", ["high", 7, -0.1, True, None])
def test_a_confidence_that_is_no_fraction_is_none(confidence: object) -> None:
    text = json.dumps({"A": {"integrity": {"score": 8, "confidence": confidence}}})
    assert (
        read_grading(text, labels=LABELS, rubric=RUBRIC).grades["ada", "integrity"].confidence
        is None
    )


@pytest.mark.parametrize(
    "ranking",
    [
        ["B", "A"],
        ["Candidate B", "candidate_a"],
        "B > A",
        "1. B\n2. A",
        {"A": 2, "B": 1},
        {"1": "B", "2": "A"},
        [{"label": "A", "rank": 2}, {"label": "B", "rank": 1}],
        ["bruno", "ada", "B", "zoe"],
    ],
)
def test_every_form_of_ranking_is_read(ranking: object) -> None:
    text = json.dumps({"ranking": ranking, "A": {"integrity": 8}})
    assert read_grading(text, labels=LABELS, rubric=RUBRIC).ranking == ("bruno", "ada")


@pytest.mark.parametrize("label", ["D", "Candidate D", "candidate_d"])
def test_a_label_that_is_nobodys_is_kept_apart(label: str) -> None:
    reading = read_grading(
        json.dumps({"A": {"integrity": 8}, label: {"integrity": 3}}), labels=LABELS, rubric=RUBRIC
    )
    assert reading.strangers == (label,)
    assert set(reading.grades) == {("ada", "integrity")}


def test_a_written_label_never_means_a_name_that_reads_like_it() -> None:
    reply = json.dumps({"Candidate A": {"integrity": 8}, "Candidate B": {"integrity": 3}})
    crossed = read_grading(
        reply, labels={"Candidate A": "B", "Candidate B": "A"}, rubric=RUBRIC
    ).grades
    scored = {
        name: grade.score.raw for (name, _), grade in crossed.items() if grade.score is not None
    }
    assert scored == {"Candidate B": 8, "Candidate A": 3}


@pytest.mark.parametrize(
    "wrapper",
    ["candidates", "CANDIDATES", "Candidates", "responses", "OPTIONS", "models", "solutions"],
)
def test_a_plural_is_a_wrapper_and_no_candidate(wrapper: str) -> None:
    text = json.dumps(
        {wrapper: {"A": {"integrity": 8, "data_flow": 7}, "B": {"integrity": 5, "data_flow": 4}}}
    )
    reading = read_grading(text, labels=LABELS, rubric=RUBRIC)
    assert reading.strangers == ()
    assert len(reading.grades) == 4


@pytest.mark.parametrize(
    ("written", "raw", "outside"),
    [
        (8, 8.0, False),
        (8.5, 8.5, False),
        ("8", 8.0, False),
        ("8/10", 8.0, False),
        ("7/15", 4.6667, False),
        ("85%", 8.5, False),
        ("8 out of 10", 8.0, False),
        ("**8**", 8.0, False),
        ("8 (good)", 8.0, False),
        ("8 - solid", 8.0, False),
        ("8.", 8.0, False),
        ("[[8]]", 8.0, False),
        (85, 85.0, True),
        ("85", 85.0, True),
        (-1, -1.0, True),
        ("12/10", 12.0, True),
        ("8 points", 8.0, False),
        ("7-8", None, False),
        ("5 -> 3", None, False),
        ("5/5 -> 3/5", None, False),
        ("7 – 8", None, False),
        ("eight", 8.0, False),
        ("N/A", None, False),
        ("7,5", 7.5, False),
    ],
)
def test_a_scale_is_never_guessed(written: str | float, raw: float | None, outside: bool) -> None:
    score = read_score(written, RUBRIC.criteria[0])
    assert score is not None
    assert (None if score.raw is None else round(score.raw, 4), score.outside) == (raw, outside)


@pytest.mark.parametrize("written", [None, "", "  ", True, [], {}])
def test_nothing_is_no_score(written: object) -> None:
    assert read_score(written, RUBRIC.criteria[0]) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "raw"),
    [("Yes", 1.0), ("NO", 0.0), (" partial. ", 0.5), (True, 1.0), (False, 0.0), (0.5, 0.5)],
)
def test_words_count_where_the_rubric_names_them(written: str | float, raw: float) -> None:
    assert scores(json.dumps({"A": {"complete": written}}), rubric=YES_NO) == {
        ("ada", "complete"): raw
    }


@pytest.mark.parametrize(
    "text",
    [
        '{"quality": {"score": 8, "reason": "x"}}',
        '{"score": 8, "reason": "x"}',
        '{"A": {"quality": 8}}',
        '{"A": 8}',
        '{"candidates": {"A": {"quality": {"score": "8/10"}}}}',
        "Score: 8/10",
        "**Score:** 8",
        "Quality: 8\nbecause",
        "Rating: [[8]]",
        "I find it good.\n\nquality = 8 out of 10.",
        "First I thought score: 3.\nFinal score: 8",
        "8",
        "8/10",
        "| quality | 8 |",
    ],
)
def test_a_lone_candidates_grade_is_read_however_short(text: str) -> None:
    assert scores(text, {"ada": "A"}, LONE) == {("ada", "quality"): 8.0}


def test_several_criteria_of_a_lone_candidate_are_read_from_lines() -> None:
    text = "integrity: 7\n- **Data flow**: 8/10 because it is clear"
    assert scores(text, {"ada": "A"}) == {("ada", "integrity"): 7.0, ("ada", "data_flow"): 8.0}


def test_a_number_that_the_token_limit_cut_is_not_read() -> None:
    with pytest.raises(UnreadableReply):
        read_grading("Score: 1", labels={"ada": "A"}, rubric=LONE, cut=True)


def test_lines_are_not_read_for_several_candidates() -> None:
    with pytest.raises(UnreadableReply):
        scores("integrity: 7\ndata_flow: 8")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("All three are fine.", "prose without grades"),
        ("I'm sorry, but I cannot grade people.", "refused"),
        ('{"verdict": "fine"}', "no grade"),
        ('{"A": {"overall": 8}}', "no grade"),
        ('{"candidates": {"A": {"integ', "breaks off"),
        ("<think>hm, let me see", "only its thinking"),
        ('{"error": {"message": "overloaded"}}', "no grade"),
    ],
)
def test_reply_without_grades_is_described(text: str, said: str) -> None:
    with pytest.raises(UnreadableReply, match=said):
        scores(text)
