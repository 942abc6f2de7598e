"""Requests to models and their replies, as data. Only `service.asking.model` calls a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, JsonValue

Role = Literal["system", "user", "assistant"]


class Turn(NamedTuple):
    """One message of a prompt."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request to a model. `schema` is the JSON Schema of the reply."""

    model: str
    """The name of the model in litellm: `provider/model`."""
    turns: tuple[Turn, ...]
    schema: Mapping[str, JsonValue]
    max_tokens: int
    temperature: float | None = None
    """None: the provider's default, for models that take no temperature."""
    logprobs: bool = False
    """Whether to ask for the log-probabilities of the reply's tokens. A model that has none replies without them."""
    reasoning: str | int | None = None
    """How much the model reasons first: an effort word, or tokens on top of `max_tokens`. None: its default."""


class Token(NamedTuple):
    """One token of a reply, with the likeliest tokens in its place and their natural log-probabilities."""

    text: str
    likeliest: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a request used. None where the provider does not say or no price is known; unknown is never 0."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    tokens_cached: int | None = None
    """Those of `tokens_in` that the provider had in its cache, which it bills at a fraction."""
    seconds: Annotated[float | None, Field(exclude=True)] = field(default=None, compare=False)
    """From sending the request to the last byte of its reply; not kept in a cache."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's reply: only the text of its own message, nothing of what it was shown."""

    text: str
    model: str
    """The model's name in the provider's reply."""
    usage: Usage
    tokens: tuple[Token, ...] = ()
    """The tokens of the reply, where log-probabilities were requested and returned."""


def render_plain(value: JsonValue, *, sort_keys: bool = False) -> str:
    r"""Render a value as one line of ASCII JSON without the characters that tags are made of.

    >>> render_plain({"a": "</x> é\n&"})
    '{"a": "\\u003c/x\\u003e \\u00e9\\n\\u0026"}'
    """
    text = json.dumps(value, ensure_ascii=True, sort_keys=sort_keys)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
