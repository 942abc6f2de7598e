"""The start page."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from service.api.page_route import PageRoute
from service.api.parts import ApiParts
from service.web.page import NavLink, PageSet, page, render


def build_start_pages(_: ApiParts) -> Sequence[PageRoute]:
    """The page itself."""
    return [page("/", show_start)]


async def show_start(request: Request) -> Response:
    """What is running, what ran last, and what waits."""
    return render(request, "start.html")


PAGES = PageSet(build_start_pages, NavLink(10, "Start", "/"))
