"""Read tool definitions in any of the common forms, and OpenAPI 3 documents, into ToolDef. Equal definitions share one object.

An OpenAPI operation is a tool: it takes its parameters and the members of its JSON body together, as generators of tools from
OpenAPI do. A body that is no object is the argument `body`. An operation without an id is named by its method and path:
`get_orders_id`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from marshal import dumps, loads
from typing import cast

from pydantic import JsonValue, ValidationError

from service.core.json.members import JsonObject, find_object, find_text, list_objects
from service.core.json.pointers import escape_token
from service.core.models.validation import list_problems
from service.core.results.failures.patterns import ANNOTATION, read_patterns
from service.core.trace import ToolDef
from service.errors import InputError

MAX_CACHED_BYTES = 65_536
"""Larger definitions are not cached."""

MARSHAL_VERSION = 2
"""The marshal version that writes equal values alike, whatever objects they share."""

_NO_ANNOTATIONS: dict[str, JsonValue] = {}
_FORMS = "a tool: {name, parameters | input_schema | inputSchema} or {type, function: {name, parameters}}"
_NAMELESS = f"a tool needs a name; expected {_FORMS}"


def read_tools(raw: object, *, path: str = "/tools") -> tuple[ToolDef, ...] | None:
    """Return the tools on offer, in order; None if the trace does not say.

    `raw` is a list of tools, what MCP's `tools/list` returns, `{"tools": [...]}`, or an OpenAPI 3 document, whose operations
    are the tools; forms may be mixed. A nameless tool that the provider runs (`{"type": "web_search"}`) takes its server's
    label, else its type, as its name.

    Raises InputError: an unknown shape, a tool without a name, two tools of one name.
    """
    if raw is None:
        return None
    if isinstance(raw, dict):
        holder = cast("JsonObject", raw)
        for name in ("tools", "result"):  # `result` is around what MCP returns
            if name in holder:
                return read_tools(holder[name], path=f"{path}/{name}")
        raw = cast("object", list_operations(holder) if "openapi" in holder and "paths" in holder else raw)
    if not isinstance(raw, list):
        raise InputError.at(path, 'expected a list of tools, {"tools": [...]}, or an OpenAPI 3 document')
    tools: dict[str, ToolDef] = {}
    for index, item in enumerate(cast("list[JsonValue]", raw)):
        try:
            tool = _read_tool(item)
        except InputError as error:
            raise error.below(f"{path}/{index}") from None
        if tool.name in tools:
            raise InputError.at(f"{path}/{index}", f"a second tool named {tool.name!r}")
        tools[tool.name] = tool
    return tuple(tools.values())


def _read_tool(raw: JsonValue) -> ToolDef:
    """Return the tool. Equal content gives the same object, with everything already derived from it."""
    try:
        content = dumps(raw, MARSHAL_VERSION)
    except ValueError:  # too deep
        return _parse_tool(raw)
    return _read_cached_tool(content) if len(content) <= MAX_CACHED_BYTES else _parse_tool(raw)


@lru_cache(maxsize=1024)
def _read_cached_tool(content: bytes) -> ToolDef:
    return _parse_tool(loads(content))  # noqa: S302 (our own bytes)


def _parse_tool(raw: JsonValue) -> ToolDef:
    if not isinstance(raw, dict):
        raise InputError.at("", f"expected {_FORMS}")
    for key in ("function", "custom"):
        inner = raw.get(key)
        if isinstance(inner, dict):  # as Chat Completions puts it, always named
            if inner.get("name") is None:
                raise InputError.at(f"/{key}", _NAMELESS)
            try:
                return _read_flat(inner)
            except InputError as error:
                raise error.below(f"/{key}") from None
    return _read_flat(raw)


def _read_flat(raw: JsonObject) -> ToolDef:
    annotations = raw.get("annotations")
    if annotations is not None and not isinstance(annotations, dict):
        raise InputError.at("/annotations", "expected an object of hints")
    try:
        read_patterns(annotations or _NO_ANNOTATIONS)
    except ValidationError as error:
        problem = list_problems(error, (annotations or _NO_ANNOTATIONS)[ANNOTATION])[0]
        raise InputError.at(f"/annotations/{ANNOTATION}{problem.path}", problem.message) from None
    description = raw.get("description")
    if description is not None and not isinstance(description, str):
        raise InputError.at("/description", "expected text")
    return ToolDef(
        _read_name(raw),
        description or "",
        _read_schema(raw, ("parameters", "input_schema", "inputSchema")),
        _read_schema(raw, ("output_schema", "outputSchema")),
        annotations or _NO_ANNOTATIONS,
    )


def _read_name(raw: JsonObject) -> str:
    name = raw.get("name")
    # Only a tool that the provider runs goes by its type: a function has a name of its own.
    if name is None and raw.get("type") not in ("function", "custom"):
        name = raw.get("server_label") or raw.get("type")
    if isinstance(name, str) and name:
        return name
    raise InputError.at("", _NAMELESS)


def _read_schema(raw: JsonObject, keys: tuple[str, ...]) -> JsonObject | bool | None:
    for key in keys:
        schema = raw.get(key)
        if schema is None:
            continue
        if isinstance(schema, (dict, bool)):
            return schema
        if isinstance(schema, list):
            return _read_parameter_list(schema, key)
        raise InputError.at(f"/{key}", "expected a JSON Schema: an object, true or false")
    return None


def _read_parameter_list(raw: Sequence[JsonValue], key: str) -> JsonObject:
    """Build the JSON Schema of listed parameters, `[{name, type, required, enum, description}]`.

    A parameter is required unless it says otherwise.
    """
    properties: dict[str, JsonValue] = {}
    required: list[JsonValue] = []
    for n, one in enumerate(raw):
        if not isinstance(one, dict) or not isinstance(name := one.get("name"), str):
            raise InputError.at(f"/{key}/{n}", "expected a parameter: {name, type, required}")
        properties[name] = {key: value for key, value in one.items() if key not in ("name", "required")}
        required += [name] if one.get("required", True) else []
    return {"type": "object", "properties": properties, "required": required}


_METHODS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9]+")
_MAX_REFERENCES = 20


def list_operations(document: JsonObject) -> list[JsonObject]:
    """Return the operations as tool definitions, `{name, description, parameters}`, in order.

    Raises InputError: a reference that leads nowhere.
    """
    return [
        _build_tool(document, path, method, operation, [*list_objects(item.get("parameters"))])
        for path, item in find_object(document, "paths").items()
        if isinstance(item, dict)
        for method in _METHODS
        if isinstance(operation := item.get(method), dict)
    ]


def _build_tool(
    document: JsonObject, path: str, method: str, operation: JsonObject, shared: list[JsonObject]
) -> JsonObject:
    place = f"/paths/{escape_token(path)}/{method}"
    properties: dict[str, JsonValue] = {}
    required: list[JsonValue] = []
    body = _resolve(document, operation.get("requestBody"), f"{place}/requestBody")
    schema = find_object(find_object(find_object(body, "content"), "application/json"), "schema")
    whole = _resolve(document, schema, f"{place}/requestBody")
    if "properties" in whole:
        properties |= find_object(whole, "properties")
        listed = whole.get("required")
        required += listed if isinstance(listed, list) and body.get("required") is True else []
    elif schema:
        properties["body"] = dict(schema)
        required += ["body"] if body.get("required") is True else []
    for number, given in enumerate([*shared, *list_objects(operation.get("parameters"))]):
        parameter = _resolve(document, dict(given), f"{place}/parameters/{number}")
        name = find_text(parameter, "name")
        if name and parameter.get("in") in ("path", "query", "header"):
            described: dict[str, JsonValue] = (
                {"description": text} if (text := find_text(parameter, "description")) else {}
            )
            properties[name] = {**find_object(parameter, "schema"), **described}
            required += [name] if parameter.get("required") is True and name not in required else []
    parameters: dict[str, JsonValue] = {"type": "object", "properties": properties, "required": required}
    if "components" in document:  # references of the schemas lead there
        parameters["components"] = document["components"]
    named = find_text(operation, "operationId") or _NOT_IN_NAMES.sub("_", f"{method} {path}").strip("_")
    return {
        "name": named,
        "description": find_text(operation, "description", "summary") or "",
        "parameters": parameters,
    }


def _resolve(document: JsonObject, value: JsonValue, place: str) -> JsonObject:
    """Follow references within the document. Raises InputError: one that leads nowhere, or in a circle."""
    here: JsonValue | JsonObject = value
    for _ in range(_MAX_REFERENCES):
        reference = here.get("$ref") if isinstance(here, Mapping) else None
        if not isinstance(reference, str):
            return here if isinstance(here, Mapping) else {}
        here = document if reference.startswith("#/") else None
        for token in reference.split("/")[1:]:
            here = here.get(token.replace("~1", "/").replace("~0", "~")) if isinstance(here, Mapping) else None
        if here is None:
            raise InputError.at(place, f"the reference {reference[:100]!r} leads nowhere in this document")
    raise InputError.at(place, "its references go in a circle")
