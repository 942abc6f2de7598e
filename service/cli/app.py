"""The application: its help and commands, and how each run of it ends.

`callgrade NAME` is the module NAME of `service.cli.commands`: its function `main`, or the group `commands` of several. It is
imported when it runs, so that help and each command load only what they need.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperGroup

from service import __version__
from service.cli import commands
from service.cli.exits import ExitCode, describe_error, get_exit_code
from service.core.models.discovery import get_entry
from service.errors import CallgradeError, SettingsError
from service.reporting.escaping import escape_unprintable


class LazyCommands(Mapping[str, Any]):
    """Commands by name, each imported once it is asked for.

    `places`: the module of each, with its function after a colon, or the module alone: its function `main`, or its `commands`.
    A function returns its exit code, or nothing where it passed.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def __getitem__(self, name: str) -> Any:
        path, _, function = self._places[name].partition(":")
        host, module = typer.Typer(rich_markup_mode=None, add_completion=False), import_module(path)
        if hasattr(module, "commands"):
            host.add_typer(module.commands)
            return typer.main.get_group(host).commands[name]
        host.command(name)(get_entry(module, function or "main"))
        return typer.main.get_command(host)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def summarize(self, name: str) -> str:
        """Return the first line of a command's function, or of its module, without importing it."""
        path, _, function = self._places[name].partition(":")
        spec = find_spec(path)
        tree = ast.parse(Path(spec.origin).read_text("utf-8") if spec and spec.origin else "")
        own = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
        return (ast.get_docstring(own[0] if own else tree) or "").partition("\n")[0]


def find_places(package: ModuleType) -> dict[str, str]:
    """Find the commands of a package: a module of its name for each."""
    names = sorted(one.name for one in iter_modules(package.__path__))
    return {name: f"{package.__name__}.{name}" for name in names}


def build_folder(
    name: str, places: Mapping[str, str], text: str, first: Sequence[str] = (), epilog: str = ""
) -> typer.Typer:
    """Build a group of commands, as `LazyCommands` finds them; help lists `first` apart from the others."""
    found = LazyCommands(places)
    rest = [one for one in found if one not in first]
    sections = {"Commands": first, "More": rest} if first else {"Commands": rest}

    class Folder(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands = found  # pyright: ignore[reportAttributeAccessIssue] (it is only read)

        def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # noqa: ARG002  # pyright: ignore[reportIncompatibleMethodOverride]
            for title, names in sections.items():
                with formatter.section(title):
                    formatter.write_dl([(one, found.summarize(one)) for one in names])

    return build_command_group(
        name,
        text,
        cls=Folder,
        epilog=epilog,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def build_command_group(name: str, text: str, **more: Any) -> typer.Typer:
    """Build a group of commands, which shows its help if it is called without one. `more`: as of `typer.Typer`."""
    group = typer.Typer(name=name, help=text, **more)

    @group.callback(invoke_without_command=True)
    def show_help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    return group


app = build_folder(
    "callgrade",
    find_places(commands),
    "Score what language models do with tools: decide, select, build arguments, integrate the result.",
    ("demo", "score", "summarize", "compare", "report", "serve"),
    "Exit codes: 0 passed; 1 a bug in callgrade; 2 failed; 3 undecided (a verdict is undecided); "
    "4 wrong configuration or usage; 5 bad input data.",
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,  # noqa: FBT002
) -> None:
    if version or context.invoked_subcommand is None:
        typer.echo(f"callgrade {__version__}" if version else context.get_help())
        raise typer.Exit


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
