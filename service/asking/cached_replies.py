"""Replies as a cache keeps them: written, read again and held to their question once more."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from service.core.judging.prompts import Usage
from service.core.judging.questions import Question
from service.core.judging.replies import Judgement, follows_scale


class NoCache:
    """A cache that keeps nothing."""

    async def get(self, key: str) -> str | None:  # noqa: ARG002
        """A miss."""
        return None

    async def set(self, key: str, text: str) -> None:
        """Nothing."""

    async def close(self) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class CachedReply:
    """A reply as the cache has it."""

    judgement: Judgement
    model: str
    usage: Usage


KEPT: TypeAdapter[CachedReply] = TypeAdapter(CachedReply)


def parse_cached(text: str, question: Question) -> CachedReply | None:
    """The reply that a cache gave; None where it is none, or does not answer the question."""
    try:
        kept = KEPT.validate_json(text)
    except ValidationError:
        return None
    said = kept.judgement
    labels = {said.label, *[claim.label for claim in said.claims]}
    fits = all(0.0 <= value <= 1.0 for value in (*said.low, *said.high))
    return kept if fits and labels <= set(question.judge.menu) and follows_scale(said, question.judge) else None
