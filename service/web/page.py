"""What a page module provides, and what every page goes through: sign-in, forms, CSRF, headers, errors as pages."""

from __future__ import annotations

import asyncio
import hmac
import re
from binascii import a2b_qp
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, cast
from urllib.parse import quote, urlencode

from markupsafe import Markup
from pydantic import BaseModel, TypeAdapter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service import __version__
from service.api.access import find_caller
from service.api.body import read_form_body
from service.api.page_route import PageHandler, PageRoute, make_csrf, read_cookie
from service.api.parts import ApiParts
from service.core.models.validation import validate
from service.errors import CallgradeError
from service.problems import ProblemDetails, build_details, build_problem
from service.store.access.keys import UNKNOWN, Scope
from service.web.rendering import render_template

M = TypeVar("M", bound=BaseModel)

HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; "
    "form-action 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
"""The headers of everything that pages answer."""

CSRF = "csrf"
"""The form field that only our own pages can fill in."""


@dataclass(frozen=True, slots=True)
class NavLink:
    """A link at the top of every page, for those who may open it."""

    place: int
    label: str
    path: str
    needs: Scope | None = None


@dataclass(frozen=True, slots=True)
class PageSet:
    """The pages of one module."""

    build: Callable[[ApiParts], Sequence[PageRoute]]
    nav: NavLink | None = None


def page(
    path: str,
    handler: PageHandler,
    *,
    needs: Scope | None = None,
    public: bool = False,
    method: str = "GET",
    carries_body: bool = False,
) -> PageRoute:
    """Build a page; `needs` is the scope that opens it, None: any key does. Unless it is `public`, it needs sign-in.

    `carries_body`: its form may be as large as a request body, because it holds a trace or a fit.
    """
    return PageRoute(path, handler, needs=needs, public=public, method=method, carries_body=carries_body, wrap=guard)


def render(
    request: Request, template: str, *, status: int = 200, twin: str | None = None, **values: object
) -> Response:
    """Render a page. `twin`: the path of the operation that returns the same as JSON."""
    return Response(
        render_template(template, **_build_common_values(request, twin), **values),
        status,
        {"cache-control": "no-store"},
        "text/html",
    )


def read_query(request: Request, model: type[M]) -> M:
    """Read the query of a page as the operation does that returns the same; InputError if it cannot be used."""
    return validate(TypeAdapter(model), dict(request.query_params))


def read_form(request: Request) -> Mapping[str, str]:
    """Return the fields of the submitted form; the last field of a name counts."""
    return request.state.form


def build_twin(request: Request, path: str, **more: str) -> str:
    """Build the path of the operation that returns the same as JSON, with the page's query, or with `more` instead."""
    query = urlencode(more) if more else request.url.query
    return f"{path}?{query}" if query else path


def redirect(path: str) -> Response:
    """Redirect to one of our own pages, which the browser then opens with GET."""
    return RedirectResponse(path, 303)


def _build_common_values(request: Request, twin: str | None) -> dict[str, object]:
    """Build the values that every template gets."""
    caller, session = find_caller(request), read_cookie(request.scope)
    links = [one for one in request.app.state.nav if caller != UNKNOWN and caller.may(one.needs)]
    return {
        "nav": links,
        "path": request.scope["path"],
        "signed_in": caller != UNKNOWN,
        "caller": caller,
        "csrf_field": partial(Markup('<input type="hidden" name="{}" value="{}">').format, CSRF, make_csrf(session)),
        "twin": twin,
        "version": __version__,
    }


def guard(route: PageRoute, handler: PageHandler) -> PageHandler:
    """Wrap a handler in the checks that all pages share."""

    async def handle(request: Request) -> Response:
        try:
            response = await _answer(route, handler, request)
        except HTTPException as error:
            response = render_problem_page(request, build_details(error.status_code, str(error.detail)))
        except CallgradeError as error:
            response = render_problem_page(request, build_problem(error))
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return handle


