"""litellm as we use it, and what it knows of a model before it is paid for. Only `model` loads and asks it."""

# ruff: noqa: D102 (litellm documents its functions)

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol


class Library(Protocol):
    """The part of litellm that we use."""

    AZURE_DEFAULT_API_VERSION: str
    openai_compatible_providers: list[str]

    def acompletion(self, **params: object) -> Awaitable[object]: ...
    def completion(self, **params: object) -> object: ...
    def completion_cost(self, completion_response: object, *, model: str) -> float: ...
    def cost_per_token(self, *, model: str, prompt_tokens: int, completion_tokens: int) -> tuple[float, float]: ...
    def get_model_info(self, model: str) -> Mapping[str, Any]: ...
    def get_llm_provider(self, model: str, *, api_base: str | None) -> tuple[str, str, str | None, str | None]: ...
    def get_supported_openai_params(self, model: str, custom_llm_provider: str) -> list[str] | None: ...
    def supports_response_schema(self, model: str, custom_llm_provider: str) -> bool: ...
    def supports_reasoning(self, model: str) -> bool: ...


class Costs(NamedTuple):
    """What must be known of a model before it is paid for."""

    price: tuple[float, float] | None
    """US dollars per token of a prompt, and per token of a reply; None: unknown."""
    thinks: bool
    """Whether it may think before it replies, which providers count as tokens of the reply."""


def look_up_costs(library: Library, model: str, *, is_local: bool) -> Costs:
    """Look a model up in the local map.

    One without a price is a local one or a deployment under a name of its own: it may think.
    """
    price, thinks = (0.0, 0.0) if is_local else None, False
    with suppress(Exception):  # it raises a bare Exception for an unknown model
        price = library.cost_per_token(model=model, prompt_tokens=1, completion_tokens=1) or price
    with suppress(Exception):
        thinks = library.supports_reasoning(model=model)
    return Costs(price, thinks or not any(price or ()))


def look_up_cost(library: Library, reply: object, model: str, price: tuple[float, float] | None) -> float | None:
    """Return the US dollars for a reply; None if no price is known. Avoids a slow new look-up, which may even ask the network."""
    if price is None or not any(price):
        return None if price is None else 0.0
    try:
        return library.completion_cost(reply, model=model)
    except Exception:  # noqa: BLE001 (it raises a bare Exception for an unknown model)
        return None
