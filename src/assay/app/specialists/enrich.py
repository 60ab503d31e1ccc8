"""Enrich a template: fetch its documents, ask a model for metadata about each, and write an
enriched version.

Each paid reply is on disk before the enriched version is written, so an interrupted enrichment
continues without paying twice.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from assay.app.address_rules import fetch_rules
from assay.app.calibration.answer_cache import PaidAnswers
from assay.app.calibration.paid_calls import PaidCalls
from assay.app.runs.cost_estimate import Tally, check_cap
from assay.app.specialists.candidates import specialist_template
from assay.app.specialists.numbered_files import write_numbered
from assay.app.suites import model_candidate
from assay.app.wire import document
from assay.domain.digest import digest
from assay.domain.errors import InputError, Interrupted
from assay.domain.failure import CallFailed
from assay.domain.isolation import IsolatedRequest, Returned
from assay.engine.asking import Asker, GaveUp
from assay.providers.cited_pages import LARGEST_DOCUMENT, FetchedDocument, fetch_document
from assay.sandbox.workers import WorkerPool
from assay.specialists.enrichment import (
    LONGEST_TEXT,
    enrichment_request,
    read_enrichment,
    with_enrichments,
)
from assay.specialists.json5_values import MAX_EDITED_TOKENS, is_editable
from assay.specialists.templates import (
    enriched_folder,
    extra,
    home_of,
    most_enriched,
    read_json5,
    read_template,
)
from assay.suites.files import NamedFiles
from assay.suites.problems import Location, Problems

if TYPE_CHECKING:
    from assay.app.settings import Settings
    from assay.app.workspace import Workspace
    from assay.domain.digest import JsonValue
    from assay.domain.model import ModelSpec
    from assay.domain.specialists import SpecialistTemplate
    from assay.providers.directory import Directory

AT_ONCE: Final = 3
EXTRACTION_S: Final = 30.0
MODELS: Final = {
    "openrouter": "anthropic/claude-3.5-haiku",
    "anthropic": "claude-3-5-haiku-20241022",
}
"""Default model of each provider; `openrouter` is the default provider."""

_PAGES: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXTS: Final = frozenset({"", "application/json", "application/xml", "application/yaml"})


@document
class EnrichedDocument:
    """JSON of one document of an enriched template: `outcome` is `enriched`, `skipped` or `failed`,
    with `reason`.
    """

    source: str
    outcome: str
    reason: str | None = None


@document
class EnrichmentDocument:
    """JSON of `assay enrich`.

    `path` is None if no file was written; `cost_usd` is None if a price is unknown.
    """

    template: str
    path: str | None
    model: str
    documents: tuple[EnrichedDocument, ...]
    enriched: int
    skipped: int
    failed: int
    calls: int
    reused_answers: int
    cost_usd: float | None


def chosen_model(
    settings: Settings, directory: Directory, provider: str | None, model: str | None
) -> ModelSpec:
    """Return the model for `--provider` and `--model`; raises `InputError` if it cannot be
    called.
    """
    if model is None:
        provider = provider or "openrouter"
        if provider not in MODELS:
            raise InputError(
                "--provider",
                f"{provider} has no default model.",
                remedy="Give a model with --model.",
            )
        model = MODELS[provider]
    spec = model_candidate(settings, f"{provider}/{model}" if provider else model).model
    if spec is None:
        raise InputError("--model", f"{model!r} is not a model.", remedy="Write provider/name.")
    if problems := directory.problems([], judges=[spec]):
        raise problems[0]
    return spec


def enrich(
    workspace: Workspace,
    wanted: str,
    *,
    provider: str | None = None,
    model: str | None = None,
    force: bool = False,
    budget_usd: float | None = None,
) -> EnrichmentDocument:
    """Enrich a template's documents and write `enriched/VERSION/enriched-NNN.json5`; documents that
    fail are left as they are.

    `wanted`: the template's file or name. `force`: also enrich documents that are already enriched,
    here or in the newest enriched version. `budget_usd`: maximum cost in US dollars; documents
    beyond it fail. Raises `InputError` for an invalid template or model, and `Interrupted` if it
    was stopped; paid replies are then kept for a day.
    """
    template, path = specialist_template(workspace.folder, wanted, enriched=False)
    _, text = read_json5(path)
    documentation = [dict(each) for each in template.documentation]
    if not is_editable(text):
        problem = f"has more than {MAX_EDITED_TOKENS:,} names, values, marks, spaces and comments, too many to be edited."
        raise InputError(str(path), problem, remedy="Split it by a parent: from: 'parent.json5'.")
    if not documentation:
        raise InputError(
            str(path), "names no documents.", remedy="List them under `documentation`."
        )
    newest = read_template(most_enriched(path)).documentation
    known = {n: each["enrichment"] for n, each in enumerate(newest) if each.get("enrichment")}
    kept = {} if force else known
    spec = chosen_model(workspace.settings, workspace.directory, provider, model)
    name = digest([str(path.resolve()), template.digest, spec.ref])
    paid = PaidAnswers(
        workspace.settings.folder / ".assay" / "enriching" / f"{name}.jsonl", workspace.clock
    )
    paid.read()
    calls = PaidCalls(workspace=workspace, paid=paid, cap_usd=budget_usd)
    tally = Tally(workspace.directory)
    tally.add(
        enrichment_request(spec, template, "", "x" * LONGEST_TEXT),
        times=len(documentation) - len(kept),
    )
    check_cap(tally.estimate(), budget_usd)
    job = _Enrichment(template, home_of(path), spec, calls)
    try:
        outcomes = asyncio.run(
            job.all({n: source_of(each) for n, each in enumerate(documentation) if n not in kept})
        )
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        problem = f"was stopped; {len(paid.replies)} answers are kept for a day."
        raise Interrupted(
            "enrich", problem, remedy="Run the same command again to continue."
        ) from error
    fresh = {n: outcome for n, outcome in outcomes.items() if isinstance(outcome, dict)}
    written = None
    if fresh:
        added = {
            **{n: each for n, each in known.items() if not documentation[n].get("enrichment")},
            **fresh,
        }
        enriched_text = with_enrichments(text, documentation, added)
        written = write_numbered(
            enriched_folder(path, template.version), "enriched", lambda *_: enriched_text
        )
        paid.done()  # only now, so that a crash before this line loses no paid reply
    rows = []
    for n, each in enumerate(documentation):
        reason = outcome if isinstance(outcome := outcomes.get(n), str) else None
        result = "skipped" if n in kept else "enriched" if n in fresh else "failed"
        rows.append(EnrichedDocument(source=source_of(each), outcome=result, reason=reason))
    return EnrichmentDocument(
        template=template.name,
        path=None if written is None else str(written),
        model=spec.ref,
        documents=tuple(rows),
        enriched=len(fresh),
        skipped=len(kept),
        failed=len(documentation) - len(fresh) - len(kept),
        calls=calls.calls,
        reused_answers=calls.taken_over,
        cost_usd=calls.cost_usd,
    )


def source_of(documented: dict[str, JsonValue]) -> str:
    """Return the address or path of a document."""
    return str(next(documented[key] for key in ("url", "path", "source") if key in documented))


class _Enrichment:
    """Reads documents and asks for their metadata, `AT_ONCE` at the same time."""

    def __init__(
        self, template: SpecialistTemplate, home: Path, model: ModelSpec, calls: PaidCalls
    ) -> None:
        self._template, self._home, self._model, self._calls = template, home, model, calls
        self._workspace = calls.workspace
        self._rules = fetch_rules(self._workspace.settings)
        self._pool = WorkerPool(functions={"main_text": "assay.specialists.extraction:main_text"})

    async def all(self, sources: dict[int, str]) -> dict[int, dict[str, JsonValue] | str]:
        """Return for each document its enrichment, or the reason why it failed."""
        asker, slots = self._calls.open(), asyncio.Semaphore(AT_ONCE)

        async def enriched(source: str) -> dict[str, JsonValue] | str:
            async with slots:
                try:
                    return await self._enriched(asker, source)
                except (
                    CallFailed,
                    GaveUp,
                    InputError,
                    OSError,
                    ValueError,
                ) as error:  # ValueError: a malformed address
                    return error.failure.detail if isinstance(error, GaveUp) else str(error)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = {n: group.create_task(enriched(source)) for n, source in sources.items()}
        finally:
            await self._pool.close()
            await self._workspace.directory.close()
        return {n: task.result() for n, task in tasks.items()}

    async def _enriched(self, asker: Asker, source: str) -> dict[str, JsonValue]:
        remote = source.lower().startswith(("http:", "https:"))
        fetched = (
            await fetch_document(source, self._rules)
            if remote
            else await asyncio.to_thread(self._read, source)
        )
        text = (await self._text(fetched)).strip()
        if not text:
            raise InputError("", "has no text that could be described.")
        fields = await self._calls.answer(
            asker, enrichment_request(self._model, self._template, source, text), read_enrichment
        )
        return {**fields, "enriched_at": self._workspace.clock.now(), "model_used": self._model.ref}

    def _read(self, source: str) -> FetchedDocument:
        """Return a file that a template refers to; its text goes to a model, so it must be a file
        that suites may read.
        """
        parts = urlsplit(source)
        is_address = parts.scheme == "file" or "://" in source
        if is_address and (parts.scheme != "file" or parts.netloc not in ("", "localhost")):
            problem = "is neither an address with https or http, nor a file of this machine."
            raise InputError(
                "", problem, remedy="Write a path relative to the template, or file:///PATH."
            )
        named = unquote(parts.path) if is_address else source
        problems = Problems(lambda path, at_key: Location("the template", 0, ""))
        content = NamedFiles(
            self._home, also=self._workspace.settings.read_from, owner="template"
        ).text(named, (), problems)
        if content is None:
            raise problems.errors()[0]
        data = content.encode()
        if len(data) > LARGEST_DOCUMENT:
            raise InputError(
                "", f"has more than {LARGEST_DOCUMENT // 10**6} MB, the maximum for a document."
            )
        is_page = Path(named).suffix in (".html", ".htm", ".xhtml")
        return FetchedDocument(data, "text/html" if is_page else "text/plain")

    async def _text(self, fetched: FetchedDocument) -> str:
        """Return the main text of a page, or the whole text of a text file."""
        content, kind = fetched
        if kind in _PAGES or (not kind and content.lstrip()[:1] == b"<"):
            page = content.decode("latin-1")
            request = IsolatedRequest(
                function="main_text", arguments={"page": page}, time_limit_s=EXTRACTION_S
            )
            answer = await self._pool.call(request)
            if isinstance(answer, Returned):
                return str(answer.value)
            if "trafilatura" in answer.detail:
                extra("trafilatura")  # says how to install it
            raise InputError(
                "", f"is a page from which no main text could be extracted: {answer.detail}"
            )
        if (not kind.startswith("text/") and kind not in _TEXTS) or b"\0" in content:
            raise InputError("", f"is {kind or 'not text'}; only pages and texts can be enriched.")
        return content.decode("utf-8-sig", "replace")
