"""Find the expected arguments that are free texts, where other wording may mean the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from service.core.critics import AnyOf, Critic, Exact
from service.core.expectations.templates import BoundMatcher, Shape, Template
from service.core.grounding.arguments import find_parameter
from service.core.trace import ToolDef

_CLOSED = frozenset({"enum", "const", "pattern", "format", "$ref", "anyOf", "oneOf", "allOf"})
"""Keywords of a schema that prescribes, or may prescribe, the exact spelling."""
_IDENTIFIERS = frozenset(
    """
    id ids uuid guid identifier code codes key keys token password secret hash email url uri link path file filename
    directory folder username login sku serial symbol ticker iban isbn currency locale sql regex pattern command
    script table column field
    """.split()  # noqa: SIM905 (a list has a line for each)
)
"""Words in the names of arguments that are not free texts."""


class TextSoftener:
    """Replaces the free texts among the arguments of one tool by a critic that compares texts.

    `from_gold` says that the expectation comes from a foreign gold, whose exact matchers stand for plain values.
    """

    def __init__(self, critic: Critic, tool: ToolDef | None, *, from_gold: bool) -> None:
        self._critic = critic
        self._tool = tool
        self._from_gold = from_gold

    def soften(self, template: Template, keys: tuple[str, ...]) -> Template:
        """Return the template with the critic in place of every free text; `keys` are the names that lead to the template."""
        if isinstance(template, str):
            return BoundMatcher(self._critic, template) if self._is_free(keys) else template
        if isinstance(template, Critic):
            return self._soften_matcher(template, keys) if self._from_gold else template
        if isinstance(template, Mapping):
            return {key: self.soften(item, (*keys, key)) for key, item in template.items()}
        return [self.soften(item, keys) for item in template] if isinstance(template, list) else template

    def _soften_matcher(self, matcher: Critic, keys: tuple[str, ...]) -> Critic:
        if isinstance(matcher, AnyOf):
            return matcher.model_copy(update={"of": tuple([self._soften_matcher(one, keys) for one in matcher.of])})
        if isinstance(matcher, Shape):
            return matcher.model_copy(update={"value": self.soften(matcher.value, keys)})
        if not isinstance(matcher, Exact) or matcher.cast:
            return matcher
        if isinstance(matcher.value, str):
            changes = {"value": matcher.value, "optional": matcher.optional}
            return self._critic.model_copy(update=changes) if self._is_free(keys) else matcher
        softer = self.soften(cast("Template", matcher.value), keys)
        return Shape.model_construct(kind="shape", value=softer, optional=matcher.optional)

    def _is_free(self, keys: tuple[str, ...]) -> bool:
        """Whether the schema declares a text there, and neither it nor the name prescribes the spelling."""
        parameter = find_parameter(self._tool, keys)
        if not parameter.schema or _CLOSED & parameter.schema.keys() or _IDENTIFIERS & set(parameter.words):
            return False
        return parameter.schema.get("type") in (None, "string")
