"""`callgrade keys list`: list all keys, oldest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.command import command
from service.cli.exits import ExitCode, join_words
from service.cli.rendering.console import build_console, build_reading_console
from service.reporting.escaping import escape_unprintable

if TYPE_CHECKING:
    from service.store.access.callers import Scope
    from service.store.access.keys import Key

COLUMNS = ("id", "tenant", "name", "scopes", "created", "expires", "revoked", "used")


@command(30)
def list_keys(
    output_format: Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="Output format.")] = "table",
) -> int:
    """List all keys, including expired and revoked ones. Secrets are not stored, so they are not shown."""
    import json

    from rich.table import Table
    from rich.text import Text

    from service.cli.own_keys import open_keys

    keys = open_keys().list_keys()
    if output_format == "json":
        build_console().print(json.dumps([_build_object(key) for key in keys]), soft_wrap=True)
        return ExitCode.PASSED
    table = Table(*COLUMNS, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for key in keys:
        table.add_row(*[Text(escape_unprintable(cell), overflow="fold") for cell in _build_row(key)])
    build_reading_console().print(table)
    return ExitCode.PASSED


def _build_row(key: Key) -> list[str]:
    from service.store.times import format_rfc3339

    times = key.created_at, key.expires_at, key.revoked_at, key.used_at
    days = [(format_rfc3339(time) or "-").partition("T")[0] for time in times]
    return [key.id, key.tenant, key.name, join_words(key.scopes), *days]


def _build_object(key: Key) -> dict[str, str | list[Scope] | None]:
    from service.store.times import format_rfc3339

    return {
        "id": key.id,
        "tenant": key.tenant,
        "name": key.name,
        "scopes": list(key.scopes),
        "created": format_rfc3339(key.created_at),
        "expires": format_rfc3339(key.expires_at),
        "revoked": format_rfc3339(key.revoked_at),
        "used": format_rfc3339(key.used_at),
        "replaced_by": key.replaced_by,
    }
