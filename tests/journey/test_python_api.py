"""Suites, scorers and results in Python, as people write them in scripts and notebooks."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import assay
from assay.app.python_api import drafts, event_loop, notebook
from assay.app.statistics import notebooks
from assay.app.workspace import Workspace
from assay.domain.events import RunEnded, RunStarted
from assay.domain.lifecycle import AssessmentState
from assay.suites.loading import SuiteKeys
from assay.suites.models import CandidateKeys
from assay.suites.tasks import TaskKeys
from tests.support.model_server import ModelServer

if TYPE_CHECKING:
    from assay.domain.events import Event

ROWS = [
    {"question": f"What is {i} + {i}?", "answer": str(2 * i), "topic": "sums"} for i in range(4)
]
HALF = 0.5


def answers(*texts: str) -> list[dict[str, Any]]:
    """Tasks of one capital each, with answers of `careful` and `hasty`."""
    return [
        {
            "id": f"t{i}",
            "prompt": "?",
            "expected": "^Lima$",
            "snippets": {"careful": "Lima", "hasty": text},
        }
        for i, text in enumerate(texts)
    ]


def shorter(response: str, reference: str) -> float:
    return HALF if len(response) > len(reference) else 1.0


@pytest.fixture
def compared(project: Path) -> assay.CompletedRun:
    return assay.run(
        assay.Suite(
            name="capitals", trials=2, score="regex", tasks=answers("Lima", "Cusco", "Cusco")
        )
    )


def test_objects_and_dictionaries_make_the_same_suite(project: Path) -> None:
    tasks = answers("Lima")
    as_objects = assay.Suite(
        name="capitals", score="regex", tasks=[assay.Task(**task) for task in tasks]
    )
    as_values = {"name": "capitals", "score": "regex", "tasks": tasks}
    (project / "capitals.json").write_text(json.dumps(as_values), "utf-8")
    plans = []
    for suite in (as_objects, as_values, "capitals.json"):
        ran = assay.run(suite)
        with Workspace.open() as workspace:
            ((planned, _),) = workspace.journal.tasks_of(ran.summary.id)
        plans.append((planned.task.digest, planned.task.scoring.method, ran.summary.candidates))
    assert plans[0] == plans[1] == plans[2]


def test_drafts_have_the_keys_of_suite_files() -> None:
    for draft, keys, more in (
        (drafts.CandidateDraft, CandidateKeys, set[str]()),
        (drafts.TaskDraft, TaskKeys, set[str]()),
        (drafts.SuiteDraft, SuiteKeys, {"map"}),
    ):
        assert set(draft.__dataclass_fields__) - more == set(keys.table.keys) - {"$schema"}, draft


def test_rows_become_tasks_by_a_map_with_stable_ids(project: Path, server: ModelServer) -> None:
    suite = assay.Suite(
        name="sums",
        tasks=ROWS,
        map={"prompt": "question", "expected": "answer"},
        candidates=[assay.Candidate(name="small", model="openai/ok")],
        score="numeric",
    )
    shuffled = {
        **{key: getattr(suite, key) for key in ("name", "map", "candidates", "score")},
        "tasks": ROWS[::-1],
    }
    first, second = assay.run(suite), assay.run(shuffled)
    ids = [sorted(first.to_frame("pandas").task), sorted(second.to_frame("pandas").task)]
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 4
    assert all(re.fullmatch(r"what-is-\d-\d-[0-9a-f]{6}", task) for task in ids[0])


def test_rows_and_a_file_of_them_are_the_same_tasks(project: Path, server: ModelServer) -> None:
    lines = [f"{i},{row['question']},{row['answer']},{row['topic']}" for i, row in enumerate(ROWS)]
    (project / "rows.csv").write_text("\n".join(["key,question,answer,topic", *lines]), "utf-8")
    (project / "long.txt").write_text("On {{topic}}: {{question}}", "utf-8")
    values = [{"key": str(i), **row} for i, row in enumerate(ROWS)]
    digests = []
    for tasks in ("rows.csv", values):
        ran = assay.run(
            assay.Suite(
                name="sums",
                tasks=tasks,
                map={"id": "key", "prompt": "question", "expected": "answer"},
                candidates=[assay.Candidate(name="long", model="openai/ok", prompt="long.txt")],
                score="regex",
            )
        )
        with Workspace.open() as workspace:
            digests.append(
                [task.task.digest for task, _ in workspace.journal.tasks_of(ran.summary.id)]
            )
    assert digests[0] == digests[1]
    assert {call.prompt for call in server.calls} == {f"On sums: {row['question']}" for row in ROWS}


def test_data_frames_are_tasks_and_results(project: Path) -> None:
    import pandas
    import polars

    for library in (pandas, polars):
        frame = library.DataFrame(
            {"id": ["a", "b"], "prompt": ["?", "?"], "expected": ["1", "2"], "weight": [1.0, None]}
        )
        with pytest.raises(assay.InputError, match="has no `snippets`"):
            assay.run({"name": "framed", "tasks": frame, "score": "regex"})
    ran = assay.run({"name": "capitals", "score": "regex", "tasks": answers("Cusco", "Lima")})
    grades = ran.to_frame("polars")
    assert isinstance(grades, polars.DataFrame)
    assert grades.filter(polars.col("candidate") == "hasty")["score"].to_list() == [0.0, 1.0]
    assert isinstance(ran.stats().to_frame("pandas"), pandas.DataFrame)
    assert list(ran.compare("careful", "hasty").to_frame("pandas").difference) == [1.0, 0.0]
    assert list(ran.rank().to_frame("pandas").candidate) == ["careful", "hasty"]
    with pytest.raises(assay.InputError, match="expected pandas or polars"):
        ran.to_frame("numpy")  # type: ignore[call-overload] # the point of the test


def test_problems_of_a_python_suite_name_field_and_remedy(project: Path) -> None:
    with pytest.raises(assay.InputError) as error:
        assay.run(
            {
                "name": "wrong",
                "trails": 3,
                "score": "regex",
                "tasks": [{"id": "a"}, {"id": "a", "weight": -1}],
            }
        )
    message = str(error.value)
    assert "suite 'wrong' trails: is an unknown key. Did you mean 'trials'?" in message
    assert "suite 'wrong' tasks[1].weight: " in message
    assert "as tasks[0].id is" in message
    with pytest.raises(assay.InputError, match="tasks: is a int, expected a list"):
        assay.run({"name": "wrong", "tasks": 3})


def test_functions_are_scorers_in_a_child_process(project: Path) -> None:
    factor = 0.25

    @assay.scorer(name="close", most=9)
    def scored(response: str, reference: str, options: dict[str, int]) -> dict[str, Any]:
        return {"score": factor * min(len(response), options["most"] - 5), "note": "by length"}

    tasks = answers("Cusco")
    for score, expected in (
        (scored, [1.0, 1.0]),
        (shorter, [1.0, 1.0]),
        (lambda_named := assay.scorer(name="half")(lambda response: factor), [0.25, 0.25]),
    ):
        ran = assay.run({"name": "scored", "tasks": tasks, "score": score})
        assert ran.failures == ()
        assert sorted(ran.to_frame("pandas").score) == expected, score
    assert scored("Lima", "Lima", {"most": 9}) == {"score": 1.0, "note": "by length"}
    assert repr(lambda_named) == "<scorer half>"
    again = assay.extend(ran.id, trials=1)
    assert sorted(again.to_frame("pandas").score) == [0.25] * 4


def test_functions_are_candidates(project: Path) -> None:
    capitals = {"France": "Paris", "Peru": "Lima"}

    def careful(prompt: str) -> str:
        return capitals[prompt.rstrip("?").rpartition(" ")[2]]

    async def hasty(prompt: str) -> str:
        return "Paris"

    def broken(prompt: str) -> str:
        raise LookupError(f"no answer to {prompt}")

    tasks = [
        {"prompt": f"The capital of {land}?", "expected": f"^{city}$"}
        for land, city in capitals.items()
    ]
    candidates: list[Any] = [
        careful,
        assay.Candidate(name="quick", python=hasty, timeout=30),
        {"python": broken},
    ]
    ran = assay.run(assay.Suite(name="capitals", tasks=tasks, candidates=candidates, score="regex"))
    scores = {
        (row.candidate, row.task[:21]): row.score for row in ran.to_frame("pandas").itertuples()
    }
    means = {estimate.candidate: estimate.mean for estimate in ran.stats().estimates}
    assert (means["careful"], means["quick"], means["broken"]) == (1.0, 0.5, None), scores
    assert len(ran.failures) == 2
    assert all("no answer to The capital of" in str(row.failure) for row in ran.failures)
    assert set(ran.summary.candidates) == {"careful", "quick", "broken"}


def test_a_scorer_that_cannot_be_used_is_named(project: Path) -> None:
    lock = threading.Lock()

    @assay.scorer
    def guarded(response: str) -> float:
        with lock:
            return 1.0

    with pytest.raises(assay.InputError, match="scorer guarded: cannot be sent to another process"):
        assay.run({"name": "guarded", "tasks": answers("Lima"), "score": guarded})
    with pytest.raises(assay.InputError, match=r"scorer four: has the signature \(a, b, c, d\)"):
        assay.run(
            {
                "name": "four",
                "tasks": answers("Lima"),
                "score": assay.scorer(name="four")(lambda a, b, c, d: 1),
            }
        )


def test_run_works_inside_a_running_event_loop(project: Path) -> None:
    async def cell() -> tuple[str, str]:
        suite = assay.Suite(name="capitals", score="regex", tasks=answers("Lima"))
        return assay.run(suite).summary.state.value, (await assay.arun(suite)).summary.state.value

    assert asyncio.run(cell()) == ("finished", "finished")


def test_cancelling_arun_keeps_what_is_finished(project: Path) -> None:
    started = threading.Event()
    states: list[str] = []

    def work(stopper: Any) -> None:
        stopped = threading.Event()
        stopper.holds(stopped.set)
        started.set()
        assert stopped.wait(60)
        states.append("stopped")
        raise assay.Interrupted("r1", "was stopped.")

    async def cancelled() -> None:
        task = asyncio.create_task(event_loop.in_thread(work))
        await asyncio.to_thread(started.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert states == ["stopped"]


def test_results_show_as_one_line_and_as_escaped_html(project: Path) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    tasks = [{"id": "t", "prompt": "?", "expected": "^1$", "snippets": {hostile: "1", 'b"b': "0"}}]
    ran = assay.run({"name": "<script>", "score": "regex", "trials": 3, "tasks": tasks})
    results = (
        ran,
        ran.stats(),
        ran.rank(),
        ran.compare(hostile, 'b"b'),
        ran.gate(hostile, against='b"b', margin=0.1),
    )
    for result in results:
        assert "\n" not in repr(result)
        assert len(repr(result)) < 800
        html = result._repr_html_()
        assert html.startswith('<div class="assay">')
        assert "<img" not in html
        assert "<script" not in html
        assert "&lt;img src=x onerror=alert(1)&gt;" in html
        assert "<svg" in html
    assert repr(assay.plan(0.05)).startswith("PowerPlan(")
    assert repr(ran).startswith(f"Run({ran.id}: 3 of 3 trials done")
    assert "3 trials count" in repr(ran.stats())
    assert assay.compare(hostile, 'b"b').verdict in repr(results[3])


def test_pictures_place_means_and_ranges_on_the_scale() -> None:
    marks = [notebooks.Mark(label="a", value=0.5, ci95=(0.25, 1.0), words="50")]
    svg = notebooks.drawing(marks)
    width = 640 - 190 - 150
    assert f'cx="{190 + width / 2:.1f}"' in svg
    assert f'x1="{190 + width / 4:.1f}" x2="{190 + width:.1f}"' in svg
    assert notebooks.drawing([]) == ""
    assert ">and 5 more<" in notebooks.drawing(marks * 25)
    assert "more" not in svg
    assert notebooks.safe("a\u202e<b>\x1b") == "a\ufffd&lt;b&gt;\ufffd"


def test_a_gate_in_python_takes_a_baseline(project: Path) -> None:
    suite = {"name": "capitals", "trials": 2, "score": "regex", "tasks": answers(*["Lima"] * 7)}
    assay.run(suite, options=assay.RunOptions(batch_id="main"))
    ran = assay.run(suite)
    assert ran.gate("hasty", baseline="latest:main", margin=0.35).passed
    assert assay.gate("hasty", baseline="main", margin=0.35).passed
    undecided = ran.gate("hasty", baseline="latest:main", margin=0.03)
    assert undecided.outcome == "undecided"
    assert undecided.smallest_margin == pytest.approx(1 - 0.05 ** (1 / 14))  # copies: trials count
    assert undecided.blocks("fail")
    assert not undecided.blocks("pass")
    worse = assay.run({**suite, "tasks": answers(*["Cusco"] * 7)})
    assert not worse.gate("hasty", baseline="latest:main", margin=0.03).passed
    with pytest.raises(TypeError, match="baseline"):
        assay.gate("hasty", margin=0.03)


def test_pending_grades_are_reviewed_by_their_ids(project: Path) -> None:
    grade = {"score": 9, "reason": "fits"}
    reply = {
        "candidates": {"{{label:ann}}": {"good": grade}, "{{label:bob}}": {"good": grade}},
        "report": "Both.",
    }
    (project / "judge.jsonl").write_text(
        json.dumps({"match": {"role": "judge"}, "reply": {"text": reply}}) + "\n", "utf-8"
    )
    tasks = [assay.Task(id="t", context="c", snippets={"ann": "a", "bob": "b"})]
    ran = assay.run(
        assay.Suite(
            name="judged", tasks=tasks, judge="replay/judge.jsonl", rubric=["good"], trials=2
        )
    )
    assert repr(ran).endswith("2 of 2 trials done, 2 grades await review)")
    assert "2 grades await review" in ran._repr_html_()
    assay.review.approve([row.id for row in ran.pending()], reviewer="mia")
    assert ran.pending() == ()
    assert set(ran.to_frame("pandas").assessment) == {
        row.id for row in assay.review.list(run=ran.id)
    }
    assert [estimate.n_trials for estimate in ran.stats().estimates] == [2, 2]


def test_every_public_name_can_be_imported() -> None:
    for name in (*assay.__all__, "__version__"):
        assert getattr(assay, name) is not None
    assert set(assay.__all__) <= set(dir(assay))


def test_import_loads_no_heavy_module() -> None:
    code = "import sys, assay; print(sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    for heavy in (
        "numpy",
        "scipy",
        "sqlalchemy",
        "aiohttp",
        "pydantic",
        "fastapi",
        "cloudpickle",
        "pytest",
        "IPython",
    ):
        assert f"'{heavy}'" not in loaded


class _Display:
    """Stands in for IPython's display: keeps what is shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def update(self, html: str) -> None:
        self.shown.append(html)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> _Display:
    from IPython import display

    shown_here = _Display()
    monkeypatch.setattr(notebook, "in_notebook", lambda: True)
    monkeypatch.setattr(display, "display", lambda *_, **__: shown_here)
    monkeypatch.setattr(display, "HTML", str)
    return shown_here


