"""Ask a sandbox to make calls: an HTTP service that the settings allow. `http` reaches it safely."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable, Iterable, Mapping

from pydantic import JsonValue

from service.errors import InputError, SandboxError
from service.outbound.http import AddressError, HttpAnswer, NoAnswerError, Outbound, Resolver, Target, resolve_host
from service.reading.strict_json import Limits, parse_strictly


class Sandboxes:
    """The sandboxes that requests may name: `hosts` as host (with its scheme's own port) or host:port.

    `timeout` in seconds, from the look-up of the name to the last byte of the reply; `limits` bound the reply.
    """

    def __init__(
        self,
        hosts: Iterable[str],
        *,
        allow_private: bool = False,
        timeout: float = 10.0,
        limits: Limits | None = None,
        resolve: Resolver = resolve_host,
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    ) -> None:
        self._limits = limits or Limits()
        self._outbound = Outbound(
            hosts,
            allow_private=allow_private,
            timeout=timeout,
            max_bytes=self._limits.max_bytes,
            resolve=resolve,
            tls=tls,
        )

    def admit(self, url: str) -> Target:
        """Return the target of a URL. Raises InputError at /sandbox/url if it is not allowed."""
        return self._outbound.admit(url, place="/sandbox/url")

    async def ask(self, target: Target, message: Mapping[str, JsonValue]) -> JsonValue:
        """Return the sandbox's reply. Raises SandboxError for every failure."""
        try:
            answer = await self._outbound.exchange(target, json.dumps(message, allow_nan=False).encode())
        except AddressError as error:
            raise SandboxError(str(error)) from None
        except NoAnswerError as error:
            raise SandboxError(f"the sandbox did not answer: {error}") from None
        return await asyncio.to_thread(self._read, answer)

    def _read(self, answer: HttpAnswer) -> JsonValue:
        if answer.status != 200:
            raise SandboxError(f"the sandbox {answer.status_text}")
        if len(answer.body) > self._limits.max_bytes:
            raise SandboxError(f"the sandbox's reply passes {self._limits.max_bytes} bytes")
        try:
            return parse_strictly(answer.body, self._limits)
        except InputError as error:
            raise SandboxError(f"the sandbox's reply is not JSON we accept: {error.problems[0]}") from None
