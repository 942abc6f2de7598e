"""Discover the modules of a package, so that a new kind is a new file that no list names."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any


def import_all(package: ModuleType) -> list[ModuleType]:
    """Import every module of a package, in the order of their names, so that their classes are known."""
    names = sorted(module.name for module in iter_modules(package.__path__))
    return [import_module(f"{package.__name__}.{name}") for name in names]


def get_entry(module: ModuleType, name: str) -> Any:
    """Return what a module defines under the name that its package looks for. Raises TypeError if it does not."""
    try:
        return vars(module)[name]
    except KeyError:
        raise TypeError(f"{module.__name__} has no {name}, which every module beside it has") from None
