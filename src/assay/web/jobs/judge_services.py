"""Services shared by the pages about judges, created once per server: models, rubrics and
calibrations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.app.calibration.records import Calibrations
from assay.app.registry.models import Models
from assay.app.registry.rubrics import Criteria
from assay.app.runs.plan_cache import Plans
from assay.web.jobs.calibrations import Measuring

if TYPE_CHECKING:
    from fastapi import Request

    from assay.app.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """Services of the pages about judges, kept in `app.state.judging`."""

    models: Models
    criteria: Criteria
    calibrations: Calibrations
    measuring: Measuring


def judging(workspace: Workspace) -> Judging:
    plans = Plans(workspace.store)
    return Judging(
        models=Models(workspace, plans),
        criteria=Criteria(workspace.store),
        calibrations=Calibrations(workspace.store, plans),
        measuring=Measuring(workspace),
    )


def judging_of(request: Request) -> Judging:
    services: Judging = request.app.state.judging
    return services
