"""The builder that all adapters share: they report events in order; it keeps turns, steps and what was not read.

`service.intake.pairing` decides which result answers which call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple, cast

from pydantic import JsonValue
from typing_extensions import ReadOnly, TypedDict

from service.core.json.members import JsonObject, list_objects, read_type
from service.core.json.parsing import UnreadableError, parse, read_structure
from service.core.trace import (
    CUSTOM_TOOL,
    AgentOutput,
    Catalogue,
    Message,
    Offer,
    Role,
    State,
    Step,
    ToolCall,
    ToolDef,
    ToolResult,
    Trace,
    UnreadablePart,
    UnreadKind,
)
from service.intake.pairing import Answers, ResultEntry, pair
from service.intake.repeated_calls import PossibleCall, TraceCalls

_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})


class Record(TypedDict):
    """The members that all validated records have."""

    format: ReadOnly[str]


def build_tool_call(call_id: str | None, name: str, arguments: JsonValue) -> ToolCall:
    """Build a call from arguments as the model gave them: a JSON string or, from some providers, an object.

    None, "" and white space become `{}`: several providers send them for a call without arguments. Anything else that
    is not a JSON object leaves `arguments` None and sets the problem. Never raises.
    """
    if arguments is None:
        return ToolCall(call_id or None, name, {}, arguments)
    try:
        value = parse(arguments) if type(arguments) is str else arguments
    except UnreadableError as error:
        empty = type(arguments) is str and not arguments.strip()
        return ToolCall(call_id or None, name, {} if empty else None, arguments, None if empty else str(error))
    if type(value) is dict or isinstance(value, dict):
        return ToolCall(call_id or None, name, value, arguments)
    return ToolCall(call_id or None, name, None, arguments, f"{_KINDS[type(value)]} where an object is expected")


_KINDS: Mapping[type, str] = {
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def build_custom_call(call_id: str | None, name: str, text: JsonValue) -> ToolCall:
    """Build a call of a custom tool, which takes free text."""
    return ToolCall(call_id or None, name, None, text, CUSTOM_TOOL)


def read_result_content(raw: JsonValue) -> JsonValue:
    """Return what a tool returned. Text that spells a JSON object or array is parsed; other text stays text.

    A bare `123456` stays a string, since many ids look like numbers; so does text that is almost JSON. Parts that are
    all text are joined, one part per line; other parts (images, search results) are kept as given.
    """
    text = _join_texts(raw) if isinstance(raw, list) else raw
    return read_structure(text) if isinstance(text, str) else raw


def _join_texts(parts: list[JsonValue]) -> str | None:
    texts = [part.get("text") for part in list_objects(parts) if read_type(part) in _TEXT_PARTS]
    if len(texts) < len(parts) or not all(isinstance(text, str) for text in texts):
        return None
    return "\n".join(cast("list[str]", texts))


class UnreadCalls(NamedTuple):
    """What looks like calls in a part that is not read."""

    calls: Sequence[PossibleCall]
    what: str
    path: str
    turn: int
    by_id: bool


class Transcript:
    """Builds a Trace: an adapter creates one, reports what happened, and takes the Trace.

    Every assistant message has an entry in `Trace.messages`, with empty text if it only called tools. So
    `Step.message` always points at the message that made the call, and parallel calls share it.
    """

    __slots__ = (
        "_answers",
        "_calls",
        "_ids",
        "_messages",
        "_noted",
        "_offers",
        "_others",
        "_replied",
        "_results",
        "_speaking",
        "_tools",
        "_turn",
        "_unread",
        "agent",
    )

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._calls: list[Step] = []
        self._results: list[ResultEntry] = []
        self._answers: Answers = {}
        self._unread: list[UnreadablePart | UnreadCalls] = []
        self._others: dict[str, tuple[str, int]] = {}
        self._ids: set[str | None] = set()
        self._tools: set[str] = set()
        self._offers: dict[str | None, dict[str, tuple[ToolDef, Offer | None]]] = {}
        self.agent: str | None = None
        """Who speaks and calls next, or is spoken to, if the trace has several agents."""
        self._noted = 0
        self._turn = 0
        self._replied = True
        self._speaking = False

    def say(self, role: Role, text: str, *, to: str | None = None) -> None:
        """Add a message. A user's message opens a turn once something was said or done since the last turn opened.

        `to`: the agent that an agent writes to.
        """
        self._speaking = role == "assistant"
        if role == "user" and self._replied:
            self._turn += 1
        if role in ("user", "assistant"):
            self._replied = role == "assistant"
        self._messages.append(Message(role, text, self._turn, self.agent, to))

    def call(self, call: ToolCall, *, parallel: bool = False) -> None:
        """Add a call, made by the assistant message just added or, if there is none, by a new message without text.

        `parallel`: made by the same message as the call before it.
        """
        if not parallel and not (self._speaking and self._messages[-1].agent == self.agent):
            self.say("assistant", "")
        self._speaking = True
        self._calls.append(Step(len(self._calls), self._turn, call, None, len(self._messages) - 1, None, self.agent))

    def add_result(
        self, call_id: str | None, result: ToolResult | None, *, path: str = "", tool: str | None = None
    ) -> None:
        """Add what a call returned, matched by the call's id or its tool's name if given.

        None: it returned, but the content was not captured.

        `path`: the result's pointer, reported if its call is missing; "" if a missing call is no fault.
        """
        self._speaking = False
        self._results.append(ResultEntry(call_id or None, tool or None, result, len(self._calls), self._turn, path))

    def note_unread(self, kind: UnreadKind, path: str, what: str) -> None:
        """Report something at `path` that is not read.

        For the kind "other", the first of each description is named, with a count.
        """
        if kind == "other":
            _count_other(self._others, path, what)
            return
        if kind == "call":
            self._replied = True
        self._unread.append(_describe_unread(kind, path, what, self._turn))

    def note_possible_calls(self, calls: Sequence[PossibleCall], what: str, path: str, *, by_id: bool) -> None:
        """Report possible calls that stand together in an unread part, `what` at `path`.

        Those that repeat calls of the trace do not count. `by_id`: only one with a call's id may be its repetition.
        """
        if calls:
            self._replied = True
            self._unread.append(UnreadCalls(calls, what, path, self._turn, by_id))

    def offer(self, tool: ToolDef, *, late: bool = False) -> None:
        """Add a tool on offer to the agent that the source does not list with the others. A name's first definition counts.

        `late`: on offer from here on, not before.
        """
        came = Offer(len(self._calls), self._turn) if late and (self._calls or self._turn > 1) else None
        self._offers.setdefault(self.agent, {}).setdefault(tool.name, (tool, came))

    def has_call_id(self, call_id: str) -> bool:
        """Whether a call with this id was made."""
        self._note_calls()
        return call_id in self._ids

    def has_called_tool(self, tool: str) -> bool:
        """Whether this tool was called."""
        self._note_calls()
        return tool in self._tools

    def _note_calls(self) -> None:
        """Record ids and tools of new calls, on demand: for most sources nobody asks."""
        for step in self._calls[self._noted :]:
            self._ids.add(step.call.id)
            self._tools.add(step.call.name)
        self._noted = len(self._calls)

    def answer(self, result: ToolResult | None) -> None:
        """Set what the latest call returned."""
        self._speaking = False
        self._answers[len(self._calls) - 1] = result

    def build_trace(
        self,
        record: Record,
        *,
        tools: tuple[ToolDef, ...] | None,
        trace_id: str | None = None,
        state: Mapping[str, object] | None = None,
        output: AgentOutput | None = None,
    ) -> Trace:
        """Build the finished trace of `record`, which is kept as `raw`.

        `trace_id`, `state`: what holds the initial and the final state; absent: as the record says.
        """
        raw = cast("JsonObject", record)  # a validated record is JSON
        given = cast("JsonObject | None", raw.get("state") if state is None else state)
        answers, unread = self._answers, ()
        if self._results:
            pairing = pair(self._calls, self._results, answers)
            answers, unread = pairing.answers, tuple(pairing.unread)
        if self._unread or self._others:
            unread = (*self.list_unread([step.call for step in self._calls]), *unread)
        catalogues = {agent: _add_offers(() if agent else tools, own) for agent, own in self._offers.items()}
        common = catalogues.pop(None, Catalogue(tools, {}))
        trace = Trace(
            trace_id or cast("str | None", raw.get("id")),
            record["format"],
            common.tools,
            tuple(self._messages),
            tuple([_answer(step, answers) for step in self._calls] if answers else self._calls),
            self._answer(),
            self._turn,
            None if given is None else _read_state(given),
            cast("JsonValue", raw),
            unread,
            offers=common.offers,
            output=output,
        )
        return add_catalogues(trace, catalogues) if catalogues else trace

    def list_unread(self, calls: Iterable[ToolCall]) -> tuple[UnreadablePart, ...]:
        """List what was reported as unread, given the calls of the trace."""
        known = TraceCalls(calls)
        unread: list[UnreadablePart] = []
        others = self._others.copy()
        for entry in self._unread:
            if isinstance(entry, UnreadablePart):
                unread.append(entry)
                continue
            left = known.drop_repeated(entry.calls, by_id=entry.by_id)
            unread += [_describe_unread("call", found.path, f"a call in {entry.what}", entry.turn) for found in left]
            if not left:
                _count_other(others, entry.path, f"{entry.what} repeats calls that are read, and")
        return (*unread, *_list_others(others))

    def has_unread_call(self) -> bool:
        """Whether a call of this turn is unread."""
        return any(isinstance(one, UnreadCalls) or one.kind == "call" for one in self._unread if one.turn == self._turn)

    def has_replied(self) -> bool:
        """Whether the assistant spoke last and none of its calls has returned since."""
        returned = self.is_calling() and self._results and self._results[-1].calls_before == len(self._calls)
        return self._is_last() and not returned

    def _is_last(self) -> bool:
        return bool(self._messages) and self._messages[-1].role == "assistant"

    def has_spoken(self) -> bool:
        """Whether the last message is the assistant's and has text."""
        return self._is_last() and bool(self._messages[-1].text)

    def is_calling(self) -> bool:
        """Whether the last message made a call."""
        return bool(self._calls) and self._calls[-1].message == len(self._messages) - 1

    def _answer(self) -> str | None:
        return None if self.is_calling() or not self._is_last() else self._messages[-1].text


