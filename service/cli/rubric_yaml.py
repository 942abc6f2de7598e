"""Write rubrics as YAML, and find the line of a place in a YAML file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import yaml

from service.core.json.pointers import split_pointer
from service.core.models.lazy import lazy
from service.core.rubric import Rubric


class _Plain(yaml.SafeDumper):
    """Writes YAML without anchors, which rubric files may not contain."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


def render_yaml(rubric: Rubric) -> str:
    """Render a rubric as YAML."""
    return yaml.dump(rubric.model_dump(mode="json"), Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110)


Members = dict[str, tuple[yaml.Node, int]]
"""The child nodes of a node by key or index, each with its line."""


class YamlLines:
    """Line numbers in a YAML document, which is parsed once, on the first question."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._members: dict[int, Members] = {}

    def find_line(self, path: str) -> int | None:
        """Return the line (from 1) of a JSON pointer, or of the deepest part of it that exists.

        >>> YamlLines("id: a\\ncriteria:\\n  - {id: b}\\n").find_line("/criteria/0/stage")
        3
        """
        try:
            node, parts = self._root, split_pointer(path)
        except (yaml.YAMLError, ValueError):
            return None
        line: int | None = None
        for part in parts:
            node, line = self._list_members(node).get(part, (None, line))
        return line

    @lazy
    def _root(self) -> yaml.Node | None:
        return cast("yaml.Node | None", yaml.compose(self._text, Loader=yaml.SafeLoader))  # pyright: ignore[reportUnknownMemberType]

    def _list_members(self, node: yaml.Node | None) -> Members:
        if id(node) not in self._members:
            self._members[id(node)] = dict(reversed(list(_members(node))))  # the first of duplicate keys wins
        return self._members[id(node)]


def _members(node: yaml.Node | None) -> Iterator[tuple[str, tuple[yaml.Node, int]]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key.value, (value, key.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        for n, item in enumerate(node.value):
            yield str(n), (item, item.start_mark.line + 1)
