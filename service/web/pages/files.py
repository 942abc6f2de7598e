"""The static files: stylesheets, scripts and the icon."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from service.api.page_route import PageRoute
from service.api.parts import ApiParts
from service.web.page import PageSet, page
from service.web.rendering import list_static

CACHE_CONTROL = "public, max-age=31536000, immutable"
"""The URL of a file changes with its content."""


def build_file_routes(_: ApiParts) -> Sequence[PageRoute]:
    """Build the route of all static files."""
    return [page("/static/{name}", show_file, public=True)]


async def show_file(request: Request) -> Response:
    """Return one file."""
    file = list_static().get(request.path_params["name"])
    if file is None:
        raise HTTPException(404, "no such file")
    return Response(file.body, headers={"cache-control": CACHE_CONTROL}, media_type=file.media)


PAGES = PageSet(build_file_routes)
