"""Extract the messages sent to a model, and its replies, from whatever wraps them in a log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_object
from service.core.json.pointers import escape_token
from service.intake.build import Transcript
from service.intake.cursor import Cursor, pick_sample
from service.intake.texts import parse_text

Located = tuple[JsonValue, str]
"""A value and its pointer."""
NOTHING: Located = (None, "")


def locate(node: Cursor, *paths: str, keep: bool = False) -> Located:
    """Take the value at the first path where there is one, decoded where it is JSON text, with its pointer; else null.

    `keep`: it is not taken.
    """
    found: Located | None = None
    for path in paths:
        *way, name = path.split("/")
        holder = node
        for one in way:
            holder = holder.child(one) if one in holder else Cursor(None, node.out)
        if name in holder and (found is None or found[0] is None):
            value = holder.peek(name) if keep else parse_text(holder.take(name))
            found = (value, f"{holder.path}/{escape_token(name)}")
    return found or (None, node.path)


class LocatedMessage(NamedTuple):
    """A message with its pointer, and the pointer of its content if that is not a member of the message."""

    value: JsonValue
    path: str
    content_path: str | None = None


def list_input_messages(value: JsonValue, path: str) -> tuple[dict[str, tuple[JsonValue, str]], list[LocatedMessage]]:
    """Return the members beside a model's input messages, by name, and the messages themselves."""
    if isinstance(value, str):
        return {}, [_place(value, path)]
    if _is_pair(value):
        return {}, [_place(value, path)]
    if isinstance(value, list):
        if len(value) == 1 and isinstance(value[0], list) and not _is_pair(value[0]):  # a batch of one
            return list_input_messages(value[0], f"{path}/0")
        return {}, [_place(item, f"{path}/{index}") for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return {}, []
    key = next(
        (key for key in ("messages", "contents", "input", "prompts") if isinstance(value.get(key), (list, str))), None
    )
    if key is None:
        return {}, [LocatedMessage(value, path)] if "role" in value or "lc" in value else []
    rest = {
        name: (item, f"{path}/{escape_token(name)}")
        for name, item in value.items()
        if name not in (key, "format", "id", "state")
    }
    return rest, list_input_messages(value[key], f"{path}/{key}")[1]


def _place(item: JsonValue, path: str) -> LocatedMessage:
    if _is_pair(item):
        return LocatedMessage({"role": _SPEAKERS.get(str(item[0]), item[0]), "content": item[1]}, path, f"{path}/1")
    return (
        LocatedMessage(item, path)
        if isinstance(item, dict)
        else LocatedMessage({"role": "user", "content": item}, path, path)
    )


_SPEAKERS = {"human": "user", "ai": "assistant"}
_ROLES = frozenset({"user", "assistant", "system", "developer", *_SPEAKERS})


def _is_pair(value: JsonValue) -> TypeGuard[list[JsonValue]]:
    """Whether a value is a message in LangChain's short form: a list of a role and a content."""
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and value[0] in _ROLES


HOLDERS = ("choices", "generations", "candidates", "messages", "message", "output")
"""Members that hold one or several replies, outer ones first."""


def list_reply_messages(
    value: JsonValue, path: str, notes: Transcript, sample: int | None = None
) -> Iterator[LocatedMessage]:
    """Iterate over the messages of a reply. Further samples are reported to `notes`, unless `sample` chooses one."""
    if isinstance(value, str):
        yield LocatedMessage({"role": "assistant", "content": value}, path, path)
    elif _is_pair(value):
        yield _place(value, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from list_reply_messages(item, f"{path}/{index}", notes)
    elif isinstance(value, dict):
        holder = None if "role" in value or "lc" in value else next((key for key in HOLDERS if value.get(key)), None)
        if holder == "output" and isinstance(value.get("type"), str) and value["type"] != "message":
            holder = None  # an item of the Responses API: its output belongs to the item
        if holder is None and "parts" in find_object(value, "content"):  # one of Gemini's candidates
            _leave_beside(notes, value, path, "content")
            yield LocatedMessage(find_object(value, "content"), f"{path}/content")
        elif holder is None:
            yield from _list_message(value, path, notes)
        else:
            _leave_beside(notes, value, path, holder)
            yield from _list_samples(value[holder], f"{path}/{holder}", notes, sample, sampled=holder in HOLDERS[:3])


def _leave_beside(notes: Transcript, reply: JsonObject, path: str, holder: str) -> None:
    """Leave what stands beside what a reply's member `holder` holds."""
    beside = Cursor(reply, notes, path, "a reply")
    beside.take_all(holder)
    beside.speaks(silent=False)
    beside.close()


def _list_message(value: dict[str, JsonValue], path: str, notes: Transcript) -> Iterator[LocatedMessage]:
    if isinstance(value.get("text"), str) and not value.keys() & {"role", "lc", "content", "kind"}:
        # A completion model, without roles.
        _leave_beside(notes, value, path, "")
        yield LocatedMessage({"role": "assistant", "content": value["text"]}, path, f"{path}/text")
    elif value.keys() & {"role", "lc", "type", "content", "kind"}:
        yield LocatedMessage(
            value if value.keys() & {"role", "lc", "type", "kind"} else {"role": "assistant", **value}, path
        )
    elif value:
        Cursor(value, notes, path, "a reply of no known form").leave(holds="text")


def _list_samples(
    value: JsonValue, path: str, notes: Transcript, sample: int | None, *, sampled: bool
) -> Iterator[LocatedMessage]:
    if not sampled or not isinstance(value, list):
        yield from list_reply_messages(value, path, notes)
        return
    chosen = 0 if sample is None or not value else pick_sample(sample, len(value), path)
    for index, item in enumerate(value):
        if index != chosen and sample is None:
            Cursor(item, notes, f"{path}/{index}", "another sample of a reply").leave()
        elif index == chosen and isinstance(item, list):
            yield from _list_samples(item, f"{path}/{index}", notes, None, sampled=True)
        elif index == chosen:
            yield from list_reply_messages(item, f"{path}/{index}", notes)


def strip_message(message: JsonValue) -> JsonValue:
    """Return what a message says without its wrapping, for comparing messages."""
    if not isinstance(message, dict):
        return message
    inner = next((message[key] for key in ("kwargs", "data") if isinstance(message.get(key), dict)), message)
    return [inner.get("content"), inner.get("tool_calls") or None] if isinstance(inner, dict) else inner
