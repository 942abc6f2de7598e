"""Score one item of a batch: from its line to the line of its outcome."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from json.encoder import encode_basestring
from typing import Any, NamedTuple, cast

from pydantic import JsonValue

from service.asking.budget.reservations import Spending
from service.asking.faults import MAX_PAUSE_S, CallError, NotSentError, closes_key, is_rate_limit
from service.asking.judging import Judging
from service.calibration.labelling import list_label_items
from service.core.plan import Plan
from service.core.report import Report
from service.engine import REPORT, Engine, report_json
from service.errors import (
    AllowanceSpentError,
    BatchSpentError,
    CallgradeError,
    DaySpentError,
    InputError,
    JudgeDownError,
    JudgeError,
)
from service.jobs.pauses import describe_pause
from service.problem_types import NO_REPORT
from service.problems import PROBLEM, ProblemDetails, build_details, build_problem
from service.reading.request import ScoreRequest, read_request
from service.reading.strict_json import Limits, parse_strictly
from service.reporting.breaks import describe_break
from service.scoring_process import LARGE_BYTES, LargeScorer, ProcessRefusal, ScoringProcessError
from service.store.jobs.items import ERROR_VERDICT
from service.store.jobs.leases import QUARANTINE_DEATHS, ChunkItem, OutcomeRow
from service.store.labelling.drafts import LabelItem

LOG = logging.getLogger("callgrade.batches")


class WaitingItem(NamedTuple):
    """An item that must wait for judges or a sandbox."""

    item: ChunkItem
    custom_id: str
    request: ScoreRequest
    plan: Plan | None
    """What code has decided; None where the sandbox runs first."""
    sample: int | None = None
    """For a labelled item, which answer of its judge to ask for, from 0."""


class Deferral(NamedTuple):
    """An item without an outcome yet, because of an obstacle that will pass."""

    reason: str
    delay: float
    """Seconds until it is worth another try."""
    all_wait: bool
    """Whether the other items would fare no better now."""
    of_budget: bool = False
    """Whether the batch has used up its budget or its questions; then only a higher limit helps."""
    of_provider: bool = False
    """Whether a batch of a provider is under way, for which nothing need be paused."""


OUR_FAULT = "an internal error; it is in the log of the worker"
LINE_START = '{"custom_id":'
"""How the line of an item begins."""
MAX_NAME_BYTES = 4_096
"""Bytes of a line within which its name ends."""
RETRY_DELAY_S = 2.0
"""Seconds before retrying what failed by chance."""
PROVIDER_DELAY_S = 5.0
"""Seconds before retrying a provider that is away, refuses a key or wants fewer requests, and does not say when to return."""


def widen_limits(limits: Limits) -> Limits:
    """Widen the limits of a request to those of its item as stored.

    The stored item nests the request one level deeper, fills in the batch's options, and may write numbers at greater length.
    """
    return replace(
        limits, max_bytes=8 * limits.max_bytes, max_depth=limits.max_depth + 1, max_items=2 * limits.max_items + 8
    )


class ItemScorer:
    """Scores items with an engine."""

    def __init__(
        self,
        engine: Engine,
        limits: Limits,
        *,
        read: Callable[[JsonValue], ScoreRequest] = read_request,
        apart: LargeScorer | None = None,
    ) -> None:
        """`read` turns an item's request into a ScoreRequest, or raises InputError. `apart` scores large items elsewhere.

        Labelled items are judged without the installed fits: their judges are about to be fitted anew.
        """
        self._engine = engine
        self._unfitted = engine.copy(fits=())
        self._limits = limits
        self._read = read
        self._apart = apart

    async def flush(self) -> None:
        """Wait until the answers of judges are kept where another worker finds them."""
        await self._engine.flush()

    def copy_over(self, judging: Judging) -> ItemScorer:
        """Return the same scorer over another judging."""
        return ItemScorer(self._engine.copy(judging=judging), self._limits, read=self._read, apart=self._apart)

    def begin(self, items: Iterable[ChunkItem]) -> list[OutcomeRow | WaitingItem]:
        """Run code over items: return outcomes, or items that must wait. Blocks, so call it in a thread."""
        return [self._begin(item) for item in items]

    def _begin(self, item: ChunkItem) -> OutcomeRow | WaitingItem:
        if self._apart is not None and len(item.line) >= LARGE_BYTES and (row := self._score_apart(self._apart, item)):
            return row
        custom_id = f"item-{item.position}"
        try:
            body = cast("dict[str, JsonValue]", parse_strictly(item.line, self._limits))
            custom_id = cast("str", body["custom_id"])
            request = self._read(body["request"])
            if self._engine.must_wait(request):
                plan = self._engine.plan(request) if request.sandbox is None else None
                return WaitingItem(item, custom_id, request, plan, cast("int | None", body.get("sample")))
            report = self._engine.answer(request)
            label_items = () if "sample" in body else self._list_label_items(request, report)
            return _build_scored_row(item, custom_id, report, label_items)
        except Exception as error:  # noqa: BLE001 (a fault of ours with one item does not spoil the others)
            return _build_failed_row(item, custom_id, error)

    def _score_apart(self, apart: LargeScorer, item: ChunkItem) -> OutcomeRow | None:
        """Return the outcome of a large item; None if it must be scored here."""
        try:
            answer = apart.score(item.line, self._limits, key="request")
        except ScoringProcessError:
            return build_quarantined_row(item, "down the process that scores large items")
        if isinstance(answer, ProcessRefusal):
            return build_error_row(item.position, _read_name(item), build_problem(answer.error(answer.problems)))
        if answer is None:
            return None
        custom_id = _read_name(item)
        facts = _build_facts(custom_id, REPORT.validate_json(answer.report))
        line = _render_line(item.position, custom_id, report=answer.report)
        return OutcomeRow(item.position, True, line, label_items=answer.kept.items, facts=facts)

    def _list_label_items(self, request: ScoreRequest, report: Report) -> Sequence[LabelItem]:
        return list_label_items(report, self._engine.registry.find(request.rubric))

    async def finish(
        self, waiting: WaitingItem, tenant: str, batch_spending: Spending, *, last: bool
    ) -> OutcomeRow | Deferral:
        """Return the outcome of an item that waited, or why it has none yet. With `last`, a chance failure is an outcome too.

        `batch_spending`: the joint spending of this process on the batch.
        """
        spending = self._engine.build_spending(waiting.request, tenant, batch_spending)
        try:
            if waiting.plan is None:
                report = await self._engine.answer_async(waiting.request, spending, tenant=tenant)
            else:
                engine, repeat = (self._engine, 0) if waiting.sample is None else (self._unfitted, waiting.sample)
                report = await engine.finish(waiting.request, waiting.plan, spending, tenant=tenant, repeat=repeat)
        except (JudgeDownError, AllowanceSpentError) as error:
            return find_deferral(spending, last=last) or _build_failed_row(waiting.item, waiting.custom_id, error)
        except Exception as error:  # noqa: BLE001 (likewise)
            return _build_failed_row(waiting.item, waiting.custom_id, error)
        label_items = self._list_label_items(waiting.request, report) if waiting.sample is None else ()
        row = _build_scored_row(waiting.item, waiting.custom_id, report, label_items)
        return find_deferral(spending, last=last) or row


def find_deferral(spending: Spending, *, last: bool) -> Deferral | None:
    """Return why an item should be tried again later, by the faults of its judges; None if its outcome stands."""
    spent = next((fault for fault in spending.faults if isinstance(fault, BatchSpentError)), None)
    if spent is not None:
        return Deferral(spent.reason, 0.0, all_wait=True, of_budget=True)
    deferrals = [one for fault in spending.faults if (one := defer_for_fault(fault)) is not None]
    lasting = [one for one in deferrals if one.all_wait]
    if lasting:
        return max(lasting, key=lambda one: one.delay)
    return deferrals[0] if deferrals and not last else None


def defer_for_fault(fault: JudgeError) -> Deferral | None:
    """Defer for a provider that is down or wants a pause; a refusal or an unreadable reply is an outcome."""
    why = describe_pause(fault)
    if fault.cause == "unknown_model":  # only a change of settings helps
        return Deferral(why, MAX_PAUSE_S, all_wait=True)
    away = fault.cause == "unreachable" or closes_key(fault) or is_rate_limit(fault)
    if away or isinstance(fault, NotSentError | DaySpentError):
        return Deferral(why, fault.retry_after or PROVIDER_DELAY_S, all_wait=True)
    if isinstance(fault, CallError) and fault.retryable:
        return Deferral(why, fault.retry_after or RETRY_DELAY_S, all_wait=False)
    return None


def _build_scored_row(item: ChunkItem, custom_id: str, report: Report, label_items: Sequence[LabelItem]) -> OutcomeRow:
    line = _render_line(item.position, custom_id, report=report_json(report))
    return OutcomeRow(item.position, True, line, label_items, _build_facts(custom_id, report))


def _render_line(position: int, custom_id: str, **outcome: bytes) -> str:
    [(name, document)] = outcome.items()
    custom_id = encode_basestring(custom_id)
    return f'{{"custom_id":{custom_id},"index":{position},"{name}":{document.decode()}}}'


def _build_failed_row(item: ChunkItem, custom_id: str, error: Exception) -> OutcomeRow:
    if isinstance(error, InputError | JudgeDownError):
        return build_error_row(item.position, custom_id, build_problem(error))
    if not isinstance(error, CallgradeError):
        LOG.error("unhandled error in item %d of a batch", item.position, exc_info=error)
    return build_error_row(item.position, custom_id, build_details(500, OUR_FAULT))


def _build_facts(custom_id: str, report: Report) -> dict[str, Any]:
    return {"custom_id": custom_id, **describe_break(report)._asdict(), "cluster": report.tags.get("group", "")}


def build_error_row(position: int, custom_id: str, details: ProblemDetails) -> OutcomeRow:
    """Build the outcome of an item that could not be scored."""
    line = _render_line(position, custom_id, error=PROBLEM.dump_json(details))
    return OutcomeRow(position, False, line, facts={"custom_id": custom_id, "verdict": ERROR_VERDICT})


def build_unrecordable_row(position: int) -> OutcomeRow:
    """Build the outcome of an item whose real outcome the database rejects."""
    return build_error_row(position, f"item-{position}", build_details(500, OUR_FAULT))


def build_quarantined_row(item: ChunkItem, what: str = f"its worker down {QUARANTINE_DEATHS} times") -> OutcomeRow:
    """Build the outcome of an item that is not tried again, as it took something down."""
    details = build_details(500, f"quarantined: it took {what}, and is not tried any more")
    return build_error_row(item.position, _read_name(item), replace(details, title="Quarantined", type=NO_REPORT))


def _read_name(item: ChunkItem) -> str:
    """Read the name of an item without parsing the rest of it."""
    try:
        name, _ = json.JSONDecoder().raw_decode(item.line[:MAX_NAME_BYTES].decode(errors="replace"), len(LINE_START))
    except ValueError:
        return f"item-{item.position}"
    return cast("str", name)


MIN_BLOCK_ITEMS = 50
"""Fewest items in a block, which code scores in one go, in a thread, and which is recorded as a whole."""
MAX_BLOCK_ITEMS = 250
"""Most items in a block. Recording small ones takes as long as scoring them; many at a time take a third less."""
MIN_BLOCK_BYTES = 2**18
"""Bytes at which a block is large enough."""


def split_blocks(items: Iterable[ChunkItem]) -> Iterator[Sequence[ChunkItem]]:
    """Split items into blocks, in order: the smaller the items, the more of them in a block."""
    block: list[ChunkItem] = []
    size = 0
    for item in items:
        block.append(item)
        size += len(item.line)
        if len(block) == MAX_BLOCK_ITEMS or (len(block) >= MIN_BLOCK_ITEMS and size >= MIN_BLOCK_BYTES):
            yield block
            block, size = [], 0
    if block:
        yield block
