"""Commands about the keys of callers. Bodies are imported when a command runs."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

keys = typer.Typer(
    name="keys", help="Make, list and revoke the keys that callers of the service need.", rich_markup_mode=None
)


@keys.callback(invoke_without_command=True)
def _keys(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@keys.command("create")
def keys_create(
    name: Annotated[str, typer.Option(metavar="TEXT", help="What the key is for, as `keys list` shows it.")],
    tenant: Annotated[
        str, typer.Option(metavar="ID", help="Whose it is: tenants share neither batches nor judgements nor limits.")
    ] = "default",
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="What it is for: score, batch, calibrate, or admin for everything; repeatable. [default: score, batch]"
        ),
    ] = None,
    expires: Annotated[
        int | None, typer.Option(metavar="DAYS", min=1, max=36_500, help="Days after which it ends. [default: never]")
    ] = None,
) -> int:
    """Make a key, and print it on standard output. It is kept nowhere and cannot be shown again."""
    from service.cli.keys import create_key  # noqa: PLC0415

    return create_key(name=name, tenant=tenant, scopes=scope or ("score", "batch"), days=expires)


@keys.command("list")
def keys_list(
    output_format: Annotated[
        Literal["table", "json"], typer.Option("--format", "-f", help="How it is written.")
    ] = "table",
) -> int:
    """List all keys, also those that have ended. Their secrets are not known."""
    from service.cli.keys import list_keys  # noqa: PLC0415

    return list_keys(output_format=output_format)


@keys.command("revoke")
def keys_revoke(key: Annotated[str, typer.Argument(metavar="ID", help="The id that `keys list` shows.")]) -> int:
    """End a key. A running service may take it for five more seconds."""
    from service.cli.keys import revoke_key  # noqa: PLC0415

    return revoke_key(key)