def test_progress_in_a_notebook_counts_trials(project: Path, cell: _Display) -> None:
    assay.run({"name": "<b>", "score": "regex", "trials": 3, "tasks": answers("Lima")})
    assert cell.shown[-1].endswith("&lt;b&gt;: 3 of 3 trials")
    before = len(cell.shown)
    heard: list[Event] = []
    assay.run({"name": "own", "score": "regex", "tasks": answers("Lima")}, listener=heard.append)
    assert len(cell.shown) == before
    assert isinstance(heard[0], RunStarted)
    assert isinstance(heard[-1], RunEnded)


def test_a_conversation_with_a_simulated_user_in_python(server: ModelServer) -> None:
    server.answer = lambda call: "DONE" if call.body["model"] == "user" else "Lima"
    suite = assay.Suite(
        name="talk",
        score="exact",
        candidates=["openai/small"],
        user={"model": "openai/user", "persona": "Somebody from {{town}}."},
        tasks=[{"turns": ["Hello", "Which capital?"], "town": "Bern", "expected": "Lima"}],
    )
    assert assay.run(suite).summary.trials == {"approved": 1}
    asked = [[message["content"] for message in call.body["messages"]] for call in server.calls]
    assert asked[1] == ["Hello", "Lima", "Which capital?"]
    assert "Somebody from Bern." in asked[2][0]


