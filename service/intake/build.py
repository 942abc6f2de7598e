"""The builder all adapters share: they say what happened, in order, and it keeps turns, steps and the pairing of results.

Pairing. A result belongs to the call it names: of several with that id, to the first unanswered one of the latest
message that has one. A result that names no call made before it (providers that give no ids, logs that lost them)
belongs to the first call of the preceding calling message that no other result claims. A result that then answers nothing
makes no step: where its call was answered already it stays in `raw`, else its call is one that nobody could read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, cast

from pydantic import JsonValue
from typing_extensions import ReadOnly, TypedDict

from service.core.json.text import UnreadableError, parse, read_structure
from service.core.trace import (
    AgentOutput,
    Message,
    Role,
    State,
    Step,
    ToolCall,
    ToolDef,
    ToolResult,
    Trace,
    Unread,
    UnreadKind,
)

_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})

_Answers = dict[int, ToolResult | None]


class Record(TypedDict):
    """What all validated records have in common."""

    format: ReadOnly[str]


def tool_call(call_id: str | None, name: str, arguments: JsonValue) -> ToolCall:
    """A call, from arguments as the model gave them: a JSON string or, from some providers, an object already.

    None, "" and white space are `{}`: several providers send them for a call without arguments. Anything else that is
    no JSON object leaves `arguments` None, with the problem; nothing here raises.
    """
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return ToolCall(call_id or None, name, {}, arguments)
    try:
        value = parse(arguments) if isinstance(arguments, str) else arguments
    except UnreadableError as error:
        return ToolCall(call_id or None, name, None, arguments, str(error))
    if isinstance(value, dict):
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
    return ToolCall(call_id or None, name, None, text, "a custom tool takes text, not arguments")


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


class Transcript:
    """A conversation being written down. Every adapter makes one, tells it what happened and takes the Trace.

    Every message of the assistant has its place in `Trace.messages`, with empty text where it only called tools, so that
    `Step.message` always points at the message that made the call, and calls made at once share it.
    """

    __slots__ = (
        "_answers",
        "_calls",
        "_ids",
        "_messages",
        "_offers",
        "_others",
        "_places",
        "_replied",
        "_results",
        "_speaking",
        "_turn",
        "_unread",
    )

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._calls: list[tuple[ToolCall, int, int]] = []
        self._results: list[tuple[str | None, ToolResult | None, int]] = []
        self._answers: _Answers = {}
        self._places: list[tuple[str, int]] = []
        self._unread: list[Unread] = []
        self._others: dict[str, tuple[str, int]] = {}
        self._ids: set[str | None] = set()
        self._offers: dict[str, ToolDef] = {}
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
        self._ids.add(call.id)
        self._calls.append((call, self._turn, len(self._messages) - 1))

    def result(self, call_id: str | None, result: ToolResult | None, *, path: str = "") -> None:
        """What a call returned, by the call's id where there is one; None: it did, but what is not captured.

        `path`: where it stands, to be told where its call is missing; "" where it may well be.
        """
        self._speaking = False
        self._results.append((call_id or None, result, len(self._calls)))
        self._places.append((path, self._turn))

    def lose(self, kind: UnreadKind, path: str, what: str) -> None:
        """Something that stands at `path` and is not read. Of other things the first of each sort is named, with their number."""
        if kind == "other":
            first, count = self._others.get(what, (path, 0))
            self._others[what] = first, count + 1
            return
        if kind == "call":
            self._replied = True
        self._unread.append(Unread(kind, path, f"{what} is not read: it stays in the source", self._turn))

    def offer(self, tool: ToolDef) -> None:
        """A tool that is on offer though the source does not list it with the others. The first of a name counts."""
        self._offers.setdefault(tool.name, tool)

    def knows(self, call_id: str) -> bool:
        """Whether a call of this id was made."""
        return call_id in self._ids

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
        answers = self._answers
        unread = [*self._unread, *_list_others(self._others)]
        if self._results:
            pairing = pair(self._calls, self._results)
            answers = answers | pairing.answers
            unread = [*unread, *[_describe_orphan(*self._places[at]) for at in pairing.orphans if self._places[at][0]]]
        return Trace(
            trace_id,
            record["format"],
            None if tools is None else self._complete(tools),
            tuple(self._messages),
            tuple(
                [Step(i, turn, call, answers.get(i), message) for i, (call, turn, message) in enumerate(self._calls)]
            ),
            self._answer(),
            self._turn,
            state,
            record,  # pyright: ignore[reportArgumentType] (a validated record is JSON)
            tuple(unread),
            output=output,
        )

    def _complete(self, tools: tuple[ToolDef, ...]) -> tuple[ToolDef, ...]:
        """The tools that are listed, and those that are on offer besides."""
        names = {tool.name for tool in tools}
        return (*tools, *[tool for name, tool in self._offers.items() if name not in names])

    def _answer(self) -> str | None:
        if not self._messages or self._messages[-1].role != "assistant":
            return None
        calling = bool(self._calls) and self._calls[-1][2] == len(self._messages) - 1
        return None if calling else self._messages[-1].text


MOST_OTHERS = 50
"""Sorts of things that carry nothing for scoring, as far as one can tell, that are named one by one."""


def _list_others(others: Mapping[str, tuple[str, int]]) -> Iterator[Unread]:
    """What is not read and leaves nothing open; of a source that holds very many sorts of it, the first ones and a number."""
    for what, (path, count) in islice(others.items(), MOST_OTHERS):
        places = "" if count == 1 else f", in {count} places"
        yield Unread("other", path, f"{what} is not read{places}", 0)
    if len(others) > MOST_OTHERS:
        yield Unread("other", "", f"{len(others) - MOST_OTHERS} more sorts of members and parts are not read", 0)


def _describe_orphan(path: str, turn: int) -> Unread:
    return Unread("call", path, "a result answers no call of the trace: its call is missing", turn)


class Pairing(NamedTuple):
    """Results by the index of the call that each answers, and the indices of results whose call is missing."""

    answers: _Answers
    orphans: Sequence[int] = ()


def pair(
    calls: Sequence[tuple[ToolCall, int, int]], results: Sequence[tuple[str | None, ToolResult | None, int]]
) -> Pairing:
    """Which call each result answers: calls as (call, turn, message), results as (id, result, calls so far).

    In linear time, whatever ids a hostile log repeats. The rules stand at the head of the module.
    """
    answers: _Answers = {}
    unnamed: list[tuple[int, int]] = []
    # For each id seen, a queue of unanswered calls for each message that used it, the latest message last.
    open_calls: dict[str, list[tuple[int, deque[int]]]] = {}
    calls_read = 0
    for at, (call_id, result, made) in enumerate(results):
        for index in range(calls_read, made):
            _enqueue(open_calls, index, calls[index])
        calls_read = made
        if call_id is None or call_id not in open_calls:
            unnamed.append((at, made))
        elif open_calls[call_id]:
            answers[_take(open_calls[call_id])] = result
    if not unnamed:
        return Pairing(answers)
    by_order = _match_by_order(calls, unnamed, answers)
    taken = set(by_order.values())
    late: _Answers = {index: results[at][1] for index, at in by_order.items()}
    return Pairing(answers | late, [at for at, _ in unnamed if at not in taken])


def _enqueue(open_calls: dict[str, list[tuple[int, deque[int]]]], index: int, entry: tuple[ToolCall, int, int]) -> None:
    call, _, message = entry
    if call.id is None:
        return
    queues = open_calls.setdefault(call.id, [])
    if not queues or queues[-1][0] != message:
        queues.append((message, deque()))
    queues[-1][1].append(index)


def _take(queues: list[tuple[int, deque[int]]]) -> int:
    queue = queues[-1][1]
    index = queue.popleft()
    if not queue:
        queues.pop()
    return index


def _match_by_order(
    calls: Sequence[tuple[ToolCall, int, int]], results: Sequence[tuple[int, int]], answered: _Answers
) -> dict[int, int]:
    """The calls that results without a known id answer, by their order: indices of calls with indices of results."""
    waiting: dict[int, deque[int]] = {}
    for index, (_, _, message) in enumerate(calls):
        if index not in answered:
            waiting.setdefault(message, deque()).append(index)
    matches: dict[int, int] = {}
    for at, made in results:
        queue = waiting.get(calls[made - 1][2]) if made else None
        if queue:
            matches[queue.popleft()] = at
    return matches
