"""Loads what callgrade's processes load: for the one process that the tests' own are forked from."""

from __future__ import annotations

import gc
import warnings
from importlib import import_module

from service.io.model import _AT_IMPORT
from service.io.quiet import environ

OURS = ("cli.app", "cli.keys", "cli.score", "cli.serve", "cli.worker", "io.shared_cache", "io.webhooks")

for module in OURS:
    import_module(f"service.{module}")
with environ(_AT_IMPORT), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for module in ("litellm", "openai.resources.chat"):
        import_module(module)

gc.freeze()  # what is looked through for garbage is copied