def test_extend_takes_a_candidate_with_a_prompt_of_its_own(project: Path) -> None:
    tasks = [{"id": "t", "prompt": "Lima", "expected": "So: Lima", "score": "exact"}]
    ran = assay.run(assay.Suite(name="joining", tasks=tasks, candidates=["echo"]))
    joining = assay.Candidate(name="so", model="echo", prompt="So: {{prompt}}")
    more = assay.extend(ran.id, candidates=[joining])
    frame = more.to_frame("pandas")
    assert dict(zip(frame.candidate, frame.score, strict=True)) == {"echo": 0.0, "so": 1.0}
    lacking = {"name": "far", "model": "echo", "prompt": "{{river}}"}
    with pytest.raises(
        assay.InputError, match="candidate far: uses the column 'river', which task t of run"
    ):
        assay.extend(ran.id, candidates=[lacking])


@pytest.fixture
def three_waiting(project: Path) -> list[int]:
    """Numbers of three assessments that await review; the first two are 1 and 2."""
    grade = {"score": 9, "reason": "fits"}
    reply = {
        "candidates": {"{{label:ann}}": {"good": grade}, "{{label:bob}}": {"good": grade}},
        "report": "Both.",
    }
    (project / "judge.jsonl").write_text(
        json.dumps({"match": {"role": "judge"}, "reply": {"text": reply}}) + "\n", "utf-8"
    )
    tasks = [assay.Task(id="t", context="c", snippets={"ann": "a", "bob": "b"})]
    ran = assay.run(
        assay.Suite(
            name="judged", tasks=tasks, judge="replay/judge.jsonl", rubric=["good"], trials=3
        )
    )
    return [int(row.key) for row in ran.pending()]


