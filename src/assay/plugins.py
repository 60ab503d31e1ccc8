"""The one door for authors of plug-ins: every name that a plug-in needs, and nothing else of Assay.

A package offers a plug-in through an entry point, for example

    [project.entry-points."assay.scorers"]
    words_present = "my_package.scorer:words_present"

and `assay plugins` lists it once the package is installed. Contract tests for plug-ins are in
`assay.testing`. Names are loaded on first use, so importing this module takes almost no time.

A scorer (`assay.scorers`) is a `PluginScorer`; a suite names it as `score: words_present`::

    def words_present(response: str, reference: str, options: Mapping[str, JsonValue], /) -> object:
        words = reference.lower().split()
        return sum(word in response.lower() for word in words) / len(words) if words else None

A grader (`assay.graders`) is a `Grader`, which gives a score and a reason for each criterion::

    def manners(
        task: Mapping[str, JsonValue], response: str, options: Mapping[str, JsonValue], /
    ) -> Mapping[str, object]:
        return {"greets": {"score": float(response.startswith("Hello")), "reason": "First word."}}

A provider (`assay.providers`) is a `ProviderOpener`; its models are written `NAME/MODEL`::

    class Shouting:
        async def complete(self, request: ModelRequest, /) -> Reply:
            return Reply(text=request.messages[-1].content.upper(), cost_usd=0.0)

        async def close(self) -> None: ...

    def open_shouting(model: ModelSpec, context: ProviderContext, /) -> Shouting:
        return Shouting()

A judge is a provider whose models serve as judges (`judges: [{model: lenient/any}]`). It finds the
form of the answer in `request.schema` and returns it as JSON::

    async def complete(self, request: ModelRequest, /) -> Reply:
        return Reply(text='{"grades": [...]}', cost_usd=0.0)

An agent that answers prompts (`assay.agents`) is a function or class as in `python:`; a suite names
it as `agent: greeter`::

    def greet(task: dict[str, JsonValue]) -> str:
        return f"Hello, {task['prompt']}"

An agent that works in a workspace (`assay.workspace_agents`) is a class that follows
`WorkingAgent`::

    class Scribe:
        needs = AgentNeeds()

        def __init__(self, words: str, folder: Path) -> None: ...

        async def work(
            self, prompt: str, scenario: Scenario, workspace: OpenWorkspace
        ) -> tuple[str, str]:
            result = await workspace.shell.run("touch done.txt")
            return "Wrote done.txt.", "done" if result.succeeded else "failed"

An importer (`assay.importers`) is a module that follows `Importer`::

    NAME = "tally"

    def recognise(sample: FileSample, /) -> float | None:
        return 0.9 if sample.text.startswith("TALLY 1") else None

    def read(source: InputFile, options: ReadOptions, /) -> Iterator[Found]:
        yield FoundRun(suite=options.dataset or source.stem, format=NAME)
        ...

An exporter (`assay.exporters`) is an `Exporter`; `assay export lines` calls it::

    def export_lines(request: ExportRequest, /) -> Exported:
        rows = 0
        with request.open_output() as output:
            for row in request.score_rows():
                output.write(f"{row.task} {row.candidate} {row.score}\\n")
                rows += 1
        return Exported(format=request.format, output=request.output, rows=rows, unseen=None)

An evaluator of workspaces (`assay.evaluators`) is a `WorkspaceEvaluator`; a scenario lists it by
its name, with a weight::

    def small_change(
        report: WorkspaceReport, options: Mapping[str, JsonValue], /
    ) -> tuple[float, str]:
        lines = sum(line.startswith(("+", "-")) for line in report.diff.splitlines())
        return float(lines <= 20), f"{lines} changed lines."

A page (`assay.pages`) is a `PagePlugin`, which the server shows at `/pages/NAME`::

    def means(project: Project, /) -> PluginPage:
        rows = tuple((str(each.candidate), each.mean) for each in project.stats().estimates)
        table = PageSection(columns=("candidate", "mean"), rows=rows)
        return PluginPage(title="Means", sections=(table,))

A command (`assay.commands`) is a `click.Command`; `assay best` calls it. `Project` has the verbs::

    @click.command()
    def best() -> None:
        for estimate in Project().stats().estimates:
            click.echo(f"{estimate.candidate} {estimate.mean}")
"""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from assay.agents.workspaces import (
        PROMPT as PROMPT,
        AgentNeeds as AgentNeeds,
        OpenWorkspace as OpenWorkspace,
        Work as Work,
        WorkingAgent as WorkingAgent,
    )
    from assay.app.exports.exporters import (
        Exported as Exported,
        Exporter as Exporter,
        ExportRequest as ExportRequest,
        OpenOutput as OpenOutput,
    )
    from assay.app.exports.pseudonyms import Anonymiser as Anonymiser
    from assay.app.python_api.project import Project as Project
    from assay.app.surface_plugins import (
        PagePlugin as PagePlugin,
        PageSection as PageSection,
        PluginPage as PluginPage,
    )
    from assay.app.workspace import Workspace as Workspace
    from assay.domain.agent_limits import AgentLimits as AgentLimits, Spent as Spent
    from assay.domain.budget import Booking as Booking
    from assay.domain.calls import (
        AnswerSchema as AnswerSchema,
        ModelRequest as ModelRequest,
        Purpose as Purpose,
        Reply as Reply,
        Role as Role,
        Usage as Usage,
    )
    from assay.domain.conversation import SimulatedUser as SimulatedUser, Turn as Turn
    from assay.domain.digest import JsonValue as JsonValue, digest as digest
    from assay.domain.errors import (
        AssayError as AssayError,
        InputError as InputError,
        Refused as Refused,
        SettingsError as SettingsError,
        UnknownName as UnknownName,
        did_you_mean as did_you_mean,
    )
    from assay.domain.failure import CallFailed as CallFailed, Failure as Failure, Fault as Fault
    from assay.domain.identifiers import AssessmentKey as AssessmentKey, RunId as RunId
    from assay.domain.import_records import (
        Found as Found,
        FoundAssessment as FoundAssessment,
        FoundAtEnd as FoundAtEnd,
        FoundCandidate as FoundCandidate,
        FoundGrade as FoundGrade,
        FoundResponse as FoundResponse,
        FoundRun as FoundRun,
        FoundScores as FoundScores,
        FoundTask as FoundTask,
        GradedBy as GradedBy,
        Held as Held,
        Noted as Noted,
        Skipped as Skipped,
    )
    from assay.domain.lifecycle import (
        AssessmentState as AssessmentState,
        Policy as Policy,
        RunState as RunState,
        TrialState as TrialState,
    )
    from assay.domain.model import ModelSpec as ModelSpec, Parameters as Parameters, Price as Price
    from assay.domain.programs import (
        Agent as Agent,
        Command as Command,
        Function as Function,
        WebService as WebService,
    )
    from assay.domain.review import Approvals as Approvals, Road as Road
    from assay.domain.review_sample import (
        ReviewRule as ReviewRule,
        ReviewSample as ReviewSample,
        SampledBy as SampledBy,
    )
    from assay.domain.run import RunPlan as RunPlan
    from assay.domain.run_choice import (
        ChosenRuns as ChosenRuns,
        RunChoice as RunChoice,
        RunRead as RunRead,
        RunsRead as RunsRead,
    )
    from assay.domain.sandbox import (
        CommandEnd as CommandEnd,
        CommandResult as CommandResult,
        Gateway as Gateway,
    )
    from assay.domain.scenarios import (
        CheckCommand as CheckCommand,
        CheckOutcome as CheckOutcome,
        CommandKind as CommandKind,
        EvaluatorSpec as EvaluatorSpec,
        Scenario as Scenario,
        Step as Step,
        WorkspaceReport as WorkspaceReport,
    )
    from assay.domain.secret_masking import masked_line as masked_line
    from assay.domain.selection import (
        NotCounted as NotCounted,
        RunSummary as RunSummary,
        ScoreRow as ScoreRow,
        Selection as Selection,
        StartedFrom as StartedFrom,
    )
    from assay.domain.structure import Structuring as Structuring
    from assay.domain.suite import (
        CandidateSpec as CandidateSpec,
        Criterion as Criterion,
        Image as Image,
        JudgeMode as JudgeMode,
        JudgeSpec as JudgeSpec,
        Message as Message,
        Rubric as Rubric,
        Scoring as Scoring,
        Snippet as Snippet,
        SourceFile as SourceFile,
        SuiteCopy as SuiteCopy,
        Task as Task,
        ToolMessage as ToolMessage,
    )
    from assay.domain.tools import (
        CannedAnswer as CannedAnswer,
        CannedTool as CannedTool,
        Tool as Tool,
        ToolCall as ToolCall,
        ToolResult as ToolResult,
    )
    from assay.domain.verdicts import Verdict as Verdict, VerdictRules as VerdictRules
    from assay.exchange.importers import (
        Importer as Importer,
        LeavesArtifacts as LeavesArtifacts,
        ReadOptions as ReadOptions,
        TakesCompanions as TakesCompanions,
    )
    from assay.exchange.parsing.explained import (
        ANY_KEY as ANY_KEY,
        Shape as Shape,
        explained_share as explained_share,
    )
    from assay.exchange.parsing.foreign_names import foreign_names as foreign_names
    from assay.exchange.parsing.frames import (
        decoded as decoded,
        first_frame_rows as first_frame_rows,
        frame_rows as frame_rows,
    )
    from assay.exchange.parsing.graded_rows import (
        GradedRow as GradedRow,
        answer_text as answer_text,
        graded_records as graded_records,
        named_after_file as named_after_file,
        prompt_digest as prompt_digest,
        prompt_of as prompt_of,
        run_without_model as run_without_model,
    )
    from assay.exchange.parsing.input_files import (
        FileSample as FileSample,
        InputFile as InputFile,
        UnreadableFile as UnreadableFile,
    )
    from assay.exchange.parsing.json_rows import (
        first_rows as first_rows,
        folder_name as folder_name,
        folder_path as folder_path,
        lies_beneath as lies_beneath,
        objects_of as objects_of,
        parent_folder as parent_folder,
        read_document as read_document,
        read_object as read_object,
        read_rows as read_rows,
    )
    from assay.exchange.parsing.json_values import (
        JsonObject as JsonObject,
        NotJson as NotJson,
        as_count as as_count,
        as_duration as as_duration,
        as_id as as_id,
        as_list as as_list,
        as_messages as as_messages,
        as_number as as_number,
        as_object as as_object,
        as_points as as_points,
        as_text as as_text,
        as_texts as as_texts,
        chat_messages as chat_messages,
        content_text as content_text,
        from_text as from_text,
        from_unix as from_unix,
        in_unit_range as in_unit_range,
        objects_in as objects_in,
        parse_json as parse_json,
        pick as pick,
        seconds_after as seconds_after,
        seconds_between as seconds_between,
        shorten as shorten,
        storable as storable,
        to_text as to_text,
    )
    from assay.exchange.parsing.metric_grades import (
        MetricGrades as MetricGrades,
        MetricValue as MetricValue,
        outside_their_scale as outside_their_scale,
    )
    from assay.exchange.parsing.off_scale import OffScale as OffScale, ScaleCheck as ScaleCheck
    from assay.exchange.parsing.preferences import (
        PREFERENCE as PREFERENCE,
        PREFERENCE_KIND as PREFERENCE_KIND,
        preference_assessment as preference_assessment,
    )
    from assay.exchange.parsing.score_rows import (
        AssessmentGatherer as AssessmentGatherer,
        cell_number as cell_number,
        cell_text as cell_text,
    )
    from assay.exchange.parsing.tables import (
        TableRow as TableRow,
        read_header as read_header,
        read_table as read_table,
    )
    from assay.exchange.parsing.yaml_documents import parse_yaml as parse_yaml
    from assay.exchange.parsing.zip_members import ZipMembers as ZipMembers
    from assay.exchange.readers.batch_answers import (
        BatchAnswer as BatchAnswer,
        answer_of as answer_of,
    )
    from assay.exchange.readers.score_table import Origins as Origins
    from assay.exchange.results_folder.atomic_files import AtomicFile as AtomicFile
    from assay.formats.csv_lines import CsvLines as CsvLines, unguarded as unguarded
    from assay.formats.parquet import (
        PARQUET_MAGIC as PARQUET_MAGIC,
        parquet_columns as parquet_columns,
    )
    from assay.formats.separated import (
        cells_by_name as cells_by_name,
        is_utf8 as is_utf8,
        separated_blocks as separated_blocks,
        separated_rows as separated_rows,
        sniff_delimiter as sniff_delimiter,
    )
    from assay.ports import (
        Allowance as Allowance,
        ModelGate as ModelGate,
        Provider as Provider,
        Shell as Shell,
        SpendingProvider as SpendingProvider,
    )
    from assay.providers.address_rules import AddressRules as AddressRules
    from assay.providers.origin import Origin as Origin
    from assay.providers.prices import CostOf as CostOf
    from assay.providers.recordings import Mishap as Mishap, Recording as Recording
    from assay.providers.registry import (
        ProviderContext as ProviderContext,
        ProviderOpener as ProviderOpener,
    )
    from assay.providers.session import (
        Address as Address,
        HttpAnswer as HttpAnswer,
        HttpSession as HttpSession,
    )
    from assay.scoring.evaluator_plugins import WorkspaceEvaluator as WorkspaceEvaluator
    from assay.scoring.graders import Grader as Grader
    from assay.scoring.scorer_registry import PluginScorer as PluginScorer
    from assay.scoring.scorer_result import Outcome as Outcome, Score as Score, Unscored as Unscored

