"""Loads what callgrade's processes load: for the one process that the tests' own are forked from."""

from __future__ import annotations

import gc
import warnings
from importlib import import_module
from pkgutil import walk_packages

import service
from service.api.app import create_app
from service.asking.model import IMPORT_ENVIRON
from service.logs.quiet import extend_environ

UNLOADED = (".migrations", ".__main__")
WHEN_NEEDED = (
    "alembic.command",
    "alembic.config",
    "alembic.context",
    "h2.connection",
    "fastapi.telemetry._runtime",
    "httpcore",
    "multiprocessing.synchronize",
    "uvicorn.lifespan.on",
    "uvicorn.loops.asyncio",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.h11_impl",
)
"""What some modules import in the middle of their work."""

for module in walk_packages(service.__path__, "service."):
    if not any(part in module.name for part in UNLOADED):
        import_module(module.name)
with extend_environ(IMPORT_ENVIRON), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for name in ("litellm", "openai.resources.chat", *WHEN_NEEDED):
        import_module(name)
create_app()  # what pydantic builds when it is first used: the models of rubrics, judges and routes

gc.freeze()  # what is looked through for garbage is copied
