"""Batches as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from service.cli.batch_progress import done_of
from service.cli.console import console, plural, printable, reading_console
from service.io.quotes import Quote
from service.io.store.batch import Batch

HEAD = ("id", "status", "done", "created", "name")


def show_one(batch: Batch) -> None:
    """One batch, a line for each thing to be said of it."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, value in _said(batch):
        table.add_row(Text(name, style="bold"), Text(printable(value), overflow="fold"))
    reading_console().print(table)


def show_many(batches: Sequence[Batch]) -> None:
    """Several batches, a line each, never broken: an id is for copying."""
    rows = [HEAD, *map(_cells, batches)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(HEAD))]
    for row in rows:
        line = "  ".join([cell.ljust(width) for cell, width in zip(row, widths, strict=True)])
        console().print(Text(line.rstrip(), style="bold" if row is HEAD else ""), soft_wrap=True)


def _cells(batch: Batch) -> tuple[str, ...]:
    counts = batch.request_counts
    failed = f" ({counts.failed} failed)" if counts.failed else ""
    done = f"{done_of(batch)}/{counts.total}{failed}"
    return batch.id, batch.status, done, _time(batch.created_at)[:16], printable(batch.name) or "-"


def quote_line(quote: Quote) -> str:
    """What a batch would take, in words."""
    asked = f"{plural(quote.questions, 'question')} for judges, {quote.cache_hits} of them answered by the cache"
    cost = "at an unknown price" if quote.cost_usd is None else f"for at most {_dollars(quote.cost_usd)}"
    sampled = f" (by {quote.sampled} of them)" if quote.sampled < quote.items else ""
    return f"{plural(quote.items, 'item')}: {asked}, {cost}{sampled}"


def ended_line(batch: Batch) -> str:
    """What became of a batch, in words."""
    counts = batch.request_counts
    told = [f"{plural(counts.total, 'item')}: {counts.completed} scored"]
    never = counts.cancelled + counts.expired
    told += [f"{counts.failed} failed"] if counts.failed else []
    told += [f"{never} never run"] if never else []
    cost = f", {_dollars(batch.cost_usd)}" if batch.cost_usd else ""
    return f"{batch.status}; {', '.join(told)}{cost}"


def _said(batch: Batch) -> Iterator[tuple[str, str]]:
    counts = batch.request_counts
    yield "batch", batch.id
    if batch.name:
        yield "name", batch.name
    yield "status", batch.status
    if batch.reason:
        yield "because", batch.reason
    if batch.resume_at:
        yield "goes on", _time(batch.resume_at)
    yield "items", f"{done_of(batch)} of {counts.total} done: {counts.completed} scored, {counts.failed} failed"
    if counts.cancelled or counts.expired:
        yield "never run", str(counts.cancelled + counts.expired)
    if counts.rejected:
        yield "left out", plural(counts.rejected, "line")
    if batch.tokens_in or batch.cost_usd or batch.cache_hits:
        cap = f" of {_dollars(batch.budget_usd)}" if batch.budget_usd is not None else ""
        yield "judges", f"{_dollars(batch.cost_usd)}{cap}; {batch.cache_hits} answers from the cache"
    if batch.tags:
        yield "tags", ", ".join(f"{key}={value}" for key, value in batch.tags.items())
    yield "created", _time(batch.created_at)
    yield ("ended", _time(batch.ended_at)) if batch.ended_at else ("deadline", _time(batch.deadline_at))
    if batch.webhook:
        yield "webhook", f"{batch.webhook.url} ({batch.webhook.status or 'not yet'})"


def _dollars(amount: float | None) -> str:
    return "-" if amount is None else f"${amount:.4f}"


def _time(text: str) -> str:
    return text.replace("T", " ").replace("Z", " UTC")
