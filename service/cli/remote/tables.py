"""Show batches and calibrations as tables and lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from service.cli.rendering.console import build_console, pluralize, print_table
from service.client.jobs import AnyJob
from service.core.money import Cost, format_usd
from service.jobs.quotes import Quote
from service.reporting.escaping import escape_unprintable
from service.store.jobs.batches import Batch
from service.store.jobs.calibrations import Calibration

HEAD = ("id", "status", "done", "created", "name")


def show_one(job: AnyJob) -> None:
    """Print one job, a row per property."""
    print_table(("", ""), _list_rows(job))


def show_many(jobs: Sequence[AnyJob]) -> None:
    """Print several jobs, a line each. Lines never wrap, so that ids can be copied."""
    rows = [HEAD, *map(_build_row, jobs)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(HEAD))]
    for row in rows:
        line = "  ".join([cell.ljust(width) for cell, width in zip(row, widths, strict=True)])
        build_console().print(Text(line.rstrip(), style="bold" if row is HEAD else ""), soft_wrap=True)


def count_done(job: AnyJob) -> int:
    """Count the items that have an outcome."""
    return job.request_counts.completed + job.request_counts.failed


def render_quote(quote: Quote) -> str:
    """Render the questions and the price of a batch."""
    questions = f"{pluralize(quote.questions, 'question')} for judges, {quote.cache_hits} of them in the cache"
    cost = "price unknown" if quote.cost_usd is None else f"at most {Cost.read(quote)}"
    sampled = f" (estimated from {quote.sampled} of them)" if quote.sampled < quote.items else ""
    return f"{pluralize(quote.items, 'item')}: {questions}, {cost}{sampled}"


def render_end(job: AnyJob) -> str:
    """Render how a job ended."""
    counts = job.request_counts
    parts = [f"{counts.completed} {'scored' if isinstance(job, Batch) else 'judged'}"] if counts.total else []
    never_run = counts.cancelled + counts.expired
    parts += [f"{counts.failed} failed"] if counts.failed else []
    parts += [f"{never_run} never run"] if never_run else []
    what = pluralize(counts.total, "item") if isinstance(job, Batch) else pluralize(job.items, "labelled item")
    cost = f", {Cost.read(job)}" if job.questions else ""
    return f"{job.status}; {': '.join([what, ', '.join(parts)] if parts else [what])}{cost}"


def render_time(text: str) -> str:
    """Render an RFC 3339 time for people."""
    return text.replace("T", " ").replace("Z", " UTC")


def _build_row(job: AnyJob) -> tuple[str, ...]:
    counts = job.request_counts
    failed = f" ({counts.failed} failed)" if counts.failed else ""
    done = f"{count_done(job)}/{counts.total}{failed}"
    if not isinstance(job, Batch) and not counts.total:
        done = pluralize(job.items, "item")
    return job.id, job.status, done, render_time(job.created_at)[:16], escape_unprintable(job.name) or "-"


def _list_rows(job: AnyJob) -> Iterator[tuple[str, str]]:
    yield "batch" if isinstance(job, Batch) else "calibration", job.id
    if job.name:
        yield "name", job.name
    yield "status", job.status
    if job.reason:
        yield "reason", job.reason
    if job.resume_at:
        yield "resumes at", render_time(job.resume_at)
    yield from _list_batch_rows(job) if isinstance(job, Batch) else _list_calibration_rows(job)
    if job.questions or job.cache_hits:
        cap = f" of {format_usd(job.budget_usd)}" if job.budget_usd is not None else ""
        asked = "" if job.max_questions is None else f"; {job.questions} of at most {job.max_questions} questions"
        yield "judges", f"{Cost.read(job)}{cap}{asked}; {job.cache_hits} answers from the cache"
    if job.tags:
        yield "tags", ", ".join(f"{key}={value}" for key, value in job.tags.items())
    yield "created", render_time(job.created_at)
    yield ("ended", render_time(job.ended_at)) if job.ended_at else ("deadline", render_time(job.deadline_at))
    if job.webhook:
        yield "webhook", f"{job.webhook.url} ({job.webhook.status or 'not yet'})"


def _list_batch_rows(batch: Batch) -> Iterator[tuple[str, str]]:
    counts = batch.request_counts
    yield "items", f"{count_done(batch)} of {counts.total} done: {counts.completed} scored, {counts.failed} failed"
    if counts.cancelled or counts.expired:
        yield "never run", str(counts.cancelled + counts.expired)
    if counts.rejected:
        yield "left out", pluralize(counts.rejected, "line")


def _list_calibration_rows(job: Calibration) -> Iterator[tuple[str, str]]:
    counts = job.request_counts
    yield "items", pluralize(job.items, "labelled item")
    if counts.total:
        yield "answers", f"{count_done(job)} of {counts.total} done, {job.repeats} for each item, with {job.rubric}"
    if job.unanswered:
        yield "unanswered", f"{job.unanswered}: {'; '.join(job.reasons)}"
    if job.status == "completed":
        yield "fits", f"{job.fits} ({job.method})"
