"""Operations of the HTTP contract: a handler, with the types of its request and responses.

A handler reads its body with the one strict parser, within limits of its own; FastAPI resolves nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import JsonSchemaMode
from starlette.requests import Request
from starlette.responses import Response

from service.api.problems import MEDIA_TYPE
from service.api.queries import describe_parameters
from service.problems import ProblemDetails

JSON = "application/json"

PROBLEM_DESCRIPTIONS: Mapping[int, str] = {
    400: "The body is not the JSON we accept: syntax, a key given twice, NaN, a number out of range, NUL, a lone surrogate",
    401: "No key, or an invalid one",
    403: "The key lacks the scope that this needs; or no key is needed, and the request comes from a page of another site or "
    "names a host that is not the service's",
    404: "No such thing",
    408: "The body came too slowly",
    409: "The state of the batch does not allow it",
    410: "The batch of that Idempotency-Key was deleted",
    413: "A limit was exceeded: bytes, depth, digits, string length, number of values or items",
    415: "The body is not declared as application/json, or is compressed",
    422: "The body cannot be used; `errors` names every place. Or the Idempotency-Key was used for another one",
    429: "More than this tenant may send: requests, bytes, waiting items, or questions in a day",
    500: "An internal error",
    503: "Too much is running, or not ready",
    507: "A disk has no room for it; nothing was kept",
}

PATH_PARAMETERS: Mapping[str, tuple[str, str]] = {
    "batch_id": ("The id of a batch", "batch_019aa5b3c4d000112233445566778899"),
    "calibration_id": ("The id of a calibration", "calibration_019aa5b3c4d000112233445566778899"),
    "fit_id": ("The id of a fit", "result_groundedness/result_groundedness/0123456789ab"),
    "index": ("The position of an item in its batch, from 0", "0"),
    "label_id": ("The id of a label", "label_019aa5b3c4d0001122334455667788"),
    "rubric_id": ("`id` or `id@version`", "four_step"),
    "score_id": ("The id of a kept score", "score_019aa5b3c4d000112233445566778899"),
}
"""The meaning of each parameter in a path, and an example."""

BODY_STATUSES = (400, 408, 413, 415)
"""Statuses of a body that is refused before it is looked into."""

_RETRY = {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "string"}}}

Shape = type[Any] | dict[str, Any]
"""A type, whose name refers to its schema in the document; or a schema as it is."""

TEXT = {"type": "string"}


class RequestBody(NamedTuple):
    """The body of a request."""

    shape: Shape | None
    """None: JSON Lines only, no JSON document."""
    example: object = None
    """A body that can be sent; of JSON Lines: a list of what the lines hold."""
    required: bool = True
    lines: str | None = None
    """What the lines hold, if JSON Lines are accepted."""

    def describe(self) -> dict[str, Any]:
        """Describe the request body for OpenAPI."""
        example = {} if self.example is None else {"example": self.example}
        content: dict[str, Any] = {}
        if self.shape is not None:
            content[JSON] = {"schema": _refer(self.shape), **example}
        if self.lines is not None:
            if isinstance(self.example, list):
                example = {"example": "".join(f"{json.dumps(one)}\n" for one in cast("list[object]", self.example))}
            for media, text in (("application/x-ndjson", self.lines), ("application/jsonl", "the same")):
                form = TEXT | {"description": f"{text}, one JSON object a line; gzip is accepted"}
                content[media] = {"schema": form, **example}
        return {"content": content, **({"required": True} if self.required else {})}


class Answer(NamedTuple):
    """A response of an operation, by media type."""

    content: Mapping[str, Shape]
    status: int = 200
    description: str = "The result"
    more: Mapping[str, Any] = MappingProxyType({})
    """Its headers and links in OpenAPI."""

    def describe(self) -> dict[str, Any]:
        """Describe the response for OpenAPI."""
        content = {media: {"schema": _refer(shape)} for media, shape in self.content.items()}
        return {"description": self.description, **({"content": content} if content else {}), **self.more}


Handler = Callable[[Request], Awaitable[object]]
"""Answers a request with a response, or with a value of the first type that the operation answers with."""


class Operation(APIRoute):
    """One operation of the contract."""

    def __init__(  # noqa: PLR0913 (one for each part of its description)
        self,
        method: str,
        path: str,
        handler: Handler,
        answers: Shape | list[Answer],
        *errors: int,
        body: RequestBody | None = None,
        query: type[BaseModel] | None = None,
        headers: Sequence[Mapping[str, Any]] = (),
        name: str = "",
        description: str | None = None,
    ) -> None:
        """`errors`: the statuses of its problems, besides those that follow from its path, query and body.

        `name`: its id; default: its handler's.
        """
        self.body = body
        self.answers = answers if isinstance(answers, list) else [Answer({JSON: answers})]
        in_path = [_describe_path_parameter(one) for one in re.findall(r"{(\w+)", path)]
        in_query = [] if query is None else describe_parameters(query)
        problems = {500, *errors, *([404] if in_path else ()), *([503] if path.startswith("/v1/") else ())}
        problems |= {*([] if body is None else BODY_STATUSES), *([422] if _may_be_wrong(body, query) else ())}
        parameters, name = [*in_path, *headers, *in_query], name or handler.__name__
        super().__init__(
            path,
            handler,
            methods=[method],
            name=name,
            operation_id=name,
            description=description,
            status_code=self.answers[0].status,
            response_class=Response,
            response_model=None,
            tags=[path.split("/")[2] if path.startswith("/v1/") else "service"],
            openapi_extra={
                **({"parameters": parameters} if parameters else {}),
                **({"requestBody": body.describe()} if body is not None else {}),
            },
            responses={
                **{answer.status: answer.describe() for answer in self.answers},
                **{status: describe_problem(status) for status in sorted(problems)},
            },
        )

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler; a value that it returns is serialised by its declared type."""

        async def handle(request: Request) -> Response:
            result = await self.endpoint(request)
            return result if isinstance(result, Response) else Response(self._form.dump_json(result), media_type=JSON)

        return handle

    @cached_property
    def _form(self) -> TypeAdapter[Any]:
        return adapt(cast("type[Any]", self.answers[0].content[JSON]))

    def list_types(self) -> Iterator[tuple[type[Any], JsonSchemaMode]]:
        """List the types that its description refers to.

        Types that users write are described as they are read, all others as they are written.
        """
        if self.body is not None and isinstance(self.body.shape, type):
            yield self.body.shape, "validation"
        for shape in [shape for answer in self.answers for shape in answer.content.values()]:
            if isinstance(shape, type):
                yield shape, "validation" if issubclass(shape, BaseModel) else "serialization"


@cache
def adapt(form: type[Any]) -> TypeAdapter[Any]:
    """Return the adapter that reads and writes values of a type."""
    return TypeAdapter(form)


def describe_problem(status: int) -> dict[str, Any]:
    """Describe the response of an error."""
    headers = {"headers": _RETRY} if status in (429, 503, 507) else {}
    return {
        "description": PROBLEM_DESCRIPTIONS[status],
        "content": {MEDIA_TYPE: {"schema": _refer(ProblemDetails)}},
        **headers,
    }


def _may_be_wrong(body: RequestBody | None, query: type[BaseModel] | None) -> bool:
    """Whether something that can be read may still be refused: a query, or a body of a certain shape."""
    return query is not None or (body is not None and bool(body.shape or body.lines))


def _describe_path_parameter(name: str) -> dict[str, Any]:
    description, example = PATH_PARAMETERS[name]
    head = {"name": name, "in": "path", "required": True}
    return {**head, "description": description, "schema": TEXT, "example": example}


def _refer(shape: Shape) -> dict[str, Any]:
    return shape if isinstance(shape, dict) else {"$ref": f"#/components/schemas/{shape.__name__}"}
