"""What happened, in one form for all providers. Intake builds these; nothing below intake sees foreign JSON."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pydantic import JsonValue

from service.core.json.walk import PlacedText, list_placed_texts
from service.core.models.light import lazy, light

Role = Literal["system", "user", "assistant", "agent"]
"""Who wrote a text. `agent`: an agent, to another agent; such a text is a model's and never the user's word."""
UnreadKind = Literal["call", "result", "text", "other"]
"""What a part that was not read is or may be. No outcome depends on `other`, but reports name it."""


@dataclass(frozen=True)
class ToolDef:
    """A tool on offer. `parameters` and `output_schema` are JSON Schemas as given; `annotations` are MCP's hints.

    Intake shares one object between all traces with the same tool, which caches what depends on the tool alone.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, JsonValue] | bool | None = None
    output_schema: Mapping[str, JsonValue] | bool | None = None
    annotations: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    @property
    def read_only(self) -> bool:
        """Whether it is marked as changing nothing (MCP `readOnlyHint`)."""
        return self.annotations.get("readOnlyHint") is True

    @lazy
    def memo(self) -> dict[object, object]:
        """A cache of values that depend on the tool alone, by keys that the callers choose."""
        return {}

    @lazy
    def properties(self) -> frozenset[str]:
        """The arguments listed in the top-level `properties` of its schema."""
        plain = self.parameters.get("properties") if isinstance(self.parameters, Mapping) else None
        return frozenset(plain if isinstance(plain, Mapping) else ())

    @lazy
    def texts(self) -> tuple[PlacedText, ...]:
        """All its texts, with pointers below the tool."""
        return (
            PlacedText("/name", self.name),
            PlacedText("/description", self.description),
            *list_placed_texts(self.parameters, "/parameters"),
            *list_placed_texts(self.output_schema, "/output_schema"),
        )


class Offer(NamedTuple):
    """When a tool was first offered: the first step that could call it, and the turn."""

    step: int
    turn: int


CUSTOM_TOOL = "a custom tool takes text, not arguments"
"""The `problem` of a call to a custom tool, which takes text instead of a JSON object."""


@light
class ToolCall:
    """One call as the model made it.

    If the arguments are no JSON object, `arguments` is None, `problem` says why and `raw` has them. If `captured`
    is false, the trace does not record the arguments, which is not the model's fault; `problem` says so if it has a part of
    them alone. `tool_id` is the id of the tool itself,
    which some spans give beside its name.
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
        """Whether it calls a custom tool, which takes free text instead of arguments."""
        return self.problem == CUSTOM_TOOL


@light
class ToolFailure:
    """Why a result seems to report a failed call. `certain`: it can mean nothing else; otherwise it is likely."""

    certain: bool
    reason: str
    path: str
    """The pointer to the evidence."""


@light
class ToolResult:
    """What the tool returned: parsed if it is JSON, else its text."""

    content: JsonValue
    is_error: bool = False
    """Whether the tool reported an error: the source says so, or the result certainly does."""
    failure: ToolFailure | None = None
    """The evidence of an error in the result, if the source does not report one. `plan` looks for it."""
    text: str | None = field(default=None, compare=False)
    """The original text from a span, if `content` was parsed from it."""


@light
class ResourceUsage:
    """The resources a step or a whole trace took; None if the source does not say.

    For a step, the time is that of its tool. Tokens and US dollars are those of the model's reply that made the call; if one
    reply made several calls, only the first has them, so that they add up.
    """

    duration_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


@light
class Step:
    """One call and its result (None: not captured). `turn` counts from 1; `message` is the index of the message with the call."""

    index: int
    turn: int
    call: ToolCall
    result: ToolResult | None = None
    message: int = 0
    usage: ResourceUsage | None = None
    agent: str | None = None
    """The agent that called, if the trace has several."""

    @property
    def failed(self) -> bool:
        """Whether its tool reported an error."""
        return self.result is not None and self.result.is_error

    @property
    def succeeded(self) -> bool:
        """Whether it has a result that reports no error; one that seems to is in its `failure`."""
        return self.result is not None and not self.result.is_error


@light
class Message:
    """A text in the conversation. Tool calls and results are steps, not messages."""

    role: Role
    text: str
    turn: int
    agent: str | None = None
    """The agent that wrote it or, of a user or system, that it was sent to, if the trace has several."""
    to: str | None = None
    """The agent that another agent wrote it to."""


@light
class State:
    """The state of the world before and after the run. `captured` names the parts that are known; a known part may be None.

    `fault` is why a sandbox could not supply the final state.
    """

    initial: JsonValue = None
    final: JsonValue = None
    captured: frozenset[str] = frozenset()
    fault: str | None = None


@light
class AgentOutput:
    """The value that a run returned beside its texts, and the JSON Schema for it, if the source gives one.

    If `captured` is false, only the schema is known.
    """

    content: JsonValue = None
    schema: Mapping[str, JsonValue] | bool | None = None
    captured: bool = True


@light
class WrittenCall:
    """A call that a model wrote into a text, where its server's parser missed it."""

    message: int
    """The index of the message with the text."""
    form: str
    """How it is written, such as `<tool_call>`."""
    name: str
    """The tool, "" if it cannot be read."""
    arguments: Mapping[str, JsonValue] | None
    whole: bool
    """Whether it is closed, has its arguments, names a tool on offer and can mean nothing else."""


