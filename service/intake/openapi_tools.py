"""Read an OpenAPI 3 document as tools: one for each operation, named by its `operationId`.

A tool takes the operation's parameters and the members of its JSON body together, as generators of tools from OpenAPI do.
A body that is no object is the argument `body`. An operation without an id is named by its method and path:
`get_orders_id`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_object, find_text, list_objects
from service.core.json.pointers import escape_token
from service.errors import InputError

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
