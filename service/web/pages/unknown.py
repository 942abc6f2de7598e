"""The answer to a browser for an address without a page. Programs get theirs from the API."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope as AsgiScope

from service.api.page_route import PageRoute
from service.api.parts import ApiParts
from service.web.page import PageSet, guard


class UnknownRoute(PageRoute):
    """Any path outside the API, for requests that accept a page."""

    def matches(self, scope: AsgiScope) -> tuple[Match, AsgiScope]:
        """Match as a route does, but only if a browser opens the address as a page, and not below the API."""
        accepted = b",".join([value for name, value in scope.get("headers", ()) if name == b"accept"])
        if b"text/html" not in accepted or scope["method"] not in ("GET", "HEAD") or scope["path"].startswith("/v1/"):
            return Match.NONE, {}
        return super().matches(scope)


def build_unknown_page(_: ApiParts) -> Sequence[PageRoute]:
    """Build the route that answers if no other does."""
    return [UnknownRoute("/{path:path}", show_unknown, public=True, wrap=guard)]


async def show_unknown(_: Request) -> Response:
    """Say that there is no such page."""
    raise HTTPException(404, "there is no page at this address")


PAGES = PageSet(build_unknown_page, is_last=True)
