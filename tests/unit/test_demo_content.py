"""The demo's content is what it claims to be: judgements true to the code, and every mess
listed.
"""

import itertools
import json
import re
import runpy
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
import yaml
from rapidfuzz import fuzz

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools" / "demo"
DATA = ROOT / "src" / "assay" / "demo"
NAMES = ("ada", "bruno", "chen")
CRITERIA = {"integrity": 2, "data_flow": 1, "maintainability": 1, "fitness": 1}
LABEL = re.compile(r"\{\{label:(\w+)\}\}")
CODE_SPAN = re.compile(r"`([^`\n]+)`")

SET_FILE: list[dict[str, Any]] = json.loads((DATA / "architects.json").read_text("utf-8"))
REPLIES: list[dict[str, Any]] = [
    json.loads(line) for line in (DATA / "judge.jsonl").read_text("utf-8").splitlines()
]
REVIEW: list[dict[str, Any]] = json.loads((DATA / "review.json").read_text("utf-8"))
BOOK: dict[str, list[dict[str, Any]]] = yaml.safe_load((TOOLS / "messes.yaml").read_text("utf-8"))


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


TASKS = [slug(thing["thingName"]) for thing in SET_FILE]
CODE: dict[tuple[str, str], str] = {
    (slug(thing["thingName"]), snippet["name"]): snippet["content"]
    for thing in SET_FILE
    for snippet in thing["snippets"]
}
MESSY = {(mess["task"], mess["trial"]): mess for mess in BOOK["messes"]}
ODD = {(oddity["task"], oddity["trial"]): oddity for oddity in BOOK["oddities"]}
OVERLOOKED = {(entry["task"], entry["trial"]): entry for entry in BOOK["overlooked"]}


def where(reply: dict[str, Any]) -> tuple[str, int]:
    return reply["match"]["task"], reply["match"]["trial"]


def is_messy(reply: dict[str, Any]) -> bool:
    return reply["match"]["attempt"] == 1 and where(reply) in MESSY


def strict(text: str) -> dict[str, Any]:
    """A reply's document; the one loosely written reply is tidied by hand first."""
    if "```json" in text:
        text = text.split("```json")[1].split("```")[0]
        text = re.sub(r"^\s*//.*$", "", text, flags=re.M).replace('"Score"', '"score"')
        text = re.sub(r",(\s*[}\]])", r"\1", text)
    document: dict[str, Any] = json.loads(text)
    return document


def unlabelled(document: dict[str, Any]) -> tuple[list[str], dict[str, dict[str, dict[str, Any]]]]:
    """Ranking and grades by candidate name instead of label placeholder."""
    ranking = [LABEL.sub(r"\1", label) for label in document["ranking"]]
    return ranking, {
        LABEL.sub(r"\1", label): grades for label, grades in document["candidates"].items()
    }


def weighted(grades: dict[str, dict[str, Any]]) -> float:
    """A candidate's score in one assessment, 0 to 1."""
    total = sum(weight * float(grades[name]["score"]) for name, weight in CRITERIA.items())
    return total / sum(CRITERIA.values()) / 10


CLEAN = [reply for reply in REPLIES if not is_messy(reply) and "{" in reply["reply"]["text"]]
DOCUMENTS = [(where(reply), *unlabelled(strict(reply["reply"]["text"]))) for reply in CLEAN]
REPORTS = [(where(reply), strict(reply["reply"]["text"])["report"]) for reply in CLEAN]
REASONS = [
    (at, name, criterion, grade["reason"])
    for at, _, grades in DOCUMENTS
    for name, by_criterion in grades.items()
    for criterion, grade in by_criterion.items()
]


# --- The set file ---------------------------------------------------------------------------------


def test_demo_package_data_matches_the_build_script() -> None:
    built_files = runpy.run_path(str(TOOLS / "build.py"))["built_files"]
    for path, text in built_files().items():
        assert path.read_text("utf-8") == text, (
            f"{path.name} is stale: run python tools/demo/build.py"
        )


