"""Why a job pauses for its provider, as stored text: the cause, the model, and what happened."""

from __future__ import annotations

from typing import NamedTuple

from service.errors import SETUP_CAUSES, JudgeError


class JudgePause(NamedTuple):
    """A pause because a judge is unavailable. `cause` is one of NOBODY_THERE."""

    cause: str
    model: str


def describe_pause(fault: JudgeError) -> str:
    """Render the reason of a pause.

    >>> describe_pause(JudgeError("unauthorized", "the key is not accepted", model="openai/gpt-5"))
    'unauthorized: openai/gpt-5: the key is not accepted'
    """
    return ": ".join([fault.cause, *([fault.model] if fault.model else []), fault.reason])


def read_pause(reason: str | None) -> JudgePause | None:
    """Read from the reason of a pause which judge is unavailable; None where the job waits for something that passes.

    >>> read_pause("unknown_model: ollama/qwen3:8b: it knows no such model")
    JudgePause(cause='unknown_model', model='ollama/qwen3:8b')
    >>> read_pause("provider_error: openai/gpt-5: the provider answered 503") is None
    True
    """
    cause, _, rest = (reason or "").partition(": ")
    return JudgePause(cause, rest.partition(": ")[0]) if cause in SETUP_CAUSES else None
