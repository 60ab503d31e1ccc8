"""Entry point to all queries of a store, grouped by subject."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from assay.store.claims.claims import Claims
from assay.store.database.connections import Database
from assay.store.queries.assessments import AssessmentQueries
from assay.store.queries.export_rows import ExportQueries
from assay.store.queries.model_calls import CallQueries
from assay.store.queries.rubrics import RubricQueries
from assay.store.queries.run_record import RecordQueries
from assay.store.queries.runs import RunQueries
from assay.store.queries.scores import ScoreQueries
from assay.store.queries.trials import TrialQueries


@dataclass(frozen=True, slots=True)
class Archive:
    """All queries of a store, with one attribute per subject."""

    runs: RunQueries
    trials: TrialQueries
    assessments: AssessmentQueries
    scores: ScoreQueries
    calls: CallQueries
    rubrics: RubricQueries
    exports: ExportQueries
    records: RecordQueries

    @classmethod
    def of(cls, database: Database, claims: Claims) -> Self:
        return cls(
            runs=RunQueries(database, claims),
            trials=TrialQueries(database),
            assessments=AssessmentQueries(database),
            scores=ScoreQueries(database),
            calls=CallQueries(database),
            rubrics=RubricQueries(database),
            exports=ExportQueries(database),
            records=RecordQueries(database),
        )
