"""Contract tests that every exporter must pass."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from assay.app.exports.exporters import EXPORTERS, Exported, ExportRequest
from assay.app.imports.importer import import_paths
from assay.app.workspace import Workspace
from assay.domain.errors import AssayError, Refused
from assay.domain.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TABLE = "task,candidate,score\nq1,ada,1\nq1,bob,0.5\nq2,ada,0.25\nq2,bob,0.75\n"


class ExporterContract:
    """Contract tests for one exporter: inherit, and set `format`.

    Attributes:
        format: name of the exporter.
        threshold: argument for the exporter; only `junit` needs one.
        table: scores to export. If a file of the format can contain only one candidate, set a table
            with that candidate.
    """

    format: ClassVar[str]
    table: ClassVar[str] = _TABLE
    threshold: ClassVar[float | None] = None

    def test_it_writes_the_file_and_reports_it(self, tmp_path: Path) -> None:
        with self._request(tmp_path) as request:
            exported = EXPORTERS.load(self.format)(request)
            assert isinstance(exported, Exported)
            assert (exported.format, exported.output) == (self.format, request.output)
            assert request.output is not None
            assert request.output.stat().st_size > 0

    def test_an_existing_file_is_replaced_only_with_force(self, tmp_path: Path) -> None:
        with self._request(tmp_path) as request:
            assert request.output is not None
            request.output.write_text("mine", "utf-8")
            try:
                EXPORTERS.load(self.format)(request)
            except Refused:
                assert request.output.read_text("utf-8") == "mine"
            else:
                raise AssertionError("an existing file was replaced")
            EXPORTERS.load(self.format)(replace(request, force=True))
            assert request.output.read_bytes() != b"mine"

    def test_without_a_file_it_writes_text_or_says_that_it_needs_one(self, tmp_path: Path) -> None:
        text: list[str] = []
        with self._request(tmp_path) as request:
            remedy = ""
            try:
                EXPORTERS.load(self.format)(replace(request, output=None, write=text.append))
            except AssayError as error:
                remedy = error.remedy
            assert bool(remedy) != bool("".join(text).strip())

    def test_names_are_hidden_if_the_user_asks_for_it(self, tmp_path: Path) -> None:
        with self._request(tmp_path) as request:
            EXPORTERS.load(self.format)(replace(request, anonymise=True))
            assert request.output is not None
            written = request.output.read_bytes()
            # Compared as whole words, because a format may have a key `metadata`.
            assert not re.search(rb"\b(ada|bob)\b", written)

    @contextmanager
    def _request(self, folder: Path) -> Iterator[ExportRequest]:
        """Open a store with four counted scores, and return a request that exports all of them."""
        table = folder / "table.csv"
        table.write_text(self.table, "utf-8")
        with Workspace.open(folder, options={"results": "off"}, environment={}) as workspace:
            import_paths(workspace, [table])
            yield ExportRequest(
                workspace=workspace,
                format=self.format,
                selection=Selection(),
                output=folder / f"out.{self.format}",
                threshold=self.threshold,
            )
