"""Notices to a webhook: sent for every way a run ends, signed, without anything private, and never
in the way.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import assay
from assay.app import webhooks
from assay.app.runs import execution, extension, preflight
from assay.app.runs.run_request import ExtendRequest
from assay.app.webhooks import SIGNATURE, check_webhook, without_secrets
from assay.app.workspace import Workspace
from assay.domain.errors import SettingsError
from assay.domain.run import RunOptions
from assay.web.server import create_app
from tests.support.hook_server import HookServer
from tests.support.sets import NAMES, write_set

SECRET = "hush"


@pytest.fixture
def hook() -> Iterator[HookServer]:
    with HookServer() as running_server:
        yield running_server


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(webhooks, "WAITS_S", (0.01, 0.02))
    write_set(tmp_path, things=2, candidates=2, trials=2, name="services.json")
    return tmp_path


def opened(folder: Path, hook: HookServer | None, **more: str) -> Workspace:
    address = {} if hook is None else {"ASSAY_WEBHOOK": hook.url}
    return Workspace.open(folder, environment={**address, **more})


def ran(workspace: Workspace, **options: Any) -> execution.RunResult:
    suite = preflight.load(workspace.settings, Path("services.json"), judge="human")
    return execution.run(workspace, suite, RunOptions(**options))


def assay_does(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    environment = {**kept, "PYTHONPATH": str(Path(assay.__file__).parents[1]), **variables}
    command = [sys.executable, "-m", "assay", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


def test_a_run_tells_that_reviews_wait_and_that_it_ended(folder: Path, hook: HookServer) -> None:
    with opened(folder, hook) as workspace:
        run = ran(workspace).summary.id
    assert sorted(hook.events) == ["reviews_wait", "run_finished"]
    result = next(one.document for one in hook.told if one.document["event"] == "run_finished")
    assert set(result) == {
        "id",
        "event",
        "run_id",
        "suite",
        "state",
        "trials",
        "waiting",
        "address",
        "time",
        "text",
    }
    assert (result["run_id"], result["suite"], result["state"]) == (run, "services", "finished")
    assert (result["trials"], result["waiting"], result["address"]) == (
        {"total": 4, "done": 4, "failed": 0},
        4,
        None,
    )
    assert "4 of 4 trials done" in result["text"]
    assert "4 assessments await" in result["text"]


def test_nothing_private_is_sent(folder: Path, hook: HookServer) -> None:
    with opened(folder, hook) as workspace:
        ran(workspace)
    sent = b"".join(one.body for one in hook.told).decode()
    for private in (
        *NAMES,
        "service_0",
        "Keep invariant",
        "return x",
        "human",
        "score",
        str(folder),
    ):
        assert private not in sent


def test_it_is_signed_with_the_secret_and_only_then(folder: Path, hook: HookServer) -> None:
    with opened(folder, hook, ASSAY_WEBHOOK_SECRET=SECRET) as workspace:
        ran(workspace)
    for one in hook.told:
        wanted = hmac.new(SECRET.encode(), one.body, hashlib.sha256).hexdigest()
        assert one.headers[SIGNATURE.lower()] == f"sha256={wanted}"
        assert SECRET.encode() not in one.body
    hook.told.clear()
    with opened(folder, hook) as workspace:
        ran(workspace)
    assert hook.told
    assert all(SIGNATURE.lower() not in one.headers for one in hook.told)


@pytest.mark.slow
def test_every_way_to_carry_out_a_run_tells(folder: Path, hook: HookServer) -> None:
    suite = "name: s\ntasks:\n  - {id: a, expected: one, score: exact, snippets: {ann: one, bob: two}}\n"
    (folder / "s.yaml").write_text(suite, "utf-8")
    done = assay_does(folder, "run", "s.yaml", "--json", ASSAY_WEBHOOK=hook.url)
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)["run_id"]
    assert hook.events == ["run_finished"]
    assert (
        assay_does(folder, "extend", run, "--trials", "2", ASSAY_WEBHOOK=hook.url).returncode == 0
    )
    assert hook.events == ["run_finished"] * 2
    assert hook.told[-1].document["trials"]["total"] == 3
    assert assay_does(folder, "regrade", run, ASSAY_WEBHOOK=hook.url).returncode == 0
    assert hook.events == ["run_finished"] * 3
    assert hook.told[-1].document["run_id"] != run
    assert assay_does(folder, "resume", run, ASSAY_WEBHOOK=hook.url).returncode == 0
    assert hook.events == ["run_finished"] * 4
    assert len({one.document["id"] for one in hook.told}) >= 3


def test_a_server_tells_with_the_address_of_the_run(folder: Path, hook: HookServer) -> None:
    with opened(folder, hook) as workspace:
        workspace.notices.base = "http://127.0.0.1:8000"
        with TestClient(create_app(workspace), base_url="http://127.0.0.1:8000") as client:
            body = {"thing": "Gate", "judge": "human", "snippets": {"ann": "a", "bob": "b"}}
            run = client.post("/submit_evaluation", json=body).json()["evaluation_id"]
            finished_within(hook, 2)
    assert {one.document["address"] for one in hook.told} == {f"http://127.0.0.1:8000/runs/{run}"}


def finished_within(hook: HookServer, n: int, within_s: float = 40.0) -> None:
    deadline = time.monotonic() + within_s
    while len(hook.told) < n:
        assert time.monotonic() < deadline, hook.events
        time.sleep(0.02)


@pytest.mark.slow
def test_a_run_that_failed_says_so(folder: Path, hook: HookServer) -> None:
    (folder / "judge.jsonl").write_text(
        json.dumps(
            {
                "match": {"role": "judge"},
                "error": {"kind": "refused", "detail": "no", "transient": False},
            }
        ),
        "utf-8",
    )
    done = assay_does(
        folder, "run", "services.json", "--judge", "replay/judge.jsonl", ASSAY_WEBHOOK=hook.url
    )
    assert done.returncode == 1
    assert hook.events == ["run_failed"]
    assert hook.told[0].document["trials"] == {"total": 4, "done": 0, "failed": 4}


def test_reviews_that_waited_before_are_not_told_again(folder: Path, hook: HookServer) -> None:
    with opened(folder, hook) as workspace:
        run = ran(workspace).summary.id
        extension.extend(workspace, run, ExtendRequest(more_trials=1))
    assert sorted(hook.events) == ["reviews_wait", "run_finished", "run_finished"]


def test_failing_webhook_is_retried_and_then_warned_about(
    folder: Path, hook: HookServer, caplog: pytest.LogCaptureFixture
) -> None:
    hook.statuses = [500, 503]
    with opened(folder, hook) as workspace:
        ran(workspace, limit=1, trials=1)
    assert len(hook.told) == 4  # the first came through at its third try
    assert len({one.document["id"] for one in hook.told}) == 2
    assert caplog.messages == []
    hook.statuses = [500] * 6
    with opened(folder, hook) as workspace:
        result = ran(workspace, limit=1, trials=1)
    assert str(result.summary.state) == "finished"
    assert len(caplog.messages) == 2
    assert "it answered 500" in caplog.messages[0]
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 404])
def test_webhooks_follow_no_redirect_and_do_not_repeat_refusals(
    folder: Path, hook: HookServer, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    hook.statuses = [status] * 2
    with opened(folder, hook) as workspace:
        ran(workspace, limit=1, trials=1)
    assert len(hook.told) == 2
    assert {one.path for one in hook.told} == {"/services/T0/B0/s3cret"}
    assert f"it answered {status}" in caplog.text


@pytest.mark.slow
def test_a_server_that_hangs_holds_nothing_up(
    folder: Path,
    hook: HookServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(webhooks, "TIMEOUT_S", 0.3)
    hook.hang_s = 60.0
    workspace = opened(folder, hook)
    began = time.monotonic()
    result = ran(workspace, limit=1, trials=1)
    assert result.seconds < 20
    assert time.monotonic() - began < 25
    workspace.close()
    assert time.monotonic() - began < 40
    assert "no answer within" in caplog.text


@pytest.mark.slow
def test_a_closed_port_is_a_warning_on_stderr_and_the_exit_code_stays(folder: Path) -> None:
    with HookServer() as gone:
        address = gone.url
    done = assay_does(
        folder, "run", "services.json", "--judge", "human", "--json", ASSAY_WEBHOOK=address
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["trials"]["done"] == 4
    assert "did not reach 127.0.0.1" in done.stderr
    assert "s3cret" not in done.stderr + done.stdout


@pytest.mark.parametrize(
    "command", [("run", "services.json", "--judge", "human"), ("serve", "--port", "0")]
)
def test_local_only_forbids_an_address_elsewhere_before_anything_happens(
    folder: Path, command: tuple[str, ...]
) -> None:
    variables = {
        "ASSAY_WEBHOOK": "https://hooks.example.com/services/s3cret",
        "ASSAY_LOCAL_ONLY": "true",
    }
    done = assay_does(folder, *command, **variables)
    assert done.returncode == 2
    assert "hooks.example.com" in done.stderr
    assert "local_only" in done.stderr
    assert "s3cret" not in done.stderr
    with opened(folder, None) as workspace:
        assert workspace.archive.runs.matching() == ()


def test_local_only_allows_a_local_address(folder: Path, hook: HookServer) -> None:
    with opened(folder, hook, ASSAY_LOCAL_ONLY="true") as workspace:
        ran(workspace)
    assert len(hook.told) == 2


@pytest.mark.parametrize(
    "address", ["ftp://x/y", "nonsense", "http://", "http://[::1", "http://a b/"]
)
def test_invalid_webhook_address_is_refused(folder: Path, address: str) -> None:
    workspace = Workspace.open(folder, environment={"ASSAY_WEBHOOK": address})
    with pytest.raises(SettingsError, match="not a valid address"):
        check_webhook(workspace.settings)


def test_settings_are_shown_without_their_secrets(folder: Path, hook: HookServer) -> None:
    variables = {"ASSAY_WEBHOOK": hook.url, "ASSAY_WEBHOOK_SECRET": SECRET}
    for arguments in (("config",), ("config", "--json")):
        stdout = assay_does(folder, *arguments, **variables).stdout
        assert "127.0.0.1" in stdout
        assert "ASSAY_WEBHOOK" in stdout
        assert "s3cret" not in stdout
        assert SECRET not in stdout
    assert "webhook_secret" in assay_does(folder, "config", "--schema").stdout


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://hooks.example.com/services/T0/B0/x", "https://hooks.example.com/***"),
        ("https://user:pass@example.com/", "https://example.com/***"),
        ("http://127.0.0.1:9/?token=x", "http://127.0.0.1:9/***"),
        ("http://127.0.0.1:9", "http://127.0.0.1:9"),
    ],
)
def test_webhook_address_is_shown_without_secrets(address: str, shown: str) -> None:
    assert without_secrets(address) == shown


def test_a_suites_name_is_no_markup_in_a_chat(folder: Path, hook: HookServer) -> None:
    (folder / "services.json").rename(folder / "<!channel> & co.json")
    with opened(folder, hook) as workspace:
        suite = preflight.load(workspace.settings, Path("<!channel> & co.json"), judge="human")
        execution.run(workspace, suite, RunOptions(trials=1))
    assert all("&lt;!channel&gt; &amp; co" in one.document["text"] for one in hook.told)
    assert all("<" not in one.document["text"] for one in hook.told)
