"""Pages for an application: they are found, and become routes of it."""

from __future__ import annotations

import secrets

from fastapi import FastAPI

from service.core.models.discovery import get_entry, import_all
from service.web import pages
from service.web.page import PageSet


def add_pages(app: FastAPI, *, token: str = "") -> FastAPI:
    """The same application with its pages, where it has a database. To be called before its first request.

    `token`: what opens them while there is no key; empty: nothing does.
    """
    if app.state.parts.database is None:
        return app
    found = list_page_sets()
    app.state.local_token = token
    app.state.nav = sorted([one.nav for one in found if one.nav is not None], key=lambda link: link.place)
    for one in sorted(found, key=lambda one: one.is_last):
        app.router.routes.extend(one.build(app.state.parts))
    return app


def list_page_sets() -> list[PageSet]:
    """Those of every module of `service.web.pages`."""
    return [get_entry(module, "PAGES") for module in import_all(pages)]


def make_local_token() -> str:
    """What opens the pages of a service without keys, to whoever started it."""
    return secrets.token_urlsafe(24)
