"""Expectations as users write them: calls with arguments, results and order, the answer, the output and the state."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    Tag,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema

from service.core.critics import Critic
from service.core.expectations.count_limits import Count
from service.core.expectations.state_changes import StateExpectation
from service.core.expectations.templates import Template, require_values
from service.core.json.values import SCALARS
from service.core.models.kinds import FrozenModel, Several, Some
from service.core.models.light import lazy, light
from service.core.weights import Weight

ExtraArguments = Literal["count", "allow", "forbid"]
"""What an argument does that the expectation does not list. count: it lowers the score. allow: nothing. forbid: the call
scores 0."""


def _is_plain(given: Any) -> bool:
    """Whether these are arguments with ASCII names and scalar values only."""
    if type(given) is not dict:
        return False
    name: object
    for name in given:  # pyright: ignore[reportUnknownVariableType] (of what is not checked yet)
        if type(name) is not str or type(given[name]) not in SCALARS:  # pyright: ignore[reportUnknownArgumentType]
            return False
    return "".join(given).isascii()  # pyright: ignore[reportUnknownArgumentType]


class _NamedCall(FrozenModel):
    tool: str = Field(min_length=1)
    """The tool's name."""
    args: dict[str, Template] | None = None
    """Arguments by name: values or matchers (objects with `kind`), at any depth. Absent: any arguments; `{}`: none."""
    reason: str | None = None
    """Why, for readers of a report."""

    @field_validator("args", mode="wrap")
    @classmethod
    def _compare_with_something(cls, given: Any, check: ValidatorFunctionWrapHandler) -> dict[str, Template] | None:
        if _is_plain(given):  # most are plain, and need no check
            return {**given}
        args: dict[str, Template] | None = check(given)
        for name, value in (args or {}).items():
            require_values(value, name)
        return args


class CallPattern(_NamedCall):
    """A call that should have been made."""

    extra_args: ExtraArguments | None = None
    """What an argument that `args` does not list does. Absent: as the rubric says."""
    result: Template | None = None
    """What the call must have returned: a value, or a matcher."""
    turn: int | None = Field(default=None, ge=0)
    """The turn in which the call must be made. Absent: any."""
    optional: bool = False
    """Whether the call may be left out."""
    weights: dict[str, Weight] = Field(default_factory=dict)
    """How much each argument counts, by name: 1 by default, 0 to ignore it."""

    @property
    def says_result(self) -> bool:
        """Whether a result is expected; null counts as one."""
        return "result" in self.__pydantic_fields_set__  # (what `model_fields_set` looks up)

    @model_validator(mode="after")
    def _weigh_what_is_listed(self) -> CallPattern:
        if not self.weights:
            return self
        unknown = sorted(self.weights.keys() - (self.args or {}).keys())
        if unknown:
            raise ValueError(f"weights are for what `args` lists; not listed: {', '.join(unknown)}")
        return self


class AnyOrder(FrozenModel):
    """Calls that share one position of `ordered`, in any order among themselves."""

    any_order: Some[CallPattern]


class CallAlternatives(FrozenModel):
    """Alternatives for one position: any one of these calls."""

    any_of: Some[CallPattern]


ToolName = Annotated[str, Field(min_length=1)]


