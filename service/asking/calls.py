"""One call to a model with everything around it: the provider gate, the deadline, the reservation, and the retries."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import cache

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from service.asking.budget.reservations import Spending
from service.asking.faults import CallError
from service.asking.limits import ProviderGate
from service.asking.model import Model
from service.core.judging.prompts import Completion, Prompt, Usage
from service.errors import JudgeError

Observer = Callable[[str, float, Usage | None], None]
"""Receives each request's model, the seconds until its reply was complete or it failed, and what it took (None: nothing)."""

Pricing = Callable[[Prompt], Awaitable[float | None]]
"""Returns the most that a call can cost, in US dollars; None if no price is known."""


async def find_no_price(_: Prompt) -> float | None:
    """Return None: no price is known."""
    return None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to wait and how often to try. All times in seconds."""

    attempts: int = 3
    """Requests per call, including the first."""
    attempt_s: float = 60.0
    """For one attempt, from its request to the last byte of the reply."""
    total_s: float = 180.0
    """From the first attempt on; no attempt begins after it. Pauses that a provider asks for count."""
    backoff_s: float = 0.5
    """The wait before the first retry, doubled for each further one."""
    max_backoff_s: float = 20.0


class ModelCaller:
    """Calls models, each through a gate that all its callers share.

    A call has a place at the provider gate while a request is under way, not between attempts. Waiting for a place is unbounded;
    the caller may cancel, and leaves nothing behind.
    """

    def __init__(
        self,
        model: Model,
        make_gate: Callable[[str], ProviderGate] = lambda _: ProviderGate(),
        *,
        pricing: Pricing = find_no_price,
        policy: RetryPolicy | None = None,
        chance: random.Random | None = None,
    ) -> None:
        """`make_gate`: makes the gate of a model, which is then kept."""
        self.find_gate = cache(make_gate)
        self.observers: list[Observer] = []
        self._model = model
        self._pricing = pricing
        self._policy = policy or RetryPolicy()
        self._chance = chance or random.Random()  # noqa: S311 (jitter)

    async def complete(self, prompt: Prompt, spending: Spending, tenant: str = "") -> Completion:
        """Return the reply to a prompt, on behalf of a tenant.

        Raises the JudgeError of the last attempt; NotSentError if no request was made because the provider is down, asked for a
        pause or does not accept the key; JudgeError `budget_exhausted` if `spending` has too little left.
        """
        worst = await self._pricing(prompt)
        gate, policy = self.find_gate(prompt.model), self._policy
        end: float | None = None  # the clock starts with the first attempt

        def get_seconds_left() -> float:
            return policy.total_s if end is None else end - gate.clock.now()

        def ends(state: RetryCallState) -> bool:
            return state.attempt_number >= policy.attempts or state.upcoming_sleep > get_seconds_left()

        async def attempt() -> Completion:
            nonlocal end
            async with gate.hold(get_seconds_left(), tenant):
                end = gate.clock.now() + policy.total_s if end is None else end
                await spending.wait_for_room(worst)
                with spending.reserve(worst) as reservation:
                    reply = await self._complete_in_time(prompt, gate)
                    reservation.settle(reply.usage)
                    return reply

        try:
            return await attempt()
        except JudgeError as error:
            if not _may_help(error):
                raise
            first = [error]

        async def attempt_again() -> Completion:
            if first:  # building the retries costs a tenth of a millisecond: only what failed pays it
                raise first.pop()
            return await attempt()

        return await AsyncRetrying(
            sleep=gate.clock.sleep,
            retry=retry_if_exception(_may_help),
            wait=self._compute_wait,
            stop=ends,
            reraise=True,
        )(attempt_again)

    async def _complete_in_time(self, prompt: Prompt, gate: ProviderGate) -> Completion:
        seconds, start = self._policy.attempt_s, gate.clock.now()
        usage: Usage | None = Usage()  # a bill of unknown size may come
        try:
            async with asyncio.timeout(seconds):
                reply = await self._model.complete(prompt)
        except TimeoutError:
            raise CallError("timeout", f"no whole reply in {seconds:.3g} s", usage=usage, retryable=True) from None
        except JudgeError as error:
            usage = error.usage if isinstance(error, CallError) else None
            raise
        else:
            usage = replace(reply.usage, seconds=gate.clock.now() - start)
            return replace(reply, usage=usage)
        finally:
            for observe in self.observers:
                observe(prompt.model, gate.clock.now() - start, usage)

    def _compute_wait(self, state: RetryCallState) -> float:
        """Wait as the provider asked and a little more, else exponentially; with jitter, so that callers spread out."""
        policy, error = self._policy, state.outcome and state.outcome.exception()
        if isinstance(error, JudgeError) and error.retry_after is not None:
            return error.retry_after + self._chance.uniform(0.0, policy.backoff_s)
        doubled = min(policy.max_backoff_s, policy.backoff_s * 2 ** (state.attempt_number - 1))
        return self._chance.uniform(doubled / 2, doubled)


def _may_help(error: BaseException) -> bool:
    waits_in_vain = isinstance(error, CallError) and error.pause_cut
    return isinstance(error, JudgeError) and error.retryable and not waits_in_vain
