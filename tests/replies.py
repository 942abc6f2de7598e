"""A judge's reply for tests, as plain as can be."""

from __future__ import annotations

from typing import Any

from service.core.judging.notes import JudgeReply
from service.core.judging.prompts import Usage
from service.core.judging.replies import Judgement


def make_reply(label: str, value: float, model: str = "m", **said: Any) -> JudgeReply:
    """A reply with this label; `said`: more of its judgement."""
    return JudgeReply(Judgement(label, value, "so it is", **said), model, model, "miss", Usage(1, 1, None))
