"""Money and work: budgets that can be raised, estimates above them, unknown prices, and reviews
that would be lost.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.journey.conftest import Command
from tests.support.model_server import ModelServer
from tests.support.sets import write_set

JUDGE = "openai/judge-1"
PRICED = f"judge: {JUDGE}\nprices:\n  {JUDGE}: {{input: 10, output: 10}}\n"


@pytest.fixture
def suite(project: Path) -> Path:
    (project / "assay.yaml").write_text(PRICED, "utf-8")
    return write_set(project, trials=4)


@pytest.mark.parametrize("price", [".inf", "1.0e+308", ".nan", "-1"])
def test_a_price_without_bounds_is_refused(assay: Command, project: Path, price: str) -> None:
    task = "{id: t, prompt: x, expected: y, score: exact}"
    for prices, own in (
        (f"{{openai/m: {{input: 1, output: {price}}}}}", ""),
        ("", f", price: {{input: 1, output: {price}}}"),
    ):
        (project / "assay.yaml").write_text(f"prices: {prices}\n", "utf-8")
        (project / "s.yaml").write_text(
            f"candidates: [{{model: openai/m{own}}}]\ntasks: [{task}]\n", "utf-8"
        )
        refused = assay("run", "s.yaml", "--dry-run")
        assert refused.code == 2
        assert "price" in refused.err


def mixed(project: Path, **rest: object) -> Path:
    """A joint judge over the answers of two models; `echo` costs nothing."""
    path = project / "mixed.json"
    candidates = [{"name": "one", "model": "echo"}, {"name": "two", "model": "echo"}]
    tasks = [{"id": "t", "prompt": "Say."}]
    path.write_text(json.dumps({"judge": JUDGE, "candidates": candidates, "tasks": tasks, **rest}))
    return path


def test_a_met_budget_names_the_command_that_finishes(
    assay: Command, server: ModelServer, suite: Path
) -> None:
    limited = assay("run", suite, "--budget", "0.2")
    (command,) = re.findall(
        r"larger budget: assay (resume \S+ --budget [\d.]+)$", limited.out, re.M
    )
    assert limited.code == 1
    words = command.split()
    assert float(words[-1]) > 0.2
    again = assay(*words, "--json").document
    # the estimate is no bound, but each suggestion gets further than the one before
    while again["paused"]:
        enough = again["budget"]["enough_usd"]
        assert enough > again["budget"]["usd"]
        again = assay("resume", words[1], "--budget", enough, "--json").document
    assert again["trials"]["done"] == 12
    assert again["cost_usd"] <= again["budget"]["usd"]


def test_the_budget_of_a_resume_covers_what_was_spent(
    assay: Command, server: ModelServer, suite: Path
) -> None:
    run = assay("run", suite, "--budget", "0.2", "--json").document
    server.forget()
    refused = assay("resume", run["run_id"], "--budget", run["cost_usd"] / 2)
    assert (refused.code, server.calls) == (2, ())
    assert "has cost" in refused.err
    for wrong in ("0", "-1", "nan"):
        assert assay("resume", run["run_id"], "--budget", wrong).code == 2


def test_extend_takes_a_budget_for_the_whole_run(
    assay: Command, server: ModelServer, suite: Path
) -> None:
    run = assay("run", suite, "--json").document
    spent = run["cost_usd"]
    extended = assay(
        "extend", run["run_id"], "--trials", 40, "--budget", spent * 1.5 + 0.1, "--json"
    ).document
    assert spent < extended["cost_usd"] <= spent * 1.5 + 0.1
    assert (extended["state"], extended["paused"]["fault"], extended["failures"]) == (
        "paused",
        "budget",
        [],
    )


def test_a_budget_without_a_price_is_refused_on_resume(
    assay: Command, server: ModelServer, project: Path
) -> None:
    run = assay(
        "run", write_set(project), "--judge", "openai/no-such-model-xyz", "--json"
    ).document["run_id"]
    refused = assay("resume", run, "--budget", "1")
    assert refused.code == 2
    assert "price of openai/no-such-model-xyz is unknown" in refused.err


def test_a_dry_run_warns_of_the_budget_and_counts_reviews(
    assay: Command, server: ModelServer, suite: Path
) -> None:
    shown = assay("run", suite, "--dry-run", "--budget", "0.01")
    assert re.search(
        r"note: The estimate, about \$[\d.]+, is over the budget of \$0\.01", shown.err
    )
    assert "12 reviews to do" in shown.out
    document = assay("run", suite, "--dry-run", "--budget", "100", "--json").document
    assert (document["reviews"], document["budget_usd"], document["notes"]) == (12, 100, [])


@pytest.mark.parametrize(
    ("review", "shown", "reviews"),
    [("every", "; 2 reviews to do", 2), ("flagged", "; at most 2 reviews", 2), ("none", "", 0)],
)
def test_a_dry_run_counts_reviews_by_policy(
    assay: Command, server: ModelServer, project: Path, review: str, shown: str, reviews: int
) -> None:
    path = mixed(project, review=review, trials=2)
    assert assay("run", path, "--dry-run", "--json").document["reviews"] == reviews
    out = assay("run", path, "--dry-run").out
    assert shown in out
    assert ("review" in out) == bool(reviews)


def test_an_unknown_price_is_never_nothing(
    assay: Command, server: ModelServer, project: Path
) -> None:
    path = mixed(project, judge="openai/no-such-model-xyz")
    ran = assay("run", path)
    assert "price unknown" in ran.out
    assert "price unknown" in assay("runs").out
    (row,) = assay("runs", "--json").document["runs"]
    assert row["cost_usd"] is None
    assert "$" not in assay("show", row["run_id"]).out.partition("cost")[2].splitlines()[0]


def test_a_new_candidate_asks_before_reviews_are_lost(
    assay: Command, server: ModelServer, project: Path
) -> None:
    run = assay("run", mixed(project, trials=2), "--json").document["run_id"]
    waiting = [row["id"] for row in assay("review", "list", "--json").document["assessments"]]
    assay("review", "approve", *waiting)
    server.forget()
    refused = assay("extend", run, "--candidate", "openai/third")
    assert (refused.code, server.calls) == (2, ())
    assert "would lose 2 reviews, because a joint judge must regrade every trial." in refused.err
    assert "--yes" in refused.err
    states = {row["state"] for row in assay("review", "list", "--json").document["assessments"]}
    assert states == {"approved"}
    assert (
        assay("extend", run, "--candidate", "openai/third", "--yes", "--json").document[
            "assessments"
        ]["pending"]
        == 2
    )
