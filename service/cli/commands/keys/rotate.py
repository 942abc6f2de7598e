"""`callgrade keys rotate`: replace a key with a new one."""

from __future__ import annotations

from typing import Annotated

import typer

from service.cli.command import command
from service.cli.durations import LIFETIME_HELP, read_duration, render_duration
from service.cli.exits import ExitCode
from service.cli.rendering.console import say


@command(20)
def rotate_key(
    key: Annotated[str, typer.Argument(metavar="ID", help="The id that `keys list` shows.")],
    overlap: Annotated[
        float, typer.Option(metavar="TIME", parser=read_duration, help="How long the old key stays valid too.")
    ] = "1d",  # pyright: ignore[reportArgumentType] (its parser reads it)
    expires: Annotated[
        float | None,
        typer.Option(metavar="TIME", parser=read_duration, help=f"{LIFETIME_HELP} [default: as long as the old key's]"),
    ] = None,
) -> int:
    """Replace a key with a new one of the same name, tenant and scopes, and print it. The old key ends after the overlap."""
    from service.cli.actor import find_user
    from service.cli.own_keys import build_unknown_key, open_keys, print_secret

    new_key = open_keys().rotate(key, overlap_s=overlap, lasts_s=expires, by=find_user())
    if new_key is None:
        raise build_unknown_key(key)
    print_secret(*new_key)
    say(f"key {key} stays valid for at most {render_duration(overlap)}")
    return ExitCode.PASSED
