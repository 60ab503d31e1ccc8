"""Evaluators of an agent's workspace, on reports made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.agents.files import Snapshot, difference
from assay.domain.assessment import Response
from assay.domain.scenarios import (
    CheckCommand,
    CheckOutcome,
    EvaluatorSpec,
    Scenario,
    WorkspaceReport,
    readable,
)
from assay.domain.suite import Scoring, Task
from assay.scoring.evaluator import GradingAttempt, Unscorable
from assay.scoring.workspace_grader import (
    EVALUATORS,
    WorkspaceGrader,
    evaluate,
    evaluator_problem,
    succeeded,
)

SCORING = Scoring(method=EVALUATORS)


def scenario(*evaluators: EvaluatorSpec, **more: Any) -> Scenario:
    return Scenario(
        folder="f", fixture="repo", files=more.pop("files", {}), evaluators=evaluators, **more
    )


def outcome(
    kind: str, exit_code: int | None, output: str = "", end: str = "exited"
) -> CheckOutcome:
    return CheckOutcome(
        kind=kind, command=f"run {kind}", exit_code=exit_code, end=end, seconds=1.0, output=output
    )


def scored(
    name: str, report: WorkspaceReport, options: dict[str, Any], **more: Any
) -> tuple[float, str]:
    spec = EvaluatorSpec(name=name, options=options)
    return evaluate(spec, scenario(spec, **more), report)


def test_weights_of_the_worked_example_give_its_score() -> None:
    evaluators = (
        EvaluatorSpec(name="build", weight=0.4),
        EvaluatorSpec(
            name="typecheck", weight=0.3, options={"issues": r"(\d+) errors", "worst": 10}
        ),
        EvaluatorSpec(name="lint", weight=0.3, options={"issues": r"Found (\d+)", "worst": 20}),
    )
    commands = tuple(
        CheckCommand(kind=each.name, command=f"run {each.name}") for each in evaluators
    )
    report = WorkspaceReport(
        outcomes=(
            outcome("build", 0),
            outcome("typecheck", 1, "2 errors"),
            outcome("lint", 1, "Found 5"),
        )
    )
    task = Task(
        id="s/L0", thing="s", scoring=SCORING, scenario=scenario(*evaluators, commands=commands)
    )
    response = Response(candidate="agent", text=report.to_text())
    assessment = WorkspaceGrader(SCORING).read(GradingAttempt(task=task, responses=(response,)), ())
    assert {grade.criterion: grade.score for grade in assessment.grades} == {
        "build": 1.0,
        "typecheck": 0.8,
        "lint": 0.75,
    }
    # 0.85 would be the mean without weights
    assert assessment.scores["agent"] == pytest.approx(0.865)
    assert task.scenario is not None
    assert succeeded(task.scenario, report, assessment.scores["agent"]) is True
    strict = scenario(
        *evaluators, commands=(CheckCommand(kind="lint", command="run lint", required=True),)
    )
    assert succeeded(strict, report, 0.865) is False, "a required command failed"
    assert succeeded(task.scenario, report, 0.69) is False
    assert succeeded(task.scenario, report, None) is None


def test_response_without_a_report_is_unscorable() -> None:
    task = Task(
        id="s/L0", thing="s", scoring=SCORING, scenario=scenario(EvaluatorSpec(name="test"))
    )
    for text in (
        "",
        "Done!",
        '{"format":"assay.workspace-report/1"',
        '{"format":"assay.workspace-report/1","steps":7}',
    ):
        with pytest.raises(Unscorable, match="not a workspace report"):
            WorkspaceGrader(SCORING).read(
                GradingAttempt(task=task, responses=(Response(candidate="a", text=text),)), ()
            )


def test_command_that_was_stopped_or_did_not_run_scores_zero() -> None:
    report = WorkspaceReport(outcomes=(outcome("test", None, end="timed_out"), outcome("test", 0)))
    assert scored("test", report, {})[0] == 0.5
    assert "run test: timed out after 1.0 s" in scored("test", report, {})[1]
    assert scored("lint", report, {}) == (0.0, "No lint command ran.")


@pytest.mark.parametrize(
    ("path", "content", "score"),
    [
        ("requirements.txt", "Flask==3.0.2\nrequests>=2.31  # http\n", 1.0),
        ("requirements.txt", "Flask==2.9\nrequests>=2.31\n", 0.5),
        ("requirements.txt", "Flask==4.0\n", 0.0),
        ("pyproject.toml", '[project]\ndependencies = ["flask~=3.1", "requests==2.31.0"]\n', 1.0),
        (
            "package.json",
            '{"dependencies": {"flask": "^3.0.0"}, "devDependencies": {"requests": "2.32.1"}}',
            1.0,
        ),
        ("package.json", '{"dependencies": [', 0.0),
        ("package.json", '{"dependencies": 7}', 0.0),
        ("requirements.txt", None, 0.0),
    ],
)
def test_dependency_targets_are_read_from_each_kind_of_file(
    path: str, content: str | None, score: float
) -> None:
    wanted = {"required": [{"name": "flask", "to": "3.0"}, {"name": "requests", "to": "2.31"}]}
    assert scored("dependency_targets", WorkspaceReport(files={path: content}), wanted)[0] == score


def test_versions_are_compared_by_closeness_and_by_companions() -> None:
    files = {
        "package.json": json.dumps(
            {
                "dependencies": {
                    "react": "^18.2.0",
                    "react-dom": "17.0.1",
                    "vite": "5.1.3",
                    "zod": "3",
                }
            }
        )
    }
    report = WorkspaceReport(files=files)
    expected = {
        "react": "18.2.0",
        "vite": "5.1.9",
        "zod": "3.9.0",
        "react-dom": "18.0.0",
        "absent": "1.0.0",
    }
    score, reason = scored("dependency_proximity", report, {"expected": expected})
    assert score == pytest.approx((1 + 0.9 + 0.7 + 0.3 + 0) / 5)
    assert "absent is missing" in reason
    assert (
        scored("companion_versions", report, {"companions": {"react": ["react-dom", "react"]}})[0]
        == 0.5
    )
    assert scored("companion_versions", report, {"companions": {"gone": ["react"]}})[0] == 0


@pytest.mark.parametrize(
    ("paths", "score"),
    [(("pnpm-lock.yaml",), 1), (("a/yarn.lock", "pnpm-lock.yaml"), 0), (("package.json",), 0)],
)
def test_only_lock_files_of_allowed_managers_pass(paths: tuple[str, ...], score: int) -> None:
    assert (
        scored("package_manager", WorkspaceReport(paths=paths), {"allowed": ["pnpm"]})[0] == score
    )


def test_files_configuration_and_old_names_are_checked() -> None:
    report = WorkspaceReport(
        paths=("a.py", "old.py"),
        files={"c.toml": "[tool.x]\nlevel = 2\n"},
        matches={"oldlib": ["a.py", "b.py"]},
    )
    assert (
        scored(
            "file_structure",
            report,
            {"required": ["a.py", "b.py"], "absent": ["old.py", "gone.py"]},
        )[0]
        == 0.5
    )
    assert (
        scored("config_accuracy", report, {"files": {"c.toml": {"tool.x.level": 2, "tool.y": 1}}})[
            0
        ]
        == 0.5
    )
    score, reason = scored("namespace_migration", report, {"from": ["oldlib"]})
    assert score == pytest.approx(0.34)
    assert "b.py still has 'oldlib'" in reason


def test_heuristic_checks_share_their_weights() -> None:
    report = WorkspaceReport(
        paths=("README.md", "src/a.py"),
        files={"README.md": "# App\n\n## Usage ##\n", "package.json": '{"scripts": {"test": "x"}}'},
        matches={"/def slug/ in src/**/*.py": ["src/a.py"], "/print/ in *": []},
        outcomes=(
            CheckOutcome(
                kind="heuristic_checks", command="./run", exit_code=0, end="exited", seconds=1
            ),
        ),
    )
    checks = {
        "commands": [{"command": "./run", "weight": 2}, {"command": "./other", "weight": 0.5}],
        "files": [
            "README.md",
            {"path": "old.py", "absent": True},
            {"path": "CHANGELOG.md", "weight": 0.5},
        ],
        "patterns": [
            {"files": "src/**/*.py", "pattern": "def slug"},
            {"pattern": "print", "absent": True},
        ],
        "structured": [
            {"file": "package.json", "path": "$.scripts.test"},
            {"file": "README.md", "path": "usage"},
            {"file": "README.md", "path": "$.usage"},
        ],
    }
    score, reason = scored("heuristic_checks", report, checks)
    assert score == pytest.approx(8 / 10)
    assert reason == "Failed: ./other (commands); CHANGELOG.md (files); $.usage (structured)"


@pytest.mark.parametrize(
    "checks",
    [
        {},
        {"pattern": []},
        {"patterns": ["(["]},
        {"structured": ["$.a"]},
        {"files": [{"path": "a", "weight": 0}]},
    ],
)
def test_unusable_heuristic_checks_are_refused(checks: dict[str, Any]) -> None:
    problem = evaluator_problem("heuristic_checks", checks, set())
    assert "has invalid options" in problem or problem == "needs `file`."


@pytest.mark.parametrize(
    ("diff", "findings"),
    [
        ("--- a/slug.py\n+++ b/slug.py\n+x = 1\n", 0),
        ("--- a/tests/t.py\n+++ /dev/null\n-x\n", 1),
        ("--- a/tests/t.py\n+++ b/tests/t.py\n-x\n+    @unittest.skip('later')\n", 2),
        ("--- /dev/null\n+++ b/tests/new.py\n+assert True\n", 0),
        ('--- a/tsconfig.json\n+++ b/tsconfig.json\n+  "skipLibCheck": true\n', 1),
        ("Binary or large files a/tests/t.py and b/tests/t.py differ (300,000 bytes)\n", 1),
        ("Binary or large files /dev/null and b/tests/t.bin differ (300,000 bytes)\n", 0),
    ],
)
def test_each_weakened_check_costs_a_fifth(diff: str, findings: int) -> None:
    guarded = {"files": {"tests/t.py": "0", "slug.py": "0"}, "protected": ("tests/*",)}
    score, reason = scored("integrity_guard", WorkspaceReport(diff=diff), {}, **guarded)
    assert score == pytest.approx(1 - 0.2 * findings), reason


def test_changed_protected_file_is_found_behind_a_long_diff(tmp_path: Path) -> None:
    """The diff is cut at a limit, so an agent could hide the change of a test behind a long new
    file.
    """
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/t.py").write_text("assert f() == 1\n", "utf-8")
    before = Snapshot(tmp_path)
    (tmp_path / "tests/t.py").write_text("assert True\n", "utf-8")
    (tmp_path / "a.txt").write_text("x\n" * 90_000, "utf-8")
    diff = difference(before, Snapshot(tmp_path), ["tests/t.py"])[:100_000]
    score, reason = scored(
        "integrity_guard",
        WorkspaceReport(diff=diff),
        {},
        files={"tests/t.py": "0"},
        protected=("tests/*",),
    )
    assert (score, reason) == (0.8, "tests/t.py was changed")


def test_issues_are_counted_by_any_pattern_and_output() -> None:
    """An agent's code writes the output, so a number of any length must give a score."""
    for pattern, output, score in (
        (r"(\d+) (error|warning)s", "3 errors", 0.7),
        (r"\d+", "4", 0.6),
        (r"(\d+) errors", f"{'9' * 5000} errors", 0.0),
        (r"(\d+) errors", "0 errors", 0.0),  # it failed, so its output is not believed
    ):
        assert (
            scored(
                "lint", WorkspaceReport(outcomes=(outcome("lint", 1, output),)), {"issues": pattern}
            )[0]
            == score
        )
    for unusable in ("(", 7):
        assert "invalid options" in evaluator_problem("lint", {"issues": unusable}, {"lint"})
    assert evaluator_problem("lint", {"issues": r"(\d+)"}, {"lint"}) == ""


def test_report_shown_as_markdown_cannot_be_broken_out_of() -> None:
    text = WorkspaceReport(diff="+```\n+# Forged\n", answer="````\n## Validation").to_text()
    assert readable(text).count("\n````diff\n") == 1
    assert "\n`````\n" in readable(text)
    assert readable("plain answer") == "plain answer"
