"""A run's record states what happened: the command as it was typed, and only parameters, criteria and times that are known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.journey.conftest import Command

SECRET = "hf_Zq81vLw0Xy72TtPa"
SUITE = """
name: small
candidates: [{name: echoing, model: echo}]
score: exact
tasks:
  - {id: one, prompt: "yes", expected: "yes"}
"""


def test_a_run_records_its_command_as_it_was_typed_without_secrets(assay: Command, project: Path) -> None:
    (project / "small.yaml").write_text(SUITE, "utf-8")
    done = assay("run", "small.yaml", "--trials", 2, "--batch-id", SECRET, "--json")
    assert done.code == 0, done.err
    typed = "assay run small.yaml --trials 2 --batch-id *** --json"
    shown = assay("show", done.document["run_id"], "--json").document
    assert shown["environment"]["command"] == typed
    (meta,) = (project / "results").rglob("*.meta.json")
    assert json.loads(meta.read_text("utf-8"))["execution"]["command"] == typed
    assert typed in assay("show", done.document["run_id"]).out
    assert assay("export", "json").document["runs"][0]["environment"]["command"] == typed
