"""Logs of single calls to a model, in the format of any provider: requests with their responses, and LiteLLM's own."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from service.core.json.members import JsonObject, as_text, find_object
from service.errors import InputError
from service.intake.cursor import Cursor
from service.intake.format import Exchange, Format, WrapperContents

_LITELLM_MEMBERS = frozenset({"litellm_call_id", "call_type", "model_parameters"})
"""Members that no other format has beside messages."""
_ERRORS = ("error_str", "error_information")
_EMPTY: tuple[JsonValue, ...] = (None, "", "{}", "[]", {}, [])


@Format(
    score=76,
    recognise=lambda record: (
        ("messages" in record or "proxy_server_request" in record) and bool(record.keys() & _LITELLM_MEMBERS)
    ),
    hint="messages with litellm_call_id, call_type or model_parameters",
)
def litellm(record: Cursor) -> WrapperContents:
    """What LiteLLM passes to a logging callback, a row of its spend logs, or a line of a log bucket.

    A row of the spend logs may have the messages in `proxy_server_request`, the body sent to the proxy.
    """
    record.child("model_parameters").take("functions")
    inputs = ("messages", "proxy_server_request")
    given = record.locate(next((name for name in inputs if record.peek(name) not in _EMPTY), "messages"))
    status = record.text("status")
    failed = status == "failure" or (status != "success" and any(record.peek(name) for name in _ERRORS))
    place = next((f"/{name}" for name in ("response", "status", *_ERRORS) if name in record), "")
    record.take_all(*_ERRORS)
    tools = record.locate("model_parameters/tools")
    exchange = Exchange(given, record.locate("response"), tools, _take_sample(record), error_path=place * failed)
    record.out.id = record.text("id") or None
    return WrapperContents([exchange])


def _take_sample(record: Cursor) -> int | None:
    sample = record.take("sample")
    return sample if isinstance(sample, int) else None


_REQUESTS = ("request/body", "request", "input/inputBodyJson", "request_body")
_RESPONSES = ("response/body", "response", "result/message", "output/outputBodyJson", "response_body")
"""Paths to the body of a request or a response, inner ones first."""
_OPERATION = ("inputs",), ("output",)
"""The same in a traced operation, which has an `op_name` (Weave)."""


def _is_exchange(record: JsonObject) -> bool:
    requests, responses = _OPERATION if "op_name" in record else (_REQUESTS, _RESPONSES)
    paired = bool(find_object(record, "request") or "custom_id" in record or _find_body(record, requests)[0])
    return (paired or _is_request(record)) and bool(_find_body(record, responses)[0])


@Format(score=86, recognise=_is_exchange, hint="request with response, or a line of a batch's results")
def exchange(record: Cursor) -> WrapperContents:
    """The bodies of a request and its response, or of a response alone.

    The request may be the record itself. Also read: a line of a batch's results (OpenAI's `response.body`, Anthropic's
    `result.message`), and Bedrock's invocation log.
    """
    raw = record.members
    requests, responses = _OPERATION if "op_name" in raw else (_REQUESTS, _RESPONSES)
    (reply, way), (request, request_way) = _find_body(raw, responses), _find_body(raw, requests)
    if not reply:
        raise InputError.at("", 'expected {"request": {...}, "response": {...}}, or a line of a batch\'s results')
    sample = _take_sample(record)
    for taken in filter(None, (way, request_way)):
        record.locate(taken)
    for name in ("request", "input", "response", "result", "output"):  # another reply may hold what the model said
        if record.peek(name) and all(one.partition("/")[0] != name for one in (way, request_way)):
            answers = any(one.startswith(name) and _find_body(raw, (one,))[0] for one in responses)
            what = f"the member {name!r} of the trace, beside what is read,"
            record.member(name).leave(what, holds="text" if answers else "other", by_id=False)
    if not request and _is_request(raw):  # then everything beside the messages is part of the request
        request = {name: record.take(name) for name in record.list_untaken()}
    exchange = Exchange((request, f"/{request_way}" if request_way else ""), (reply, f"/{way}"), sample=sample)
    record.out.id = as_text(raw.get("id"))
    return WrapperContents([exchange])


def _find_body(record: JsonObject, ways: tuple[str, ...]) -> tuple[dict[str, JsonValue], str]:
    """Return the object at the first path that leads to one, and the path; {} if none does."""
    for way in ways:
        here: Mapping[str, JsonValue] = record
        for name in way.split("/"):
            here = find_object(here, name)
        if here:
            return dict(here), way
    return {}, ""


def _is_request(record: JsonObject) -> bool:
    """Whether a record is itself the request, with the reply beside its messages."""
    return isinstance(record.get("messages"), list) and not record.keys() & _LITELLM_MEMBERS
