"""Labelling: one item at a time, blind; and settling what people differ on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from service.api.access import find_actor, find_caller
from service.api.page_route import PageRoute
from service.api.parts import ApiParts
from service.api.routes.labels import REQUEST, build_draft, choose_annotator, find_own_name
from service.core.models.validation import validate
from service.labelling import LabelTask
from service.store.labelling.labels import HumanLabel
from service.web.label_view import build_seen
from service.web.page import NavLink, PageSet, page, read_form, redirect, render

KEPT = ("criterion", "annotator")
"""What goes on from page to page."""
FIELDS = ("item", "criterion", "annotator", "label", "claim", "note", "source")


class LabelPages:
    """The handlers over the labels of one store."""

    def __init__(self, parts: ApiParts) -> None:
        self._labels = parts.labels

    async def show_next(self, request: Request) -> Response:
        """The next item, or the one that is named; beside it what came of the last one."""
        desk, tenant = self._labels.find_desk(), find_caller(request).tenant
        asked = _read_asked(request.query_params)
        annotator = choose_annotator(request, asked.get("annotator"))
        item, criterion = request.query_params.get("item"), asked.get("criterion")
        task: LabelTask | None
        if item and criterion:
            task = await self._labels.run(request, lambda: desk.open_task(tenant, item, criterion, annotator))
        else:
            task = await self._labels.run(request, lambda: desk.choose(tenant, criterion, annotator))
        known = None if task is None else task.progress
        last = await self._find_last(request, annotator)
        judge = None
        if last is not None:
            judge = await self._labels.run(request, lambda: desk.reveal(tenant, last.item, last.criterion))
        return render(
            request,
            "label.html",
            twin=f"/v1/labels/next?{urlencode(asked)}" if asked else "/v1/labels/next",
            task=task,
            seen=None if task is None else await asyncio.to_thread(build_seen, task),
            annotator=annotator,
            criterion=criterion,
            may_name=find_own_name(request) is None,
            asked=asked,
            last=last,
            judge=judge,
            progress=await self._labels.run(request, lambda: desk.list_progress(tenant, annotator, known=known)),
        )

    async def label(self, request: Request) -> Response:
        """Keeps what was said, and goes on to the next."""
        label, form = await self._put(request), read_form(request)
        asked = _read_asked({**form, "criterion": form.get("chosen", "")}) | {"last": label.id}
        return redirect(f"/label?{urlencode(asked)}")

    async def undo(self, request: Request) -> Response:
        """Takes a label back, and shows its item again."""
        desk, tenant, form = self._labels.find_desk(), find_caller(request).tenant, read_form(request)
        by, own, name = find_actor(request), find_own_name(request), form.get("label", "")
        gone = await self._labels.run(request, lambda: desk.labels.delete(tenant, name, by=by, annotator=own))
        asked = {"annotator": gone.annotator, "criterion": gone.criterion, "item": gone.item}
        return redirect(f"/label?{urlencode(asked)}")

    async def download(self, request: Request) -> Response:
        """What was labelled, for `callgrade calibrate run --labels`."""
        desk, tenant = self._labels.find_desk(), find_caller(request).tenant
        criterion = request.query_params.get("criterion") or None
        lines = await self._labels.run(request, lambda: b"".join(desk.export(tenant, criterion)))
        headers = {"content-disposition": 'attachment; filename="labels.jsonl"', "cache-control": "no-store"}
        return Response(lines, 200, headers, "application/x-ndjson")

    async def list_disputed(self, request: Request) -> Response:
        """What people differ on, with what each of them said."""
        desk, tenant = self._labels.find_desk(), find_caller(request).tenant
        criterion = request.query_params.get("criterion") or None
        annotator = choose_annotator(request, request.query_params.get("annotator") or None)
        found = await self._labels.run(request, lambda: desk.list_disagreements(tenant, criterion=criterion, limit=20))
        tasks = [
            await self._labels.run(request, lambda one=one: desk.open_task(tenant, one.item, one.criterion, annotator))
            for one in found.data
        ]
        seen = [await asyncio.to_thread(build_seen, task) for task in tasks]
        summary = await self._labels.run(request, lambda: desk.summarize(tenant, criterion, annotator))
        return render(
            request,
            "disagreements.html",
            twin="/v1/labels/disagreements",
            cases=list(zip(found.data, tasks, seen, strict=True)),
            more=found.has_more,
            summary=summary.data,
            annotator=annotator,
        )

    async def settle(self, request: Request) -> Response:
        """Keeps what decides, and shows what is left."""
        await self._put(request)
        asked = _read_asked(read_form(request))
        asked.pop("criterion", None)
        return redirect(f"/label/disagreements?{urlencode(asked)}")

    async def _put(self, request: Request) -> HumanLabel:
        desk, tenant, form = self._labels.find_desk(), find_caller(request).tenant, read_form(request)
        asked = validate(REQUEST, _build_request(form))
        draft, by = build_draft(asked, choose_annotator(request, asked.annotator)), find_actor(request)
        return await self._labels.run(request, lambda: desk.put(tenant, draft, by=by))

    async def _find_last(self, request: Request, annotator: str) -> HumanLabel | None:
        """The annotator's last label; none where nobody has just given one."""
        desk, tenant = self._labels.find_desk(), find_caller(request).tenant
        if (name := request.query_params.get("last")) is None:
            return None
        found = await self._labels.run(request, lambda: desk.labels.page(tenant, limit=1, annotator=annotator))
        return found.data[0] if found.data and found.data[0].id == name else None


def _read_asked(given: Mapping[str, str]) -> dict[str, str]:
    return {name: given[name] for name in KEPT if given.get(name)}


def _build_request(form: Mapping[str, str]) -> dict[str, object]:
    """The label as the API takes it. What is not filled in is not said."""
    told: dict[str, object] = {name: form[name] for name in FIELDS if form.get(name)}
    step = form.get("failing_step", "")
    if step.isascii() and step.isdigit() and form.get("label") != "pass":  # the page asks where it fails, if it does
        told["failing_step"] = int(step[:9]) - 1  # and counts from 1
    return told | {"blind": form.get("source") != "adjudication"}


def build_label_pages(parts: ApiParts) -> Sequence[PageRoute]:
    """The pages, and what their forms send."""
    pages = LabelPages(parts)
    return [
        page("/label", pages.show_next, needs="label"),
        page("/label", pages.label, needs="label", method="POST"),
        page("/label/export", pages.download, needs="label"),
        page("/label/undo", pages.undo, needs="label", method="POST"),
        page("/label/disagreements", pages.list_disputed, needs="label"),
        page("/label/disagreements", pages.settle, needs="label", method="POST"),
    ]


PAGES = PageSet(build_label_pages, NavLink(30, "Label", "/label", "label"))
