"""One item of a batch: from its line to the line of its outcome."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from json.encoder import encode_basestring
from typing import NamedTuple, Protocol, cast

from pydantic import JsonValue

from service.asking.budget.reservations import Spending
from service.asking.failures import LONGEST_PAUSE
from service.asking.faults import CallError, NotSentError, closes_key, is_rate_limit
from service.calibration.labelling import list_label_items
from service.core.plan import Plan
from service.core.report import Report
from service.engine import REPORT, Engine, report_json
from service.errors import (
    AllowanceSpentError,
    CallgradeError,
    DaySpentError,
    InputError,
    JudgeDownError,
    JudgeError,
)
from service.jobs.pauses import describe_pause
from service.problems import PROBLEM, ProblemDetails, build_details, describe_error
from service.reading.strict_json import Limits, parse
from service.registry import Registry
from service.reporting.breaks import describe_break
from service.reporting.summaries import read_report
from service.request import ScoreRequest, read_request
from service.scoring_process import LARGE_BYTES, LargeScorer, ProcessRefusal, ScoringProcessError
from service.store.jobs.items import ERROR, ItemFacts, ReadOutcome
from service.store.jobs.leases import ChunkItem, OutcomeRow
from service.store.jobs.suspects import QUARANTINE_AT
from service.store.labelling.drafts import LabelItem

LOG = logging.getLogger("callgrade.batches")


class WaitingItem(NamedTuple):
    """An item whose judges or sandbox must be waited for."""

    item: ChunkItem
    custom_id: str
    request: ScoreRequest
    plan: Plan | None
    """What code has decided; None where a sandbox comes first."""
    sample: int | None = None
    """Of a labelled item, which answer of its judge is asked for, from 0."""


class Deferral(NamedTuple):
    """An item that has no outcome yet: what stood in its way will pass."""

    reason: str
    delay: float
    """Seconds after which it is worth another try."""
    all_wait: bool
    """Whether the others would fare no better now."""
    of_budget: bool = False
    """Whether the batch's money is spent, or its questions are asked; then only more of them helps."""


SPENT = "the budget is spent"
ASKED = "the batch has asked judges as many questions as it may (max_questions)"
MOST_TOKENS = 10**9
"""Tokens that are counted of one item; more is what a provider made up."""
NAMED = '{"custom_id":'
"""How the line of an item begins."""
MAX_NAME_BYTES = 4_096
"""Bytes of a line that hold its name."""
BRIEF = 2.0
"""Seconds before another try of what failed by chance."""
LONGER = 5.0
"""Seconds before a look at a provider that refuses a key or wants fewer requests, and does not say for how long."""


def widen_limits(limits: Limits) -> Limits:
    """The limits of an item as it is kept, whose request came within `limits`.

    It stands below a field of its own, the batch's options are filled in, and its numbers may be written at greater length.
    """
    return replace(
        limits, max_bytes=8 * limits.max_bytes, max_depth=limits.max_depth + 1, max_items=2 * limits.max_items + 8
    )


class Beside(Protocol):
    """Scores items in other processes."""

    def score(self, items: Sequence[ChunkItem]) -> Sequence[OutcomeRow | None]:
        """The outcome of each item; None where it is to be made here."""
        ...


