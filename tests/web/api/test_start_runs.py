"""Starting, steering and extending runs over HTTP; the models are answered by a real server on this
machine.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.support import forked
from tests.support.model_server import Mishap, ModelServer
from tests.support.sets import write_set

from assay.app.runs import preflight
from assay.app.workspace import SystemClock, Workspace
from assay.domain.lifecycle import AssessmentState
from assay.domain.selection import Selection
from assay.web.server import create_app

HOME = "http://127.0.0.1:8000"
JUDGE = "openai/judge"
SUITE = """\
name: two
trials: 3
judge: openai/judge
rubric:
  - {name: right, weight: 2, scale: [0, 10]}
tasks:
  - id: one
    prompt: Say one.
    snippets: {ann: one, bob: two}
"""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(delay_s=0.02) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "two.yaml").write_text(SUITE, "utf-8")
    write_set(tmp_path, things=2, trials=2)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class SetClock(SystemClock):
    """The machine's clock, which a test can put forward."""

    ahead_s = 0.0

    def now(self) -> str:
        shown = datetime.now(UTC) + timedelta(seconds=self.ahead_s)
        return shown.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def workspace(folder: Path, server: ModelServer, clock: SetClock) -> Iterator[Workspace]:
    environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
    with Workspace.open(folder, environment=environment, clock=clock) as opened:
        yield opened


@pytest.fixture
def client(workspace: Workspace) -> Iterator[TestClient]:
    with TestClient(create_app(workspace), base_url=HOME) as opened:
        yield opened


def post(client: TestClient, path: str, status: int = 200, **body: Any) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def row(client: TestClient, run: str) -> Any:
    return client.get(f"/api/runs/{run}").json()["run"]


def until(holds: Callable[[], bool], within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.02)


def finished(client: TestClient, run: str) -> Any:
    until(lambda: row(client, run)["state"] == "finished")
    return row(client, run)


def test_a_set_written_in_a_browser_is_saved_and_run_by_the_server(
    client: TestClient, folder: Path
) -> None:
    things = [
        {
            "thingName": "Gate",
            "snippets": [{"name": n, "content": f"{n}()"} for n in ("ann", "bob")],
        }
    ]
    saved = post(client, "/api/suites", 201, name="My Set.json", text=json.dumps(things))["suite"]
    assert saved == "suites/my-set.json"
    assert json.loads((folder / saved).read_text("utf-8")) == things
    assert saved in client.get("/api/suites").json()["suites"]
    wish = {"suite": saved, "trials": 5, "judges": [JUDGE]}
    look = post(client, "/api/start/look", **wish)
    assert (look["tasks"], look["trials"], look["estimate"]["calls"], look["problems"]) == (
        1,
        5,
        5,
        [],
    )
    run = post(client, "/api/start", 201, **wish)["run_id"]
    done = finished(client, run)
    assert (done["judged"], done["waiting"], done["failed"]) == (5, 5, 0)


def test_a_start_sent_twice_is_one_run(client: TestClient) -> None:
    wish = {"suite": "suites/two.yaml", "key": "the-same-key"}
    runs = {post(client, "/api/start", 201, **wish)["run_id"] for _ in range(2)}
    assert len(runs) == 1
    assert len(client.get("/api/runs").json()["runs"]) == 1
    finished(client, runs.pop())


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"rubric": [{"name": "right", "scale": [9, 1]}]}, "rubric[0].scale", "rubric[0].scale"),
        ({"rubric": [{"name": ""}]}, "rubric[0].name", "rubric[0].name"),
        ({"parameters": {"temperature": 9}}, "parameters.temperature", "2"),
        ({"review": "sometimes"}, "review", "every"),
        ({"judges": ["nonsense"]}, "judge", "nonsense"),
        ({"judges": [JUDGE, "nonsense"]}, "judge[1]", "nonsense"),
        ({"judges": [JUDGE, "nonsense"], "rotate": True}, "judge[0].rotate[1]", "nonsense"),
        ({"candidates": ["ann", "nowhere/x"]}, "candidates", "nowhere/x"),
        ({"candidates": ["ann", "nobody"]}, "candidates", "nobody"),
    ],
)
def test_invalid_start_shows_the_validate_message_at_its_field(
    client: TestClient, changes: dict[str, Any], field: str, said: str
) -> None:
    (problem,) = post(client, "/api/start/look", suite="suites/two.yaml", **changes)["problems"]
    assert problem["field"] == field
    assert said in f"{problem['where']} {problem['problem']} {problem['remedy']}"
    refused = post(client, "/api/start", 422, suite="suites/two.yaml", **changes)
    assert refused["problems"] == [problem]
    assert client.get("/api/runs").json()["runs"] == []


