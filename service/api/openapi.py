"""Build the OpenAPI document. Every schema comes from the type that reads or writes it."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from service.api.access import PUBLIC
from service.api.operations import Operation, adapt, describe_problem
from service.problems import ProblemDetails

BEARER = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "cg_<id>_<secret>",
    "description": "A key from `callgrade keys create`; the header `X-Api-Key` works too. While no key was ever made and "
    "the service listens on a loopback address, none is needed.",
}


def describe_api(app: FastAPI, *, keys: bool = False) -> dict[str, Any]:
    """Build the document of an application; `keys`: whether its operations need a key."""
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
    statuses = (401, 403, 429) if keys else (403, 429)
    for operation in operations.values():
        if keys:
            operation["security"] = [{"key": []}]
        responses = operation["responses"] | {str(status): describe_problem(status) for status in statuses}
        operation["responses"] = dict(sorted(responses.items()))


def _list_types(app: FastAPI) -> tuple[tuple[type[Any], JsonSchemaMode], ...]:
    operations = [route for route in app.routes if isinstance(route, Operation)]
    types: dict[type[Any], JsonSchemaMode] = {ProblemDetails: "serialization"}
    types.update(pair for one in operations for pair in one.list_types())
    return tuple(types.items())


@cache
def _build_schemas(types: tuple[tuple[type[Any], JsonSchemaMode], ...]) -> dict[str, Any]:
    """Build the schemas by name. It takes half a second, and gives the same for every application of a process."""
    named, shared = TypeAdapter[Any].json_schemas(
        [(form.__name__, mode, adapt(form)) for form, mode in types],
        ref_template="#/components/schemas/{model}",
        schema_generator=_Exact,
    )
    # A type that is asked for under its own name is already among the shared ones.
    others = {name: schema for (name, _), schema in named.items() if name not in shared["$defs"]}
    return dict(sorted((shared["$defs"] | others).items()))


class _Exact(GenerateJsonSchema):
    """Generates schemas that are exact, and that do not repeat a field's name as its title.

    Every field of what we send is required. The forms that a callable discriminates may overlap without it: an object
    with `kind` looks like any object. So they are alternatives (`anyOf`), not exclusive (`oneOf`).
    """

    def field_is_required(self, field: Any, *args: Any, **kwargs: Any) -> bool:
        is_sent = self.mode == "serialization" and field["type"] == "dataclass-field"
        return is_sent or super().field_is_required(field, *args, **kwargs)

    def tagged_union_schema(self, schema: Any) -> dict[str, Any]:
        union = super().tagged_union_schema(schema)
        if "oneOf" in union and "discriminator" not in union:
            union["anyOf"] = union.pop("oneOf")
        return union

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False
