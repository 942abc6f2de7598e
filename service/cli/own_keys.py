"""API keys in the store, for the `keys` commands."""

from __future__ import annotations

import typer

from service.cli.context import read_settings
from service.cli.exits import join_words
from service.cli.rendering.console import build_console, say
from service.reporting.escaping import escape_unprintable
from service.store.access.keys import Key, Keys
from service.store.times import format_rfc3339
from service.wiring import prepare_database


def open_keys() -> Keys:
    """Open the keys in the configured store."""
    return Keys(prepare_database(read_settings()))


def print_secret(key: Key, text: str) -> None:
    """Print a new key: only its secret goes to standard output, the rest to standard error."""
    build_console().print(text, soft_wrap=True)
    until = f"until {format_rfc3339(key.expires_at)}" if key.expires_at else "until it is revoked"
    say(f"key {key.id} of tenant {key.tenant} for {join_words(key.scopes)}, {until}; it is not shown again")


def build_unknown_key(key_id: str) -> typer.BadParameter:
    """Build the usage error for an id that no key has."""
    return typer.BadParameter(f"no key {escape_unprintable(key_id)}; `callgrade keys list` shows their ids")
