"""A score that somebody kept: its trace, and the way to label it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from service.api.page_route import PageRoute
from service.api.parts import ApiParts
from service.web.page import PageSet, page, render
from service.web.trace.payloads import COMPLETE
from service.web.trace.stored import build_stored_view


def build_kept_score_pages(parts: ApiParts) -> Sequence[PageRoute]:
    """The page of one."""

    async def show(request: Request) -> Response:
        found = json.loads(bytes((await parts.scores.show_score(request)).body))
        view = await asyncio.to_thread(build_stored_view, found["request"], found["report"], "", choices=COMPLETE)
        criteria = [one["id"] for one in found["report"]["criteria"]]
        name: str = found["id"]
        return await asyncio.to_thread(
            render, request, "kept.html", twin=f"/v1/scores/{name}", id=name, view=view, criteria=criteria
        )

    return [page("/scores/{score_id}", show, needs="score")]


PAGES = PageSet(build_kept_score_pages)
