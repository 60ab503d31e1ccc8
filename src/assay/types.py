"""Classes and types that the functions of Assay take or return, to annotate your own code with.

The checked forms of a suite and a task are `CheckedSuite` and `CheckedTask`, because `assay.Suite`
and `assay.Task` are the drafts that a program writes. The records of the statistics are in
`assay.statistics`.
"""

from typing import TypeAlias

from assay.analysis.agreement import (
    JudgeAgainstPeople as JudgeAgainstPeople,
    JudgesAmongThemselves as JudgesAmongThemselves,
)
from assay.analysis.anytime import Anytime as Anytime, Looks as Looks
from assay.analysis.costs import TrialCost as TrialCost
from assay.analysis.diagnostics import (
    ComparisonDiagnostics as ComparisonDiagnostics,
    ScoreDiagnostics as ScoreDiagnostics,
    Split as Split,
    VerdictDiagnostics as VerdictDiagnostics,
)
from assay.analysis.fair_play import (
    FairPlay as FairPlay,
    PairRejection as PairRejection,
    ReviewRates as ReviewRates,
)
from assay.analysis.figures import Figure as Figure
from assay.analysis.judge_errors import JudgedReference as JudgedReference, Trust as Trust
from assay.analysis.partial_review import (
    CalibratedPair as CalibratedPair,
    CalibratedRank as CalibratedRank,
    CalibratedRanking as CalibratedRanking,
    PartlyReviewed as PartlyReviewed,
)
from assay.analysis.positions import JudgePositions as JudgePositions
from assay.analysis.references import JudgeAgainstReferences as JudgeAgainstReferences
from assay.analysis.verdict_agreement import VerdictAgreement as VerdictAgreement
from assay.analysis.verdict_rates import (
    CandidateVerdicts as CandidateVerdicts,
    RateDifference as RateDifference,
    VerdictComparison as VerdictComparison,
    VerdictRate as VerdictRate,
    VerdictRates as VerdictRates,
)
from assay.app.calibration.setup import Calibrated as Calibrated, JudgeSetting as JudgeSetting
from assay.app.exports.exporters import Exported as Exported
from assay.app.imports.options import ImportResult as ImportResult, ReplacedRun as ReplacedRun
from assay.app.imports.original_files import OriginalFile as OriginalFile
from assay.app.python_api.drafts import (
    CandidateLike as CandidateLike,
    Score as Score,
    ScorerDraft as ScorerDraft,
    SuiteLike as SuiteLike,
)
from assay.app.python_api.project import Folder as Folder
from assay.app.python_api.review_desk import ReviewDesk as ReviewDesk
from assay.app.runs.causes import Cause as Cause, Pause as Pause
from assay.app.runs.execution import RunResult as RunResult
from assay.app.runs.regrade import (
    Conclusion as Conclusion,
    GradeChange as GradeChange,
    Regraded as Regraded,
)
from assay.app.statistics.basis import Basis as Basis, StillOpen as StillOpen
from assay.app.statistics.notebooks import Frame as Frame, FrameLibrary as FrameLibrary
from assay.app.statistics.power import (
    PairPlan as PairPlan,
    PowerPlan as PowerPlan,
    SampleSize as SampleSize,
)
from assay.domain.agent_limits import AgentLimits as AgentLimits, Spent as Spent
from assay.domain.assessment import (
    Assessment as Assessment,
    Flag as Flag,
    FlagKind as FlagKind,
    Grade as Grade,
    Response as Response,
    Verification as Verification,
)
from assay.domain.attention import Attention as Attention
from assay.domain.calibration_record import (
    CalibrationRecord as CalibrationRecord,
    JudgeIdentity as JudgeIdentity,
    Tier as Tier,
)
from assay.domain.calls import Role as Role
from assay.domain.conversation import SimulatedUser as SimulatedUser, Turn as Turn
from assay.domain.events import (
    CallEnded as CallEnded,
    Event as Event,
    Listener as Listener,
    RunEnded as RunEnded,
    RunStarted as RunStarted,
    TrialEnded as TrialEnded,
)
from assay.domain.failure import Failure as Failure, Fault as Fault
from assay.domain.first_look import (
    FirstLook as FirstLook,
    SampleAnswer as SampleAnswer,
    Sign as Sign,
    SignKind as SignKind,
)
from assay.domain.identifiers import (
    AssessmentKey as AssessmentKey,
    RunId as RunId,
    TrialKey as TrialKey,
)
from assay.domain.import_records import Held as Held, Noted as Noted, Skipped as Skipped
from assay.domain.lifecycle import (
    AssessmentPurpose as AssessmentPurpose,
    AssessmentState as AssessmentState,
    Policy as Policy,
    RunState as RunState,
    TrialState as TrialState,
    Verb as Verb,
)
from assay.domain.margins import Margin as Margin
from assay.domain.model import ModelSpec as ModelSpec, Parameters as Parameters, Price as Price
from assay.domain.one_or_many import Identifier as Identifier, OneOrMany as OneOrMany
from assay.domain.programs import (
    Agent as Agent,
    Command as Command,
    Function as Function,
    WebService as WebService,
)
from assay.domain.protocol import Protocol as Protocol
from assay.domain.remaining_cost import CallsAhead as CallsAhead, RemainingCost as RemainingCost
from assay.domain.review import (
    Approvals as Approvals,
    Decision as Decision,
    Outcome as Outcome,
    ReviewEvent as ReviewEvent,
    Road as Road,
    Via as Via,
)
from assay.domain.review_sample import (
    ReviewRule as ReviewRule,
    ReviewSample as ReviewSample,
    SampledBy as SampledBy,
)
from assay.domain.run_choice import (
    ChosenRuns as ChosenRuns,
    RunChoice as RunChoice,
    RunRead as RunRead,
    RunsRead as RunsRead,
)
from assay.domain.scenarios import (
    CheckCommand as CheckCommand,
    EvaluatorSpec as EvaluatorSpec,
    Scenario as Scenario,
)
from assay.domain.selection import (
    AssessmentDetail as AssessmentDetail,
    AssessmentRow as AssessmentRow,
    Excluded as Excluded,
    RunSummary as RunSummary,
    StartedFrom as StartedFrom,
    TrialRow as TrialRow,
)
from assay.domain.structure import Structuring as Structuring
from assay.domain.suite import (
    CandidateSpec as CandidateSpec,
    Criterion as Criterion,
    Image as Image,
    JudgeMode as JudgeMode,
    JudgeSpec as JudgeSpec,
    Message as Message,
    ReviewOrder as ReviewOrder,
    Rubric as Rubric,
    Scoring as Scoring,
    Snippet as Snippet,
    SourceFile as SourceFile,
    Suite as _Suite,
    SuiteCopy as SuiteCopy,
    Task as _Task,
)
from assay.domain.tools import CannedAnswer as CannedAnswer, CannedTool as CannedTool, Tool as Tool
from assay.domain.verdicts import Verdict as Verdict, VerdictRules as VerdictRules

CheckedSuite: TypeAlias = _Suite
"""A suite that was read and checked, as `assay.load_suite` returns it."""

CheckedTask: TypeAlias = _Task
"""A task of a checked suite."""
