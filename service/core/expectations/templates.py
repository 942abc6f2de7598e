"""Templates: expected values that may hold matchers, as in `{"price": {"kind": "range", "max": 10}, "size": "L"}`.

Any value in a template may be a matcher; the others must be equal, by typed equality. The score of an object or array is the
mean over all places that either side has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from pydantic import Discriminator, JsonValue, Tag
from typing_extensions import TypeAliasType

from service.core.critics import Critic, Match, OpenComparison, WordsComparison
from service.core.json.values import SCALARS, equals, format_value
from service.core.models.kinds import TaggedUnion, find_kind

Matcher = Annotated[Critic, TaggedUnion()]


def _find_form(value: object) -> str:
    if type(value) in SCALARS:
        return "literal"
    if isinstance(value, dict):
        return "matcher" if "kind" in value else "object"
    return "array" if isinstance(value, list) else "matcher" if isinstance(value, Critic) else "literal"


class _Scalar:
    """Any scalar, unchecked: the parser has already refused anything but JSON."""

    @staticmethod
    def __get_pydantic_json_schema__(_schema: Any, _handler: Any) -> dict[str, Any]:
        return {"type": ["string", "number", "boolean", "null"]}


@dataclass(frozen=True, slots=True)
class BoundMatcher:
    """A rubric's matcher bound to the value that an expectation gives for its place."""

    critic: Critic
    expected: JsonValue

    @property
    def optional(self) -> bool:
        """Whether the value may be absent."""
        return self.critic.optional

    def match(self, actual: JsonValue) -> Match | OpenComparison:
        """Compare with the bound value."""
        return self.critic.match(actual, self.expected)


if TYPE_CHECKING:
    Template = JsonValue | Critic | BoundMatcher | Mapping[str, "Template"] | list["Template"]
else:
    Template = TypeAliasType(
        "Template",
        Annotated[
            Annotated[Any, _Scalar(), Tag("literal")]
            | Annotated[Matcher, Tag("matcher")]
            | Annotated[dict[str, "Template"], Tag("object")]
            | Annotated[list["Template"], Tag("array")],
            Discriminator(_find_form),
        ],
    )
"""A JSON value in which an object with `kind`, at any depth, is a matcher."""


class Shape(Critic):
    """An object or array that may hold matchers. Each place counts the same."""

    kind: Literal["shape"] = "shape"
    value: Template
    """The expected object or array."""

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match | OpenComparison:  # noqa: ARG002
        """Return the mean over all places of both sides. A place on only one side counts 0, unless its matcher is optional."""
        return _match_shape(self.value, actual)


def match_template(template: Template, actual: JsonValue) -> Match | OpenComparison:
    """Compare a value with a template, which is a matcher itself or may hold some."""
    return template.match(actual) if isinstance(template, Critic | BoundMatcher) else _match_shape(template, actual)


def _match_shape(template: Template, actual: JsonValue) -> Match | OpenComparison:
    return combine_places(list(_iter_places(template, actual, "")))


def require_values(value: Template, place: str) -> None:
    """Raise ValueError if a matcher in an expectation has nothing to compare with."""
    if type(value) in SCALARS:
        return
    if isinstance(value, Critic) and value.wants_expected:
        raise ValueError(f"{place}: the {find_kind(type(value))} matcher needs a value here")
    if isinstance(value, Mapping):
        for key, item in value.items():
            require_values(item, f"{place}/{key}")
    if isinstance(value, list):
        for n, item in enumerate(value):
            require_values(item, f"{place}/{n}")


PlaceMatch = tuple[str, Match | OpenComparison]


def has_matcher(value: Template) -> bool:
    """Whether there is a matcher anywhere inside."""
    if isinstance(value, dict):
        return any([has_matcher(one) for one in value.values() if type(one) not in SCALARS])  # noqa: C419 (quicker)
    if isinstance(value, list):
        return any([has_matcher(one) for one in value if type(one) not in SCALARS])  # noqa: C419
    return isinstance(value, Critic | BoundMatcher)


