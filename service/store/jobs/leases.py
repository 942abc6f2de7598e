"""What a worker and the store hand each other of a chunk: what was opened, what is in it, what came of it, what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from service.store.jobs.items import ItemFacts
from service.store.jobs.suspects import Suspects
from service.store.labelling.drafts import LabelItem


class ChunkId(NamedTuple):
    """A chunk: its batch, and its place in it."""

    batch: str
    number: int


class Lease(NamedTuple):
    """A chunk that was opened, and the number of the opening: what a write must name."""

    chunk: ChunkId
    attempt: int


class LeasedElsewhere(Exception):  # noqa: N818 - an answer, not an error
    """Another worker opened the chunk in the meantime."""


class ChunkItem(NamedTuple):
    """One item that is to be worked on."""

    position: int
    line: bytes
    """A JSON object: `custom_id`, and `request` as POST /v1/score takes it."""


class ChunkSpending(NamedTuple):
    """What was spent on a chunk."""

    usd: float = 0.0
    uncertain_usd: float = 0.0
    """The most that it may have cost besides."""
    questions: int = 0
    """Requests to models; those that may have been made too."""


@dataclass(frozen=True, slots=True)
class LeasedChunk:
    """A chunk that was opened, with what is left of it to do."""

    hold: Lease
    tenant: str
    items: tuple[ChunkItem, ...]
    cap_usd: float | None
    """What it may spend; None: as much as it takes."""
    cap_questions: int | None
    """How many requests to models it may make; None: as many as it takes."""
    spent: ChunkSpending
    """What was spent on it before."""
    suspects: Suspects = Suspects()  # noqa: RUF009 (frozen)
    """Which of the items may have taken a worker down."""


class OutcomeRow(NamedTuple):
    """The outcome of one item: a line of the results, or of the errors."""

    position: int
    ok: bool
    line: str
    tokens_in: int = 0
    tokens_out: int = 0
    cache_hits: int = 0
    labelled: Sequence[LabelItem] = ()
    """What of it may be labelled."""
    facts: ItemFacts | None = None
    """What lists and counts hold of it; None: it is in none."""


class OutcomeRows(NamedTuple):
    """What is to be recorded of one chunk. `spent` is on the whole chunk so far."""

    hold: Lease
    rows: Sequence[OutcomeRow]
    spent: ChunkSpending


Pause = Literal["paused_provider", "paused_budget"]
