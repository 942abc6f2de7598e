"""`callgrade keys create`: a key, its text alone on standard output."""

from __future__ import annotations

from typing import Annotated

import typer

from service.cli.command import command
from service.cli.durations import AFTER, read_duration
from service.cli.exits import ExitCode


@command(10)
def create_key(
    name: Annotated[str, typer.Option(metavar="TEXT", help="What the key is for, as `keys list` shows it.")],
    tenant: Annotated[
        str, typer.Option(metavar="ID", help="Whose it is: tenants share neither batches nor judgements nor limits.")
    ] = "default",
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE",
            help="What it is for: score, batch, calibrate, label, metrics, or admin for everything; repeatable. "
            "[default: score, batch]",
        ),
    ] = None,
    expires: Annotated[
        float | None, typer.Option(metavar="TIME", parser=read_duration, help=f"{AFTER} [default: never]")
    ] = None,
) -> int:
    """Make a key, and print it on standard output. It is kept nowhere and cannot be shown again."""
    from service.cli.actor import this_user
    from service.cli.own_keys import open_keys, show_secret

    scopes = scope or ("score", "batch")
    key, text = open_keys().create(name=name, tenant=tenant, scopes=scopes, lasts_s=expires, by=this_user())
    show_secret(key, text)
    return ExitCode.PASSED