def test_a_review_sample_of_the_form_is_drawn_and_kept(
    client: TestClient, workspace: Workspace
) -> None:
    run = post(
        client,
        "/api/start",
        201,
        suite="services.json",
        judges=[JUDGE],
        review="sample:0.5",
        trials=4,
    )["run_id"]
    finished(client, run)
    plan = workspace.journal.plan_of(run)
    assert plan.protocol["sample"] == {"share": 0.5, "by": "task"}
    assert (str(plan.policy), plan.protocol["order"]) == ("sample", "random")
    (summary,) = workspace.archive.runs.matching(Selection(runs=(run,)))
    assert (
        summary.assessments[AssessmentState.LEFT_OUT]
        == summary.assessments[AssessmentState.PENDING]
        > 0
    )
    choices = client.get("/start", params={"suite": "services.json"}).text
    assert '<option value="sample:0.2">one trial in five, chosen at random</option>' in choices


def test_form_values_override_the_suite_file_and_are_kept(
    client: TestClient, workspace: Workspace, folder: Path
) -> None:
    rubric = [
        {"name": "calm", "weight": 1, "scale": [0, 5]},
        {"name": "clear", "weight": 3, "scale": [0, 5]},
    ]
    for suite in ("suites/two.yaml", "services.json"):
        before = (folder / suite).read_text("utf-8")
        run = post(
            client,
            "/api/start",
            201,
            suite=suite,
            judges=[JUDGE, "openai/other"],
            rotate=True,
            rubric=rubric,
            review="flagged",
            parameters={"temperature": 0.2},
            trials=2,
        )["run_id"]
        finished(client, run)
        plan = workspace.journal.plan_of(run)
        assert [(c.name, c.weight, c.high) for c in plan.rubric.criteria] == [
            ("calm", 1, 5),
            ("clear", 3, 5),
        ]
        assert [judge.turn for judge in plan.judges] == [(0, 2), (1, 2)]
        assert (str(plan.policy), plan.parameters.temperature) == ("flagged", 0.2)
        assert json.loads(plan.copy.text)["rubric"] == rubric
        assert (folder / suite).read_text("utf-8") == before


@pytest.mark.parametrize(
    "path",
    ["../outside.json", "/etc/hosts", ".assay/x.json", "suites", "no.yaml", "a\0b.json", "."],
)
def test_no_file_outside_the_folder_is_read(client: TestClient, folder: Path, path: str) -> None:
    (folder.parent / "outside.json").write_text("[]", "utf-8")
    assert client.get("/api/suites/read", params={"path": path}).status_code == 404
    assert post(client, "/api/start", 422, suite=path)["problems"][0]["problem"].startswith(
        "there is no suite"
    )


def test_a_link_out_of_the_folder_is_no_way_out(client: TestClient, folder: Path) -> None:
    (folder.parent / "secret.json").write_text('{"tasks": []}', "utf-8")
    (folder / "link.json").symlink_to(folder.parent / "secret.json")
    assert "link.json" not in client.get("/api/suites").json()["suites"]
    assert client.get("/api/suites/read", params={"path": "link.json"}).status_code == 404


@pytest.mark.parametrize(
    "name", ["../../evil.yaml", "/tmp/evil.yaml", "..\\evil.yaml", "a/b/evil.yaml", ".evil.yaml"]
)
def test_a_file_is_only_ever_saved_in_the_folder_for_suites(
    client: TestClient, folder: Path, name: str
) -> None:
    saved = post(client, "/api/suites", 201, name=name, text=SUITE)["suite"]
    assert (folder / saved).parent == folder / "suites"
    assert (folder / saved).name.removesuffix(".yaml").replace("-", "").isalnum()


