"""Which judge answered, what it said and what that cost, as shown in reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from operator import not_
from typing import Annotated, Literal

from pydantic import Field

from service.core.judging.fits.fit import VERSION
from service.core.judging.grades import CANNOT_TELL
from service.core.judging.judges import Judge
from service.core.judging.prompts import Usage
from service.core.judging.replies import Judgement
from service.core.outcome import Errored, Finding, Pointer, Skipped

CacheUse = Literal["hit", "miss", "coalesced"]
"""hit: from the cache. miss: the model was asked. coalesced: shared with an identical request made at the same moment."""


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """One judgement and where it came from."""

    judgement: Judgement
    requested: str
    """The model that was requested."""
    model: str
    """The model's name in the provider's reply."""
    cache: CacheUse
    usage: Usage
    """The tokens that the original request used, and what this one paid: 0.0 for a cache hit."""
    latency_ms: float | None = None
    """Milliseconds of the calls alone, without queues, pauses and loading; for a cache hit, of the look-up."""
    cut: tuple[str, ...] = ()
    """The parts that were shortened to fit."""
    route: str = ""
    """The route to the model (`build_route`)."""

    @property
    def has_verdict(self) -> bool:
        """Whether it says anything but `cannot_tell`."""
        return self.judgement.label != CANNOT_TELL


Vote = JudgeReply | Errored | Skipped
"""The result of one request: a reply, an error, or a skip where no request was made."""


@dataclass(frozen=True, slots=True)
class JudgeVote:
    """One of several votes. `value` and `raw` are None for `cannot_tell`."""

    model: str
    label: str
    value: float | None
    cache: CacheUse
    raw: float | None = None
    """The graded value, which fits take as input."""
    cost_usd: float | None = None
    latency_ms: float | None = None

    @classmethod
    def of(cls, reply: JudgeReply) -> JudgeVote:
        """Build the vote of a reply."""
        given = reply.judgement
        value, raw = (given.value, given.low.graded) if reply.has_verdict else (None, None)
        return cls(reply.model, given.label, value, reply.cache, raw, reply.usage.cost_usd, reply.latency_ms)


@dataclass(frozen=True, slots=True)
class JudgeNote:
    """Which judge answered, what it said and what that cost. Unknown is None, never 0."""

    id: str
    model: str
    label: str
    reason: str
    quotes: tuple[str, ...]
    cache: CacheUse
    """For several votes: miss if any vote was one, else coalesced if any was, else hit."""
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    """What this request paid for it, in US dollars."""
    latency_ms: float | None
    """The latency of the slowest vote, in milliseconds."""
    votes: tuple[JudgeVote, ...] = ()
    """Every vote, if there was more than one."""
    spread: float | None = None
    """The highest minus the lowest value among the votes."""
    route: Annotated[str, Field(exclude_if=not_)] = ""
    """sha256 of the route to the models (address, form of reply). Absent: the default route."""
    tokens_cached: Annotated[int | None, Field(exclude_if=not_)] = None
    """Those of `tokens_in` that providers read from their caches. Absent: none, or unknown."""


def build_note(judge: Judge, replies: Sequence[JudgeReply], spokesman: JudgeReply) -> JudgeNote:
    """Build the note on at least one reply; `spokesman` is the reply whose words the note quotes."""
    uses = {reply.cache for reply in replies}
    values = [reply.judgement.value for reply in replies if reply.has_verdict]
    several = len(replies) > 1
    return JudgeNote(
        id=judge.id,
        model=spokesman.model,
        label=spokesman.judgement.label,
        reason=spokesman.judgement.reason,
        quotes=spokesman.judgement.quotes,
        cache="miss" if "miss" in uses else "coalesced" if "coalesced" in uses else "hit",
        tokens_in=sum_counts([reply.usage.tokens_in for reply in replies]),
        tokens_out=sum_counts([reply.usage.tokens_out for reply in replies]),
        cost_usd=sum_costs([reply.usage.cost_usd for reply in replies]),
        latency_ms=max([reply.latency_ms for reply in replies if reply.latency_ms is not None], default=None),
        votes=tuple([JudgeVote.of(reply) for reply in replies]) if several else (),
        spread=max(values) - min(values) if several and values else None,
        route=replies[0].route,
        tokens_cached=sum_counts([reply.usage.tokens_cached for reply in replies]),
    )


def build_remarks(replies: Sequence[JudgeReply], at: Pointer) -> Iterable[Finding]:
    """Yield findings about how the answer came about: shortened parts, and models other than those that were asked."""
    for name in sorted({name for reply in replies for name in reply.cut}):
        yield Finding("shown_in_part", f"{name} was too long for the judge and shown in part", at)
    yield from dict.fromkeys([remark for reply in replies if (remark := _remark_on_model(reply, at))])


def _remark_on_model(reply: JudgeReply, at: Pointer) -> Finding | None:
    if is_same_model(reply.requested, reply.model):
        return None
    answered = f"{reply.model or 'a model that gives no name'} answered"
    return Finding("other_model", f"{reply.requested} was asked, {answered}", at)


def is_same_model(requested: str, resolved: str) -> bool:
    """Whether the model that answered is the requested one, or a dated version of it.

    >>> is_same_model("openai/gpt-5-mini", "gpt-5-mini-2026-08-07"), is_same_model("ollama/qwen3:8b", "qwen3:8b")
    (True, True)
    >>> is_same_model("openai/gpt-5", "gpt-5-mini"), is_same_model("openai/judge", "other")
    (False, False)
    >>> is_same_model("openai/gpt-4", "gpt-4-32k"), is_same_model("x/llama-3", "llama-3-70b")
    (False, False)
    """
    want, got = requested.rpartition("/")[2].casefold(), resolved.rpartition("/")[2].casefold()
    return got == want or (got.startswith(want) and VERSION.fullmatch(got, len(want)) is not None)


def sum_counts(counts: Iterable[int | None]) -> int | None:
    """Return the sum, or None if any item is unknown."""
    known = list(counts)
    return None if None in known else sum([count for count in known if count is not None])


def sum_costs(costs: Iterable[float | None]) -> float | None:
    """Return the sum, or None if any item is unknown."""
    known = list(costs)
    return None if None in known else fsum([one for one in known if one is not None])


def add_usages(one: Usage, other: Usage) -> Usage:
    """Add what two requests used; unknown where either is."""
    return Usage(
        sum_counts([one.tokens_in, other.tokens_in]),
        sum_counts([one.tokens_out, other.tokens_out]),
        sum_costs([one.cost_usd, other.cost_usd]),
        sum_counts([one.tokens_cached, other.tokens_cached]),
        sum_costs([one.seconds, other.seconds]),
    )
