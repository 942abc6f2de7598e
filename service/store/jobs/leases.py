"""What a worker and the store exchange about a chunk: its lease, its items, their outcomes, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from service.store.jobs.items import ItemFacts
from service.store.jobs.suspects import Suspects
from service.store.labelling.drafts import LabelItem


class ChunkId(NamedTuple):
    """A chunk: its batch, and its number in it."""

    batch: str
    number: int


class Lease(NamedTuple):
    """A lease of a chunk, with the number of the attempt, which every write must name."""

    chunk: ChunkId
    attempt: int


class LeasedElsewhere(Exception):  # noqa: N818 - an answer, not an error
    """Another worker leased the chunk in the meantime."""


class ChunkItem(NamedTuple):
    """One item to work on."""

    position: int
    line: bytes
    """A JSON object: `custom_id`, and `request` as POST /v1/score takes it."""


class ChunkSpending(NamedTuple):
    """What a chunk has cost."""

    usd: float = 0.0
    uncertain_usd: float = 0.0
    """The most that it may have cost besides."""
    questions: int = 0
    """Requests to models, including those that may have been made."""


@dataclass(frozen=True, slots=True)
class LeasedChunk:
    """A leased chunk, with what is left of it to do."""

    lease: Lease
    tenant: str
    items: tuple[ChunkItem, ...]
    cap_usd: float | None
    """What it may spend; None: unlimited."""
    cap_questions: int | None
    """How many requests to models it may make; None: unlimited."""
    spent: ChunkSpending
    """What earlier attempts spent on it."""
    suspects: Suspects = Suspects()  # noqa: RUF009 (frozen)
    """Which items may have brought a worker down."""


class OutcomeRow(NamedTuple):
    """The outcome of one item: a line of the results or of the errors."""

    position: int
    ok: bool
    line: str
    tokens_in: int = 0
    tokens_out: int = 0
    cache_hits: int = 0
    label_items: Sequence[LabelItem] = ()
    """What people may label of it."""
    facts: ItemFacts | None = None
    """The facts that lists and counts use; None: it is left out of them."""


class OutcomeRows(NamedTuple):
    """Outcomes to record for one chunk. `spent` covers the whole chunk so far."""

    lease: Lease
    rows: Sequence[OutcomeRow]
    spent: ChunkSpending


Pause = Literal["paused_provider", "paused_budget"]
