"""`callgrade open`: serve, and open the pages in a browser."""

from __future__ import annotations

from typing import Annotated

import typer

from service.cli.command import command
from service.cli.commands.serve import run_serve


@command(61)
def open(  # noqa: A001 (named after the command)
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=65_535, help="Port; 0 picks a free one. [default: CALLGRADE_PORT or 8000]"
        ),
    ] = None,
) -> int:
    """Serve on this machine only, and open the pages in a browser. Stop with Ctrl-C."""
    return run_serve(host="127.0.0.1", port=port, log_level="warning", browser=True)
