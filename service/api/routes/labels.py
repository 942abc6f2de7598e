"""Labels over HTTP: what to label next, labels, how far people agree, and import and export of labelled sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Query
from pydantic import Field, TypeAdapter, model_validator
from starlette.exceptions import HTTPException
from starlette.requests import Request

from service.api.access import find_actor, find_caller, find_payer, find_tenant
from service.api.body import is_packed, read_json, receive, refuse_other_than_lines
from service.api.contract import (
    BODY_PROBLEMS,
    LinesResponse,
    QueryModel,
    build_router,
    describe_json,
    describe_lines,
)
from service.api.fairness import UploadDisk
from service.api.store_access import StoreAccess
from service.core.models.kinds import FrozenModel
from service.jobs.calibrations import MAX_BODY_BYTES
from service.jobs.spool import Spool
from service.labelling.desk import (
    Between,
    LabelDesk,
    LabelImport,
    LabelledPage,
    LabelSummary,
    LabelTask,
    RevealedJudge,
)
from service.reading.strict_json import Limits
from service.store.labelling.drafts import LabelDraft, LabelSource, Word
from service.store.labelling.labels import HumanLabel, LabelList

T = TypeVar("T")

Name = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f]+$")]

EXAMPLE = {
    "item": "batch_019aa5b3c4d000112233445566778899/0",
    "criterion": "result_groundedness",
    "label": "fail",
    "claim": "cost $77.00",
}


LABELLED_LINES = "lines of `LabelledItem`, and of `Prediction` (those with `raw`)"

LABELLED_EXAMPLE: list[dict[str, Any]] = [
    {
        "id": "refund-1",
        "criterion": "result_groundedness",
        "group": "refund-1",
        "payload": {"amount_cents": 5400},
        "answer": "Refunded $54.00.",
        "labels": [{"annotator": "ana", "label": True}],
    },
    {"id": "refund-1", "criterion": "result_groundedness", "raw": 1.0},
]


class LabelRequest(FrozenModel):
    """A label that an annotator gives an item. It replaces their earlier one for the same item, criterion and step."""

    item: Name
    """`BATCH/POSITION` of a batch's item, the id of a kept score, or the id of an imported item"""
    criterion: Name
    label: Word
    """unsure is kept, and counts for neither side"""
    annotator: Name | None = None
    """Who gives the label; only an admin may name another than the request's own key. Absent: that key"""
    step: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """The labelled step, from 0. Absent: the whole trace"""
    value: Annotated[float, Field(ge=0, le=1)] | None = None
    """The position among the criterion's labels, if they are graded"""
    failing_step: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """The step at which it fails, from 0"""
    claim: str = Field(default="", max_length=2_000)
    """The words of the answer that fail"""
    note: str = Field(default="", max_length=10_000)
    blind: bool = False
    """Whether the label was given before the judge's verdict was shown"""
    source: LabelSource = "direct"
    """How the item came up, as `next` said; an item that was not next is kept as direct"""

    @model_validator(mode="after")
    def _require_fail(self) -> LabelRequest:
        if self.label == "pass" and self.failing_step is not None:
            raise ValueError("`failing_step` says where it fails, but the label is pass")
        return self


@dataclass(frozen=True, slots=True)
class LabelReply:
    """A label that was kept, and the judge's verdict; null if there is none."""

    label: HumanLabel
    judge: RevealedJudge | None


class LabelPageQuery(QueryModel):
    """Which labels to list."""

    limit: int = Field(default=100, ge=1, le=1_000)
    """Most labels in the answer; absent: 100"""
    after: Annotated[str, Field(pattern="^label_[0-9a-f]+$")] | None = None
    """The id of a label; only older ones are listed"""
    criterion: str | None = None
    """The criterion of the labels to list"""
    annotator: str | None = None
    """Who gave the labels to list"""
    item: str | None = None
    """The item of the labels to list"""


class NextQuery(QueryModel):
    """Who labels what."""

    criterion: str | None = None
    """Absent: the one with the most items waiting for a human, else the one with the most items"""
    annotator: str | None = None
    """Absent: the key of the request"""


class CriterionQuery(QueryModel):
    """Which labels to look at."""

    criterion: str | None = None
    """Absent: all"""


class DisagreementQuery(QueryModel):
    """Which disagreements to list."""

    criterion: str | None = None
    """Absent: all"""
    between: Between = "annotators"
    """annotators: people differ, and no adjudication has settled it. judge: people differ from the judge"""
    limit: int = Field(default=100, ge=1, le=1_000)
    """Most items in the answer; absent: 100"""
    after: str | None = None
    """`next` of the last answer; only items after it are listed"""


REQUEST: TypeAdapter[LabelRequest] = TypeAdapter(LabelRequest)


