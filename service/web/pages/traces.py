"""Scored traces: those of a batch and kept scores, each as a list, and the page of each."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from service.api.page_route import PageRoute
from service.api.parts import ApiParts
from service.api.routes.batch_items import ItemChoiceQuery, ItemPageQuery, build_choice
from service.api.routes.batch_reading import MAX_ITEMS
from service.api.routes.scores import ScorePageQuery
from service.store.jobs.items import count_items
from service.web.page import PageSet, build_twin, page, read_query, render
from service.web.trace.stored import build_stored_view


class TracePages:
    """The handlers over the items of batches."""

    def __init__(self, parts: ApiParts) -> None:
        self._batches = parts.batches
        self._scores = parts.scores

    async def list_traces(self, request: Request) -> Response:
        """List the traces of a batch, by outcome."""
        batch = await self._batches.store.find(request, request.path_params["batch_id"])
        query = read_query(request, ItemPageQuery)
        items, choice = await self._batches.items.list_batch_items(request, batch.id, query), build_choice(query)
        database = self._batches.store.jobs.database
        count = await self._batches.store.run(request, lambda: count_items(database, batch.id, choice))
        chosen = _read_choice(request)
        return render(
            request,
            "traces.html",
            twin=build_twin(request, f"/v1/batches/{batch.id}/items"),
            job=batch,
            items=items,
            count=count,
            chosen=chosen,
            query=urlencode(chosen),
            first="after" not in request.query_params,
        )

    async def show_trace(self, request: Request) -> Response:
        """Show one trace of a batch, with links to its neighbours in the list that it was opened from."""
        batch = await self._batches.store.find(request, request.path_params["batch_id"])
        place, choice = request.path_params["index"], read_query(request, ItemChoiceQuery)
        index = int(place) if re.fullmatch("[0-9]{1,9}", place) else MAX_ITEMS  # where no item is
        item = await self._batches.items.show_batch_item(request, batch.id, index, choice)
        base, query = f"/batches/{batch.id}/traces", urlencode(_read_choice(request))
        view = None
        if item.report is not None:
            view = await asyncio.to_thread(build_stored_view, item.request, item.report, item.custom_id)
        return await asyncio.to_thread(
            render,
            request,
            "trace.html",
            twin=build_twin(request, f"/v1/batches/{batch.id}/items/{item.index}"),
            job=batch,
            item=item,
            view=view,
            base=base,
            query=f"?{query}" if query else "",
        )

    async def list_scores(self, request: Request) -> Response:
        """List kept scores, by outcome."""
        chosen = _read_choice(request)
        return render(
            request,
            "scores.html",
            twin=build_twin(request, "/v1/scores" if request.url.query else "/v1/scores/breakdown"),
            scores=await self._scores.list_scores(request, read_query(request, ScorePageQuery)),
            breakdown=await self._scores.break_down_scores(request),
            chosen=chosen,
            query=urlencode(chosen),
            first="after" not in request.query_params,
        )

    async def show_score(self, request: Request) -> Response:
        """Show a kept score with its trace, and a way to label it."""
        score = json.loads(bytes((await self._scores.show_score(request, request.path_params["score_id"])).body))
        view = await asyncio.to_thread(build_stored_view, score["request"], score["report"], "")
        criteria = [one["id"] for one in score["report"]["criteria"]]
        name: str = score["id"]
        return await asyncio.to_thread(
            render, request, "kept.html", twin=f"/v1/scores/{name}", id=name, view=view, criteria=criteria
        )


def _read_choice(request: Request) -> dict[str, str]:
    """Read the part of the query that chooses traces."""
    return {name: value for name, value in request.query_params.items() if name in ItemChoiceQuery.model_fields}


def build_trace_pages(parts: ApiParts) -> Sequence[PageRoute]:
    """Build the pages, and the downloads of what they cut."""
    pages = TracePages(parts)
    return [
        page("/batches/{batch_id}/traces", pages.list_traces, needs="batch"),
        page("/batches/{batch_id}/traces/{index}", pages.show_trace, needs="batch"),
        page("/scores", pages.list_scores, needs="score"),
        page("/scores/{score_id}", pages.show_score, needs="score"),
    ]


PAGES = PageSet(build_trace_pages)
