"""`assay serve`: start the web app."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from assay.cli.options import common, keys_over_http, without_sandbox, workspace
from assay.cli.output import tell
from assay.cli.parameters import option

if TYPE_CHECKING:
    from assay.app.workspace import Workspace


@click.command()
@option(
    "--host",
    default="127.0.0.1",
    help="Address to listen on; access from other machines needs --token.",
)
@option("--port", type=int, default=8000, help="Port; default 8000; 0 picks a free one.")
@option(
    "--token",
    metavar="TEXT",
    envvar="ASSAY_TOKEN",
    help="Token that browsers must present; required beyond 127.0.0.1.",
)
@keys_over_http
@without_sandbox
@common
def serve(host: str, port: int, token: str | None, store: str | None, as_json: bool) -> int:
    """Start the web app: the queue, review, statistics, and the HTTP API."""
    with workspace(store) as opened:
        return serve_workspace(opened, host=host, port=port, token=token, as_json=as_json)


def serve_workspace(
    opened: Workspace,
    *,
    host: str,
    port: int,
    path: str = "/",
    token: str | None = None,
    as_json: bool = False,
) -> int:
    """Run the server until it is stopped, and print its address to stderr."""
    from assay.web.server import serve as serve_app

    serve_app(opened, host=host, port=port, path=path, token=token, announce=tell)
    return 0
