"""Write a run's files to the results folder: its record, and each candidate's answers, log and
description.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Final

from assay.app.provenance import Provenance, ProvenanceSource, provenance
from assay.app.recorded_settings import graded_rubric, run_parameters
from assay.domain.calls import Reply, Role
from assay.domain.identifiers import RunId, folded, shown_trial
from assay.domain.lifecycle import RunState
from assay.domain.prompts import prompts_of
from assay.domain.secret_masking import masked_line
from assay.domain.selection import RunSummary, Selection, StartedFrom
from assay.domain.unescaped_json import unescaped_json
from assay.exchange.results_folder import folder as results_folder
from assay.exchange.results_folder.atomic_files import AtomicFile
from assay.exchange.results_folder.folder import REGISTRY
from assay.exchange.results_folder.safe_names import inside, safe_name
from assay.scoring.structuring import read_structure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.domain.run import RunPlan
    from assay.domain.run_removal import RunEvent
    from assay.domain.suite import CandidateSpec

_PARTS: Final = ("model", "dataset", "execution", "results", "files")

STRUCTURED: Final = ".structured.jsonl"
"""File name suffix for structured answers; only runs with structuring have this file."""

_COMPLETED: Final = frozenset(
    {RunState.FINISHED, RunState.IMPORTING, RunState.DELETED, RunState.REPLACED}
)


def project(source: ProvenanceSource, folder: Path, run: RunId) -> None:
    (summary,) = source.archive.runs.matching(Selection(runs=(run,)))
    origin = provenance(source, summary)
    with results_folder.locked(folder):  # register names before writing files under them
        described = all_described(folder, origin)
        register(folder, described)
    with results_folder.locked(folder, run), ExitStack() as files:
        sheets = {
            folded(candidate.name): _Sheet(
                candidate, own_file, frozenset({folded(candidate.name), folded(now)})
            )
            for candidate, now, own_file in zip(
                origin.plan.candidates, summary.candidates, described, strict=True
            )
        }
        for sheet in sheets.values():
            sheet.open(files)
        seen: dict[int, _Place] = {}

        def also(line: dict[str, Any]) -> None:
            if line["kind"] == "task":
                seen[line["position"]] = _task_seen(line, sheets)
            elif line["kind"] == "trial":
                place = seen[line["position"]]
                for number, sheet in enumerate(sheets.values()):
                    sheet.trial(line, place, run)
                    sheet.structures(line, place, of_ideal=not number)

        results_folder.write_record(
            results_folder.record_of(folder, run), source.archive.records.whole(run), also=also
        )
        files.close()
        for sheet in sheets.values():
            sheet.write_log(origin)
    with results_folder.locked(folder):
        register(folder, [sheet.document() for sheet in sheets.values()])


def register_all(folder: Path) -> int:
    """Rebuild the registry from the descriptions, keep entries of other programs, and return the
    number of Assay's entries.
    """
    with results_folder.locked(folder):
        documents = [
            (path, document)
            for path, document in results_folder.metas(folder)
            if _is_ours(document)
        ]
        known = results_folder.registry(folder)
        known["runs"] = [
            entry
            for entry in known["runs"]
            if not (isinstance(entry, dict) and "assay_run" in entry)
        ]
        results_folder.write_document(inside(folder, REGISTRY), known)
        register(
            folder,
            [
                (Path(str(path).removesuffix(".meta.json")), document)
                for path, document in documents
            ],
        )
    return len(documents)


def set_aside(folder: Path, event: RunEvent) -> None:
    """Move all files of a run to the folder of deleted runs, record the reason, and remove the run
    from the registry.
    """
    run = event.run_id
    home = results_folder.aside_of(folder, run)
    with results_folder.locked(folder):
        for path, document in results_folder.metas(folder):
            if document.get("assay_run") == run:
                for ending in (".jsonl", STRUCTURED, ".log", ".meta.json"):
                    results_folder.move(
                        Path(str(path).removesuffix(".meta.json") + ending), home / path.parent.name
                    )
        known = results_folder.registry(folder)
        known["runs"] = [
            entry
            for entry in known["runs"]
            if not (isinstance(entry, dict) and entry.get("assay_run") == run)
        ]
        results_folder.write_document(inside(folder, REGISTRY), known)
        register(folder, [])
    with results_folder.locked(folder, run):
        results_folder.move(results_folder.record_of(folder, run), home)
        results_folder.write_document(home / results_folder.REASON, asdict(event))


def forget_aside(folder: Path, run: RunId) -> None:
    """Delete the set-aside files of a deleted run, before its files are written again from the
    store.
    """
    rmtree(results_folder.aside_of(folder, run), ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Place:
    """Task data for answer lines.

    `several` is True if the task has more than one trial; `brought` lists the candidates whose
    answer is a snippet in the suite.
    """

    task: str
    several: bool
    brought: frozenset[str]


@dataclass(slots=True)
class _Sheet:
    """One candidate's output files of a run.

    `names` contains the candidate's name during the run and its current name.
    """

    candidate: CandidateSpec
    described: tuple[Path, dict[str, Any]]
    names: frozenset[str]
    file: AtomicFile | None = None
    files: ExitStack | None = None
    structured: AtomicFile | None = None
    total: int = 0
    success: int = 0
    input_tokens: list[int] = field(default_factory=lambda: [0, 0])
    output_tokens: list[int] = field(default_factory=lambda: [0, 0])
    failures: list[str] = field(default_factory=list)

    def open(self, files: ExitStack) -> None:
        stem, _ = self.described
        stem.parent.mkdir(parents=True, exist_ok=True)
        self.files = files
        self.file = files.enter_context(AtomicFile(Path(f"{stem}.jsonl"), force=True))

    def write(self, line: Mapping[str, Any]) -> None:
        if self.file is not None:
            self.file.write(unescaped_json(line, allow_nan=False) + "\n")

    def snippet(self, task: str, text: str) -> None:
        """Write one line for a snippet from the suite, which is the candidate's answer in every
        trial of the task.
        """
        self.total += 1
        self.success += 1
        self.write(
            _answer(
                task,
                text,
                model=None,
                finish=None,
                usage=None,
                assay={"task": task, "snippet": True},
            )
        )

    def trial(self, line: Mapping[str, Any], place: _Place, run: RunId) -> None:
        """Write the candidate's answer or failure in one trial.

        A candidate that has not been called gets no line.
        """
        if not self.names.isdisjoint(place.brought):
            return
        self.total += 1
        custom = f"{place.task}#{line['k']}" if place.several else place.task
        about: dict[str, Any] = {
            "run": run,
            "task": place.task,
            "trial": line["k"],
            "id": shown_trial(line["key"]),
        }
        given = [entry for entry in line["responses"] if folded(entry["candidate"]) in self.names]
        calls = [entry for entry in line["calls"] if folded(entry["candidate"] or "") in self.names]
        if given:
            latest = max(given, key=lambda entry: entry["round"])
            call = next(
                (entry for entry in line["calls"] if entry["key"] == latest["call_key"]), None
            )
            self.success += 1
            text = results_folder.text_of(latest["body"])
            usage = None
            if call is not None:
                about |= {key: call[key] for key in ("started", "latency_s", "cost_usd")}
                usage = self._usage(call)
            finish = None if call is None else call["finish_reason"]
            model = None if call is None else call["model_version"] or call["model"]
            self.write(_answer(custom, text, model=model, finish=finish, usage=usage, assay=about))
            return
        failed = next((entry for entry in reversed(calls) if entry["fail_kind"]), None)
        if failed is None and line["state"] != "failed":
            return
        failure = failed or line
        kind, detail = failure["fail_kind"], failure["fail_detail"]
        self.failures.append(f"{custom}: {kind}: {detail}")
        status = (
            int(kind[5:])
            if isinstance(kind, str) and kind.startswith("http_") and kind[5:].isdigit()
            else None
        )
        self.write(
            {
                "custom_id": custom,
                "response": {"status_code": status, "request_id": None, "body": None},
                "error": {"code": kind, "message": detail},
                "assay": about,
            }
        )

    def structures(self, line: Mapping[str, Any], place: _Place, *, of_ideal: bool) -> None:
        """Write the structured version of the candidate's answer in one trial; `of_ideal` adds the
        structured model solution.
        """
        for call in line["calls"]:
            of_candidate = call["candidate"] is not None and folded(call["candidate"]) in self.names
            wanted = of_candidate or (of_ideal and call["candidate"] is None)
            if (
                call["role"] != Role.STRUCTURER.value
                or not wanted
                or call["fail_kind"]
                or call["body"] is None
            ):
                continue
            if self.structured is None and self.files is not None:
                self.structured = self.files.enter_context(
                    AtomicFile(Path(f"{self.described[0]}{STRUCTURED}"), force=True)
                )
            parts = read_structure(Reply(text=results_folder.text_of(call["body"])))
            trial = f"{place.task}#{line['k']}" if place.several else place.task
            custom = trial if of_candidate else f"{place.task}#ideal"
            row = {"custom_id": custom, "model": call["model"], **asdict(parts)}
            if self.structured is not None:
                self.structured.write(unescaped_json(row) + "\n")

    def _usage(self, call: Mapping[str, Any]) -> dict[str, int | None]:
        for sums, tokens in (
            (self.input_tokens, call["input_tokens"]),
            (self.output_tokens, call["output_tokens"]),
        ):
            if tokens is not None:
                sums[0] += tokens
                sums[1] += 1
        both = call["input_tokens"] is not None and call["output_tokens"] is not None
        return {
            "prompt_tokens": call["input_tokens"],
            "completion_tokens": call["output_tokens"],
            "total_tokens": call["input_tokens"] + call["output_tokens"] if both else None,
        }

    def write_log(self, origin: Provenance) -> None:
        stem, _ = self.described
        lines = [
            f"run {origin.summary.id} of {origin.summary.suite}, candidate {self.candidate.name}"
        ]
        lines.append(f"started {origin.summary.started}")
        took = self.described[1]["execution"].get("duration_seconds")
        if origin.summary.finished is not None and took is not None:
            rate = f"{self.success / took:.2f}" if took else "?"
            whole = round(took)
            clock = f"{whole // 60:02d}:{whole % 60:02d}"
            share = 100 * self.success // self.total if self.total else 0
            done = f"{share}% Completed | {self.success}/{self.total}"
            lines.append(f"Running batch: {done} [{clock}<00:00, {rate}req/s]")
            lines.append(f"finished {origin.summary.finished}")
        lines += [f"failed {text}" for text in self.failures]
        with AtomicFile(Path(f"{stem}.log"), force=True) as file:
            file.write("\n".join(" ".join(line.splitlines()) for line in lines) + "\n")

    def document(self) -> tuple[Path, dict[str, Any]]:
        stem, document = self.described
        results = {
            **document["results"],
            "total": self.total,
            "success": self.success,
            "errors": len(self.failures),
            "success_rate": round(100 * self.success / self.total, 2) if self.total else None,
            "avg_prompt_tokens": _mean(self.input_tokens),
            "avg_completion_tokens": _mean(self.output_tokens),
        }
        execution = document["execution"]
        if self.candidate.model is not None:
            seconds = execution["duration_seconds"]
            execution = {
                **execution,
                "req_per_sec": round(self.success / seconds, 4) if seconds else None,
            }
        status = document["status"]
        if status == "completed" and self.total and not self.success:
            status = "failed"
        return stem, {**document, "status": status, "results": results, "execution": execution}


def recount(folder: Path, summary: RunSummary, plan: RunPlan) -> None:
    """Update the review counts in a run's descriptions after a decision; all other counts were
    final when the run ended.
    """
    described = []
    for candidate in plan.candidates:
        stem = results_folder.stem_of(
            folder, model=candidate.name, dataset=summary.suite, at=summary.started, run=summary.id
        )
        meta = results_folder.document(Path(f"{stem}.meta.json"))
        if meta is not None and _is_ours(meta):
            described.append((stem, {**meta, "review": _review(summary)}))
    register(folder, described)


def _review(summary: RunSummary) -> dict[str, int]:
    return {str(state): n for state, n in summary.assessments.items()}


def all_described(folder: Path, origin: Provenance) -> list[tuple[Path, dict[str, Any]]]:
    pairs = zip(origin.plan.candidates, origin.summary.candidates, strict=True)
    return [_described(folder, origin, candidate, now) for candidate, now in pairs]


def _described(
    folder: Path, origin: Provenance, candidate: CandidateSpec, now: str
) -> tuple[Path, dict[str, Any]]:
    """Return the path of a candidate's files and their description.

    Counts of an earlier description are kept for now.
    """
    summary, plan = origin.summary, origin.plan
    dataset = plan.suite
    stem = results_folder.stem_of(
        folder, model=candidate.name, dataset=dataset, at=summary.started, run=summary.id
    )
    before = results_folder.document(Path(f"{stem}.meta.json")) or {}
    # Other programs and people may edit these files, so a changed description is replaced instead
    # of trusted.
    if before.get("assay_run") != summary.id or not _is_ours(before):
        before = {key: {} for key in _PARTS}
    name = folder.name
    slug, stamp = (
        stem.parent.name,
        summary.started[:19].replace("-", "").replace(":", "").replace("T", "-"),
    )
    model = candidate.model
    metadata = {**(model.metadata if model is not None else {}), **candidate.metadata}
    mine = [
        total
        for total in origin.totals
        if total.role == "candidate" and folded(total.name) == folded(now)
    ]
    environment = dict(plan.environment)
    imported = environment.get("imported")
    source = imported if plan.imported and isinstance(imported, dict) else {}
    return stem, {
        "run_id": f"{slug}-{safe_name(dataset)}-{stamp}",
        "assay_run": summary.id,
        "status": "completed" if summary.state in _COMPLETED else summary.state.value,
        "model": {
            "name": candidate.name,
            **({} if folded(now) == folded(candidate.name) else {"called": now}),
            "id": metadata.get("hf_id") or (None if model is None else model.ref),
            **metadata,
            "answered": sorted({part.model_version for part in mine if part.model_version}),
        },
        "dataset": {
            "name": source.get("input")
            or (dataset if source else Path(plan.copy.path).name or dataset),
            "suite": dataset,
            "count": before["dataset"].get("count"),
            "digest": plan.copy.digest,
            "prompt_template": plan.prompt_version or None,
            "criteria": {
                criterion.name: criterion.guidance
                for criterion in graded_rubric(plan, summary).criteria
            },
        },
        "execution": _imported_execution(origin, source)
        if source
        else {
            "started_at": summary.started,
            "completed_at": summary.finished,
            "duration_seconds": origin.seconds,
            "req_per_sec": before["execution"].get("req_per_sec"),
            "assay_version": environment.get("assay"),
            "python": environment.get("python"),
            "machine": environment.get("machine"),
            "git": environment.get("git"),
            "command": _command(environment),
            "parameters": run_parameters(plan).as_json(),
            **({"batch": carried} if (carried := environment.get("batch")) else {}),
            **({"prompts": own} if (own := prompts_of(candidate)) else {}),
            "seed": plan.seed,
        },
        "results": before["results"]
        or dict.fromkeys(
            (
                "total",
                "success",
                "errors",
                "success_rate",
                "avg_prompt_tokens",
                "avg_completion_tokens",
            )
        ),
        "review": _review(summary),
        "files": {
            "results": f"{name}/{slug}/{stem.name}.jsonl",
            "log": f"{name}/{slug}/{stem.name}.log",
            "input": source.get("input") if source else Path(plan.copy.path).name,
            "record": f"{name}/{results_folder.RECORDS}/{results_folder.record_of(folder, summary.id).name}",
        },
    }


def _command(environment: Mapping[str, Any]) -> str | None:
    """Return the command that made the run, masked again, because earlier versions stored commands
    of logs with their secrets.
    """
    command = environment.get("command")
    return masked_line(command) if isinstance(command, str) else None


def _imported_execution(origin: Provenance, source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the execution facts that the imported files state; unknown facts are left out."""
    plan, environment = origin.plan, origin.plan.environment
    seconds = environment.get(
        "duration_s", origin.seconds if source.get("finished_known") else None
    )
    known = {
        # Absent if the file states the time itself.
        "started_from": origin.summary.started_from
        if origin.summary.started_from is StartedFrom.FILE_DATE
        else None,
        "completed_at": origin.summary.finished if source.get("finished_known") else None,
        "duration_seconds": seconds,
        "req_per_sec": environment.get("requests_per_s"),
        "server_version": environment.get("server_version"),
        "command": _command(environment),
        "parameters": run_parameters(plan).as_json() or None,
    }
    return {
        "started_at": plan.started,
        **{name: value for name, value in known.items() if value is not None},
    }


