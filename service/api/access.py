"""Who may do what: denied unless a table here says otherwise.

What a request needs is decided by the route that will answer it, found as the router finds it, never by the text of its path.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from service.api.fairness.buckets import Buckets
from service.api.foreign import refuse_foreign, refuse_host, refuse_origin
from service.api.key_cache import KeyCache, KeyThrottle, find_peer, read_key
from service.api.page_route import PageRoute, read_cookie, read_shown_session
from service.api.problems import render_refusal
from service.errors import CallgradeError
from service.store.access.audit import Actor
from service.store.access.callers import NAMELESS, UNKNOWN, Caller, Scope

PROBES = frozenset({"/livez", "/readyz"})
"""The routes of which nobody is asked who they are."""

PUBLIC = PROBES | {"/docs"}
"""The routes that need no key: the probes, and a page that holds nothing but a place to enter one."""

NEEDED: tuple[tuple[str, Scope | None], ...] = (
    ("/v1/score", "score"),
    ("/v1/scores", "score"),
    ("/v1/summaries", "score"),
    ("/v1/rubrics", "score"),
    ("/v1/usage", None),
    ("/v1/overview", None),
    ("/v1/batches", "batch"),
    ("/v1/calibrations", "calibrate"),
    ("/v1/fits", "calibrate"),
    ("/v1/judges", "calibrate"),
    ("/v1/labels", "label"),
    ("/metrics", "metrics"),
    ("/openapi.json", None),
)
"""The scope that a route and those below it need; None: any key will do."""

WRITTEN_BY_ADMINS = ("/v1/fits",)
"""The routes that those with their scope may read: what all tenants share is changed by an admin."""

NO_KEY = "no key came with the request; expected `Authorization: Bearer cg_...`"
WRONG_KEY = "the key is unknown here, revoked or expired; expected one that `callgrade keys list` shows"
"""The same for every kind of bad one."""

CHALLENGE = {"www-authenticate": 'Bearer realm="callgrade"'}


@lru_cache(maxsize=256)
def find_scope(template: str, method: str = "GET") -> Scope | None:
    """The scope for a route by the template of its path; admin for one that nobody has thought of.

    >>> find_scope("/v1/score/many"), find_scope("/v1/scoring"), find_scope("/openapi.json")
    ('score', 'admin', None)
    """
    if method not in ("GET", "HEAD") and template.startswith(WRITTEN_BY_ADMINS):
        return "admin"
    for start, scope in NEEDED:
        if template == start or template.startswith(f"{start}/"):
            return scope
    return "admin"


def find_caller(request: Request) -> Caller:
    """Who sends a request."""
    return request.scope.get("state", {}).get("caller", NAMELESS)


def find_actor(request: Request) -> Actor:
    """Who sends a request, for the audit log."""
    caller, client = find_caller(request), request.scope.get("client")
    return Actor(f"key {caller.key_id}" if caller.key_id else "nobody", client[0] if client else "")


def find_payer(asked: AsgiScope) -> str:
    """To whose account a request goes: its tenant's, or that of its address where nobody is asked for a key."""
    caller: Caller = asked.get("state", {}).get("caller", NAMELESS)
    return caller.tenant if caller.key_id else find_peer(asked)


class _Target(NamedTuple):
    """The route that will answer."""

    template: str | None
    """None where none will."""
    exact: bool
    """Whether it has this method."""
    is_page: bool = False


