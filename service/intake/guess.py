"""Telling formats apart by their keys, for files that do not name theirs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

Record = Mapping[str, JsonValue]

_ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"})


def guess_format(record: Record) -> str | None:
    """The format a record seems to be in; None where its keys say nothing.

    A conversation of plain text and no tools reads the same as `openai` and as `anthropic`; it is called `openai`.
    """
    if isinstance(record.get("events"), list):
        return "callgrade"
    if isinstance(record.get("spans"), list) or isinstance(record.get("resourceSpans"), list):
        return "spans"
    if "traj" in record or ("task_id" in record and "messages" in record):
        return "tau"
    if "question" in record and ("calls" in record or "result" in record):
        return "bfcl"
    if isinstance(record.get("messages"), list):
        return "anthropic" if _is_anthropic(record) else "openai"
    if any(key in record for key in ("output", "items", "input")):
        return "openai_responses"
    return None


def _is_anthropic(record: Record) -> bool:
    if "system" in record or any("input_schema" in tool for tool in _objects(record.get("tools"))):
        return True
    blocks = (block for message in _objects(record["messages"]) for block in _objects(message.get("content")))
    return any(block.get("type") in _ANTHROPIC_BLOCKS for block in blocks)


def _objects(value: JsonValue) -> Iterator[Record]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())