def register(folder: Path, described: Sequence[tuple[Path, dict[str, Any]]]) -> None:
    known = results_folder.registry(folder)
    mine = {(document["assay_run"], folded(document["model"]["name"])) for _, document in described}
    entries = [
        entry
        for entry in known["runs"]
        if not isinstance(entry, dict)
        or (entry.get("assay_run"), folded(str(entry.get("model")))) not in mine
    ]
    for stem, document in described:
        results_folder.write_document(Path(f"{stem}.meta.json"), document)
        entries.append(
            {
                "run_id": document["run_id"],
                "model": document["model"]["name"],
                "dataset": document["dataset"]["name"],
                "status": document["status"],
                "timestamp": document["execution"]["started_at"],
                "results_file": document["files"]["results"],
                "success_rate": document["results"]["success_rate"],
                "assay_run": document["assay_run"],
                "review": document["review"],
            }
        )
        name = document["dataset"]["name"]
        registered = known["datasets"].get(name)
        known["datasets"][name] = {
            "created": document["execution"]["started_at"],
            **(registered if isinstance(registered, dict) else {}),
            "count": document["dataset"]["count"],
            "prompt_version": document["dataset"]["prompt_template"],
            "criteria": document["dataset"]["criteria"],
        }
        slug = stem.parent.name
        known["models"][slug] = {
            "name": document["model"]["name"],
            "hf_id": document["model"]["id"],
            "runs": 0,
        }
    known["runs"] = sorted(
        entries, key=lambda entry: str(entry.get("timestamp")) if isinstance(entry, dict) else ""
    )
    for slug, model in known["models"].items():
        if isinstance(model, dict):
            model["runs"] = sum(
                _slug_of(entry) == slug for entry in known["runs"] if isinstance(entry, dict)
            )
    results_folder.write_document(inside(folder, REGISTRY), known)


