"""`callgrade keys rotate`: a key in the place of one."""

from __future__ import annotations

from typing import Annotated

import typer

from service.cli.command import command
from service.cli.durations import AFTER, parse_duration, read_duration
from service.cli.exits import ExitCode
from service.cli.rendering.console import say


@command(20)
def rotate_key(
    key: Annotated[str, typer.Argument(metavar="ID", help="The id that `keys list` shows.")],
    overlap: Annotated[
        float, typer.Option(metavar="TIME", parser=read_duration, help="Time for which the old key holds as well.")
    ] = "1d",  # pyright: ignore[reportArgumentType] (its parser reads it)
    expires: Annotated[
        float | None,
        typer.Option(metavar="TIME", parser=read_duration, help=f"{AFTER} [default: as the old one was to last]"),
    ] = None,
) -> int:
    """Make a key in the place of one, with its name, tenant and scopes, and print it. The old one ends after the overlap."""
    from service.cli.actor import this_user
    from service.cli.own_keys import build_unknown_key, open_keys, show_secret

    made = open_keys().rotate(key, overlap_s=overlap, lasts_s=expires, by=this_user())
    if made is None:
        raise build_unknown_key(key)
    show_secret(*made)
    say(f"key {key} holds for {parse_duration(overlap)} more at most")
    return ExitCode.PASSED
