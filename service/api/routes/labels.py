"""Labels over HTTP: what to label next, what was said, how far people agree, and labelled sets in and out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, model_validator
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from service.api.access import find_actor, find_caller, find_payer
from service.api.body import read_body
from service.api.fairness.threads import Threads
from service.api.operations import TEXT, Answer, Operation, RequestBody, describe_named
from service.api.queries import read_query
from service.api.uploads import is_packed, read_form, receive
from service.core.models.kinds import FrozenModel
from service.core.models.validation import validate
from service.jobs.admission import PATIENCE
from service.jobs.calibrations import MAX_BYTES
from service.jobs.spool import Spool
from service.labelling import (
    Between,
    LabelDesk,
    LabelledPage,
    LabelSummary,
    LabelTask,
    RevealedJudge,
)
from service.reading.strict_json import Limits, parse
from service.store.database import insist
from service.store.labelling.drafts import LabelDraft, LabelSource, Word
from service.store.labelling.labels import HumanLabel, LabelList

T = TypeVar("T")

NO_STORE = "labels need a database, and none is open here"
NDJSON = "application/x-ndjson"
Name = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f]+$")]

EXAMPLE = {
    "item": "batch_019aa5b3c4d000112233445566778899/0",
    "criterion": "grounded",
    "label": "fail",
    "claim": "cost $77.00",
}


class LabelRequest(FrozenModel):
    """What an annotator says of an item. It takes the place of what they said of the same item, criterion and step before."""

    item: Name
    """`BATCH/POSITION` of a batch's item, the id of a kept score, or the id of an imported item"""
    criterion: Name
    label: Word
    """unsure is kept, and is on neither side"""
    annotator: Name | None = None
    """Who says it: another than the key that the request comes with only for an admin. Absent: that key"""
    step: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """The step that is labelled, from 0. Absent: the whole trace"""
    value: Annotated[float, Field(ge=0, le=1)] | None = None
    """Where the menu of the criterion is graded, the place on it"""
    failing_step: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Where it fails: the step, from 0"""
    claim: str = Field(default="", max_length=2_000)
    """Where it fails: the words of the answer"""
    note: str = Field(default="", max_length=10_000)
    blind: bool = False
    """Whether it is given before the judge's word was shown"""
    source: LabelSource = "direct"
    """How it came to the label, as `next` told it; what was not its turn is kept as direct"""

    @model_validator(mode="after")
    def _fails_where_it_fails(self) -> LabelRequest:
        if self.label == "pass" and self.failing_step is not None:
            raise ValueError("`failing_step` says where it fails, and the label is pass")
        return self


@dataclass(frozen=True, slots=True)
class LabelReply:
    """A label that was kept, and what the judge had said; null where none has."""

    label: HumanLabel
    judge: RevealedJudge | None


@dataclass(frozen=True, slots=True)
class LabelImport:
    """What was taken in."""

    items: int
    labels: int
    predictions: int


class LabelPageQuery(FrozenModel):
    """Which labels are given."""

    limit: int = Field(default=100, ge=1, le=1_000)
    """Labels in the answer at most; absent: 100"""
    after: Annotated[str, Field(pattern="^label_[0-9a-f]+$")] | None = None
    """The id of a label; those older than it are given"""
    criterion: str | None = None
    """The criterion of those that are given"""
    annotator: str | None = None
    """Who gave them"""
    item: str | None = None
    """What they are of"""


class NextQuery(FrozenModel):
    """Who labels what."""

    criterion: str | None = None
    """Absent: the one of which most items wait for a human, else the one with most items"""
    annotator: str | None = None
    """Absent: the key that the request comes with"""


class CriterionQuery(FrozenModel):
    """Which labels are looked at."""

    criterion: str | None = None
    """Absent: all"""