def test_one_id_is_never_taken_apart(three_waiting: list[int]) -> None:
    assert three_waiting == [1, 2, 3]
    with pytest.raises(assay.InputError, match="no assessment 'a12'"):
        assay.review.approve("12", reviewer="mia")
    assert len(assay.review.list(state="pending")) == 3
    assert [
        int(event.decision.assessment) for event in assay.review.approve("a1", reviewer="mia")
    ] == [1]
    assert [
        int(event.decision.assessment)
        for event in assay.review.reject(2, reason="r", reviewer="mia")
    ] == [2]
    assert [event.after for event in assay.review.approve(iter([3]), reviewer="mia")] == [
        AssessmentState.APPROVED
    ]
    assert assay.review.show(3).row.id == "a3"


def test_values_that_name_no_assessment_are_refused(three_waiting: list[int]) -> None:
    wrong: tuple[Any, ...] = (True, 1.0, None, b"12", {"a1": 1}, [["a1"]], [1, None], object())
    for value in wrong:
        with pytest.raises(assay.InputError, match="expected a name or an id"):
            assay.review.approve(value, reviewer="mia")
        if value is not None:
            with pytest.raises(assay.InputError, match=r"runs.* expected a name or an id"):
                assay.Selection(runs=value)
    with pytest.raises(assay.InputError, match="Did you mean 'pending'"):
        assay.review.list(state="pendng")
    assert len(assay.review.list(state="pending")) == 3


