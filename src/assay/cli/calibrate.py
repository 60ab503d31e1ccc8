"""`assay calibrate`: measure a judge, and list stored calibrations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from assay.app.calibration.calibration_request import CalibrationRequest
from assay.cli.options import common, file_option, keys_over_http, workspace
from assay.cli.output import answer, asked, complain, counted, say, say_table, tell
from assay.cli.parameters import argument, option
from assay.cli.requests import takes
from assay.domain.errors import Unanswered

if TYPE_CHECKING:
    from assay.analysis.figures import Figure
    from assay.app.calibration.setup import Calibrated, Foreseen
    from assay.domain.calibration_record import CalibrationRecord

_WHY_NOT = {
    "no_pairs": "not measured: no answers to compare",
    "no_twins": "not measured: no sample has a shorter version",
    "judged_once": "not measured: add --repeat 3",
    "too_few_corrections_of_own_family_and_others": "not measured: too few corrected grades for the judge's and for other families",
    "judge_has_no_variation": "none: the judge gave every answer the same score",
    "no_variation": "none: all references have the same expected score",
    "need_at_least_3_pairs": "none: fewer than three references",
}


@click.command()
@takes(CalibrationRequest)
@argument("model", metavar="MODEL", required=False)
@file_option(
    "--samples",
    about="Reference samples to use instead of the built-in ones: JSONL, CSV or YAML, or an imported RUN that people graded.",
)
@option(
    "--built-in",
    "with_built_in",
    is_flag=True,
    help="With --samples: use the built-in samples too.",
)
@file_option("--suite", about="Measure with this suite's rubric, prompt and settings.")
@option(
    "--repeat",
    type=int,
    default=1,
    metavar="N",
    help="Judge each reference N times to measure the spread.",
)
@option(
    "--budget", "budget_usd", type=float, metavar="USD", help="Maximum cost of the calibration."
)
@option(
    "--dry-run", is_flag=True, help="Show the planned calls and their cost without making them."
)
@option("--list", "as_list", is_flag=True, help="List stored calibrations, newest first.")
@keys_over_http
@common
def calibrate(
    request: CalibrationRequest,
    model: str | None,
    dry_run: bool,
    as_list: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Measure the judge MODEL against references with known scores, and against people's
    corrections.

    Without --suite, the prompt and rubric come from the newest run that the judge graded, or are
    Assay's own. The result applies only to this model, prompt, rubric and parameters.
    """
    from assay.app.calibration import calibration_documents, measure

    if request.with_built_in and request.samples is None:
        raise click.UsageError("--built-in needs --samples.", click.get_current_context())
    with workspace(store) as opened:
        if as_list:
            stored = measure.records(opened.store, model=model)
            listed = {
                "calibrations": [calibration_documents.record_document(record) for record in stored]
            }
            return answer(listed, lambda: _say_records(stored), as_json=as_json)
        if model is None:
            usage = "give the MODEL to measure, for example openai/gpt-4o-mini."
            raise click.UsageError(usage, click.get_current_context())
        if dry_run:
            return _say_estimate(measure.foreseen(opened, model, request), as_json=as_json)
        try:
            done = measure.calibrate(opened, model, request)
        except Unanswered as error:
            complain(str(error), as_json=as_json)
            return 1
    answer(calibration_documents.calibration_document(done), lambda: _say(done), as_json=as_json)
    return int(bool(done.failures))


def _say_estimate(ahead: Foreseen, *, as_json: bool) -> int:
    from assay.app.calibration import calibration_documents
    from assay.app.runs.cost_estimate import over_budget

    setting = ahead.setting
    for warning in over_budget(ahead.estimate, ahead.cap_usd):
        tell(f"note: {warning}")
    n = counted(len(ahead.references), "reference")
    text = f"{setting.judge.model.ref}, as in {setting.source}: {n}, {asked(ahead.estimate)}"
    if ahead.taken_over:
        text += f"\n{ahead.taken_over} answers from an interrupted attempt are reused"
    return answer(calibration_documents.planned_calibration(ahead), text, as_json=as_json)


