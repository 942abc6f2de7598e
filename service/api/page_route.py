"""Routes for people: opened by a cookie, never by a key in a header. Operations are the other way round."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope as AsgiScope

from service.store.access.callers import Scope

COOKIE = "callgrade_session"
CSRF_HEADER = "x-callgrade-csrf"
"""What shows the token of a session where there is no form."""

PageHandler = Callable[[Request], Awaitable[Response]]


class PageRoute(Route):
    """A page. Who asks is in `scope["state"]["caller"]`, UNKNOWN where nobody is signed in: `wrap` has to see to that."""

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
        """`needs`: the scope that opens it; None: any key's. `public`: opened without signing in too.

        `carries_body`: its form holds what else is the body of a request. Who sends one has signed in.
        """
        self.needs: Scope | None = needs
        self.public = public
        self.carries_body = carries_body and not public
        super().__init__(path, wrap(self, handler), methods=[method])


def read_cookie(asked: AsgiScope) -> str:
    """What the browser keeps of the session; empty where it keeps nothing."""
    return Request(asked).cookies.get(COOKIE, "")


def read_shown_session(asked: AsgiScope) -> str:
    """The session of a request to an operation that one of our own pages sends: it shows the token that its forms hold.

    Empty for any other. No page of elsewhere knows the token, or could send the header without being asked first.
    """
    session, shown = read_cookie(asked), Request(asked).headers.get(CSRF_HEADER, "")
    return session if session and hmac.compare_digest(shown.encode(), make_csrf(session).encode()) else ""


def make_csrf(session: str) -> str:
    """What a form of this session holds, which no page of elsewhere can know."""
    return sha256(f"csrf:{session}".encode()).hexdigest()
