"""Two prompts of one model in one suite: what is sent, what is shown, and how results of changed
prompts stay apart.
"""

from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient

from assay.app.workspace import Workspace
from assay.web.server import create_app
from tests.journey.conftest import Command
from tests.support.model_server import ModelServer

ROWS = "question,answer\nOne and one?,2\nTwo and two?,4\nThree and three?,6\n"


def write(
    project: Path,
    *,
    long: str = "Think first. {{question}}",
    more: str = "",
    score: str = "score: exact",
) -> Path:
    (project / "prompts").mkdir(exist_ok=True)
    (project / "prompts" / "terse.txt").write_text("Only the number: {{question}}\n", "utf-8")
    (project / "rows.csv").write_text(ROWS, "utf-8")
    path = project / "sums.yaml"
    path.write_text(
        f"""name: sums
{score}
candidates:
  - {{name: terse, model: openai/small, prompt: prompts/terse.txt, system_prompt: Be terse.}}
  - {{name: long, model: openai/small, prompt: "{long}"{more}}}
tasks: {{file: rows.csv, map: {{expected: answer}}}}
""",
        "utf-8",
    )
    return path


def answers(server: ModelServer) -> None:
    server.answer = lambda call: "2" if "One" in call.body["messages"][-1]["content"] else "5"


def test_two_prompts_are_sent_and_compared(
    assay: Command, server: ModelServer, project: Path
) -> None:
    answers(server)
    run = assay("run", write(project), "--json")
    assert run.code == 0, run.err
    sent = sorted(tuple(m["content"] for m in call.body["messages"]) for call in server.calls)
    assert sent[:3] == [
        ("Be terse.", "Only the number: One and one?"),
        ("Be terse.", "Only the number: Three and three?"),
        ("Be terse.", "Only the number: Two and two?"),
    ]
    assert ("Think first. One and one?",) in sent
    versus = assay("compare", "terse", "long", "--json").document
    assert (versus["n_tasks"], versus["difference"]) == (3, 0.0)


def test_the_dry_run_shows_every_prompt(assay: Command, server: ModelServer, project: Path) -> None:
    shown = assay("run", write(project), "--dry-run", "--show-prompt")
    assert "[system]\nBe terse.\n[user]\nOnly the number: One and one?" in shown.out
    assert "[user]\nThink first. One and one?" in shown.out
    document = assay("run", project / "sums.yaml", "--dry-run", "--show-prompt", "--json").document
    assert [prompt["messages"][-1]["content"] for prompt in document["prompts"]] == [
        "Only the number: One and one?",
        "Think first. One and one?",
    ]
    assert not server.calls


def test_another_prompt_or_own_parameter_is_another_candidate(
    assay: Command, server: ModelServer, project: Path
) -> None:
    answers(server)
    assert assay("run", write(project)).code == 0
    assert assay("run", write(project)).code == 0
    names = {
        row["candidate"] for row in assay("stats", "--all-runs", "--json").document["candidates"]
    }
    assert names == {"terse", "long"}, "an unchanged suite is pooled"
    assert assay("run", write(project, long="Answer: {{question}}")).code == 0
    rows = assay("stats", "--all-runs", "--json").document["candidates"]
    changed = [row["candidate"] for row in rows if row["candidate"].startswith("long")]
    assert {row["candidate"] for row in rows if row not in changed} >= {"terse"}
    assert len(changed) == 2
    assert all("openai/small, prompt " in name for name in changed)
    assert assay("run", write(project, more=", parameters: {temperature: 0.1}")).code == 0
    names = {
        row["candidate"] for row in assay("stats", "--all-runs", "--json").document["candidates"]
    }
    assert len(names) == 4
    assert any("temperature 0.1" in name for name in names)
    assert "terse" in names