def _answer(step: Step, answers: Answers) -> Step:
    """Return the step with what its call returned."""
    result = answers.get(step.index)
    return step if result is None else Step(step.index, step.turn, step.call, result, step.message, None, step.agent)


def _add_offers(tools: tuple[ToolDef, ...] | None, offered: Mapping[str, tuple[ToolDef, Offer | None]]) -> Catalogue:
    """Return the tools that are listed, and those offered besides."""
    if tools is None:
        return Catalogue(None, {})
    listed = {tool.name for tool in tools}
    more = [(tool, came) for name, (tool, came) in offered.items() if name not in listed]
    return Catalogue((*tools, *[tool for tool, _ in more]), {tool.name: came for tool, came in more if came})


def add_catalogues(trace: Trace, catalogues: Mapping[str | None, Catalogue]) -> Trace:
    """Return the trace with the tools of its agents; an agent that has none of its own has those of the trace."""
    common = Catalogue(trace.tools, trace.offers)
    others = {step.agent: common for step in trace.steps if step.agent not in catalogues}
    known = [one.tools for one in (common, *catalogues.values()) if one.tools is not None]
    tools = {tool.name: tool for listed in reversed(known) for tool in listed}
    return replace(
        trace, tools=tuple(tools.values()) if known else None, offers={}, catalogues={**others, **catalogues}
    )


