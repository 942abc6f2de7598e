"""Labelling, one item at a time and blind: an item as an annotator sees it; and settling what people differ on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast
from urllib.parse import urlencode

from pydantic import JsonValue
from starlette.requests import Request
from starlette.responses import Response

from service.api.access import find_actor, find_caller
from service.api.page_route import PageRoute
from service.api.parts import ApiParts
from service.api.routes.labels import REQUEST, build_draft, choose_annotator, find_own_name
from service.calibration.labelling import read_subject_trace
from service.core.models.validation import validate
from service.core.trace import Step, Trace
from service.errors import InputError
from service.labelling.desk import LabelTask
from service.store.labelling.labels import HumanLabel
from service.web.page import NavLink, PageSet, page, read_form, redirect, render
from service.web.trace.marks import escape_invisible
from service.web.trace.payloads import FOLD_CHARS, format_compact

CARRIED_FIELDS = ("criterion", "annotator")
"""The fields that are carried from page to page."""
FIELDS = ("item", "criterion", "annotator", "label", "claim", "note", "source")


class LabelPages:
    """The handlers over the labels of one store."""

    def __init__(self, parts: ApiParts) -> None:
        self._labels = parts.labels

    async def show_next(self, request: Request) -> Response:
        """Show the next item, or the one that is named, and above it the last label."""
        desk, tenant = self._labels.find_store(), find_caller(request).tenant
        carried = _read_carried(request.query_params)
        annotator = choose_annotator(request, carried.get("annotator"))
        item, criterion = request.query_params.get("item"), carried.get("criterion")
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
            twin=f"/v1/labels/next?{urlencode(carried)}" if carried else "/v1/labels/next",
            task=task,
            view=None if task is None else await asyncio.to_thread(build_item_view, task),
            annotator=annotator,
            criterion=criterion,
            may_name=find_own_name(request) is None,
            carried=carried,
            last=last,
            judge=judge,
            progress=await self._labels.run(request, lambda: desk.list_progress(tenant, annotator, known=known)),
        )

    async def label(self, request: Request) -> Response:
        """Store a label, and go on to the next item."""
        label, form = await self._put(request), read_form(request)
        carried = _read_carried({**form, "criterion": form.get("chosen", "")}) | {"last": label.id}
        return redirect(f"/label?{urlencode(carried)}")

    async def undo(self, request: Request) -> Response:
        """Delete a label, and show its item again."""
        desk, tenant, form = self._labels.find_store(), find_caller(request).tenant, read_form(request)
        by, own, name = find_actor(request), find_own_name(request), form.get("label", "")
        deleted = await self._labels.run(request, lambda: desk.labels.delete(tenant, name, by=by, annotator=own))
        query = {"annotator": deleted.annotator, "criterion": deleted.criterion, "item": deleted.item}
        return redirect(f"/label?{urlencode(query)}")

    async def download(self, request: Request) -> Response:
        """Download the labels, for `callgrade calibrate run --labels`."""
        desk, tenant = self._labels.find_store(), find_caller(request).tenant
        criterion = request.query_params.get("criterion") or None
        lines = await self._labels.run(request, lambda: b"".join(desk.export(tenant, criterion)))
        headers = {"content-disposition": 'attachment; filename="labels.jsonl"', "cache-control": "no-store"}
        return Response(lines, 200, headers, "application/x-ndjson")

    async def list_disputed(self, request: Request) -> Response:
        """List what people differ on, with everybody's labels."""
        desk, tenant = self._labels.find_store(), find_caller(request).tenant
        criterion = request.query_params.get("criterion") or None
        annotator = choose_annotator(request, request.query_params.get("annotator") or None)
        page = await self._labels.run(request, lambda: desk.list_disagreements(tenant, criterion=criterion, limit=20))
        tasks = [
            await self._labels.run(request, lambda one=one: desk.open_task(tenant, one.item, one.criterion, annotator))
            for one in page.data
        ]
        views = [await asyncio.to_thread(build_item_view, task) for task in tasks]
        summary = await self._labels.run(request, lambda: desk.summarize(tenant, criterion, annotator))
        return render(
            request,
            "disagreements.html",
            twin="/v1/labels/disagreements",
            cases=list(zip(page.data, tasks, views, strict=True)),
            more=page.has_more,
            summary=summary.data,
            annotator=annotator,
        )

    async def settle(self, request: Request) -> Response:
        """Store the label that decides, and show what is left."""
        await self._put(request)
        carried = _read_carried(read_form(request))
        carried.pop("criterion", None)
        return redirect(f"/label/disagreements?{urlencode(carried)}")

    async def _put(self, request: Request) -> HumanLabel:
        desk, tenant, form = self._labels.find_store(), find_caller(request).tenant, read_form(request)
        label_request = validate(REQUEST, _build_request(form))
        draft, by = build_draft(label_request, choose_annotator(request, label_request.annotator)), find_actor(request)
        return await self._labels.run(request, lambda: desk.put(tenant, draft, by=by))

    async def _find_last(self, request: Request, annotator: str) -> HumanLabel | None:
        """Find the annotator's last label; None if the address names no label just given."""
        desk, tenant = self._labels.find_store(), find_caller(request).tenant
        if (name := request.query_params.get("last")) is None:
            return None
        labels = await self._labels.run(request, lambda: desk.labels.page(tenant, limit=1, annotator=annotator))
        return labels.data[0] if labels.data and labels.data[0].id == name else None


