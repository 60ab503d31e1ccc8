"""Window sizes of the gallery, and an accessibility check of a page by axe-core."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Page

WIDTHS = ((390, 844), (1024, 768), (1440, 900))
"""Width and height of a phone, a tablet and a desktop window."""


def axe() -> str:
    """Return the source of axe-core from the package that carries it."""
    file = resources.files("axe_playwright_python") / "axe.min.js"
    return file.read_text("utf-8")


def serious(page: Page) -> list[str]:
    """List serious axe findings on the page: all rules in light colours, contrast in dark ones
    too.
    """
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.evaluate(axe())
    violations: list[Any] = []
    themes: tuple[tuple[Literal["light", "dark"], str], ...] = (
        ("light", "{rules: {'target-size': {enabled: true}}}"),  # off in axe unless asked for
        ("dark", "{runOnly: ['color-contrast']}"),
    )
    for colours, rules in themes:
        page.emulate_media(color_scheme=colours, reduced_motion="reduce")
        asked = f"() => axe.run(document, {{resultTypes: ['violations'], ...{rules}}})"
        violations += [(colours, violation) for violation in page.evaluate(asked)["violations"]]
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    return [
        f"{colours}: {violation['id']}: {node['target']} {node['failureSummary']}"
        for colours, violation in violations
        if violation["impact"] in ("serious", "critical") or violation["id"] == "landmark-unique"
        for node in violation["nodes"]
    ]
