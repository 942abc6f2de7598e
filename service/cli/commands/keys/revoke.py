"""`callgrade keys revoke`: revoke a key. Revoking it again changes nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.rendering.console import say


@command(40)
def revoke_key(key: Annotated[str, typer.Argument(metavar="ID", help="The id that `keys list` shows.")]) -> int:
    """Revoke a key. A running service may still accept it for five seconds."""
    from service.cli.actor import find_user
    from service.cli.own_keys import build_unknown_key, open_keys

    if not open_keys().revoke(key, by=find_user()):
        raise build_unknown_key(key)
    say(f"key {key} is revoked")
    return ExitCode.PASSED