def test_one_name_is_a_filter_and_a_candidate(project: Path) -> None:
    tasks = [{**task, "tags": "easy"} for task in answers("Lima", "Cusco")]
    ran = assay.run({"name": "capitals", "score": "regex", "tasks": tasks, "trials": 2})
    assay.run({"name": "other", "score": "regex", "tasks": answers("Cusco")})
    for chosen in (
        {"runs": ran.id},
        {"suites": "capitals"},
        {"tags": "easy"},
        {"tags": ["easy", "easy"]},
        {"tags": {"easy"}},
    ):
        assert [row.n_trials for row in assay.stats(assay.Selection(**chosen)).estimates] == [
            4,
            4,
        ], chosen
    assert assay.Selection(tasks=7).tasks == ("7",)
    assert {row.run_id for row in assay.review.list(run=ran.id)} == {ran.id}
    alone = [{"id": "t", "prompt": "Lima", "expected": "Lima"}]
    echoing = assay.run(assay.Suite(name="alone", tasks=alone, candidates="echo", score="exact"))
    assert echoing.summary.candidates == ("echo",)
    more = assay.extend(echoing.id, candidates=assay.Candidate(name="so", model="echo"))
    assert set(more.summary.candidates) == {"echo", "so"}


def test_margins_are_numbers_or_points(compared: assay.CompletedRun) -> None:
    as_text, as_number = (
        compared.compare("careful", "hasty", margin="3pts"),
        compared.compare("careful", "hasty", margin=0.03),
    )
    assert as_text.comparison == as_number.comparison
    assert assay.gate("careful", "hasty", margin="3 pts").margin == 0.03
    assert assay.rank(margin="3pts").ranking == compared.rank(margin=0.03).ranking
    assert repr(assay.plan("5pts")) == repr(assay.plan(0.05))
    stored = assay.run(
        {"name": "own", "score": "regex", "tasks": answers("Lima")},
        options=assay.RunOptions(margin="3pts"),
    )
    assert stored.stats().basis.margin == 0.03
    for margin in (3, 0, -0.1, float("nan"), True, "three", "300pts"):
        with pytest.raises(
            assay.InputError, match=r"margin: .* is not a difference between 0 and 1"
        ):
            assay.compare("careful", "hasty", margin=margin)
    with pytest.raises(assay.InputError, match="For 3 points write '3pts'"):
        compared.rank(margin=3)


