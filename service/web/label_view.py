"""An item as an annotator sees it: what was said and done, without any verdict on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.calibration.labelling import read_subject_trace
from service.core.trace import Step, Trace
from service.errors import InputError
from service.labelling.desk import LabelTask
from service.web.trace.marks import escape_invisible
from service.web.trace.payloads import FOLD_CHARS, format_compact

MAX_PARTS = 1_000
"""Most parts that a page shows; of more, it shows the first and the last."""
MAX_PART_CHARS = 64_000
"""Most characters of one part that a page shows."""
MAX_PAGE_CHARS = 2_000_000
"""Most characters of all parts together; beyond it, only the head of each part is shown."""
HEAD_CHARS = 200
MAX_STEPS = 200
"""Most steps that are listed to choose from; of more, the number is typed."""


class ItemPart(NamedTuple):
    """One thing that was said, called or returned."""

    role: str
    """user, assistant, system, call, result or error; gap: parts are left out here."""
    text: str
    step: int | None = None
    tool: str = ""
    last: bool = False
    """Whether it is the last text of the assistant."""
    left_out: int = 0
    """Characters left out at its end; of a gap, parts."""

    @property
    def is_folded(self) -> bool:
        """Whether it is too long to be shown unfolded."""
        return len(self.text) > FOLD_CHARS


class ItemView(NamedTuple):
    """What there is to look at. No parts: the trace was deleted."""

    parts: tuple[ItemPart, ...]
    steps: tuple[tuple[int, str], ...] = ()
    """Each step with its tool, if they are few enough to choose from."""
    length: int = 0
    """The number of steps."""


def build_item_view(task: LabelTask) -> ItemView:
    """Build what an annotator looks at."""
    document = task.document
    if document is not None and "trace" not in document:
        answer = ItemPart("assistant", str(document.get("answer") or ""), last=True)
        return ItemView(_shorten((ItemPart("result", _spell(document.get("payload"))), answer)))
    sent = cast("JsonValue", task.request or document)
    try:
        trace = read_subject_trace(cast("JsonValue", task.request), document)
    except InputError:
        return ItemView(_shorten((ItemPart("trace", format_compact(sent)),)))
    if trace is None:
        return ItemView(())
    parts = _shorten(_leave_out(_mark_last(tuple(_list_parts(trace)))))
    steps = [(one.index, one.call.name) for one in trace.steps] if len(trace.steps) <= MAX_STEPS else []
    return ItemView(parts, tuple(steps), len(trace.steps))


def _leave_out(parts: tuple[ItemPart, ...]) -> tuple[ItemPart, ...]:
    """Keep the first and the last of very many parts."""
    if len(parts) <= MAX_PARTS:
        return parts
    half = MAX_PARTS // 2
    return (*parts[:half], ItemPart("gap", "", left_out=len(parts) - 2 * half), *parts[-half:])


def _shorten(parts: tuple[ItemPart, ...]) -> tuple[ItemPart, ...]:
    """Cut each text to what a page can hold, and spell out characters that cannot be seen."""
    left, short = MAX_PAGE_CHARS, list[ItemPart]()
    for one in parts:
        most = max(HEAD_CHARS, min(MAX_PART_CHARS, left))
        left -= min(len(one.text), most)
        cut = len(one.text) - most
        short.append(one._replace(text=escape_invisible(one.text[:most]), left_out=cut if cut > 0 else one.left_out))
    return tuple(short)


def _spell(value: JsonValue) -> str:
    return value if isinstance(value, str) else format_compact(value)


def _list_parts(trace: Trace) -> Iterator[ItemPart]:
    by_message: dict[int, list[Step]] = {}
    for step in trace.steps:
        by_message.setdefault(step.message, []).append(step)
    for at, message in enumerate(trace.messages):
        if message.text:
            yield ItemPart(message.role, message.text)
        for step in by_message.pop(at, ()):
            yield from _list_step(step)
    for steps in by_message.values():
        for step in steps:
            yield from _list_step(step)


def _list_step(step: Step) -> Iterator[ItemPart]:
    yield ItemPart("call", _spell(cast("JsonValue", step.call.arguments)), step.index, step.call.name)
    if step.result is not None:
        role = "error" if step.result.is_error else "result"
        yield ItemPart(role, _spell(step.result.content), step.index, step.call.name)


def _mark_last(parts: tuple[ItemPart, ...]) -> tuple[ItemPart, ...]:
    last = max([at for at, one in enumerate(parts) if one.role == "assistant"], default=None)
    return tuple([one._replace(last=True) if at == last else one for at, one in enumerate(parts)])
