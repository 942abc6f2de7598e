"""The OpenAPI document. Every schema comes from the type that reads or writes it."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from service.api.access import PUBLIC
from service.api.operations import Operation, adapt, describe_problem
from service.api.problems import ProblemDetails

BEARER = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "cg_<id>_<secret>",
    "description": "A key as `callgrade keys create` gives it; `X-Api-Key` takes it too. As long as no key was ever made, and "
    "the service listens on a loopback address, none is asked for.",
}


def describe_api(app: FastAPI, *, keys: bool = False) -> dict[str, Any]:
    """The document of an application; `keys`: whether its operations ask for a key."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        routes=app.routes,
    )
    document["components"] = {"schemas": {**_build_schemas(_list_types(app))}}
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
        told = operation["responses"] | {str(status): describe_problem(status) for status in refused}
        operation["responses"] = dict(sorted(told.items()))


def _list_types(app: FastAPI) -> tuple[tuple[type[Any], JsonSchemaMode], ...]:
    operations = [route for route in app.routes if isinstance(route, Operation)]
    types: dict[type[Any], JsonSchemaMode] = {ProblemDetails: "serialization"}
    types.update(pair for one in operations for pair in one.list_types())
    return tuple(types.items())


@cache
def _build_schemas(types: tuple[tuple[type[Any], JsonSchemaMode], ...]) -> dict[str, Any]:
    """The schemas by their names: half a second, and the same for every application of a process."""
    named, shared = TypeAdapter[Any].json_schemas(
        [(form.__name__, mode, adapt(form)) for form, mode in types],
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
