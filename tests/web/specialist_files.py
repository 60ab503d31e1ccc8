"""Files of a specialist in a project: an enriched template and snapshots, as `assay enrich` and
`assay mint` write them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assay.app.specialists.evidence import benchmarks_of
from assay.app.specialists.numbered_files import write_numbered
from assay.specialists.snapshots import laid_out, numbered, seal
from assay.specialists.templates import read_template

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from assay.specialists.signatures import SigningKey

NAME = "@org/react-expert"
TEMPLATE = """{
  name: "@org/react-expert",
  version: "1.0.0",
  persona: {purpose: "Build React interfaces with accessible components"},
  capabilities: {tags: ["react", "ui"]},
  preferred_models: ["anthropic/claude-sonnet-4.5", {model: "openai/gpt-4o"}],
  documentation: [
    {
      url: "https://react.dev/reference/react",
      enrichment: {
        summary: "Reference of hooks, components and APIs, with rules on purity and effects.",
        enriched_at: "2026-01-31T12:00:00Z",
        model_used: "anthropic/claude-haiku",
      },
    },
    {path: "docs/house-style.md"},
  ],
}
"""


def write_template(project: Path) -> Path:
    """Write the template to a project, and return its path."""
    path = project / "templates" / "react-expert.json5"
    path.parent.mkdir(exist_ok=True)
    path.write_text(TEMPLATE, "utf-8")
    return path


def write_snapshot(
    project: Path,
    baseline: Sequence[float],
    specialist: Sequence[float],
    *,
    models: Sequence[str] = ("claude-sonnet-4.5",),
    key: SigningKey | None = None,
    change: Callable[[Any], None] = lambda content: None,
) -> Path:
    """Write a snapshot of the template with runs of these scores per model, and return its path."""
    template = read_template(project / "templates" / "react-expert.json5")
    runs = [
        _run(f"{side}-{model}-{n}", score - 0.03 * place, model, specialist=side == "mine")
        for place, model in enumerate(models)
        for side, scores in (("base", baseline), ("mine", specialist))
        for n, score in enumerate(scores)
    ]
    benchmarks, verdict = benchmarks_of(runs, template.name, template.version)
    decided = benchmarks["comparison"]["test"]["decision"] != "not_decided"
    gaps = ["Anything about other scenarios, because both worked on one scenario only."]
    content = {
        **template.document,
        "benchmarks": benchmarks,
        "evidence": {
            "removed_runs": {"deleted": 0, "archived": 0, "replaced": 0, "runs": []},
            "decided": decided,
            "statement": verdict,
            "shows": [f"{len(runs)} runs count."],
            "does_not_show": [
                *([] if decided else ["That the specialist is better or worse than the baseline."]),
                *gaps,
            ],
        },
        "validity": {
            "valid_for": {
                "template": {
                    "name": template.name,
                    "version": template.version,
                    "digest": template.digest,
                },
                "suites": [],
                "models": list(models),
                "judges": [],
            },
            "valid_until": "2099-01-01T00:00:00Z",
        },
        "snapshot_metadata": {
            "created_at": "2026-02-01T09:30:00Z",
            "minted_by": "Assay",
            "template_version": template.version,
            "template_digest": template.digest,
            "batch_id": "comparison",
        },
    }
    change(content)
    folder = project / "snapshots" / "react-expert" / "1.0.0"
    return write_numbered(
        folder,
        "snapshot",
        lambda number, before: laid_out(seal(numbered(content, number, before), key)),
    )


def _run(name: str, score: float, model: str, *, specialist: bool) -> dict[str, Any]:
    own = {"specialist_name": NAME, "specialist_version": "1.0.0"} if specialist else {}
    return {
        "run_id": name,
        "run_date": "2026-01-31T10:00:00Z",
        "suite": "update-deps",
        "scenario": "nx-monorepo",
        "tier": "L1",
        "agent": "anthropic",
        "model": model,
        "trial": 1,
        "overall_score": score,
        "is_successful": True,
        "specialist_enabled": specialist,
        **own,
        "evaluations": {},
        "review": "rule",
        "telemetry": {
            "duration_ms": 45000,
            "token_usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            "tool_calls": 3,
            "cost_usd": 0.01,
        },
    }
