"""The command `assay best`: prints the candidate with the highest mean."""

from __future__ import annotations

import click

from assay.plugins import Project


@click.command()
@click.option("--boom", is_flag=True, help="Fail, as a command with a bug does.")
def best(boom: bool) -> None:
    """Print the best candidate of the working folder's store."""
    estimates = Project().stats().estimates
    means = {each.candidate: each.mean for each in estimates if each.mean is not None}
    if boom:
        raise ZeroDivisionError("no candidates")
    click.echo(max(means, key=lambda name: means[name]))
