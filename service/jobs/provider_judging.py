"""Judge a chunk through the batch endpoints of providers, before its items are scored.

What the cache does not answer is submitted, and the chunk is put off until the provider has answered. Then its items are scored
as ever: each question finds its answer where a call would have brought one, and what is missing is asked live. Whatever step a
worker dies at, the next one goes on there: the row of a submission is written before anything is sent, the provider's list says
whether it was taken, and answers can be read again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from secrets import token_hex
from typing import Any, NamedTuple, TypeVar

from service.asking.budget.reservations import Spending
from service.asking.faults import CallError, NotSentError, closes_key
from service.asking.judging import Judging
from service.asking.provider_batches.dialects import Answers, Dialect, Submission, UnsureError, open_batches
from service.asking.provider_batches.questions import Collector, Replayer, derive_nonces
from service.asking.provider_batches.wire import Endpoint, Wire
from service.engine import Engine
from service.errors import CallgradeError, JudgeError
from service.jobs.items import PROVIDER_DELAY_S, Deferral, ItemScorer, WaitingItem, defer_for_fault, split_blocks
from service.jobs.recorder import BUDGET_SPENT, QUESTIONS_SPENT
from service.store.database import insist
from service.store.jobs.leases import ChunkItem, ClaimedChunk
from service.store.jobs.provider_batches import ProviderBatch, ProviderBatches

LOG = logging.getLogger("callgrade.batches")

T = TypeVar("T")

MIN_QUESTIONS = 50
"""Fewest questions to one model for which `auto` waits for a provider's batch."""

MAX_QUESTIONS = 40_000
"""Most questions in one submission; providers take 50,000."""

CANCEL_S = 3_600.0
"""Seconds after which a cancelled batch of a provider that does not end is given up."""

DATABASE_PATIENCE_S = 60.0

MAX_KEPT_ANSWERS = 16
"""Submissions whose answers are kept in memory, for the other parts of a chunk that was split."""


class Polling(NamedTuple):
    """How often a provider is asked whether a batch has ended, in seconds: half as long again each time."""

    first: float = 30.0
    longest: float = 600.0
    watch: float = 60.0
    """Between looks for batches that nobody waits for any more."""


