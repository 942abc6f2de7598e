"""`callgrade keys create`: create a key."""

from __future__ import annotations

from typing import Annotated

import typer

from service.cli.command import command
from service.cli.durations import LIFETIME_HELP, read_duration
from service.cli.exits import ExitCode


@command(10)
def create_key(
    name: Annotated[str, typer.Option(metavar="TEXT", help="What the key is for; shown by `keys list`.")],
    tenant: Annotated[
        str, typer.Option(metavar="ID", help="Its tenant. Tenants share no batches, judgements or limits.")
    ] = "default",
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE",
            help="What it may do: score, batch, calibrate, label, metrics, or admin for everything; repeatable. "
            "[default: score, batch]",
        ),
    ] = None,
    expires: Annotated[
        float | None, typer.Option(metavar="TIME", parser=read_duration, help=f"{LIFETIME_HELP} [default: never]")
    ] = None,
) -> int:
    """Create a key, and print it on standard output. Only a digest is stored, so the key cannot be shown again."""
    from service.cli.actor import find_user
    from service.cli.own_keys import open_keys, print_secret

    scopes = scope or ("score", "batch")
    key, text = open_keys().create(name=name, tenant=tenant, scopes=scopes, lasts_s=expires, by=find_user())
    print_secret(key, text)
    return ExitCode.PASSED
