"""Assay's own parts and those of an example package hold to the same contracts."""

from __future__ import annotations

import json
import sys
from importlib.metadata import PathDistribution
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from tests.support import (
    evaluation_files as evaluations,
    harness_files as files,
    platform_files as platforms,
)
from tests.support.example_plugin import importer as tally, scorer as example_scorer
from tests.support.example_plugin.grader import manners
from tests.support.model_server import ModelServer

from assay.app.exports.exporters import EXPORTERS
from assay.app.suites import checks
from assay.app.workspace import Workspace
from assay.cli.main import exit_code
from assay.domain.errors import InputError, SettingsError, UnknownName
from assay.domain.model import ModelSpec
from assay.domain.selection import Selection
from assay.exchange.detection import recognise_format
from assay.exchange.importers import IMPORTERS, Importer, ReadOptions
from assay.exchange.parsing.input_files import input_file
from assay.plugin_registry import Registry
from assay.providers.directory import Directory
from assay.providers.model_refs import parse_ref
from assay.providers.registry import PROVIDERS
from assay.scoring.scorer_registry import SCORER_REGISTRY
from assay.testing import (
    ExporterContract,
    GraderContract,
    ImporterContract,
    ProviderContract,
    ScorerContract,
    WorkspaceAgentContract,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ENTRY_POINTS = """
[assay.importers]
tally = tests.support.example_plugin.importer

[assay.scorers]
words_present = tests.support.example_plugin.scorer:words_present

[assay.providers]
shout = tests.support.example_plugin.provider:open_shouting

[assay.workspace_agents]
scribe = tests.support.example_plugin.workspace_agent:Scribe

[assay.exporters]
lines = tests.support.example_plugin.exporter:export_lines

[assay.evaluators]
small_change = tests.support.example_plugin.evaluator:small_change

[assay.pages]
means = tests.support.example_plugin.page:means
"""


def install(folder: Path, name: str, entry_points: str) -> None:
    """Make the metadata that an installer leaves for a package."""
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8"
    )
    (metadata / "entry_points.txt").write_text(entry_points, "utf-8")


