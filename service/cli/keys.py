"""`callgrade keys`: create, list, revoke."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Literal

import typer
from rich.table import Table
from rich.text import Text

from service.cli.console import console, printable, reading_console, say
from service.cli.context import read_settings
from service.cli.exits import ExitCode, listed
from service.io.bootstrap import prepared
from service.io.store.callers import Scope
from service.io.store.keys import Key, Keys
from service.io.store.times import rfc3339

COLUMNS = ("id", "tenant", "name", "scopes", "created", "expires", "revoked")


def create_key(
    *, name: str, tenant: str = "default", scopes: Collection[str] = ("score", "batch"), days: int | None = None
) -> ExitCode:
    """Makes a key: its text alone on standard output. SettingsError where it cannot be made so."""
    key, text = _keys().create(name=name, tenant=tenant, scopes=scopes, days=days)
    console().print(text, soft_wrap=True)
    until = f"until {rfc3339(key.expires_at)}" if key.expires_at else "until it is revoked"
    say(f"key {key.id} of tenant {key.tenant} for {listed(key.scopes)}, {until}; it is not shown again")
    return ExitCode.PASSED


def list_keys(*, output_format: Literal["table", "json"] = "table") -> ExitCode:
    """All keys, the oldest first."""
    found = _keys().listed()
    if output_format == "json":
        console().print(json.dumps([_row(key) for key in found]), soft_wrap=True)
        return ExitCode.PASSED
    table = Table(*COLUMNS, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for key in found:
        table.add_row(*[Text(printable(cell), overflow="fold") for cell in _cells(key)])
    reading_console().print(table)
    return ExitCode.PASSED


def revoke_key(key_id: str) -> ExitCode:
    """Ends a key; one that has ended already stays so."""
    if not _keys().revoke(key_id):
        raise typer.BadParameter(f"no key {printable(key_id)}; `callgrade keys list` shows their ids")
    say(f"key {key_id} is revoked")
    return ExitCode.PASSED


def _keys() -> Keys:
    return Keys(prepared(read_settings()))


def _cells(key: Key) -> list[str]:
    days = [(rfc3339(time) or "-").partition("T")[0] for time in (key.created_at, key.expires_at, key.revoked_at)]
    return [key.id, key.tenant, key.name, listed(key.scopes), *days]


def _row(key: Key) -> dict[str, str | list[Scope] | None]:
    return {
        "id": key.id,
        "tenant": key.tenant,
        "name": key.name,
        "scopes": list(key.scopes),
        "created": rfc3339(key.created_at),
        "expires": rfc3339(key.expires_at),
        "revoked": rfc3339(key.revoked_at),
    }
