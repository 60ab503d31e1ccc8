"""`assay enrich`, `assay mint` and `assay mint-verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from assay.cli.options import common, file_option, keys_over_http, workspace
from assay.cli.output import answer, counted, dollars, say, say_table, tell
from assay.cli.parameters import argument, option
from assay.cli.statistics import EXIT_GATE_CLOSED

if TYPE_CHECKING:
    from assay.app.specialists.enrich import EnrichmentDocument
    from assay.app.specialists.mint import MintDocument


@click.command()
@argument("template", required=False, metavar="TEMPLATE")
@option("--batch-id", metavar="ID", help="The batch whose runs measured the specialist.")
@option("--output", metavar="DIR", help="Folder for NAME/VERSION/snapshot-NNN.json5.")
@option(
    "--require",
    type=click.Choice(["decided", "vetted"]),
    multiple=True,
    help="Write nothing: exit 3 unless the comparison is decided; exit 2 unless people read each model's grades on a screen.",
)
@option(
    "--no-enriched", is_flag=True, help="Use the template itself, not its newest enriched version."
)
@file_option("--key", about="Sign with this private key; see --new-key.")
@option(
    "--pending",
    is_flag=True,
    help="List the recorded mints, and mint those whose reviews are complete.",
)
@file_option("--new-key", about="Make a key pair: a private FILE and FILE.pub.")
@common
def mint(
    template: str | None,
    batch_id: str | None,
    output: str | None,
    require: tuple[str, ...],
    no_enriched: bool,
    key: Path | None,
    pending: bool,
    new_key: Path | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Write a snapshot of a specialist: TEMPLATE with the results of a batch, and what they do and
    do not show.

    While grades of the batch are pending, the mint is recorded and carried out at the last
    decision.
    """
    whole = template is not None and batch_id is not None and output is not None
    given = any(value is not None for value in (template, batch_id, output))
    if (pending + (new_key is not None) + given) != 1 or given != whole:
        problem = (
            "Give TEMPLATE with --batch-id and --output, or only --pending, or only --new-key FILE."
        )
        raise click.UsageError(problem, click.get_current_context())
    if new_key is not None:
        from assay.app.specialists.mint import make_key

        public = make_key(new_key)
        text = f"private key: {new_key}; keep it to yourself\npublic key: {public}; give it to those who verify"
        return answer(
            {"private": str(new_key), "public": str(public)}, lambda: say(text), as_json=as_json
        )
    from assay.app.specialists.waiting import mint_or_wait, mint_recorded
    from assay.domain.observations import MintRequested

    with workspace(store) as opened:
        if pending:
            results = mint_recorded(opened)
            lines = [outcome(result) for result in results] or ["No mint is recorded."]
            answer({"mints": results}, lambda: say("\n".join(lines)), as_json=as_json)
            return int(any(result.problem for result in results))
        request = MintRequested(
            batch_id=str(batch_id),
            template=str(template),
            output=str(output),
            key=None if key is None else str(key),
            enriched=not no_enriched,
            require_decided="decided" in require,
            require_vetted="vetted" in require,
        )
        minted = mint_or_wait(opened, request)
    answer(minted, lambda: say_mint(minted), as_json=as_json)
    return EXIT_GATE_CLOSED if minted.state == "not_decided" else 0


def say_mint(result: MintDocument) -> None:
    """Print the outcome of a mint and, if there is one, its evidence."""
    say(outcome(result), colour="green" if result.path else None)
    if isinstance(result.evidence, dict):
        say(result.evidence["statement"])
        say(
            "\n".join(
                [
                    *result.evidence["shows"],
                    *(f"not shown: {gap}" for gap in result.evidence["does_not_show"]),
                ]
            )
        )
    if result.path and result.public_key is None:
        tell(
            "note: the snapshot is not signed, so anyone can change it and recompute its SHA-256; sign with --key FILE"
        )


