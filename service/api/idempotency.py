"""Idempotency-Key: a request that is sent again gets the same answer, and nothing is paid for twice."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Awaitable, Callable
from secrets import token_hex
from typing import TypeVar

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from service.api.access import find_caller, find_payer
from service.api.fairness.threads import Threads
from service.api.operations import JSON
from service.errors import BusyError
from service.jobs.admission import DATABASE_PATIENCE_S
from service.store.access.answers import Answers, KeyedRequest, StoredAnswer
from service.store.database import insist

LOG = logging.getLogger("callgrade.api")

T = TypeVar("T")

KEY = re.compile(r"[ -~]{1,255}")


def read_idempotency_key(headers: Headers) -> str | None:
    """Read the Idempotency-Key of a request; None if it has none, HTTPException 400 for an invalid one."""
    key = headers.get("idempotency-key")
    if key is not None and not KEY.fullmatch(key):
        raise HTTPException(400, "Idempotency-Key: expected 1 to 255 characters of printable ASCII")
    return key


class IdempotentAnswers:
    """Replays answers. Without a store (None) a request with a key is answered with 503."""

    def __init__(self, answers: Answers | None) -> None:
        self._answers = answers
        self._threads = Threads(4, name="answers")
        self._dropping: set[asyncio.Task[None]] = set()

    async def run_once(
        self, request: Request, key: str, data: bytes, work: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Return what `work` answers, or answered before to the same body and key. An error of `work` frees the key."""
        answers = self._answers
        if answers is None:
            raise HTTPException(503, "an Idempotency-Key needs a database, and none is open here")
        keyed_request = KeyedRequest(find_caller(request).tenant, key, hashlib.sha256(data).hexdigest(), token_hex(16))
        try:
            stored = await self._run_stored(request, lambda: answers.begin(keyed_request))
            if stored is not None:
                return Response(
                    stored.body, headers={**stored.headers, "idempotency-replayed": "true"}, media_type=JSON
                )
            response = await work()
            await self._keep(request, answers, keyed_request, response)
        except BaseException:  # the client may have left too
            self._drop(request, answers, keyed_request)
            raise
        return response

    async def _keep(self, request: Request, answers: Answers, keyed_request: KeyedRequest, response: Response) -> None:
        headers = {name: value for name, value in response.headers.items() if name.startswith("x-callgrade-")}
        try:
            await self._run_stored(
                request, lambda: answers.keep(keyed_request, StoredAnswer(headers, bytes(response.body)))
            )
        except BusyError as error:  # returning the answer matters more than keeping it
            LOG.warning("the answer could not be stored", extra={"fields": {"why": str(error)}})

    def _drop(self, request: Request, answers: Answers, keyed_request: KeyedRequest) -> None:
        async def drop() -> None:
            try:
                await self._run_stored(request, lambda: answers.drop(keyed_request))
            except BusyError as error:  # the store frees it after a while
                LOG.warning("the key could not be freed", extra={"fields": {"why": str(error)}})

        task = asyncio.create_task(drop())
        self._dropping.add(task)
        task.add_done_callback(self._dropping.discard)

    async def _run_stored(self, request: Request, work: Callable[[], T]) -> T:
        return await self._threads.run(find_payer(request.scope), lambda: insist(work, give_up=DATABASE_PATIENCE_S))