class LabelRoutes(StoreAccess[LabelDesk]):
    """The handlers over labels."""

    def __init__(self, desk: LabelDesk | None, limits: Limits, disk: UploadDisk) -> None:
        super().__init__(desk, "labels need")
        self._disk = disk
        self._limits = limits
        self.router = router = build_router("labels", 404, 507)
        one, several = describe_json(LabelRequest, EXAMPLE), describe_lines(LABELLED_LINES, LABELLED_EXAMPLE)
        router.post("/v1/labels", responses=BODY_PROBLEMS, openapi_extra=one)(self.put_label)
        router.get("/v1/labels")(self.list_labels)
        router.get("/v1/labels/next")(self.choose_next_label)
        router.get("/v1/labels/agreement")(self.measure_agreement)
        router.get("/v1/labels/disagreements")(self.list_disagreements)
        router.get("/v1/labels/export", response_class=LinesResponse)(self.export_labels)
        router.post("/v1/labels/import", responses=BODY_PROBLEMS, openapi_extra=several)(self.import_labels)
        router.delete("/v1/labels/{label_id}", status_code=204)(self.delete_label)

    async def put_label(self, request: Request) -> LabelReply:
        """Label an item, and learn the judge's verdict. Sending the same again changes nothing."""
        body = await read_json(request, self._limits, REQUEST)
        draft, by = build_draft(body, choose_annotator(request, body.annotator)), find_actor(request)
        label = await self.ask(request, lambda desk, tenant: desk.put(tenant, draft, by=by))
        judge = await self.ask(request, lambda desk, tenant: desk.reveal(tenant, label.item, label.criterion))
        return LabelReply(label, judge)

    async def list_labels(self, request: Request, query: Annotated[LabelPageQuery, Query()]) -> LabelList:
        """List labels, newest first."""
        return await self.ask(request, lambda desk, tenant: desk.labels.page(tenant, **query.model_dump()))

    async def choose_next_label(self, request: Request, query: Annotated[NextQuery, Query()]) -> LabelTask:
        """Choose what an annotator labels next, without the judge's verdict. 404 if nothing is left for them.

        First come the items that need a human (in a fit's review band), then second opinions on a fifth of all items, then random
        draws where a label narrows the interval of the pass rate most. Nothing comes up twice for one annotator.
        """
        annotator = query.annotator or name_annotator(request)
        task = await self.ask(request, lambda desk, tenant: desk.choose(tenant, query.criterion, annotator))
        if task is None:
            raise HTTPException(404, "nothing is left to label for this annotator")
        return task

    async def measure_agreement(self, request: Request, query: Annotated[CriterionQuery, Query()]) -> LabelSummary:
        """Report how far the labelling is, and how far annotators agree, criterion by criterion."""
        annotator = name_annotator(request)
        return await self.ask(request, lambda desk, tenant: desk.summarize(tenant, query.criterion, annotator))

    async def list_disagreements(self, request: Request, query: Annotated[DisagreementQuery, Query()]) -> LabelledPage:
        """List items on which people differ from each other or from the judge, in the order of their first labels."""
        return await self.ask(request, lambda desk, tenant: desk.list_disagreements(tenant, **query.model_dump()))

    async def export_labels(self, request: Request, query: Annotated[CriterionQuery, Query()]) -> LinesResponse:
        """Export labelled items as a labelled set for `callgrade calibrate`, with the judges' predictions.

        Unsure labels are left out, and so are items whose trace was deleted. A labelled step is a separate item,
        with its run and place.
        """
        lines = await self.ask(request, lambda desk, tenant: desk.export(tenant, query.criterion))
        return LinesResponse(self.stream(request, lines), headers={"cache-control": "no-store"})

    async def import_labels(self, request: Request) -> LabelImport:
        """Import a labelled set, as JSON Lines; gzip is accepted. Existing items get labels, and predictions if none."""
        desk, tenant, by = self.find_store(), find_tenant(request), find_actor(request)
        refuse_other_than_lines(request.headers)
        packed = is_packed(request.headers)
        with (
            self._disk.hold(find_payer(request.scope)) as take,
            Spool(max_bytes=MAX_BODY_BYTES, packed=packed, take=take) as spool,
        ):
            await receive(request, spool)
            body, own = spool.file.read(), find_own_name(request)
            return await self.run(request, lambda: desk.import_labels(tenant, body, by=by, annotator=own))

    async def delete_label(self, request: Request, label_id: str) -> None:
        """Delete a label: one's own, or as an admin anybody's."""
        by, own = find_actor(request), find_own_name(request)
        await self.ask(request, lambda desk, tenant: desk.labels.delete(tenant, label_id, by=by, annotator=own))


def build_draft(body: LabelRequest, annotator: str) -> LabelDraft:
    """Build the label to store. `annotator`: who gives it."""
    fields: dict[str, Any] = body.model_dump()
    fields["annotator"] = annotator
    return LabelDraft(**fields)


def find_own_name(request: Request) -> str | None:
    """Return the annotator whose labels alone the caller may change; None for an admin, who may change anybody's."""
    return None if find_caller(request).may("admin") else name_annotator(request)


def choose_annotator(request: Request, annotator: str | None) -> str:
    """Choose who labels. HTTPException 403 if the caller names another and is no admin."""
    own = find_own_name(request)
    if annotator is not None and own not in (None, annotator):
        raise HTTPException(403, f"the annotator is the key {own!r}: only an admin labels for others")
    return annotator or name_annotator(request)


def name_annotator(request: Request) -> str:
    """Name the annotator of a request that names none: its key, or "local" if there are no keys."""
    return find_caller(request).key_id or "local"
