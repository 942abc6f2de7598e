"""Asks the application over ASGI."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.api.asgi_caller import JSON, Answer, exchange
from tests.frozen.doors import application, migrated_application


class Asker:
    """An application and an event loop for it: one with an empty store, or over the store in a file."""

    def __init__(self, store: Path | None = None) -> None:
        self._store = store

    def __enter__(self) -> Asker:
        self._loop = asyncio.Runner()
        self._made = application() if self._store is None else migrated_application(self._store)
        self._app = self._made.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._made.__exit__(None, None, None)
        self._loop.close()

    def __call__(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] = JSON) -> Answer:
        """The answer to a request with a body of JSON, or with none."""
        data = b"" if body is None else json.dumps(body).encode()

        async def chunks() -> tuple[bytes, bool]:
            return data, False

        return self._loop.run(exchange(self._app, method, path, chunks, headers, b""))