@light
class UnreadablePart:
    """A part of the source that could not be read: a call, a result, an assistant's text, or something else."""

    kind: UnreadKind
    path: str
    """Its pointer in the source, or in the trace if it is there in a form that nothing reads."""
    reason: str
    turn: int
    step: int | None = None
    """The step that it is the result of, if it is a result."""
    written: WrittenCall | None = None
    """The call, if it stands in a text of the model."""


class Catalogue(NamedTuple):
    """The tools on offer to an agent (None: unknown), and when those not there from the start were first offered, by name."""

    tools: tuple[ToolDef, ...] | None
    offers: Mapping[str, Offer]


@light
class Trace:
    """A conversation with its tools.

    A turn is one or more user messages in a row and everything up to the next one. Turns count from 1; 0 is what precedes the
    first user message. `tools` is None if the trace does not say what was on offer, and () if nothing was; `offers` says when
    tools were added later. `answer` is the text of the last message if it is the assistant's and makes no call. `raw` is the
    whole input. `unread` lists the parts of it that could not be read.
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
    over: bool = True
    """Whether something of the assistant follows the user's last message, or the source says that nothing does."""
    ignored: tuple[UnreadablePart, ...] = ()
    """What was not read and carries nothing that is scored."""
    usage: ResourceUsage | None = None
    """The resources the whole trace took, including replies without calls."""
    offers: Mapping[str, Offer] = field(default_factory=dict[str, Offer])
    """When each tool that was not there from the start was first offered, by name. Once offered, a tool stays."""
    output: AgentOutput | None = None
    """What the run returned; None if the source has no output, only the `answer`."""
    catalogues: Mapping[str | None, Catalogue] = field(default_factory=dict[str | None, Catalogue])
    """The tools of each agent that has its own; `tools` then has those of all agents."""

    def find_catalogue(self, agent: str | None) -> Catalogue:
        """Return the tools on offer to an agent: its own, else those of the trace."""
        return self.catalogues.get(agent) or Catalogue(self.tools, self.offers)

    def has_several_agents(self) -> bool:
        """Whether the source says which of several agents wrote and called."""
        return any([one.agent is not None for one in (*self.steps, *self.messages)])  # noqa: C419 (it costs less)

    def find_agent(self, path: str) -> str | None:
        """Return the agent of the step or message that a pointer leads into, if the trace has several."""
        kind, _, rest = path[1:].partition("/")
        parts = self.steps if kind == "steps" else self.messages if kind == "messages" else ()
        number = rest.partition("/")[0]
        return parts[int(number)].agent if number.isdecimal() and int(number) < len(parts) else None

    def index_tools(self) -> Callable[[Step], ToolDef | None]:
        """Return a function that finds the tool of a step, if it was ever on offer to its agent."""
        common = {tool.name: tool for tool in self.tools or ()}
        own = {agent: {tool.name: tool for tool in one.tools or ()} for agent, one in self.catalogues.items()}
        return lambda step: own.get(step.agent, common).get(step.call.name)


MASTER_KEYS = frozenset(
    {
        "thought process",
        "let's solve this problem step by step",
        "solution",
        "解",
        "かいせつ",
        "respuesta",
    }
)
"""Zhao et al., "One Token to Fool LLM-as-a-Judge" (arXiv 2507.08794, table 1): strong judges reward them although they
say nothing."""


def is_hollow(text: str) -> bool:
    """Whether a text is empty, only punctuation, or one of the phrases that judges are known to reward.

    >>> [is_hollow(text) for text in ("", ":", "Thought process:", "**Solution**", "Done.", "42", "Solution: 42", "👍")]
    [True, True, True, True, False, False, False, False]
    """
    return all(_says_nothing(line) for line in text.splitlines())


def _says_nothing(line: str) -> bool:
    plain = unicodedata.normalize("NFKC", line)
    unseen = {char for char in set(plain) if unicodedata.category(char)[0] == "C" and not char.isspace()}
    plain = plain.translate(dict.fromkeys(map(ord, unseen)))
    edges = {char for char in set(plain) if char in _MARKUP or char.isspace() or unicodedata.category(char)[0] in "PZ"}
    core = " ".join(plain.strip("".join(edges)).split()).casefold()
    return not core or core.replace("\u2019", "'") in MASTER_KEYS


_MARKUP = frozenset("`~|<>^=+$")
"""Symbols used as markup. Punctuation, white space and control characters are recognised by their Unicode category."""
