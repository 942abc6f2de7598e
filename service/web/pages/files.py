"""The stylesheet, the script and the icon."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from service.api.page_route import PageRoute
from service.api.parts import ApiParts
from service.web.page import PageSet, page
from service.web.rendering import read_static

KEPT = "public, max-age=31536000, immutable"
"""Their addresses change with them."""


def build_file_routes(_: ApiParts) -> Sequence[PageRoute]:
    """The route of all of them."""
    return [page("/static/{name}", show_file, public=True)]


async def show_file(request: Request) -> Response:
    """One file."""
    kept = read_static(request.path_params["name"])
    if kept is None:
        raise HTTPException(404, "no such file")
    return Response(kept[0], headers={"cache-control": KEPT}, media_type=kept[1])


PAGES = PageSet(build_file_routes)