_NAMES: Final = {
    "assay.agents.workspaces": ("AgentNeeds", "OpenWorkspace", "PROMPT", "Work", "WorkingAgent"),
    "assay.app.exports.exporters": ("ExportRequest", "Exported", "Exporter", "OpenOutput"),
    "assay.app.exports.pseudonyms": ("Anonymiser",),
    "assay.app.python_api.project": ("Project",),
    "assay.app.surface_plugins": ("PagePlugin", "PageSection", "PluginPage"),
    "assay.app.workspace": ("Workspace",),
    "assay.domain.agent_limits": ("AgentLimits", "Spent"),
    "assay.domain.budget": ("Booking",),
    "assay.domain.calls": ("AnswerSchema", "ModelRequest", "Purpose", "Reply", "Role", "Usage"),
    "assay.domain.conversation": ("SimulatedUser", "Turn"),
    "assay.domain.digest": ("JsonValue", "digest"),
    "assay.domain.errors": (
        "AssayError",
        "InputError",
        "Refused",
        "SettingsError",
        "UnknownName",
        "did_you_mean",
    ),
    "assay.domain.failure": ("CallFailed", "Failure", "Fault"),
    "assay.domain.identifiers": ("AssessmentKey", "RunId"),
    "assay.domain.import_records": (
        "Found",
        "FoundAssessment",
        "FoundAtEnd",
        "FoundCandidate",
        "FoundGrade",
        "FoundResponse",
        "FoundRun",
        "FoundScores",
        "FoundTask",
        "GradedBy",
        "Held",
        "Noted",
        "Skipped",
    ),
    "assay.domain.lifecycle": ("AssessmentState", "Policy", "RunState", "TrialState"),
    "assay.domain.model": ("ModelSpec", "Parameters", "Price"),
    "assay.domain.programs": ("Agent", "Command", "Function", "WebService"),
    "assay.domain.review": ("Approvals", "Road"),
    "assay.domain.review_sample": ("ReviewRule", "ReviewSample", "SampledBy"),
    "assay.domain.run": ("RunPlan",),
    "assay.domain.run_choice": ("ChosenRuns", "RunChoice", "RunRead", "RunsRead"),
    "assay.domain.sandbox": ("CommandEnd", "CommandResult", "Gateway"),
    "assay.domain.scenarios": (
        "CheckCommand",
        "CheckOutcome",
        "CommandKind",
        "EvaluatorSpec",
        "Scenario",
        "Step",
        "WorkspaceReport",
    ),
    "assay.domain.secret_masking": ("masked_line",),
    "assay.domain.selection": ("NotCounted", "RunSummary", "ScoreRow", "Selection", "StartedFrom"),
    "assay.domain.structure": ("Structuring",),
    "assay.domain.suite": (
        "CandidateSpec",
        "Criterion",
        "Image",
        "JudgeMode",
        "JudgeSpec",
        "Message",
        "Rubric",
        "Scoring",
        "Snippet",
        "SourceFile",
        "SuiteCopy",
        "Task",
        "ToolMessage",
    ),
    "assay.domain.tools": ("CannedAnswer", "CannedTool", "Tool", "ToolCall", "ToolResult"),
    "assay.domain.verdicts": ("Verdict", "VerdictRules"),
    "assay.exchange.importers": ("Importer", "LeavesArtifacts", "ReadOptions", "TakesCompanions"),
    "assay.exchange.parsing.explained": ("ANY_KEY", "Shape", "explained_share"),
    "assay.exchange.parsing.foreign_names": ("foreign_names",),
    "assay.exchange.parsing.frames": ("decoded", "first_frame_rows", "frame_rows"),
    "assay.exchange.parsing.graded_rows": (
        "GradedRow",
        "answer_text",
        "graded_records",
        "named_after_file",
        "prompt_digest",
        "prompt_of",
        "run_without_model",
    ),
    "assay.exchange.parsing.input_files": ("FileSample", "InputFile", "UnreadableFile"),
    "assay.exchange.parsing.json_rows": (
        "first_rows",
        "folder_name",
        "folder_path",
        "lies_beneath",
        "objects_of",
        "parent_folder",
        "read_document",
        "read_object",
        "read_rows",
    ),
    "assay.exchange.parsing.json_values": (
        "JsonObject",
        "NotJson",
        "as_count",
        "as_duration",
        "as_id",
        "as_list",
        "as_messages",
        "as_number",
        "as_object",
        "as_points",
        "as_text",
        "as_texts",
        "chat_messages",
        "content_text",
        "from_text",
        "from_unix",
        "in_unit_range",
        "objects_in",
        "parse_json",
        "pick",
        "seconds_after",
        "seconds_between",
        "shorten",
        "storable",
        "to_text",
    ),
    "assay.exchange.parsing.metric_grades": ("MetricGrades", "MetricValue", "outside_their_scale"),
    "assay.exchange.parsing.off_scale": ("OffScale", "ScaleCheck"),
    "assay.exchange.parsing.preferences": (
        "PREFERENCE",
        "PREFERENCE_KIND",
        "preference_assessment",
    ),
    "assay.exchange.parsing.score_rows": ("AssessmentGatherer", "cell_number", "cell_text"),
    "assay.exchange.parsing.tables": ("TableRow", "read_header", "read_table"),
    "assay.exchange.parsing.yaml_documents": ("parse_yaml",),
    "assay.exchange.parsing.zip_members": ("ZipMembers",),
    "assay.exchange.readers.batch_answers": ("BatchAnswer", "answer_of"),
    "assay.exchange.readers.score_table": ("Origins",),
    "assay.exchange.results_folder.atomic_files": ("AtomicFile",),
    "assay.formats.csv_lines": ("CsvLines", "unguarded"),
    "assay.formats.parquet": ("PARQUET_MAGIC", "parquet_columns"),
    "assay.formats.separated": (
        "cells_by_name",
        "is_utf8",
        "separated_blocks",
        "separated_rows",
        "sniff_delimiter",
    ),
    "assay.ports": ("Allowance", "ModelGate", "Provider", "Shell", "SpendingProvider"),
    "assay.providers.address_rules": ("AddressRules",),
    "assay.providers.origin": ("Origin",),
    "assay.providers.prices": ("CostOf",),
    "assay.providers.recordings": ("Mishap", "Recording"),
    "assay.providers.registry": ("ProviderContext", "ProviderOpener"),
    "assay.providers.session": ("Address", "HttpAnswer", "HttpSession"),
    "assay.scoring.evaluator_plugins": ("WorkspaceEvaluator",),
    "assay.scoring.graders": ("Grader",),
    "assay.scoring.scorer_registry": ("PluginScorer",),
    "assay.scoring.scorer_result": ("Outcome", "Score", "Unscored"),
}
"""The names that each module lends to the door, as in the block above."""

_MODULE_OF: Final = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605 # one list of names is enough


if not TYPE_CHECKING:  # a type checker would take any name for one of this module

    def __getattr__(name: str) -> Any:
        """Load a name on first use."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'assay.plugins' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(_MODULE_OF[name]), name)
        globals()[name] = value  # the next use finds it without this function
        return value


def __dir__() -> list[str]:
    return [*__all__]