def test_a_set_keeps_its_whole_name(client: TestClient, workspace: Workspace, folder: Path) -> None:
    things = [
        {
            "thingName": "Gate 1",
            "language": "python",
            "trialsNeeded": 2,
            "context": "c {{x}}",
            "snippets": [{"name": "ann", "content": "a {{y}}\n"}, {"name": "bob", "content": "@b"}],
        }
    ]
    sent = {"name": "A/B test.json", "title": "A/B test", "text": json.dumps(things)}
    saved = post(client, "/api/suites", 201, **sent)["suite"]
    assert saved == "suites/a-b-test.json"
    assert post(client, "/api/suites", 201, **sent)["suite"] == saved, (
        "the same again is the same file"
    )
    titled = client.get("/api/suites/read", params={"path": saved}).json()["suite"]
    assert titled["name"] == "A/B test"
    plain = post(
        client, "/api/suites", 201, name="gates.json", title="gates", text=json.dumps(things)
    )["suite"]
    assert json.loads((folder / plain).read_text("utf-8")) == things, (
        "a file's name needs nothing beside it"
    )
    one, other = (
        preflight.load(workspace.settings, Path(path), judge="human").tasks
        for path in (saved, plain)
    )
    assert list(one) == list(other), "what is in it is the same"
    run = post(
        client, "/api/start", 201, suite=saved, judges=["human"], parameters={"temperature": 0.5}
    )["run_id"]
    assert workspace.journal.plan_of(run).suite == "A/B test"
    wrong = post(client, "/api/suites", 422, **{**sent, "title": "x" * 201})
    assert wrong["error"]["where"] == "body.title"


def test_nothing_is_overwritten_and_nothing_wrong_is_saved(
    client: TestClient, folder: Path
) -> None:
    refused = post(
        client, "/api/suites", 409, name="two.yaml", text=SUITE.replace("one.", "other.")
    )
    assert "already exists" in refused["error"]["problem"]
    assert (folder / "suites/two.yaml").read_text("utf-8") == SUITE
    wrong = post(
        client, "/api/suites", 422, name="wrong.yaml", text=SUITE.replace("trials", "trails")
    )
    assert [one["field"] for one in wrong["problems"]] == ["trails"]
    assert not (folder / "suites/wrong.yaml").exists()


def test_pause_resume_and_cancel_a_run_of_the_server(
    client: TestClient, server: ModelServer
) -> None:
    run = post(client, "/api/start", 201, suite="suites/two.yaml", trials=400)["run_id"]
    until(lambda: row(client, run)["judged"] >= 3)
    assert post(client, f"/api/runs/{run}/steer", wish="pause")["run"]["state"] == "paused"
    until(lambda: row(client, run)["trials"].get("running", 0) == 0)
    before = server.served
    assert row(client, run)["moves"] == ["resume", "cancel"]
    time.sleep(0.3)  # a run that went on would have asked ten times
    assert server.served == before
    post(client, f"/api/runs/{run}/steer", wish="resume")
    until(lambda: server.served > before)
    post(client, f"/api/runs/{run}/steer", wish="cancel")
    until(lambda: not client.app.state.services.runner._runs)  # type: ignore[attr-defined]
    assert row(client, run)["state"] == "cancelled"
    left = row(client, run)["judged"]
    assert left < 400
    refused = post(client, f"/api/runs/{run}/steer", 409, wish="pause")
    assert "cannot be paused" in refused["error"]["problem"]


def test_a_cancelled_run_is_ending_while_its_calls_are_under_way(
    client: TestClient, server: ModelServer
) -> None:
    server.held = True
    run = post(client, "/api/start", 201, suite="suites/two.yaml", trials=50)["run_id"]
    until(lambda: row(client, run)["trials"].get("running", 0) > 0)
    result = post(client, f"/api/runs/{run}/steer", wish="cancel")["run"]
    assert (result["state"], result["ending"], result["finished"]) == ("cancelled", True, None)
    page = client.get(f"/runs/{run}").text
    assert '<span data-field="state">ending</span>' in page
    assert "<dt>Finished</dt>" not in page
    server.held = False
    until(lambda: not client.app.state.services.runner._runs)  # type: ignore[attr-defined]
    (result,) = client.get("/runs.json").json()["runs"]
    assert (result["state"], result["ending"]) == ("cancelled", False)
    assert result["finished"] is not None


def left_s(client: TestClient) -> float | None:
    """Return the seconds left that the queue shows for its one run."""
    result: float | None = client.get("/runs.json").json()["runs"][0]["left_s"]
    return result


PAUSE_S = 36_000.0


