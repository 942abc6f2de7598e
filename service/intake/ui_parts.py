"""Parts of the messages that Vercel's AI SDK shows in a user interface: a call together with what came of it.

One that awaits its result or an approval has none; one that was denied failed. Version 4's form (`toolInvocation`,
`args`, `result`) is read too. If a part could not be parsed, `rawInput` is what the model wrote.
"""

from __future__ import annotations

from service.core.json.members import as_text
from service.core.trace import ToolCall, ToolDef, ToolResult
from service.errors import InputError
from service.intake.calls import build_tool_call, read_result_content
from service.intake.cursor import Cursor

_STATES = {"errorText": "output-error", "output": "output-available", "result": "result"}
"""The state that a member tells of, for parts that name none."""
_NO_UI = ("tool-call", "tool-result", "tool-error")
_IDLE = ("source", "source-url", "source-document", "step-start")


def is_ui_call(part: Cursor) -> bool:
    """Whether a part is a call as a user interface shows it: its type names the tool."""
    kind = as_text(part.peek("type")) or ""
    if kind == "tool-error":
        return "state" in part or "error" not in part
    named = kind.startswith("tool-") and kind not in _NO_UI
    return (named or kind == "dynamic-tool" or "toolInvocation" in part) and not is_idle_ui(part)


def is_idle_ui(part: Cursor) -> bool:
    """Whether a part carries nothing that is scored. A tool may have the name of an approval part."""
    kind = as_text(part.peek("type")) or ""
    if kind in ("tool-approval-request", "tool-approval-response"):
        return "approvalId" in part and not any(name in part for name in ("state", "input", "args"))
    return kind in _IDLE or kind.startswith("data-")


def read_ui_call(part: Cursor) -> ToolCall:
    """Read the call. Raises InputError: it has no name."""
    body = part.child("toolInvocation") or part
    kind = part.text("type")
    named = kind.removeprefix("tool-") if kind.startswith("tool-") and kind != "tool-invocation" else ""
    name = body.text("toolName") or named
    if not name:
        raise InputError.at(part.path, "a call needs a toolName")
    if body.flag("providerExecuted"):
        part.out.offer(ToolDef(name))
    given = next((key for key in ("input", "rawInput", "args") if body.peek(key) is not None), "input")
    call = build_tool_call(body.text("toolCallId") or None, name, body.take(given))
    streaming = body.peek("state") in ("input-streaming", "partial-call")
    return ToolCall(call.id, name, None, captured=False) if streaming else call


def read_ui_result(part: Cursor) -> ToolResult | None:
    """Return what came of a call; None if nothing has yet. If a part has no state, its members tell which it is in."""
    body = part.child("toolInvocation") or part
    state = body.text("state") or next((state for key, state in _STATES.items() if key in body), "")
    if state in ("output-error", "output-denied"):
        denied = body.child("approval").text("reason")
        return ToolResult(read_result_content(body.take("errorText") if "errorText" in body else denied or None), True)
    key = {"output-available": "output", "result": "result"}.get(state)
    return ToolResult(read_result_content(body.take(key))) if key else None
