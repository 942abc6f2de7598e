"""How a module becomes a command, and the discovery of commands in `service.cli.commands`.

A module there is a command, which takes the file's name, or a group of them. A package is a group whose commands are its
modules. Help imports all of these, so they import heavy libraries inside functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TypeVar

import typer

from service.core.models.discovery import import_all

F = TypeVar("F", bound=Callable[..., int])


@dataclass(frozen=True, slots=True)
class _Entry:
    """What a module adds to the command line, and its place among its neighbours."""

    place: int
    content: Callable[..., int] | typer.Typer


_ENTRIES: dict[str, _Entry] = {}
"""By the name of the module."""


def command(place: int) -> Callable[[F], F]:
    """Make a function the command of its module, at a place among the commands of its group. Its docstring is its help."""

    def register(body: F) -> F:
        _ENTRIES[body.__module__] = _Entry(place, body)
        return body

    return register


def command_group(module: str, place: int, text: str) -> typer.Typer:
    """Make a module or package a group: its place among the groups, and its help text. Called without a command it shows help."""
    group = typer.Typer(help=text, rich_markup_mode=None)

    @group.callback(invoke_without_command=True)
    def show_help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    _ENTRIES[module] = _Entry(place, group)
    return group


def add_commands(app: typer.Typer, package: ModuleType) -> None:
    """Add every command and group of a package, each in its place. TypeError for a module that is neither."""
    modules = list(import_all(package))
    for module in modules:
        if module.__name__ not in _ENTRIES:
            raise TypeError(f"{module.__name__} has neither a function under @command nor a command_group")
    for module in sorted(modules, key=lambda one: _ENTRIES[one.__name__].place):
        name, content = module.__name__.rpartition(".")[2], _ENTRIES[module.__name__].content
        if not isinstance(content, typer.Typer):
            app.command(name)(content)
            continue
        app.add_typer(content, name=name)
        if hasattr(module, "__path__"):
            add_commands(content, module)