def test_a_project_carries_folder_and_store(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    own = assay.Project(str(elsewhere), f"sqlite:///{elsewhere / 'own.db'}")
    ran = own.run(
        {"name": "capitals", "score": "regex", "tasks": answers("Lima", "Cusco"), "trials": 2}
    )
    assert (elsewhere / "own.db").exists()
    assert not (project / ".assay").exists()
    assert (
        own.stats().estimates
        == assay.stats(folder=elsewhere, store=own.store).estimates
        == ran.stats().estimates
    )
    assert len(own.review.list()) == len(assay.review.list(folder=elsewhere, store=own.store)) > 0
    assert assay.Project().stats().estimates == assay.stats().estimates == ()
    with pytest.raises(assay.InputError, match=r"folder: .*absent.* is no folder"):
        assay.Project(elsewhere / "absent").stats()


def test_paths_of_an_import_are_one_or_many(project: Path) -> None:
    for name in ("one", "two"):
        (project / f"{name}.csv").write_text(
            f"task,candidate,trial,score\n{name},careful,1,1\n", "utf-8"
        )
    assert assay.import_results("one.csv", options=assay.ImportOptions(run_name="first")).runs == 1
    assert assay.import_results(iter(["one.csv", "two.csv"])).tasks == 1
    with pytest.raises(assay.InputError, match=r"absent\.csv: there is no such file"):
        assay.import_results("two.csv", options=assay.ImportOptions(logs="absent.csv"))


def test_a_regrade_in_python_takes_another_rule(compared: assay.CompletedRun) -> None:
    regraded = assay.regrade(compared.summary.id, score="similarity")
    with Workspace.open() as workspace:
        ((planned, _), *_rest) = workspace.journal.tasks_of(regraded.result.summary.id)
    assert planned.task.scoring.method == "similarity"
    with pytest.raises(assay.InputError, match="contians"):
        assay.regrade(compared.summary.id, score="contians")
