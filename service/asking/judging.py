"""Answering questions: the cache, then one flight for all who ask the same, then the model.

A reply that cannot be used is asked for once more.
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
from service.asking.cached_replies import KEPT, CachedReply, parse_cached
from service.asking.calls import Observe, Pricing, find_no_price
from service.asking.limits.payer import set_payer
from service.asking.single_flight import SingleFlight
from service.core.judging.judges import Ask
from service.core.judging.masking import UNMASKED, Masks, build_masks
from service.core.judging.notes import CacheUse, JudgeReply, Vote, is_same_model, sum_costs, sum_counts
from service.core.judging.prompts import Completion, Prompt, Turn, Usage
from service.core.judging.questions import Question, build_question
from service.core.judging.replies import Judgement, read_judgement
from service.core.judging.sensitive_values import SensitiveKind
from service.core.judging.voting import is_split
from service.core.outcome import Errored, Skipped
from service.core.report import AskEstimate, JudgeMode
from service.core.trace import Trace
from service.errors import SETUP_CAUSES, CallgradeError, JudgeError

DrawNonces = Callable[[], tuple[str, str]]
"""A new boundary and a new token."""

REPAIRED = frozenset({"unparseable", "invalid_judgement"})
"""The faults of a reply that asking once more may mend."""

FALLEN_BACK = frozenset({*SETUP_CAUSES, "provider_error", "timeout", "quota_exhausted"})
"""The faults for which another model is asked, where one is set."""

NOT_CACHED = Skipped("not_asked", "the cache has no answer, and no model is asked")


def draw_nonces() -> tuple[str, str]:
    """128 bits to stand around what is shown, and 8 characters that must come back."""
    return secrets.token_hex(16), secrets.token_hex(4)


class Calls(Protocol):
    """What makes one call to a model, within all limits."""

    async def complete(self, prompt: Prompt, spending: Spending) -> Completion:
        """The reply. Raises JudgeError."""
        ...


class _ModelQuestion(NamedTuple):
    """One question to one model: the sample tells several of the same apart."""

    question: Question
    model: str
    sample: int
    tenant: str
    instead_of: str | None = None


@dataclass(frozen=True, slots=True)
class Judges:
    """Which models judge, and where they are."""

    model: str
    """Answers where a judge names none."""
    allowed: frozenset[str] = frozenset()
    """Further models that requests may name."""
    fallback: str | None = None
    """Asked where a model cannot be reached."""
    api_base: str | None = None
    mask: frozenset[SensitiveKind] = frozenset()
    """What no model is shown: stand-ins of the same form are, and the report has the real ones again."""
    route: str = ""
    """The way to them, as `build_route` has it: fits are bound to it."""
    form: str = "auto"
    """How they are made to reply with an object."""

    @property
    def models(self) -> tuple[str, ...]:
        """All that may answer where a judge names none, the usual one first."""
        return tuple(dict.fromkeys([self.model, *([self.fallback] if self.fallback else []), *sorted(self.allowed)]))


class Judging:
    """Answers the questions of plans. One for a process, in one event loop."""

    def __init__(  # noqa: PLR0913 (the last four are for tests, for the end and for who watches)
        self,
        calls: Calls,
        cache: Cache,
        judges: Judges,
        *,
        pricing: Pricing = find_no_price,
        marks: DrawNonces = draw_nonces,
        now: Callable[[], float] = monotonic,
        closing: Callable[[], Awaitable[None]] | None = None,
        observers: list[Observe] | None = None,
    ) -> None:
        """`closing` lets go of what `calls` holds, at the end; `observers` are those of `calls`, to which may be added."""
        self.observers = [] if observers is None else observers
        self.judges = judges
        self._calls = calls
        self._cache = cache
        self._pricing = pricing
        self._marks = marks
        self._now = now
        self._closing = closing
        self._flights: SingleFlight[tuple[CachedReply, CacheUse]] = SingleFlight()

    async def close(self) -> None:
        """Lets go of the cache and of connections."""
        await self._cache.close()
        if self._closing is not None:
            await self._closing()

    def may_ask(self, model: str) -> bool:
        """Whether a request may name this model."""
        return model == self.judges.model or model in self.judges.allowed

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
        """The votes on each question, by `Ask.key`. No fault of a judge raises: it is a vote too.

        `model`: asked in place of the one that is set, where a judge names none. `repeat`: which time the same is asked,
        from 0; each has votes of its own, in the cache too. `tenant`: whose question it is; the cache tells them apart.
        """
        questions = await _build_questions(asks, trace, self.judges.mask)
        asked = model or self.judges.model
        sent = [_list_rounds(one, asked, repeat, tenant) for one in questions]
        votes = await asyncio.gather(*[self._collect_votes(rounds, mode, spending) for rounds in sent])
        return {one.ask.key: tuple(found) for one, found in zip(questions, votes, strict=True)}

    async def estimate(self, asks: Iterable[Ask], trace: Trace, *, model: str | None = None) -> dict[str, AskEstimate]:
        """What asking would take at most, by `Ask.key`, were nothing cached."""
        questions = await _build_questions(asks, trace, self.judges.mask)
        return {one.ask.key: await self._estimate_one(one, model or self.judges.model) for one in questions}

    async def find_cached(
        self, asks: Iterable[Ask], trace: Trace, *, model: str | None = None, tenant: str = ""
    ) -> frozenset[str]:
        """Which questions, by `Ask.key`, the cache answers altogether. Nobody is asked."""
        questions = await _build_questions(asks, trace, self.judges.mask)
        asked = model or self.judges.model
        return frozenset([one.ask.key for one in questions if await self._is_cached(one, asked, tenant)])

    async def _is_cached(self, question: Question, model: str, tenant: str) -> bool:
        rounds = _list_rounds(question, model, 0, tenant)
        replies = [reply for sent in rounds.first if (reply := await self._find_reply(sent)) is not None]
        if len(replies) < len(rounds.first):
            return False
        if not (rounds.further and is_split(question.judge, replies)):
            return True
        return all([await self._find_reply(sent) is not None for sent in rounds.further])

    async def _find_reply(self, sent: _ModelQuestion) -> JudgeReply | None:
        kept = await self._read_cached(self._build_key(sent), sent.question)
        return None if kept is None else self._build_reply(sent, kept, "hit", self._now())

    async def _estimate_one(self, question: Question, model: str) -> AskEstimate:
        judge = question.judge
        models = judge.models or (model,)
        prices = [await self._pricing(question.prompt(one, *self._marks())) for one in models]
        price = sum_costs(prices)
        tokens = (question.size + question.max_tokens) * judge.samples * len(models)
        return AskEstimate(tokens, None if price is None else price * judge.samples)

    async def _collect_votes(self, rounds: _Rounds, mode: JudgeMode, spending: Spending) -> list[Vote]:
        """The votes on one question: further ones only where the first do not agree."""
        votes = await self._vote_round(rounds.first, mode, spending)
        replies = [vote for vote in votes if isinstance(vote, JudgeReply)]
        if rounds.further and replies and is_split(rounds.further[0].question.judge, replies):
            votes += await self._vote_round(rounds.further, mode, spending)
        return votes

    async def _vote_round(self, asked: Sequence[_ModelQuestion], mode: JudgeMode, spending: Spending) -> list[Vote]:
        """A vote of each. The fallback stands in once for each sample: for a second member it would give the same reply again."""
        found = await asyncio.gather(*[self._try_reply(one, mode, spending) for one in asked])
        standing_in: dict[int, _ModelQuestion] = {}
        for one, got in zip(asked, found, strict=True):
            other = self._find_fallback(one, got.cause) if isinstance(got, JudgeError) and mode != "cached" else None
            if other is not None:
                standing_in.setdefault(one.sample, one._replace(model=other, instead_of=one.model))
        voted: dict[tuple[str, int], _Try] = {}
        if standing_in:
            voices = standing_in.values()
            said = await asyncio.gather(*[self._try_reply(one, mode, spending) for one in voices])
            voted = {(str(one.instead_of), one.sample): got for one, got in zip(voices, said, strict=True)}
        final = [voted.get((one.model, one.sample), got) for one, got in zip(asked, found, strict=True)]
        return [_settle_vote(one, got, spending) for one, got in zip(asked, final, strict=True)]

    async def _try_reply(self, sent: _ModelQuestion, mode: JudgeMode, spending: Spending) -> _Try:
        try:
            return await self._reply(sent, mode, spending)
        except JudgeError as error:
            error.model = sent.model
            return error
        except CallgradeError as error:
            return Errored("provider_error", str(error))

    def _find_fallback(self, sent: _ModelQuestion, cause: str) -> str | None:
        """Who is asked in a model's place; nobody of its own jury, who would vote twice."""
        other, jury = self.judges.fallback, sent.question.judge.models
        if not other or cause not in FALLEN_BACK or other in (sent.model, *jury):
            return None
        return None if any(is_same_model(one, other) for one in jury if one != sent.model) else other

    async def _reply(self, sent: _ModelQuestion, mode: JudgeMode, spending: Spending) -> Vote:
        key = self._build_key(sent)
        start = self._now()
        kept = None if mode == "fresh" else await self._read_cached(key, sent.question)
        if kept is None and mode == "cached":
            return NOT_CACHED
        found, use = await self._ask_once(sent, key, mode, spending) if kept is None else (kept, "hit")
        if use != "miss":
            spending.count_cached()
        return self._build_reply(sent, found, use, start)

    def _build_key(self, sent: _ModelQuestion) -> str:
        return sent.question.key(
            tenant=sent.tenant,
            model=sent.model,
            api_base=self.judges.api_base,
            sample=sent.sample,
            form=self.judges.form,
        )

    async def _ask_once(
        self, sent: _ModelQuestion, key: str, mode: JudgeMode, spending: Spending
    ) -> tuple[CachedReply, CacheUse]:
        """The answer of the one flight for this key. A flight that another's budget ended is no answer: then our own goes."""
        mine = False

        async def fetch() -> tuple[CachedReply, CacheUse]:
            nonlocal mine
            mine = True
            kept = (
                None if mode == "fresh" else await self._read_cached(key, sent.question)
            )  # one may have landed meanwhile
            return (kept, "hit") if kept is not None else (await self._ask_model(sent, key, spending), "miss")

        try:
            (kept, use), joined = await self._flights.run_once(f"{mode}:{key}", fetch)
        except JudgeError as error:
            if error.cause != "budget_exhausted" or mine:
                raise
            return await self._ask_model(sent, key, spending), "miss"
        return kept, "coalesced" if joined and use == "miss" else use

    async def _read_cached(self, key: str, question: Question) -> CachedReply | None:
        text = await self._cache.get(key)
        return None if text is None else parse_cached(text, question)

    async def _ask_model(self, sent: _ModelQuestion, key: str, spending: Spending) -> CachedReply:
        """The model's answer, which is kept. Raises JudgeError."""
        kept = await self._ask_and_repair(sent, spending)
        await self._cache.set(key, KEPT.dump_json(kept).decode())
        return kept

    async def _ask_and_repair(self, sent: _ModelQuestion, spending: Spending) -> CachedReply:
        """The answer; where it cannot be used, or leaves out sentences, that of one more request."""
        boundary, token = self._marks()
        prompt = sent.question.prompt(sent.model, boundary, token, sample=sent.sample)
        first = await self._complete(sent, prompt, spending)
        kept: CachedReply | None = None
        try:
            kept = CachedReply(read_judgement(first, sent.question, token), first.model, first.usage)
        except JudgeError as error:
            if error.cause not in REPAIRED:
                raise
            repair = _build_repair(prompt, error)
        else:
            left_out = kept.judgement.left_out
            if not left_out:
                return kept
            repair = sent.question.prompt(sent.model, boundary, token, sample=sent.sample, left_out=left_out)
        second = await self._complete(sent, repair, spending)
        usage = _sum(first.usage, second.usage)
        try:
            return CachedReply(read_judgement(second, sent.question, token), second.model, usage)
        except JudgeError as error:
            if kept is None or error.cause not in REPAIRED:
                raise
        return replace(kept, usage=usage)  # what it left out is open

    async def _complete(self, sent: _ModelQuestion, prompt: Prompt, spending: Spending) -> Completion:
        with set_payer(sent.tenant):
            return await self._calls.complete(prompt, spending)

    def _build_reply(self, sent: _ModelQuestion, kept: CachedReply, use: CacheUse, start: float) -> JudgeReply:
        paid = kept.usage if use == "miss" else replace(kept.usage, cost_usd=0.0)
        return JudgeReply(
            judgement=_unmask(kept.judgement, sent.question.masks),
            requested=sent.model,
            model=kept.model,
            cache=use,
            usage=paid,
            latency_ms=round(1_000 * (self._now() - start), 3),
            cut=tuple([part.name for part in sent.question.parts if part.cut]),
            instead_of=sent.instead_of,
            route=self.judges.route,
        )


