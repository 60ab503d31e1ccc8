"""Find out which judges have a current calibration, for labels, warnings and the tiers that suites
require.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.domain.calibration_record import CalibrationRecord, JudgeIdentity, Tier
from assay.domain.errors import InputError
from assay.domain.identifiers import RunId
from assay.domain.suite import PERSON
from assay.scoring.reference_samples import identity_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from assay.analysis.columns import ScoreColumns
    from assay.domain.run import RunPlan
    from assay.statistics.warnings import Caution
    from assay.store.opening import Store

# Each run read here costs one read of its plan.
_RUNS_LOOKED_AT = 200


class CalibrationStatus:
    """Cached lookup of the current calibration of each judge in a run; `plans` contains run plans
    that were already read.
    """

    def __init__(self, store: Store, *, plans: dict[RunId, RunPlan] | None = None) -> None:
        self._store = store
        self._plans = {} if plans is None else plans
        self._records: dict[JudgeIdentity, CalibrationRecord] | None = None

    def judges_of(self, run: RunId) -> dict[str, CalibrationRecord | None]:
        """Return the current calibration of each judge in a run, by judge name; None for an
        uncalibrated judge.
        """
        plan = self._plans.get(run)
        if plan is None:
            plan = self._plans[run] = self._store.journal.plan_of(run)
        return {
            judge.name: self.current(identity_of(judge, plan.rubric))
            for judge in plan.judges
            if judge.model.provider != PERSON
        }

    def of(self, run: RunId, grader: str) -> CalibrationRecord | None:
        """Return the current calibration of a grader in a run; None for a scorer or an uncalibrated
        judge.
        """
        return self.judges_of(run).get(grader)

    def words_of(self, run: RunId, grader: str) -> str | None:
        """Return the calibration label of a judge in a run, such as `uncalibrated` or `calibrated:
        good`; None for a scorer.
        """
        judges = self.judges_of(run)
        return words(judges[grader]) if grader in judges else None

    def current(self, identity: JudgeIdentity) -> CalibrationRecord | None:
        """Return the newest calibration with exactly these judge settings; None if no calibration
        has them.
        """
        if self._records is None:
            newest = self._store.calibrations.records(newest_only=True)
            self._records = {record.identity: record for record in newest}
        return self._records.get(identity)


def words(record: CalibrationRecord | None) -> str:
    return "uncalibrated" if record is None else f"calibrated: {record.tier.words}"


def uncalibrated(store: Store, columns: ScoreColumns) -> tuple[Caution, ...]:
    """Return a warning that lists the judges with counted grades but no current calibration; empty
    if every judge has one.
    """
    return uncalibrated_judges(
        store, columns.runs, {columns.judges[code] for code in set(columns.judge.tolist())}
    )


def uncalibrated_judges(
    store: Store, runs: Sequence[str], graded: Collection[str]
) -> tuple[Caution, ...]:
    """Return a warning that lists the uncalibrated judges in `graded`; empty if all of them are
    calibrated.
    """
    calibration_status, names = CalibrationStatus(store), dict[str, None]()
    for run in runs[-_RUNS_LOOKED_AT:]:
        judges = calibration_status.judges_of(RunId(run))
        names.update(
            (name, None) for name, record in judges.items() if record is None and name in graded
        )
    if not names:
        return ()
    from assay.statistics.warnings import Caution  # loads NumPy, which most runs do not need

    text = f"{', '.join(names)}: no calibration matches the rubric, prompt and parameters used; run `assay calibrate`."
    return (Caution(code="uncalibrated_judge", text=text),)


def check_demands(store: Store, plan: RunPlan) -> None:
    """Raise `InputError` if a judge's current calibration is below the tier that the suite
    requires.
    """
    calibration_status = CalibrationStatus(store)
    for judge in plan.judges:
        if judge.require_calibration is None:
            continue
        wanted = Tier(judge.require_calibration)
        record = calibration_status.current(identity_of(judge, plan.rubric))
        if record is not None and record.tier.reaches(wanted):
            continue
        problem = (
            "has no current calibration"
            if record is None
            else f"was calibrated as {record.tier.words}"
        )
        problem = f"{problem}, but the suite requires at least {wanted.words}."
        remedy = f"Calibrate it: assay calibrate {judge.model.ref} --suite {plan.copy.path} (may need more samples)"
        raise InputError(f"judge {judge.name}", problem, remedy=remedy)
