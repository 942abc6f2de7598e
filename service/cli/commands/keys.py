"""Create, rotate, list and revoke API keys."""

from __future__ import annotations

import os
import pwd
import re
import socket
from typing import Annotated

import typer
from typer import Argument, Option

from service.cli import options
from service.cli.app import build_command_group
from service.cli.options import read_settings
from service.cli.screen import print_line, print_table, say
from service.reporting.escaping import escape_unprintable
from service.store.access.audit import Actor
from service.store.access.keys import Key, Keys
from service.store.times import format_rfc3339
from service.wiring import prepare_database

commands = build_command_group("keys", __doc__ or "")

UNITS_S = {"d": 86_400.0, "h": 3_600.0, "m": 60.0}


def read_duration(text: str) -> float:
    """Read a text such as 90d, 12h or 30m as seconds; a plain number means days. BadParameter otherwise, or over 100 years.

    >>> read_duration("90d"), read_duration("30m"), read_duration("2")
    (7776000.0, 1800.0, 172800.0)
    """
    match = re.fullmatch(r"([0-9]{1,9})([dhm]?)", text)
    seconds = int(match[1]) * UNITS_S[match[2] or "d"] if match else 0.0
    if not 0.0 < seconds <= 36_500 * UNITS_S["d"]:
        raise typer.BadParameter(f"expected a duration such as 90d, 12h or 30m, at most 36500d, not {text!r}")
    return seconds


KeyArgument = Annotated[str, Argument(metavar="ID", help="The id that `keys list` shows.")]
Expires = Annotated[
    float | None,
    Option(
        metavar="TIME",
        parser=read_duration,
        help="How long the key is valid, such as 90d, 12h or 30m; a plain number means days. "
        "[default: never ends; of a rotated key: as long as the old one's]",
    ),
]


def find_user() -> Actor:
    """Return the user who runs this process, and the host name, for the audit log."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # a container's user database may lack it
        name = str(uid)
    return Actor(f"user {name}", socket.gethostname())


@commands.command("create")
def create_key(
    name: Annotated[str, Option(metavar="TEXT", help="What the key is for; shown by `keys list`.")],
    tenant: Annotated[str, Option(metavar="ID", help="Its tenant; tenants share nothing.")] = "default",
    scope: Annotated[
        list[str] | None,
        Option(
            metavar="SCOPE",
            help="What it may do: score, batch, calibrate, label, metrics, or admin for everything; repeatable. "
            "[default: score, batch]",
        ),
    ] = None,
    expires: Expires = None,
) -> None:
    """Create a key, and print it on standard output. Only a digest is stored, so the key cannot be shown again."""
    scopes = scope or ("score", "batch")
    _print_secret(_open_keys().create(name=name, tenant=tenant, scopes=scopes, lasts_s=expires, by=find_user()))


@commands.command("rotate")
def rotate_key(
    key: KeyArgument,
    overlap: Annotated[
        float, Option(metavar="TIME", parser=read_duration, help="How long the old key lasts too.")
    ] = "1d",  # pyright: ignore[reportArgumentType] (its parser reads it)
    expires: Expires = None,
) -> None:
    """Replace a key with a new one of the same name, tenant and scopes, and print it. The old key ends after the overlap."""
    made = _open_keys().rotate(key, overlap_s=overlap, lasts_s=expires, by=find_user())
    if made is None:
        raise _build_unknown_key(key)
    _print_secret(made)
    say(f"key {key} stays valid for at most {overlap / UNITS_S['h']:g} hours")


@commands.command("list")
def list_keys(output_format: options.TableOrJson = "table") -> None:
    """List all keys, including expired and revoked ones. Secrets are not stored, so they are not shown."""
    objects = [
        {
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
        for key in _open_keys().list_keys()
    ]
    days = ("created", "expires", "revoked", "used")
    rows = [
        (
            *[str(one[name]) for name in ("id", "tenant", "name")],
            ", ".join(one["scopes"] or ["-"]),
            *[str(one[day] or "-")[:10] for day in days],
        )
        for one in objects
    ]
    print_table(("id", "tenant", "name", "scopes", *days), rows, form=output_format, value=objects)
    if not rows:
        say("no key yet; to make one: callgrade keys create")


@commands.command("revoke")
def revoke_key(key: KeyArgument) -> None:
    """Revoke a key. A running service may still accept it for five seconds. Revoking it again changes nothing."""
    if not _open_keys().revoke(key, by=find_user()):
        raise _build_unknown_key(key)
    say(f"key {key} is revoked")


def _open_keys() -> Keys:
    return Keys(prepare_database(read_settings()))


def _print_secret(made: tuple[Key, str]) -> None:
    """Print a new key: only its secret goes to standard output, the rest to standard error."""
    key, text = made
    print_line(text)
    until = f"until {format_rfc3339(key.expires_at)}" if key.expires_at else "until it is revoked"
    say(f"key {key.id} of tenant {key.tenant} for {', '.join(key.scopes)}, {until}; it is not shown again")


def _build_unknown_key(key_id: str) -> typer.BadParameter:
    return typer.BadParameter(f"no key {escape_unprintable(key_id)}; `callgrade keys list` shows their ids")
