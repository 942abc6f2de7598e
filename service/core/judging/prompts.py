"""What is sent to a model and what comes back, as data. A model is spoken to in one place, `service.asking.model`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic import JsonValue

Role = Literal["system", "user", "assistant"]


class Turn(NamedTuple):
    """One message of a prompt."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request to a model. `schema` is the JSON Schema of the object that the reply must be."""

    model: str
    """As litellm names it: `provider/model`."""
    turns: tuple[Turn, ...]
    schema: Mapping[str, JsonValue]
    max_tokens: int
    temperature: float | None = None
    """None: the provider's default, for models that take no temperature."""
    logprobs: bool = False
    """Whether the log-probabilities of the reply's tokens are wanted. A model that has none replies without."""
    reasoning: str | int | None = None
    """How much it thinks before it replies: a word for it, or tokens, which come on top of `max_tokens`. None: its own."""


class Token(NamedTuple):
    """One token of a reply with the likeliest tokens in its place, each with its natural log-probability."""

    text: str
    likeliest: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a request took. None where the provider does not tell, and where no price is known: never 0 for unknown."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model replied: the text of its message alone, not of anything it was shown."""

    text: str
    model: str
    """As the provider names it in the reply."""
    finish: str
    """Why it ended, in OpenAI's words: stop, length, content_filter, tool_calls."""
    refusal: str | None
    usage: Usage
    tokens: tuple[Token, ...] = ()
    """The reply's tokens, where log-probabilities were asked for and given."""
