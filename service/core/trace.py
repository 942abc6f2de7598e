"""What happened, in one form whatever provider it came from. Intake builds these; nothing below intake sees foreign JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pydantic import JsonValue

from service.core.json.texts import PlacedText, list_placed_texts
from service.core.models.lazy import lazy
from service.core.models.light import light

Role = Literal["system", "user", "assistant"]
UnreadKind = Literal["call", "result", "text", "other"]
"""What a part that was not read is or may be. Nothing rests on `other`, which is named all the same."""


@dataclass(frozen=True)
class ToolDef:
    """A tool on offer. `parameters` and `output_schema` are JSON Schemas as given; `annotations` are MCP's hints.

    Intake makes one for all traces that have it; what is worked out of it alone it keeps.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, JsonValue] | bool | None = None
    output_schema: Mapping[str, JsonValue] | bool | None = None
    annotations: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    @property
    def read_only(self) -> bool:
        """Marked as changing nothing (MCP `readOnlyHint`)."""
        return self.annotations.get("readOnlyHint") is True

    @lazy
    def memo(self) -> dict[object, object]:
        """What others worked out of it alone, by keys of theirs."""
        return {}

    @lazy
    def properties(self) -> frozenset[str]:
        """The arguments that its schema lists in the plainest way."""
        plain = self.parameters.get("properties") if isinstance(self.parameters, Mapping) else None
        return frozenset(plain if isinstance(plain, Mapping) else ())

    @lazy
    def texts(self) -> tuple[PlacedText, ...]:
        """What it says of itself, with pointers below the tool."""
        return (
            PlacedText("/name", self.name),
            PlacedText("/description", self.description),
            *list_placed_texts(self.parameters, "/parameters"),
            *list_placed_texts(self.output_schema, "/output_schema"),
        )


class Offer(NamedTuple):
    """When a tool came on offer: the first step that could call it, and the turn."""

    step: int
    turn: int


CUSTOM_TOOL = "a custom tool takes text, not arguments"
"""The problem of a call whose arguments are no JSON object because its tool has none."""


@light
class ToolCall:
    """One call as the model made it. `arguments` is None when they are no JSON object; `problem` says why, `raw` keeps them.

    Where `captured` is false the trace does not tell the arguments, which is no fault of the model's. `tool_id` is an id of
    the tool itself, which some spans tell beside its name.
    """

    id: str | None
    name: str
    arguments: Mapping[str, JsonValue] | None
    raw: JsonValue = None
    problem: str | None = None
    captured: bool = True
    tool_id: str | None = None

    @property
    def takes_text(self) -> bool:
        """Whether it calls a custom tool, which takes free text and no arguments."""
        return self.problem == CUSTOM_TOOL


@light
class ToolFailure:
    """What in a result says that the call failed. `certain`: it can mean nothing else; else it is likely."""

    certain: bool
    reason: str
    path: str
    """The pointer of what says so."""
    status: int | None = None
    """The HTTP status, where it tells one: 400 to 599."""


@light
class ToolResult:
    """What the tool returned: parsed JSON where it is JSON, else its text."""

    content: JsonValue
    is_error: bool = False
    """Whether the tool reported an error: its source says so, or the result does, for certain."""
    failure: ToolFailure | None = None
    """What in the result says so where its source does not. `plan` looks for it."""
    text: str | None = field(default=None, compare=False)
    """The text that a span tells, where `content` is what was read from it."""


@light
class ResourceUsage:
    """What a step or a whole trace took; None where the source does not say.

    Of a step the time is its tool's; tokens and US dollars are those of the model's reply that made the call, and stand at
    the first of several calls of one reply, so that they add up.
    """

    duration_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


@light
class Step:
    """One call and its result (None: not captured). `turn` counts from 1; `message` is the index of the message that made it."""

    index: int
    turn: int
    call: ToolCall
    result: ToolResult | None = None
    message: int = 0
    usage: ResourceUsage | None = None


@light
class Message:
    """A text in the conversation. Tool calls and results are steps, not messages."""

    role: Role
    text: str
    turn: int


@light
class State:
    """The world around the tools, before and after. Absent parts are None only where `captured` lacks their name.

    `fault` is why a sandbox that should have found out did not.
    """

    initial: JsonValue = None
    final: JsonValue = None
    captured: frozenset[str] = frozenset()
    fault: str | None = None


@light
class AgentOutput:
    """The value that a run gave back, beside what it said, and the JSON Schema that it was to fit, where the source tells one.

    Where `captured` is false it tells the schema alone.
    """

    content: JsonValue = None
    schema: Mapping[str, JsonValue] | bool | None = None
    captured: bool = True


@light
class UnreadablePart:
    """A part of the source that could not be read: a call, a result, a text of the assistant's, or something else."""

    kind: UnreadKind
    path: str
    """Its pointer in the source, or in the trace for what the source gave in a form that nothing reads."""
    reason: str
    turn: int
    step: int | None = None
    """The step whose result it is."""


@light
class Trace:
    """A conversation with its tools.

    A turn is a user message (or several in a row) and all that follows up to the next one; turns count from 1, and 0 is
    what precedes the first user message. `tools` is None when the trace does not say what was on offer, () when nothing
    was; `offers` says when those came that were not there from the start. `answer` is the text of the last message if that
    is the assistant's and makes no call. `raw` is the input, whole. What could not be read of it stands in `unread`.
    """

    id: str | None
    format: str
    tools: tuple[ToolDef, ...] | None
    messages: tuple[Message, ...]
    steps: tuple[Step, ...]
    answer: str | None
    turns: int
    state: State | None = None
    raw: JsonValue = None
    unread: tuple[UnreadablePart, ...] = ()
    usage: ResourceUsage | None = None
    """What all of it took, replies that call nothing included."""
    offers: Mapping[str, Offer] = field(default_factory=dict[str, Offer])
    """When tools came on offer, by name, of those among `tools` that were not from the start. One that came stays."""
    output: AgentOutput | None = None
    """What the run gave back; None: the source tells of none, and `answer` is all there is."""