class Ban(_NamedCall):
    """A call that must not be made: an object, or just the name or pattern of its tool (`delete_*`).

    Its arguments narrow the ban: only a call that matches all of them breaks it.
    """

    but: Several[ToolName] = ()
    """Tools that `tool` matches and that may be called all the same, by name or pattern."""
    prefer: str | None = None
    """The tool to use instead, if this one is banned for being slower or more expensive."""

    @model_validator(mode="before")
    @classmethod
    def _read_name(cls, given: object) -> object:
        return {"tool": given} if isinstance(given, str) else given

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Describe both forms."""
        return {"anyOf": [{"type": "string", "minLength": 1}, super().__get_pydantic_json_schema__(schema, handler)]}


def _find_position_form(value: object) -> str:
    if type(value) is dict or isinstance(value, dict):
        return "any_order" if "any_order" in value else "any_of" if "any_of" in value else "call"
    return "any_order" if isinstance(value, AnyOrder) else "any_of" if isinstance(value, CallAlternatives) else "call"


Position = Annotated[
    Annotated[CallPattern, Tag("call")]
    | Annotated[AnyOrder, Tag("any_order")]
    | Annotated[CallAlternatives, Tag("any_of")],
    Discriminator(_find_position_form),
]


Calls = Annotated[
    Annotated[Literal["none", "some"], Tag("word")] | Annotated[Several[Position], Tag("patterns")],
    Discriminator(lambda value: "word" if isinstance(value, str) else "patterns"),
]


@light
class ExpectedCall:
    """One call that should (or, if not `required`, may) be made, by any one of its options."""

    options: tuple[tuple[str, CallPattern], ...]
    """The pointer and pattern of each alternative, at least one."""
    required: bool = True
    position: int | None = None
    """Its position in `ordered`, shared by the calls of an `any_order` group."""
    turn: int | None = None
    section: int = 0
    """The turn of the section that lists it, before whose calls those of earlier turns come; 0: the whole trace."""

    def is_in_turn(self, pattern: CallPattern, turn: int) -> bool:
        """Whether this option allows a call in this turn."""
        return pattern.turn in (None, turn) and self.turn in (None, turn)

    @property
    def path(self) -> str:
        """The pointer to its first option."""
        return self.options[0][0]

    @property
    def tool(self) -> str:
        """The tool of its first option."""
        return self.options[0][1].tool

    @property
    def tools(self) -> str:
        """Its tools in words: `a or b`."""
        return " or ".join(dict.fromkeys(pattern.tool for _, pattern in self.options))


class Scope(FrozenModel):
    """What is expected of the calls and texts of a trace, or of one turn."""

    calls: Calls | None = None
    """`none`, `some` (at least one call), or the calls that should be made, in any order; `[]` means `none`."""
    ordered: Several[Position] = ()
    """Calls that should be made in this order."""
    unordered: Several[Position] = ()
    """Calls that should be made in any order, beside those in `ordered`."""
    optional: Several[CallPattern] = ()
    """Calls that may be made or left out."""
    disallowed: Several[Ban] = ()
    """Calls that must not be made, by the name of the tool or a pattern of names: `delete_*`."""
    allowed: Several[ToolName] | None = None
    """The only tools that may be called, by name or pattern. It expects no call, and whether a call beyond the expected ones is
    fine stays as it is."""
    counts: dict[str, Count] = Field(default_factory=dict)
    """How often each tool must be called, by name or pattern: an operator and a number, such as `<=2`."""
    allow_extra: bool | None = None
    """Whether calls beyond the expected ones are fine. Absent: as the rubric says. If it is false and no call is listed, the
    tools in `counts` are the expected ones."""
    answer: Template | None = None
    """What the final text (of the turn) must be: a text or a matcher."""
    said: Template | None = None
    """What some text of the assistant must be: a text, a matcher, or a list of these that must all be said."""

    @field_validator("answer", "said")
    @classmethod
    def _compare_with_something(cls, text: Template | None, info: ValidationInfo) -> Template | None:
        texts = text if isinstance(text, list) and info.field_name == "said" else [text]
        if not all(one is None or isinstance(one, str | Critic) for one in texts):
            raise ValueError("expected a text or a matcher")
        require_values(text, "the matcher")
        return text

    @model_validator(mode="after")
    def _one_way(self) -> Scope:
        if (self.ordered or self.unordered) and isinstance(self.calls, tuple):
            raise ValueError("calls are given as `calls`, or as `ordered` and `unordered`, not both")
        if (self.ordered or self.unordered or self.optional) and self.calls == "none":
            only = "if no other call may be made, say so by `allow_extra: false` or `allowed`"
            raise ValueError(f"no call is expected here, and yet some are listed; {only}")
        return self

    @property
    def says_something(self) -> bool:
        """Whether any field but `allow_extra` expects something."""
        if self.calls is not None or self.answer is not None or self.said not in (None, []) or self.allowed is not None:
            return True
        return bool(self.ordered or self.unordered or self.optional or self.disallowed or self.counts)

    @lazy
    def no_calls(self) -> bool:
        """Whether no call is expected."""
        return self.calls == "none" or (self.calls == () and not (self.ordered or self.unordered or self.optional))

    @lazy
    def bans(self) -> tuple[tuple[str, Ban], ...]:
        """Every ban with its pointer below this scope; `allowed` bans all other tools."""
        listed = [(f"/disallowed/{n}", ban) for n, ban in enumerate(self.disallowed)]
        others = () if self.allowed is None else (("/allowed", build_allowed_ban(self.allowed)),)
        return (*listed, *others)

    @property
    def says_calls(self) -> bool:
        """Whether it says if there should be calls at all."""
        return self.calls is not None or bool(self.ordered or self.unordered)

    @property
    def lists_calls(self) -> bool:
        """Whether it lists the right calls, so that others are unexpected; `allow_extra: false` says so of any list."""
        return self.calls not in (None, "some") or bool(self.ordered or self.unordered) or self.allow_extra is False

    def list_expected_calls(self, below: str, turn: int | None = None) -> list[ExpectedCall]:
        """List every call that should or may be made, in the order written. `below` is the pointer of this scope."""
        listed: list[ExpectedCall] = []
        for n, position in enumerate(self.calls or ()) if self.calls not in ("none", "some") else ():
            listed += _list_expected(position, f"{below}/calls/{n}", turn)  # pyright: ignore[reportArgumentType] (no word)
        for n, position in enumerate(self.ordered):
            listed += _list_expected(position, f"{below}/ordered/{n}", turn, n)
        for n, position in enumerate(self.unordered):
            listed += _list_expected(position, f"{below}/unordered/{n}", turn)
        for n, pattern in enumerate(self.optional):
            option = f"{below}/optional/{n}", pattern
            listed.append(ExpectedCall((option,), required=False, turn=_find_turn(pattern, turn)))
        return listed


def build_allowed_ban(allowed: tuple[str, ...]) -> Ban:
    """Build the ban on every tool but these."""
    return Ban.model_construct(tool="*", but=allowed)


def _list_expected(position: Position, path: str, turn: int | None, place: int | None = None) -> list[ExpectedCall]:
    if isinstance(position, CallPattern):
        due = _find_turn(position, turn)
        return [ExpectedCall(((path, position),), not position.optional, place, due, turn or 0)]
    if isinstance(position, CallAlternatives):
        options = tuple((f"{path}/any_of/{n}", pattern) for n, pattern in enumerate(position.any_of))
        required = not any(pattern.optional for _, pattern in options)
        turns = {_find_turn(pattern, turn) for _, pattern in options}
        return [ExpectedCall(options, required, place, turns.pop() if len(turns) == 1 else turn, turn or 0)]
    return [
        ExpectedCall(((f"{path}/any_order/{n}", one),), not one.optional, place, _find_turn(one, turn), turn or 0)
        for n, one in enumerate(position.any_order)
    ]


def _find_turn(pattern: CallPattern, turn: int | None) -> int | None:
    return turn if pattern.turn is None else pattern.turn


class TurnScope(Scope):
    """What is expected of one turn."""

    @model_validator(mode="after")
    def _say_something(self) -> TurnScope:
        if not self.says_something:
            raise ValueError("a turn says what should have happened in it: calls, ordered, counts, answer, ...")
        return self

    turn: int = Field(ge=0)
    """The turn: turns count from 1; 0 is what precedes the first user message."""


@light
class ExpectedSection:
    """What is expected of the whole trace (`turn` None) or of one turn, its pointer, and every call it lists."""

    path: str
    scope: Scope
    turn: int | None
    expected_calls: tuple[ExpectedCall, ...]


@light
class Listing:
    """An expectation in the form that checks use."""

    sections: tuple[ExpectedSection, ...]
    """The whole trace, then each turn that is mentioned."""
    scopes: tuple[tuple[str, Scope, int | None], ...]
    """The pointer, scope and turn of each section."""
    expected_calls: tuple[ExpectedCall, ...]
    """The calls that should or may be made."""
    lists_calls: bool
    """Whether any section says which calls are right, so that calls can be checked against it."""


EMPTY_LISTING = Listing((), (), (), False)

IgnoredArgument = Annotated[str, Field(min_length=1, max_length=200)]


class Expectation(Scope):
    """What a trace is checked against. At least one field must expect something."""

    turns: Several[TurnScope] = ()
    """What is expected of single turns."""
    state: StateExpectation | None = None
    """What the state should be at the end."""
    output: Template | None = None
    """What the run must return: a value or a matcher. If the trace has no output, its answer is used instead, parsed if it is
    a JSON object or array."""
    gold: dict[str, Any] | None = None
    """The expectation in another system's own format, for a rubric with that system's method."""
    ignore_args: Annotated[Several[IgnoredArgument], Field(max_length=64)] = ()
    """Arguments to ignore in every call, by name or pattern: `request_id`, `*_token`, `search.cursor`."""

    @model_validator(mode="after")
    def _say_something(self) -> Expectation:
        if not (self.says_something or self.turns or self.state or self.gold or self.ignore_args or self.says_output):
            fields = "calls (or `none`), ordered, counts, answer, state, ..."
            raise ValueError(f"an expectation says what should have happened: {fields}")
        if self.turns and len({scope.turn for scope in self.turns}) < len(self.turns):
            raise ValueError("each turn is named once in `turns`")
        return self

    @property
    def says_output(self) -> bool:
        """Whether an output is expected; null counts as one."""
        return "output" in self.__pydantic_fields_set__  # (what `model_fields_set` looks up)

    @field_validator("output")
    @classmethod
    def _require_output_values(cls, output: Template | None) -> Template | None:
        require_values(output, "output")
        return output

    def list_sections(self) -> Listing:
        """List what is expected, section by section, with the calls that should or may be made.

        Callers keep the result if they need it again: a cache here would be a reference cycle, which is slow to free.
        """
        expected_calls = tuple(self.list_expected_calls("/expected"))
        whole = ExpectedSection("/expected", self, None, expected_calls)
        if not self.turns:
            lists_calls = bool(expected_calls) or self.lists_calls
            return Listing((whole,), (("/expected", self, None),), expected_calls, lists_calls)
        paths = [f"/expected/turns/{n}" for n in range(len(self.turns))]
        turns = [
            ExpectedSection(path, scope, scope.turn, tuple(scope.list_expected_calls(path, scope.turn)))
            for path, scope in zip(paths, self.turns, strict=True)
        ]
        sections = (whole, *turns)
        return Listing(
            sections,
            scopes=tuple([(one.path, one.scope, one.turn) for one in sections]),
            expected_calls=tuple([call for one in sections for call in one.expected_calls]),
            lists_calls=any(one.expected_calls or one.scope.lists_calls for one in sections),
        )