def test_time_left_ignores_pauses(client: TestClient, server: ModelServer, clock: SetClock) -> None:
    run = post(client, "/api/start", 201, suite="suites/two.yaml", trials=100)["run_id"]
    until(lambda: (left_s(client) or 0) > 0)
    post(client, f"/api/runs/{run}/steer", wish="pause")
    until(lambda: row(client, run)["trials"].get("running", 0) == 0)
    assert left_s(client) is None
    clock.ahead_s += PAUSE_S
    server.held = True
    post(client, f"/api/runs/{run}/steer", wish="resume")
    assert left_s(client) is None, "nothing is known before some trials are done"
    server.held = False
    until(lambda: left_s(client) is not None)
    assert (left_s(client) or 0.0) < PAUSE_S / 10
    post(client, f"/api/runs/{run}/steer", wish="cancel")


def test_an_extension_starts_its_own_clock(
    client: TestClient, server: ModelServer, clock: SetClock
) -> None:
    run = post(client, "/api/start", 201, suite="suites/two.yaml", trials=3)["run_id"]
    finished(client, run)
    clock.ahead_s += PAUSE_S
    post(client, f"/api/runs/{run}/extend", trials=100)
    until(lambda: left_s(client) is not None)
    assert (left_s(client) or 0.0) < PAUSE_S / 10
    post(client, f"/api/runs/{run}/steer", wish="cancel")


def test_a_server_that_stops_leaves_its_run_to_be_resumed(
    workspace: Workspace, server: ModelServer
) -> None:
    with TestClient(create_app(workspace), base_url=HOME) as client:
        run = post(client, "/api/start", 201, suite="suites/two.yaml", trials=60)["run_id"]
        until(lambda: row(client, run)["judged"] >= 3)
    with TestClient(create_app(workspace), base_url=HOME) as client:
        assert row(client, run)["state"] == "interrupted"
        post(client, f"/api/runs/{run}/steer", wish="resume")
        assert finished(client, run)["judged"] == 60
    assert server.served <= 60 + 5, "only what was in flight is asked twice"


def test_a_finished_run_gets_more_trials_and_one_more_candidate(
    client: TestClient, workspace: Workspace
) -> None:
    run = post(client, "/api/start", 201, suite="suites/two.yaml")["run_id"]
    finished(client, run)
    look = post(client, f"/api/runs/{run}/extend", trials=2, only_look=True)
    assert look["estimate"]["calls"] == 2
    assert row(client, run)["trials"]["total"] == 3
    post(client, f"/api/runs/{run}/extend", trials=2)
    until(lambda: row(client, run)["judged"] == 5 and row(client, run)["state"] == "finished")
    post(client, f"/api/runs/{run}/extend", candidates=["openai/new"])
    services = client.app.state.services  # type: ignore[attr-defined]
    until(lambda: row(client, run)["state"] == "finished" and not services.runner._runs)
    assert "openai/new" in [c.name for c in workspace.journal.plan_of(run).candidates]
    assert (
        post(client, f"/api/runs/{run}/extend", 422)["error"]["problem"]
        == "nothing to add was given."
    )
    assert (
        post(client, f"/api/runs/{run}/extend", 422, until_approved=10_001)["error"]["where"]
        == "until_approved"
    )


def test_impossible_number_and_unused_model_are_explained_at_fields(client: TestClient) -> None:
    (result,) = post(client, "/api/start/look", suite="suites/two.yaml", trials=99_999_999_999)[
        "problems"
    ]
    assert (result["field"], result["problem"]) == (
        "trials",
        "is 99,999,999,999, and must be at most 10,000.",
    )
    mute: dict[str, Any] = {
        "suite": "services.json",
        "judges": ["human"],
        "candidates": ["nora", "omar", "echo"],
    }
    (result,) = post(client, "/api/start/look", **mute)["problems"]
    assert result["field"] == "candidates"
    assert result["problem"] == "'echo' cannot be called, because no task here has a prompt."
    assert post(client, "/api/start", 422, **mute)["problems"] == [result]
    assert client.get("/api/runs").json()["runs"] == []


