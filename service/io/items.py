"""One item of a batch: from its line to the line of its outcome."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.plan import Plan
from service.core.report import Report
from service.errors import CallgradeError, InputError, JudgeDownError, JudgeError
from service.io.engine import Engine, report_json
from service.io.faults import CallError, NotSentError, closes_key, is_rate_limit
from service.io.jsonbody import Limits, parse
from service.io.problems import PROBLEM, ProblemDetails, details, details_of
from service.io.spending import Spending
from service.io.store.chunks import Item, Row
from service.request import ScoreRequest, read_request

LOG = logging.getLogger("callgrade.batches")


class Waiting(NamedTuple):
    """An item whose judges or sandbox must be waited for."""

    item: Item
    custom_id: str
    request: ScoreRequest
    plan: Plan | None
    """What code has decided; None where a sandbox comes first."""
    sample: int | None = None
    """Of a labelled item, which answer of its judge is asked for, from 0."""


class PutOff(NamedTuple):
    """An item that has no outcome yet: what stood in its way will pass."""

    reason: str
    delay: float
    """Seconds after which it is worth another try."""
    all_wait: bool
    """Whether the others would fare no better now."""
    of_budget: bool = False
    """Whether the batch's money is spent; then only more money helps."""


MOST_TOKENS = 10**9
"""Tokens that are counted of one item; more is what a provider made up."""
BRIEF = 2.0
"""Seconds before another try of what failed by chance."""
LONGER = 5.0
"""Seconds before a look at a provider that refuses a key or wants fewer requests, and does not say for how long."""


def wrapped(limits: Limits) -> Limits:
    """The limits of an item as it is kept, whose request came within `limits`.

    It stands below a field of its own, the batch's options are filled in, and its numbers may be written at greater length.
    """
    return replace(
        limits, max_bytes=8 * limits.max_bytes, max_depth=limits.max_depth + 1, max_items=2 * limits.max_items + 8
    )


class Items:
    """Scores items with an engine."""

    def __init__(
        self, engine: Engine, limits: Limits, *, read: Callable[[JsonValue], ScoreRequest] = read_request
    ) -> None:
        """`read`: what makes a request of what an item says; InputError where it cannot.

        Labelled items are judged without the fits at hand: their judges are to be fitted anew.
        """
        self._engine = engine
        self._unfitted = engine.unfitted()
        self._limits = limits
        self._read = read

    def begin(self, items: Iterable[Item]) -> list[Row | Waiting]:
        """What code makes of items: outcomes, or what must be waited for. For a thread: it takes the time it takes."""
        return [self._begun(item) for item in items]

    def _begun(self, item: Item) -> Row | Waiting:
        custom_id = f"item-{item.position}"
        try:
            body = cast("dict[str, JsonValue]", parse(item.line, self._limits))
            custom_id = cast("str", body["custom_id"])
            request = self._read(body["request"])
            if self._engine.waits(request):
                plan = self._engine.plan(request) if request.sandbox is None else None
                return Waiting(item, custom_id, request, plan, cast("int | None", body.get("sample")))
            return _scored(item, custom_id, self._engine.answer(request))
        except Exception as error:  # noqa: BLE001 (a fault of ours with one item does not spoil the others)
            return _failed(item, custom_id, error)

    async def finish(self, waiting: Waiting, tenant: str, whole: Spending, *, last: bool) -> Row | PutOff:
        """The outcome of an item that waited, or why it has none yet. `last`: what may be chance is an outcome too.

        `whole`: what the items of a chunk spend together.
        """
        spending = Spending(waiting.request.budget_usd, within=whole)
        try:
            report = await self._report(waiting, tenant, spending)
        except JudgeDownError as error:
            return put_off(spending, whole, last=last) or _failed(waiting.item, waiting.custom_id, error)
        except Exception as error:  # noqa: BLE001 (likewise)
            return _failed(waiting.item, waiting.custom_id, error)
        return put_off(spending, whole, last=last) or _scored(waiting.item, waiting.custom_id, report)

    async def _report(self, waiting: Waiting, tenant: str, spending: Spending) -> Report:
        if waiting.plan is None:
            return await self._engine.answer_async(waiting.request, spending, tenant=tenant)
        engine = self._engine if waiting.sample is None else self._unfitted
        return await engine.finish(waiting.request, waiting.plan, spending, tenant=tenant, repeat=waiting.sample or 0)


def put_off(spending: Spending, whole: Spending, *, last: bool) -> PutOff | None:
    """Why an item should be tried again later, by the faults of its judges; None where its outcome stands."""
    if whole.exhausted and any(fault.cause == "budget_exhausted" for fault in spending.faults):
        return PutOff("the budget is spent", 0.0, all_wait=True, of_budget=True)
    found = [put for fault in spending.faults if (put := _of_fault(fault)) is not None]
    lasting = [put for put in found if put.all_wait]
    if lasting:
        return max(lasting, key=lambda put: put.delay)
    return found[0] if found and not last else None


def _of_fault(fault: JudgeError) -> PutOff | None:
    """A refusal or an unreadable reply is an outcome; a provider that is down or wants to be left alone is none."""
    if isinstance(fault, NotSentError):
        return PutOff(str(fault), fault.retry_after or LONGER, all_wait=True)
    if closes_key(fault) or is_rate_limit(fault):
        return PutOff(str(fault), fault.retry_after or LONGER, all_wait=True)
    if isinstance(fault, CallError) and fault.retryable:
        return PutOff(str(fault), fault.retry_after or BRIEF, all_wait=False)
    return None


def _scored(item: Item, custom_id: str, report: Report) -> Row:
    made = report.provenance
    line = b'{"custom_id":%b,"index":%d,"report":%b}' % (_text(custom_id), item.position, report_json(report))
    tokens_in, tokens_out = (min(count or 0, MOST_TOKENS) for count in (made.tokens_in, made.tokens_out))
    return Row(item.position, True, line.decode(), tokens_in, tokens_out, made.cache_hits)


def _failed(item: Item, custom_id: str, error: Exception) -> Row:
    if isinstance(error, InputError | JudgeDownError):
        return error_row(item.position, custom_id, details_of(error))
    if not isinstance(error, CallgradeError):
        LOG.error("unhandled error in item %d of a batch", item.position, exc_info=error)
    return error_row(item.position, custom_id, details(500, "an error of ours; it is in the log of the worker"))


def error_row(position: int, custom_id: str, told: ProblemDetails) -> Row:
    """The outcome of an item that could not be scored."""
    line = b'{"custom_id":%b,"index":%d,"error":%b}' % (_text(custom_id), position, PROBLEM.dump_json(told))
    return Row(position, False, line.decode())


def unrecordable(position: int) -> Row:
    """The outcome of an item whose own outcome the database does not take."""
    return error_row(position, f"item-{position}", details(500, "an error of ours; it is in the log of the worker"))


def _text(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode()


def blocks(items: Sequence[Item], size: int) -> Iterable[Sequence[Item]]:
    """The items in their order, `size` at a time."""
    return [items[start : start + size] for start in range(0, len(items), size)]
