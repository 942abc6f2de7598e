"""A request that is sent again under its Idempotency-Key is given the same answer, and nothing is paid twice."""

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
    """The Idempotency-Key of a request, None where it has none; HTTPException 400 for what cannot be one."""
    key = headers.get("idempotency-key")
    if key is not None and not KEY.fullmatch(key):
        raise HTTPException(400, "Idempotency-Key: expected 1 to 255 characters of printable ASCII")
    return key


class IdempotentAnswers:
    """Gives answers again; None: there is no store, and who brings a key is answered 503."""

    def __init__(self, answers: Answers | None) -> None:
        self._answers = answers
        self._threads = Threads(4, name="answers")
        self._dropping: set[asyncio.Task[None]] = set()

    async def run_once(
        self, request: Request, key: str, data: bytes, work: Callable[[], Awaitable[Response]]
    ) -> Response:
        """What `work` answers, or has answered to the same body under the same key; an error of `work` frees the key."""
        answers = self._answers
        if answers is None:
            raise HTTPException(503, "an Idempotency-Key needs a database, and none is open here")
        asked = KeyedRequest(find_caller(request).tenant, key, hashlib.sha256(data).hexdigest(), token_hex(16))
        try:
            found = await self._run_stored(request, lambda: answers.begin(asked))
            if found is not None:
                return Response(found.body, headers={**found.headers, "idempotency-replayed": "true"}, media_type=JSON)
            response = await work()
            await self._keep(request, answers, asked, response)
        except BaseException:  # the client may have left too
            self._drop(request, answers, asked)
            raise
        return response

    async def _keep(self, request: Request, answers: Answers, asked: KeyedRequest, response: Response) -> None:
        told = {name: value for name, value in response.headers.items() if name.startswith("x-callgrade-")}
        try:
            await self._run_stored(request, lambda: answers.keep(asked, StoredAnswer(told, bytes(response.body))))
        except BusyError as error:  # what was made is worth more than that it is kept
            LOG.warning("an answer is not kept", extra={"fields": {"why": str(error)}})

    def _drop(self, request: Request, answers: Answers, asked: KeyedRequest) -> None:
        async def drop() -> None:
            try:
                await self._run_stored(request, lambda: answers.drop(asked))
            except BusyError as error:  # it is taken for lost in a while
                LOG.warning("a key is not free yet", extra={"fields": {"why": str(error)}})

        task = asyncio.create_task(drop())
        self._dropping.add(task)
        task.add_done_callback(self._dropping.discard)

    async def _run_stored(self, request: Request, work: Callable[[], T]) -> T:
        return await self._threads.run(find_payer(request.scope), lambda: insist(work, give_up=DATABASE_PATIENCE_S))
