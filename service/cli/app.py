"""The typer application: its help, its common options and all commands."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Annotated

import typer

from service import __version__
from service.cli import commands
from service.cli.command import add_commands

app = typer.Typer(
    name="callgrade",
    help="Score what language models do with tools: decide, select, build arguments, integrate the result.",
    epilog="Exit codes: 0 passed; 1 a bug in callgrade; 2 failed; 3 undecided (a verdict is undecided); "
    "4 wrong configuration or usage; 5 bad input data.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:  # noqa: FBT001 (typer passes it by position)
    if value:
        typer.echo(f"callgrade {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001, FBT002 (the callback uses it)
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


add_commands(app, commands)


def run_app(words: Sequence[str]) -> int | None:
    """Run a command; the caller handles what typer raises.

    Builds only the command or group that the first word names: building all of them takes longer than many commands run.
    """
    part = copy(app)
    first = next(iter(words), None)
    if first in {one.name for one in (*app.registered_commands, *app.registered_groups)}:
        part.registered_commands = [one for one in app.registered_commands if one.name == first]
        part.registered_groups = [one for one in app.registered_groups if one.name == first]
    return part(list(words), prog_name="callgrade", standalone_mode=False)
