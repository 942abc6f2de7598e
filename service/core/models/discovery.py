"""Finding the modules of a package: a new kind is a new file, and nothing else lists it."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any


def import_all(package: ModuleType) -> list[ModuleType]:
    """Imports every module of a package, in the order of their names, so that the classes in them are known."""
    names = sorted(module.name for module in iter_modules(package.__path__))
    return [import_module(f"{package.__name__}.{name}") for name in names]


def get_entry(module: ModuleType, name: str) -> Any:
    """What a module holds under the name by which its kind is found. TypeError: it holds nothing there."""
    try:
        return vars(module)[name]
    except KeyError:
        raise TypeError(f"{module.__name__} has no {name}, which every module beside it has") from None
