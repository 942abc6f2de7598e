"""A judge's reply for tests, as plain as can be, and a cache that keeps replies in memory."""

from __future__ import annotations

from typing import Any

from service.asking.cache.guard import Cache
from service.core.judging.judges import Ask
from service.core.judging.notes import JudgeReply
from service.core.judging.prompts import Usage
from service.core.judging.replies import Judgement


def make_reply(label: str, value: float, model: str = "m", **said: Any) -> JudgeReply:
    """A reply with this label; `said`: more of its judgement."""
    return JudgeReply(Judgement(label, value, "so it is", **said), model, model, "miss", Usage(1, 1, None))


def answer(ask: Ask, share: float) -> tuple[JudgeReply, ...]:
    """What each model that is asked says of what is worth so much: the label next to it."""
    label = min(ask.judge.scale, key=lambda name: (abs(ask.judge.scale[name].value - share), name))
    return tuple([make_reply(label, ask.judge.scale[label].value, model) for model in ask.judge.models or ("m",)])


class MemoryCache(Cache):
    """A cache in memory."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    async def get(self, key: str) -> str | None:
        return self.texts.get(key)

    def set(self, key: str, text: str) -> None:
        self.texts[key] = text
