"""The keys of callers in the store, for the commands about them."""

from __future__ import annotations

import typer

from service.cli.context import read_settings
from service.cli.exits import join_words
from service.cli.rendering.console import console, say
from service.reporting.escaping import escape_unprintable
from service.store.access.keys import Key, Keys
from service.store.times import format_rfc3339
from service.wiring import prepare_database


def open_keys() -> Keys:
    """The keys of the store of the settings."""
    return Keys(prepare_database(read_settings()))


def show_secret(key: Key, text: str) -> None:
    """A key that was just made: its text alone on standard output."""
    console().print(text, soft_wrap=True)
    until = f"until {format_rfc3339(key.expires_at)}" if key.expires_at else "until it is revoked"
    say(f"key {key.id} of tenant {key.tenant} for {join_words(key.scopes)}, {until}; it is not shown again")


def build_unknown_key(key_id: str) -> typer.BadParameter:
    """The usage error for the id of no key."""
    return typer.BadParameter(f"no key {escape_unprintable(key_id)}; `callgrade keys list` shows their ids")
