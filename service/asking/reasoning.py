"""How much a model should reason: the parameters that litellm takes, and the room that thinking needs in a reply."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import JsonValue

THINKING_TOKENS: Mapping[str, int] = {"none": 0, "minimal": 1_024, "low": 4_096, "medium": 8_192, "high": 24_576}
"""The tokens that each effort level may use. Providers count thinking as tokens of the reply, and cut it off there."""


def count_thinking_tokens(reasoning: str | int | None, *, thinks: bool) -> int:
    """Return the tokens that a model may think in, on top of its reply. `thinks`: whether it thinks by default.

    >>> count_thinking_tokens(None, thinks=False), count_thinking_tokens(2048, thinks=True)
    (0, 2048)
    """
    if reasoning is None:
        return THINKING_TOKENS["medium"] if thinks else 0
    return reasoning if isinstance(reasoning, int) else THINKING_TOKENS[reasoning]


def build_reasoning_params(reasoning: str | int | None, takes: Collection[str]) -> dict[str, JsonValue]:
    """Build the request parameters; none for a model that takes none. If only words are accepted, a budget becomes a word.

    >>> build_reasoning_params(2048, {"reasoning_effort"})
    {'reasoning_effort': 'low'}
    """
    if isinstance(reasoning, int) and "thinking" in takes:
        return {"thinking": {"type": "enabled", "budget_tokens": reasoning}}
    if reasoning is None or "reasoning_effort" not in takes:
        return {}
    return {"reasoning_effort": reasoning if isinstance(reasoning, str) else _name_budget(reasoning)}


def _name_budget(tokens: int) -> str:
    """Return the lowest effort with at least so much room."""
    return next((word for word, room in THINKING_TOKENS.items() if room >= tokens), "high")
