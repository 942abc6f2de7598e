"""The start page: what is running, what ran last, the state of the judge, and a form that scores a pasted log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from service.api.page_route import PageRoute
from service.api.parts import ApiParts
from service.api.routes.scoring import EXAMPLE
from service.errors import CallgradeError
from service.problems import ProblemDetails, build_problem
from service.reading.bare_traces import read_pasted
from service.web.page import NavLink, PageSet, page, read_form, render
from service.web.trace.stored import build_stored_view
from service.wiring import build_limits


class StartPages:
    """The handlers over the parts of one application."""

    def __init__(self, parts: ApiParts) -> None:
        self._overview = parts.overview
        self._scoring = parts.scoring
        self._limits = build_limits(parts.settings)

    async def show_start(self, request: Request) -> Response:
        """Show the start page."""
        return await self._render(request)

    async def score_pasted(self, request: Request) -> Response:
        """Score what was pasted as POST /v1/score does, and show the result; keep it only if that is ticked."""
        form = read_form(request)
        text, keep = form.get("text", ""), "keep" in form
        try:
            pasted = await asyncio.to_thread(read_pasted, text, self._limits, keep=keep)
            answer = await self._scoring.score_data(request, pasted.body)
        except CallgradeError as error:
            return await self._render(request, text=text, keep=keep, refusal=build_problem(error))
        view = await asyncio.to_thread(
            lambda: build_stored_view(json.loads(pasted.body), json.loads(bytes(answer.body)), "")
        )
        kept = answer.headers.get("x-callgrade-score-id")
        return await asyncio.to_thread(render, request, "scored.html", pasted=pasted, view=view, keep=keep, kept=kept)

    async def _render(
        self, request: Request, *, text: str = "", keep: bool = False, refusal: ProblemDetails | None = None
    ) -> Response:
        overview = await self._overview.show_overview(request)
        return render(
            request,
            "start.html",
            status=200 if refusal is None else refusal.status,
            twin="/v1/overview",
            overview=overview,
            example=json.dumps(EXAMPLE, indent=1),
            text=text,
            keep=keep,
            refusal=refusal,
        )


def build_start_pages(parts: ApiParts) -> Sequence[PageRoute]:
    """Build the page, and the target of its form."""
    pages = StartPages(parts)
    return [
        page("/", pages.show_start),
        page("/score", pages.score_pasted, needs="score", method="POST", carries_body=True),
    ]


PAGES = PageSet(build_start_pages, NavLink(10, "Start", "/"))