async def _answer(route: PageRoute, handler: PageHandler, request: Request) -> Response:
    caller = find_caller(request)
    if caller == UNKNOWN and not route.public:
        return redirect(_build_sign_in_path(request))
    if not route.public and not caller.may(route.needs):
        raise HTTPException(403, f"the key that you signed in with lacks the scope {route.needs}")
    if request.method == "POST":
        request.state.form = await _read_checked_form(route, request, signed_in=caller != UNKNOWN)
    return await handler(request)


def _build_sign_in_path(request: Request) -> str:
    """Build the sign-in path that leads back to the page; to no particular page if the request would change something."""
    if request.method != "GET" or request.url.path == "/":
        return "/sign-in"
    query = f"?{request.url.query}" if request.url.query else ""
    return f"/sign-in?next={quote(request.url.path + query, safe='')}"


async def _read_checked_form(route: PageRoute, request: Request, *, signed_in: bool) -> Mapping[str, str]:
    """Read the fields; HTTPException 403 if the form is not of this session."""
    max_bytes = MAX_PUBLIC_BYTES if route.public else MAX_SIGNED_BYTES
    if route.carries_body:  # form encoding can triple a body, byte by byte
        max_bytes = 3 * cast("ApiParts", request.app.state.parts).settings.max_body_bytes
    form = await read_fields(request, max_bytes)
    token = make_csrf(read_cookie(request.scope))
    if signed_in and not hmac.compare_digest(form.get(CSRF, "").encode(), token.encode()):
        raise HTTPException(403, "the form was made for another session; open the page again and send it from there")
    return form


def render_problem_page(request: Request, problem: ProblemDetails) -> Response:
    """Render the page of an error."""
    return render(request, "problem.html", status=problem.status, details=problem)


MAX_PUBLIC_BYTES = 64 * 2**10
"""Largest form that anybody may send."""

MAX_SIGNED_BYTES = 256 * 2**10
"""Largest form that needs a session: a note of 10,000 characters has up to 120,000 bytes in a form."""

MAX_FIELDS = 200
MAX_INLINE_BYTES = 64 * 2**10
"""A longer form is parsed in a thread."""

_BROKEN = re.compile(rb"%(?![0-9A-Fa-f]{2})")


async def read_fields(request: Request, max_bytes: int) -> Mapping[str, str]:
    """Read the fields of a form of at most `max_bytes` bytes; the last field of a name counts.

    TooLargeError if it is larger; HTTPException 400 if it is malformed, 408 if it comes too slowly, 415 if it is no
    form.
    """
    data = await read_form_body(request, max_bytes)
    try:
        return parse_form(data) if len(data) <= MAX_INLINE_BYTES else await asyncio.to_thread(parse_form, data)
    except ValueError as error:
        raise HTTPException(400, f"the form cannot be read: {error}") from None


def parse_form(data: bytes) -> dict[str, str]:
    """Parse the fields of a form; ValueError if it is malformed, not UTF-8 or has more than MAX_FIELDS fields.

    >>> parse_form(b"key=%C3%A9+=%2B&empty=&key=last%3D")
    {'key': 'last=', 'empty': ''}
    """
    if data.count(b"&") >= MAX_FIELDS:
        raise ValueError(f"expected at most {MAX_FIELDS} fields")
    if _BROKEN.search(data):
        raise ValueError("expected two hexadecimal digits after each %")
    fields = [one.partition(b"=") for one in data.split(b"&") if one]
    try:
        return {_decode(name): _decode(value) for name, _, value in fields}
    except UnicodeDecodeError:
        raise ValueError("expected UTF-8") from None


def _decode(text: bytes) -> str:
    """Decode as quoted-printable, which is the same with another sign: urllib makes an object of every escape."""
    return a2b_qp(text.replace(b"+", b" ").replace(b"=", b"%3D").replace(b"%", b"=")).decode()