@pytest.fixture
def plugin(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the example package."""
    folder = tmp_path_factory.mktemp("site")
    install(folder, "assay_example", ENTRY_POINTS)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])


# --- importers ------------------------------------------------------------------------------------

PAIR = {"input": "Say hello.", "output_1": "Hello.", "output_2": "No.", "label": 1}
RUN = {
    "runId": "r-1",
    "suite": "services",
    "scenario": "cache",
    "agent": "coder",
    "evaluations": [{"evaluatorName": "tests", "score": 1}],
    "response": "a diff",
}
EVALUATION = {
    "taskId": "t1",
    "messages": [{"role": "user", "text": "Why?"}, {"role": "assistant", "response_options": []}],
}
ANSWER = {
    "custom_id": "r1",
    "response": {
        "status_code": 200,
        "body": {
            "model": "m",
            "created": 1_700_000_000,
            "choices": [{"message": {"content": "Hello."}}],
        },
    },
}
VERDICT = {
    "idx": 1,
    "instruction": "Say hello.",
    "input": "",
    "response1": "Hello.",
    "response2": "No.",
    "cmp_key": "ada_bob",
    "annotator1": 1,
}


def document(name: str, value: Any) -> Callable[[Path], Path]:
    """Return a writer of one JSON document or, under a `.jsonl` name, of its lines."""

    def write(folder: Path) -> Path:
        text = "\n".join(map(json.dumps, value)) if name.endswith("l") else json.dumps(value)
        (folder / name).write_text(text, "utf-8")
        return folder / name

    return write


def text(name: str, content: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_text(content, "utf-8")
        return folder / name

    return write


SAMPLES: Mapping[str, Callable[[Path], Path]] = {
    "openai_batch": document("output.jsonl", [ANSWER]),
    "openai_batch_input": document(
        "input.jsonl", [{"custom_id": "r1", "body": {"model": "m", "prompt": "Hello?"}}]
    ),
    "openai_batch_object": document(
        "batch.json", {"object": "batch", "id": "b1", "status": "completed"}
    ),
    "log": text(
        "run.log", "vLLM API server version 0.6.1\n100%|####| 20/20 [00:10<00:00, 2.00it/s]\n"
    ),
    "scores": text("scores.csv", "task,candidate,score\nq1,ada,1\nq1,bob,0.5\n"),
    "set": document(
        "set.json", [{"thingName": "a", "snippets": [{"name": "ada", "content": "x"}]}]
    ),
    "rlhf": document("rlhf.json", {"rlhf": [EVALUATION]}),
    "map": text("table.csv", "id,who,points\nq1,ada,1\nq1,bob,0.5\n"),
    "inspect": files.inspect,
    "lm_eval": files.lm_eval,
    "promptfoo": files.promptfoo,
    "promptfoo_csv": evaluations.promptfoo_csv,
    "openai_evals_log": files.openai_log,
    "openai_evals": files.openai_api,
    "alpaca_eval": files.alpaca,
    "mt_bench": files.mt_bench,
    "swe_bench": files.swe_bench,
    "harbor": files.harbor,
    "terminal_bench": files.terminal_bench,
    "agent_run": document("run.json", RUN),
    "code_samples": evaluations.evalplus,
    "bigcode": evaluations.bigcode,
    "pydantic_evals": evaluations.pydantic_report,
    "helm": evaluations.helm,
    "opencompass": evaluations.opencompass,
    "lighteval": evaluations.lighteval,
    "braintrust": evaluations.braintrust,
    "llmbar": document("dataset.json", [PAIR]),
    "pandalm": document("testset.json", [VERDICT]),
    "mlflow": platforms.mlflow,
    "langfuse": platforms.langfuse,
    "langsmith": platforms.langsmith,
    "deepeval": platforms.deepeval,
    "ragas": platforms.ragas,
    "phoenix": platforms.phoenix,
}


@pytest.mark.parametrize("name", IMPORTERS.own_names())
class TestOwnImporters(ImporterContract):
    @pytest.fixture(autouse=True)
    def choose(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        own = type(self)
        monkeypatch.setattr(own, "importer", IMPORTERS.load(name), raising=False)
        monkeypatch.setattr(own, "write", staticmethod(SAMPLES[name]), raising=False)
        if name == "map":
            mapping = {"task": "id", "candidate": "who", "score": "points"}
            monkeypatch.setattr(own, "options", ReadOptions(mapping=mapping))
            monkeypatch.setattr(own, "by_content", False)

    write: ClassVar[Callable[[Path], Path]]

    def write_sample(self, folder: Path, /) -> Path:
        return type(self).write(folder)

    def test_the_table_and_the_module_agree_on_its_name(self, name: str) -> None:
        assert name == self.importer.NAME


class TestExampleImporter(ImporterContract):
    importer: ClassVar[Importer] = tally

    def write_sample(self, folder: Path, /) -> Path:
        return text("points.tally", "TALLY 1\nq1 | ada | 1\nq1 | bob | 0.5\n")(folder)


# --- scorers --------------------------------------------------------------------------------------

RIGHT_AND_WRONG = {
    "exact": (("Paris", "Paris"), ("London", "Paris")),
    "similarity": (("Paris", "Paris"), ("London", "Paris")),
    "regex": (("about 42", r"\b42\b"), ("about 24", r"\b42\b")),
    "contains": (("It is Paris.", "Paris"), ("Parisian", "Paris")),
    "choice": (("The answer is (B).", "B"), ("A, not B", "B")),
    "numeric": (("42", "42"), ("43", "42")),
    "json": (('{"b": 1, "a": 2}', '{"a": 2, "b": 1}'), ('{"a": 3}', '{"a": 2}')),
    "closeness": (("42", "42"), ("60", "42")),
    "boolean": (("yes", "yes"), ("no", "yes")),
    "tool_calls": (
        ("## Turn 1 · user\n\nGo.\n\n## Turn 1 · tool call\n\nlook {}", "look"),
        ("look", "look"),
    ),
}


@pytest.mark.parametrize("name", SCORER_REGISTRY.own)
class TestOwnScorers(ScorerContract):
    @pytest.fixture(autouse=True)
    def choose(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        own = type(self)
        monkeypatch.setattr(own, "scorer", staticmethod(SCORER_REGISTRY.load(name)), raising=False)
        monkeypatch.setattr(own, "right", RIGHT_AND_WRONG[name][0], raising=False)
        monkeypatch.setattr(own, "wrong", RIGHT_AND_WRONG[name][1], raising=False)


class TestExampleScorer(ScorerContract):
    scorer = staticmethod(example_scorer.words_present)
    right = ("The capital is Paris.", "Paris capital")
    wrong = ("London", "Paris capital")


# --- providers ------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.mark.parametrize("name", PROVIDERS.own)
class TestOwnProviders(ProviderContract):
    @pytest.fixture(autouse=True)
    def choose(self, name: str, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
        model = ModelSpec(provider=name, name="answers.jsonl" if name == "replay" else "m")
        monkeypatch.setattr(type(self), "model", model, raising=False)
        monkeypatch.setattr(type(self), "address", server.url, raising=False)

    address: ClassVar[str]

    def environment(self, folder: Path, /) -> Mapping[str, str]:
        (folder / "answers.jsonl").write_text('{"reply": {"text": "42"}}\n', "utf-8")
        variables = [*(f"{name.upper()}_BASE_URL" for name in PROVIDERS.own), "OLLAMA_HOST"]
        return dict.fromkeys(variables, self.address)


@pytest.mark.usefixtures("plugin")
class TestExampleProvider(ProviderContract):
    model = ModelSpec(provider="shout", name="loud")

    def environment(self, folder: Path, /) -> Mapping[str, str]:
        return {"SHOUT_KEY": "any"}


# --- exporters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [name for name in EXPORTERS.own if name != "results"]
)  # which writes a folder
class TestOwnExporters(ExporterContract):
    @pytest.fixture(autouse=True)
    def choose(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(type(self), "format", name, raising=False)
        monkeypatch.setattr(type(self), "threshold", 0.5 if name == "junit" else None)
        if name == "inspect":  # a log is one candidate's
            monkeypatch.setattr(
                type(self), "table", "task,candidate,score\nq1,ada,1\nq2,ada,0.25\n"
            )


@pytest.mark.usefixtures("plugin")
class TestExampleExporter(ExporterContract):
    format = "lines"


# --- loading --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("plugin")
class TestAnInstalledPackage:
    def test_its_importer_recognises_files(self, tmp_path: Path) -> None:
        (tmp_path / "a.tally").write_text("TALLY 1\nq1 | ada | 1\n", "utf-8")
        importer = recognise_format(input_file(tmp_path / "a.tally").sample)
        assert importer is not None
        assert importer.NAME == "tally"

    def test_its_scorer_can_be_named_in_a_suite(self) -> None:
        assert "words_present" in checks().methods
        assert checks().plugins == {"words_present"}

    def test_its_provider_can_be_named_in_a_reference(self) -> None:
        assert parse_ref("shout/loud") == ("shout", "loud")

    def test_its_provider_reports_a_missing_key_before_the_run(self, tmp_path: Path) -> None:
        (problem,) = Directory({}, base_folder=tmp_path).problems(
            [ModelSpec(provider="shout", name="loud")]
        )
        assert problem.where == "SHOUT_KEY"

    def test_its_provider_is_refused_under_local_only(self, tmp_path: Path) -> None:
        directory = Directory({"SHOUT_KEY": "any"}, base_folder=tmp_path, local_only=True)
        with pytest.raises(SettingsError, match="local_only"):
            directory.provider(ModelSpec(provider="shout", name="loud"))

    def test_its_exporter_is_called_by_name(self, tmp_path: Path) -> None:
        from assay.app.exports.export import export
        from assay.app.exports.exporters import ExportRequest

        with Workspace.open(tmp_path, options={"results": "off"}, environment={}) as workspace:
            selection, output = Selection(), tmp_path / "out.txt"
            exported = export(
                ExportRequest(
                    workspace=workspace, format="lines", selection=selection, output=output
                )
            )
        assert exported.rows == 0


def test_without_a_package_its_names_are_unknown(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no format 'tally'"):
        IMPORTERS.load("tally")
    with pytest.raises(InputError, match="unknown provider 'shout'"):
        parse_ref("shout/loud")


@pytest.mark.parametrize("name", ["set", "promptfoo"])
def test_a_package_cannot_replace_an_own_part(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = f"{name} = tests.support.example_plugin.importer\n"
    install(tmp_path, "impostor", f"[assay.importers]\n{part}")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert name == IMPORTERS.load(name).NAME
    assert IMPORTERS.plugin_names() == ()


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("no_such_module", "cannot be loaded: ModuleNotFoundError"),
        ("tests.support.example_plugin.scorer", "lacks `NAME`, `recognise`, `read`"),
    ],
)
def test_a_broken_package_is_named_with_a_remedy(
    target: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "broken_package", f"[assay.importers]\nodd = {target}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(SettingsError, match=problem) as caught:
        IMPORTERS.load("odd")
    assert "broken_package" in caught.value.where
    assert caught.value.remedy


def test_broken_and_ignored_parts_are_listed_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = "odd = no_such_module\nset = tests.support.example_plugin.importer\n"
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)", "utf-8")
    install(tmp_path, "broken_package", f"[assay.importers]\n{parts}away = leaves\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert exit_code(["plugins", "--installed", "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["plugins"]
    problems = {row["name"]: row["problem"] for row in rows}
    assert "cannot be loaded: ModuleNotFoundError" in problems["odd"]
    assert "cannot be loaded: SystemExit: 3. Update the package" in problems["away"]
    assert problems["set"] == "is ignored, because Assay has its own format of this name."
    assert {(row["package"], row["version"]) for row in rows} == {("broken_package", "1.0")}
    assert exit_code(["plugins"]) == 1
    assert "! importer odd of broken_package 1.0 cannot be loaded" in capsys.readouterr().err


def test_broken_command_of_a_package_leaves_the_others_usable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = "odd = no_such_module\nno = tests.support.example_plugin.scorer:words_present\nruns = json:loads\n"
    install(tmp_path, "broken_package", f"[assay.commands]\n{commands}")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert exit_code(["odd"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("assay: command 'odd' of the package broken_package: cannot be loaded")
    assert shown.count("\n") == 1
    assert exit_code(["no"]) == 2
    assert "lacks `invoke`, `make_context`, `params`." in capsys.readouterr().err
    assert exit_code(["runs", "--help"]) == 0
    assert "newest first" in capsys.readouterr().out
    assert exit_code(["--help"]) == 0
    assert "broken_package 1.0" in capsys.readouterr().out
    assert exit_code(["plugins", "--installed", "--json"]) == 1
    problems = {
        row["name"]: row["problem"] for row in json.loads(capsys.readouterr().out)["plugins"]
    }
    assert problems["runs"] == "is ignored, because Assay has its own command of this name."


def test_own_parts_load_without_reading_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("entry points were read")

    monkeypatch.setattr("assay.plugin_registry._read_entry_points", fail)
    registries: tuple[Registry[Any], ...] = (IMPORTERS, SCORER_REGISTRY, PROVIDERS, EXPORTERS)
    for registry in registries:
        for name in registry.own:
            assert registry.load(name)


class TestExampleGrader(GraderContract):
    grader = staticmethod(manners)
    good, bad = "Hello there", "no"


def test_recognising_a_file_reads_no_metadata_of_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reading took 3 ms, and each file loads all importers: 13 ms a file."""
    sample = input_file(files.promptfoo(tmp_path)).sample
    recognise_format(sample)  # imports the readers and reads the lists of entry points, once
    readings: list[str] = []
    read_text = PathDistribution.read_text

    def counted(self: PathDistribution, filename: str | PathLike[str]) -> str | None:
        readings.append(str(filename))
        return read_text(self, filename)

    monkeypatch.setattr(PathDistribution, "read_text", counted)
    importer = recognise_format(sample)
    assert importer is not None
    assert importer.NAME == "promptfoo"
    assert readings == []


def test_the_grader_contract_refuses_a_score_off_its_scale() -> None:
    class OffScale(GraderContract):
        grader = staticmethod(lambda task, response, options: {"length": float(len(response))})
        good, bad = "abc", "a"

    with pytest.raises(AssertionError, match="'length' has the score 3"):
        OffScale().test_every_response_gets_scores_from_0_to_1_with_weights()


@pytest.mark.usefixtures("plugin")
class TestExampleWorkspaceAgent(WorkspaceAgentContract):
    agent, words, sandbox = "scribe", "done.txt", "none"

    def test_its_changes_are_in_the_report(self, tmp_path: Path) -> None:
        assert "+Write the file done.txt." in self._report(tmp_path, self.prompt).diff


class TestEchoAgent(WorkspaceAgentContract):
    agent, sandbox = "echo", "none"


class TestCommandAgent(WorkspaceAgentContract):
    agent, words, sandbox = "cmd", 'test "$ASSAY_PROMPT" != x', "none"
