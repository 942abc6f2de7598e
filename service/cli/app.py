"""The application: its help and commands, and how each run of it ends.

A module of `service.cli.commands` has `commands`: a typer with some commands, or a group of them. Help imports all of these, so
they import heavy libraries inside functions.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from service import __version__
from service.cli import commands
from service.cli.exits import ExitCode, describe_error, get_exit_code
from service.core.models.discovery import get_entry, import_all
from service.errors import CallgradeError, SettingsError
from service.reporting.escaping import escape_unprintable

FIRST = ("demo", "score", "summarize", "compare", "report", "serve")
"""The commands of a first day, which help lists first."""


class _FirstAndMore(TyperGroup):
    """Help that lists the first commands apart from the others."""

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # noqa: ARG002  # pyright: ignore[reportIncompatibleMethodOverride]
        limit = formatter.width - 6 - max(map(len, self.commands))
        first = [name for name in FIRST if name in self.commands]
        for title, names in ("Commands", first), ("More", sorted(self.commands.keys() - set(first))):
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(limit)) for name in names])


app = typer.Typer(
    name="callgrade",
    cls=_FirstAndMore,
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


def add_commands(root: typer.Typer, package: ModuleType) -> None:
    """Add the commands of every module of a package. TypeError for a module that has none."""
    for module in import_all(package):
        root.add_typer(get_entry(module, "commands"))


add_commands(app, commands)


def run(words: Sequence[str]) -> int:
    """Run a command and return its exit code. Any error becomes a line on standard error; CALLGRADE_DEBUG raises it instead."""
    for stream in (sys.stdout, sys.stderr):  # an encoding that lacks a character of a trace must not end the run
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")
    try:
        code = app(list(words), prog_name="callgrade", standalone_mode=False)
        sys.stdout.flush()  # so that a closed pipe shows up here, where it is not mistaken for an error of ours
    except Exception as error:
        if os.environ.get("CALLGRADE_DEBUG"):
            raise
        return _close_output() if isinstance(error, BrokenPipeError) else _explain(error)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except SystemExit as stop:
        # typer exits by itself when the reader of the output closes the pipe.
        if isinstance(stop.__context__, BrokenPipeError):
            return _close_output()
        raise
    return code or ExitCode.PASSED


def _explain(error: Exception) -> ExitCode:
    """Print what went wrong, and what to do next."""
    error = (_explain_missing(error) if isinstance(error, ModuleNotFoundError) else None) or error
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    code, after = ExitCode.INTERNAL, "Set CALLGRADE_DEBUG=1 to see the traceback."
    text = escape_unprintable(f"this is a bug in callgrade: {type(error).__name__}: {error}{notes}")
    if isinstance(error, CallgradeError):
        code, text, after = get_exit_code(error), describe_error(error), ""
    elif isinstance(error, typer.TyperException):
        command = getattr(getattr(error, "ctx", None), "command_path", "callgrade")
        code, text, after = ExitCode.CONFIG, escape_unprintable(error.format_message()), f"See {command} --help."
    print(f"error: {text}", *filter(None, [after]), sep="\n", file=sys.stderr)  # noqa: T201
    return code


def _explain_missing(error: ModuleNotFoundError) -> CallgradeError | None:
    """Build an error that names the extra which installs a missing module; None if no extra does, which is a fault of ours."""
    from importlib.metadata import PackageNotFoundError, requires  # noqa: PLC0415 (importing it takes an eighth of `--help`)

    module = (error.name or "").partition(".")[0]
    with suppress(PackageNotFoundError):
        for requirement in requires("callgrade") or []:
            match = re.match(r"""([\w.-]+).*\bextra == ['"](\w+)['"]""", requirement)
            if match and match[1].lower().replace("-", "_") == module:
                text = f"this needs {module}, which is not installed: pip install 'callgrade[{match[2]}]'"
                return SettingsError.at("", text)
    return None


def _close_output() -> ExitCode:
    """Send Python's flush at exit to nowhere, since nobody is reading."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.CLOSED
