"""An item as a person labels it: what was said and done, and nothing of what anybody made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.trace import Step, Trace
from service.errors import InputError
from service.labelling import LabelTask, read_subject_trace
from service.web.trace.payloads import spell_payload

FOLD_CHARACTERS = 4_000
"""Characters of a value from which on it is folded."""


class SeenPart(NamedTuple):
    """One thing that was said, called or returned."""

    role: str
    """user, assistant, system, call, result or error."""
    text: str
    step: int | None = None
    tool: str = ""
    last: bool = False
    """Whether it is the last word of the assistant."""

    @property
    def is_folded(self) -> bool:
        """Whether it is too long to be shown at once."""
        return len(self.text) > FOLD_CHARACTERS


class SeenItem(NamedTuple):
    """What there is to look at. No parts: it is gone."""

    parts: tuple[SeenPart, ...]
    steps: tuple[tuple[int, str], ...] = ()
    """Each step with its tool."""


def build_seen(task: LabelTask) -> SeenItem:
    """What an annotator looks at."""
    document = task.document
    if document is not None and "trace" not in document:
        return SeenItem(tuple(_list_pair(document)))
    sent = cast("JsonValue", task.request or document)
    try:
        trace = read_subject_trace(cast("JsonValue", task.request), document)
    except InputError:
        return SeenItem((SeenPart("trace", spell_payload(sent)),))
    if trace is None:
        return SeenItem(())
    parts = tuple(_list_parts(trace))
    return SeenItem(_mark_last(parts), tuple([(one.index, one.call.name) for one in trace.steps]))


def _list_pair(document: Mapping[str, JsonValue]) -> Iterator[SeenPart]:
    yield SeenPart("result", spell_payload(document.get("payload")))
    yield SeenPart("assistant", str(document.get("answer") or ""), last=True)


def _list_parts(trace: Trace) -> Iterator[SeenPart]:
    by_message: dict[int, list[Step]] = {}
    for step in trace.steps:
        by_message.setdefault(step.message, []).append(step)
    for at, message in enumerate(trace.messages):
        if message.text:
            yield SeenPart(message.role, message.text)
        for step in by_message.pop(at, ()):
            yield from _list_step(step)
    for steps in by_message.values():
        for step in steps:
            yield from _list_step(step)


def _list_step(step: Step) -> Iterator[SeenPart]:
    yield SeenPart("call", spell_payload(cast("JsonValue", step.call.arguments)), step.index, step.call.name)
    if step.result is not None:
        role = "error" if step.result.is_error else "result"
        yield SeenPart(role, spell_payload(step.result.content), step.index, step.call.name)


def _mark_last(parts: tuple[SeenPart, ...]) -> tuple[SeenPart, ...]:
    last = max([at for at, one in enumerate(parts) if one.role == "assistant"], default=None)
    return tuple([one._replace(last=True) if at == last else one for at, one in enumerate(parts)])
