"""A reply of Chat Completions put together from the chunks in which it was streamed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Required, cast

from pydantic import with_config
from typing_extensions import TypedDict

from service.intake.accounting import account_members, looks_like_call, members_of
from service.intake.build import Transcript
from service.intake.chat import ChatMessage
from service.intake.shapes import OPEN, Loose


@with_config(OPEN)
class DeltaShape(TypedDict, total=False):
    """What a chunk adds to a reply."""

    role: str | None
    content: str | None
    refusal: str | None
    tool_calls: list[dict[str, Loose]] | None


@with_config(OPEN)
class ChunkChoice(TypedDict, total=False):
    """A piece of one of the replies."""

    index: int
    delta: Required[DeltaShape]


@with_config(OPEN)
class ChunkShape(TypedDict, total=False):
    """A `chat.completion.chunk`."""

    choices: list[ChunkChoice]


def join_chunks(chunks: Sequence[ChunkShape]) -> dict[int, ChatMessage]:
    """The reply of each choice, by its index."""
    replies: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for choice in chunk.get("choices", ()):
            reply = replies.setdefault(choice.get("index", 0), {"role": "assistant"})
            for name, value in choice["delta"].items():
                _add(reply, name, value)
    return {index: cast("ChatMessage", _finish(reply)) for index, reply in sorted(replies.items())}


CHUNK = members_of("a chunk", "choices", "id object created model usage system_fingerprint service_tier obfuscation")
CHOICE = members_of(
    "a choice", "index message delta", "finish_reason logprobs stop_reason content_filter_results native_finish_reason"
)
DELTA = members_of(
    "a piece of a reply",
    "role content refusal tool_calls function_call",
    "reasoning reasoning_content reasoning_details thinking_blocks annotations provider_specific_fields",
)


def account_chunks(transcript: Transcript, chunks: Sequence[ChunkShape], path: str) -> None:
    """Tells the transcript of what is not read of chunks."""
    for index, chunk in enumerate(chunks):
        account_members(transcript, chunk, CHUNK, f"{path}/{index}")
        if looks_like_call(chunk):
            transcript.lose("call", f"{path}/{index}", "a chunk that is a call")
        for place, choice in enumerate(chunk.get("choices", ())):
            account_members(transcript, choice, CHOICE, f"{path}/{index}/choices/{place}")
            account_members(transcript, choice["delta"], DELTA, f"{path}/{index}/choices/{place}/delta")


def _add(reply: dict[str, Any], name: str, value: Any) -> None:
    if name in ("content", "refusal") and isinstance(value, str):
        reply.setdefault(name, []).append(value)
    elif name == "tool_calls":
        _add_calls(reply.setdefault(name, {}), value or ())
    elif name == "function_call" and value:
        _add_calls(reply.setdefault(name, {}), [{"index": 0, "function": value}])


def _add_calls(calls: dict[int, dict[str, Any]], pieces: Iterable[dict[str, Any]]) -> None:
    """A call begins with the piece that has its id or name; the pieces of its arguments follow, told by its index."""
    for piece in pieces:
        call = calls.setdefault(piece.get("index", len(calls)), {"function": {"name": "", "arguments": []}})
        function: dict[str, Any] = piece.get("function") or {}
        call["id"] = call.get("id") or piece.get("id")
        call["function"]["name"] = call["function"]["name"] or function.get("name") or ""
        call["function"]["arguments"].append(function.get("arguments") or "")


def _finish(reply: dict[str, Any]) -> dict[str, Any]:
    texts = {name: "".join(reply[name]) for name in ("content", "refusal") if name in reply}
    calls = {name: [_finish_call(one) for one in reply[name].values()] for name in _CALLS if name in reply}
    legacy = {"function_call": calls["function_call"][0]["function"]} if calls.get("function_call") else {}
    return reply | texts | calls | legacy


_CALLS = ("tool_calls", "function_call")


def _finish_call(call: dict[str, Any]) -> dict[str, Any]:
    return {**call, "function": {**call["function"], "arguments": "".join(call["function"]["arguments"])}}
