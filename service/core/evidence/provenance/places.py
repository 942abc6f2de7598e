"""List where a model could have read something: texts, leaves and keys of results, and what it wrote itself."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Literal, NamedTuple, cast

from pydantic import JsonValue

from service.core.json.leaves import MAX_LEAVES, Leaf, Scalar, list_leaves
from service.core.json.parsing import read_structure
from service.core.json.pointers import escape_token
from service.core.results.media import has_media
from service.core.results.structure import build_passage_pointer, iter_bodies, read_text
from service.core.trace import Trace

Origin = Literal["user", "result", "system", "assistant", "call", "schema"]

MAX_KEYS = 2_000
"""Keys and items of one result that are visited to read keys as values."""
_MAX_LEAVES_OF_OWN = 500


class SourcePlace(NamedTuple):
    """Something said or returned: by whom, in which message, and where in the trace."""

    origin: Origin
    message: int
    pointer: str
    keys: tuple[str, ...]
    text: str
    """The text flattened to its words."""
    turn: int
    agent: str | None = None
    """The agent whose words they are, if the trace has several."""


def iter_places(trace: Trace) -> Iterator[tuple[SourcePlace, str]]:
    """Yield the texts of user and system and the leaves and keys of results, each with its content."""
    for n, message in enumerate(trace.messages):
        if message.role in ("user", "system") and message.text:
            yield SourcePlace(message.role, n, f"/messages/{n}/text", (), "", message.turn), message.text
    told = _list_told(trace)
    for step in trace.steps:
        if step.result is None or step.index in told:
            continue
        # What a call returned is known to every message after the one that made it.
        for leaf in list_leaves(step.result.content, f"/steps/{step.index}/result/content"):
            if leaf.value is not None:
                yield (
                    SourcePlace("result", step.message, leaf.pointer, leaf.keys, "", step.turn),
                    _render_text(leaf.value),
                )
            for inner in _list_quoted(leaf):
                place = SourcePlace("result", step.message, inner.pointer, inner.keys, "", step.turn)
                yield place, _render_text(inner.value)
        yield from _iter_keys(step.result.content, step.message, step.turn, f"/steps/{step.index}/result/content")


def iter_own_places(trace: Trace) -> Iterator[SourcePlace]:
    """Yield what supports an argument without being its source: the assistant's texts and calls, and the tools offered."""
    for n, message in enumerate(trace.messages):
        if message.role in ("assistant", "agent") and message.text:
            yield SourcePlace("assistant", n, f"/messages/{n}/text", (), message.text, message.turn, message.agent)
    for step in trace.steps:
        given = cast("JsonValue", dict(step.call.arguments or {}))
        for leaf in list_leaves(given, f"/steps/{step.index}/call/arguments", _MAX_LEAVES_OF_OWN):
            text = _render_text(leaf.value)
            yield SourcePlace("call", step.message, leaf.pointer, leaf.keys, text, step.turn, step.agent)
    for n, tool in enumerate(trace.tools or ()):
        yield SourcePlace("schema", -1, f"/tools/{n}/description", (), tool.description, 0)
        schema = cast("JsonValue", tool.parameters)
        for leaf in list_leaves(schema, f"/tools/{n}/parameters", _MAX_LEAVES_OF_OWN):
            yield SourcePlace("schema", -1, leaf.pointer, leaf.keys, _render_text(leaf.value), 0)


def _list_told(trace: Trace) -> frozenset[int]:
    """List the steps that returned, word for word, what another agent wrote: a model's output, which is no source."""
    writers: defaultdict[str, set[str | None]] = defaultdict(set)
    for message in trace.messages if trace.has_several_agents() else ():
        if message.role == "assistant" and message.text:
            writers[_spell(message.text)].add(message.agent)
    returned = [(step, step.result.content) for step in trace.steps if writers and step.result is not None]
    told = [
        step.index
        for step, content in returned
        for text in (content, *[body.text for body in iter_bodies(content)])
        if writers[_spell(text)] - {step.agent}
    ]
    return frozenset(told)


def _spell(content: JsonValue) -> str:
    value = read_structure(content) if isinstance(content, str) else content
    return value.strip() if isinstance(value, str) else json.dumps(value, sort_keys=True)


def list_gaps(trace: Trace) -> list[tuple[int, str]]:
    """List what a model could read and code cannot read, or not in full.

    Each entry is the message after which the model could read it, and its pointer or the path in the source.
    """
    found = [(-1, part.path) for part in trace.unread if part.kind != "call" and part.path.count("/") > 1]
    for step in trace.steps:
        path = f"/steps/{step.index}/result"
        if step.result is None:
            found.append((step.message, path))
        elif has_media(step.result.content) or len(list_leaves(step.result.content)) == MAX_LEAVES:
            found.append((step.message, f"{path}/content"))
    return found


def _list_quoted(leaf: Leaf) -> list[Leaf]:
    r"""List the leaves of JSON quoted within a string: with its escapes, `\nHAT069` would be another word."""
    if not isinstance(leaf.value, str) or "\\" not in leaf.value:
        return []
    passages = [passage for passage in read_text(leaf.value).passages if passage.exact]
    found = [list_leaves(one.value, build_passage_pointer(leaf.pointer, one)) for one in passages]
    return [inner for leaves in found for inner in leaves if inner.value is not None]


def _iter_keys(value: JsonValue, message: int, turn: int, pointer: str) -> Iterator[tuple[SourcePlace, str]]:
    """Yield keys that are values too: `{"credit_card_4421486": {...}}`."""
    stack: list[tuple[JsonValue, str]] = [(value, pointer)]
    seen = 0
    while stack and seen < MAX_KEYS:
        here, at = stack.pop()
        if isinstance(here, list):
            stack += [(item, f"{at}/{n}") for n, item in enumerate(here) if isinstance(item, dict | list)]
            seen += len(here)
        elif isinstance(here, dict):
            for key, item in here.items():
                seen += 1
                if any(c.isdigit() or c == "@" for c in key):
                    yield SourcePlace("result", message, f"{at}/{escape_token(key)}", (), "", turn), key
                if isinstance(item, dict | list):
                    stack.append((item, f"{at}/{escape_token(key)}"))


def _render_text(value: Scalar) -> str:
    return value if isinstance(value, str) else repr(value)
