"""Access control: a request is denied unless a table here allows it.

The scope a request needs depends on the route that will answer it, found as the router finds it, never on the text of
its path.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import BaseRoute, Match
from starlette.types import Scope as AsgiScope

from service.api.cross_site import refuse_cross_site, refuse_host, refuse_origin
from service.api.key_cache import KeyCache, find_peer, read_key
from service.api.page_route import PageRoute, read_cookie, read_csrf_session
from service.store.access.audit import Actor
from service.store.access.keys import NAMELESS, UNKNOWN, Caller, Scope

PROBES = frozenset({"/livez", "/readyz"})
"""The routes that never ask who is calling."""

PUBLIC = PROBES | {"/docs"}
"""The routes that need no key: the probes, and a page that holds nothing but a field to enter one."""

SCOPES: tuple[tuple[str, Scope | None], ...] = (
    ("/v1/score", "score"),
    ("/v1/scores", "score"),
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
"""The scope that a route and those below it need; None: any key."""

ADMIN_WRITTEN = ("/v1/fits",)
"""Routes that their scope lets a key read and only an admin may write: all tenants share what they hold."""

NO_KEY = "no key came with the request; expected `Authorization: Bearer cg_...`"
WRONG_KEY = "the key is unknown here, revoked or expired; expected one that `callgrade keys list` shows"
"""The same for every kind of bad key."""

CHALLENGE = {"www-authenticate": 'Bearer realm="callgrade"'}


@lru_cache(maxsize=256)
def find_scope(template: str, method: str = "GET") -> Scope | None:
    """Return the scope that a route needs, by its path template; admin for a route the table does not list.

    >>> find_scope("/v1/rubrics/{rubric_id}"), find_scope("/v1/scoring"), find_scope("/openapi.json")
    ('score', 'admin', None)
    """
    if method not in ("GET", "HEAD") and template.startswith(ADMIN_WRITTEN):
        return "admin"
    for start, scope in SCOPES:
        if template == start or template.startswith(f"{start}/"):
            return scope
    return "admin"


def find_caller(request: Request) -> Caller:
    """Return the caller of a request."""
    return request.scope.get("state", {}).get("caller", NAMELESS)


def find_tenant(request: Request) -> str:
    """Return the tenant of a request's caller."""
    return find_caller(request).tenant


def find_actor(request: Request) -> Actor:
    """Return the caller of a request, for the audit log."""
    caller, client = find_caller(request), request.scope.get("client")
    return Actor(f"key {caller.key_id}" if caller.key_id else "nobody", client[0] if client else "")


def find_payer(scope: AsgiScope) -> str:
    """Return the account that a request counts against: its tenant, or its address if it needs no key."""
    caller: Caller = scope.get("state", {}).get("caller", NAMELESS)
    return caller.tenant if caller.key_id else find_peer(scope)


class Access:
    """Finds who is calling, and what route will answer.

    `keys` None: no request needs a key. `open_without_keys`: the same while the store has no key. A request that needs
    no key must not come from a web page of another site; `hosts` are names of the service besides the loopback's.
    `sessions`: who is signed in to the pages; used for pages, and for API requests that our pages send.
    """

    def __init__(
        self,
        *,
        routes: Sequence[BaseRoute],
        keys: KeyCache | None,
        sessions: KeyCache | None = None,
        open_without_keys: bool,
        hosts: Collection[str] = (),
    ) -> None:
        self.hosts = hosts
        self.routes = routes
        self.keys = keys
        self.sessions = sessions
        self.open_without_keys = open_without_keys

    async def __call__(self, scope: AsgiScope) -> Caller:
        """Find who is calling; NAMELESS on a public route, which asks nobody. Put the route in `scope["route"]`.

        HTTPException or CallgradeError if the caller may not call it.
        """
        route, is_exact = self._find_route(scope)
        template = None if route is None else getattr(route, "path", "")
        if route is not None:
            scope["route"] = route  # the log and the metrics name it, whatever becomes of the request
        if is_exact and template in PROBES:
            return NAMELESS
        needs_no_key = self.keys is None or (self.open_without_keys and not await self.keys.any_key())
        if is_exact and isinstance(route, PageRoute):
            return await self._find_signed_in(scope, needs_no_key=needs_no_key)
        if self.keys is None or needs_no_key:
            refuse_cross_site(scope["headers"], self.hosts)
            return NAMELESS
        if is_exact and template in PUBLIC:
            return NAMELESS
        caller = await self._look_up_caller(self.keys, scope)
        if template is not None and not caller.may(needed := find_scope(template, scope["method"])):
            raise HTTPException(403, f"the key lacks the scope {needed}")
        return caller

    async def _look_up_caller(self, keys: KeyCache, scope: AsgiScope) -> Caller:
        key = read_key(scope["headers"])
        if key is None and (session := read_csrf_session(scope)) and self.sessions is not None:
            refuse_origin(scope["headers"])
            signed_in = await self.sessions.authenticate(session)
            if signed_in is not None:
                return signed_in
        caller = None if key is None else await keys.authenticate(key)
        if caller is None:
            raise HTTPException(401, NO_KEY if key is None else WRONG_KEY, CHALLENGE)
        return caller

    async def _find_signed_in(self, scope: AsgiScope, *, needs_no_key: bool) -> Caller:
        """Find who opens a page. A request sent by another site does not count as opening one."""
        if needs_no_key:
            refuse_host([value.decode("latin-1") for name, value in scope["headers"] if name == b"host"], self.hosts)
        if scope["method"] != "GET":
            refuse_origin(scope["headers"])
        session = read_cookie(scope)
        if not session or self.sessions is None:
            return UNKNOWN
        return await self.sessions.authenticate(session) or UNKNOWN

    def _find_route(self, scope: AsgiScope) -> tuple[BaseRoute | None, bool]:
        """Choose as the router does: the first route that matches path and method, else the first with the path.

        Returns it, None if there is none, and whether it accepts the method.
        """
        partly = None
        for route in self.routes:
            match, _ = route.matches(scope)
            if match is Match.FULL:
                return route, True
            if match is Match.PARTIAL and partly is None:
                partly = route
        return partly, False