def find_cost(value: object) -> int:
    """Return the cost of the most expensive matcher inside; 1 if there is none.

    >>> from service.core.critics import Prefix, Similar
    >>> find_cost({"a": [Prefix(value="x"), Similar(value="y")]}), find_cost(Prefix(value="x"))
    (10, 1)
    """
    most, waiting = 1, [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, Critic):
            most = max(most, here.cost)
            waiting += [getattr(here, name) for name in type(here).model_fields]
        elif isinstance(here, BoundMatcher):
            waiting.append(here.critic)
        elif isinstance(here, Mapping):
            waiting += cast("Mapping[str, object]", here).values()
        elif isinstance(here, list | tuple):
            waiting += cast("list[object]", here)
    return most


def combine_places(places: list[PlaceMatch]) -> Match | OpenComparison:
    """Combine many places: their mean, passed if all passed, and not compared if one could not be compared.

    If all others match and one is for a judge, the whole is for a judge.
    """
    if len(places) == 1 and isinstance(only := places[0][1], Match):
        return _build_match(only.value, only.passed, places)
    unknown = [match for _, match in places if isinstance(match, OpenComparison)]
    if unknown and (any(not isinstance(one, WordsComparison) for one in unknown) or _do_all_pass(places)):
        return unknown[0] if len(unknown) == 1 else OpenComparison("several values for a judge in one", "not_asked")
    values = [match.value for _, match in places if isinstance(match, Match)]
    value = fsum(values) / len(values) if values else 1.0
    return _build_match(value, _do_all_pass(places), places)


def _build_match(value: float, passed: bool, places: list[PlaceMatch]) -> Match:  # noqa: FBT001
    return Match(value, passed, _describe_places(places) if passed else lambda: _describe_places(places))


def _describe_places(places: list[PlaceMatch]) -> str:
    """Describe the first few places that fail, or if none does, the first few with a note."""
    matches = [(path, match) for path, match in places if isinstance(match, Match)]
    notable = [one for one in matches if not one[1].passed] or [one for one in matches if one[1].note]
    return "; ".join([f"{path or 'value'}: {match.note}" for path, match in notable[:5]])


def _do_all_pass(places: list[PlaceMatch]) -> bool:
    return all(match.passed for _, match in places if isinstance(match, Match))


def _iter_places(template: Template, actual: JsonValue, path: str) -> Iterator[PlaceMatch]:
    if isinstance(template, Critic | BoundMatcher):
        yield path, template.match(actual)
    elif isinstance(template, Mapping) and isinstance(actual, dict) and has_matcher(template):
        yield from _iter_inside(template, actual, path)
    elif isinstance(template, list) and isinstance(actual, list) and has_matcher(template):
        yield from _iter_inside(dict(enumerate(cast("list[Template]", template))), dict(enumerate(actual)), path)
    elif equals(template, actual):  # pyright: ignore[reportArgumentType] (no matcher is inside)
        yield path, Match(1.0, True)
    else:
        yield path, Match(0.0, False, lambda: f"expected {format_value(template)}, got {format_value(actual)}")


def _iter_inside(template: Mapping[Any, Template], actual: Mapping[Any, JsonValue], path: str) -> Iterator[PlaceMatch]:
    """Yield the places that either side has, by name or number."""
    for key in sorted(template.keys() | actual.keys()):
        here = f"{path}/{key}"
        if key not in template:
            yield here, Match(0.0, False, "not expected")
        elif key in actual:
            yield from _iter_places(template[key], actual[key], here)
        elif not is_optional(template[key]):
            yield here, Match(0.0, False, "missing")


def is_optional(template: Template) -> bool:
    """Whether the template is a matcher that allows an absent value."""
    return isinstance(template, Critic | BoundMatcher) and template.optional