def test_every_thing_has_the_same_three_candidates_and_five_trials() -> None:
    assert len(SET_FILE) == 7
    for thing in SET_FILE:
        assert set(thing) == {"thingName", "context", "language", "trialsNeeded", "snippets"}
        assert tuple(snippet["name"] for snippet in thing["snippets"]) == NAMES
        assert (thing["language"], thing["trialsNeeded"]) == ("python", 5)
        assert 3 <= len(thing["context"].splitlines()) <= 8


def test_folders_are_named_after_the_things() -> None:
    things = yaml.safe_load((TOOLS / "things.yaml").read_text("utf-8"))["things"]
    assert [thing["id"] for thing in things] == TASKS
    assert sorted(path.name for path in (TOOLS / "sources").iterdir()) == sorted(TASKS)


@pytest.mark.parametrize(("task", "name"), CODE)
def test_snippet_is_twenty_to_eighty_lines_that_compile(task: str, name: str) -> None:
    code = CODE[task, name]
    compile(code, f"{task}/{name}.py", "exec")
    assert 20 <= len(code.splitlines()) <= 80


def test_nothing_the_judge_reads_or_writes_gives_a_name_away() -> None:
    for text, name in itertools.product(
        [*CODE.values(), *(thing["context"] for thing in SET_FILE)], NAMES
    ):
        assert name not in text.lower()
    for reply, name in itertools.product(REPLIES, NAMES):
        assert not re.search(rf"\b{name}\b", LABEL.sub("", reply["reply"]["text"]).lower())


# --- The recorded judge ---------------------------------------------------------------------------


def test_every_trial_has_a_reply_and_every_reply_a_trial() -> None:
    first = [where(reply) for reply in REPLIES if reply["match"]["attempt"] == 1]
    assert list(dict.fromkeys(first)) == list(itertools.product(TASKS, range(1, 6)))
    twice = {at for at in first if first.count(at) > 1}
    assert twice == {at for at, oddity in ODD.items() if oddity["kind"] == "unreadable_first"}
    again = {where(reply) for reply in REPLIES if reply["match"]["attempt"] == 2}
    assert again == {
        (step["task"], step["trial"]) for step in REVIEW if step["decision"] == "rerun"
    }


def test_reply_lines_have_the_shape_of_the_replay_provider() -> None:
    for line in REPLIES:
        assert set(line) == {"match", "reply"}
        assert set(line["match"]) == {"role", "task", "trial", "attempt"}
        assert line["match"]["role"] == "judge"
        reply = line["reply"]
        assert set(reply) == {"text", "finish_reason", "usage", "model"}
        assert reply["finish_reason"] in {"stop", "length"}
        assert min(reply["usage"]["input_tokens"], reply["usage"]["output_tokens"]) > 0


def test_placeholders_name_candidates_and_leave_no_brace_behind() -> None:
    for line in REPLIES:
        text = line["reply"]["text"]
        assert set(LABEL.findall(text)) <= set(NAMES)
        assert "{{" not in LABEL.sub("", text)


@pytest.mark.parametrize(("at", "ranking", "grades"), DOCUMENTS)
def test_clean_reply_is_complete_and_ranks_by_its_scores(
    at: tuple[str, int], ranking: list[str], grades: dict[str, dict[str, dict[str, Any]]]
) -> None:
    assert set(grades) == set(NAMES)
    for by_criterion in grades.values():
        assert set(by_criterion) == set(CRITERIA)
        for grade in by_criterion.values():
            assert 0 <= grade["score"] <= 10
            assert grade["score"] * 2 == int(grade["score"] * 2)
            assert grade["evidence"]
    scores = [weighted(grades[name]) for name in ranking]
    # A gap of two points keeps the order the same under any tie rule.
    assert all(better - worse >= 0.02 for better, worse in itertools.pairwise(scores)), scores


