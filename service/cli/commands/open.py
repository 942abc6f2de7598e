"""`callgrade open`: the service, with its pages in a browser."""

from __future__ import annotations

from typing import Annotated

import typer

from service.cli.command import command
from service.cli.commands.serve import run_serve


@command(61)
def open(  # noqa: A001 (its name is the command's)
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, max=65_535, help="Port; 0 takes any free one. [default: CALLGRADE_PORT or 8000]"
        ),
    ] = None,
) -> int:
    """Serve on this machine alone, and open the pages in a browser. Ctrl-C ends it."""
    return run_serve(host="127.0.0.1", port=port, log_level="warning", browser=True)