def _read_carried(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: fields[name] for name in CARRIED_FIELDS if fields.get(name)}


def _build_request(form: Mapping[str, str]) -> dict[str, object]:
    """Build the label as the API takes it; fields left empty are absent."""
    label_request: dict[str, object] = {name: form[name] for name in FIELDS if form.get(name)}
    step = form.get("failing_step", "")
    if step.isascii() and step.isdigit() and form.get("label") != "pass":  # a label "pass" has no failing step
        label_request["failing_step"] = int(step[:9]) - 1  # the page counts from 1
    return label_request | {"blind": form.get("source") != "adjudication"}


def build_label_pages(parts: ApiParts) -> Sequence[PageRoute]:
    """Build the pages, and the routes of their forms."""
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


MAX_PARTS = 1_000
"""Most parts that a page shows; of more, it shows the first and the last."""
MAX_PART_CHARS = 64_000
"""Most characters of one part that a page shows."""
MAX_PAGE_CHARS = 2_000_000
"""Most characters of all parts together; beyond it, only the head of each part is shown."""
HEAD_CHARS = 200
MAX_STEPS = 200
"""Most steps that are listed to choose from; of more, the number is typed."""


class ItemPart(NamedTuple):
    """One thing that was said, called or returned."""

    role: str
    """user, assistant, system, call, result or error; gap: parts are left out here."""
    text: str
    step: int | None = None
    tool: str = ""
    last: bool = False
    """Whether it is the last text of the assistant."""
    left_out: int = 0
    """Characters left out at its end; of a gap, parts."""

    @property
    def is_folded(self) -> bool:
        """Whether it is too long to be shown unfolded."""
        return len(self.text) > FOLD_CHARS


class ItemView(NamedTuple):
    """What there is to look at. No parts: the trace was deleted."""

    parts: tuple[ItemPart, ...]
    steps: tuple[tuple[int, str], ...] = ()
    """Each step with its tool, if they are few enough to choose from."""
    length: int = 0
    """The number of steps."""


def build_item_view(task: LabelTask) -> ItemView:
    """Build what an annotator looks at."""
    document = task.document
    if document is not None and "trace" not in document:
        answer = ItemPart("assistant", str(document.get("answer") or ""), last=True)
        return ItemView(_shorten((ItemPart("result", _spell(document.get("payload"))), answer)))
    sent = cast("JsonValue", task.request or document)
    try:
        trace = read_subject_trace(cast("JsonValue", task.request), document)
    except InputError:
        return ItemView(_shorten((ItemPart("trace", format_compact(sent)),)))
    if trace is None:
        return ItemView(())
    parts = _shorten(_leave_out(_mark_last(tuple(_list_parts(trace)))))
    steps = [(one.index, one.call.name) for one in trace.steps] if len(trace.steps) <= MAX_STEPS else []
    return ItemView(parts, tuple(steps), len(trace.steps))


def _leave_out(parts: tuple[ItemPart, ...]) -> tuple[ItemPart, ...]:
    """Keep the first and the last of very many parts."""
    if len(parts) <= MAX_PARTS:
        return parts
    half = MAX_PARTS // 2
    return (*parts[:half], ItemPart("gap", "", left_out=len(parts) - 2 * half), *parts[-half:])


def _shorten(parts: tuple[ItemPart, ...]) -> tuple[ItemPart, ...]:
    """Cut each text to what a page can hold, and spell out characters that cannot be seen."""
    left, short = MAX_PAGE_CHARS, list[ItemPart]()
    for one in parts:
        most = max(HEAD_CHARS, min(MAX_PART_CHARS, left))
        left -= min(len(one.text), most)
        cut = len(one.text) - most
        short.append(one._replace(text=escape_invisible(one.text[:most]), left_out=cut if cut > 0 else one.left_out))
    return tuple(short)


def _spell(value: JsonValue) -> str:
    return value if isinstance(value, str) else format_compact(value)


def _list_parts(trace: Trace) -> Iterator[ItemPart]:
    by_message: dict[int, list[Step]] = {}
    for step in trace.steps:
        by_message.setdefault(step.message, []).append(step)
    for at, message in enumerate(trace.messages):
        if message.text:
            yield ItemPart(message.role, message.text)
        for step in by_message.pop(at, ()):
            yield from _list_step(step)
    for steps in by_message.values():
        for step in steps:
            yield from _list_step(step)


def _list_step(step: Step) -> Iterator[ItemPart]:
    yield ItemPart("call", _spell(cast("JsonValue", step.call.arguments)), step.index, step.call.name)
    if step.result is not None:
        role = "error" if step.result.is_error else "result"
        yield ItemPart(role, _spell(step.result.content), step.index, step.call.name)


def _mark_last(parts: tuple[ItemPart, ...]) -> tuple[ItemPart, ...]:
    last = max([at for at, one in enumerate(parts) if one.role == "assistant"], default=None)
    return tuple([one._replace(last=True) if at == last else one for at, one in enumerate(parts)])
