"""Where a schema's references lead, and what following them costs.

References are followed inside the document only. A few kilobytes of schema can ask for more work than any machine has:
definitions that name the next one twice double the work at each level, and jsonschema-rs then runs for minutes, or,
when it lists errors, until the stack overflows. So the work is counted before any is done, in walks: the pairs of a
schema object and a value that an evaluation without short cuts would visit, each as often as it would be visited.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from math import inf
from urllib.parse import unquote, urldefrag, urljoin

from pydantic import JsonValue

from service.core.schemas.dialects import Dialect, named, rewrite
from service.core.schemas.tree import Node, SchemaProblem, applied, in_place, is_node, subschemas, walk

_MAX_PAIRS = 50_000
_MAX_LEVELS = 400  # of references and keywords together; each is a stack frame here and several in jsonschema-rs

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


@dataclass(frozen=True, slots=True)
class Place:
    """A schema object, its pointer in the document and the base URI its references are read against."""

    node: Node
    at: str
    base: str


class References:
    """The reference graph of one document. Building it rewrites the document to its draft and resolves every reference.

    Raises SchemaProblem for a reference that leads outside the document or nowhere, and for one that leads back to
    where it stands without going into the value, which no value can satisfy or fail.
    """

    def __init__(self, root: Node, *, dialect: Dialect) -> None:
        self._dialect: Dialect = dialect
        self._places: dict[int, Place] = {}
        self._resources: dict[str, Node] = {}
        self._anchors: dict[tuple[str, str], Node] = {}
        self._dynamic: dict[str, list[Node]] = {}
        self._targets: dict[int, list[Node]] = {}
        self._root = root
        self._resources[""] = root
        self._adopt(root, at="", base="")
        self._resolve_all()
        self._refuse_loops()
        self.branching = self._expanded() > 2_000

    def targets(self, node: Node) -> list[Node]:
        """The schema objects that the references in `node` may lead to."""
        return self._targets.get(id(node), [])

    def pairs(self, value: JsonValue) -> float:
        """How many pairs of schema object and part of `value` there are to visit, infinity if beyond counting."""
        return _Count(self).of(self._root, value, 0)

    def __iter__(self) -> Iterator[Place]:
        return iter(self._places.values())

    def _adopt(self, node: Node, *, at: str, base: str) -> None:
        """Take in `node` and all below it: rewrite it, then note the names it can be referred to by."""
        if id(node) in self._places:
            return
        rewrite(node, at=at, dialect=self._dialect)
        base = self._identify(node, at=at, base=base)
        self._places[id(node)] = Place(node, at, base)
        for suffix, child in subschemas(node):
            self._adopt(child, at=at + suffix, base=base)

    def _identify(self, node: Node, *, at: str, base: str) -> str:
        given = node.get("id" if self._dialect == "draft4" else "$id")
        if isinstance(given, str):
            uri, anchor = urldefrag(_join(base, given, at))
            if anchor:
                self._anchors[uri, anchor] = node
            else:
                base = uri
                self._resources[uri] = node
        for key in ("$anchor", "$dynamicAnchor"):
            name = node.get(key)
            if isinstance(name, str):
                self._anchors[base, name] = node
        if isinstance(node.get("$dynamicAnchor"), str):
            self._dynamic.setdefault(str(node["$dynamicAnchor"]), []).append(node)
        if node.get("$recursiveAnchor") is True:
            self._dynamic.setdefault("", []).append(node)
        return base

    def _resolve_all(self) -> None:
        waiting = list(self._places.values())
        while waiting:
            place = waiting.pop()
            known = len(self._places)
            self._targets[id(place.node)] = list(self._resolved(place))
            # A pointer may lead to a place that is no schema by its keyword, such as "#/components/schemas/X".
            waiting.extend(list(self._places.values())[known:])

    def _resolved(self, place: Place) -> Iterator[Node]:
        for key in _REFERENCES:
            given = place.node.get(key)
            if not isinstance(given, str):
                continue
            found = self._target(place, given, f"{place.at}/{key}")
            if is_node(found):
                yield found
            if key != "$ref":
                yield from self._dynamic.get(given.rpartition("#")[2], [])

    def _target(self, place: Place, given: str, at: str) -> JsonValue:
        uri, fragment = urldefrag(_join(place.base, given, at))
        fragment = unquote(fragment)
        resource = self._resources.get(uri)
        if resource is None:
            return self._outside(uri, given, at)
        if not fragment:
            return resource
        if not fragment.startswith("/"):
            if (uri, fragment) not in self._anchors:
                raise SchemaProblem(f"{given[:100]!r} leads to no anchor of the schema", at)
            return self._anchors[uri, fragment]
        return self._pointed(resource, fragment, given=given, at=at)

    def _outside(self, uri: str, given: str, at: str) -> JsonValue:
        # The metaschemas are built in. With dynamic anchors they would lead back here, which the count does not follow.
        if named(uri) and not self._dynamic:
            return True
        raise SchemaProblem(f"{given[:100]!r} leads outside the schema; nothing is ever fetched", at)

    def _pointed(self, resource: Node, fragment: str, *, given: str, at: str) -> JsonValue:
        found: JsonValue = resource
        path, base = self._place(resource)
        for token in fragment[1:].split("/"):
            name = token.replace("~1", "/").replace("~0", "~")
            found = _step(found, name)
            path = f"{path}/{token}"
            if found is None:
                raise SchemaProblem(f"{given[:100]!r} leads nowhere", at)
            base = self._places[id(found)].base if id(found) in self._places else base
        if is_node(found):
            self._adopt(found, at=path, base=base)
        return found

    def _place(self, node: Node) -> tuple[str, str]:
        place = self._places[id(node)]
        return place.at, place.base

    def _refuse_loops(self) -> None:
        same_value = {
            id(p.node): [id(each) for each in (*in_place(p.node), *self.targets(p.node))] for p in self
        }
        try:
            TopologicalSorter(same_value).prepare()
        except CycleError as error:
            at = min(self._places[key].at for key in error.args[1])
            raise SchemaProblem("its references lead back to it without going into the value", at) from None

    def _expanded(self) -> float:
        """How many schema objects there are with all references written out; infinity if they recur."""
        inner = {
            id(p.node): [id(each) for each in (*(child for _, child in subschemas(p.node)), *self.targets(p.node))]
            for p in self
        }
        sizes: dict[int, float] = {}
        try:
            for key in TopologicalSorter(inner).static_order():
                sizes[key] = 1 + sum(sizes[each] for each in inner[key])
        except CycleError:
            return inf
        return sizes[id(self._root)]


class _Count:
    """Counts pairs, each distinct one once: the repeats are multiplied, not made."""

    def __init__(self, references: References) -> None:
        self._references = references
        self._known: dict[tuple[int, int], float] = {}

    def of(self, node: Node, value: JsonValue, level: int) -> float:
        key = id(node), id(value)
        if key in self._known:
            return self._known[key]
        if level > _MAX_LEVELS or len(self._known) > _MAX_PAIRS:
            return inf
        total = 1.0
        for each in (*in_place(node), *self._references.targets(node)):
            total += self.of(each, value, level + 1)
        for each, part in applied(node, value):
            total += self.of(each, part, level + 1)
        self._known[key] = total
        return total


def _join(base: str, given: str, at: str) -> str:
    try:
        # urljoin drops the base of a URN, which has no hierarchy; a bare fragment needs none.
        return base + given if given.startswith("#") else urljoin(base, given)
    except ValueError:
        raise SchemaProblem(f"{given[:100]!r} is not a URI reference", at) from None


def _step(value: JsonValue, name: str) -> JsonValue:
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, list) and name.isascii() and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    return None
