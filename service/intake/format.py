"""What a trace format is: all that the rest of intake knows about a format's module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, NotRequired, Union, cast

from pydantic import (
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    JsonValue,
    SkipValidation,
    with_config,
)
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypedDict

from service.core.json.members import JsonObject, list_elements, list_objects
from service.core.trace import ToolDef, Trace
from service.intake.build import Record, Transcript
from service.intake.cursor import Cursor, Located
from service.intake.tools import read_tools

Tools = tuple[ToolDef, ...] | None
"""The tools on offer; None if the source does not say."""


NOTHING: Located = (None, "")


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a model was sent and what it replied, in any form that logs use."""

    input: Located
    reply: Located
    tools: Located = NOTHING
    sample: int | None = None
    """Index of the reply to read, from 0. None: the first; the others are unread."""
    error_path: str = ""
    """Pointer of what says that the request failed; "" if it did not."""

    @property
    def path(self) -> str:
        """The pointer of the reply or, without one, of the input."""
        return self.input[1] if self.reply[0] is None else self.reply[1]


@dataclass(frozen=True, slots=True)
class WrapperContents:
    """What the reader of a wrapper found; its transcript has the id, and what it does not read."""

    exchanges: Sequence[Exchange]
    runs: Sequence[tuple[str, str]] = ()
    """The entries of tools: their names and pointers."""
    extra_values: Sequence[Located] = ()
    """Other values that may hold calls, usually those of the conversation again."""
    packed_values: Sequence[Located] = ()
    """The same for values in which calls may stand in texts and under dotted keys."""


Reader = Callable[[Cursor], Tools | Trace | WrapperContents]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A trace format, declared by decorating the function that reads it. Its name is the function's, its summary the docstring's.

    The function adds what happened to the cursor's transcript and returns the tools on offer; or, for a log that wraps a
    conversation of another format, returns what it wraps. The record's `format`, `id` and `state` are not for it.
    """

    signs: Sequence[str] = ()
    """What a record without `format` has if it looks like this format: one of these. `events: author content` are members of an
    object in `events`; `messages[]` is a list.
    """
    recognise: Callable[[JsonObject], bool] = lambda _: False
    """The same for what signs cannot say."""
    hint: str = ""
    """What `recognise` looks for, in words; signs speak for themselves."""
    score: int
    """How much is demanded of a record, from 1 to 100. Of several formats that recognise one, the best score is
    guessed unless another loses less. Up to 50: no more than messages, which other formats have too.
    """
    gold: Callable[[JsonObject], dict[str, JsonValue] | None] = lambda _: None
    """Reads the gold that a record carries, as plain data in a gold format; returns None if it carries none."""
    members: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Members of the record that are checked before it is read, with their types."""
    split: Callable[[JsonObject], Sequence[tuple[str, JsonObject]] | None] | None = None
    """Returns the records that one document of this format holds, with their pointers; None if it is no such document."""
    session: Callable[[JsonObject], str | None] | None = None
    """Names the session that a line of a file belongs to; None: no line of one. Its lines are one record, `{"lines": [...]}`,
    which is recognised by them.
    """
    closed: bool = False
    """Whether other members are errors."""
    read: Reader = lambda _: None
    name: str = ""
    summary: str = ""

    def __call__(self, read: Reader) -> Format:
        """Declare the format that a function reads."""
        parsed = [(path, names.split()) for path, _, names in (sign.rpartition(": ") for sign in self.signs)]
        listed = [" with ".join(filter(None, (path, " and ".join(names)))) for path, names in parsed]

        def recognise(record: JsonObject) -> bool:
            by_line = self.session is not None and any(map(self.session, list_objects(record.get("lines"))))
            return by_line or any(holds(record, path, *names) for path, names in parsed) or self.recognise(record)

        return replace(
            self,
            read=read,
            name=getattr(read, "__name__", ""),
            summary=(read.__doc__ or "").partition("\n")[0],
            recognise=recognise,
            hint=", or ".join(filter(None, (*listed, self.hint))).replace("[]", ""),
        )

    def build_shape(self) -> type:
        """Build the TypedDict that a record is validated with: `format` is the literal name."""
        common: dict[str, Any] = {
            "format": Literal[self.name],
            "id": NotRequired[str | None],
            "state": NotRequired[StateShape | None],
        }
        create: Any = TypedDict
        shape = create(f"{self.name.title().replace('_', '')}Trace", common | dict(self.members))
        shape.__doc__ = self.summary
        shape.__pydantic_config__ = CLOSED if self.closed else OPEN
        return shape

    def read_record(self, record: Record, out: Transcript) -> Trace | WrapperContents:
        """Read a validated record onto an empty transcript. Raises InputError: what its shape cannot express."""
        root = Cursor(cast("JsonObject", record), out)
        root.take_all("format", "id", "state")
        found = self.read(root)
        root.close()
        return found if isinstance(found, (Trace, WrapperContents)) else out.build_trace(record, tools=found)


