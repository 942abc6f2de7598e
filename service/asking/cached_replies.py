"""Cached replies: write them, read them, and check them against their question again."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from service.core.judging.prompts import Usage
from service.core.judging.questions import Question
from service.core.judging.replies import Judgement, follows_scale


class NoCache:
    """A cache that keeps nothing."""

    async def get(self, key: str) -> str | None:  # noqa: ARG002
        """Return None: always a miss."""
        return None

    async def set(self, key: str, text: str) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class CachedReply:
    """A reply as it is cached."""

    judgement: Judgement
    model: str
    usage: Usage


CACHED_REPLY: TypeAdapter[CachedReply] = TypeAdapter(CachedReply)


def parse_cached(text: str, question: Question) -> CachedReply | None:
    """Read a cached reply; None if it is malformed, or does not answer the question."""
    try:
        reply = CACHED_REPLY.validate_json(text)
    except ValidationError:
        return None
    judgement = reply.judgement
    labels = {judgement.label, *[claim.label for claim in judgement.claims]}
    fits = all(0.0 <= value <= 1.0 for value in (*judgement.low, *judgement.high))
    return reply if fits and labels <= set(question.judge.menu) and follows_scale(judgement, question.judge) else None
