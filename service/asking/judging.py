"""Answer questions: from the cache, else by a single flight for all who ask the same, which calls the model.

A reply that cannot be used is requested once more.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from time import monotonic
from typing import NamedTuple, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from service.asking.budget.reservations import Spending
from service.asking.cache.guard import Cache
from service.asking.calls import Observer, Pricing, find_no_price
from service.asking.model import disconnect
from service.asking.own_judges import OWN_JUDGES, PREFIX, OwnJudges, find_own_judges
from service.asking.single_flight import SingleFlight
from service.core.conclusion.judge_answers import NO_JUDGE
from service.core.judging.judges import Ask
from service.core.judging.notes import CacheUse, JudgeReply, Vote, add_usages, sum_costs
from service.core.judging.prompts import Completion, Prompt, Turn, Usage
from service.core.judging.questions import Question, build_question
from service.core.judging.replies import Judgement, follows_scale, read_judgement
from service.core.judging.voting import is_split
from service.core.outcome import Errored, Skipped
from service.core.report import AskEstimate, JudgeMode
from service.core.trace import Trace
from service.errors import SETUP_CAUSES, CallgradeError, JudgeError

T = TypeVar("T")

DrawNonces = Callable[[str], tuple[str, str]]
"""Draws what encloses the material, and what the reply must echo, for the question with a cache key."""

REPAIRABLE = frozenset({"unparseable", "invalid_judgement"})
"""Faults of a reply that a second request may repair."""

MAX_SHOWN_REPLY_CHARS = 4_000
"""Characters of a reply that its model is shown again."""

_REPAIR = (
    "That reply could not be used: {why}. Every quote is copied from the material word for word, and every label is one of the "
    "list. Reply once more: the whole JSON object with the same token, and nothing else."
)

OUTAGE_CAUSES = frozenset({*SETUP_CAUSES, "provider_error", "timeout", "quota_exhausted"})
"""Faults that say that a model does not answer at all."""

NO_MODEL = Skipped("not_asked", NO_JUDGE)
NOT_CACHED = Skipped("not_asked", "the cache has no answer, and no model is asked")


def draw_nonces(_: str) -> tuple[str, str]:
    """Draw 128 bits that enclose what is shown, and 8 characters that the reply must echo."""
    drawn = secrets.token_hex(20)
    return drawn[:32], drawn[32:]


class Calls(Protocol):
    """Makes one call to a model, within all limits."""

    async def complete(self, prompt: Prompt, spending: Spending, tenant: str) -> Completion:
        """Return the model's reply, on behalf of a tenant. Raises JudgeError."""
        ...


@dataclass(frozen=True, slots=True)
class _CachedReply:
    """A reply as it is cached."""

    judgement: Judgement
    model: str
    usage: Usage


_CACHED_REPLY: TypeAdapter[_CachedReply] = TypeAdapter(_CachedReply)


class _ModelAsk(NamedTuple):
    """One question to one model; `sample` numbers repeated questions."""

    question: Question
    model: str
    sample: int
    tenant: str


@dataclass(frozen=True, slots=True)
class Judges:
    """Which models judge, and where they are."""

    model: str
    """Answers where a judge names no model; empty: only judges in Python answer."""
    allowed: frozenset[str] = frozenset()
    """Other models that requests may name."""
    api_base: str | None = None
    route: str = ""
    """How calls reach the models, as built by `build_route`; fits are bound to it."""
    form: str = "auto"
    """How the models are made to reply with an object."""

    def list_models(self, criterion: str, judge: str) -> tuple[str, ...]:
        """List the models that may answer a criterion where its judge names none, the one that does by default first."""
        named = [*find_own_judges(criterion, judge), self.model, *sorted(self.allowed)]
        return tuple(dict.fromkeys([one for one in named if one]))