def take_tools(record: Cursor, *names: str) -> Tools:
    """Return the tools that the first of these members lists; None if none is there. Raises InputError: they are no tools."""
    name = next((name for name in names if name in record), "")
    return read_tools(record.take(name), path=f"{record.path}/{name}")


def list_at(record: JsonObject, *paths: str) -> Iterator[JsonValue]:
    """Iterate over what stands at these paths: the items where it is a list, and so on the way.

    >>> list(list_at({"steps": [{"kind": "a"}, {"kind": ["b", "c"]}, {}]}, "steps/kind"))
    ['a', 'b', 'c']
    """
    for path in paths:
        name, _, rest = path.partition("/")
        for one in list_elements(record.get(name)) or [record[name]] if name in record else ():
            if not rest:
                yield one
            elif isinstance(one, dict):
                yield from list_at(one, rest)


def holds(record: JsonObject, path: str, *names: str) -> bool:
    """Whether a record, or an object at this path in it, has all these members; those that end in `[]` are lists.

    >>> holds({"steps": [{"kind": "a", "n": 1}]}, "steps", "kind", "n"), holds({"steps": 3}, "", "steps[]")
    (True, False)
    """
    return any(
        isinstance(one, Mapping)
        and all(isinstance(one.get(name[:-2]), list) if name.endswith("[]") else name in one for name in names)
        for one in (list_at(record, path) if path else (record,))
    )


def split_list(record: JsonObject, names: Sequence[str]) -> list[tuple[str, JsonObject]] | None:
    """Return the objects of the first of these members that is a list, each with its pointer; None if none has any."""
    name = next((name for name in names if list_elements(record.get(name))), "")
    return [(f"/{name}/{place}", one) for place, one in enumerate(list_objects(record.get(name)))] or None


class ByFormat:
    """Annotates a type as the union of these shapes, discriminated by `format`."""

    def __init__(self, *shapes: type, guess: Callable[[JsonObject], str] | None = None) -> None:
        """Keep the shapes and the guess.

        `guess` names the format of a record without one and raises ValueError if none fits. None: `format` is required.
        """
        self.shapes = shapes
        self.guess = guess

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        union: Any = Union[self.shapes]  # noqa: UP007 (the members are known only here)
        schema = handler.generate_schema(Annotated[union, Field(discriminator="format")])
        return core_schema.no_info_before_validator_function(self._name_format, schema) if self.guess else schema

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        if self.guess is None:
            return handler(schema)
        nameless = {
            "title": "Guessed",
            "type": "object",
            "not": {"required": ["format"]},
            "description": "A trace that names no format: it is guessed from its members, and the report says which it is.",
        }
        return {"anyOf": [handler(schema), nameless]}

    def _name_format(self, raw: Any) -> Any:
        if self.guess is None or not isinstance(raw, dict) or "format" in raw:
            return raw  # pyright: ignore[reportUnknownVariableType] (it is checked next)
        record = cast("dict[str, JsonValue]", raw)
        return {"format": self.guess(record), **record}


OPEN = ConfigDict(extra="allow", strict=True)
CLOSED = ConfigDict(extra="forbid", strict=True)

Loose = SkipValidation[JsonValue]
"""Any JSON, taken as it is."""


@with_config(OPEN)
class ToolShape(TypedDict, total=False):
    """A tool definition as Chat Completions (`function`), Responses (flat), Anthropic or MCP give it."""

    type: str
    name: str
    description: str | None
    function: Loose
    parameters: Loose
    input_schema: Loose
    inputSchema: Loose
    outputSchema: Loose
    annotations: Loose


@with_config(OPEN)
class ToolListing(TypedDict):
    """What MCP's `tools/list` returns."""

    tools: list[ToolShape]


ToolsShape = SkipValidation[list[ToolShape] | ToolListing | None]
"""The tools on offer. Shown in the schema but checked by `read_tools`, which copies nothing and gives better errors."""


@with_config(OPEN)
class StateShape(TypedDict, total=False):
    """The state of the world around the tools, before and after the run."""

    initial: Loose
    final: Loose
