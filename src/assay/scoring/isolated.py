"""Registry of functions that run in a child process; the child imports only the functions that are
called.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ISOLATED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "same_answer": "assay.scoring.math_verify:same_answer",
        "file_scorer": "assay.scoring.custom_scorers:file_scorer",
        "plugin_scorer": "assay.scoring.custom_scorers:plugin_scorer",
        "plugin_grader": "assay.scoring.graders:plugin_grader",
        "plugin_evaluator": "assay.scoring.evaluator_plugins:plugin_evaluator",
    }
)
"""`module:function` by name.

A function takes JSON values by keyword and returns JSON; its module may have a `warm_up()`.
"""
