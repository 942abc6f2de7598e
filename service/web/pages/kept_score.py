"""The pages of kept scores: their outcomes, and each with its trace and a way to label it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from service.api.page_route import PageRoute
from service.api.parts import ApiParts
from service.web.page import PageSet, build_twin, page, render
from service.web.pages.traces import read_item_choice
from service.web.trace.payloads import COMPLETE
from service.web.trace.stored import build_stored_view


def build_kept_score_pages(parts: ApiParts) -> Sequence[PageRoute]:
    """Build the list, and the page of one score."""

    async def show(request: Request) -> Response:
        score = json.loads(bytes((await parts.scores.show_score(request)).body))
        view = await asyncio.to_thread(build_stored_view, score["request"], score["report"], "", choices=COMPLETE)
        criteria = [one["id"] for one in score["report"]["criteria"]]
        name: str = score["id"]
        return await asyncio.to_thread(
            render, request, "kept.html", twin=f"/v1/scores/{name}", id=name, view=view, criteria=criteria
        )

    async def list_all(request: Request) -> Response:
        query = read_item_choice(request)
        return render(
            request,
            "scores.html",
            twin=build_twin(request, "/v1/scores" if request.url.query else "/v1/scores/breakdown"),
            scores=await parts.scores.list_scores(request),
            breakdown=await parts.scores.break_down_scores(request),
            chosen=query,
            query=urlencode(query),
            first="after" not in request.query_params,
        )

    return [page("/scores", list_all, needs="score"), page("/scores/{score_id}", show, needs="score")]


PAGES = PageSet(build_kept_score_pages)
