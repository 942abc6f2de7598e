"""Add the pages to an application: they are discovered, and become routes of it."""

from __future__ import annotations

import secrets

from fastapi import FastAPI

from service.core.models.discovery import get_entry, import_all
from service.web import pages
from service.web.page import PageSet


def add_pages(app: FastAPI, *, token: str = "") -> FastAPI:
    """Add the pages to an application, if it has a database. Call it before the first request.

    `token`: opens the pages while there is no key; empty: nothing does.
    """
    if app.state.parts.database is None:
        return app
    page_sets = list_page_sets()
    app.state.local_token = token
    app.state.nav = sorted([one.nav for one in page_sets if one.nav is not None], key=lambda link: link.place)
    for one in sorted(page_sets, key=lambda one: one.is_last):
        app.router.routes.extend(one.build(app.state.parts))
    return app


def list_page_sets() -> list[PageSet]:
    """List the page sets of the modules in `service.web.pages`."""
    return [get_entry(module, "PAGES") for module in import_all(pages)]


def make_local_token() -> str:
    """Make the token that opens the pages of a service without keys to whoever started it."""
    return secrets.token_urlsafe(24)