@pytest.mark.parametrize(("at", "ranking", "grades"), DOCUMENTS)
def test_clean_evidence_stands_in_the_code(
    at: tuple[str, int], ranking: list[str], grades: dict[str, dict[str, dict[str, Any]]]
) -> None:
    for name, by_criterion in grades.items():
        lines = CODE[at[0], name].splitlines()
        for criterion, grade in by_criterion.items():
            for fragment in grade["evidence"]:
                assert any(fragment in line for line in lines), (at, name, criterion, fragment)


@pytest.mark.parametrize(("at", "name", "criterion", "reason"), REASONS)
def test_clean_reason_quotes_only_existing_code(
    at: tuple[str, int], name: str, criterion: str, reason: str
) -> None:
    assert 6 <= len(reason.split()) <= 50
    assert_quotes_stand_in(CODE[at[0], name], reason)
    assert_no_unmarked_code(reason)


@pytest.mark.parametrize(("at", "report"), REPORTS)
def test_clean_report_quotes_each_candidate_rightly(at: tuple[str, int], report: str) -> None:
    assert 80 <= len(report.split()) <= 200
    assert set(LABEL.findall(report)) == set(NAMES)
    assert_no_unmarked_code(LABEL.sub("X", report))
    for block in blocks(report):
        if CODE_SPAN.search(block):
            (name,) = set(LABEL.findall(block))  # a block that quotes code speaks of one candidate
            assert block.index("{{label:") < block.index("`")
            assert_quotes_stand_in(CODE[at[0], name], block)


def blocks(report: str) -> Iterator[str]:
    for paragraph in report.split("\n\n"):
        yield from re.split(r"\n(?=- |\d\. )", paragraph)


def assert_quotes_stand_in(code: str, text: str) -> None:
    for quoted in CODE_SPAN.findall(text):
        assert any(quoted in line for line in code.splitlines()), quoted


def assert_no_unmarked_code(text: str) -> None:
    """Identifiers stand in backticks, so that a checker of quotations sees all of them."""
    bare = CODE_SPAN.sub("", text)
    assert "`" not in bare
    assert '"' not in bare
    assert not re.search(r"\w_\w|\b[a-z]+[A-Z]|\b[A-Z][a-z]+[A-Z]|\w\(\)", bare), bare


def test_no_reason_is_said_twice() -> None:
    texts = [reason for *_, reason in REASONS]
    assert len(set(texts)) == len(texts)
    for _, group in itertools.groupby(REASONS, key=lambda row: row[0]):
        for (*_, one), (*_, other) in itertools.combinations(list(group), 2):
            assert fuzz.ratio(one.lower(), other.lower()) < 75, (one, other)
    for (*_, one), (*_, other) in itertools.combinations(REASONS, 2):
        assert fuzz.ratio(one.lower(), other.lower()) < 80, (one, other)


def test_trials_differ_by_a_little_as_judges_do() -> None:
    for task, name, criterion in itertools.product(TASKS, NAMES, CRITERIA):
        seen = [
            grades[name][criterion]["score"]
            for at, _, grades in DOCUMENTS
            if at[0] == task and (at not in OVERLOOKED)
        ]
        assert max(seen) - min(seen) <= 2, (task, name, criterion, seen)


# --- The messes -----------------------------------------------------------------------------------


def test_each_kind_of_mess_is_there_once() -> None:
    assert sorted(mess["flag"] for mess in BOOK["messes"]) == [
        "duplicate_reason",
        "empty_reason",
        "missing_criterion",
        "quote_not_found",
        "ranking_contradicts_scores",
        "score_out_of_scale",
        "truncated",
    ]
    assert sorted(oddity["kind"] for oddity in BOOK["oddities"]) == [
        "loose_json",
        "unreadable_first",
    ]
    special = [*MESSY, *ODD, *OVERLOOKED]
    assert len(set(special)) == len(special)