def _read_state(raw: JsonObject) -> State | None:
    """Return the state with the names of its captured parts: null is one, absence is none; None without any."""
    captured = frozenset(name for name in ("initial", "final") if name in raw)
    return State(raw.get("initial"), raw.get("final"), captured) if captured else None


MAX_NAMED_OTHERS = 50
"""Distinct descriptions of unread parts of the kind "other" that are named one by one."""


def _describe_unread(kind: UnreadKind, path: str, what: str, turn: int) -> UnreadablePart:
    return UnreadablePart(kind, path, f"{what} is not read", turn)


def _count_other(others: dict[str, tuple[str, int]], path: str, what: str) -> None:
    first, count = others.get(what, (path, 0))
    others[what] = first, count + 1


def _list_others(others: Mapping[str, tuple[str, int]]) -> Iterator[UnreadablePart]:
    """Iterate over unread parts that leave nothing open: the first `MAX_NAMED_OTHERS` descriptions, then how many more."""
    for what, (path, count) in islice(others.items(), MAX_NAMED_OTHERS):
        places = "" if count == 1 else f", in {count} places"
        yield UnreadablePart("other", path, f"{what} is not read{places}", 0)
    if len(others) > MAX_NAMED_OTHERS:
        yield UnreadablePart(
            "other", "", f"{len(others) - MAX_NAMED_OTHERS} more sorts of members and parts are not read", 0
        )
