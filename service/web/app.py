"""Add the pages to an application: they are discovered, and become routes of it."""

from __future__ import annotations

import secrets

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from service.api.page_route import PageRoute
from service.core.models.discovery import get_entry, import_all
from service.web import pages
from service.web.page import PageSet, guard


def add_pages(app: FastAPI, *, token: str = "") -> FastAPI:
    """Add the pages to an application, if it has a database. Call it before the first request.

    `token`: opens the pages while there is no key; empty: nothing does.
    """
    if app.state.parts.database is None:
        return app
    page_sets = list_page_sets()
    app.state.local_token = token
    app.state.nav = sorted([one.nav for one in page_sets if one.nav is not None], key=lambda link: link.place)
    for one in page_sets:
        app.router.routes.extend(one.build(app.state.parts))
    app.router.routes.append(_UnknownRoute("/{path:path}", _show_unknown, public=True, wrap=guard))
    return app


def list_page_sets() -> list[PageSet]:
    """List the page sets of the modules in `service.web.pages`."""
    return [get_entry(module, "PAGES") for module in import_all(pages)]


def make_local_token() -> str:
    """Make the token that opens the pages of a service without keys to whoever started it."""
    return secrets.token_urlsafe(24)


class _UnknownRoute(PageRoute):
    """Any path outside the API that a browser opens as a page. Programs get their answer from the API."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        accepted = b",".join([value for name, value in scope.get("headers", ()) if name == b"accept"])
        if b"text/html" not in accepted or scope["method"] not in ("GET", "HEAD") or scope["path"].startswith("/v1/"):
            return Match.NONE, {}
        return super().matches(scope)


async def _show_unknown(_: Request) -> Response:
    raise HTTPException(404, "there is no page at this address")
