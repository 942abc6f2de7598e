"""Find the traces in records: a list of messages is one trace, and a record with several replies is several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_object, list_elements
from service.core.json.values import name_type
from service.errors import InputError, TooLargeError
from service.intake.format import list_at
from service.intake.reading import guess_format, name_session, split_record
from service.reading.places import AnyRecord, BadRecord, TraceRecord

TRACE_FIELDS = frozenset(
    {"trace", "messages", "events", "choices", "usage", "spans", "input", "output", "request", "response"}
)
"""Fields that show that an object is more than a message."""
LANGCHAIN_TYPES = frozenset({"human", "ai", "system", "tool", "function"})
ITEM_TYPES = frozenset(
    {"function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning"}
)
STEP_FIELDS = ({"task", "task_images"}, {"system_prompt"}, {"plan", "timing", "model_input_messages"}, {"output"})
"""Fields of the steps of an agent's memory that are no actions, by kind (smolagents)."""

MAX_JOINED = 100_000
"""Lines of a session, or messages of a list, that are held to become one trace."""

PAGES = ("data", "results", "records", "rows", "traces", "samples", "test_cases")
"""Members that hold the records of a page, as APIs and exports wrap them."""


def find_traces(records: Iterable[AnyRecord]) -> Iterator[AnyRecord]:
    """Yield the traces in the records of one file, in order; what cannot be read stays in its place."""
    return split_samples(join_messages(split_pages(join_sessions(records))))


def join_sessions(records: Iterable[AnyRecord]) -> Iterator[AnyRecord]:
    """Yield the records, with the lines of one session as one record, `{"lines": [...]}`; it ends with another session's line.

    A line that cannot be read stands alone.
    """
    waiting: list[TraceRecord] = []
    name = session = ""
    for record in records:
        if isinstance(record, BadRecord):
            yield record
            continue
        named = name_session(record.value)
        aside = named is None and "type" in record.value and not record.value.keys() & TRACE_FIELDS
        same = named is not None and named[0] == name and (named[1] == session or not (named[1] and session))
        if waiting and (aside or same):
            waiting += [record] if len(waiting) <= MAX_JOINED else []
            session = max(session, named[1] if named else "")
            continue
        yield from _join_lines(waiting, name)
        waiting, (name, session) = ([], ("", "")) if named is None else ([record], named)
        if named is None:
            yield record
    yield from _join_lines(waiting, name)


def _join_lines(records: Sequence[TraceRecord], name: str) -> Iterator[AnyRecord]:
    if len(records) > MAX_JOINED:
        yield BadRecord(records[0].place, TooLargeError.at("", f"a session of more than {MAX_JOINED} lines"))
    elif records:
        yield TraceRecord(records[0].place, {"format": name, "lines": [record.value for record in records]})


def split_pages(records: Iterable[AnyRecord]) -> Iterator[AnyRecord]:
    """Yield the records; those that a document of a format holds, or the elements of a page, instead of the whole.

    A page is a record that is nothing but a list of records, and no trace of a known format.
    """
    for record in records:
        parts = None if isinstance(record, BadRecord) else _list_parts(record.value)
        if parts is None:
            yield record
        for path, item in parts or ():
            place = replace(record.place, pointer=record.place.pointer + path)
            if isinstance(item, dict):
                yield TraceRecord(place, item)
            else:
                yield BadRecord(place, InputError.at("", f"expected an object, not {name_type(item)}"))


def _list_parts(value: JsonObject) -> Sequence[tuple[str, JsonValue]] | None:
    """List the records that a document or a page holds, with their pointers; None if it is neither."""
    if (split := split_record(value)) is not None:
        return [(path, dict(one)) for path, one in split]
    names = [name for name in PAGES if isinstance(value.get(name), list) and value[name]]
    others = any(isinstance(item, (dict, list)) and item for name, item in value.items() if name not in PAGES)
    if len(names) != 1 or others or "trace" in value or guess_format(value) is not None:
        return None
    return [(f"/{names[0]}/{index}", item) for index, item in enumerate(list_elements(value[names[0]]))]


def join_messages(records: Iterable[AnyRecord]) -> Iterator[AnyRecord]:
    """Yield the records of a file, joined into one trace if they are a list whose elements are all messages.

    The trace is {"messages": [...]}, or {"items": [...]} for the Responses API, {"chunks": [...]} for a stream, {"steps": [...]}
    for an agent's memory; pointers into it start accordingly.
    """
    waiting: list[TraceRecord] = []
    for record in records:
        follows = record.place.pointer == f"/{len(waiting)}"
        if follows and isinstance(record, TraceRecord) and _name_list(record.value) is not None:
            waiting.append(record)
            if len(waiting) > MAX_JOINED:
                yield BadRecord(waiting[0].place, TooLargeError.at("", f"a list of more than {MAX_JOINED} messages"))
                waiting = []
            continue
        yield from waiting  # not all are messages, so each stands alone
        waiting = []
        yield record
    names = {_name_list(record.value) for record in waiting}
    name = next((name for name in ("chunks", "items", "steps") if name in names), "messages")
    if not waiting or (name == "steps" and not any("step_number" in record.value for record in waiting)):
        yield from waiting  # no more than steps without an action
    else:
        yield TraceRecord(replace(waiting[0].place, pointer=""), {name: [record.value for record in waiting]})


def _name_list(value: JsonObject) -> str | None:
    """Name the field that holds a list of such elements; None if the element is not a message."""
    if value.get("object") == "chat.completion.chunk":
        return "chunks"
    kind = value.get("type")
    if isinstance(kind, str) and kind in ITEM_TYPES:
        return "items"
    if "step_number" in value or any(value.keys() <= one for one in STEP_FIELDS):
        return "steps"
    pydantic_ai = "parts" in value and value.get("kind") in ("request", "response")
    if value.keys() & TRACE_FIELDS and not pydantic_ai:
        return None
    langchain = isinstance(kind, str) and kind in LANGCHAIN_TYPES and bool(value.keys() & {"content", "data"})
    return "messages" if isinstance(value.get("role"), str) or langchain or pydantic_ai or "lc" in value else None


REPLY_PATHS = ("choices", "candidates", "response/choices", "response/candidates", "response/body/choices")
"""Where the replies are in a trace."""


def split_samples(records: Iterable[AnyRecord]) -> Iterator[AnyRecord]:
    """Yield the records, one with several replies once per reply; `sample` says which reply it stands for."""
    for record in records:
        trace = {} if isinstance(record, BadRecord) else find_object(record.value, "trace") or record.value
        counts = [0] if "sample" in trace else [len([*list_at(trace, path)]) for path in REPLY_PATHS]
        if isinstance(record, BadRecord) or max(counts) < 2:
            yield record
            continue
        for sample in range(max(counts)):
            named: dict[str, JsonValue] = {"id": f"{trace['id']}#{sample}"} if isinstance(trace.get("id"), str) else {}
            chosen: dict[str, JsonValue] = {**trace, "sample": sample, **named}
            yield replace(record, value=chosen if trace is record.value else {**record.value, "trace": chosen})
