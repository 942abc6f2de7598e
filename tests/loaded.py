"""Loads what callgrade's processes load: for the one process that the tests' own are forked from."""

from __future__ import annotations

import gc
import warnings
from importlib import import_module
from pkgutil import walk_packages

import service
from service.asking.model import _AT_IMPORT
from service.logs.quiet import extend_environ

UNLOADED = (".migrations", ".__main__")

for module in walk_packages(service.__path__, "service."):
    if not any(part in module.name for part in UNLOADED):
        import_module(module.name)
with extend_environ(_AT_IMPORT), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for name in ("litellm", "openai.resources.chat"):
        import_module(name)

gc.freeze()  # what is looked through for garbage is copied