class Access:
    """Lets a request pass to the routes, with its Caller in `scope["state"]["caller"]`, or answers with what is missing.

    `callers` None: nobody is asked for a key. `opened`: the same while the store has no key. Who is not asked for one must not
    be a web page of elsewhere; `hosts` are names by which the service is called besides those of the loopback. `sessions`: those
    who are signed in to pages, which alone ask for it.
    """

    def __init__(  # noqa: PLR0913 (each by name)
        self,
        app: ASGIApp,
        *,
        routes: Sequence[BaseRoute],
        callers: KeyCache | None,
        sessions: KeyCache | None = None,
        opened: bool,
        hosts: Collection[str] = (),
        rates: Buckets | None,
    ) -> None:
        self.app = app
        self.hosts = hosts
        self.routes = routes
        self.callers = callers
        self.sessions = sessions
        self.opened = opened
        self.rates = rates

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Passes one request on, or refuses it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._admit(scope, receive, send)
        else:  # we have no such routes
            await send({"type": "websocket.close", "code": 1008})

    async def _admit(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        try:
            caller = await self._authenticate(scope)
            scope.setdefault("state", {})["caller"] = caller or NAMELESS
            if caller is not None and self.rates is not None:
                name = find_payer(scope)
                _count_request(self.rates, name)
                send = _add_rate_headers(self.rates, name, send)
        except (HTTPException, CallgradeError) as error:
            await render_refusal(error)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    async def _authenticate(self, scope: AsgiScope) -> Caller | None:
        """Who asks; None on a public route, where nobody is asked who they are."""
        target = self._find_target(scope)
        if target.exact and target.template in PROBES:
            return None
        without_key = self.callers is None or (self.opened and not await self.callers.any_key())
        if target.exact and target.is_page:
            return await self._find_signed_in(scope, without_key=without_key)
        if self.callers is None or without_key:
            refuse_foreign(scope["headers"], self.hosts)
            return NAMELESS
        if target.exact and target.template in PUBLIC:
            return None
        caller = await self._look_up_caller(self.callers, scope)
        if target.template is not None and not caller.may(scope_ := find_scope(target.template, scope["method"])):
            raise HTTPException(403, f"the key lacks the scope {scope_}")
        return caller

    async def _look_up_caller(self, callers: KeyCache, scope: AsgiScope) -> Caller:
        key = read_key(scope["headers"])
        if key is None and (session := read_shown_session(scope)) and self.sessions is not None:
            refuse_origin(scope["headers"])
            signed_in = await self.sessions.of(session, find_peer(scope))
            if isinstance(signed_in, Caller):
                return signed_in
        found = None if key is None else await callers.of(key, find_peer(scope))
        if isinstance(found, KeyThrottle):
            raise HTTPException(429, "too many wrong keys from this address", _build_retry_header(found.seconds))
        if found is None:
            raise HTTPException(401, NO_KEY if key is None else WRONG_KEY, CHALLENGE)
        return found

    async def _find_signed_in(self, scope: AsgiScope, *, without_key: bool) -> Caller:
        """Who opens a page. What another site sends is no page that somebody opens."""
        if without_key:
            refuse_host([value.decode("latin-1") for name, value in scope["headers"] if name == b"host"], self.hosts)
        if scope["method"] != "GET":
            refuse_origin(scope["headers"])
        session = read_cookie(scope)
        found = await self.sessions.of(session, find_peer(scope)) if session and self.sessions is not None else None
        return found if isinstance(found, Caller) else UNKNOWN

    def _find_target(self, scope: AsgiScope) -> _Target:
        """As the router chooses: the first route with path and method, else the first with the path."""
        partly = _Target(None, False)
        for route in self.routes:
            match, _ = route.matches(scope)
            if match is Match.FULL:
                return _Target(getattr(route, "path", ""), True, isinstance(route, PageRoute))
            if match is Match.PARTIAL and partly.template is None:
                partly = _Target(getattr(route, "path", ""), False)
        return partly


def _build_retry_header(seconds: float) -> dict[str, str]:
    return {"retry-after": str(max(1, math.ceil(seconds)))}


def _count_request(rates: Buckets, tenant: str) -> None:
    if seconds := rates.take(tenant):
        detail = f"over {rates.per_minute} requests a minute"
        raise HTTPException(429, detail, _build_retry_header(seconds) | _build_rate_headers(rates, tenant))


def _build_rate_headers(rates: Buckets, tenant: str) -> dict[str, str]:
    return {"ratelimit-limit": str(rates.per_minute), "ratelimit-remaining": str(rates.count_left(tenant))}


def _add_rate_headers(rates: Buckets, tenant: str, send: Send) -> Send:
    """Adds to an answer how many more requests the tenant may send."""

    async def send_with_rates(message: Message) -> None:
        if message["type"] == "http.response.start":
            lines = [(name.encode(), value.encode()) for name, value in _build_rate_headers(rates, tenant).items()]
            message = {**message, "headers": [*message.get("headers", ()), *lines]}
        await send(message)

    return send_with_rates
