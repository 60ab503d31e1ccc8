"""Page with the mean of each candidate."""

from __future__ import annotations

from assay.plugins import PageSection, PluginPage, Project


def means(project: Project, /) -> PluginPage:
    """Show the mean score of each candidate in the newest run."""
    rows = tuple((str(each.candidate), each.mean) for each in project.stats().estimates)
    table = PageSection(heading="Newest run", columns=("Candidate", "Mean"), rows=rows)
    return PluginPage(title="Means", sections=(table,))
