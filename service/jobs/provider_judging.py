"""Judge a chunk through the batch endpoints of providers, before its items are scored.

What the cache does not answer is submitted, and the chunk is put off until the provider has answered. Then its items are scored
as ever: each question finds its answer where a call would have brought one, and what is missing is asked live. Whatever step a
worker dies at, the next one goes on there: the row of a submission is written before anything is sent, the provider's list says
whether it was taken, and answers can be read again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from secrets import token_hex
from typing import NamedTuple, ParamSpec, TypeVar

from service.asking.budget.reservations import Spending
from service.asking.faults import CallError, NotSentError, closes_key
from service.asking.judging import Judging
from service.asking.model import LiteLLM
from service.asking.provider_batches.dialects import Answers, Dialect, UnsureError, open_batches
from service.asking.provider_batches.questions import Collector, Replayer, derive_nonces
from service.engine import Engine
from service.errors import CallgradeError, JudgeError
from service.jobs.items import PROVIDER_DELAY_S, Deferral, ItemScorer, WaitingItem, defer_for_fault, split_blocks
from service.jobs.recorder import BUDGET_SPENT, QUESTIONS_SPENT
from service.store.database import insist
from service.store.jobs.leases import ClaimedChunk
from service.store.jobs.provider_batches import ProviderBatch, ProviderBatches

LOG = logging.getLogger("callgrade.batches")

A = ParamSpec("A")
T = TypeVar("T")

MIN_QUESTIONS = 50
"""Fewest questions to one model for which `auto` waits for a provider's batch."""

CANCEL_S = 3_600.0
"""Seconds after which a cancelled batch of a provider that does not end is given up."""

GIVE_UP_S = 86_400.0
"""Seconds for which a batch that nobody waits for is tried to be cancelled: by then it has ended by itself."""

DATABASE_PATIENCE_S = 60.0


class Polling(NamedTuple):
    """How often a provider is asked whether a batch has ended, in seconds: half as long again each time."""

    first: float = 30.0
    longest: float = 600.0
    watch: float = 60.0
    """Between looks for batches that nobody waits for any more."""


