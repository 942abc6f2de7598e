"""Answer questions: from the cache, else by a single flight for all who ask the same, which calls the model.

A reply that cannot be used is requested once more.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import NamedTuple, Protocol

from service.asking.budget.reservations import Spending
from service.asking.cache.guard import Cache
from service.asking.cached_replies import CACHED_REPLY, CachedReply, parse_cached
from service.asking.calls import Observer, Pricing, find_no_price
from service.asking.own_judges import OWN_JUDGES, PREFIX, OwnJudges, find_own_judges
from service.asking.single_flight import SingleFlight
from service.core.conclusion.judge_answers import NO_JUDGE
from service.core.judging.judges import Ask
from service.core.judging.masking import UNMASKED, build_masks
from service.core.judging.notes import CacheUse, JudgeReply, Vote, add_usages, is_same_model, sum_costs
from service.core.judging.prompts import Completion, Prompt, Turn
from service.core.judging.questions import Question, build_question
from service.core.judging.replies import read_judgement, unmask_judgement
from service.core.judging.sensitive_values import SensitiveKind
from service.core.judging.voting import is_split
from service.core.outcome import Errored, Skipped
from service.core.report import AskEstimate, JudgeMode
from service.core.trace import Trace
from service.errors import SETUP_CAUSES, CallgradeError, JudgeError

DrawNonces = Callable[[str], tuple[str, str]]
"""Draws a boundary and an echo token for the question with a cache key."""

REPAIRABLE = frozenset({"unparseable", "invalid_judgement"})
"""Faults of a reply that a second request may repair."""

FALLBACK_CAUSES = frozenset({*SETUP_CAUSES, "provider_error", "timeout", "quota_exhausted"})
"""Faults after which the fallback model is asked, where one is set."""

NO_MODEL = Skipped("not_asked", NO_JUDGE)
NOT_CACHED = Skipped("not_asked", "the cache has no answer, and no model is asked")


def draw_nonces(_: str) -> tuple[str, str]:
    """Draw 128 bits that enclose what is shown, and 8 characters that the reply must echo."""
    return secrets.token_hex(16), secrets.token_hex(4)


class Calls(Protocol):
    """Makes one call to a model, within all limits."""

    async def complete(self, prompt: Prompt, spending: Spending, tenant: str) -> Completion:
        """Return the model's reply, on behalf of a tenant. Raises JudgeError."""
        ...


class _ModelAsk(NamedTuple):
    """One question to one model; `sample` numbers repeated questions."""

    question: Question
    model: str
    sample: int
    tenant: str
    instead_of: str | None = None


@dataclass(frozen=True, slots=True)
class Judges:
    """Which models judge, and where they are."""

    model: str
    """Answers where a judge names no model; empty: only judges in Python answer."""
    allowed: frozenset[str] = frozenset()
    """Other models that requests may name."""
    fallback: str | None = None
    """Asked when a model cannot be reached."""
    api_base: str | None = None
    mask: frozenset[SensitiveKind] = frozenset()
    """Kinds of text to hide from models behind stand-ins of the same form; the report shows the real texts."""
    route: str = ""
    """How calls reach the models, as built by `build_route`; fits are bound to it."""
    form: str = "auto"
    """How the models are made to reply with an object."""

    def list_models(self, criterion: str, judge: str) -> tuple[str, ...]:
        """List the models that may answer a criterion where its judge names none, the one that does by default first."""
        named = [*find_own_judges(criterion, judge), self.model, self.fallback or "", *sorted(self.allowed)]
        return tuple(dict.fromkeys([one for one in named if one]))


