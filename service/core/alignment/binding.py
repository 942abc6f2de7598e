"""An expected argument bound to the critic that compares it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from service.core.critics import MATCHED, Critic, Match, OpenComparison
from service.core.expectations.templates import BoundMatcher, Shape, Template, has_matcher
from service.core.json.pointers import escape_token
from service.core.json.values import SCALARS, equals, format_value
from service.core.models.light import light


@light
class BoundArgument:
    """One expected argument: `critic` None compares `expected` exactly, by typed equality."""

    name: str
    expected: JsonValue
    critic: Critic | None
    weight: float = 1.0

    @property
    def optional(self) -> bool:
        """Whether the argument may be absent."""
        return self.critic is not None and self.critic.optional

    def match(self, actual: JsonValue) -> Match | OpenComparison:
        """Compare the argument with the value that the call gave."""
        if self.critic is not None:
            return self.critic.match(actual, self.expected)
        if equals(self.expected, actual):
            return MATCHED
        expected = self.expected
        return Match(0.0, False, lambda: f"expected {format_value(expected)}, got {format_value(actual)}")


def bind(name: str, value: Template, *, critics: Mapping[str, Critic], weight: float = 1.0) -> BoundArgument:
    """Bind the expected `value` of the argument `name` to its critic: its own, else the rubric's for that path, else none."""
    if type(value) in SCALARS and not critics:
        return BoundArgument(name, value, None, weight)  # pyright: ignore[reportArgumentType] (a scalar)
    template = _put_critics(value, f"/{escape_token(name)}", critics) if critics else value
    if isinstance(template, BoundMatcher):
        return BoundArgument(name, template.expected, template.critic, weight)
    if isinstance(template, Critic):
        return BoundArgument(name, None, template, weight)
    if isinstance(template, Mapping | list) and has_matcher(template):
        return BoundArgument(name, None, Shape.model_construct(kind="shape", value=template), weight)
    return BoundArgument(name, template, None, weight)  # pyright: ignore[reportArgumentType] (no matcher is inside)


def _put_critics(value: Template, path: str, critics: Mapping[str, Critic]) -> Template:
    """Return the template with the rubric's critics in place of the bare values that they apply to."""
    if isinstance(value, Critic):
        return value
    critic = critics.get(path) or (critics.get(path[1:]) if path.count("/") == 1 else None)
    if critic is not None:
        return BoundMatcher(critic, value)  # pyright: ignore[reportArgumentType] (a bare value, with no matcher inside)
    if isinstance(value, Mapping):
        return {key: _put_critics(item, f"{path}/{escape_token(key)}", critics) for key, item in value.items()}
    if isinstance(value, list):
        return [_put_critics(item, f"{path}/{n}", critics) for n, item in enumerate(value)]
    return value