def outcome(result: MintDocument) -> str:
    """Describe the outcome of a mint in one line."""
    name = f"{result.specialist} {result.version}"
    if result.problem:
        return f"batch {result.batch_id} is not minted: {result.problem}"
    if result.state == "waiting":
        where = f" on {result.server}" if result.server else ""
        why = f"batch {result.batch_id} has {result.waiting:,} grades to review or runs to finish{where}"
        if result.server:
            return f"{name} is not minted yet, because {why}. The mint is recorded; after the review: assay mint --pending"
        return f"{name} is not minted yet, because {why}. The mint is recorded and happens at the last decision."
    return (
        f"minted {name}: {result.path}"
        if result.path
        else f"{name} was not minted, because the comparison is not decided."
    )


@click.command("mint-verify")
@argument("snapshot", metavar="FILE", type=click.Path(path_type=Path))
@file_option(
    "--key", about="Public key that must have signed it: FILE.pub from a person whom you trust."
)
@option(
    "--strict",
    is_flag=True,
    help="Fail also if a check was not possible, such as the signature without --key.",
)
@common
def mint_verify(
    snapshot: Path, key: Path | None, strict: bool, store: str | None, as_json: bool
) -> int:
    """Verify a snapshot: its bytes, signature and place, and that its numbers follow from the runs
    in the store.

    Exit 0 if no check fails, otherwise 3. Checks that were not possible are listed; with --strict
    they fail too.
    """
    from assay.app.specialists.verify import verify

    with workspace(store) as opened:
        verified = verify(opened.store, snapshot, key, strict=strict)

    def tabled() -> None:
        say_table(
            ("check", "result", "detail"),
            [(c.check, c.result.replace("_", " "), c.detail) for c in verified.checks],
        )
        result, colour = (
            ("no check failed", "green") if verified.valid else ("verification failed", "red")
        )
        left = f"; not checked: {', '.join(verified.not_checked)}" if verified.not_checked else ""
        say(f"{result}{left}", colour=colour, bold=True)

    answer(verified, tabled, as_json=as_json)
    return 0 if verified.valid else EXIT_GATE_CLOSED


@click.command()
@argument("template", metavar="TEMPLATE")
@option(
    "--provider",
    metavar="NAME",
    help="Provider of the model; default openrouter, or the provider in --model.",
)
@option(
    "--model", metavar="NAME", help="Model that describes the documents; default Claude 3.5 Haiku."
)
@option("--force", is_flag=True, help="Also enrich documents that are already enriched.")
@option("--budget", type=float, metavar="USD", help="Maximum cost of the enrichment.")
@keys_over_http
@common
def enrich(
    template: str,
    provider: str | None,
    model: str | None,
    force: bool,
    budget: float | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Let a model describe each document of TEMPLATE (a file or a specialist), so that prompts can
    include fitting documents.

    The result is a new file: enriched/VERSION/enriched-NNN.json5. The exit code is 1 if a document
    failed.
    """
    from assay.app.specialists.enrich import enrich as enrich_template

    with workspace(store, budget=budget) as opened:
        cap = opened.settings.values["budget"]
        done = enrich_template(
            opened, template, provider=provider, model=model, force=force, budget_usd=cap
        )
    answer(done, lambda: _say_enriched(done), as_json=as_json)
    return int(done.failed > 0)


def _say_enriched(done: EnrichmentDocument) -> None:
    for each in done.documents:
        if each.reason is not None:
            say(f"failed: {each.source}: {each.reason}")
    say(f"enriched template: {done.path}" if done.path else "no enriched template was written")
    reused = (
        f", {counted(done.reused_answers, 'answer')} from an interrupted attempt"
        if done.reused_answers
        else ""
    )
    say(f"{done.model}: {counted(done.calls, 'answer')}, {dollars(done.cost_usd)}{reused}")
    say(
        f"documents enriched: {done.enriched}; already enriched: {done.skipped}; failed: {done.failed}"
    )