def _is_ours(document: Mapping[str, Any]) -> bool:
    """True if a description has every section that Assay writes, even if a person has edited it."""
    return "assay_run" in document and all(isinstance(document.get(key), dict) for key in _PARTS)


def _slug_of(entry: Mapping[str, Any]) -> str:
    return (
        str(entry.get("results_file", "")).split("/")[-2:-1][0]
        if "/" in str(entry.get("results_file", ""))
        else ""
    )


def _task_seen(line: Mapping[str, Any], sheets: dict[str, _Sheet]) -> _Place:
    task = json.loads(line["body"]) if isinstance(line["body"], str) else {}
    brought = set()
    for snippet in task.get("snippets", ()):
        name = folded(snippet["candidate"])
        if name in sheets:
            brought.add(name)
            sheets[name].snippet(
                line["task_id"], "\n\n".join(file["content"] for file in snippet["files"])
            )
    for sheet in sheets.values():
        dataset = sheet.described[1]["dataset"]
        dataset["count"] = line["position"] + 1
    return _Place(line["task_id"], line["trials"] > 1, frozenset(brought))


def _answer(
    custom: str,
    text: str,
    *,
    model: str | None,
    finish: str | None,
    usage: dict[str, int | None] | None,
    assay: Mapping[str, Any],
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": model,
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
        ],
    }
    if usage is not None:
        body["usage"] = usage
    return {
        "custom_id": custom,
        "response": {"status_code": 200, "request_id": None, "body": body},
        "error": None,
        "assay": assay,
    }


def _mean(sums: list[int]) -> float | None:
    return round(sums[0] / sums[1], 2) if sums[1] else None
