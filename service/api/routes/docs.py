"""The API documentation page: it reads this service's OpenAPI document with the key that is entered, and shows it.

The page is one file that refers to no other. It holds nothing secret, so it needs no key; what it shows does.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from service.api.page_route import PageRoute

PAGES = Path(__file__).parent.parent / "pages"
BASE = PAGES.parents[1] / "web" / "static" / "base.css"
"""The style that all pages share."""

HOME = '<a class="brand" href="/">callgrade</a> <a href="/">Start</a>'

POLICY = (
    "default-src 'none'",
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
)
"""What the page may do besides running its own script and style: call this service."""


def build_docs_route() -> Route:
    """Build the route of the page, which is no operation of the contract."""
    return Route("/docs", show_docs, methods=["GET"])


async def show_docs(request: Request) -> Response:
    """Return the page."""
    text, policy = _build_page(any(isinstance(route, PageRoute) for route in request.app.routes))
    headers = {
        "content-security-policy": policy,
        "cross-origin-opener-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "cache-control": "no-cache",
    }
    return Response(text, headers=headers, media_type="text/html")


@cache
def _build_page(among_pages: bool) -> tuple[bytes, str]:  # noqa: FBT001 (a cache key)
    """Build the page, and a policy that runs its own script and style by their digests, and nothing else.

    `among_pages`: whether there is a start page to link back to.
    """
    home = HOME if among_pages else '<span class="brand">callgrade</span>'
    base, own_style, script = (file.read_text("utf-8") for file in (BASE, PAGES / "docs.css", PAGES / "docs.js"))
    style = base + own_style
    text = (
        (PAGES / "docs.html").read_text("utf-8").replace("HOME", home).replace("STYLE", style).replace("SCRIPT", script)
    )
    sources = f"script-src '{_digest(script)}'", f"style-src '{_digest(style)}'"
    return text.encode(), "; ".join((*POLICY, *sources))


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
