"""Routes for people: a cookie opens them, never a key in a header. For API operations it is the other way round."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope as AsgiScope

from service.store.access.keys import Scope

COOKIE = "callgrade_session"
CSRF_HEADER = "x-callgrade-csrf"
"""The header with a session's CSRF token, for requests that come from no form."""

PageHandler = Callable[[Request], Awaitable[Response]]


class PageRoute(Route):
    """A page. `scope["state"]["caller"]` holds the caller, UNKNOWN if nobody is signed in; `wrap` must check it."""

    def __init__(  # noqa: PLR0913 (each by name)
        self,
        path: str,
        handler: PageHandler,
        *,
        needs: Scope | None = None,
        public: bool = False,
        method: str = "GET",
        carries_body: bool = False,
        wrap: Callable[[PageRoute, PageHandler], PageHandler],
    ) -> None:
        """`needs`: the scope that opens the page; None: any key does. `public`: it opens without signing in too.

        `carries_body`: its form carries what an API request has as its body; the sender must be signed in.
        """
        self.needs: Scope | None = needs
        self.public = public
        self.carries_body = carries_body and not public
        super().__init__(path, wrap(self, handler), methods=[method])


def read_cookie(scope: AsgiScope) -> str:
    """Read the session from the browser's cookie; empty if there is none."""
    return Request(scope).cookies.get(COOKIE, "")


def read_csrf_session(scope: AsgiScope) -> str:
    """Read the session of an API request that one of our own pages sends, with the CSRF token that its forms hold.

    Empty for any other request. A page of another site neither knows the token nor can send the header without a
    preflight.
    """
    session, token = read_cookie(scope), Request(scope).headers.get(CSRF_HEADER, "")
    return session if session and hmac.compare_digest(token.encode(), make_csrf(session).encode()) else ""


def make_csrf(session: str) -> str:
    """Build the CSRF token of a session's forms, which no other site can know."""
    return sha256(f"csrf:{session}".encode()).hexdigest()