class ItemScorer:
    """Scores items with an engine."""

    def __init__(
        self,
        engine: Engine,
        limits: Limits,
        *,
        read: Callable[[JsonValue], ScoreRequest] = read_request,
        apart: LargeScorer | None = None,
        beside: Beside | None = None,
    ) -> None:
        """`read`: what makes a request of what an item says; InputError where it cannot. `apart` scores large items.

        `beside` scores all others that wait for nobody.

        Labelled items are judged without the fits at hand: their judges are to be fitted anew.
        """
        self._engine = engine
        self._unfitted = engine.copy_without_fits()
        self._limits = limits
        self._read = read
        self._apart = apart
        self._beside = beside

    def begin(self, items: Iterable[ChunkItem]) -> list[OutcomeRow | WaitingItem]:
        """What code makes of items: outcomes, or what must be waited for. For a thread: it takes the time it takes."""
        given = list(items)
        begun = [self._begin(item) for item in given[:1]]
        waits = any(isinstance(one, WaitingItem) for one in begun)  # then the others will too
        made = {} if waits else self._score_beside([item for item in given[1:] if len(item.line) < LARGE_BYTES])
        return begun + [made.get(item) or self._begin(item) for item in given[1:]]

    def _score_beside(self, items: Sequence[ChunkItem]) -> dict[ChunkItem, OutcomeRow | None]:
        return {} if self._beside is None else dict(zip(items, self._beside.score(items), strict=True))

    def _begin(self, item: ChunkItem) -> OutcomeRow | WaitingItem:
        if self._apart is not None and len(item.line) >= LARGE_BYTES and (row := self._score_apart(self._apart, item)):
            return row
        custom_id = f"item-{item.position}"
        try:
            body = cast("dict[str, JsonValue]", parse(item.line, self._limits))
            custom_id = cast("str", body["custom_id"])
            request = self._read(body["request"])
            if self._engine.must_wait(request):
                plan = self._engine.plan(request) if request.sandbox is None else None
                return WaitingItem(item, custom_id, request, plan, cast("int | None", body.get("sample")))
            report = self._engine.answer(request)
            labelled = () if "sample" in body else self._list_label_items(request, report)
            return _build_scored_row(item, custom_id, report, labelled)
        except Exception as error:  # noqa: BLE001 (a fault of ours with one item does not spoil the others)
            return _build_failed_row(item, custom_id, error)

    def _score_apart(self, apart: LargeScorer, item: ChunkItem) -> OutcomeRow | None:
        """The outcome of a large item; None where it is to be made here."""
        try:
            answer = apart.score(item.line, self._limits, key="request")
        except ScoringProcessError:
            return _give_up_apart(item)
        if isinstance(answer, ProcessRefusal):
            return build_error_row(item.position, _read_name(item), describe_error(answer.error(answer.problems)))
        if answer is None:
            return None
        custom_id = _read_name(item)
        facts = _build_facts(custom_id, REPORT.validate_json(answer.report))
        line = _render_line(item, custom_id, answer.report)
        return OutcomeRow(item.position, True, line, labelled=answer.labelled, facts=facts)

    def _list_label_items(self, request: ScoreRequest, report: Report) -> Sequence[LabelItem]:
        return list_label_items(report, self._engine.registry.find(request.rubric))

    async def finish(self, waiting: WaitingItem, tenant: str, whole: Spending, *, last: bool) -> OutcomeRow | Deferral:
        """The outcome of an item that waited, or why it has none yet. `last`: what may be chance is an outcome too.

        `whole`: what the items of a chunk spend together.
        """
        spending = self._engine.build_spending(waiting.request, tenant, whole)
        try:
            report = await self._finish_report(waiting, tenant, spending)
        except (JudgeDownError, AllowanceSpentError) as error:
            return find_deferral(spending, whole, last=last) or _build_failed_row(
                waiting.item, waiting.custom_id, error
            )
        except Exception as error:  # noqa: BLE001 (likewise)
            return _build_failed_row(waiting.item, waiting.custom_id, error)
        labelled = self._list_label_items(waiting.request, report) if waiting.sample is None else ()
        row = _build_scored_row(waiting.item, waiting.custom_id, report, labelled)
        return find_deferral(spending, whole, last=last) or row

    async def _finish_report(self, waiting: WaitingItem, tenant: str, spending: Spending) -> Report:
        if waiting.plan is None:
            return await self._engine.answer_async(waiting.request, spending, tenant=tenant)
        engine = self._engine if waiting.sample is None else self._unfitted
        return await engine.finish(waiting.request, waiting.plan, spending, tenant=tenant, repeat=waiting.sample or 0)


def find_deferral(spending: Spending, whole: Spending, *, last: bool) -> Deferral | None:
    """Why an item should be tried again later, by the faults of its judges; None where its outcome stands."""
    if whole.exhausted and any(fault.cause == "budget_exhausted" for fault in spending.faults):
        return Deferral(ASKED if whole.is_out_of_calls else SPENT, 0.0, all_wait=True, of_budget=True)
    found = [put for fault in spending.faults if (put := _defer_for_fault(fault)) is not None]
    lasting = [put for put in found if put.all_wait]
    if lasting:
        return max(lasting, key=lambda put: put.delay)
    return found[0] if found and not last else None


def _defer_for_fault(fault: JudgeError) -> Deferral | None:
    """A refusal or an unreadable reply is an outcome; a provider that is down or wants to be left alone is none."""
    why = describe_pause(fault)
    if fault.cause == "unknown_model":  # whoever set it must set it otherwise
        return Deferral(why, LONGEST_PAUSE, all_wait=True)
    if isinstance(fault, NotSentError | DaySpentError) or closes_key(fault) or is_rate_limit(fault):
        return Deferral(why, fault.retry_after or LONGER, all_wait=True)
    if isinstance(fault, CallError) and fault.retryable:
        return Deferral(why, fault.retry_after or BRIEF, all_wait=False)
    return None


