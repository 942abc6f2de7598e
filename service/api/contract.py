"""What all routes of the contract share, and its OpenAPI document.

FastAPI reads paths and queries. A body is read by `read_json` and others of `service.api.body`, within limits, and described
here, because FastAPI would read it first. Answers are written here, because FastAPI would build a serializer for each route of
each application.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial, wraps
from inspect import signature
from typing import Annotated, Any, cast, get_type_hints

from fastapi import APIRouter, FastAPI, Path
from fastapi.datastructures import DefaultPlaceholder
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import AliasChoices, BaseModel, ConfigDict, TypeAdapter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from service.api.problems import MEDIA_TYPE
from service.core.models.kinds import FrozenModel
from service.core.models.validation import MESSAGES
from service.errors import InputError, Problem
from service.problem_types import BY_STATUS, TYPES
from service.problems import ProblemDetails

JSON = "application/json"
NDJSON = "application/x-ndjson"

UNKNOWN_PARAMETER = "no parameter of that name is known here"

PROBLEMS: Mapping[int, str] = {
    status: " Or: ".join(one.cause for one in TYPES if one.status == status) for status in BY_STATUS
}

BEARER = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "cg_<id>_<secret>",
    "description": "A key from `callgrade keys create`; the header `X-Api-Key` works too. While no key was ever made and "
    "the service listens on a loopback address, none is needed.",
}


class QueryModel(FrozenModel):
    """The base of the models of queries: text is read as what it stands for, and unknown parameters are refused."""

    model_config = ConfigDict(strict=False, use_attribute_docstrings=True, defer_build=False)


class LinesResponse(StreamingResponse):
    """JSON Lines, sent while they are read."""

    media_type = NDJSON


JobId = Annotated[
    str,
    Path(
        validation_alias=AliasChoices("batch_id", "calibration_id"),
        description="The id of the job",
        examples=["batch_019aa5b3c4d000112233445566778899"],
    ),
]


_build_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


class JsonRoute(APIRoute):
    """A route whose handler returns a response, or a value that becomes JSON by its declared type."""

    def __init__(self, path: str, endpoint: Callable[..., Awaitable[Any]], **options: Any) -> None:
        self.describe = partial(APIRoute, path, endpoint, **options)
        """Build the route as FastAPI documents it."""
        declared, status = options["response_model"], options["status_code"] or 200

        @wraps(endpoint)
        async def respond(*args: Any, **values: Any) -> Response:
            answer = await endpoint(*args, **values)
            if answer is None or isinstance(answer, Response):
                return answer or Response(status_code=status)
            form = get_type_hints(endpoint)["return"] if isinstance(declared, DefaultPlaceholder) else declared
            return Response(_build_adapter(form).dump_json(answer), status, media_type=JSON)

        self.is_direct = signature(endpoint).parameters.keys() <= {"request"}
        """Whether its handler takes nothing that FastAPI would have to read."""
        options |= {"response_model": None, "responses": None}
        super().__init__(path, respond, **options)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. What is wrong with it is raised."""
        request = Request(scope, receive)
        if scope["query_string"] and scope["method"] in self.methods:
            refuse_doubtful_query(request, takes_none=not self.dependant.query_params)
        if not self.is_direct or scope["method"] not in self.methods:
            await super().handle(scope, receive, send)
            return
        response = await (self.endpoint(request) if self.dependant.request_param_name else self.endpoint())
        await response(scope, receive, send)


def build_router(tag: str, *statuses: int) -> APIRouter:
    """Build the router of a resource. `statuses`: those of its problems besides those that every route may have."""
    return APIRouter(
        tags=[tag],
        responses=describe_problems(401, 403, 422, 429, 500, 503, *statuses),
        route_class=JsonRoute,
        generate_unique_id_function=lambda route: route.name,
    )


def describe_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the responses of errors."""
    retry = {"headers": {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "string"}}}}
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
    return {
        status: {"description": PROBLEMS[status], "content": content, **(retry if status in (429, 503, 507) else {})}
        for status in sorted(statuses)
    }


BODY_PROBLEMS = describe_problems(400, 408, 413, 415)
"""The responses to a body that is refused before it is looked into."""


def describe_json(model: type[BaseModel], example: object = None, *, required: bool = True) -> dict[str, Any]:
    """Describe a body of JSON, for `openapi_extra`; `describe_api` must be given the model too."""
    schema = {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}
    content = schema if example is None else schema | {"example": example}
    return {"requestBody": {"content": {JSON: content}, "required": required}}


def describe_lines(lines: str, examples: list[dict[str, Any]]) -> dict[str, Any]:
    """Describe a body of JSON Lines, for `openapi_extra`."""
    schema = {"type": "string", "description": f"{lines}, one JSON object a line; gzip is accepted"}
    content = {"schema": schema, "example": "".join(f"{json.dumps(one)}\n" for one in examples)}
    return {"requestBody": {"content": {NDJSON: content, "application/jsonl": content}, "required": True}}


def refuse_doubtful_query(request: Request, *, takes_none: bool) -> None:
    """Refuse what FastAPI would take: a parameter given twice, one with NUL, and any where the route `takes_none`.

    Where it takes some, its `QueryModel` refuses all others.
    """
    query = request.query_params
    names = [name for name, _ in query.multi_items()]
    found = [(name, "given twice") for name in query if names.count(name) > 1]
    found += [(name, "holds NUL") for name, text in query.items() if "\0" in text]
    found += [(name, UNKNOWN_PARAMETER) for name in query if takes_none]
    if found:
        raise InputError(Problem(f"/{name[:100]}", f"{what} (in the query)") for name, what in found)


def read_error(error: RequestValidationError) -> InputError:
    """Turn FastAPI's error into ours: a problem for each parameter that cannot be used."""
    return InputError(
        Problem(
            f"/{'/'.join(str(part)[:100] for part in one['loc'][1:])}", f"{_describe(one)} (in the {one['loc'][0]})"
        )
        for one in error.errors()
    )


def _describe(error: Mapping[str, Any]) -> str:
    if error["type"] == "extra_forbidden":
        return UNKNOWN_PARAMETER
    message = MESSAGES.get(error["type"])
    return error["msg"].removeprefix("Value error, ") if message is None else message.format_map(error.get("ctx", {}))


def describe_api(app: FastAPI, bodies: tuple[type[BaseModel], ...], *, keys: bool) -> dict[str, Any]:
    """Build the document of an application. `bodies`: the models of its bodies; `keys`: whether it asks for a key."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        routes=[one.describe() if isinstance(one, JsonRoute) else one for one in app.routes],
        separate_input_output_schemas=False,
    )
    _, more = TypeAdapter[Any].json_schemas(
        [(one, "validation", TypeAdapter[Any](one)) for one in (*bodies, ProblemDetails)],
        ref_template="#/components/schemas/{model}",
    )
    schemas = document["components"]["schemas"] | more["$defs"]
    document["components"] = {"schemas": dict(sorted(schemas.items()))}
    if keys:
        document["components"]["securitySchemes"] = {"key": BEARER}
        document["security"] = [{"key": []}]
    _loosen(document["components"])
    return document


def _loosen(node: object) -> None:
    """Let forms overlap that nothing in JSON Schema tells apart: an object with `kind` looks like any object."""
    if isinstance(node, list):
        for one in cast("list[object]", node):
            _loosen(one)
    elif isinstance(node, dict):
        members = cast("dict[str, object]", node)
        if "oneOf" in members and "discriminator" not in members:
            members["anyOf"] = members.pop("oneOf")
        for one in members.values():
            _loosen(one)
