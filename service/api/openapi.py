"""The OpenAPI document. Handlers read bodies with the one parser and so declare no models; what they take and give is told here.

Every schema comes from the type that reads or writes it: requests as they are validated, responses as they are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from service.api.access import PUBLIC
from service.api.problems import MEDIA_TYPE

JSON = "application/json"

Responses = dict[int | str, dict[str, Any]]

TOLD: Mapping[int, str] = {
    400: "The body is not the JSON we accept: syntax, a key given twice, NaN, a number out of range, NUL, a lone surrogate",
    401: "No key, or none that is good here",
    403: "The key lacks the scope that this needs; where none is asked for, the request comes from a page of another site, or "
    "goes to a host that is not the service's",
    404: "No such thing",
    408: "The body came too slowly",
    409: "Not in the state that a batch is in; or a request with that Idempotency-Key is being worked on",
    410: "The batch of that Idempotency-Key was deleted",
    413: "A limit was passed: bytes, depth, digits, string length, number of values or items",
    415: "The body is not said to be of type application/json, or is compressed",
    422: "The body cannot be used; `errors` names every place. Or the Idempotency-Key was used for another one",
    429: "More than this tenant may send: requests, bytes, items that wait, or questions of a day",
    500: "An error of ours",
    503: "Too much under way, or not ready",
}

READING = (400, 408, 413, 415)
"""What can be wrong with a body before it is looked into."""

BEARER = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "cg_<id>_<secret>",
    "description": "A key as `callgrade keys create` gives it; `X-Api-Key` takes it too. As long as no key was ever made, and "
    "the service listens on a loopback address, none is asked for.",
}

_RETRY = {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "string"}}}


def gives(schema: str | dict[str, Any], *statuses: int, media: str = JSON, status: int = 200) -> Responses:
    """The responses of an operation: its result, the problems named by status, and those that any operation may have."""
    found: Responses = {status: {"description": "The result", "content": {media: {"schema": _refer(schema)}}}}
    return found | {status: _describe_problem(status) for status in sorted({*statuses, 500})}


def takes(schema: str | dict[str, Any], example: object) -> dict[str, Any]:
    """The request body of an operation."""
    return {"requestBody": {"required": True, "content": {JSON: {"schema": _refer(schema), "example": example}}}}


def describe_api(
    app: FastAPI, types: Mapping[str, tuple[JsonSchemaMode, TypeAdapter[Any]]], *, keys: bool = False
) -> dict[str, Any]:
    """The document of an application whose operations refer to `types` by name; `keys`: whether they ask for a key."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        routes=app.routes,
    )
    document["components"] = {"schemas": _build_schemas(types)}
    if keys:
        document["components"]["securitySchemes"] = {"key": BEARER}
    for path in document["paths"].keys() - PUBLIC:
        _guard(document["paths"][path], keys=keys)
    return document


def _guard(operations: dict[str, Any], *, keys: bool) -> None:
    refused = (401, 403, 429) if keys else (403, 429)
    for operation in operations.values():
        if keys:
            operation["security"] = [{"key": []}]
        told = operation["responses"] | {str(status): _describe_problem(status) for status in refused}
        operation["responses"] = dict(sorted(told.items()))


def _build_schemas(types: Mapping[str, tuple[JsonSchemaMode, TypeAdapter[Any]]]) -> dict[str, Any]:
    named, shared = TypeAdapter[Any].json_schemas(
        [(name, mode, adapter) for name, (mode, adapter) in types.items()],
        ref_template="#/components/schemas/{model}",
        schema_generator=_Exact,
    )
    # A type whose own name is the one it is asked for stands among the shared ones already.
    own = {name: schema for (name, _), schema in named.items() if name not in shared["$defs"]}
    return dict(sorted((shared["$defs"] | own).items()))


class _Exact(GenerateJsonSchema):
    """Schemas that are true to the letter, and repeat no field's name as its title.

    Every field of what we send is there. The forms that a callable tells apart may overlap where the callable is not
    asked: an object with `kind` looks like any object. So they are alternatives (`anyOf`), not exclusive ones (`oneOf`).
    """

    def field_is_required(self, field: Any, *args: Any, **kwargs: Any) -> bool:
        sent = self.mode == "serialization" and field["type"] == "dataclass-field"
        return sent or super().field_is_required(field, *args, **kwargs)

    def tagged_union_schema(self, schema: Any) -> dict[str, Any]:
        found = super().tagged_union_schema(schema)
        if "oneOf" in found and "discriminator" not in found:
            found["anyOf"] = found.pop("oneOf")
        return found

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def _refer(schema: str | dict[str, Any]) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{schema}"} if isinstance(schema, str) else schema


def _describe_problem(status: int) -> dict[str, Any]:
    headers = {"headers": _RETRY} if status in (429, 503) else {}
    return {"description": TOLD[status], "content": {MEDIA_TYPE: {"schema": _refer("ProblemDetails")}}, **headers}