def test_decisions_replaced_by_a_new_candidate_need_confirmation(
    client: TestClient, server: ModelServer
) -> None:
    run = post(client, "/api/start", 201, suite="suites/two.yaml", trials=2)["run_id"]
    finished(client, run)
    item = client.get("/api/review/next?desk=desk-1&limit=1").json()["items"][0]["id"]
    post(
        client,
        "/api/decisions",
        decisions=[{"key": "k" * 10, "id": item, "verb": "reject", "reason": "other"}],
    )
    asked = server.served
    assert row(client, run)["waiting"] == 1
    assert (
        post(client, f"/api/runs/{run}/extend", candidates=["openai/new"], only_look=True)[
            "replaces"
        ]
        == 1
    )
    refused = post(client, f"/api/runs/{run}/extend", 409, candidates=["openai/new"])["error"]
    assert "1 decision on grades given to all candidates together" in refused["problem"]
    assert (row(client, run)["waiting"], server.served) == (1, asked), "nothing was done"
    assert post(client, f"/api/runs/{run}/extend", trials=1, only_look=True)["replaces"] == 0


def test_why_trials_fail_stands_in_the_row(client: TestClient, server: ModelServer) -> None:
    server.script([Mishap.HTTP_400])
    run = post(client, "/api/start", 201, suite="suites/two.yaml", trials=1)["run_id"]
    until(lambda: row(client, run)["failed"] == 1)
    # not before the run has ended
    until(lambda: "resume" in client.get("/runs.json").json()["runs"][0]["moves"])
    (listed,) = client.get("/runs.json").json()["runs"]
    assert ":" in listed["error"]


def test_start_page_shows_files_and_the_errors_of_one(client: TestClient, folder: Path) -> None:
    page = client.get("/start").text
    assert "suites/two.yaml" in page
    assert "services.json" in page
    (folder / "suites/bad.yaml").write_text(SUITE.replace("trials: 3", "trials: none"), "utf-8")
    assert (
        "suites/bad.yaml:2 trials" in client.get("/start", params={"suite": "suites/bad.yaml"}).text
    )


class TestAddressesOfABrowser:
    URL = "http://127.0.0.1:6379/v1"

    def suite(self, **changes: Any) -> str:
        tasks = [{"id": "t", "prompt": "hello", "expected": "x", "score": "exact"}]
        return json.dumps(
            {
                "name": "s",
                "candidates": [{"model": "openai/m", "base_url": self.URL}],
                "tasks": tasks,
            }
            | changes
        )

    def test_a_suite_with_an_address_is_not_saved(self, client: TestClient, folder: Path) -> None:
        refused = post(client, "/api/suites", 422, name="evil.json", text=self.suite())
        assert "web_allow_origins" in json.dumps(refused["problems"])
        assert not (folder / "suites" / "evil.json").exists()

    def test_a_suite_on_disk_is_not_asked_at_its_address(
        self, client: TestClient, folder: Path
    ) -> None:
        (folder / "evil.json").write_text(self.suite(), "utf-8")
        assert "web_allow_origins" in json.dumps(post(client, "/api/start", 422, suite="evil.json"))

    @pytest.mark.parametrize(
        ("program", "reason"),
        [
            ({"python": "os:getcwd"}, "may only ask models"),
            ({"command": ["touch", "{{prompt}}"]}, "may only ask models"),
            ({"http": {"url": "http://127.0.0.1:6379/{{prompt}}"}}, "web_allow_origins"),
        ],
    )
    def test_programs_of_a_browser_are_neither_saved_nor_started(
        self, client: TestClient, folder: Path, program: dict[str, Any], reason: str
    ) -> None:
        text = self.suite(candidates=[{"name": "c", **program}])
        escaped = text.replace('"command"', '"comm\\u0061nd"').replace('"python"', '"pyth\\u006fn"')
        for written in (text, escaped):
            refused = post(client, "/api/suites", 422, name="evil.json", text=written)
            assert reason in json.dumps(refused["problems"])
        assert not (folder / "suites" / "evil.json").exists()
        (folder / "evil.json").write_text(text, "utf-8")
        assert reason in json.dumps(post(client, "/api/start", 422, suite="evil.json"))
        assert not (folder / "hello").exists()

    def test_an_origin_in_the_settings_is_allowed_and_gets_no_key(
        self, folder: Path, server: ModelServer
    ) -> None:
        environment = {"OPENAI_API_KEY": "k", "ASSAY_WEB_ALLOW_ORIGINS": f"[{server.address}]"}
        candidates = [{"model": "openai/m", "base_url": server.url}]
        with (
            Workspace.open(folder, environment=environment) as workspace,
            TestClient(create_app(workspace), base_url=HOME) as client,
        ):
            text = self.suite(candidates=candidates)
            saved = post(client, "/api/suites", 201, name="mine.json", text=text)["suite"]
            finished(client, post(client, "/api/start", 201, suite=saved)["run_id"])
        assert server.calls
        assert not any("Authorization" in call.headers for call in server.calls)

    def test_a_stored_run_is_not_asked_at_its_address(
        self, folder: Path, server: ModelServer
    ) -> None:
        environment = {"OPENAI_API_KEY": "k"}
        judge = {"model": "openai/j", "base_url": server.url}
        (folder / "judged.json").write_text(
            self.suite(
                candidates=[],
                judge=judge,
                tasks=[{"id": "t", "snippets": {"ann": "x", "bob": "y"}}],
            ),
            "utf-8",
        )
        forked.run("run", "judged.json", folder=folder)
        asked = server.served
        with (
            Workspace.open(folder, environment=environment) as workspace,
            TestClient(create_app(workspace), base_url=HOME) as client,
        ):
            run = client.get("/api/runs").json()["runs"][0]["run_id"]
            for verb, body in (("regrade", {}), ("extend", {"trials": 1})):
                assert "web_allow_origins" in json.dumps(
                    post(client, f"/api/runs/{run}/{verb}", 422, **body)
                )
            assert client.post("/api/models/check", json={"model": "openai/j"}).status_code == 409
            rerun = {"id": "a1", "key": "a-key-of-12", "attempt": 1, "reason": "again"}
            assert client.post("/api/rerun", json=rerun).status_code < 500
            until(lambda: client.post("/api/rerun", json=rerun).json().get("status") != "running")
            problem = client.get("/api/assessments/a1").json()["rerun_problem"]
            assert problem.startswith("base_url of the judge: names http://127.0.0.1:")
            assert "web_allow_origins" in problem
            failed = client.post("/api/rerun", json=rerun).json()["error"]
            assert "web_allow_origins" in failed["remedy"]
        assert asked == server.served == 1


