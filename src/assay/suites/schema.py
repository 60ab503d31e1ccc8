"""JSON Schemas of suite files, set files and scenarios, for editors that complete and check input.

They describe one value at a time. Problems that can be seen only in the whole suite (an id used
twice, a judge without candidates to compare) are found by `assay validate`.
"""

from __future__ import annotations

from typing import Final

from assay.domain.digest import JsonValue
from assay.suites.loading import SuiteKeys
from assay.suites.scenarios import ScenarioKeys
from assay.suites.set_files import SET_SCHEMA

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def suite_json_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema (2020-12) of a suite file."""
    return {"$schema": _DIALECT, "title": "Assay suite", **SuiteKeys.schema()}


def set_json_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema (2020-12) of a set file."""
    return {"$schema": _DIALECT, "title": "Assay set file", **SET_SCHEMA}


def scenario_json_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema (2020-12) of a `scenario.yaml`."""
    return {"$schema": _DIALECT, "title": "Assay scenario", **ScenarioKeys.schema()}