def _say(done: Calibrated) -> None:
    trust = done.trust
    say(f"{done.record.identity.model}, as in {done.setting.source}: {trust.tier.words}")
    if trust.tier is not trust.tier_at_face_value:
        say(
            f"  the point estimates say {trust.tier_at_face_value.words}, but {trust.n} references are too few to show it"
        )
    rows = [
        (
            reference.id,
            reference.kind,
            f"{100 * reference.reference:.0f}",
            _judged(reference),
            "yes" if reference.passed else "no",
        )
        for reference in done.judged[:60]
    ]
    say_table(
        ("reference", "kind", "deserves", "judged", "within tolerance"),
        rows,
        numbers=frozenset({2, 3}),
    )
    say()
    say(
        f"within tolerance: {_share(trust.pass_rate)}; with empty answers counted as passed: "
        f"{_share(trust.pass_rate_with_bypassed)}"
    )
    largest = "–" if trust.max_error is None else f"{100 * trust.max_error:.1f} points"
    say(
        f"mean error {_points(trust.mae)}; largest {largest}; bias {_points(trust.bias, signed=True)}"
    )
    say(f"Pearson {_ratio(trust.pearson)}; Spearman {_ratio(trust.spearman)}")
    say(
        f"order: swapping the two answers changed the winner in {_share(trust.position_flips)}; "
        f"being first is worth {_points(trust.first_place_bonus, signed=True)}"
    )
    say(
        f"length: longer versions of the same answer get {_points(trust.length_bias, signed=True)} more than they deserve"
    )
    say(
        f"own family: {_points(trust.self_preference, signed=True)} more than the judge gives other model families"
    )
    say(f"repeated judging: standard deviation {_points(trust.repeat_sd)}")
    if trust.unread:
        say(f"{trust.unread} replies could not be parsed and count as outside tolerance")
    for name, failure in done.failures[:10]:
        say(f"  failed: {name}: {failure.kind} ({failure.fault}): {failure.detail}")
    if trust.more_pairs:
        say(
            f"{trust.n} references; {trust.more_pairs} more are needed to show that a judge is excellent"
        )
    if done.taken_over:
        say(f"{done.taken_over} of {done.calls} answers are from an interrupted attempt")
    say(
        f"stored as version {done.record.version}; it is valid only for this model, prompt, rubric and parameters"
    )


def _say_records(records: tuple[CalibrationRecord, ...]) -> None:
    if not records:
        say("no judge has been calibrated yet; run `assay calibrate MODEL`")
        return
    rows = [
        (
            record.identity.model,
            record.tier.words,
            str(record.document.get("n", "")),
            str(record.document.get("settings_of", "")),
            f"{record.identity.rubric[:6]} {record.identity.prompt[:6]} {record.identity.parameters[:6]}",
            str(record.version),
            record.at,
        )
        for record in records
    ]
    header = ("judge", "tier", "references", "as in", "rubric, prompt, parameters", "version", "at")
    say_table(header, rows, numbers=frozenset({2, 5}))


def _judged(reference: Any) -> str:
    if reference.bypassed:
        return "not asked"
    return "unread" if reference.judged is None else f"{100 * reference.judged:.0f}"


def _why_not(figure: Figure) -> str:
    return _WHY_NOT.get(figure.reason or "", figure.reason or "not measured")


def _share(figure: Figure) -> str:
    if figure.value is None:
        return _why_not(figure)
    low, high = figure.ci95 or (figure.value, figure.value)
    return (
        f"{100 * figure.value:.0f}% of {figure.n} (95% range {100 * low:.0f} to {100 * high:.0f})"
    )


def _points(figure: Figure, *, signed: bool = False) -> str:
    if figure.value is None:
        return _why_not(figure)
    sign = "+" if signed else ""
    low_high = () if figure.ci95 is None else (f"{100 * end:{sign}.1f}" for end in figure.ci95)
    ranged = " to ".join(low_high)
    return f"{100 * figure.value:{sign}.1f} points" + (f" ({ranged})" if ranged else "")


def _ratio(figure: Figure) -> str:
    if figure.value is None:
        return _why_not(figure)
    ranged = "" if figure.ci95 is None else f" ({figure.ci95[0]:.2f} to {figure.ci95[1]:.2f})"
    return f"{figure.value:.2f}{ranged}"