def test_candidates_that_never_met_are_not_compared(assay: Command, project: Path) -> None:
    def suite(name: str, pairs: str) -> Path:
        path = project / f"{name}.yaml"
        tasks = ", ".join(
            f"{{id: t{n}, prompt: q, expected: x, snippets: {pairs}}}" for n in range(4)
        )
        path.write_text(f"name: {name}\nscore: exact\ntasks: [{tasks}]\n", "utf-8")
        return path

    for name, pairs in (
        ("both", "{alice: x, bob: y}"),
        ("hers", "{alice: x, carol: y}"),
        ("his", "{bob: x, dan: x}"),
    ):
        assert assay("run", suite(name, pairs)).code == 0
    versus = assay("compare", "alice", "bob", "--json").document
    assert (versus["n_trials_a"], versus["n_trials_b"], versus["mean_a"], versus["mean_b"]) == (
        4,
        4,
        1.0,
        versus["mean_b"],
    )
    assert len(versus["runs"]) == 1


def test_pages_show_what_was_sent_once_names_are_shown(
    assay: Command, server: ModelServer, project: Path
) -> None:
    path = write(project, score="judge: openai/judge")
    run = assay("run", path, "--limit", "1", "--json").document["run_id"]
    (row,) = assay("review", "list", "--json").document["assessments"]
    trial_id = assay("show", run, "--json").document["trial_list"][0]["id"]

    def pages() -> tuple[str, dict[str, list[list[str]]], str]:
        with Workspace.open(project, environment={}) as workspace:
            client = TestClient(create_app(workspace), base_url="http://127.0.0.1:8000")
            html = {"accept": "text/html"}
            trial = client.get(f"/runs/{run}/trials/{trial_id}/answers", headers=html).text
            item = client.get(f"/api/assessments/{row['id']}").json()
            record = client.get(f"/runs/{run}/record", headers=html).text
            return record, {pane["name"]: pane["sent"] for pane in item["panes"]}, trial

    record, sent, trial = pages()
    assert sent == {None: []}, "a prompt tells candidates apart"
    assert "Only the number: {{question}}" in record, (
        "only the review page withholds from the owner"
    )
    assert assay("review", "approve", row["id"]).code == 0
    record, sent, trial = pages()
    assert "Prompt sent to terse" in trial
    assert "Only the number: One and one?" in trial
    assert sent == {
        "terse": [["system", "Be terse."], ["user", "Only the number: One and one?"]],
        "long": [["user", "Think first. One and one?"]],
    }
    assert "Prompts of terse" in record
    assert "Only the number: {{question}}" in record


def test_prompts_survive_a_new_store_and_a_regrade(
    assay: Command, server: ModelServer, project: Path
) -> None:
    answers(server)
    first = assay("run", write(project), "--json").document["run_id"]
    assert assay("run", write(project, long="Answer: {{question}}")).code == 0
    before = assay("stats", "--json").document["candidates"]
    (project / ".assay" / "assay.db").rename(project / "old.db")
    restored = assay("import", "results", "--rebuild")
    assert restored.code == 0, restored.err
    assert assay("stats", "--json").document["candidates"] == before
    calls = len(server.calls)
    assert assay("regrade", first, "--suite", write(project)).code == 0
    assert assay("extend", first, "--trials", "1").code == 0
    assert sorted(call.body["messages"][-1]["content"] for call in server.calls[calls:])[:1] == [
        "Only the number: One and one?"
    ]


def test_two_runs_differ_by_the_prompt_in_the_diff(
    assay: Command, server: ModelServer, project: Path
) -> None:
    answers(server)
    ids = [
        assay("run", write(project, long=text), "--json").document["run_id"]
        for text in ("Think first. {{question}}", "Answer: {{question}}")
    ]
    set_up = assay("diff", *ids, "--json").document["set_up"]
    (change,) = (entry for entry in set_up if entry["name"] == "candidate long")
    assert (change["before"], change["after"]) == (
        "[user]\nThink first. {{question}}",
        "[user]\nAnswer: {{question}}",
    )