class ProviderJudging:
    """Prepares the chunks of batches that are judged through batch endpoints."""

    def __init__(
        self, engine: Engine, scorer: ItemScorer, store: ProviderBatches, models: LiteLLM, polling: Polling
    ) -> None:
        self._engine = engine
        self._scorer = scorer
        self._store = store
        self._models = models
        self._polling = polling

    async def prepare(self, chunk: ClaimedChunk) -> ItemScorer | Deferral:
        """Return what scores the items of a chunk, with the answers of providers; or why it must wait."""
        judging = self._engine.judging
        if judging is None or chunk.options.get("judging", "live") == "live":
            return self._scorer
        try:
            rows = await self._run(self._store.find, chunk.lease, chunk.size)
            if not rows and chunk.deaths < chunk.size:  # else it was split off, as it may take down its worker
                if (deferral := await self._submit(chunk, judging)) is not None:
                    return deferral
                rows = await self._run(self._store.find, chunk.lease, chunk.size)
            found = [await self._look(row, chunk, judging) for row in rows]
        except JudgeError as fault:
            return defer_for_fault(fault) or Deferral(str(fault), PROVIDER_DELAY_S, all_wait=True)
        if None in found:
            delay = self._polling.first * 1.5 ** min(20, max([row.looks for row in rows]))
            delay = min(delay, self._polling.longest)
            return Deferral("a provider's batch is under way", delay, all_wait=True, of_provider=True)
        is_open = chunk.options.get("unanswered") == "open"
        if not rows and not is_open:
            return self._scorer
        answers = {name: answer for one in found for name, answer in (one or {}).items()}
        nonces = derive_nonces(rows[0].secret if rows else "")  # without rows nothing is sent
        replayer = Replayer(self._models, answers, None if is_open else judging.calls)
        return self._scorer.copy_over(judging.copy_over(replayer, nonces))

    async def _submit(self, chunk: ClaimedChunk, judging: Judging) -> Deferral | None:
        """Submit the questions of a chunk, a batch for each model; return why not, if its own batch may not ask them."""
        secret = token_hex(16)
        collected = await self._collect(chunk, judging, secret)
        fewest = MIN_QUESTIONS if chunk.options["judging"] == "auto" else 1
        rows = [
            ProviderBatch(
                label=token_hex(8),
                batch=chunk.lease.batch,
                first=chunk.lease.first,
                size=chunk.size,
                model=model,
                questions=len(lines),
                secret=secret,
            )
            for model, lines in collected.lines.items()
            if len(lines) >= fewest
        ]
        worst = [collected.worst[row.model] for row in rows]
        spent = await self._run(self._store.add, chunk.lease, rows, worst)
        if spent is not None:
            reason = QUESTIONS_SPENT if spent == "max_questions" else BUDGET_SPENT
            return Deferral(reason, 0.0, all_wait=True, of_budget=True)
        for row in rows:
            await self._send(row, collected, again=False)
        return None

    async def _collect(self, chunk: ClaimedChunk, judging: Judging, secret: str) -> Collector:
        """Collect the questions of a chunk's items that the cache does not answer."""
        collector = Collector(self._models)
        collecting = judging.copy_over(collector, derive_nonces(secret))
        for block in split_blocks(chunk.items):
            for one in await asyncio.to_thread(self._scorer.begin, block):
                if isinstance(one, WaitingItem) and one.plan is not None and self._may_ask(one):
                    spending = Spending(self._engine.build_spending(one.request, chunk.tenant).cap_usd)
                    model, tenant = one.request.judge_model, chunk.tenant
                    asks, trace = one.plan.asks, one.plan.trace
                    await collecting.answer(asks, trace, mode="live", spending=spending, model=model, tenant=tenant)
        return collector

    def _may_ask(self, one: WaitingItem) -> bool:
        try:
            self._engine.admit(one.request)
            self._engine.ask_limits.admit_questions(one.plan.asks if one.plan else ())
            return self._engine.choose_mode(one.request) == "live"
        except CallgradeError:  # scoring says why not
            return False

    async def _send(self, row: ProviderBatch, collected: Collector, *, again: bool) -> None:
        dialect, lines = await open_batches(self._models, row.model), collected.lines.get(row.model)
        if dialect is None or not lines:
            return await self._run(self._store.end, row)
        named = {row.label + name: body for name, body in lines.items()}
        try:
            provider_id = await dialect.submit(row, named, again=again)
        except CallError as fault:
            return await self._end_refused(row, fault)
        if not await self._run(self._store.record, row, provider_id):
            await dialect.cancel(provider_id)  # another worker was faster
        return None

    async def _end_refused(self, row: ProviderBatch, fault: CallError) -> None:
        """End a row if its provider refuses what we ask: then its questions are asked live. Raise a fault that will pass."""
        if fault.retryable or closes_key(fault) or isinstance(fault, NotSentError):
            raise fault
        fields = {"batch": row.batch, "model": row.model, "why": str(fault)}
        LOG.warning("a provider refuses a batch of questions", extra={"fields": fields})
        await self._run(self._store.end, row)

    async def _look(self, row: ProviderBatch, chunk: ClaimedChunk, judging: Judging) -> Answers | None:
        """Return the answers of a submission, by the names of prompts, once no more will come; None before."""
        if row.state != "ended":
            await self._run(self._store.look, row, chunk.lease)
        answers: Answers | None = {}
        late = row.age - 3_600.0 * float(str(chunk.options.get("judging_hours", 24.0)))
        try:
            if (dialect := await open_batches(self._models, row.model)) is not None:
                if row.provider_id:
                    answers = await self._read(dialect, row, row.provider_id, late)
                elif row.state != "ended" and late <= 0.0:
                    answers = await self._find(dialect, row, chunk, judging)
        except CallError as fault:
            await self._end_refused(row, fault)
        if answers is None:
            return None
        await self._run(self._store.end, row)
        return {name.removeprefix(row.label): one for name, one in answers.items()}

    async def _read(self, dialect: Dialect, row: ProviderBatch, provider_id: str, late: float) -> Answers | None:
        """Read the answers of a provider's batch; cancel it if it is late, and give it up if that does not end it."""
        answers = await dialect.read(provider_id)
        if answers is None and late > 0.0 and not row.cancelled:
            await dialect.cancel(provider_id)
            await self._run(self._store.note_cancelled, row)
        return {} if answers is None and late > CANCEL_S else answers

    async def _find(
        self, dialect: Dialect, row: ProviderBatch, chunk: ClaimedChunk, judging: Judging
    ) -> Answers | None:
        """Find a submission whose answer was lost, else submit it again; return no answers if that cannot be."""
        try:
            found = await dialect.find(row, await self._run(self._store.list_taken))
        except UnsureError:
            return None
        if found is not None:
            await self._run(self._store.record, row, found)
        elif chunk.size < row.size:  # it was split, and other parts may look too
            return {}
        else:
            await self._send(row, await self._collect(chunk, judging, row.secret), again=True)
        return None

    # Nobody waits for them.

    async def watch(self) -> None:
        """Cancel, for ever, what providers still work on for batches that are over."""
        while True:
            await asyncio.sleep(self._polling.watch)
            try:
                for row in await self._run(self._store.find_abandoned):
                    await self._abandon(row)
            except Exception:
                LOG.exception("providers' batches could not be cancelled; it is tried again")

    async def _abandon(self, row: ProviderBatch) -> None:
        try:
            if (dialect := await open_batches(self._models, row.model)) is not None and not row.cancelled:
                taken = await self._run(self._store.list_taken)
                found = row.provider_id or await dialect.find(row, taken)
                if found is not None:
                    await dialect.cancel(found)
        except (JudgeError, UnsureError):
            if row.age < GIVE_UP_S:
                return
        await self._run(self._store.end, row, unread=True)

    async def _run(self, work: Callable[A, T], *args: A.args, **named: A.kwargs) -> T:
        return await asyncio.to_thread(insist, partial(work, *args, **named), give_up=DATABASE_PATIENCE_S)