class Judging:
    """Answers the questions of plans. One per process, in one event loop."""

    def __init__(  # noqa: PLR0913 (the last four are for tests, for closing and for observers)
        self,
        calls: Calls,
        cache: Cache,
        judges: Judges,
        *,
        pricing: Pricing = find_no_price,
        nonces: DrawNonces = draw_nonces,
        now: Callable[[], float] = monotonic,
        closing: Callable[[], Awaitable[None]] | None = None,
        observers: list[Observer] | None = None,
    ) -> None:
        """`closing` releases what `calls` holds, at the end; `observers` are those of `calls`, and may be extended."""
        self.observers = [] if observers is None else observers
        self.judges = judges
        self._calls = calls
        self.cache = cache
        self._pricing = pricing
        self._draw_nonces = nonces
        self._now = now
        self._closing = closing
        self._own_judges = OwnJudges()
        self._single_flight: SingleFlight[tuple[CachedReply, CacheUse]] = SingleFlight()

    def copy_over(self, wrap: Callable[[Calls], Calls], nonces: DrawNonces) -> Judging:
        """Return the same judging, with its calls wrapped, and with other nonces."""
        same = Judging(
            wrap(self._calls), self.cache, self.judges, pricing=self._pricing, nonces=nonces, observers=self.observers
        )
        same._own_judges = self._own_judges  # their limits hold for all
        return same

    async def close(self) -> None:
        """Release the cache and all connections."""
        await self.cache.close()
        if self._closing is not None:
            await self._closing()

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
        questions = await _build_questions(asks, trace, self.judges.mask)
        rounds_by_question = [_list_rounds(one, self._choose_models(one, model), repeat, tenant) for one in questions]
        votes = await asyncio.gather(*[self._collect_votes(rounds, mode, spending) for rounds in rounds_by_question])
        return {one.ask.key: tuple(found) for one, found in zip(questions, votes, strict=True)}

    async def complete(self, prompt: Prompt, spending: Spending) -> Completion:
        """Return a model's reply to a prompt that is no judge's question, uncached. Raises JudgeError."""
        return await self._calls.complete(prompt, spending, "")

    async def estimate(self, asks: Iterable[Ask], trace: Trace, *, model: str | None = None) -> dict[str, AskEstimate]:
        """Estimate the most that asking would take, by `Ask.key`, if nothing were cached."""
        questions = await _build_questions(asks, trace, self.judges.mask)
        return {one.ask.key: await self._estimate_one(one, self._choose_models(one, model)) for one in questions}

    def _choose_models(self, question: Question, model: str | None) -> tuple[str, ...]:
        """Choose who answers: the models of the rubric, else that of the request, else a judge in Python, else the default."""
        if question.judge.models or model:
            return question.judge.models or (str(model),)
        return find_own_judges(question.ask.criterion, question.judge.id) or (self.judges.model,)

    async def find_cached(
        self, asks: Iterable[Ask], trace: Trace, *, model: str | None = None, tenant: str = ""
    ) -> frozenset[str]:
        """Return which questions, by `Ask.key`, the cache answers completely. Asks no model."""
        questions = await _build_questions(asks, trace, self.judges.mask)
        return frozenset([one.ask.key for one in questions if await self._is_cached(one, model, tenant)])

    async def _is_cached(self, question: Question, model: str | None, tenant: str) -> bool:
        rounds = _list_rounds(question, self._choose_models(question, model), 0, tenant)
        replies = [reply for ask in rounds.first if (reply := await self._find_reply(ask)) is not None]
        if len(replies) < len(rounds.first):
            return False
        if not (rounds.further and is_split(question.judge, replies)):
            return True
        return all([await self._find_reply(ask) is not None for ask in rounds.further])

    async def _find_reply(self, ask: _ModelAsk) -> JudgeReply | None:
        cached = await self._read_cached(self._build_key(ask), ask.question)
        return None if cached is None else self._build_reply(ask, cached, "hit", self._now())

    async def _estimate_one(self, question: Question, models: Sequence[str]) -> AskEstimate:
        judge, models = question.judge, [one for one in models if one and not one.startswith(PREFIX)]
        prices = [await self._pricing(question.prompt(one, *self._draw_nonces(""))) for one in models]
        price = sum_costs(prices)
        tokens = (question.size + question.max_tokens) * judge.samples * len(models)
        return AskEstimate(tokens, None if price is None else price * judge.samples)

    async def _collect_votes(self, rounds: _Rounds, mode: JudgeMode, spending: Spending) -> list[Vote]:
        """Collect the votes on one question: further ones only if the first disagree."""
        votes = await self._vote_round(rounds.first, mode, spending)
        replies = [vote for vote in votes if isinstance(vote, JudgeReply)]
        if rounds.further and replies and is_split(rounds.further[0].question.judge, replies):
            votes += await self._vote_round(rounds.further, mode, spending)
        return votes

    async def _vote_round(self, asks: Sequence[_ModelAsk], mode: JudgeMode, spending: Spending) -> list[Vote]:
        """Collect one vote of each model. The fallback answers once per sample: for a second juror it would repeat its reply."""
        results = await asyncio.gather(*[self._try_reply(one, mode, spending) for one in asks])
        fallbacks: dict[int, _ModelAsk] = {}
        for one, got in zip(asks, results, strict=True):
            other = self._find_fallback(one, got.cause) if isinstance(got, JudgeError) and mode != "cached" else None
            if other is not None:
                fallbacks.setdefault(one.sample, one._replace(model=other, instead_of=one.model))
        fallback_votes: dict[tuple[str, int], _VoteOrFault] = {}
        if fallbacks:
            voices = fallbacks.values()
            fallback_results = await asyncio.gather(*[self._try_reply(one, mode, spending) for one in voices])
            fallback_votes = {
                (str(one.instead_of), one.sample): got for one, got in zip(voices, fallback_results, strict=True)
            }
        final = [fallback_votes.get((one.model, one.sample), got) for one, got in zip(asks, results, strict=True)]
        return [_settle_vote(one, got, spending) for one, got in zip(asks, final, strict=True)]

    async def _try_reply(self, ask: _ModelAsk, mode: JudgeMode, spending: Spending) -> _VoteOrFault:
        try:
            return await self._reply(ask, mode, spending)
        except JudgeError as error:
            error.model = ask.model
            return error
        except CallgradeError as error:
            return Errored("provider_error", str(error))

    def _find_fallback(self, ask: _ModelAsk, cause: str) -> str | None:
        """Find the model to ask in a failed one's place; never one of its own jury, which would vote twice."""
        other, jury = self.judges.fallback, ask.question.judge.models
        if not other or cause not in FALLBACK_CAUSES or other in (ask.model, *jury):
            return None
        return None if any(is_same_model(one, other) for one in jury if one != ask.model) else other

    async def _reply(self, ask: _ModelAsk, mode: JudgeMode, spending: Spending) -> Vote:
        if not ask.model:
            return NO_MODEL
        key = self._build_key(ask)
        start = self._now()
        cached = None if mode == "fresh" else await self._read_cached(key, ask.question)
        if cached is None and mode == "cached":
            return NOT_CACHED
        reply, use = await self._ask_once(ask, key, mode, spending) if cached is None else (cached, "hit")
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

    async def _ask_once(
        self, ask: _ModelAsk, key: str, mode: JudgeMode, spending: Spending
    ) -> tuple[CachedReply, CacheUse]:
        """Answer through the single flight for this key. If it ends on another caller's budget, ask again on our own."""
        is_ours = False

        async def fetch() -> tuple[CachedReply, CacheUse]:
            nonlocal is_ours
            is_ours = True
            reply = (
                None if mode == "fresh" else await self._read_cached(key, ask.question)
            )  # another flight may have ended meanwhile
            return (reply, "hit") if reply is not None else (await self._ask_model(ask, key, spending), "miss")

        try:
            (reply, use), joined = await self._single_flight.run_once(f"{mode}:{key}", fetch)
        except JudgeError as error:
            if error.cause != "budget_exhausted" or is_ours:
                raise
            return await self._ask_model(ask, key, spending), "miss"
        return reply, "coalesced" if joined and use == "miss" else use

    async def _read_cached(self, key: str, question: Question) -> CachedReply | None:
        text = await self.cache.get(key)
        return None if text is None else parse_cached(text, question)

    async def _ask_model(self, ask: _ModelAsk, key: str, spending: Spending) -> CachedReply:
        """Ask the model, and cache its answer. Raises JudgeError."""
        if ask.model.startswith(PREFIX):
            reply = await self._own_judges.reply(ask.model, ask.question)
        else:
            reply = await self._ask_and_repair(ask, key, spending)
        await self.cache.set(key, CACHED_REPLY.dump_json(reply).decode())
        return reply

    async def _ask_and_repair(self, ask: _ModelAsk, key: str, spending: Spending) -> CachedReply:
        """Ask the model; if its reply cannot be used, or leaves out sentences, ask once more."""
        boundary, token = self._draw_nonces(key)
        prompt = ask.question.prompt(ask.model, boundary, token, sample=ask.sample)
        first = await self._calls.complete(prompt, spending, ask.tenant)
        reply: CachedReply | None = None
        try:
            reply = CachedReply(read_judgement(first, ask.question, token), first.model, first.usage)
        except JudgeError as error:
            if error.cause not in REPAIRABLE:
                raise
            repair = _build_repair(prompt, first, error)
        else:
            left_out = reply.judgement.left_out
            if not left_out:
                return reply
            repair = ask.question.prompt(ask.model, boundary, token, sample=ask.sample, left_out=left_out)
        second = await self._calls.complete(repair, spending, ask.tenant)
        usage = add_usages(first.usage, second.usage)
        try:
            return CachedReply(read_judgement(second, ask.question, token), second.model, usage)
        except JudgeError as error:
            if reply is None or error.cause not in REPAIRABLE:
                raise
        return replace(reply, usage=usage)  # what it left out stays open

    def _build_reply(self, ask: _ModelAsk, reply: CachedReply, use: CacheUse, start: float) -> JudgeReply:
        paid = reply.usage if use == "miss" else replace(reply.usage, cost_usd=0.0)
        return JudgeReply(
            judgement=unmask_judgement(reply.judgement, ask.question.masks),
            requested=ask.model,
            model=reply.model,
            cache=use,
            usage=paid,
            latency_ms=round(1_000 * (self._now() - start), 3),
            cut=tuple([part.name for part in ask.question.parts if part.cut]),
            instead_of=ask.instead_of,
            route=self.judges.route,
        )


