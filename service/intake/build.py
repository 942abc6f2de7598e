"""The builder that all readers share: they report events in order; it keeps turns, steps and what was not read.

`service.intake.pairing` decides which result answers which call.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple, cast

from pydantic import JsonValue
from typing_extensions import ReadOnly, TypedDict

from service.core.json.members import JsonObject
from service.core.trace import (
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
    WrittenCall,
)
from service.intake.pairing import Answers, ResultEntry, pair
from service.intake.unread_parts.endings import EMPTY, Ending, drop_lost_arguments, find_ending, is_lost, may_be_lost
from service.intake.unread_parts.leftovers import Leftover, ReplyEnd, Rest, sort_leftovers
from service.intake.unread_parts.repeated_calls import TraceCalls
from service.intake.unread_parts.suspects import Known
from service.intake.unread_parts.text_calls import MAY_CALL, find_text_calls


class Record(TypedDict):
    """The members that all validated records have."""

    format: ReadOnly[str]


class Transcript:
    """Builds a Trace: a reader reports what happened, and takes the Trace.

    Every assistant message has an entry in `Trace.messages`, with empty text if it only called tools. So
    `Step.message` always points at the message that made the call, and parallel calls share it.
    """

    def __init__(self, offered: tuple[ToolDef, ...] | None = None) -> None:
        """Start empty. `offered`: the tools on offer, if the source names none."""
        self._offered = offered
        self.messages: list[Message] = []
        self.steps: list[Step] = []
        self.results: list[ResultEntry] = []
        self.answers: Answers = {}
        self.left: list[Leftover] = []
        """What was not read, in order."""
        self.call_ids: set[str | None] = set()
        """The ids of the calls that were made."""
        self.called_tools: set[str] = set()
        self._offers: dict[str | None, dict[str, tuple[ToolDef, Offer | None]]] = {}
        self.agent: str | None = None
        """Who speaks and calls next, or is spoken to, if the trace has several agents."""
        self.id: str | None = None
        """Names the trace, if the source says it elsewhere than in `id`."""
        self.state: Mapping[str, object] | None = None
        """What holds the initial and the final state, if that is not `state`."""
        self.decoded = False
        """Whether the source has looked for calls in its texts itself, and says that there are none."""
        self.sparse = False
        """Whether the source leaves out what it did not capture: a call without arguments had some."""
        self.hosted: Sequence[str] = ()
        """Names of the provider's own tools that are on offer."""
        self._closed = False
        self._turn = 0
        self._replied = False
        self._speaking = False
        """Whether a call would be of the message that was added last."""
        self._reply: tuple[int, int] | None = None
        """While a reply is read part by part: how many messages and steps there were before it."""
        self._pieces: list[str] = []
        """What the reply's last message says."""
        self._made = self._returned = 0
        """How many calls the reply's last message has made, and how many have returned."""

    @contextmanager
    def reply(self) -> Generator[None]:
        """Read one reply of the assistant, part by part: its texts are joined, and its calls are of the same message.

        Once a call has returned, text starts a new message; once all have, so does a call. A reply without any text or call
        is an empty message.
        """
        self.cut()
        self._reply = (len(self.messages), len(self.steps))
        yield
        if self._reply == (len(self.messages), len(self.steps)):
            self.say("assistant", "")
        open_still = self._speaking and not self._returned
        self.cut()
        self._speaking, self._reply = open_still, None

    def cut(self) -> None:
        """End the message of a reply; what follows in it starts a new one."""
        if self._pieces:
            self.messages[-1] = replace(self.messages[-1], text="".join(self._pieces))
        self._speaking, self._pieces, self._made, self._returned = False, [], 0, 0

    @property
    def said(self) -> str:
        """What the reply that is being read has said so far."""
        before = 0 if self._reply is None else self._reply[0]
        whole = self.messages[before:-1] if self._pieces else self.messages[before:]
        return "".join([*[message.text for message in whole], *self._pieces])

    def list_reply_calls(self) -> list[ToolCall]:
        """List the calls of the reply that is being read."""
        return [step.call for step in self.steps[0 if self._reply is None else self._reply[1] :]]

    def say(self, role: Role, text: str, *, to: str | None = None) -> None:
        """Add a message. A user's message opens a turn once something was said or done since the last turn opened.

        `to`: the agent that an agent writes to.
        """
        self._speaking = role == "assistant"
        if role == "user" and (self._replied or not self._turn):
            self._turn += 1
        if role in ("user", "assistant"):
            self._replied = role == "assistant"
        self.messages.append(Message(role, text, self._turn, self.agent, to))

    def add_text(self, text: str) -> None:
        """Add a text of the assistant: a piece of the reply that is being read, or else a message."""
        if self._reply is None:
            self.say("assistant", text)
        elif text:
            if self._returned:
                self.cut()
            if not self._speaking:
                self.say("assistant", "")
            self._pieces.append(text)

    def call(self, call: ToolCall, result: ToolResult | None = None, *, parallel: bool = False) -> None:
        """Add a call, made by the assistant message just added or, if there is none, by a new message without text.

        `result`: what it returned, if that stands beside it; `parallel`: made by the same message as the call before it.
        """
        if not parallel and not (self._speaking and self.messages[-1].agent == self.agent):
            self.say("assistant", "")
        self._speaking = True
        self._made += 1
        self.call_ids.add(call.id)
        self.called_tools.add(call.name)
        self.steps.append(Step(len(self.steps), self._turn, call, None, len(self.messages) - 1, None, self.agent))
        if result is not None:
            self.answer(result)

    def add_result(
        self, call_id: str | None, result: ToolResult | None, *, path: str = "", tool: str | None = None
    ) -> None:
        """Add what a call returned, matched by the call's id or its tool's name if given.

        None: it returned, but the content was not captured.

        `path`: the result's pointer, reported if its call is missing; "" if a missing call is no fault.
        """
        self._returned += 1
        if self._reply is None or self._returned >= self._made:
            self.cut()
        self.results.append(ResultEntry(call_id or None, tool or None, result, len(self.steps), self._turn, path))

    def note_unread(self, kind: UnreadKind, path: str, what: str) -> None:
        """Report something at `path` that is not read. What is of the kind "other" is ignored."""
        if kind == "call":
            self._replied = True
        self.left.append(UnreadablePart(kind, path, f"{what} is not read", self._turn))

    def leave(self, rest: Rest) -> None:
        """Leave a part to be judged once the trace is known."""
        self.left.append(rest._replace(turn=self._turn))

    def end_reply(self, raw: JsonObject, path: str) -> None:
        """Note how the latest reply ended, if the object at `path` says so."""
        if (ending := find_ending(raw, path)) is not None:
            self.end_with(*ending)

    def end_with(self, reason: str, path: str, *, called: bool = False) -> None:
        """Note how the latest reply ended, and the pointer to what says so.

        `called`: whether it made a call, besides what the transcript knows.
        """
        self.left.append(ReplyEnd(Ending(reason, path), called or self.is_calling(), self._turn))

    def miss_reply(self, path: str, what: str) -> None:
        """Report a missing reply: nobody knows what the model would have called or said."""
        self.note_unread("call", path, f"a call in {what}")
        self.note_unread("text", path, what)

    def offer(self, tool: ToolDef, *, late: bool = False) -> None:
        """Add a tool on offer to the agent that the source does not list with the others. A name's first definition counts.

        `late`: on offer from here on, not before.
        """
        came = Offer(len(self.steps), self._turn) if late and (self.steps or self._turn > 1) else None
        self._offers.setdefault(self.agent, {}).setdefault(tool.name, (tool, came))

    def answer(self, result: ToolResult | None) -> None:
        """Set what the latest call returned."""
        self._returned += 1
        if self._reply is None:
            self.cut()
        self.answers[len(self.steps) - 1] = result

    def build_trace(
        self, record: Record, *, tools: tuple[ToolDef, ...] | None, output: AgentOutput | None = None
    ) -> Trace:
        """Build the finished trace of `record`, which is kept as `raw`."""
        tools = self._offered if tools is None and not self._offers else tools
        raw = cast("JsonObject", record)  # a validated record is JSON
        given = cast("JsonObject | None", raw.get("state") if self.state is None else self.state)
        captured = frozenset(name for name in ("initial", "final") if given is not None and name in given)
        answers, orphans = self.answers, ()
        if self.results:
            answers, orphans = pair(self.steps, self.results, answers)
        if not self.decoded:
            self._note_text_calls(tools)
        self._drop_losses(answers)
        if not self._closed:
            self._note_empty_replies()
        unread, ignored = self.list_unread([step.call for step in self.steps], tools, answers)
        catalogues = {agent: _add_offers(() if agent else tools, own) for agent, own in self._offers.items()}
        common = catalogues.pop(None, Catalogue(tools, {}))
        trace = Trace(
            self.id or cast("str | None", raw.get("id")),
            record["format"],
            common.tools,
            tuple(self.messages),
            tuple([replace(one, result=answers[one.index]) if answers.get(one.index) else one for one in self.steps]),
            None if self.is_calling() or not self._is_last() else self.messages[-1].text,
            self._turn,
            None if given is None or not captured else State(given.get("initial"), given.get("final"), captured),
            cast("JsonValue", raw),
            (*unread, *orphans),
            offers=common.offers,
            output=output,
            ignored=tuple(ignored),
            over=self._closed or self._replied,
        )
        return add_catalogues(trace, catalogues) if catalogues else trace

    def list_unread(
        self, calls: Sequence[ToolCall], tools: Sequence[ToolDef] | None, answers: Answers
    ) -> tuple[list[UnreadablePart], list[UnreadablePart]]:
        """List what is unread and what is ignored, given the calls of the trace, its tools and the results that were read."""
        if not self.left:
            return [], []
        named = {call.name: frozenset(call.arguments or ()) for call in calls}
        named |= {tool.name: tool.properties for tool in tools or ()}
        ids = {call.id: index for index, call in enumerate(calls) if call.id}
        results = map(answers.get, range(len(calls)))
        waits = any(result is None or result.content in (None, "", [], {}) for result in results)
        return sort_leftovers(self.left, TraceCalls(calls), Known(named, ids, frozenset(answers), waits))

    def _note_text_calls(self, tools: Sequence[ToolDef] | None) -> None:
        offered, asked = None, ""
        for index, message in enumerate(self.messages):
            if message.role == "user":
                asked = message.text
            elif message.text and message.role in ("assistant", "agent") and MAY_CALL.search(message.text):
                offered = offered or Known(
                    {tool.name: tool.properties for tool in tools or ()}, listed=tools is not None
                )
                thought, ended, _ = message.text.partition("</think>")
                if ended:
                    self.left.append(Rest(thought, f"/messages/{index}/text", "a thought", turn=message.turn))
                for call in find_text_calls(message.text, offered, asked):
                    named = f" of {call.name!r}" if call.name else ""
                    reason = f"a call{named} in a text ({call.form}) is not read"
                    certain = call.whole and call.name in offered.tools
                    written = WrittenCall(index, call.form, call.name, call.arguments, certain)
                    path = f"/messages/{index}/text"
                    self.left.append(UnreadablePart("call", path, reason, message.turn, None, written))

    def _note_empty_replies(self) -> None:
        """Note each reply to the user that is empty: it says no more than a missing one."""
        calling = {step.message for step in self.steps}
        for index, message in enumerate(self.messages):
            last = index + 1 == len(self.messages) or self.messages[index + 1].role == "user"
            if last and message.role == "assistant" and not message.text and index not in calling:
                self.left.append(ReplyEnd(Ending(EMPTY, f"/messages/{index}"), called=False, turn=message.turn))

    def _drop_losses(self, answers: Answers) -> None:
        """Take out what an exporter cut or hid of arguments, results and replies."""
        for index, message in enumerate(self.messages):
            if message.role == "assistant" and may_be_lost(message.text) and is_lost(message.text):
                path, reason = f"/messages/{index}/text", "a reply that was cut or hidden is not read"
                self.left.append(UnreadablePart("call", path, f"a call in {reason}", message.turn))
                self.left.append(UnreadablePart("text", path, reason, message.turn))
        for index, step in enumerate(self.steps):
            if may_be_lost(str(step.call.raw)) and (call := drop_lost_arguments(step.call)) is not step.call:
                self.steps[index] = replace(step, call=call)
            result = answers.get(index)
            if result is not None and isinstance(result.content, str) and is_lost(result.content):
                answers[index] = None
                reason = "a result that was cut or hidden is not read"
                self.left.append(UnreadablePart("result", f"/steps/{index}/result", reason, step.turn, index))

    def close(self) -> None:
        """Note that nothing is missing at the end: the source says that the conversation is over, or what the model did."""
        self._closed = True

    def has_replied(self) -> bool:
        """Whether the assistant spoke last and none of its calls has returned since."""
        returned = self.is_calling() and self.results and self.results[-1].calls_before == len(self.steps)
        return self._is_last() and not returned

    def _is_last(self) -> bool:
        return bool(self.messages) and self.messages[-1].role == "assistant"

    def get_last_text(self) -> str:
        """Return the text of the last message; "" if there is none."""
        return self.messages[-1].text if self.messages else ""

    def is_calling(self) -> bool:
        """Whether the last message made a call."""
        return bool(self.steps) and self.steps[-1].message == len(self.messages) - 1


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


class Request(NamedTuple):
    """What a model was sent in one request of a conversation."""

    calls: int
    """Number of calls made before the request."""
    turn: int
    tools: Sequence[ToolDef] | None
    """The tools that the request lists; None if it does not mention tools."""


def add_offers(trace: Trace, requests: Sequence[Request], before: Iterable[str] = ()) -> Trace:
    """Return the trace with the tools of all requests, in order, and when the later ones came on offer.

    A request that does not mention tools may have offered any, so tools that later requests list were there. So were
    tools called `before` the first request, whose catalogue is unknown.
    """
    if trace.tools is None:
        return trace
    known = {tool.name: tool for tool in trace.tools}
    offers = dict(trace.offers)
    seen: set[str] = set(before)
    for n, request in enumerate(requests):
        if request.tools is None:
            return replace(trace, tools=tuple(known.values()), offers=offers)
        for tool in request.tools:
            known.setdefault(tool.name, tool)
            if n and tool.name not in seen and (request.calls or request.turn > 1):
                offers.setdefault(tool.name, Offer(request.calls, request.turn))
        seen |= {tool.name for tool in request.tools}
    return replace(trace, tools=tuple(known.values()), offers=offers)
