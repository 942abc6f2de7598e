"""Who may do what: denied unless a table here says otherwise.

What a request needs is decided by the route that will answer it, found as the router finds it, never by the text of its path.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Asked

from service.api.buckets import Buckets
from service.api.callers import Callers, Wait, key_in, peer_of
from service.api.foreign import refuse_foreign
from service.api.problems import refusal
from service.errors import CallgradeError
from service.io.store.callers import NAMELESS, Caller, Scope

PUBLIC = frozenset({"/livez", "/readyz"})
"""The routes that need no key."""

NEEDED: tuple[tuple[str, Scope | None], ...] = (
    ("/v1/score", "score"),
    ("/v1/summaries", "score"),
    ("/v1/rubrics", "score"),
    ("/v1/batches", "batch"),
    ("/v1/calibrations", "calibrate"),
    ("/metrics", "admin"),
    ("/openapi.json", None),
    ("/docs", None),
)
"""The scope that a route and those below it need; None: any key will do."""

NO_KEY = "no key came with the request; expected `Authorization: Bearer cg_...`"
WRONG_KEY = "the key is unknown here, revoked or expired; expected one that `callgrade keys list` shows"
"""The same for every kind of bad one."""

CHALLENGE = {"www-authenticate": 'Bearer realm="callgrade"'}


def needed(template: str) -> Scope | None:
    """The scope for a route by the template of its path; admin for one that nobody has thought of.

    >>> needed("/v1/score/many"), needed("/v1/scores"), needed("/docs")
    ('score', 'admin', None)
    """
    for start, scope in NEEDED:
        if template == start or template.startswith(f"{start}/"):
            return scope
    return "admin"


def caller_of(request: Request) -> Caller:
    """Who sends a request."""
    return request.scope.get("state", {}).get("caller", NAMELESS)


def payer_of(asked: Asked) -> str:
    """To whose account a request goes: its tenant's, or that of its address where nobody is asked for a key."""
    caller: Caller = asked.get("state", {}).get("caller", NAMELESS)
    return caller.tenant if caller.key_id else peer_of(asked)


class _Target(NamedTuple):
    """The route that will answer."""

    template: str | None
    """None where none will."""
    exact: bool
    """Whether it has this method."""


class Access:
    """Lets a request pass to the routes, with its Caller in `scope["state"]["caller"]`, or answers with what is missing.

    `callers` None: nobody is asked for a key. `opened`: the same while the store has no key. Who is not asked for one must not
    be a web page of elsewhere; `hosts` are names by which the service is called besides those of the loopback.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        routes: Sequence[BaseRoute],
        callers: Callers | None,
        opened: bool,
        hosts: Collection[str] = (),
        rates: Buckets | None,
    ) -> None:
        self.app = app
        self.hosts = hosts
        self.routes = routes
        self.callers = callers
        self.opened = opened
        self.rates = rates

    async def __call__(self, scope: Asked, receive: Receive, send: Send) -> None:
        """Passes one request on, or refuses it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._admit(scope, receive, send)
        else:  # we have no such routes
            await send({"type": "websocket.close", "code": 1008})

    async def _admit(self, scope: Asked, receive: Receive, send: Send) -> None:
        try:
            caller = await self._caller(scope)
            scope.setdefault("state", {})["caller"] = caller or NAMELESS
            if caller is not None and self.rates is not None:
                name = payer_of(scope)
                _count(self.rates, name)
                send = _telling(self.rates, name, send)
        except (HTTPException, CallgradeError) as error:
            await refusal(error)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    async def _caller(self, scope: Asked) -> Caller | None:
        """Who asks; None on a public route, where nobody is asked who they are."""
        target = self._target(scope)
        if target.exact and target.template in PUBLIC:
            return None
        if self.callers is None or (self.opened and not await self.callers.any_key()):
            refuse_foreign(scope["headers"], self.hosts)
            return NAMELESS
        caller = await self._known(self.callers, scope)
        if target.template is not None and not caller.may(scope_ := needed(target.template)):
            raise HTTPException(403, f"the key lacks the scope {scope_}")
        return caller

    async def _known(self, callers: Callers, scope: Asked) -> Caller:
        key = key_in(scope["headers"])
        found = None if key is None else await callers.of(key, peer_of(scope))
        if isinstance(found, Wait):
            raise HTTPException(429, "too many wrong keys from this address", _after(found.seconds))
        if found is None:
            raise HTTPException(401, NO_KEY if key is None else WRONG_KEY, CHALLENGE)
        return found

    def _target(self, scope: Asked) -> _Target:
        """As the router chooses: the first route with path and method, else the first with the path."""
        partly = _Target(None, False)
        for route in self.routes:
            match, _ = route.matches(scope)
            if match is Match.FULL:
                return _Target(getattr(route, "path", ""), True)
            if match is Match.PARTIAL and partly.template is None:
                partly = _Target(getattr(route, "path", ""), False)
        return partly


def _after(seconds: float) -> dict[str, str]:
    return {"retry-after": str(max(1, math.ceil(seconds)))}


def _count(rates: Buckets, tenant: str) -> None:
    if seconds := rates.take(tenant):
        detail = f"over {rates.per_minute} requests a minute"
        raise HTTPException(429, detail, _after(seconds) | _state(rates, tenant))


def _state(rates: Buckets, tenant: str) -> dict[str, str]:
    return {"ratelimit-limit": str(rates.per_minute), "ratelimit-remaining": str(rates.left(tenant))}


def _telling(rates: Buckets, tenant: str, send: Send) -> Send:
    """Adds to an answer how many more requests the tenant may send."""

    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            lines = [(name.encode(), value.encode()) for name, value in _state(rates, tenant).items()]
            message = {**message, "headers": [*message.get("headers", ()), *lines]}
        await send(message)

    return told
