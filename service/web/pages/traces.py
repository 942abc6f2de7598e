"""The traces of a run: their list, and each of them."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from service.api.page_route import PageRoute
from service.api.parts import ApiParts
from service.api.queries import read_query
from service.api.routes.batch_items import ItemChoiceQuery, ItemPageQuery, build_choice
from service.store.items import count_items
from service.web.page import PageSet, build_twin, page, render


class TracePages:
    """The handlers over the items of batches."""

    def __init__(self, parts: ApiParts) -> None:
        self._batches = parts.batches

    async def list_traces(self, request: Request) -> Response:
        """The traces of a run, by what came of them."""
        batch = await self._batches.store.find(request)
        items = await self._batches.items.list_batch_items(request)
        choice = build_choice(read_query(request.query_params, ItemPageQuery))
        database = self._batches.store.jobs.database
        count = await self._batches.store.run_insisting(request, lambda: count_items(database, batch.id, choice))
        chosen = list_chosen(request)
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
        """One trace of a run, with its neighbours in the list that it was opened from."""
        batch = await self._batches.store.find(request)
        item = await self._batches.items.show_batch_item(request)
        base, query = f"/runs/{batch.id}/traces", urlencode(list_chosen(request))
        return render(
            request,
            "trace.html",
            twin=build_twin(request, f"/v1/batches/{batch.id}/items/{item.index}"),
            job=batch,
            item=item,
            base=base,
            query=f"?{query}" if query else "",
        )


def list_chosen(request: Request) -> dict[str, str]:
    """What the query says of the traces that are meant."""
    return {name: value for name, value in request.query_params.items() if name in ItemChoiceQuery.model_fields}


def build_trace_pages(parts: ApiParts) -> Sequence[PageRoute]:
    """Both pages."""
    pages = TracePages(parts)
    return [
        page("/runs/{batch_id}/traces", pages.list_traces, needs="batch"),
        page("/runs/{batch_id}/traces/{index}", pages.show_trace, needs="batch"),
    ]


PAGES = PageSet(build_trace_pages)
