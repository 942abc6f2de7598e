"""Stand-ins for the calls of a `Judging`: one collects what would be asked, one gives the answers that a batch brought.

Both see the same prompts, because the nonces follow from a secret that is stored with the batch and from the question's cache
key. So a prompt names its question, also after a restart, and nothing else need be stored.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import astuple
from hashlib import sha256
from typing import Any

from service.asking.budget.reservations import Spending
from service.asking.faults import CallError
from service.asking.judging import Calls, DrawNonces
from service.asking.provider_batches.dialects import is_batchable
from service.asking.provider_batches.wire import Wire
from service.core.judging.prompts import Completion, Prompt
from service.errors import JudgeError


def derive_nonces(secret: str) -> DrawNonces:
    """Return what derives the nonces of a question from a secret and the question's cache key."""

    def draw(key: str) -> tuple[str, str]:
        digest = hmac.digest(secret.encode(), key.encode(), "sha256").hex()
        return digest[:32], digest[32:40]

    return draw


def name_prompt(prompt: Prompt) -> str:
    """Return the name of a prompt: a hash of everything that is sent."""
    return sha256(json.dumps(astuple(prompt), sort_keys=True, default=dict).encode()).hexdigest()[:32]


class Collector:
    """Takes prompts that the cache does not answer, and asks nobody. `lines`: by model, the requests by the prompts' names."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.lines: dict[str, dict[str, Mapping[str, Any]]] = {}
        self.worst: dict[str, float] = {}
        """By model, the most that its answers can cost, as far as prices are known."""
        self.bytes: dict[str, int] = {}

    async def complete(self, prompt: Prompt, spending: Spending, tenant: str) -> Completion:  # noqa: ARG002
        """Take a prompt, within the budget of its item. Always raises JudgeError."""
        name, lines = name_prompt(prompt), self.lines.setdefault(prompt.model, {})
        if name not in lines and is_batchable(prompt.model):
            worst = await self._wire.find_worst_usd(prompt)
            with spending.reserve(worst):  # counts as spent, as no bill comes
                pass
            with suppress(CallError):  # a call will say the same
                body = lines[name] = (await self._wire.build_request(prompt)).body
                self.worst[prompt.model] = self.worst.get(prompt.model, 0.0) + (worst or 0.0)
                self.bytes[prompt.model] = self.bytes.get(prompt.model, 0) + len(json.dumps(body))
        raise JudgeError("refused", "it is asked in a batch of the provider")


class Replayer:
    """Gives the answers of batches, and asks for what they lack: repairs, further votes, lines that failed."""

    def __init__(self, wire: Wire, answers: Mapping[str, bytes], live: Calls | None) -> None:
        """`answers`: by the names of prompts. `live`: asked for what is missing; None: it stays open."""
        self._wire = wire
        self._answers = answers
        self._live = live

    async def complete(self, prompt: Prompt, spending: Spending, tenant: str) -> Completion:
        """Return the reply to a prompt. Raises JudgeError."""
        answer = self._answers.get(name_prompt(prompt))
        try:
            if answer is not None:
                reply = await self._wire.read_answer(prompt, answer)
                spending.count_paid(reply.usage)
                return reply
        except CallError as error:
            if error.usage is not None:
                spending.count_paid(error.usage)
            if not error.retryable:
                raise
        if self._live is None:
            raise JudgeError(
                "provider_error", "the provider's batch brought no usable answer, and nobody else is asked"
            )
        return await self._live.complete(prompt, spending, tenant)