def test_a_regrade_keeps_to_the_budget_of_the_settings(
    client: TestClient, folder: Path, server: ModelServer
) -> None:
    priced = SUITE.replace(
        "judge: openai/judge", "judge: {model: openai/judge, price: {input: 1, output: 1}}"
    )
    (folder / "suites" / "two.yaml").write_text(priced, "utf-8")
    run = post(client, "/api/start", 201, suite="suites/two.yaml")["run_id"]
    finished(client, run)
    environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
    with (
        Workspace.open(folder, environment=environment, options={"budget": 0.25}) as capped,
        TestClient(create_app(capped), base_url=HOME) as owner,
    ):
        again = post(owner, f"/api/runs/{run}/regrade", 201)["run_id"]
        assert capped.journal.plan_of(again).budget_usd == 0.25
        finished(owner, again)


def test_a_run_that_met_its_budget_resumes_with_another(
    client: TestClient, folder: Path, server: ModelServer
) -> None:
    priced = SUITE.replace(
        "judge: openai/judge", "judge: {model: openai/judge, price: {input: 1000, output: 1000}}"
    )
    (folder / "suites" / "two.yaml").write_text(priced, "utf-8")
    run = post(client, "/api/start", 201, suite="suites/two.yaml", trials=2, budget=0.01)["run_id"]
    until(lambda: row(client, run)["state"] == "paused")
    page = client.get(f"/runs/{run}.json").json()
    assert (page["failures"], page["paused"]["fault"]) == ([], "budget")
    enough = page["facts"]["enough_usd"]
    assert page["paused"]["remedy"].endswith(f"assay resume {run} --budget {enough:g}")
    assert "The run paused because its budget is reached" in client.get(f"/runs/{run}").text
    assert (
        f'id="budget" inputmode="decimal" size="8" autocomplete="off" value="{enough:g}"'
        in client.get(f"/runs/{run}").text
    )
    refused = post(client, f"/api/runs/{run}/steer", 422, wish="resume", budget=-1)
    assert refused["error"]["where"] == "budget"
    post(client, f"/api/runs/{run}/steer", wish="resume", budget=enough)
    until(
        lambda: (
            row(client, run)["state"] == "finished" and not row(client, run)["trials"].get("failed")
        )
    )
    assert 'id="budget"' not in client.get(f"/runs/{run}").text
