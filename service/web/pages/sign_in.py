"""Sign in with an API key, or with the local token while there is no key; sign out."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from service.api.access import WRONG_KEY, find_actor, find_caller
from service.api.fairness import Threads
from service.api.key_cache import find_peer
from service.api.page_route import COOKIE, CSRF_HEADER, PageRoute, make_csrf, read_cookie
from service.api.parts import ApiParts
from service.store.access.audit import Actor
from service.store.access.keys import UNKNOWN
from service.store.access.sessions import Sessions
from service.web.page import PageSet, page, read_form, redirect, render

SESSION_HOURS = 12
HOUR_S = 3_600
WRONG_TOKEN = "the token is not the one that `callgrade serve` printed when it started"  # noqa: S105 (a text)


def build_sign_in_pages(parts: ApiParts) -> Sequence[PageRoute]:
    """Build the sign-in form, its target, and sign-out."""
    desk = SignInDesk(parts)
    return [
        page("/sign-in", desk.show_form, public=True),
        page("/sign-in", desk.sign_in, public=True, method="POST"),
        page("/sign-out", desk.sign_out, method="POST"),
        page("/sign-in/session", desk.show_session, public=True),
    ]


class SignInDesk:
    """The handlers over the keys and sessions of one database."""

    def __init__(self, parts: ApiParts) -> None:
        if parts.database is None or parts.keys is None or parts.sessions is None:
            raise ValueError("pages need a database")
        self._keys = parts.keys
        self._cache = parts.sessions
        self._sessions = Sessions(parts.database)
        self._threads = Threads(2, name="sessions")

    async def show_form(self, request: Request) -> Response:
        """Show the form; with the `?token=` of the printed address, go straight on to the start page."""
        if token := request.query_params.get("token"):
            return await self._enter(request, await self._check_token(request, token))
        return await self._render(request)

    async def sign_in(self, request: Request) -> Response:
        """Start a session for the key or token that was entered."""
        entered = read_form(request).get("key", "").strip()
        try:
            check = self._check_key if await self._keys.any_key() else self._check_token
            key_id = await check(request, entered)
        except HTTPException as error:
            return await self._render(request, problem=str(error.detail), status=error.status_code)
        return await self._enter(request, key_id)

    async def show_session(self, request: Request) -> Response:
        """Return the session's CSRF token, which our API page sends in place of a key; null if nobody is signed in."""
        token = None if find_caller(request) == UNKNOWN else make_csrf(read_cookie(request.scope))
        return JSONResponse({"header": CSRF_HEADER, "token": token}, headers={"cache-control": "no-store"})

    async def sign_out(self, request: Request) -> Response:
        """End the session, here and wherever else its cookie was copied to."""
        session = read_cookie(request.scope)
        await self._threads.run(find_peer(request.scope), partial(self._sessions.end, session, by=find_actor(request)))
        self._cache.forget(session)
        response = redirect("/sign-in")
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response

    async def _render(self, request: Request, *, problem: str | None = None, status: int = 200) -> Response:
        by_key = await self._keys.any_key()
        onwards = _read_next(request)
        return render(
            request, "sign_in.html", status=status, by_key=by_key, onwards=onwards, refusal=problem, hours=SESSION_HOURS
        )

    async def _check_key(self, _: Request, key: str) -> str:
        caller = await self._keys.authenticate(key)
        if caller is None:
            raise HTTPException(401, WRONG_KEY)
        return caller.key_id

    async def _check_token(self, request: Request, token: str) -> str:
        local_token = request.app.state.local_token
        if await self._keys.any_key():
            raise HTTPException(401, "there are keys now, so the token opens nothing; enter a key")
        if not local_token or not hmac.compare_digest(token.encode(), local_token.encode()):
            raise HTTPException(401, WRONG_TOKEN)
        return ""

    async def _enter(self, request: Request, key_id: str) -> Response:
        peer, lasts_s = find_peer(request.scope), SESSION_HOURS * HOUR_S
        by = Actor(f"key {key_id}" if key_id else "nobody", peer)
        token = await self._threads.run(peer, partial(self._sessions.create, key_id, lasts_s=lasts_s, by=by))
        response = redirect(_read_next(request))
        secure = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
        response.set_cookie(COOKIE, token, max_age=lasts_s, httponly=True, samesite="strict", secure=secure)
        return response


def _read_next(request: Request) -> str:
    """Read where to go after sign-in: only a path of ours, because other values could lead to another site."""
    form = getattr(request.state, "form", {})
    path = form.get("next") or request.query_params.get("next") or "/"
    is_local = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_local and "\\" not in path else "/"


PAGES = PageSet(build_sign_in_pages)