def _build_scored_row(item: ChunkItem, custom_id: str, report: Report, labelled: Sequence[LabelItem]) -> OutcomeRow:
    made = report.provenance
    tokens_in, tokens_out = (min(count or 0, MOST_TOKENS) for count in (made.tokens_in, made.tokens_out))
    line = _render_line(item, custom_id, report_json(report))
    return OutcomeRow(
        item.position, True, line, tokens_in, tokens_out, made.cache_hits, labelled, _build_facts(custom_id, report)
    )


def _render_line(item: ChunkItem, custom_id: str, report: bytes) -> str:
    return (b'{"custom_id":%b,"index":%d,"report":%b}' % (_dump_text(custom_id), item.position, report)).decode()


def _build_failed_row(item: ChunkItem, custom_id: str, error: Exception) -> OutcomeRow:
    if isinstance(error, InputError | JudgeDownError):
        return build_error_row(item.position, custom_id, describe_error(error))
    if not isinstance(error, CallgradeError):
        LOG.error("unhandled error in item %d of a batch", item.position, exc_info=error)
    return build_error_row(
        item.position, custom_id, build_details(500, "an internal error; it is in the log of the worker")
    )


def read_outcome(line: str, registry: Registry) -> ReadOutcome:
    """What is kept of an item, read from the line of its outcome. A report that can be read no longer counts as an error.

    It may be labelled if the registry still holds its rubric unchanged.
    """
    told = json.loads(line)
    name = told["custom_id"]
    try:
        report = read_report(told["report"]) if "report" in told else None
    except InputError:
        report = None
    if report is None:
        return ReadOutcome(ItemFacts(name, ERROR))
    rubric = next((one for one in registry if one.digest == report.rubric.hash), None)
    return ReadOutcome(_build_facts(name, report), () if rubric is None else list_label_items(report, rubric))


def _build_facts(custom_id: str, report: Report) -> ItemFacts:
    return ItemFacts(custom_id, **describe_break(report)._asdict(), cluster=report.tags.get("group", ""))


def build_error_row(position: int, custom_id: str, told: ProblemDetails) -> OutcomeRow:
    """The outcome of an item that could not be scored."""
    line = b'{"custom_id":%b,"index":%d,"error":%b}' % (_dump_text(custom_id), position, PROBLEM.dump_json(told))
    return OutcomeRow(position, False, line.decode(), facts=ItemFacts(custom_id, ERROR))


def build_unrecordable_row(position: int) -> OutcomeRow:
    """The outcome of an item whose own outcome the database does not take."""
    return build_error_row(
        position, f"item-{position}", build_details(500, "an internal error; it is in the log of the worker")
    )


def build_quarantined_row(item: ChunkItem) -> OutcomeRow:
    """The outcome of an item that is not tried any more."""
    return _give_up(item, f"quarantined: it took its worker down {QUARANTINE_AT} times, and is not tried any more")


def _give_up_apart(item: ChunkItem) -> OutcomeRow:
    """The outcome of a large item that ended the process which was to score it."""
    return _give_up(item, "quarantined: it took the process down that large items are scored in")


def _give_up(item: ChunkItem, detail: str) -> OutcomeRow:
    return build_error_row(item.position, _read_name(item), replace(build_details(500, detail), title="Quarantined"))


def _read_name(item: ChunkItem) -> str:
    """What an item is called, without looking into it any further."""
    try:
        name, _ = json.JSONDecoder().raw_decode(item.line[:MAX_NAME_BYTES].decode(errors="replace"), len(NAMED))
    except ValueError:
        return f"item-{item.position}"
    return cast("str", name)


def _dump_text(text: str) -> bytes:
    return encode_basestring(text).encode()


BLOCK = 50
"""Items that code works on in one go, in a thread, and that are recorded together."""
LARGEST_BLOCK = 250
"""The same of small items: to record them takes as long as to score them, and many at once a third less."""
BLOCK_BYTES = 2**18
"""Bytes with which a block has enough of them."""


def split_blocks(items: Iterable[ChunkItem]) -> Iterator[Sequence[ChunkItem]]:
    """The items in their order, some at a time: the more the smaller they are."""
    block: list[ChunkItem] = []
    size = 0
    for item in items:
        block.append(item)
        size += len(item.line)
        if len(block) == LARGEST_BLOCK or (len(block) >= BLOCK and size >= BLOCK_BYTES):
            yield block
            block, size = [], 0
    if block:
        yield block