class Judging:
    """Answers the questions of plans. One per process, in one event loop."""

    def __init__(
        self,
        calls: Calls,
        cache: Cache,
        judges: Judges,
        *,
        pricing: Pricing = find_no_price,
        nonces: DrawNonces = draw_nonces,
        observers: list[Observer] | None = None,
    ) -> None:
        """`observers` are those of `calls`, and may be extended."""
        self.observers = [] if observers is None else observers
        self.judges = judges
        self.outage = ""
        """The model that was asked last and why it did not answer; empty if it did."""
        self.cache = cache
        self.calls = calls
        self._pricing = pricing
        self._draw_nonces = nonces
        self._own_judges = OwnJudges()
        self._single_flight: SingleFlight[tuple[_CachedReply, CacheUse]] = SingleFlight()

    def copy_over(self, calls: Calls, nonces: DrawNonces) -> Judging:
        """Return the same judging over other calls, and with other nonces."""
        same = copy(self)
        same.calls, same._draw_nonces, same._single_flight = calls, nonces, SingleFlight()
        return same

    async def close(self) -> None:
        """Release the cache and all connections."""
        await self.cache.close()
        await disconnect()

    def may_ask(self, model: str) -> bool:
        """Whether a request may name this model."""
        return model == self.judges.model or model in self.judges.allowed or model in OWN_JUDGES

    async def answer(  # noqa: PLR0913 (each is needed by somebody)
        self,
        asks: Iterable[Ask],
        trace: Trace,
        *,
        mode: JudgeMode,
        spending: Spending,
        model: str | None = None,
        repeat: int = 0,
        tenant: str = "",
    ) -> Mapping[str, tuple[Vote, ...]]:
        """Return the votes on each question, by `Ask.key`. Never raises a judge's fault: a fault is a vote too.

        `model` answers where a judge names none, in place of the default model. `repeat` counts repetitions of the same
        questions, from 0; each has votes of its own, in the cache too. `tenant`: whose questions they are; the cache keeps
        tenants apart.
        """
        questions = await _build_questions(asks, trace)
        asked = [
            [
                _ModelAsk(one, name, repeat * one.judge.samples + n, tenant)
                for name in self._choose_models(one, model)
                for n in range(one.judge.samples)
            ]
            for one in questions
        ]
        votes = await _gather([self._collect_votes(each, mode, spending) for each in asked])
        return {one.ask.key: tuple(found) for one, found in zip(questions, votes, strict=True)}

    async def estimate(self, asks: Iterable[Ask], trace: Trace, *, model: str | None = None) -> dict[str, AskEstimate]:
        """Estimate the most that asking would take, by `Ask.key`, if nothing were cached."""
        found: dict[str, AskEstimate] = {}
        for one in await _build_questions(asks, trace):
            models = [name for name in self._choose_models(one, model) if name and not name.startswith(PREFIX)]
            price = sum_costs([await self._pricing(one.prompt(name, *self._draw_nonces(""))) for name in models])
            tokens = (one.size + one.max_tokens) * one.judge.samples * len(models)
            found[one.ask.key] = AskEstimate(tokens, None if price is None else price * one.judge.samples)
        return found

    def _choose_models(self, question: Question, model: str | None) -> tuple[str, ...]:
        """Choose who answers: the models of the rubric, else that of the request, else a judge in Python, else the default."""
        if question.judge.models or model:
            return question.judge.models or (str(model),)
        return find_own_judges(question.ask.criterion, question.judge.id) or (self.judges.model,)

    async def find_cached(
        self, asks: Iterable[Ask], trace: Trace, *, model: str | None = None, tenant: str = ""
    ) -> frozenset[str]:
        """Return which questions, by `Ask.key`, the cache answers completely. Asks no model."""
        votes = await self.answer(asks, trace, mode="cached", spending=Spending(), model=model, tenant=tenant)
        return frozenset([key for key, found in votes.items() if all(isinstance(one, JudgeReply) for one in found)])

    async def _collect_votes(self, asks: Sequence[_ModelAsk], mode: JudgeMode, spending: Spending) -> list[Vote]:
        """Collect the votes on one question: further ones only if the first disagree."""
        judge = asks[0].question.judge
        first = [one for one in asks if one.sample % judge.samples < judge.votes]
        further = [one for one in asks if one.sample % judge.samples >= judge.votes]
        votes = await _gather([self._vote(one, mode, spending) for one in first])
        replies = [vote for vote in votes if isinstance(vote, JudgeReply)]
        if further and replies and is_split(judge, replies):
            votes += await _gather([self._vote(one, mode, spending) for one in further])
        return votes

    async def _vote(self, ask: _ModelAsk, mode: JudgeMode, spending: Spending) -> Vote:
        try:
            vote = await self._reply(ask, mode, spending)
        except JudgeError as error:
            error.model = ask.model
            spending.faults.append(error)
            self.outage = f"{ask.model}: {error.reason}" if error.cause in OUTAGE_CAUSES else self.outage
            return Errored(error.cause, error.reason)
        except CallgradeError as error:
            return Errored("provider_error", str(error))
        self.outage = "" if isinstance(vote, JudgeReply) and vote.cache == "miss" else self.outage
        return vote

    async def _reply(self, ask: _ModelAsk, mode: JudgeMode, spending: Spending) -> Vote:
        if not ask.model:
            return NO_MODEL
        key = self._build_key(ask)
        start = monotonic()
        cached = await self._read_cached(key, ask.question) if mode == "cached" else None
        if mode == "cached" and cached is None:
            return NOT_CACHED
        reply, use = (cached, "hit") if cached else await self._answer_once(ask, key, mode, spending)
        if use != "miss":
            spending.count_cached()
        return self._build_reply(ask, reply, use, start)

    def _build_key(self, ask: _ModelAsk) -> str:
        return ask.question.key(
            tenant=ask.tenant,
            model=OWN_JUDGES[ask.model].cache_name if ask.model in OWN_JUDGES else ask.model,
            api_base=self.judges.api_base,
            sample=ask.sample,
            form=self.judges.form,
        )

    async def _answer_once(
        self, ask: _ModelAsk, key: str, mode: JudgeMode, spending: Spending
    ) -> tuple[_CachedReply, CacheUse]:
        """Answer through the single flight for this key. If it ends on another caller's budget, ask again on our own."""
        is_ours = False

        async def fetch() -> tuple[_CachedReply, CacheUse]:
            nonlocal is_ours
            is_ours = True
            reply = None if mode == "fresh" else await self._read_cached(key, ask.question)
            return (await self._ask_model(ask, key, spending), "miss") if reply is None else (reply, "hit")

        try:
            (reply, use), joined = await self._single_flight.run_once(f"{mode}:{key}", fetch)
        except JudgeError as error:
            if error.cause != "budget_exhausted" or is_ours:
                raise
            return await self._ask_model(ask, key, spending), "miss"
        return reply, "coalesced" if joined and use == "miss" else use

    async def _read_cached(self, key: str, question: Question) -> _CachedReply | None:
        """Read a cached reply; None if there is none, or if it is malformed or does not answer the question."""
        if (text := await self.cache.get(key)) is None:
            return None
        try:
            reply = _CACHED_REPLY.validate_json(text)
        except ValidationError:
            return None
        judge, judgement = question.judge, reply.judgement
        labels = {judgement.label, *[claim.label for claim in judgement.claims]}
        fits = all(0.0 <= value <= 1.0 for value in (*judgement.low, *judgement.high))
        return reply if fits and labels <= set(judge.menu) and follows_scale(judgement, judge) else None

    async def _ask_model(self, ask: _ModelAsk, key: str, spending: Spending) -> _CachedReply:
        """Ask the model, and cache its answer. Raises JudgeError."""
        if ask.model.startswith(PREFIX):
            judgement = await self._own_judges.reply(ask.model, ask.question)
            reply = _CachedReply(judgement, ask.model, Usage(0, 0, 0.0))
        else:
            reply = await self._ask_and_repair(ask, key, spending)
        self.cache.set(key, _CACHED_REPLY.dump_json(reply).decode())
        return reply

    async def _ask_and_repair(self, ask: _ModelAsk, key: str, spending: Spending) -> _CachedReply:
        """Ask the model; if its reply cannot be used, or leaves out sentences, ask once more."""
        boundary, token = self._draw_nonces(key)
        prompt = ask.question.prompt(ask.model, boundary, token, sample=ask.sample)
        first = await self.calls.complete(prompt, spending, ask.tenant)
        reply: _CachedReply | None = None
        try:
            reply = _CachedReply(read_judgement(first, ask.question, token), first.model, first.usage)
        except JudgeError as error:
            if error.cause not in REPAIRABLE:
                raise
            said = Turn("assistant", first.text[:MAX_SHOWN_REPLY_CHARS] or "-")
            repair = replace(prompt, turns=(*prompt.turns, said, Turn("user", _REPAIR.format(why=error.reason))))
        else:
            left_out = reply.judgement.left_out
            if not left_out:
                return reply
            repair = ask.question.prompt(ask.model, boundary, token, sample=ask.sample, left_out=left_out)
        second = await self.calls.complete(repair, spending, ask.tenant)
        usage = add_usages(first.usage, second.usage)
        try:
            return _CachedReply(read_judgement(second, ask.question, token), second.model, usage)
        except JudgeError as error:
            if reply is None or error.cause not in REPAIRABLE:
                raise
        return replace(reply, usage=usage)  # what it left out stays open

    def _build_reply(self, ask: _ModelAsk, reply: _CachedReply, use: CacheUse, start: float) -> JudgeReply:
        paid = reply.usage if use == "miss" else replace(reply.usage, cost_usd=0.0)
        seconds = monotonic() - start if use == "hit" or paid.seconds is None else paid.seconds
        return JudgeReply(
            judgement=reply.judgement,
            requested=ask.model,
            model=reply.model,
            cache=use,
            usage=paid,
            latency_ms=round(1_000 * seconds, 3),
            cut=tuple([part.name for part in ask.question.parts if part.cut]),
            route=self.judges.route,
        )


async def _gather(works: Sequence[Coroutine[object, object, T]]) -> list[T]:
    """Await all of it at once; a single one without a task of its own."""
    return [await one for one in works] if len(works) < 2 else await asyncio.gather(*works)


LONG_TRACE_PARTS = 200
"""Messages and calls from which on questions are built in a thread: each shows everything before it."""


async def _build_questions(asks: Iterable[Ask], trace: Trace) -> list[Question]:
    def put() -> list[Question]:
        return [build_question(ask, trace) for ask in asks]

    return put() if len(trace.messages) + len(trace.steps) < LONG_TRACE_PARTS else await asyncio.to_thread(put)
