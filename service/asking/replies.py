"""Build the parameters of litellm's requests, and read its replies. Imports no litellm: replies are read by their shape."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Literal

from pydantic import AliasPath, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from service.asking.faults import CallError
from service.core.judging.prompts import Completion, Token, Usage
from service.intake.unread_parts.endings import FAILED


class _Part(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class _ToolCall(_Part):
    arguments: str = Field(validation_alias=AliasPath("function", "arguments"))


class _Message(_Part):
    content: str | None = None
    tool_calls: list[_ToolCall] | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    provider_specific_fields: dict[str, object] | None = None


class _Candidate(_Part):
    token: str
    logprob: float


class _TokenPlace(_Part):
    token: str
    top_logprobs: list[_Candidate] | None = None


class _Choice(_Part):
    message: _Message
    finish_reason: str | None = None
    logprobs: list[_TokenPlace] | None = Field(None, validation_alias=AliasPath("logprobs", "content"))
    provider_specific_fields: dict[str, object] | None = None


class _Usage(_Part):
    prompt_tokens: object = None
    completion_tokens: object = None
    cached_tokens: object = Field(None, validation_alias=AliasPath("prompt_tokens_details", "cached_tokens"))


class _Reply(_Part):
    choices: list[_Choice]
    model: str | None = None
    usage: _Usage | None = None


Price = Callable[[], float | None]
"""Returns the cost of the reply at hand, in US dollars; None if no price is known."""

MAX_CALL_TOKENS = 10**8
"""Most tokens that one call can take; a provider that reports more made it up."""

MAX_CALL_USD = 10_000.0
"""Most US dollars that one call can cost; a higher figure is made up."""

MAX_MODEL_CHARS = 128
"""Most characters of a model's name as the provider gives it."""


def read_completion(reply: object, price: Price) -> Completion:
    """Read a reply into a Completion. Raises CallError, with the usage, if it holds nothing readable."""
    try:
        parsed = _Reply.model_validate(reply)
    except ValidationError:
        reason = "the reply is no chat completion"
        raise CallError("provider_error", reason, usage=Usage(), retryable=True) from None
    usage = _read_usage(parsed.usage, price)
    if not parsed.choices:
        raise CallError("provider_error", "the reply has no choices", usage=usage, retryable=True)
    if len(parsed.choices) > 1:
        reason = f"one choice was asked for, {len(parsed.choices)} came"
        raise CallError("invalid_judgement", reason, usage=usage)
    choice = parsed.choices[0]
    tokens: list[Token] = []
    for place in choice.logprobs or []:
        likeliest = [(one.token, one.logprob) for one in place.top_logprobs or [] if math.isfinite(one.logprob)]
        tokens.append(Token(place.token, tuple(likeliest)))
    return Completion(_read_text(choice, usage), clean_model_name(parsed.model or ""), usage, tuple(tokens))


def clean_model_name(text: str) -> str:
    """Clean a model's name for a report: one line of printable characters, cut to length.

    >>> clean_model_name("gpt-4o\\n\\x1b[31m"), len(clean_model_name("x" * 100_000))
    ('gpt-4o[31m', 128)
    """
    return "".join(filter(str.isprintable, text[: 8 * MAX_MODEL_CHARS])).strip()[:MAX_MODEL_CHARS]


def _read_usage(reported: _Usage | None, price: Price) -> Usage:
    """Read the usage; what cannot be is unknown. Where the provider reports none, litellm writes zeros."""
    if reported is None:
        return Usage()
    tokens_in, tokens_out = _read_token_count(reported.prompt_tokens), _read_token_count(reported.completion_tokens)
    if not (tokens_in or tokens_out):  # no reply takes no tokens at all
        return Usage()
    usd = None if tokens_in is None or tokens_out is None else price()
    cached = _read_token_count(reported.cached_tokens)
    cached = None if cached is None or tokens_in is None or cached > tokens_in else cached
    return Usage(tokens_in, tokens_out, usd if usd is not None and 0.0 <= usd <= MAX_CALL_USD else None, cached)


def _read_token_count(count: object) -> int | None:
    """Read a number of tokens; None for an impossible one."""
    return count if isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= MAX_CALL_TOKENS else None


