"""The decorator that makes a function a command, and the discovery of commands in `service.cli.commands`.

Each command is a module there and takes its file's name. A package is a group of commands; one without a `GROUP` holds
commands that several groups share. Help imports these modules, so they import heavy libraries inside functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TypeVar

import typer

from service.core.models.discovery import import_all

F = TypeVar("F", bound=Callable[..., int])


@dataclass(frozen=True, slots=True)
class CommandGroup:
    """A package's `GROUP`: its place among the groups and its text in `--help`."""

    place: int
    help: str


@dataclass(frozen=True, slots=True)
class Command:
    """A function as a command. `helps` holds, for a command that several groups share, its help text in each."""

    name: str
    place: int
    body: Callable[..., int]
    helps: Mapping[str, str]


_COMMANDS: dict[str, Command] = {}
"""Commands by the name of their module."""


def command(place: int, **helps: str) -> Callable[[F], F]:
    """Make a function the command of its module, at a place among the commands of its group. Its docstring is its help.

    `helps`: for a shared command, its help text in each group that has it.
    """

    def register(body: F) -> F:
        module = body.__module__
        _COMMANDS[module] = Command(module.rpartition(".")[2], place, body, helps)
        return body

    return register


def add_commands(app: typer.Typer, package: ModuleType) -> None:
    """Add every command of a package, and every group with its own commands, each in its place."""
    modules = import_all(package)
    own = [_get_command(module) for module in modules if not _is_package(module)]
    packages = [module for module in modules if _is_package(module)]
    shared = [one for module in packages if not hasattr(module, "GROUP") for one in _list_commands(module)]
    groups: list[tuple[CommandGroup, ModuleType]] = [
        (module.GROUP, module) for module in packages if hasattr(module, "GROUP")
    ]
    _add(app, own)
    for group, module in sorted(groups, key=lambda one: one[0].place):
        name = module.__name__.rpartition(".")[2]
        group_app = _build_group(group)
        _add(group_app, [*_list_commands(module), *[one for one in shared if name in one.helps]], group=name)
        app.add_typer(group_app, name=name)


def _list_commands(package: ModuleType) -> Iterator[Command]:
    return map(_get_command, import_all(package))


def _get_command(module: ModuleType) -> Command:
    try:
        return _COMMANDS[module.__name__]
    except KeyError:
        raise TypeError(f"{module.__name__} has no function under @command") from None


def _is_package(module: ModuleType) -> bool:
    return hasattr(module, "__path__")


def _add(app: typer.Typer, commands: list[Command], *, group: str = "") -> None:
    for one in sorted(commands, key=lambda one: one.place):
        app.command(one.name, help=one.helps.get(group))(one.body)


def _build_group(group: CommandGroup) -> typer.Typer:
    app = typer.Typer(help=group.help, rich_markup_mode=None)

    @app.callback(invoke_without_command=True)
    def show_help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    return app
