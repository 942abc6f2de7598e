"""An item as a person labels it: what was said and done, and nothing of what anybody made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.calibration.subjects import read_subject_trace
from service.core.trace import Step, Trace
from service.errors import InputError
from service.labelling import LabelTask
from service.web.trace.marks import spell_unseen
from service.web.trace.payloads import FOLD_CHARS, lay_out

MAX_PARTS = 1_000
"""Parts that a page shows; of more, the first and the last."""
MAX_PART_CHARS = 64_000
"""Characters of one part that a page shows."""
MAX_PAGE_CHARS = 2_000_000
"""Characters of all parts together; what comes when they are used up is shown by its head."""
HEAD_CHARS = 200
MAX_STEPS = 200
"""Steps up to which they are a list to choose from; of more the number is typed."""


class SeenPart(NamedTuple):
    """One thing that was said, called or returned."""

    role: str
    """user, assistant, system, call, result or error; gap: what is left out here."""
    text: str
    step: int | None = None
    tool: str = ""
    last: bool = False
    """Whether it is the last word of the assistant."""
    unseen: int = 0
    """Characters that are left out at its end; of a gap, parts."""

    @property
    def is_folded(self) -> bool:
        """Whether it is too long to be shown at once."""
        return len(self.text) > FOLD_CHARS


class SeenItem(NamedTuple):
    """What there is to look at. No parts: it is gone."""

    parts: tuple[SeenPart, ...]
    steps: tuple[tuple[int, str], ...] = ()
    """Each step with its tool, where there are few enough to choose from."""
    length: int = 0
    """Steps in all."""


def build_seen(task: LabelTask) -> SeenItem:
    """What an annotator looks at."""
    document = task.document
    if document is not None and "trace" not in document:
        return SeenItem(_shorten(tuple(_list_pair(document))))
    sent = cast("JsonValue", task.request or document)
    try:
        trace = read_subject_trace(cast("JsonValue", task.request), document)
    except InputError:
        return SeenItem(_shorten((SeenPart("trace", lay_out(sent)),)))
    if trace is None:
        return SeenItem(())
    parts = _shorten(_leave_out(_mark_last(tuple(_list_parts(trace)))))
    steps = [(one.index, one.call.name) for one in trace.steps] if len(trace.steps) <= MAX_STEPS else []
    return SeenItem(parts, tuple(steps), len(trace.steps))


def _leave_out(parts: tuple[SeenPart, ...]) -> tuple[SeenPart, ...]:
    """The first and the last of very many."""
    if len(parts) <= MAX_PARTS:
        return parts
    half = MAX_PARTS // 2
    return (*parts[:half], SeenPart("gap", "", unseen=len(parts) - 2 * half), *parts[-half:])


def _shorten(parts: tuple[SeenPart, ...]) -> tuple[SeenPart, ...]:
    """The parts with as much of each text as a page bears, and nothing in it that cannot be seen."""
    left, short = MAX_PAGE_CHARS, list[SeenPart]()
    for one in parts:
        most = max(HEAD_CHARS, min(MAX_PART_CHARS, left))
        left -= min(len(one.text), most)
        cut = len(one.text) - most
        short.append(one._replace(text=spell_unseen(one.text[:most]), unseen=cut if cut > 0 else one.unseen))
    return tuple(short)


def _list_pair(document: Mapping[str, JsonValue]) -> Iterator[SeenPart]:
    yield SeenPart("result", _spell(document.get("payload")))
    yield SeenPart("assistant", str(document.get("answer") or ""), last=True)


def _spell(value: JsonValue) -> str:
    return value if isinstance(value, str) else lay_out(value)


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
    yield SeenPart("call", _spell(cast("JsonValue", step.call.arguments)), step.index, step.call.name)
    if step.result is not None:
        role = "error" if step.result.is_error else "result"
        yield SeenPart(role, _spell(step.result.content), step.index, step.call.name)


def _mark_last(parts: tuple[SeenPart, ...]) -> tuple[SeenPart, ...]:
    last = max([at for at, one in enumerate(parts) if one.role == "assistant"], default=None)
    return tuple([one._replace(last=True) if at == last else one for at, one in enumerate(parts)])