_Try = Vote | JudgeError
"""A vote, or why there is none as yet."""


def _settle_vote(sent: _ModelQuestion, found: _Try, spending: Spending) -> Vote:
    """The vote that it is in the end; a fault that quotes a reply quotes it in the words of the trace."""
    if not isinstance(found, JudgeError):
        return found
    spending.faults.append(found)
    masks = sent.question.masks
    return Errored(found.cause, masks.unmask(found.reason) if masks else found.reason)


class _Rounds(NamedTuple):
    """One question to each of its models: what is asked first, and what is asked where those replies do not agree."""

    first: tuple[_ModelQuestion, ...]
    further: tuple[_ModelQuestion, ...]


def _list_rounds(question: Question, model: str, repeat: int, tenant: str) -> _Rounds:
    judge = question.judge
    start = repeat * judge.samples
    samples = range(start, start + judge.votes), range(start + judge.votes, start + judge.samples)
    models = judge.models or (model,)
    first, further = ([_ModelQuestion(question, one, n, tenant) for one in models for n in some] for some in samples)
    return _Rounds(tuple(first), tuple(further))


LONG = 200
"""Messages and calls from which on questions are put together in a thread: each shows all that was before it."""


async def _build_questions(asks: Iterable[Ask], trace: Trace, mask: frozenset[SensitiveKind]) -> list[Question]:
    asks = list(asks)

    def put() -> list[Question]:
        masks = build_masks(trace, mask) if mask and asks else UNMASKED
        return [build_question(ask, trace, masks) for ask in asks]

    return put() if len(trace.messages) + len(trace.steps) < LONG else await asyncio.to_thread(put)


