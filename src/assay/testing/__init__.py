"""Contract tests for plug-ins. Inherit from a class, set the plug-in to test, and run pytest.

    from assay.testing import ScorerContract

    class TestMyScorer(ScorerContract):
        scorer = staticmethod(my_scorer)
        right = ("Paris", "Paris")
        wrong = ("London", "Paris")

Assay tests its own plug-ins with the same classes. The package does not import pytest; the tests
use only `tmp_path`.
"""

from assay.testing.agents import WorkspaceAgentContract
from assay.testing.exporters import ExporterContract
from assay.testing.graders import GraderContract
from assay.testing.importers import ImporterContract
from assay.testing.providers import ProviderContract
from assay.testing.scorers import ScorerContract

__all__ = [
    "ExporterContract",
    "GraderContract",
    "ImporterContract",
    "ProviderContract",
    "ScorerContract",
    "WorkspaceAgentContract",
]
