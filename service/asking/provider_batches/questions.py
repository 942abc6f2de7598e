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
from service.asking.model import LiteLLM
from service.asking.provider_batches import is_batchable
from service.asking.provider_batches.wire import read_answer, write_request
from service.core.judging.prompts import Completion, Prompt
from service.errors import JudgeError

MAX_LINES = 40_000
"""Most questions in one batch; providers take 50,000."""

MAX_BYTES = 2**24
"""Most bytes of questions in one batch, which are held in memory. Further questions are asked live."""


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
    """Takes the prompts that the cache does not answer, as many as a batch may hold, and asks nobody."""

    def __init__(self, models: LiteLLM) -> None:
        self._models = models
        self._room: dict[str, int] = {}
        self.lines: dict[str, dict[str, Mapping[str, Any]]] = {}
        """By model, the bodies of requests by the names of their prompts."""
        self.worst: dict[str, float] = {}
        """By model, the most that the answers can cost, as far as prices are known."""

    async def complete(self, prompt: Prompt, spending: Spending, tenant: str) -> Completion:  # noqa: ARG002
        """Take a prompt, within the budget of its item. Always raises JudgeError."""
        model, name = prompt.model, name_prompt(prompt)
        lines = self.lines.setdefault(model, {})
        if name not in lines and len(lines) < MAX_LINES and is_batchable(model):
            worst = await self._models.worst_usd(prompt)
            worst = worst and worst * await self._models.find_batch_rate(model)
            with spending.reserve(worst):  # counts as spent, as no bill comes
                pass
            with suppress(CallError):  # a call will say the same
                sent = (await write_request(self._models, prompt)).content
                self._room[model] = self._room.get(model, MAX_BYTES) - len(sent)
                if self._room[model] > 0:
                    lines[name] = json.loads(sent)
                    self.worst[model] = self.worst.get(model, 0.0) + (worst or 0.0)
        raise JudgeError("refused", "it is asked in a batch of the provider")


class Replayer:
    """Gives the answers of batches, and asks for what they lack: repairs, further votes, lines that failed."""

    def __init__(self, models: LiteLLM, answers: Mapping[str, bytes], live: Calls | None) -> None:
        """`answers`: by the names of prompts. `live`: asked for what is missing; None: it stays open."""
        self._models = models
        self._answers = answers
        self._live = live

    async def complete(self, prompt: Prompt, spending: Spending, tenant: str) -> Completion:
        """Return the reply to a prompt. Raises JudgeError."""
        answer = self._answers.get(name_prompt(prompt))
        try:
            if answer is not None:
                reply = await read_answer(self._models, prompt, answer)
                spending.count_paid(reply.usage)
                return reply
        except CallError as error:
            if error.usage is not None:
                spending.count_paid(error.usage)
            if not error.retryable:
                raise
        if self._live is None:
            raise JudgeError("provider_error", "the provider's batch brought no usable answer, and no other is asked")
        return await self._live.complete(prompt, spending, tenant)
