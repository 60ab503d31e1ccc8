"""Registry of scorers by name: Assay's own and those of installed packages.

A scorer is a function `(response, reference, options)`. It returns a number between 0 and 1, True
or False, a mapping with `score`, `note` and `confidence`, or None if it cannot decide. Assay's own
scorers return `Score` or `Unscored`. `options` are the keys under the method in the suite, without
`extract`. Scorers from packages run in a child process with a time limit.

To add a scorer to Assay, write a function like `text_match.exact` and add a line to the table
below. A package registers a scorer under the entry-point group `assay.scorers`.
`assay.testing.ScorerContract` tests both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from assay.domain.digest import JsonValue
from assay.plugin_registry import Registry


class PluginScorer(Protocol):
    """Scores one response against its reference.

    It must return the same score for the same arguments, because a regraded run is compared with
    the original, and it must return within 10 seconds. An exception makes the response unscored,
    not wrong.
    """

    def __call__(
        self, response: str, reference: str, options: Mapping[str, JsonValue], /
    ) -> object:
        """Return the score in one of the forms that the module's docstring lists.

        Args:
            response: the candidate's text, or the part of it that the suite's `extract` selects.
            reference: the task's `expected`; empty if the task has none.
            options: the mapping under the method in the suite; empty if there is none.
        """
        ...


SCORER_REGISTRY: Final[Registry[PluginScorer]] = Registry(
    kind="scorer",
    group="assay.scorers",
    own={
        "exact": "assay.scoring.text_match:exact",
        "contains": "assay.scoring.contains:contains",
        "choice": "assay.scoring.choice:choice",
        "numeric": "assay.scoring.numeric:numeric",
        "json": "assay.scoring.json_match:json_match",
        "regex": "assay.scoring.regex:regex_scorer",
        "similarity": "assay.scoring.text_match:similarity",
        "closeness": "assay.scoring.numeric:closeness",
        "boolean": "assay.scoring.text_match:boolean",
        "tool_calls": "assay.scoring.tool_calls:tool_calls",
    },
    members=("__call__",),
)
