"""Questions as the requests that litellm would send, and replies as it would read them, without an exchange of its own.

A line of a provider's batch holds the body of a usual request, and its result the body of a usual answer. So litellm writes and
reads both over a transport that stands in for the provider, and a batch asks exactly what a call would ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from service.asking.faults import CallError
from service.asking.model import LiteLLM
from service.core.judging.prompts import Completion, Prompt, Usage
from service.outbound.exchanges import ExchangeBounds, ExchangeNotes, holds_more_values
from service.outbound.transport import NoReplyError

B = TypeVar("B", bound=BaseModel)

BOUNDS = ExchangeBounds(600.0, max_bytes=2**29, max_values=2**40)
"""Limits of an exchange with a batch endpoint: the results of a whole batch come in one answer."""

_OWN_HEADERS = frozenset({"host", "connection", "content-length", "content-type", "accept", "accept-encoding"})
"""Headers that belong to one request and not to the account."""


class _Captured(BaseException):  # no error: litellm must let it pass
    def __init__(self, request: httpx.Request) -> None:
        self.request = request


class _StandIn(httpx.AsyncBaseTransport):
    """Gives an answer that came in another way, within the bounds of a usual one; without one, only captures the request."""

    def __init__(self, notes: ExchangeNotes, answer: bytes | None = None) -> None:
        self._notes = notes
        self._answer = answer

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        if self._answer is None:
            raise _Captured(request)
        notes = self._notes
        notes.begin()
        if len(self._answer) > notes.bounds.max_bytes or holds_more_values(self._answer, notes.bounds.max_values):
            notes.fault = "too long"
            raise NoReplyError("too long", request=request)
        notes.status = 200
        notes.answers += 1
        headers = {"content-type": "application/json"}
        return httpx.Response(200, headers=headers, content=self._answer, request=request)


async def write_request(models: LiteLLM, prompt: Prompt) -> httpx.Request:
    """Return what asking this would send. Raises CallError."""
    try:
        await models.complete(prompt, _StandIn)
    except _Captured as captured:
        return captured.request
    raise CallError("provider_error", "litellm sends no request that a batch could hold")


async def read_answer(models: LiteLLM, prompt: Prompt, answer: bytes) -> Completion:
    """Read an answer to a question, at the price of a batch. Raises CallError, with the usage at that price."""
    rate = await models.find_batch_rate(prompt.model)
    try:
        reply = await models.complete(prompt, lambda notes: _StandIn(notes, answer))
    except CallError as error:
        error.usage = error.usage and _scale(error.usage, rate)
        raise
    return replace(reply, usage=_scale(reply.usage, rate))


def _scale(usage: Usage, rate: float) -> Usage:
    return replace(usage, cost_usd=usage.cost_usd and usage.cost_usd * rate)


class Endpoint:
    """A provider's batch endpoint: paths below a root, with the headers and parameters of a usual request."""

    def __init__(self, models: LiteLLM, root: str, usual: httpx.Request) -> None:
        self._models = models
        self._root = root
        self._headers = {name: value for name, value in usual.headers.items() if name not in _OWN_HEADERS}
        self._params = usual.url.params

    async def get(self, shape: type[B], path: str, **params: str) -> B:
        """Read an object."""
        return _parse(shape, await self.download(path, **params))

    async def post(self, shape: type[B], path: str, body: Mapping[str, Any] | None = None) -> B:
        """Make or change an object."""
        return _parse(shape, await self._send("POST", path, json=body or {}))

    async def upload(self, shape: type[B], path: str, name: str, lines: bytes) -> B:
        """Upload a file of JSON Lines."""
        files = {"file": (name, lines, "application/jsonl")}
        return _parse(shape, await self._send("POST", path, data={"purpose": "batch"}, files=files))

    async def download(self, path: str, **params: str) -> bytes:
        """Read bytes."""
        return await self._send("GET", path, params=params)

    async def _send(self, method: str, path: str, *, params: Mapping[str, str] | None = None, **content: Any) -> bytes:
        url = httpx.URL(self._root + path, params=self._params.merge(params or {}))
        return (await self._models.fetch(httpx.Request(method, url, headers=self._headers, **content), BOUNDS)).content


def _parse(shape: type[B], body: bytes) -> B:
    try:
        return shape.model_validate_json(body)
    except ValidationError:
        reason = "the provider's batch endpoint gave an unknown answer"
        raise CallError("provider_error", reason, retryable=True) from None
