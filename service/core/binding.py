"""An expected argument bound to the critic that compares it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import JsonValue

from service.core.critics import MATCHED, Critic, Match, Uncompared
from service.core.pointers import escaped
from service.core.shapes import Given, Shape, Template, has_matcher
from service.core.values import equal, shown


class Bound(NamedTuple):
    """One expected argument: `critic` None compares `expected` exactly, by typed equality."""

    name: str
    expected: JsonValue
    critic: Critic | None
    weight: float = 1.0

    @property
    def optional(self) -> bool:
        """Whether the argument may be absent."""
        return self.critic is not None and self.critic.optional

    def match(self, actual: JsonValue, *, explain: bool = True) -> Match | Uncompared:
        """The comparison with what was given. Saying why costs more than comparing; `explain` False leaves it out."""
        if self.critic is not None:
            return self.critic.match(actual, self.expected)
        if equal(self.expected, actual):
            return MATCHED
        if not explain:
            return UNEQUAL
        return Match(0.0, False, f"expected {shown(self.expected)}, got {shown(actual)}")


UNEQUAL = Match(0.0, False)


def bind(name: str, value: Template, *, critics: Mapping[str, Critic], weight: float = 1.0) -> Bound:
    """The expected `value` of the argument `name` with its critic: its own, else the rubric's for that path, else none."""
    if isinstance(value, str | int | float) and not critics:
        return Bound(name, value, None, weight)
    template = _with_critics(value, f"/{escaped(name)}", critics) if critics else value
    if isinstance(template, Given):
        return Bound(name, template.expected, template.critic, weight)
    if isinstance(template, Critic):
        return Bound(name, None, template, weight)
    if isinstance(template, Mapping | list) and has_matcher(template):
        return Bound(name, None, Shape.model_construct(kind="shape", value=template), weight)
    return Bound(name, template, None, weight)  # pyright: ignore[reportArgumentType] (no matcher is inside)


def _with_critics(value: Template, path: str, critics: Mapping[str, Critic]) -> Template:
    """The template with the rubric's critics put where it has bare values."""
    if isinstance(value, Critic):
        return value
    critic = critics.get(path) or (critics.get(path[1:]) if path.count("/") == 1 else None)
    if critic is not None:
        return Given(critic, value)  # pyright: ignore[reportArgumentType] (bare: the writer gave no matcher here)
    if isinstance(value, Mapping):
        return {key: _with_critics(item, f"{path}/{escaped(key)}", critics) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_critics(item, f"{path}/{n}", critics) for n, item in enumerate(value)]
    return value
