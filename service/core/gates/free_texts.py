"""Which expected arguments are free texts, that people would take as the same in other words' clothes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from service.core.critics import AnyOf, Critic, Exact
from service.core.evidence.provenance.parameters import find_parameter
from service.core.evidence.reading.words import split_words
from service.core.expectations.templates import Shape, Template
from service.core.trace import ToolDef

_CLOSED = frozenset({"enum", "const", "pattern", "format", "$ref", "anyOf", "oneOf", "allOf"})
"""Words of a schema that says, or may say, how each character has to be."""
_IDENTIFIERS = split_words(
    "id ids uuid guid identifier code codes key keys token password secret hash email url uri link path file filename "
    "directory folder username login sku serial symbol ticker iban isbn currency locale sql regex pattern command script "
    "table column field"
)
"""Words of the names of arguments that are no free text."""


class TextSoftener:
    """Puts a critic of texts in the place of free texts among the arguments of one tool.

    `listed`: matchers that compare exactly stand for plain values, as a foreign gold lists them.
    """

    def __init__(self, critic: Critic, tool: ToolDef | None, *, listed: bool) -> None:
        self._critic = critic
        self._tool = tool
        self._listed = listed

    def soften(self, wanted: Template, keys: tuple[str, ...]) -> Template:
        """The same with the critic wherever a free text stands; `keys` are the names that lead to it."""
        if isinstance(wanted, str):
            return self._build(wanted, optional=False) if self._is_free(keys) else wanted
        if isinstance(wanted, Critic):
            return self._soften_matcher(wanted, keys) if self._listed else wanted
        if isinstance(wanted, Mapping):
            return {key: self.soften(item, (*keys, key)) for key, item in wanted.items()}
        return [self.soften(item, keys) for item in wanted] if isinstance(wanted, list) else wanted

    def _soften_matcher(self, matcher: Critic, keys: tuple[str, ...]) -> Critic:
        if isinstance(matcher, AnyOf):
            return matcher.model_copy(update={"of": tuple([self._soften_matcher(one, keys) for one in matcher.of])})
        if isinstance(matcher, Shape):
            return matcher.model_copy(update={"value": self.soften(matcher.value, keys)})
        if not isinstance(matcher, Exact) or matcher.cast:
            return matcher
        if isinstance(matcher.value, str):
            return self._build(matcher.value, optional=matcher.optional) if self._is_free(keys) else matcher
        softer = self.soften(cast("Template", matcher.value), keys)
        return Shape.model_construct(kind="shape", value=softer, optional=matcher.optional)

    def _build(self, text: JsonValue, *, optional: bool) -> Critic:
        return self._critic.model_copy(update={"value": text, "optional": optional})

    def _is_free(self, keys: tuple[str, ...]) -> bool:
        """Whether the schema declares a text there, and neither it nor the name says how it has to be spelt."""
        parameter = find_parameter(self._tool, keys)
        if not parameter.schema or _CLOSED & parameter.schema.keys() or _IDENTIFIERS & set(parameter.words):
            return False
        return parameter.schema.get("type") in (None, "string")