def messy(flag: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The list entry of a mess and its recorded reply."""
    mess = next(mess for mess in BOOK["messes"] if mess["flag"] == flag)
    line = next(
        line for line in REPLIES if is_messy(line) and where(line) == (mess["task"], mess["trial"])
    )
    return mess, line["reply"]


def faults(task: str, document: dict[str, Any]) -> set[str]:
    """Find the faults of a readable reply in the plainest way."""
    ranking, grades = unlabelled(document)
    names = set()
    complete = {name: by for name, by in grades.items() if set(by) == set(CRITERIA)}
    if len(complete) < len(NAMES):
        names.add("missing_criterion")
    scores = [weighted(complete[name]) for name in ranking if name in complete]
    if scores != sorted(scores, reverse=True):
        names.add("ranking_contradicts_scores")
    items = [grade["reason"] for by in grades.values() for grade in by.values()]
    if "" in items:
        names.add("empty_reason")
    if len({text for text in items if text}) < len([text for text in items if text]):
        names.add("duplicate_reason")
    if any(not 0 <= grade["score"] <= 10 for by in grades.values() for grade in by.values()):
        names.add("score_out_of_scale")
    quoted = [
        (name, text)
        for name, by in grades.items()
        for grade in by.values()
        for text in [*grade["evidence"], *CODE_SPAN.findall(grade["reason"])]
    ]
    quoted += [
        (name, text)
        for block in blocks(document["report"])
        for name in set(LABEL.findall(block))
        for text in CODE_SPAN.findall(block)
    ]
    if any(text not in CODE[task, name] for name, text in quoted):
        names.add("quote_not_found")
    return names


def test_messy_demo_reply_has_exactly_its_listed_fault() -> None:
    for line in REPLIES:
        if "{" in line["reply"]["text"] and line["reply"]["finish_reason"] == "stop":
            listed = {MESSY[where(line)]["flag"]} if is_messy(line) else set()
            assert faults(where(line)[0], strict(line["reply"]["text"])) == listed, line["match"]


def messy_grades(flag: str) -> tuple[list[str], dict[str, dict[str, dict[str, Any]]]]:
    return unlabelled(strict(messy(flag)[1]["text"]))


def test_the_hallucination_is_nowhere_in_the_code() -> None:
    mess, reply = messy("quote_not_found")
    _, grades = unlabelled(strict(reply["text"]))
    (fragment,) = grades["bruno"]["data_flow"]["evidence"]
    every = "\n".join(CODE[mess["task"], name] for name in NAMES)
    for quoted in [fragment, *CODE_SPAN.findall(grades["bruno"]["data_flow"]["reason"])]:
        assert quoted not in every
    assert "`asyncio.PriorityQueue`" in strict(reply["text"])["report"]
    assert "PriorityQueue" not in every


def test_the_ranking_is_the_reverse_of_the_scores() -> None:
    ranking, grades = messy_grades("ranking_contradicts_scores")
    assert ranking != sorted(NAMES, key=lambda name: -weighted(grades[name]))
    assert weighted(grades[ranking[0]]) < weighted(grades[ranking[-1]]) - 0.2


def test_one_criterion_is_missing() -> None:
    _, grades = messy_grades("missing_criterion")
    missing = [(name, c) for name, c in itertools.product(NAMES, CRITERIA) if c not in grades[name]]
    assert missing == [("chen", "data_flow")]


def test_one_score_is_outside_its_scale() -> None:
    _, grades = messy_grades("score_out_of_scale")
    outside = [
        grade["score"]
        for by in grades.values()
        for grade in by.values()
        if not 0 <= grade["score"] <= 10
    ]
    assert outside == [85]


def test_empty_and_duplicate_reasons() -> None:
    _, grades = messy_grades("empty_reason")
    assert sum(grade["reason"] == "" for by in grades.values() for grade in by.values()) == 2
    _, grades = messy_grades("duplicate_reason")
    assert len({by["maintainability"]["reason"] for by in grades.values()}) == 1


def test_the_truncated_reply_breaks_off_among_the_last_grades() -> None:
    _, reply = messy("truncated")
    assert reply["finish_reason"] == "length"
    with pytest.raises(json.JSONDecodeError):
        json.loads(reply["text"])
    assert reply["text"].count('"score"') == 11
    assert sum(line["reply"]["finish_reason"] == "length" for line in REPLIES) == 1


def test_loose_reply_needs_the_tolerant_parser() -> None:
    loose = next(at for at, oddity in ODD.items() if oddity["kind"] == "loose_json")
    text = next(line["reply"]["text"] for line in REPLIES if where(line) == loose)
    assert not text.startswith(("{", "```"))
    body = text.split("```json")[1].split("```")[0]
    assert "//" in body
    assert '"Score"' in body
    assert re.search(r",\s*[}\]]", body)
    refused = next(at for at, oddity in ODD.items() if oddity["kind"] == "unreadable_first")
    first, second = (line["reply"]["text"] for line in REPLIES if where(line) == refused)
    assert "{" not in first
    assert strict(second)["ranking"]


# --- The recorded review and what it leads to -----------------------------------------------------


def test_every_attempt_is_decided_once() -> None:
    decided = [(step["task"], step["trial"], step.get("attempt", 1)) for step in REVIEW]
    judged = {(*where(line), line["match"]["attempt"]) for line in REPLIES}
    assert len(set(decided)) == len(decided)
    assert set(decided) == judged


def test_messes_are_never_waved_through() -> None:
    for step in REVIEW:
        at = step["task"], step["trial"]
        plain = step["decision"] == "approve"
        assert plain is (
            step.get("attempt", 1) == 2 or at not in (MESSY.keys() | OVERLOOKED.keys())
        )
        assert plain or step["reason"]
        assert (step["decision"] == "rerun") is ("note" in step)
        assert (step["decision"] == "correct") is ("corrections" in step)


def test_corrections_are_fractions_and_make_the_assessment_whole() -> None:
    for step in REVIEW:
        for key, value in step.get("corrections", {}).items():
            name, criterion = key.split("/")
            assert name in NAMES
            assert criterion in CRITERIA
            assert 0 <= value <= 1


def counted_scores() -> dict[tuple[str, str], list[float]]:
    """Score of each counted trial by task and candidate, calculated without the product."""
    latest = {(step["task"], step["trial"]): step for step in REVIEW}
    scores: dict[tuple[str, str], list[float]] = {
        (task, name): [] for task in TASKS for name in NAMES
    }
    for (task, trial), step in latest.items():
        if step["decision"] not in {"approve", "correct"}:
            continue
        text = next(
            line["reply"]["text"]
            for line in reversed(REPLIES)
            if where(line) == (task, trial) and line["match"]["attempt"] == step.get("attempt", 1)
        )
        _, grades = unlabelled(strict(text))
        for key, value in step.get("corrections", {}).items():
            name, criterion = key.split("/")
            grades[name].setdefault(criterion, {})["score"] = value * 10
        for name in NAMES:
            scores[task, name].append(weighted(grades[name]))
    return scores


def test_thirty_two_trials_count_and_no_task_has_fewer_than_four() -> None:
    per_task = [len(counted_scores()[task, "ada"]) for task in TASKS]
    assert sum(per_task) == 32
    assert min(per_task) >= 4
    decisions = [step["decision"] for step in REVIEW]
    assert {kind: decisions.count(kind) for kind in set(decisions)} == {
        "approve": 28,
        "correct": 4,
        "reject": 3,
        "rerun": 2,
    }


def paired_t(differences: list[float]) -> float:
    return fmean(differences) / (stdev(differences) / sqrt(len(differences)))


def test_the_first_is_clearly_better_and_the_other_two_are_not_decided() -> None:
    scores = counted_scores()
    means = {name: [fmean(scores[task, name]) for task in TASKS] for name in NAMES}

    def differences(a: str, b: str) -> list[float]:
        return [x - y for x, y in zip(means[a], means[b], strict=True)]

    # Quantiles of Student's t with 6 degrees of freedom, from any printed table: 3.143 at two-sided
    # p = .02, so that it holds for three pairs by Holm's rule as well, and 0.906 at p = .40.
    for other in ("bruno", "chen"):
        assert paired_t(differences("ada", other)) > 3.143
        assert min(differences("ada", other)) < 0  # one task goes the other way
    assert abs(paired_t(differences("bruno", "chen"))) < 0.906
