"""Assay: a human-in-the-loop benchmarking engine.

Its typed functions correspond to the commands of the command line::

    import assay

    suite = assay.Suite(
        name="capitals",
        tasks=[{"id": "peru", "prompt": "What is the capital of Peru?", "expected": "Lima"}],
        candidates=["openai/gpt-5-mini", "anthropic/claude-haiku-4-5"],
        score="exact",
    )
    run = assay.run(suite)
    print(run.compare("openai/gpt-5-mini", "anthropic/claude-haiku-4-5").verdict)

The functions are the methods of `assay.Project`, for the project in the current folder. The module
`assay.types` has every class that they take or return. Functions are loaded when first used, so
that `import assay` takes almost no time.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str

    from assay.app.imports.options import ImportOptions
    from assay.app.python_api import review
    from assay.app.python_api.completed_run import CompletedRun
    from assay.app.python_api.drafts import (
        CandidateDraft as Candidate,
        SuiteDraft as Suite,
        TaskDraft as Task,
        scorer,
    )
    from assay.app.python_api.functions import (
        arun,
        calibrate,
        collect_batch,
        compare,
        export,
        extend,
        gate,
        import_results,
        load_suite,
        plan,
        rank,
        regrade,
        resume,
        run,
        stats,
        submit_batch,
    )
    from assay.app.python_api.project import Project
    from assay.app.statistics.results import (
        CandidateScores,
        ComparisonResult,
        GateResult,
        RankingResult,
    )
    from assay.domain.errors import AssayError, InputError, Interrupted
    from assay.domain.run import RunOptions
    from assay.domain.selection import Selection

_VERBS = "assay.app.python_api.functions"
_RESULTS = "assay.app.statistics.results"
_DRAFTS = "assay.app.python_api.drafts"
_PLACES = {
    **dict.fromkeys(
        (
            "arun",
            "calibrate",
            "collect_batch",
            "compare",
            "export",
            "extend",
            "gate",
            "import_results",
            "load_suite",
            "plan",
            "rank",
            "regrade",
            "resume",
            "run",
            "stats",
            "submit_batch",
        ),
        _VERBS,
    ),
    **dict.fromkeys(
        ("CandidateScores", "ComparisonResult", "GateResult", "RankingResult"), _RESULTS
    ),
    **dict.fromkeys(("AssayError", "InputError", "Interrupted"), "assay.domain.errors"),
    "Candidate": f"{_DRAFTS}:CandidateDraft",
    "CompletedRun": "assay.app.python_api.completed_run",
    "ImportOptions": "assay.app.imports.options",
    "Project": "assay.app.python_api.project",
    "RunOptions": "assay.domain.run",
    "Selection": "assay.domain.selection",
    "Suite": f"{_DRAFTS}:SuiteDraft",
    "Task": f"{_DRAFTS}:TaskDraft",
    "scorer": _DRAFTS,
}
"""Module of each public name, and the name inside that module if it differs."""

__all__ = [
    "AssayError",
    "Candidate",
    "CandidateScores",
    "ComparisonResult",
    "CompletedRun",
    "GateResult",
    "ImportOptions",
    "InputError",
    "Interrupted",
    "Project",
    "RankingResult",
    "RunOptions",
    "Selection",
    "Suite",
    "Task",
    "arun",
    "calibrate",
    "collect_batch",
    "compare",
    "export",
    "extend",
    "gate",
    "import_results",
    "load_suite",
    "plan",
    "rank",
    "regrade",
    "resume",
    "review",
    "run",
    "scorer",
    "stats",
    "submit_batch",
]


if not TYPE_CHECKING:  # a type checker would take any name for one of this module

    def __getattr__(name: str) -> Any:
        """Load a public name, or the version of the installed package, on first use."""
        if name == "__version__":
            from importlib.metadata import version  # costs 30 ms, which most commands need not pay

            return version("assay-bench")
        if name not in __all__:
            raise AttributeError(f"module 'assay' has no attribute {name!r}")
        from importlib import import_module

        if name == "review":
            return import_module("assay.app.python_api.review")
        place, _, attribute = _PLACES[name].partition(":")
        return getattr(import_module(place), attribute or name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