def _unmask(judgement: Judgement, masks: Masks) -> Judgement:
    """The judgement in the words of the trace; the cache keeps it in those of the masks."""
    if not masks:
        return judgement
    claims = [
        claim._replace(quote=masks.unmask(claim.quote), reason=masks.unmask(claim.reason)) for claim in judgement.claims
    ]
    quotes, left_out = (tuple(map(masks.unmask, texts)) for texts in (judgement.quotes, judgement.left_out))
    reason = masks.unmask(judgement.reason)
    return replace(judgement, reason=reason, quotes=quotes, claims=tuple(claims), left_out=left_out)


_AMISS = {
    "unparseable": "it was not one JSON object and nothing else",
    "invalid_judgement": "it broke a rule: the token, a label, quotes word for word, or pointers that lead to a value",
}


def _build_repair(prompt: Prompt, error: JudgeError) -> Prompt:
    """The same request, saying that a reply could not be used. Nothing of that reply: it may repeat what it was shown."""
    *before, last = prompt.turns
    told = f"{last.text}\nAn earlier reply could not be used: {_AMISS[error.cause]}."
    return replace(prompt, turns=(*before, Turn(last.role, told)))


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        sum_counts([one.tokens_in, other.tokens_in]),
        sum_counts([one.tokens_out, other.tokens_out]),
        sum_costs([one.cost_usd, other.cost_usd]),
    )
