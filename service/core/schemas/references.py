"""Resolve a schema's references, which are followed inside the document only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from urllib.parse import unquote, urldefrag, urljoin

from pydantic import JsonValue

from service.core.json.pointers import split_pointer
from service.core.schemas.dialects import Dialect, find_dialect, rewrite
from service.core.schemas.tree import Node, SchemaProblem, is_node, iter_in_place, iter_subschemas

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


@dataclass(frozen=True, slots=True)
class SchemaPlace:
    """A schema object, its pointer in the document, and the base URI of its references."""

    node: Node
    at: str
    base: str


class References:
    """The reference graph of one document, which the caller owns: building it rewrites the document to its draft.

    Raises SchemaProblem for a reference that leads outside the document or nowhere, and for one that leads back to itself
    without going into the value: no value can satisfy or fail it.
    """

    def __init__(self, root: Node, *, dialect: Dialect) -> None:
        self.root = root
        self._dialect: Dialect = dialect
        self._places: dict[int, SchemaPlace] = {}
        self._resources: dict[str, Node] = {"": root}
        self._anchors: dict[tuple[str, str], Node] = {}
        self._dynamic: dict[str, list[Node]] = {}
        self._targets: dict[int, tuple[Node, ...]] = {}
        self._adopt(root, at="", base="")
        self._resolve()
        self._refuse_loops()

    def find_targets(self, node: Node) -> tuple[Node, ...]:
        """Return the schema objects that the references in `node` may lead to; all of them if the value decides."""
        return self._targets.get(id(node), ())

    def __iter__(self) -> Iterator[Node]:
        return (place.node for place in self._places.values())

    def _adopt(self, node: Node, *, at: str, base: str) -> None:
        """Add `node` and everything below it: rewrite it, then record the names by which references can reach it."""
        if id(node) in self._places:
            return
        rewrite(node, at=at, dialect=self._dialect)
        base = self._find_base(node, at=at, base=base)
        self._places[id(node)] = SchemaPlace(node, at, base)
        for name in _list_strings(node, "$anchor", "$dynamicAnchor"):
            self._anchors[base, name] = node
        for name in _list_strings(node, "$dynamicAnchor"):
            self._dynamic.setdefault(name, []).append(node)
        if node.get("$recursiveAnchor") is True:
            self._dynamic.setdefault("", []).append(node)
        for suffix, child in iter_subschemas(node):
            self._adopt(child, at=at + suffix, base=base)

    def _find_base(self, node: Node, *, at: str, base: str) -> str:
        """Return the base URI inside `node`, which its own identifier may change."""
        for identifier in _list_strings(node, "id" if self._dialect == "draft4" else "$id"):
            uri, anchor = urldefrag(_join_uri(base, identifier, at))
            if anchor:  # until Draft 7 an identifier could also be a mere anchor
                self._anchors[uri, anchor] = node
                continue
            base = uri
            self._resources[uri] = node
        return base

    def _resolve(self) -> None:
        done = 0
        # A pointer may lead to a place that no keyword marks as a schema, such as "#/components/schemas/X". Adopting it makes
        # the list of places grow.
        while done < len(self._places):
            for place in list(self._places.values())[done:]:
                self._targets[id(place.node)] = tuple(self._find_nodes(place))
                done += 1

    def _find_nodes(self, place: SchemaPlace) -> Iterator[Node]:
        for key in _REFERENCES:
            for reference in _list_strings(place.node, key):
                target = self._find_target(place, reference, f"{place.at}/{key}")
                if is_node(target):
                    yield target
                if key != "$ref":
                    yield from self._dynamic.get(reference.rpartition("#")[2], ())

    def _find_target(self, place: SchemaPlace, reference: str, at: str) -> JsonValue:
        uri, fragment = urldefrag(_join_uri(place.base, reference, at))
        fragment = unquote(fragment)
        if uri not in self._resources:
            # The metaschemas are built in. Dynamic anchors would let them lead back here, and the cost would not see it.
            if find_dialect(uri) and not self._dynamic:
                return True
            raise SchemaProblem(f"{reference[:100]!r} leads outside the schema; nothing is ever fetched", at)
        if not fragment:
            return self._resources[uri]
        is_pointer = fragment.startswith("/")
        target = self._follow_pointer(uri, fragment) if is_pointer else self._anchors.get((uri, fragment))
        if target is None:
            raise SchemaProblem(f"{reference[:100]!r} leads nowhere", at)
        return target

    def _follow_pointer(self, uri: str, fragment: str) -> JsonValue:
        target: JsonValue = self._resources[uri]
        place = self._places[id(target)]
        base = place.base
        for part in split_pointer(fragment):
            target = _step_into(target, part)
            inner = self._places.get(id(target))
            base = inner.base if inner else base
        if is_node(target):
            self._adopt(target, at=place.at + fragment, base=base)
        return target

    def _refuse_loops(self) -> None:
        graph = {id(node): [id(each) for each in (*iter_in_place(node), *self.find_targets(node))] for node in self}
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            at = min(self._places[key].at for key in error.args[1])
            raise SchemaProblem("its references lead back to it without going into the value", at) from None


def _list_strings(node: Node, *keys: str) -> Iterable[str]:
    return [value for value in map(node.get, keys) if isinstance(value, str)]


def _join_uri(base: str, reference: str, at: str) -> str:
    try:
        # A bare fragment belongs to the base; urljoin would lose a base without hierarchy, such as a URN.
        return base + reference if reference.startswith("#") else urljoin(base, reference)
    except ValueError:
        raise SchemaProblem(f"{reference[:100]!r} is not a URI reference", at) from None


def _step_into(value: JsonValue, name: str) -> JsonValue:
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, list) and name.isascii() and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    return None
