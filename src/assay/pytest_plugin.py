"""Pytest plugin: the fixture `assay_run` runs a suite in a test, and the verdict appears in
pytest's report.

pytest imports this module at every start, so the module imports Assay only when a test uses the
fixture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from assay.app.python_api.completed_run import CompletedRun
    from assay.app.python_api.drafts import SuiteLike
    from assay.domain.margins import Margin

_RUN: Final = "assay_run"
_VERDICT: Final = "assay_verdict"
_APPROVALS: Final = "assay_approvals"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's options to pytest."""
    group = parser.getgroup("assay", "Assay")
    group.addoption(
        "--assay-store",
        metavar="URL",
        help="store for the runs; same default as for the assay command",
    )
    group.addoption(
        "--assay-batch",
        metavar="ID",
        help="label for the runs of this session, for `assay gate --baseline`",
    )


@pytest.fixture
def assay_run(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Callable[..., Any]:
    """Return a function that runs a suite and fails the test if a requirement of `Demands` is not
    met.
    """

    def run(
        suite: SuiteLike,
        *,
        at_least: float | Mapping[str, float] | None = None,
        candidate: str | None = None,
        against: str | None = None,
        baseline: str | None = None,
        margin: Margin | None = None,
        on_undecided: Literal["pass", "fail"] = "pass",
        most_failed: int = 0,
        require: Literal["vetted"] | None = None,
        trials: int | None = None,
    ) -> CompletedRun:
        from assay.app.python_api.demands import Demands, run_and_check
        from assay.domain.errors import AssayError

        demands = Demands(
            at_least=at_least,
            candidate=candidate,
            against=against,
            baseline=baseline,
            margin=margin,
            on_undecided=on_undecided,
            most_failed=most_failed,
            require=require,
        )
        try:
            completed, verdict = run_and_check(
                suite,
                demands,
                root=request.config.rootpath,
                beside=request.path.parent,
                store=request.config.getoption("--assay-store"),
                batch_id=request.config.getoption("--assay-batch"),
                trials=trials,
            )
        except AssayError as error:
            # The message is complete without a traceback, and `from None` keeps pytest from
            # printing it twice.
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        record_property(_RUN, completed.id)
        record_property(_VERDICT, verdict.text)
        record_property(_APPROVALS, verdict.approvals)
        if not verdict.passed:
            pytest.fail(verdict.text, pytrace=False)
        return completed

    return run


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the verdict of each run, including the runs of all pytest-xdist workers."""
    reports = [report for group in terminalreporter.stats.values() for report in group]
    lines = [
        line
        for report in reports
        if getattr(report, "when", "") == "call"
        for line in _lines(report)
    ]
    if lines:
        terminalreporter.section("assay")
        for line in lines:
            terminalreporter.write_line(line)


def _lines(report: Any) -> list[str]:
    values = [
        str(value) for name, value in report.user_properties if name in (_RUN, _VERDICT, _APPROVALS)
    ]
    runs = zip(values[::3], values[1::3], values[2::3], strict=True)
    mark = "passed" if report.passed else "failed"
    return [
        f"{mark} {report.nodeid} · run {run}\n  {verdict.splitlines()[0]}\n  {given}"
        for run, verdict, given in runs
    ]
