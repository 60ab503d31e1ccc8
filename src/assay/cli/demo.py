"""`assay demo`: try the main workflow on recorded answers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from assay.cli.options import common, workspace
from assay.cli.output import counted, print_json, say, tell
from assay.cli.parameters import option
from assay.cli.progress import progress_on
from assay.domain.review import Approvals
from assay.domain.selection import Selection

if TYPE_CHECKING:
    from assay.app.workspace import Workspace
    from assay.domain.identifiers import RunId

STORE = ".assay/demo.db"


@click.command()
@option(
    "--no-serve", is_flag=True, help="Apply the recorded review, print the statistics and exit."
)
@option("--port", type=int, default=8000, help="Port of the review page; default 8000.")
@common
def demo(no_serve: bool, port: int, store: str | None, as_json: bool) -> int:
    """Run, review and decide on seven Things, three candidates and five trials each.

    No key is needed.

    The judge's answers and the review in --no-serve are recorded; everything else is real.
    """
    from assay.app.runs import demo as verbs

    with workspace(store or STORE, local_only=True, results=False) as opened:
        tell(f"demo: {verbs.SEED_NOTE}")
        with progress_on(sys.stderr) as listener:
            result = verbs.run_demo(opened, listener=listener)
        run = result.summary.id
        waiting = result.summary.assessments.get("pending", 0)  # type: ignore[call-overload] # a StrEnum's value
        wait = f"{counted(waiting, 'assessment')} {'waits' if waiting == 1 else 'wait'}"
        tell(
            f"run {run}: {counted(sum(result.summary.trials.values()), 'trial')} judged; {wait} for review"
        )
        if no_serve:
            return _decided(opened, run, store or STORE, port, as_json=as_json)
        from assay.cli.serve import serve_workspace

        say(
            f"{wait}. Once you have decided a few of them, run: assay stats --run {run} --store {store or STORE}"
        )
        # Never served beyond this machine, because the demo has no token.
        return serve_workspace(opened, host="127.0.0.1", port=port, path=f"/review?run={run}")


def _decided(opened: Workspace, run: RunId, store: str, port: int, *, as_json: bool) -> int:
    from assay.app.review import decisions, review_documents
    from assay.app.runs import demo as verbs
    from assay.app.statistics import results, statistics_documents as statistic_documents
    from assay.cli.statistics import say_standing

    reports = tuple(decisions.assessments(opened.store, Selection(runs=(run,))))
    flagged = [row for row in reports if row.assessment.flags]
    reviewed = verbs.review_demo(opened, run)
    selection = Selection(runs=(run,))
    standing, ranks = (
        results.stats(opened.store, opened.settings, selection),
        results.rank(opened.store, opened.settings, selection),
    )
    names = [candidate.candidate for candidate in ranks.ranking.candidates]
    verdicts = [
        results.compare(opened.store, opened.settings, selection, str(a), str(b)).verdict
        for i, a in enumerate(names)
        for b in names[i + 1 :]
    ]
    if as_json:
        print_json(
            {
                "run_id": run,
                "flagged": [review_documents.assessment_row(row) for row in flagged],
                "stats": statistic_documents.scores_document(standing),
                "rank": statistic_documents.ranking_document(ranks),
                "verdicts": verdicts,
            }
        )
        return 0
    given = Approvals(imported=reviewed.approved + reviewed.corrected)
    say(f"\nFlagged for the reviewer ({len(flagged)} of {len(reports)} reports):")
    for row in flagged:
        say(f"  {row.thing} · trial {row.k} of {row.of}: {row.assessment.flags[0].detail}")
    say(
        f"\nThe recorded review: {results.wording.approvals(given)}; {reviewed.corrected} of them corrected, "
        f"{reviewed.rejected} rejected, {counted(reviewed.rerun, 'rerun')}\n"
    )
    say_standing(standing, ranks, results.leading_verdict(opened.store, ranks))
    say(
        f"\nstatistics: http://127.0.0.1:{port}/results?run={run} after `assay serve --store {store} --port {port}`"
    )
    return 0
