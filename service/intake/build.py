"""The builder all adapters share: they say what happened, in order, and it keeps turns, steps and what is not read.

Which result answers which call is told by `service.intake.pairing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, cast

from pydantic import JsonValue
from typing_extensions import ReadOnly, TypedDict

from service.core.json.parsing import UnreadableError, parse, read_structure
from service.core.trace import (
    CUSTOM_TOOL,
    AgentOutput,
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
from service.intake.pairing import Answers, Returned, pair
from service.intake.repeats import FoundCall, ReadCalls

_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})


class Record(TypedDict):
    """What all validated records have in common."""

    format: ReadOnly[str]


def tool_call(call_id: str | None, name: str, arguments: JsonValue) -> ToolCall:
    """A call, from arguments as the model gave them: a JSON string or, from some providers, an object already.

    None, "" and white space are `{}`: several providers send them for a call without arguments. Anything else that is
    no JSON object leaves `arguments` None, with the problem; nothing here raises.
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


def custom_call(call_id: str | None, name: str, text: JsonValue) -> ToolCall:
    """A call of a custom tool, which takes free text."""
    return ToolCall(call_id or None, name, None, text, CUSTOM_TOOL)


def result_content(given: JsonValue) -> JsonValue:
    """What a tool returned: text that spells a JSON object or array becomes that, other text stays text.

    A bare `123456` stays the string it was, since many an id looks like a number; so does text that is nearly JSON.
    Parts that are all text are read as one text, a part to a line; other parts (images, search results) are kept as given.
    """
    text = _join_texts(given) if isinstance(given, list) else given
    return read_structure(text) if isinstance(text, str) else given


def _join_texts(parts: Sequence[JsonValue]) -> str | None:
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") in _TEXT_PARTS]
    if len(texts) < len(parts) or not all(isinstance(text, str) for text in texts):
        return None
    return "\n".join(cast("list[str]", texts))


class Doubt(NamedTuple):
    """What looks like calls in something that is not read."""

    calls: Sequence[FoundCall]
    what: str
    path: str
    turn: int
    by_id: bool


