"""`assay enrich`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from assay.cli.options import common, keys_over_http, workspace
from assay.cli.output import answer, counted, dollars, say

if TYPE_CHECKING:
    from assay.app.specialists.enrich import EnrichmentDocument


@click.command()
@click.argument("template", metavar="TEMPLATE")
@click.option("--provider", metavar="NAME", help="Provider of the model; default openrouter, or the one in --model.")
@click.option("--model", metavar="NAME", help="Model that describes the documents; default Claude 3.5 Haiku.")
@click.option("--force", is_flag=True, help="Also enrich documents that are already enriched.")
@click.option("--budget", type=float, metavar="USD", help="Maximum cost of the enrichment.")
@keys_over_http
@common
def enrich(
    template: str, provider: str | None, model: str | None, force: bool, budget: float | None, store: str | None, as_json: bool
) -> int:
    """Let a model describe each document of TEMPLATE, a file or the name of a specialist, for the choice of documents in prompts.

    The result is a new file: enriched/VERSION/enriched-NNN.json5. The exit code is 1 if a document failed.
    """
    from assay.app.specialists.enrich import enrich as enrich_template
    from assay.app.wire import to_json

    with workspace(store, budget=budget) as opened:
        cap = opened.settings.values["budget"]
        done = enrich_template(opened, template, provider=provider, model=model, force=force, budget_usd=cap)
    answer(to_json(done), lambda: _say(done), as_json=as_json)
    return int(done.failed > 0)


def _say(done: EnrichmentDocument) -> None:
    for each in done.documents:
        if each.reason is not None:
            say(f"failed: {each.source}: {each.reason}")
    say(f"enriched template: {done.path}" if done.path else "no enriched template was written")
    reused = f", {counted(done.reused_answers, 'answer')} of an interrupted attempt" if done.reused_answers else ""
    say(f"{done.model}: {counted(done.calls, 'answer')}, {dollars(done.cost_usd)}{reused}")
    say(f"documents enriched: {done.enriched}; already enriched: {done.skipped}; failed: {done.failed}")