class ProviderJudging:
    """Prepares the chunks of batches that are judged through batch endpoints."""

    def __init__(
        self, engine: Engine, scorer: ItemScorer, store: ProviderBatches, wire: Wire, polling: Polling
    ) -> None:
        self._engine = engine
        self._scorer = scorer
        self._store = store
        self._wire = wire
        self._polling = polling
        self._answers: dict[str, Answers] = {}

    async def prepare(self, chunk: ClaimedChunk) -> ItemScorer | Deferral:
        """Return what scores the items of a chunk, with the answers of providers; or why it must wait."""
        judging = self._engine.judging
        if judging is None or chunk.options.get("judging", "live") == "live":
            return self._scorer
        rows = await self._run(partial(self._store.find, chunk.lease, chunk.size))
        if not rows and chunk.size == 1 and chunk.deaths:  # split off, as it may have taken down its worker
            return self._scorer
        try:
            if (deferral := await self._submit_rest(chunk, judging, rows)) is not None:
                return deferral
            rows = await self._run(partial(self._store.find, chunk.lease, chunk.size))
            found = [await self._look(row, chunk, judging) for row in rows]
        except JudgeError as fault:
            LOG.warning("a provider's batch must wait", extra={"fields": {"why": str(fault)}})
            return defer_for_fault(fault) or Deferral(str(fault), PROVIDER_DELAY_S, all_wait=True)
        answers = [one for one in found if one is not None]
        if len(answers) < len(found):
            looks = max([row.looks for row in rows])
            delay = min(self._polling.longest, self._polling.first * 1.5 ** min(looks, 20))
            return Deferral("a provider's batch is under way", delay, all_wait=True, of_provider=True)
        is_open = chunk.options.get("unanswered") == "open"
        merged = {name: answer for one in answers for name, answer in one.items()}
        replaying = judging.copy_over(
            lambda live: Replayer(self._wire, merged, None if is_open else live), derive_nonces(rows[0].secret)
        )
        return self._scorer.copy_over(replaying)

    async def watch(self) -> None:
        """Cancel, for ever, what providers still work on for batches that are over."""
        while True:
            await asyncio.sleep(self._polling.watch)
            try:
                for row in await self._run(self._store.find_abandoned):
                    await self._abandon(row)
            except Exception:
                LOG.exception("providers' batches could not be cancelled; it is tried again")

    # Submissions.

    async def _submit_rest(
        self, chunk: ClaimedChunk, judging: Judging, rows: Sequence[ProviderBatch]
    ) -> Deferral | None:
        """Submit the questions of all items that no submission covers yet, as many at a time as one may hold."""
        start = max([row.end for row in rows], default=chunk.lease.first)
        secret = rows[0].secret if rows else token_hex(16)
        left = [item for item in chunk.items if item.position >= start]
        collector = Collector(self._wire)
        for block in split_blocks(left):
            for one in await self._plan(block):
                await self._collect(one, collector, judging, secret, chunk.tenant)
                if await self._is_full(collector):
                    end = one.item.position + 1
                    if (deferral := await self._submit(chunk, start, end, collector, secret)) is not None:
                        return deferral
                    start, collector = end, Collector(self._wire)
        end = chunk.lease.first + chunk.size
        return await self._submit(chunk, start, end, collector, secret) if start < end else None

    async def _plan(self, items: Sequence[ChunkItem]) -> list[WaitingItem]:
        begun = await asyncio.to_thread(self._scorer.begin, items)
        return [one for one in begun if isinstance(one, WaitingItem)]

    async def _collect(
        self, one: WaitingItem, collector: Collector, judging: Judging, secret: str, tenant: str
    ) -> None:
        """Collect the questions of an item, unless it may not ask them; scoring says so."""
        request, plan = one.request, one.plan
        try:
            if plan is None or self._engine.choose_mode(request) != "live":
                return
            self._engine.admit(request)
            self._engine.ask_limits.admit_questions(plan.asks)
        except CallgradeError:
            return
        spending = Spending(self._engine.build_spending(request, tenant).cap_usd)
        collecting = judging.copy_over(lambda _: collector, derive_nonces(secret))
        await collecting.answer(
            plan.asks, plan.trace, mode="live", spending=spending, model=request.judge_model, tenant=tenant
        )

    async def _is_full(self, collector: Collector) -> bool:
        for model, size in collector.bytes.items():
            opened = await open_batches(self._wire, model)
            if opened is not None and (size > opened[0].max_bytes or len(collector.lines[model]) >= MAX_QUESTIONS):
                return True
        return False

    async def _submit(
        self, chunk: ClaimedChunk, first: int, end: int, collector: Collector, secret: str
    ) -> Deferral | None:
        fewest = MIN_QUESTIONS if chunk.options["judging"] == "auto" else 1
        models = [model for model, lines in collector.lines.items() if len(lines) >= fewest]
        base = ProviderBatch(
            label=token_hex(8),
            batch=chunk.lease.batch,
            first=first,
            size=end - first,
            model="",
            questions=0,
            secret=secret,
            state="ended",
        )
        rows = [
            replace(base, label=token_hex(8), model=model, questions=len(collector.lines[model]), state="new")
            for model in models
        ]
        worst = [collector.worst[model] for model in models]
        spent = await self._run(partial(self._store.add, chunk.lease, rows or [base], worst or [0.0]))
        if spent is not None:
            reason = QUESTIONS_SPENT if spent == "max_questions" else BUDGET_SPENT
            return Deferral(reason, 0.0, all_wait=True, of_budget=True)
        for row in rows:
            await self._send(row, collector.lines[row.model], again=False)
        return None

    async def _send(self, row: ProviderBatch, lines: Mapping[str, Mapping[str, Any]], *, again: bool) -> None:
        """Submit lines under the label of a row. One that the provider refuses is over: its questions are asked otherwise."""
        opened = await open_batches(self._wire, row.model)
        if opened is None or not lines:
            return await self._run(partial(self._store.end, row))
        dialect, at = opened
        named = {row.label + name: body for name, body in lines.items()}
        try:
            provider_id = await dialect.submit(at, _describe(row, frozenset()), named, again=again)
        except CallError as fault:
            return await self._end_refused(row, fault)
        if not await self._run(partial(self._store.record, row, provider_id)):
            await dialect.cancel(at, provider_id)  # another worker has submitted them
        return None

    async def _end_refused(self, row: ProviderBatch, fault: CallError) -> None:
        """End a row whose provider refuses what we ask; raise a fault that will pass."""
        if fault.retryable or closes_key(fault) or isinstance(fault, NotSentError):
            raise fault
        fields = {"batch": row.batch, "model": row.model, "why": str(fault)}
        LOG.warning("a provider refuses a batch; its questions are asked otherwise", extra={"fields": fields})
        await self._run(partial(self._store.end, row))

    # What became of them.

    async def _look(self, row: ProviderBatch, chunk: ClaimedChunk, judging: Judging) -> Answers | None:
        """Return the answers of a submission, by the names of prompts, once there are or will be none further."""
        if row.label in self._answers:
            return self._answers[row.label]
        opened = await open_batches(self._wire, row.model) if row.model else None
        if opened is None:
            return {}
        if row.state != "ended":
            await self._run(partial(self._store.look, row, chunk.lease))
        answers: Answers | None
        late = row.age - 3_600.0 * float(str(chunk.options.get("judging_hours", 24.0)))
        try:
            if row.provider_id is not None:
                answers = await self._read(row, row.provider_id, *opened, late=late)
            else:
                waits = row.state == "new" and late < 0.0 and await self._find_again(row, chunk, judging)
                answers = None if waits else {}
        except CallError as fault:
            await self._end_refused(row, fault)
            answers = {}
        if answers is None:
            return None
        await self._run(partial(self._store.end, row))
        while len(self._answers) >= MAX_KEPT_ANSWERS:
            del self._answers[next(iter(self._answers))]
        self._answers[row.label] = {name.removeprefix(row.label): answer for name, answer in answers.items()}
        return self._answers[row.label]

    async def _read(
        self, row: ProviderBatch, provider_id: str, dialect: Dialect, at: Endpoint, *, late: float
    ) -> Answers | None:
        """Read the answers of a provider's batch; cancel it where it is late, and give it up where that does not end it."""
        answers = await dialect.read(at, provider_id)
        if answers is None and late > 0.0 and not row.cancelled:
            await dialect.cancel(at, provider_id)
            await self._run(partial(self._store.note_cancelled, row))
        return {} if answers is None and late > CANCEL_S else answers

    async def _find_again(self, row: ProviderBatch, chunk: ClaimedChunk, judging: Judging) -> bool:
        """Find a submission whose answer was lost, else submit it again; False if there will be none."""
        opened = await open_batches(self._wire, row.model)
        if opened is None:
            return False
        try:
            found = await opened[0].find(opened[1], _describe(row, await self._run(self._store.list_taken)))
        except UnsureError:
            return True
        if found is not None:
            await self._run(partial(self._store.record, row, found))
            return True
        if not (chunk.lease.first <= row.first and row.end <= chunk.lease.first + chunk.size):
            await self._run(partial(self._store.end, row))  # this is a part of its chunk, which was split
            return False
        collector = Collector(self._wire)
        for block in split_blocks([item for item in chunk.items if row.first <= item.position < row.end]):
            for one in await self._plan(block):
                await self._collect(one, collector, judging, row.secret, chunk.tenant)
        await self._send(row, collector.lines.get(row.model, {}), again=True)
        return True

    async def _abandon(self, row: ProviderBatch) -> None:
        """Cancel a submission that nobody waits for."""
        opened = await open_batches(self._wire, row.model)
        try:
            if opened is not None and not row.cancelled:
                dialect, at = opened
                found = row.provider_id or await dialect.find(
                    at, _describe(row, await self._run(self._store.list_taken))
                )
                if found is not None:
                    await dialect.cancel(at, found)
        except (JudgeError, UnsureError):
            if row.age < 86_400.0:
                return  # it is tried again
        await self._run(partial(self._store.end, row, unread=True))

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(insist, work, give_up=DATABASE_PATIENCE_S)


def _describe(row: ProviderBatch, taken: Iterable[str]) -> Submission:
    return Submission(row.label, row.model, time.time() - row.age, row.questions, frozenset(taken))