class Transcript:
    """A conversation being written down. Every adapter makes one, tells it what happened and takes the Trace.

    Every message of the assistant has its place in `Trace.messages`, with empty text where it only called tools, so that
    `Step.message` always points at the message that made the call, and calls made at once share it.
    """

    __slots__ = (
        "_answers",
        "_calls",
        "_ids",
        "_late",
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
    )

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._calls: list[Step] = []
        self._results: list[Returned] = []
        self._answers: Answers = {}
        self._unread: list[UnreadablePart | Doubt] = []
        self._others: dict[str, tuple[str, int]] = {}
        self._ids: set[str | None] = set()
        self._tools: set[str] = set()
        self._offers: dict[str, ToolDef] = {}
        self._late: dict[str, Offer] = {}
        self._noted = 0
        self._turn = 0
        self._replied = True
        self._speaking = False

    def say(self, role: Role, text: str) -> None:
        """A message. A user's opens a turn once something has been said or done since the last one opened."""
        self._speaking = role == "assistant"
        if role == "user" and self._replied:
            self._turn += 1
        if role != "system":
            self._replied = role == "assistant"
        self._messages.append(Message(role, text, self._turn))

    def call(self, call: ToolCall, *, parallel: bool = False) -> None:
        """A call, made by the assistant's message just said or, where none was, by one without text.

        `parallel`: by the message that made the call before.
        """
        if not self._speaking and not parallel:
            self.say("assistant", "")
        self._speaking = True
        self._calls.append(Step(len(self._calls), self._turn, call, None, len(self._messages) - 1))

    def result(
        self, call_id: str | None, result: ToolResult | None, *, path: str = "", tool: str | None = None
    ) -> None:
        """What a call returned, by the call's id or its tool's name where there is one; None: it did, but what is not captured.

        `path`: where it stands, to be told where its call is missing; "" where it may well be.
        """
        self._speaking = False
        self._results.append(Returned(call_id or None, tool or None, result, len(self._calls), self._turn, path))

    def lose(self, kind: UnreadKind, path: str, what: str) -> None:
        """Something that stands at `path` and is not read. Of other things the first of each sort is named, with their number."""
        if kind == "other":
            _count_other(self._others, path, what)
            return
        if kind == "call":
            self._replied = True
        self._unread.append(_describe_lost(kind, path, what, self._turn))

    def doubt(self, calls: Sequence[FoundCall], what: str, path: str, *, by_id: bool) -> None:
        """Calls that stand together in something that is not read, `what` at `path`.

        Those that repeat calls of the trace are none; `by_id`: only what has the id of a call may repeat it.
        """
        if calls:
            self._replied = True
            self._unread.append(Doubt(calls, what, path, self._turn, by_id))

    def offer(self, tool: ToolDef, *, late: bool = False) -> None:
        """A tool that is on offer though the source does not list it with the others. The first of a name counts.

        `late`: from here on, and not before.
        """
        if late and tool.name not in self._offers and (self._calls or self._turn > 1):
            self._late[tool.name] = Offer(len(self._calls), self._turn)
        self._offers.setdefault(tool.name, tool)

    def knows(self, call_id: str) -> bool:
        """Whether a call of this id was made."""
        self._note_calls()
        return call_id in self._ids

    def has_called(self, tool: str) -> bool:
        """Whether a call of this tool was made."""
        self._note_calls()
        return tool in self._tools

    def _note_calls(self) -> None:
        """Notes the ids and tools of the calls made since: most sources ask for none."""
        for made in self._calls[self._noted :]:
            self._ids.add(made.call.id)
            self._tools.add(made.call.name)
        self._noted = len(self._calls)

    def answer(self, result: ToolResult | None) -> None:
        """What the call just made returned."""
        self._speaking = False
        self._answers[len(self._calls) - 1] = result

    def trace(
        self,
        record: Record,
        *,
        trace_id: str | None,
        tools: tuple[ToolDef, ...] | None,
        state: State | None = None,
        output: AgentOutput | None = None,
    ) -> Trace:
        """The finished trace of `record`, which is kept as `raw`."""
        answers, unread = self._answers, ()
        if self._results:
            pairing = pair(self._calls, self._results, answers)
            answers, unread = pairing.answers, tuple(pairing.unread)
        if self._unread or self._others:
            unread = (*self.list_unread([made.call for made in self._calls]), *unread)
        listed = {tool.name for tool in tools or ()} if self._offers or self._late else frozenset[str]()
        if tools is not None and self._offers:
            tools = (*tools, *[one for name, one in self._offers.items() if name not in listed])
        return Trace(
            trace_id,
            record["format"],
            tools,
            tuple(self._messages),
            tuple([_answer(step, answers) for step in self._calls] if answers else self._calls),
            self._answer(),
            self._turn,
            state,
            record,  # pyright: ignore[reportArgumentType] (a validated record is JSON)
            unread,
            offers={name: came for name, came in self._late.items() if tools is not None and name not in listed}
            if self._late
            else {},
            output=output,
        )

    def list_unread(self, calls: Iterable[ToolCall]) -> tuple[UnreadablePart, ...]:
        """What this transcript was told that is not read, where these are the calls of the trace."""
        known = ReadCalls(calls)
        unread: list[UnreadablePart] = []
        others = self._others.copy()
        for told in self._unread:
            if isinstance(told, UnreadablePart):
                unread.append(told)
                continue
            left = known.drop_repeated(told.calls, by_id=told.by_id)
            unread += [_describe_lost("call", found.path, f"a call in {told.what}", told.turn) for found in left]
            if not left:
                _count_other(others, told.path, f"{told.what} repeats calls that are read, and")
        return (*unread, *_list_others(others))

    def has_lost_call(self) -> bool:
        """Whether a call of this turn is not read."""
        return any(isinstance(one, Doubt) or one.kind == "call" for one in self._unread if one.turn == self._turn)

    def has_replied(self) -> bool:
        """Whether the assistant has spoken last, and no call of it has returned since."""
        returned = self.is_calling() and self._results and self._results[-1].made == len(self._calls)
        return self._is_last() and not returned

    def _is_last(self) -> bool:
        return bool(self._messages) and self._messages[-1].role == "assistant"

    def has_spoken(self) -> bool:
        """Whether the last message is the assistant's and has a text."""
        return self._is_last() and bool(self._messages[-1].text)

    def is_calling(self) -> bool:
        """Whether the last message made a call."""
        return bool(self._calls) and self._calls[-1].message == len(self._messages) - 1

    def _answer(self) -> str | None:
        return None if self.is_calling() or not self._is_last() else self._messages[-1].text


def _answer(step: Step, answers: Answers) -> Step:
    """The step with what its call returned."""
    result = answers.get(step.index)
    return step if result is None else Step(step.index, step.turn, step.call, result, step.message)


MOST_OTHERS = 50
"""Sorts of things that carry nothing for scoring, as far as one can tell, that are named one by one."""


def _describe_lost(kind: UnreadKind, path: str, what: str, turn: int) -> UnreadablePart:
    return UnreadablePart(kind, path, f"{what} is not read", turn)


def _count_other(others: dict[str, tuple[str, int]], path: str, what: str) -> None:
    first, count = others.get(what, (path, 0))
    others[what] = first, count + 1


def _list_others(others: Mapping[str, tuple[str, int]]) -> Iterator[UnreadablePart]:
    """What is not read and leaves nothing open; of a source that holds very many sorts of it, the first ones and a number."""
    for what, (path, count) in islice(others.items(), MOST_OTHERS):
        places = "" if count == 1 else f", in {count} places"
        yield UnreadablePart("other", path, f"{what} is not read{places}", 0)
    if len(others) > MOST_OTHERS:
        yield UnreadablePart(
            "other", "", f"{len(others) - MOST_OTHERS} more sorts of members and parts are not read", 0
        )
