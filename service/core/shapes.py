"""Expected values with matchers inside: `{"price": {"kind": "range", "max": 10}, "size": "L"}`.

A shape is an object or array in which any value may be a matcher; the rest stands for itself, by typed equality. Its score
is the mean over the places that either side has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import Discriminator, JsonValue, Tag
from typing_extensions import TypeAliasType

from service.core.critics import Critic, Match, Uncompared, Unjudged
from service.core.kinds import Tagged, kind_of
from service.core.values import equal, shown

Matcher = Annotated[Critic, Tagged()]


def _form(value: object) -> str:
    if isinstance(value, Critic):
        return "matcher"
    if isinstance(value, dict):
        return "matcher" if "kind" in value else "object"
    return "array" if isinstance(value, list) else "literal"


class _Scalar:
    """Any scalar, taken as it is; the parser has already refused what is not JSON."""

    @staticmethod
    def __get_pydantic_json_schema__(_schema: Any, _handler: Any) -> dict[str, Any]:
        return {"type": ["string", "number", "boolean", "null"]}


@dataclass(frozen=True, slots=True)
class Given:
    """A rubric's critic with the value an expectation gave for its place."""

    critic: Critic
    expected: JsonValue

    @property
    def optional(self) -> bool:
        """Whether the value may be absent."""
        return self.critic.optional

    def match(self, actual: JsonValue) -> Match | Uncompared:
        """The comparison with what was given."""
        return self.critic.match(actual, self.expected)


if TYPE_CHECKING:
    Template = JsonValue | Critic | Given | Mapping[str, "Template"] | list["Template"]
else:
    Template = TypeAliasType(
        "Template",
        Annotated[
            Annotated[Any, _Scalar(), Tag("literal")]
            | Annotated[Matcher, Tag("matcher")]
            | Annotated[dict[str, "Template"], Tag("object")]
            | Annotated[list["Template"], Tag("array")],
            Discriminator(_form),
        ],
    )
"""A JSON value in which an object with `kind` is a matcher, at any depth."""


class Shape(Critic):
    """An object or array that may hold matchers; each place counts the same."""

    kind: Literal["shape"] = "shape"
    value: Template
    """The expected object or array."""

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match | Uncompared:  # noqa: ARG002
        """The mean over all places of both sides; a place that only one side has is 0, unless its matcher is optional."""
        return combined(list(_places(self.value, actual, "")))


def require_values(value: Template, place: str) -> None:
    """Raises ValueError for a matcher of an expectation that has nothing to compare with."""
    if isinstance(value, Critic) and value.wants_expected:
        raise ValueError(f"{place}: the {kind_of(type(value))} matcher needs a value here")
    if isinstance(value, Mapping):
        for key, item in value.items():
            require_values(item, f"{place}/{key}")
    if isinstance(value, list):
        for n, item in enumerate(value):
            require_values(item, f"{place}/{n}")


def matcher_of(wanted: Template) -> Critic | Given:
    """The matcher of a template: itself, or a shape of it."""
    return wanted if isinstance(wanted, Critic | Given) else Shape.model_construct(kind="shape", value=wanted)


Place = tuple[str, Match | Uncompared]


def has_matcher(value: Template) -> bool:
    """Whether a matcher stands anywhere inside."""
    if isinstance(value, Critic | Given):
        return True
    if isinstance(value, Mapping):
        return any(map(has_matcher, value.values()))
    return isinstance(value, list) and any(map(has_matcher, value))


def cost_of(value: object) -> int:
    """The cost of the dearest matcher inside; 1 where there is none.

    >>> from service.core.critics import Prefix, Similar
    >>> cost_of({"a": [Prefix(value="x"), Similar(value="y")]}), cost_of(Prefix(value="x"))
    (10, 1)
    """
    most, waiting = 1, [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, Critic):
            most = max(most, here.cost)
            waiting += [getattr(here, name) for name in type(here).model_fields]
        elif isinstance(here, Given):
            waiting.append(here.critic)
        elif isinstance(here, Mapping):
            waiting += cast("Mapping[str, object]", here).values()
        elif isinstance(here, list | tuple):
            waiting += cast("list[object]", here)
    return most


def combined(places: list[Place]) -> Match | Uncompared:
    """One result for many places: their mean; passed if all passed; not compared if one could not be.

    Where all but one match and that one is for a judge, so is the whole.
    """
    unknown = [match for _, match in places if isinstance(match, Uncompared)]
    if unknown and (any(not isinstance(one, Unjudged) for one in unknown) or _all_pass(places)):
        return unknown[0] if len(unknown) == 1 else Uncompared("several values for a judge in one", "not_asked")
    matches = [(path, match) for path, match in places if isinstance(match, Match)]
    notes = [f"{path or 'value'}: {match.note}" for path, match in matches if not match.passed]
    value = fsum(match.value for _, match in matches) / len(matches) if matches else 1.0
    return Match(value, not notes, "; ".join(notes[:5]))


def _all_pass(places: list[Place]) -> bool:
    return all(match.passed for _, match in places if isinstance(match, Match))


def _places(template: Template, actual: JsonValue, path: str) -> Iterator[Place]:
    if isinstance(template, Critic | Given):
        yield path, template.match(actual)
    elif isinstance(template, Mapping) and isinstance(actual, dict) and has_matcher(template):
        yield from _object_places(template, actual, path)
    elif isinstance(template, list) and isinstance(actual, list) and has_matcher(template):
        yield from _array_places(cast("list[Template]", template), actual, path)
    else:
        yield path, _literal(template, actual)


def _object_places(template: Mapping[str, Template], actual: dict[str, JsonValue], path: str) -> Iterator[Place]:
    for key in sorted(template.keys() | actual.keys()):
        here = f"{path}/{key}"
        if key not in template:
            yield here, Match(0.0, False, "not expected")
        elif key in actual:
            yield from _places(template[key], actual[key], here)
        elif not is_optional(template[key]):
            yield here, Match(0.0, False, "missing")


def _array_places(template: list[Template], actual: list[JsonValue], path: str) -> Iterator[Place]:
    for n in range(max(len(template), len(actual))):
        here = f"{path}/{n}"
        if n >= len(template):
            yield here, Match(0.0, False, "not expected")
        elif n < len(actual):
            yield from _places(template[n], actual[n], here)
        elif not is_optional(template[n]):
            yield here, Match(0.0, False, "missing")


def is_optional(template: Template) -> bool:
    """A matcher that says an absent value is fine."""
    return isinstance(template, Critic | Given) and template.optional


def _literal(template: Template, actual: JsonValue) -> Match:
    if equal(template, actual):  # pyright: ignore[reportArgumentType] (no matcher is inside)
        return Match(1.0, True)
    return Match(0.0, False, f"expected {shown(template)}, got {shown(actual)}")  # pyright: ignore[reportArgumentType]