_CUT_OFF = frozenset(
    {"model_length", "max_output_tokens", "max_length", "context_length", "model_context_window_exceeded"}
)
"""The words by which providers say that a reply was cut off; litellm turns every word that it does not know into `stop`."""


def _read_text(choice: _Choice, usage: Usage) -> str:
    """Read the content, or the arguments of the only tool call."""
    message = choice.message
    if message.refusal or (message.provider_specific_fields or {}).get("refusal"):  # litellm moves it
        raise CallError("refused", "the model refused to answer", usage=usage)
    if choice.finish_reason == "content_filter":
        raise CallError("filtered", "the provider's content filter ended the reply", usage=usage)
    native = str((choice.provider_specific_fields or {}).get("native_finish_reason") or "").casefold()
    if FAILED.search(native):  # such a reply is no verdict, however complete it looks
        raise CallError("provider_error", "the provider failed before the reply's end", usage=usage, retryable=True)
    if choice.finish_reason == "length" or native in _CUT_OFF:
        raise CallError("truncated", "the reply reached max_tokens before its end", usage=usage)
    calls, content = message.tool_calls or [], message.content
    if len(calls) > 1:
        raise CallError("invalid_judgement", f"one call of the tool was asked for, {len(calls)} came", usage=usage)
    if calls and content and content.lstrip().startswith(("{", "```")):
        raise CallError("invalid_judgement", "the reply holds two verdicts, in its text and in a call", usage=usage)
    text = calls[0].arguments if calls else _drop_thinking(content or "")
    thoughts = (message.reasoning_content or "").strip()
    if not (text or calls) and thoughts.startswith("{"):
        text = thoughts  # a server took the reply for thoughts, because its schema left no room for any
    if not text:
        raise CallError("provider_error", "the reply is empty", usage=usage, retryable=True)
    return text


_THINKING = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)


def _drop_thinking(text: str) -> str:
    """Drop the thoughts that a local server leaves in the reply; the prompt's template may have opened them already.

    >>> (
    ...     _drop_thinking('<think>Is it {"label": "no"}?</think>{"label": "yes"}'),
    ...     _drop_thinking('Hm.</think>{"label": "yes"}'),
    ... )
    ('{"label": "yes"}', '{"label": "yes"}')
    >>> _drop_thinking('{"reason": "it says </think>"}')
    '{"reason": "it says </think>"}'
    """
    if marked := _THINKING.match(text):
        return text[marked.end() :]
    before, mark, after = text.partition("</think>")
    return after if mark and not before.lstrip().startswith(("{", "```")) else text


ReplyForm = Literal["schema", "tool", "text"]
"""How a model is made to reply with an object: a JSON schema for its content, a tool that it must call, or plain text."""

TOOL_NAME = "submit"

_LIMITS = frozenset({"minItems", "maxItems", "minimum", "maximum"})


def drop_limits(schema: JsonValue) -> JsonValue:
    """Drop the limits of a schema: some providers refuse them, and all questions of a judge then share one prepared schema.

    >>> drop_limits(
    ...     {"type": "array", "items": {"type": "string", "maxLength": 9, "enum": ["It rains."]}, "maxItems": 3}
    ... )
    {'type': 'array', 'items': {'type': 'string'}}
    """
    if isinstance(schema, dict):
        if "maxLength" in schema:
            return {"type": "string"}
        return {name: drop_limits(value) for name, value in schema.items() if name not in _LIMITS}
    return [drop_limits(item) for item in schema] if isinstance(schema, list) else schema


def build_reply_params(form: ReplyForm, schema: JsonValue) -> dict[str, JsonValue]:
    """Build the request parameters that ask for a reply in this form."""
    if form == "schema":
        named: dict[str, JsonValue] = {"name": TOOL_NAME, "schema": schema, "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    if form == "tool":
        tool: dict[str, JsonValue] = {"name": TOOL_NAME, "description": "Hands in the reply.", "parameters": schema}
        choice: dict[str, JsonValue] = {"type": "function", "function": {"name": TOOL_NAME}}
        return {"tools": [{"type": "function", "function": tool}], "tool_choice": choice}
    return {}


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
    enough = (word for word, room in THINKING_TOKENS.items() if isinstance(reasoning, int) and room >= reasoning)
    return {"reasoning_effort": reasoning if isinstance(reasoning, str) else next(enough, "high")}