_VoteOrFault = Vote | JudgeError
"""A vote, or the fault that prevents it so far."""


def _settle_vote(ask: _ModelAsk, result: _VoteOrFault, spending: Spending) -> Vote:
    """Turn the last result into a vote, and unmask a fault's reason, which may quote the masked trace."""
    if not isinstance(result, JudgeError):
        return result
    spending.faults.append(result)
    masks = ask.question.masks
    return Errored(result.cause, masks.unmask(result.reason) if masks else result.reason)


class _Rounds(NamedTuple):
    """One question to each of its models: what to ask first, and what to ask if those replies disagree."""

    first: tuple[_ModelAsk, ...]
    further: tuple[_ModelAsk, ...]


def _list_rounds(question: Question, models: Sequence[str], repeat: int, tenant: str) -> _Rounds:
    judge = question.judge
    start = repeat * judge.samples
    samples = range(start, start + judge.votes), range(start + judge.votes, start + judge.samples)
    first, further = ([_ModelAsk(question, one, n, tenant) for one in models for n in some] for some in samples)
    return _Rounds(tuple(first), tuple(further))


LONG_TRACE_PARTS = 200
"""Messages and calls from which on questions are built in a thread: each shows everything before it."""


async def _build_questions(asks: Iterable[Ask], trace: Trace, mask: frozenset[SensitiveKind]) -> list[Question]:
    asks = list(asks)

    def put() -> list[Question]:
        masks = build_masks(trace, mask) if mask and asks else UNMASKED
        return [build_question(ask, trace, masks) for ask in asks]

    return put() if len(trace.messages) + len(trace.steps) < LONG_TRACE_PARTS else await asyncio.to_thread(put)


MAX_SHOWN_REPLY_CHARS = 4_000
"""Characters of a reply that its model is shown again."""

_REPAIR = (
    "That reply could not be used: {why}. Every quote is copied from the material word for word, and every label is one of the "
    "list. Reply once more: the whole JSON object with the same token, and nothing else."
)


def _build_repair(prompt: Prompt, reply: Completion, error: JudgeError) -> Prompt:
    """Go on from a reply that could not be used: the model sees its own words, and which rule they break."""
    said = Turn("assistant", reply.text[:MAX_SHOWN_REPLY_CHARS] or "-")
    return replace(prompt, turns=(*prompt.turns, said, Turn("user", _REPAIR.format(why=error.reason))))