class DisagreementQuery(FrozenModel):
    """Which disagreements are given."""

    criterion: str | None = None
    """Absent: all"""
    between: Between = "annotators"
    """annotators: people who differ, where nobody has settled it. judge: people who say another thing than the judge"""
    limit: int = Field(default=100, ge=1, le=1_000)
    """Items in the answer at most; absent: 100"""
    after: str | None = None
    """The id of the first label of an item; those after it are given"""


REQUEST: TypeAdapter[LabelRequest] = TypeAdapter(LabelRequest)


class LabelRoutes:
    """The handlers over one store; where there is none each of them answers 503."""

    def __init__(self, desk: LabelDesk | None, limits: Limits) -> None:
        self._desk = desk
        self._limits = limits
        self._threads = Threads(4, name="labels")

    def all(self) -> list[Operation]:
        """The routes, each with what it takes and gives."""
        named = describe_named("label_id", "The id of a label", "label_019aa5b3c4d0001122334455667788")
        exported = [Answer({NDJSON: TEXT | {"description": "Lines of `LabelledItem`, and of `Prediction`"}})]
        taken = RequestBody(None, lines="lines of `LabelledItem`, and of `Prediction` (those with `raw`)")
        one = RequestBody(LabelRequest, EXAMPLE)
        return [
            Operation("POST", "/v1/labels", self.put_label, LabelReply, 404, 422, 503, takes=one),
            Operation("GET", "/v1/labels", self.list_labels, LabelList, 422, 503, query=LabelPageQuery),
            Operation("GET", "/v1/labels/next", self.choose_next_label, LabelTask, 404, 422, 503, query=NextQuery),
            Operation(
                "GET", "/v1/labels/agreement", self.measure_agreement, LabelSummary, 422, 503, query=CriterionQuery
            ),
            Operation(
                *("GET", "/v1/labels/disagreements", self.list_disagreements, LabelledPage, 422, 503),
                query=DisagreementQuery,
            ),
            Operation("GET", "/v1/labels/export", self.export_labels, exported, 422, 503, query=CriterionQuery),
            Operation("POST", "/v1/labels/import", self.import_labels, LabelImport, 422, 503, takes=taken),
            Operation(
                "DELETE",
                "/v1/labels/{label_id}",
                self.delete_label,
                [Answer({}, 204, "It is taken back")],
                *(404, 503),
                parameters=[named],
            ),
        ]

    async def put_label(self, request: Request) -> LabelReply:
        """Label an item, and learn what the judge had said. The same again changes nothing."""
        desk, caller = self.find_desk(), find_caller(request)
        asked = validate(REQUEST, parse(await read_body(request, self._limits), self._limits))
        draft, by = build_draft(asked, choose_annotator(request, asked.annotator)), find_actor(request)
        label = await self.run(request, lambda: desk.put(caller.tenant, draft, by=by))
        judge = await self.run(request, lambda: desk.reveal(caller.tenant, label.item, label.criterion))
        return LabelReply(label, judge)

    async def list_labels(self, request: Request) -> LabelList:
        """List labels, newest first."""
        desk, tenant = self.find_desk(), find_caller(request).tenant
        asked = read_query(request.query_params, LabelPageQuery).model_dump()
        return await self.run(request, lambda: desk.labels.page(tenant, **asked))

    async def choose_next_label(self, request: Request) -> LabelTask:
        """Choose what an annotator labels next, without what the judge said. 404 where nothing is left for them.

        First what a fit leaves to humans, then second opinions on a fifth of all items, then what chance draws where a label
        narrows the interval of the pass rate most. Nothing comes twice to one annotator.
        """
        desk, tenant = self.find_desk(), find_caller(request).tenant
        asked = read_query(request.query_params, NextQuery)
        annotator = asked.annotator or name_annotator(request)
        found = await self.run(request, lambda: desk.choose(tenant, asked.criterion, annotator))
        if found is None:
            raise HTTPException(404, "nothing is left to label for this annotator")
        return found

    async def measure_agreement(self, request: Request) -> LabelSummary:
        """Tell how far the labelling is, and how far annotators agree, criterion by criterion."""
        desk, tenant = self.find_desk(), find_caller(request).tenant
        criterion = read_query(request.query_params, CriterionQuery).criterion
        return await self.run(request, lambda: desk.summarize(tenant, criterion, name_annotator(request)))

    async def list_disagreements(self, request: Request) -> LabelledPage:
        """List items on which people differ, from one another or from the judge, in the order of their first labels."""
        desk, tenant = self.find_desk(), find_caller(request).tenant
        asked = read_query(request.query_params, DisagreementQuery).model_dump()
        return await self.run(request, lambda: desk.list_disagreements(tenant, **asked))

    async def export_labels(self, request: Request) -> Response:
        """Export labelled items as a labelled set for `callgrade calibrate`, with what judges said of them.

        Labels that are unsure are left out; so are items whose trace is gone. A labelled step is an item, with its run and place.
        """
        desk, tenant = self.find_desk(), find_caller(request).tenant
        criterion = read_query(request.query_params, CriterionQuery).criterion
        lines = await self.run(request, lambda: desk.export(tenant, criterion))
        told = {"cache-control": "no-store"}
        return StreamingResponse(self._stream(request, lines), headers=told, media_type=NDJSON)

    async def import_labels(self, request: Request) -> LabelImport:
        """Import a labelled set, as JSON Lines; gzip is taken. Items that are there get the labels, and stay as they are."""
        desk, tenant, by = self.find_desk(), find_caller(request).tenant, find_actor(request)
        if read_form(request.headers) != "lines":
            raise HTTPException(415, f"expected a body of type {NDJSON}", {"accept": NDJSON})
        with Spool(max_bytes=MAX_BYTES, packed=is_packed(request.headers)) as spool:
            await receive(request, spool)
            body, own = spool.file.read(), find_own_name(request)
            counts = await self.run(request, lambda: desk.take_in(tenant, body, by=by, annotator=own))
        return LabelImport(*counts)

    async def delete_label(self, request: Request) -> Response:
        """Take a label back: one's own, or as an admin anybody's."""
        desk, tenant, name = self.find_desk(), find_caller(request).tenant, request.path_params["label_id"]
        by, own = find_actor(request), find_own_name(request)
        await self.run(request, lambda: desk.labels.delete(tenant, name, by=by, annotator=own))
        return Response(status_code=204)

    def find_desk(self) -> LabelDesk:
        """The desk; HTTPException 503 where there is no store."""
        if self._desk is None:
            raise HTTPException(503, NO_STORE)
        return self._desk

    async def run(self, request: Request, work: Callable[[], T]) -> T:
        """What `work` gives, in a thread; BusyError where the database stays out of reach."""
        return await self._threads.run(find_payer(request.scope), lambda: insist(work, give_up=PATIENCE))

    async def _stream(self, request: Request, lines: Iterator[bytes]) -> AsyncGenerator[bytes]:
        while (line := await self._threads.run(find_payer(request.scope), lambda: next(lines, None))) is not None:
            yield line


def build_draft(asked: LabelRequest, annotator: str) -> LabelDraft:
    """The label as it is kept. `annotator`: who gives it."""
    told: dict[str, Any] = asked.model_dump()
    told["annotator"] = annotator
    return LabelDraft(**told)


def find_own_name(request: Request) -> str | None:
    """Whose labels alone the caller may give, replace and take back; None: anybody's, for an admin."""
    return None if find_caller(request).may("admin") else name_annotator(request)


def choose_annotator(request: Request, named: str | None) -> str:
    """Who labels. HTTPException 403 for a caller that names another, and is no admin."""
    own = find_own_name(request)
    if named is not None and own not in (None, named):
        raise HTTPException(403, f"the annotator is the key {own!r}: only an admin labels for others")
    return named or name_annotator(request)


def name_annotator(request: Request) -> str:
    """Who labels where nobody is named: the key, or whoever asks where there are none."""
    return find_caller(request).key_id or "local"
