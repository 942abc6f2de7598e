"""Bring tool schemas to one form: recognise their draft, and rewrite OpenAPI 3.0 and the type names of providers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

import jsonschema_rs as rs
from pydantic import JsonValue

from service.core.schemas.tree import Node, SchemaProblem, walk_schema

Dialect = Literal["auto", "draft4", "draft6", "draft7", "draft2019-09", "draft2020-12", "openapi3.0"]
"""auto: what `$schema` says; without it, OpenAPI 3.0 if the schema uses `nullable` or boolean bounds, Draft 2019-09 if `items`
is a list (later drafts do not have this form), else Draft 2020-12."""

DRAFTS: dict[Dialect, type[rs.Validator]] = {
    "draft4": rs.Draft4Validator,
    "draft6": rs.Draft6Validator,
    "draft7": rs.Draft7Validator,
    "draft2019-09": rs.Draft201909Validator,
    "draft2020-12": rs.Draft202012Validator,
    "openapi3.0": rs.Draft202012Validator,
}
REF_ALONE_DRAFTS: frozenset[Dialect] = frozenset({"draft4", "draft6", "draft7"})
"""Drafts that ignore everything beside a `$ref`."""

METASCHEMAS: dict[str, Dialect] = {
    "json-schema.org/draft-04/schema": "draft4",
    "json-schema.org/draft-06/schema": "draft6",
    "json-schema.org/draft-07/schema": "draft7",
    "json-schema.org/draft/2019-09/schema": "draft2019-09",
    "json-schema.org/draft/2020-12/schema": "draft2020-12",
}

_TYPES = {
    "string": "string str char text varchar",
    "integer": "integer int long short byte bigint int32 int64",
    "number": "number float double decimal",
    "boolean": "boolean bool",
    "array": "array list tuple arraylist",
    "object": "object dict hashmap map",
    "null": "null none nonetype",
    "": "any type_unspecified",
}
TYPES = {alias: name for name, aliases in _TYPES.items() for alias in aliases.split()}
"""The JSON type of each name in use, in lower case, from JSON Schema, Python, Java, JavaScript and Gemini; "" is any type."""

_BOUNDS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
_OPENAPI_FLAGS = ("nullable", "exclusiveMinimum", "exclusiveMaximum")
_COMBINED = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if"})


def find_dialect(uri: JsonValue) -> Dialect | None:
    """Return the draft that a `$schema` value names; None if the name is unknown.

    >>> find_dialect("http://json-schema.org/draft-07/schema#")
    'draft7'
    """
    bare = uri.partition("://")[2].removesuffix("#") if isinstance(uri, str) else ""
    return METASCHEMAS.get(bare)


def choose_dialect(root: Node, dialect: Dialect) -> Dialect:
    """Choose the dialect to read `root` in, never "auto". Raises SchemaProblem for an unknown name or `$schema`."""
    if dialect not in get_args(Dialect):
        raise SchemaProblem(f"no dialect is named {dialect!r}; known: {', '.join(get_args(Dialect))}")
    if dialect != "auto":
        return dialect
    if "$schema" in root:
        return _require_dialect(root["$schema"], "/$schema")
    nodes = [node for _, node in walk_schema(root)]
    if any(isinstance(node.get(key), bool) for node in nodes for key in _OPENAPI_FLAGS):
        return "openapi3.0"
    return "draft2019-09" if any(isinstance(node.get("items"), list) for node in nodes) else "draft2020-12"


def rewrite(node: Node, *, at: str, dialect: Dialect) -> None:
    """Rewrite one schema object, which the caller owns, to the form that its draft knows. Raises SchemaProblem."""
    if at and "$schema" in node:
        _require_dialect(node["$schema"], f"{at}/$schema")
    _rename_types(node, at)
    if dialect == "openapi3.0":
        _rewrite_bounds(node)
        _rewrite_nullable(node)


def _require_dialect(uri: JsonValue, at: str) -> Dialect:
    dialect = find_dialect(uri)
    if dialect is None:
        known = ", ".join(f"https://{uri}" for uri in METASCHEMAS)
        raise SchemaProblem(f"{str(uri)[:100]!r} is not a known $schema; known: {known}", at)
    return dialect


def _rename_types(node: Node, at: str) -> None:
    declared = node.get("type")
    if isinstance(declared, str):
        names = [_find_json_type(declared, f"{at}/type")]
        node["type"] = names[0]
    elif isinstance(declared, list) and all(isinstance(name, str) for name in declared):
        names = [_find_json_type(str(name), f"{at}/type/{i}") for i, name in enumerate(declared)]
        node["type"] = _drop_repeats(names) if declared else []
    else:
        return
    if "" in names:
        del node["type"]


def _find_json_type(name: str, at: str) -> str:
    json_type = TYPES.get(name.lower())
    if json_type is None:
        raise SchemaProblem(f"{name[:60]!r} is not a type; known: {', '.join(sorted(TYPES))}", at)
    return json_type


def _drop_repeats(names: Iterable[str]) -> list[JsonValue]:
    # Two provider names may mean one JSON type, and `type` may not list a name twice.
    return list(dict.fromkeys(names))


def _rewrite_bounds(node: Node) -> None:
    for exclusive, bound in _BOUNDS:
        flag = node.get(exclusive)
        if not isinstance(flag, bool):
            continue
        del node[exclusive]
        if flag and bound in node:
            node[exclusive] = node.pop(bound)


def _rewrite_nullable(node: Node) -> None:
    """Rewrite `nullable: true` so that it admits null whatever else the schema has, even an `enum`: providers read it so.

    OpenAPI 3.0.3, read strictly, still refuses null where `enum` does not list it or where `type` is absent.
    """
    if node.pop("nullable", None) is not True:
        return
    if not _COMBINED.isdisjoint(node) or "const" in node:
        inner = {key: node.pop(key) for key in list(node) if key not in ("$defs", "definitions", "$schema", "$id")}
        node["anyOf"] = [inner, {"type": "null"}]
        return
    declared, options = node.get("type"), node.get("enum")
    if isinstance(declared, str | list):
        node["type"] = _drop_repeats([*([declared] if isinstance(declared, str) else map(str, declared)), "null"])
    if isinstance(options, list) and None not in options:
        node["enum"] = [*options, None]
