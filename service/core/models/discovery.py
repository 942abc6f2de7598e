"""Finding the modules of a package: a new kind is a new file, and nothing else lists it."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def import_all(package: ModuleType) -> list[ModuleType]:
    """Imports every module of a package, in the order of their names, so that the classes in them are known."""
    names = sorted(module.name for module in iter_modules(package.__path__))
    return [import_module(f"{package.__name__}.{name}") for name in names]
